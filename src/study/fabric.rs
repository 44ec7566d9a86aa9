//! One network: its parts, what they draw and cost, how long its cables are, and what is left free.

use crate::catalog::{Node, PriceBook, Site};
use crate::evaluate::{Infeasible, PartLine, network, parts};
use crate::facility::{Racked, racks};
use crate::scenario::{BoundFabric, TopologyChoice};
use crate::topology::{LengthClass, PartKind, RackLayout, Tier, Topology};
use crate::units::{Usd, Watts};

/// A network and everything to buy for it.
#[derive(Clone, Debug)]
pub struct FabricQuote {
    /// The network.
    pub topology: Topology,
    /// Nodes that it joins.
    pub nodes: u32,
    /// Its parts.
    pub parts: Vec<PartLine>,
    /// Its cables by length.
    pub lengths: Vec<LengthClass>,
    /// Where the racks stand.
    pub layout: RackLayout,
    /// Racks of switches.
    pub switch_racks: u64,
}

impl FabricQuote {
    /// Parts of a kind, at a tier or at all.
    pub fn count(&self, kind: PartKind, tier: Option<Tier>) -> u64 {
        let of = self.parts.iter().filter(|part| part.kind == kind && tier.is_none_or(|tier| part.tier == tier));
        of.map(|part| part.count).sum()
    }

    /// Power of all parts in use.
    pub fn power(&self) -> Watts {
        self.parts.iter().map(|part| part.power * part.count as f64).sum()
    }

    /// Price of all parts.
    pub fn capex(&self) -> Usd {
        self.parts.iter().map(|part| part.unit_price * part.count as f64).sum()
    }
}

/// Counts the network of so many nodes. `prices` has every part; nodes stand in the site's racks.
///
/// # Errors
/// When the network cannot be built, or a node or switch does not fit a rack.
pub fn quote(
    node: &Node,
    fabric: &BoundFabric,
    choice: &TopologyChoice,
    nodes: u32,
    prices: &PriceBook,
    site: &Site,
) -> Result<FabricQuote, Infeasible> {
    let topology = network(node, fabric, choice, nodes)?;
    let parts = parts(&topology, fabric, prices);
    let node_racks = racks(
        &[Racked { name: "node", count: u64::from(nodes), power: node.max_power, units: node.rack_units }],
        site.rack,
    )?;
    let each = u64::from(topology.spec.nodes).div_ceil(node_racks.max(1));
    let layout = RackLayout::usual(u32::try_from(each).unwrap_or(u32::MAX));
    let mut switches: Vec<Racked<'_>> = Vec::new();
    for part in parts.iter().filter(|part| part.kind == PartKind::Switch) {
        let Some(switch) = fabric.switches.iter().find(|switch| switch.id == part.id) else { continue };
        match switches.iter_mut().find(|racked| racked.name == switch.id) {
            Some(racked) => racked.count += part.count,
            None => switches.push(Racked {
                name: &switch.id,
                count: part.count,
                power: switch.power_max,
                units: switch.rack_units,
            }),
        }
    }
    let switch_racks = racks(&switches, site.rack)?;
    let lengths = topology.cable_lengths(&layout);
    Ok(FabricQuote { topology, nodes, parts, lengths, layout, switch_racks })
}
