//! A torus: no switches, every card is joined to one of a neighbour, in one, two or three dimensions.

use super::{FatTreeSpec, Layer, Topology, TopologyError};
use crate::scenario::TopologyKind;

/// Sides of a torus and the links along them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Nodes along each dimension, longest first; 1 beyond the last dimension.
    pub sides: [u32; 3],
    /// Links from a node to each neighbour.
    pub links_per_direction: u32,
}

impl Torus {
    /// Dimensions that are longer than one node.
    fn dimensions(self) -> u32 {
        self.sides.iter().map(|side| u32::from(*side > 1)).sum()
    }

    /// Ports of a node that lead to a neighbour.
    pub(super) fn ports_in_use(self) -> u32 {
        2 * self.links_per_direction * self.dimensions()
    }

    /// Links between so many nodes: each has two ends.
    pub(super) fn links(self, nodes: u32) -> u64 {
        u64::from(nodes) * u64::from(self.ports_in_use()) / 2
    }

    /// Share of a node's ports that an all-to-all keeps busy with its own data. Half the nodes send half their data across
    /// the middle of the longest side `k`, which `2 N / k` neighbours bridge: of `2 d` ports a node's own data fill
    /// `8 / k`.
    pub(super) fn all_to_all_share(self) -> f64 {
        let ports = 2.0 * f64::from(self.dimensions().max(1));
        (8.0 / f64::from(self.sides[0].max(1)) / ports).min(1.0)
    }
}

impl Topology {
    /// Counts a torus: as many dimensions as the cards of a node divide over, sides as equal as the nodes' factors allow.
    ///
    /// # Errors
    /// [`TopologyError::Directions`] where the cards of a node are an odd number.
    pub(super) fn torus(spec: &FatTreeSpec) -> Result<Self, TopologyError> {
        spec.check()?;
        let nics = spec.nics_per_node;
        let dimensions = (1..=3).rev().find(|dimensions| nics.is_multiple_of(2 * dimensions));
        let dimensions = dimensions.ok_or(TopologyError::Directions { nics })?;
        let torus = Torus { sides: sides(spec.nodes, dimensions), links_per_direction: nics / (2 * dimensions) };
        Ok(Self {
            kind: TopologyKind::Torus,
            spec: *spec,
            tiers: 0,
            unit_nodes: spec.nodes,
            unit_leaves: 0,
            units: 1,
            places: spec.nodes + spec.manager_places(),
            pod_nodes: spec.nodes,
            pods: 1,
            spine_groups: 0,
            leaf: Layer::default(),
            spine: Layer::default(),
            core: Layer::default(),
            torus: Some(torus),
            sites: None,
        })
    }
}

/// Factors of a number, longest first, the longest as short as can be.
fn sides(nodes: u32, dimensions: u32) -> [u32; 3] {
    let best = |number: u32, longest: fn(u32, u32) -> u32| {
        (1..=number)
            .take_while(|side| side * side <= number)
            .filter(|side| number.is_multiple_of(*side))
            .max()
            .map_or((number, 1), |side| (longest(side, number / side), side))
    };
    let mut found = match dimensions {
        1 => [nodes, 1, 1],
        2 => {
            let (long, short) = best(nodes, u32::max);
            [long, short, 1]
        }
        _ => (1..=nodes)
            .take_while(|side| side.saturating_pow(3) <= nodes)
            .filter(|side| nodes.is_multiple_of(*side))
            .map(|side| {
                let (long, middle) = best(nodes / side, u32::max);
                [long, middle, side]
            })
            .min_by_key(|sides| *sides.iter().max().unwrap_or(&0))
            .unwrap_or([nodes, 1, 1]),
    };
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_as_equal_as_factors_allow() {
        assert_eq!(sides(64, 3), [4, 4, 4]);
        assert_eq!(sides(4_096, 3), [16, 16, 16]);
        assert_eq!(sides(256, 2), [16, 16, 1]);
        assert_eq!(sides(48, 3), [4, 4, 3]);
        assert_eq!(sides(7, 2), [7, 1, 1]);
    }

    #[test]
    fn a_cube_of_six_links() {
        // TPU v4: 4 x 4 x 4 chips of six links are 192 links; an all-to-all keeps 8 / 4 of 6 ports busy.
        let torus = Torus { sides: [4, 4, 4], links_per_direction: 1 };
        assert_eq!((torus.ports_in_use(), torus.links(64)), (6, 192));
        assert!((torus.all_to_all_share() - 1.0 / 3.0).abs() < 1e-12);
        let large = Torus { sides: [16, 16, 16], links_per_direction: 1 };
        assert!((large.all_to_all_share() - 1.0 / 12.0).abs() < 1e-12);
    }
}
