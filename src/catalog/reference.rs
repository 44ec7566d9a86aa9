//! The name of another part, as a file writes it.

use std::ops::Deref;

use crate::diagnostics::{Sink, Span};
use crate::document::{FromNode, Node, Schema};

/// An id of another catalog file and where it was written, so that a wrong one is reported at its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The id.
    pub id: String,
    /// Where it was written.
    pub at: Span,
}

impl FromNode for Reference {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Self { id: String::from_node(node, path, sink), at: node.at.clone() }
    }

    fn schema() -> Schema {
        Schema::Text
    }
}

impl Deref for Reference {
    type Target = str;

    fn deref(&self) -> &str {
        &self.id
    }
}
