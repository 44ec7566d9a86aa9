//! From tables to types, collecting every mistake on the way.

use std::cell::OnceCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use super::schema::{About, Property, Record, Schema};
use super::value::{Node, Table, Value};
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::units::brief;

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

/// All keys of a kind of document by dotted path, worked out when they are first needed.
pub struct KnownKeys {
    of: fn() -> Vec<String>,
    all: OnceCell<Vec<String>>,
}

impl KnownKeys {
    /// Those that a function works out.
    pub const fn new(of: fn() -> Vec<String>) -> Self {
        Self { of, all: OnceCell::new() }
    }

    fn all(&self) -> &[String] {
        self.all.get_or_init(self.of)
    }
}

/// Short names of degrees, as engines and frameworks have them, and the keys that they are here.
const SHORT: [(&str, &str); 9] = [
    ("tp", "tensor"),
    ("pp", "pipeline"),
    ("ep", "expert"),
    ("cp", "context"),
    ("dp", "attention_data"),
    ("vpp", "virtual_stages"),
    ("mbs", "micro_batch"),
    ("gbs", "global_batch"),
    ("isl", "input_tokens"),
];

/// The report of a whole number outside a range.
pub(super) fn outside(path: &str, value: i64, low: i64, high: i64) -> Diagnostic {
    let message = format!("`{path}` is {value}, outside {low} to {high}");
    let hint = if value < low { format!("at least {low} is needed") } else { format!("at most {high} is taken") };
    Diagnostic::new(Code::OutOfRange, message).hint(hint)
}

