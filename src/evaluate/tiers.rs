//! Memory tiers that are bought beside what the nodes have: how many units, what they cost, draw and take of racks.

use crate::catalog::pricebook::Driver;
use crate::catalog::{Component, Entry};
use crate::facility::{Load, Racked};
use crate::scenario::{BoundTier, Cluster};
use crate::tco::PartCost;
use crate::units::to_integer;

/// Tiers that are bought, what each is bought as, and how many whole units of that over so many of the nodes that take prompts in.
fn units(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = (&BoundTier, &Entry<Component>, u64)> {
    let accelerators = f64::from(nodes) * f64::from(cluster.nodes_of_prefill().node.accelerators);
    cluster.memory_tiers.iter().filter_map(move |tier| {
        let unit = tier.unit.as_deref()?;
        let count = to_integer::<u64>((tier.bought * accelerators / unit.capacity?).ceil());
        Some((tier, unit, count))
    })
}

/// What they cost.
pub(super) fn costs(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = PartCost> {
    units(cluster, nodes).filter_map(move |(tier, unit, count)| {
        let price = cluster.prices.price(&unit.id)?;
        Some(PartCost {
            name: PartCost::called(&format!("Memory tier, {}", tier.entry.id), &unit.id),
            per: Driver::Cluster,
            count,
            unit_price: price.usd.value,
            basis: price.evidence.basis,
        })
    })
}

/// Servers among them, and the ports of the fabric that all of those take.
pub(super) fn servers(cluster: &Cluster, nodes: u32) -> (u64, u64) {
    let ports = units(cluster, nodes).filter_map(|(_, unit, count)| Some((count, unit.fabric_ports?)));
    ports.fold((0, 0), |(servers, ports), (count, each)| (servers + count, ports + count * u64::from(each)))
}

/// What they draw; they are on whatever is read of them.
pub(super) fn loads(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = Load> {
    units(cluster, nodes).filter_map(|(_, unit, count)| Some(Load::constant(count, unit.power?)))
}

/// Those that stand in racks by themselves; modules, cards and drives go into the nodes.
pub(super) fn racked(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = Racked<'_>> {
    units(cluster, nodes).filter_map(|(_, unit, count)| {
        Some(Racked { name: &unit.id, count, power: unit.power?, units: unit.rack_units? })
    })
}
