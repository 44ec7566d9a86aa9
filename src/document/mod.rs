//! A parsed text as a tree whose every key and value knows its place, and the reader that turns tables into types.
//!
//! The tree is what overlays, `--set` and `vary` change: a value set from elsewhere keeps the place it came from, so a
//! diagnostic points at what the user typed.

mod merge;
mod reader;
mod rows;
mod scalars;
mod schema;
mod value;
mod write;

pub use merge::SetError;
pub use reader::{FromNode, KnownKeys, Reader};
pub use rows::{Column, Rows};
pub use schema::{About, Property, Schema};
pub use value::{Date, Entry, Node, Table, Value};

/// Declares an enum of words for a closed set: the field's own word in text, a variant in the program.
///
/// `Default` is the first variant; it only ever stands in for a value whose mistake has been reported.
macro_rules! choices {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $(#[$first_doc:meta])* $first:ident = $first_word:literal,
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        $vis enum $name {
            $(#[$first_doc])* #[default] $first,
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in order.
            $vis const ALL: &'static [Self] = &[Self::$first, $(Self::$variant),*];

            /// The word that text uses.
            $vis const fn word(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl $crate::document::FromNode for $name {
            fn from_node(node: &$crate::document::Node, path: &str, sink: &$crate::diagnostics::Sink) -> Self {
                node.one_of(path, Self::ALL, |choice| choice.word(), sink).unwrap_or_default()
            }

            fn schema() -> $crate::document::Schema {
                $crate::document::Schema::Words(Self::ALL.iter().map(|choice| choice.word()).collect())
            }
        }
    };
}
pub(crate) use choices;
