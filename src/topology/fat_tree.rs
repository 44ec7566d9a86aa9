//! Counts the switches and links of a fat tree of one, two or three tiers.
//!
//! The rules, which reproduce the compute fabrics of the DGX SuperPOD reference architectures (`tests/topology.rs`):
//!
//! - A *unit* is as many nodes as a leaf has down ports for. Rail-optimised, it has one leaf for each NIC position
//!   (rail); with one rail it is a top-of-rack leaf. Units are filled in order and wired in full even where they are
//!   partly filled, as the DGX SuperPOD H100 reference architecture asks for (Network Fabrics, first paragraph). A
//!   cluster smaller than one unit lets rails share leaves, and one that fits a single switch has no spine.
//! - Fabric managers, and border routers towards other sites, plug into leaves and take the places of nodes, one port
//!   a rail.
//! - Links between tiers are even (see `wiring`).
//! - Two tiers are one spine group that each leaf reaches. With three tiers a *pod* has one or more spine groups which
//!   share the rails between them, so that traffic on a rail stays below the core inside a pod (the spine-leaf groups
//!   and core groups of the InfiniBand Cluster Bring-up Procedure, NVIDIA, Acronyms). Unless a pod size is asked for,
//!   pods are as large as they can be for at most a tenth more switches than the cheapest cut.
//! - Planes split every port, of NIC and switch alike, into equal slower links; each plane is a tree of its own.

use super::plan::{Plan, Unit, three_tiers, two_tiers};
use super::wiring::{LeafSplit, Wiring, divisors, split_leaf};
use super::{FatTreeSpec, Layer, SwitchLoad, Tier, Tiers, Topology, TopologyError};
use crate::scenario::TopologyKind;

impl Topology {
    /// Counts the fat tree of a specification.
    ///
    /// # Errors
    /// [`TopologyError`] where the numbers can't be met: a count of zero, more nodes than the tiers reach, a pod larger
    /// than a leaf and a spine tier can join.
    pub fn fat_tree(spec: &FatTreeSpec) -> Result<Self, TopologyError> {
        spec.check()?;
        let places = spec.places();
        let pods = places.div_ceil(spec.pod_nodes.unwrap_or(places));
        if matches!(spec.tiers, Tiers::One | Tiers::Two) && pods > 1 {
            return Err(TopologyError::PodsNeedCore { pods });
        }
        if matches!(spec.tiers, Tiers::Auto | Tiers::One) && pods == 1 {
            let ports = u64::from(spec.nodes) * u64::from(spec.nics_per_node) + u64::from(spec.other_ports());
            if ports <= u64::from(spec.radix_of_links().leaf) {
                return Ok(single_switch(spec));
            }
        }
        if spec.tiers == Tiers::One {
            return leaf_a_rail(spec);
        }
        let unit = unit(spec)?;
        let plan = match spec.tiers {
            // One tier has been built already, where it can be.
            Tiers::One | Tiers::Two => two_tiers(spec, &unit)?,
            Tiers::Three => three_tiers(spec, &unit)?,
            Tiers::Auto if pods > 1 => three_tiers(spec, &unit)?,
            Tiers::Auto => two_tiers(spec, &unit).or_else(|_| three_tiers(spec, &unit))?,
        };
        if let (Some(_), Some(spine)) = (plan.core, plan.spine) {
            let down = plan.pod_units * (unit.leaves / plan.groups) * spine.links;
            above_none(Tier::Spine, spec.oversubscription.spine, down)?;
        }
        Ok(count(spec, &unit, &plan))
    }
}

/// Everything on one leaf a plane.
fn single_switch(spec: &FatTreeSpec) -> Topology {
    let places = spec.places();
    let unit = Unit { nodes: places, leaves: 1, links: spec.nics_per_node, uplinks: 0 };
    count(spec, &unit, &single_unit(places))
}

/// A leaf for each rail that takes all nodes, and nothing above.
fn leaf_a_rail(spec: &FatTreeSpec) -> Result<Topology, TopologyError> {
    let places = spec.places();
    let links = spec.nics_per_node / spec.rails;
    let reach = u64::from(spec.radix_of_links().leaf / links);
    if u64::from(places) > reach {
        return Err(TopologyError::TooManyNodes { nodes: spec.nodes, places, tiers: 1, reach });
    }
    Ok(count(spec, &Unit { nodes: places, leaves: spec.rails, links, uplinks: 0 }, &single_unit(places)))
}

/// Nothing above the leaves of the only unit.
const fn single_unit(places: u32) -> Plan {
    Plan { pod_nodes: places, pods: 1, pod_units: 1, groups: 1, spine: None, core: None }
}

