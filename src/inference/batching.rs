//! Continuous batching: prefill and decode share an engine's steps.

use super::closed::{Turns, scattered};
use super::features::TokenTime;
use super::latency::Latencies;
use super::queue::coming::Coming;
use super::queue::crossing::{LEAST, crossing};
use super::queue::prompt_queue::PromptQueue;
use super::queue::scattered::Scattered;
use super::queue::waiting::{Round, Wait};
use super::state::{Load, Request, SteadyState};
use super::together::Together;
use super::{Filled, Replica, Room, Scratch};
use crate::units::{RequestRate, Seconds};

/// Fixed-point iterations; the batch settles within a few.
const ITERATIONS: u32 = 25;
/// The share of a batch by which it still moves when it has settled.
const SETTLED: f64 = 1e-15;
/// Share of its time for which prefill is taken as busy at most, where a number of requests is open.
const MOST_BUSY: f64 = 1.0 - 1e-9;
const SECOND: Seconds = Seconds::new(1.0);

/// Others in decode beside one that is: of so many on average in an engine that has taken `open`, each of the others is there as
/// if it were by itself (the arrival theorem, Sevcik and Mitrani 1981, in Schweitzer's form).
fn beside(batch: f64, open: f64) -> f64 {
    batch * (1.0 - open.max(1.0).recip())
}

