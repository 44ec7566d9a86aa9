//! How requests come.

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

    /// Prompts by what is computed of them.
    pub(super) fn prompts(&self) -> impl Iterator<Item = Prompt> {
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
pub(super) struct Prompt {
    /// Tokens computed.
    pub(super) new: f64,
    /// Tokens whose keys and values are at hand.
    pub(super) cached: f64,
    /// Share of requests that are so.
    pub(super) weight: f64,
    /// Standard deviations from the middle of a normal distribution of which as much is below, where prompts stand in order.
    pub(super) deviations: Option<f64>,
    /// Their answers.
    pub(super) answers: Answers,
}
