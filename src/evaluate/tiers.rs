//! Memory tiers that are bought beside what the nodes have: how many units, what they cost, draw and take of racks.

use crate::catalog::pricebook::Driver;
use crate::catalog::{Component, Entry};
use crate::facility::{Load, Racked};
use crate::scenario::{BoundTier, Cluster};
use crate::tco::PartCost;
use crate::units::{Bytes, Usd, to_integer};

/// Bytes of a gigabyte, as memory and drives are priced by.
const GIGABYTE: f64 = 1e9;

/// A tier that keeps what is served, and what is bought for it.
#[derive(Clone, Copy, Debug)]
pub struct TierBought<'a> {
    /// The tier.
    pub tier: &'a BoundTier,
    /// Its parts; none where all of it comes with the nodes.
    pub parts: Option<TierParts<'a>>,
}

/// Parts of a tier, bought.
#[derive(Clone, Copy, Debug)]
pub struct TierParts<'a> {
    /// What they are.
    pub unit: &'a Entry<Component>,
    /// How many.
    pub count: u64,
    /// Of one.
    pub price: Usd,
    /// Of a gigabyte of them.
    pub per_gigabyte: Usd,
}

/// All tiers, with what is bought over so many of the nodes that take prompts in.
pub(super) fn bought(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = TierBought<'_>> {
    cluster.memory_tiers.iter().map(move |tier| {
        let parts = count(cluster, nodes, tier).and_then(|(unit, count)| {
            let price = cluster.prices.price(&unit.id)?.usd.value;
            let per_gigabyte = price * (Bytes::new(GIGABYTE) / unit.capacity?);
            Some(TierParts { unit, count, price, per_gigabyte })
        });
        TierBought { tier, parts }
    })
}

/// Tiers that are bought, what each is bought as, and how many whole units of that over so many of the nodes that take prompts in.
fn units(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = (&BoundTier, &Entry<Component>, u64)> {
    cluster.memory_tiers.iter().filter_map(move |tier| {
        let (unit, count) = count(cluster, nodes, tier)?;
        Some((tier, unit, count))
    })
}

/// What a tier is bought as, in whole units at each accelerator or in each host that shares them; servers are shared by all.
fn count<'a>(cluster: &Cluster, nodes: u32, tier: &'a BoundTier) -> Option<(&'a Entry<Component>, u64)> {
    let node = cluster.nodes_of_prefill().node;
    let all = f64::from(nodes) * f64::from(node.accelerators);
    let sharing = tier.entry.medium.sharing(node.accelerators_per_tray).map_or(all, f64::from);
    let parts = tier.parts(tier.bought, sharing)? * (all / sharing);
    Some((tier.unit.as_deref()?, to_integer::<u64>(parts)))
}

/// What they cost.
pub(super) fn costs(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = PartCost> {
    units(cluster, nodes).filter_map(move |(tier, unit, count)| {
        let price = cluster.prices.price(&unit.id)?;
        Some(PartCost {
            name: called(tier, unit),
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

/// What units of a tier are called in cost lines.
pub(super) fn called(tier: &BoundTier, unit: &Entry<Component>) -> String {
    PartCost::called(&format!("Memory tier, {}", tier.entry.id), &unit.id)
}

/// What they draw; they are on whatever is read of them.
pub(super) fn loads(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = (&BoundTier, &Entry<Component>, Load)> {
    units(cluster, nodes).filter_map(|(tier, unit, count)| Some((tier, unit, Load::constant(count, unit.power?))))
}

/// Those that stand in racks by themselves; modules, cards and drives go into the nodes.
pub(super) fn racked(cluster: &Cluster, nodes: u32) -> impl Iterator<Item = Racked<'_>> {
    units(cluster, nodes).filter_map(|(_, unit, count)| {
        Some(Racked { name: &unit.id, count, power: unit.power?, units: unit.rack_units? })
    })
}
