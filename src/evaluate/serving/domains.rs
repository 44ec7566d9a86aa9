//! How many replicas of an engine go on a cluster whose scale-up domains some of them must not leave.

use crate::evaluate::{Infeasible, Occupancy};
use crate::memory::serving::ServingLayout;
use crate::scenario::NodeGroup;

/// Accelerators by scale-up domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domains {
    /// All of them.
    pub(super) accelerators: u64,
    /// Accelerators of a scale-up domain that are at work.
    pub(super) domain: u64,
    /// Whether some may be left over.
    left_over: bool,
}

impl Domains {
    /// Those of nodes of a kind, as many at work in each, each of so many parts; parts count as accelerators.
    ///
    /// # Errors
    /// When nodes would be part filled.
    pub(super) fn new(nodes: NodeGroup<'_>, left_over: bool, parts: u32) -> Result<Self, Infeasible> {
        let each = Occupancy::of(nodes)?.each;
        let parts = u64::from(parts);
        let domain = u64::from(nodes.node.scale_up.domain.min(each).max(1)) * parts;
        Ok(Self { accelerators: u64::from(nodes.accelerators) * parts, domain, left_over })
    }

    /// The same of so many of them.
    pub(super) fn on(&self, accelerators: u64) -> Self {
        Self { accelerators, ..*self }
    }

    /// Ranks that exchange in every layer.
    fn stage(layout: ServingLayout) -> u64 {
        layout.ranks() / u64::from(layout.pipeline)
    }

    /// Stages of that many ranks within domains; of more ranks than a domain has, over whole ones.
    fn stages(&self, ranks: u64) -> u64 {
        if ranks > self.domain {
            return self.accelerators / ranks;
        }
        let full = self.accelerators / self.domain;
        full * (self.domain / ranks) + self.accelerators % self.domain / ranks
    }

    /// Replicas of a layout, no stage of which lies in two domains where it fits in one.
    pub(super) fn whole(&self, layout: ServingLayout) -> u64 {
        self.stages(Self::stage(layout)) / u64::from(layout.pipeline)
    }

    /// Replicas of a layout that has all of these to itself; none where accelerators that must not be are left over.
    pub(super) fn filled(&self, layout: ServingLayout) -> Option<u64> {
        let whole = self.whole(layout);
        let filled = whole * layout.ranks() == self.accelerators;
        (whole > 0 && (self.left_over || filled)).then_some(whole)
    }

    /// Decode replicas beside so many prefill workers; none where accelerators that must not be are left over.
    ///
    /// Decode takes the first domains; workers take what is left of them and the others.
    pub(super) fn beside(&self, decode: ServingLayout, prefill: ServingLayout, workers: u64) -> Option<u64> {
        let left = self.accelerators.checked_sub(workers * prefill.ranks())?;
        let replicas = (left / decode.ranks()).min(self.whole(decode));
        if !self.left_over && left != replicas * decode.ranks() {
            return None;
        }
        (1..=replicas)
            .rev()
            .find(|replicas| self.holds(decode, *replicas, prefill, workers))
            .filter(|found| self.left_over || *found == replicas)
    }

    /// Whether so many decode replicas and prefill workers find a place.
    pub(super) fn holds(&self, decode: ServingLayout, replicas: u64, prefill: ServingLayout, workers: u64) -> bool {
        if replicas > self.whole(decode) {
            return false;
        }
        let (own, other) = (Self::stage(decode), Self::stage(prefill));
        let taken = replicas * u64::from(decode.pipeline);
        let wanted = workers * u64::from(prefill.pipeline);
        // What takes whole domains leaves others whole.
        let beside = |ranks: u64| self.accelerators.checked_sub(ranks).map(|left| self.on(left));
        if own > self.domain {
            return beside(replicas * decode.ranks()).is_some_and(|left| left.stages(other) >= wanted);
        }
        if other > self.domain {
            return beside(workers * prefill.ranks()).is_some_and(|left| left.stages(own) >= taken);
        }
        let in_one = self.domain / own;
        let (full, last) = (self.accelerators / self.domain, self.accelerators % self.domain);
        let filled = taken / in_one;
        // Decode stages in each of the first domains, in one that is partly filled, and none in the others.
        let free = |size: u64, domains: u64, stages: u64| domains * (size.saturating_sub(stages * own) / other);
        if filled >= full {
            return free(self.domain, full, in_one) + free(last, 1, taken - full * in_one) >= wanted;
        }
        let partly = free(self.domain, 1, taken - filled * in_one);
        free(self.domain, filled, in_one) + partly + free(self.domain, full - filled - 1, 0) + free(last, 1, 0)
            >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(tensor: u32, attention_data: u32) -> ServingLayout {
        ServingLayout { tensor, attention_data, ..ServingLayout::SINGLE }
    }

    fn racks(accelerators: u64, left_over: bool) -> Domains {
        Domains { accelerators, domain: 72, left_over }
    }

    #[test]
    fn a_replica_lies_in_one_domain_where_it_fits() {
        // Eight racks of 72 hold eight of 64 ranks, not nine; 72 of 8 ranks; two of 288 over whole racks.
        assert_eq!(racks(576, true).whole(layout(1, 64)), 8);
        assert_eq!(racks(576, true).whole(layout(8, 1)), 72);
        assert_eq!(racks(576, true).whole(layout(4, 72)), 2);
        assert_eq!(racks(100, true).whole(layout(8, 1)), 9 + 3);
    }

    #[test]
    fn workers_take_what_decode_leaves() {
        // 64 of a rack of 72 leave one worker of 8; of 56 more, seven.
        assert_eq!(racks(128, false).beside(layout(1, 64), layout(8, 1), 8), Some(1));
        assert_eq!(racks(72, false).beside(layout(1, 64), layout(8, 1), 1), Some(1));
        assert_eq!(racks(72, false).beside(layout(1, 64), layout(8, 1), 2), None);
        // Workers of 16 fit in no 8 that are left; four in the second rack.
        assert_eq!(racks(144, true).beside(layout(1, 64), layout(16, 1), 4), Some(1));
        assert_eq!(racks(144, false).beside(layout(1, 64), layout(16, 1), 4), None);
        // A replica over two of four racks leaves two, of four workers of 16 each; and the other way round.
        assert_eq!(racks(288, true).beside(layout(1, 144), layout(16, 1), 8), Some(1));
        assert_eq!(racks(288, true).beside(layout(1, 144), layout(16, 1), 9), None);
        assert_eq!(racks(288, true).beside(layout(16, 1), layout(1, 144), 1), Some(8));
        // Workers of 8 beside two replicas of 64: one in each rack.
        assert_eq!(racks(144, false).beside(layout(1, 64), layout(8, 1), 2), Some(2));
    }
}
