//! Overlays: later values win, field by field.

use super::value::{Entry, Node, Table, Value};

/// Why a value cannot be set at a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// A part of the path is there and is no table.
    #[error("`{0}` is not a table")]
    NotATable(String),
    /// The path has an empty part.
    #[error("the key is empty")]
    EmptyKey,
}

impl SetError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotATable(key) => format!("`{key}` holds a value of its own: set it whole, or name another key"),
            Self::EmptyKey => "name each part of the key, such as cluster.accelerators".to_owned(),
        }
    }
}

impl Table {
    /// Lays another table over this one: its values win; tables are merged, all else is replaced. A value with its
    /// range is one value, so that a new one does not stand in the old one's range.
    pub fn overlay(&mut self, over: &Self) {
        for entry in &over.entries {
            let Some(lower) = self.entries.iter_mut().find(|lower| lower.key == entry.key) else {
                self.entries.push(entry.clone());
                continue;
            };
            match (&mut lower.node.value, &entry.node.value) {
                (Value::Table(below), Value::Table(above)) if above.get("value").is_none() => {
                    below.overlay(above);
                    // A mistake of the table as a whole shows where it was changed last.
                    lower.node.at = entry.node.at.clone();
                }
                _ => lower.node = entry.node.clone(),
            }
            lower.at = entry.at.clone();
        }
    }

    /// Sets the value at a dotted path, making the tables on the way.
    ///
    /// # Errors
    /// When the path is empty or leads through a value that is no table.
    pub fn set(&mut self, path: &str, node: Node) -> Result<(), SetError> {
        let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        if key.is_empty() {
            return Err(SetError::EmptyKey);
        }
        if self.get(key).is_none() {
            let below = Node { value: Value::Table(Self::default()), at: node.at.clone() };
            self.entries.push(Entry { key: key.to_owned(), at: node.at.clone(), node: below });
        }
        let Some(slot) = self.get_mut(key) else { return Err(SetError::EmptyKey) };
        let Some(rest) = rest else {
            *slot = node;
            return Ok(());
        };
        match &mut slot.value {
            Value::Table(table) => table.set(rest, node),
            _ => Err(SetError::NotATable(key.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(value: i64) -> Node {
        Node { value: Value::Integer(value), ..Node::default() }
    }

    #[test]
    fn later_values_win_field_by_field() {
        let mut below = Table::default();
        below.set("a.b", leaf(1)).unwrap();
        below.set("a.c", leaf(2)).unwrap();
        let mut above = Table::default();
        above.set("a.c", leaf(3)).unwrap();
        below.overlay(&above);
        let root = Node { value: Value::Table(below), ..Node::default() };
        assert_eq!(root.at_path("a.b").map(|n| n.value.clone()), Some(Value::Integer(1)));
        assert_eq!(root.at_path("a.c").map(|n| n.value.clone()), Some(Value::Integer(3)));
    }

    #[test]
    fn a_value_is_replaced_with_its_range() {
        let mut below = Table::default();
        below.set("pue.value", leaf(2)).unwrap();
        below.set("pue.high", leaf(3)).unwrap();
        let mut above = Table::default();
        above.set("pue.value", leaf(5)).unwrap();
        below.overlay(&above);
        let root = Node { value: Value::Table(below), ..Node::default() };
        assert_eq!(root.at_path("pue.high"), None);
    }

    #[test]
    fn a_value_has_nothing_below_it() {
        let mut table = Table::default();
        table.set("a", leaf(1)).unwrap();
        assert_eq!(table.set("a.b", leaf(2)), Err(SetError::NotATable("a".to_owned())));
        assert_eq!(table.set(".b", leaf(2)), Err(SetError::EmptyKey));
    }
}
