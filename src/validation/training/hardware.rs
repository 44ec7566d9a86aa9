//! The machine of a row: node, fabric and topology by published names.

use std::sync::Arc;

use super::Filled;
use super::fabric_text::FabricText;
use crate::catalog::{Accelerator, Catalog, CollectiveEfficiency, Entry, Node};
use crate::diagnostics::Sink;
use crate::evaluate::network;
use crate::scenario::{BoundFabric, TierCount, TopologyChoice, TopologyKind};
use crate::topology::Topology;
use crate::units::{Bandwidth, Quantity};
use crate::validation::aliases::{Aliases, Hardware};
use crate::validation::table::{Row, Unusable};

/// The machine of a run.
pub(super) struct Machine {
    pub(super) node: Arc<Entry<Node>>,
    pub(super) accelerator: Arc<Entry<Accelerator>>,
    pub(super) gpus: u32,
    /// GPUs at work in each node.
    pub(super) at_work: u32,
    pub(super) fabric: BoundFabric,
    /// Rate of a network card, where the row states another than the fabric's.
    pub(super) line_rate: Option<Bandwidth>,
    pub(super) topology: Topology,
    pub(super) collectives: Arc<Entry<CollectiveEfficiency>>,
}

impl Machine {
    pub(super) fn read(row: &Row, catalog: &Catalog, aliases: &Aliases, filled: &mut Filled) -> Result<Self, Unusable> {
        let gpu = row.needed("gpu")?;
        let unknown = || Unusable(format!("the catalog has no part for GPU \"{gpu}\""));
        let hardware = aliases.hardware(gpu).ok_or_else(unknown)?;
        let node = Arc::clone(catalog.nodes.get(&hardware.node).ok_or_else(unknown)?);
        let accelerator = Arc::clone(catalog.accelerators.get(&node.accelerator).ok_or_else(unknown)?);
        if let Some(stated) = row
            .count("gpus_per_node")?
            .filter(|stated| ![node.accelerators, node.accelerators_per_tray].contains(stated))
        {
            return Err(Unusable(format!("nodes of {stated} {gpu}; {} has {}", node.id, node.accelerators)));
        }
        let gpus = row.needed_count("num_gpus")?;
        let (nodes, at_work) = occupied(gpus, &node);
        let per_host = row.count("gpus_per_node")?.unwrap_or(node.accelerators);
        let stated = FabricText::read(row.text("fabric").unwrap_or_default(), per_host);
        let (fabric, line_rate) = fabric(row, &stated, nodes, hardware, &node, catalog, aliases, filled)?;
        let choice = TopologyChoice {
            sites: None,
            kind: if node.torus.is_some() { TopologyKind::Torus } else { TopologyKind::RailFatTree },
            tiers: TierCount::Auto,
            pod: stated.pod,
            planes: 1,
            leaf_oversubscription: 1.0,
            spine_oversubscription: stated.oversubscription.unwrap_or(1.0),
        };
        let cannot = |reason: &dyn std::fmt::Display| Unusable(format!("the fabric cannot be built: {reason}"));
        let topology = network(&node, &fabric, &choice, nodes).map_err(|error| cannot(&error))?;
        let collectives = catalog.collective_efficiency.get("nccl").filter(|set| {
            set.scale_up.contains_key(&node.scale_up.kind) && set.network.contains_key(&fabric.entry.class)
        });
        let missing = || Unusable(format!("no measured collective constants for {} on {}", node.id, fabric.entry.id));
        let collectives = Arc::clone(collectives.ok_or_else(missing)?);
        Ok(Self { node, accelerator, gpus, at_work, fabric, line_rate, topology, collectives })
    }
}

/// Nodes of a run and the GPUs at work in each. A rack whose count does not divide the run works with as many of its
/// trays as does: 64 of an NVL72's 72 GPUs.
fn occupied(gpus: u32, node: &Node) -> (u32, u32) {
    if gpus <= node.accelerators || gpus.is_multiple_of(node.accelerators) {
        return (gpus.div_ceil(node.accelerators), node.accelerators.min(gpus));
    }
    let trays = node.accelerators / node.accelerators_per_tray;
    let each =
        (1..=trays).rev().map(|trays| trays * node.accelerators_per_tray).find(|each| gpus.is_multiple_of(*each));
    let each = each.unwrap_or(node.accelerators);
    (gpus.div_ceil(each), each)
}

/// The fabric, and the rate of a card where it is another than the fabric's.
#[allow(clippy::too_many_arguments, reason = "each is read once, here")]
fn fabric(
    row: &Row,
    stated: &FabricText,
    nodes: u32,
    hardware: &Hardware,
    node: &Node,
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Filled,
) -> Result<(BoundFabric, Option<Bandwidth>), Unusable> {
    let bind = |id: &str| {
        let entry = catalog.fabrics.get(id).ok_or_else(|| Unusable(format!("the catalog has no fabric \"{id}\"")))?;
        let sink = Sink::default();
        BoundFabric::bind(Arc::clone(entry), catalog, &sink)
            .ok_or_else(|| Unusable(format!("parts of fabric \"{id}\" are missing")))
    };
    let text = row.text("fabric").unwrap_or_default();
    let named = text.split(',').next().unwrap_or_default().trim();
    if catalog.fabrics.get(named).is_some() {
        return Ok((bind(named)?, None));
    }
    let unstated = text.is_empty() || text.to_lowercase().contains("not stated");
    let class =
        row.text("fabric_class").or_else(|| text.split([' ', ',']).find(|word| aliases.fabrics(word).is_some()));
    let known = class.and_then(|class| aliases.fabrics(class));
    if nodes == 1 && known.is_none() {
        // Nothing leaves the node.
        return Ok((bind(&hardware.fabric)?, None));
    }
    let Some(ids) = known else {
        if class.is_some() || !unstated {
            return Err(Unusable(format!("no fabric for \"{text}\", class \"{}\"", class.unwrap_or_default())));
        }
        filled.push("fabric", &hardware.fabric, "what the node is usually built with");
        return Ok((bind(&hardware.fabric)?, None));
    };
    // The text speaks of a GPU, the catalog of a card.
    let slot = node.nic_slots.speed;
    let card = |gbit: f64| Bandwidth::parse(&format!("{} Gbit/s", gbit / node.nics_per_accelerator()));
    let speed = match stated.gbit_per_gpu {
        Some(gbit) => card(gbit).map_err(|error| Unusable(error.to_string()))?,
        None => slot,
    };
    let fabrics = ids.iter().map(|id| bind(id)).collect::<Result<Vec<_>, _>>()?;
    let fast_enough = fabrics.iter().position(|fabric| fabric.nic.speed >= speed);
    let last = fabrics.len().checked_sub(1).ok_or_else(|| Unusable(format!("no fabric for \"{text}\"")))?;
    let fabric = fabrics[fast_enough.unwrap_or(last)].clone();
    let other = (fabric.nic.speed != speed).then_some(speed);
    if other.is_some() {
        let gbit = speed.in_unit("Gbit/s").unwrap_or_default();
        let rule = if stated.gbit_per_gpu.is_some() {
            "stated speed, nearest fabric of its class"
        } else {
            "the node's slots"
        };
        filled.push("fabric", &format!("{} at {gbit} Gbit/s a card", fabric.entry.id), rule);
    } else if stated.gbit_per_gpu.is_none() {
        filled.push("fabric", &fabric.entry.id, "the node's slots, of the class stated");
    }
    Ok((fabric, other))
}
