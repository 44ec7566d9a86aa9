//! An accelerator as an engine of a scenario finds it, and the network that joins the engine's ranks.

use crate::catalog::{Accelerator, Node};
use crate::collectives::{Group, Wires};
use crate::evaluate::Infeasible;
use crate::evaluate::network::{Occupancy, network_of};
use crate::evaluate::step::{reach, wires};
use crate::evaluate::tiers;
use crate::inference::{Across, HandOvers, Hardware, Reduction};
use crate::memory::serving::ServingLayout;
use crate::parallelism::RankGroup;
use crate::scenario::{Cluster, Communication, GroupShare, NodeGroup, Serving};
use crate::topology::{Reach, Topology};

/// The accelerator of a rank on nodes of a kind, or a slice of it.
pub(super) fn accelerator<'a>(serving: &'a Serving, nodes: NodeGroup<'a>) -> &'a Accelerator {
    serving.features.slice.as_ref().map_or(&nodes.accelerator.part, |slice| &slice.accelerator)
}

/// An accelerator among the ranks of a layout on nodes of a kind.
///
/// # Errors
/// When constants are missing, or the ranks' network cannot be built.
pub(super) fn joined(
    layout: ServingLayout,
    serving: &Serving,
    nodes: NodeGroup<'_>,
    networks: &mut Networks<'_>,
) -> Result<Hardware, Infeasible> {
    let links = nodes.node.scale_up.bandwidth_per_direction;
    let hardware = Hardware::bind(&serving.efficiency, accelerator(serving, nodes), links, serving.engine.word())?;
    let hardware = hardware.stretched(serving.features.slice.as_ref().map_or(1.0, |slice| slice.stretch));
    let stage = layout.tensor.saturating_mul(layout.attention_data);
    let spans = stage > nodes.node.scale_up.domain;
    if !spans && layout.pipeline == 1 {
        return Ok(hardware);
    }
    let (reach, wires) = networks.reached_from(nodes)?;
    let hardware = if spans { hardware.across(across(stage, serving, &reach, &wires)) } else { hardware };
    let hardware = if layout.tensor > nodes.node.scale_up.domain {
        let placed = reach.place(RankGroup { size: layout.tensor, stride: 1 });
        hardware.reducing(Reduction { group: Group::placed(layout.tensor, &placed), wires })
    } else {
        hardware
    };
    let staged =
        (layout.pipeline > 1).then(|| stages(layout.pipeline, stage, nodes.node.scale_up.domain, (&reach, &wires)));
    Ok(staged.map_or(hardware, |stages| hardware.staged(stages)))
}

/// Network cards of a rank.
pub(super) fn cards(node: &Node) -> f64 {
    f64::from(node.nic_slots.count) / f64::from(node.accelerators)
}

/// The network that joins a cluster's nodes, built where something needs it.
pub(super) struct Networks<'a> {
    pub(super) cluster: &'a Cluster,
    topology: Option<Topology>,
    /// How far ranks on the cluster's own kind of nodes, and on prefill's own, reach over it, and by what.
    reached: [Option<(Reach, Wires)>; 2],
}

impl<'a> Networks<'a> {
    pub(super) const fn of(cluster: &'a Cluster) -> Self {
        Self { cluster, topology: None, reached: [None; 2] }
    }

    /// How far ranks on nodes of a kind reach over it, and by what.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(super) fn reached_from(&mut self, nodes: NodeGroup<'_>) -> Result<(Reach, Wires), Infeasible> {
        let kind = usize::from(nodes.share == GroupShare::Prefill);
        if let Some(known) = self.reached[kind] {
            return Ok(known);
        }
        let (node, fabric) = (nodes.node, &self.cluster.fabric);
        let topology = match &mut self.topology {
            Some(built) => built,
            unbuilt => {
                let kinds = self.cluster.kinds_of_nodes().map(|kind| Ok((&kind.node.part, Occupancy::of(kind)?.nodes)));
                let kinds = kinds.collect::<Result<Vec<_>, Infeasible>>()?;
                let (_, ports) = tiers::servers(self.cluster, kinds.last().map_or(0, |(_, nodes)| *nodes));
                unbuilt.insert(network_of(&kinds, ports, fabric, &self.cluster.topology)?)
            }
        };
        let reach = reach(topology, node, Occupancy::of(nodes)?.each, fabric).of_job(self.cluster.accelerators);
        let wires = wires(&self.cluster.collectives, node, nodes.accelerator, fabric, Communication::USUAL);
        Ok(*self.reached[kind].insert((reach, wires)))
    }
}

/// The network that joins the ranks of a stage that lie in several scale-up domains.
fn across(stage: u32, serving: &Serving, reach: &Reach, wires: &Wires) -> Across {
    let placed = reach.place(RankGroup { size: stage, stride: 1 });
    let card = &wires.network;
    let cards = placed.nics_per_domain / f64::from(placed.ranks_per_domain);
    Across {
        domain: f64::from(placed.ranks_per_domain),
        rate: card.line_rate * (card.efficiency.payload.get() * placed.all_to_all_share * cards),
        latency: serving.efficiency.part.network.exchange + card.switch_latency * placed.more_switches,
        kernel: serving.efficiency.part.network.kernel,
    }
}

/// What joins so many stages of so many ranks each, which fill scale-up domains of so many accelerators one after another.
fn stages(count: u32, stage: u32, domain: u32, (reach, wires): (&Reach, &Wires)) -> HandOvers {
    let together = (domain / stage).max(1);
    let across = count.div_ceil(together) - 1;
    HandOvers {
        within: f64::from(count - 1 - across),
        across: f64::from(across),
        near: Group::filling(2, 2, 2.0),
        far: Group::placed(2, &reach.place(RankGroup { size: 2, stride: domain.max(stage) })),
        wires: *wires,
    }
}
