//! How popular prefixes are, and how many requests find theirs in a cache that keeps the last used ones.

/// Ranks that are taken one by one; those behind in groups that widen.
const SINGLE: f64 = 32.0;
/// Each group's last rank over its first.
const WIDENING: f64 = 1.15;
/// Groups of ranks: enough for 10^13 of them.
const GROUPS: usize = 224;
/// Parts of a cache's fair share that no longer make one stand out.
const EVEN: f64 = 0.005;
/// Steps in which a cache's time is found.
const STEPS: u32 = 200;

/// Prefixes that requests begin with: the `i`-th most popular is asked for with a probability in proportion to `i^-exponent`
/// (Zipf's law), each request by itself.
#[derive(Clone, Copy, Debug)]
pub struct Popularity {
    /// Prefixes of a group, and the probability of each.
    groups: [(f64, f64); GROUPS],
    used: usize,
    count: f64,
}

impl Popularity {
    /// So many prefixes with that exponent; 0 for all alike.
    pub fn zipf(count: f64, exponent: f64) -> Self {
        let mut groups = [(0.0, 0.0); GROUPS];
        let (mut used, mut first, mut all) = (0, 1.0, 0.0);
        while first <= count && used < GROUPS {
            let next = if first < SINGLE { first + 1.0 } else { (first * WIDENING).floor() + 1.0 };
            let last = if used + 1 == GROUPS { count + 1.0 } else { next.min(count + 1.0) };
            let members = last - first;
            let weight = if members > 1.5 { between(first, last, exponent) } else { first.powf(-exponent) };
            groups[used] = (members, weight / members);
            all += weight;
            used += 1;
            first = last;
        }
        for group in &mut groups[..used] {
            group.1 /= all;
        }
        Self { groups, used, count }
    }

    pub(super) fn groups(&self) -> &[(f64, f64)] {
        &self.groups[..self.used]
    }

    /// Share of requests that find their prefix among the `kept` last used ones.
    ///
    /// Che's approximation: a prefix is in the cache if it was asked for within a time, the same for all, in which as many
    /// different ones are asked for as the cache keeps (Che, Tung and Wang, Hierarchical Web Caching Systems, IEEE JSAC 20(7),
    /// 2002; why it is so good: Fricker, Robert and Roberts, arXiv 1202.3974). Time is counted in requests.
    pub fn found(&self, kept: f64) -> f64 {
        if kept >= self.count {
            return 1.0;
        }
        if kept <= 0.0 {
            return 0.0;
        }
        // What is in the cache grows ever slower with the time, so that Newton's steps come from below.
        let mut time = kept;
        for _ in 0..STEPS {
            let (mut held, mut slope) = (0.0, 0.0);
            for (members, probability) in self.groups() {
                let out = (-probability * time).exp();
                held += members * (1.0 - out);
                slope += members * probability * out;
            }
            let step = (kept - held) / slope;
            if !step.is_finite() || step <= time * 1e-9 {
                break;
            }
            time += step;
        }
        self.groups().iter().map(|(members, probability)| members * probability * -(-probability * time).exp_m1()).sum()
    }

    /// Different ones among so many requests.
    pub fn different(&self, requests: f64) -> f64 {
        let of = |(members, probability): &(f64, f64)| members * -(requests * (-probability).ln_1p()).exp_m1();
        self.groups().iter().map(of).sum::<f64>().min(self.count)
    }

