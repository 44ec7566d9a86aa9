//! Counts the switches and links of a fat tree of one, two or three tiers.
//!
//! The rules, which reproduce the compute fabrics of the DGX SuperPOD reference architectures (`tests/topology.rs`):
//!
//! - A *unit* is as many nodes as a leaf has down ports for. Rail-optimised, it has one leaf for each NIC position
//!   (rail); with one rail it is a top-of-rack leaf. Units are filled in order and wired in full even where they are
//!   partly filled, as the DGX SuperPOD H100 reference architecture asks for (Network Fabrics, first paragraph). A
//!   cluster smaller than one unit lets rails share leaves, and one that fits a single switch has no spine.
//! - Fabric managers plug into leaves and take the places of nodes, one port a rail.
//! - Links between tiers are even (see `wiring`).
//! - Two tiers are one spine group that each leaf reaches. With three tiers a *pod* has one or more spine groups which
//!   share the rails between them, so that traffic on a rail stays below the core inside a pod (the spine-leaf groups
//!   and core groups of the InfiniBand Cluster Bring-up Procedure, NVIDIA, Acronyms). Unless a pod size is asked for,
//!   pods are as large as they can be for at most a tenth more switches than the cheapest cut.
//! - Planes split every port, of NIC and switch alike, into equal slower links; each plane is a tree of its own.

use super::wiring::{CoreWiring, LeafSplit, Wiring, divisors, most_links, split_leaf, uplinks, wire, wire_core};
use super::{ByTier, Layer, SwitchLoad, Tier, Topology, TopologyError};
use crate::scenario::TopologyKind;

/// The most nodes that are counted, far above any cluster announced.
const MOST_NODES: u32 = 10_000_000;
/// The most ports of a switch or NICs of a node that are counted; the largest modular chassis has 2,048 (CS9500).
const MOST_PORTS: u32 = 4_096;
/// The most planes that a port is split into.
const MOST_PLANES: u32 = 8;

/// How many tiers of switches to build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiers {
    /// As few as reach all nodes; one where all fit a single switch.
    #[default]
    Auto,
    /// One switch for all, or one for each rail with nothing between them but the nodes.
    One,
    /// Leaf and spine.
    Two,
    /// Leaf, spine and core.
    Three,
}

/// Bandwidth towards the nodes over bandwidth away from them; 1 is non-blocking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oversubscription {
    /// At the leaf switches (leaf to spine).
    pub leaf: f64,
    /// At the spine switches (spine to core); without meaning below three tiers.
    pub spine: f64,
}

impl Oversubscription {
    /// Full bandwidth everywhere.
    pub const NONE: Self = Self { leaf: 1.0, spine: 1.0 };
}

/// Servers that run the fabric manager and are plugged into the fabric itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// Number of servers.
    pub servers: u32,
    /// Fabric ports of each.
    pub ports_per_server: u32,
}

/// A fat tree in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FatTreeSpec {
    /// Nodes to connect, spares included.
    pub nodes: u32,
    /// NICs of a node in this fabric, one port each.
    pub nics_per_node: u32,
    /// Leaf switches that the NICs of a node are spread over: the NICs of a node (of a tray, for a rack-scale node) when
    /// rail-optimised, 1 for top-of-rack.
    pub rails: u32,
    /// Ports of a switch at the speed of a NIC.
    pub radix: ByTier<u32>,
    /// Planes that each port is split into; 1 leaves ports whole.
    pub planes: u32,
    /// Tiers of switches.
    pub tiers: Tiers,
    /// Nodes of a pod; `None` leaves that to the rules. More than one pod makes a third tier.
    pub pod_nodes: Option<u32>,
    /// Oversubscription, met or bettered.
    pub oversubscription: Oversubscription,
    /// Fabric managers.
    pub managers: Managers,
}

impl FatTreeSpec {
    /// Ports that the fabric managers take.
    pub fn manager_ports(&self) -> u32 {
        self.managers.servers * self.managers.ports_per_server
    }

    /// Places of nodes that the fabric managers take.
    pub fn manager_places(&self) -> u32 {
        self.manager_ports().div_ceil(self.nics_per_node)
    }

