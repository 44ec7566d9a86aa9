//! Separate pools of prefill and decode workers.

use super::{Load, Replica};
use crate::units::Seconds;

/// Workers of both pools.
#[derive(Clone, Copy, Debug)]
pub struct Pools<'a> {
    /// A prefill worker.
    pub prefill: Replica<'a>,
    /// How many there are.
    pub prefill_workers: f64,
    /// A decode worker.
    pub decode: Replica<'a>,
    /// How many there are.
    pub decode_workers: f64,
}

/// Steady state of the pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disaggregated {
    /// Mean time to the first token.
    pub ttft: Seconds,
    /// Mean time between tokens.
    pub tpot: Seconds,
}

/// Pools with so many open requests for each decode worker. Decode never waits for prefills; the first token waits for
/// them, for the hand-over of its cache, and, where prefill is the slower pool, until those before it are done.
pub fn disaggregated(pools: &Pools<'_>, load: &Load, open: f64) -> Disaggregated {
    let request = &load.request;
    let hardware = pools.decode.hardware;
    let (token, cycle) = pools.decode.token_step(open, request.context());
    let step = token.total();
    let prefill = pools.prefill.prefill(request.input, request.cached);
    let groups = f64::from(pools.prefill.spread.attention_data);
    // Requests that are in prefill at once for each decode worker, one in each stage.
    let stages = f64::from(pools.prefill.spread.pipeline);
    let workers = pools.prefill_workers / pools.decode_workers * stages;
    let side_by_side = workers * groups;
    let burst = 1.0 / (2.0 * load.waves);
    let busy = pools.prefill.prefill_together(groups, request.input, request.cached);
    let queued = busy * (burst * (open - 1.0).max(0.0) / side_by_side);
    let alone = hardware.first_token + prefill + cycle + queued + hardware.batching.transfer.value;
    let packed = pools.prefill.packed_prefill(request.input, request.cached);
    let saturated = (packed * (open / workers)).saturating_sub(step * request.output);
    Disaggregated { ttft: alone.max(saturated), tpot: step }
}
