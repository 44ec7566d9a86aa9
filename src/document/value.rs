//! The spanned tree.

use std::fmt;
use std::sync::Arc;

use super::Rows;
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};

/// A value and its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its place.
    pub at: Span,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Float(f64),
    /// Yes or no.
    Boolean(bool),
    /// A date, as written.
    Date(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
    /// Numbers of a file that a text named; they stand where the text stood.
    Rows(Arc<Rows>),
}

impl Default for Value {
    fn default() -> Self {
        Self::Table(Table::default())
    }
}

/// A table in the order of its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Keys with their places, and values.
    pub entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The key's place.
    pub at: Span,
    /// The value.
    pub node: Node,
}

/// A calendar date as TOML writes it, `2026-11-29`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(pub String);

impl fmt::Display for Node {
    /// As TOML writes it, with texts bare.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::String(text) | Value::Date(text) => f.write_str(text),
            Value::Integer(number) => number.fmt(f),
            Value::Float(number) => number.fmt(f),
            Value::Boolean(value) => value.fmt(f),
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Table(table) => {
                f.write_str("{")?;
                for (index, entry) in table.entries.iter().enumerate() {
                    write!(f, "{}{} = {}", if index > 0 { ", " } else { " " }, entry.key, entry.node)?;
                }
                f.write_str(" }")
            }
            Value::Rows(rows) => f.write_str(&rows.name),
        }
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }
}

impl Node {
    /// What kind of value this is, with an article.
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Value::String(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "a yes or no",
            Value::Date(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
            Value::Rows(_) => "a file of numbers",
        }
    }

    /// The table, if it is one.
    pub const fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub const fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The value at a dotted path below this node.
    pub fn at_path(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.as_table()?.get(key))
    }

    /// Reports that another kind of value was needed, unless it is told already what is wrong with this one.
    pub fn wrong_type(&self, path: &str, needed: &str, sink: &Sink) {
        if sink.tells_of(&self.at) {
            return;
        }
        let diagnostic = Diagnostic::new(Code::WrongType, format!("`{path}` must be {needed}"))
            .at(&self.at, format!("this is {}", self.kind()));
        sink.push(diagnostic.hint(self.rewritten(needed)));
    }

    /// How a value of the kind needed is written.
    fn rewritten(&self, needed: &str) -> String {
        let number = |text: &str| text.trim().parse::<f64>().is_ok_and(f64::is_finite);
        match needed {
            "a number" | "a whole number" => match self.as_str() {
                Some(text) if number(text) => format!("write it without quotes: {}", text.trim()),
                None if needed == "a whole number" && matches!(self.value, Value::Float(_)) => {
                    "write a whole number without a point; a range and a sample of [sweep] take whole = true".to_owned()
                }
                _ => format!("write {needed} without quotes and without a unit"),
            },
            "a text" => "put it in quotes".to_owned(),
            "true or false" => "write it without quotes".to_owned(),
            "\"auto\" or a table" => "write \"auto\", or its keys as { key = value }".to_owned(),
            _ if needed.starts_with("a list of tables") => "put them in brackets: [{ key = value }]".to_owned(),
            _ if needed.starts_with("a list") => "put it in brackets: [a, b]".to_owned(),
            _ if needed.starts_with("a table") => {
                "write its keys under a header of its own, or as { key = value }".to_owned()
            }
            _ if needed.starts_with("one of") => "put one of these words in quotes".to_owned(),
            _ if needed.starts_with("a date") => "write the day alone, without a time".to_owned(),
            _ if needed.starts_with("a whole number") => "write it without quotes and without a unit".to_owned(),
            _ if needed.contains("such as \"") && self.as_str().is_some() => "write it as that is written".to_owned(),
            _ if needed.contains("such as \"") && !needed.contains('{') => "write one value in quotes".to_owned(),
            _ => "write one of these forms".to_owned(),
        }
    }

    /// The choice whose word the text is, or a report that names the closest.
    pub fn one_of<T: Copy>(&self, path: &str, all: &[T], word: impl Fn(T) -> &'static str, sink: &Sink) -> Option<T> {
        let words = || all.iter().map(|choice| word(*choice));
        let list = || words().map(|known| format!("\"{known}\"")).collect::<Vec<_>>().join(", ");
        let Some(text) = self.as_str() else {
            self.wrong_type(path, &format!("one of {}", list()), sink);
            return None;
        };
        let found = all.iter().copied().find(|choice| word(*choice) == text);
        if found.is_none() {
            let hint = did_you_mean(text, words()).map_or_else(
                || format!("it is one of {}", list()),
                |closest| format!("did you mean \"{closest}\"? It is one of {}", list()),
            );
            sink.push(
                Diagnostic::new(Code::UnknownWord, format!("`{path}` has no choice \"{text}\""))
                    .at(&self.at, "not known here")
                    .hint(hint),
            );
        }
        found
    }
}
