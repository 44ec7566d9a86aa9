//! Requests that come by themselves, at a rate.

use super::batching::{Request, SteadyState};
use super::{Replica, Room};
use crate::units::{RequestRate, Seconds};

/// Halvings of the batch that is sought.
const HALVINGS: u32 = 50;
/// The smallest batch that is told from none.
const LEAST: f64 = 1e-6;

/// More requests come than an engine can serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// What it can serve.
    pub most: RequestRate,
}

impl Replica<'_> {
    /// An engine to which requests come at a rate, at random, prompts of a coefficient of variation `cv`.
    ///
    /// The batch is the one whose requests end at that rate (Little's law). A prompt waits for those before it: with
    /// random arrivals and one prefill at a time, the mean wait of an M/G/1 queue (Pollaczek and Khinchine).
    ///
    /// # Errors
    /// When the rate is more than the engine serves with its cache full, or more prefills than it has time for.
    pub fn open_loop(
        &self,
        request: &Request,
        rate: RequestRate,
        cv: f64,
        room: Room,
    ) -> Result<SteadyState, Overload> {
        let prefill = self.prefill(request.input, request.cached);
        let time = |batch: f64| self.token_time(request, batch, prefill, 1.0);
        let ends = |batch: f64| RequestRate::of(batch, time(batch).total() * request.output);
        let packed = self.packed_prefill(request.input, request.cached);
        let least = packed.min(prefill);
        let most = ends(room.requests).min(RequestRate::of(1.0, least));
        if rate >= most {
            return Err(Overload { most });
        }
        let (mut low, mut high) = (LEAST, room.requests);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if ends(middle) < rate { low = middle } else { high = middle }
        }
        let batch = high;
        let token = time(batch);
        let busy = rate.over(least);
        let queue = least * (busy * (1.0 + cv * cv) / (2.0 * (1.0 - busy)));
        Ok(SteadyState {
            ttft: self.hardware.first_token + prefill + token.cycle * self.chunks(request.input) + queue,
            tpot: token.total(),
            batch,
            step: token.step,
            cycle: token.cycle,
            stall: token.stall,
            prefill,
            queue,
            requests_per_second: rate.over(Seconds::new(1.0)),
        })
    }
}
