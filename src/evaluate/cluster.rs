//! The cluster as it is built: nodes, topology, counted parts with power and price, racks, facility, cost lines.

use super::Infeasible;
use super::parts::{PartLine, count_of, parts, racked};
use super::side::{Devices, SideBill, side_bills};
use super::tiers;
use crate::catalog::Node;
use crate::catalog::fabric::Transport;
use crate::catalog::pricebook::Driver;
use crate::facility::{Capacity, Facility, Load, Racked, racks, shared_racks};
use crate::provenance::Basis;
use crate::scenario::{BoundFabric, Cluster, Finance, SiteChoice, TierCount, TopologyChoice};
use crate::tco::{self, CostBreakdown, Drivers, PartCost};
use crate::topology::{ByTier, FatTreeSpec, Managers, Oversubscription, PartKind, Sites, Tier, Tiers, Topology};
use crate::units::{Bandwidth, Fraction, Meters, Usd, Watts};

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
    /// The networks beside it.
    pub side: Vec<SideBill>,
    /// Racks of nodes, switches and storage.
    pub racks: u64,
    /// Power and energy.
    pub facility: Facility,
    /// What the power budget holds, where there is one.
    pub capacity: Option<Capacity>,
    /// Cost drivers.
    pub drivers: Drivers,
    /// Cost lines and totals.
    pub costs: CostBreakdown,
    /// What draws power, the nodes at work first.
    loads: Vec<Load>,
    /// What is bought.
    bought: Vec<PartCost>,
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
        let Occupancy { nodes: at_work, each } = Occupancy::new(cluster.accelerators, &cluster.node)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count of nodes")]
        let spare_nodes = (f64::from(at_work) * cluster.spares.get()).ceil() as u32;
        let topology = network(&cluster.node, &cluster.fabric, &cluster.topology, at_work + spare_nodes)?;
        Self::around(topology, (at_work, spare_nodes, each), cluster, finance)
    }

    /// The same network at other prices, or at another site.
    ///
    /// # Errors
    /// When a part does not fit a rack, or the site's power does not do.
    pub fn repriced(&self, cluster: &Cluster, finance: &Finance) -> Result<Self, Infeasible> {
        let counts = (self.nodes - self.spare_nodes, self.spare_nodes, self.each);
        Self::around(self.topology.clone(), counts, cluster, finance)
    }

    /// What is built around a network of so many nodes at work and spare, with so many accelerators at work in each.
    fn around(
        topology: Topology,
        (at_work, spare_nodes, each): (u32, u32, u32),
        cluster: &Cluster,
        finance: &Finance,
    ) -> Result<Self, Infeasible> {
        let (per_node, nodes) = (cluster.node.accelerators, at_work + spare_nodes);
        let parts =
            parts(&topology, &cluster.fabric, cluster.topology.sites.as_ref(), &cluster.prices, cluster.fabric_spares);
        let racks_with = |side: &[SideBill]| {
            let all: Vec<&PartLine> = parts.iter().chain(side.iter().flat_map(|network| &network.parts)).collect();
            cluster_racks(cluster, nodes, &all)
        };
        let devices = Devices {
            hosts: u64::from(topology.spec.nodes) * u64::from(topology.site_count()),
            storage_ports: cluster.node.storage_ports.count
                / (cluster.node.accelerators / cluster.node.accelerators_per_tray),
            storage: &cluster.storage,
            storage_units: u64::from(cluster.storage_units),
            servers: u64::from(topology.spec.managers.servers) * u64::from(topology.site_count()),
            fabric_switches: count_of(&parts, PartKind::Switch),
        };
        let side = side_bills(&cluster.networks, &devices, &cluster.prices, cluster.fabric_spares, racks_with)?;
        let racks = racks_with(&side)?;
        let all: Vec<&PartLine> = parts.iter().chain(side.iter().flat_map(|network| &network.parts)).collect();
        let loads = loads(cluster, at_work, spare_nodes, &all, finance);
        let facility = Facility::new(&loads, &cluster.site);
        let capacity = capacity(cluster, nodes, &facility)?;
        let drivers = Drivers {
            accelerators: u64::from(nodes) * u64::from(per_node),
            nodes: u64::from(nodes),
            racks,
            switches: count_of(&parts, PartKind::Switch),
            nics: count_of(&parts, PartKind::Nic),
            optics: count_of(&parts, PartKind::Optic),
            cables: count_of(&parts, PartKind::Cable),
            fibre: fibre(cluster.topology.sites.as_ref(), &topology),
            storage: cluster.storage.capacity * f64::from(cluster.storage_units),
            provisioned_it: facility.provisioned_it,
            energy_per_year: facility.energy_per_year,
        };
        let bought = part_costs(cluster, nodes, &parts, &side);
        let costs = tco::breakdown(&cost_inputs(cluster, finance, &bought, &drivers));
        Ok(Self {
            nodes,
            spare_nodes,
            each,
            topology,
            parts,
            side,
            racks,
            facility,
            capacity,
            drivers,
            costs,
            loads,
            bought,
        })
    }

    /// The same cluster used and financed otherwise. Nothing is allocated.
    pub fn refinance(&mut self, cluster: &Cluster, finance: &Finance) {
        if let Some(nodes) = self.loads.first_mut() {
            *nodes = Load::nodes(nodes.count, nodes.maximum, &cluster.power, finance.utilisation);
        }
        self.facility = Facility::new(&self.loads, &cluster.site);
        self.drivers.provisioned_it = self.facility.provisioned_it;
        self.drivers.energy_per_year = self.facility.energy_per_year;
        self.costs.repeat(&cost_inputs(cluster, finance, &self.bought, &self.drivers));
    }

    /// Price of memory tiers that are bought beside the nodes.
    pub fn memory_tier_capex(&self, cluster: &Cluster) -> Usd {
        tiers::costs(cluster, self.nodes).map(|part| part.unit_price * part.count as f64).sum()
    }

    /// Power of the fabric's parts in use.
    pub fn fabric_power(&self) -> Watts {
        self.parts.iter().map(PartLine::draw).sum()
    }

    /// Price of the fabric's parts, spares among them.
    pub fn fabric_capex(&self) -> Usd {
        self.parts.iter().map(PartLine::price).sum()
    }

    /// Power of the networks beside the fabric.
    pub fn side_power(&self) -> Watts {
        self.side.iter().map(SideBill::draw).sum()
    }

    /// Price of the networks beside the fabric, spares among them.
    pub fn side_capex(&self) -> Usd {
        self.side.iter().map(SideBill::price).sum()
    }
}

