//! The cluster as it is built: nodes, topology, counted parts with power and price, racks, facility, cost lines.

use super::Infeasible;
use crate::catalog::Node;
use crate::catalog::PriceBook;
use crate::catalog::pricebook::Driver;
use crate::facility::{Facility, Load, Racked, racks};
use crate::provenance::Basis;
use crate::scenario::{BoundFabric, Cluster, Finance, LinkParts, MANAGER_PART, TierCount, TopologyChoice};
use crate::tco::{self, CostBreakdown, Drivers, PartCost};
use crate::topology::{
    self, BillOfMaterials, ByTier, Carrier, FatTreeSpec, Managers, Oversubscription, PartKind, PartNames, Tier, Tiers,
    Topology,
};
use crate::units::{Fraction, Usd, Watts};

/// A counted part with its power and price.
#[derive(Clone, Debug, PartialEq)]
pub struct PartLine {
    /// What it is.
    pub kind: PartKind,
    /// Catalog id.
    pub id: String,
    /// Tier that it belongs to.
    pub tier: Tier,
    /// How many.
    pub count: u64,
    /// Power of one in use.
    pub power: Watts,
    /// Price of one.
    pub unit_price: Usd,
    /// How the price was come by.
    pub basis: Basis,
}

/// Everything about a cluster that no layout changes.
#[derive(Clone, Debug)]
pub struct BuiltCluster {
    /// Nodes bought, spares among them.
    pub nodes: u32,
    /// Nodes that stand by.
    pub spare_nodes: u32,
    /// Accelerators at work in each of the others.
    pub each: u32,
    /// The fabric.
    pub topology: Topology,
    /// Its parts.
    pub parts: Vec<PartLine>,
    /// Racks of nodes, switches and storage.
    pub racks: u64,
    /// Power and energy.
    pub facility: Facility,
    /// Cost drivers.
    pub drivers: Drivers,
    /// Cost lines and totals.
    pub costs: CostBreakdown,
}

/// How a job's accelerators are spread over nodes: as many on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Nodes at work.
    pub nodes: u32,
    /// Accelerators at work in each.
    pub each: u32,
}

impl Occupancy {
    /// So many accelerators on as few nodes as hold them. A node that is a rack may leave whole trays idle, the same
    /// number in each (64 of an NVL72's 72 at work).
    ///
    /// # Errors
    /// When nodes, or the trays of racks, would be part filled.
    pub fn new(accelerators: u32, node: &Node) -> Result<Self, Infeasible> {
        let (per_node, per_tray) = (node.accelerators, node.accelerators_per_tray);
        let nodes = accelerators.div_ceil(per_node);
        let each = accelerators / nodes.max(1);
        let whole = each == per_node || (per_tray < per_node && each > 0 && each.is_multiple_of(per_tray));
        if !whole || each * nodes != accelerators {
            return Err(Infeasible::PartNode { accelerators, per_node });
        }
        Ok(Self { nodes, each })
    }
}

impl BuiltCluster {
    /// Builds a cluster.
    ///
    /// # Errors
    /// When nodes or pods would be part filled, the fabric cannot be built, or a part does not fit a rack.
    pub fn new(cluster: &Cluster, finance: &Finance) -> Result<Self, Infeasible> {
        let per_node = cluster.node.accelerators;
        let Occupancy { nodes: at_work, each } = Occupancy::new(cluster.accelerators, &cluster.node)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count of nodes")]
        let spare_nodes = (f64::from(at_work) * cluster.spares.get()).ceil() as u32;
        let nodes = at_work + spare_nodes;
        let topology = network(&cluster.node, &cluster.fabric, &cluster.topology, nodes)?;
        let parts = parts(&topology, &cluster.fabric, &cluster.prices);
        let racks = racks(&racked(cluster, nodes, &parts), cluster.site.rack)?;
        let facility = Facility::new(&loads(cluster, at_work, spare_nodes, &parts, finance), &cluster.site);
        let total = |kind: PartKind| parts.iter().filter(|part| part.kind == kind).map(|part| part.count).sum();
        let drivers = Drivers {
            accelerators: u64::from(nodes) * u64::from(per_node),
            nodes: u64::from(nodes),
            racks,
            switches: total(PartKind::Switch),
            nics: total(PartKind::Nic),
            optics: total(PartKind::Optic),
            cables: total(PartKind::Cable),
            storage: cluster.storage.capacity * f64::from(cluster.storage_units),
            provisioned_it: facility.provisioned_it,
            energy_per_year: facility.energy_per_year,
        };
        let costs = tco::breakdown(&tco::Inputs {
            parts: &part_costs(cluster, nodes, &parts),
            drivers: &drivers,
            book: &cluster.prices,
            site: &cluster.site,
            transport: cluster.fabric.entry.transport,
            finance,
        });
        Ok(Self { nodes, spare_nodes, each, topology, parts, racks, facility, drivers, costs })
    }