pub(super) fn unit(spec: &FatTreeSpec) -> Result<Unit, TopologyError> {
    let radix = spec.radix_of_links().leaf;
    let links = spec.nics_per_node / spec.rails;
    let LeafSplit { nodes, uplinks } =
        split_leaf(radix, links, spec.oversubscription.leaf).ok_or(TopologyError::LeafTooSmall { radix, links })?;
    above_none(Tier::Leaf, spec.oversubscription.leaf, nodes * links)?;
    // Rails share a leaf as long as all nodes of the only unit still find their ports on it.
    let sharing = divisors(spec.rails).filter(|rails| spec.places() <= nodes / rails).max().unwrap_or(1);
    let (nodes, leaves) = (nodes / sharing, spec.rails / sharing);
    Ok(Unit { nodes, leaves, links: links * sharing, uplinks })
}

/// Refuses an oversubscription that even one uplink of a switch with so many links down stays below.
pub(super) fn above_none(tier: Tier, asked: f64, down: u32) -> Result<(), TopologyError> {
    let most = f64::from(down);
    if asked > most { Err(TopologyError::FewerThanOneUplink { tier, asked, most }) } else { Ok(()) }
}

/// Turns a plan into loads of switches, over all planes.
fn count(spec: &FatTreeSpec, unit: &Unit, plan: &Plan) -> Topology {
    let radix = spec.radix_of_links();
    let planes = u64::from(spec.planes);
    let uplinks = plan.spine.map_or(0, Wiring::uplinks);
    let spine_uplinks = plan.core.map_or(0, |core| core.wiring.uplinks());
    let (mut leaf, mut spine, mut core) = (Loads::default(), Loads::default(), Loads::default());
    let (mut units, mut places) = (0, 0);
    for pod in 0..plan.pods {
        let first = pod * plan.pod_nodes;
        let filled = (spec.places() - first).min(plan.pod_nodes);
        let units_here = filled.div_ceil(unit.nodes);
        for place in (0..units_here).map(|index| first + index * unit.nodes) {
            let end = (place + unit.nodes).min(first + filled);
            places += unit.nodes.min(first + plan.pod_nodes - place);
            for position in 0..unit.leaves {
                leaf.add(planes, leaf_links(spec, unit, place..end, position), uplinks);
            }
        }
        if let Some(wiring) = plan.spine {
            let down = units_here * (unit.leaves / plan.groups) * wiring.links;
            spine.add(planes * u64::from(plan.groups * wiring.uppers), down, spine_uplinks);
        }
        units += units_here;
    }
    if let (Some(wiring), Some(above)) = (plan.spine, plan.core) {
        let spines = plan.pods * plan.groups * wiring.uppers / above.groups;
        core.add(planes * u64::from(above.switches()), spines * above.wiring.links, 0);
    }
    let full_spine = plan.spine.map_or(0, |wiring| plan.pod_units * (unit.leaves / plan.groups) * wiring.links);
    Topology {
        kind: TopologyKind::RailFatTree,
        spec: *spec,
        tiers: 1 + u32::from(plan.spine.is_some()) + u32::from(plan.core.is_some()),
        unit_nodes: unit.nodes,
        unit_leaves: unit.leaves,
        units,
        places,
        pod_nodes: plan.pod_nodes,
        pods: plan.pods,
        spine_groups: plan.groups,
        leaf: leaf.layer(radix.leaf, ratio(unit.nodes * unit.links, uplinks)),
        spine: spine.layer(radix.spine, ratio(full_spine, spine_uplinks)),
        core: core.layer(radix.core, 0.0),
        torus: None,
        sites: None,
    }
}

/// Links down from the leaf at a position of a unit whose places are `places`: nodes first, then fabric managers,
/// border routers and servers, whose ports go to one rail after the other.
pub(super) fn leaf_links(spec: &FatTreeSpec, unit: &Unit, places: std::ops::Range<u32>, position: u32) -> u32 {
    let nodes = spec.nodes.min(places.end).saturating_sub(places.start);
    let first_port = position * unit.links;
    let managers = (spec.nodes.max(places.start)..places.end).map(|place| {
        let ports = spec.other_ports() - (place - spec.nodes) * spec.nics_per_node;
        ports.saturating_sub(first_port).min(unit.links)
    });
    nodes * unit.links + managers.sum::<u32>()
}

pub(super) fn ratio(down: u32, up: u32) -> f64 {
    if up == 0 { 0.0 } else { f64::from(down) / f64::from(up) }
}

/// Loads of one tier as they are found, equal ones together.
#[derive(Default)]
pub(super) struct Loads(Vec<SwitchLoad>);

impl Loads {
    pub(super) fn add(&mut self, switches: u64, down: u32, up: u32) {
        match self.0.iter_mut().find(|load| load.down == down && load.up == up) {
            Some(load) => load.switches += switches,
            None => self.0.push(SwitchLoad { switches, down, up }),
        }
    }

    pub(super) fn layer(self, radix: u32, oversubscription: f64) -> Layer {
        Layer { radix, loads: self.0, oversubscription }
    }
}
