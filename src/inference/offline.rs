//! Offline throughput: requests queue without end. It is what an engine serves at most.

use super::batching::{Request, SteadyState};
use super::latency::Coming;
use super::scratch::over_prompts;
use super::together::Together;
use super::{Replica, Room, Scratch};
use crate::units::{RequestRate, Seconds};

impl Replica<'_> {
    /// As many requests as there is room for, prompts of one length packed into full steps. The time to the first token is
    /// without the wait, which has no end.
    pub fn offline(&self, request: &Request, room: Room) -> SteadyState {
        self.endless(request, self.packed_prefill(request.input, request.cached), room)
    }

    /// The part of full steps that a prompt takes, the mean of those that come.
    pub fn packed(&self, coming: &Coming<'_>, scratch: &mut Scratch) -> Seconds {
        self.time_prompts(coming, scratch);
        over_prompts(scratch.prompts(), |timed| timed.served).0 * f64::from(self.spread.pipeline)
    }

    /// As many requests as there is room for, where a prompt takes such a part of full steps.
    pub fn endless(&self, request: &Request, packed: Seconds, room: Room) -> SteadyState {
        let batch = room.requests;
        let token = self.token_time(request, batch, &Together::packed(packed), 1.0);
        let rate = RequestRate::of(batch, token.total() * request.output);
        SteadyState {
            ttft: self.hardware.first_token + packed + token.cycle * self.chunks(request.input),
            requests_per_second: rate.over(Seconds::new(1.0)),
            ..SteadyState::of(&token, batch, packed)
        }
    }

    /// Times prompts that come: each alone, and how long it keeps the first of the stages where prompts fill all steps. Stages
    /// have other prompts before and behind: a prompt keeps each for its part of the time.
    pub(super) fn time_prompts(&self, coming: &Coming<'_>, scratch: &mut Scratch) {
        if scratch.knows() {
            return;
        }
        scratch.time(coming, self.times_of_prompts());
    }

    /// The two times of a prompt of so many new tokens behind cached ones.
    pub(super) fn times_of_prompts(&self) -> impl Fn(f64, f64) -> (Seconds, Seconds) {
        let costs = self.prompt_costs();
        let full = self.full_step(&costs);
        move |new, cached| {
            let alone = self.prefill_by(&costs, new, cached);
            (alone, self.packed_by(&full, new, cached).min(alone) / f64::from(self.spread.pipeline))
        }
    }
}
