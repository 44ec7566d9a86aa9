//! Parallel aggregated trees (PAT): logarithmic all-gather and reduce-scatter of one GPU a node (NCCL from 2.23).

use super::call::{Call, Parts, parts, piped};
use super::wires::Collective;

/// PAT, as NCCL's tuner prices it (tuning.cc): its latency per level is a share of a network hop, its rate a share of
/// the ring's.
pub(super) fn line(call: &Call<'_>) -> Option<Parts> {
    let pat = call.wires.pat.as_ref()?;
    let serves = matches!(call.kind, Collective::AllGather | Collective::ReduceScatter)
        && call.crosses_network()
        && call.per_domain <= 1.0;
    if !serves {
        return None;
    }
    let hop = call.simple_hop() * pat.level.get();
    let latency = pat.launch + hop * call.levels.floor() + pat.rank * call.ranks;
    let transfer = call.ring_traffic() / (call.ring_rate() * pat.rate.get());
    let library = &call.wires.library;
    Some(parts(latency, piped(transfer, library.pipeline_stage, library.pipeline_limit)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line as timed};
    use super::*;

    #[test]
    fn one_gpu_a_node_climbs_logarithmically() {
        // 64 nodes: 6 levels of half a hop of 14, 64 ranks of 2; 63/64 GB at 0.75 x 48 GB/s.
        assert_us(
            timed(line, Collective::AllGather, gb(1.0), &group(64, 1)),
            (8.0 + 6.0 * 7.0 + 64.0 * 2.0, 1e9 * 63.0 / 64.0 / 36e3 + 130.0),
        );
    }
}
