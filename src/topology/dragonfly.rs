//! Dragonfly+: groups of leaves and spines, each a two-tier fat tree; the spines' free half is joined directly to the
//! spines of other groups, every group with every other by the same number of links (Shpiner et al., Dragonfly+: low cost
//! topology for scaling datacenters, HiPINEB 2017). No core switches.

use super::fat_tree::{Loads, above_none, leaf_links, ratio, unit};
use super::wiring::{most_links, uplinks, wire};
use super::{FatTreeSpec, Layer, Tier, Topology, TopologyError};
use crate::scenario::TopologyKind;

impl Topology {
    /// Counts a dragonfly+ of as few groups as the spines allow, all of the same size. A group is a pod in the
    /// specification; the oversubscription at the spine is that of the links between groups.
    ///
    /// # Errors
    /// [`TopologyError`] where a group can't be built, or has fewer links than there are other groups.
    pub(super) fn dragonfly_plus(spec: &FatTreeSpec) -> Result<Self, TopologyError> {
        spec.check()?;
        let unit = unit(spec)?;
        let radix = spec.radix_of_links();
        let places = spec.places();
        let units = places.div_ceil(unit.nodes);
        let over = spec.oversubscription.spine;
        let too_large = |reach| TopologyError::PodTooLarge { pod_nodes: spec.pod_nodes.unwrap_or(unit.nodes), reach };
        let most_units = (1..=radix.spine / unit.leaves)
            .rev()
            .find(|units| most_links(radix.spine, units * unit.leaves, Some(over)) > 0)
            .ok_or_else(|| too_large(0))?;
        let wanted = spec.pod_nodes.map_or(most_units, |pod| pod.div_ceil(unit.nodes));
        if wanted > most_units {
            return Err(too_large(u64::from(most_units) * u64::from(unit.nodes)));
        }
        let groups = units.div_ceil(wanted);
        if groups == 1 {
            return Self::fat_tree(spec);
        }
        let group_units = units.div_ceil(groups);
        let leaves = group_units * unit.leaves;
        let links = most_links(radix.spine, leaves, Some(over));
        let wiring = wire(unit.uplinks, unit.ports_up(radix.leaf), links).ok_or_else(|| too_large(0))?;
        let down = leaves * wiring.links;
        above_none(Tier::Spine, over, down)?;
        let up = uplinks(down, over, radix.spine - down).unwrap_or(radix.spine - down);
        let pair = wiring.uppers * up / (groups - 1);
        if pair == 0 {
            let reach = u64::from(wiring.uppers * up + 1) * u64::from(group_units * unit.nodes);
            return Err(TopologyError::TooManyNodes { nodes: spec.nodes, places, tiers: 3, reach });
        }
        let (mut leaf, mut spine) = (Loads::default(), Loads::default());
        let planes = u64::from(spec.planes);
        for first in (0..groups * group_units).map(|index| index * unit.nodes) {
            let taken = first.min(places)..(first + unit.nodes).min(places);
            for position in 0..unit.leaves {
                leaf.add(planes, leaf_links(spec, &unit, taken.clone(), position), wiring.uplinks());
            }
        }
        // The links of a group are dealt out to its spines one after the other.
        let used = pair * (groups - 1);
        let (each, extra) = (used / wiring.uppers, used % wiring.uppers);
        for (spines, up) in [(extra, each + 1), (wiring.uppers - extra, each)] {
            if spines > 0 {
                spine.add(planes * u64::from(groups * spines), down, up);
            }
        }
        let node_links = unit.nodes * unit.links;
        Ok(Self {
            kind: TopologyKind::DragonflyPlus,
            spec: *spec,
            tiers: 3,
            unit_nodes: unit.nodes,
            unit_leaves: unit.leaves,
            units: groups * group_units,
            places: groups * group_units * unit.nodes,
            pod_nodes: group_units * unit.nodes,
            pods: groups,
            spine_groups: 1,
            leaf: leaf.layer(radix.leaf, ratio(node_links, wiring.uplinks())),
            spine: spine.layer(radix.spine, f64::from(down * wiring.uppers) / f64::from(used)),
            core: Layer::default(),
            torus: None,
            sites: None,
        })
    }
}
