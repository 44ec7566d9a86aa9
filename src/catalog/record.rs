//! An entry as it was written: every figure with the source behind it, whatever its kind.

use super::Catalog;
use super::List;
use super::currency::{Rates, in_dollars};
use super::overlay::{identity, leaves};
use super::shelf::is_plain;
use crate::document::{Node, Table, Value};
use crate::provenance::Source;

/// What stands behind an entry of a list, beside what it says.
const EVIDENCE: [&str; 5] = ["basis", "source", "url", "date", "note"];

/// An entry of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What one is called.
    pub kind: &'static str,
    /// The folder of its file.
    pub folder: &'static str,
    /// Its id.
    pub id: &'a str,
    /// The name that people use.
    pub name: &'a str,
    /// The documents behind its fields.
    pub sources: &'a [Source],
    /// The file as it was written, after overlays.
    pub document: &'a Node,
    /// Top-level lists whose items carry their own source.
    pub lists: &'static [List],
}

/// A field, as written, and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its dotted name; entries of a list are named by what tells them apart.
    pub field: String,
    /// Its text.
    pub text: String,
    /// The same in dollars, where it was written in another currency.
    pub dollars: Option<String>,
    /// How it was come by.
    pub basis: String,
    /// The document behind it.
    pub title: String,
    /// Where that is.
    pub url: Option<String>,
    /// The day of a price, or the day on which a document was read.
    pub date: Option<String>,
    /// What a reader must know to use it.
    pub note: Option<String>,
}

impl Record<'_> {
    /// Every figure, in the order of the file.
    pub fn figures(&self, rates: &Rates) -> Vec<Figure> {
        let Some(table) = self.document.as_table() else { return Vec::new() };
        let mut figures = Vec::new();
        for entry in table.entries.iter().filter(|entry| !is_plain(&entry.key)) {
            if let Some(list) = self.lists.iter().find(|list| list.key == entry.key) {
                figures.extend(entries(&entry.node).iter().map(|item| listed(item, list, rates)));
                continue;
            }
            let mut names = Vec::new();
            match entry.node.as_table() {
                Some(below) => leaves(below, &entry.key, &mut names),
                None => names.push(entry.key.clone()),
            }
            figures.extend(names.into_iter().map(|field| self.sourced(field, rates)));
        }
        figures
    }

    fn sourced(&self, field: String, rates: &Rates) -> Figure {
        let node = self.document.at_path(&field);
        let source = Source::closest(self.sources, &field);
        Figure {
            text: node.map(text).unwrap_or_default(),
            dollars: node.and_then(|node| dollars(node, rates)),
            basis: source.map(|source| source.basis.to_string()).unwrap_or_default(),
            title: source.map(|source| source.title.clone()).unwrap_or_default(),
            url: source.and_then(|source| source.url.clone()),
            date: source.map(|source| source.accessed.clone()),
            note: source.and_then(|source| source.note.clone()),
            field,
        }
    }
}

/// An entry of a list that carries its own source.
fn listed(item: &Node, list: &List, rates: &Rates) -> Figure {
    let own = |key: &str| item.at_path(key).map(text);
    let says = |key: &str| !EVIDENCE.contains(&key) && !list.identity.contains(&key);
    let table = item.as_table();
    let said = table.iter().flat_map(|table| &table.entries).filter(|entry| says(&entry.key));
    let parts: Vec<String> = said.clone().map(|entry| format!("{} {}", entry.key, text(&entry.node))).collect();
    let converted: Vec<String> = said.filter_map(|entry| dollars(&entry.node, rates)).collect();
    let name: Vec<String> = identity(item, list).into_iter().filter(|part| !part.is_empty()).collect();
    Figure {
        field: format!("{} {}", list.key, name.join(", ")),
        text: parts.join(", "),
        dollars: (!converted.is_empty()).then(|| converted.join(", ")),
        basis: own("basis").unwrap_or_default(),
        title: own("source").unwrap_or_default(),
        url: own("url"),
        date: own("date"),
        note: own("note"),
    }
}

fn entries(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => &[],
    }
}

/// A value as one line; a range follows its value.
pub(super) fn text(node: &Node) -> String {
    match &node.value {
        Value::String(text) | Value::Date(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("; "),
        Value::Table(table) => table_text(table),
        Value::Rows(rows) => rows.name.clone(),
    }
}

fn table_text(table: &Table) -> String {
    let end = |key| table.get(key).map(text);
    match (end("value"), end("low"), end("high")) {
        (Some(value), Some(low), Some(high)) => format!("{value} ({low} to {high})"),
        (Some(value), Some(low), None) => format!("{value} ({low} or more)"),
        (Some(value), None, Some(high)) => format!("{value} (up to {high})"),
        (Some(value), None, None) => value,
        _ => {
            let parts = table.entries.iter().map(|entry| format!("{} {}", entry.key, text(&entry.node)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

impl Catalog {
    /// A value in dollars with the rate that was used, where it is written in another currency.
    pub fn dollars(&self, node: &Node) -> Option<String> {
        let converted = dollars(node, &self.rates())?;
        let text = node.at_path("value").unwrap_or(node).as_str()?;
        let used = self.currencies.iter().find(|currency| text.contains(currency.code.as_str()))?;
        Some(format!("{converted} at {}", used.rate()))
    }
}

/// The typical value in dollars, where it is written in another currency.
fn dollars(node: &Node, rates: &Rates) -> Option<String> {
    let value = node.at_path("value").unwrap_or(node);
    let converted = in_dollars(value.as_str()?, rates)?;
    let (number, unit) = converted.split_once(' ')?;
    Some(format!("{:.4} {unit}", number.parse::<f64>().ok()?))
}
