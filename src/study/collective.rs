//! One collective on a cluster: every way to carry it out, and the one that NCCL takes.

use std::sync::Arc;

use super::collective_range::{Extrapolation, RangeInputs, TimeRange, Times, time_ranges};
use crate::catalog::{Accelerator, CollectiveEfficiency, Node, Section};
use crate::collectives::{
    ALGORITHMS, Algorithm, Choice, Collective, CollectiveTime, Group, IntraNode, Library, ScaleUp, Wires, beside,
    choose, estimate,
};
use crate::evaluate::{Infeasible, Occupancy, domain, network_as_asked, reach, wires_of_cards};
use crate::parallelism::RankGroup;
use crate::scenario::{BoundFabric, Communication, TopologyChoice};
use crate::topology::{Balance, Collisions, Tier};
use crate::units::{Bandwidth, Bytes, Factor, Fraction, Ranged, Seconds};

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
    /// Its accelerator.
    pub accelerator: &'a Accelerator,
    /// The way between its accelerators; the node's own where open.
    pub path: Option<IntraNode>,
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
    /// How the library uses the network.
    pub communication: Communication,
}

/// A time with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallLine {
    /// The algorithm and its time.
    pub time: CollectiveTime,
    /// Its ends.
    pub range: TimeRange,
    /// Why it is an extrapolation, where it is one.
    pub extrapolated: Option<Extrapolation>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    /// The group as the wires see it.
    pub group: Group,
    /// The highest tier that it crosses.
    pub tier: Tier,
    /// How hashed flows collide at full load, where they do.
    pub collisions: Option<Collisions>,
    /// Whether the network's switches may reduce.
    pub sharp: bool,
    /// Accelerators along each side of the torus that the ranks' own links form, where they do.
    pub torus: Option<[u32; 3]>,
    /// What cards reach through the memory of the hosts, where data is staged there.
    pub staged: Option<Staged>,
    /// What NCCL does, or the fastest of those allowed.
    pub choice: Choice,
    /// The ends of its time.
    pub range: TimeRange,
    /// Every algorithm that serves the call, fastest first.
    pub lines: Vec<CallLine>,
    /// The fastest of each library, NCCL first; with reduction in the network where the fabric has it, whether or not it
    /// is switched on.
    pub libraries: Vec<CallLine>,
}

/// What network cards reach where data is staged through the memory of their host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Staged {
    /// Line rate of one.
    pub line_rate: Bandwidth,
    /// Payload of one alone.
    pub alone: Bandwidth,
    /// Cards of a host that the call has in use at the same time.
    pub cards: f64,
    /// Payload of each of those.
    pub each: Bandwidth,
}

