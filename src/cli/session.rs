//! One run of the program: what was read, which mistakes were found, and how the answer leaves.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::Answer;
use super::options::{Format, Options};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink, Sources, render};
use crate::document::Node;
use crate::load::{self, CatalogDocuments};
use crate::report::{Grid, Page, Style, grid_csv, grid_json, markdown, table};

/// One run of the program.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) options: Options,
    /// How the answer is written.
    pub(super) format: Format,
    pub(super) sources: Sources,
    pub(super) sink: Sink,
    /// Whether a scenario was read, which is what settings change.
    settings_used: bool,
    /// Files that were read.
    inputs: Vec<PathBuf>,
}

impl Session {
    pub(super) fn new(mut options: Options) -> Self {
        options.output = options.output.filter(|path| path.as_os_str() != "-");
        let session = Self {
            format: options.wanted_format().unwrap_or(Format::Table),
            options,
            sources: Sources::default(),
            sink: Sink::default(),
            settings_used: false,
            inputs: Vec::new(),
        };
        if session.options.bom && session.format != Format::Csv {
            session.unused("--bom", "begins CSV with a byte order mark, and the format is another", "add --format csv");
        }
        session
    }

    /// Reports an option that would change nothing.
    fn unused(&self, option: &str, why: &str, hint: &str) {
        let message = format!("`{option}` {why}");
        self.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
    }

    /// Reports a file whose ending is of none of the formats that the answer can have; where none are known, it has none.
    pub(super) fn takes_endings(&self, known: &[&str]) {
        let Some(ending) = self.options.ending() else { return };
        let formats = known.contains(&"csv") && known.len() > 1;
        if known.is_empty() || known.contains(&ending.as_str()) || formats && self.options.format.is_some() {
            return;
        }
        let all = known.iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(", ");
        let format = if formats { ", or say with --format what it is" } else { "" };
        let message = format!("the answer is not written as `.{ending}`");
        let hint = format!("name a file that ends in {all} or in nothing{format}");
        self.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
    }

    /// Reports a format that was asked of an answer which is TOML, whatever is asked.
    pub(super) fn writes_toml(&self) {
        self.writes_only("TOML");
    }

    /// The same of an answer which another program reads as it is.
    pub(super) fn writes_text(&self) {
        self.writes_only("plain text");
    }

    fn writes_only(&self, kind: &str) {
        if !matches!(self.options.format, None | Some(Format::Table)) {
            self.unused("--format", &format!("has no effect: the answer is {kind}"), "leave it out");
        }
    }

    /// The same of an answer which is JSON.
    pub(super) fn writes_json(&self) {
        if !matches!(self.options.format, None | Some(Format::Table | Format::Json)) {
            self.unused("--format", "has no effect: the answer is JSON", "leave it out");
        }
    }

    /// Remembers a file that the answer must not replace.
    pub(super) fn reads(&mut self, path: &Path) {
        self.inputs.push(path.to_owned());
    }

    /// The built-in catalog with the user's directories over it.
    pub(super) fn catalog(&mut self) -> Catalog {
        load::catalog(&self.options.catalog, &mut self.sources, &self.sink)
    }

    /// The texts of that catalog.
    pub(super) fn catalog_documents(&mut self) -> CatalogDocuments {
        load::catalog_documents(&self.options.catalog, &mut self.sources, &self.sink)
    }

    /// The text of a file of the catalog, and what was read of it. With overlays it has no one text of its own.
    pub(super) fn text_of(&mut self, document: &Node) -> (String, Node) {
        if self.options.catalog.is_empty() {
            return (self.sources.text(document.at.file).to_owned(), document.clone());
        }
        let text = document.to_toml();
        let file = self.sources.add("set.toml", text.as_str());
        (text, load::parse(&self.sources, file, &self.sink))
    }

    /// A file of TOML.
    pub(super) fn document(&mut self, path: &Path) -> Option<Node> {
        self.reads(path);
        load::read(path, &mut self.sources, &self.sink)
    }

    /// A scenario with the user's settings in it; models that it names by path are put into the catalog.
    pub(super) fn scenario(&mut self, path: &Path, catalog: &mut Catalog) -> Option<Node> {
        self.settings_used = true;
        self.reads(path);
        let document = load::scenario(path, &self.options.set, &mut self.sources, &self.sink)?;
        let before = self.sink.len();
        load::models(&document, path, catalog, &mut self.sources, &self.sink);
        // A model that could not be read is told once, where it stands.
        (self.sink.len() == before).then_some(document)
    }

