//! How the pace of answers scatters: as many as are in decode share an engine, and their number goes up and down.

use super::latency::{Part, Times};
use crate::units::Seconds;

/// The least part by which a token's time grows less than the number in decode (as where room is waited for).
const LEAST_SLACK: f64 = 0.05;
/// Shares of a normal distribution in half deviations outwards from its middle, the last of all that is beyond.
const HALF_DEVIATIONS: [f64; 8] =
    [0.191_462_46, 0.149_882_28, 0.091_848_05, 0.044_057_07, 0.016_540_47, 0.004_859_77, 0.001_117_27, 0.000_232_63];

/// Skewness up to which quantiles ascend over the deviations below.
const MOST_SKEWED: f64 = 0.7;

/// Standard deviations of a distribution that is skewed, for those of a normal one (Cornish and Fisher 1938, the first term).
fn skewed(deviations: f64, skewness: f64) -> f64 {
    deviations + skewness * (deviations * deviations - 1.0) / 6.0
}

/// The scatter of the sequences in decode, and what it does to the time of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    batch: f64,
    /// By how many more a token is shared on average than a mean found from steady rates has: itself, and those it holds up.
    beyond: f64,
    /// Standard deviation of their number.
    deviation: f64,
    /// Its skewness.
    skewness: f64,
    /// Relative growth of a token's time over that of their number: 0 where they do not slow each other, 1 where a token's time
    /// is all theirs.
    elasticity: f64,
    /// Variance of a token's time over its squared mean, at random times.
    variance: f64,
}

impl Pace {
    /// Of so many in decode, whose number scatters with `peakedness` times the variance of Poisson arrivals where they do not
    /// slow each other.
    ///
    /// All in decode get tokens at one pace, so that their number is as likely as in processor sharing, whatever the lengths of
    /// answers are (Kelly, Reversibility and Stochastic Networks, 1979): a chance of `n` over that of `n - 1` of the rate times
    /// the time that an answer takes among `n`, over `n`. Near its mean `N`, with a time that grows by `b` of the number's growth,
    /// its variance is `N / (1 - b)`, its skewness `(1 + b) / sqrt(N (1 - b))` (a negative binomial distribution), and a token,
    /// which sees its own sequence beside as many as there are at random times, shares its step with `1 / (1 - b)` more than `N`.
    pub(super) fn new(batch: f64, peakedness: f64, token: impl Fn(f64) -> Seconds) -> Self {
        let poisson = batch * peakedness;
        // A straight line through two numbers, the lower of which is in reach of any room for caches.
        let step = poisson.sqrt().clamp(batch * 1e-3, batch * 0.5);
        let (least, mean) = (token(batch - step), token(batch));
        let elasticity = (mean.saturating_sub(least) / mean * (batch / step)).clamp(0.0, 1.0);
        let slack = (1.0 - elasticity).max(LEAST_SLACK);
        let variance = poisson / slack;
        let relative = if batch > 0.0 { variance * (elasticity / batch).powi(2) } else { 0.0 };
        let deviation = variance.sqrt();
        let skewness = if batch > 0.0 { peakedness * (1.0 + elasticity) / slack / deviation } else { 0.0 };
        let skewness = skewness.min(MOST_SKEWED);
        Self { batch, beyond: peakedness / slack, deviation, skewness, elasticity, variance: relative }
    }

    /// The number in decode that a token shares its step with, so many standard deviations of a normal distribution from the
    /// middle.
    pub(super) fn number(&self, deviations: f64) -> f64 {
        self.batch + self.beyond + self.deviation * skewed(deviations, self.skewness)
    }

    /// Relative to a mean found from steady rates, the mean time of an answer's token.
    pub(super) fn mean(&self) -> f64 {
        if self.batch > 0.0 { 1.0 + self.elasticity * self.beyond / self.batch } else { 1.0 }
    }

    /// Variance of an answer's mean pace over its square; lengths of answers scatter with that squared coefficient of variation.
    ///
    /// An answer sees the number in decode averaged over its own length. Counted in tokens, those in decode are the arrivals of
    /// the last answer's length, and each of them brings on `b` more (a Hawkes process): for answers of one length the number
    /// is correlated over a part `u` of it as `1 / b - (1 - b) / b exp(b u)`, and the mean over one has
    /// `2/3 + b/4 + b^2/15 + b^3/72 ...` of the variance. Where lengths are exponential, the correlation is `exp(-(1 - b) u)`;
    /// where they scatter otherwise, an exponential with the same integral, `(1 + cv^2) / 2 / (1 - b)`.
    pub(super) fn of_answers(&self, scatter: f64) -> f64 {
        let b = self.elasticity;
        let one_length = 2.0 / 3.0 + b * (1.0 / 4.0 + b * (1.0 / 15.0 + b / 72.0));
        // That of the answers which make up most of the time: a mean one times 1 + cv^2.
        let lengths = 2.0 * (1.0 - b).max(LEAST_SLACK);
        let exponential = 2.0 * (lengths - 1.0 + (-lengths).exp()) / (lengths * lengths);
        let mixed = scatter.min(1.0);
        self.variance * (one_length * (1.0 - mixed) + exponential * mixed)
    }
}