/// Where the ranks of a call are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The group as the wires see it.
    pub group: Group,
    /// The highest tier that it crosses.
    pub tier: Tier,
    /// Where a hash spreads flows over a leaf's uplinks and the group takes them: how they collide at full load.
    pub collisions: Option<Collisions>,
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
        let topology = network_as_asked(self.node, self.fabric, self.topology, nodes)?;
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
        let ranks_per_domain = self.ranks.min(domain(&topology, self.node, at_work) / stride).max(1);
        let nics = placed.nics_per_domain / f64::from(placed.ranks_per_domain) * f64::from(ranks_per_domain);
        let group = Group {
            ranks_per_domain,
            fewest_per_domain: Group::of_last_domain(self.ranks, ranks_per_domain),
            nics_per_domain: nics,
            ..Group::placed(self.ranks, &placed)
        };
        let group = if self.path == Some(IntraNode::NicLoopback) { group.through_cards_only() } else { group };
        let balance = Balance::of(&self.fabric.entry);
        let collisions = balance.collisions(topology.leaf.most_uplinks()).filter(|_| placed.tier > Tier::Leaf);
        Ok(Placed { group: group.among(self.concurrent), tier: placed.tier, collisions })
    }

    /// The wires with the typical values of a set of constants.
    pub fn wires(&self, constants: &CollectiveEfficiency) -> Wires {
        let plain = self.wires_of_cards(constants, self.cards());
        let own = IntraNode::of(&self.node.scale_up.kind);
        match self.path.filter(|path| *path != own).and_then(IntraNode::kind) {
            Some(kind) => {
                let efficiency = constants.scale_up.get(kind).copied().unwrap_or_default();
                let bus = self.node.host_bus(self.accelerator).unwrap_or_default();
                Wires { scale_up: ScaleUp::typical(bus, &efficiency, false), ..plain }
            }
            None => plain,
        }
    }

    /// The wires where so many cards of a host are in use, the node's own links inside.
    fn wires_of_cards(&self, constants: &CollectiveEfficiency, cards: f64) -> Wires {
        wires_of_cards(constants, self.node, self.accelerator, self.fabric, self.communication, cards)
    }

    /// What cards reach where the call stages its data.
    fn staged(&self, group: &Group) -> Option<Staged> {
        if self.communication.gpudirect || group.domains() < 2 {
            return None;
        }
        let payload = |cards: f64| {
            let network = self.wires_of_cards(self.constants, cards).network;
            network.line_rate * network.efficiency.payload.get()
        };
        let line_rate = self.wires_of_cards(self.constants, 1.0).network.line_rate;
        Some(Staged { line_rate, alone: payload(1.0), cards: self.cards(), each: payload(self.cards()) })
    }

    /// Cards of a host that are in use at the same time.
    fn cards(&self) -> f64 {
        let trays = f64::from(self.node.accelerators / self.node.accelerators_per_tray);
        let ranks = f64::from(self.ranks_per_node.unwrap_or(self.node.accelerators).min(self.node.accelerators));
        // As many cards as serve the ranks of a host, and those of the groups beside them.
        let all = f64::from(self.node.nic_slots.count) / trays;
        let busy = ranks * self.node.nics_per_accelerator() / trays * f64::from(self.concurrent.max(1));
        busy.min(all)
    }

    /// The constants that its time depends on.
    fn sections(&self, group: &Group) -> Vec<Section> {
        let kind = self.path.and_then(IntraNode::kind).unwrap_or(&self.node.scale_up.kind).to_owned();
        let mut sections = vec![Section::Library, Section::Mpi, Section::ScaleUp(kind.clone()), Section::Nvls(kind)];
        if group.domains() > 1 {
            sections.extend([Section::Network(self.fabric.entry.class.clone()), Section::Pat, Section::Sharp]);
        }
        if !self.communication.gpudirect {
            sections.push(Section::Staging);
        }
        sections
    }

    /// The times of the choice and of every algorithm, in that order.
    fn times(&self, group: &Group, wires: &Wires) -> Times {
        let choice = choose(self.kind, self.payload, group, wires, self.gpus_per_process, self.allowed);
        let each = |&algorithm: &Algorithm| estimate(algorithm, self.kind, self.payload, group, wires);
        let lines = ALGORITHMS.iter().map(each).map(|line| line.map(|line| line.time));
        std::iter::once(choice.map(|choice| choice.time.time)).chain(lines).collect()
    }

    /// The group at the ends of what the spine keeps, where it crosses the spine.
    fn spine_ends(&self, tier: Tier) -> Result<Option<[Group; 2]>, Infeasible> {
        if tier <= Tier::Leaf {
            return Ok(None);
        }
        let entry = &self.fabric.entry;
        let end = |pick: fn(Ends) -> f64| -> Result<Group, Infeasible> {
            let mut fabric = self.fabric.clone();
            let mut changed = (**entry).clone();
            if let Some(share) = entry.spine_efficiency {
                let share = Fraction::new(pick([share.low.get(), share.high.get()]));
                changed.part.spine_efficiency = share.map(Ranged::exact);
            } else if let Some(flows) = entry.flows_per_nic {
                let flows = Factor::new(pick([flows.low.get(), flows.high.get()]));
                changed.part.flows_per_nic = flows.map(Ranged::exact);
            }
            fabric.entry = Arc::new(changed);
            Ok(Call { fabric: &fabric, ..self.clone() }.placed()?.group)
        };
        Ok(Some([end(|[low, _]| low)?, end(|[_, high]| high)?]))
    }
}

/// The low and the high end of a figure.
type Ends = [f64; 2];

