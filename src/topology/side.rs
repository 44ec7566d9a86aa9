//! Counts the switches and links of a network beside the fabric: to storage, or for management.
//!
//! Such networks are simpler than the fabric: devices plug into leaves wherever there is room, in two paths where a device
//! has two ports. Leaves are split as those of an oversubscribed fat tree are, and wired to their spines by the same rule
//! (see `wiring`). What fits two leaves needs no spine: the pair is joined by its uplinks. More leaves than a spine has
//! ports for take a third tier, so that every device still reaches every other; what even that cannot hold is several
//! networks of equal size side by side.

use super::wiring::{Wiring, split_leaf, uplinks, wire};
use super::{ByTier, FatTreeSpec, Managers, Oversubscription, SwitchLoad, Tiers, Topology, TopologyError};

/// A network beside the fabric in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideSpec {
    /// Ports of all devices.
    pub ports: u64,
    /// Ports of a switch for devices, and for uplinks where they are alike.
    pub radix: u32,
    /// Bandwidth of devices over that of the uplinks they share; none where nothing is above the leaves.
    pub oversubscription: Option<f64>,
}

/// A counted network beside the fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideTree {
    /// Networks of that kind side by side.
    pub networks: u64,
    /// Leaves by their links.
    pub leaf: Vec<SwitchLoad>,
    /// Spines by their links.
    pub spine: Vec<SwitchLoad>,
    /// Cores by their links, where there is a third tier.
    pub core: Vec<SwitchLoad>,
    /// Links between leaves and spines, or between the two leaves of a pair.
    pub switch_links: u64,
    /// Links between spines and cores.
    pub core_links: u64,
}

impl SideTree {
    /// Counts a network; `None` where a switch has no port left for an uplink.
    pub fn count(spec: &SideSpec) -> Option<Self> {
        let SideSpec { ports, radix, oversubscription } = *spec;
        if ports == 0 {
            return Some(Self::default());
        }
        let Some(over) = oversubscription else {
            let leaves = ports.div_ceil(u64::from(radix));
            return Some(Self { networks: 1, leaf: even(ports, leaves, 0), ..Self::default() });
        };
        let split = split_leaf(radix, 1, over)?;
        if ports <= 2 * u64::from(split.nodes) {
            let each = u32::try_from(ports.div_ceil(2)).ok()?;
            let between = uplinks(each, over, radix - each)?;
            let switch_links = u64::from(between);
            return Some(Self { networks: 1, leaf: even(ports, 2, between), switch_links, ..Self::default() });
        }
        if ports > u64::from(split.nodes) * u64::from(radix) {
            return Self::of_three_tiers(ports, radix, over);
        }
        let leaves = ports.div_ceil(u64::from(split.nodes));
        let most = radix / u32::try_from(leaves).ok()?;
        let wiring = in_two_paths(wire(split.uplinks, radix - split.nodes, most)?, radix - split.nodes);
        let down = u32::try_from(leaves).ok()? * wiring.links;
        Some(Self {
            networks: 1,
            leaf: even(ports, leaves, wiring.uplinks()),
            spine: vec![SwitchLoad { switches: u64::from(wiring.uppers), down, up: 0 }],
            switch_links: leaves * u64::from(wiring.uplinks()),
            ..Self::default()
        })
    }

    /// A fat tree of three tiers, oversubscribed at its leaves; as many of them as the ports need.
    fn of_three_tiers(ports: u64, radix: u32, over: f64) -> Option<Self> {
        let tree = |networks: u64| {
            let nodes = u32::try_from(ports.div_ceil(networks)).unwrap_or(u32::MAX);
            Topology::build(
                crate::scenario::TopologyKind::TorFatTree,
                &FatTreeSpec {
                    nodes,
                    nics_per_node: 1,
                    rails: 1,
                    radix: ByTier { leaf: radix, spine: radix, core: radix },
                    planes: 1,
                    tiers: Tiers::Three,
                    pod_nodes: None,
                    oversubscription: Oversubscription { leaf: over, spine: 1.0 },
                    managers: Managers::default(),
                    border_ports: 0,
                    server_ports: 0,
                },
            )
        };
        let (networks, one) = match tree(1) {
            Ok(one) => (1, one),
            Err(TopologyError::TooManyNodes { reach, .. }) => {
                let networks = ports.div_ceil(reach.max(1));
                (networks, tree(networks).ok()?)
            }
            Err(_) => return None,
        };
        let times = |loads: &[SwitchLoad]| {
            loads.iter().map(|load| SwitchLoad { switches: load.switches * networks, ..*load }).collect()
        };
        Some(Self {
            networks,
            leaf: times(&one.leaf.loads),
            spine: times(&one.spine.loads),
            core: times(&one.core.loads),
            switch_links: networks * one.leaf.up_links(),
            core_links: networks * one.spine.up_links(),
        })
    }