impl Replica<'_> {
    /// Time between tokens with so many sequences in decode and as many requests beginning as end, by its parts: the
    /// step, and the wait for prefills. `others` is the share of requests that prefills of others can hold up.
    pub(super) fn token_time(&self, request: &Request, batch: f64, prefills: &Together, others: f64) -> TokenTime {
        if !request.decodes() {
            return self.first_step(request);
        }
        let (step, cycle) = self.token_step(batch, request.contexts());
        let begin = batch / (request.output * f64::from(self.spread.pipeline));
        let held = self.hardware.batching.stall.value.get() * others;
        let prefill = match self.gathered(begin) {
            Some(prompts) => prefills.of(prompts),
            None => prefills.each(step.total(), begin, held),
        };
        // The engine takes prompts in no faster than it prefills them, however little tokens wait for that.
        let taking_in = prefill * (others * begin);
        TokenTime { step, cycle, stall: (prefill * (held * begin)).max(taking_in.saturating_sub(step.total())) }
    }

    /// Prompts that are found together by an engine that looks for new requests every so many steps, as the one of them that
    /// is asked about finds it, where so many begin in the time of a step: after prompts it looks again at once.
    fn gathered(&self, begin: f64) -> Option<f64> {
        self.features.polls.map(|steps| 1.0 + begin * steps)
    }

    /// What a prompt waits more, beside so many others in decode, than where the engine looks before each step: until it does, and for those
    /// that it is found with.
    fn polled(&self, others: f64, cycle: Seconds, request: &Request, prefills: &Together) -> Seconds {
        let Some(steps) = self.features.polls else { return Seconds::ZERO };
        // With nothing to do it looks all the time.
        let at_work = 1.0 - (-others).exp();
        let begin = others / (request.output * f64::from(self.spread.pipeline));
        let prompts = 1.0 + begin * steps;
        let most = self.prompts_of_step(request.input);
        let of_step = prompts.min(most);
        let each = prefills.of(of_step) * of_step;
        let all = each * f64::midpoint((prompts / most).max(1.0), 1.0);
        cycle * ((steps - 1.0) / 2.0 * at_work) + all.saturating_sub(prefills.of(1.0))
    }

    /// The same beside so many others in decode, whose prefills alone hold its own tokens up.
    fn token_beside(&self, request: &Request, others: f64, prefills: &Together) -> TokenTime {
        let number = 1.0 + others;
        self.token_time(request, number, prefills, others / number)
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
        self.open_at_once(load, (prefill, RequestRate::new(f64::INFINITY)), room, |_, _, _| Wait::NONE).0
    }

    /// The same, and how latencies scatter about their means.
    pub fn closed_loop_of(
        &self,
        load: &Load,
        (filled, room): (&Filled, Room),
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> (SteadyState, Latencies) {
        // Those that wait keep the batch below what chunks of prompts find steps beside.
        let places = if load.waves.is_finite() { room } else { filled.room };
        // Those whose adapter has no place are not in the engine.
        let scatter = coming.requests.answers.scatter();
        let without = self.without_place(load.concurrency, places.requests, scatter);
        let here = Load { concurrency: load.concurrency - without.0, ..*load };
        let by_chance = self.by_chance(&here, filled, coming, scratch);
        let (mut state, mut turns, taken, waits) =
            self.open_at_once(&here, (filled.alone(), filled.most), places, &by_chance);
        turns.places = Self::wait_of_open(without, state.rate());
        state.ttft += turns.places.over_all();
        state.queue += turns.places.over_all();
        let queued = scratch.over_prompts(|timed| timed.served).variance;
        let busy = (state.rate() / filled.most).min(1.0);
        let round = Round::new((turns.taken, f64::INFINITY), busy, queued, coming.requests.overlap);
        let before = waits.of_open(state.rate(), 1.0, &round);
        let (cycle, others) = (state.cycle, beside(state.batch, turns.taken));
        let own = |new: f64, alone: Seconds| self.hardware.first_token + alone + cycle * self.joined_steps(new, others);
        let token = |number: f64| {
            let others = beside(number, turns.taken).clamp(0.0, (turns.taken - 1.0).max(0.0));
            self.token_beside(&load.request, others, &taken).total()
        };
        let latencies = scattered(coming, &state, &turns, (&own, before, token), scratch);
        (state, latencies)
    }

    /// How latencies scatter about those of a state with as many requests as there is room for, without end: by the lengths of
    /// requests.
    pub fn endless_latencies(&self, state: &SteadyState, coming: &Coming<'_>, scratch: &mut Scratch) -> Latencies {
        self.time_prompts(coming, scratch);
        let chunks = |new: f64| if state.batch > 0.0 { self.chunks(new) } else { 1.0 };
        let own = |new: f64, alone: Seconds| self.hardware.first_token + alone + state.cycle * chunks(new);
        scattered(coming, state, &Turns::none(state.batch), (&own, Wait::NONE, |_| state.tpot), scratch)
    }

    /// The wait for prompts of others that end at nearly the same time, where lengths scatter: what is of one length ends evenly, and
    /// waits for no more than its turn. In a benchmark's rounds it is in what measurements say of its opening burst.
    ///
    /// Of requests that come at such a rate beside a decode step that takes so long. A prompt finds the others before it, as if they
    /// came at random by themselves (Schweitzer's form of mean value analysis, 1979), and waits for all of them at most; all wait
    /// for as long at least as given.
    fn by_chance(
        &self,
        load: &Load,
        filled: &Filled,
        coming: &Coming<'_>,
        scratch: &Scratch,
    ) -> impl Fn(RequestRate, Seconds, Seconds) -> Wait + use<> {
        let served = scratch.over_prompts(|timed| timed.served);
        // Prompts that are all of a request wait for no places.
        let decodes = load.request.decodes();
        let places = if decodes { filled.room.requests } else { f64::INFINITY };
        let open = load.concurrency.min(places).max(1.0);
        let others = 1.0 - open.recip();
        // Those that an engine finds together where it looks every so many steps are counted with its looking.
        let evenly = others <= 0.0
            || self.features.polls.is_some()
            || (coming.requests.answers.scatter() <= 0.0 && served.variance <= 0.0);
        let never = load.waves.is_finite() && decodes;
        let shared = self.shared_with(&load.request);
        // The engine goes on with tokens meanwhile, so that prompts keep it for no longer than it serves them at most.
        let least = SECOND * (1.0 / filled.most.over(SECOND));
        let stages = f64::from(self.spread.pipeline);
        let (alone, most) = (filled.alone() / stages, self.prompts_of_steps(load.request.input, served.variance));
        let (groups, part) = filled.prefills.of_groups();
        move |rate, cycle, least_wait| {
            if never {
                return Wait::NONE;
            }
            if evenly {
                return if least_wait > Seconds::ZERO {
                    Wait { share: 1.0, mean: least_wait, ..Wait::NONE }
                } else {
                    Wait::NONE
                };
            }
            let mean = (served.mean + cycle * shared).min(least);
            let queue = PromptQueue {
                rate: RequestRate::of((rate.over(mean) * others).min(MOST_BUSY), mean),
                coming: 1.0,
                fixed: alone.saturating_sub(mean),
                served: Scattered { mean, ..served },
                most,
            };
            let wait = queue.side_by_side(groups, part / stages);
            let told = wait.over_all().min(mean * (open - 1.0)).max(least_wait);
            if wait.share > 0.0 { Wait { mean: told / wait.share, ..wait } } else { wait }
        }
    }

    /// The state, the waits in it, and how prefills are taken in. Prompts wait for others `by_chance` where requests come at a
    /// rate beside steps of decode that take so long, and as long at least as leaves no more than `most` that end; by Little's law those
    /// that wait are not in decode.
    fn open_at_once(
        &self,
        load: &Load,
        (prefill, most): (Seconds, RequestRate),
        room: Room,
        by_chance: impl Fn(RequestRate, Seconds, Seconds) -> Wait,
    ) -> (SteadyState, Turns, Together, Wait) {
        let (hardware, request) = (self.hardware, &load.request);
        let admitted = load.concurrency.min(room.requests);
        let in_bursts = if load.fixed_length { hardware.batching.fixed_length.value.get() } else { 1.0 } / load.waves;
        let mut batch = admitted;
        let prefills = Together::new(self, request, admitted).over(prefill);
        let taken = if load.fixed_length { prefills.in_step() } else { prefills };
        if !request.decodes() {
            return self.open_at_prefill(load, (prefill, most), taken, by_chance);
        }
        // In a burst each attention group has a queue of its own.
        let (groups, in_turn) = prefills.of_groups();
        let last = in_turn * ((admitted - groups).max(0.0) / f64::from(self.spread.pipeline));
        let state_of =
            |batch: f64| SteadyState::of(&self.token_beside(request, beside(batch, admitted), &taken), batch, prefill);
        let before = last * (in_bursts / 2.0);
        // With so many in decode: the time to the first token without any wait by chance, and that in decode.
        let times = |state: &SteadyState| {
            let steps = state.cycle * self.joined_steps(request.input, beside(state.batch, admitted));
            let balancing = state.tpot * self.balancing(state.batch, request);
            let later = 1.0 - in_bursts.min(1.0);
            let polled = self.polled(beside(state.batch, admitted), state.cycle, request, &prefills) * later;
            (hardware.first_token + prefill + steps + before + balancing + polled, state.tpot * request.output)
        };
        // Of a request's time, that in which it has a place: the host takes it before, and its first step is the first of its answer's.
        let in_place = |state: &SteadyState, (first, decoding): (Seconds, Seconds)| {
            (first + decoding).saturating_sub(hardware.first_token + state.cycle)
        };
        // Those of all that are open for which there are places by the time that they are in one, and others on their way.
        let circulating = |state: &SteadyState, (first, decoding): (Seconds, Seconds), wait: Seconds| {
            let held = in_place(state, (first, decoding)) + wait;
            load.concurrency.min(room.requests * ((first + decoding + wait) / held))
        };
        for _ in 0..ITERATIONS {
            let state = state_of(batch);
            let (first, decoding) = times(&state);
            let settled = circulating(&state, (first, decoding), Seconds::ZERO) * (decoding / (decoding + first));
            let moved = (settled - batch).abs() > SETTLED * batch;
            batch = settled;
            if !moved {
                break;
            }
        }
        let waits = |state: &SteadyState| {
            let (first, decoding) = times(state);
            let circulating = circulating(state, (first, decoding), Seconds::ZERO);
            let rate = RequestRate::of(state.batch, decoding).min(RequestRate::of(circulating, decoding + first));
            let [all, places] = [load.concurrency, room.requests].map(|number| SECOND * (number / most.over(SECOND)));
            let by_all = all.saturating_sub(first + decoding);
            let by_places = places.saturating_sub(in_place(state, (first, decoding)));
            by_chance(rate, state.cycle, by_all.min(by_places))
        };
        let over = |batch: f64| {
            let state = state_of(batch);
            let (first, decoding) = times(&state);
            let wait = waits(&state).over_all();
            let circulating = circulating(&state, (first, decoding), wait);
            batch * ((first + wait + decoding) / decoding) / circulating - 1.0
        };
        if waits(&state_of(batch)).share > 0.0 {
            batch = crossing(over, batch.min(LEAST), batch);
        }
        let mut state = state_of(batch);
        let (first, decoding) = times(&state);
        let before_it = waits(&state);
        let wait = before_it.over_all();
        let circulating = circulating(&state, (first, decoding), wait);
        let for_room = (decoding + first + wait) * (load.concurrency / circulating - 1.0);
        state.joined = first.saturating_sub(hardware.first_token + prefill + before);
        state.queue = before + wait + for_room;
        state.ttft = first + wait + for_room;
        state.requests_per_second = load.concurrency / ((state.ttft + decoding) / SECOND);
        // Of more than all, each waits for as much longer.
        let together = in_bursts.min(1.0);
        let last = if together > 0.0 { last * (in_bursts / together) } else { Seconds::ZERO };
        let waiting = load.concurrency - circulating;
        (
            state,
            Turns { together, last, room: for_room, waiting, places: Wait::NONE, taken: admitted },
            taken,
            before_it,
        )
    }
}
