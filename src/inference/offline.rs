//! Engines that are full: what they serve at most of requests that come by themselves, and offline throughput, where requests
//! queue without end.

use super::features::{Chunks, Features, Graphs, Replayed, TokenTime};
use super::queue::coming::Coming;
use super::queue::crossing::{LEAST, crossing};
use super::state::{Request, SteadyState};
use super::together::Together;
use super::{Replica, Room, Scratch};
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);

/// An engine with as many requests in decode as there is room for, prompts taken in as they come.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// The room.
    pub room: Room,
    /// The most that it serves: as many as end where it is full, or prompts in chunks find steps for.
    pub most: RequestRate,
    /// Share of its time that is prefill's then.
    pub prefilling: f64,
    /// Sequences in decode beside which prompts still find as many steps as their chunks share; as many as there is room for,
    /// where they always do.
    pub beside_chunks: f64,
    /// The most of requests that come by themselves at which each adapter has its turn; without end where all have a place, or requests
    /// are taken in turn.
    pub turns: RequestRate,
    /// Prefills of prompts that come together.
    pub(super) prefills: Together,
    /// The prefill of a prompt, the mean of those that come.
    pub(super) alone: Seconds,
}

impl Filled {
    /// The most of requests that come by themselves.
    pub fn most_at_a_rate(&self) -> RequestRate {
        self.most.min(self.turns)
    }

    /// The prefill of a prompt, the mean of those that come.
    pub const fn alone(&self) -> Seconds {
        self.alone
    }
}