    /// A page in the format asked for, where that is for people.
    pub(super) fn page(&self, page: &Page) -> Vec<u8> {
        match self.format {
            Format::Md => markdown(page),
            _ => table(page, style(&io::stdout(), self.options.output.is_none())),
        }
        .into_bytes()
    }

    /// A plain table in any format; for people under a title.
    pub(super) fn grid(&self, title: &str, grid: Grid) -> Vec<u8> {
        match self.format {
            Format::Json => grid_json(&grid).into_bytes(),
            Format::Csv => grid_csv(&grid, self.options.bom),
            Format::Table | Format::Md => {
                let section = crate::report::Section::new(String::new(), crate::report::Block::Grid(grid));
                self.page(&Page { title: title.to_owned(), sections: vec![section] })
            }
        }
    }

    /// Reports an answer that would replace what was read.
    pub(super) fn spares_inputs(&self) {
        let same = |input: &PathBuf, output: &PathBuf| {
            let real = |path: &PathBuf| path.canonicalize().ok();
            real(input).is_some_and(|input| real(output) == Some(input))
        };
        if let Some(output) =
            self.options.output.as_ref().filter(|output| self.inputs.iter().any(|input| same(input, output)))
        {
            let message = format!("{} was read: the answer would replace it", output.display());
            self.sink.push(Diagnostic::new(Code::Inconsistent, message).hint("name another file with -o"));
        }
    }

    /// Writes the answer where it belongs; the exit code says what it is.
    pub(super) fn deliver(self, answer: Answer) -> ExitCode {
        if !self.settings_used && !self.options.set.is_empty() {
            self.unused("--set", "changes a key of a scenario, and this command reads none", "leave it out");
        }
        self.spares_inputs();
        if !self.sink.is_empty() {
            return self.mistakes();
        }
        let (data, message, code) = match answer {
            Answer::Yes(data) => (Some(data), String::new(), 0),
            Answer::Written => (None, String::new(), 0),
            Answer::Files(files) => return self.deliver_files(&files),
            Answer::No { data, message } => (data, message, 1),
            Answer::Mistaken => (None, String::new(), 2),
        };
        complain(&message);
        let Some(data) = data else { return ExitCode::from(code) };
        let written = match &self.options.output {
            Some(path) => {
                load::write(path, &data).map_err(|error| format!("cannot write {}: {error}\n", path.display()))
            }
            None => print(&data).map_err(|error| format!("cannot write the answer: {error}\n")),
        };
        match written {
            Ok(()) => ExitCode::from(code),
            Err(message) => {
                complain(&message);
                ExitCode::from(2)
            }
        }
    }

    /// Writes files into the directory that the answer is to be, all of them or none.
    fn deliver_files(self, files: &[(PathBuf, Vec<u8>)]) -> ExitCode {
        let Some(directory) = &self.options.output else {
            let message = format!("the answer is {} files", files.len());
            self.sink.push(Diagnostic::new(Code::Inconsistent, message).hint("name a new directory for them with -o"));
            return self.mistakes();
        };
        match load::write_directory(directory, files) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&format!("cannot write {}: {error}\n", directory.display()));
                ExitCode::from(2)
            }
        }
    }

    fn mistakes(self) -> ExitCode {
        let coloured = io::stderr().is_terminal() && colour();
        complain(&render(&self.sink.into_diagnostics(), &self.sources, coloured));
        ExitCode::from(2)
    }
}

/// A page for stderr.
pub(super) fn message(page: &Page) -> String {
    table(page, style(&io::stderr(), true))
}

/// How a stream shows a report; `shown` says whether that is where it goes.
fn style(stream: &(impl IsTerminal + AsHandle), shown: bool) -> Style {
    let terminal = shown && stream.is_terminal();
    Style { width: width(terminal, stream), emphasis: terminal && colour() }
}

/// Whether the environment lets a terminal have colours (<https://no-color.org>).
fn colour() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(unix)]
use std::os::fd::AsFd as AsHandle;
#[cfg(windows)]
use std::os::windows::io::AsHandle;

/// Columns of the terminal; `COLUMNS` sets them where the answer goes elsewhere.
fn width(terminal: bool, stream: &impl AsHandle) -> Option<u16> {
    let wanted = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if !terminal {
        return wanted();
    }
    terminal_size::terminal_size_of(stream).map(|(width, _)| width.0).or_else(wanted)
}

/// Writes data to stdout. A reader that has gone away wants no more of it.
fn print(data: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes to stderr; if that fails there is nowhere left to say so.
pub(super) fn complain(message: &str) {
    let _ = io::stderr().write_all(message.as_bytes());
}