/// The network of so many nodes on a fabric. Of a node that is a rack, its trays (hosts) are what leaves count; of several
/// sites it is the network of one.
///
/// # Errors
/// When a pod or a site is no number of whole nodes, or the network cannot be built.
pub fn network(node: &Node, fabric: &BoundFabric, choice: &TopologyChoice, nodes: u32) -> Result<Topology, Infeasible> {
    let per_node = node.accelerators;
    let trays = per_node / node.accelerators_per_tray;
    let nics = (node.nic_slots.count / trays).max(1);
    let pod_nodes = match choice.pod {
        Some(pod) if pod.is_multiple_of(per_node) => Some((pod / per_node).saturating_mul(trays)),
        Some(pod) => return Err(Infeasible::PartPod { pod, per_node }),
        None => None,
    };
    let count = choice.sites.as_ref().map_or(1, |sites| sites.count);
    if !nodes.is_multiple_of(count) {
        return Err(Infeasible::PartSite { nodes, sites: count });
    }
    let here = (nodes / count).saturating_mul(trays);
    let sites = choice.sites.as_ref().map(|sites| {
        let inside = fabric.entry.link_speed * (f64::from(here) * f64::from(nics));
        Sites::new(count, sites.distance, inside, sites.bandwidth, sites.link.entry.link_speed)
    });
    // What the long-haul links carry comes in by ports of leaves.
    let border = sites.map_or(0.0, |sites| {
        let link = choice.sites.as_ref().map_or(Bandwidth::ZERO, |sites| sites.link.entry.link_speed);
        (link * f64::from(sites.links) / fabric.entry.link_speed).ceil()
    });
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of ports, at most that of u32")]
    let border_ports = border.min(f64::from(u32::MAX)) as u32;
    if let Some(block) = node.torus.filter(|_| fabric.entry.transport == Transport::Ici) {
        let circuits = fabric.node_link.lower.as_ref().map(|_| fabric.radix[0]);
        return Ok(Topology::torus_of_blocks(nodes, block.face_links(), circuits)?);
    }
    let [leaf, spine, core] = fabric.radix;
    let managers = fabric.entry.managers.unwrap_or_default();
    let spec = FatTreeSpec {
        nodes: here,
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
        border_ports,
    };
    let one = Topology::build(choice.kind, &spec)?;
    Ok(match sites {
        Some(sites) => one.at_sites(sites),
        None => one,
    })
}

/// The same where every oversubscription that is asked for has switches to mean: whoever asks for one network alone asks
/// for each of its figures, while sizes of a study may have fewer tiers than the largest.
///
/// # Errors
/// As [`network`], and when nothing is built above a tier that is to be oversubscribed.
pub fn network_as_asked(
    node: &Node,
    fabric: &BoundFabric,
    choice: &TopologyChoice,
    nodes: u32,
) -> Result<Topology, Infeasible> {
    let topology = network(node, fabric, choice, nodes)?;
    let boundaries = [
        (Tier::Leaf, choice.leaf_oversubscription, topology.leaf.oversubscription),
        (Tier::Spine, choice.spine_oversubscription, topology.spine.oversubscription),
    ];
    match boundaries.into_iter().find(|(_, asked, built)| *asked > 1.0 && *built <= 0.0) {
        Some((tier, asked, _)) => Err(Infeasible::NothingAbove { tier, asked, tiers: topology.tiers, nodes }),
        None => Ok(topology),
    }
}

