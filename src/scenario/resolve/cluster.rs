//! The cluster: its node, fabric, site, prices and storage, found in the catalog and held against each other.

use std::sync::Arc;

use super::{Defaults, Share, by_default, default_share};
use crate::catalog::collective_efficiency::CollectiveEfficiency;
use crate::catalog::{
    Accelerator, Cable, Catalog, Entry, Fabric, Nic, Node, Optic, PowerProfile, PriceBook, Reference, Reliability,
    Site, Storage, Switch,
};
use crate::diagnostics::Sink;
use crate::scenario::file::{ScenarioFile, TierCount, TopologyKind};
use crate::scenario::fits::{check_adapter, check_fabric_prices, check_priced, check_wires, topology};
use crate::units::Fraction;

/// The parts of one link kind.
#[derive(Clone, Debug)]
pub struct LinkParts {
    /// Module at the upper end, where the link has modules.
    pub upper: Option<Arc<Entry<Optic>>>,
    /// Module at the lower end.
    pub lower: Option<Arc<Entry<Optic>>>,
    /// The cable.
    pub cable: Arc<Entry<Cable>>,
}

/// A fabric with all its parts bound.
#[derive(Clone, Debug)]
pub struct BoundFabric {
    /// The fabric.
    pub entry: Arc<Entry<Fabric>>,
    /// Its network card.
    pub nic: Arc<Entry<Nic>>,
    /// Its leaf, spine and core switches.
    pub switches: [Arc<Entry<Switch>>; 3],
    /// Ports of each at the fabric's link speed.
    pub radix: [u32; 3],
    /// Links from nodes to leaves.
    pub node_link: LinkParts,
    /// Links between switches.
    pub switch_link: LinkParts,
}

impl BoundFabric {
    /// Finds a fabric's parts; those that are missing are reported.
    pub fn bind(entry: Arc<Entry<Fabric>>, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let nic = catalog.nics.find(&entry.nic, &entry.nic.at, sink);
        let tiers = [&entry.switch.leaf, &entry.switch.spine, &entry.switch.core];
        let switches = tiers.map(|id| catalog.switches.find(id, &id.at, sink));
        let link = |link: &crate::catalog::fabric::Link| {
            let end = |id: &Reference| catalog.optics.find(id, &id.at, sink);
            let (upper, lower) = link.optics.as_ref().map_or((None, None), |ends| (end(&ends.upper), end(&ends.lower)));
            Some(LinkParts { upper, lower, cable: catalog.cables.find(&link.cable, &link.cable.at, sink)? })
        };
        let (node_link, switch_link) = (link(&entry.node_link), link(&entry.switch_link));
        let [Some(leaf), Some(spine), Some(core)] = switches else { return None };
        let radix = |switch: &Entry<Switch>| switch.ports_at(entry.link_speed).unwrap_or(0);
        let radix = [radix(&leaf), radix(&spine), radix(&core)];
        Some(Self {
            nic: nic?,
            switches: [leaf, spine, core],
            radix,
            node_link: node_link?,
            switch_link: switch_link?,
            entry,
        })
    }
}

/// How the fabric is to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyChoice {
    /// Its kind.
    pub kind: TopologyKind,
    /// Tiers.
    pub tiers: TierCount,
    /// Accelerators of a pod.
    pub pod: Option<u32>,
    /// Planes that each port is split into.
    pub planes: u32,
    /// Leaf to spine.
    pub leaf_oversubscription: f64,
    /// Spine to core.
    pub spine_oversubscription: f64,
}

/// What is built, where, and at which prices.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The node.
    pub node: Arc<Entry<Node>>,
    /// Its accelerator.
    pub accelerator: Arc<Entry<Accelerator>>,
    /// Accelerators at work.
    pub accelerators: u32,
    /// Share bought on top.
    pub spares: Fraction,
    /// The fabric.
    pub fabric: BoundFabric,
    /// How it is built.
    pub topology: TopologyChoice,
    /// Where it stands.
    pub site: Arc<Entry<Site>>,
    /// What things cost.
    pub prices: Arc<Entry<PriceBook>>,
    /// What checkpoints are written to.
    pub storage: Arc<Entry<Storage>>,
    /// Units of it.
    pub storage_units: u32,
    /// How often things fail.
    pub reliability: Arc<Entry<Reliability>>,
    /// How power follows load.
    pub power: Arc<Entry<PowerProfile>>,
    /// What collectives reach.
    pub collectives: Arc<Entry<CollectiveEfficiency>>,
}

pub(super) fn bind(file: &ScenarioFile, catalog: &Catalog, defaults: &mut Defaults, sink: &Sink) -> Option<Cluster> {
    let wanted = &file.cluster;
    let node = catalog.nodes.find(&wanted.node, &wanted.node.at, sink);
    let accelerator =
        node.as_ref().and_then(|node| catalog.accelerators.find(&node.accelerator, &node.accelerator.at, sink));
    let fabric = catalog
        .fabrics
        .find(&wanted.fabric, &wanted.fabric.at, sink)
        .and_then(|entry| BoundFabric::bind(entry, catalog, sink));
    let site = catalog.sites.find(&wanted.site, &wanted.site.at, sink);
    let prices = catalog.price_books.find(&wanted.prices, &wanted.prices.at, sink);
    let storage = by_default("cluster.storage", wanted.storage.as_ref(), "parallel-flash", &wanted.node.at, defaults);
    let storage = catalog.storage.find(&storage, &storage.at, sink);
    let reliability = match (&wanted.reliability, &accelerator) {
        (None, None) => None,
        (given, accelerator) => {
            let usual = accelerator.as_ref().map_or("", |accelerator| accelerator.generation.as_str());
            let id = by_default("cluster.reliability", given.as_ref(), usual, &wanted.node.at, defaults);
            catalog.reliability.find(&id, &id.at, sink)
        }
    };
    let power = catalog.power_profiles.find("gpu-server", &wanted.node.at, sink);
    let collectives = catalog.collective_efficiency.find("nccl", &wanted.node.at, sink);
    let spares = wanted.spares.unwrap_or_else(|| defaults.or("cluster.spares", None, Share(default_share(0.03))).0);
    let topology = topology(&wanted.topology, sink);
    // What is found is checked, whatever else is missing, so that all mistakes are told at once.
    if let (Some(node), Some(fabric)) = (&node, &fabric) {
        check_adapter(node, fabric, &wanted.fabric.at, sink);
        if let Some(set) = &collectives {
            check_wires(set, node, fabric, &wanted.node, &wanted.fabric, sink);
        }
    }
    if let Some(prices) = &prices {
        let parts = [node.as_ref().map(|node| node.id.as_str()), storage.as_ref().map(|storage| storage.id.as_str())];
        check_priced(parts.into_iter().flatten().collect(), prices, &wanted.prices.at, sink);
        if let Some(fabric) = &fabric {
            check_fabric_prices(fabric, prices, &wanted.prices.at, sink);
        }
    }
    let storage = storage?;
    let units = wanted.accelerators.div_ceil(storage.accelerators_per_unit);
    Some(Cluster {
        accelerators: wanted.accelerators,
        spares,
        topology,
        storage_units: defaults.or("cluster.storage_units", wanted.storage_units, units),
        node: node?,
        accelerator: accelerator?,
        fabric: fabric?,
        site: site?,
        prices: prices?,
        storage,
        reliability: reliability?,
        power: power?,
        collectives: collectives?,
    })
}
