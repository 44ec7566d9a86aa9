//! The networks beside the fabric, as they are built for a cluster: counted, with power and price.

use super::Infeasible;
use super::parts::{PartLine, add_spares, bare_line, with_cable, with_optic};
use crate::catalog::side_network::{Purpose, SideNetwork};
use crate::catalog::{PriceBook, Storage};
use crate::scenario::{BoundSideNetwork, LinkParts};
use crate::tco::PartCost;
use crate::topology::{PartKind, SideSpec, SideTree, SwitchLoad, Tier};
use crate::units::{Fraction, Usd, Watts, to_integer};

/// What plugs into the networks.
#[derive(Clone, Copy, Debug)]
pub struct Devices<'a> {
    /// Hosts of each kind (nodes, or trays where the node is a rack), and ports of one towards storage.
    pub hosts: &'a [(u64, u32)],
    /// The storage.
    pub storage: &'a Storage,
    /// Units of it.
    pub storage_units: u64,
    /// Servers that run the fabric's manager, or have memory or drives for all nodes.
    pub servers: u64,
    /// Switches of the fabric.
    pub fabric_switches: u64,
}

/// A network beside the fabric, counted and priced.
#[derive(Clone, Debug, PartialEq)]
pub struct SideBill {
    /// What it is for.
    pub purpose: Purpose,
    /// Its catalog id.
    pub id: String,
    /// Ports of all devices.
    pub ports: u64,
    /// Ports of a switch.
    pub radix: u32,
    /// Switches and links.
    pub tree: SideTree,
    /// Its parts.
    pub parts: Vec<PartLine>,
}

impl SideBill {
    /// Power of all parts in use.
    pub fn draw(&self) -> Watts {
        self.parts.iter().map(PartLine::draw).sum()
    }

    /// Price of all parts, spares among them.
    pub fn price(&self) -> Usd {
        self.parts.iter().map(PartLine::price).sum()
    }

    /// The purpose with a capital, to begin a line.
    pub const fn title(&self) -> &'static str {
        match self.purpose {
            Purpose::Storage => "Storage",
            Purpose::InBand => "In-band",
            Purpose::OutOfBand => "Out-of-band",
        }
    }

    /// What a part of it is called in cost lines.
    pub fn called(&self, part: &PartLine) -> String {
        PartCost::called(&format!("{} network, {}", self.title(), part.tier.word()), &part.id)
    }

    /// Ports of leaves that nothing is plugged into.
    pub fn free_leaf_ports(&self) -> u64 {
        let free = |load: &SwitchLoad| load.switches * u64::from(self.radix.saturating_sub(load.down + load.up));
        self.tree.leaf.iter().map(free).sum()
    }
}

/// Counts the networks. Out-of-band boards watch over the switches of all networks and the racks, whose uplinks in turn
/// end in the in-band network: `racks_with` says how many racks there are with some of the networks. Two rounds settle
/// that, because a handful of in-band switches never fills an out-of-band one.
///
/// # Errors
/// When a network's switch leaves no port for an uplink, or a part fits no rack.
pub fn side_bills(
    networks: &[BoundSideNetwork],
    devices: &Devices<'_>,
    prices: &PriceBook,
    spares: Fraction,
    racks_with: impl Fn(&[SideBill]) -> Result<u64, Infeasible>,
) -> Result<Vec<SideBill>, Infeasible> {
    let mut bills: Vec<SideBill> = Vec::new();
    for _round in 0..2 {
        for network in networks {
            let others = || bills.iter().filter(|bill| bill.purpose != network.entry.purpose);
            let racks = racks_with(&bills)?;
            let side_switches: u64 = others().map(|bill| bill.tree.switches()).sum();
            let joined = match network.entry.purpose {
                // Uplinks of the networks that have no tier above their leaves.
                Purpose::InBand => networks
                    .iter()
                    .filter_map(|other| {
                        let leaves = bills.iter().find(|bill| bill.purpose == other.entry.purpose)?;
                        Some(u64::from(other.entry.uplinks?) * leaves.tree.switches())
                    })
                    .sum(),
                _ => 0,
            };
            let switches = devices.fabric_switches + side_switches;
            let bill = bill(network, devices, Around { switches, racks, joined }, prices, spares)?;
            match bills.iter_mut().find(|old| old.purpose == bill.purpose) {
                Some(old) => *old = bill,
                None => bills.push(bill),
            }
        }
    }
    Ok(bills)
}

/// What surrounds a network and takes its ports.
#[derive(Clone, Copy)]
struct Around {
    /// Switches of the fabric and of the other networks.
    switches: u64,
    racks: u64,
    /// Uplinks of other networks that end here.
    joined: u64,
}

