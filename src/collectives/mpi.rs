//! What a CUDA-aware MPI does with GPU buffers: one message a step for each rank, no channels, a kernel for each
//! reduction. Forms of Thakur, Rabenseifner and Gropp (Optimization of collective communication operations in MPICH,
//! IJHPCA 2005), with messages within a domain and across the network priced apart.

use super::call::{Call, Parts, parts};
use super::wires::Collective;
use crate::units::{Bandwidth, Seconds};

/// Rate of a large message within a domain.
fn inside_rate(call: &Call<'_>) -> Bandwidth {
    let scale_up = &call.wires.scale_up;
    call.links * (scale_up.efficiency.all_to_all.get() * call.wires.mpi.rate.get())
}

/// Rate of a rank's message across the network while the domain's other ranks send theirs.
fn across_rate(call: &Call<'_>) -> Bandwidth {
    call.rank_network() * call.wires.mpi.rate.get()
}

/// Rate of the one card that a domain's traffic leaves by where ranks take turns.
fn border_rate(call: &Call<'_>) -> Bandwidth {
    let network = &call.wires.network;
    let one = network.line_rate * (network.efficiency.payload.get() * call.group.network_share);
    one.min(call.domain_network) * call.wires.mpi.rate.get()
}

/// How often data passes in an all-reduce (scattered, then gathered) or one half of it; whether ranks add up.
fn passes(kind: Collective) -> Option<(f64, bool)> {
    match kind {
        Collective::AllReduce => Some((2.0, true)),
        Collective::ReduceScatter => Some((1.0, true)),
        Collective::AllGather => Some((1.0, false)),
        _ => None,
    }
}

/// What adding up costs in so many steps.
fn reductions(call: &Call<'_>, reduces: bool, steps: f64) -> Seconds {
    if reduces { call.wires.mpi.reduction * steps } else { Seconds::ZERO }
}

/// One ring through all ranks: a single NIC at each border of a domain.
pub(super) fn ring(call: &Call<'_>) -> Option<Parts> {
    let (passes, reduces) = passes(call.kind)?;
    let mpi = &call.wires.mpi;
    let steps = passes * (call.ranks - 1.0);
    let (message, rate) = if call.crosses_network() {
        let border = border_rate(call);
        // A step waits for the slowest of all ranks, one of which always crosses.
        (mpi.message_across, if call.per_domain > 1.0 { border.min(inside_rate(call)) } else { border })
    } else {
        (mpi.message_inside, inside_rate(call))
    };
    let latency = mpi.launch + message * steps + reductions(call, reduces, call.ranks - 1.0);
    Some(parts(latency, call.ring_traffic() / rate))
}

/// Steps of a logarithmic algorithm within the domain and across.
fn log_steps(call: &Call<'_>) -> (f64, f64) {
    let inside = call.per_domain.log2().ceil();
    (inside, call.ranks.log2().ceil().max(inside) - inside)
}

/// Vectors halve while distances double, then the way back: the nearest ranks exchange the largest messages. Where
/// ranks are no power of two, the surplus first hands its data to a neighbour and gets the result from it.
pub(super) fn halving_doubling(call: &Call<'_>) -> Option<Parts> {
    let (passes, reduces) = passes(call.kind)?;
    let mpi = &call.wires.mpi;
    let (inside_steps, across_steps) = log_steps(call);
    let g = call.per_domain;
    let inside = call.payload * (passes * (g - 1.0) / g) / inside_rate(call);
    let mut latency = mpi.launch
        + (mpi.message_inside * inside_steps + mpi.message_across * across_steps) * passes
        + reductions(call, reduces, inside_steps + across_steps);
    let mut bandwidth = if g > 1.0 { inside } else { Seconds::ZERO };
    if call.crosses_network() {
        bandwidth +=
            call.payload * (passes * (call.ranks - call.fewest) / call.ranks) / (call.domain_network * mpi.rate.get());
    }
    if call.ranks.log2().fract() > 0.0 {
        let (message, rate) =
            if g > 1.0 { (mpi.message_inside, inside_rate(call)) } else { (mpi.message_across, across_rate(call)) };
        latency += message * 2.0;
        bandwidth += call.payload * 2.0 / rate;
    }
    Some(parts(latency, bandwidth))
}

