//! How the ports of switches are shared out. Integers only; nothing here knows what a node is.
//!
//! One rule carries everything: every switch has the same number of parallel links to each switch above it that it is
//! wired to. Adaptive routing and ECMP need that symmetry, and it is what makes published spine counts look rounded
//! up: three DGX H100 units need 12 spines by port count, but 32 uplinks don't divide over 12, so 16 are built; four
//! DGX B300 XDR units on 144-port switches (72 uplinks) need 16 and get 18.

/// Relative slack when links times oversubscription is compared with links: covers rounding of ratios such as 1/3.
const ROUNDING: f64 = 1e-9;

/// The fewest uplinks, at most `limit`, that `down` links may share at an oversubscription.
pub(super) fn uplinks(down: u32, oversubscription: f64, limit: u32) -> Option<u32> {
    let enough = |up: u32| f64::from(up) * oversubscription * (1.0 + ROUNDING) >= f64::from(down);
    if limit == 0 || !enough(limit) {
        return None;
    }
    let (mut too_few, mut up) = (0, limit);
    while up - too_few > 1 {
        let middle = too_few + (up - too_few) / 2;
        if enough(middle) { up = middle } else { too_few = middle }
    }
    Some(up)
}

/// Ports of a leaf switch: how many nodes it takes and how many uplinks they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafSplit {
    pub(super) nodes: u32,
    pub(super) uplinks: u32,
}

/// Splits a leaf of `radix` ports between nodes, with `links` links each, and uplinks.
///
/// Without oversubscription that is half and half. Otherwise the fullest split often leaves a number of uplinks that
/// divides badly over spines (64 ports at 4:1 give 51 down and 13 up), so of the splits within a tenth of the fullest
/// the one whose uplinks have the largest power of two as factor is taken (48 down and 12 up).
pub(super) fn split_leaf(radix: u32, links: u32, oversubscription: f64) -> Option<LeafSplit> {
    let split = |nodes: u32| {
        let down = nodes * links;
        uplinks(down, oversubscription, radix - down).map(|uplinks| LeafSplit { nodes, uplinks })
    };
    let fullest = (1..=radix / links).rev().find_map(split)?;
    if fullest.uplinks == fullest.nodes * links {
        return Some(fullest);
    }
    (1..=fullest.nodes)
        .filter(|nodes| 10 * nodes >= 9 * fullest.nodes)
        .filter_map(split)
        .max_by_key(|split| (split.uplinks.trailing_zeros(), split.nodes))
}

/// Upper switches that each lower switch of a group is wired to, and the parallel links between each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wiring {
    pub(super) uppers: u32,
    pub(super) links: u32,
}

impl Wiring {
    /// Uplinks of each lower switch.
    pub(super) const fn uplinks(self) -> u32 {
        self.uppers * self.links
    }
}

/// The fewest upper switches for lower switches that need `need` uplinks and have `ports` ports for them, with at most
/// `most_links` links between a pair.
pub(super) fn wire(need: u32, ports: u32, most_links: u32) -> Option<Wiring> {
    if most_links == 0 || need > ports {
        return None;
    }
    (need.div_ceil(most_links)..=need)
        .map(|uppers| Wiring { uppers, links: need.div_ceil(uppers) })
        .find(|wiring| wiring.uplinks() <= ports)
}

/// The most links between a leaf and a spine when a spine of `radix` ports serves `leaves` leaves and keeps uplinks for
/// its own oversubscription (`None` where there is no tier above).
pub(super) fn most_links(radix: u32, leaves: u32, oversubscription: Option<f64>) -> u32 {
    let fits = |links: &u32| {
        let down = links * leaves;
        oversubscription.is_none_or(|over| uplinks(down, over, radix - down).is_some())
    };
    (1..=radix / leaves).rev().find(fits).unwrap_or(0)
}

/// Divisors of a positive number, ascending.
pub(super) fn divisors(number: u32) -> impl Iterator<Item = u32> + Clone {
    (1..=number).filter(move |divisor| number.is_multiple_of(*divisor))
}

