//! What the catalog has: lists of entries, and every field of one with its source.

use serde_json::{Map, Value as Json};

use super::key_figures::{self, Documents, ranged};
use super::page::{Block, Grid, Page, Section};
use crate::catalog::{Catalog, age_in_days, is_plain};
use crate::diagnostics::Sink;
use crate::document::{Entry, Node, Reader, Table, Value};
use crate::provenance::{Basis, Source};
use crate::units::{Quantity, UsdPerHour};

/// A field and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Field {
    name: String,
    value: String,
    basis: String,
    date: String,
    age: String,
    source: String,
    url: String,
    note: String,
}

/// Entries with their names: of one folder with the figures that tell its entries apart, or of all with their kind.
pub fn list_grid(documents: &Documents, shown: impl Fn(&str, &str) -> bool, folder: Option<&str>) -> Grid {
    let mut heads = if folder.is_some() { vec!["id", "name"] } else { vec!["kind", "id", "name"] };
    heads.extend(folder.map(key_figures::heads).unwrap_or_default());
    heads.push("basis");
    let texts = heads.len();
    let mut grid = Grid::new(&heads, texts);
    for ((kind, id), document) in documents.iter().filter(|((kind, id), _)| shown(kind, id)) {
        if folder.is_some_and(|folder| folder != kind) {
            continue;
        }
        let mut row = vec![id.clone(), text_at(document, "name")];
        if folder.is_none() {
            row.insert(0, kind.clone());
        } else {
            row.extend(key_figures::figures(kind, id, document, documents));
        }
        row.push(bases(document));
        grid.rows.push(row);
    }
    grid
}

/// The same for programs: figures bare, under keys that end in their units.
pub fn list_objects(
    documents: &Documents,
    shown: impl Fn(&str, &str) -> bool,
    folder: Option<&str>,
) -> Vec<Map<String, Json>> {
    let wanted = |kind: &str, id: &str| shown(kind, id) && folder.is_none_or(|folder| folder == kind);
    let one = |((kind, id), document): (&(String, String), &Node)| {
        let mut row = Map::new();
        if folder.is_none() {
            row.insert("kind".to_owned(), kind.as_str().into());
        }
        row.insert("id".to_owned(), id.as_str().into());
        row.insert("name".to_owned(), text_at(document, "name").into());
        if folder.is_some() {
            row.extend(key_figures::bare_figures(kind, id, document, documents));
        }
        row.insert("basis".to_owned(), bases(document).into());
        row
    };
    documents.iter().filter(|((kind, id), _)| wanted(kind, id)).map(one).collect()
}

/// How many fields stand on each basis, the best first: `9 secondary, 2 assumed`.
fn bases(document: &Node) -> String {
    let fields = fields(document, &Catalog::default());
    let count = |basis: &Basis| fields.iter().filter(|field| field.basis == basis.word()).count();
    let counted = Basis::ALL.iter().map(|basis| (count(basis), basis)).filter(|(count, _)| *count > 0);
    counted.map(|(count, basis)| format!("{count} {basis}")).collect::<Vec<_>>().join(", ")
}

/// Every field of the entries of that id, with the prices that books have for it, a row each; ages are those of a day,
/// `2026-11-29`, and amounts of other currencies are given in dollars as well.
pub fn entry_grid(documents: &Documents, id: &str, catalog: &Catalog, on: &str) -> Grid {
    let mut grid = Grid::new(&["kind", "field", "value", "basis", "date", "age_days", "source", "url", "note"], 9);
    for (kind, fields) in entries(documents, id, catalog, on) {
        for field in fields {
            let Field { name, value, basis, date, age, source, url, note } = field;
            grid.rows.push(vec![kind.clone(), name, value, basis, date, age, source, url, note]);
        }
    }
    for gap in gaps(documents, id) {
        let mut row = vec!["gap".to_owned(), String::new(), gap.to_string()];
        row.resize(9, String::new());
        grid.rows.push(row);
    }
    grid
}

