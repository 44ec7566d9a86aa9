//! Requests whose adapter has no place as they come.

use crate::inference::Popularity;
use crate::inference::queue::crossing::crossing;

/// Requests whose adapter has no place in memory as they come, in an engine that takes others in past them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PassedOver {
    /// Their share of all.
    pub(super) share: f64,
    /// How long they wait on average, over the time that a request is in the engine.
    pub(super) wait: f64,
    /// How long the first of an adapter waits.
    pub(super) longest: f64,
}

impl PassedOver {
    /// Of so many requests in an engine on average, and places for so many adapters; `of_visit` tells how many of an adapter that so many of all
    /// are for come while it has its place, for which as many as given had waited.
    ///
    /// An adapter has its place for as long as any of its requests are there. The one after that waits with those that follow it until a place is
    /// free, as long for any adapter as leaves no more of them than places.
    pub(super) fn of(popularity: &Popularity, places: f64, requests: f64, of_visit: impl Fn(f64, f64) -> f64) -> Self {
        let each = |wait: f64| {
            let of_visit = &of_visit;
            popularity.groups().iter().map(move |(members, probability)| {
                let own = probability * requests;
                // Requests of it that come until its place is given away: one that begins, those that wait with it, the others.
                let waiting = 1.0 + own * wait;
                (*members, *probability, own, waiting / (waiting + of_visit(*probability, waiting)))
            })
        };
        let free = |wait: f64| places - each(wait).map(|(members, .., waits)| members * (1.0 - waits)).sum::<f64>();
        if free(0.0) >= 0.0 {
            return Self::default();
        }
        let mut high = 1.0;
        while free(high) < 0.0 {
            high *= 2.0;
        }
        let high = crossing(|wait: f64| free(wait.exp_m1()), 0.0, high.ln_1p()).exp_m1();
        let (mut share, mut waited) = (0.0, 0.0);
        for (members, probability, own, waits) in each(high) {
            share += members * probability * waits;
            waited += members * probability * waits * high * (1.0 + own * high / 2.0) / (1.0 + own * high);
        }
        Self { share, wait: waited / share, longest: high }
    }

    /// The same of requests that come at a rate.
    ///
    /// Of `a` requests of an adapter on average, `exp(a) - 1` more come in a busy period of M/G/inf (Takacs, Introduction to the Theory of
    /// Queues, 1962). Met within 8% of a simulation request by request where more adapters want a place than there are; where as many do as
    /// there are, chance alone has some wait besides (8% of requests for an eighth of their time where 11 of 16 are wanted on average). It is
    /// for no more requests than there are turns for, beyond which waits grow as the exponential of them.
    pub(super) fn of_random(popularity: &Popularity, places: f64, requests: f64) -> Self {
        Self::of(popularity, places, requests, |probability, _| (probability * requests).exp_m1())
    }
}
