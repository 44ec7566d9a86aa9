//! Requests that come by themselves, at a rate.

use super::features::TokenTime;
use super::latency::{Latencies, Sources, distribution};
use super::queue::admission::Admission;
use super::queue::coming::Coming;
use super::queue::crossing::{LEAST, crossing};
use super::queue::pace::Pace;
use super::queue::prompt_queue::PromptQueue;
use super::queue::scattered::Scattered;
use super::replay::{ByPrompt, Replayed, Servers, Times, replay};
use super::state::{Request, SteadyState};
use super::{Filled, Replica, Room, Scratch};
use crate::scenario::Balancing;
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);
/// More requests come than an engine can serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// What it can serve.
    pub most: RequestRate,
    /// What keeps it from more.
    pub short: Short,
    /// By what share it would serve more with twice as many places for requests.
    pub by_places: f64,
}

/// What runs out first as more requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Room for caches: more requests in decode would each be served at nearly the time that they take now.
    Cache,
    /// Places for requests in an engine, of which it takes so many at once.
    Sequences,
    /// Time for prefills.
    Prefill,
    /// Time for tokens of answers: steps take nearly as much longer as there are more in them.
    Steps,
    /// Links between pools, for the caches that one hands to the other.
    Transfer,
    /// Places for different adapters in memory: more requests in decode would bring others, or leave those without a place none.
    Adapters,
    /// Room for sessions that wait beside requests that run: prompts of the others are computed again.
    Sessions,
}

