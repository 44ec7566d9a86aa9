//! Grouped point-to-point transfers: all-to-all, one root to or from all, and one send to a neighbour.

use super::call::{Call, Parts, parts, piped};
use super::wires::{Collective, TorusLinks};
use crate::units::{Bandwidth, Seconds};

/// Transfer time of an all-to-all: the slower of what stays in the domain and what leaves it.
///
/// Of a payload, (g-1)/n goes to ranks of the domain and (n-g)/n to others, through the rank's share of the NICs, of
/// which incast at the receivers takes a part that saturates with the number of domains.
fn all_to_all_transfer(call: &Call<'_>) -> Seconds {
    let (n, g) = (call.ranks, call.per_domain);
    let torus = call.wires.scale_up.torus.map_or(1.0, |torus| torus.all_to_all_share(call.group.ranks_per_domain));
    let inside = call.payload * ((g - 1.0) / n) / (scale_up_rate(call) * torus);
    if !call.crosses_network() {
        return inside;
    }
    let reached = incast_share(call);
    let rate = call.nic() * (call.group.all_to_all_share * reached);
    // The fullest wires decide: of a rank that is alone in its domain all but its own part leaves, by its own card.
    let out = |ranks: f64, nics: f64| call.payload * ((n - ranks) / n) / (rate * (nics / ranks));
    let across = out(g, call.group.nics_per_domain).max(out(call.fewest, call.group.fewest_nics()));
    let leaving = call.payload * ((n - call.fewest) / n);
    // Relaying comes before the network and does not overlap with it.
    inside.max(across) + leaving * call.group.relayed / scale_up_rate(call)
}

/// Share of its NICs that an all-to-all over the call's domains reaches.
pub(super) fn incast_share(call: &Call<'_>) -> f64 {
    let library = &call.wires.library;
    library.all_to_all.get() * (1.0 - library.incast.get() * (1.0 - 2.0 / call.domains))
}

/// Share of the root's NICs that what many domains send it reaches: what they send together is paced as in an all-to-all.
fn many_to_one(call: &Call<'_>) -> f64 {
    if call.kind != Collective::Gather || !call.crosses_network() {
        return 1.0;
    }
    1.0 - call.wires.library.incast.get() * (1.0 - 2.0 / call.domains)
}

/// Scale-up rate of point-to-point transfers.
pub(super) fn scale_up_rate(call: &Call<'_>) -> Bandwidth {
    call.links * call.wires.scale_up.efficiency.all_to_all.get()
}

/// The same to one neighbour: on a torus by one link of the two along each dimension, in a mesh by the link to it.
fn neighbour_rate(call: &Call<'_>) -> Bandwidth {
    let scale_up = &call.wires.scale_up;
    let links = scale_up.torus.map_or(1.0, TorusLinks::links);
    scale_up.rate_to(1.0) * scale_up.efficiency.all_to_all.get() / links
}

/// All-to-all in Simple.
pub(super) fn all_to_all(call: &Call<'_>) -> Option<Parts> {
    if call.kind != Collective::AllToAll {
        return None;
    }
    let library = &call.wires.library;
    let remote = if call.crosses_network() {
        call.simple_hop() + library.remote_peer * (call.ranks - call.fewest)
    } else {
        Seconds::ZERO
    };
    let transfer = piped(all_to_all_transfer(call), library.pipeline_stage, library.pipeline_limit);
    Some(parts(library.grouped_launch + remote, transfer))
}

/// All-to-all in LL: the flags double what the wires carry, and few channels serve each peer.
pub(super) fn all_to_all_ll(call: &Call<'_>) -> Option<Parts> {
    if call.kind != Collective::AllToAll {
        return None;
    }
    let library = &call.wires.library;
    let costs = &call.wires.scale_up.efficiency;
    let mut latency = library.ll_launch + costs.ll_step * (call.ranks - 1.0);
    let mut share = costs.ll.get() * library.grouped_ll.get();
    if call.crosses_network() {
        latency = latency + call.ll_hop() + library.remote_peer * (call.ranks - call.fewest);
        share *= library.grouped_ll_network.get();
    }
    let transfer = call.payload / (call.links * share);
    Some(parts(latency, transfer.max(all_to_all_transfer(call) * 2.0)))
}

/// What a gather or scatter moves at its root: within the domain over its links, to other domains through all NICs of
/// the domain, to which PXN relays.
fn rooted(call: &Call<'_>) -> Option<(Seconds, Seconds)> {
    if !matches!(call.kind, Collective::Gather | Collective::Scatter) {
        return None;
    }
    let (n, g) = (call.ranks, call.per_domain);
    let inside = call.payload * ((n - 1.0) / n) / scale_up_rate(call);
    let across = if call.crosses_network() {
        // The root is in a full domain; at the other end, a domain with few ranks takes or gives their parts by few cards.
        let nic = call.nic() * call.group.network_share;
        let root = call.payload * ((n - g) / n) / (nic * (call.group.nics_per_domain * many_to_one(call)));
        root.max(call.payload * (call.fewest / n) / (nic * call.group.fewest_nics()))
    } else {
        Seconds::ZERO
    };
    Some((inside, across))
}

/// Transfers that do not loop: gather, scatter, and every rank to the next, in Simple.
pub(super) fn single(call: &Call<'_>) -> Option<Parts> {
    if let Some((inside, across)) = rooted(call) {
        let library = &call.wires.library;
        let hop = if call.crosses_network() { call.simple_hop() } else { call.wires.scale_up.efficiency.simple_step };
        let transfer = piped(inside.max(across), library.single_pipeline_stage, library.pipeline_limit * 3.0);
        return Some(parts(library.simple_launch + hop, transfer));
    }
    send_recv(call)
}