    /// Requests among which so many are different; without end where there are no more.
    pub fn requests_of(&self, different: f64) -> f64 {
        if different >= self.count {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (different, different);
        while self.different(high) < different {
            high *= 2.0;
        }
        for _ in 0..STEPS / 4 {
            let middle = f64::midpoint(low, high);
            if self.different(middle) < different { low = middle } else { high = middle }
        }
        low
    }

    /// What the busiest of so many caches has to do over the mean where each prefix goes to a cache of its own: to the one with the
    /// least to do when it is first asked for, which popular ones are before others. One more popular than a cache's fair part
    /// fills as many as it can, and only what is left of it shares one with others.
    ///
    /// That is scheduling by list, longest first (Graham, Bounds on Multiprocessing Timing Anomalies, SIAM J. Appl. Math. 17, 1969):
    /// few prefixes leave the caches as uneven as whole ones are, many come to the mean. Where prefixes fall to caches by a hash of
    /// them, the busiest has more ([`Self::scattered_by_hash`]).
    pub fn busiest(&self, caches: f64) -> f64 {
        if caches <= 1.0 {
            return 1.0;
        }
        // In fair parts of a cache.
        let parts = self.groups().iter().map(|(members, probability)| (*members, probability * caches));
        let filled: f64 = parts.clone().map(|(members, part)| members * part.floor()).sum();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than there are caches")]
        let mut loads = vec![0.0_f64; (caches - filled).max(0.0) as usize];
        let mut most = 1.0_f64;
        for (members, part) in parts {
            let rest = part.fract();
            // None of those that follow sticks out further: they go to where less than the mean is.
            if loads.is_empty() || part < 1.0 && rest <= EVEN.max(most - 1.0) {
                break;
            }
            put(&mut loads, members, rest);
            most = loads.last().map_or(most, |last| most.max(*last));
        }
        most
    }
}

impl Popularity {
    /// Standard deviation of what a cache has to do, over the mean of so many, where each prefix falls to any of them alike, by a hash:
    /// the root of the sum of variances, `p^2 / n (1 - 1 / n)` of a prefix of probability `p`, over `1 / n`.
    pub fn scattered_by_hash(&self, caches: f64) -> f64 {
        let squares: f64 = self.groups().iter().map(|(members, probability)| members * probability * probability).sum();
        (squares * (caches - 1.0).max(0.0)).sqrt()
    }
}

/// Puts so many of one weight where the loads are the least, one after another. Loads are in order, and are so again.
fn put(loads: &mut [f64], members: f64, weight: f64) {
    let mut left = members;
    if weight > 0.0 && left > 1.0 {
        // As water would stand over the least of them. None gets another from there on, and up to one weight below it all get what
        // they take: for each of those that then lie between, at most one is left.
        let (mut below, mut level) = (0.0, f64::INFINITY);
        let mut water = left * weight;
        for load in loads.iter() {
            if *load >= level {
                break;
            }
            (below, water) = (below + 1.0, water + load);
            level = water / below;
        }
        for load in loads.iter_mut() {
            let taken = ((level - weight - *load) / weight).ceil().max(0.0);
            if taken <= 0.0 {
                break;
            }
            (*load, left) = (*load + weight * taken, left - taken);
        }
        loads.sort_unstable_by(f64::total_cmp);
    }
    for load in loads.iter_mut() {
        if left < 1.0 {
            break;
        }
        (*load, left) = (*load + weight, left - 1.0);
    }
    // Two runs, which are merged.
    loads.sort_by(f64::total_cmp);
}

/// Sum of `i^-exponent` over whole numbers from `first` to before `last`, as the integral between their middles.
fn between(first: f64, last: f64, exponent: f64) -> f64 {
    let (low, high) = (first - 0.5, last - 0.5);
    let power = 1.0 - exponent;
    if power.abs() < 1e-9 { (high / low).ln() } else { (high.powf(power) - low.powf(power)) / power }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share found by a cache of last used ones, counted over requests that a fixed sequence of numbers draws.
    fn counted(prefixes: usize, exponent: f64, kept: usize) -> f64 {
        let weights: Vec<f64> = (1..=prefixes).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let mut cumulated = Vec::new();
        weights.iter().fold(0.0, |sum, weight| {
            cumulated.push(sum + weight / all);
            sum + weight / all
        });
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut used = vec![0_usize; prefixes];
        let mut order: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
        let (mut found, warm, requests) = (0, 40_000, 140_000);
        for now in 1..=requests {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let draw = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let prefix = cumulated.partition_point(|sum| *sum < draw).min(prefixes - 1);
            if used[prefix] > 0 {
                order.remove(&used[prefix]);
                found += usize::from(now > warm);
            }
            used[prefix] = now;
            order.insert(now, prefix);
            if order.len() > kept {
                let (_, oldest) = order.pop_first().unwrap();
                used[oldest] = 0;
            }
        }
        found as f64 / (requests - warm) as f64
    }

    #[test]
    fn what_is_found_is_what_a_cache_of_last_used_ones_counts() {
        for (exponent, kept) in [(0.8, 200), (0.8, 1_000), (1.2, 100), (0.0, 500)] {
            let (counted, found) =
                (counted(2_000, exponent, kept), Popularity::zipf(2_000.0, exponent).found(kept as f64));
            assert!((counted - found).abs() < 0.01, "{exponent}, {kept}: {counted} counted, {found} found");
        }
    }

    #[test]
    fn all_alike_are_found_as_far_as_they_are_kept() {
        let alike = Popularity::zipf(1e6, 0.0);
        for kept in [0.0, 1e3, 3e5, 1e6, 1e7] {
            assert!((alike.found(kept) - (kept / 1e6).min(1.0)).abs() < 1e-6, "{kept}");
        }
    }

    #[test]
    fn more_is_found_in_larger_caches_and_where_few_are_popular() {
        let of = |exponent: f64| [1e2, 1e3, 1e5, 1e7].map(|kept| Popularity::zipf(1e9, exponent).found(kept));
        let (flat, steep) = (of(0.6), of(1.1));
        for index in 0..4 {
            assert!(flat[index] < steep[index] && (index == 0 || flat[index] > flat[index - 1]), "{flat:?} {steep:?}");
        }
        let all: f64 = Popularity::zipf(1e9, 0.9).groups().iter().map(|(members, each)| members * each).sum();
        assert!((all - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_hash_scatters_what_caches_have_to_do() {
        let (count, caches, rounds) = (300, 4, 4_000);
        let weights: Vec<f64> = (1..=count).map(|rank| f64::from(rank).powf(-0.9)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(caches);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut squares = 0.0;
        for _ in 0..rounds {
            // What falls to the first of them.
            let mut load = 0.0;
            for weight in &weights {
                // Xorshift (Marsaglia 2003).
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                load += if (state >> 32).is_multiple_of(4) { *weight } else { 0.0 };
            }
            squares += (load / mean - 1.0).powi(2);
        }
        let counted = (squares / f64::from(rounds)).sqrt();
        let found = Popularity::zipf(f64::from(count), 0.9).scattered_by_hash(f64::from(caches));
        assert!((found / counted - 1.0).abs() < 0.05, "{found} and {counted}");
        assert!(Popularity::zipf(9.0, 0.0).scattered_by_hash(1.0).abs() < 1e-12);
    }

    #[test]
    fn weights_go_where_the_least_is_one_after_another() {
        let starts: [&[f64]; 5] =
            [&[0.0; 7], &[0.0, 0.1, 0.25, 0.9], &[0.5], &[0.0, 0.0, 3.0], &[0.2, 0.2, 0.2, 0.21, 0.7, 5.0]];
        for start in starts {
            for (members, weight) in
                [(1.0, 0.3), (2.0, 0.07), (5.0, 0.3), (23.0, 0.11), (40.0, 1.0), (1_000.0, 0.013), (6.4, 0.2)]
            {
                let (mut loads, mut one_by_one) = (start.to_vec(), start.to_vec());
                put(&mut loads, members, weight);
                let mut left = members;
                while left >= 1.0 {
                    *one_by_one.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap() += weight;
                    left -= 1.0;
                }
                one_by_one.sort_by(f64::total_cmp);
                for (load, wanted) in loads.iter().zip(&one_by_one) {
                    assert!(
                        (load - wanted).abs() < 1e-9,
                        "{members} of {weight} on {start:?}: {loads:?} {one_by_one:?}"
                    );
                }
            }
        }
    }

    /// The same prefix by prefix, of few.
    fn one_by_one(count: u32, exponent: f64, caches: u32) -> f64 {
        let weights: Vec<f64> = (1..=count).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let parts: Vec<f64> = weights.iter().map(|weight| weight / all * f64::from(caches)).collect();
        let filled: f64 = parts.iter().map(|part| part.floor()).sum();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some of a few caches")]
        let mut loads = vec![0.0_f64; (f64::from(caches) - filled) as usize];
        for part in parts {
            if let Some(least) = loads.iter_mut().min_by(|a, b| a.total_cmp(b)) {
                *least += part.fract();
            }
        }
        loads.into_iter().fold(1.0, f64::max)
    }

    #[test]
    fn few_prefixes_leave_caches_uneven_and_shared_or_many_ones_do_not() {
        let of = |count: f64, exponent: f64, caches: f64| Popularity::zipf(count, exponent).busiest(caches);
        // One that all share is on all, and so are 2, 4 or 16 on 16.
        for count in [1.0, 2.0, 3.0, 4.0, 5.0, 15.0, 16.0] {
            assert!((of(count, 0.0, 16.0) - 1.0).abs() < 1e-9, "{count}: {}", of(count, 0.0, 16.0));
        }
        // Of 17 alike, two go to one: 2 x 16 / 17. Of 40, three to eight of 16.
        assert!((of(17.0, 0.0, 16.0) - 32.0 / 17.0).abs() < 1e-9, "{}", of(17.0, 0.0, 16.0));
        assert!((of(40.0, 0.0, 16.0) - 3.0 * 16.0 / 40.0).abs() < 1e-9, "{}", of(40.0, 0.0, 16.0));
        assert!((of(1e6, 0.0, 16.0) - 1.0).abs() < 5e-3 && (of(1e12, 0.9, 64.0) - 1.0).abs() < 5e-3);
        assert!((of(1e4, 1.0, 1.0) - 1.0).abs() < 1e-12);
        for (count, exponent, caches) in [(20, 0.7, 6), (31, 1.0, 16), (9, 1.3, 4), (25, 0.4, 24), (30, 0.2, 8)] {
            let (found, one) = (of(f64::from(count), exponent, f64::from(caches)), one_by_one(count, exponent, caches));
            assert!((found - one).abs() < 5e-3, "{count} {exponent} {caches}: {found} {one}");
        }
    }
}
