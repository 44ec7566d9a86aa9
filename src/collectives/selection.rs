//! Which algorithm serves a call, and the answer.

use super::algorithm::{Algorithm, OWN};
use super::call::Call;
use super::nvls;
use super::wires::{Collective, Group, Wires};
use crate::units::{Bandwidth, Bytes, Seconds};

/// Share of a NIC's line rate that NCCL's topology search counts (48 of 50 GB/s).
const TUNER_NIC: f64 = 0.96;
/// Difference in NCCL's estimates beyond which its choice does not hang on details that a plan cannot know.
const CLEAR_LEAD: f64 = 1.1;

/// What a collective takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectiveTime {
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// All of it: latency and bandwidth together.
    pub time: Seconds,
    /// What even an empty call takes.
    pub latency: Seconds,
    /// What grows with the payload, the filling of pipelines included.
    pub bandwidth: Seconds,
}

/// The time of a collective carried out as NCCL would: the fastest line among those that its tuner considers.
///
/// One rank, or nothing to move, takes no time.
#[inline]
pub fn best(kind: Collective, payload: Bytes, group: &Group, wires: &Wires) -> CollectiveTime {
    best_of(kind, payload, group, wires, |_| true).unwrap_or_else(|| nothing(kind))
}

/// The same where only some algorithms are allowed, as `NCCL_ALGO` and `NCCL_PROTO` do; `None` where none of them
/// serves.
#[inline]
pub fn best_of(
    kind: Collective,
    payload: Bytes,
    group: &Group,
    wires: &Wires,
    allowed: impl Fn(Algorithm) -> bool,
) -> Option<CollectiveTime> {
    if is_nothing(payload, group) {
        return Some(nothing(kind));
    }
    let call = Call::new(kind, payload, group, wires);
    let nvls_tree = nvls_tree_lead(&call).filter(|_| allowed(Algorithm::NvlsTree));
    let mut fastest: Option<CollectiveTime> = None;
    for &algorithm in OWN {
        if !is_considered(algorithm, nvls_tree) || !allowed(algorithm) {
            continue;
        }
        if let Some(time) = timed(algorithm, &call)
            && fastest.is_none_or(|so_far| time.time < so_far.time)
        {
            fastest = Some(time);
        }
    }
    fastest
}

/// Whether NCCL's tuner leaves one of its algorithms in the race, by the lead that it gives NVLSTree.
#[inline]
pub(super) fn is_considered(algorithm: Algorithm, nvls_tree: Option<f64>) -> bool {
    match algorithm {
        Algorithm::TreeSimple => nvls_tree.is_none(),
        Algorithm::RingSimple => nvls_tree.is_none_or(|lead| lead <= CLEAR_LEAD),
        _ => true,
    }
}

/// No time, under the name of the algorithm that would have taken it.
fn nothing(kind: Collective) -> CollectiveTime {
    CollectiveTime {
        algorithm: match kind {
            Collective::AllToAll => Algorithm::AllToAllSimple,
            Collective::SendRecv | Collective::Gather | Collective::Scatter => Algorithm::PointToPointSimple,
            _ => Algorithm::RingSimple,
        },
        time: Seconds::ZERO,
        latency: Seconds::ZERO,
        bandwidth: Seconds::ZERO,
    }
}

/// The time of a collective by one algorithm, or `None` where that cannot serve it.
pub fn estimate(
    algorithm: Algorithm,
    kind: Collective,
    payload: Bytes,
    group: &Group,
    wires: &Wires,
) -> Option<CollectiveTime> {
    let time = timed(algorithm, &Call::new(kind, payload, group, wires))?;
    if is_nothing(payload, group) {
        return Some(CollectiveTime {
            algorithm,
            time: Seconds::ZERO,
            latency: Seconds::ZERO,
            bandwidth: Seconds::ZERO,
        });
    }
    Some(time)
}

/// Payload over time, nccl-tests' `algbw`.
pub fn algorithm_bandwidth(payload: Bytes, time: Seconds) -> Bandwidth {
    payload / time
}

/// Algorithm bandwidth times the collective's factor, nccl-tests' `busbw`: what the busiest link carries in a ring.
pub fn bus_bandwidth(kind: Collective, ranks: u32, payload: Bytes, time: Seconds) -> Bandwidth {
    algorithm_bandwidth(payload, time) * kind.bus_factor(ranks)
}

pub(super) fn is_nothing(payload: Bytes, group: &Group) -> bool {
    group.ranks <= 1 || payload <= Bytes::ZERO
}

