//! The shape of a file as JSON Schema, recorded from the very code that reads it.
//!
//! A reader in describing mode answers every question with a placeholder and writes down what was asked: the keys, the
//! kind of value behind each, and whether it must be there. So what editors check and what the program takes cannot
//! drift apart.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value as Json, json};

/// The dialect of JSON Schema that is written.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The kind of value that a key takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Schema {
    /// Anything: the reader looks at it itself.
    #[default]
    Any,
    /// Yes or no.
    Boolean,
    /// Text.
    Text,
    /// A calendar date.
    Date,
    /// A number with its unit, as text.
    Quantity {
        /// What it is, in words with an article.
        what: &'static str,
        /// A text that is one.
        example: &'static str,
    },
    /// A whole number within a range.
    Integer {
        /// The least.
        low: i64,
        /// The greatest.
        high: i64,
    },
    /// A number within a range, open above where there is no high end.
    Number {
        /// The least, if there is one.
        low: Option<f64>,
        /// The greatest, if there is one.
        high: Option<f64>,
    },
    /// One of a closed set of words.
    Words(Vec<&'static str>),
    /// A list.
    List(Box<Schema>),
    /// A table of free keys.
    Keyed(Box<Schema>),
    /// A table of known keys.
    Table(Vec<Property>),
    /// One kind or another.
    Either(Box<Schema>, Box<Schema>),
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The key.
    pub key: &'static str,
    /// What it takes.
    pub schema: Schema,
    /// Whether it must be there.
    pub required: bool,
}

/// What a describing reader has been asked so far.
#[derive(Debug, Default)]
pub(super) struct Record(RefCell<Vec<Property>>);

impl Record {
    /// Writes a question down; the first about a key counts.
    pub(super) fn add(&self, key: &'static str, schema: Schema, required: bool) {
        let mut properties = self.0.borrow_mut();
        if properties.iter().all(|property| property.key != key) {
            properties.push(Property { key, schema, required });
        }
    }

    /// The table that was asked for.
    pub(super) fn into_schema(self) -> Schema {
        Schema::Table(self.0.into_inner())
    }
}

impl Schema {
    /// The same between bounds, where it is of plain numbers and the bounds are.
    #[must_use]
    pub(super) fn between<T: Display>(self, range: &RangeInclusive<T>) -> Self {
        let (low, high) = (range.start().to_string(), range.end().to_string());
        match self {
            Self::Integer { .. } => match (low.parse(), high.parse()) {
                (Ok(low), Ok(high)) => Self::Integer { low, high },
                _ => self,
            },
            Self::Number { .. } => match (low.parse(), high.parse()) {
                (Ok(low), Ok(high)) => Self::Number { low: Some(low), high: Some(high) },
                _ => self,
            },
            other => other,
        }
    }

    /// A value, or a value with its range.
    #[must_use]
    pub fn ranged(self) -> Self {
        let property = |key, required| Property { key, schema: self.clone(), required };
        let range = Self::Table(vec![property("value", true), property("low", false), property("high", false)]);
        Self::Either(Box::new(self), Box::new(range))
    }

    /// One word, or something else.
    #[must_use]
    pub fn word_or(word: &'static str, other: Self) -> Self {
        Self::Either(Box::new(Self::Words(vec![word])), Box::new(other))
    }

    /// What a value of this kind is, in words; nothing where the reader looks at it itself.
    pub(super) fn in_words(&self) -> Option<String> {
        let words = match self {
            Self::Any => return None,
            Self::Boolean => "true or false".to_owned(),
            Self::Text => "a text in quotes".to_owned(),
            Self::Date => "a date such as 2026-11-29, without quotes".to_owned(),
            Self::Quantity { what, example } => format!("{what} such as \"{example}\""),
            Self::Integer { low, .. } => format!("a whole number from {low}"),
            Self::Number { low: Some(low), high: Some(high) } if *high <= 1.0 => {
                format!("a number from {low} to {high}")
            }
            Self::Number { .. } => "a number".to_owned(),
            Self::Words(words) => {
                let list: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                list.join(" or ")
            }
            Self::List(_) => "a list".to_owned(),
            Self::Keyed(_) | Self::Table(_) => "a table".to_owned(),
            Self::Either(one, other) => match (one.in_words(), other.in_words()) {
                (Some(one), Some(other)) if one != other => format!("{one}, or {other}"),
                (one, other) => return one.or(other),
            },
        };
        Some(words)
    }

    /// As JSON Schema, draft 2020-12.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Any => json!({}),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Text => json!({ "type": "string", "minLength": 1 }),
            Self::Date => json!({
                "type": "string",
                "format": "date",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                "description": "a day as TOML writes it, without quotes: 2026-11-29",
            }),
            Self::Quantity { what, example } => {
                json!({ "type": "string", "description": format!("{what}, with its unit"), "examples": [example] })
            }
            Self::Integer { low, high } => json!({ "type": "integer", "minimum": low, "maximum": high }),
            Self::Number { low, high } => {
                let mut schema = Map::from_iter([("type".to_owned(), json!("number"))]);
                schema.extend(low.map(|low| ("minimum".to_owned(), json!(low))));
                schema.extend(high.map(|high| ("maximum".to_owned(), json!(high))));
                Json::Object(schema)
            }
            Self::Words(words) => json!({ "enum": words }),
            Self::List(item) => json!({ "type": "array", "items": item.to_json() }),
            Self::Keyed(item) => json!({ "type": "object", "additionalProperties": item.to_json() }),
            Self::Either(one, other) => json!({ "anyOf": [one.to_json(), other.to_json()] }),
            Self::Table(properties) => {
                let required: Vec<_> =
                    properties.iter().filter(|property| property.required).map(|property| property.key).collect();
                let each = properties.iter().map(|property| (property.key.to_owned(), property.schema.to_json()));
                json!({
                    "type": "object",
                    "properties": each.collect::<Map<_, _>>(),
                    "required": required,
                    "additionalProperties": false,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Reader;
    use crate::units::{Fraction, Ranged, Watts};

    #[test]
    fn a_reader_describes_what_it_reads() {
        let schema = Reader::describe(|reader| {
            let _: Watts = reader.get("tdp");
            let _: Option<Ranged<Fraction>> = reader.optional("share");
            reader.tables("ports", |reader| reader.get::<u32>("count"));
        });
        let json = schema.to_json();
        assert_eq!(json["required"], json!(["tdp"]));
        assert_eq!(json["additionalProperties"], json!(false));
        assert_eq!(json["properties"]["tdp"]["examples"], json!(["700 W"]));
        assert_eq!(json["properties"]["share"]["anyOf"][1]["required"], json!(["value"]));
        assert_eq!(json["properties"]["ports"]["items"]["properties"]["count"]["minimum"], json!(1));
    }

    #[test]
    fn both_kinds_of_a_value_are_described() {
        let schema = Reader::describe(|reader| {
            reader.either("amount", false, |_: Watts| (), |_: Fraction| ());
        });
        let Schema::Table(properties) = schema else { panic!("not a table") };
        assert!(matches!(properties[0].schema, Schema::Either(..)));
    }
}
