//! Answers of one token: the first, which the prefill makes, is all of them. Nothing is ever in decode, and prompts have the engine to
//! themselves.

use super::closed::Turns;
use super::features::TokenTime;
use super::queue::crossing::{LEAST, crossing};
use super::queue::waiting::Wait;
use super::state::{Load, SteadyState};
use super::together::Together;
use super::{Replica, Request, StepTime};
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);

impl Replica<'_> {
    /// The step by itself in which the first token comes, as that of any prompt; there is none between tokens.
    pub(super) fn first_step(&self, request: &Request) -> TokenTime {
        let cycle = self.token_step(1.0, request.contexts()).1;
        TokenTime { step: StepTime::default(), cycle, stall: Seconds::ZERO }
    }

    /// The most that end: with so many in decode whose tokens take so long; where none is, prompts that are taken in by steps that
    /// are full of them.
    pub(super) fn ends(&self, request: &Request, batch: f64, token: &TokenTime, prefills: &Together) -> RequestRate {
        if request.decodes() {
            return RequestRate::of(batch, token.total() * request.output);
        }
        RequestRate::of(f64::from(self.spread.pipeline), prefills.of(f64::INFINITY))
    }

    /// With so many open: as many as come again when their prefill is done, of which no more than `most` end. Prompts wait for others
    /// `by_chance` where they come at a rate, beside a step that takes so long, and as long at least as given.
    pub(super) fn open_at_prefill(
        &self,
        load: &Load,
        (prefill, most): (Seconds, RequestRate),
        prefills: Together,
        by_chance: impl Fn(RequestRate, Seconds, Seconds) -> Wait,
    ) -> (SteadyState, Turns, Together, Wait) {
        let (request, open) = (&load.request, load.concurrency);
        let token = self.first_step(request);
        let most = most.min(self.ends(request, 0.0, &token, &prefills));
        let first = self.hardware.first_token + prefill + token.cycle;
        let least = (SECOND * (open / most.over(SECOND))).saturating_sub(first);
        let waits = |share: f64| by_chance(most * share, token.cycle, least);
        // By Little's law, as shares of the most.
        let over = |share: f64| share - RequestRate::of(open, first + waits(share).over_all()) / most;
        let share = crossing(over, LEAST, 1.0);
        let wait = waits(share);
        let queue = wait.over_all().max(least);
        let ttft = first + queue;
        let requests_per_second = RequestRate::of(open, ttft).over(SECOND);
        let state = SteadyState {
            ttft,
            joined: token.cycle,
            queue,
            requests_per_second,
            ..SteadyState::of(&token, 0.0, prefill)
        };
        (state, Turns::none(open), prefills, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::simulation::{Draws, Engine, Found, Sent, in_one_step};
    use crate::inference::step::prefill::FULL_STEP;
    use crate::inference::{Coming, Room, Scratch, fixture};
    use crate::scenario::Balancing;
    use crate::workload::{Moments, Requests};

    /// A number that is open, or a share of the most that comes at random.
    #[derive(Clone, Copy, Debug)]
    enum Asked {
        Open(u32),
        Load(f64),
    }

    /// Mean time to the first token, and half, 95% and 99% of them: as reckoned, and prompt by prompt.
    fn both(input: Moments, asked: Asked) -> [[f64; 4]; 2] {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let requests = Requests::lognormal(input, Moments { mean: 1.0, cv: 0.0 });
        let request = Request { input: input.mean, cached: 0.0, output: 1.0, beyond: requests.beyond, spread: 0.0 };
        let coming =
            Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: false, balancing: Balancing::Random };
        let (mut scratch, room) = (Scratch::default(), Room { requests: 1_000.0 });
        let filled = engine.filled(&request, room, &coming, &mut scratch);
        let (state, latencies) = match asked {
            Asked::Open(open) => {
                let concurrency = f64::from(open);
                let load = Load { request, concurrency, waves: f64::INFINITY, fixed_length: false };
                engine.closed_loop_of(&load, (&filled, room), &coming, &mut scratch)
            }
            Asked::Load(load) => {
                engine.open_loop(&request, filled.most * load, 1, &coming, &filled, &mut scratch).unwrap()
            }
        };
        assert!(state.batch <= 0.0 && state.tpot <= Seconds::ZERO && latencies.whole == latencies.first_token);
        let simulated = Engine {
            adapters: None,
            places: 1_000,
            tokens: Some(FULL_STEP),
            prefill: &|new| in_one_step(&engine, new),
            behind: &|_| (hardware.first_token + state.cycle).value(),
            token: &|_| 1e-12,
        };
        let (mut draws, mut at) = (Draws::new(), 0.0);
        let sent: Vec<Sent> = (0..40_000)
            .map(|_| {
                at += draws.exponential(state.requests_per_second.recip());
                Sent { at, input: draws.lognormal(input.mean, input.cv), output: 0.0 }
            })
            .collect();
        let Found { mean, first, .. } = match asked {
            Asked::Open(open) => simulated.run_open(&sent, open as usize, 2_000),
            Asked::Load(_) => simulated.run(&sent, 1, &mut |_| 0),
        };
        let [p50, p95, p99] = [latencies.first_token.p50, latencies.first_token.p95, latencies.first_token.p99];
        [[state.ttft, p50, p95, p99].map(Seconds::value), [mean, first[0], first[1], first[2]]]
    }

    #[test]
    fn prompts_alone_wait_as_one_by_one() {
        let of = |mean, cv| Moments { mean, cv };
        for (input, asked, near) in [
            (of(2_048.0, 0.0), Asked::Load(0.3), 0.05),
            (of(2_048.0, 0.5), Asked::Load(0.3), 0.03),
            (of(2_048.0, 0.5), Asked::Load(0.8), 0.09),
            (of(300.0, 0.5), Asked::Load(0.6), 0.12),
            (of(2_048.0, 0.0), Asked::Open(1), 0.01),
            (of(2_048.0, 0.0), Asked::Open(2), 0.01),
            (of(2_048.0, 0.0), Asked::Open(4), 0.01),
            (of(2_048.0, 0.0), Asked::Open(64), 0.01),
            (of(2_048.0, 0.5), Asked::Open(2), 0.12),
            (of(2_048.0, 0.5), Asked::Open(4), 0.05),
            (of(2_048.0, 0.5), Asked::Open(16), 0.05),
            (of(2_048.0, 0.5), Asked::Open(128), 0.01),
            (of(300.0, 0.5), Asked::Open(16), 0.03),
        ] {
            let [reckoned, found] = both(input, asked);
            let off: [f64; 4] = std::array::from_fn(|index| reckoned[index] / found[index] - 1.0);
            assert!(off.iter().all(|off| off.abs() < near), "{input:?} {asked:?}: {off:.3?}");
        }
    }
}
