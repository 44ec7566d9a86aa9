//! A tree as TOML text that reads back as the same tree.

use std::fmt::Write;

use super::value::{Node, Table, Value};

impl Node {
    /// The text of a document: scalars first, then tables, then lists of tables, as TOML wants them.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if let Some(table) = self.as_table() {
            write_table(&mut text, table, "");
        }
        text
    }

    /// A value as it is entered in a cell or after a key: a text bare, and within lists and tables as TOML has it.
    pub fn entered(&self) -> String {
        match &self.value {
            Value::Array(_) | Value::Table(_) => inline(self),
            _ => self.to_string(),
        }
    }
}

/// Whether a list holds tables, which are written one after another.
fn is_list_of_tables(node: &Node) -> bool {
    matches!(&node.value, Value::Array(items) if !items.is_empty() && items.iter().all(|item| item.as_table().is_some()))
}

fn write_table(text: &mut String, table: &Table, path: &str) {
    let below = |key: &str| if path.is_empty() { quoted_key(key) } else { format!("{path}.{}", quoted_key(key)) };
    for entry in table.entries.iter().filter(|entry| entry.node.as_table().is_none() && !is_list_of_tables(&entry.node))
    {
        // A text buffer takes everything.
        let _ = writeln!(text, "{} = {}", quoted_key(&entry.key), inline(&entry.node));
    }
    for entry in &table.entries {
        if let Some(inner) = entry.node.as_table() {
            let _ = writeln!(text, "\n[{}]", below(&entry.key));
            write_table(text, inner, &below(&entry.key));
        }
    }
    for entry in table.entries.iter().filter(|entry| is_list_of_tables(&entry.node)) {
        let Value::Array(items) = &entry.node.value else { continue };
        for inner in items.iter().filter_map(Node::as_table) {
            let _ = writeln!(text, "\n[[{}]]", below(&entry.key));
            for field in &inner.entries {
                let _ = writeln!(text, "{} = {}", quoted_key(&field.key), inline(&field.node));
            }
        }
    }
}

/// A key as it is, or in quotes where it has other signs than letters, digits, dashes and underscores.
fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    escaped.push('"');
    for sign in text.chars() {
        match sign {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(escaped, "\\u{:04X}", u32::from(control));
            }
            other => escaped.push(other),
        }
    }
    escaped.push('"');
    escaped
}

/// A value on one line.
fn inline(node: &Node) -> String {
    match &node.value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        // Always with a point, so that it stays a number with a point.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Date(date) => date.clone(),
        Value::Rows(rows) => quoted(&rows.name),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let fields =
                table.entries.iter().map(|entry| format!("{} = {}", quoted_key(&entry.key), inline(&entry.node)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}
