//! Double binary trees over the domains, chains within them: logarithmic latency for all-reduce across a network.

use super::call::{Call, Parts, parts, piped};
use super::ring::{ll_transfer, ll128_transfer};
use super::wires::Collective;
use crate::units::Seconds;

/// Whether a tree can serve the call.
fn serves(call: &Call<'_>) -> bool {
    call.kind == Collective::AllReduce && call.crosses_network()
}

/// Up and down again: g-1 steps within a domain and log2 N hops, each twice (tuning.cc).
fn latency(call: &Call<'_>, launch: Seconds, step: Seconds, hop: Seconds) -> Seconds {
    launch + (step * (call.per_domain - 1.0) + hop * call.levels) * 2.0
}

/// A tree in LL.
pub(super) fn ll(call: &Call<'_>) -> Option<Parts> {
    let step = call.wires.scale_up.efficiency.ll_step;
    let hop = call.tree_ll_hop();
    serves(call).then(|| parts(latency(call, call.wires.library.ll_launch, step, hop), ll_transfer(call)))
}

/// A tree in LL128.
pub(super) fn ll128(call: &Call<'_>) -> Option<Parts> {
    let library = &call.wires.library;
    let step = call.wires.scale_up.efficiency.ll_step * 2.0;
    let hop = call.tree_ll_hop() * library.ll128_hop.get();
    (serves(call) && call.wires.scale_up.ll128)
        .then(|| parts(latency(call, library.ll128_launch, step, hop), ll128_transfer(call)))
}

/// A tree in Simple.
///
/// The two trees together move 2(N-1)/N payloads through each domain's NICs in each direction, and every GPU of a
/// chain passes the payload up and down: half the link rate, shared by g-1 links of g GPUs.
pub(super) fn simple(call: &Call<'_>) -> Option<Parts> {
    if !serves(call) {
        return None;
    }
    let library = &call.wires.library;
    let (g, domains) = (call.per_domain, call.domains);
    let across = call.domain_network * (domains / (2.0 * (domains - 1.0)));
    let costs = &call.wires.scale_up.efficiency;
    let rate = if g > 1.0 {
        across.min(call.links * (costs.ring.get() * costs.tree.get() * 0.5 * g / (g - 1.0)))
    } else {
        across
    };
    let latency = latency(call, library.simple_launch, costs.tree_step, call.tree_hop());
    Some(parts(latency, piped(call.payload / rate, library.pipeline_stage, library.pipeline_limit)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::*;

    #[test]
    fn ll_climbs_and_descends() {
        // 2 x (7 x 0.6 + 2 x 10) for four nodes; 1.9375 MB at 17 GB/s.
        assert_us(
            line(ll, Collective::AllReduce, gb(1e-3), &group(32, 8)),
            (7.5 + 2.0 * (7.0 * 0.6 + 2.0 * 10.0), 1.9375e6 / 17e3),
        );
        assert_us(
            line(ll128, Collective::AllReduce, gb(1e-3), &group(32, 8)),
            (16.0 + 2.0 * (7.0 * 1.2 + 2.0 * 15.0), 1.9375e6 / 39e3),
        );
    }

    #[test]
    fn simple_is_bound_by_the_chain_or_by_the_nics() {
        // Two nodes: NICs 384 GB/s, the chain 0.8 x 0.9 x 450 / 2 x 8/7 = 185.14 GB/s. A hop is 10 + 1 MB / 48 GB/s + 2.
        let hop = 10.0 + 1e6 / 48e3 + 2.0;
        let chain = 0.8 * 0.9 * 450.0 / 2.0 * 8.0 / 7.0;
        assert_us(
            line(simple, Collective::AllReduce, gb(10.0), &group(16, 8)),
            (7.0 + 2.0 * (7.0 * 4.0 + hop), 10e9 / (chain * 1e3) + 130.0),
        );
        // Four nodes of one GPU: 48 x 4/6 = 32 GB/s, no chain.
        assert_us(
            line(simple, Collective::AllReduce, gb(10.0), &group(4, 1)),
            (7.0 + 2.0 * (2.0 * hop), 10e9 / 32e3 + 130.0),
        );
    }
}
