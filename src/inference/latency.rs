//! How latencies scatter where requests come by themselves.

use statrs::distribution::{ContinuousCDF, Normal};

use super::batching::SteadyState;
use super::pace::Pace;
use super::scratch::{Scratch, Timed};
use crate::units::{RequestRate, Seconds};
use crate::workload::Requests;

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
    pub(super) fn prompts(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let shares = if self.requests.calls.is_empty() { &self.requests.prompts[..] } else { &[] };
        let of_shares = shares.iter().map(|point| {
            let (new, cached) = self.parts(point.tokens);
            (new, cached, point.weight)
        });
        of_shares.chain(self.requests.calls.iter().map(|call| (call.new, call.cached, call.weight)))
    }

    /// Tokens of the prompts that stand in pairs with answers, those of one length, which follow each other, once.
    pub(super) fn prompts_of_pairs(&self) -> impl Iterator<Item = f64> {
        let pairs = if self.requests.calls.is_empty() { &self.requests.pairs[..] } else { &[] };
        pairs.chunk_by(|one, other| one.input.to_bits() == other.input.to_bits()).map(|pairs| pairs[0].input)
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    /// Share that waits.
    pub(super) busy: f64,
    /// Its mean, over those too that do not wait.
    pub(super) mean: Seconds,
}

impl Wait {
    /// None.
    pub(super) const NONE: Self = Self { busy: 0.0, mean: Seconds::ZERO };

    /// This and another, each by itself, as one wait with the mean of both and, as far as one of its kind can, their scatter.
    pub(super) fn and(self, other: Self) -> Self {
        let mean = self.mean + other.mean;
        if other.busy <= 0.0 || mean <= Seconds::ZERO {
            return self;
        }
        // Over the squared mean: an exponential wait that a share meets has two over that share.
        let squares = |wait: Self| {
            if wait.busy > 0.0 { 2.0 / wait.busy * (wait.mean / mean).powi(2) } else { 0.0 }
        };
        let square = squares(self) + squares(other) + 2.0 * (self.mean / mean) * (other.mean / mean);
        Self { busy: (2.0 / square).min(1.0), mean }
    }
}

/// A time that scatters: the shares of requests whose own times lie between two, evenly. Ascending, with shares that add up
/// to one.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(pub(super) Vec<Part>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: Seconds,
    pub(super) to: Seconds,
    pub(super) share: f64,
}

impl Times {
    /// Of points in ascending order, each standing for what is nearest to it.
    fn fill(&mut self, points: &[(Seconds, f64)]) {
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
        self.0.clear();
        self.0.extend(points.iter().enumerate().map(part));
    }

    /// Of parts that may lie over each other, brought down to a few that follow one another, each as much longer than the one
    /// before.
    fn join(&mut self, parts: &[Part]) {
        let least = parts
            .iter()
            .map(|part| part.from)
            .fold(None, |least: Option<Seconds>, from| Some(least.map_or(from, |least| least.min(from))));
        let most = parts.iter().fold(Seconds::ZERO, |most, part| most.max(part.to));
        self.0.clear();
        let Some(least) = least.filter(|least| parts.len() > 1 && most > *least) else {
            return self.0.extend_from_slice(parts);
        };
        // From a thousandth of the longest on, so that what takes no time has a part too.
        let start = least.max(most * 1e-3);
        let ratio = (most / start).powf((POINTS as f64).recip());
        let mut ends = [start; POINTS + 1];
        for index in 1..ends.len() {
            ends[index] = ends[index - 1] * ratio;
        }
        let (mut from, mut before, mut whole) = (least, 0.0, 0.0);
        for (end, reached) in ends.iter().zip(&reached(parts, &ends)) {
            whole += reached.whole;
            let all = whole + reached.part;
            if all > before {
                self.0.push(Part { from, to: *end, share: all - before });
            }
            (from, before) = (*end, all.max(before));
        }
    }

    /// Their mean.
    pub(super) fn mean(&self) -> Seconds {
        self.0.iter().map(|part| (part.from + part.to) / 2.0 * part.share).sum()
    }

    /// The same behind a wait, with room for what is worked out on the way.
    pub(super) fn behind<'a>(&'a self, wait: Wait, ends: &'a mut Vec<End>) -> Waited<'a> {
        let busy = if wait.mean > Seconds::ZERO { wait.busy } else { 0.0 };
        let scale = if busy > 0.0 { wait.mean / busy } else { Seconds::ZERO };
        ends.clear();
        let mut end = End::default();
        for part in &self.0 {
            end = End { time: part.to, begun: end.begun + part.share, late: part.late(part.to, &end, scale) };
            ends.push(end);
        }
        Waited { parts: &self.0, ends, busy, scale }
    }
}