impl Times {
    /// These, which scatter by lengths, where they scatter by pace besides, with that standard deviation over their mean: the
    /// larger scatter takes in the variance of the smaller and keeps its form. That of the pace is a skewed normal one, up to
    /// `most`.
    pub(super) fn scatter(&mut self, mean: Seconds, (deviation, pace): (f64, &Pace), most: Seconds) {
        let added = deviation * deviation;
        let middle = self.mean();
        if added <= 0.0 || middle <= Seconds::ZERO {
            return;
        }
        let own: f64 = self.0.iter().map(|part| part.share * part.square_about(middle)).sum();
        if own >= added {
            let wider = (1.0 + added / own).sqrt() * (mean / middle);
            let moved = |time: Seconds| {
                (mean + time.saturating_sub(middle) * wider).saturating_sub(middle.saturating_sub(time) * wider)
            };
            for part in &mut self.0 {
                (part.from, part.to) = (moved(part.from), moved(part.to));
            }
            return;
        }
        let all = (own + added).sqrt();
        let at = |halves: f64| {
            let off = skewed(halves / 2.0, pace.skewness) * all;
            (mean * (1.0 + off).max(0.0)).min(most.max(mean))
        };
        self.0.clear();
        let mut halves = -(HALF_DEVIATIONS.len() as f64);
        for share in HALF_DEVIATIONS.iter().rev().chain(&HALF_DEVIATIONS) {
            self.0.push(Part { from: at(halves), to: at(halves + 1.0), share: *share });
            halves += 1.0;
        }
    }
}

impl Part {
    /// Mean square of what lies here about a time, over that time squared.
    fn square_about(&self, mean: Seconds) -> f64 {
        let [from, to] = [self.from, self.to].map(|time| time / mean - 1.0);
        (from * from + from * to + to * to) / 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::latency::Wait;

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
            let pace = Pace::new(100.0, 1.0, straight(b));
            assert!((pace.deviation / variance.sqrt() - 1.0).abs() < 0.03, "{b}: {pace:?} {mean} {variance}");
            // Little's law: the mean number is to that of steady rates as the times of answers are.
            assert!((pace.mean() * 100.0 / mean - 1.0).abs() < 1e-3, "{b}: {pace:?} {mean}");
        }
    }

    #[test]
    fn an_answer_sees_the_mean_over_its_length() {
        for b in [0.05, 0.3, 0.6, 0.9] {
            let pace = Pace::new(100.0, 1.0, straight(b));
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
    fn scatter_adds_to_scatter() {
        let part = |from: f64, to: f64| Part { from: Seconds::new(from), to: Seconds::new(to), share: 1.0 };
        let far = Seconds::new(1e9);
        // Even between 8 and 12, a variance of 4/3, with 5% of 10 besides: 0.25 more.
        let mut times = Times(vec![part(8.0, 12.0)]);
        let pace = Pace { skewness: 0.0, ..Pace::new(100.0, 1.0, straight(0.5)) };
        let ten = Seconds::new(10.0);
        times.scatter(ten, (0.05, &pace), far);
        let half = 2.0 * (1.0_f64 + 0.25 / (4.0 / 3.0)).sqrt();
        assert!((times.0[0].from.value() - (10.0 - half)).abs() < 1e-9, "{times:?}");
        // One time: normal, with its 95% at 1.645 deviations, and none above the most.
        for (most, wanted) in [(far, 11.645), (Seconds::new(11.0), 11.0)] {
            let mut times = Times(vec![part(10.0, 10.0)]);
            times.scatter(ten, (0.1, &pace), most);
            let found = times.behind(Wait::NONE, &mut Vec::new()).quantile(0.95).value();
            assert!((found / wanted - 1.0).abs() < 0.006, "{found}, not {wanted}");
        }
        assert!((HALF_DEVIATIONS.iter().sum::<f64>() - 0.5).abs() < 1e-7);
    }
}
