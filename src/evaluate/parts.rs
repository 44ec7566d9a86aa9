//! The fabric's parts, each with its name, power and price, and what is bought on top.

use crate::catalog::{Cable, Entry, Optic, PriceBook};
use crate::facility::Racked;
use crate::provenance::Basis;
use crate::scenario::{BoundFabric, LinkParts, SiteChoice};
use crate::tco::PartCost;
use crate::topology::{self, ByTier, Carrier, Part, PartKind, PartNames, Sites, Tier, Topology};
use crate::units::{Fraction, Usd, Watts, to_integer};

/// A counted part with its power and price.
#[derive(Clone, Debug, PartialEq)]
pub struct PartLine {
    /// What it is.
    pub kind: PartKind,
    /// Catalog id.
    pub id: String,
    /// The name that its maker sells it under.
    pub name: String,
    /// Tier that it belongs to.
    pub tier: Tier,
    /// How many are in use.
    pub count: u64,
    /// How many are bought on top and lie on the shelf; of a model in several tiers, all at the first.
    pub spares: u64,
    /// Power of one in use: a switch without its modules, which count for themselves.
    pub power: Watts,
    /// What one may draw at most: a switch with its modules, which then count for nothing.
    pub maximum: Watts,
    /// Height of one in the rack; 0 for what takes no place of its own.
    pub rack_units: u32,
    /// Price of one.
    pub unit_price: Usd,
    /// How the price was come by.
    pub basis: Basis,
}

impl PartLine {
    /// What the fabric's parts of its kind, tier and model are called in cost lines.
    pub fn called(&self) -> String {
        let what = match self.kind {
            PartKind::Nic => "Network cards",
            PartKind::Switch => "Switches",
            PartKind::Optic => "Optical modules",
            PartKind::Cable => "Cables",
            PartKind::ManagerServer => "Fabric managers",
        };
        PartCost::called(&format!("{what}, {}", self.tier.word()), &self.id)
    }

    /// All that are bought.
    pub const fn bought(&self) -> u64 {
        self.count + self.spares
    }

    /// Price of all that are bought.
    pub fn price(&self) -> Usd {
        self.unit_price * self.bought() as f64
    }

    /// Power of all in use.
    pub fn draw(&self) -> Watts {
        self.power * self.count as f64
    }
}

/// Parts of a kind that are in use.
pub(super) fn count_of(parts: &[PartLine], kind: PartKind) -> u64 {
    parts.iter().filter(|part| part.kind == kind).map(|part| part.count).sum()
}

/// Parts that stand in racks, by model.
pub fn racked<'a>(parts: &[&'a PartLine]) -> Vec<Racked<'a>> {
    let mut found: Vec<Racked<'_>> = Vec::new();
    for part in parts.iter().filter(|part| part.rack_units > 0) {
        if let Some(racked) = found.iter_mut().find(|racked| racked.name == part.id) {
            racked.count += part.count;
            continue;
        }
        found.push(Racked { name: &part.id, count: part.count, power: part.maximum, units: part.rack_units });
    }
    found
}

/// The parts of a network on a fabric, at all its sites and between them, each with its power, and its price by a price
/// book.
pub fn parts(
    topology: &Topology,
    fabric: &BoundFabric,
    sites: Option<&SiteChoice>,
    prices: &PriceBook,
    spares: Fraction,
) -> Vec<PartLine> {
    let bill = topology.bill(&part_names(fabric, topology.spec.planes));
    let mut lines: Vec<PartLine> = bill.parts.iter().map(|part| line(fabric, part, prices)).collect();
    let count = u64::from(topology.site_count());
    for line in &mut lines {
        line.count *= count;
    }
    if let (Some(choice), Some(sites)) = (sites, &topology.sites) {
        lines.extend(between_sites(choice, sites, topology.spec.border_ports, fabric, prices));
    }
    add_spares(&mut lines, spares);
    lines
}

/// Border routers, their modules towards the leaves and towards other sites, and the way out of the building.
fn between_sites(
    choice: &SiteChoice,
    sites: &Sites,
    border_ports: u32,
    fabric: &BoundFabric,
    prices: &PriceBook,
) -> Vec<PartLine> {
    let (link, count) = (&choice.link, u64::from(sites.count));
    let bare = |kind, id: &str, name: &str, each: u64| bare_line(kind, id, name, Tier::Site, each * count, prices);
    let links = u64::from(sites.links);
    let router = &link.switch;
    let mut lines = vec![
        PartLine {
            power: router.power_typical,
            maximum: router.power_max,
            rack_units: router.rack_units,
            ..bare(PartKind::Switch, &router.id, &router.name, sites.routers(link.radix))
        },
        with_optic(bare(PartKind::Optic, &link.optic.id, &link.optic.name, links), &link.optic),
        with_cable(bare(PartKind::Cable, &link.cable.id, &link.cable.name, links), &link.cable),
    ];
    if let Some(optic) = &fabric.node_link.lower {
        let modules = u64::from(border_ports.div_ceil(optic.links.max(1)));
        lines.push(with_optic(bare(PartKind::Optic, &optic.id, &optic.name, modules), optic));
    }
    lines
}

