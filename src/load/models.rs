//! Models that a file names by the path of their configuration: read beside it, and put into the catalog under that path.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{model_config, parse};
use crate::catalog::{Catalog, date_of};
use crate::diagnostics::{Code, Diagnostic, Sink, Sources, did_you_mean};
use crate::document::{Node, Table, Value};
use crate::workload::import;

/// The keys that name a model.
const KEYS: [&str; 3] = ["serving.model", "training.model", "serving.speculation.draft"];

/// Puts the models that a document names by path into a catalog: where its keys, what it varies and what it sets say so. Paths
/// begin at the folder of the document's file. Mistakes go to the sink.
pub fn models(document: &Node, file: &Path, catalog: &mut Catalog, sources: &mut Sources, sink: &Sink) {
    named_models(&named(document), file, catalog, sources, sink);
}

/// Where a document names models by path.
pub fn models_by_path(document: &Node) -> Vec<&Node> {
    named(document).into_iter().filter(|node| node.as_str().is_some_and(is_path)).collect()
}

/// Where a document names models.
fn named(document: &Node) -> Vec<&Node> {
    let mut named = Vec::new();
    for key in KEYS {
        named.extend(document.at_path(key).map(|value| text_of(value)).unwrap_or_default());
    }
    varied(document, &mut named);
    named
}

/// The same of values that a key takes: of `key=value,...` on the command line.
pub fn models_of_key(
    (key, values): (&str, &[Node]),
    file: &Path,
    catalog: &mut Catalog,
    sources: &mut Sources,
    sink: &Sink,
) {
    if KEYS.contains(&key) {
        let named: Vec<&Node> = values.iter().collect();
        named_models(&named, file, catalog, sources, sink);
    }
}

fn named_models(named: &[&Node], file: &Path, catalog: &mut Catalog, sources: &mut Sources, sink: &Sink) {
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    for node in named {
        let Some(name) = node.as_str().filter(|name| is_path(name)) else { continue };
        let path = folder.join(name);
        let config = if path.is_dir() { path.join("config.json") } else { path.clone() };
        if let Some(known) = catalog.models.get(name) {
            if sources.name(known.at.file) != config.display().to_string() {
                let message =
                    format!("`{name}` is two models: {} and {}", sources.name(known.at.file), config.display());
                let hint = "scenarios in different folders are compared by paths that tell their models apart";
                sink.push(Diagnostic::new(Code::Duplicate, message).at(&node.at, "the second").hint(hint));
            }
            continue;
        }
        if !config.is_file() {
            let message = format!("there is no configuration of a model at {}", config.display());
            let hint = "paths begin at the folder of the file that names them, those of --set at the scenario's; an id of the catalog has no slash";
            // Hubs have models by owner and name.
            let last = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
            let known = did_you_mean(&last, catalog.models.iter().map(|entry| entry.id.as_str()));
            let hint = known.map_or_else(|| hint.to_owned(), |id| format!("the catalog has \"{id}\"; {hint}"));
            sink.push(Diagnostic::new(Code::Unreadable, message).at(&node.at, "named here").hint(hint));
            continue;
        }
        let before = sink.len();
        let Some((root, quantisation)) = model_config(&path, sources, sink) else { continue };
        if sink.len() > before {
            continue;
        }
        let Some(found) = import(&root, quantisation.as_ref(), sink).filter(|_| sink.len() == before) else { continue };
        let text = found.to_file(&name_of(&path), &config_name(&path), &today());
        let id = sources.add(config.display().to_string(), text);
        let document = parse(sources, id, sink);
        catalog.add("models", name, &document, sink);
    }
}

/// Whether a text is a path and no id.
fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"))
}

/// The texts of a value, or of a list of them.
fn text_of(node: &Node) -> Vec<&Node> {
    match &node.value {
        Value::Array(items) => items.iter().collect(),
        _ => vec![node],
    }
}

/// The values of keys that stand as they are written in settings and axes: `"serving.model" = ...`, and `key = "serving.model"`
/// with `values`.
fn varied<'a>(node: &'a Node, named: &mut Vec<&'a Node>) {
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| varied(item, named)),
        Value::Table(table) => {
            named.extend(of_axis(table));
            for entry in &table.entries {
                if KEYS.contains(&entry.key.as_str()) {
                    named.extend(text_of(&entry.node));
                }
                varied(&entry.node, named);
            }
        }
        _ => {}
    }
}

fn of_axis(table: &Table) -> Vec<&Node> {
    let key = table.get("key").and_then(Node::as_str);
    let values = table.get("values").filter(|_| key.is_some_and(|key| KEYS.contains(&key)));
    values.map(|values| text_of(values)).unwrap_or_default()
}

/// A directory's name, or a file's; `config.json` says less than the directory that it is in.
pub fn name_of(path: &Path) -> String {
    let named = if path.file_name().is_some_and(|name| name == "config.json") { path.parent() } else { Some(path) };
    let stem = named.filter(|path| path.file_name().is_some()).unwrap_or(path);
    let stem = if stem.is_dir() { stem.file_name() } else { stem.file_stem() };
    stem.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The last part of a configuration's path.
pub fn config_name(path: &Path) -> String {
    path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The day that it is.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_of(i64::try_from(since.as_secs() / 86_400).unwrap_or_default())
}
