//! A configuration as its publisher wrote it, read key by key: what was asked for, what was filled, what is refused.

use std::cell::RefCell;

use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::document::{Node, Table, Value};
use crate::units::to_integer;

/// A dimension that a configuration leaves to its family's published code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The key.
    pub key: String,
    /// What it was taken to be.
    pub value: String,
    /// Where that stands.
    pub why: &'static str,
}

/// One table of a configuration.
pub(super) struct Config<'a> {
    table: &'a Table,
    at: &'a Span,
    prefix: String,
    sink: &'a Sink,
    asked: RefCell<Vec<String>>,
    /// Mistakes that are told: several parts may ask for one key.
    told: RefCell<Vec<String>>,
    fills: RefCell<Vec<Fill>>,
}

/// Where the default of a key stands, for keys whose default is the family's own.
pub(super) const CLASS: &str = "the default of the family's configuration class in transformers";
/// Where a rule stands that is no default of a key.
pub(super) const CODE: &str = "the family's published modelling code";

impl<'a> Config<'a> {
    pub(super) fn new(node: &'a Node, prefix: &str, sink: &'a Sink) -> Option<Self> {
        let Some(table) = node.as_table() else {
            node.wrong_type(if prefix.is_empty() { "the configuration" } else { prefix }, "a table", sink);
            return None;
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
        let (asked, told, fills) = (RefCell::default(), RefCell::default(), RefCell::default());
        Some(Self { table, at: &node.at, prefix, sink, asked, told, fills })
    }

    /// The value of the first of these keys that is there.
    pub(super) fn node(&self, keys: &[&str]) -> Option<&'a Node> {
        self.asked.borrow_mut().extend(keys.iter().map(|key| (*key).to_owned()));
        keys.iter().find_map(|key| self.table.get(key))
    }

    /// The names of all entries.
    pub(super) fn names(&self) -> Vec<String> {
        self.table.entries.iter().map(|entry| entry.key.clone()).collect()
    }

    /// The place of the first of these keys that is there, or of the whole table.
    pub(super) fn place(&self, keys: &[&str]) -> Span {
        keys.iter().find_map(|key| self.table.get(key)).map_or_else(|| self.at.clone(), |node| node.at.clone())
    }

    fn name(&self, keys: &[&str]) -> String {
        let key = keys.iter().find(|key| self.table.get(key).is_some()).or(keys.first()).copied().unwrap_or_default();
        format!("{}{key}", self.prefix)
    }

    /// A whole number of at least 1; none where no key is there.
    pub(super) fn optional(&self, keys: &[&str]) -> Option<u32> {
        self.count(keys).filter(|count| {
            if *count == 0 {
                self.report(keys, Code::OutOfRange, format!("`{}` is 0", self.name(keys)), "a size is at least 1");
            }
            *count > 0
        })
    }

    /// A whole number; none where no key is there.
    pub(super) fn count(&self, keys: &[&str]) -> Option<u32> {
        let node = self.node(keys)?;
        let name = self.name(keys);
        let number = match node.value {
            Value::Integer(number) => number,
            // Some writers put a point behind whole numbers.
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => to_integer::<i64>(number),
            Value::Float(_) => {
                self.report(keys, Code::OutOfRange, format!("`{name}` is no whole number"), "a size is a whole number");
                return None;
            }
            _ => {
                self.wrong_type(node, keys, "a whole number");
                return None;
            }
        };
        let inside = u32::try_from(number).ok().filter(|number| i32::try_from(*number).is_ok());
        if inside.is_none() {
            let message = format!("`{name}` is {number}, outside 0 to {}", i32::MAX);
            self.report(keys, Code::OutOfRange, message, "a size is a whole number of at least 1");
        }
        inside
    }

    /// A whole number that must be there.
    pub(super) fn get(&self, keys: &[&str]) -> u32 {
        if self.node(keys).is_some() {
            return self.optional(keys).unwrap_or(1);
        }
        self.missing(keys);
        1
    }

    /// Reports a key that must be there.
    pub(super) fn missing(&self, keys: &[&str]) {
        let name = self.name(keys);
        let known = self.table.entries.iter().map(|entry| entry.key.as_str());
        let close = keys.first().and_then(|key| did_you_mean(key, known));
        let others = keys.get(1..).unwrap_or_default();
        let hint = match (close, others) {
            (Some(close), _) => format!("`{close}` is here; this family's key is `{name}`"),
            (None, []) => "it is part of the shape, and nothing is taken in its place".to_owned(),
            (None, others) => format!("it may also be called {}", others.join(" or ")),
        };
        self.sink.push(
            Diagnostic::new(Code::MissingKey, format!("`{name}` is missing"))
                .at(self.at, "in this configuration")
                .hint(hint),
        );
    }