fn bill(
    network: &BoundSideNetwork,
    devices: &Devices<'_>,
    around: Around,
    prices: &PriceBook,
    spares: Fraction,
) -> Result<SideBill, Infeasible> {
    let entry: &SideNetwork = &network.entry;
    let per_unit = match entry.purpose {
        Purpose::Storage => storage_unit_ports(entry, devices.storage),
        _ => entry.ports.storage_unit,
    };
    let of_host = |storage_ports: u32| match entry.purpose {
        Purpose::Storage => storage_ports,
        _ => entry.ports.host,
    };
    let times = |count: u64, ports: u32| count * u64::from(ports);
    let mut boxes: Vec<(u64, u32)> = devices.hosts.iter().map(|(count, ports)| (*count, of_host(*ports))).collect();
    let hosts: u64 = boxes.iter().map(|(count, ports)| times(*count, *ports)).sum();
    let units = times(devices.storage_units, per_unit);
    let rest = times(devices.servers, entry.ports.server)
        + times(around.switches, entry.ports.switch)
        + times(around.racks, entry.ports.rack)
        + around.joined;
    let ports = hosts + units + rest;
    // Storage has full bandwidth towards the leaves above; everything else shares.
    let storage_over = if entry.purpose == Purpose::Storage { 1.0 } else { entry.oversubscription };
    let up = (hosts + rest) as f64 / entry.oversubscription + units as f64 / storage_over;
    let oversubscription = if entry.uplinks.is_some() { None } else { Some(ports as f64 / up.max(f64::MIN_POSITIVE)) };
    let spec = SideSpec { ports, radix: network.radix, oversubscription };
    let tree = SideTree::count(&spec)
        .ok_or_else(|| Infeasible::SideNetwork { id: network.entry.id.clone(), radix: network.radix })?;
    boxes.push((devices.storage_units, per_unit));
    let mut parts = lines(network, &tree, &boxes, ports, prices);
    add_spares(&mut parts, spares);
    Ok(SideBill { purpose: entry.purpose, id: network.entry.id.clone(), ports, radix: network.radix, tree, parts })
}

/// Ports of a unit of storage: as many as its rate of reading fills.
fn storage_unit_ports(entry: &SideNetwork, storage: &Storage) -> u32 {
    let filled = to_integer::<u32>((storage.read_bandwidth.value / entry.link_speed).ceil());
    filled.max(entry.ports.storage_unit)
}

/// The parts of a counted network.
fn lines(
    network: &BoundSideNetwork,
    tree: &SideTree,
    boxes: &[(u64, u32)],
    ports: u64,
    prices: &PriceBook,
) -> Vec<PartLine> {
    let mut lines = Vec::new();
    let switch = &network.switch;
    for (tier, loads) in [(Tier::Leaf, &tree.leaf), (Tier::Spine, &tree.spine), (Tier::Core, &tree.core)] {
        let count = loads.iter().map(|load| load.switches).sum();
        lines.push(PartLine {
            power: switch.power_typical,
            maximum: switch.power_max,
            rack_units: switch.rack_units,
            ..bare_line(PartKind::Switch, &switch.id, &switch.name, tier, count, prices)
        });
    }
    let (node_link, switch_link) = (&network.node_link, &network.switch_link);
    // Modules at devices, box by box; what is neither host nor storage has one a port.
    let counted: u64 = boxes.iter().map(|(count, ports)| count * u64::from(*ports)).sum();
    let at_devices = |links: u32| {
        let whole: u64 = boxes.iter().map(|(count, ports)| count * u64::from(ports.div_ceil(links))).sum();
        whole + (ports - counted)
    };
    let at_switches = |loads: &[SwitchLoad], of: fn(&SwitchLoad) -> u32, links: u32| {
        loads.iter().map(|load| load.switches * u64::from(of(load).div_ceil(links))).sum::<u64>()
    };
    let mut optic = |link: &LinkParts, upper: bool, tier: Tier, count: &dyn Fn(u32) -> u64| {
        if let Some(optic) = if upper { &link.upper } else { &link.lower } {
            let line = bare_line(PartKind::Optic, &optic.id, &optic.name, tier, count(optic.links.max(1)), prices);
            lines.push(with_optic(line, optic));
        }
    };
    optic(node_link, false, Tier::Node, &at_devices);
    optic(node_link, true, Tier::Leaf, &|links| at_switches(&tree.leaf, |load| load.down, links));
    optic(switch_link, false, Tier::Leaf, &|links| at_switches(&tree.leaf, |load| load.up, links));
    optic(switch_link, true, Tier::Spine, &|links| at_switches(&tree.spine, |load| load.down, links));
    optic(switch_link, false, Tier::Spine, &|links| at_switches(&tree.spine, |load| load.up, links));
    optic(switch_link, true, Tier::Core, &|links| at_switches(&tree.core, |load| load.down, links));
    let uplinks = match network.entry.uplinks {
        Some(each) => tree.switches() * u64::from(each),
        None => tree.switch_links,
    };
    for (cable, tier, count) in [
        (&node_link.cable, Tier::Node, ports),
        (&switch_link.cable, Tier::Leaf, uplinks),
        (&switch_link.cable, Tier::Spine, tree.core_links),
    ] {
        let line = bare_line(PartKind::Cable, &cable.id, &cable.name, tier, count, prices);
        lines.push(with_cable(line, cable));
    }
    lines.retain(|line| line.count > 0);
    lines
}
