//! From tables to types, collecting every mistake on the way.

use std::collections::BTreeMap;

use super::schema::{Record, Schema};
use super::value::{Date, Node, Table, Value};
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::units::{Factor, Fraction, Quantity, Ranged};

/// A type that a value can be read as.
///
/// On a mistake it is reported to the sink and a placeholder returned: whoever reads a file uses nothing of it unless
/// the sink stayed empty.
pub trait FromNode: Default {
    /// Reads the value at a dotted path.
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self;

    /// The kind of value that it is read from.
    fn schema() -> Schema {
        Schema::Any
    }
}

/// Reads one table. [`Reader::finish`] (or dropping it) reports the keys that nobody asked for.
pub struct Reader<'a> {
    table: &'a Table,
    at: &'a Span,
    path: String,
    asked: Vec<&'static str>,
    known: &'static [&'static str],
    sink: &'a Sink,
    record: Option<&'a Record>,
}

impl<'a> Reader<'a> {
    /// A reader of the table that `node` is; reports when it is none.
    pub fn new(node: &'a Node, path: impl Into<String>, sink: &'a Sink) -> Option<Self> {
        let path = path.into();
        let Some(table) = node.as_table() else {
            node.wrong_type(&path, "a table", sink);
            return None;
        };
        Some(Self { table, at: &node.at, path, asked: Vec::new(), known: &[], sink, record: None })
    }

    /// The shape of the table that `read` reads.
    pub fn describe<T>(read: impl FnOnce(&mut Reader<'_>) -> T) -> Schema {
        let (nothing, sink, record) = (Node::default(), Sink::default(), Record::default());
        let mut reader = Reader::new(&nothing, "", &sink);
        if let Some(reader) = &mut reader {
            reader.record = Some(&record);
            read(reader);
        }
        drop(reader);
        record.into_schema()
    }

    /// Names all keys of the document by dotted path, so that one at the wrong level is told where it belongs.
    #[must_use]
    pub fn knowing(mut self, keys: &'static [&'static str]) -> Self {
        self.known = keys;
        self
    }

    /// The place of the whole table.
    pub fn at(&self) -> &Span {
        self.at
    }