impl Replica<'_> {
    /// One of so many engines to which `rate` requests come, and how their latencies scatter. At most it serves what it does
    /// when it is full of them ([`Replica::filled`]).
    ///
    /// The batch is the one whose requests end at that rate (Little's law). A prompt waits for those before it, which steps take in
    /// as they have come, over the lengths that prompts have; and where the cache is nearly full, for room
    /// in it. A trace that is replayed goes through steps and decode request by request.
    ///
    /// # Errors
    /// When the rate is more than the engine serves with its cache full, more prefills than it has time for, or so much that adapters
    /// without a place never have one.
    pub fn open_loop(
        &self,
        request: &Request,
        rate: RequestRate,
        replicas: u32,
        coming: &Coming<'_>,
        filled: &Filled,
        scratch: &mut Scratch,
    ) -> Result<(SteadyState, Latencies), Overload> {
        let Filled { room, most, prefills: together, alone: prefill, .. } = *filled;
        let served = scratch.over_prompts(|timed| timed.served);
        // Prefills of the others hold a token up, and none of its own.
        let evenly = |number: f64| {
            let number = number.clamp(LEAST, room.requests);
            self.token_time(request, number, &together, (1.0 - number.recip()).max(0.0))
        };
        let chunk = served.mean / self.shared_with(request).max(1.0);
        // Chunks that follow each other.
        let shared = |number: f64| {
            let token = evenly(number);
            TokenTime { stall: token.stall * self.followed(request, rate, chunk, &token), ..token }
        };
        let of_batch = |number: f64| shared(number).total();
        let ends = |batch: f64| self.ends(request, batch, &evenly(batch), &together);
        let prefill_binds = most.over(served.mean) > 1.0 || !request.decodes();
        if let Some(overload) = self.overload(request, rate, filled, prefill_binds) {
            return Err(overload);
        }
        // Tokens wait for a part of prefills only: the engine goes on with them meanwhile, so that prompts keep it for less.
        let at_most = SECOND * (1.0 / most.over(SECOND));
        let least = if prefill_binds { at_most } else { served.mean };
        // Each token is seen by its own sequence and as many as there are at random times.
        let seen = |batch: f64| (batch + 1.0).min(room.requests);
        let coming_to = |batch: f64| RequestRate::of(batch, of_batch(seen(batch)) * request.output) / rate;
        let batch = if request.decodes() {
            crossing(|batch| coming_to(batch) - 1.0, LEAST.min(room.requests), room.requests)
        } else {
            0.0
        };
        let squared_cv = coming.squared_cv(f64::from(replicas));
        // Those in decode go on with every chunk, of the prompts before too.
        let taken_in = |token: &TokenTime| (least + token.cycle * self.shared_with(request)).min(at_most);
        let beside = taken_in(&shared(seen(batch)));
        let peaked = coming.peakedness(f64::from(replicas), batch * f64::from(replicas));
        // By Little's law; caches are held while prompts are taken in too.
        let in_decode = |batch: f64, rate: RequestRate| SECOND * (batch / rate.over(SECOND)) + beside;
        let held = in_decode(room.requests, ends(room.requests));
        let load = (rate / most * (held / held.saturating_sub(beside))).min(f64::midpoint(rate / most, 1.0));
        let admission = Admission {
            rate,
            batch: seen(batch),
            held: in_decode(batch, rate),
            room: room.requests,
            full: held,
            most: rate / load,
            peakedness: peaked,
        };
        let admission = admission.wait(|| coming.requests.answers.scatter());
        let pace = Pace::new(batch, peaked, (room.requests, admission.share), of_batch);
        let token = shared(pace.seen());
        let least = taken_in(&token);
        let before = PromptQueue {
            rate,
            coming: squared_cv,
            // Stages have other prompts before and behind.
            fixed: (prefill / f64::from(self.spread.pipeline)).saturating_sub(least),
            served: Scattered { mean: least, ..served },
            most: self.prompts_of_steps(request.input, served.variance),
        };
        let (groups, part) = together.of_groups();
        let prefills = before.side_by_side(groups, part / f64::from(self.spread.pipeline));
        let prefills = match coming.balancing {
            Balancing::LeastLoaded => before.of_the_shortest(prefills, f64::from(replicas)),
            Balancing::Random | Balancing::RoundRobin => prefills,
        };
        let steps = |new: f64| token.cycle * self.joined_steps(new, batch);
        let first = |new: f64, alone: Seconds| self.hardware.first_token + alone + steps(new);
        let to_first = scratch.over_prompts(|timed| first(timed.new, timed.alone)).mean;
        let places = self.wait_for_places(rate, to_first + token.total() * request.output);
        let queue = prefills.over_all() + admission.over_all() + places.over_all();
        let state = |token: &TokenTime, queue: Seconds| SteadyState {
            ttft: to_first + queue,
            joined: to_first.saturating_sub(self.taken_in() + prefill),
            queue,
            requests_per_second: rate.over(SECOND),
            // By Little's law.
            ..SteadyState::of(token, rate.over(token.total() * request.output).min(room.requests), prefill)
        };
        if coming.replay {
            let times = self.times_of_prompts();
            let shared_steps = |new: f64| if request.decodes() { self.shared_steps(new) } else { 0.0 };
            let step = |new: f64, cached: f64| {
                let (alone, served) = times(new, cached);
                // Where prompts are cut, steps are full of pieces of several.
                let cut = self.features.chunks.is_some_and(|chunks| new > chunks.tokens);
                let served = served + token.cycle * shared_steps(new);
                if cut { served } else { alone / f64::from(self.spread.pipeline) }
            };
            let replayed = Times {
                served: ByPrompt::new(coming, |new, cached| times(new, cached).1 + token.cycle * shared_steps(new)),
                alone: ByPrompt::new(coming, step),
                first: ByPrompt::new(coming, |new, cached| first(new, times(new, cached).0)),
                token: &of_batch,
                room: room.requests,
            };
            let tokens = self.tokens_of_steps() / (1.0 - coming.hit).max(f64::MIN_POSITIVE);
            let all = rate * f64::from(replicas);
            if let Some(found) = replay(coming, all, Servers::InTurn(replicas, tokens), &replayed) {
                let Replayed { wait, in_decode, first_token, token, whole } = found;
                return Ok((state(&shared(in_decode), wait), Latencies { first_token, token, whole }));
            }
        }
        let sources = Sources { first: &first, prefills, burst: places, admission, pace, token: of_batch };
        let state = state(&token, queue);
        let latencies = distribution(coming, &state, &sources, scratch);
        Ok((state, latencies))
    }

    /// What runs out at a rate that is more than an engine serves.
    fn overload(&self, request: &Request, rate: RequestRate, filled: &Filled, prefill_binds: bool) -> Option<Overload> {
        let Filled { room, most, beside_chunks, turns, prefills: ref together, .. } = *filled;
        if rate >= turns && turns < most {
            return Some(Overload { most: turns, short: Short::Adapters, by_places: 0.0 });
        }
        (rate >= most).then(|| {
            let prefill = prefill_binds || beside_chunks < room.requests;
            let token = |batch: f64| self.token_time(request, batch, together, 1.0).total() / batch;
            let places = if prefill { Places::NO_USE } else { Places::of(room, token) };
            let short = if prefill { Short::Prefill } else { places.short(filled.prefilling) };
            Overload { most, short, by_places: places.gain() }
        })
    }
}