    /// A whole number, or the family's default, which is noted.
    pub(super) fn or(&self, keys: &[&str], default: u32, why: &'static str) -> u32 {
        if self.node(keys).is_some() {
            return self.optional(keys).unwrap_or(default);
        }
        self.fill(keys, &default.to_string(), why);
        default
    }

    /// Yes or no; none where no key is there.
    pub(super) fn flag(&self, keys: &[&str]) -> Option<bool> {
        let node = self.node(keys)?;
        match node.value {
            Value::Boolean(value) => Some(value),
            Value::Integer(number @ (0 | 1)) => Some(number == 1),
            _ => {
                self.wrong_type(node, keys, "true or false");
                None
            }
        }
    }

    /// Yes or no, or the family's default, which is noted.
    pub(super) fn flag_or(&self, keys: &[&str], default: bool, why: &'static str) -> bool {
        if self.node(keys).is_some() {
            return self.flag(keys).unwrap_or(default);
        }
        self.fill(keys, if default { "true" } else { "false" }, why);
        default
    }

    /// A text; none where no key is there.
    pub(super) fn text(&self, keys: &[&str]) -> Option<&'a str> {
        let node = self.node(keys)?;
        if node.as_str().is_none() {
            self.wrong_type(node, keys, "a text");
        }
        node.as_str()
    }

    /// A list; none where no key is there.
    pub(super) fn list(&self, keys: &[&str]) -> Option<&'a [Node]> {
        let node = self.node(keys)?;
        let Value::Array(items) = &node.value else {
            self.wrong_type(node, keys, "a list");
            return None;
        };
        Some(items)
    }

    /// A table inside; none where no key is there.
    pub(super) fn table(&self, key: &str) -> Option<Self> {
        let node = self.node(&[key])?;
        Config::new(node, &format!("{}{key}", self.prefix), self.sink)
    }

    /// Notes what was taken for a key that is not there.
    pub(super) fn fill(&self, keys: &[&str], value: &str, why: &'static str) {
        let fill = Fill { key: self.name(keys), value: value.to_owned(), why };
        if !self.fills.borrow().contains(&fill) {
            self.fills.borrow_mut().push(fill);
        }
    }

    /// Reports a mistake at a key, once.
    pub(super) fn report(&self, keys: &[&str], code: Code, message: String, hint: impl Into<String>) {
        if self.is_new(&message) {
            self.sink.push(Diagnostic::new(code, message).at(&self.place(keys), "").hint(hint));
        }
    }

    /// Reports that another kind of value was needed, once.
    pub(super) fn wrong_type(&self, node: &Node, keys: &[&str], needed: &str) {
        let name = self.name(keys);
        if self.is_new(&name) {
            node.wrong_type(&name, needed, self.sink);
        }
    }

    /// Whether that was not told yet.
    fn is_new(&self, told: &str) -> bool {
        let mut all = self.told.borrow_mut();
        let new = !all.iter().any(|known| known == told);
        if new {
            all.push(told.to_owned());
        }
        new
    }

    /// Refuses what the model of a model cannot hold.
    pub(super) fn refuse(&self, key: &str, what: &str) {
        let message = format!("`{}{key}`: {what}", self.prefix);
        let hint = "this part of the architecture is not modelled, and no figure is given that leaves it out";
        self.report(&[key], Code::Unsupported, message, hint);
    }

    /// Refuses a key where it says more than nothing.
    pub(super) fn refuse_unless_off(&self, key: &str, what: &str) {
        let off = self.node(&[key]).is_none_or(|node| match &node.value {
            Value::Boolean(value) => !value,
            Value::Integer(number) => *number == 0,
            Value::Array(items) => items.is_empty(),
            _ => false,
        });
        if !off {
            self.refuse(key, what);
        }
    }

    /// Fills of this table and of one inside it.
    pub(super) fn take_fills(&self) -> Vec<Fill> {
        self.fills.take()
    }

    /// Refuses keys that were not asked for and whose name says that they change the shape.
    pub(super) fn finish(&self) {
        let asked = self.asked.borrow();
        for entry in &self.table.entries {
            let key = entry.key.as_str();
            if asked.iter().any(|known| known == key) || !super::inert::shapes(key, &entry.node) {
                continue;
            }
            let message = format!(
                "`{}{key}` is not known for this family, and its name says that it changes the shape",
                self.prefix
            );
            let hint = "nothing is left out in silence: remove the key if it changes neither weights nor cache";
            self.sink.push(Diagnostic::new(Code::Unsupported, message).at(&entry.at, "not understood").hint(hint));
        }
    }
}
