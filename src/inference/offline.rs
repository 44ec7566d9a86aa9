//! Offline throughput: requests queue without end.

use super::batching::{Request, SteadyState};
use super::together::Together;
use super::{Replica, Room};
use crate::units::Seconds;

impl Replica<'_> {
    /// As many requests as there is room for, prompts packed into full steps. The time to the first token is without the wait,
    /// which has no end.
    pub fn offline(&self, request: &Request, room: Room) -> SteadyState {
        let batch = room.requests;
        let prefill = self.packed_prefill(request.input, request.cached);
        let token = self.token_time(request, batch, &Together::packed(prefill), 1.0);
        SteadyState {
            ttft: self.hardware.first_token + prefill + token.cycle * self.chunks(request.input),
            requests_per_second: batch / (token.total() * request.output / Seconds::new(1.0)),
            ..SteadyState::of(&token, batch, prefill)
        }
    }
}
