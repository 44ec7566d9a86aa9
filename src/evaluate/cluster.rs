//! The cluster as it is built: nodes, topology, counted parts with power and price, racks, facility, cost lines.

use super::Infeasible;
use super::bought::{NodesBought, spare_nodes, taking_in};
use super::drawn::{self, PowerLine, loads};
use super::network::{Occupancy, fibre, network_of};
use super::parts::{PartLine, count_of, parts, racked};
use super::side::{Devices, SideBill, side_bills};
use super::tiers::{self, TierBought};
use crate::catalog::Node;
use crate::catalog::pricebook::Driver;
use crate::facility::{Capacity, Facility, Load, Racked, racks, shared_racks};
use crate::provenance::Basis;
use crate::scenario::{Cluster, Finance, NodeGroup};
use crate::tco::{self, CostBreakdown, Drivers, PartCost};
use crate::topology::{PartKind, Topology};
use crate::units::{Usd, Watts};

/// Everything about a cluster that no layout changes.
#[derive(Clone, Debug)]
pub struct BuiltCluster {
    /// Nodes bought, spares among them, of each kind: the cluster's own first.
    pub kinds: Vec<NodesBought>,
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
    /// What draws power: by kind the nodes at work, then those to spare, then all else.
    pub(super) loads: Vec<Load>,
    /// What is bought, the nodes first, by kind.
    pub(super) bought: Vec<PartCost>,
    /// How many of that are memory tiers, behind the nodes and storage.
    pub(super) tiers: usize,
    /// Whether nodes of prefill's own are of the kind that all others are of.
    pub(super) of_one_kind: bool,
}

