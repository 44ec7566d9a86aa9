//! The parts of one kind, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::currency::{Rates, to_dollars};
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean_one_of};
use crate::document::{Date, Node, Reader, Value};
use crate::provenance::{Basis, Source, weakest};

/// A kind of catalog file.
pub trait Part: Sized {
    /// What one is called.
    const WHAT: &'static str;
    /// The folder of its files.
    const FOLDER: &'static str;
    /// Top-level lists whose entries carry their own source.
    const LISTS: &'static [List];

    /// Reads the part's own fields: all but `name` and `source`.
    fn read(reader: &mut Reader<'_>) -> Self;
}

/// A list whose entries carry their own source, and what tells two entries apart.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The top-level key.
    pub key: &'static str,
    /// The fields of an entry that make it the same entry in an overlay.
    pub identity: &'static [&'static str],
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
    /// The fixed rates, in sentences, at which its amounts of other currencies were taken.
    pub exchange: BTreeSet<String>,
    /// The place of the file.
    pub at: Span,
    /// The file as it was written, after overlays: what is shown and compared.
    pub document: Arc<Node>,
    /// The part.
    pub part: T,
    /// Whether its fields were read without a mistake: else some of them are placeholders.
    pub sound: bool,
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

    /// The source behind a field, by dotted name: of several, the one that names it most closely.
    pub fn source_of(&self, field: &str) -> Option<&Source> {
        Source::closest(&self.sources, field)
    }
}

/// Ids that a hint can list.
const FEW: usize = 24;

/// The parts of one kind.
#[derive(Clone, Debug)]
pub struct Shelf<T>(BTreeMap<String, Arc<Entry<T>>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Part> Shelf<T> {
    /// Reads a file; amounts of other currencies count at these rates.
    pub fn add(&mut self, id: &str, document: &Node, rates: &Rates, sink: &Sink) {
        let written = Arc::new(document.clone());
        let mut in_dollars = document.clone();
        let mut exchange = BTreeSet::new();
        to_dollars(&mut in_dollars, rates, &mut exchange);
        let document = &in_dollars;
        let before = sink.len();
        let Some(mut reader) = Reader::new(document, "", sink) else { return };
        let name = reader.get("name");
        let sources = reader.tables("source", Source::read);
        reader.optional::<Date>("frozen");
        reader.optional::<Vec<String>>("gaps");
        let part = T::read(&mut reader);
        drop(reader);
        let sound = sink.len() == before;
        check_sources(document, &sources, T::LISTS, sink);
        let at = document.at.clone();
        let entry = Entry { id: id.to_owned(), name, sources, exchange, at, document: written, part, sound };
        self.0.insert(id.to_owned(), Arc::new(entry));
    }

    /// What there is, in words for a hint.
    pub fn listed(&self) -> String {
        if self.0.len() > FEW {
            return format!("`clusterplan catalog list {}` shows all", T::FOLDER);
        }
        format!("there is {}", self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
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
        let near = did_you_mean_one_of(id, self.0.keys().map(String::as_str));
        let hint = near.unwrap_or_else(|| self.listed());
        sink.push(
            Diagnostic::new(Code::UnknownId, format!("no {} has the id \"{id}\"", T::WHAT))
                .at(at, "not in the catalog")
                .hint(hint),
        );
        None
    }
}

impl<T: Part> Shelf<T> {
    /// The part of an id, or a report at the place that named it; none where it has mistakes of its own.
    pub(super) fn sound(&self, id: &str, at: &Span, sink: &Sink) -> Option<Arc<Entry<T>>> {
        self.find(id, at, sink).filter(|entry| entry.sound)
    }

    /// All without mistakes of their own.
    pub(super) fn iter_sound(&self) -> impl Iterator<Item = &Arc<Entry<T>>> {
        self.iter().filter(|entry| entry.sound)
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

/// The shape of a kind's files.
pub(super) fn schema<T: Part>() -> serde_json::Value {
    let read = |reader: &mut Reader<'_>| {
        reader.get::<String>("name");
        reader.tables("source", Source::read);
        reader.optional::<Date>("frozen");
        reader.optional::<Vec<String>>("gaps");
        T::read(reader)
    };
    Reader::describe(read).document(&format!("A file of catalogs/{}: {}", T::FOLDER, T::WHAT))
}

/// Reports every field that has no source, or more than one.
pub(super) fn check_sources(document: &Node, sources: &[Source], lists: &[List], sink: &Sink) {
    let Some(table) = document.as_table() else { return };
    for entry in &table.entries {
        if is_plain(&entry.key) || lists.iter().any(|list| list.key == entry.key) {
            continue;
        }
        check_field(&entry.node, &entry.key, &entry.at, sources, sink);
    }
    for field in sources.iter().flat_map(|source| &source.fields) {
        if document.at_path(field).is_none() {
            let message = format!("a source stands behind `{field}`, which this file does not have");
            sink.push(
                Diagnostic::new(Code::Unsourced, message)
                    .at(&document.at, "in this file")
                    .hint("leave it out of the source's fields, or add it to the file"),
            );
        }
    }
}

/// Whether a top-level key needs no source: what a part is called, the sources themselves, the day of a frozen copy, and
/// what could not be found.
pub fn is_plain(key: &str) -> bool {
    matches!(key, "name" | "source" | "frozen" | "gaps")
}

/// How to give a field its one source; a line does, at the top of the file.
fn source_hint(path: &str, sources: usize) -> String {
    if sources > 0 {
        return format!("name \"{path}\" in the `fields` of one [[source]] only");
    }
    format!(
        "name \"{path}\" in the `fields` of a [[source]]; in one line, above all tables: source = [{{ fields = \
         [\"{path}\"], basis = \"assumed\", title = \"why\", accessed = 2026-11-29 }}]"
    )
}

fn check_field(node: &Node, path: &str, at: &Span, sources: &[Source], sink: &Sink) {
    let standing = sources.iter().filter(|source| source.covers(path)).count();
    match (standing, &node.value) {
        (1, _) => {}
        // A table may have a source for each of its fields instead; a value with its range is one field.
        (0, Value::Table(table)) if !table.entries.is_empty() && table.get("value").is_none() => {
            for entry in &table.entries {
                check_field(&entry.node, &format!("{path}.{}", entry.key), &entry.at, sources, sink);
            }
        }
        (count, _) => sink.push(
            Diagnostic::new(Code::Unsourced, format!("`{path}` has {count} sources, and needs exactly one"))
                .at(at, "this field")
                .hint(source_hint(path, count)),
        ),
    }
}
