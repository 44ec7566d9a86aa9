//! How places of adapters turn over where a number of requests is open: each that ends is followed by another, of any adapter.

use std::f64::consts::LN_2;

use statrs::consts::EULER_MASCHERONI;
use statrs::function::exponential;
use statrs::function::gamma::digamma;

use super::passed_over::PassedOver;
use crate::inference::Popularity;
use crate::inference::queue::crossing::{LEAST, crossing};

/// Requests of others for an adapter, in the time of one, with which its place is as good as never free, and as many as are told from more.
const NEVER_FREE: f64 = 60.0;
const NO_MORE: f64 = 300.0;
/// Share below which what is left of a sum is left out.
const LITTLE: f64 = 1e-9;

/// So many requests open, and places for so many adapters and room for so many requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open<'a> {
    pub(super) popularity: &'a Popularity,
    pub(super) places: f64,
    pub(super) all: f64,
    pub(super) room: f64,
}

/// Requests in an engine on average, and the share of all that wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Here {
    pub(super) number: f64,
    pub(super) waits: f64,
}

/// How lengths of answers scatter, in two limits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lengths {
    /// All alike.
    One,
    /// Exponentially.
    Exponential,
}

/// Where requests come evenly: as many as are in the engine, and the share of all that wait.
#[derive(Clone, Copy, Debug)]
struct Steady {
    here: f64,
    waits: f64,
    /// Those that get a place together, on average.
    waited: f64,
    /// Adapters that others wait for, on average.
    others: f64,
    /// Share of requests whose adapter has a place.
    with: f64,
}

/// What comes of requests of one adapter that have its place, in times that a request is in the engine.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// Those that begin it together, which have waited.
    waited: f64,
    /// Those that follow one of another adapter.
    coming: f64,
    /// The share of others that follow one of its own, at once.
    own: f64,
}

impl Visit {
    /// How long the adapter has its place.
    ///
    /// Those that follow each other make chains, so many of which begin together and others come at random: a busy period of
    /// M/G/inf with `w` at its beginning, `int exp(v int_t (1 - F)) (1 - F(t)^w) dt`, `F` being the distribution of chains (from the chance of none
    /// after a time, by renewal theory).
    fn time(self, lengths: Lengths) -> f64 {
        let Self { waited, coming, own } = self;
        let at_once = coming / (1.0 - own);
        if at_once > NEVER_FREE {
            return at_once.min(NO_MORE).exp() / coming;
        }
        let mut time = 0.0;
        match lengths {
            Lengths::One => {
                // Chains of at least so many, all that begin together for a whole time each.
                let (mut longer, mut more) = (1.0_f64, true);
                while more {
                    let goes_on = if longer < 1.0 { -(waited * (-longer).ln_1p()).exp_m1() } else { 1.0 };
                    let come = coming * longer;
                    let held = if come > LITTLE { come.exp_m1() / come } else { 1.0 };
                    let part = goes_on * held * (come * own / (1.0 - own)).exp();
                    time += part;
                    longer *= own;
                    more = part * own > LITTLE * time;
                }
                time
            }
            Lengths::Exponential => {
                let (chain, come) = (1.0 - own, at_once);
                // Powers of those that come, by the series of the exponential.
                time += (digamma(waited + 1.0) + EULER_MASCHERONI).max(0.0);
                let (mut term, mut number, mut beta) = (1.0, 1.0, (waited + 1.0).recip());
                let mut more = true;
                // With none that waited all parts are zero.
                while more {
                    term *= come / number;
                    let part = term * (number.recip() - beta);
                    time += part;
                    more = number <= come || part.abs() > LITTLE * time.abs();
                    beta *= number / (waited + number + 1.0);
                    number += 1.0;
                }
                time / chain
            }
        }
    }
}

impl Here {
    /// Of requests that grow fewer from the sum of both, when so many join, to the lesser number, as a constant share of them ends without one
    /// that follows, with room for no more than so many: the rest waits and follows those that end.
    fn falling(least: f64, joined: f64, room: f64) -> Self {
        let most = (least + joined).min(room);
        let behind = (least + joined - most) / room;
        let time = (most / least).ln() + behind;
        Self { number: joined / time, waits: behind / time }
    }

