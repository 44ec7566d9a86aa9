//! How long cables are: nodes stand in racks, racks in rows, and every cable runs along the rows, up to the tray and down
//! again.

use super::{Tier, Topology};
use crate::scenario::TopologyKind;
use crate::units::Meters;

/// Where racks stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RackLayout {
    /// Nodes (trays, of a rack-scale node) in a rack.
    pub nodes_per_rack: u32,
    /// Racks in a row.
    pub racks_per_row: u32,
    /// From the middle of a rack to that of the next.
    pub pitch: Meters,
    /// From row to row.
    pub row_pitch: Meters,
    /// Cable within the two racks: up to the tray and down again.
    pub drop: Meters,
}

impl RackLayout {
    /// Racks of 600 mm in rows of 16, rows 3 m apart over hot and cold aisles in turn, 2 m in each rack.
    pub const fn usual(nodes_per_rack: u32) -> Self {
        Self {
            nodes_per_rack,
            racks_per_row: 16,
            pitch: Meters::new(0.6),
            row_pitch: Meters::new(3.0),
            drop: Meters::new(4.0),
        }
    }
}

/// Lengths that cables are sold in, in metres.
pub const CLASSES: [u32; 11] = [3, 5, 10, 15, 20, 30, 50, 100, 500, 1_000, 2_000];

/// Cables of one length class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthClass {
    /// Tier of the lower end.
    pub tier: Tier,
    /// The class: the cable is at most so many metres long; the longest class takes all that are longer.
    pub meters: u32,
    /// Cables.
    pub count: u64,
}

impl Topology {
    /// Cables by length class. The leaves of a unit stand in the middle of its racks, the spines of a pod in the middle
    /// of the pod, the cores in the middle of everything; what rounding leaves over counts at the tier's longest class.
    pub fn cable_lengths(&self, layout: &RackLayout) -> Vec<LengthClass> {
        let mut found = Vec::new();
        let per_rack = layout.nodes_per_rack.max(1);
        let rack = |node: u32| node / per_rack;
        let middle = |first: u32, nodes: u32| rack(first + nodes / 2);
        let nodes = self.spec.nodes;
        let (unit, pod) = (self.unit_nodes.max(1), self.pod_nodes.max(1));
        let units = nodes.div_ceil(unit);
        let extent = |first: u32, size: u32| size.min(nodes.saturating_sub(first)).max(1);
        let home = |node: u32| {
            let first = node / unit * unit;
            middle(first, extent(first, unit))
        };
        let pod_home = |node: u32| {
            let first = node / pod * pod;
            middle(first, extent(first, pod))
        };
        if let Some(torus) = self.torus {
            if !torus.circuits {
                let neighbours = layout.between(0, torus.sides[0] / per_rack);
                push(&mut found, Tier::Node, neighbours, self.cables(Tier::Node));
                return found;
            }
            // Switches of light stand in the middle of everything.
            for node in 0..nodes {
                push(&mut found, Tier::Node, layout.between(rack(node), middle(0, nodes)), torus.ports_in_use().into());
            }
            found.sort_by_key(|class| class.meters);
            return found;
        }
        for node in 0..nodes {
            let length = layout.between(rack(node), home(node));
            push(&mut found, Tier::Node, length, u64::from(self.spec.nics_per_node));
        }
        let share = |total: u64, parts: u32| total / u64::from(parts.max(1));
        for index in 0..units {
            let first = index * unit;
            push(
                &mut found,
                Tier::Leaf,
                layout.between(home(first), pod_home(first)),
                share(self.cables(Tier::Leaf), units),
            );
        }
        for index in 0..self.pods {
            let first = index * pod;
            let to = if self.kind == TopologyKind::DragonflyPlus {
                pod_home((index + self.pods / 2) % self.pods * pod)
            } else {
                middle(0, nodes)
            };
            let length = layout.between(pod_home(first.min(nodes - 1)), to);
            push(&mut found, Tier::Spine, length, share(self.cables(Tier::Spine), self.pods));
        }
        for tier in [Tier::Node, Tier::Leaf, Tier::Spine] {
            let counted: u64 = found.iter().filter(|class| class.tier == tier).map(|class| class.count).sum();
            let rest = self.cables(tier).saturating_sub(counted);
            match found.iter_mut().filter(|class| class.tier == tier).max_by_key(|class| class.meters) {
                Some(longest) => longest.count += rest,
                None if rest > 0 => found.push(LengthClass { tier, meters: CLASSES[0], count: rest }),
                None => {}
            }
        }
        found.sort_by_key(|class| (class.tier, class.meters));
        found
    }
}

impl RackLayout {
    /// Cable from one rack to another.
    fn between(&self, from: u32, to: u32) -> Meters {
        let row = self.racks_per_row.max(1);
        let along = f64::from((from % row).abs_diff(to % row));
        let across = f64::from((from / row).abs_diff(to / row));
        self.pitch * along + self.row_pitch * across + self.drop
    }
}

fn push(found: &mut Vec<LengthClass>, tier: Tier, length: Meters, count: u64) {
    if count == 0 {
        return;
    }
    let meters = length / Meters::new(1.0);
    let fits = CLASSES.iter().copied().find(|class| f64::from(*class) >= meters - 1e-9);
    let meters = fits.unwrap_or(CLASSES[CLASSES.len() - 1]);
    match found.iter_mut().find(|class| class.tier == tier && class.meters == meters) {
        Some(class) => class.count += count,
        None => found.push(LengthClass { tier, meters, count }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FatTreeSpec, Managers, Tiers};
    use super::*;

    #[test]
    fn one_unit_in_eight_racks() {
        let spec = FatTreeSpec { tiers: Tiers::Two, ..FatTreeSpec::eight_rails(32) };
        let topology = Topology::fat_tree(&spec).unwrap();
        // Racks 0 to 7 of four nodes; leaves in rack 4. Distances 4 x 0.6 + 4 = 6.4 m at most, 4 m in the rack itself
        // and 4.6 m beside it: 3 racks below 5 m.
        let classes = topology.cable_lengths(&RackLayout::usual(4));
        let class = |tier, meters, count| LengthClass { tier, meters, count };
        assert_eq!(classes, [class(Tier::Node, 5, 3 * 32), class(Tier::Node, 10, 5 * 32), class(Tier::Leaf, 5, 256)]);
    }

    #[test]
    fn every_cable_has_a_length() {
        for kind in TopologyKind::ALL {
            for nodes in [40, 300, 1_100] {
                let planes = if *kind == TopologyKind::MultiPlane { 2 } else { 1 };
                let managers = Managers { servers: 2, ports_per_server: 2 };
                let spec = FatTreeSpec { planes, managers, ..FatTreeSpec::eight_rails(nodes) };
                let topology = Topology::build(*kind, &spec).unwrap();
                let classes = topology.cable_lengths(&RackLayout::usual(4));
                for tier in [Tier::Node, Tier::Leaf, Tier::Spine] {
                    let counted: u64 = classes.iter().filter(|class| class.tier == tier).map(|class| class.count).sum();
                    assert_eq!(counted, topology.cables(tier), "{kind}, {nodes} nodes, {tier:?}");
                }
            }
        }
    }
}