/// What the power budget holds of such nodes, each with its part of this cluster's network and storage.
fn capacity(cluster: &Cluster, nodes: u32, facility: &Facility) -> Result<Option<Capacity>, Infeasible> {
    let Some(budget) = &cluster.power_budget else { return Ok(None) };
    let each = facility.provisioned_it * (1.0 / f64::from(nodes));
    let capacity = Capacity::new(budget, each, cluster.site.pue.value, cluster.node.accelerators);
    if u64::from(nodes) > capacity.nodes {
        return Err(Infeasible::PowerBudget { nodes, needs: capacity.node * f64::from(nodes), capacity });
    }
    Ok(Some(capacity))
}

/// Fibre pairs between sites, end to end.
pub fn fibre(choice: Option<&SiteChoice>, topology: &Topology) -> Meters {
    let between = choice.zip(topology.sites.as_ref());
    between.map_or(Meters::ZERO, |(choice, sites)| sites.fibre(choice.link.entry.links_of_a_pair))
}

/// Racks of a cluster: nodes in their own, all else shared.
fn cluster_racks(cluster: &Cluster, nodes: u32, parts: &[&PartLine]) -> Result<u64, Infeasible> {
    let node = &cluster.node;
    let own = Racked { name: &node.id, count: u64::from(nodes), power: node.max_power, units: node.rack_units };
    let storage = Racked {
        name: &cluster.storage.id,
        count: u64::from(cluster.storage_units),
        power: cluster.storage.power,
        units: cluster.storage.rack_units,
    };
    let mut shared = racked(parts);
    shared.push(storage);
    shared.extend(tiers::racked(cluster, nodes));
    Ok(racks(&[own], cluster.site.rack)? + shared_racks(&shared, cluster.site.rack)?)
}

/// What draws power. A switch's maximum includes its modules, so theirs counts on average only.
fn loads(cluster: &Cluster, at_work: u32, spares: u32, parts: &[&PartLine], finance: &Finance) -> Vec<Load> {
    let nics = f64::from(cluster.node.nic_slots.count) * cluster.fabric.nic.power;
    // Whoever reads a node checks that the cards' power is a part of the node's.
    let node = cluster.node.max_power - cluster.node.nic_slots.included_power + nics;
    let mut loads = vec![
        Load::nodes(u64::from(at_work), node, &cluster.power, finance.utilisation),
        Load::nodes(u64::from(spares), node, &cluster.power, Fraction::ZERO),
        Load::constant(u64::from(cluster.storage_units), cluster.storage.power),
    ];
    loads.extend(tiers::loads(cluster, at_work + spares));
    // Network cards are part of the nodes' power.
    loads.extend(parts.iter().filter(|part| part.kind != PartKind::Nic).map(|part| Load {
        count: part.count,
        maximum: part.maximum,
        average: part.power,
    }));
    loads
}

/// What costs follow from.
fn cost_inputs<'a>(
    cluster: &'a Cluster,
    finance: &'a Finance,
    parts: &'a [PartCost],
    drivers: &'a Drivers,
) -> tco::Inputs<'a> {
    tco::Inputs {
        parts,
        drivers,
        book: &cluster.prices,
        site: &cluster.site,
        transport: cluster.fabric.entry.transport,
        finance,
    }
}

/// What is bought, by cost line.
fn part_costs(cluster: &Cluster, nodes: u32, fabric: &[PartLine], side: &[SideBill]) -> Vec<PartCost> {
    let whole = |what: &str, per: Driver, count: u64, id: &str| {
        let price = cluster.prices.price(id);
        PartCost {
            name: PartCost::called(what, id),
            per,
            count,
            unit_price: price.map_or(Usd::ZERO, |price| price.usd.value),
            basis: price.map_or(Basis::Assumed, |price| price.evidence.basis),
        }
    };
    let mut lines = vec![
        whole("Nodes", Driver::Node, u64::from(nodes), &cluster.node.id),
        whole("Storage units", Driver::Cluster, u64::from(cluster.storage_units), &cluster.storage.id),
    ];
    let bought = |what: &str, per: Driver, part: &PartLine| PartCost {
        name: PartCost::called(what, &part.id),
        per,
        count: part.bought(),
        unit_price: part.unit_price,
        basis: part.basis,
    };
    lines.extend(tiers::costs(cluster, nodes));
    lines.extend(fabric.iter().map(|part| {
        let (what, per) = match part.kind {
            PartKind::Nic => ("Network cards", Driver::Nic),
            PartKind::Switch => ("Switches", Driver::Switch),
            PartKind::Optic => ("Optical modules", Driver::Optic),
            PartKind::Cable => ("Cables", Driver::Cable),
            PartKind::ManagerServer => ("Fabric managers", Driver::Cluster),
        };
        bought(&format!("{what}, {}", part.tier.word()), per, part)
    }));
    for network in side {
        lines.extend(network.parts.iter().map(|part| {
            let place = format!("{} network, {}", network.title(), part.tier.word());
            bought(&place, Driver::Cluster, part)
        }));
    }
    lines
}
