//! Pools to which requests come by themselves.

use super::Waited;
use crate::inference::hand_over::scatter;
use crate::inference::latency::{Latencies, Sources, distribution};
use crate::inference::open_loop::{Overload, Places, Short};
use crate::inference::queue::admission::Admission;
use crate::inference::queue::crossing::{LEAST, crossing};
use crate::inference::queue::pace::Pace;
use crate::inference::replay::{ByPrompt, Replayed, Servers, Times, replay};
use crate::inference::{Coming, Request, Scratch, Separate, SteadyState};
use crate::units::{RequestRate, Seconds};

const SECOND: Seconds = Seconds::new(1.0);

impl Separate<'_> {
    /// Requests that come by themselves, and how their latencies scatter. Prompts wait for those before them at the worker
    /// that they go to, for the links that their caches are handed over on, and where decode's caches are nearly full or
    /// keep other adapters, for room in them; or for prefill as long as a trace's own requests where it is replayed.
    ///
    /// # Errors
    /// When more come than one of the pools serves, or the links between them carry, or leave adapters without a place none.
    pub fn at_rate(
        &self,
        request: &Request,
        rate: RequestRate,
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> Result<(SteadyState, Latencies), Overload> {
        self.time_prompts(request, coming, scratch);
        let prefill = scratch.over_prompts(|timed| timed.alone).mean;
        let (finished, taken_in) = (self.decoded(request), self.prefilled());
        let (pools, links) = (finished.min(taken_in), self.handed_over(request));
        let turns = self.turns(request);
        if rate >= turns && turns < pools.min(links) {
            return Err(Overload { most: turns, short: Short::Adapters, by_places: 0.0 });
        }
        if rate >= pools.min(links) {
            let places = Places::of(self.room, |batch| self.step(request, batch).total() / batch);
            let (short, by_places) = if links < pools {
                (Short::Transfer, 0.0)
            } else if finished < taken_in {
                (places.short(0.0), places.gain())
            } else {
                (Short::Prefill, 0.0)
            };
            return Err(Overload { most: pools.min(links), short, by_places });
        }
        let room = self.room.requests;
        let token = |batch: f64| self.step(request, batch.clamp(0.0, room)).total();
        // Each token is seen by its own sequence and as many as there are at random times.
        let each = rate / self.replicas;
        let come = |batch: f64| RequestRate::of(batch, token(batch + 1.0) * request.output) / each;
        let batch = crossing(|batch| come(batch) - 1.0, LEAST, room);
        let peaked = coming.peakedness(self.replicas, batch * self.replicas);
        // By Little's law.
        let in_decode = |batch: f64, rate: RequestRate| SECOND * (batch * self.replicas / rate.over(SECOND));
        let admission = Admission {
            rate: rate / self.replicas,
            batch: (batch + 1.0).min(room),
            held: in_decode(batch, rate),
            room: self.room.requests,
            full: in_decode(self.room.requests, finished),
            most: finished / self.replicas,
            peakedness: peaked,
        };
        let links = self.transfer.wait(rate, self.ends_of_links(request, rate, batch), scatter(coming));
        let admission = admission.wait(|| coming.requests.answers.scatter());
        let prefills = self.prompts(request, coming, scratch)(rate);
        let pace = Pace::new(batch, peaked, (room, admission.share), token);
        let places = self.decode.wait_for_places(rate / self.replicas, token(pace.seen()) * request.output);
        let queue = prefills.over_all() + admission.over_all() + places.over_all();
        let waited = Waited { queue, links: links.over_all() };
        let state = |seen: f64, waited: Waited| {
            let state = self.state(request, rate, seen.min(room), waited).with_prefill(prefill);
            // By Little's law.
            SteadyState { batch: (rate / self.replicas).over(state.tpot * request.output).min(room), ..state }
        };
        let settled = state(pace.seen(), waited);
        let fixed = settled.ttft.saturating_sub(waited.queue + waited.links + prefill);
        let first = |_: f64, alone: Seconds| fixed + alone;
        if coming.replay {
            let times = self.times_of_prompts(request);
            let spread = self.prefill.spread;
            let (stages, groups) = (f64::from(spread.pipeline), f64::from(spread.attention_data));
            let replayed = Times {
                served: ByPrompt::new(coming, |new, cached| times(new, cached).1 / (stages * groups)),
                alone: ByPrompt::new(coming, |new, cached| times(new, cached).0 / stages),
                first: ByPrompt::new(coming, |new, cached| first(new, times(new, cached).0) + waited.links),
                token: &token,
                room,
            };
            let tokens = self.prefill.tokens_of_steps() / (1.0 - coming.hit).max(f64::MIN_POSITIVE);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of workers")]
            let shared = Servers::Shared(self.workers as u32, self.replicas, tokens);
            if let Some(found) = replay(coming, rate, shared, &replayed) {
                let Replayed { wait, in_decode, first_token, token, whole } = found;
                let ttft = fixed + prefill + wait + waited.links;
                let state = SteadyState { ttft, ..state(in_decode, Waited { queue: wait, ..waited }) };
                return Ok((state, Latencies { first_token, token, whole }));
            }
        }
        let prefills = prefills.and(links);
        let sources = Sources { first: &first, prefills, burst: places, admission, pace, token };
        let latencies = distribution(coming, &settled, &sources, scratch);
        Ok((settled, latencies))
    }
}
