//! How latencies scatter where requests come by themselves.

use statrs::distribution::{ContinuousCDF, Normal};

use super::batching::SteadyState;
use crate::units::Seconds;
use crate::workload::{Pair, Requests};

/// Parts that a distribution is brought down to.
const POINTS: usize = 64;
/// Steps in which a quantile is sought, at most.
const STEPS: u32 = 60;
/// Of a time, how near a quantile is found.
const NEAR: f64 = 1e-6;

/// How requests come, and how long they are.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'a> {
    /// Their lengths, and their times where they were recorded.
    pub requests: &'a Requests,
    /// Share of prompts' tokens whose keys and values are at hand.
    pub hit: f64,
    /// Tokens of a prompt that are: a beginning that prompts of all lengths share.
    pub cached: f64,
    /// Standard deviation over the mean of the times between two, over all replicas: 1 where they come at random (Poisson), 0
    /// at even times, more in bursts.
    pub cv: f64,
    /// Whether they come when they did in the trace, its time stretched to the rate.
    pub replay: bool,
}

impl Coming<'_> {
    /// Squared coefficient of variation of the times between requests of one of so many replicas, each request sent to any
    /// of them: a renewal process, thinned.
    pub(super) fn squared_cv(&self, replicas: f64) -> f64 {
        1.0 + (self.cv * self.cv - 1.0) / replicas
    }

    /// Computed and cached tokens of a prompt, where a share is cached.
    pub(super) fn parts(&self, prompt: f64) -> (f64, f64) {
        (prompt * (1.0 - self.hit), self.cached)
    }

    /// Computed and cached tokens of prompts, with their shares.
    fn prompts(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let shares = if self.requests.calls.is_empty() { &self.requests.prompts[..] } else { &[] };
        let of_shares = shares.iter().map(|point| {
            let (new, cached) = self.parts(point.tokens);
            (new, cached, point.weight)
        });
        of_shares.chain(self.requests.calls.iter().map(|call| (call.new, call.cached, call.weight)))
    }
}

/// A latency that half of all requests stay below, 95% of them, and 99%.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// Half.
    pub p50: Seconds,
    /// 95%.
    pub p95: Seconds,
    /// 99%.
    pub p99: Seconds,
}

/// Distributions of the latencies of requests that come at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// To the first token.
    pub first_token: Quantiles,
    /// Between tokens.
    pub token: Quantiles,
    /// From a request to the last token of its answer.
    pub whole: Quantiles,
}

impl Quantiles {
    pub(super) fn of(quantile: impl Fn(f64) -> Seconds) -> Self {
        Self { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }
}

/// A wait that is none for some: else exponential, as that of a queue which is busy for the same share of the time (exact for
/// M/M/k, the heavy-traffic form of G/G/k; Kleinrock, Queueing Systems II, 1976).
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Share that waits.
    pub(super) busy: f64,
    /// Its mean, over those too that do not wait.
    pub(super) mean: Seconds,
}

/// A time that scatters: the shares of requests whose own times lie between two, evenly. Ascending, with shares that add up
/// to one.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Part>);

#[derive(Clone, Copy, Debug)]
struct Part {
    from: Seconds,
    to: Seconds,
    share: f64,
}

impl Times {
    /// Of points in ascending order, each standing for what is nearest to it.
    pub(super) fn new(points: &[(Seconds, f64)]) -> Self {
        let middle = |one: usize, other: usize| match (points.get(one), points.get(other)) {
            (Some(one), Some(other)) => Some((one.0 + other.0) / 2.0),
            _ => None,
        };
        let part = |(index, &(time, share)): (usize, &(Seconds, f64))| {
            let below = index.checked_sub(1).and_then(|below| middle(below, index));
            let above = middle(index, index + 1);
            // The last on each side reaches as far out as in.
            let from = below.unwrap_or_else(|| (time * 2.0).saturating_sub(above.unwrap_or(time)));
            let to = above.unwrap_or_else(|| (time * 2.0).saturating_sub(from));
            Part { from, to, share }
        };
        Self(points.iter().enumerate().map(part).collect())
    }