/// What has come by the end of a step.
#[derive(Clone, Copy, Default)]
struct Reached {
    /// Of parts that this step is the first to hold whole.
    whole: f64,
    /// Of parts that reach beyond it.
    part: f64,
}

/// What each of some times in ascending order, is the end of. Parts that follow each other, as answers to one prompt do, are
/// found without a search.
fn reached(parts: &[Part], ends: &[Seconds; POINTS + 1]) -> [Reached; POINTS + 1] {
    let mut all = [Reached::default(); POINTS + 1];
    let mut at = 0;
    for part in parts {
        // The first end after the part's beginning.
        if at > 0 && ends[at - 1] > part.from {
            at = ends.partition_point(|end| *end <= part.from);
        }
        while ends.get(at).is_some_and(|end| *end <= part.from) {
            at += 1;
        }
        let width = part.to.saturating_sub(part.from);
        let begin = if width > Seconds::ZERO { at } else { ends.partition_point(|end| *end < part.to) };
        let (share, rate) = (part.share, RequestRate::of(part.share, width));
        let mut rest = all[begin..].iter_mut().zip(&ends[begin..]);
        let whole = rest.find_map(|(reached, end)| {
            if *end >= part.to {
                return Some(reached);
            }
            reached.part += rate.over(end.saturating_sub(part.from));
            None
        });
        if let Some(reached) = whole {
            reached.whole += share;
        }
    }
    all
}

/// Room for what distributions are worked out from.
#[derive(Clone, Debug, Default)]
pub(super) struct DistributionRoom {
    points: Vec<(Seconds, f64)>,
    parts: Vec<Part>,
    first: Times,
    whole: Times,
    ends: Vec<End>,
}

/// Times behind a wait that is exponential for the share of requests that meet a busy server: of a request that began so long
/// ago, `busy exp(-ago / scale)` still wait.
pub(super) struct Waited<'a> {
    parts: &'a [Part],
    /// The end of each part.
    ends: &'a [End],
    busy: f64,
    scale: Seconds,
}

/// What there is up to a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    time: Seconds,
    /// Share of requests whose own times are less.
    begun: f64,
    /// The sum of `exp(-ago / scale)` over them.
    late: f64,
}

impl Waited<'_> {
    /// The time within which a share of requests is through: in the part in which it is reached, by the secant through two
    /// times that lie to each side (Illinois).
    pub(super) fn quantile(&self, share: f64) -> Seconds {
        let through = |end: &End| end.begun - self.busy * end.late;
        let Some(index) = self.ends.iter().position(|end| through(end) >= share) else {
            // Beyond all of them only the wait is left.
            let Some(last) = self.ends.last() else { return Seconds::ZERO };
            let ratio = self.busy * last.late / (last.begun - share);
            return last.time + if ratio > 1.0 { self.scale * ratio.ln() } else { Seconds::ZERO };
        };
        let (Some(part), Some(end)) = (self.parts.get(index), self.ends.get(index)) else { return Seconds::ZERO };
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let off = |time: Seconds| {
            let begun = before.begun + part.share * part.reached(time);
            begun - self.busy * part.late(time, &before, self.scale) - share
        };
        let start = if index == 0 { part.from } else { before.time };
        let (mut low, mut high) = (start, end.time);
        let (mut below, mut above) = (off(low).min(0.0), through(end) - share);
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

    /// The sum of `exp(-ago / scale)` at a time over what was `before` and what lies here up to then.
    fn late(&self, time: Seconds, before: &End, scale: Seconds) -> f64 {
        if scale <= Seconds::ZERO {
            return 0.0;
        }
        let left = |since: Seconds| (-(time.saturating_sub(since) / scale)).exp();
        // Most parts begin where the one before ends, and are asked about at their own end: exponentials are dear.
        let known = (before.late > 0.0).then(|| left(before.time));
        let earlier = known.map_or(0.0, |left| before.late * left);
        if time < self.from {
            return earlier;
        }
        let of_first = known.filter(|_| before.time == self.from).unwrap_or_else(|| left(self.from));
        let width = self.to.saturating_sub(self.from);
        if width <= Seconds::ZERO {
            return earlier + self.share * of_first;
        }
        let of_last = if time > self.to { left(self.to) } else { 1.0 };
        earlier + self.share * (scale / width) * (of_last - of_first)
    }
}

