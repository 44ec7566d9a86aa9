//! Low-rank adapters that sequences of a batch bring along.

mod passed_over;
mod turnover;

use super::queue::crossing::crossing;
use super::queue::waiting::Wait;
use super::{Popularity, Replica, StepTime};
use crate::units::{Bytes, Flops, RequestRate, Seconds};
use passed_over::PassedOver;
use turnover::Open;

/// Bytes of a parameter: adapters are kept in 16 bits.
const NUMBER: f64 = 2.0;
/// Variance over the squared mean of what is left of a time, at a random point of it.
const EVENLY: f64 = 1.0 / 3.0;
/// Kernels of a projection: one for each factor, over all adapters of a batch (Punica, arXiv 2310.18547, section 4).
const FACTORS: f64 = 2.0;

/// Adapters, as one rank sees them.
#[derive(Clone, Copy, Debug)]
pub struct Adapters<'a> {
    /// How popular they are.
    pub popularity: &'a Popularity,
    /// Engines of which each has adapters of its own: 1 where all meet all of them.
    pub parts: f64,
    /// Different ones at once in an engine, at most.
    pub resident: f64,
    /// Whether requests are taken in past one whose adapter has no place.
    pub passed_over: bool,
    /// Parameters of one on a rank.
    pub parameters: f64,
    /// Projections that one changes, over all layers.
    pub projections: f64,
    /// Time of a kernel of it.
    pub kernel: Seconds,
}

/// The most requests in an engine on average with which each adapter has its turn, where it has places for so many adapters and
/// room for so many requests: those of an adapter of mean popularity that have waited for its place still find room, all at once.
/// With more of them those that have places hardly ever give them away, and the others starve.
///
/// With `a` requests of an adapter and `c` that wait for its place it has it for `(exp(a) - 1) / (exp(a) + c)` of the time, as in
/// [`PassedOver::of_random`]; with the most, all have as many as there are.
fn with_turns(popularity: &Popularity, places: f64, room: f64) -> f64 {
    let count: f64 = popularity.groups().iter().map(|(members, _)| members).sum();
    if count <= places {
        return f64::INFINITY;
    }
    let taken = |requests: f64| {
        let of = |(members, probability): &(f64, f64)| {
            let none_left = (-probability * requests).exp();
            members * (1.0 - none_left) / (1.0 + probability * count * room * none_left)
        };
        popularity.groups().iter().map(of).sum::<f64>()
    };
    let mut high = places;
    while taken(high) <= places {
        high *= 2.0;
    }
    crossing(|requests| taken(requests) - places, 0.0, high)
}

impl Adapters<'_> {
    /// Bytes of so many adapters on a rank.
    pub fn held(parameters: f64, count: f64) -> Bytes {
        Bytes::new(parameters * NUMBER * count)
    }
}

