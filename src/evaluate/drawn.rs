//! What draws power: nodes at work and to spare, storage, memory tiers, and the parts of networks.

use super::bought::{NodesBought, taking_in};
use super::parts::PartLine;
use super::side::SideBill;
use super::tiers;
use crate::catalog::{Component, Entry, Node};
use crate::facility::Load;
use crate::scenario::{BoundTier, Cluster, Finance, NodeGroup};
use crate::tco::PartCost;
use crate::topology::PartKind;
use crate::units::Fraction;

/// Parts of one kind that draw power, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerLine {
    /// What they are, and their id in the catalog.
    pub name: String,
    /// The entries of the catalog that say what one draws, as (folder, id).
    pub entries: Vec<(&'static str, String)>,
    /// How many there are, and what one draws.
    pub load: Load,
}

/// What a load is of.
enum Drawing<'a> {
    Nodes { what: &'static str, node: &'a Entry<Node> },
    Storage,
    Tier(&'a BoundTier, &'a Entry<Component>),
    Part(&'a PartLine),
    SidePart(&'a SideBill, &'a PartLine),
}

impl Drawing<'_> {
    fn named(&self, cluster: &Cluster, load: Load) -> PowerLine {
        let of_part = |part: &PartLine| vec![(folder(part.kind), part.id.clone())];
        let (name, entries) = match *self {
            Self::Nodes { what, node } => {
                let nic = &cluster.fabric.nic.id;
                (PartCost::called(what, &node.id), vec![("nodes", node.id.clone()), ("nics", nic.clone())])
            }
            Self::Storage => {
                let id = &cluster.storage.id;
                (PartCost::called("Storage units", id), vec![("storage", id.clone())])
            }
            Self::Tier(tier, unit) => (tiers::called(tier, unit), vec![("components", unit.id.clone())]),
            Self::Part(part) => (part.called(), of_part(part)),
            Self::SidePart(network, part) => (network.called(part), of_part(part)),
        };
        PowerLine { name, entries, load }
    }
}

/// Where the catalog has a kind of part.
const fn folder(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Nic => "nics",
        PartKind::Switch => "switches",
        PartKind::Optic => "optics",
        PartKind::Cable => "cables",
        PartKind::ManagerServer => "components",
    }
}

/// Parts in use.
const fn load_of(part: &PartLine) -> Load {
    Load { count: part.count, maximum: part.maximum, average: part.power }
}

/// How many nodes of a kind there are of some use.
type Count = fn(&NodesBought) -> u32;

/// Hands on every load. A switch's maximum includes its modules, so theirs counts on average only.
fn each_load<'a>(
    cluster: &'a Cluster,
    kinds: &[NodesBought],
    (fabric, side): (&'a [PartLine], &'a [SideBill]),
    finance: &Finance,
    mut take: impl FnMut(Drawing<'a>, Load),
) {
    // Whoever reads a node checks that the cards' power is a part of the node's.
    let power = |node: &Node| {
        let nics = f64::from(node.nic_slots.count) * cluster.fabric.nic.power;
        node.max_power - node.nic_slots.included_power + nics
    };
    let at_work = |bought: &NodesBought| bought.at_work;
    let spare = |bought: &NodesBought| bought.spare;
    let of_nodes: [(_, Count, _); 2] = [
        (["Nodes at work", "Nodes for prefill at work"], at_work, finance.utilisation),
        (["Nodes to spare", "Nodes for prefill to spare"], spare, Fraction::ZERO),
    ];
    for (names, count, used) in of_nodes {
        for ((NodeGroup { node, .. }, bought), what) in cluster.kinds_of_nodes().zip(kinds).zip(names) {
            let load = Load::nodes(count(bought).into(), power(node), &cluster.power, used);
            take(Drawing::Nodes { what, node }, load);
        }
    }
    take(Drawing::Storage, Load::constant(u64::from(cluster.storage_units), cluster.storage.power));
    for (tier, unit, load) in tiers::loads(cluster, taking_in(kinds).all()) {
        take(Drawing::Tier(tier, unit), load);
    }
    // Network cards are part of the nodes' power.
    for part in fabric.iter().filter(|part| part.kind != PartKind::Nic) {
        take(Drawing::Part(part), load_of(part));
    }
    for network in side {
        for part in network.parts.iter().filter(|part| part.kind != PartKind::Nic) {
            take(Drawing::SidePart(network, part), load_of(part));
        }
    }
}

/// What draws power: by kind the nodes at work, then those to spare, then all else.
pub(super) fn loads(
    cluster: &Cluster,
    kinds: &[NodesBought],
    networks: (&[PartLine], &[SideBill]),
    finance: &Finance,
) -> Vec<Load> {
    let mut loads = Vec::new();
    each_load(cluster, kinds, networks, finance, |_, load| loads.push(load));
    loads
}

/// The same by name.
pub(super) fn lines(
    cluster: &Cluster,
    kinds: &[NodesBought],
    networks: (&[PartLine], &[SideBill]),
    finance: &Finance,
) -> Vec<PowerLine> {
    let mut lines = Vec::new();
    each_load(cluster, kinds, networks, finance, |of, load| lines.push(of.named(cluster, load)));
    lines
}

/// The fabric's own parts in use, network cards among them.
pub(super) fn lines_of_fabric(cluster: &Cluster, parts: &[PartLine]) -> Vec<PowerLine> {
    parts.iter().map(|part| Drawing::Part(part).named(cluster, load_of(part))).collect()
}

/// The same of the networks beside it.
pub(super) fn lines_beside(cluster: &Cluster, side: &[SideBill]) -> Vec<PowerLine> {
    let of = |network| move |part| Drawing::SidePart(network, part).named(cluster, load_of(part));
    side.iter().flat_map(|network| network.parts.iter().map(of(network))).collect()
}