/// What latencies scatter from: first tokens without their wait, by computed tokens and prefill; the wait; and the time of a
/// token by the sequences in decode, whose number scatters with `peakedness` times the variance that it has where requests come
/// at random.
pub(super) struct Sources<'a, F> {
    pub(super) first: &'a dyn Fn(f64, Seconds) -> Seconds,
    pub(super) wait: Wait,
    pub(super) token: F,
    pub(super) peakedness: f64,
}

/// Distributions of latencies.
///
/// First tokens: the prefill of a prompt whose length scatters, behind a wait. Tokens: the sequences in decode at random times
/// scatter as those in processor sharing, and a token takes as long as theirs. Whole requests: first tokens and answers of the
/// lengths that go together, at a pace that scatters as far as the number in decode does over an answer.
pub(super) fn distribution<F: Fn(f64) -> Seconds>(
    coming: &Coming<'_>,
    state: &SteadyState,
    sources: &Sources<'_, F>,
    scratch: &mut Scratch,
) -> Latencies {
    let requests = coming.requests;
    let (prompts, of_pairs, DistributionRoom { points, parts, first, whole, ends }) = scratch.parts();
    let to_first = |timed: &Timed| (sources.first)(timed.new, timed.alone);
    points.clear();
    points.extend(prompts.iter().map(|timed| (to_first(timed), timed.weight)));
    points.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal));
    first.fill(points);
    parts.clear();
    if requests.calls.is_empty() {
        let mut of_pairs = of_pairs.iter();
        let mut known = (f64::NAN, Seconds::ZERO);
        for pair in &requests.pairs {
            // Pairs with one prompt follow each other.
            if pair.input.to_bits() != known.0.to_bits() {
                known = (pair.input, of_pairs.next().map_or(Seconds::ZERO, to_first));
            }
            let [from, to] = pair.output.map(|tokens| known.1 + state.tpot * tokens);
            parts.push(Part { from, to, share: pair.weight });
        }
        whole.join(parts);
    } else {
        // Answers are of one length.
        let answer = state.tpot * requests.answers.first().map_or(0.0, |answer| answer.tokens);
        whole.0.clear();
        whole.0.extend(first.0.iter().map(|part| Part { from: part.from + answer, to: part.to + answer, ..*part }));
    }
    let pace = Pace::new(state.batch, sources.peakedness, &sources.token);
    let output: f64 = requests.answers.iter().map(|answer| answer.tokens * answer.weight).sum();
    let (answer, slowest) = (state.tpot * output, (sources.token)(f64::MAX) * output);
    let to_first = first.mean();
    let to_last = to_first + answer * pace.mean();
    let deviation = pace.of_answers(requests.answer_scatter()).sqrt() * (answer / to_last);
    whole.scatter(to_last, (deviation, &pace), to_first + slowest);
    let mut behind = |times: &Times| {
        let waited = times.behind(sources.wait, ends);
        Quantiles::of(|share| waited.quantile(share))
    };
    Latencies { first_token: behind(first), token: tokens_at(&pace, sources), whole: behind(whole) }
}

/// Times between tokens.
pub(super) fn tokens<F: Fn(f64) -> Seconds>(state: &SteadyState, sources: &Sources<'_, F>) -> Quantiles {
    tokens_at(&Pace::new(state.batch, sources.peakedness, &sources.token), sources)
}

fn tokens_at<F: Fn(f64) -> Seconds>(pace: &Pace, sources: &Sources<'_, F>) -> Quantiles {
    let normal = Normal::standard();
    Quantiles::of(|share| (sources.token)(pace.number(normal.inverse_cdf(share))))
}