    /// Switches of all tiers.
    pub fn switches(&self) -> u64 {
        self.leaf.iter().chain(&self.spine).chain(&self.core).map(|load| load.switches).sum()
    }
}

/// A second spine beside a lone one, where leaves have the ports.
fn in_two_paths(wiring: Wiring, ports: u32) -> Wiring {
    let two = Wiring { uppers: 2, links: wiring.uplinks().div_ceil(2) };
    if wiring.uppers == 1 && two.uplinks() <= ports { two } else { wiring }
}

/// Devices' ports spread over leaves as evenly as they go.
fn even(ports: u64, leaves: u64, up: u32) -> Vec<SwitchLoad> {
    let (each, more) = (ports / leaves, ports % leaves);
    let load = |switches: u64, down: u64| SwitchLoad { switches, down: u32::try_from(down).unwrap_or(u32::MAX), up };
    [load(more, each + 1), load(leaves - more, each)].into_iter().filter(|load| load.switches > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ports: u64, radix: u32, over: f64) -> SideTree {
        SideTree::count(&SideSpec { ports, radix, oversubscription: Some(over) }).unwrap()
    }

    fn switches(loads: &[SwitchLoad]) -> u64 {
        loads.iter().map(|load| load.switches).sum()
    }

    #[test]
    fn storage_of_128_dgx_b200() {
        // 256 ports at 4:3 and 12 at 1:1 need 204 uplinks: leaves of 36 down and 28 up, 8 of them over 4 spines.
        let tree = count(268, 64, 268.0 / 204.0);
        assert_eq!((switches(&tree.leaf), switches(&tree.spine), tree.switch_links), (8, 4, 8 * 28));
        assert_eq!(tree.networks, 1);
    }

    #[test]
    fn few_ports_are_a_pair_of_leaves() {
        let tree = count(20, 64, 4.0);
        assert_eq!((switches(&tree.leaf), tree.spine.len(), tree.switch_links), (2, 0, 3));
        assert_eq!(
            SideTree::count(&SideSpec { ports: 0, radix: 64, oversubscription: None }),
            Some(SideTree::default())
        );
        // One port: both switches are there, the other one for the second path that may come.
        assert_eq!(switches(&count(1, 64, 1.0).leaf), 2);
    }

    #[test]
    fn spines_come_in_two_at_least() {
        // Three leaves of 48 with 12 uplinks would fit one spine.
        let tree = count(110, 64, 4.0);
        assert_eq!((switches(&tree.leaf), switches(&tree.spine)), (3, 2));
        assert_eq!(tree.spine[0].down, 3 * 6);
    }

    #[test]
    fn more_leaves_than_spines_have_ports_take_a_third_tier() {
        // Spines of 64 ports join 64 leaves, of 36 devices at most.
        let (two, three) = (count(64 * 30, 64, 4.0 / 3.0), count(64 * 36 + 1, 64, 4.0 / 3.0));
        assert_eq!((two.networks, two.core.len(), two.core_links), (1, 0, 0));
        assert!(three.networks == 1 && three.core_links > 0);
        let links = |loads: &[SwitchLoad], of: fn(&SwitchLoad) -> u32| {
            loads.iter().map(|load| load.switches * u64::from(of(load))).sum::<u64>()
        };
        assert_eq!(links(&three.leaf, |load| load.down), 64 * 36 + 1);
        assert_eq!(links(&three.spine, |load| load.up), links(&three.core, |load| load.down));
        assert!(switches(&three.core) > 0 && three.switches() > two.switches());
        // Beyond three tiers: several.
        assert!(count(2_500_000, 64, 4.0 / 3.0).networks > 1);
    }

    #[test]
    fn without_spines_leaves_are_filled() {
        let tree = SideTree::count(&SideSpec { ports: 739, radix: 48, oversubscription: None }).unwrap();
        assert_eq!((switches(&tree.leaf), tree.switch_links), (16, 0));
    }

    #[test]
    fn no_switch_carries_more_than_its_ports() {
        for radix in [32, 48, 64, 128, 256] {
            for over in [1.0, 4.0 / 3.0, 2.0, 4.0, 7.0] {
                for ports in (1..3_000).step_by(37).chain([2_500_000]) {
                    let tree = count(ports, radix, over);
                    for load in tree.leaf.iter().chain(&tree.spine).chain(&tree.core) {
                        assert!(load.down + load.up <= radix, "{ports} on {radix} at {over}: {load:?}");
                    }
                    let up: u64 = tree.leaf.iter().map(|load| load.switches * u64::from(load.up)).sum();
                    let down: u64 = tree.spine.iter().map(|load| load.switches * u64::from(load.down)).sum();
                    assert!(tree.spine.is_empty() || up == down, "{ports} on {radix} at {over}");
                }
            }
        }
    }
}
