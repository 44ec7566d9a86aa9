//! How latencies scatter where a number of requests is open at all times, each followed by another as it ends.

use super::latency::{Latencies, Sources, distribution};
use super::queue::coming::Coming;
use super::queue::pace::Pace;
use super::queue::scratch::{Scratch, Timed};
use super::queue::waiting::{Wait, dispersion};
use super::state::SteadyState;
use crate::units::Seconds;

/// Waits of requests that are open, as far as their mean is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// Share of requests that come all at once.
    pub(super) together: f64,
    /// How long the last of those waits for the others.
    pub(super) last: Seconds,
    /// Wait of each until another has ended, where more are open than are taken.
    pub(super) room: Seconds,
    /// As many as wait so in an engine, and as it takes at once.
    pub(super) waiting: f64,
    pub(super) taken: f64,
    /// Wait of those whose adapter has no place.
    pub(super) places: Wait,
}

impl Turns {
    /// Where each is taken as it comes.
    pub(super) const fn none(open: f64) -> Self {
        Self { together: 0.0, last: Seconds::ZERO, room: Seconds::ZERO, waiting: 0.0, places: Wait::NONE, taken: open }
    }

    /// Evenly from none to that of the last.
    fn burst(&self) -> Wait {
        if self.together <= 0.0 || self.last <= Seconds::ZERO {
            return Wait::NONE;
        }
        Wait { share: self.together, mean: self.last / 2.0, variance: 1.0 / 3.0, third: 0.0 }
    }

    /// Until so many others have ended, each of whose places is taken again: it scatters as the number that ends in that time.
    fn for_room(&self, scatter: f64) -> Wait {
        if self.room <= Seconds::ZERO {
            return Wait::NONE;
        }
        let variance = dispersion(self.waiting / self.taken.max(1.0), scatter) / self.waiting.max(1.0);
        Wait { share: 1.0, mean: self.room, variance, third: 2.0 * variance * variance }
    }
}

