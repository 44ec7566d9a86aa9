//! A torus: no packets are switched, every card (or accelerator) is joined to a neighbour's, in one, two or three
//! dimensions. Between blocks of accelerators the links may go through switches of light, which join any two of them.

use super::{ByTier, FatTreeSpec, Layer, SwitchLoad, Topology, TopologyError};
use crate::scenario::TopologyKind;

/// Sides of a torus and the links along them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Nodes along each dimension, longest first; 1 beyond the last dimension.
    pub sides: [u32; 3],
    /// Links from a node to each of its two neighbours along it.
    pub links: [u32; 3],
    /// Whether its nodes are blocks of accelerators whose own links it is made of.
    pub of_accelerators: bool,
    /// Whether links go through switches of light.
    pub circuits: bool,
}

impl Torus {
    /// Dimensions that are longer than one node.
    fn dimensions(self) -> u32 {
        self.sides.iter().map(|side| u32::from(*side > 1)).sum()
    }

    /// Ports of a node that lead to a neighbour. Through switches of light all do: along a dimension of one block to its
    /// own other side.
    pub(super) fn ports_in_use(self) -> u32 {
        let used = self.sides.iter().zip(self.links).filter(|(side, _)| self.circuits || **side > 1);
        2 * used.map(|(_, links)| links).sum::<u32>()
    }

    /// Cables between so many nodes: a link has two ends, each with a cable of its own where a switch of light is between.
    pub(super) fn links(self, nodes: u32) -> u64 {
        let ends = u64::from(nodes) * u64::from(self.ports_in_use());
        if self.circuits { ends } else { ends / 2 }
    }

    /// Share of a node's ports that an all-to-all keeps busy with its own data. Half the nodes send half their data across
    /// the middle of the longest side `k`, which `2 N / k` neighbours bridge: of `2 d` ports a node's own data fill
    /// `8 / k`. Of a torus of accelerators that is theirs, not the nodes'.
    pub(super) fn all_to_all_share(self) -> f64 {
        if self.of_accelerators {
            return 1.0;
        }
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
        let each = nics / (2 * dimensions);
        let torus = Torus {
            sides: sides(spec.nodes, dimensions),
            links: [0, 1, 2].map(|dimension| if dimension < dimensions { each } else { 0 }),
            of_accelerators: false,
            circuits: false,
        };
        Ok(Self::of_torus(spec, torus, Layer::default()))
    }

    /// Counts a torus of accelerators from blocks of them, with so many links on a face along each dimension. With
    /// `circuits` ports, links go through switches of light that have so many: one for each place on a face, into which
    /// both faces of all blocks lead.
    ///
    /// # Errors
    /// [`TopologyError::TooManyBlocks`] where the switches of light have too few ports for the blocks.
    pub fn torus_of_blocks(nodes: u32, face_links: [u32; 3], circuits: Option<u32>) -> Result<Self, TopologyError> {
        let dimensions = face_links.iter().map(|links| u32::from(*links > 0)).sum::<u32>().max(1);
        let places: u32 = face_links.iter().sum();
        let radix = circuits.unwrap_or(1);
        let spec = FatTreeSpec {
            nodes,
            nics_per_node: 2 * places,
            rails: 1,
            radix: ByTier { leaf: radix, spine: radix, core: radix },
            planes: 1,
            tiers: super::Tiers::Auto,
            pod_nodes: None,
            oversubscription: super::Oversubscription::NONE,
            managers: super::Managers::default(),
            border_ports: 0,
            server_ports: 0,
        };
        spec.check()?;
        let most = radix / 2;
        if circuits.is_some() && nodes > most {
            return Err(TopologyError::TooManyBlocks { blocks: nodes, radix, most });
        }
        // The torus is longest where blocks are shortest, which is where most links leave them.
        let mut links = face_links;
        links.sort_unstable_by(|a, b| b.cmp(a));
        let torus =
            Torus { sides: sides(nodes, dimensions), links, of_accelerators: true, circuits: circuits.is_some() };
        let switches = circuits.map_or_else(Layer::default, |radix| Layer {
            radix,
            loads: vec![SwitchLoad { switches: places.into(), down: 2 * nodes, up: 0 }],
            oversubscription: 0.0,
        });
        Ok(Self::of_torus(&spec, torus, switches))
    }