impl Replica<'_> {
    /// Of so many that are open in an engine with room for so many, how many wait for a place of their adapter, and the share of all that do.
    pub(super) fn without_place(&self, open: f64, room: f64, scatter: f64) -> (f64, f64) {
        let Some(adapters) = self.features.adapters.filter(|adapters| adapters.passed_over) else { return (0.0, 0.0) };
        let of_group = adapters.parts / f64::from(self.spread.attention_data);
        let places = adapters.resident * adapters.parts;
        let [open, room] = [open, room].map(|requests| requests * of_group);
        let here = Open { popularity: adapters.popularity, places, all: open, room }.here(scatter);
        here.map_or((0.0, 0.0), |here| ((open - here.number).max(0.0) / of_group, here.waits))
    }

    /// The wait of those that have none, as likely to begin at any time of it, where so many of all wait and so many end.
    pub(super) fn wait_of_open((waiting, share): (f64, f64), rate: RequestRate) -> Wait {
        if waiting <= 0.0 || share <= 0.0 {
            return Wait::NONE;
        }
        // By Little's law.
        let second = Seconds::new(1.0);
        Wait { share, mean: second * (waiting / (rate.over(second) * share)), variance: EVENLY, third: 0.0 }
    }

    /// The most requests in the engine, which has room for so many, with which each adapter has its turn.
    pub(super) fn with_turns(&self, room: f64) -> f64 {
        let Some(adapters) = self.features.adapters.filter(|adapters| adapters.passed_over) else {
            return f64::INFINITY;
        };
        let groups = f64::from(self.spread.attention_data);
        let of_group =
            with_turns(adapters.popularity, adapters.resident * adapters.parts, room / groups) / adapters.parts;
        of_group * groups
    }

    /// The wait for a place of requests whose adapter has none, where so many come each of which is in the engine for so long: from when
    /// they come until one is free, as likely to begin at any time of that.
    pub(super) fn wait_for_places(&self, rate: RequestRate, each: Seconds) -> Wait {
        let Some(adapters) = self.features.adapters.filter(|adapters| adapters.passed_over) else { return Wait::NONE };
        let of_group = rate.over(each) / f64::from(self.spread.attention_data);
        let (places, requests) = (adapters.resident * adapters.parts, of_group * adapters.parts);
        let PassedOver { share, wait, .. } = PassedOver::of_random(adapters.popularity, places, requests);
        if share > 0.0 { Wait { share, mean: each * wait, variance: EVENLY, third: 0.0 } } else { Wait::NONE }
    }

    /// What adapters add to a step of `own` sequences of a tensor group, with `tokens` tokens.
    ///
    /// Each adapter that any of them brings is read once; every token is multiplied by its own; and both factors of a
    /// projection have a kernel, however many adapters there are.
    pub(super) fn adapter_step(&self, own: f64, tokens: f64) -> StepTime {
        let Some(adapters) = &self.features.adapters else { return StepTime::default() };
        let hardware = self.hardware;
        let different = (adapters.popularity.different(own * adapters.parts) / adapters.parts).min(adapters.resident);
        let read = Adapters::held(adapters.parameters, different) / (hardware.memory * hardware.weights);
        let multiplied = self.adapter_flops(tokens) / (hardware.wide.peak * hardware.kernels.decode_gemm.value.get());
        StepTime {
            weights: read,
            arithmetic: multiplied,
            overhead: adapters.kernel * (FACTORS * adapters.projections),
            ..StepTime::default()
        }
    }

    /// What they add to a prefill of so many tokens in so many steps.
    pub(super) fn adapter_prefill(&self, tokens: f64, steps: f64) -> Seconds {
        let Some(adapters) = &self.features.adapters else { return Seconds::ZERO };
        let multiplied = self.adapter_flops(tokens) / (self.hardware.wide.peak * self.hardware.gemm);
        multiplied * self.hardware.prefill + adapters.kernel * (FACTORS * adapters.projections * steps)
    }

    fn adapter_flops(&self, tokens: f64) -> Flops {
        let parameters = self.features.adapters.as_ref().map_or(0.0, |adapters| adapters.parameters);
        Flops::new(2.0 * parameters * tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, VecDeque};

    use crate::inference::queue::ordered::Ordered;
    use crate::inference::simulation::Draws;
    use crate::inference::{Features, fixture};

    /// The share that waits and how long, request by request: each is in the engine for 1.
    fn simulated(adapters: usize, places: usize, requests: f64) -> [f64; 3] {
        let (mut draws, mut at, count) = (Draws::new(), 0.0, 200_000);
        let mut here: Vec<usize> = vec![0; adapters];
        let mut waiting: VecDeque<(f64, usize)> = VecDeque::new();
        let mut ends: BTreeMap<(Ordered, usize), usize> = BTreeMap::new();
        let (mut passed, mut waited, mut squared) = (0.0, 0.0, 0.0);
        for number in 0..count {
            at += draws.exponential(requests.recip());
            while let Some(((end, key), adapter)) = ends.first_key_value().map(|(key, of)| (*key, *of)) {
                if end.0 > at {
                    break;
                }
                ends.remove(&(end, key));
                here[adapter] -= 1;
                if here[adapter] == 0
                    && let Some((_, next)) = waiting.front().copied()
                {
                    let taken = waiting.iter().filter(|(_, of)| *of == next).copied().collect::<Vec<_>>();
                    waiting.retain(|(_, of)| *of != next);
                    for (index, (came, _)) in taken.into_iter().enumerate() {
                        waited += end.0 - came;
                        squared += (end.0 - came).powi(2);
                        here[next] += 1;
                        ends.insert((Ordered(end.0 + 1.0), count * (index + 1) + number), next);
                    }
                }
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one of a few")]
            let adapter = (draws.even() * adapters as f64) as usize;
            if here[adapter] > 0 || here.iter().filter(|open| **open > 0).count() < places {
                here[adapter] += 1;
                ends.insert((Ordered(at + 1.0), number), adapter);
            } else {
                passed += 1.0;
                waiting.push_back((at, adapter));
            }
        }
        let mean = waited / passed;
        [passed / count as f64, mean, squared / passed / (mean * mean) - 1.0]
    }

    #[test]
    fn those_without_a_place_wait_until_another_adapter_has_no_request_left() {
        for (adapters, places, requests) in [(100, 16, 30.0), (20, 5, 20.0), (8, 2, 8.0)] {
            let [share, wait, scatter] = simulated(adapters, places, requests);
            let found = PassedOver::of_random(&Popularity::zipf(adapters as f64, 0.0), places as f64, requests);
            assert!((found.share - share).abs() < 0.01, "{adapters} {places} {requests}: {found:?} {share}");
            assert!((found.wait / wait - 1.0).abs() < 0.08, "{adapters} {places} {requests}: {found:?} {wait}");
            assert!((scatter - EVENLY).abs() < 0.16, "{scatter}");
        }
        // Where places suffice on average they do not always: a known miss.
        let (found, [share, wait, _]) =
            (PassedOver::of_random(&Popularity::zipf(100.0, 0.0), 16.0, 12.0), simulated(100, 16, 12.0));
        assert!(found.share <= 0.0 && share > 0.07 && wait < 0.15, "{found:?} {share} {wait}");
    }

    #[test]
    fn waits_end_up_to_where_those_that_waited_fill_an_engine() {
        for (adapters, exponent, places, room) in
            [(5.0, 0.0, 4.0, 400.0), (100.0, 0.0, 1.0, 500.0), (20.0, 0.0, 8.0, 1_024.0), (400.0, 1.0, 16.0, 60.0)]
        {
            let popularity = Popularity::zipf(adapters, exponent);
            let most = with_turns(&popularity, places, room);
            let at = |part: f64| PassedOver::of_random(&popularity, places, most * part);
            let waits = [0.5, 0.7, 0.9, 0.99, 1.0].map(|part| at(part).share * at(part).wait);
            assert!(waits.is_sorted() && waits[0] < waits[4], "{adapters} {places}: {waits:?}");
            if exponent <= 0.0 {
                // As many adapters as have no place are without one, however many requests there are.
                assert!((at(1.0).share + places / adapters - 1.0).abs() < 1e-9, "{:?}", at(1.0));
                // Of each, `own` come in the time of a request; those that wait find room for as many.
                let (own, wait) = (most / adapters, room * adapters / most);
                let held = own.exp_m1() / (own.exp() + own * wait);
                assert!((held * adapters / places - 1.0).abs() < 1e-9, "{held}");
            }
        }
        let all = Popularity::zipf(4.0, 0.0);
        assert!(with_turns(&all, 4.0, 400.0).is_infinite());
    }

    #[test]
    fn few_adapters_add_kernels_and_many_add_reading() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let of = |count: f64| {
            let popularity = Popularity::zipf(count, 0.0);
            let adapters = Adapters {
                popularity: &popularity,
                parts: 1.0,
                resident: f64::INFINITY,
                passed_over: true,
                parameters: 50e6,
                projections: 560.0,
                kernel: Seconds::new(4.5e-6),
            };
            let plain = Replica::new(&model, &hardware, fixture::tensor(4));
            plain.with(Features { adapters: Some(adapters), ..Features::default() }).adapter_step(64.0, 64.0)
        };
        let (one, many) = (of(1.0), of(1e6));
        // 1,120 kernels of 4.5 us are 5.04 ms either way.
        assert!((one.overhead.value() - 5.04e-3).abs() < 1e-9 && one.overhead == many.overhead);
        // One adapter of 100 MB at 95% of 3.35 TB/s; 64 different ones of a million.
        assert!((one.weights.value() - 100e6 / (0.95 * 3.35e12)).abs() < 1e-12);
        assert!((many.weights / one.weights - 64.0).abs() < 0.01);
    }
}
