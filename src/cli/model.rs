//! `clusterplan model`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::options::{ENDINGS, Format};
use super::{Answer, Session};
use crate::catalog::model::{Format as NumberFormat, Model};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::load::{self, config_name, name_of, today};
use crate::memory::serving::CacheFormats;
use crate::report::{ModelSheet, model_grid, model_json, model_page};
use crate::workload::{Fill, Imported, import};

/// `clusterplan model`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(super) struct ModelCommand {
    #[command(subcommand)]
    action: Option<Action>,
    /// An id of the catalog, a config.json, or a directory that has one
    model: Option<String>,
    /// Tokens of the sequence whose cache is counted
    #[arg(long, default_value_t = 8_192, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    context: u64,
    #[command(flatten)]
    cache: CacheArguments,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Writes a configuration as a file for the catalog; -o says where
    Import {
        /// A config.json, or a directory that has one
        config: PathBuf,
        /// What the model is called [default: the name of its directory, or of the file]
        #[arg(long)]
        name: Option<String>,
    },
}

/// Formats of the cache.
#[derive(Args, Debug)]
pub(super) struct CacheArguments {
    /// Format of keys and values, such as fp8 [default: the checkpoint's]
    #[arg(long, value_name = "FORMAT", value_parser = number_format)]
    kv_cache: Option<NumberFormat>,
    /// Format of recurrent states, such as fp32 [default: the checkpoint's]
    #[arg(long, value_name = "FORMAT", value_parser = number_format)]
    state: Option<NumberFormat>,
}

impl CacheArguments {
    pub(super) fn formats(&self, model: &Model) -> CacheFormats {
        let checkpoint = CacheFormats::of(model);
        CacheFormats {
            keys_values: self.kv_cache.unwrap_or(checkpoint.keys_values),
            states: self.state.unwrap_or(checkpoint.states),
            ..checkpoint
        }
    }
}

/// A number format by its word.
pub(super) fn number_format(word: &str) -> Result<NumberFormat, String> {
    NumberFormat::named(word)
        .ok_or_else(|| format!("the formats are {}", NumberFormat::words().collect::<Vec<_>>().join(", ")))
}

impl ModelCommand {
    /// What a file of the answer may end in.
    pub(super) const fn endings(&self) -> &'static [&'static str] {
        if self.action.is_some() { &["toml"] } else { &ENDINGS }
    }

    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        if let Some(Action::Import { config, name }) = &self.action {
            session.writes_toml();
            let answer = write(config, name.as_deref(), &mut session);
            return (answer, session);
        }
        let wanted = self.model.as_deref().unwrap_or_default();
        let Some((name, model, fills)) = find(wanted, &mut session) else { return (Answer::Mistaken, session) };
        let formats = self.cache.formats(&model);
        let sheet = ModelSheet::new(name, model, fills, self.context, formats);
        let answer = Answer::Yes(match session.format {
            Format::Json => model_json(&sheet).into_bytes(),
            Format::Csv => session.grid("", model_grid(&sheet)),
            Format::Table | Format::Md => session.page(&model_page(&sheet)),
        });
        (answer, session)
    }
}

/// A model by id or by path: its name, itself, and what was filled.
pub(super) fn find(wanted: &str, session: &mut Session) -> Option<(String, Model, Vec<Fill>)> {
    let path = Path::new(wanted);
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json || path.is_dir() {
        let found = read(path, session)?;
        return Some((name_of(path), found.model, found.fills));
    }
    let catalog = session.catalog();
    if !session.sink.is_empty() {
        return None;
    }
    if let Some(entry) = catalog.models.get(wanted) {
        return Some((entry.name.clone(), entry.part.clone(), Vec::new()));
    }
    if path.is_file() {
        let message = format!("`{wanted}` is no JSON file");
        session.sink.push(Diagnostic::new(Code::Unreadable, message).hint("a configuration ends in .json"));
        return None;
    }
    let asked = session.sources.add("command line", wanted);
    let at = Span { file: asked, range: 0..wanted.len() };
    catalog.models.find(wanted, &at, &session.sink)?;
    None
}

fn read(path: &Path, session: &mut Session) -> Option<Imported> {
    session.reads(path);
    let (root, quantisation) = load::model_config(path, &mut session.sources, &session.sink)?;
    if !session.sink.is_empty() {
        return None;
    }
    let found = import(&root, quantisation.as_ref(), &session.sink)?;
    session.sink.is_empty().then_some(found)
}

fn write(path: &Path, name: Option<&str>, session: &mut Session) -> Answer {
    let Some(found) = read(path, session) else { return Answer::Mistaken };
    let name = name.map_or_else(|| name_of(path), str::to_owned);
    Answer::Yes(found.to_file(&name, &config_name(path), &today()).into_bytes())
}