    fn of_torus(spec: &FatTreeSpec, torus: Torus, leaf: Layer) -> Self {
        Self {
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
            leaf,
            spine: Layer::default(),
            core: Layer::default(),
            torus: Some(torus),
            sites: None,
        }
    }
}

/// Accelerators along each dimension of a torus of whole blocks that holds so many, longest first; of less than a block,
/// those of the part of it that is doubled along its shortest side until it holds them.
pub fn accelerator_sides(mut block: [u32; 3], accelerators: u32) -> [u32; 3] {
    // Shortest first: the most blocks stand along it, as in `torus_of_blocks`.
    block.sort_unstable_by_key(|side| if *side > 1 { *side } else { u32::MAX });
    let dimensions = block.iter().map(|side| u32::from(*side > 1)).sum::<u32>().max(1);
    let each: u32 = block.iter().product::<u32>().max(1);
    let mut found = if accelerators < each {
        let mut part = [1_u32; 3];
        while part.iter().product::<u32>() < accelerators {
            let open = part.iter_mut().zip(block).filter(|(side, most)| **side < *most);
            let Some((side, most)) = open.min_by_key(|(side, _)| **side) else { break };
            *side = (*side * 2).min(most);
        }
        part
    } else {
        let blocks = sides(accelerators.div_ceil(each), dimensions);
        [0, 1, 2].map(|dimension| blocks[dimension].saturating_mul(block[dimension]))
    };
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
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
    fn accelerators_stand_in_whole_blocks() {
        let cubes = |accelerators| accelerator_sides([4; 3], accelerators);
        assert_eq!([64, 128, 192, 320, 1_024].map(cubes).map(|sides| sides[0]), [4, 8, 12, 20, 16]);
        assert_eq!((cubes(1_024), cubes(100), cubes(4_096)), ([16, 16, 4], [8, 4, 4], [16; 3]));
        assert_eq!((cubes(1), cubes(7), cubes(16)), ([1; 3], [2; 3], [4, 2, 2]));
        // Hosts of 2 x 4: a pod of 32 is 16 x 16.
        let hosts = |accelerators| accelerator_sides([4, 2, 1], accelerators);
        assert_eq!((hosts(4), hosts(16), hosts(256)), ([2, 2, 1], [4, 4, 1], [16, 16, 1]));
    }

    #[test]
    fn a_cube_of_six_links() {
        // TPU v4: 4 x 4 x 4 chips of six links are 192 links; an all-to-all keeps 8 / 4 of 6 ports busy.
        let torus = Torus { sides: [4, 4, 4], links: [1; 3], of_accelerators: false, circuits: false };
        assert_eq!((torus.ports_in_use(), torus.links(64)), (6, 192));
        assert!((torus.all_to_all_share() - 1.0 / 3.0).abs() < 1e-12);
        let large = Torus { sides: [16, 16, 16], ..torus };
        assert!((large.all_to_all_share() - 1.0 / 12.0).abs() < 1e-12);
    }
    #[test]
    fn a_pod_of_cubes_behind_switches_of_light() {
        // TPU v4: 64 cubes of 4 x 4 x 4 chips, 96 links on the faces of each, 48 switches of 136 ports of which 128 are
        // in use (Jouppi et al., TPU v4, ISCA 2023, arXiv 2304.01433).
        let pod = Topology::torus_of_blocks(64, [16; 3], Some(136)).unwrap();
        let torus = pod.torus.unwrap();
        assert_eq!((torus.sides, torus.ports_in_use(), pod.leaf.switches()), ([4, 4, 4], 96, 48));
        assert_eq!((pod.leaf.down_links(), pod.leaf.free_ports(), torus.links(64)), (64 * 96, 48 * 8, 64 * 96));
        let error = Topology::torus_of_blocks(69, [16; 3], Some(136)).unwrap_err();
        assert_eq!(error, TopologyError::TooManyBlocks { blocks: 69, radix: 136, most: 68 });
        // Hosts of 2 x 4 chips in two dimensions, joined by copper: 4 + 2 links on each face, shared by two hosts.
        let flat = Topology::torus_of_blocks(32, [4, 2, 0], None).unwrap();
        assert_eq!((flat.torus.unwrap().links(32), flat.leaf.switches()), (32 * 12 / 2, 0));
    }
}