/// What more places for requests would be worth to a full engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Time of a request of twice as many, over that of one.
    of_twice: f64,
}

impl Places {
    /// None.
    const NO_USE: Self = Self { of_twice: 1.0 };

    /// Of an engine with so many that takes so long of each request in a batch.
    pub(super) fn of(room: Room, request: impl Fn(f64) -> Seconds) -> Self {
        Self { of_twice: request(2.0 * room.requests) / request(room.requests) }
    }

    /// By what share twice as many serve more.
    pub(super) fn gain(self) -> f64 {
        self.of_twice.recip() - 1.0
    }

    /// What keeps the engine from serving more where so much of its time is prompts': what most of the time is. Prompts' would be
    /// less with fewer of them, what a step takes however many are in it with more places that share it (twice as many save half), and
    /// the rest with shorter answers alone.
    pub(super) fn short(self, prompts: f64) -> Short {
        let shared = 2.0 * (1.0 - self.of_twice);
        let own = 1.0 - prompts - shared;
        if prompts >= shared.max(own) {
            Short::Prefill
        } else if shared >= own {
            Short::Cache
        } else {
            Short::Steps
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::features::{Chunks, Features};
    use crate::inference::queue::ordered::Ordered;
    use crate::inference::simulation::{Draws, Engine, Found, Sent, in_one_step};
    use crate::inference::step::prefill::FULL_STEP;
    use crate::inference::together::Together;
    use crate::inference::{ModelShape, Room, Spread, fixture};
    use crate::workload::{Moments, Requests};

    /// What is simulated: lengths, how requests come, and the engine.
    #[derive(Clone, Copy, Debug)]
    struct Case {
        input: Moments,
        output: Moments,
        /// Standard deviation over the mean of the times between requests.
        cv: f64,
        /// Of the most that can be served.
        load: f64,
        room: u32,
        chunk: Option<f64>,
        /// The most tokens of prompt and answer.
        context: Option<f64>,
    }

    const CASE: Case = Case {
        input: Moments { mean: 2_048.0, cv: 0.0 },
        output: Moments { mean: 256.0, cv: 0.0 },
        cv: 1.0,
        load: 0.5,
        room: 2_000,
        chunk: None,
        context: None,
    };

    /// Requests over so many engines, sent to them one way or another.
    #[derive(Clone, Copy, Debug)]
    struct Over {
        engines: u32,
        balancing: Balancing,
    }

    const ALONE: Over = Over { engines: 1, balancing: Balancing::Random };

    /// Mean time to the first token; half, 95% and 99% of first tokens, of tokens, and of whole requests: as reckoned, and as
    /// simulated request by request.
    fn both(model: &ModelShape, spread: Spread, case: &Case, over: Over, count: usize) -> [[f64; 10]; 2] {
        let hardware = fixture::h100();
        let chunks = case.chunk.map(|tokens| Chunks { tokens, shared: true });
        let engine = Replica::new(model, &hardware, spread).with(Features { chunks, ..Features::default() });
        let requests = Requests::lognormal_within(case.input, case.output, case.context);
        let (input, output) =
            requests.cut.map_or((case.input.mean, case.output.mean), |taken| (taken.input, taken.output));
        let request = Request { input, cached: 0.0, output, beyond: requests.beyond, spread: 0.0 };
        let coming = Coming {
            requests: &requests,
            hit: 0.0,
            cached: 0.0,
            cv: case.cv,
            replay: false,
            balancing: over.balancing,
        };
        let room = Room { requests: f64::from(case.room) };
        let mut scratch = Scratch::default();
        engine.time_prompts(&coming, &mut scratch);
        let prefill = scratch.over_prompts(|timed| timed.alone).mean;
        let together = Together::new(&engine, &request, room.requests).over(prefill);
        let token = |number: f64| {
            engine.token_time(&request, number.max(LEAST), &together, (1.0 - number.recip()).max(0.0)).total()
        };
        let ends = RequestRate::of(room.requests, token(room.requests) * request.output);
        let most = ends.min(RequestRate::of(1.0, scratch.over_prompts(|timed| timed.served).mean));
        let filled = engine.filled(&request, room, &coming, &mut scratch);
        let filled = if case.chunk.is_some() { filled } else { Filled { most, ..filled } };
        let rate = filled.most * case.load;
        let (state, latencies) =
            engine.open_loop(&request, rate, over.engines, &coming, &filled, &mut scratch).unwrap();
        let groups = f64::from(spread.attention_data);
        let simulated = Engine {
            adapters: None,
            places: case.room as usize,
            tokens: case.chunk.is_none().then_some(FULL_STEP * groups),
            prefill: &|new| {
                let all: f64 = new.iter().sum();
                if case.chunk.is_some() {
                    let served = engine.packed_prefill(all, 0.0).min(engine.prefill(all, 0.0));
                    (served + state.cycle * engine.shared_steps(all)).value()
                } else if groups > 1.0 {
                    engine.prefill_together(new.len() as f64, all / new.len() as f64, 0.0).value()
                } else {
                    in_one_step(&engine, new)
                }
            },
            behind: &|new| {
                let served = engine.packed_prefill(new, 0.0).min(engine.prefill(new, 0.0));
                let rest = if case.chunk.is_some() { engine.prefill(new, 0.0) - served } else { Seconds::ZERO };
                let steps = engine.chunks(new) - engine.shared_steps(new);
                (hardware.first_token + rest + state.cycle * steps).value()
            },
            token: &|batch| token(batch).value(),
        };
        let mut draws = Draws::new();
        let mut at = 0.0;
        let sent: Vec<Sent> = (0..count)
            .map(|_| {
                at += draws.gap(rate.value().recip() / f64::from(over.engines), case.cv);
                let mut lengths = || {
                    let input = draws.lognormal(case.input.mean, case.input.cv);
                    (input, draws.lognormal(case.output.mean, case.output.cv))
                };
                let within = |(input, output): &(f64, f64)| input + output <= case.context.unwrap_or(f64::INFINITY);
                // Longer ones are refused.
                let (input, output) = std::iter::repeat_with(&mut lengths).find(within).unwrap();
                Sent { at, input, output }
            })
            .collect();
        let (engines, mut turn, mut chance) = (over.engines as usize, 0, Draws::new());
        let mut route = |open: &mut dyn Iterator<Item = (usize, usize)>| match over.balancing {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one of a few engines")]
            Balancing::Random => (chance.even() * engines as f64) as usize,
            Balancing::RoundRobin => {
                turn += 1;
                turn % engines
            }
            // Those alike by chance.
            Balancing::LeastLoaded => {
                open.enumerate().map(|(index, open)| (open, Ordered(chance.even()), index)).min().unwrap().2
            }
        };
        let Found { mean, first, token, whole, .. } = simulated.run(&sent, engines, &mut route);
        let found = [&[mean][..], &first, &token, &whole].concat().try_into().unwrap();
        let three = |of: crate::inference::Quantiles| [of.p50, of.p95, of.p99].map(Seconds::value);
        let Latencies { first_token, token, whole } = latencies;
        let reckoned = [&[state.ttft.value()][..], &three(first_token), &three(token), &three(whole)].concat();
        [reckoned.try_into().unwrap(), found]
    }

    /// How far quantiles of first tokens may be off, of tokens, and of whole requests.
    type Near = [f64; 3];

    fn hold(model: &ModelShape, spread: Spread, cases: &[(Case, Near)]) {
        hold_over(model, spread, ALONE, cases);
    }

    fn hold_over(model: &ModelShape, spread: Spread, over: Over, cases: &[(Case, Near)]) {
        for (case, near) in cases {
            let count = if case.load > 0.85 { 150_000 } else { 40_000 };
            let [reckoned, found] = both(model, spread, case, over, count);
            let of = |index: usize| reckoned[index] / found[index] - 1.0;
            let off = std::array::from_fn::<f64, 10, _>(of);
            let allowed = |index: usize| if index == 0 { near[0] } else { near[(index - 1) / 3] };
            assert!((0..10).all(|index| off[index].abs() < allowed(index)), "{case:?} {over:?}: {off:.3?}");
        }
    }

    #[test]
    fn latencies_are_those_of_requests_one_by_one() {
        let model = fixture::shape("llama-3.1-70b");
        let one = |mean, cv| Moments { mean, cv };
        let near = [0.08, 0.08, 0.05];
        let some = Case { input: one(2_048.0, 0.5), output: one(256.0, 0.5), ..CASE };
        let short = Case { input: one(300.0, 1.0), output: one(300.0, 1.0), ..CASE };
        let long = Case { input: one(6_000.0, 0.5), output: one(600.0, 1.0), ..CASE };
        hold(
            &model,
            fixture::tensor(4),
            &[
                (Case { load: 0.3, ..CASE }, near),
                (Case { load: 0.8, ..CASE }, near),
                (Case { load: 0.9, ..some }, near),
                (Case { load: 0.6, ..some }, near),
                (Case { load: 0.8, chunk: Some(512.0), ..some }, near),
                // Steps that take many prompts, and hardly ever more than one. The former are told less well where no launches
                // are in every step, here and below: the queues' own error shows that a part of all steps alike had hidden.
                (Case { load: 0.6, ..short }, [0.115, 0.08, 0.05]),
                (Case { load: 0.8, ..short }, [0.11, 0.08, 0.05]),
                (Case { load: 0.8, ..long }, near),
            ],
        );
    }

    #[test]
    fn requests_wait_for_room_one_by_one() {
        let model = fixture::shape("llama-3.1-70b");
        let some = Case { output: Moments { mean: 256.0, cv: 0.5 }, room: 24, ..CASE };
        // Without launches that all steps had alike the wait for prompts is off by up to a fifth where room binds as well.
        let near = [0.19, 0.05, 0.05];
        hold(
            &model,
            fixture::tensor(4),
            &[
                (Case { load: 0.6, ..some }, near),
                (Case { load: 0.8, ..some }, near),
                (Case { load: 0.8, room: 60, ..some }, near),
                (Case { load: 0.9, ..some }, near),
            ],
        );
    }

    #[test]
    fn requests_in_turn_and_to_the_shortest_queue_are_those_one_by_one() {
        let model = fixture::shape("llama-3.1-70b");
        let one = |mean, cv| Moments { mean, cv };
        let some = Case { input: one(2_048.0, 0.5), output: one(256.0, 0.5), ..CASE };
        for (balancing, near) in [
            (Balancing::Random, [0.14, 0.12, 0.05]),
            // Even times are met less well, the later the fuller.
            (Balancing::RoundRobin, [0.25, 0.12, 0.05]),
            // By the wait of one queue over the engines, whose error is larger without launches that all steps had alike.
            (Balancing::LeastLoaded, [0.18, 0.08, 0.05]),
        ] {
            for engines in [2, 4, 16] {
                let cases = [0.5, 0.8, 0.9].map(|load| (Case { load, ..some }, near));
                hold_over(&model, fixture::tensor(4), Over { engines, balancing }, &cases);
            }
        }
        // Fewer wait in turn than at random, and fewer still where it is shortest; of one engine all are the same.
        let first = |engines, balancing| {
            let case = Case { load: 0.8, ..some };
            both(&model, fixture::tensor(4), &case, Over { engines, balancing }, 100)[0]
        };
        let [random, in_turn, least] =
            [Balancing::Random, Balancing::RoundRobin, Balancing::LeastLoaded].map(|way| first(16, way));
        assert!(random[0] > 2.0 * in_turn[0] && in_turn[0] > 1.2 * least[0], "{random:?} {in_turn:?} {least:?}");
        assert_eq!(first(1, Balancing::Random).map(f64::to_bits), first(1, Balancing::RoundRobin).map(f64::to_bits));
        assert_eq!(first(1, Balancing::Random).map(f64::to_bits), first(1, Balancing::LeastLoaded).map(f64::to_bits));
        // In bursts and at even times, and where steps take many prompts: there only up to 0.75 of the most, for beyond it the several
        // queues' error is above that of one engine's, which is held at 0.8. Without launches that all steps had alike it is larger too.
        let short = Case { input: one(300.0, 1.0), output: one(300.0, 1.0), ..CASE };
        for balancing in [Balancing::RoundRobin, Balancing::LeastLoaded] {
            let cases = [(2.0, 0.5), (2.0, 0.8), (0.5, 0.5), (0.5, 0.8)].map(|(cv, load)| Case { cv, load, ..some });
            let cases = cases.into_iter().chain([Case { load: 0.6, ..short }, Case { load: 0.75, ..short }]);
            let cases: Vec<(Case, Near)> = cases.map(|case| (case, [0.3, 0.12, 0.06])).collect();
            hold_over(&model, fixture::tensor(4), Over { engines: 8, balancing }, &cases);
        }
    }

    #[test]
    fn bursts_and_even_times_are_met_less_well() {
        let model = fixture::shape("llama-3.1-70b");
        let some = Case { input: Moments { mean: 2_048.0, cv: 0.5 }, output: Moments { mean: 256.0, cv: 0.5 }, ..CASE };
        hold(
            &model,
            fixture::tensor(4),
            &[
                (Case { cv: 0.0, load: 0.6, ..some }, [0.15, 0.06, 0.05]),
                (Case { cv: 0.0, load: 0.8, ..some }, [0.2, 0.06, 0.05]),
                (Case { cv: 2.0, load: 0.3, ..some }, [0.1, 0.08, 0.06]),
                (Case { cv: 2.0, load: 0.6, ..some }, [0.1, 0.08, 0.06]),
                (Case { cv: 2.0, load: 0.9, ..some }, [0.15, 0.16, 0.08]),
                (Case { cv: 2.0, load: 0.6, room: 24, ..some }, [0.4, 0.06, 0.08]),
                (Case { cv: 2.0, load: 0.8, room: 24, ..some }, [0.14, 0.06, 0.08]),
            ],
        );
    }

    #[test]
    fn lengths_that_scatter_by_twice_their_mean_are_cut_at_the_context() {
        let model = fixture::shape("llama-3.1-70b");
        let one = |mean, cv| Moments { mean, cv };
        let case = Case { input: one(1_024.0, 2.0), output: one(256.0, 2.0), context: Some(8_192.0), ..CASE };
        hold(
            &model,
            fixture::tensor(4),
            &[
                (Case { load: 0.3, ..case }, [0.05, 0.05, 0.08]),
                (Case { load: 0.6, ..case }, [0.1, 0.05, 0.09]),
                (Case { load: 0.8, ..case }, [0.15, 0.05, 0.1]),
            ],
        );
    }

    #[test]
    fn groups_take_prompts_side_by_side() {
        let model = fixture::shape("deepseek-v3");
        let spread = Spread { tensor: 1, attention_data: 8, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let case = Case { output: Moments { mean: 512.0, cv: 0.5 }, ..CASE };
        let near = [0.18, 0.05, 0.05];
        hold(&model, spread, &[(Case { load: 0.3, ..case }, near), (Case { load: 0.8, ..case }, near)]);
    }
}