/// The same for people: the fields by the source that stands behind them.
pub fn entry_page(documents: &Documents, id: &str, catalog: &Catalog, on: &str) -> Page {
    let mut page = Page { title: id.to_owned(), sections: Vec::new() };
    for (kind, fields) in entries(documents, id, catalog, on) {
        let name = documents.get(&(kind.clone(), id.to_owned())).map(|document| text_at(document, "name"));
        let mut open = fields.into_iter().peekable();
        let mut heading = name.map_or_else(|| kind.clone(), |name| format!("{name} ({kind})"));
        while let Some(first) = open.next() {
            let mut grid = Grid::new(&["field", "value"], 2);
            grid.rows.push(vec![first.name.clone(), first.value.clone()]);
            while let Some(next) = open.next_if(|next| same_source(next, &first)) {
                grid.rows.push(vec![next.name, next.value]);
            }
            let blocks = vec![Block::Grid(grid), Block::Text(evidence(&first, on))];
            page.sections.push(Section { heading: std::mem::take(&mut heading), blocks });
        }
    }
    let gaps: Vec<String> = gaps(documents, id).iter().map(ToString::to_string).collect();
    if !gaps.is_empty() {
        let blocks = vec![Block::Text(gaps.join("\n"))];
        page.sections.push(Section { heading: "Not found".to_owned(), blocks });
    }
    page
}

/// What could not be found of the entries of an id.
fn gaps<'a>(documents: &'a Documents, id: &str) -> Vec<&'a Node> {
    let of_id = documents.iter().filter(|((_, own), _)| own == id);
    let lists = of_id.filter_map(|(_, document)| document.at_path("gaps"));
    lists.flat_map(|list| if let Value::Array(items) = &list.value { items.as_slice() } else { &[] }).collect()
}

fn same_source(a: &Field, b: &Field) -> bool {
    (&a.basis, &a.date, &a.source, &a.url, &a.note) == (&b.basis, &b.date, &b.source, &b.url, &b.note)
}

/// What stands behind a field, in a sentence.
fn evidence(field: &Field, on: &str) -> String {
    let mut text = field.basis.clone();
    let age = match field.age.as_str() {
        "" | "0" => String::new(),
        "1" => format!("1 day before {on}"),
        days => format!("{days} days before {on}"),
    };
    for (before, part) in
        [(", ", &field.date), (", ", &age), (": ", &field.source), (". ", &field.note), (" ", &field.url)]
    {
        if !part.is_empty() {
            text.push_str(before);
            text.push_str(part);
        }
    }
    text
}

/// Fields by kind, those of one source together.
fn entries(documents: &Documents, id: &str, catalog: &Catalog, on: &str) -> Vec<(String, Vec<Field>)> {
    let fields = |document: &Node| {
        let mut fields = fields(document, catalog);
        for field in &mut fields {
            field.age = age_in_days(&field.date, on).map(|days| days.to_string()).unwrap_or_default();
        }
        fields
    };
    let mut found = Vec::new();
    for ((kind, own), document) in documents {
        if own == id {
            found.push((kind.clone(), fields(document)));
        }
    }
    let prices: Vec<Field> = documents
        .iter()
        .filter(|((kind, _), _)| kind == "prices")
        .flat_map(|((_, book), document)| {
            let of_part = fields(document).into_iter().filter(|field| field.name == format!("price.{id}"));
            of_part.map(move |field| Field { name: format!("price in {book}"), ..field })
        })
        .collect();
    if !prices.is_empty() {
        found.push(("prices".to_owned(), prices));
    }
    found
}