    /// Of parts that may lie over each other, brought down to a few that follow one another, each as much longer than the one
    /// before.
    fn joined(parts: &[Part]) -> Self {
        let least = parts
            .iter()
            .map(|part| part.from)
            .fold(None, |least: Option<Seconds>, from| Some(least.map_or(from, |least| least.min(from))));
        let most = parts.iter().fold(Seconds::ZERO, |most, part| most.max(part.to));
        let Some(least) = least.filter(|least| parts.len() > 1 && most > *least) else { return Self(parts.to_vec()) };
        // From a thousandth of the longest on, so that what takes no time has a part too.
        let start = least.max(most * 1e-3);
        let ratio = (most / start).powf((POINTS as f64).recip());
        let mut joined = Vec::with_capacity(POINTS + 1);
        let (mut from, mut to, mut before) = (least, start, 0.0);
        for _ in 0..=POINTS {
            let all = parts.iter().map(|part| part.share * part.reached(to)).sum::<f64>();
            if all > before {
                joined.push(Part { from, to, share: all - before });
            }
            (from, to, before) = (to, to * ratio, all.max(before));
        }
        Self(joined)
    }

    /// Share of requests that are through within a time, each after its wait.
    fn within(&self, time: Seconds, wait: Wait) -> f64 {
        self.0.iter().take_while(|part| part.from < time).map(|part| part.share * part.within(time, wait)).sum()
    }

    /// The time within which a share of requests is through: the secant through two that lie to each side (Illinois).
    pub(super) fn quantile(&self, share: f64, wait: Wait) -> Seconds {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Seconds::ZERO };
        let (mut low, mut high) = (first.from, last.to + wait.mean);
        if high <= low {
            return high;
        }
        let off = |time: Seconds| self.within(time, wait) - share;
        let (mut below, mut above) = (-share, off(high));
        while above < 0.0 {
            low = high;
            below = above;
            high = high * 2.0;
            above = off(high);
        }
        let mut last = 0;
        for _ in 0..STEPS {
            if high.saturating_sub(low) <= high * NEAR {
                break;
            }
            let between = low + high.saturating_sub(low) * (below / (below - above)).clamp(0.001, 0.999);
            let found = off(between);
            if found < 0.0 {
                (low, below) = (between, found);
                if last < 0 {
                    above /= 2.0;
                }
                last = -1;
            } else {
                (high, above) = (between, found);
                if last > 0 {
                    below /= 2.0;
                }
                last = 1;
            }
        }
        high
    }
}

impl Part {
    /// Share of what lies here before a time.
    fn reached(&self, time: Seconds) -> f64 {
        if time <= self.from {
            return if time < self.from || self.to > self.from { 0.0 } else { 1.0 };
        }
        let width = self.to.saturating_sub(self.from);
        if width > Seconds::ZERO { (time.saturating_sub(self.from) / width).min(1.0) } else { 1.0 }
    }

    /// Share of what lies here that is through within a time after its wait: the mean of `1 - busy exp(-w busy / mean)` over
    /// the waits that are left.
    fn within(&self, time: Seconds, wait: Wait) -> f64 {
        let width = self.to.saturating_sub(self.from);
        let begun = time.min(self.to);
        let reached = self.reached(time);
        if wait.busy <= 0.0 || wait.mean <= Seconds::ZERO {
            return reached;
        }
        let late = |own: Seconds| (-(time.saturating_sub(own) / wait.mean) * wait.busy).exp();
        if width <= Seconds::ZERO {
            return 1.0 - wait.busy * late(self.from);
        }
        let mean_over_width = wait.mean / wait.busy / width;
        reached - wait.busy * mean_over_width * (late(begun) - late(self.from))
    }
}