fn timed(algorithm: Algorithm, call: &Call<'_>) -> Option<CollectiveTime> {
    let parts = algorithm.line(call)?;
    Some(CollectiveTime {
        algorithm,
        time: parts.latency + parts.bandwidth,
        latency: parts.latency,
        bandwidth: parts.bandwidth,
    })
}

/// Bus bandwidth that NCCL's tuner gives NVLSTree, over the ring's; `None` where NVLSTree cannot serve.
///
/// NCCL compares its own estimates (tuning.cc), in which NVLSTree also has the lower latency: with a clear lead in
/// bandwidth it is taken at every size that LL does not win, even where the ring would be faster. Trees without NVLS are
/// never ahead of it there.
pub(super) fn nvls_tree_lead(call: &Call<'_>) -> Option<f64> {
    let nvls = call.wires.scale_up.nvls.as_ref()?;
    if call.kind != Collective::AllReduce || !call.crosses_network() || call.fewest < 2.0 {
        return None;
    }
    let heads = nvls::heads(call);
    let links = call.links * nvls.tuner_link.get();
    let nics = call.wires.network.line_rate * (TUNER_NIC * call.group.nics_per_domain);
    let (directions, channel) =
        if call.domains <= 2.0 { (2.0, nvls.tuner_channel_two) } else { (1.0, nvls.tuner_channel_many) };
    let inside = links * (2.0 / heads * nvls.tuner_efficiency.get() * (heads - 1.0) / heads);
    let across = nics * (directions / call.per_domain);
    Some(inside.min(across).min(channel) * heads / links.min(nics))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{gb, group, us, wires};
    use super::*;

    fn chosen(kind: Collective, payload: Bytes, group: &Group) -> Algorithm {
        best(kind, payload, group, &Wires { pat: None, sharp: None, ..wires() }).algorithm
    }

    #[test]
    fn nccl_s_own_comparison() {
        // Two nodes: min(2 x 370.8 / 8 x 0.85 x 7/8, 2 x 48, 57.7) x 8 = 461.6 against min(370.8, 384).
        let (two, four, wires) = (group(16, 8), group(32, 8), wires());
        let lead = |group| nvls_tree_lead(&Call::new(Collective::AllReduce, gb(1.0), group, &wires)).unwrap();
        assert!((lead(&two) - 8.0 * 57.7 / (450.0 * 0.824)).abs() < 1e-9);
        // Four: min(68.9, 48, 45.5) x 8 = 364, within a tenth of the ring's.
        assert!((lead(&four) - 8.0 * 45.5 / (450.0 * 0.824)).abs() < 1e-9);
    }

    #[test]
    fn sizes_and_shapes_decide() {
        let all_reduce = |payload, group: &Group| chosen(Collective::AllReduce, payload, group);
        assert_eq!(all_reduce(gb(1e-6), &group(8, 8)), Algorithm::RingLl);
        assert_eq!(all_reduce(gb(8.0), &group(8, 8)), Algorithm::Nvls);
        assert_eq!(all_reduce(gb(1e-6), &group(16, 8)), Algorithm::TreeLl);
        assert_eq!(all_reduce(gb(8.0), &group(16, 8)), Algorithm::NvlsTree);
        assert_eq!(all_reduce(gb(8.0), &group(256, 8)), Algorithm::RingSimple);
        assert_eq!(chosen(Collective::AllGather, gb(8.0), &group(16, 8)), Algorithm::RingSimple);
        // Two GPUs: NVLS would send 3/2 of the payload, the ring sends it once.
        assert_eq!(all_reduce(gb(8.0), &group(2, 2)), Algorithm::RingSimple);
    }

    #[test]
    fn parts_add_up() {
        let time = best(Collective::AllToAll, gb(1.0), &group(64, 8), &wires());
        assert_eq!(time.latency + time.bandwidth, time.time);
    }

    #[test]
    fn bus_bandwidth_is_that_of_nccl_tests() {
        // 8 GiB in 34,104 us on 16 ranks is 251.87 GB/s, times 15/8 472.26 (a public log of two H200 nodes).
        let (payload, time) = (Bytes::new(8_589_934_592.0), us(34_104.0));
        assert!((algorithm_bandwidth(payload, time).value() / 1e9 - 251.87).abs() < 0.01);
        assert!((bus_bandwidth(Collective::AllReduce, 16, payload, time).value() / 1e9 - 472.26).abs() < 0.01);
    }
}
