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
    /// Writing a prefix, in which nothing else goes to the tier.
    pub store: Seconds,
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
    /// Tiers beyond.
    pub tiers: [CacheTier; MOST_TIERS],
}

/// The links of a group to its tiers, at work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierLinks {
    /// Tiers, the nearest first; unused ones hold nothing.
    pub tiers: [CacheTier; MOST_TIERS],
    /// Computing again what would be loaded.
    pub recompute: Seconds,
    /// Squared coefficient of variation of how long loads take.
    pub scatter: f64,
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
    /// Of those, the share that the links have no time for.
    pub crowded: f64,
    /// Wait for loads, the mean over all requests.
    pub wait: Seconds,
    /// Share of the time in which the links of a group to each tier carry loads.
    pub busy: [f64; MOST_TIERS],
    /// What is written to each tier in a time over what it takes in it.
    pub written: [f64; MOST_TIERS],
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
}

impl TierLinks {
    /// What is loaded and what is computed again, whichever is sooner, where so many requests a second come to a group.
    ///
    /// Loads wait for those before them on the same links: they come at random, so that the mean wait of links that are busy for
    /// a share `u` of the time is `transfer (1 + cv^2) u / (2 (1 - u))` (Pollaczek and Khinchine). As many are loaded as still
    /// come sooner than they are computed; the others are computed. What falls out of a tier is written to
    /// the next: all that is not found before it.
    pub fn reuse(&self, hits: Hits, requests: f64) -> Reused {
        let second = Seconds::new(1.0);
        let mut reused = Reused { hits, share: hits.own, ..Reused::default() };
        let mut before = hits.own;
        for (index, (tier, found)) in self.tiers.iter().zip(hits.tiers).enumerate() {
            reused.written[index] = requests * (1.0 - before) * (tier.store / second);
            before += found;
            if tier.load >= self.recompute || found <= 0.0 {
                reused.recomputed += found;
                continue;
            }
            let asked = requests * found * (tier.transfer / second);
            let queued = tier.transfer * f64::midpoint(1.0, self.scatter);
            let spared = self.recompute - tier.load;
            let carried = (spared / (queued + spared) / asked).min(1.0);
            let busy = asked * carried;
            let queue = queued * (busy / (1.0 - busy));
            reused.busy[index] = busy;
            reused.share += found * carried;
            reused.recomputed += found * (1.0 - carried);
            reused.crowded += found * (1.0 - carried);
            reused.wait += (tier.load + queue) * (found * carried);
        }
        reused
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
            store: Seconds::new(0.005),
        };
        let mut tiers = [CacheTier::default(); MOST_TIERS];
        tiers[0] = tier(400.0, false, 0.01);
        tiers[1] = tier(2_000.0, true, 0.5);
        let popularity = Popularity::zipf(10_000.0, 0.0);
        PrefixCache { popularity, groups: 4.0, own: 100.0, tiers }
    }

    fn reuse(requests: f64) -> Reused {
        let links = TierLinks { tiers: cache().tiers, recompute: Seconds::new(0.2), scatter: 0.0 };
        links.reuse(cache().hits(false), requests)
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
        let reused = reuse(0.0);
        assert!((reused.share - 0.05).abs() < 1e-6 && (reused.recomputed - 0.2).abs() < 1e-6);
        assert!((reused.wait.value() - 0.04 * 0.01).abs() < 1e-9 && reused.crowded == 0.0);
    }

    #[test]
    fn loads_wait_for_each_other_and_links_carry_what_comes_sooner() {
        // 2,000 requests a second with 4% of loads of 10 ms keep the links busy for 80% of the time: an M/D/1 queue waits
        // 10 ms x 0.8 / 0.4 = 20 ms.
        let waited = reuse(2_000.0);
        assert!((waited.busy[0] - 0.8).abs() < 1e-5 && waited.busy[1] == 0.0, "{:?}", waited.busy);
        assert!((waited.wait.value() - 0.04 * 0.03).abs() < 1e-6 && waited.crowded == 0.0);
        // Whatever comes, a load takes no longer than the 200 ms of computing: 10 + 10 u / (2 (1 - u)) = 200 ms at u = 38 / 39.
        let crowded = reuse(1e6);
        assert!((crowded.busy[0] - 38.0 / 39.0).abs() < 1e-9, "{:?}", crowded.busy);
        let each = crowded.wait.value() / (crowded.share - 0.01);
        assert!((each - 0.2).abs() < 1e-6, "{each}");
        assert!((crowded.crowded - (0.04 - (crowded.share - 0.01))).abs() < 1e-6);
        // All but the 1% in the own memory falls to the first tier, and what is not found there to the second.
        assert!((waited.written[0] - 2_000.0 * 0.99 * 0.005).abs() < 1e-3);
        assert!((waited.written[1] - 2_000.0 * 0.95 * 0.005).abs() < 1e-3);
    }
}