/// What latencies scatter from: first tokens without their wait, the wait, and the time of a token by the sequences in decode,
/// whose number scatters with `peakedness` times the variance that it has where requests come at random.
pub(super) struct Sources<'a, F> {
    pub(super) first: &'a dyn Fn(f64, f64) -> Seconds,
    pub(super) wait: Wait,
    pub(super) token: F,
    pub(super) peakedness: f64,
}

/// Distributions of latencies.
///
/// First tokens: the prefill of a prompt whose length scatters, behind a wait. Tokens: the sequences in decode at random times
/// are Poisson where requests come at random (M/G/infinity), and a token takes as long as theirs. Whole requests: first tokens
/// and answers of the lengths that go together.
pub(super) fn distribution<F: Fn(f64) -> Seconds>(
    coming: &Coming<'_>,
    state: &SteadyState,
    sources: &Sources<'_, F>,
) -> Latencies {
    let requests = coming.requests;
    let mut firsts: Vec<(Seconds, f64)> =
        coming.prompts().map(|(new, cached, weight)| ((sources.first)(new, cached), weight)).collect();
    firsts.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal));
    let first = Times::new(&firsts);
    let mut known = (f64::NAN, Seconds::ZERO);
    let of_pair = |pair: &Pair| {
        // Pairs with one prompt follow each other.
        if pair.input.to_bits() != known.0.to_bits() {
            let (new, cached) = coming.parts(pair.input);
            known = (pair.input, (sources.first)(new, cached));
        }
        let [from, to] = pair.output.map(|tokens| known.1 + state.tpot * tokens);
        Part { from, to, share: pair.weight }
    };
    let whole = if requests.calls.is_empty() {
        Times::joined(&requests.pairs.iter().map(of_pair).collect::<Vec<_>>())
    } else {
        // Answers are of one length.
        let answer = state.tpot * requests.answers.first().map_or(0.0, |answer| answer.tokens);
        Times(first.0.iter().map(|part| Part { from: part.from + answer, to: part.to + answer, ..*part }).collect())
    };
    Latencies {
        first_token: Quantiles::of(|share| first.quantile(share, sources.wait)),
        token: tokens(state, sources),
        whole: Quantiles::of(|share| whole.quantile(share, sources.wait)),
    }
}

/// Times between tokens.
pub(super) fn tokens<F: Fn(f64) -> Seconds>(state: &SteadyState, sources: &Sources<'_, F>) -> Quantiles {
    let normal = Normal::standard();
    let deviation = (state.batch * sources.peakedness).sqrt();
    Quantiles::of(|share| (sources.token)(state.batch + normal.inverse_cdf(share) * deviation))
}

/// Variance over mean of the sequences in decode, where the times between requests have that squared coefficient of variation:
/// `1 + (cv^2 - 1) E[min] / E` of two answers (Eckberg 1983 for a renewal process that comes fast against its service).
pub(super) fn peakedness(squared_cv: f64, requests: &Requests) -> f64 {
    (1.0 + (squared_cv - 1.0) * requests.overlap).max(0.0)
}

/// Mean, and squared coefficient of variation, of a time over prompts.
pub(super) fn over_prompts(coming: &Coming<'_>, time: impl Fn(f64, f64) -> Seconds) -> (Seconds, f64) {
    let times = || coming.prompts().map(|(new, cached, weight)| (time(new, cached), weight));
    let mean: Seconds = times().map(|(time, weight)| time * weight).sum();
    let squares: f64 = times().map(|(time, weight)| weight * (time / mean - 1.0).powi(2)).sum();
    (mean, squares)
}

