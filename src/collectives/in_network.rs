//! Reduction in the switches of the network (SHARP through CollNet): each NIC sends its share of the payload once and
//! receives the sum once, whatever the number of nodes. Only where the wires have it.

use super::call::{Call, Parts, parts, piped};
use super::nvls;
use super::wires::Collective;
use crate::catalog::collective_efficiency::SharpEfficiency;
use crate::units::Bandwidth;

fn serves<'a>(call: &'a Call<'_>) -> Option<&'a SharpEfficiency> {
    let sharp = call.wires.sharp.as_ref()?;
    (call.kind == Collective::AllReduce && call.crosses_network()).then_some(sharp)
}

/// Payload that the NICs of a domain have reduced a second.
fn across(call: &Call<'_>, sharp: &SharpEfficiency) -> Bandwidth {
    let group = call.group;
    call.wires.network.line_rate * (sharp.nic.get() * group.nics_per_domain * group.network_share)
}

/// Half a link's ring rate, up and down again, shared by g-1 links of g GPUs (as in a tree).
fn inside(call: &Call<'_>, share: f64) -> Option<Bandwidth> {
    let g = call.per_domain;
    let links = call.wires.scale_up.line_rate * (call.wires.scale_up.efficiency.ring.get() * share * 0.5);
    (g > 1.0).then(|| links * (g / (g - 1.0)))
}

/// GPUs exchange their shares directly, each then drives its NIC (CollNetDirect).
pub(super) fn direct(call: &Call<'_>) -> Option<Parts> {
    let sharp = serves(call)?;
    let library = &call.wires.library;
    let across = across(call, sharp);
    let rate = inside(call, sharp.direct.get()).map_or(across, |inside| inside.min(across));
    let exchange = if call.per_domain > 1.0 { 2.0 } else { 0.0 };
    let latency = library.simple_launch + call.wires.scale_up.efficiency.simple_step * exchange + sharp.direct_hop;
    Some(parts(latency, piped(call.payload / rate, library.pipeline_stage, library.pipeline_limit)))
}

/// A chain through the domain to the NIC and back (CollNetChain).
pub(super) fn chain(call: &Call<'_>) -> Option<Parts> {
    let sharp = serves(call)?;
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
    if call.per_domain < 2.0 {
        return None;
    }
    let heads = across(call, sharp) * (nvls::heads(call) / call.per_domain);
    let rate = nvls::switch_rate(call, nvls, 0.0).min(heads);
    Some(parts(nvls.launch + sharp.nvls_hop, nvls::piped(call, nvls, rate, 0.0)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::*;

    #[test]
    fn nics_send_the_payload_once() {
        // 16 nodes: NICs 8 x 50 x 0.8 = 320 GB/s; direct inside 0.8 x 0.85 x 450 / 2 x 8/7 = 174.857 GB/s binds.
        let sixteen = group(128, 8);
        assert_us(
            line(direct, Collective::AllReduce, gb(10.0), &sixteen),
            (7.0 + 2.0 * 3.0 + 31.0, 10e9 / (450e3 * 0.34 * 8.0 / 7.0) + 130.0),
        );
        // One GPU a node: the NIC alone.
        assert_us(line(chain, Collective::AllReduce, gb(10.0), &group(16, 1)), (7.0 + 30.0, 10e9 / 40e3 + 130.0));
        // NVLS: 0.7 x 450 x 8/9 = 280 GB/s below the NICs' 320, whatever the number of nodes.
        assert_us(line(nvls, Collective::AllReduce, gb(1.0), &sixteen), (30.0 + 18.0, (1e9 + 23.4375e6) / 280e3));
    }
}
