//! The only reader and writer of files, and the only parser of TOML.

mod json;
mod models;
mod output;
mod parts;
mod rows;
mod settings;
mod shard;

pub use json::{model_config, parse_json, read_json};
pub use models::{config_name, models, models_by_path, models_of_key, name_of, today};
pub use output::{write, write_directory};
pub use parts::{Contents, Parts, PartsError};
pub use settings::{axis, scenario, setting};
pub use shard::{MergeError, ShardLabel, merge};

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::catalog::{Catalog, currency};
use crate::diagnostics::{Code, Diagnostic, FileId, Sink, Sources, Span};
use crate::document::{Entry, Node, Table, Value};
use crate::validation::{ALIASES, Aliases};

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/catalogs");

/// The texts of a catalog by folder and id, in that order.
pub type CatalogDocuments = BTreeMap<(String, String), Node>;

/// The built-in catalog with directories laid over it, later ones winning field by field; mistakes go to the sink.
pub fn catalog(overlays: &[PathBuf], sources: &mut Sources, sink: &Sink) -> Catalog {
    bind(&catalog_documents(overlays, sources, sink), sink)
}

/// The texts of the built-in catalog with directories laid over them; mistakes go to the sink.
pub fn catalog_documents(overlays: &[PathBuf], sources: &mut Sources, sink: &Sink) -> CatalogDocuments {
    let mut documents = CatalogDocuments::new();
    for file in files_of(&BUILT_IN) {
        let path = file.path();
        if let (Some(key), Some(text)) = (catalog_key(path), file.contents_utf8()) {
            let id = sources.add(format!("catalogs/{}", path.display()), text);
            documents.insert(key, parse(sources, id, sink));
        }
    }
    for overlay in overlays {
        for path in toml_files(overlay, sink) {
            // A file's folder says what it is; so does that of a single file given as overlay.
            let root = if path == *overlay { overlay.parent().and_then(Path::parent) } else { Some(overlay.as_path()) };
            let Some(key) = root.and_then(|root| path.strip_prefix(root).ok()).and_then(catalog_key) else {
                let message = format!("{} lies in no folder that says what it is", path.display());
                let hint = format!("put it into one of {}", Catalog::FOLDERS.join(", "));
                sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
                continue;
            };
            if key.1.bytes().any(|byte| byte.is_ascii_uppercase()) {
                let message = format!("{} has capital letters in its name, which is the entry's id", path.display());
                let hint =
                    format!("ids are written in small letters: rename it to {}.toml", key.1.to_ascii_lowercase());
                sink.push(Diagnostic::new(Code::OutOfRange, message).hint(hint));
                continue;
            }
            let before = sink.len();
            let Some(over) = read(&path, sources, sink) else { continue };
            // What is no TOML says nothing that could be checked.
            if sink.len() > before {
                continue;
            }
            match documents.get_mut(&key) {
                Some(below) => Catalog::lay_over(&key.0, below, &over, sink),
                None => {
                    documents.insert(key, over);
                }
            }
        }
    }
    inherit(&mut documents, sink);
    documents
}

/// Lays each price book that is based on another over it: what it does not say is the other's.
fn inherit(documents: &mut CatalogDocuments, sink: &Sink) {
    let based: Vec<((String, String), Node)> = documents
        .iter()
        .filter_map(|(key, document)| {
            Some((key.clone(), document.at_path("based_on").filter(|_| key.0 == "prices")?.clone()))
        })
        .collect();
    for (key, based_on) in based {
        let below = based_on.as_str().and_then(|id| documents.get(&(key.0.clone(), id.to_owned()))).cloned();
        let sound = below.as_ref().is_some_and(|below| below.at_path("based_on").is_none());
        let Some(mut whole) = below.filter(|_| sound) else {
            let hint = "name another price book that is based on none, such as based_on = \"neocloud-2026h2\"";
            let message = format!("\"{}\" is based on no price book that stands by itself", key.1);
            sink.push(Diagnostic::new(Code::UnknownId, message).at(&based_on.at, "this one").hint(hint));
            continue;
        };
        let Some(mut above) = documents.get(&key).cloned() else { continue };
        if let Value::Table(table) = &mut above.value {
            table.entries.retain(|entry| entry.key != "based_on");
        }
        Catalog::lay_over(&key.0, &mut whole, &above, sink);
        documents.insert(key, whole);
    }
}

/// The catalog of these texts; mistakes go to the sink.
pub fn bind(documents: &CatalogDocuments, sink: &Sink) -> Catalog {
    let mut catalog = Catalog::default();
    // Amounts of other currencies need the rates.
    let (currencies, others): (Vec<_>, Vec<_>) =
        documents.iter().partition(|((folder, _), _)| folder == currency::FOLDER);
    for ((folder, id), document) in currencies.into_iter().chain(others) {
        if !catalog.add(folder, id, document, sink) {
            let hint = format!("the folders are {}", Catalog::FOLDERS.join(", "));
            sink.push(
                Diagnostic::new(Code::UnknownWord, format!("`{folder}` is no folder of a catalog"))
                    .at(&document.at, "this file")
                    .hint(hint),
            );
        }
    }
    catalog.check(sink);
    catalog
}

/// The files of a folder and all below it.
fn files_of<'a>(dir: &'a Dir<'a>) -> Vec<&'a include_dir::File<'a>> {
    dir.files().chain(dir.dirs().flat_map(files_of)).collect()
}

