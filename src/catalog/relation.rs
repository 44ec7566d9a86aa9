//! The signs of conditions, on entries of the catalog as on rows of a sweep.

use std::cmp::Ordering;

/// How one value stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// As large.
    Equal,
    /// Not as large.
    Unequal,
    /// Smaller.
    Less,
    /// Not larger.
    AtMost,
    /// Larger.
    More,
    /// Not smaller.
    AtLeast,
}

impl Relation {
    /// All signs; longer ones first, so that `>=` is not read as `>`.
    pub const SIGNS: [(&'static str, Self); 7] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("!=", Self::Unequal),
        ("==", Self::Equal),
        ("=", Self::Equal),
        (">", Self::More),
        ("<", Self::Less),
    ];

    /// Whether it asks which of two is more.
    pub const fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::Unequal)
    }

    /// Whether two values that compare so stand in it.
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}