impl BuiltCluster {
    /// Builds a cluster.
    ///
    /// # Errors
    /// When nodes or pods would be part filled, the fabric cannot be built, or a part does not fit a rack.
    pub fn new(cluster: &Cluster, finance: &Finance) -> Result<Self, Infeasible> {
        let bought = |group: NodeGroup<'_>| {
            let Occupancy { nodes, each } = Occupancy::of(group)?;
            let spare = spare_nodes(nodes, cluster.spares);
            Ok::<_, Infeasible>(NodesBought { at_work: nodes, spare, each, per_node: group.node.accelerators })
        };
        let mut kinds = cluster.kinds_of_nodes().map(bought).collect::<Result<Vec<_>, _>>()?;
        if let ([main, own], true) = (&mut kinds[..], cluster.prefill_is_of_main_kind()) {
            // Nodes of one kind stand in for each other, wherever they work.
            let all = spare_nodes(main.at_work + own.at_work, cluster.spares);
            own.spare = all * own.at_work / (main.at_work + own.at_work).max(1);
            main.spare = all - own.spare;
        }
        let nodes: Vec<(&Node, u32)> =
            cluster.kinds_of_nodes().zip(&kinds).map(|(group, bought)| (&group.node.part, bought.all())).collect();
        let (_, ports) = tiers::servers(cluster, taking_in(&kinds).all());
        let topology = network_of(&nodes, ports, &cluster.fabric, &cluster.topology)?;
        Self::around(topology, kinds, cluster, finance)
    }

    /// The same network at other prices, or at another site.
    ///
    /// # Errors
    /// When a part does not fit a rack, or the site's power does not do.
    pub fn repriced(&self, cluster: &Cluster, finance: &Finance) -> Result<Self, Infeasible> {
        Self::around(self.topology.clone(), self.kinds.clone(), cluster, finance)
    }

    /// The same of whose fabric there are the cards of the nodes alone.
    ///
    /// # Errors
    /// When a part does not fit a rack, or the site's power does not do.
    pub(super) fn with_cards_alone(&self, cluster: &Cluster, finance: &Finance) -> Result<Self, Infeasible> {
        let cards = self.parts.iter().filter(|part| part.kind == PartKind::Nic).cloned().collect();
        Self::of_parts(self.topology.clone(), cards, self.kinds.clone(), cluster, finance)
    }

    /// What is built around a network of so many nodes of each kind.
    fn around(
        topology: Topology,
        kinds: Vec<NodesBought>,
        cluster: &Cluster,
        finance: &Finance,
    ) -> Result<Self, Infeasible> {
        let parts =
            parts(&topology, &cluster.fabric, cluster.topology.sites.as_ref(), &cluster.prices, cluster.fabric_spares);
        Self::of_parts(topology, parts, kinds, cluster, finance)
    }

    /// The same of a network that has these parts.
    fn of_parts(
        topology: Topology,
        parts: Vec<PartLine>,
        kinds: Vec<NodesBought>,
        cluster: &Cluster,
        finance: &Finance,
    ) -> Result<Self, Infeasible> {
        let nodes = kinds.iter().map(|bought| u64::from(bought.all())).sum();
        let accelerators = kinds.iter().map(NodesBought::accelerators).sum();
        let racks_with = |side: &[SideBill]| {
            let all: Vec<&PartLine> = parts.iter().chain(side.iter().flat_map(|network| &network.parts)).collect();
            cluster_racks(cluster, &kinds, &all)
        };
        let hosts_of = |(NodeGroup { node, .. }, bought): (NodeGroup<'_>, &NodesBought)| {
            (u64::from(bought.all()) * u64::from(node.hosts()), node.storage_ports.count / node.hosts())
        };
        let hosts: Vec<(u64, u32)> = cluster.kinds_of_nodes().zip(&kinds).map(hosts_of).collect();
        let managers = u64::from(topology.spec.managers.servers) * u64::from(topology.site_count());
        let devices = Devices {
            hosts: &hosts,
            storage: &cluster.storage,
            storage_units: u64::from(cluster.storage_units),
            servers: managers + tiers::servers(cluster, taking_in(&kinds).all()).0,
            fabric_switches: count_of(&parts, PartKind::Switch),
        };
        let side = side_bills(&cluster.networks, &devices, &cluster.prices, cluster.fabric_spares, racks_with)?;
        let racks = racks_with(&side)?;
        let loads = loads(cluster, &kinds, (&parts, &side), finance);
        let facility = Facility::new(&loads, &cluster.site);
        let capacity = capacity(cluster, (nodes, accelerators), &facility)?;
        let drivers = Drivers {
            accelerators,
            nodes,
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
        let bought = part_costs(cluster, &kinds, &parts, &side);
        let tiers = tiers::costs(cluster, taking_in(&kinds).all()).count();
        let costs = tco::breakdown(&cost_inputs(cluster, finance, &bought, &drivers));
        let of_one_kind = cluster.prefill_is_of_main_kind();
        Ok(Self {
            kinds,
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
            tiers,
            of_one_kind,
        })
    }

    /// The same cluster used and financed otherwise. Nothing is allocated.
    pub fn refinance(&mut self, cluster: &Cluster, finance: &Finance) {
        for nodes in self.loads.iter_mut().take(self.kinds.len()) {
            *nodes = Load::nodes(nodes.count, nodes.maximum, &cluster.power, finance.utilisation);
        }
        self.facility = Facility::new(&self.loads, &cluster.site);
        self.drivers.provisioned_it = self.facility.provisioned_it;
        self.drivers.energy_per_year = self.facility.energy_per_year;
        self.costs.repeat(&cost_inputs(cluster, finance, &self.bought, &self.drivers));
    }

    /// Nodes of the cluster's own kind.
    pub fn main_nodes(&self) -> NodesBought {
        self.kinds.first().copied().unwrap_or_default()
    }

    /// Price of memory tiers that are bought beside the nodes.
    pub fn memory_tier_capex(&self, cluster: &Cluster) -> Usd {
        tiers::costs(cluster, taking_in(&self.kinds).all()).map(|part| part.unit_price * part.count as f64).sum()
    }

    /// Tiers that keep what is served, with what is bought for each.
    pub fn tiers<'a>(&self, cluster: &'a Cluster) -> impl Iterator<Item = TierBought<'a>> + use<'a> {
        tiers::bought(cluster, taking_in(&self.kinds).all())
    }

    /// Power of the fabric's parts in use.
    pub fn fabric_power(&self) -> Watts {
        self.parts.iter().map(PartLine::draw).sum()
    }

    /// What draws power, by name; of the cluster that this is built of.
    pub fn power_lines(&self, cluster: &Cluster, finance: &Finance) -> Vec<PowerLine> {
        drawn::lines(cluster, &self.kinds, (&self.parts, &self.side), finance)
    }

    /// What the fabric's own parts draw in use, network cards among them.
    pub fn fabric_power_lines(&self, cluster: &Cluster) -> Vec<PowerLine> {
        drawn::lines_of_fabric(cluster, &self.parts)
    }

    /// The same of the networks beside it.
    pub fn side_power_lines(&self, cluster: &Cluster) -> Vec<PowerLine> {
        drawn::lines_beside(cluster, &self.side)
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

/// What the power budget holds of such nodes, of several kinds in the same proportion, each with its part of this cluster's
/// network and storage.
fn capacity(
    cluster: &Cluster,
    (nodes, accelerators): (u64, u64),
    facility: &Facility,
) -> Result<Option<Capacity>, Infeasible> {
    let Some(budget) = &cluster.power_budget else { return Ok(None) };
    let each = facility.provisioned_it * (1.0 / nodes as f64);
    let capacity = Capacity::new(budget, each, cluster.site.pue.value, (accelerators, nodes));
    if nodes > capacity.nodes {
        return Err(Infeasible::PowerBudget { nodes, needs: capacity.node * nodes as f64, capacity });
    }
    Ok(Some(capacity))
}

/// Racks of a cluster: nodes in their own, all else shared.
fn cluster_racks(cluster: &Cluster, kinds: &[NodesBought], parts: &[&PartLine]) -> Result<u64, Infeasible> {
    let own: Vec<Racked<'_>> = cluster
        .kinds_of_nodes()
        .zip(kinds)
        .map(|(NodeGroup { node, .. }, bought)| Racked {
            name: &node.id,
            count: bought.all().into(),
            power: node.max_power,
            units: node.rack_units,
        })
        .collect();
    let storage = Racked {
        name: &cluster.storage.id,
        count: u64::from(cluster.storage_units),
        power: cluster.storage.power,
        units: cluster.storage.rack_units,
    };
    let mut shared = racked(parts);
    shared.push(storage);
    shared.extend(tiers::racked(cluster, taking_in(kinds).all()));
    Ok(racks(&own, cluster.site.rack)? + shared_racks(&shared, cluster.site.rack)?)
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
fn part_costs(cluster: &Cluster, kinds: &[NodesBought], fabric: &[PartLine], side: &[SideBill]) -> Vec<PartCost> {
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
    let mut lines: Vec<PartCost> = cluster
        .kinds_of_nodes()
        .zip(kinds)
        .zip(["Nodes", "Nodes for prefill"])
        .map(|((NodeGroup { node, .. }, bought), what)| whole(what, Driver::Node, bought.all().into(), &node.id))
        .collect();
    lines.push(whole("Storage units", Driver::Cluster, u64::from(cluster.storage_units), &cluster.storage.id));
    let bought = |name: String, per: Driver, part: &PartLine| PartCost {
        name,
        per,
        count: part.bought(),
        unit_price: part.unit_price,
        basis: part.basis,
    };
    lines.extend(tiers::costs(cluster, taking_in(kinds).all()));
    lines.extend(fabric.iter().map(|part| {
        let per = match part.kind {
            PartKind::Nic => Driver::Nic,
            PartKind::Switch => Driver::Switch,
            PartKind::Optic => Driver::Optic,
            PartKind::Cable => Driver::Cable,
            PartKind::ManagerServer => Driver::Cluster,
        };
        bought(part.called(), per, part)
    }));
    for network in side {
        lines.extend(network.parts.iter().map(|part| bought(network.called(part), Driver::Cluster, part)));
    }
    lines
}