    /// The same where that share of those that come waits for a place besides.
    fn with_places(self, share: f64) -> Self {
        Self { waits: share + (1.0 - share) * self.waits, ..self }
    }
}

impl Open<'_> {
    /// As many as are in the engine on average, and the share that waits.
    ///
    /// An adapter that has a place keeps it until none of its requests is left, while those of others gather. Where many adapters take turns, the engine has
    /// as many at any time ([`Open::steady`]). Where few do, or nearly all have places, requests grow fewer until a place is free, and are many again at once
    /// ([`Open::in_turns`]). Each of the two has places free too late where it does not hold, so that the larger number is that in the engine.
    /// Between answers of one length and exponential ones it goes by the standard deviation.
    ///
    /// Against a simulation request by request with an engine's own times within a tenth, a third where one place is for answers of a long tail; waits by
    /// chance are left out where places suffice on average. None where nobody waits.
    pub(super) fn here(&self, scatter: f64) -> Option<Here> {
        let of = |lengths: Lengths| {
            let steady = self.steady(lengths)?;
            let turns = self.in_turns(&steady, lengths);
            let before = steady.waited / (steady.waited / steady.here).exp_m1();
            let even = if before >= self.room {
                Here { number: self.room, waits: 1.0 }
            } else {
                Here::falling(before, steady.waited, self.room)
            };
            let larger = if turns.number > even.number { turns } else { even };
            Some(larger.with_places(steady.waits))
        };
        let part = scatter.sqrt().min(1.0);
        let one = if part < 1.0 { of(Lengths::One)? } else { of(Lengths::Exponential)? };
        if part <= 0.0 || part >= 1.0 {
            return Some(one);
        }
        let many = of(Lengths::Exponential)?;
        let between = |one: f64, many: f64| one + (many - one) * part;
        Some(Here { number: between(one.number, many.number), waits: between(one.waits, many.waits) })
    }

    /// The number up to those that are open at which what grows with it crosses zero, by its logarithm.
    fn found(&self, off: impl Fn(f64) -> f64) -> f64 {
        crossing(|log: f64| off(log.exp()), LEAST.min(self.all).ln(), self.all.ln()).exp()
    }

    /// Requests of an adapter that come while it has its place, for which so many had waited, where so many are in the engine.
    fn of_visit(&self, here: f64, lengths: Lengths) -> impl Fn(f64, f64) -> f64 + use<> {
        let each = self.places.recip();
        move |own: f64, waited: f64| {
            // One that has its place makes up its part of the engine.
            let coming = own * here * (1.0 - own.max(each)).max(0.0);
            own * here * Visit { waited, coming, own }.time(lengths)
        }
    }

    /// Where others come evenly: as many in the engine as leave the others waiting by Little's law. None where nobody waits.
    fn steady(&self, lengths: Lengths) -> Option<Steady> {
        let found = |here: f64| PassedOver::of(self.popularity, self.places, here, self.of_visit(here, lengths));
        // They grow as an exponential of those in the engine.
        let over = |here: f64| {
            let PassedOver { share, wait, .. } = found(here);
            (here * (1.0 + share * wait) / self.all).ln()
        };
        let here = self.found(over);
        let PassedOver { share: waits, longest: wait, .. } = found(here);
        if waits <= 0.0 {
            return None;
        }
        let of_visit = self.of_visit(here, lengths);
        let (mut begun, mut came, mut others, mut with) = (0.0, 0.0, 0.0, 0.0);
        for &(members, probability) in self.popularity.groups() {
            let own = probability * here;
            let waited = 1.0 + own * wait;
            let turn = waited + of_visit(probability, waited);
            // In the time of a request.
            let often = members * own / turn;
            begun += often;
            came += often * waited;
            others += often * wait;
            with += members * probability * (1.0 - waited / turn);
        }
        Some(Steady { here, waits, waited: came / begun, others, with })
    }

    /// Where a place is free when requests are few, and then they are many again at once.
    ///
    /// They grow fewer by those that end without one of an adapter with a place to follow. Each adapter with a place has as many as any, Poisson distributed about a
    /// mean `a` that falls: none is left at a rate of `a / (exp(a) - 1)` in the time of a request of exponential length, whose integral over `a` is
    /// `ln(1 - exp(-a))`; and of one length with a chance of `exp(-a)` in each, that of the exponential integral. A place is free when either comes to `ln 2` of all.
    fn in_turns(&self, steady: &Steady, lengths: Lengths) -> Here {
        let none = Here { number: 0.0, waits: 0.0 };
        let (places, with, without) = (self.places, steady.with, 1.0 - steady.with);
        if without <= LITTLE || steady.here >= self.all * (1.0 - LITTLE) {
            return none;
        }
        // They have gathered when there are least, and one adapter of all others has them.
        let gathered = steady.waited * steady.others / (steady.others + 1.0) / (self.all - steady.here);
        let joined = |least: f64| (gathered * (self.all - least).max(0.0)).max(1.0);
        match lengths {
            Lengths::Exponential => {
                let chains = places * (1.0 - with / places) / without;
                let left = |here: f64| chains * (-(-here / places).exp()).ln_1p();
                let off = |least: f64| left(least) - left(least + joined(least)) + LN_2;
                if off(self.all) <= 0.0 {
                    return none;
                }
                let least = self.found(off);
                Here::falling(least, joined(least), self.room)
            }
            Lengths::One => {
                let falls = -with.ln();
                let each = |here: f64| here * with / places;
                // Others end in the time until those that have joined do.
                let ended = |first: f64| {
                    let ended = (1.0 + places * (-each(first)).exp()).min(places).min(steady.others.max(1.0));
                    (ended, joined(first * with) * ended * (1.0 - (ended - 1.0) / (2.0 * steady.others.max(1.0))))
                };
                let chance = |here: f64| exponential::integral(each(here), 1).unwrap_or(0.0);
                let off = |first: f64| falls * LN_2 - places * (chance(first) - chance(first * with + ended(first).1));
                if off(self.all) <= 0.0 {
                    return none;
                }
                let first = self.found(off);
                let (least, (_, joined)) = (first * with, ended(first));
                let most = (least + joined).min(self.room);
                let behind = (least + joined - most) / (self.room * without);
                let time = (most / first).ln().max(0.0) / falls + 1.0 + behind;
                Here { number: (joined / without / time).min(most), waits: behind / time }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;
    use crate::inference::adapters::Adapters;
    use crate::inference::queue::ordered::Ordered;
    use crate::inference::simulation::{Draws, Engine, all_at_once, in_one_step};
    use crate::inference::step::prefill::FULL_STEP;
    use crate::inference::together::Together;
    use crate::inference::{Coming, Features, Load, Replica, Request, Room, Scratch, fixture};
    use crate::scenario::Balancing;
    use crate::units::Seconds;
    use crate::workload::{Moments, Requests};

    /// Adapters of requests that come, by Zipf's law.
    fn drawn(count: usize, exponent: f64) -> impl FnMut(&mut Draws) -> usize {
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        move |draws| {
            let mut at = draws.even() * all;
            let below = |weight: &f64| {
                at -= weight;
                at <= 0.0
            };
            weights.iter().position(below).unwrap_or(count - 1)
        }
    }

    /// Those in the engine on average of so many that are open, request by request: each is in it for 1 on average, and is followed by
    /// another, a little later.
    fn simulated((count, exponent, places): (usize, f64, usize), (open, room): (usize, usize), cv: f64) -> f64 {
        let (mut draws, mut adapter) = (Draws::new(), drawn(count, exponent));
        let mut waiting = vec![VecDeque::new(); count];
        let mut here = vec![0_usize; count];
        let mut ends: BTreeMap<(Ordered, usize), usize> = BTreeMap::new();
        let (mut number, mut at, mut seen, mut ended, mut since) = (open, 0.0, 0.0, 0, 0.0);
        let mut coming: VecDeque<(f64, usize)> = VecDeque::new();
        for came in 0..open {
            waiting[adapter(&mut draws)].push_back(came);
        }
        let of_all = 40_000 + 60 * open;
        while ended < of_all {
            while ends.len() < room {
                let full = here.iter().filter(|here| **here > 0).count() >= places;
                let may = (0..count).filter(|of| here[*of] > 0 || !full);
                let Some((came, of)) = may.filter_map(|of| waiting[of].front().map(|came| (*came, of))).min() else {
                    break;
                };
                waiting[of].pop_front();
                here[of] += 1;
                let part = if came < open { draws.even() } else { 1.0 };
                ends.insert((Ordered(at + part * draws.lognormal(1.0, cv)), came), of);
            }
            let until = ends.first_key_value().map_or(f64::INFINITY, |((until, _), _)| until.0);
            let comes = coming.front().map_or(f64::INFINITY, |(comes, _)| *comes);
            let (before, now) = (at, until.min(comes));
            at = now;
            if ended >= of_all / 5 {
                seen += ends.len() as f64 * (at - before);
            } else {
                since = at;
            }
            if comes <= until {
                waiting[coming.pop_front().unwrap().1].push_back(number);
                number += 1;
            } else {
                let (_, of) = ends.pop_first().unwrap();
                (here[of], ended) = (here[of] - 1, ended + 1);
                coming.push_back((at + 0.01, adapter(&mut draws)));
            }
        }
        seen / (at - since)
    }

    #[test]
    fn those_that_wait_for_a_place_of_a_number_open_are_not_in_the_engine() {
        let endless = usize::MAX;
        // Those of one length read low where they end all together, or places are few and lengths have a long tail high.
        for (adapters, asked, near) in [
            ((100, 0.0, 16), (30, endless), 0.04),
            ((100, 0.0, 16), (200, endless), 0.07),
            ((20, 0.0, 5), (20, endless), 0.08),
            ((20, 0.0, 5), (100, endless), 0.06),
            ((8, 0.0, 2), (8, endless), 0.08),
            ((5, 0.0, 4), (27, endless), 0.07),
            ((4, 0.0, 1), (20, endless), 0.25),
            ((5, 0.0, 1), (250, endless), 0.3),
            ((5, 0.0, 4), (100, endless), 0.27),
            ((20, 0.0, 16), (400, endless), 0.25),
            ((20, 1.0, 5), (400, endless), 0.25),
            ((100, 1.0, 4), (500, endless), 0.13),
            // Room is full for a part of the time.
            ((5, 0.0, 4), (1_000, 400), 0.09),
            ((5, 0.0, 2), (1_000, 256), 0.12),
            ((20, 0.0, 16), (1_000, 200), 0.11),
        ] {
            let ((count, exponent, places), (open, room)) = (adapters, asked);
            let popularity = Popularity::zipf(count as f64, exponent);
            let of = Open { popularity: &popularity, places: places as f64, all: open as f64, room: room as f64 };
            for cv in [0.0, 0.5, 1.0] {
                let (due, found) = (simulated(adapters, asked, cv), of.here(cv * cv).unwrap());
                assert!((found.number / due - 1.0).abs() < near, "{adapters:?} {asked:?} {cv}: {found:?} {due}");
            }
        }
    }

    #[test]
    fn a_visit_that_none_waited_for_takes_no_time_and_less_than_a_request_may_be_open() {
        assert!(Visit { waited: 0.0, coming: 0.3, own: 0.02 }.time(Lengths::Exponential).abs() < 1e-12);
        let popularity = Popularity::zipf(50.0, 0.0);
        for open in [0.01, 0.25, 0.5] {
            let here = Open { popularity: &popularity, places: 1.5, all: open, room: 200.0 }.here(1.0);
            assert!(here.is_none_or(|here| here.number <= open && here.number > 0.9 * open), "{open}: {here:?}");
        }
    }

    #[test]
    fn more_that_are_open_never_leave_fewer_waiting() {
        for (adapters, exponent, places) in
            [(5.0, 0.0, 1.0), (2.0, 0.0, 1.0), (6.0, 0.0, 4.0), (10.0, 1.0, 4.0), (100.0, 1.0, 16.0), (400.0, 0.0, 8.0)]
        {
            let (popularity, room) = (Popularity::zipf(adapters, exponent), 800.0);
            for cv in [0.0, 0.5, 1.0] {
                let of = |open: f64| {
                    let all = Open { popularity: &popularity, places, all: open, room };
                    all.here(cv * cv).unwrap_or(Here { number: open, waits: 0.0 })
                };
                let (mut open, mut before) = (1.0, (Here { number: 1.0, waits: 0.0 }, 0.0));
                while open < 1e6 {
                    let here = of(open);
                    let waiting = open - here.number;
                    let told = format!("{adapters} {exponent} {places} {cv} {open}: {here:?} {before:?}");
                    assert!(waiting >= before.1 * (1.0 - 1e-9) && here.number >= before.0.number * 0.99, "{told}");
                    // Of some more, no more than those are in the engine; where the two forms meet beside room that is full at
                    // times, a hundredth fewer in places.
                    assert!(here.number <= before.0.number * 1.05 + 1e-9, "{told}");
                    assert!(
                        (0.0..=1.0).contains(&here.waits) && here.number <= open.min(room).max(before.0.number),
                        "{told}"
                    );
                    (open, before) = (open * 1.05, (here, waiting));
                }
                // Where more wait than places turn over for, room is full.
                assert!(before.0.number > 0.8 * room && before.0.waits > 0.9, "{adapters} {places} {cv}: {before:?}");
            }
        }
        let all = Popularity::zipf(4.0, 0.0);
        assert_eq!(Open { popularity: &all, places: 4.0, all: 1e4, room: 1e3 }.here(0.0), None);
    }

    /// Requests a second with so many open: as reckoned, and request by request.
    fn both(
        (count, exponent, places): (usize, f64, usize),
        (open, room): (usize, u32),
        (input, output): (Moments, Moments),
    ) -> [f64; 2] {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let popularity = Popularity::zipf(count as f64, exponent);
        let adapters = Adapters {
            popularity: &popularity,
            parts: 1.0,
            resident: places as f64,
            passed_over: true,
            parameters: 10e6,
            projections: 560.0,
            kernel: Seconds::new(4.5e-6),
        };
        let engine = Replica::new(&model, &hardware, fixture::tensor(4))
            .with(Features { adapters: Some(adapters), ..Features::default() });
        let requests = Requests::lognormal(input, output);
        let request =
            Request { input: input.mean, cached: 0.0, output: output.mean, beyond: requests.beyond, spread: 0.0 };
        let coming =
            Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: false, balancing: Balancing::Random };
        let mut scratch = Scratch::default();
        let places_in = Room { requests: f64::from(room) };
        let filled = engine.filled(&request, places_in, &coming, &mut scratch);
        let load = Load { request, concurrency: open as f64, waves: f64::INFINITY, fixed_length: false };
        let (state, _) = engine.closed_loop_of(&load, (&filled, places_in), &coming, &mut scratch);
        let together = Together::new(&engine, &request, f64::from(room)).over(filled.alone());
        let requests_of = 12_000 + 12 * open;
        let mut draws = Draws::new();
        #[allow(clippy::cast_possible_truncation, reason = "some thousands of requests")]
        let sent = all_at_once(requests_of as u32, input, output);
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let of: Vec<usize> = (0..requests_of)
            .map(|_| {
                let mut at = draws.even() * all;
                weights
                    .iter()
                    .position(|weight| {
                        at -= weight;
                        at <= 0.0
                    })
                    .unwrap_or(count - 1)
            })
            .collect();
        let simulated = Engine {
            places: room as usize,
            tokens: Some(FULL_STEP),
            prefill: &|new| in_one_step(&engine, new),
            behind: &|_| (hardware.first_token + state.cycle).value(),
            token: &|batch| {
                let number = batch.max(1.0);
                engine.token_time(&request, number, &together, 1.0 - number.recip()).total().value()
            },
            adapters: Some((&of, places)),
        };
        let found = simulated.run_open(&sent, open, 2_000 + 2 * open);
        [state.requests_per_second, found.rate]
    }

    #[test]
    fn a_number_open_is_served_as_request_by_request() {
        let of = |mean, cv| Moments { mean, cv };
        for (adapters, asked, near) in [
            ((100, 0.0, 16), (200, 1_000), 0.04),
            ((20, 0.0, 5), (400, 1_000), 0.05),
            ((5, 0.0, 1), (100, 256), 0.14),
            // One place is the longest of all answers' for as long as that takes.
            ((5, 0.0, 1), (1_000, 256), 0.33),
            ((5, 0.0, 4), (27, 256), 0.05),
            ((5, 0.0, 4), (1_000, 256), 0.03),
            ((20, 1.0, 5), (400, 256), 0.08),
        ] {
            for cv in [0.0, 0.5, 1.0] {
                let [reckoned, found] = both(adapters, asked, (of(500.0, cv), of(300.0, cv)));
                assert!((reckoned / found - 1.0).abs() < near, "{adapters:?} {asked:?} {cv}: {reckoned} {found}");
            }
        }
    }
}