    /// Where mistakes go.
    pub fn sink(&self) -> &'a Sink {
        self.sink
    }

    /// The dotted path of a key of this table.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key, unread.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.note(key, Schema::default, false);
        self.asked.push(key);
        self.table.get(key)
    }

    /// The place of a key's value, or of the table where the key is missing.
    pub fn place(&self, key: &str) -> Span {
        self.table.get(key).map_or_else(|| self.at.clone(), |node| node.at.clone())
    }

    /// A value that must be there.
    pub fn get<T: FromNode>(&mut self, key: &'static str) -> T {
        self.note(key, T::schema, true);
        if let Some(value) = self.optional(key) {
            return value;
        }
        let path = self.path_of(key);
        let mut diagnostic =
            Diagnostic::new(Code::MissingKey, format!("`{path}` is missing")).at(self.at, "in this table");
        let known: Vec<&str> = self.table.entries.iter().map(|entry| entry.key.as_str()).collect();
        if let Some(typed) = did_you_mean(key, known).filter(|typed| !self.asked.contains(typed)) {
            diagnostic = diagnostic.hint(format!("`{typed}` is here: did you mean `{key}`?"));
        }
        self.sink.push(diagnostic);
        T::default()
    }

    /// A value that may be there.
    pub fn optional<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        self.note(key, T::schema, false);
        let path = self.path_of(key);
        self.node(key).map(|node| T::from_node(node, &path, self.sink))
    }

    /// A value with a documented default.
    pub fn or<T: FromNode>(&mut self, key: &'static str, default: T) -> T {
        self.optional(key).unwrap_or(default)
    }

    /// A value of one type, or of another where `second` says so.
    pub fn either<A: FromNode, B: FromNode, T>(
        &mut self,
        key: &'static str,
        second: bool,
        one: fn(A) -> T,
        other: fn(B) -> T,
    ) -> T {
        self.note(key, || Schema::Either(Box::new(A::schema()), Box::new(B::schema())), true);
        if second { other(self.get(key)) } else { one(self.get(key)) }
    }

    /// Writes down what a key takes, where that is asked for.
    fn note(&self, key: &'static str, schema: impl FnOnce() -> Schema, required: bool) {
        if let Some(record) = self.record {
            record.add(key, schema(), required);
        }
    }

    /// A table that may be there, read by `read`.
    pub fn optional_table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader<'_>) -> T) -> Option<T> {
        if self.record.is_some() {
            self.note(key, || Reader::describe(read), false);
            return None;
        }
        let path = self.path_of(key);
        let mut reader = Reader::new(self.node(key)?, path, self.sink)?.knowing(self.known);
        Some(read(&mut reader))
    }

    /// A table that must be there, read by `read`.
    pub fn table<T: Default>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader<'_>) -> T) -> T {
        if self.record.is_some() {
            self.note(key, || Reader::describe(read), true);
            return T::default();
        }
        if self.table.get(key).is_none() {
            self.get::<Missing>(key);
            return T::default();
        }
        self.optional_table(key, read).unwrap_or_default()
    }

    /// The tables of a list, each read by `read`; an absent list is empty.
    pub fn tables<T>(&mut self, key: &'static str, mut read: impl FnMut(&mut Reader<'_>) -> T) -> Vec<T> {
        if self.record.is_some() {
            self.note(key, || Schema::List(Box::new(Reader::describe(read))), false);
            return Vec::new();
        }
        let path = self.path_of(key);
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Array(items) = &node.value else {
            node.wrong_type(&path, "a list of tables", self.sink);
            return Vec::new();
        };
        let known = self.known;
        let reader = |item| Reader::new(item, path.clone(), self.sink).map(|reader| reader.knowing(known));
        items.iter().filter_map(|item| reader(item).map(|mut reader| read(&mut reader))).collect()
    }

    /// Adds a mistake at a key of this table.
    pub fn report(&self, key: &str, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.sink.push(Diagnostic::new(code, message).at(&self.place(key), "").hint(hint));
    }

    /// Reports the keys that were not asked for; the same happens when the reader is dropped.
    pub fn finish(self) {}

    /// What may have been meant by a key that this table does not have.
    fn hint(&self, typed: &str) -> String {
        let named = |path: &&&str| path.rsplit_once('.').map_or(**path, |(_, key)| key) == typed;
        let homes: Vec<String> = self.known.iter().filter(named).map(|path| format!("`{path}`")).collect();
        if !homes.is_empty() {
            return format!("it belongs at {}", homes.join(" or "));
        }
        let missing = self.asked.iter().copied().filter(|key| self.table.get(key).is_none());
        if let Some(key) = did_you_mean(typed, missing) {
            return format!("did you mean `{key}`?");
        }
        did_you_mean(typed, self.asked.iter().copied()).map_or_else(
            || format!("the keys here are {}", quoted(&self.asked)),
            |key| format!("did you mean `{key}`, which is also here?"),
        )
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        for entry in &self.table.entries {
            if self.asked.contains(&entry.key.as_str()) {
                continue;
            }
            let place =
                if self.path.is_empty() { "at the top level".to_owned() } else { format!("in `{}`", self.path) };
            let mut diagnostic = Diagnostic::new(Code::UnknownKey, format!("unknown key `{}` {place}", entry.key))
                .at(&entry.at, "not known here");
            diagnostic = diagnostic.hint(self.hint(&entry.key));
            self.sink.push(diagnostic);
        }
    }
}

/// Keys in backticks, joined by commas.
fn quoted(keys: &[&str]) -> String {
    let mut keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.dedup();
    keys.join(", ")
}

/// Stands for a table that is missing.
#[derive(Default)]
struct Missing;

impl FromNode for Missing {
    fn from_node(_: &Node, _: &str, _: &Sink) -> Self {
        Self
    }
}

impl FromNode for String {
    fn schema() -> Schema {
        Schema::Text
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        match node.as_str() {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            Some(_) => {
                sink.push(
                    Diagnostic::new(Code::OutOfRange, format!("`{path}` is empty")).at(&node.at, "a text is needed"),
                );
                Self::new()
            }
            None => {
                node.wrong_type(path, "a text", sink);
                Self::new()
            }
        }
    }
}

impl FromNode for bool {
    fn schema() -> Schema {
        Schema::Boolean
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if let Value::Boolean(value) = node.value {
            return value;
        }
        node.wrong_type(path, "true or false", sink);
        false
    }
}

/// A whole number within a range, with the reports for all else.
fn whole(node: &Node, path: &str, sink: &Sink, low: i64, high: i64) -> i64 {
    match node.value {
        Value::Integer(value) if (low..=high).contains(&value) => value,
        Value::Integer(value) => {
            let message = format!("`{path}` is {value}, outside {low} to {high}");
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "out of range"));
            low
        }
        _ => {
            node.wrong_type(path, "a whole number", sink);
            low
        }
    }
}

impl FromNode for u32 {
    fn schema() -> Schema {
        Schema::Integer { low: 1, high: i64::from(i32::MAX) }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Self::try_from(whole(node, path, sink, 1, i64::from(i32::MAX))).unwrap_or(1)
    }
}

