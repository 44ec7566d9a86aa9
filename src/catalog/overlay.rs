//! Overlays: a user's file laid over one of the catalog's, field by field.
//!
//! A field and its source travel together: the source that stood behind the old figure does not claim the new one, so
//! an overlay names a source for each field that it has. Entries that carry their own source (prices, cost lines,
//! offers) are replaced or added whole.

use super::shelf::check_sources;
use super::{Catalog, List};
use crate::diagnostics::Sink;
use crate::document::{Node, Table, Value};
use crate::provenance::{Source, covers};

impl Catalog {
    /// Lays a file over another of the same folder and id; mistakes of the upper one go to the sink.
    ///
    /// A file that is `frozen` is a whole copy, so it replaces what lies below.
    pub fn lay_over(folder: &str, below: &mut Node, above: &Node, sink: &Sink) {
        let lists = Self::lists(folder);
        let (Value::Table(base), Value::Table(over)) = (&mut below.value, &above.value) else { return };
        if over.get("frozen").is_some() {
            *below = above.clone();
            return;
        }
        let mut over = over.clone();
        check_sources(above, &sources_of(&over), lists, sink);
        for entry in &mut over.entries {
            let Some(under) = base.get(&entry.key) else { continue };
            if entry.key == "source" {
                entry.node.value = Value::Array(join_sources(under, &entry.node, above));
            } else if let Some(list) = lists.iter().find(|list| list.key == entry.key) {
                entry.node.value = Value::Array(join_entries(under, &entry.node, list));
            }
        }
        base.overlay(&over);
        // What is missing or at odds in the whole file is the upper file's doing: the lower one was sound by itself.
        below.at = above.at.clone();
    }
}

/// The sources of a file; their own mistakes are reported when the joined file is read.
fn sources_of(table: &Table) -> Vec<Source> {
    let quiet = Sink::default();
    let root = Node { value: Value::Table(table.clone()), ..Node::default() };
    crate::document::Reader::new(&root, "", &quiet)
        .map(|mut reader| reader.tables("source", Source::read))
        .unwrap_or_default()
}

/// The sources of both files, those below without the fields that the upper file's sources stand behind.
fn join_sources(below: &Node, above: &Node, upper: &Node) -> Vec<Node> {
    let mut upper_sources = items(above).to_vec();
    let mut claimed = Vec::new();
    for source in &mut upper_sources {
        let Some(Value::Array(fields)) = field_mut(source, "fields") else { continue };
        // The table as the upper file has it may lack fields of the one below, which keep their source.
        *fields = fields.iter().flat_map(|field| spread(field, upper)).collect();
        claimed.extend(fields.iter().filter_map(Node::as_str).map(str::to_owned));
    }
    let keeps = |field: &Node| field.as_str().is_none_or(|name| !claimed.iter().any(|own| covers(own, name)));
    let mut joined: Vec<Node> = Vec::new();
    for mut source in items(below).iter().cloned() {
        let Some(Value::Array(fields)) = field_mut(&mut source, "fields") else { continue };
        let had = fields.len();
        fields.retain(keeps);
        if !(fields.is_empty() && had > 0) {
            joined.push(source);
        }
    }
    joined.extend(upper_sources);
    joined
}

/// A field's name, or those of all fields below it where it is a table of fields.
fn spread(field: &Node, document: &Node) -> Vec<Node> {
    let Some(name) = field.as_str() else { return vec![field.clone()] };
    let mut names = Vec::new();
    match document.at_path(name).and_then(Node::as_table) {
        Some(table) => leaves(table, name, &mut names),
        None => names.push(name.to_owned()),
    }
    names.into_iter().map(|name| Node { value: Value::String(name), at: field.at.clone() }).collect()
}

/// The dotted names of all fields below a table; a value with its range is one field.
pub(super) fn leaves(table: &Table, path: &str, names: &mut Vec<String>) {
    if table.get("value").is_some() {
        names.push(path.to_owned());
        return;
    }
    for entry in &table.entries {
        let below = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        match entry.node.as_table() {
            Some(table) => leaves(table, &below, names),
            None => names.push(below),
        }
    }
}

/// The entries of both lists; one above replaces the one below that has the same identity.
fn join_entries(below: &Node, above: &Node, list: &List) -> Vec<Node> {
    let mut joined = items(below).to_vec();
    for entry in items(above) {
        match joined.iter_mut().find(|lower| identity(lower, list) == identity(entry, list)) {
            Some(lower) => *lower = entry.clone(),
            None => joined.push(entry.clone()),
        }
    }
    joined
}

/// What tells an entry of a list from the others.
pub(super) fn identity(entry: &Node, list: &List) -> Vec<String> {
    let text = |key: &&str| entry.at_path(key).and_then(Node::as_str).unwrap_or_default().to_owned();
    list.identity.iter().map(text).collect()
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => &[],
    }
}

fn field_mut<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Value> {
    match &mut node.value {
        Value::Table(table) => table.get_mut(key).map(|node| &mut node.value),
        _ => None,
    }
}