/// Distributions of latencies about a mean that is known: first tokens by the lengths of prompts, `own` of each, behind waits for
/// prompts that come at the same time by chance, the burst that a benchmark opens with, and room; tokens by the number in decode,
/// which prompts that are taken in leave open.
pub(super) fn scattered<F: Fn(f64) -> Seconds>(
    coming: &Coming<'_>,
    state: &SteadyState,
    turns: &Turns,
    (own, by_chance, token): (&dyn Fn(f64, Seconds) -> Seconds, Wait, F),
    scratch: &mut Scratch,
) -> Latencies {
    let burst = turns.burst().and(turns.places);
    let mean = scratch.over_prompts(|timed: &Timed| own(timed.new, timed.alone)).mean;
    let told = state.ttft.saturating_sub(by_chance.over_all() + burst.over_all() + turns.room);
    let part = if mean > Seconds::ZERO { told / mean } else { 1.0 };
    let first = |new: f64, alone: Seconds| own(new, alone) * part;
    let admission = turns.for_room(coming.requests.answers.scatter());
    let pace = Pace::of_open(state.batch, turns.taken);
    let sources = Sources { first: &first, prefills: by_chance, burst, admission, pace, token };
    distribution(coming, state, &sources, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::simulation::{Engine, Found, all_at_once, in_one_step};
    use crate::inference::step::prefill::FULL_STEP;
    use crate::inference::together::Together;
    use crate::inference::{HandOver, Links, Load, Replica, Request, Room, Separate, fixture};
    use crate::scenario::Balancing;
    use crate::topology::Pairs;
    use crate::workload::{Moments, Requests};

    /// Mean time to the first token; half, 95% and 99% of first tokens, of tokens, and of whole requests: as reckoned, and request
    /// by request.
    fn both(input: Moments, output: Moments, (open, room): (u32, u32), waves: f64) -> [[f64; 10]; 2] {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let requests = Requests::lognormal(input, output);
        let request =
            Request { input: input.mean, cached: 0.0, output: output.mean, beyond: requests.beyond, spread: 0.0 };
        let coming =
            Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: false, balancing: Balancing::Random };
        let mut scratch = Scratch::default();
        let places = Room { requests: f64::from(room) };
        let filled = engine.filled(&request, places, &coming, &mut scratch);
        let load = Load { request, concurrency: f64::from(open), waves, fixed_length: false };
        let (state, latencies) = engine.closed_loop_of(&load, (&filled, places), &coming, &mut scratch);
        let taken = load.concurrency.min(places.requests);
        let together = Together::new(&engine, &request, taken).over(filled.alone());
        let simulated = Engine {
            adapters: None,
            places: room as usize,
            tokens: Some(FULL_STEP),
            prefill: &|new| in_one_step(&engine, new),
            behind: &|new| (hardware.first_token + state.cycle * engine.chunks(new)).value(),
            token: &|batch| {
                let number = batch.max(1.0);
                engine.token_time(&request, number, &together, 1.0 - number.recip()).total().value()
            },
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds of requests")]
        let count = if waves.is_finite() { (f64::from(open) * waves) as u32 } else { 40_000 };
        let sent = all_at_once(count, input, output);
        let warm = if waves.is_finite() { 0 } else { 2_000 };
        held_against(&state, latencies, &simulated.run_open(&sent, open as usize, warm))
    }

    fn held_against(state: &SteadyState, latencies: Latencies, found: &Found) -> [[f64; 10]; 2] {
        let three = |of: crate::inference::Quantiles| [of.p50, of.p95, of.p99].map(Seconds::value);
        let Latencies { first_token, token, whole } = latencies;
        let reckoned = [&[state.ttft.value()][..], &three(first_token), &three(token), &three(whole)].concat();
        let found = [&[found.mean][..], &found.first, &found.token, &found.whole].concat();
        [reckoned, found].map(|figures| figures.try_into().unwrap())
    }

    #[test]
    fn latencies_scatter_as_those_of_requests_one_by_one() {
        let of = |mean, cv| Moments { mean, cv };
        let (first, token, whole) = (0.06, 0.015, 0.017);
        for (input, output, open, room, near) in [
            (of(2_048.0, 0.0), of(256.0, 0.0), 1, 100, first),
            (of(2_048.0, 0.0), of(256.0, 0.0), 16, 100, first),
            (of(2_048.0, 0.5), of(256.0, 0.5), 16, 100, first),
            (of(2_048.0, 1.0), of(512.0, 1.0), 16, 100, 0.11),
            (of(500.0, 0.5), of(500.0, 0.5), 64, 100, first),
            (of(2_048.0, 0.5), of(512.0, 0.5), 64, 100, first),
            (of(2_048.0, 0.5), of(512.0, 0.5), 64, 40, first),
            (of(500.0, 1.0), of(500.0, 1.0), 128, 64, first),
            (of(500.0, 0.5), of(500.0, 0.1), 96, 64, first),
            (of(500.0, 0.5), of(500.0, 0.5), 80, 64, first),
            (of(500.0, 0.5), of(500.0, 0.5), 200, 64, first),
            (of(500.0, 0.5), of(500.0, 1.5), 96, 64, first),
            (of(500.0, 0.5), of(500.0, 1.5), 400, 64, first),
        ] {
            let [reckoned, found] = both(input, output, (open, room), f64::INFINITY);
            let off: [f64; 10] = std::array::from_fn(|index| reckoned[index] / found[index] - 1.0);
            // Lengths that scatter by more than their mean make a whole request less nearly lognormal.
            let whole = if output.cv > 1.0 { 0.025 } else { whole };
            let near = |index: usize| [near, token, whole][index.saturating_sub(1) / 3];
            assert!((0..10).all(|index| off[index].abs() < near(index)), "{input:?} {output:?} {open}: {off:.3?}");
        }
        // Those of one length end as they began, together or not, for ever: some wait for longer than where they end evenly.
        let [reckoned, found] = both(of(500.0, 0.0), of(500.0, 0.0), (128, 64), f64::INFINITY);
        let off: [f64; 10] = std::array::from_fn(|index| reckoned[index] / found[index] - 1.0);
        assert!(off.iter().all(|off| off.abs() < 0.04) && off[0].abs() < 0.002, "{off:.3?}");
    }

    #[test]
    fn places_are_taken_again_while_the_host_takes_others_in() {
        let of = |mean, cv| Moments { mean, cv };
        for (input, output, places, near) in [
            (100.0, 4.0, 1, 0.01),
            (100.0, 4.0, 2, 0.02),
            (100.0, 4.0, 8, 0.04),
            (100.0, 16.0, 8, 0.01),
            (2_048.0, 4.0, 1, 0.01),
            // Of two, the other begins just when one ends, more seldom than at random.
            (2_048.0, 4.0, 2, 0.06),
            // Prompts bind.
            (2_048.0, 16.0, 8, 0.01),
        ] {
            // By Little's law, nearly all that are open over those that end in a second.
            let [reckoned, found] = both(of(input, 0.5), of(output, 0.5), (100, places), f64::INFINITY);
            let off = reckoned[0] / found[0] - 1.0;
            assert!(off.abs() < near, "{input} {output} {places}: {off:.3}");
        }
    }

    /// The same of a prefill worker and a decode replica with so much open.
    fn both_of_pools(input: Moments, output: Moments, open: u32) -> [[f64; 10]; 2] {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let requests = Requests::lognormal(input, output);
        let request =
            Request { input: input.mean, cached: 0.0, output: output.mean, beyond: requests.beyond, spread: 0.0 };
        let coming =
            Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: false, balancing: Balancing::Random };
        let mut scratch = Scratch::default();
        let nothing = Seconds::ZERO;
        let transfer = HandOver {
            fixed: nothing,
            sent: nothing,
            received: nothing,
            pairs: Pairs::NEAR,
            sharing: [1.0; 2],
            links: Links::Cards,
        };
        let pools = Separate {
            prefill: engine,
            workers: 1.0,
            decode: engine,
            replicas: 1.0,
            room: Room { requests: 1e4 },
            transfer,
            served: nothing,
        };
        let pools = Separate { served: pools.served_on_average(&request, &coming, &mut scratch), ..pools };
        let (state, latencies) = pools.closed_of(&request, (f64::from(open), f64::INFINITY), &coming, &mut scratch);
        let simulated = Engine {
            adapters: None,
            places: 10_000,
            tokens: Some(FULL_STEP),
            prefill: &|new| in_one_step(&engine, new),
            behind: &|_| (hardware.first_token + state.cycle).value(),
            token: &|batch| pools.step(&request, batch.max(1.0)).total().value(),
        };
        held_against(&state, latencies, &simulated.run_open(&all_at_once(40_000, input, output), open as usize, 2_000))
    }

    #[test]
    fn pools_of_few_requests_tell_first_tokens_in_time() {
        let of = |mean, cv| Moments { mean, cv };
        for (input, output, open, first) in [
            (of(2_048.0, 0.0), of(256.0, 0.0), 1, 0.01),
            (of(2_048.0, 0.5), of(256.0, 0.5), 4, 0.08),
            (of(2_048.0, 0.5), of(256.0, 0.5), 16, 0.22),
            (of(2_048.0, 0.5), of(256.0, 0.5), 32, 0.18),
            (of(2_048.0, 0.5), of(256.0, 0.5), 64, 0.09),
            (of(2_048.0, 1.0), of(512.0, 1.0), 16, 0.15),
            (of(2_048.0, 1.0), of(512.0, 1.0), 64, 0.2),
            (of(500.0, 0.5), of(500.0, 0.5), 64, 0.08),
            (of(500.0, 0.5), of(500.0, 0.5), 256, 0.12),
            // Those of one length stay together as they began.
            (of(2_048.0, 0.0), of(256.0, 0.0), 16, 0.9),
            (of(2_048.0, 0.0), of(256.0, 0.0), 64, 0.1),
        ] {
            let [reckoned, found] = both_of_pools(input, output, open);
            let off: [f64; 10] = std::array::from_fn(|index| reckoned[index] / found[index] - 1.0);
            let near = |index: usize| [first, 0.05, 0.05][index.saturating_sub(1) / 3];
            assert!((0..10).all(|index| off[index].abs() < near(index)), "{input:?} {output:?} {open}: {off:.3?}");
        }
    }

    /// Means are those that measurements have, which a simulation has more of; how late the last are is the burst's.
    #[test]
    fn a_benchmarks_burst_makes_the_latest_tokens() {
        let of = |mean, cv| Moments { mean, cv };
        for (input, output, open, waves) in [
            (of(2_048.0, 0.06), of(256.0, 0.06), 32, 10.0),
            (of(2_048.0, 0.06), of(256.0, 0.06), 32, 4.0),
            (of(2_048.0, 0.5), of(512.0, 0.5), 64, 10.0),
            (of(500.0, 0.5), of(500.0, 0.5), 64, 10.0),
        ] {
            let [reckoned, found] = both(input, output, (open, 1_000), waves);
            let off: [f64; 10] = std::array::from_fn(|index| reckoned[index] / found[index] - 1.0);
            let near = [0.35, 0.5, 0.28, 0.2, 0.05, 0.05, 0.05, 0.12, 0.12, 0.12];
            assert!((0..10).all(|index| off[index].abs() < near[index]), "{input:?} {output:?} {open}: {off:.3?}");
        }
    }
}