    /// Power of the fabric's parts in use.
    pub fn fabric_power(&self) -> Watts {
        self.parts.iter().map(|part| part.power * part.count as f64).sum()
    }

    /// Price of the fabric's parts.
    pub fn fabric_capex(&self) -> Usd {
        self.parts.iter().map(|part| part.unit_price * part.count as f64).sum()
    }
}

/// The network of so many nodes on a fabric. Of a node that is a rack, its trays (hosts) are what leaves count.
///
/// # Errors
/// When a pod is no number of whole nodes, or the network cannot be built.
pub fn network(node: &Node, fabric: &BoundFabric, choice: &TopologyChoice, nodes: u32) -> Result<Topology, Infeasible> {
    let per_node = node.accelerators;
    let trays = per_node / node.accelerators_per_tray;
    let nics = (node.nic_slots.count / trays).max(1);
    let pod_nodes = match choice.pod {
        Some(pod) if pod.is_multiple_of(per_node) => Some((pod / per_node).saturating_mul(trays)),
        Some(pod) => return Err(Infeasible::PartPod { pod, per_node }),
        None => None,
    };
    let [leaf, spine, core] = fabric.radix;
    let managers = fabric.entry.managers.unwrap_or_default();
    let spec = FatTreeSpec {
        nodes: nodes.saturating_mul(trays),
        nics_per_node: nics,
        rails: nics,
        radix: ByTier { leaf, spine, core },
        planes: choice.planes,
        tiers: match choice.tiers {
            TierCount::Fixed(1) => Tiers::One,
            TierCount::Fixed(2) => Tiers::Two,
            TierCount::Fixed(_) => Tiers::Three,
            TierCount::Auto => Tiers::Auto,
        },
        pod_nodes,
        oversubscription: Oversubscription { leaf: choice.leaf_oversubscription, spine: choice.spine_oversubscription },
        managers: Managers { servers: managers.servers, ports_per_server: managers.ports_per_server },
    };
    Ok(Topology::build(choice.kind, &spec)?)
}

/// The ids that the bill of materials counts.
fn part_names(fabric: &BoundFabric, planes: u32) -> PartNames {
    let [leaf, spine, core] = &fabric.switches;
    // A module and a cable carry the planes of a port together.
    let link = |link: &LinkParts| {
        let carrier = |optic: &Option<std::sync::Arc<crate::catalog::Entry<crate::catalog::Optic>>>| {
            optic.as_ref().map(|optic| Carrier { id: optic.id.clone(), links: optic.links * planes })
        };
        topology::LinkParts {
            cable: Carrier { id: link.cable.id.clone(), links: planes },
            upper: carrier(&link.upper),
            lower: carrier(&link.lower),
        }
    };
    PartNames {
        nic: fabric.nic.id.clone(),
        switch: ByTier { leaf: leaf.id.clone(), spine: spine.id.clone(), core: core.id.clone() },
        node_link: link(&fabric.node_link),
        switch_link: link(&fabric.switch_link),
        manager: MANAGER_PART.to_owned(),
    }
}

/// The parts of a network on a fabric, each with its power, and its price by a price book.
pub fn parts(topology: &Topology, fabric: &BoundFabric, prices: &PriceBook) -> Vec<PartLine> {
    let bill: BillOfMaterials = topology.bill(&part_names(fabric, topology.spec.planes));
    bill.parts
        .iter()
        .map(|part| {
            // Whoever binds has checked that every part has a price.
            let price = prices.price(&part.id);
            PartLine {
                kind: part.kind,
                id: part.id.clone(),
                tier: part.tier,
                count: part.count,
                power: power_of(fabric, part.kind, &part.id),
                unit_price: price.map_or(Usd::ZERO, |price| price.usd.value),
                basis: price.map_or(Basis::Assumed, |price| price.evidence.basis),
            }
        })
        .collect()
}