/// Reads one table. [`Reader::finish`] (or dropping it) reports the keys that nobody asked for.
pub struct Reader<'a> {
    table: &'a Table,
    at: &'a Span,
    path: String,
    asked: Vec<&'static str>,
    /// Keys reported as missing, and the place of that report in the sink.
    missed: Vec<(&'static str, usize)>,
    known: Option<&'a KnownKeys>,
    sink: &'a Sink,
    record: Option<&'a Record>,
    /// What is said of the key that is asked for next, and of that which was asked for last.
    next: Option<About>,
    last: (&'static str, About),
    /// Whether keys are described that are there only beside others.
    sometimes: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the table that `node` is; reports when it is none.
    pub fn new(node: &'a Node, path: impl Into<String>, sink: &'a Sink) -> Option<Self> {
        let path = path.into();
        let Some(table) = node.as_table() else {
            node.wrong_type(&path, "a table", sink);
            return None;
        };
        let (asked, missed) = (Vec::new(), Vec::new());
        let last = ("", About::default());
        let (known, record, next, sometimes) = (None, None, None, false);
        Some(Self { table, at: &node.at, path, asked, missed, known, sink, record, next, last, sometimes })
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
    pub fn knowing(mut self, keys: &'a KnownKeys) -> Self {
        self.known = Some(keys);
        self
    }

    /// Those keys.
    pub fn known(&self) -> &'a [String] {
        self.known.map_or(&[], KnownKeys::all)
    }

    /// A reader of a table that `node` is, of the same document.
    pub fn inside(&self, node: &'a Node, path: impl Into<String>) -> Option<Self> {
        let known = self.known;
        Reader::new(node, path, self.sink).map(|mut reader| {
            reader.known = known;
            reader
        })
    }

    /// Says what the key is that is asked for next, for the schema.
    pub fn about(&mut self, says: &'static str) -> &mut Self {
        self.next = Some(About { says, ..About::default() });
        self
    }

    /// Says what is taken where that key is left out: a value as TOML writes it, or words.
    pub fn usually(&mut self, usual: &'static str) -> &mut Self {
        self.next = self.next.map(|about| About { usual, ..about });
        self
    }

    /// Gives an example of that key's own scale, for the schema and for hints.
    pub fn such_as(&mut self, example: &'static str) -> &mut Self {
        self.next = self.next.map(|about| About { example, ..about });
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

    /// The dotted path of the table.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The dotted path of a key of this table.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key, unread.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.node_of(key, Schema::default)
    }

    /// The value of a key, unread, of which whoever reads it says what it takes.
    pub fn node_of(&mut self, key: &'static str, schema: impl FnOnce() -> Schema) -> Option<&'a Node> {
        self.note(key, schema, false);
        self.asked.push(key);
        self.table.get(key)
    }

    /// The place of a key's value, where there is one; a dotted key is one of a table below.
    pub fn place_of(&self, key: &str) -> Option<Span> {
        let (key, below) = key.split_once('.').map_or((key, None), |(key, below)| (key, Some(below)));
        let node = self.table.get(key)?;
        below.map_or(Some(node), |path| node.at_path(path)).map(|node| node.at.clone())
    }

    /// The place of a key's value, or of the table where the key is missing.
    pub fn place(&self, key: &str) -> Span {
        self.place_of(key).unwrap_or_else(|| self.at.clone())
    }

    /// A value that must be there.
    pub fn get<T: FromNode>(&mut self, key: &'static str) -> T {
        self.note(key, T::schema, true);
        if let Some(value) = self.optional(key) {
            return value;
        }
        let example = self.about_of(key).example;
        self.missing(key, T::schema().like(example).in_words().map(|needed| format!("`{key}` takes {needed}")));
        T::default()
    }

    /// Reports a key that must be there.
    fn missing(&mut self, key: &'static str, hint: Option<String>) {
        let path = self.path_of(key);
        self.missed.push((key, self.sink.len()));
        let missing = Diagnostic::missing(&path).at(self.at, "in this table");
        self.sink.push(hint.into_iter().fold(missing, Diagnostic::hint));
    }

    /// A value that may be there.
    pub fn optional<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        self.note(key, T::schema, false);
        let path = self.path_of(key);
        let node = self.node(key)?;
        let before = self.sink.len();
        let value = T::from_node(node, &path, self.sink);
        let example = self.about_of(key).example;
        if let Some(other) = T::schema().example().filter(|_| self.sink.len() > before && !example.is_empty()) {
            self.sink.reword(before, other, example);
        }
        Some(value)
    }

    /// What is said of a key that has just been asked for.
    fn about_of(&self, key: &str) -> About {
        if self.last.0 == key { self.last.1 } else { About::default() }
    }

    /// A value with a documented default.
    pub fn or<T: FromNode>(&mut self, key: &'static str, default: T) -> T {
        self.optional(key).unwrap_or(default)
    }

    /// A value that must be there and lie within a range.
    pub fn within<T: FromNode + PartialOrd + Display>(&mut self, key: &'static str, range: &RangeInclusive<T>) -> T {
        self.note(key, || T::schema().between(range), true);
        let before = self.sink.len();
        let value = self.get(key);
        self.check_range(key, before, &value, range);
        value
    }

    /// A value that may be there and, if it is, lies within a range.
    pub fn optional_within<T: FromNode + PartialOrd + Display>(
        &mut self,
        key: &'static str,
        range: &RangeInclusive<T>,
    ) -> Option<T> {
        self.note(key, || T::schema().between(range), false);
        let before = self.sink.len();
        let value = self.optional(key);
        value.inspect(|value| self.check_range(key, before, value, range))
    }

    /// Says within which bounds a number lies that whoever asks for it next checks by themselves.
    pub fn bounded<T: FromNode>(&mut self, key: &'static str, bounds: &RangeInclusive<f64>) {
        self.note(key, || T::schema().between(bounds), false);
    }

    /// Reports a value outside its range, unless something else was reported of it since there were `before` mistakes.
    fn check_range<T: FromNode + PartialOrd + Display>(
        &self,
        key: &str,
        before: usize,
        value: &T,
        range: &RangeInclusive<T>,
    ) {
        // A whole number that no value of its type can be is told the key's own bounds, not the type's.
        if let Some(Node { value: Value::Integer(wrong), at }) = self.table.get(key)
            && self.sink.len() == before + 1
            && let (Schema::Integer { low, high }, Schema::Integer { low: least, high: most }) =
                (T::schema().between(range), T::schema())
            && !(low..=high).contains(wrong)
        {
            let (low, high) = (low.max(least), high.min(most));
            self.sink.replace(before, outside(&self.path_of(key), *wrong, low, high).at(at, "out of range"));
            return;
        }
        if self.sink.len() == before && !range.contains(value) {
            let (low, high) = (range.start(), range.end());
            let message = format!("`{}` is {}, outside {low} to {high}", self.path_of(key), brief(value));
            let hint =
                if value < low { format!("at least {low} is needed") } else { format!("at most {high} is taken") };
            self.report(key, Code::OutOfRange, message, hint);
        }
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

    /// Whether the shape of the table is asked for and not its values; then what a key takes is written down.
    ///
    /// For keys whose reading depends on their value.
    pub fn describes(&mut self, key: &'static str, schema: impl FnOnce() -> Schema, required: bool) -> bool {
        self.note(key, schema, required);
        self.record.is_some()
    }

    /// Writes down what a key takes, where that is asked for.
    fn note(&mut self, key: &'static str, schema: impl FnOnce() -> Schema, required: bool) {
        if let Some(about) = self.next.take() {
            self.last = (key, about);
        }
        if let Some(record) = self.record {
            let about = self.about_of(key);
            let required = required && !self.sometimes;
            record.add(Property { key, schema: schema().like(about.example), required, about });
        }
    }

    /// What `read` reads where it `holds` that these keys are asked for; the shape of the table has them, and needs none.
    pub fn when<T>(&mut self, holds: bool, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let describes = self.record.is_some();
        self.sometimes = describes;
        let read = (holds || describes).then(|| read(self));
        self.sometimes = false;
        read
    }

    /// A table that may be there, read by `read`.
    pub fn optional_table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader<'_>) -> T) -> Option<T> {
        if self.record.is_some() {
            self.note(key, || Reader::describe(read), false);
            return None;
        }
        let path = self.path_of(key);
        let node = self.node(key)?;
        let mut reader = self.inside(node, path)?;
        Some(read(&mut reader))
    }

    /// A table that must be there, read by `read`.
    pub fn table<T: Default>(&mut self, key: &'static str, read: impl FnOnce(&mut Reader<'_>) -> T) -> T {
        if self.record.is_some() {
            self.note(key, || Reader::describe(read), true);
            return T::default();
        }
        if self.node(key).is_none() {
            let path = self.path_of(key);
            self.missing(key, Some(format!("write its keys under [{path}], or as {key} = {{ ... }}")));
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
        items.iter().filter_map(|item| self.inside(item, path.clone()).map(|mut reader| read(&mut reader))).collect()
    }

    /// Adds a mistake at a key of this table.
    pub fn report(&self, key: &str, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.sink.push(Diagnostic::new(code, message).at(&self.place(key), "").hint(hint));
    }

    /// Reports the keys that were not asked for; the same happens when the reader is dropped.
    pub fn finish(self) {}

    /// The key here that engines and frameworks have a short name for.
    fn in_full(&self, typed: &str) -> Option<&'static str> {
        let named = |(short, _): &&(&str, &str)| *short == typed;
        SHORT.iter().filter(named).map(|(_, key)| *key).find(|key| self.asked.contains(key))
    }

    /// What may have been meant by a key that this table does not have; `missing` are those asked for that are not here.
    fn hint(&self, typed: &str, missing: &[&str]) -> String {
        let named = |path: &&String| path.rsplit_once('.').map_or(path.as_str(), |(_, key)| key) == typed;
        let homes: Vec<String> = self.known().iter().filter(named).map(|path| format!("`{path}`")).collect();
        if !homes.is_empty() {
            return format!("it belongs at {}", homes.join(" or "));
        }
        if let Some(key) = did_you_mean(typed, missing.iter().copied()).or_else(|| self.in_full(typed)) {
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
        let missing: Vec<&str> = self.asked.iter().copied().filter(|key| self.table.get(key).is_none()).collect();
        for entry in &self.table.entries {
            if self.asked.contains(&entry.key.as_str()) {
                continue;
            }
            let place =
                if self.path.is_empty() { "at the top level".to_owned() } else { format!("in `{}`", self.path) };
            let diagnostic = Diagnostic::new(Code::UnknownKey, format!("unknown key `{}` {place}", entry.key))
                .at(&entry.at, "not known here")
                .hint(self.hint(&entry.key, &missing));
            // A misspelt key is one mistake: it takes the place of the report that the right one is missing.
            let meant = did_you_mean(&entry.key, self.missed.iter().map(|(key, _)| *key));
            let meant = meant.or_else(|| self.in_full(&entry.key));
            match self.missed.iter().position(|(key, _)| Some(*key) == meant) {
                Some(found) => self.sink.replace(self.missed.remove(found).1, diagnostic),
                None => self.sink.push(diagnostic),
            }
        }
    }
}

/// Keys in backticks, joined by commas.
fn quoted(keys: &[&str]) -> String {
    let mut keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.dedup();
    keys.join(", ")
}
