//! How requests come.

use crate::scenario::Balancing;
use crate::workload::{Answers, Requests};

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
    /// Which replica each goes to.
    pub balancing: Balancing,
}

impl Coming<'_> {
    /// Squared coefficient of variation of the times between requests of one of so many replicas.
    ///
    /// Each sent to any of them, it is that of a renewal process, thinned. In turn each gets every so manieth, with times that are sums of
    /// as many (of requests at random an Erlang distribution, 1 over the replicas). To the one with the fewest it is that of all together,
    /// who wait for whichever is free.
    pub(in crate::inference) fn squared_cv(&self, replicas: f64) -> f64 {
        let together = self.cv * self.cv;
        match self.balancing {
            Balancing::Random => 1.0 + (together - 1.0) / replicas,
            Balancing::RoundRobin => together / replicas,
            Balancing::LeastLoaded => together,
        }
    }

    /// Variance over mean of the sequences in decode of one of so many replicas, `open` of all are in decode: where they are kept
    /// level, it is that of all together shared out.
    pub(in crate::inference) fn peakedness(&self, replicas: f64, open: f64) -> f64 {
        let level = if self.balancing == Balancing::LeastLoaded { replicas } else { 1.0 };
        peakedness(self.squared_cv(replicas), self, open) / level
    }

    /// Computed and cached tokens of a prompt, where a share is cached.
    pub(in crate::inference) fn parts(&self, prompt: f64) -> (f64, f64) {
        (prompt * (1.0 - self.hit), self.cached)
    }

    /// Prompts by what is computed of them.
    pub(in crate::inference) fn prompts(&self) -> impl Iterator<Item = Prompt> {
        let lengths = if self.requests.calls.is_empty() { &self.requests.prompts[..] } else { &[] };
        let of_lengths = lengths.iter().map(|point| {
            let (new, cached) = self.parts(point.tokens);
            Prompt { new, cached, weight: point.weight, deviations: Some(point.deviations), answers: point.answers }
        });
        let of_calls = self.requests.calls.iter().map(|call| Prompt {
            new: call.new,
            cached: call.cached,
            weight: call.weight,
            deviations: None,
            answers: self.requests.answers,
        });
        of_lengths.chain(of_calls)
    }
}

/// Prompts of which so much is computed, and their answers.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct Prompt {
    /// Tokens computed.
    pub(in crate::inference) new: f64,
    /// Tokens whose keys and values are at hand.
    pub(in crate::inference) cached: f64,
    /// Share of requests that are so.
    pub(in crate::inference) weight: f64,
    /// Standard deviations from the middle of a normal distribution of which as much is below, where prompts stand in order.
    pub(in crate::inference) deviations: Option<f64>,
    /// Their answers.
    pub(in crate::inference) answers: Answers,
}

/// Variance over mean of the sequences in decode, where the times between requests of an engine have that squared coefficient of
/// variation, and `open` of all engines are in decode: `1 + (cv^2 - 1) E[min] / E` of two answers (Eckberg 1983 for a renewal
/// process that comes fast against its service). Bursts are told from chance over many of them only: for two exponential times
/// between requests, each of which makes up half of the time, counts over a time scatter by `1 - (1 - exp(-x)) / x` of it, `x`
/// twice the requests that come within the time, over `cv^2 + 1`.
fn peakedness(squared_cv: f64, coming: &Coming<'_>, open: f64) -> f64 {
    let told = if coming.cv > 1.0 {
        let times = 2.0 * open / (coming.cv * coming.cv + 1.0);
        if times > 1e-6 { 1.0 + (-times).exp_m1() / times } else { 0.0 }
    } else {
        1.0
    };
    (1.0 + (squared_cv - 1.0) * coming.requests.overlap * told).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Moments, Requests};

    #[test]
    fn equal_answers_scatter_as_their_requests_come() {
        let one = |mean| Moments { mean, cv: 0.0 };
        let requests = Requests::lognormal(one(1.0), one(1.0));
        let coming =
            Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 3.0, replay: false, balancing: Balancing::Random };
        assert!((peakedness(9.0, &coming, 1e9) - 9.0).abs() < 1e-6);
        // Five come within an answer: x = 1, and exp(-1) of the scatter is told.
        assert!((peakedness(9.0, &coming, 5.0) - (1.0 + 8.0 * (-1.0_f64).exp())).abs() < 1e-12);
        let even = Coming { cv: 0.0, ..coming };
        assert!(peakedness(0.0, &even, 5.0).abs() < 1e-12);
    }
}
