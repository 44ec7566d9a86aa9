//! Reduction in the switches of the network (SHARP through CollNet): each NIC sends its share of the payload once and
//! receives the sum once, whatever the number of nodes. Only where the wires have it.
//!
//! Reduce-scatters and all-gathers use the switches too (SHARP 3.5.2 with NCCL from 2.20), by CollNetDirect and only where
//! every rank has a network card of its own (tuning.cc). No bytes are saved on the busier direction of a card, which a ring
//! fills as well, so that what they save is the ring's steps.

use super::call::{Call, Parts, parts, piped};
use super::nvls;
use super::wires::Collective;
use crate::catalog::collective_efficiency::SharpEfficiency;
use crate::units::{Bandwidth, Seconds};

/// Ranks of a domain that CollNet joins, at most (NCCL_MAX_DIRECT_ARITY, src/include/device.h, and the rank itself).
const MOST_PER_DOMAIN: f64 = 8.0;

fn serves<'a>(call: &'a Call<'_>) -> Option<&'a SharpEfficiency> {
    let sharp = call.wires.sharp.as_ref()?;
    (call.kind == Collective::AllReduce && call.crosses_network()).then_some(sharp)
}

/// The same for CollNet, which joins small domains only.
fn joins<'a>(call: &'a Call<'_>) -> Option<&'a SharpEfficiency> {
    serves(call).filter(|_| call.per_domain <= MOST_PER_DOMAIN)
}

/// Payload that the NICs of a domain have reduced a second.
fn across(call: &Call<'_>, sharp: &SharpEfficiency) -> Bandwidth {
    let group = call.group;
    call.wires.network.line_rate * (sharp.nic.get() * group.fewest_nics() * group.network_share)
}

/// Half a link's ring rate, up and down again, shared by g-1 links of g GPUs (as in a tree).
fn inside(call: &Call<'_>, share: f64) -> Option<Bandwidth> {
    let g = call.per_domain;
    let links = call.links * (call.wires.scale_up.efficiency.ring.get() * share * 0.5);
    (g > 1.0).then(|| links * (g / (g - 1.0)))
}

/// GPUs exchange their shares directly, each then drives its NIC (CollNetDirect).
pub(super) fn direct(call: &Call<'_>) -> Option<Parts> {
    if matches!(call.kind, Collective::ReduceScatter | Collective::AllGather) {
        return one_way(call);
    }
    let sharp = joins(call)?;
    let library = &call.wires.library;
    let across = across(call, sharp);
    let rate = inside(call, sharp.direct.get()).map_or(across, |inside| inside.min(across));
    let exchange = if call.per_domain > 1.0 { 2.0 } else { 0.0 };
    let latency = library.simple_launch + call.wires.scale_up.efficiency.simple_step * exchange + sharp.direct_hop;
    Some(parts(latency, piped(call.payload / rate, library.pipeline_stage, library.pipeline_limit)))
}

/// A reduce-scatter or an all-gather: one exchange in the domain, and the whole payload once through the domain's NICs,
/// towards the switches where it is reduced, from them where it is gathered.
fn one_way(call: &Call<'_>) -> Option<Parts> {
    let sharp = call.wires.sharp.as_ref()?;
    let card_each = call.group.nics_per_domain >= call.per_domain;
    if !call.crosses_network() || !card_each || call.per_domain > MOST_PER_DOMAIN {
        return None;
    }
    let library = &call.wires.library;
    let across = across(call, sharp);
    // One pass over the links, not up and down.
    let rate = inside(call, sharp.direct.get()).map_or(across, |inside| (inside * 2.0).min(across));
    let exchange = if call.per_domain > 1.0 { call.wires.scale_up.efficiency.simple_step } else { Seconds::ZERO };
    let latency = library.simple_launch + exchange + sharp.direct_hop;
    Some(parts(latency, piped(call.payload / rate, library.pipeline_stage, library.pipeline_limit)))
}

/// A chain through the domain to the NIC and back (CollNetChain).
pub(super) fn chain(call: &Call<'_>) -> Option<Parts> {
    let sharp = joins(call)?;
    let library = &call.wires.library;
    let across = across(call, sharp);
    let costs = &call.wires.scale_up.efficiency;
    let rate = inside(call, costs.tree.get()).map_or(across, |inside| inside.min(across));
    let latency = library.simple_launch + costs.simple_step * (2.0 * (call.per_domain - 1.0)) + sharp.chain_hop;
    Some(parts(latency, piped(call.payload / rate, library.pipeline_stage, library.pipeline_limit)))
}

/// The domain's switches reduce first, then the network's.
pub(super) fn nvls(call: &Call<'_>) -> Option<Parts> {
    let sharp = serves(call)?;
    let nvls = call.wires.scale_up.nvls.as_ref()?;
    if call.fewest < 2.0 {
        return None;
    }
    let heads = across(call, sharp) * (nvls::heads(call) / call.per_domain);
    let rate = nvls::switch_rate(call, nvls, 0.0).min(heads);
    Some(parts(nvls.launch + sharp.nvls_hop, nvls::piped(call, nvls, rate, 0.0)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line, wires};
    use super::super::wires::Group;
    use super::*;

    #[test]
    fn nics_send_the_payload_once() {
        // 16 nodes: NICs 8 x 50 x 0.8 = 320 GB/s; direct inside 0.8 x 0.85 x 450 / 2 x 8/7 = 174.857 GB/s binds.
        let sixteen = group(128, 8);
        assert_us(
            line(direct, Collective::AllReduce, gb(10.0), &sixteen),
            (7.0 + 2.0 * 3.0 + 31.0, 10e9 / (450e3 * 0.34 * 8.0 / 7.0) + 130.0),
        );
        // One way: 0.8 x 0.85 x 450 x 8/7 = 349.7 GB/s inside, so that the NICs' 320 bind.
        for kind in [Collective::ReduceScatter, Collective::AllGather] {
            assert_us(line(direct, kind, gb(10.0), &sixteen), (7.0 + 3.0 + 31.0, 10e9 / 320e3 + 130.0));
        }
        // One GPU a node: the NIC alone.
        assert_us(line(chain, Collective::AllReduce, gb(10.0), &group(16, 1)), (7.0 + 30.0, 10e9 / 40e3 + 130.0));
        // NVLS: 0.7 x 450 x 8/9 = 280 GB/s below the NICs' 320, whatever the number of nodes.
        assert_us(line(nvls, Collective::AllReduce, gb(1.0), &sixteen), (30.0 + 18.0, (1e9 + 23.4375e6) / 280e3));
    }

    #[test]
    fn switches_serve_small_domains_with_a_card_a_rank() {
        let wires = wires();
        let served = |line: fn(&Call<'_>) -> Option<Parts>, kind, group: &Group| {
            line(&Call::new(kind, gb(1.0), group, &wires)).is_some()
        };
        let shared_card = Group { nics_per_domain: 4.0, ..group(128, 8) };
        assert!(served(direct, Collective::AllReduce, &shared_card));
        assert!(!served(direct, Collective::ReduceScatter, &shared_card));
        assert!(!served(direct, Collective::AllGather, &group(8, 8)));
        let rack = group(144, 72);
        assert!(!served(direct, Collective::AllReduce, &rack) && !served(chain, Collective::AllReduce, &rack));
        assert!(!served(direct, Collective::AllGather, &rack) && served(nvls, Collective::AllReduce, &rack));
    }
}
