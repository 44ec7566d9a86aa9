//! Why an algorithm is chosen, and what holds a call back: for answers to "is what I measured normal?".

use super::algorithm::{Algorithm, OWN};
use super::call::Call;
use super::selection::{CollectiveTime, best_of, estimate, is_considered, is_nothing, nvls_tree_lead};
use super::wires::{Collective, Group, Wires};
use crate::catalog::collective_efficiency::LibraryEfficiency;
use crate::units::{Bytes, Seconds};

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Starts, steps and hops rather than bytes.
    Latency,
    /// The links or switches of the scale-up domain.
    ScaleUp,
    /// The NICs, and what the topology leaves of them.
    Network,
    /// The host process that starts the work.
    Host,
}

/// By which rule the algorithm was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The fastest of those that NCCL considers.
    Fastest,
    /// NCCL's tuner prices this one clearly ahead of the ring, which would in truth be faster.
    TunerPrefers,
    /// Algorithms were restricted.
    Restricted,
}

/// The answer to one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Algorithm and time, the host's floor included.
    pub time: CollectiveTime,
    /// The rule.
    pub rule: Rule,
    /// What the call waits for.
    pub limit: Limit,
}

/// Chooses as NCCL does among the allowed algorithms; `None` where none of them serves the call.
///
/// `gpus_per_process` is how many GPUs one host process drives (`-g` of nccl-tests); zero where the host is not on the
/// way, as under CUDA graphs.
pub fn choose(
    kind: Collective,
    payload: Bytes,
    group: &Group,
    wires: &Wires,
    gpus_per_process: u32,
    allowed: Option<&[Algorithm]>,
) -> Option<Choice> {
    let may = |algorithm: Algorithm| allowed.is_none_or(|allowed| allowed.contains(&algorithm));
    // Restricted to algorithms that NCCL does not have, those are meant.
    let foreign = allowed.is_some_and(|allowed| !allowed.iter().any(|algorithm| OWN.contains(algorithm)));
    let time = if foreign {
        let lines = allowed.unwrap_or_default().iter();
        lines
            .filter_map(|&algorithm| estimate(algorithm, kind, payload, group, wires))
            .min_by(|a, b| a.time.value().total_cmp(&b.time.value()))
    } else {
        best_of(kind, payload, group, wires, may)
    }?;
    let rule = if allowed.is_some() {
        Rule::Restricted
    } else if tuner_prefers(kind, payload, group, wires, &time) {
        Rule::TunerPrefers
    } else {
        Rule::Fastest
    };
    let floor =
        if is_nothing(payload, group) { Seconds::ZERO } else { host_floor(kind, gpus_per_process, &wires.library) };
    let limit = if floor > time.time { Limit::Host } else { limit(kind, payload, group, wires, &time) };
    let time = if floor > time.time {
        CollectiveTime { time: floor, latency: floor.saturating_sub(time.bandwidth), ..time }
    } else {
        time
    };
    Some(Choice { time, rule, limit })
}

/// The least time that a process needs to start a collective on all GPUs that it drives.
pub fn host_floor(kind: Collective, gpus_per_process: u32, library: &LibraryEfficiency) -> Seconds {
    let grouped =
        matches!(kind, Collective::AllToAll | Collective::SendRecv | Collective::Gather | Collective::Scatter);
    let each = if grouped { library.grouped_process_launch } else { library.process_launch };
    if gpus_per_process > 1 { each * f64::from(gpus_per_process) } else { Seconds::ZERO }
}

/// Whether an algorithm that NCCL drops would have been faster.
fn tuner_prefers(kind: Collective, payload: Bytes, group: &Group, wires: &Wires, chosen: &CollectiveTime) -> bool {
    if is_nothing(payload, group) {
        return false;
    }
    let lead = nvls_tree_lead(&Call::new(kind, payload, group, wires));
    [Algorithm::RingSimple, Algorithm::TreeSimple].into_iter().any(|dropped| {
        !is_considered(dropped, lead)
            && estimate(dropped, kind, payload, group, wires).is_some_and(|line| line.time < chosen.time)
    })
}

/// What would have to be faster.
fn limit(kind: Collective, payload: Bytes, group: &Group, wires: &Wires, chosen: &CollectiveTime) -> Limit {
    if chosen.latency >= chosen.bandwidth {
        return Limit::Latency;
    }
    let mut faster = *wires;
    faster.network.line_rate = wires.network.line_rate * 1.01;
    let with_network = estimate(chosen.algorithm, kind, payload, group, &faster);
    let helps = with_network.is_some_and(|line| line.bandwidth < chosen.bandwidth * 0.999);
    if helps { Limit::Network } else { Limit::ScaleUp }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{gb, group, us, wires};
    use super::*;

    #[test]
    fn one_process_for_eight_gpus_is_a_floor() {
        let (wires, group) = (Wires { pat: None, sharp: None, ..wires() }, group(8, 8));
        let choice = |kind, payload, gpus| choose(kind, payload, &group, &wires, gpus, None).unwrap();
        let small = choice(Collective::AllReduce, gb(1e-6), 8);
        assert_eq!((small.time.time, small.limit), (us(6.0) * 8.0, Limit::Host));
        assert_eq!(choice(Collective::AllToAll, gb(1e-6), 8).time.time, us(10.0) * 8.0);
        assert_eq!(choice(Collective::AllReduce, gb(1e-6), 1).limit, Limit::Latency);
        assert_eq!(choice(Collective::AllReduce, gb(8.0), 8).limit, Limit::ScaleUp);
    }

    #[test]
    fn many_nodes_wait_for_their_network_cards() {
        let wires = Wires { pat: None, sharp: None, ..wires() };
        let many = Group { nics_per_domain: 4.0, ..group(256, 8) };
        let choice = choose(Collective::AllGather, gb(8.0), &many, &wires, 1, None).unwrap();
        assert_eq!((choice.rule, choice.limit), (Rule::Fastest, Limit::Network));
    }

    #[test]
    fn a_restriction_is_obeyed() {
        let (wires, group) = (wires(), group(16, 8));
        let only = |algorithm: Algorithm, kind| choose(kind, gb(1.0), &group, &wires, 1, Some(&[algorithm]));
        let choice = only(Algorithm::TreeSimple, Collective::AllReduce).unwrap();
        assert_eq!((choice.time.algorithm, choice.rule), (Algorithm::TreeSimple, Rule::Restricted));
        assert_eq!(only(Algorithm::TreeSimple, Collective::AllGather), None);
        let mpi = only(Algorithm::MpiBruck, Collective::AllGather).unwrap();
        assert_eq!(mpi.time.algorithm, Algorithm::MpiBruck);
    }
}