/// A line without spares, of a part at a price.
pub(super) fn bare_line(kind: PartKind, id: &str, name: &str, tier: Tier, count: u64, prices: &PriceBook) -> PartLine {
    // Whoever binds has checked that every part has a price.
    let price = prices.price(id);
    PartLine {
        kind,
        id: id.to_owned(),
        name: name.to_owned(),
        tier,
        count,
        spares: 0,
        power: Watts::ZERO,
        maximum: Watts::ZERO,
        rack_units: 0,
        unit_price: price.map_or(Usd::ZERO, |price| price.usd.value),
        basis: price.map_or(Basis::Assumed, |price| price.evidence.basis),
    }
}

/// Buys a share of every model of switch, module and cable on top, rounded up.
pub(super) fn add_spares(lines: &mut [PartLine], share: Fraction) {
    for index in 0..lines.len() {
        let (kind, id) = (lines[index].kind, lines[index].id.clone());
        let on_the_shelf = matches!(kind, PartKind::Switch | PartKind::Optic | PartKind::Cable);
        let same = |line: &&PartLine| line.kind == kind && line.id == id;
        if !on_the_shelf || lines[..index].iter().any(|line| same(&line)) {
            continue;
        }
        let in_use: u64 = lines.iter().filter(same).map(|line| line.count).sum();
        let spares = to_integer::<u64>((in_use as f64 * share.get()).ceil());
        lines[index].spares = spares;
    }
}

fn line(fabric: &BoundFabric, part: &Part, prices: &PriceBook) -> PartLine {
    let links = [&fabric.node_link, &fabric.switch_link];
    let bare = |name: &str| bare_line(part.kind, &part.id, name, part.tier, part.count, prices);
    match part.kind {
        PartKind::Nic => PartLine { power: fabric.nic.power, maximum: fabric.nic.power, ..bare(&fabric.nic.name) },
        PartKind::Switch => {
            let found = fabric.switches.iter().find(|switch| switch.id == part.id);
            found.map_or_else(
                || bare(""),
                |switch| PartLine {
                    power: switch.power_typical,
                    maximum: switch.power_max,
                    rack_units: switch.rack_units,
                    ..bare(&switch.name)
                },
            )
        }
        PartKind::Optic => {
            let mut optics = links.into_iter().flat_map(|link| [&link.upper, &link.lower]).flatten();
            optics
                .find(|optic| optic.id == part.id)
                .map_or_else(|| bare(""), |optic| with_optic(bare(&optic.name), optic))
        }
        PartKind::Cable => {
            let cable = links.into_iter().map(|link| &link.cable).find(|cable| cable.id == part.id);
            cable.map_or_else(|| bare(""), |cable| with_cable(bare(&cable.name), cable))
        }
        PartKind::ManagerServer => fabric.manager.as_ref().map_or_else(
            || bare(""),
            |server| {
                let power = server.power.unwrap_or_default();
                let rack_units = server.rack_units.unwrap_or(0);
                PartLine { power, maximum: power, rack_units, ..bare(&server.name) }
            },
        ),
    }
}

/// A module's line: at a switch its maximum is part of the switch's.
pub(super) fn with_optic(line: PartLine, optic: &Entry<Optic>) -> PartLine {
    let maximum = if line.tier == Tier::Node { optic.power } else { Watts::ZERO };
    PartLine { power: optic.power, maximum, ..line }
}

/// A cable's line.
pub(super) fn with_cable(line: PartLine, cable: &Entry<Cable>) -> PartLine {
    let power = cable.power_per_end * 2.0;
    PartLine { power, maximum: power, ..line }
}

/// The ids that the bill of materials counts.
fn part_names(fabric: &BoundFabric, planes: u32) -> PartNames {
    let [leaf, spine, core] = &fabric.switches;
    // A module and a cable carry the planes of a port together.
    let link = |link: &LinkParts| {
        let carrier = |optic: &Option<std::sync::Arc<Entry<Optic>>>| {
            optic.as_ref().map(|optic| Carrier { id: optic.id.clone(), links: optic.links * planes })
        };
        topology::LinkParts {
            cable: Carrier { id: link.cable.id.clone(), links: planes },
            upper: carrier(&link.upper),
            lower: carrier(&link.lower),
        }
    };
    PartNames {
        nic: fabric.nic.id.clone(),
        switch: ByTier { leaf: leaf.id.clone(), spine: spine.id.clone(), core: core.id.clone() },
        node_link: link(&fabric.node_link),
        switch_link: link(&fabric.switch_link),
        manager: fabric.manager.as_ref().map(|server| server.id.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spares_are_pooled_by_model() {
        let of = |kind, id: &str, tier, count| {
            bare_line(kind, id, "", tier, count, &PriceBook { owner: vec![], prices: vec![], lines: vec![] })
        };
        let mut lines = [
            of(PartKind::Nic, "nic", Tier::Node, 256),
            of(PartKind::Switch, "box", Tier::Leaf, 32),
            of(PartKind::Switch, "box", Tier::Spine, 16),
            of(PartKind::Switch, "chassis", Tier::Core, 2),
        ];
        add_spares(&mut lines, Fraction::new(0.02).unwrap());
        // 48 boxes at 2% are one; the chassis has one of its own; cards come with nodes.
        assert_eq!(lines.map(|line| line.spares), [0, 1, 0, 1]);
    }
}
