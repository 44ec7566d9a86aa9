//! An accelerator as an engine of a scenario finds it, and the network that joins the engine's ranks.

use crate::catalog::Accelerator;
use crate::evaluate::Infeasible;
use crate::evaluate::network::{Occupancy, network_of};
use crate::evaluate::step::{reach, wires};
use crate::inference::{Across, Hardware};
use crate::memory::serving::ServingLayout;
use crate::parallelism::RankGroup;
use crate::scenario::{Cluster, Communication, NodeGroup, Serving};

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
    cluster: &Cluster,
    nodes: NodeGroup<'_>,
) -> Result<Hardware, Infeasible> {
    let links = nodes.node.scale_up.bandwidth_per_direction;
    let hardware = Hardware::bind(&serving.efficiency, accelerator(serving, nodes), links, serving.engine.word())?;
    Ok(across(layout, serving, cluster, nodes)?.map_or(hardware, |over| hardware.across(over)))
}

/// The network that joins the ranks of a replica, where they lie in several scale-up domains.
fn across(
    layout: ServingLayout,
    serving: &Serving,
    cluster: &Cluster,
    nodes: NodeGroup<'_>,
) -> Result<Option<Across>, Infeasible> {
    let (node, fabric) = (nodes.node, &cluster.fabric);
    let stage = layout.tensor.saturating_mul(layout.attention_data);
    if stage <= node.scale_up.domain {
        return Ok(None);
    }
    let each = Occupancy::of(nodes)?.each;
    let mut kinds = Vec::with_capacity(2);
    for kind in cluster.kinds_of_nodes() {
        kinds.push((&kind.node.part, Occupancy::of(kind)?.nodes));
    }
    let topology = network_of(&kinds, fabric, &cluster.topology)?;
    let group = RankGroup { size: stage, stride: 1 };
    let placed = reach(&topology, node, each, fabric).of_job(cluster.accelerators).place(group);
    let card = wires(&cluster.collectives, node, nodes.accelerator, fabric, Communication::USUAL).network;
    let cards = placed.nics_per_domain / f64::from(placed.ranks_per_domain);
    Ok(Some(Across {
        domain: f64::from(placed.ranks_per_domain),
        rate: card.line_rate * (card.efficiency.payload.get() * placed.all_to_all_share * cards),
        latency: serving.efficiency.part.network.exchange + card.switch_latency * placed.more_switches,
        kernel: serving.efficiency.part.network.kernel,
    }))
}
