//! Collectives in phases: within the domain, along each rail between domains, within the domain again. What frameworks
//! build from NCCL's collectives where one ring through everything would take too many steps; phases do not overlap.

use super::call::{Call, Parts, parts, piped};
use super::point_to_point::{incast_share, scale_up_rate};
use super::wires::Collective;
use crate::units::Seconds;

/// A hierarchical collective over domains of several ranks.
pub(super) fn line(call: &Call<'_>) -> Option<Parts> {
    // A rail has a rank in every domain.
    if !call.crosses_network() || call.per_domain < 2.0 || call.fewest < call.per_domain {
        return None;
    }
    match call.kind {
        Collective::AllReduce => Some(rings(call, 2.0)),
        Collective::AllGather | Collective::ReduceScatter => Some(rings(call, 1.0)),
        Collective::AllToAll => Some(all_to_all(call)),
        _ => None,
    }
}

fn fill(call: &Call<'_>, transfer: Seconds) -> Seconds {
    piped(transfer, call.wires.library.pipeline_stage, call.wires.library.pipeline_limit)
}

/// A ring in every domain, one on every rail: `passes` is 2 where data is scattered and gathered again.
fn rings(call: &Call<'_>, passes: f64) -> Parts {
    let (g, domains) = (call.per_domain, call.domains);
    let scale_up = call.links * call.wires.scale_up.efficiency.ring.get();
    let inside = call.payload * ((g - 1.0) / g) / scale_up;
    let rail = call.payload * (passes * (domains - 1.0) / domains / g) / call.rank_network();
    let library = &call.wires.library;
    let latency = library.simple_launch * (passes + 1.0)
        + call.wires.scale_up.efficiency.simple_step * (passes * (g - 1.0))
        + call.simple_hop() * (passes * (domains - 1.0));
    parts(latency, fill(call, inside) * passes + fill(call, rail))
}

/// Exchange within the domain by rail, then along the rails: N-1 remote peers instead of n-g.
fn all_to_all(call: &Call<'_>) -> Parts {
    let (g, domains) = (call.per_domain, call.domains);
    let library = &call.wires.library;
    let inside = call.payload * ((g - 1.0) / g) / scale_up_rate(call);
    let nic = call.wires.network.line_rate * call.wires.network.efficiency.payload.get();
    let rank = nic * (call.group.nics_per_domain / g * call.group.all_to_all_share * incast_share(call));
    let rail = call.payload * ((domains - 1.0) / domains) / rank;
    let remote = call.simple_hop() + library.remote_peer * (domains - 1.0);
    parts(library.grouped_launch * 2.0 + remote, fill(call, inside) + fill(call, rail))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line as timed};
    use super::*;

    #[test]
    fn phases_add_up() {
        // 16 nodes of 8. Inside: 7/8 x 10 GB at 360 GB/s, twice; rails: 2 x 15/16 / 8 x 10 GB at 48 GB/s.
        let inside = 8.75e9 / 360e3 + 130.0;
        let rail = 10e9 * 2.0 * 15.0 / 16.0 / 8.0 / 48e3 + 130.0;
        assert_us(
            timed(line, Collective::AllReduce, gb(10.0), &group(128, 8)),
            (3.0 * 7.0 + 14.0 * 3.0 + 30.0 * 14.0, 2.0 * inside + rail),
        );
        // All-to-all: 7/8 at 337.5 GB/s, then 15/16 at 48 x 0.9 x (1 - 0.2 x 14/16) = 35.64 GB/s; 15 remote peers.
        let (inside, rail) = (8.75e9 / 337.5e3 + 130.0, 10e9 * 15.0 / 16.0 / 35.64e3 + 130.0);
        assert_us(timed(line, Collective::AllToAll, gb(10.0), &group(128, 8)), (66.0 + 14.0 + 15.0, inside + rail));
    }
}