/// Core switches over spine blocks: `groups` groups, in each the `wiring` of its spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoreWiring {
    pub(super) groups: u32,
    pub(super) wiring: Wiring,
}

impl CoreWiring {
    /// Core switches of all groups.
    pub(super) const fn switches(self) -> u32 {
        self.groups * self.wiring.uppers
    }
}

/// The fewest core switches of `radix` ports that join `blocks` blocks of `spines` spines with `need` uplinks each.
///
/// A core group takes the same share of the spines of every block, and each of them reaches each core of the group.
pub(super) fn wire_core(blocks: u32, spines: u32, need: u32, ports: u32, radix: u32) -> Option<CoreWiring> {
    if blocks > radix {
        return None;
    }
    divisors(spines)
        .filter_map(|groups| {
            let spines_in_group = blocks * (spines / groups);
            wire(need, ports, radix / spines_in_group).map(|wiring| CoreWiring { groups, wiring })
        })
        .min_by_key(|core| core.switches())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_without_oversubscription_is_half_and_half() {
        for radix in [40, 64, 100, 128, 144] {
            assert_eq!(split_leaf(radix, 1, 1.0), Some(LeafSplit { nodes: radix / 2, uplinks: radix / 2 }));
        }
        assert_eq!((uplinks(32, 1.0, 32), uplinks(32, 3.0, 32), uplinks(33, 1.0, 32)), (Some(32), Some(11), None));
        // A top-of-rack leaf takes whole nodes: 4 x 8 links of 64 ports.
        assert_eq!(split_leaf(64, 8, 1.0), Some(LeafSplit { nodes: 4, uplinks: 32 }));
    }

    #[test]
    fn oversubscribed_leaf_keeps_uplinks_that_divide() {
        assert_eq!(split_leaf(64, 1, 2.0), Some(LeafSplit { nodes: 40, uplinks: 20 }));
        assert_eq!(split_leaf(64, 1, 3.0), Some(LeafSplit { nodes: 48, uplinks: 16 }));
        assert_eq!(split_leaf(64, 1, 4.0), Some(LeafSplit { nodes: 48, uplinks: 12 }));
        assert_eq!(split_leaf(64, 1, 7.0), Some(LeafSplit { nodes: 56, uplinks: 8 }));
        assert_eq!(split_leaf(8, 9, 1.0), None);
    }

    #[test]
    fn spines_of_three_units_are_those_of_four() {
        // 24 leaves with 32 uplinks on 64 ports: at most 2 links a pair, so 16 spines. 32 leaves: 2 a pair, 16 spines.
        assert_eq!(wire(32, 32, 64 / 24), Some(Wiring { uppers: 16, links: 2 }));
        assert_eq!(wire(32, 32, 64 / 32), Some(Wiring { uppers: 16, links: 2 }));
        // 32 leaves with 72 uplinks on 144 ports: 4 a pair, 18 spines.
        assert_eq!(wire(72, 72, 144 / 32), Some(Wiring { uppers: 18, links: 4 }));
        assert_eq!(wire(32, 32, 0), None);
        assert_eq!(wire(33, 32, 4), None);
    }

    #[test]
    fn spine_keeps_ports_for_its_uplinks() {
        assert_eq!(most_links(64, 16, None), 4);
        assert_eq!(most_links(64, 16, Some(1.0)), 2);
        assert_eq!(most_links(64, 32, Some(1.0)), 1);
        assert_eq!(most_links(64, 33, Some(1.0)), 0);
        // 56 down and 8 up.
        assert_eq!(most_links(64, 56, Some(7.0)), 1);
    }

    #[test]
    fn core_of_a_full_three_tier_tree() {
        // 64 blocks of 32 spines with 32 uplinks: k^2/4 = 1,024 cores.
        assert_eq!(wire_core(64, 32, 32, 32, 64).map(CoreWiring::switches), Some(1_024));
        assert_eq!(wire_core(65, 32, 32, 32, 64), None);
    }
}
