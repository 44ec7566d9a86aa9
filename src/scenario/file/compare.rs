//! `[compare]`: what is varied, and against what.

use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean};
use crate::document::{Entry, Node, Reader, Schema, Value};

/// `[compare]`
#[derive(Clone, Debug, Default)]
pub struct CompareFile {
    /// Keys and the values that each takes.
    pub vary: Vec<(String, Vec<Node>)>,
    /// The value that the others are held against.
    pub baseline: Option<Reference>,
}

impl CompareFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let Some(node) = r
            .about("keys of the scenario, each with the list of values that it takes in turn")
            .node_of("vary", || Schema::Keyed(Box::new(Schema::list(Schema::Any))))
        else {
            return Self {
                vary: Vec::new(),
                baseline: r
                    .about("the variant that the others are held against")
                    .usually("the first")
                    .optional("baseline"),
            };
        };
        let mut vary = Vec::new();
        match &node.value {
            Value::Table(table) => {
                for entry in &table.entries {
                    check_varied(entry, r.known(), r.sink());
                    match &entry.node.value {
                        Value::Array(values) if !values.is_empty() => vary.push((entry.key.clone(), values.clone())),
                        _ => {
                            let path = format!("compare.vary.{}", entry.key);
                            entry.node.wrong_type(&path, "a list of values", r.sink());
                        }
                    }
                }
            }
            _ => node.wrong_type("compare.vary", "a table of keys, each with its values", r.sink()),
        }
        Self {
            vary,
            baseline: r.about("the variant that the others are held against").usually("the first").optional("baseline"),
        }
    }
}

/// Reports a varied key that a scenario does not have.
fn check_varied(entry: &Entry, known: &[String], sink: &Sink) {
    let varies = |key: &str| key != "compare" && !key.starts_with("compare.");
    if known.contains(&entry.key) && varies(&entry.key) {
        return;
    }
    let hint = did_you_mean(&entry.key, known.iter().map(String::as_str).filter(|key| varies(key))).map_or_else(
        || "name a key by its dotted path, such as \"cluster.fabric\"".to_owned(),
        |key| format!("did you mean \"{key}\"?"),
    );
    let message = format!("unknown key `{}` in `compare.vary`", entry.key);
    sink.push(Diagnostic::new(Code::UnknownKey, message).at(&entry.at, "no scenario has it").hint(hint));
}
