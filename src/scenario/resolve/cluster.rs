//! The cluster: its node, fabric, site, prices and storage, found in the catalog and held against each other.

use std::sync::Arc;

use super::cache::BoundTier;
use super::fits::{
    check_adapter, check_fabric_prices, check_kind, check_priced, check_site_prices, check_wires, topology,
};
use super::network::{BoundFabric, TopologyChoice};
use super::node_groups::{self, Beside, PrefillNodes};
use super::side_networks::{self, BoundSideNetwork, check_side_prices};
use super::{Defaults, Share, by_default, default_share};
use crate::catalog::collective_efficiency::CollectiveEfficiency;
use crate::catalog::{
    Accelerator, Catalog, Entry, NetworkReliability, Node, PowerProfile, PriceBook, Reliability, Site, Storage,
};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{PowerBudget, ScenarioFile, Tenancy};
use crate::units::Fraction;

/// Share of switches, modules and cables bought on top, where a scenario does not say: a judgement. Vendors ask for 1 to
/// 5% of modules on the shelf; one switch of each model is the least.
pub const FABRIC_SPARES: f64 = 0.02;

/// What is built, where, and at which prices.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The node.
    pub node: Arc<Entry<Node>>,
    /// Its accelerator.
    pub accelerator: Arc<Entry<Accelerator>>,
    /// Accelerators at work, those of prefill's own nodes among them.
    pub accelerators: u32,
    /// Nodes of another kind that prefill has to itself, where there are any.
    pub prefill: Option<PrefillNodes>,
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
    /// Networks beside the fabric.
    pub networks: Vec<BoundSideNetwork>,
    /// Share of the networks' switches, modules and cables bought on top.
    pub fabric_spares: Fraction,
    /// Power that the facility may be connected with, where it is given.
    pub power_budget: Option<PowerBudget>,
    /// How often things fail.
    pub reliability: Arc<Entry<Reliability>>,
    /// How often parts of networks fail.
    pub network_reliability: Arc<Entry<NetworkReliability>>,
    /// Who has it.
    pub tenancy: Tenancy,
    /// How power follows load.
    pub power: Arc<Entry<PowerProfile>>,
    /// What collectives reach.
    pub collectives: Arc<Entry<CollectiveEfficiency>>,
    /// Memory tiers that keep what is served, nearest first.
    pub memory_tiers: Vec<BoundTier>,
}

impl Cluster {
    /// The entries of the catalog that a cluster has one of each, by their folder.
    pub fn entries(&self) -> [(&'static str, &str); 8] {
        [
            ("fabrics", &self.fabric.entry.id),
            ("efficiency/collectives", &self.collectives.id),
            ("sites", &self.site.id),
            ("prices", &self.prices.id),
            ("storage", &self.storage.id),
            ("power", &self.power.id),
            ("reliability", &self.reliability.id),
            ("network_reliability", &self.network_reliability.id),
        ]
        .map(|(folder, id)| (folder, id.as_str()))
    }
}

/// Storage for checkpoints, of which none is taken where nothing trains.
fn storage(
    file: &ScenarioFile,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Arc<Entry<Storage>>> {
    let wanted = &file.cluster;
    let storage = by_default("cluster.storage", wanted.storage.as_ref(), "parallel-flash", &wanted.node.at, defaults);
    // A number that was refused when it was read is none too.
    if wanted.storage_units == Some(0) && file.training.is_some() && sink.is_empty() {
        let message = "`cluster.storage_units` is 0, and checkpoints of training are stored";
        let hint = "leave it out for as many as the accelerators need; `training.checkpoint` says how they get there";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.storage_units_at, "none").hint(hint));
    }
    if &*storage == NO_STORAGE && catalog.storage.get(NO_STORAGE).is_none() {
        let message = "a cluster without storage for checkpoints has none of its units";
        let hint = "write `storage_units = 0` instead, where nothing trains";
        sink.push(Diagnostic::new(Code::UnknownId, message).at(&storage.at, "none").hint(hint));
        None
    } else {
        catalog.storage.find(&storage, &storage.at, sink)
    }
}

