//! The shape of a file as JSON Schema, recorded from the very code that reads it.
//!
//! A reader in describing mode answers every question with a placeholder and writes down what was asked: the keys, the
//! kind of value behind each, and whether it must be there. So what editors check and what the program takes cannot
//! drift apart.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value as Json, json};

/// The dialect of JSON Schema that is written.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

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
    /// A month, as text.
    Month,
    /// A number with its unit, as text.
    Quantity {
        /// What it is, in words with an article.
        what: &'static str,
        /// A text that is one.
        example: &'static str,
        /// The words of its units.
        units: Vec<&'static str>,
        /// The least and the most, where they are the key's own.
        range: Option<[String; 2]>,
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

/// What is said of a key where it is read; nothing of keys of the catalog, whose fields are told by `catalog show`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What it is, in words that begin small.
    pub says: &'static str,
    /// What is taken where it is left out: a value as TOML writes it, or words; nothing where it must be there or means nothing
    /// where it is not.
    pub usual: &'static str,
    /// A value of the key's own scale, where the example of its unit is of another.
    pub example: &'static str,
}

impl About {
    /// The default as a value, where it is one.
    pub fn value(&self) -> Option<Json> {
        serde_json::from_str(self.usual).ok()
    }

    /// What it is and what stands for it, in sentences.
    fn sentences(&self, kind: Option<&str>) -> String {
        let mut text = self.says.to_owned();
        if let Some(first) = text.get(..1).map(str::to_uppercase) {
            text.replace_range(..1, &first);
        }
        if let Some(kind) = kind {
            text = if text.is_empty() { kind.to_owned() } else { format!("{text}: {kind}") };
        }
        if !self.usual.is_empty() && self.value().is_none() {
            text.push_str(". By default ");
            text.push_str(self.usual);
        }
        text
    }
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
    /// What is said of it.
    pub about: About,
}

/// What a describing reader has been asked so far.
#[derive(Debug, Default)]
pub(super) struct Record(RefCell<Vec<Property>>);

impl Record {
    /// Writes a question down; the first about a key counts.
    pub(super) fn add(&self, property: Property) {
        let mut properties = self.0.borrow_mut();
        if properties.iter().all(|known| known.key != property.key) {
            properties.push(property);
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
            Self::Quantity { what, example, units, .. } => {
                Self::Quantity { what, example, units, range: Some([low, high]) }
            }
            other => other,
        }
    }

    /// The same with another example, where it has one.
    #[must_use]
    pub(super) fn like(self, example: &'static str) -> Self {
        match self {
            Self::Quantity { what, units, range, .. } if !example.is_empty() => {
                Self::Quantity { what, example, units, range }
            }
            Self::Either(one, other) => Self::Either(Box::new(one.like(example)), other),
            other => other,
        }
    }

    /// The example that mistakes show.
    pub(super) fn example(&self) -> Option<&'static str> {
        match self {
            Self::Quantity { example, .. } => Some(example),
            Self::Either(one, _) => one.example(),
            _ => None,
        }
    }

    /// The dotted paths of all keys, tables too; what is in lists has no path.
    pub fn paths(&self) -> Vec<String> {
        match self {
            Self::Either(one, other) => {
                let mut paths = one.paths();
                paths.extend(other.paths());
                paths
            }
            Self::Table(properties) => {
                let mut paths = Vec::new();
                for property in properties {
                    paths.push(property.key.to_owned());
                    paths.extend(property.schema.paths().iter().map(|below| format!("{}.{below}", property.key)));
                }
                let mut seen = BTreeSet::new();
                paths.retain(|path| seen.insert(path.clone()));
                paths
            }
            _ => Vec::new(),
        }
    }

    /// A value, or a value with its range.
    #[must_use]
    pub fn ranged(self) -> Self {
        let property = |key, says, required| {
            let about = About { says, ..About::default() };
            Property { key, schema: self.clone(), required, about }
        };
        let range = Self::Table(vec![
            property("value", "the value that is reckoned with", true),
            property("low", "the least that it may be", false),
            property("high", "the most that it may be", false),
        ]);
        Self::Either(Box::new(self), Box::new(range))
    }

    /// A list of such values.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
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
            Self::Month => "a month such as \"2024-04\"".to_owned(),
            Self::Quantity { what, example, .. } => format!("{what} such as \"{example}\""),
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

    /// As JSON Schema of a whole file with that title.
    pub fn document(&self, title: &str) -> Json {
        let mut schema = self.to_json();
        schema["$schema"] = DIALECT.into();
        schema["title"] = title.into();
        schema
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
            Self::Month => json!({ "type": "string", "pattern": "^20[0-9]{2}-[0-9]{2}$", "examples": ["2024-04"] }),
            Self::Quantity { what, example, units, range } => {
                let units = units.join(", ");
                let range = range.as_ref().map(|[low, high]| format!(", from {low} to {high}")).unwrap_or_default();
                let words = format!("{what} with its unit ({units}){range}");
                json!({ "type": "string", "description": words, "examples": [example] })
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
                let each = properties.iter().map(|property| (property.key.to_owned(), property.to_json()));
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

impl Property {
    /// The kind of its value with what is said of it.
    fn to_json(&self) -> Json {
        let mut json = self.schema.to_json();
        let words = self.about.sentences(json["description"].as_str());
        if !words.is_empty() {
            json["description"] = words.into();
        }
        if let Some(usual) = self.about.value() {
            json["default"] = usual;
        }
        json
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
