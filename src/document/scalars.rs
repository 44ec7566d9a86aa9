//! How single values are read: texts, numbers, quantities, lists, and values with their range.

use std::collections::BTreeMap;

use super::reader::{FromNode, Reader, outside};
use super::schema::Schema;
use super::value::{Date, Entry, Node, Value};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::units::{Factor, Fraction, Quantity, Ranged, UnitError, brief, significant};

/// The longest text that is taken, in bytes; no name, id or note has a tenth of it.
const LONGEST: usize = 10_000;
/// The largest multiplier that is taken, and one over it the smallest beside zero: no formula leaves the range of
/// floating-point numbers for it.
const MOST: f64 = 1e9;

impl FromNode for String {
    fn schema() -> Schema {
        Schema::Text
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        match node.as_str() {
            Some(text) if text.len() > LONGEST => {
                let message = format!("`{path}` is a text of {} bytes; at most {LONGEST} are taken", text.len());
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "too long").hint("shorten it"));
                Self::new()
            }
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            Some(_) => {
                sink.push(
                    Diagnostic::new(Code::OutOfRange, format!("`{path}` is empty"))
                        .at(&node.at, "a text is needed")
                        .hint("write something between the quotes, or leave the key out"),
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
            sink.push(outside(path, value, low, high).at(&node.at, "out of range"));
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
            Diagnostic::new(Code::OutOfRange, format!("`{path}` is not a finite number"))
                .at(&node.at, "out of range")
                .hint("write the number itself, such as 0.05; leave the key out where there is none"),
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
        let sane = value <= 0.0 || value >= MOST.recip();
        Self::new(value).filter(|_| sane).unwrap_or_else(|| {
            if !sane {
                let message = format!("`{path}` is {value:e}, and must be zero, or from {:e} to 1", MOST.recip());
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "out of range").hint("such as 0.05"));
                return Self::ZERO;
            }
            let message = format!("`{path}` is {}, and must be 0 to 1", brief(value));
            let hint = if value > 1.0 && value <= 100.0 {
                format!("{value}% is {}", significant(value / 100.0, 12))
            } else {
                "it is a share: 0.3 is 30%".to_owned()
            };
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "out of range").hint(hint));
            Self::ZERO
        })
    }
}

impl FromNode for Factor {
    fn schema() -> Schema {
        Schema::Number { low: Some(0.0), high: Some(MOST) }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(value) = number(node, path, sink) else { return Self::default() };
        let sane = value <= 0.0 || (MOST.recip()..=MOST).contains(&value);
        Self::new(value).filter(|_| sane).unwrap_or_else(|| {
            let message = if value < 0.0 {
                format!("`{path}` is {}, and must be zero or more", brief(value))
            } else {
                format!("`{path}` is {}, and must be zero, or from {:e} to {MOST:e}", brief(value), MOST.recip())
            };
            let diagnostic = Diagnostic::new(Code::OutOfRange, message).at(&node.at, "out of range");
            sink.push(diagnostic.hint("it is a multiplier: 1 changes nothing"));
            Self::default()
        })
    }
}

impl<Q: Quantity> FromNode for Q {
    fn schema() -> Schema {
        Schema::Quantity {
            what: Q::WHAT,
            example: Q::EXAMPLE,
            units: Q::UNITS.iter().map(|unit| unit.word).collect(),
            range: None,
        }
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let error = match &node.value {
            Value::String(text) => match Q::parse(text) {
                Ok(quantity) => return quantity,
                Err(error) => error,
            },
            Value::Integer(_) | Value::Float(_) => UnitError::MissingUnit { what: Q::WHAT, example: Q::EXAMPLE },
            _ => {
                node.wrong_type(path, &format!("{} such as \"{}\"", Q::WHAT, Q::EXAMPLE), sink);
                return Q::default();
            }
        };
        let code = if matches!(error, UnitError::OutOfRange { .. }) { Code::OutOfRange } else { Code::WrongUnit };
        let mut diagnostic =
            Diagnostic::new(code, format!("`{path}`: {error}")).at(&node.at, format!("{} is needed", Q::WHAT));
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
            // TOML's dates include times of day; a day alone has ten signs and two dashes.
            if text.len() == 10 && text.matches('-').count() == 2 {
                return Self(text.clone());
            }
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
        let read =
            |entry: &Entry| (entry.key.clone(), T::from_node(&entry.node, &format!("{path}.{}", entry.key), sink));
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