    pub(super) fn places(&self) -> u32 {
        self.nodes + self.manager_places()
    }

    pub(super) fn radix_of_links(&self) -> ByTier<u32> {
        let ByTier { leaf, spine, core } = self.radix;
        ByTier { leaf: leaf * self.planes, spine: spine * self.planes, core: core * self.planes }
    }

    pub(super) fn check(&self) -> Result<(), TopologyError> {
        let pod_nodes = self.pod_nodes.unwrap_or(self.nodes);
        let counts = [
            ("nodes", self.nodes, MOST_NODES),
            ("nodes of a pod", pod_nodes, MOST_NODES),
            ("NICs a node", self.nics_per_node, MOST_PORTS),
            ("rails", self.rails, MOST_PORTS),
            ("planes", self.planes, MOST_PLANES),
            ("ports of a leaf switch", self.radix.leaf, MOST_PORTS),
            ("ports of a spine switch", self.radix.spine, MOST_PORTS),
            ("ports of a core switch", self.radix.core, MOST_PORTS),
        ];
        if let Some((what, value, most)) = counts.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            return Err(TopologyError::Count { what, value, most });
        }
        let managers =
            [("fabric managers", self.managers.servers), ("ports of a manager", self.managers.ports_per_server)];
        if let Some((what, value)) = managers.into_iter().find(|(_, value)| *value > MOST_PORTS) {
            return Err(TopologyError::Count { what, value, most: MOST_PORTS });
        }
        let ratios = [self.oversubscription.leaf, self.oversubscription.spine];
        if let Some(value) = ratios.into_iter().find(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return Err(TopologyError::Oversubscription { value });
        }
        if !self.nics_per_node.is_multiple_of(self.rails) {
            return Err(TopologyError::Rails { nics: self.nics_per_node, rails: self.rails });
        }
        Ok(())
    }
}

/// The leaf tier of one plane: nodes of a unit, its leaves, and the uplinks that a leaf needs.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) nodes: u32,
    pub(super) leaves: u32,
    /// Links of one node to one leaf.
    pub(super) links: u32,
    pub(super) uplinks: u32,
}

impl Unit {
    /// Ports of a leaf that are free for uplinks.
    pub(super) fn ports_up(&self, radix: u32) -> u32 {
        radix - self.nodes * self.links
    }
}

/// How units are joined, in one plane.
#[derive(Clone, Copy)]
struct Plan {
    pod_nodes: u32,
    pods: u32,
    pod_units: u32,
    groups: u32,
    spine: Option<Wiring>,
    core: Option<CoreWiring>,
}

impl Plan {
    fn switches_above_leaf(&self) -> u64 {
        let spines = self.spine.map_or(0, |wiring| self.pods * self.groups * wiring.uppers);
        u64::from(spines) + u64::from(self.core.map_or(0, CoreWiring::switches))
    }
}

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
            let ports = u64::from(spec.nodes) * u64::from(spec.nics_per_node) + u64::from(spec.manager_ports());
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

fn two_tiers(spec: &FatTreeSpec, unit: &Unit) -> Result<Plan, TopologyError> {
    let radix = spec.radix_of_links();
    let places = spec.places();
    let pod_units = places.div_ceil(unit.nodes);
    let reach = u64::from(radix.spine / unit.leaves) * u64::from(unit.nodes);
    let too_many = TopologyError::TooManyNodes { nodes: spec.nodes, places, tiers: 2, reach };
    let leaves = pod_units.checked_mul(unit.leaves).filter(|leaves| *leaves <= radix.spine).ok_or(too_many)?;
    let wiring = wire(unit.uplinks, unit.ports_up(radix.leaf), most_links(radix.spine, leaves, None));
    let spine = Some(wiring.ok_or(too_many)?);
    Ok(Plan { pod_nodes: pod_units * unit.nodes, pods: 1, pod_units, groups: 1, spine, core: None })
}

