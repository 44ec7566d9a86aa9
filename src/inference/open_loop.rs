//! Requests that come by themselves, at a rate.

use super::batching::{Request, SteadyState};
use super::latency::{Coming, Latencies, Sources, Wait, distribution, mean_wait, peakedness, tokens};
use super::replay::{ByPrompt, Servers, dispersion, replay};
use super::scratch::{Timed, over_prompts};
use super::{Replica, Room, Scratch};
use crate::units::{RequestRate, Seconds};

/// Steps in which a batch is sought, at most, and how near it is found.
const STEPS: u32 = 60;
const NEAR: f64 = 1e-15;
/// The smallest batch that is told from none.
const LEAST: f64 = 1e-6;

/// Where a growing function is zero between two ends, that of the upper being above zero: the secant through two points that
/// lie to each side (Illinois).
fn crossing(off: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    let (mut low, mut high, mut below, mut above) = (low, high, off(low), off(high));
    if below >= 0.0 {
        return low;
    }
    let mut side = 0;
    for _ in 0..STEPS {
        let between = low + (high - low) * (below / (below - above));
        if high - low <= high * NEAR || between <= low || between >= high {
            break;
        }
        let found = off(between);
        if found < 0.0 {
            (low, below) = (between, found);
            if side < 0 {
                above /= 2.0;
            }
            side = -1;
        } else {
            (high, above) = (between, found);
            if side > 0 {
                below /= 2.0;
            }
            side = 1;
        }
    }
    high
}

/// More requests come than an engine can serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// What it can serve.
    pub most: RequestRate,
    /// What keeps it from more.
    pub short: Short,
}

/// What runs out first as more requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Room for caches: more requests in decode would each be served at nearly the time that they take now.
    Cache,
    /// Time for prefills.
    Prefill,
}

impl Replica<'_> {
    /// One of so many engines to which `rate` requests come, and how their latencies scatter.
    ///
    /// The batch is the one whose requests end at that rate (Little's law). A prompt waits for those before it, one prefill at a
    /// time: the mean wait of a G/G/1 queue, exact where requests come at random (Pollaczek and Khinchine), over the lengths
    /// that prompts have; or, of a trace that is replayed, the waits of its own requests.
    ///
    /// # Errors
    /// When the rate is more than the engine serves with its cache full, or more prefills than it has time for.
    pub fn open_loop(
        &self,
        request: &Request,
        rate: RequestRate,
        replicas: u32,
        coming: &Coming<'_>,
        room: Room,
        scratch: &mut Scratch,
    ) -> Result<(SteadyState, Latencies), Overload> {
        let times = |new: f64, cached: f64| {
            let alone = self.prefill(new, cached);
            (alone, self.packed_prefill(new, cached).min(alone))
        };
        scratch.time(coming, times);
        let (prefill, _) = over_prompts(scratch.prompts(), |timed| timed.alone);
        let (least, serving) = over_prompts(scratch.prompts(), |timed| timed.served);
        let time = |batch: f64| self.token_time(request, batch, prefill, 1.0);
        let ends = |batch: f64| RequestRate::of(batch, time(batch).total() * request.output);
        let (full, prefilled) = (ends(room.requests), RequestRate::of(1.0, least));
        if rate >= full.min(prefilled) {
            let short = if full < prefilled { Short::Cache } else { Short::Prefill };
            return Err(Overload { most: full.min(prefilled), short });
        }
        let batch = crossing(|batch| ends(batch) / rate - 1.0, LEAST, room.requests);
        let token = time(batch);
        let busy = rate.over(least);
        let squared_cv = coming.squared_cv(f64::from(replicas));
        let queue = mean_wait(least, busy, [squared_cv, serving]);
        // A step of those in decode for each chunk of the prompt.
        let first = |new: f64, alone: Seconds| self.hardware.first_token + alone + token.cycle * self.chunks(new);
        let (to_first, _) = over_prompts(scratch.prompts(), |timed: &Timed| first(timed.new, timed.alone));
        let mut state = SteadyState {
            ttft: to_first + queue,
            queue,
            requests_per_second: rate.over(Seconds::new(1.0)),
            ..SteadyState::of(&token, batch, prefill)
        };
        let of_batch = |batch: f64| time(batch.clamp(0.0, room.requests)).total();
        let mut sources = Sources {
            first: &first,
            wait: Wait { busy, mean: queue },
            token: of_batch,
            peakedness: peakedness(squared_cv, coming.requests),
        };
        if coming.replay {
            let kept = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                times(new, cached).1
            });
            let all = rate * f64::from(replicas);
            let firsts = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                first(new, times(new, cached).0)
            });
            if let Some(found) = replay(coming, all, Servers::InTurn(replicas), &kept, &firsts, state.tpot) {
                state.queue = found.wait;
                state.ttft = to_first + found.wait;
                let together = dispersion(coming, all, state.tpot * request.output);
                sources.peakedness = 1.0 + (together - 1.0) / f64::from(replicas);
                let token = tokens(&state, &sources);
                return Ok((state, Latencies { first_token: found.first_token, token, whole: found.whole }));
            }
        }
        let latencies = distribution(coming, &state, &sources, scratch);
        Ok((state, latencies))
    }
}
