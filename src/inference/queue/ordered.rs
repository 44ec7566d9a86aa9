//! Numbers that heaps order.

use std::cmp::Ordering;

/// A number in the total order of floating point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Ordered(pub(in crate::inference) f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
