//! Prefixes kept in the accelerators' own memory and in tiers beyond it.

use super::Popularity;
use crate::units::Seconds;

/// Tiers beyond the accelerators' own memory, at most.
pub const MOST_TIERS: usize = 4;

/// A tier beyond the accelerators' own memory, as one group that attends for requests of its own sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheTier {
    /// Prefixes that it holds: of each group, or of all together where all see the same.
    pub prefixes: f64,
    /// Whether all groups see the same.
    pub shared: bool,
    /// Time from asking for a prefix until it is there.
    pub load: Seconds,
    /// Of that, the time in which nothing else comes over the same links.
    pub transfer: Seconds,
}

/// Caches of prefixes of all groups.
#[derive(Clone, Copy, Debug)]
pub struct PrefixCache {
    /// How popular prefixes are.
    pub popularity: Popularity,
    /// Groups that attend for requests of their own, each with its memory.
    pub groups: f64,
    /// Prefixes in the own memory of each.
    pub own: f64,
    /// Tiers beyond, the nearest first; unused ones hold nothing.
    pub tiers: [CacheTier; MOST_TIERS],
    /// Computing a prefix again.
    pub recompute: Seconds,
}

/// Shares of requests by where they find their prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hits {
    /// In the accelerators' own memory.
    pub own: f64,
    /// In each tier beyond.
    pub tiers: [f64; MOST_TIERS],
}

impl Hits {
    /// All that find it.
    pub fn all(&self) -> f64 {
        self.own + self.tiers.iter().sum::<f64>()
    }
}

/// What becomes of prefixes that are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reused {
    /// Where they are found.
    pub hits: Hits,
    /// Share of requests whose prefix is at hand or is loaded.
    pub share: f64,
    /// Share whose prefix is found and computed again all the same: sooner than it would be loaded, or the links are full.
    pub recomputed: f64,
    /// Wait for loads, the mean over all requests.
    pub wait: Seconds,
}

impl PrefixCache {
    /// Where requests find their prefix. `aware` requests go to the group that has it, so that each prefix is kept once;
    /// balanced ones go anywhere, so that every group keeps what is popular.
    ///
    /// What falls out of one tier goes to the next: the last used ones are in the nearest, so that as many are found down to
    /// a tier as one cache of that size would find.
    pub fn hits(&self, aware: bool) -> Hits {
        let copies = if aware { self.groups } else { 1.0 };
        let mut kept = self.own * copies;
        let mut down_to = self.popularity.found(kept);
        let mut hits = Hits { own: down_to, ..Hits::default() };
        for (tier, share) in self.tiers.iter().zip(&mut hits.tiers).filter(|(tier, _)| tier.prefixes > 0.0) {
            kept += if tier.shared { tier.prefixes } else { tier.prefixes * copies };
            let found = self.popularity.found(kept);
            *share = found - down_to;
            down_to = found;
        }
        hits
    }

    /// What is loaded and what is computed again, whichever is sooner; `loads` is the share of each tier's hits that its
    /// links carry.
    pub fn reuse(&self, hits: Hits, loads: [f64; MOST_TIERS]) -> Reused {
        let mut reused = Reused { hits, share: hits.own, ..Reused::default() };
        for ((tier, found), carried) in self.tiers.iter().zip(hits.tiers).zip(loads) {
            let loaded = if tier.load < self.recompute { found * carried } else { 0.0 };
            reused.share += loaded;
            reused.recomputed += found - loaded;
            reused.wait += tier.load * loaded;
        }
        reused
    }

    /// Loads that come in a time over what the links of a group carry in it, for each tier, at so many requests of a group a
    /// second.
    pub fn busy(&self, hits: Hits, loads: [f64; MOST_TIERS], requests: f64) -> [f64; MOST_TIERS] {
        let mut busy = [0.0; MOST_TIERS];
        for (index, tier) in self.tiers.iter().enumerate().filter(|(_, tier)| tier.load < self.recompute) {
            busy[index] = requests * hits.tiers[index] * loads[index] * (tier.transfer / Seconds::new(1.0));
        }
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> PrefixCache {
        let tier = |prefixes, shared, load: f64| CacheTier {
            prefixes,
            shared,
            load: Seconds::new(load),
            transfer: Seconds::new(load),
        };
        let mut tiers = [CacheTier::default(); MOST_TIERS];
        tiers[0] = tier(400.0, false, 0.01);
        tiers[1] = tier(2_000.0, true, 0.5);
        let popularity = Popularity::zipf(10_000.0, 0.0);
        PrefixCache { popularity, groups: 4.0, own: 100.0, tiers, recompute: Seconds::new(0.2) }
    }

    #[test]
    fn tiers_add_up_as_one_cache_and_awareness_keeps_each_prefix_once() {
        // All alike: 100, 400 more and 2,000 more of 10,000.
        let balanced = cache().hits(false);
        let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-6, "{got} {wanted}");
        near(balanced.own, 0.01);
        near(balanced.tiers[0], 0.04);
        near(balanced.tiers[1], 0.2);
        // Four groups hold four times as many; what all see is there once.
        let aware = cache().hits(true);
        near(aware.own, 0.04);
        near(aware.tiers[0], 0.16);
        near(aware.all(), 0.4);
    }

    #[test]
    fn what_takes_longer_to_load_than_to_compute_is_computed() {
        let reused = cache().reuse(cache().hits(false), [1.0; MOST_TIERS]);
        assert!((reused.share - 0.05).abs() < 1e-6 && (reused.recomputed - 0.2).abs() < 1e-6);
        assert!((reused.wait.value() - 0.04 * 0.01).abs() < 1e-9);
        // 2,000 requests a second with 4% of loads of 10 ms keep the links busy for 80% of the time.
        let busy = cache().busy(cache().hits(false), [1.0; MOST_TIERS], 2_000.0);
        assert!((busy[0] - 0.8).abs() < 1e-6 && busy[1] == 0.0, "{busy:?}");
    }
}
