//! One network: its parts, what they draw and cost, how long its cables are, and what is left free.

use crate::catalog::fabric::Transport;
use crate::catalog::pricebook::{Amount, Category, Driver};
use crate::catalog::{Node, PriceBook, Site, Storage};
use crate::evaluate::{Devices, Infeasible, PartLine, SideBill, fibre, network_as_asked, parts, racked, side_bills};
use crate::facility::{Racked, racks, shared_racks};
use crate::provenance::Basis;
use crate::scenario::{BoundFabric, BoundSideNetwork, LinkParts, TopologyChoice};
use crate::topology::{CLASSES, LengthClass, PartKind, RackLayout, Tier, Topology};
use crate::units::{Fraction, Meters, Usd, Watts};

/// A cost of the fabric that is no part: a licence, its tuning, the people who run it.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricLine {
    /// Its name.
    pub name: String,
    /// Whether it is paid once or every year.
    pub category: Category,
    /// What it is multiplied by.
    pub per: Driver,
    /// How many of that.
    pub quantity: f64,
    /// Cost of one.
    pub unit: Usd,
    /// How it was come by.
    pub basis: Basis,
}

/// A network and everything to buy for it.
#[derive(Clone, Debug)]
pub struct FabricQuote {
    /// The network.
    pub topology: Topology,
    /// Nodes that it joins.
    pub nodes: u32,
    /// Its parts.
    pub parts: Vec<PartLine>,
    /// The networks beside it.
    pub side: Vec<SideBill>,
    /// Its costs that are no parts.
    pub lines: Vec<FabricLine>,
    /// Its cables by length.
    pub lengths: Vec<LengthClass>,
    /// How far links reach: from nodes, and between switches.
    pub reach: [Meters; 2],
    /// Where the racks stand.
    pub layout: RackLayout,
    /// Racks of switches, servers and storage.
    pub switch_racks: u64,
}

impl FabricQuote {
    /// Parts of a kind, at a tier or at all.
    pub fn count(&self, kind: PartKind, tier: Option<Tier>) -> u64 {
        let of = self.parts.iter().filter(|part| part.kind == kind && tier.is_none_or(|tier| part.tier == tier));
        of.map(|part| part.count).sum()
    }

    /// Cables that are longer than their links reach. A class is taken at its shorter end, so that none is counted for the
    /// rounding of lengths alone.
    pub fn cables_beyond_reach(&self) -> u64 {
        let shortest = |class: &LengthClass| {
            let below = CLASSES.iter().copied().filter(|meters| *meters < class.meters).max();
            Meters::new(f64::from(below.unwrap_or(0)))
        };
        let of = |class: &&LengthClass| shortest(class) >= self.reach[usize::from(class.tier != Tier::Node)];
        self.lengths.iter().filter(of).map(|class| class.count).sum()
    }

    /// Power of all parts of the fabric in use.
    pub fn power(&self) -> Watts {
        self.parts.iter().map(PartLine::draw).sum()
    }

    /// Price of all parts of the fabric, spares among them.
    pub fn capex(&self) -> Usd {
        self.parts.iter().map(PartLine::price).sum()
    }
}

/// What a network is quoted for.
#[derive(Clone, Copy, Debug)]
pub struct QuoteInputs<'a> {
    /// The node.
    pub node: &'a Node,
    /// The fabric.
    pub fabric: &'a BoundFabric,
    /// How it is built.
    pub choice: &'a TopologyChoice,
    /// Nodes to join.
    pub nodes: u32,
    /// The networks beside it.
    pub networks: &'a [BoundSideNetwork],
    /// The storage that they reach.
    pub storage: &'a Storage,
    /// Share of switches, modules and cables bought on top.
    pub spares: Fraction,
    /// Prices, which have every part.
    pub prices: &'a PriceBook,
    /// The site whose racks are filled.
    pub site: &'a Site,
}

