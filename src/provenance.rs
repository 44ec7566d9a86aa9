//! Where a figure comes from and how far it may be trusted.

use crate::document::{Reader, choices};

choices! {
    /// How a figure was come by, best first.
    pub enum Basis {
        /// Read in the maker's own document.
        Datasheet = "datasheet",
        /// An offer or a list price that a seller stated.
        Quote = "quote",
        /// Measured, by its publisher or by us.
        Measured = "measured",
        /// Read in a text that restates one of the above.
        Secondary = "secondary",
        /// Computed from sourced figures.
        Derived = "derived",
        /// A judgement; visible wherever it is used.
        Assumed = "assumed",
    }
}

/// The weaker of two bases: a result is no better than its weakest input.
pub fn weakest(a: Basis, b: Basis) -> Basis {
    a.max(b)
}

/// A document and the fields that it stands behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Dotted names of the fields, each covering what lies below it.
    pub fields: Vec<String>,
    /// How the figures were come by.
    pub basis: Basis,
    /// Title of the document, with table, page or section.
    pub title: String,
    /// Where it is.
    pub url: Option<String>,
    /// The day it was read, or for a figure derived or assumed the day of that reckoning, `2026-11-29`.
    pub accessed: String,
    /// What a reader must know to use the figure.
    pub note: Option<String>,
}

impl Source {
    /// Reads one `[[source]]` entry.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            fields: reader.get("fields"),
            basis: reader.get("basis"),
            title: reader.get("title"),
            url: reader.optional("url"),
            accessed: reader.get::<crate::document::Date>("accessed").0,
            note: reader.optional("note"),
        }
    }

    /// Whether the source stands behind the field of that dotted name.
    pub fn covers(&self, field: &str) -> bool {
        self.fields.iter().any(|own| covers(own, field))
    }

    /// Of several sources the one that names a field most closely.
    pub fn closest<'a>(sources: &'a [Self], field: &str) -> Option<&'a Self> {
        let closeness = |source: &&Self| source.fields.iter().filter(|own| covers(own, field)).map(String::len).max();
        sources.iter().filter(|source| source.covers(field)).max_by_key(closeness)
    }
}

/// Whether a named field is the other, or a table that it lies in.
pub fn covers(own: &str, field: &str) -> bool {
    field == own || field.strip_prefix(own).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_no_better_than_its_weakest_input() {
        assert_eq!(weakest(Basis::Datasheet, Basis::Assumed), Basis::Assumed);
        assert_eq!(weakest(Basis::Quote, Basis::Measured), Basis::Measured);
    }

    #[test]
    fn a_source_covers_what_lies_below_its_fields() {
        let source = Source { fields: vec!["peak_dense".to_owned()], ..Source::default() };
        assert!(source.covers("peak_dense.bf16"));
        assert!(!source.covers("peak_dense_sparse"));
    }
}
