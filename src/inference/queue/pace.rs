//! How the pace of answers scatters: as many as are in decode share an engine, and their number goes up and down.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erfc;

use super::scattered::Scattered;
use crate::units::Seconds;

/// The least part by which a token's time grows less than the number in decode (as where room is waited for).
const LEAST_SLACK: f64 = 0.05;
/// Standard deviations from which on a limit changes nothing.
const FAR: f64 = 5.0;

/// Skewness up to which quantiles ascend over the deviations below.
const MOST_SKEWED: f64 = 0.7;

/// The scatter of the sequences in decode, and what it does to the time of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Pace {
    /// The number, itself among them, that a token shares its step with on average were there room for all.
    seen: f64,
    /// Standard deviation of that.
    deviation: f64,
    /// Its skewness.
    skewness: f64,
    /// Relative growth of a token's time over that of their number: 0 where they do not slow each other, 1 where a token's time
    /// is all theirs.
    elasticity: f64,
    /// Variance of a token's time over its squared mean, at random times.
    variance: f64,
    /// What room for them leaves of that.
    room: Limit,
}

/// Room for a number, of which more wait outside: it is full for a part of the time, and below that the number is distributed as
/// without a limit (a birth and death process above which nothing changes what is below).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    /// Standard deviations at which it lies, of a normal distribution as skewed as the number.
    at: f64,
    /// Share of that distribution below it.
    below: f64,
    /// Share of the time for which it is full.
    full: f64,
    /// Where that brings the mean to, in standard deviations from that without a limit, and the part of its variance that is left.
    moved: f64,
    left: f64,
}

impl Limit {
    const NONE: Self = Self { at: f64::INFINITY, below: 1.0, full: 0.0, moved: 0.0, left: 1.0 };

    /// So many standard deviations above the mean of a number that is so skewed, full for that share of the time.
    fn at(limit: f64, skewness: f64, full: f64) -> Self {
        let bent = skewness / 6.0;
        // The root of z + bent (z^2 - 1) = limit that ascends.
        let root = (1.0 + 4.0 * bent * (bent + limit)).max(0.0).sqrt();
        let at = 2.0 * (bent + limit) / (1.0 + root);
        if full <= 0.0 || at > FAR {
            return Self::NONE;
        }
        // Moments of z + bent (z^2 - 1) below: integrals of powers of z over the density.
        let density = (-at * at / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let below = (erfc(-at * std::f64::consts::FRAC_1_SQRT_2) / 2.0).max(f64::MIN_POSITIVE);
        let hazard = density / below;
        let first = -hazard * (1.0 + bent * at);
        let second = 1.0 - at * hazard - 2.0 * bent * (at * at + 1.0) * hazard
            + bent * bent * (2.0 - (at.powi(3) + at) * hazard);
        let moved = full * limit + (1.0 - full) * first;
        let square = full * limit * limit + (1.0 - full) * second;
        Self { at, below, full, moved, left: (square - moved * moved).max(0.0) }
    }

    /// The deviations of the normal distribution without a limit that are as many of the number as so many with it.
    fn deviations(&self, deviations: f64) -> f64 {
        if self.full <= 0.0 {
            return deviations;
        }
        let share = erfc(-deviations * std::f64::consts::FRAC_1_SQRT_2) / 2.0 / (1.0 - self.full);
        if share >= 1.0 { self.at } else { Normal::standard().inverse_cdf(share * self.below) }
    }
}

impl Pace {
    /// Of so many in decode on average, each token of which takes as long as among those and its own, whose number scatters with
    /// `peakedness` times the variance of Poisson arrivals where they do not slow each other; there is room for as many as given, for
    /// which requests wait for that share of the time.
    ///
    /// All in decode get tokens at one pace, so that their number is as likely as in processor sharing, whatever the lengths of
    /// answers are (Kelly, Reversibility and Stochastic Networks, 1979): a chance of `n` over that of `n - 1` of the rate times
    /// the time that an answer takes among `n`, over `n`. Where that time grows evenly with `n`, by `b` of the number's growth, the mean
    /// `N` is exactly the rate times the time among `N + 1`; the variance is `N / (1 - b)`, and the skewness
    /// `(1 + b) / sqrt(N (1 - b))` (a negative binomial distribution). A token sees its own sequence beside as many as there are at random times.
    /// Bursts bring `1 / (1 - b)` more for each that they are peaked by.
    ///
    /// Where they fill the room others wait, and the number stays there. Near the most that is served that is so at nearly all times.
    pub(in crate::inference) fn new(
        mean: f64,
        peakedness: f64,
        (room, full): (f64, f64),
        token: impl Fn(f64) -> Seconds,
    ) -> Self {
        if mean <= 0.0 {
            return Self::of_open(0.0, 0.0);
        }
        let poisson = mean * peakedness;
        let seen = (mean + 1.0).min(room);
        // A straight line through two numbers, the lower of which is in reach of any room for caches.
        let step = poisson.sqrt().clamp(mean * 1e-3, mean * 0.5);
        let (least, time) = (token(seen - step), token(seen));
        let elasticity = (time.saturating_sub(least) / time * (mean / step)).clamp(0.0, 1.0);
        let slack = (1.0 - elasticity).max(LEAST_SLACK);
        let variance = poisson / slack;
        let relative = variance * (elasticity / mean).powi(2);
        let deviation = variance.sqrt();
        let skewness = (peakedness * (1.0 + elasticity) / slack / deviation).min(MOST_SKEWED);
        let seen = (mean + 1.0 + (peakedness - 1.0) / slack).max(1.0);
        let room = if deviation > 0.0 { Limit::at((room - seen) / deviation, skewness, full) } else { Limit::NONE };
        Self { seen, deviation, skewness, elasticity, variance: relative, room }
    }

