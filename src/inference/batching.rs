//! Continuous batching: prefill and decode share an engine's steps.

use super::features::TokenTime;
use super::together::Together;
use super::{Replica, Room, StepTime};
use crate::units::Seconds;

/// Fixed-point iterations; the batch settles within a few.
const ITERATIONS: u32 = 25;
/// The share of a batch by which it still moves when it has settled.
const SETTLED: f64 = 1e-15;

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
}

impl Request {
    /// Tokens in the cache of a sequence in decode, on average.
    pub fn context(&self) -> f64 {
        self.input + self.cached + self.output / 2.0 + self.beyond
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
            queue: Seconds::ZERO,
            links: Seconds::ZERO,
            requests_per_second: 0.0,
        }
    }
}

impl SteadyState {
    /// The same with another prefill of a request in the time to the first token.
    pub(super) fn with_prefill(self, prefill: Seconds) -> Self {
        Self { ttft: self.ttft.saturating_sub(self.prefill) + prefill, prefill, ..self }
    }
}

impl Replica<'_> {
    /// Time between tokens with so many sequences in decode and as many requests beginning as end, by its parts: the
    /// step, and the wait for prefills. `others` is the share of requests that prefills of others can hold up.
    pub(super) fn token_time(&self, request: &Request, batch: f64, prefills: &Together, others: f64) -> TokenTime {
        let (step, cycle) = self.token_step(batch, request.context());
        let begin = batch / (request.output * f64::from(self.spread.pipeline));
        let held = self.hardware.batching.stall.value.get() * others;
        let prefill = prefills.each(step.total(), begin, held);
        TokenTime { step, cycle, stall: prefill * (held * begin) }
    }

    /// Tokens' times that a prompt waits on average until each attention group has one, where the engine takes them in together: they
    /// come one after another, and those that wait longer than it lets them are taken in as they are.
    fn balancing(&self, batch: f64, request: &Request) -> f64 {
        let groups = f64::from(self.spread.attention_data);
        let Some(most) = self.features.balance.filter(|_| groups > 1.0) else { return 0.0 };
        let begin = batch / (request.output * f64::from(self.spread.pipeline));
        most.min(groups / begin) / 2.0
    }

    /// An engine with so many open requests, each followed by another as it ends.
    ///
    /// Decode steps share the engine with prefills: while a request is in decode, others arrive at the rate at which
    /// requests end, and hold the batch up for a part of the steps that take them in, together where they come together.
    /// Requests of one length that begin together end together, and so do those that follow them. The time to the first token
    /// is the prefill, the step that it joins (and one for each further chunk of it), the prefills before it in a burst, and the wait
    /// for room where the cache is full; that prompts are taken in together does not shorten it in measurements.
    ///
    /// `prefill` is that of a prompt, the mean of those that come.
    pub fn closed_loop(&self, load: &Load, prefill: Seconds, room: Room) -> SteadyState {
        let (hardware, request) = (self.hardware, &load.request);
        let admitted = load.concurrency.min(room.requests);
        let others = 1.0 - load.concurrency.max(1.0).recip();
        let burst =
            if load.fixed_length { hardware.batching.fixed_length.value.get() } else { 1.0 } / (2.0 * load.waves);
        let mut batch = admitted;
        let prefills = Together::new(self, request, admitted).over(prefill);
        let taken = if load.fixed_length { prefills.in_step() } else { prefills };
        // In a burst each attention group has a queue of its own.
        let (groups, in_turn) = prefills.of_groups();
        let state_of = |batch: f64| SteadyState::of(&self.token_time(request, batch, &taken, others), batch, prefill);
        let mut state = state_of(batch);
        for _ in 0..ITERATIONS {
            state = state_of(batch);
            let before = in_turn * (burst * (admitted - groups).max(0.0) / f64::from(self.spread.pipeline));
            let steps = state.cycle * self.joined_steps(request.input, batch * others);
            let balancing = state.tpot * self.balancing(batch, request);
            let first = hardware.first_token + prefill + steps + before + balancing;
            let decoding = state.tpot * request.output;
            let room = (decoding + first) * (load.concurrency / admitted - 1.0);
            state.queue = before + room;
            state.ttft = first + room;
            state.requests_per_second = load.concurrency / ((state.ttft + decoding) / Seconds::new(1.0));
            let settled = (admitted * (decoding / (decoding + first))).max(1.0);
            if (settled - batch).abs() <= SETTLED * batch {
                break;
            }
            batch = settled;
        }
        state
    }
}
