//! Requests that come by themselves, at a rate.

use super::admission::Admission;
use super::batching::{Request, SteadyState};
use super::features::TokenTime;
use super::latency::{Coming, Latencies, Sources, Wait, distribution, mean_wait, peakedness, tokens};
use super::replay::{ByPrompt, Servers, dispersion, replay};
use super::scratch::{Timed, over_prompts};
use super::together::Together;
use super::{Replica, Room, Scratch};
use crate::units::{RequestRate, Seconds};

/// Steps in which a batch is sought, at most, and how near it is found.
const STEPS: u32 = 60;
const NEAR: f64 = 1e-15;
const SECOND: Seconds = Seconds::new(1.0);
/// The smallest batch that is told from none.
pub(super) const LEAST: f64 = 1e-6;

/// Where a growing function is zero between two ends, that of the upper being above zero: the secant through two points that
/// lie to each side (Illinois).
pub(super) fn crossing(off: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
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
    /// Links between pools, for the caches that one hands to the other.
    Transfer,
    /// Room for sessions that wait beside requests that run: prompts of the others are computed again.
    Sessions,
}

impl Replica<'_> {
    /// One of so many engines to which `rate` requests come, and how their latencies scatter. At most it serves what requests
    /// without end come to ([`Replica::endless`]): prompts that wait fill steps, and hold tokens up for less than as they come.
    ///
    /// The batch is the one whose requests end at that rate (Little's law). A prompt waits for those before it, one prefill at a
    /// time: the mean wait of a G/G/1 queue, exact where requests come at random (Pollaczek and Khinchine), over the lengths
    /// that prompts have; and where the cache is nearly full, for room in it. Of a trace that is replayed it is the waits of its
    /// own requests.
    ///
    /// # Errors
    /// When the rate is more than the engine serves with its cache full, or more prefills than it has time for.
    pub fn open_loop(
        &self,
        request: &Request,
        rate: RequestRate,
        replicas: u32,
        coming: &Coming<'_>,
        (room, most): (Room, RequestRate),
        scratch: &mut Scratch,
    ) -> Result<(SteadyState, Latencies), Overload> {
        self.time_prompts(coming, scratch);
        let (prefill, _) = over_prompts(scratch.prompts(), |timed| timed.alone);
        let (least, serving) = over_prompts(scratch.prompts(), |timed| timed.served);
        let prefills = Together::new(self, request, room.requests).over(prefill);
        let time = |batch: f64| self.token_time(request, batch, &prefills, 1.0);
        let ends = |batch: f64| RequestRate::of(batch, time(batch).total() * request.output);
        let prefill_binds = most.over(least) > 1.0;
        if rate >= most {
            return Err(Overload { most, short: if prefill_binds { Short::Prefill } else { Short::Cache } });
        }
        // Of full steps, tokens wait for a part only: the engine goes on with them meanwhile, so that prompts keep it for less.
        let least = if prefill_binds { SECOND * (1.0 / most.over(SECOND)) } else { least };
        let full = ends(room.requests);
        let (batch, token) = if rate < full {
            let batch = crossing(|batch| ends(batch) / rate - 1.0, LEAST, room.requests);
            (batch, time(batch))
        } else {
            // With no more room, steps fill up with prompts as far as the rate needs it.
            let token = time(room.requests);
            let each = SECOND * (room.requests / rate.over(SECOND) / request.output);
            (room.requests, TokenTime { stall: each.saturating_sub(token.step.total()), ..token })
        };
        let busy = rate.over(least);
        let squared_cv = coming.squared_cv(f64::from(replicas));
        let peaked = peakedness(squared_cv, coming.requests);
        // By Little's law.
        let in_decode = |batch: f64, rate: RequestRate| SECOND * (batch / rate.over(SECOND));
        let admission = Admission {
            rate,
            batch,
            held: in_decode(batch, rate.min(full)),
            room: room.requests,
            full: in_decode(room.requests, full),
            most,
            peakedness: peaked,
        };
        let before = Wait { busy, mean: mean_wait(least, busy, [squared_cv, serving]) };
        let wait = before.and(admission.wait(|| coming.requests.answer_scatter()));
        let queue = wait.mean;
        // A step of those in decode for each chunk of the prompt.
        let first = |new: f64, alone: Seconds| self.hardware.first_token + alone + token.cycle * self.chunks(new);
        let (to_first, _) = over_prompts(scratch.prompts(), |timed: &Timed| first(timed.new, timed.alone));
        let mut state = SteadyState {
            ttft: to_first + queue,
            queue,
            requests_per_second: rate.over(SECOND),
            ..SteadyState::of(&token, batch, prefill)
        };
        let of_batch = |batch: f64| time(batch.clamp(0.0, room.requests)).total();
        let mut sources = Sources { first: &first, wait, token: of_batch, peakedness: peaked };
        if coming.replay {
            let times = self.times_of_prompts();
            let kept = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                times(new, cached).1
            });
            let all = rate * f64::from(replicas);
            let firsts = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                first(new, times(new, cached).0)
            });
            if let Some(found) = replay(coming, all, Servers::InTurn(replicas), room, (&kept, &firsts, state.tpot)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::fixture;
    use crate::workload::{Moments, Requests};

    /// Uniform numbers above 0 (xorshift, Marsaglia 2003).
    struct Draws(u64);

    impl Draws {
        fn exponential(&mut self, mean: f64) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            -(((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).ln() * mean
        }
    }

    /// What requests meet that come at random to one engine, event by event: one prefill at a time in the order of coming, which
    /// begins when there is room in the cache; all in decode go on together, as fast as their number lets them. The mean time to
    /// the first token, those that 95% and 99% stay below, the whole times that half, 95% and 99% do, and the times of a token.
    fn simulated(
        rate: f64,
        room: usize,
        tokens: f64,
        (served, first): (f64, f64),
        time: impl Fn(f64) -> f64,
    ) -> [f64; 9] {
        let (mut draws, requests) = (Draws(0x2545_F491_4F6C_DD1D), 40_000);
        let mut coming: Vec<f64> = Vec::new();
        (0..requests).fold(0.0, |at, _| {
            coming.push(at + draws.exponential(1.0 / rate));
            coming.last().copied().unwrap()
        });
        let (mut now, mut next, mut waiting) = (0.0_f64, 0, std::collections::VecDeque::new());
        let mut prefill: Option<(f64, f64)> = None;
        // Tokens left of each in decode, and when it came.
        let mut decode: Vec<(f64, f64)> = Vec::new();
        let (mut firsts, mut wholes) = (Vec::new(), Vec::new());
        // Time of a token, and how many there were at it.
        let mut paces: Vec<(f64, f64)> = Vec::new();
        while wholes.len() < requests {
            let pace = time(decode.len() as f64);
            let soonest = decode.iter().map(|(left, _)| now + left * pace).fold(f64::INFINITY, f64::min);
            let arrives = coming.get(next).copied().unwrap_or(f64::INFINITY);
            let prefilled = prefill.map_or(f64::INFINITY, |(until, _)| until);
            let until = soonest.min(arrives).min(prefilled);
            for (left, _) in &mut decode {
                *left -= (until - now) / pace;
            }
            paces.push((pace, decode.len() as f64 * (until - now) / pace));
            now = until;
            if arrives <= until {
                waiting.push_back(arrives);
                next += 1;
            } else if prefilled <= until {
                let (_, came) = prefill.take().unwrap();
                decode.push((tokens, came));
            } else {
                let done = (0..decode.len()).min_by(|one, other| decode[*one].0.total_cmp(&decode[*other].0)).unwrap();
                wholes.push(now - decode.swap_remove(done).1);
            }
            if prefill.is_none()
                && decode.len() < room
                && let Some(came) = waiting.pop_front()
            {
                firsts.push(now - came + first);
                prefill = Some((now + served, came));
            }
        }
        firsts.sort_by(f64::total_cmp);
        let mean = firsts.iter().sum::<f64>() / firsts.len() as f64;
        wholes.sort_by(f64::total_cmp);
        paces.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all: f64 = paces.iter().map(|(_, tokens)| tokens).sum();
        let token = |share: f64| {
            let mut before = 0.0;
            let reached = |(_, tokens): &&(f64, f64)| {
                before += tokens;
                before >= share * all
            };
            paces.iter().find(reached).unwrap().0
        };
        let of = |times: &[f64], percent: usize| times[times.len() * percent / 100];
        let [first, whole] = [&firsts, &wholes].map(|times| [50, 95, 99].map(|percent| of(times, percent)));
        [mean, first[1], first[2], whole[0], whole[1], whole[2], token(0.5), token(0.95), token(0.99)]
    }

    #[test]
    fn latencies_are_those_of_requests_one_by_one() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let one = |mean| Moments { mean, cv: 0.0 };
        let (input, output) = (2_048.0, 256.0);
        let requests = Requests::lognormal(one(input), one(output));
        let request = Request { input, cached: 0.0, output, beyond: 0.0 };
        let coming = Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: false };
        let prefill = engine.prefill(input, 0.0);
        let served = engine.packed_prefill(input, 0.0).min(prefill);
        let prefills = Together::new(&engine, &request, 400.0);
        let time = |batch: f64| engine.token_time(&request, batch.max(LEAST), &prefills, 1.0).total().value();
        // Room to spare, where only prefills are waited for; and so little that most of the wait is for it.
        // Allowed of the mean time to the first token, of its 95% and 99%, of half of all whole times, their 95% and 99%, and of
        // the same of tokens. Waits' tails are exponential, which those of prompts of one length are not; and where there is no
        // room, requests wait while those in decode are slow, which counts as chance here.
        for (share, room, places, near) in [
            (0.5, 400.0, 400, [0.01, 0.1, 0.16, 0.03, 0.02, 0.02, 0.02, 0.02, 0.02]),
            (0.8, 400.0, 400, [0.02, 0.07, 0.09, 0.03, 0.02, 0.03, 0.02, 0.03, 0.06]),
            (0.5, 24.0, 24, [0.01, 0.12, 0.18, 0.03, 0.02, 0.02, 0.02, 0.02, 0.03]),
            (0.8, 24.0, 24, [0.08, 0.05, 0.18, 0.03, 0.06, 0.1, 0.02, 0.02, 0.02]),
        ] {
            let most = RequestRate::of(room, Seconds::new(time(room)) * output).min(RequestRate::of(1.0, served));
            let rate = most * share;
            let room = Room { requests: room };
            let (state, latencies) =
                engine.open_loop(&request, rate, 1, &coming, (room, most), &mut Scratch::default()).unwrap();
            let first = state.ttft.saturating_sub(state.queue).value();
            let found = simulated(rate.value(), places, output, (served.value(), first), time);
            let Latencies { first_token: first, token, whole } = latencies;
            let reckoned =
                [state.ttft, first.p95, first.p99, whole.p50, whole.p95, whole.p99, token.p50, token.p95, token.p99];
            for ((found, reckoned), near) in found.into_iter().zip(reckoned.map(Seconds::value)).zip(near) {
                assert!((reckoned / found - 1.0).abs() < near, "{share}, {room:?}: {reckoned}, {found} one by one");
            }
        }
    }
}