impl FromNode for u64 {
    fn schema() -> Schema {
        Schema::Integer { low: 1, high: 1_i64 << 52 }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Self::try_from(whole(node, path, sink, 1, 1_i64 << 52)).unwrap_or(1)
    }
}

/// A finite number, written with or without a point.
fn number(node: &Node, path: &str, sink: &Sink) -> Option<f64> {
    let value = match node.value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => {
            node.wrong_type(path, "a number", sink);
            return None;
        }
    };
    if !value.is_finite() {
        sink.push(
            Diagnostic::new(Code::OutOfRange, format!("`{path}` is not a finite number")).at(&node.at, "out of range"),
        );
        return None;
    }
    Some(value)
}

impl FromNode for f64 {
    fn schema() -> Schema {
        Schema::Number { low: None, high: None }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        number(node, path, sink).unwrap_or_default()
    }
}

impl FromNode for Fraction {
    fn schema() -> Schema {
        Schema::Number { low: Some(0.0), high: Some(1.0) }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(value) = number(node, path, sink) else { return Self::ZERO };
        Self::new(value).unwrap_or_else(|| {
            let diagnostic = Diagnostic::new(Code::OutOfRange, format!("`{path}` is {value}, and must be 0 to 1"))
                .at(&node.at, "out of range");
            sink.push(if value > 1.0 && value <= 100.0 {
                diagnostic.hint(format!("{value}% is {}", value / 100.0))
            } else {
                diagnostic
            });
            Self::ZERO
        })
    }
}

impl FromNode for Factor {
    fn schema() -> Schema {
        Schema::Number { low: Some(0.0), high: None }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(value) = number(node, path, sink) else { return Self::default() };
        Self::new(value).unwrap_or_else(|| {
            sink.push(
                Diagnostic::new(Code::OutOfRange, format!("`{path}` is {value}, and must be zero or more"))
                    .at(&node.at, "out of range"),
            );
            Self::default()
        })
    }
}

impl<Q: Quantity> FromNode for Q {
    fn schema() -> Schema {
        Schema::Quantity { what: Q::WHAT, example: Q::EXAMPLE }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let error = match &node.value {
            Value::String(text) => match Q::parse(text) {
                Ok(quantity) => return quantity,
                Err(error) => error,
            },
            Value::Integer(_) | Value::Float(_) => {
                crate::units::UnitError::MissingUnit { what: Q::WHAT, example: Q::EXAMPLE }
            }
            _ => {
                node.wrong_type(path, &format!("{} such as \"{}\"", Q::WHAT, Q::EXAMPLE), sink);
                return Q::default();
            }
        };
        let mut diagnostic = Diagnostic::new(Code::WrongUnit, format!("`{path}`: {error}"))
            .at(&node.at, format!("{} is needed", Q::WHAT));
        if let Some(hint) = error.hint() {
            diagnostic = diagnostic.hint(hint);
        }
        sink.push(diagnostic);
        Q::default()
    }
}

impl FromNode for Date {
    fn schema() -> Schema {
        Schema::Date
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if let Value::Date(text) = &node.value {
            return Self(text.clone());
        }
        node.wrong_type(path, "a date such as 2026-11-29, without quotes", sink);
        Self::default()
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn schema() -> Schema {
        Schema::List(Box::new(T::schema()))
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Value::Array(items) = &node.value else {
            node.wrong_type(path, "a list", sink);
            return Self::new();
        };
        items.iter().map(|item| T::from_node(item, path, sink)).collect()
    }
}

impl<T: FromNode> FromNode for BTreeMap<String, T> {
    fn schema() -> Schema {
        Schema::Keyed(Box::new(T::schema()))
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(table) = node.as_table() else {
            node.wrong_type(path, "a table", sink);
            return Self::new();
        };
        let read = |entry: &super::value::Entry| {
            (entry.key.clone(), T::from_node(&entry.node, &format!("{path}.{}", entry.key), sink))
        };
        table.entries.iter().map(read).collect()
    }
}

impl<T: FromNode + Copy + PartialOrd> FromNode for Ranged<T> {
    fn schema() -> Schema {
        T::schema().ranged()
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_table().is_none() {
            return Self::exact(T::from_node(node, path, sink));
        }
        let before = sink.len();
        let Some(mut reader) = Reader::new(node, path, sink) else { return Self::default() };
        let value: T = reader.get("value");
        let range = Self { value, low: reader.or("low", value), high: reader.or("high", value) };
        if sink.len() == before && !(range.low <= range.value && range.value <= range.high) {
            reader.report(
                "value",
                Code::Inconsistent,
                format!("`{path}` is not within its own range"),
                "low <= value <= high",
            );
        }
        range
    }
}