/// The mean wait of a queue with one server that is busy for a share of the time: Pollaczek and Khinchine's where requests come
/// at random, Kingman's where they do not.
pub(super) fn mean_wait(served: Seconds, busy: f64, squared_cvs: [f64; 2]) -> Seconds {
    let [coming, serving] = squared_cvs;
    served * (busy * (coming + serving) / (2.0 * (1.0 - busy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Moments;

    const NONE: Wait = Wait { busy: 0.0, mean: Seconds::ZERO };

    fn lognormal(mean: f64, cv: f64) -> Times {
        let of = Requests::lognormal(Moments { mean, cv }, Moments { mean: 1.0, cv: 0.0 });
        let points: Vec<(Seconds, f64)> =
            of.prompts.iter().map(|point| (Seconds::new(point.tokens), point.weight)).collect();
        Times::new(&points)
    }

    #[test]
    fn waits_of_an_m_m_1_queue_are_exact() {
        // Busy for 0.8 of the time, a mean wait of 4 s: P(W > w) = 0.8 exp(-w / 5). Half wait at most 5 ln 1.6 = 2.350 s,
        // 95% at most 5 ln 16 = 13.863 s; one fifth do not wait.
        let wait = Wait { busy: 0.8, mean: Seconds::new(4.0) };
        let none = Times::new(&[(Seconds::ZERO, 1.0)]);
        assert!((none.quantile(0.5, wait).value() - 2.350).abs() < 1e-3);
        assert!((none.quantile(0.95, wait).value() - 13.863).abs() < 1e-3);
        assert!(none.quantile(0.19, wait).value() < 1e-6);
    }

    #[test]
    fn lengths_scatter_as_a_lognormal() {
        // A mean of 1,000 and a coefficient of variation of 1: sigma^2 = ln 2, the median 1,000 / sqrt 2 = 707.1, P95 is
        // 707.1 exp(1.645 x 0.8326) = 2,781, P99 707.1 exp(2.326 x 0.8326) = 4,906.
        for (share, wanted) in [(0.5, 707.1), (0.95, 2_781.0), (0.99, 4_906.0)] {
            let found = lognormal(1_000.0, 1.0).quantile(share, NONE).value();
            assert!((found / wanted - 1.0).abs() < 0.02, "{found}, not {wanted}");
        }
    }

    #[test]
    fn waits_add_to_what_scatters() {
        // Even times from 0 to 1 s behind an exponential wait of 1 s for all: P(T <= t) = 1 - exp(-t) (e - 1) from 1 s on.
        let points = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95].map(|at| (Seconds::new(at), 0.1));
        let even = Times::new(&points);
        let found = even.quantile(0.95, Wait { busy: 1.0, mean: Seconds::new(1.0) }).value();
        let wanted = ((std::f64::consts::E - 1.0) / 0.05).ln();
        assert!((found / wanted - 1.0).abs() < 1e-4, "{found}, not {wanted}");
    }

    #[test]
    fn parts_over_each_other_are_joined() {
        // Even times from 0 to 2 s, and as many from 1 to 3 s: a quarter is below 1 s, three quarters below 2 s.
        let part = |from: f64, to: f64| Part { from: Seconds::new(from), to: Seconds::new(to), share: 0.5 };
        let joined = Times::joined(&[part(0.0, 2.0), part(1.0, 3.0)]);
        for (share, wanted) in [(0.25, 1.0), (0.75, 2.0), (0.99, 2.96)] {
            let found = joined.quantile(share, NONE).value();
            assert!((found / wanted - 1.0).abs() < 0.02, "{found}, not {wanted}");
        }
    }

    #[test]
    fn replicas_share_bursts() {
        let requests = Requests::lognormal(Moments { mean: 1.0, cv: 0.0 }, Moments { mean: 1.0, cv: 0.0 });
        let coming = Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 3.0, replay: false };
        assert!((coming.squared_cv(1.0) - 9.0).abs() < 1e-12 && (coming.squared_cv(4.0) - 3.0).abs() < 1e-12);
        // Of equal answers, those in decode are all that came within one: they scatter as arrivals do.
        assert!((peakedness(9.0, &requests) - 9.0).abs() < 1e-12);
    }
}