    /// Of a number that is open at all times, of which so many are in decode on average and the others in prefill, each by itself: a
    /// binomial number. What an answer's pace scatters by averages out over it, as prompts are short beside answers.
    pub(in crate::inference) fn of_open(batch: f64, open: f64) -> Self {
        let variance = batch * (1.0 - batch / open.max(batch).max(1.0)).max(0.0);
        Self {
            seen: batch,
            deviation: variance.sqrt(),
            skewness: 0.0,
            elasticity: 0.0,
            variance: 0.0,
            room: Limit::NONE,
        }
    }

    /// The number in decode that a token shares its step with, so many standard deviations of a normal distribution from the
    /// middle.
    pub(in crate::inference) fn number(&self, deviations: f64) -> f64 {
        let deviations = self.room.deviations(deviations);
        // Cornish and Fisher 1938, the first term.
        let skewed = deviations + self.skewness * (deviations * deviations - 1.0) / 6.0;
        self.seen + self.deviation * skewed
    }

    /// The number in decode, itself among them, that a token shares its step with on average.
    pub(in crate::inference) fn seen(&self) -> f64 {
        (self.seen + self.deviation * self.room.moved).max(0.0)
    }

    /// Variance of an answer's mean pace over its square; lengths of answers scatter with that squared coefficient of variation.
    ///
    /// An answer sees the number in decode averaged over its own length. Counted in tokens, those in decode are the arrivals of
    /// the last answer's length, and each of them brings on `b` more (a Hawkes process): for answers of one length the number
    /// is correlated over a part `u` of it as `1 / b - (1 - b) / b exp(b u)`, and the mean over one has
    /// `2/3 + b/4 + b^2/15 + b^3/72 ...` of the variance. Where lengths are exponential, the correlation is `exp(-(1 - b) u)`;
    /// where they scatter otherwise, an exponential with the same integral, `(1 + cv^2) / 2 / (1 - b)`.
    pub(in crate::inference) fn of_answers(&self, scatter: f64) -> f64 {
        let b = self.elasticity;
        let one_length = 2.0 / 3.0 + b * (1.0 / 4.0 + b * (1.0 / 15.0 + b / 72.0));
        // That of the answers which make up most of the time: a mean one times 1 + cv^2.
        let lengths = 2.0 * (1.0 - b).max(LEAST_SLACK);
        let exponential = 2.0 * (lengths - 1.0 + (-lengths).exp()) / (lengths * lengths);
        let mixed = scatter.min(1.0);
        self.variance * self.room.left * (one_length * (1.0 - mixed) + exponential * mixed)
    }

