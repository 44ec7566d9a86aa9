//! How latencies scatter where requests come at random.

use statrs::distribution::{ContinuousCDF, Normal};

use super::batching::{Request, SteadyState};
use super::{Replica, Room};
use crate::units::{RequestRate, Seconds};

/// Points at which a distribution of lengths is taken, up to four standard deviations to each side.
const POINTS: usize = 41;
const WIDEST: f64 = 4.0;
/// Halvings in which a quantile is found.
const HALVINGS: u32 = 28;

/// How long requests are: standard deviations over the mean, both lognormal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// Of prompts.
    pub input: f64,
    /// Of answers.
    pub output: f64,
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
    fn of(quantile: impl Fn(f64) -> Seconds) -> Self {
        Self { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }
}

/// A wait that is none for some: else exponential, as that of a queue which is busy for the same share of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Share that waits.
    pub(super) busy: f64,
    /// Its mean, over those too that do not wait.
    pub(super) mean: Seconds,
}

impl Wait {
    /// Share of requests that wait at most so long.
    fn within(&self, time: Seconds) -> f64 {
        if time < Seconds::ZERO {
            return 0.0;
        }
        if self.busy <= 0.0 || self.mean <= Seconds::ZERO {
            return 1.0;
        }
        1.0 - self.busy * (-(time / self.mean) * self.busy).exp()
    }
}

/// A time that scatters, on a grid of standard deviations with the weight of each.
pub(super) type Grid = [(Seconds, f64); POINTS];

/// `time` at the points of a lognormal distribution of that mean and coefficient of variation.
pub(super) fn lognormal(mean: f64, cv: f64, time: impl Fn(f64) -> Seconds) -> Grid {
    let variance = (1.0 + cv * cv).ln();
    let step = 2.0 * WIDEST / (POINTS - 1) as f64;
    let mut grid = [(Seconds::ZERO, 0.0); POINTS];
    let mut all = 0.0;
    for (index, point) in grid.iter_mut().enumerate() {
        let deviations = step * index as f64 - WIDEST;
        let weight = (-deviations * deviations / 2.0).exp();
        *point = (time(mean * (deviations * variance.sqrt() - variance / 2.0).exp()), weight);
        all += weight;
    }
    grid.map(|(time, weight)| (time, weight / all))
}

/// The time within which a share of requests is through: each takes a time of the grid after its wait.
fn quantile(share: f64, grid: &Grid, wait: Wait) -> Seconds {
    let within = |time: Seconds| grid.iter().map(|(own, weight)| weight * wait.within(time - *own)).sum::<f64>();
    let longest = grid.iter().fold(Seconds::ZERO, |longest, (own, _)| longest.max(*own));
    let (mut low, mut high) = (Seconds::ZERO, longest + wait.mean);
    while within(high) < share {
        high = high * 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if within(middle) < share { low = middle } else { high = middle }
    }
    high
}

impl Replica<'_> {
    /// Distributions of latencies of an engine in that steady state, to which requests come at a rate.
    ///
    /// First tokens: the prefill of a prompt whose length scatters, behind a wait that is exponential for the share of
    /// requests that meet a busy engine (exact for M/M/1, the heavy-traffic form of M/G/1; Kleinrock, Queueing Systems II,
    /// 1976). Tokens: the sequences in decode at random times are Poisson (M/G/infinity), and a token takes as long as
    /// theirs. Whole requests: first tokens and answers whose length scatters, their sum taken as lognormal by its mean and
    /// variance (Fenton 1960).
    pub fn latencies(
        &self,
        request: &Request,
        state: &SteadyState,
        rate: RequestRate,
        scatter: Scatter,
        room: Room,
    ) -> Latencies {
        let prefill = |new: f64| self.prefill(new, request.cached);
        let served = self.packed_prefill(request.input, request.cached).min(state.prefill);
        let wait = Wait { busy: rate.over(served), mean: state.queue };
        let fixed = state.ttft.saturating_sub(state.queue + state.prefill);
        let first = lognormal(request.input, scatter.input, |tokens| fixed + prefill(tokens));
        let token = |batch: f64| self.token_time(request, batch.clamp(0.0, room.requests), state.prefill, 1.0).total();
        distribution(request, state, &first, wait, token, scatter.output)
    }
}

/// Distributions from first tokens without their wait, the wait, the time of a token by the sequences in decode, and the
/// coefficient of variation of answers.
pub(super) fn distribution(
    request: &Request,
    state: &SteadyState,
    first: &Grid,
    wait: Wait,
    token: impl Fn(f64) -> Seconds,
    output_cv: f64,
) -> Latencies {
    let normal = Normal::standard();
    let of_token = |share: f64| token(state.batch + normal.inverse_cdf(share) * state.batch.sqrt());
    let mean = first.iter().map(|(time, weight)| *time * *weight).sum::<Seconds>();
    let answers = state.tpot * request.output;
    let alone = mean + answers;
    let off = |time: Seconds| (time - mean) / alone;
    let squares: f64 = first.iter().map(|(time, weight)| weight * off(*time) * off(*time)).sum();
    let cv = squares.sqrt().hypot(answers / alone * output_cv);
    let whole = lognormal(1.0, cv, |part| alone * part);
    Latencies {
        first_token: Quantiles::of(|share| quantile(share, first, wait)),
        token: Quantiles::of(of_token),
        whole: Quantiles::of(|share| quantile(share, &whole, wait)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_an_m_m_1_queue_are_exact() {
        // Busy for 0.8 of the time, a mean wait of 4 s: P(W > w) = 0.8 exp(-w / 5). Half wait at most 5 ln 1.6 = 2.350 s,
        // 95% at most 5 ln 16 = 13.863 s; one fifth do not wait.
        let wait = Wait { busy: 0.8, mean: Seconds::new(4.0) };
        let none = lognormal(1.0, 0.0, |_| Seconds::ZERO);
        assert!((quantile(0.5, &none, wait).value() - 2.350).abs() < 1e-3);
        assert!((quantile(0.95, &none, wait).value() - 13.863).abs() < 1e-3);
        assert!(quantile(0.19, &none, wait).value() < 1e-6);
    }

    #[test]
    fn lengths_scatter_as_a_lognormal() {
        // A mean of 1,000 and a coefficient of variation of 1: sigma^2 = ln 2, the median 1,000 / sqrt 2 = 707.1, P95 is
        // 707.1 exp(1.645 x 0.8326) = 2,781.
        let idle = Wait { busy: 0.0, mean: Seconds::ZERO };
        let grid = lognormal(1_000.0, 1.0, Seconds::new);
        let mean: Seconds = grid.iter().map(|(time, weight)| *time * *weight).sum();
        assert!((mean.value() / 1_000.0 - 1.0).abs() < 1e-3, "{mean}");
        // The grid's steps are a fifth of a standard deviation.
        assert!((quantile(0.5, &grid, idle).value() / 707.1).ln().abs() < 0.2 * 0.8326);
        assert!((quantile(0.95, &grid, idle).value() / 2_781.0).ln().abs() < 0.2 * 0.8326);
    }
}