/// Bruck: every rank exchanges with one at double the distance each step. All-gather sends each part once; an
/// all-to-all sends half of everything in each step, far more data in far fewer messages.
pub(super) fn bruck(call: &Call<'_>) -> Option<Parts> {
    let mpi = &call.wires.mpi;
    let (inside_steps, across_steps) = log_steps(call);
    let latency = mpi.launch + mpi.message_inside * inside_steps + mpi.message_across * across_steps;
    let (n, g) = (call.ranks, call.per_domain);
    // The ranks that have the fewest beside them have most of it to exchange across.
    let steps_of_fewest = inside_steps + across_steps - call.fewest.log2().ceil();
    let (inside, across) = match call.kind {
        Collective::AllGather => ((g - 1.0) / n, (n - call.fewest) / n),
        Collective::AllToAll => (0.5 * inside_steps, 0.5 * if call.crosses_network() { steps_of_fewest } else { 0.0 }),
        _ => return None,
    };
    let mut bandwidth = Seconds::ZERO;
    if inside > 0.0 {
        bandwidth += call.payload * inside / inside_rate(call);
    }
    if across > 0.0 {
        bandwidth += call.payload * across / across_rate(call);
    }
    Some(parts(latency, bandwidth))
}

/// Binomial tree from or to a root: whole data in each step of a broadcast or reduction, the half that is not the
/// sender's own of a scatter or gather. One card sends at a time from each domain.
pub(super) fn binomial(call: &Call<'_>) -> Option<Parts> {
    let mpi = &call.wires.mpi;
    let (inside_steps, across_steps) = log_steps(call);
    let (n, g) = (call.ranks, call.per_domain);
    let (inside, across, adds) = match call.kind {
        Collective::Broadcast => (inside_steps, across_steps, false),
        Collective::Reduce => (inside_steps, across_steps, true),
        Collective::Gather | Collective::Scatter => ((g - 1.0) / n, (n - g) / n, false),
        _ => return None,
    };
    let latency = mpi.launch
        + mpi.message_inside * inside_steps
        + mpi.message_across * across_steps
        + reductions(call, adds, inside_steps + across_steps);
    let mut bandwidth = Seconds::ZERO;
    if inside > 0.0 {
        bandwidth += call.payload * inside / inside_rate(call);
    }
    if across > 0.0 {
        bandwidth += call.payload * across / border_rate(call);
    }
    Some(parts(latency, bandwidth))
}

/// Large broadcasts and reductions: scattered by a binomial tree and gathered by a ring, or the other way round.
pub(super) fn scatter_allgather(call: &Call<'_>) -> Option<Parts> {
    let (mpi, n, g) = (&call.wires.mpi, call.ranks, call.per_domain);
    let adds = match call.kind {
        Collective::Broadcast => false,
        Collective::Reduce => true,
        _ => return None,
    };
    let (inside_steps, across_steps) = log_steps(call);
    let message = if call.crosses_network() { mpi.message_across } else { mpi.message_inside };
    let latency = mpi.launch
        + mpi.message_inside * inside_steps
        + mpi.message_across * across_steps
        + message * (n - 1.0)
        + reductions(call, adds, n - 1.0);
    // The root's data leaves once; then each part goes round.
    let mut bandwidth = if g > 1.0 { call.payload * ((g - 1.0) / n) / inside_rate(call) } else { Seconds::ZERO };
    let mut ring = if g > 1.0 { inside_rate(call) } else { border_rate(call) };
    if call.crosses_network() {
        bandwidth += call.payload * ((n - g) / n) / border_rate(call);
        ring = ring.min(border_rate(call));
    }
    Some(parts(latency, bandwidth + call.payload * ((n - 1.0) / n) / ring))
}