/// Counts the network of so many nodes. Nodes stand in racks of their own, switches, servers and storage in others.
///
/// # Errors
/// When the network cannot be built, or a part does not fit a rack.
pub fn quote(inputs: &QuoteInputs<'_>) -> Result<FabricQuote, Infeasible> {
    let QuoteInputs { node, fabric, choice, nodes, prices, site, .. } = *inputs;
    let topology = network_as_asked(node, fabric, choice, nodes)?;
    let parts = parts(&topology, fabric, choice.sites.as_ref(), prices, inputs.spares);
    let node_racks = racks(
        &[Racked { name: "node", count: u64::from(nodes), power: node.max_power, units: node.rack_units }],
        site.rack,
    )?;
    let sites = u64::from(topology.site_count());
    let hosts = u64::from(topology.spec.nodes) * sites;
    let each = hosts.div_ceil(node_racks.max(1));
    let layout = RackLayout::usual(u32::try_from(each).unwrap_or(u32::MAX));
    let accelerators = u64::from(nodes) * u64::from(node.accelerators);
    let storage_units = inputs.storage.units_for(accelerators);
    let storage =
        Racked { name: "storage", count: storage_units, power: inputs.storage.power, units: inputs.storage.rack_units };
    let other_racks = |side: &[SideBill]| {
        let all: Vec<&PartLine> = parts.iter().chain(side.iter().flat_map(|network| &network.parts)).collect();
        let mut shared = racked(&all);
        shared.push(storage);
        shared_racks(&shared, site.rack).map_err(Infeasible::from)
    };
    let devices = Devices {
        hosts: &[(hosts, node.storage_ports.count / node.hosts())],
        storage: inputs.storage,
        storage_units,
        servers: u64::from(topology.spec.managers.servers) * sites,
        fabric_switches: parts.iter().filter(|part| part.kind == PartKind::Switch).map(|part| part.count).sum(),
    };
    let racks_with = |side: &[SideBill]| Ok(node_racks + other_racks(side)?);
    let side = side_bills(inputs.networks, &devices, prices, inputs.spares, racks_with)?;
    let switch_racks = other_racks(&side)?;
    let between = fibre(choice.sites.as_ref(), &topology) / Meters::new(1e3);
    let lines = fabric_lines(prices, fabric.entry.transport, &parts, between);
    // Every site is laid out alike.
    let mut lengths = topology.cable_lengths(&layout);
    for class in &mut lengths {
        class.count *= sites;
    }
    let reach = [reach_of(&fabric.node_link), reach_of(&fabric.switch_link)];
    Ok(FabricQuote { topology, nodes, parts, side, lines, lengths, reach, layout, switch_racks })
}

/// How far a link reaches: the least of its cable and the modules at its ends.
fn reach_of(link: &LinkParts) -> Meters {
    let modules = [&link.upper, &link.lower].into_iter().flatten().map(|optic| optic.reach);
    modules.fold(link.cable.reach, Meters::min)
}

/// The price book's lines that count parts of the fabric.
fn fabric_lines(prices: &PriceBook, transport: Transport, parts: &[PartLine], fibre_km: f64) -> Vec<FabricLine> {
    let count = |kind: PartKind| {
        let counted: u64 = parts.iter().filter(|part| part.kind == kind).map(|part| part.count).sum();
        counted as f64
    };
    let of = |per: Driver| match per {
        Driver::Nic => Some(count(PartKind::Nic)),
        Driver::Switch => Some(count(PartKind::Switch)),
        Driver::Optic => Some(count(PartKind::Optic)),
        Driver::Cable => Some(count(PartKind::Cable)),
        Driver::FibreKm => Some(fibre_km).filter(|km| *km > 0.0),
        _ => None,
    };
    let lines = prices.lines.iter().filter(|line| line.applies_to(transport)).filter_map(|line| {
        let (quantity, Amount::Money(unit)) = (of(line.per)?, line.amount) else { return None };
        Some(FabricLine {
            name: line.name.clone(),
            category: line.category,
            per: line.per,
            quantity,
            unit: unit.value,
            basis: line.evidence.basis,
        })
    });
    lines.collect()
}