/// Answers a call; `None` where none of the allowed algorithms serves it.
///
/// # Errors
/// When the network cannot be built.
pub fn call(call: &Call<'_>) -> Result<Option<CallAnswer>, Infeasible> {
    let Placed { group, tier, collisions } = call.placed()?;
    let wires = call.wires(call.constants);
    let Some(choice) = choose(call.kind, call.payload, &group, &wires, call.gpus_per_process, call.allowed) else {
        return Ok(None);
    };
    // Side by side stands what the fabric can, beside what is switched on.
    let able = Call { communication: Communication { sharp: true, ..call.communication }, ..call.clone() };
    let at = |group: &Group, set: &CollectiveEfficiency| {
        let mut times = able.times(group, &able.wires(set));
        times[0] = call.times(group, &call.wires(set))[0];
        times
    };
    let others: Vec<[Times; 2]> =
        call.spine_ends(tier)?.into_iter().map(|ends| ends.map(|group| at(&group, call.constants))).collect();
    let inputs = RangeInputs {
        constants: call.constants,
        sections: &call.sections(&group),
        payload: call.payload,
        others: &others,
    };
    let mut extrapolated = vec![Extrapolation::of(choice.time.algorithm, &group)];
    extrapolated.extend(ALGORITHMS.iter().map(|&algorithm| Extrapolation::of(algorithm, &group)));
    let ranges = time_ranges(&inputs, &extrapolated, |set| at(&group, set));
    let able_wires = able.wires(call.constants);
    let line = |(index, &algorithm): (usize, &Algorithm)| {
        let time = estimate(algorithm, call.kind, call.payload, &group, &able_wires)?;
        Some(CallLine { time, range: ranges[index + 1]?, extrapolated: extrapolated[index + 1] })
    };
    let mut all: Vec<CallLine> = ALGORITHMS.iter().enumerate().filter_map(line).collect();
    all.sort_by(|a, b| a.time.time.value().total_cmp(&b.time.time.value()));
    // Of NCCL's own, what it would take, be that the fastest or not.
    let taken = choose(call.kind, call.payload, &group, &call.wires(call.constants), call.gpus_per_process, None);
    let taken = taken.map(|choice| choice.time.algorithm).filter(|algorithm| algorithm.library() == Library::Nccl);
    let fastest = |library: &Library| {
        let mut of = all.iter().filter(|line| line.time.algorithm.library() == *library);
        let own = of.clone().find(|line| *library == Library::Nccl && Some(line.time.algorithm) == taken);
        own.or_else(|| of.next()).copied()
    };
    let libraries = Library::ALL.iter().filter_map(fastest).collect();
    let open = |line: &CallLine| match call.allowed {
        Some(allowed) => allowed.contains(&line.time.algorithm),
        None => true,
    };
    let on = |line: &CallLine| line.time.algorithm.library() != Library::Sharp || wires.sharp.is_some();
    let lines = all.iter().filter(|line| open(line) && on(line)).copied().collect();
    let range = ranges[0].unwrap_or(TimeRange { low: choice.time.time, high: choice.time.time });
    let sharp = wires.sharp.is_some();
    let torus = wires.scale_up.torus.filter(|_| call.path != Some(IntraNode::NicLoopback));
    let torus = torus.map(|torus| torus.sides(group.ranks_per_domain));
    let staged = call.staged(&group);
    Ok(Some(CallAnswer { group, tier, collisions, sharp, torus, staged, choice, range, lines, libraries }))
}

/// Two calls at the same time through the same cards: how long each takes, this one first.
///
/// # Errors
/// When the network cannot be built.
pub fn calls_together(own: &Call<'_>, other: &Call<'_>) -> Result<Option<[Seconds; 2]>, Infeasible> {
    let times = |call: &Call<'_>| -> Result<Option<[Seconds; 2]>, Infeasible> {
        let Placed { group, .. } = call.placed()?;
        let wires = call.wires(call.constants);
        let time = |group: &Group| choose(call.kind, call.payload, group, &wires, call.gpus_per_process, call.allowed);
        Ok(time(&group).zip(time(&group.among(2))).map(|(alone, shared)| [alone.time.time, shared.time.time]))
    };
    Ok(times(own)?.zip(times(other)?).map(|(own, other)| beside(own, other)))
}
