//! Nodes as they are bought: whole, with those that stand by.

use crate::units::{Fraction, to_integer};

/// Nodes of a kind, as they are bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodesBought {
    /// Nodes at work.
    pub at_work: u32,
    /// Nodes that stand by.
    pub spare: u32,
    /// Accelerators at work in each of the first.
    pub each: u32,
    /// Accelerators of each.
    pub per_node: u32,
}

impl NodesBought {
    /// All of them.
    pub const fn all(&self) -> u32 {
        self.at_work + self.spare
    }

    /// Accelerators of all of them.
    pub fn accelerators(&self) -> u64 {
        u64::from(self.all()) * u64::from(self.per_node)
    }
}

/// Nodes that stand by for so many.
pub(super) fn spare_nodes(nodes: u32, share: Fraction) -> u32 {
    to_integer((f64::from(nodes) * share.get()).ceil())
}

/// Nodes that take prompts in, which memory tiers are bought for: those of prefill, where it has its own.
pub(super) fn taking_in(kinds: &[NodesBought]) -> NodesBought {
    kinds.last().copied().unwrap_or_default()
}