/// The folder and the id that a path below a catalog's root stands for; none where it is no TOML file in a folder.
fn catalog_key(path: &Path) -> Option<(String, String)> {
    let toml = path.extension().is_some_and(|extension| extension == "toml");
    let folder = path.parent()?.to_str()?.replace('\\', "/");
    (toml && !folder.is_empty()).then(|| Some((folder, path.file_stem()?.to_str()?.to_owned())))?
}

/// The TOML files below a directory, in the order of their paths.
fn toml_files(root: &Path, sink: &Sink) -> Vec<PathBuf> {
    if root.is_file() {
        return vec![root.to_owned()];
    }
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(dir) = open.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                unreadable(&dir, &error, sink);
                continue;
            }
        };
        // A link to a directory above would lead round and round.
        match dir.canonicalize() {
            Ok(real) => {
                if !seen.insert(real) {
                    continue;
                }
            }
            Err(error) => {
                unreadable(&dir, &error, sink);
                continue;
            }
        }
        for entry in entries {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(error) => {
                    unreadable(&dir, &error, sink);
                    continue;
                }
            };
            if is_hidden(&path) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            } else if is_astray(&path, root) {
                let message = format!("{} is no part of a catalog", path.display());
                let hint = "files of a catalog end in .toml; notes may lie beside them as .md";
                sink.push(Diagnostic::new(Code::Unreadable, message).hint(hint));
            }
        }
    }
    found.sort();
    found
}

/// What file systems, editors and version control keep for themselves.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file that is no TOML lies in a folder of a catalog, where it was meant to be read; notes are not.
fn is_astray(path: &Path, root: &Path) -> bool {
    let folder = path.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let of_catalog = folder.is_some_and(|folder| Catalog::FOLDERS.iter().any(|known| Path::new(known) == folder));
    of_catalog && path.extension().is_none_or(|extension| extension != "md")
}

/// Reports a file that cannot be read, with what to do about it.
pub(crate) fn unreadable(path: &Path, error: &io::Error, sink: &Sink) {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "paths begin at the directory that the program runs in",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::InvalidData => "files are UTF-8 text",
        _ => "look at its permissions",
    };
    sink.push(Diagnostic::new(Code::Unreadable, format!("cannot read {}: {error}", path.display())).hint(hint));
}

/// Parses a text that is already in `sources`; syntax errors go to the sink, all of them.
pub fn parse(sources: &Sources, file: FileId, sink: &Sink) -> Node {
    let text = sources.text(file);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        sink.push(Diagnostic::new(Code::Syntax, "the text is not TOML").at(&Span { file, range }, error.message()));
    }
    let at = Span { file, range: 0..text.find('\n').unwrap_or(text.len()) };
    Node { value: Value::Table(table(root.get_ref(), file, sink)), at }
}

/// The built-in table of published names; each mistake goes to `sink`.
pub fn aliases(sources: &mut Sources, sink: &Sink) -> Aliases {
    let file = sources.add("aliases.toml", ALIASES);
    Aliases::read(&parse(sources, file, sink), sink)
}

/// The text of a file, without the byte order mark that some editors put at its beginning.
///
/// # Errors
/// When it cannot be read, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The text of a file that is no TOML; a failure goes to the sink.
pub fn text(path: &Path, sink: &Sink) -> Option<String> {
    let read = read_text(path);
    if let Err(error) = &read {
        unreadable(path, error, sink);
    }
    read.ok()
}

/// Reads and parses a file; a failure goes to the sink.
pub fn read(path: &Path, sources: &mut Sources, sink: &Sink) -> Option<Node> {
    match read_text(path) {
        Ok(text) => {
            let file = sources.add(path.display().to_string(), text);
            Some(parse(sources, file, sink))
        }
        Err(error) => {
            unreadable(path, &error, sink);
            None
        }
    }
}

fn table(source: &DeTable<'_>, file: FileId, sink: &Sink) -> Table {
    let mut entries: Vec<Entry> = source
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            at: Span { file, range: key.span() },
            node: node(value, file, sink),
        })
        .collect();
    entries.sort_by_key(|entry| entry.at.range.start);
    Table { entries }
}

fn node(source: &Spanned<DeValue<'_>>, file: FileId, sink: &Sink) -> Node {
    let at = Span { file, range: source.span() };
    let value = match source.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(&number.as_str().replace('_', ""), number.radix());
            if whole.is_err() {
                sink.push(
                    Diagnostic::new(Code::OutOfRange, "the whole number is too large")
                        .at(&at, "beyond 64 bits")
                        .hint("write it with an exponent, such as 1e20, or in a larger unit"),
                );
            }
            whole.map_or_else(|_| Value::Float(number.as_str().parse().unwrap_or(f64::MAX)), Value::Integer)
        }
        DeValue::Float(number) => Value::Float(number.as_str().replace('_', "").parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| node(item, file, sink)).collect()),
        DeValue::Table(entries) => Value::Table(table(entries, file, sink)),
    };
    Node { value, at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::render;
    use crate::document::Reader;
    use crate::units::{Bytes, Fraction, Watts};

    #[test]
    fn all_mistakes_of_a_file_are_reported_at_once() {
        let mut sources = Sources::default();
        let text = "memory = \"80 GB/s\"\nshare = 30\ntpd = \"700 W\"\n";
        let file = sources.add("part.toml", text);
        let sink = Sink::default();
        let root = parse(&sources, file, &sink);
        {
            let mut reader = Reader::new(&root, "", &sink).unwrap();
            let _: Bytes = reader.get("memory");
            let _: Fraction = reader.get("share");
            let _: Watts = reader.get("tdp");
        }
        insta::assert_snapshot!(render(&sink.into_diagnostics(), &sources, false));
    }
}