/// Exchange with one partner after the other, all ranks at once; one step where there is one neighbour.
pub(super) fn pairwise(call: &Call<'_>) -> Option<Parts> {
    let (mpi, n, g) = (&call.wires.mpi, call.ranks, call.per_domain);
    let (inside, across, steps) = match call.kind {
        Collective::AllToAll => ((g - 1.0) / n, (n - call.fewest) / n, (g - 1.0, n - call.fewest)),
        Collective::SendRecv if call.crosses_network() => (0.0, 1.0, (0.0, 1.0)),
        Collective::SendRecv => (1.0, 0.0, (1.0, 0.0)),
        _ => return None,
    };
    let latency = mpi.launch + mpi.message_inside * steps.0 + mpi.message_across * steps.1;
    let mut bandwidth = Seconds::ZERO;
    if inside > 0.0 {
        bandwidth += call.payload * inside / inside_rate(call);
    }
    if across > 0.0 {
        let share = if call.kind == Collective::AllToAll {
            call.group.all_to_all_share / call.group.network_share.max(f64::MIN_POSITIVE)
        } else {
            1.0
        };
        bandwidth += call.payload * across / (across_rate(call) * share);
    }
    Some(parts(latency, bandwidth))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::*;

    #[test]
    fn one_ring_has_one_nic_at_each_border() {
        // 30 steps of 6 and 15 reductions of 8; 1.875 GB at 0.9 x 48 GB/s.
        assert_us(
            line(ring, Collective::AllReduce, gb(1.0), &group(16, 8)),
            (5.0 + 30.0 * 6.0 + 15.0 * 8.0, 1.875e9 / 43.2e3),
        );
    }

    #[test]
    fn hypercube_of_four_nodes() {
        // log2 8 = 3 steps inside, 2 across, twice; 5 reductions. 2 x 7/8 GB at 0.9 x 337.5, 2 x 3/4 / 8 GB at 43.2.
        assert_us(
            line(halving_doubling, Collective::AllReduce, gb(1.0), &group(32, 8)),
            (5.0 + 2.0 * (3.0 * 4.0 + 2.0 * 6.0) + 5.0 * 8.0, 1.75e9 / 303.75e3 + 0.1875e9 / 43.2e3),
        );
        // Three ranks of one domain: two steps, and the third rank hands its data over and back.
        assert_us(
            line(halving_doubling, Collective::AllGather, gb(1.0), &group(3, 3)),
            (5.0 + 2.0 * 4.0 + 2.0 * 4.0, (2.0 / 3.0 + 2.0) * 1e9 / 303.75e3),
        );
    }

    #[test]
    fn bruck_sends_more_in_fewer_messages() {
        // Two nodes of one GPU and four of one: 1 and 2 steps of half the payload.
        assert_us(line(bruck, Collective::AllToAll, gb(1.0), &group(4, 1)), (5.0 + 12.0, 1e9 / 43.2e3));
        assert_us(line(bruck, Collective::AllGather, gb(1.0), &group(4, 1)), (5.0 + 12.0, 0.75e9 / 43.2e3));
    }

    #[test]
    fn a_tree_from_the_root() {
        // Broadcast on four nodes of eight: 3 steps inside at 303.75 GB/s, 2 across by one card at 43.2.
        assert_us(
            line(binomial, Collective::Broadcast, gb(1.0), &group(32, 8)),
            (5.0 + 3.0 * 4.0 + 2.0 * 6.0, 3e9 / 303.75e3 + 2e9 / 43.2e3),
        );
        // Scatter sends each part once: 7/32 inside, 24/32 across.
        assert_us(
            line(binomial, Collective::Scatter, gb(1.0), &group(32, 8)),
            (5.0 + 3.0 * 4.0 + 2.0 * 6.0, 7e9 / 32.0 / 303.75e3 + 0.75e9 / 43.2e3),
        );
        // Scattered and gathered on four nodes of one: 3/4 leaves the root, 3/4 goes round.
        assert_us(
            line(scatter_allgather, Collective::Broadcast, gb(1.0), &group(4, 1)),
            (5.0 + 2.0 * 6.0 + 3.0 * 6.0, 1.5e9 / 43.2e3),
        );
    }

    #[test]
    fn partners_in_turn() {
        assert_us(
            line(pairwise, Collective::AllToAll, gb(1.0), &group(32, 8)),
            (5.0 + 7.0 * 4.0 + 24.0 * 6.0, 7e9 / 32.0 / 303.75e3 + 0.75e9 / 43.2e3),
        );
        assert_us(line(pairwise, Collective::SendRecv, gb(1.0), &group(2, 1)), (5.0 + 6.0, 1e9 / 43.2e3));
    }
}
