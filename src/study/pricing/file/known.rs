//! Figures of the catalog that are otherwise with an offer: a tariff, the PUE of a hall, the share of power of busy nodes.

use crate::catalog::Catalog;
use crate::catalog::pricebook::Evidence;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Entry, Node, Reader, Table, Value};
use crate::scenario::CatalogField;
use crate::sweep::{catalog_has, catalog_with};

/// `[[offer.figure]]`
#[derive(Clone, Debug, Default)]
pub struct FigureFile {
    /// The field of the catalog; none where its key names none.
    pub field: Option<CatalogField>,
    /// Its key and its place.
    pub key: (String, crate::diagnostics::Span),
    /// Its value, as the catalog's file would have it.
    pub value: Node,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl FigureFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let key: String = r.about("field of the catalog: catalog/<folder>/<id>/<field>").get("key");
        let at = r.place("key");
        let field = CatalogField::parse(&key);
        match &field {
            None if !key.is_empty() => {
                let message = format!("`{key}` is no figure of the catalog");
                let hint = "write catalog/<folder>/<id>/<field>, such as \"catalog/sites/us-colo/electricity\"";
                r.report("key", Code::UnknownKey, message, hint);
            }
            Some(field) if ["models", "data"].contains(&field.folder) => {
                let message = format!("`{key}` is of the job, which is the same with every offer");
                let hint = "give a catalog of your own with --catalog, so that all offers have it";
                r.report("key", Code::Inconsistent, message, hint);
            }
            Some(field) if ["prices", "providers"].contains(&field.folder) => {
                let message = format!("`{key}` is of a list whose entries have their own source");
                r.report("key", Code::Inconsistent, message, "write [[offer.price_of]], [[offer.line]] or `price`");
            }
            _ => {}
        }
        let value = r.about("its value, as the file of the catalog would have it").node("value").cloned();
        if value.is_none() {
            r.report("value", Code::MissingKey, "the figure has no value", "such as value = \"$0.05/kWh\"");
        }
        Self { field, key: (key, at), value: value.unwrap_or_default(), evidence: Evidence::read(r) }
    }
}

/// The catalog with an offer's figures, each with its own source; mistakes go to the sink.
pub(in super::super) fn with_figures(catalog: &Catalog, figures: &[FigureFile], sink: &Sink) -> Catalog {
    let mut changed = catalog.clone();
    for figure in figures {
        let Some(field) = &figure.field else { continue };
        if !catalog_has(&changed.records(), field) {
            let message = format!("the catalog has no `{}`", figure.key.0);
            let hint = "`clusterplan catalog list` shows entries";
            sink.push(Diagnostic::new(Code::NotInCatalog, message).at(&figure.key.1, "this figure").hint(hint));
            continue;
        }
        let sources = sources(&changed, field, &figure.evidence);
        let of = CatalogField { field: vec!["source".to_owned()], ..field.clone() };
        let own = Sink::default();
        changed = catalog_with(&changed, &[(field, &figure.value), (&of, &sources)], &own);
        for mistake in own.into_diagnostics() {
            if mistake.code == Code::UnknownKey {
                // It stands in the key, and not in the value that was set for it.
                let message = format!("`{}` has no field `{}`", field.id, field.field.join("."));
                let hint = format!("`clusterplan catalog show {}` lists its fields", field.id);
                sink.push(Diagnostic::new(Code::UnknownKey, message).at(&figure.key.1, "this figure").hint(hint));
            } else {
                sink.push(mistake);
            }
        }
    }
    changed
}

/// The sources of an entry, that of one of its fields at the end, where it goes before those that are as near.
fn sources(catalog: &Catalog, field: &CatalogField, evidence: &Evidence) -> Node {
    let records = catalog.records();
    let entry = records.iter().find(|record| record.folder == field.folder && record.id == field.id);
    let known = entry.and_then(|entry| entry.document.as_table()?.get("source")).map(|node| &node.value);
    let mut all = match known {
        Some(Value::Array(known)) => known.clone(),
        _ => Vec::new(),
    };
    let text = |text: &str| Value::String(text.to_owned());
    let node = |value: Value| Node { value, ..Node::default() };
    let name = field.field.join(".");
    let mut entries = vec![
        ("fields", Value::Array(vec![node(text(&name))])),
        ("basis", text(evidence.basis.word())),
        ("title", text(&evidence.source)),
        ("accessed", Value::Date(evidence.date.clone())),
    ];
    entries.extend(evidence.url.as_ref().map(|url| ("url", text(url))));
    entries.extend(evidence.note.as_ref().map(|note| ("note", text(note))));
    let entry = |(key, value): (&str, Value)| Entry { key: key.to_owned(), at: <_>::default(), node: node(value) };
    all.push(node(Value::Table(Table { entries: entries.into_iter().map(entry).collect() })));
    node(Value::Array(all))
}