impl Replica<'_> {
    /// Of requests that come by themselves.
    pub fn filled(&self, request: &Request, room: Room, coming: &Coming<'_>, scratch: &mut Scratch) -> Filled {
        self.time_prompts(coming, scratch);
        let alone = scratch.over_prompts(|timed| timed.alone).mean;
        let prefills = Together::new(self, request, room.requests).over(alone);
        let ends = |token: &TokenTime, batch: f64| self.ends(request, batch, token, &prefills);
        let token = |batch: f64| self.token_time(request, batch, &prefills, 1.0);
        let (served, shared) = (scratch.over_prompts(|timed| timed.served).mean, self.shared_with(request));
        // Over the time of all steps, that of steps which take a chunk.
        let over = |batch: f64| {
            let token = token(batch);
            ends(&token, batch).over(served + token.cycle * shared) - 1.0
        };
        let beside_chunks = if shared > 0.0 && over(room.requests) > 0.0 {
            crossing(over, LEAST, room.requests)
        } else {
            room.requests
        };
        let full = token(beside_chunks);
        let (most, prefilling) = (ends(&full, beside_chunks), full.stall / full.total());
        let turns = self.rate_with_turns(request, room, &prefills, alone);
        Filled { room, most, prefilling, beside_chunks, turns, prefills, alone }
    }

    /// The rate at which as many are in the engine on average as leave each adapter its turn.
    fn rate_with_turns(&self, request: &Request, room: Room, prefills: &Together, alone: Seconds) -> RequestRate {
        let number = self.with_turns(room.requests);
        if number >= room.requests {
            return RequestRate::new(f64::INFINITY);
        }
        // Each token is seen by its own sequence and as many as there are at random times.
        let token = |batch: f64| {
            let seen = (batch + 1.0).min(room.requests);
            self.token_time(request, seen, prefills, 1.0 - seen.recip())
        };
        let ends = |token: &TokenTime, batch: f64| self.ends(request, batch, token, prefills);
        if !request.decodes() {
            return RequestRate::of(number, self.hardware.first_token + alone + token(0.0).cycle);
        }
        // By Little's law, those whose prompts are taken in too.
        let here = |batch: f64| {
            let token = token(batch);
            let first = self.hardware.first_token + alone + token.cycle * self.joined_steps(request.input, batch);
            batch + ends(&token, batch).over(first)
        };
        let batch = crossing(|batch| here(batch) - number, LEAST.min(number), number);
        ends(&token(batch), batch)
    }

    /// As many requests as there is room for, all of one length and without end: they begin together and end together, so that
    /// prompts fill steps. The time to the first token is without the wait, which has no end.
    pub fn offline(&self, request: &Request, room: Room) -> SteadyState {
        let packed = self.packed_beside(request, room.requests);
        let token = self.packed_token(request, room.requests, packed);
        self.endless(request, room.requests, (packed, &Together::packed(packed)), &token)
    }

    /// The part of steps full of prompts that a request takes, beside so many in decode.
    ///
    /// Where it is known which steps are replayed as graphs, launches of others are counted with those steps, and tokens of a step
    /// are prompts' and answers'.
    fn packed_beside(&self, request: &Request, batch: f64) -> Seconds {
        if self.features.graphs.is_none() {
            return self.packed_prefill(request.input, request.cached);
        }
        let own = self.own_of(batch);
        let chunks = self.features.chunks.map(|chunks| Chunks { tokens: (chunks.tokens - own).max(1.0), ..chunks });
        self.with(Features { chunks, ..self.features }).packed_unlaunched(request.input, request.cached)
    }

    /// Sequences of an attention group in a step, of so many.
    fn own_of(&self, batch: f64) -> f64 {
        batch / f64::from(self.spread.attention_data * self.spread.pipeline)
    }

    /// Time between tokens where prompts fill the steps that take them in.
    ///
    /// Steps that take in prompts are none that graphs were captured of: the host launches their kernels one by one, ahead of the
    /// device, so that such a step takes the longer of both.
    fn packed_token(&self, request: &Request, batch: f64, packed: Seconds) -> TokenTime {
        let mut token = self.token_time(request, batch, &Together::packed(packed), 1.0);
        if let Some(graphs) = self.features.graphs.filter(|_| request.decodes()) {
            let launched = 1.0 - graphs.replayed.part(self.own_of(batch));
            let busy = token.step.total() * launched + token.stall;
            token.stall += (self.launching(graphs.launch) * launched).saturating_sub(busy);
        }
        token
    }

    /// So many requests of lengths that scatter, without end.
    pub fn scattered(&self, request: &Request, batch: f64, filled: &Filled) -> SteadyState {
        let token = self.token_time(request, batch, &filled.prefills, 1.0);
        self.endless(request, batch, (filled.alone, &filled.prefills), &token)
    }

    fn endless(
        &self,
        request: &Request,
        batch: f64,
        (prefill, prefills): (Seconds, &Together),
        token: &TokenTime,
    ) -> SteadyState {
        let (batch, steps) = if request.decodes() { (batch, self.chunks(request.input)) } else { (0.0, 1.0) };
        let joined = token.cycle * steps;
        SteadyState {
            ttft: self.hardware.first_token + prefill + joined,
            joined,
            requests_per_second: self.ends(request, batch, token, prefills).over(SECOND),
            ..SteadyState::of(token, batch, prefill)
        }
    }

    /// Times prompts that come: each alone, and how long it keeps the first of the stages where prompts fill all steps. Stages
    /// have other prompts before and behind: a prompt keeps each for its part of the time.
    pub(super) fn time_prompts(&self, coming: &Coming<'_>, scratch: &mut Scratch) {
        if !scratch.knows() {
            scratch.time(coming, self.times_of_prompts());
        }
    }

    /// The two times of a prompt of so many new tokens behind cached ones.
    pub(super) fn times_of_prompts(&self) -> impl Fn(f64, f64) -> (Seconds, Seconds) {
        let costs = self.prompt_costs();
        let full = self.full_step(&costs);
        move |new, cached| {
            let alone = self.prefill_by(&costs, new, cached);
            (alone, self.packed_by(&full, new, cached).min(alone) / f64::from(self.spread.pipeline))
        }
    }

    /// From when a request comes until its prefill begins, where nothing is before it.
    pub const fn taken_in(&self) -> Seconds {
        self.hardware.first_token
    }

    /// Time that `count` such requests take of the engine, all there from the start.
    ///
    /// Prompts are few beside answers' steps, so that those that begin together end together: the batch is full but for the
    /// last wave, which is what is left, and whose prompts are taken in beside the one before it.
    pub fn taken(&self, request: &Request, room: Room, count: f64) -> Seconds {
        let full = room.requests;
        let packed = self.packed_beside(request, full);
        if !request.decodes() {
            let most = self.ends(request, 0.0, &self.first_step(request), &Together::packed(packed));
            return (SECOND * (count / most.over(SECOND))).max(self.prefill(request.input, request.cached));
        }
        let own = self.own_of(full);
        let graphs = self.features.graphs;
        let graphs = graphs.map(|graphs| Graphs { replayed: Replayed::Part(graphs.replayed.part(own)), ..graphs });
        let engine = self.with(Features { graphs, ..self.features });
        let wave = |batch: f64| engine.packed_token(request, batch, packed).total() * request.output;
        let waves = (count / full).floor();
        let rest = count - waves * full;
        let last = if rest < 1.0 { Seconds::ZERO } else { wave(rest) };
        last + if waves < 1.0 { Seconds::ZERO } else { wave(full) * waves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::fixture;
    use crate::inference::simulation::Draws;
    use crate::scenario::Balancing;
    use crate::units::Factor;
    use crate::workload::{Moments, Requests};

    /// Requests that end in a second, step by step: all places are taken at first by sequences somewhere in their answers, and each step
    /// takes in as many prompts as ended with the one before.
    fn simulated(engine: &Replica<'_>, request: &Request, places: usize) -> f64 {
        let mut draws = Draws::new();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of tokens")]
        let output = request.output as usize;
        let mut ends = vec![0_usize; output];
        for _ in 0..places {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one of so many steps")]
            let at = (draws.even() * request.output) as usize;
            ends[at] += 1;
        }
        // Those that end together are followed by as many that do.
        let time: f64 = ends
            .iter()
            .map(|new| {
                let prefill = |count: f64| engine.prefill_together(count, request.input, request.cached);
                let took = if *new > 0 { prefill(*new as f64) } else { Seconds::ZERO };
                (engine.token_step(places as f64, request.context()).1 + took).value()
            })
            .sum();
        places as f64 / time
    }

    #[test]
    fn however_many_wait_a_step_takes_in_as_many_as_have_ended() {
        let mut hardware = fixture::h100();
        hardware.batching.stall.value = Factor::ONE;
        for (id, input, output, places) in [
            ("llama-3.2-1b", 200.0, 100.0, 2_048),
            ("llama-3.2-1b", 1_000.0, 700.0, 2_048),
            ("llama-3.2-1b", 1_000.0, 700.0, 256),
            ("llama-3.1-70b", 500.0, 500.0, 256),
            ("llama-3.1-70b", 2_000.0, 500.0, 512),
        ] {
            let model = fixture::shape(id);
            let engine = Replica::new(&model, &hardware, fixture::tensor(4));
            let one = |mean| Moments { mean, cv: 0.0 };
            let requests = Requests::lognormal(one(input), one(output));
            let request = Request { input, cached: 0.0, output, beyond: requests.beyond, spread: 0.0 };
            let coming = Coming {
                requests: &requests,
                hit: 0.0,
                cached: 0.0,
                cv: 1.0,
                replay: false,
                balancing: Balancing::Random,
            };
            let room = Room { requests: places as f64 };
            let most = engine.filled(&request, room, &coming, &mut Scratch::default()).most.value();
            let found = simulated(&engine, &request, places);
            let packed = engine.offline(&request, room).requests_per_second;
            assert!((most / found - 1.0).abs() < 0.025, "{id} {input} {output} {places}: {most} {found}");
            // Those that began together fill steps.
            assert!(packed > found.max(most), "{id} {input} {output} {places}: {packed} {found} {most}");
        }
    }

    #[test]
    fn steps_with_prompts_take_as_long_as_their_launches() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let plain = Replica::new(&model, &hardware, fixture::tensor(8));
        let request = Request { input: 100.0, cached: 0.0, output: 1_000.0, beyond: 0.0, spread: 0.0 };
        let tpot = |replayed: f64, launch: f64| {
            let replayed = Replayed::Part(replayed);
            let graphs = Some(Graphs { sizes: &[], most: 64.0, replayed, launch: Seconds::new(launch) });
            plain
                .with(Features { graphs, ..Features::default() })
                .offline(&request, Room { requests: 32.0 })
                .tpot
                .value()
        };
        // 80 layers of 1 ms and the step's own 1.4 ms, longer than the device is at it, in a quarter of the steps.
        let free = tpot(1.0, 1e-3);
        let quarter = free + (81.4e-3 - plain.token_step(32.0, 600.0).1.value()) * 0.25;
        let prefill = free - plain.token_step(32.0, 600.0).1.value();
        assert!((tpot(0.75, 1e-3) - (quarter - prefill)).abs() < 1e-9, "{} {quarter}", tpot(0.75, 1e-3));
        // Launches that run ahead of the device cost nothing.
        assert!((tpot(0.0, 1e-6) - free).abs() < 1e-12);
    }

    #[test]
    fn requests_without_end_are_as_many_as_there_are() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let request = Request { input: 1_000.0, cached: 0.0, output: 1_000.0, beyond: 0.0, spread: 0.0 };
        let room = Room { requests: 400.0 };
        let second = Seconds::new(1.0);
        let rate = |count: f64| count / (engine.taken(&request, room, count) / second);
        let endless = engine.offline(&request, room).requests_per_second;
        assert!((rate(400.0) / endless - 1.0).abs() < 1e-9 && (rate(40_000.0) / endless - 1.0).abs() < 1e-9);
        // Fewer than a batch are one wave of their own; a few more than a batch are a second one, nearly as long.
        let wave = |batch: f64| engine.taken(&request, Room { requests: batch }, batch);
        assert_eq!(engine.taken(&request, room, 100.0), wave(100.0));
        assert!((rate(400.0) / rate(410.0) - 1.0) > 0.1);
        let two = engine.taken(&request, room, 500.0);
        assert!((two / (wave(400.0) + wave(100.0)) - 1.0).abs() < 1e-12);
    }
}
