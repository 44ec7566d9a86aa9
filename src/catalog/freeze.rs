//! Which entries an answer rests on, so that copies of them give the same answer again.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Node, Value};

/// The folders whose entries are looked up by what they say and not by name: all of them are kept.
const BY_CONTENT: [&str; 4] = ["currencies", "efficiency", "power", "reliability"];

/// The entries that a text names, what these name in turn, and all that are found by what they say.
pub fn named_by(text: &Node, documents: &BTreeMap<(String, String), Node>) -> BTreeSet<(String, String)> {
    let mut by_id: BTreeMap<&str, Vec<&(String, String)>> = BTreeMap::new();
    for key in documents.keys() {
        by_id.entry(key.1.as_str()).or_default().push(key);
    }
    let by_content = |folder: &str| BY_CONTENT.iter().any(|kept| folder.split('/').next() == Some(kept));
    let mut found: BTreeSet<(String, String)> = documents.keys().filter(|key| by_content(&key.0)).cloned().collect();
    let mut open: Vec<&Node> = found.iter().filter_map(|key| documents.get(key)).collect();
    open.push(text);
    while let Some(node) = open.pop() {
        let mut texts = Vec::new();
        collect(node, &mut texts);
        for key in texts.into_iter().filter_map(|text| by_id.get(text)).flatten() {
            if found.insert((*key).clone()) {
                open.extend(documents.get(*key));
            }
        }
    }
    found
}

/// Every text below a node but those of its sources.
fn collect<'a>(node: &'a Node, texts: &mut Vec<&'a str>) {
    match &node.value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Table(table) => {
            let says = table.entries.iter().filter(|entry| entry.key != "source");
            says.for_each(|entry| collect(&entry.node, texts));
        }
        _ => {}
    }
}
