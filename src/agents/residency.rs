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

/// Sessions that wait, and what they leave behind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// For tools and for people.
    pub waits: [Waits; 2],
    /// Sessions whose last wait, for tools, begins: nobody asks for their caches again, which no engine knows, so that they stay
    /// until others push them out.
    pub ended: RequestRate,
    /// What one of those holds, over one that waits on average: it has grown to its end.
    pub grown: f64,
}

impl Waiting {
    /// Share of waits after which a session's cache is still there, where as many are kept as `kept` says: those that were used
    /// last.
    ///
    /// All that began to wait within a time, or for the last time, are kept: the time in which as many do as are kept. A wait
    /// shorter than that finds its cache (the characteristic time of a cache of last used ones: Che, Tung and Wang, IEEE JSAC
    /// 20(7), 2002).
    pub fn resumed(&self, kept: f64) -> f64 {
        let waits = &self.waits;
        // Of those that ended the last wait counts among the others.
        let left = |time: Seconds| {
            (self.ended.over(time) * self.grown - self.ended.over(waits[0].mean) * waits[0].over(time)).max(0.0)
        };
        let held = |time: Seconds| waits.iter().map(|waits| waits.within(time)).sum::<f64>() + left(time);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(begin: f64, mean: f64) -> Waits {
        Waits { begin: RequestRate::new(begin), mean: Seconds::new(mean) }
    }

    fn alone(waits: [Waits; 2]) -> Waiting {
        Waiting { waits, ended: RequestRate::ZERO, grown: 1.0 }
    }

    #[test]
    fn of_waits_that_are_alike_as_many_find_their_cache_as_are_kept() {
        // Two a second for 50 s: 100 wait on average, and 40 kept are 40% of all waits.
        let of = |kept| alone([waits(2.0, 50.0), Waits::default()]).resumed(kept);
        assert!((of(40.0) - 0.4).abs() < 1e-9 && of(0.0) < 1e-9 && (of(100.0) - 1.0).abs() < 1e-9);
        assert!((of(1e9) - 1.0).abs() < 1e-12);
        assert!((alone([waits(2.0, 0.0), Waits::default()]).resumed(0.0) - 1.0).abs() < 1e-12);
    }

    /// Sessions that wait in a cache of last used ones, and stay there after their last wait, drawn one by one.
    fn counted(of: &Waiting, kept: usize) -> f64 {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = || {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let kinds = of.waits;
        let all: f64 = kinds.iter().map(|kind| kind.begin.value()).sum();
        let last = of.ended.value() / kinds[0].begin.value();
        let (mut now, mut found, mut over) = (0.0, 0, 0);
        // What is cached, the last used first: when its wait is over, never of what is done, and whether it is then done.
        let mut open: Vec<(f64, bool)> = Vec::new();
        for wait in 0..60_000 {
            now -= draw().ln() / all;
            let mut place = 0;
            open.retain_mut(|(until, done)| {
                let ends = *until <= now;
                if ends && wait > 20_000 {
                    over += 1;
                    // Whoever was used later is before it in the cache.
                    found += usize::from(place < kept);
                }
                if ends && *done {
                    *until = f64::INFINITY;
                }
                let stays = *until > now && (place < kept || until.is_finite());
                place += usize::from(stays);
                stays
            });
            let tools = draw() * all <= kinds[0].begin.value();
            let kind = &kinds[usize::from(!tools)];
            open.insert(0, (now - draw().ln() * kind.mean.value(), tools && draw() < last));
        }
        found as f64 / f64::from(over)
    }

    #[test]
    fn short_waits_find_their_cache_before_long_ones_as_counted() {
        // Tools of 5 s and people of 120 s, one in ten: 100 + 240 sessions wait, and room for 100 keeps most tools' waits.
        let kinds = alone([waits(20.0, 5.0), waits(2.0, 120.0)]);
        for (kept, room) in [(60, 60.0), (150, 150.0), (250, 250.0)] {
            let (found, counted) = (kinds.resumed(room), counted(&kinds, kept));
            assert!((found - counted).abs() < 0.02, "{kept}: {found} and {counted}");
        }
        assert!(kinds.resumed(100.0) > 0.55);
    }

    #[test]
    fn sessions_that_ended_take_room_from_those_that_wait() {
        // 100 wait, of two a second one for the last time: within 50 s 63% of waits are over and as many of 100 begun, and what
        // ended in them and began in them is 50 without 63% of 50 that count among those.
        let ending = Waiting { ended: RequestRate::new(1.0), ..alone([waits(2.0, 50.0), Waits::default()]) };
        let over = 1.0 - (-1.0_f64).exp();
        let kept = 100.0 * over + 50.0 - 50.0 * over;
        assert!((ending.resumed(kept) - over).abs() < 1e-9);
        // Those that have grown to twice the mean take the room of two.
        assert!((Waiting { grown: 2.0, ..ending }.resumed(kept + 50.0) - over).abs() < 1e-9);
        let mixed = Waiting { ended: RequestRate::new(1.5), ..alone([waits(20.0, 5.0), waits(2.0, 120.0)]) };
        for (kept, room) in [(100, 100.0), (250, 250.0), (500, 500.0)] {
            let (found, counted) = (mixed.resumed(room), counted(&mixed, kept));
            assert!((found - counted).abs() < 0.02, "{kept}: {found} and {counted}");
        }
    }
}
