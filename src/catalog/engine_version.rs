//! Versions of serving engines.

use std::fmt;

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Schema};

/// A version of an engine: "0.22", "1.2.0rc6" or "v0.9.1". What follows the numbers is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineVersion([u32; 3]);

impl EngineVersion {
    /// Reads one: at least a major and a minor number.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        let mut parts = text.trim().trim_start_matches('v').split('.');
        for (place, number) in numbers.iter_mut().enumerate() {
            let Some(part) = parts.next() else {
                return (place == 2).then_some(Self(numbers));
            };
            let digits = part.find(|sign: char| !sign.is_ascii_digit()).map_or(part, |end| &part[..end]);
            *number = digits.parse().ok()?;
        }
        Some(Self(numbers))
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        if patch > 0 { write!(f, "{major}.{minor}.{patch}") } else { write!(f, "{major}.{minor}") }
    }
}

impl FromNode for EngineVersion {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(text) = node.as_str() else {
            node.wrong_type(path, "a version in quotes, such as \"0.22\"", sink);
            return Self::default();
        };
        Self::parse(text).unwrap_or_else(|| {
            let message = format!("`{path}` is \"{text}\", which is no version");
            let hint = "write a major and a minor number, such as \"0.22\" or \"1.2.0rc6\"";
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "this version").hint(hint));
            Self::default()
        })
    }

    fn schema() -> Schema {
        Schema::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_of_their_numbers() {
        let of = |text: &str| EngineVersion::parse(text).unwrap();
        assert!(of("0.9.1") < of("0.22") && of("0.22") <= of("v0.22.0rc1") && of("0.22.1") < of("1.0"));
        assert_eq!(
            (of("1.2.0rc6.post3").to_string(), of("0.22.1").to_string()),
            ("1.2".to_owned(), "0.22.1".to_owned())
        );
        for wrong in ["", "new", "22", "0.", "0.x", "v"] {
            assert_eq!(EngineVersion::parse(wrong), None, "{wrong}");
        }
    }
}
