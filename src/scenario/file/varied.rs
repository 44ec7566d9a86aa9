//! Keys that axes and distributions vary: of the scenario, and fields of the catalog.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::document::{Node, Reader};

/// What the key of a field of the catalog begins with.
const CATALOG: &str = "catalog/";

/// A field of the catalog that an axis or a distribution sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogField {
    /// The folder of the entry's file.
    pub folder: &'static str,
    /// The entry.
    pub id: String,
    /// The field, by parts of its name; entries of a list go by what tells them apart.
    pub field: Vec<String>,
}

impl CatalogField {
    /// Reads `catalog/<folder>/<id>/<field>`; none where it is something else.
    pub fn parse(key: &str) -> Option<Self> {
        let rest = key.strip_prefix(CATALOG)?;
        // A folder's name may hold a stroke itself.
        let within = |folder: &str| rest.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).is_some();
        let folder = Catalog::FOLDERS.iter().copied().filter(|folder| within(folder)).max_by_key(|name| name.len())?;
        let (id, field) = rest[folder.len() + 1..].split_once('/')?;
        let field: Vec<String> = field.split('/').map(str::to_owned).collect();
        let whole = !id.is_empty() && field.iter().all(|part| !part.is_empty());
        whole.then(|| Self { folder, id: id.to_owned(), field })
    }
}

/// Reports a key that would be set by two at once, of which only the last would count.
pub(super) fn varied_twice(key: &str, at: &Span, first: &Span, sink: &Sink) {
    let diagnostic = Diagnostic::new(Code::Duplicate, format!("`{key}` is varied twice"));
    let hint = "only the last would count: leave one out, or put both into one";
    sink.push(diagnostic.at(at, "here again").at(first, "here first").hint(hint));
}

/// Reports values that a list has twice.
pub(super) fn named_once(values: &[Node], key: &str, sink: &Sink) {
    let mut seen: HashMap<String, &Span> = HashMap::new();
    for value in values {
        if let Some(first) = seen.insert(value.to_string(), &value.at) {
            let diagnostic = Diagnostic::new(Code::Duplicate, format!("`{key}` takes {value} twice"));
            let hint = "name each value once: a row would stand there twice";
            sink.push(diagnostic.at(&value.at, "here again").at(first, "here first").hint(hint));
        }
    }
}

/// Reports a key that neither a scenario nor the catalog has.
pub(super) fn check_key(key: &str, at: &Span, r: &Reader<'_>) {
    let (known, sink) = (r.known(), r.sink());
    let varies = |key: &str| !["compare", "sweep", "uncertainty", "title"].iter().any(|table| key.starts_with(table));
    if CatalogField::parse(key).is_some() || (known.iter().any(|known| known == key) && varies(key)) {
        return;
    }
    let hint = if key.starts_with(CATALOG) {
        "write catalog/<folder>/<id>/<field>, such as catalog/fabrics/roce-400g/spine_efficiency".to_owned()
    } else {
        did_you_mean(key, known.iter().map(String::as_str).filter(|key| varies(key))).map_or_else(
            || "name a key by its dotted path, such as \"cluster.fabric\"".to_owned(),
            |key| format!("did you mean \"{key}\"?"),
        )
    };
    sink.push(
        Diagnostic::new(Code::UnknownKey, format!("`{key}` cannot be varied")).at(at, "no scenario has it").hint(hint),
    );
}