/// The same in LL: the flags double what the wires carry.
pub(super) fn single_ll(call: &Call<'_>) -> Option<Parts> {
    if let Some((_, across)) = rooted(call) {
        let library = &call.wires.library;
        let within = call.payload / (scale_up_rate(call) * library.single_ll.get());
        let (hop, transfer) = if call.crosses_network() {
            (call.ll_hop(), within.max(across * 2.0))
        } else {
            (call.wires.scale_up.efficiency.ll_step, within)
        };
        return Some(parts(library.ll_launch + hop, transfer));
    }
    send_recv_ll(call)
}

/// Every rank to the next, in Simple. Where the next is in another domain, the rank's own NIC carries it.
fn send_recv(call: &Call<'_>) -> Option<Parts> {
    if call.kind != Collective::SendRecv {
        return None;
    }
    let library = &call.wires.library;
    let (hop, rate) = if call.crosses_network() {
        (call.simple_hop(), call.rank_network())
    } else {
        (call.wires.scale_up.efficiency.simple_step, neighbour_rate(call))
    };
    let transfer = piped(call.payload / rate, library.single_pipeline_stage, library.pipeline_limit * 3.0);
    Some(parts(library.simple_launch + hop, transfer))
}

/// Every rank to the next, in LL.
fn send_recv_ll(call: &Call<'_>) -> Option<Parts> {
    if call.kind != Collective::SendRecv {
        return None;
    }
    let library = &call.wires.library;
    let within = neighbour_rate(call) * library.single_ll.get();
    let (hop, rate) = if call.crosses_network() {
        (call.ll_hop(), within.min(call.rank_network() * 0.5))
    } else {
        (call.wires.scale_up.efficiency.ll_step, within)
    };
    Some(parts(library.ll_launch + hop, call.payload / rate))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::super::wires::Group;
    use super::*;

    #[test]
    fn all_to_all_in_one_domain() {
        // 7/8 GB at 0.75 x 450 = 337.5 GB/s.
        let transfer: f64 = 0.875e9 / 337.5e3;
        assert_us(
            line(all_to_all, Collective::AllToAll, gb(1.0), &group(8, 8)),
            (33.0, transfer + 2.0 * (0.4 * transfer).sqrt()),
        );
        // LL: 7 peers; 1 kB at 0.3 x 450 / 8.
        assert_us(
            line(all_to_all_ll, Collective::AllToAll, gb(1e-6), &group(8, 8)),
            (7.5 + 7.0 * 0.6, 1e3 / (0.3 * 450e3 / 8.0)),
        );
    }

    #[test]
    fn all_to_all_across_pays_for_incast() {
        // Four nodes: 24/32 GB through 48 x 0.9 x (1 - 0.2 x (1 - 2/4)) = 38.88 GB/s a rank; 24 remote peers.
        assert_us(
            line(all_to_all, Collective::AllToAll, gb(1.0), &group(32, 8)),
            (33.0 + 14.0 + 24.0, 0.75e9 / 38.88e3 + 130.0),
        );
        // LL: 31 peers, one hop; 1 kB at 0.3 x 450 / 8 / 4.
        assert_us(
            line(all_to_all_ll, Collective::AllToAll, gb(1e-6), &group(32, 8)),
            (7.5 + 31.0 * 0.6 + 10.0 + 24.0, 1e3 / (0.3 * 450e3 / 32.0)),
        );
    }

    #[test]
    fn a_root_uses_all_nics_of_its_domain() {
        // 16 ranks on two nodes: 15/16 GB at 337.5 GB/s inside, 8/16 GB at 384 GB/s across: 2.78 against 1.30 ms.
        let transfer: f64 = 0.9375e9 / 337.5e3;
        assert_us(
            line(single, Collective::Scatter, gb(1.0), &group(16, 8)),
            (7.0 + 14.0, transfer + 2.0 * (0.9 * transfer).sqrt()),
        );
        // 128 ranks, a tenth of the NICs: 120/128 GB at 38.4 GB/s bind.
        let few = Group { nics_per_domain: 0.8, ..group(128, 8) };
        let (_, transfer) = line(single_ll, Collective::Gather, gb(1.0), &few);
        // What 15 others send at once is paced: 1 - 0.2 x (1 - 2/16) = 0.825. A root that sends is not.
        assert!((transfer - 2.0 * 0.9375e9 / 38.4e3 / 0.825).abs() < 1e-3);
        let (_, transfer) = line(single_ll, Collective::Scatter, gb(1.0), &few);
        assert!((transfer - 2.0 * 0.9375e9 / 38.4e3).abs() < 1e-3);
        assert_us(line(single_ll, Collective::Gather, gb(1e-6), &group(8, 8)), (7.5 + 0.6, 1e3 / (0.25 * 337.5e3)));
    }

    #[test]
    fn a_send_takes_one_hop() {
        let transfer: f64 = 1e8 / 48e3;
        assert_us(
            line(send_recv, Collective::SendRecv, gb(0.1), &group(2, 1)),
            (7.0 + 14.0, transfer + 2.0 * (0.9 * transfer).sqrt()),
        );
        assert_us(line(send_recv_ll, Collective::SendRecv, gb(1e-5), &group(2, 1)), (7.5 + 10.0, 1e4 / 24e3));
        assert_us(
            line(send_recv_ll, Collective::SendRecv, gb(1e-5), &group(2, 2)),
            (7.5 + 0.6, 1e4 / (0.25 * 337.5e3)),
        );
    }
}
