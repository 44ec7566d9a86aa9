//! Files held against the JSON Schemas that the program writes.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use clusterplan::document::{Node, Value};

/// The mistakes of a value against a schema of the kinds that the program writes.
pub(crate) fn mistakes(schema: &serde_json::Value, node: &Node, path: &str, found: &mut Vec<String>) {
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = |choice: &serde_json::Value| {
            let mut inner = Vec::new();
            mistakes(choice, node, path, &mut inner);
            inner.is_empty()
        };
        if !choices.iter().any(fits) {
            found.push(format!("{path}: fits none"));
        }
        return;
    }
    if let Some(words) = schema["enum"].as_array() {
        if !words.iter().any(|word| word.as_str() == node.as_str()) {
            found.push(format!("{path}: no such word"));
        }
        return;
    }
    match (schema["type"].as_str(), &node.value) {
        (None, _) | (Some("boolean"), Value::Boolean(_)) | (Some("number"), Value::Integer(_) | Value::Float(_)) => {}
        (Some("string"), Value::Date(day)) if schema["format"] == "date" && day.len() == 10 => {}
        (Some("string"), Value::String(_) | Value::Rows(_)) if schema["format"].is_null() => {}
        (Some("integer"), Value::Integer(number)) => {
            if *number < schema["minimum"].as_i64().unwrap() || *number > schema["maximum"].as_i64().unwrap() {
                found.push(format!("{path}: out of range"));
            }
        }
        (Some("array"), Value::Array(items)) => {
            for item in items {
                mistakes(&schema["items"], item, path, found);
            }
        }
        (Some("object"), Value::Table(table)) => {
            for key in schema["required"].as_array().into_iter().flatten() {
                if table.get(key.as_str().unwrap()).is_none() {
                    found.push(format!("{path}: no {key}"));
                }
            }
            for entry in &table.entries {
                let below = format!("{path}.{}", entry.key);
                match (&schema["properties"][&entry.key], &schema["additionalProperties"]) {
                    (serde_json::Value::Null, serde_json::Value::Object(_)) => {
                        mistakes(&schema["additionalProperties"], &entry.node, &below, found);
                    }
                    (serde_json::Value::Null, _) => found.push(format!("{below}: unknown")),
                    (property, _) => mistakes(property, &entry.node, &below, found),
                }
            }
        }
        (Some(kind), _) => found.push(format!("{path}: not a {kind}")),
    }
}
