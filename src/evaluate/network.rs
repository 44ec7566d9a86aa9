//! The network that joins nodes, and how accelerators at work lie on them.

use super::Infeasible;
use crate::catalog::Node;
use crate::catalog::fabric::Transport;
use crate::scenario::{BoundFabric, GroupShare, NodeGroup, SiteChoice, TierCount, TopologyChoice, common};
use crate::topology::{ByTier, FatTreeSpec, Managers, Oversubscription, Sites, Tier, Tiers, Topology};
use crate::units::{Bandwidth, Meters, to_integer};

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
        Self::filling(accelerators, node, GroupShare::All)
    }

    /// The same of nodes of one kind in a cluster.
    ///
    /// # Errors
    /// As [`Occupancy::new`].
    pub(super) fn of(group: NodeGroup<'_>) -> Result<Self, Infeasible> {
        Self::filling(group.accelerators, group.node, group.share)
    }

    fn filling(accelerators: u32, node: &Node, share: GroupShare) -> Result<Self, Infeasible> {
        let (per_node, per_tray) = (node.accelerators, node.accelerators_per_tray);
        let nodes = accelerators.div_ceil(per_node);
        let each = accelerators / nodes.max(1);
        let whole = each == per_node || (per_tray < per_node && each > 0 && each.is_multiple_of(per_tray));
        if !whole || each * nodes != accelerators {
            return Err(Infeasible::PartNode { accelerators, per_node, share });
        }
        Ok(Self { nodes, each })
    }
}

/// The network of so many nodes on a fabric. Of a node that is a rack, its trays (hosts) are what leaves count; of several
/// sites it is the network of one.
///
/// # Errors
/// When a pod or a site is no number of whole nodes, or the network cannot be built.
pub fn network(node: &Node, fabric: &BoundFabric, choice: &TopologyChoice, nodes: u32) -> Result<Topology, Infeasible> {
    network_of(&[(node, nodes)], 0, fabric, choice)
}

/// The network of nodes of several kinds, so many of each.
///
/// Hosts of all kinds are joined to the same leaves. Where they have different numbers of cards, each counts as parts of as
/// many cards as divide all: a host of eight beside hosts of four is two. Servers of memory or drives take so many
/// ports of leaves, as many at each site.
///
/// # Errors
/// As [`network`].
pub(super) fn network_of(
    kinds: &[(&Node, u32)],
    server_ports: u64,
    fabric: &BoundFabric,
    choice: &TopologyChoice,
) -> Result<Topology, Infeasible> {
    let nics = kinds.iter().fold(0, |nics, (node, _)| common(node.cards_of_host(), nics)).max(1);
    // Parts of that many cards of one node.
    let parts = |node: &Node| node.hosts().saturating_mul(node.cards_of_host() / nics);
    let pod_nodes = match (choice.pod, kinds) {
        // Whoever binds has checked that a pod has as many parts whichever kind its nodes are of.
        (Some(pod), [(node, _), ..]) if pod.is_multiple_of(node.accelerators) => {
            Some((pod / node.accelerators).saturating_mul(parts(node)))
        }
        (Some(pod), [(node, _), ..]) => return Err(Infeasible::PartPod { pod, per_node: node.accelerators }),
        _ => None,
    };
    let count = choice.sites.as_ref().map_or(1, |sites| sites.count);
    let mut here: u32 = 0;
    for &(node, nodes) in kinds {
        if !nodes.is_multiple_of(count) {
            return Err(Infeasible::PartSite { nodes, sites: count });
        }
        here = here.saturating_add((nodes / count).saturating_mul(parts(node)));
    }
    let sites = choice.sites.as_ref().map(|sites| {
        let inside = fabric.entry.link_speed * (f64::from(here) * f64::from(nics));
        Sites::new(count, sites.distance, inside, sites.bandwidth, sites.link.entry.link_speed)
    });
    // What the long-haul links carry comes in by ports of leaves.
    let border = sites.map_or(0.0, |sites| {
        let link = choice.sites.as_ref().map_or(Bandwidth::ZERO, |sites| sites.link.entry.link_speed);
        (link * f64::from(sites.links) / fabric.entry.link_speed).ceil()
    });
    let border_ports = to_integer::<u32>(border);
    // Whoever binds has checked that a torus of accelerators is of one kind.
    let torus = |(node, nodes): &(&Node, u32)| Some((node.torus?, *nodes));
    if let Some((block, nodes)) = kinds.first().and_then(torus).filter(|_| fabric.entry.transport == Transport::Ici) {
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
        server_ports: u32::try_from(server_ports.div_ceil(count.into())).unwrap_or(u32::MAX),
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

/// Fibre pairs between sites, end to end.
pub fn fibre(choice: Option<&SiteChoice>, topology: &Topology) -> Meters {
    let between = choice.zip(topology.sites.as_ref());
    between.map_or(Meters::ZERO, |(choice, sites)| sites.fibre(choice.link.entry.links_of_a_pair))
}
