//! One collective on a cluster: every way to carry it out, and the one that NCCL takes.

use crate::catalog::{CollectiveEfficiency, Node};
use crate::collectives::{
    ALGORITHMS, Algorithm, Choice, Collective, CollectiveTime, Group, Library, Wires, choose, estimate,
};
use crate::evaluate::{Infeasible, Occupancy, network, reach, wires};
use crate::parallelism::RankGroup;
use crate::scenario::{BoundFabric, TopologyChoice};
use crate::topology::Tier;
use crate::units::Bytes;

/// A collective and what it runs on.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The collective.
    pub kind: Collective,
    /// Its payload, as nccl-tests counts it.
    pub payload: Bytes,
    /// Ranks, one a GPU, packed on nodes in order.
    pub ranks: u32,
    /// Ranks on each node; as many as it has accelerators where open.
    pub ranks_per_node: Option<u32>,
    /// The node.
    pub node: &'a Node,
    /// The fabric.
    pub fabric: &'a BoundFabric,
    /// How the fabric is built.
    pub topology: &'a TopologyChoice,
    /// GPUs of the cluster that the ranks are part of; at least as many as ranks.
    pub cluster: u32,
    /// What collectives reach.
    pub constants: &'a CollectiveEfficiency,
    /// Algorithms that are allowed; all of NCCL's where it is open.
    pub allowed: Option<&'a [Algorithm]>,
    /// GPUs that one host process drives.
    pub gpus_per_process: u32,
    /// Groups that send through the same network cards at the same time, this one included.
    pub concurrent: u32,
    /// Whether nodes lie anywhere, instead of side by side.
    pub scattered: bool,
    /// Whether the network's switches reduce, where they can.
    pub sharp: bool,
    /// Whether the library has parallel aggregated trees.
    pub pat: bool,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    /// The group as the wires see it.
    pub group: Group,
    /// The highest tier that it crosses.
    pub tier: Tier,
    /// What NCCL does, or the fastest of those allowed.
    pub choice: Choice,
    /// Every algorithm that serves the call, fastest first.
    pub lines: Vec<CollectiveTime>,
}

impl CallAnswer {
    /// The fastest of a library, where it serves the call.
    pub fn fastest_by(&self, library: Library) -> Option<&CollectiveTime> {
        self.lines.iter().find(|line| line.algorithm.library() == library)
    }
}

/// Where the ranks of a call are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The group as the wires see it.
    pub group: Group,
    /// The highest tier that it crosses.
    pub tier: Tier,
}

impl Call<'_> {
    /// Places the ranks.
    ///
    /// # Errors
    /// When the network cannot be built, or nodes do not hold so many ranks each.
    pub fn placed(&self) -> Result<Placed, Infeasible> {
        let per_node = self.node.accelerators;
        let each = self.ranks_per_node.unwrap_or(per_node).min(per_node);
        let nodes = self.ranks.div_ceil(each).max(self.cluster.div_ceil(per_node));
        let topology = network(self.node, self.fabric, self.topology, nodes)?;
        // As many in each node as in the others, where trays allow it: 128 ranks are 64 in each of two racks of 72.
        let spread = || Occupancy::new(self.ranks, self.node).map_or(per_node, |spread| spread.each);
        // Fewer ranks than a node has are every so many, a card of its own to each where there are as many cards.
        let (at_work, stride) = match self.ranks_per_node {
            Some(_) if per_node.is_multiple_of(each) => (per_node, per_node / each),
            Some(_) => (each, 1),
            None => (spread(), 1),
        };
        let packed = reach(&topology, self.node, at_work, self.fabric);
        let reach = if self.scattered { packed.scattered() } else { packed };
        let placed = reach.place(RankGroup { size: self.ranks, stride });
        // A group fills its nodes from the first; where they don't divide, the last one is filled in part.
        let ranks_per_domain = self.ranks.min(self.node.scale_up.domain.min(at_work) / stride).max(1);
        let nics = placed.nics_per_domain / f64::from(placed.ranks_per_domain) * f64::from(ranks_per_domain);
        let group = Group {
            ranks: self.ranks,
            ranks_per_domain,
            nics_per_domain: nics,
            network_share: placed.ring_share,
            all_to_all_share: placed.all_to_all_share,
            relayed: placed.relayed,
            more_switches: placed.more_switches,
        };
        Ok(Placed { group: group.among(self.concurrent), tier: placed.tier })
    }

    /// The wires with the typical values of a set of constants.
    pub fn wires(&self, constants: &CollectiveEfficiency) -> Wires {
        let plain = wires(constants, self.node, self.fabric);
        Wires {
            sharp: (self.sharp && self.fabric.entry.in_network_reduction).then_some(constants.sharp.value),
            pat: self.pat.then_some(constants.pat.value),
            ..plain
        }
    }
}

/// Answers a call; `None` where none of the allowed algorithms serves it.
///
/// # Errors
/// When the network cannot be built.
pub fn call(call: &Call<'_>) -> Result<Option<CallAnswer>, Infeasible> {
    let Placed { group, tier } = call.placed()?;
    let wires = call.wires(call.constants);
    let choice = choose(call.kind, call.payload, &group, &wires, call.gpus_per_process, call.allowed);
    let serves = |&algorithm: &Algorithm| estimate(algorithm, call.kind, call.payload, &group, &wires);
    let mut lines: Vec<CollectiveTime> = ALGORITHMS.iter().filter_map(serves).collect();
    if let Some(allowed) = call.allowed {
        lines.retain(|line| allowed.contains(&line.algorithm));
    }
    lines.sort_by(|a, b| a.time.value().total_cmp(&b.time.value()));
    Ok(choice.map(|choice| CallAnswer { group, tier, choice, lines }))
}
