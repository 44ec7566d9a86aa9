//! Pools in which a number of requests is open at all times, or nobody waits.

use super::{LEAST_PART, Waited};
use crate::inference::closed::{Turns, scattered};
use crate::inference::hand_over::scatter;
use crate::inference::latency::Latencies;
use crate::inference::queue::crossing::{LEAST, crossing};
use crate::inference::queue::waiting::{Round, Wait};
use crate::inference::{Coming, Replica, Request, Scratch, Separate, SteadyState};
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);
/// How near a rate comes to the most that has a steady wait.
const NEAR: f64 = 1e-10;

impl Separate<'_> {
    /// So many open at once in all: those that are in neither pool's hands wait. Where prompts come in a number of rounds, the
    /// first all at once, each of those waits for half of the others, side by side in all workers.
    pub fn closed(
        &self,
        request: &Request,
        at_once: (f64, f64),
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> SteadyState {
        self.open_at_once(request, at_once, coming, scratch).0
    }

    /// The same, the waits in it whose ends are known, and those by chance for workers and links.
    pub(super) fn open_at_once(
        &self,
        request: &Request,
        (open, waves): (f64, f64),
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> (SteadyState, Turns, Wait) {
        self.time_prompts(request, coming, scratch);
        let scatter = scatter(coming);
        let alone = scratch.over_prompts(|timed| timed.alone).mean;
        let served = scratch.over_prompts(|timed| timed.served);
        let prompts = self.prompts(request, coming, scratch);
        let hardware = self.busy_worker(&self.prompt(request));
        let worker = Replica { hardware: &hardware, ..self.prefill };
        let (decode, others) = (self.decoded(request), self.prefilled().min(self.handed_over(request)));
        let most = decode.min(others);
        // Decode that is full makes others wait for room; prompts and caches wait for each other without end before that.
        let top = if decode < others { 1.0 } else { 1.0 - NEAR };
        let groups = f64::from(self.prefill.spread.attention_data);
        let in_turn = worker.prefill_together(groups, request.input, request.cached);
        let last = in_turn * ((open - self.workers).max(0.0) / self.servers());
        let burst = last * (0.5 / waves);
        let links =
            |rate: RequestRate, batch: f64| self.transfer.wait(rate, self.ends_of_links(request, rate, batch), scatter);
        // Prompts come again as answers end: each finds what others have before it.
        let prefilled = RequestRate::of(self.servers(), self.served.max(alone * LEAST_PART));
        let in_workers = |state: &SteadyState, rate: RequestRate| {
            let elsewhere = prefilled.over(state.ttft.saturating_sub(alone) + state.tpot * request.output);
            let round = Round::new((open, elsewhere), rate / prefilled, served.variance, coming.requests.overlap);
            // That of servers that take prompts one by one has too many before one where a step takes in all that have come; there, one
            // finds the others as if they came at random by themselves (Schweitzer's form of mean value analysis, 1979).
            let (found, others) = (prompts(prefilled * round.load()), prompts(rate * ((open - 1.0).max(0.0) / open)));
            (if found.over_all() < others.over_all() { found } else { others }, round)
        };
        let at = |rate: RequestRate| {
            let batch = self.batch_at(request, rate);
            let links = links(rate, batch).over_all();
            let state = self.state(request, rate, batch, Waited { queue: burst, links }).with_prefill(alone);
            let queue = in_workers(&state, rate).0.over_all();
            SteadyState { ttft: state.ttft + queue, queue: state.queue + queue, ..state }
        };
        let waits = |rate: RequestRate, room: Seconds| {
            let together = waves.recip().min(1.0);
            let last = if together > 0.0 { last * (waves.recip() / together) } else { Seconds::ZERO };
            // As many wait for room, by Little's law, and are not taken.
            let waiting = rate.over(room);
            let [waiting, taken] = [waiting, open - waiting].map(|number| number / self.replicas);
            let turns = Turns { together, last, room, waiting, places: Wait::NONE, taken };
            let state = self.state(request, rate, self.batch_at(request, rate), Waited::default()).with_prefill(alone);
            let (in_workers, round) = in_workers(&state, rate);
            let in_workers = in_workers.of_open(rate, self.workers, &round);
            let on_links = links(rate, self.batch_at(request, rate)).of_open(
                rate,
                self.senders(),
                &Round { served: scatter, ..round },
            );
            (turns, in_workers.and(on_links))
        };
        // By Little's law, as shares of the most: those that come, over those that end with so many open.
        let whole = |state: &SteadyState| state.ttft + state.tpot * request.output;
        let over = |share: f64| share - RequestRate::of(open, whole(&at(most * share))) / most;
        if over(top) >= 0.0 {
            let rate = most * crossing(over, LEAST, top);
            let (turns, by_chance) = waits(rate, Seconds::ZERO);
            return (at(rate), turns, by_chance);
        }
        let mut state = at(most * top);
        let queue = (SECOND * (open / most.over(SECOND))).saturating_sub(whole(&state));
        state.queue += queue;
        state.ttft += queue;
        let (turns, by_chance) = waits(most * top, queue);
        (state, turns, by_chance)
    }

    /// So many open at once in all, as [`Separate::closed`] has it, and how their latencies scatter.
    pub fn closed_of(
        &self,
        request: &Request,
        at_once: (f64, f64),
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> (SteadyState, Latencies) {
        let (state, turns, by_chance) = self.open_at_once(request, at_once, coming, scratch);
        (state, self.about(request, &state, &turns, by_chance, (coming, scratch)))
    }

    /// How latencies scatter about those of a state in which nobody waits.
    pub fn endless_latencies(
        &self,
        request: &Request,
        state: &SteadyState,
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> Latencies {
        self.about(request, state, &Turns::none(state.batch), Wait::NONE, (coming, scratch))
    }

    fn about(
        &self,
        request: &Request,
        state: &SteadyState,
        turns: &Turns,
        by_chance: Wait,
        (coming, scratch): (&Coming<'_>, &mut Scratch),
    ) -> Latencies {
        self.time_prompts(request, coming, scratch);
        let fixed = self.decode.hardware.first_token + self.transfer.alone() + state.cycle;
        let own = |_: f64, alone: Seconds| fixed + alone;
        let token =
            |number: f64| self.step(request, number.clamp(1.0_f64.min(state.batch), self.room.requests)).total();
        scattered(coming, state, turns, (&own, by_chance, token), scratch)
    }
}