fn three_tiers(spec: &FatTreeSpec, unit: &Unit) -> Result<Plan, TopologyError> {
    let places = spec.places();
    let most_units = (1..=spec.radix_of_links().spine)
        .rev()
        .find(|units| most_links(spec.radix_of_links().spine, *units, Some(spec.oversubscription.spine)) > 0)
        .unwrap_or(0);
    if let Some(pod_nodes) = spec.pod_nodes {
        let pod_nodes = pod_nodes.min(places);
        let pod_units = pod_nodes.div_ceil(unit.nodes);
        if pod_units > most_units {
            let reach = u64::from(most_units) * u64::from(unit.nodes);
            return Err(TopologyError::PodTooLarge { pod_nodes, reach });
        }
        let pods = places.div_ceil(pod_nodes);
        let cheapest =
            pod_plans(spec, unit, pods, pod_nodes).min_by_key(|plan| (plan.switches_above_leaf(), plan.groups));
        return cheapest.ok_or_else(|| too_many_for_three(spec, unit, pod_units..=pod_units));
    }
    let plans: Vec<Plan> = (1..=most_units.min(places.div_ceil(unit.nodes)))
        .flat_map(|units| {
            let pod_nodes = units * unit.nodes;
            pod_plans(spec, unit, places.div_ceil(pod_nodes), pod_nodes)
        })
        .collect();
    let fewest = plans.iter().map(Plan::switches_above_leaf).min().unwrap_or(0);
    plans
        .into_iter()
        .filter(|plan| 10 * plan.switches_above_leaf() <= 11 * fewest)
        .min_by_key(|plan| (plan.pods, plan.switches_above_leaf(), plan.groups))
        .ok_or_else(|| too_many_for_three(spec, unit, 1..=most_units))
}

/// The ways to join `pods` pods of `pod_nodes` nodes, by the number of spine groups in a pod.
fn pod_plans(spec: &FatTreeSpec, unit: &Unit, pods: u32, pod_nodes: u32) -> impl Iterator<Item = Plan> {
    let (unit, radix, over) = (*unit, spec.radix_of_links(), spec.oversubscription.spine);
    let pod_units = pod_nodes.div_ceil(unit.nodes);
    divisors(unit.leaves).filter_map(move |groups| {
        let leaves = pod_units * (unit.leaves / groups);
        let links = most_links(radix.spine, leaves, Some(over));
        let spine = wire(unit.uplinks, unit.ports_up(radix.leaf), links)?;
        let ports_up = radix.spine - leaves * spine.links;
        let need = uplinks(leaves * spine.links, over, ports_up)?;
        let core = wire_core(pods.checked_mul(groups)?, spine.uppers, need, ports_up, radix.core)?;
        Some(Plan { pod_nodes, pods, pod_units, groups, spine: Some(spine), core: Some(core) })
    })
}

/// The most nodes that three tiers reach with pods of so many units: each core takes one link of each spine block.
fn too_many_for_three(spec: &FatTreeSpec, unit: &Unit, pod_units: std::ops::RangeInclusive<u32>) -> TopologyError {
    let radix = spec.radix_of_links();
    let reach_with = |units: u32| {
        let fits = |groups: &u32| {
            let leaves = units * (unit.leaves / groups);
            leaves <= radix.spine && most_links(radix.spine, leaves, Some(spec.oversubscription.spine)) > 0
        };
        let pods = divisors(unit.leaves).find(fits).map_or(0, |groups| radix.core / groups);
        u64::from(pods) * u64::from(units.saturating_mul(unit.nodes).min(spec.pod_nodes.unwrap_or(u32::MAX)))
    };
    let reach = pod_units.map(reach_with).max().unwrap_or(0);
    TopologyError::TooManyNodes { nodes: spec.nodes, places: spec.places(), tiers: 3, reach }
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
    }
}

/// Links down from the leaf at a position of a unit whose places are `places`: nodes first, then fabric managers, whose
/// ports go to one rail after the other.
pub(super) fn leaf_links(spec: &FatTreeSpec, unit: &Unit, places: std::ops::Range<u32>, position: u32) -> u32 {
    let nodes = spec.nodes.min(places.end).saturating_sub(places.start);
    let first_port = position * unit.links;
    let managers = (spec.nodes.max(places.start)..places.end).map(|place| {
        let ports = spec.manager_ports() - (place - spec.nodes) * spec.nics_per_node;
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