/// Power of one part in use: switches without their modules, which count for themselves.
fn power_of(fabric: &BoundFabric, kind: PartKind, id: &str) -> Watts {
    let links = [&fabric.node_link, &fabric.switch_link];
    match kind {
        PartKind::Nic => fabric.nic.power,
        PartKind::Switch => {
            fabric.switches.iter().find(|switch| switch.id == id).map_or(Watts::ZERO, |switch| switch.power_typical)
        }
        PartKind::Optic => {
            let mut optics = links.into_iter().flat_map(|link| [&link.upper, &link.lower]).flatten();
            optics.find(|optic| optic.id == id).map_or(Watts::ZERO, |optic| optic.power)
        }
        PartKind::Cable => {
            let cable = links.into_iter().map(|link| &link.cable).find(|cable| cable.id == id);
            cable.map_or(Watts::ZERO, |cable| cable.power_per_end * 2.0)
        }
        // Left out: a handful of servers beside thousands of nodes.
        PartKind::ManagerServer => Watts::ZERO,
    }
}

/// What goes into racks.
fn racked<'a>(cluster: &'a Cluster, nodes: u32, parts: &[PartLine]) -> Vec<Racked<'a>> {
    let mut all = vec![
        Racked {
            name: &cluster.node.id,
            count: u64::from(nodes),
            power: cluster.node.max_power,
            units: cluster.node.rack_units,
        },
        Racked {
            name: &cluster.storage.id,
            count: u64::from(cluster.storage_units),
            power: cluster.storage.power,
            units: cluster.storage.rack_units,
        },
    ];
    let mut seen: Vec<&str> = Vec::new();
    for switch in &cluster.fabric.switches {
        if seen.contains(&switch.id.as_str()) {
            continue;
        }
        seen.push(&switch.id);
        let count = parts
            .iter()
            .filter(|part| part.kind == PartKind::Switch && part.id == switch.id)
            .map(|part| part.count)
            .sum();
        all.push(Racked { name: &switch.id, count, power: switch.power_max, units: switch.rack_units });
    }
    all
}

/// What draws power. A switch's maximum includes its modules, so theirs counts on average only.
fn loads(cluster: &Cluster, at_work: u32, spares: u32, parts: &[PartLine], finance: &Finance) -> Vec<Load> {
    let nics = f64::from(cluster.node.nic_slots.count) * cluster.fabric.nic.power;
    // Whoever reads a node checks that the cards' power is a part of the node's.
    let node = cluster.node.max_power - cluster.node.nic_slots.included_power + nics;
    let mut loads = vec![
        Load::nodes(u64::from(at_work), node, &cluster.power, finance.utilisation),
        Load::nodes(u64::from(spares), node, &cluster.power, Fraction::ZERO),
        Load::constant(u64::from(cluster.storage_units), cluster.storage.power),
    ];
    for part in parts {
        let at_switch = part.tier != Tier::Node;
        let maximum = match part.kind {
            // Network cards are part of the nodes' power.
            PartKind::Nic => continue,
            PartKind::Switch => cluster
                .fabric
                .switches
                .iter()
                .find(|switch| switch.id == part.id)
                .map_or(part.power, |switch| switch.power_max),
            PartKind::Optic if at_switch => Watts::ZERO,
            PartKind::Optic | PartKind::Cable | PartKind::ManagerServer => part.power,
        };
        loads.push(Load { count: part.count, maximum, average: part.power });
    }
    loads
}

/// What is bought, by cost line.
fn part_costs(cluster: &Cluster, nodes: u32, parts: &[PartLine]) -> Vec<PartCost> {
    let bought = |name: String, per: Driver, count: u64, id: &str| {
        let price = cluster.prices.price(id);
        PartCost {
            name,
            per,
            count,
            unit_price: price.map_or(Usd::ZERO, |price| price.usd.value),
            basis: price.map_or(Basis::Assumed, |price| price.evidence.basis),
        }
    };
    let mut lines = vec![
        bought(format!("Nodes: {}", cluster.node.id), Driver::Node, u64::from(nodes), &cluster.node.id),
        bought(
            format!("Storage units: {}", cluster.storage.id),
            Driver::Cluster,
            u64::from(cluster.storage_units),
            &cluster.storage.id,
        ),
    ];
    lines.extend(parts.iter().filter(|part| part.count > 0).map(|part| {
        let (what, per) = match part.kind {
            PartKind::Nic => ("Network cards", Driver::Nic),
            PartKind::Switch => ("Switches", Driver::Switch),
            PartKind::Optic => ("Optical modules", Driver::Optic),
            PartKind::Cable => ("Cables", Driver::Cable),
            PartKind::ManagerServer => ("Fabric managers", Driver::Cluster),
        };
        bought(format!("{what}, {}: {}", part.tier.word(), part.id), per, part.count, &part.id)
    }));
    lines
}
