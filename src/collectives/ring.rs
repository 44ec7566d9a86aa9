//! Rings: data passes every rank in turn. They serve every reduction and copy.

use super::call::{Call, Parts, parts, piped};
use super::wires::Collective;
use crate::units::Seconds;

/// Whether rings carry the collective: reductions and copies, not exchanges of pairs.
fn serves(call: &Call<'_>) -> bool {
    matches!(
        call.kind,
        Collective::AllReduce
            | Collective::AllGather
            | Collective::ReduceScatter
            | Collective::Broadcast
            | Collective::Reduce
    )
}

/// Steps of a ring on its critical path: within a domain, and across the network.
struct Steps {
    inside: f64,
    across: f64,
}

/// The steps of tuning.cc: 2(n-1) for all-reduce, else n-1; 2N, N or N-1 of them leave a domain.
fn steps(call: &Call<'_>) -> Steps {
    let (all, across) = match call.kind {
        Collective::AllReduce => (2.0 * (call.ranks - 1.0), 2.0 * call.domains),
        Collective::Broadcast | Collective::Reduce => (call.ranks - 1.0, call.domains - 1.0),
        _ => (call.ranks - 1.0, call.domains),
    };
    let across = if call.crosses_network() { across.min(all) } else { 0.0 };
    let inside = match call.wires.scale_up.torus.filter(|_| !call.crosses_network()) {
        // Once around each dimension, and for a sum back again.
        Some(torus) => torus.steps(call.group.ranks) * (all / (call.ranks - 1.0)),
        None => all - across,
    };
    Steps { inside, across }
}

/// Cost of an LL step: a chain must see the data through each link, a ring's ranks all work at once.
fn ll_step(call: &Call<'_>) -> Seconds {
    let costs = call.wires.scale_up.efficiency;
    if matches!(call.kind, Collective::Broadcast | Collective::Reduce) { costs.chain_step } else { costs.ll_step }
}

/// LL: a flag beside every word. Half the wire is data; within one domain this line stands for LL128 as well.
pub(super) fn ll(call: &Call<'_>) -> Option<Parts> {
    if !serves(call) {
        return None;
    }
    let steps = steps(call);
    let library = &call.wires.library;
    let latency = library.ll_launch + ll_step(call) * steps.inside + call.ll_hop() * steps.across;
    Some(parts(latency, ll_transfer(call)))
}

/// Transfer time of LL, in rings and trees alike.
pub(super) fn ll_transfer(call: &Call<'_>) -> Seconds {
    let within = call.links * call.wires.scale_up.efficiency.ll.get();
    let rate = if call.crosses_network() {
        within.min(call.wires.library.ll_network_limit).min(call.domain_network * 0.5)
    } else {
        within
    };
    call.ring_traffic() / rate
}

/// LL128 across a network: a flag beside every 120 bytes, at twice the step cost of LL.
pub(super) fn ll128(call: &Call<'_>) -> Option<Parts> {
    let steps = steps(call);
    let library = &call.wires.library;
    let hop = call.ll_hop() * library.ll128_hop.get();
    let latency = library.ll128_launch + ll_step(call) * (2.0 * steps.inside) + hop * steps.across;
    let serves = serves(call) && call.crosses_network() && call.wires.scale_up.ll128;
    serves.then(|| parts(latency, ll128_transfer(call)))
}

/// Transfer time of LL128 across a network, in rings and trees alike.
pub(super) fn ll128_transfer(call: &Call<'_>) -> Seconds {
    call.ring_traffic() / call.wires.library.ll128_network_limit.min(call.domain_network * 0.5)
}

/// Simple: whole chunks, full rate.
pub(super) fn simple(call: &Call<'_>) -> Option<Parts> {
    if !serves(call) {
        return None;
    }
    let steps = steps(call);
    let library = &call.wires.library;
    let latency = library.simple_launch
        + call.wires.scale_up.efficiency.simple_step * steps.inside
        + call.simple_hop() * steps.across;
    let transfer = call.ring_traffic() / call.ring_rate();
    Some(parts(latency, piped(transfer, library.pipeline_stage, library.pipeline_limit)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::*;

    #[test]
    fn simple_all_reduce_on_two_nodes() {
        // 30 steps, 4 of them across: 7 + 26 x 3 + 4 x 14 = 141 us. 1.875 x 1 GB at min(0.8 x 450, 8 x 48) = 360 GB/s
        // is 5,208.333 us; the fill 2 sqrt(0.4 x 5,208.333) = 91.287 us.
        let transfer: f64 = 1.875e9 / 360e3;
        assert_us(
            line(simple, Collective::AllReduce, gb(1.0), &group(16, 8)),
            (7.0 + 26.0 * 3.0 + 4.0 * 14.0, transfer + 2.0 * (0.4 * transfer).sqrt()),
        );
    }

    #[test]
    fn simple_all_gather_of_one_rank_a_node_takes_its_nic_and_only_hops() {
        // 7 steps, all across: 7 + 7 x 14. 7/8 GB at 48 GB/s is 18,229.167 us; the fill is at its limit of 130.
        assert_us(
            line(simple, Collective::AllGather, gb(1.0), &group(8, 1)),
            (7.0 + 7.0 * 14.0, 0.875e9 / 48e3 + 2.0 * (0.4_f64 * 0.875e9 / 48e3).sqrt().min(65.0)),
        );
    }

    #[test]
    fn ll_in_one_domain_and_across() {
        // 14 steps of 0.6; 1.75 MB at 0.3 x 450 = 135 GB/s.
        assert_us(line(ll, Collective::AllReduce, gb(1e-3), &group(8, 8)), (7.5 + 14.0 * 0.6, 1.75e6 / 135e3));
        // A chain: 14 steps of 2.5 and 1 hop; 1 MB at 17 GB/s.
        assert_us(line(ll, Collective::Broadcast, gb(1e-3), &group(16, 8)), (7.5 + 14.0 * 2.5 + 10.0, 1e6 / 17e3));
    }

    #[test]
    fn ll128_takes_two_ll_steps_and_its_own_hops() {
        // All-gather: 13 steps of 1.2 and 2 hops of 15; 15/16 MB at min(39, 192).
        assert_us(
            line(ll128, Collective::AllGather, gb(1e-3), &group(16, 8)),
            (16.0 + 13.0 * 1.2 + 2.0 * 15.0, 0.9375e6 / 39e3),
        );
    }
}