/// The failure rates of generations that have no set of their own.
const UNPUBLISHED_FAILURES: &str = "other-accelerators";

/// What is written for no storage by mistake for none of its units.
const NO_STORAGE: &str = "none";

/// The key of how many units of storage there are.
pub(super) const STORAGE_UNITS: &str = "cluster.storage_units";

/// Units of storage for so many accelerators, where a scenario does not say.
pub(super) fn usual_storage_units(storage: &Storage, accelerators: u32) -> u32 {
    u32::try_from(storage.units_for(accelerators.into())).unwrap_or(u32::MAX)
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
    let storage = storage(file, catalog, defaults, sink);
    let reliability = match (&wanted.reliability, &accelerator) {
        (None, None) => None,
        (given, accelerator) => {
            let generation = accelerator.as_ref().map_or("", |accelerator| accelerator.generation.as_str());
            let known = catalog.reliability.get(generation).is_some();
            let usual = if known { generation } else { UNPUBLISHED_FAILURES };
            let id = by_default("cluster.reliability", given.as_ref(), usual, &wanted.node.at, defaults);
            catalog.reliability.find(&id, &id.at, sink)
        }
    };
    let network_reliability = by_default(
        "cluster.network_reliability",
        wanted.network_reliability.as_ref(),
        "usual",
        &wanted.node.at,
        defaults,
    );
    let network_reliability = catalog.network_reliability.find(&network_reliability, &network_reliability.at, sink);
    let power = catalog.power_profiles.find("gpu-server", &wanted.node.at, sink);
    let collectives = catalog.collective_efficiency.find("nccl", &wanted.node.at, sink);
    let spares = wanted.spares.unwrap_or_else(|| defaults.or("cluster.spares", None, Share(default_share(0.03))).0);
    let topology = topology(&wanted.topology, catalog, defaults, sink);
    let fabric_spares = wanted
        .fabric_spares
        .unwrap_or_else(|| defaults.or("cluster.fabric_spares", None, Share(default_share(FABRIC_SPARES))).0);
    let networks = node
        .as_ref()
        .and_then(|node| side_networks::bind(&wanted.networks, node, &wanted.node.at, catalog, defaults, sink));
    // What is found is checked, whatever else is missing, so that all mistakes are told at once.
    if let (Some(node), Some(fabric)) = (&node, &fabric) {
        check_adapter(node, fabric, (&wanted.fabric.at, "this fabric"), sink);
        if let Some(topology) = &topology {
            check_kind(fabric, topology, &wanted.fabric.at, sink);
        }
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
        if let Some(topology) = &topology {
            check_site_prices(topology, prices, &wanted.prices.at, sink);
        }
        check_side_prices(networks.as_deref().unwrap_or_default(), prices, &wanted.prices.at, sink);
    }
    let prefill = wanted.prefill.as_ref().map(|wanted| {
        let beside = Beside {
            node: node.as_deref(),
            fabric: fabric.as_ref(),
            topology: topology.as_ref(),
            networks: networks.as_deref().unwrap_or_default(),
            prices: prices.as_deref(),
            collectives: collectives.as_deref().map(|entry| &entry.part),
        };
        node_groups::bind(file, wanted, &beside, catalog, sink)
    });
    let storage = storage?;
    let units = usual_storage_units(&storage, wanted.accelerators);
    Some(Cluster {
        accelerators: wanted.accelerators,
        prefill: match prefill {
            Some(found) => Some(found?),
            None => None,
        },
        spares,
        topology: topology?,
        storage_units: defaults.or(STORAGE_UNITS, wanted.storage_units, units),
        node: node?,
        accelerator: accelerator?,
        fabric: fabric?,
        site: site?,
        prices: prices?,
        storage,
        networks: networks?,
        fabric_spares,
        power_budget: wanted.power,
        reliability: reliability?,
        network_reliability: network_reliability?,
        tenancy: defaults.or("cluster.tenancy", wanted.tenancy, Tenancy::Dedicated),
        power: power?,
        collectives: collectives?,
        memory_tiers: Vec::new(),
    })
}
