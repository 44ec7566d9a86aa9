//! An accelerator as an engine of a scenario finds it, and the network that joins the engine's ranks.

use crate::catalog::Accelerator;
use crate::evaluate::Infeasible;
use crate::evaluate::cluster::{Occupancy, network};
use crate::evaluate::step::{reach, wires};
use crate::inference::{Across, Hardware};
use crate::memory::serving::ServingLayout;
use crate::parallelism::RankGroup;
use crate::scenario::{Cluster, Communication, Serving};

/// The accelerator of a rank: the cluster's, or a slice of it.
pub(super) fn accelerator<'a>(serving: &'a Serving, cluster: &'a Cluster) -> &'a Accelerator {
    serving.features.slice.as_ref().map_or(&cluster.accelerator.part, |slice| &slice.accelerator)
}

/// An accelerator among the ranks of a layout.
///
/// # Errors
/// When constants are missing, or the ranks' network cannot be built.
pub(super) fn joined(layout: ServingLayout, serving: &Serving, cluster: &Cluster) -> Result<Hardware, Infeasible> {
    let links = cluster.node.scale_up.bandwidth_per_direction;
    let hardware = Hardware::bind(&serving.efficiency, accelerator(serving, cluster), links, serving.engine.word())?;
    Ok(across(layout, serving, cluster)?.map_or(hardware, |over| hardware.across(over)))
}

/// The network that joins the ranks of a replica, where they lie in several scale-up domains.
fn across(layout: ServingLayout, serving: &Serving, cluster: &Cluster) -> Result<Option<Across>, Infeasible> {
    let (node, fabric) = (&cluster.node, &cluster.fabric);
    let stage = layout.tensor.saturating_mul(layout.attention_data);
    let domain = node.scale_up.domain;
    if stage <= domain {
        return Ok(None);
    }
    let at_work = Occupancy::new(cluster.accelerators, node)?;
    let topology = network(node, fabric, &cluster.topology, at_work.nodes)?;
    let group = RankGroup { size: stage, stride: 1 };
    let placed = reach(&topology, node, at_work.each, fabric).of_job(cluster.accelerators).place(group);
    let card = wires(&cluster.collectives, node, &cluster.accelerator, fabric, Communication::USUAL).network;
    let cards = placed.nics_per_domain / f64::from(placed.ranks_per_domain);
    Ok(Some(Across {
        domain: f64::from(placed.ranks_per_domain),
        rate: card.line_rate * (card.efficiency.payload.get() * placed.all_to_all_share * cards),
        latency: serving.efficiency.part.exchange + card.switch_latency * placed.more_switches,
    }))
}
