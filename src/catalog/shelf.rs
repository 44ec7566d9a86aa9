//! The parts of one kind, by id.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::document::{Node, Reader, Value};
use crate::provenance::{Basis, Source, weakest};

/// A kind of catalog file.
pub trait Part: Sized {
    /// What one is called.
    const WHAT: &'static str;
    /// The folder of its files.
    const FOLDER: &'static str;
    /// Top-level keys whose entries carry their own source.
    const SELF_SOURCED: &'static [&'static str];

    /// Reads the part's own fields: all but `name` and `source`.
    fn read(reader: &mut Reader<'_>) -> Self;
}

/// A part with its id, name and sources.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// The id: the file's name.
    pub id: String,
    /// The name that people use.
    pub name: String,
    /// The documents behind its fields.
    pub sources: Vec<Source>,
    /// The place of the file.
    pub at: Span,
    /// The part.
    pub part: T,
}

impl<T> Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T> Entry<T> {
    /// The weakest basis among its sources.
    pub fn basis(&self) -> Basis {
        self.sources.iter().map(|source| source.basis).fold(Basis::Datasheet, weakest)
    }

    /// The source behind a field, by dotted name.
    pub fn source_of(&self, field: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.covers(field))
    }
}

/// The parts of one kind.
#[derive(Debug)]
pub struct Shelf<T>(BTreeMap<String, Arc<Entry<T>>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Part> Shelf<T> {
    /// Reads a file.
    pub fn add(&mut self, id: &str, document: &Node, sink: &Sink) {
        let Some(mut reader) = Reader::new(document, "", sink) else { return };
        let name = reader.get("name");
        let sources = reader.tables("source", Source::read);
        let part = T::read(&mut reader);
        drop(reader);
        check_sources(document, &sources, T::SELF_SOURCED, sink);
        let entry = Entry { id: id.to_owned(), name, sources, at: document.at.clone(), part };
        self.0.insert(id.to_owned(), Arc::new(entry));
    }

    /// The part of an id, or a report at the place that named it.
    pub fn find(&self, id: &str, at: &Span, sink: &Sink) -> Option<Arc<Entry<T>>> {
        if let Some(entry) = self.0.get(id) {
            return Some(Arc::clone(entry));
        }
        // The empty id stands for one that is missing, which has been reported where it is.
        if id.is_empty() {
            return None;
        }
        let ids = || self.0.keys().map(String::as_str);
        let hint = did_you_mean(id, ids()).map_or_else(
            || format!("there is {}; `clusterplan catalog list` shows all", ids().collect::<Vec<_>>().join(", ")),
            |closest| format!("did you mean \"{closest}\"?"),
        );
        sink.push(Diagnostic::new(Code::UnknownId, format!("no {} has the id \"{id}\"", T::WHAT)).at(at, "not in the catalog").hint(hint));
        None
    }
}

impl<T> Shelf<T> {
    /// The part of an id.
    pub fn get(&self, id: &str) -> Option<&Arc<Entry<T>>> {
        self.0.get(id)
    }

    /// All, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry<T>>> {
        self.0.values()
    }
}

/// Reports every field that has no source, or more than one.
fn check_sources(document: &Node, sources: &[Source], self_sourced: &[&str], sink: &Sink) {
    let Some(table) = document.as_table() else { return };
    for entry in &table.entries {
        if matches!(entry.key.as_str(), "name" | "source") || self_sourced.contains(&entry.key.as_str()) {
            continue;
        }
        check_field(&entry.node, &entry.key, &entry.at, sources, sink);
    }
    for field in sources.iter().flat_map(|source| &source.fields) {
        if document.at_path(field).is_none() {
            let message = format!("a source stands behind `{field}`, which this file does not have");
            sink.push(Diagnostic::new(Code::Unsourced, message).at(&document.at, "in this file"));
        }
    }
}

fn check_field(node: &Node, path: &str, at: &Span, sources: &[Source], sink: &Sink) {
    let standing = sources.iter().filter(|source| source.covers(path)).count();
    match (standing, &node.value) {
        (1, _) => {}
        // A table may have a source for each of its fields instead.
        (0, Value::Table(table)) if !table.entries.is_empty() => {
            for entry in &table.entries {
                check_field(&entry.node, &format!("{path}.{}", entry.key), &entry.at, sources, sink);
            }
        }
        (count, _) => sink.push(
            Diagnostic::new(Code::Unsourced, format!("`{path}` has {count} sources, and needs exactly one"))
                .at(at, "this field")
                .hint(format!("name \"{path}\" in the `fields` of one [[source]]")),
        ),
    }
}
