//! Messages between pairs of accelerators anywhere in a job, as pools hand caches to each other.

use super::Reach;

/// What the network leaves of the cards' rate to messages between pairs that lie anywhere in the job, or at its site where it has
/// several, each with its part of both pools: a request is answered where it was taken in.
///
/// Messages keep to their rail, as all traffic here. What leaves a unit or a pod shares its uplinks with what others send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// Time of a message over that on wires of its own, where only its own senders send at the same time.
    pub lone: f64,
    /// The same where every accelerator sends at its full rate.
    pub all: f64,
    /// Accelerators that share the links which leave least of it; one where each has wires of its own.
    pub sharing: f64,
}

impl Pairs {
    /// Pairs that nothing holds up.
    pub const NEAR: Self = Self { lone: 1.0, all: 1.0, sharing: 1.0 };
}

impl Reach {
    /// Pairs anywhere in the job, of which so many neighbouring accelerators send at the same time.
    pub fn pairs(&self, senders: u32) -> Pairs {
        let total = self.total.min(self.site);
        let others = f64::from(total.saturating_sub(self.domain).max(1));
        let mut pairs = Pairs::NEAR;
        for (tiers, block, oversubscription, slowdown) in [
            (2, self.unit, self.leaf_oversubscription, &self.leaf_slowdown),
            (3, self.pod, self.spine_oversubscription, &self.spine_slowdown),
        ] {
            if self.tiers < tiers {
                continue;
            }
            if total <= block {
                break;
            }
            let leaving = (f64::from(total - block) / others).min(1.0);
            let load = oversubscription * leaving;
            let own = (f64::from(senders) / f64::from(block.max(1))).min(1.0);
            let all = slowdown.at(load);
            if all > pairs.all {
                (pairs.all, pairs.sharing) = (all, f64::from(block.min(total)));
            }
            pairs.lone = pairs.lone.max(slowdown.at(load * own));
        }
        Pairs { lone: pairs.lone / self.torus_share, all: pairs.all / self.torus_share, ..pairs }
    }
}
