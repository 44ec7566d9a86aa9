//! Fields of the catalog that are set to other values.

use crate::catalog::{Catalog, Record};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::scenario::CatalogField;

/// Whether the catalog has the entry, and what holds the field.
pub fn has(records: &[Record<'_>], field: &CatalogField) -> bool {
    let entry = records.iter().find(|record| record.folder == field.folder && record.id == field.id);
    entry.is_some_and(|entry| {
        let mut parts = field.field.iter().take(field.field.len().saturating_sub(1));
        let end = parts.try_fold(entry.document, |node, part| match &node.value {
            Value::Table(table) => table.get(part),
            Value::Array(items) => items.iter().find(|item| is_named(item, part)),
            _ => None,
        });
        end.is_some_and(|node| node.as_table().is_some())
    })
}

/// The keys that name the one entry of a folder that a cluster has.
const NAMED: [(&str, &str); 5] = [
    ("fabrics", "cluster.fabric"),
    ("sites", "cluster.site"),
    ("prices", "cluster.prices"),
    ("storage", "cluster.storage"),
    ("network_reliability", "cluster.network_reliability"),
];

/// What is wrong with a field whose entry is none of those that are used, by folder: whatever its value, no figure moves.
/// None of folders of which more entries than one have a part.
pub fn unused(field: &CatalogField, key: &str, used: &[(&str, &str)]) -> Option<Diagnostic> {
    let (_, named_by) = NAMED.iter().find(|(folder, _)| *folder == field.folder)?;
    let mut known: Vec<&str> = used.iter().filter(|(folder, _)| *folder == field.folder).map(|(_, id)| *id).collect();
    known.dedup();
    if known.is_empty() || known.contains(&field.id.as_str()) {
        return None;
    }
    let message = format!("`{key}` moves nothing: `{named_by}` is {}", known.join(", "));
    let hint = format!("name a field of that entry, or let {named_by} be {}", field.id);
    Some(Diagnostic::new(Code::Inconsistent, message).hint(hint))
}

/// The catalog with its fields set; mistakes go to the sink, but for the sources that the new values do not have.
pub fn with_fields(catalog: &Catalog, fields: &[(&CatalogField, &Node)], sink: &Sink) -> Catalog {
    let mut changed = catalog.clone();
    add_changed(&mut changed, catalog, fields, sink);
    changed
}

/// The entries that have fields set, and nothing else of the catalog but its currencies; mistakes go to the sink.
pub(super) fn changed_entries(catalog: &Catalog, fields: &[(&CatalogField, &Node)], sink: &Sink) -> Catalog {
    let mut changed = Catalog { currencies: catalog.currencies.clone(), ..Catalog::default() };
    add_changed(&mut changed, catalog, fields, sink);
    changed
}

/// A catalog of nothing but a field's entry, of whose lists it has no more than the item that the field is of; and how many
/// items stand before that. None where the catalog has no such entry.
///
/// A price book has a hundred items, all of which would be read again for each value of one.
pub(super) fn narrowed(catalog: &Catalog, field: &CatalogField) -> Option<(Catalog, usize)> {
    let records = catalog.records();
    let record = records.iter().find(|record| record.folder == field.folder && record.id == field.id)?;
    let mut document = record.document.clone();
    let mut before = 0;
    if let Value::Table(table) = &mut document.value
        && let [list, item, ..] = &field.field[..]
        && matches!(table.get(list)?.value, Value::Array(_))
    {
        for entry in &mut table.entries {
            let Value::Array(items) = &mut entry.node.value else { continue };
            if entry.key == *list {
                before = items.iter().position(|node| is_named(node, item))?;
                *items = vec![items.swap_remove(before)];
            } else if record.lists.iter().any(|own| own.key == entry.key) {
                items.clear();
            }
        }
    }
    let mut narrow = Catalog { currencies: catalog.currencies.clone(), ..Catalog::default() };
    // What is wrong with an entry was told when the catalog was read.
    narrow.add(field.folder, &field.id, &document, &Sink::default());
    Some((narrow, before))
}

fn add_changed(to: &mut Catalog, catalog: &Catalog, fields: &[(&CatalogField, &Node)], sink: &Sink) {
    let mut changed: Vec<(&'static str, &str, Node)> = Vec::new();
    let records = catalog.records();
    for (field, value) in fields {
        let is_it = |entry: &(&str, &str, Node)| entry.0 == field.folder && entry.1 == field.id;
        let place = changed.iter().position(is_it).or_else(|| {
            let record = records.iter().find(|record| record.folder == field.folder && record.id == field.id)?;
            changed.push((field.folder, &field.id, record.document.clone()));
            Some(changed.len() - 1)
        });
        if let Some(place) = place {
            set(&mut changed[place].2, &field.field, value);
        }
    }
    let own = Sink::default();
    for (folder, id, document) in &changed {
        to.add(folder, id, document, &own);
    }
    own.into_diagnostics().into_iter().filter(|found| found.code != Code::Unsourced).for_each(|found| sink.push(found));
}

/// Sets a field; a value with its range becomes the value alone, which stands in no range of the old one's.
fn set(node: &mut Node, field: &[String], value: &Node) {
    let Some((part, rest)) = field.split_first() else {
        *node = value.clone();
        return;
    };
    let below = match &mut node.value {
        Value::Table(table) if rest.is_empty() => {
            // The only part of a name; it is not empty.
            let _ = table.set(part, value.clone());
            return;
        }
        Value::Table(table) => table.get_mut(part),
        Value::Array(items) => items.iter_mut().find(|item| is_named(item, part)),
        _ => None,
    };
    if let Some(below) = below {
        set(below, rest, value);
    }
}

/// Whether one of an entry's texts is that name: what tells entries of a list apart.
fn is_named(entry: &Node, name: &str) -> bool {
    entry.as_table().is_some_and(|table| table.entries.iter().any(|entry| entry.node.as_str() == Some(name)))
}