/// Every field of a file, those of one source together, in the order of the sources.
fn fields(document: &Node, catalog: &Catalog) -> Vec<Field> {
    let sink = Sink::default();
    let sources =
        Reader::new(document, "", &sink).map(|mut reader| reader.tables("source", Source::read)).unwrap_or_default();
    let mut found = Vec::new();
    let Some(table) = document.as_table() else { return found };
    for entry in table.entries.iter().filter(|entry| !is_plain(&entry.key)) {
        collect(&entry.node, &entry.key, &entry.key, &sources, &mut found);
    }
    for field in &mut found {
        if let Some(dollars) = document.at_path(&field.name).and_then(|node| catalog.dollars(node)) {
            field.value = format!("{} = {dollars}", field.value);
        }
    }
    let place = |field: &Field| sources.iter().position(|source| source.title == field.source);
    found.sort_by_key(place);
    found
}

/// Adds the fields below a node. `path` is the field's own name, by which sources know it; `label` tells the items of a
/// list apart.
fn collect(node: &Node, path: &str, label: &str, sources: &[Source], found: &mut Vec<Field>) {
    match &node.value {
        Value::Table(table) if table.get("value").is_none() => {
            for entry in &table.entries {
                let below = |parent: &str| format!("{parent}.{}", entry.key);
                collect(&entry.node, &below(path), &below(label), sources, found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (index, item) in items.iter().enumerate() {
                let Some(table) = item.as_table() else { continue };
                let key = ["part", "instance", "id", "name", "from"].into_iter().find_map(|key| table.get(key));
                let mut parts = vec![key.map_or_else(|| index.to_string(), Node::to_string)];
                parts.extend(["term", "region"].into_iter().filter_map(|key| table.get(key)).map(Node::to_string));
                let label = format!("{label}.{}", parts.join(", "));
                if table.get("source").is_some() {
                    found.push(self_sourced(table, label));
                } else {
                    collect(item, path, &label, sources, found);
                }
            }
        }
        _ => {
            let source = Source::closest(sources, path);
            let of = |text: fn(&Source) -> Option<&String>| source.and_then(text).cloned().unwrap_or_default();
            found.push(Field {
                name: label.to_owned(),
                value: ranged(node),
                basis: source.map(|source| source.basis.to_string()).unwrap_or_default(),
                date: of(|source| Some(&source.accessed)),
                age: String::new(),
                source: of(|source| Some(&source.title)),
                url: of(|source| source.url.as_ref()),
                note: of(|source| source.note.as_ref()),
            });
        }
    }
}

/// An item that carries its own source: a price, a cost line.
fn self_sourced(table: &Table, label: String) -> Field {
    let text = |key: &str| table.get(key).map(Node::to_string).unwrap_or_default();
    let evidence = ["part", "instance", "name", "term", "region", "basis", "date", "source", "url", "note"];
    let own = table.entries.iter().filter(|entry| !evidence.contains(&entry.key.as_str()));
    let value: Vec<String> =
        own.map(|entry| format!("{} = {}{}", entry.key, ranged(&entry.node), other_way(table, entry))).collect();
    Field {
        name: label,
        value: value.join(", "),
        basis: text("basis"),
        date: text("date"),
        age: String::new(),
        source: text("source"),
        url: text("url"),
        note: text("note"),
    }
}

/// A rent's other way of being said: of an instance what one accelerator costs, of one what the instance does.
fn other_way(table: &Table, entry: &Entry) -> String {
    let rent = UsdPerHour::parse(&entry.node.to_string()).ok().and_then(|rent| rent.in_unit("$/h"));
    let count = table.get("accelerators").and_then(|count| count.to_string().parse::<f64>().ok());
    match (entry.key.as_str(), rent, count) {
        ("price_per_instance_hour", Some(rent), Some(count)) => format!(" (${:.3}/h an accelerator)", rent / count),
        ("price_per_accelerator_hour", Some(rent), Some(count)) if count > 1.0 => {
            format!(" (${:.3}/h the instance)", rent * count)
        }
        _ => String::new(),
    }
}

fn text_at(document: &Node, key: &str) -> String {
    document.at_path(key).and_then(Node::as_str).unwrap_or_default().to_owned()
}
