//! A table of numbers that a file beside the document holds.

use crate::diagnostics::Span;

/// Columns of numbers, read once; copies of a tree share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The file, as it was named.
    pub name: String,
    /// The columns in the order of the file, all of the same length.
    pub columns: Vec<Column>,
    /// The place of each row.
    pub places: Vec<Span>,
}

/// A column of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// What its head says.
    pub name: String,
    /// The place of its head.
    pub at: Span,
    /// Its numbers.
    pub values: Vec<f64>,
}

impl Rows {
    /// The numbers of a column.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }
}
