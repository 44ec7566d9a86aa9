//! How the units of a fat tree are joined: which pods, spine groups and cores are the cheapest that reach all nodes.

use super::wiring::{CoreWiring, Wiring, divisors, most_links, uplinks, wire, wire_core};
use super::{FatTreeSpec, TopologyError};

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
pub(super) struct Plan {
    pub(super) pod_nodes: u32,
    pub(super) pods: u32,
    pub(super) pod_units: u32,
    pub(super) groups: u32,
    pub(super) spine: Option<Wiring>,
    pub(super) core: Option<CoreWiring>,
}

impl Plan {
    fn switches_above_leaf(&self) -> u64 {
        let spines = self.spine.map_or(0, |wiring| self.pods * self.groups * wiring.uppers);
        u64::from(spines) + u64::from(self.core.map_or(0, CoreWiring::switches))
    }
}

/// Leaves under spines that each of them reaches.
pub(super) fn two_tiers(spec: &FatTreeSpec, unit: &Unit) -> Result<Plan, TopologyError> {
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

/// Pods under cores: of the pod size asked for, or of the largest for at most a tenth more switches than the cheapest cut.
pub(super) fn three_tiers(spec: &FatTreeSpec, unit: &Unit) -> Result<Plan, TopologyError> {
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
