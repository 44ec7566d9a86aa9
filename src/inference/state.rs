//! Requests, what is asked of an engine with them, and the steady state that it comes to.

use super::StepTime;
use super::features::TokenTime;
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);

/// Tokens of a request, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Of the prompt, that are computed.
    pub input: f64,
    /// Of the prompt, whose keys and values are at hand.
    pub cached: f64,
    /// Of the answer.
    pub output: f64,
    /// Of the cache of a sequence in decode, beyond those of this mean request: long answers are in decode for longer.
    pub beyond: f64,
    /// Standard deviation of prompts, in tokens.
    pub spread: f64,
}

/// Tokens before one that is made, over all sequences in decode: so many on average, spread evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// On average.
    pub mean: f64,
    /// How far they are from it at most, to either side.
    pub reach: f64,
}

impl From<f64> for Context {
    fn from(mean: f64) -> Self {
        Self { mean, reach: 0.0 }
    }
}

impl Context {
    /// Those of its chunk that a token attends to, on average, where it attends within chunks of so many.
    pub(super) fn within(self, chunk: f64) -> f64 {
        let (from, to) = ((self.mean - self.reach).max(0.0), self.mean + self.reach);
        if to <= chunk {
            return self.mean;
        }
        // Nearly one position has as many as stand before it in its chunk.
        if to - from < 1.0 {
            return self.mean % chunk;
        }
        (pairs_within(to, chunk) - pairs_within(from, chunk)) / (to - from)
    }
}

/// Pairs of a token among the first so many and one before it in its chunk.
pub(super) fn pairs_within(tokens: f64, chunk: f64) -> f64 {
    let rest = tokens % chunk;
    (tokens - rest) * chunk / 2.0 + rest * rest / 2.0
}

impl Request {
    /// All tokens, of its prompt and its answer.
    pub fn tokens(&self) -> f64 {
        self.input + self.cached + self.output
    }

    /// Tokens in the cache of a sequence in decode, on average.
    pub fn context(&self) -> f64 {
        self.input + self.cached + self.output / 2.0 + self.beyond
    }

    /// The same by token: evenly from an answer's first to its last, of prompts that are spread evenly, as far as their deviation is.
    pub fn contexts(&self) -> Context {
        let prompts = 3.0_f64.sqrt() * self.spread;
        Context { mean: self.context(), reach: prompts.hypot(self.output / 2.0) }
    }

    /// Whether an answer has tokens beyond the first, which the prefill makes.
    pub fn decodes(&self) -> bool {
        self.output > 1.0
    }
}

/// Requests that clients keep open at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// What each is.
    pub request: Request,
    /// How many are open.
    pub concurrency: f64,
    /// Rounds in which a benchmark sends its prompts, the first all at once; infinite for arrivals without a burst.
    pub waves: f64,
    /// Whether all prompts have one length, so that a burst of them moves in step.
    pub fixed_length: bool,
}

/// Steady state of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// Mean time to the first token.
    pub ttft: Seconds,
    /// Mean time between tokens.
    pub tpot: Seconds,
    /// Sequences in decode, on average.
    pub batch: f64,
    /// The decode step of that batch; where it verifies drafts, the part that one token of each sequence takes.
    pub step: StepTime,
    /// The whole step.
    pub cycle: Seconds,
    /// Part of the time between tokens that waits for prefills.
    pub stall: Seconds,
    /// The prefill of one request.
    pub prefill: Seconds,
    /// Part of the time to the first token that its prompt's pieces share with steps of decode, and until an engine that gathers
    /// prompts takes it in.
    pub joined: Seconds,
    /// Part of the time to the first token that waits: for prefills before it, and for room in the cache.
    pub queue: Seconds,
    /// Part of it for which caches wait for links between pools, or share them with others.
    pub links: Seconds,
    /// Requests that end in a second.
    pub requests_per_second: f64,
}

impl SteadyState {
    /// Of tokens that take so long with so many sequences in decode, where nobody waits and nothing ends.
    pub(super) fn of(token: &TokenTime, batch: f64, prefill: Seconds) -> Self {
        Self {
            ttft: prefill,
            tpot: token.total(),
            batch,
            step: token.step,
            cycle: token.cycle,
            stall: token.stall,
            prefill,
            joined: Seconds::ZERO,
            queue: Seconds::ZERO,
            links: Seconds::ZERO,
            requests_per_second: 0.0,
        }
    }

    /// Requests that end.
    pub fn rate(&self) -> RequestRate {
        RequestRate::of(self.requests_per_second, SECOND)
    }

    /// The same of requests that are all there from the start, so many of which end in a second: they wait for the waves before their
    /// own, of which the last begins so late, and in it for prompts before their own, the last of which is taken in so much later.
    #[must_use]
    pub fn in_waves(self, served: RequestRate, (last, taken_in): (Seconds, Seconds)) -> Self {
        let queue = (last + taken_in) / 2.0;
        Self { ttft: self.ttft + queue, queue, requests_per_second: served.over(SECOND), ..self }
    }

    /// The same where no more end, so that fewer are in decode on average (Little's law), though one at a time may be.
    #[must_use]
    pub fn of_no_more_than(self, most: RequestRate, request: &Request) -> Self {
        if self.rate() <= most {
            return self;
        }
        let batch = most.over(self.tpot * request.output);
        Self { requests_per_second: most.over(SECOND), batch, ..self }
    }

    /// The mean of requests of which that share are served by another engine as it is; as many end a second as here.
    #[must_use]
    pub fn mixed_with(self, other: &Self, share: f64) -> Self {
        let mean = |own: Seconds, of_other: Seconds| own * (1.0 - share) + of_other * share;
        Self {
            ttft: mean(self.ttft, other.ttft),
            tpot: mean(self.tpot, other.tpot),
            step: self.step.scaled(1.0 - share).plus(other.step, share),
            cycle: mean(self.cycle, other.cycle),
            stall: mean(self.stall, other.stall),
            prefill: mean(self.prefill, other.prefill),
            joined: mean(self.joined, other.joined),
            queue: mean(self.queue, other.queue),
            links: mean(self.links, other.links),
            ..self
        }
    }

    /// The same with another prefill of a request in the time to the first token.
    pub(super) fn with_prefill(self, prefill: Seconds) -> Self {
        Self { ttft: self.ttft.saturating_sub(self.prefill) + prefill, prefill, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_sees_what_stands_before_it_in_its_chunk() {
        let within = |mean: f64, reach: f64, chunk: f64| Context { mean, reach }.within(chunk);
        let one_by_one =
            |from: u32, to: u32| (from..to).map(|at| f64::from(at % 8_192) + 0.5).sum::<f64>() / f64::from(to - from);
        for (from, to) in [(100, 8_000), (1_024, 9_216), (8_192, 9_216), (1_024, 33_792), (20_000, 20_100)] {
            let (mean, reach) = (f64::from(from + to) / 2.0, f64::from(to - from) / 2.0);
            let (found, each) = (within(mean, reach, 8_192.0), one_by_one(from, to));
            assert!((found / each - 1.0).abs() < 1e-9, "{from} {to}: {found} {each}");
        }
        assert!((within(20_000.0, 0.0, 8_192.0) - 3_616.0).abs() < 1e-9);
        assert!((within(20_000.0, 9_000.0, f64::INFINITY) - 20_000.0).abs() < 1e-9);
    }
}