/// Variance over mean of the sequences in decode, where the times between requests have that squared coefficient of variation:
/// `1 + (cv^2 - 1) E[min] / E` of two answers (Eckberg 1983 for a renewal process that comes fast against its service).
pub(super) fn peakedness(squared_cv: f64, requests: &Requests) -> f64 {
    (1.0 + (squared_cv - 1.0) * requests.overlap).max(0.0)
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

    const NONE: Wait = Wait::NONE;

    fn times(points: &[(Seconds, f64)]) -> Times {
        let mut times = Times::default();
        times.fill(points);
        times
    }

    fn quantile(times: &Times, wait: Wait, share: f64) -> f64 {
        times.behind(wait, &mut Vec::new()).quantile(share).value()
    }

    fn lognormal(mean: f64, cv: f64) -> Times {
        let of = Requests::lognormal(Moments { mean, cv }, Moments { mean: 1.0, cv: 0.0 });
        let points: Vec<(Seconds, f64)> =
            of.prompts.iter().map(|point| (Seconds::new(point.tokens), point.weight)).collect();
        times(&points)
    }

    #[test]
    fn waits_of_an_m_m_1_queue_are_exact() {
        // Busy for 0.8 of the time, a mean wait of 4 s: P(W > w) = 0.8 exp(-w / 5). Half wait at most 5 ln 1.6 = 2.350 s,
        // 95% at most 5 ln 16 = 13.863 s; one fifth do not wait.
        let wait = Wait { busy: 0.8, mean: Seconds::new(4.0) };
        let none = times(&[(Seconds::ZERO, 1.0)]);
        assert!((quantile(&none, wait, 0.5) - 2.350).abs() < 1e-3);
        assert!((quantile(&none, wait, 0.95) - 13.863).abs() < 1e-3);
        assert!(quantile(&none, wait, 0.19) < 1e-6);
    }

    #[test]
    fn lengths_scatter_as_a_lognormal() {
        // A mean of 1,000 and a coefficient of variation of 1: sigma^2 = ln 2, the median 1,000 / sqrt 2 = 707.1, P95 is
        // 707.1 exp(1.645 x 0.8326) = 2,781, P99 707.1 exp(2.326 x 0.8326) = 4,906.
        for (share, wanted) in [(0.5, 707.1), (0.95, 2_781.0), (0.99, 4_906.0)] {
            let found = quantile(&lognormal(1_000.0, 1.0), NONE, share);
            assert!((found / wanted - 1.0).abs() < 0.02, "{found}, not {wanted}");
        }
    }

    #[test]
    fn waits_add_to_what_scatters() {
        // Even times from 0 to 1 s behind an exponential wait of 1 s for all: P(T <= t) = 1 - exp(-t) (e - 1) from 1 s on.
        let points = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95].map(|at| (Seconds::new(at), 0.1));
        let found = quantile(&times(&points), Wait { busy: 1.0, mean: Seconds::new(1.0) }, 0.95);
        let wanted = ((std::f64::consts::E - 1.0) / 0.05).ln();
        assert!((found / wanted - 1.0).abs() < 1e-4, "{found}, not {wanted}");
    }

    #[test]
    fn parts_over_each_other_are_joined() {
        // Even times from 0 to 2 s, and as many from 1 to 3 s: a quarter is below 1 s, three quarters below 2 s.
        let part = |from: f64, to: f64| Part { from: Seconds::new(from), to: Seconds::new(to), share: 0.5 };
        let mut joined = Times::default();
        joined.join(&[part(0.0, 2.0), part(1.0, 3.0)]);
        for (share, wanted) in [(0.25, 1.0), (0.75, 2.0), (0.99, 2.96)] {
            let found = quantile(&joined, NONE, share);
            assert!((found / wanted - 1.0).abs() < 0.02, "{found}, not {wanted}");
        }
    }

    #[test]
    fn what_is_reached_by_each_end_is_the_sum_over_parts() {
        // Parts over each other in any order, some without width, one on an end, one beyond all ends.
        let ends: [Seconds; POINTS + 1] = std::array::from_fn(|index| Seconds::new(1.1_f64.powf(index as f64)));
        let part =
            |from: f64, width: f64| Part { from: Seconds::new(from), to: Seconds::new(from + width), share: 0.125 };
        let parts = [
            part(2.0, 30.0),
            part(32.0, 5.0),
            part(0.5, 0.1),
            part(2.0, 0.0),
            Part { from: ends[7], to: ends[7], share: 0.125 },
            part(400.0, 100.0),
            part(3.0, 1.0),
            part(40.0, 900.0),
        ];
        let mut whole = 0.0;
        for (end, found) in ends.iter().zip(&reached(&parts, &ends)) {
            whole += found.whole;
            let wanted: f64 = parts.iter().map(|part| part.share * part.reached(*end)).sum();
            assert!((whole + found.part - wanted).abs() < 1e-12, "{end:?}: {} {wanted}", whole + found.part);
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
