//! Sessions that wait for tools and people: which of them still have their caches when they go on.

use crate::units::{RequestRate, Seconds};

/// Halvings in which a time is found.
const HALVINGS: u32 = 100;

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// How many begin.
    pub begin: RequestRate,
    /// How long they last on average; they scatter exponentially.
    pub mean: Seconds,
}

impl Waits {
    /// Share that is over within a time.
    fn over(&self, time: Seconds) -> f64 {
        if self.mean > Seconds::ZERO { -(-(time / self.mean)).exp_m1() } else { 1.0 }
    }

    /// Sessions that wait, and do so for no longer than a time (Little's law).
    fn within(&self, time: Seconds) -> f64 {
        self.begin.over(self.mean) * self.over(time)
    }
}

/// Share of waits after which a session's cache is still there, where as many are kept as `kept` says: those whose waits began
/// last.
///
/// All that wait for no longer than a time are kept, the time in which as many sessions wait as are kept: a wait shorter than
/// that finds its cache (the characteristic time of a cache of last used ones: Che, Tung and Wang, IEEE JSAC 20(7), 2002).
pub fn resumed(waits: &[Waits], kept: f64) -> f64 {
    let held = |time: Seconds| waits.iter().map(|waits| waits.within(time)).sum::<f64>();
    let begin: RequestRate = waits.iter().map(|waits| waits.begin).sum();
    let longest = waits.iter().map(|waits| waits.mean).fold(Seconds::ZERO, Seconds::max);
    if begin <= RequestRate::ZERO || longest <= Seconds::ZERO {
        return 1.0;
    }
    // An exponential wait is over within a hundred of its means, but for rounding.
    let (mut low, mut high) = (Seconds::ZERO, longest * 100.0);
    if kept >= held(high) {
        return 1.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if held(middle) < kept { low = middle } else { high = middle }
    }
    waits.iter().map(|waits| waits.begin / begin * waits.over(low)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(begin: f64, mean: f64) -> Waits {
        Waits { begin: RequestRate::new(begin), mean: Seconds::new(mean) }
    }

    #[test]
    fn of_waits_that_are_alike_as_many_find_their_cache_as_are_kept() {
        // Two a second for 50 s: 100 wait on average, and 40 kept are 40% of all waits.
        let of = |kept| resumed(&[waits(2.0, 50.0)], kept);
        assert!((of(40.0) - 0.4).abs() < 1e-9 && of(0.0) < 1e-9 && (of(100.0) - 1.0).abs() < 1e-9);
        assert!((of(1e9) - 1.0).abs() < 1e-12);
        assert!((resumed(&[waits(2.0, 0.0)], 0.0) - 1.0).abs() < 1e-12);
    }

    /// Sessions that wait in a cache of last used ones, drawn one by one.
    fn counted(kinds: &[Waits], kept: usize) -> f64 {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = || {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let all: f64 = kinds.iter().map(|kind| kind.begin.value()).sum();
        let (mut now, mut found, mut over) = (0.0, 0, 0);
        // Waits under way, the last to begin first: when each is over.
        let mut open: Vec<f64> = Vec::new();
        for wait in 0..60_000 {
            now -= draw().ln() / all;
            let mut place = 0;
            open.retain(|until| {
                let ends = *until <= now;
                if ends && wait > 20_000 {
                    over += 1;
                    // Whoever waits for a shorter time is before it in the cache.
                    found += usize::from(place < kept);
                }
                place += usize::from(!ends);
                !ends
            });
            let mut which = draw() * all;
            let kind = kinds.iter().find(|kind| {
                which -= kind.begin.value();
                which <= 0.0
            });
            open.insert(0, now - draw().ln() * kind.unwrap_or(&kinds[0]).mean.value());
        }
        found as f64 / f64::from(over)
    }

    #[test]
    fn short_waits_find_their_cache_before_long_ones_as_counted() {
        // Tools of 5 s and people of 120 s, one in ten: 100 + 240 sessions wait, and room for 100 keeps most tools' waits.
        let kinds = [waits(20.0, 5.0), waits(2.0, 120.0)];
        for (kept, room) in [(60, 60.0), (150, 150.0), (250, 250.0)] {
            let (found, counted) = (resumed(&kinds, room), counted(&kinds, kept));
            assert!((found - counted).abs() < 0.02, "{kept}: {found} and {counted}");
        }
        assert!(resumed(&kinds, 100.0) > 0.55);
    }
}