    /// An answer's token, which takes so long on average.
    pub(in crate::inference) fn answers(&self, token: Seconds, scatter: f64) -> Scattered {
        let variance = self.of_answers(scatter);
        Scattered { mean: token, variance, third: self.skewness * variance * variance.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a token that takes 10 ms with 100 in decode, and grows by so much of their growth.
    fn straight(elasticity: f64) -> impl Fn(f64) -> Seconds {
        move |batch| Seconds::new(0.01 * (1.0 - elasticity + elasticity * batch / 100.0))
    }

    #[test]
    fn those_in_decode_scatter_as_in_processor_sharing() {
        for b in [0.0, 0.3, 0.6, 0.8] {
            // P(n) / P(n - 1) = (arrivals in the time of an answer among n) / n.
            let (mut share, mut sums) = (1.0, [1.0, 0.0, 0.0]);
            for number in 1..4_000 {
                let n = f64::from(number);
                share *= 100.0 * (1.0 - b + b * n / 100.0) / n;
                let scaled = [share, share * n, share * n * n];
                sums = [0, 1, 2].map(|index| sums[index] + scaled[index]);
                if share > 1e200 {
                    share /= 1e200;
                    sums = sums.map(|sum| sum / 1e200);
                }
            }
            let mean = sums[1] / sums[0];
            let variance = sums[2] / sums[0] - mean * mean;
            // As many as come in the time of an answer among those and its own.
            let found = 100.0 + b / (1.0 - b);
            assert!((found / mean - 1.0).abs() < 1e-3, "{b}: {found} {mean}");
            let pace = Pace::new(mean, 1.0, (f64::INFINITY, 0.0), straight(b));
            assert!((pace.deviation / variance.sqrt() - 1.0).abs() < 1e-3, "{b}: {pace:?} {mean} {variance}");
            // Little's law.
            let taken = straight(b)(pace.seen()) / Seconds::new(0.01) * 100.0;
            assert!((taken / mean - 1.0).abs() < 1e-6, "{b}: {pace:?} {mean}");
        }
    }

    #[test]
    fn an_answer_sees_the_mean_over_its_length() {
        for b in [0.05, 0.3, 0.6, 0.9] {
            let pace = Pace::new(100.0 + b / (1.0 - b), 1.0, (f64::INFINITY, 0.0), straight(b));
            // The integral of 2 (1 - u) times the correlation over the variance.
            let steps = 10_000;
            let over = |correlation: &dyn Fn(f64) -> f64| {
                let at = |step: i32| (f64::from(step) + 0.5) / f64::from(steps);
                (0..steps).map(|step| 2.0 * (1.0 - at(step)) * correlation(at(step))).sum::<f64>() / f64::from(steps)
            };
            let one_length = over(&|u| 1.0 / b - (1.0 - b) / b * (b * u).exp());
            assert!((pace.of_answers(0.0) / pace.variance / one_length - 1.0).abs() < 3e-3, "{b}: {one_length}");
            let exponential = over(&|u| (-(1.0 - b) * 2.0 * u).exp());
            assert!((pace.of_answers(1.0) / pace.variance / exponential - 1.0).abs() < 1e-3, "{b}: {exponential}");
        }
    }

    #[test]
    fn room_keeps_the_number_and_is_full_at_last() {
        for (b, room, rate) in [(0.0, 110_u32, 100.0), (0.3, 120, 100.0), (0.5, 140, 100.0), (0.5, 110, 104.5)] {
            // The same chances up to the room, beyond which each further one is as likely as the load says.
            let time = straight(b);
            let ends = |n: f64| n * 0.01 / time(n).value();
            let load = rate / ends(room.into());
            let (mut share, mut shares) = (1.0, vec![1.0]);
            for number in 1..=room {
                share *= rate / ends(f64::from(number));
                shares.push(share);
            }
            *shares.last_mut().unwrap() /= 1.0 - load;
            let all: f64 = shares.iter().sum();
            let mean = shares.iter().enumerate().map(|(number, share)| number as f64 * share).sum::<f64>() / all;
            let full = shares.last().unwrap() / all;
            let free = (100.0 * (1.0 - b) + b) * rate / (100.0 - b * rate);
            let pace = Pace::new(free.min(room.into()), 1.0, (room.into(), full), straight(b));
            // By Little's law.
            let taken = time(pace.seen()).value() * 100.0 * rate;
            assert!((taken / mean - 1.0).abs() < 0.01, "{b} {room} {rate}: {taken}, {mean}, {full}");
        }
        // With all places taken at nearly all times, the room's is the pace, of half and of all.
        let full = Pace::new(100.0, 1.0, (105.0, 1.0 - 1e-9), straight(0.5));
        assert!((full.seen() / 105.0 - 1.0).abs() < 1e-6 && (full.number(-2.0) / 105.0 - 1.0).abs() < 1e-6, "{full:?}");
        assert!(full.of_answers(0.0) < 1e-6, "{full:?}");
    }
}
