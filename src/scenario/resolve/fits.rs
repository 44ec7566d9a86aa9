//! Whether the parts of a cluster fit each other, and the figures of its topology the kind of network.

use super::network::{BoundFabric, MANAGER_PART, SiteChoice, TopologyChoice, USUAL_LONG_HAUL};
use super::{Defaults, by_default};
use crate::catalog::collective_efficiency::{CollectiveEfficiency, UNMEASURED};
use crate::catalog::fabric::Transport;
use crate::catalog::{Catalog, Entry, Node, PriceBook, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{SitesFile, TierCount, TopologyFile, TopologyKind};
use crate::units::Quantity;

/// How the fabric is to be built, by the figures that the scenario gives.
pub(super) fn topology(
    wanted: &TopologyFile,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<TopologyChoice> {
    // One figure a tier boundary, lowest first: node to leaf, leaf to spine, spine to core.
    let ratio = |index: usize| wanted.oversubscription.get(index).copied().unwrap_or(1.0);
    if ratio(0) > 1.0 {
        let message =
            format!("an oversubscription of {} from node to leaf: a node's ports go to the leaf as they are", ratio(0));
        sink.push(
            Diagnostic::new(Code::OutOfRange, message)
                .at(&wanted.at, "here")
                .hint("the first figure is 1; the second is leaf to spine, the third spine to core"),
        );
    }
    let bind = |sites: &SitesFile, defaults: &mut Defaults| {
        let key = "cluster.topology.sites.link";
        let link = by_default(key, sites.link.as_ref(), USUAL_LONG_HAUL, &sites.at, defaults);
        SiteChoice::bind((sites.count, sites.distance, sites.bandwidth), &link, &sites.at, catalog, sink)
    };
    let sites = match &wanted.sites {
        Some(sites) => Some(bind(sites, defaults)?),
        None => None,
    };
    let choice = TopologyChoice {
        kind: wanted.kind,
        tiers: wanted.tiers,
        pod: wanted.pod,
        planes: wanted.planes.unwrap_or(if wanted.kind == TopologyKind::MultiPlane { 2 } else { 1 }),
        leaf_oversubscription: ratio(1),
        spine_oversubscription: ratio(2),
        sites,
    };
    for message in choice.mistakes() {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "this topology").hint("leave it out"));
    }
    Some(choice)
}

/// Links between neighbours make a torus and nothing else.
pub fn check_kind(fabric: &BoundFabric, choice: &TopologyChoice, at: &Span, sink: &Sink) {
    if fabric.entry.transport == Transport::Ici && choice.kind != TopologyKind::Torus {
        let message = format!("`{}` joins neighbours: it cannot be a {}", fabric.entry.id, choice.kind);
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "this fabric").hint("its topology is `torus`"));
    }
}

impl TopologyChoice {
    /// Figures that say nothing of a network of this kind, or that no port can have, each with why.
    pub fn mistakes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let oversubscribed = self.leaf_oversubscription > 1.0 || self.spine_oversubscription > 1.0;
        if self.kind == TopologyKind::Torus {
            for (given, key) in [
                (self.tiers != TierCount::Auto, "tiers"),
                (self.pod.is_some(), "pod"),
                (self.planes > 1, "planes"),
                (oversubscribed, "oversubscription"),
                (self.sites.is_some(), "sites"),
            ] {
                if given {
                    found.push(format!("a torus has no switches, so `{key}` says nothing"));
                }
            }
        }
        if self.kind != TopologyKind::Torus {
            let above = |tier: &str, tiers: &str| {
                format!("nothing is above the {tier} switches of {tiers}, so their oversubscription says nothing")
            };
            match self.tiers {
                TierCount::Fixed(1) if oversubscribed => found.push(above("leaf", "one tier")),
                TierCount::Fixed(2) if self.spine_oversubscription > 1.0 => found.push(above("spine", "two tiers")),
                _ => {}
            }
        }
        if self.kind == TopologyKind::DragonflyPlus && self.tiers != TierCount::Auto {
            found.push("a dragonfly is groups of two tiers, joined directly, so `tiers` says nothing".to_owned());
        }
        if matches!(self.planes, 3 | 5..=7) {
            found.push(format!("the lanes of a port split into 2, 4 or 8 planes, not into {}", self.planes));
        }
        if self.kind == TopologyKind::MultiPlane && self.planes < 2 {
            found.push("`planes` of 1 leaves ports whole: a multi-plane network has two or more".to_owned());
        }
        found
    }
}

/// A node's slots take the fabric's card at its speed; what is pointed at is the node or the fabric, as its label says.
pub fn check_adapter(node: &Entry<Node>, fabric: &BoundFabric, (at, label): (&Span, &str), sink: &Sink) {
    if fabric.entry.transport == Transport::Ici {
        check_block(node, fabric, (at, label), sink);
        return;
    }
    if node.nic_slots.speed != fabric.nic.speed {
        let speed = |rate: crate::units::Bandwidth| rate.in_unit("Gbit/s").unwrap_or_default();
        let message = format!(
            "`{}` has {} Gbit/s slots, and the card `{}` of `{}` runs at {} Gbit/s",
            node.id,
            speed(node.nic_slots.speed),
            fabric.nic.id,
            fabric.entry.id,
            speed(fabric.nic.speed)
        );
        sink.push(
            Diagnostic::new(Code::Inconsistent, message)
                .at(at, label)
                .hint("choose a fabric of the node's speed; `clusterplan catalog list` shows them"),
        );
    }
}

/// A node is a block of a torus whose links are the fabric's.
fn check_block(node: &Entry<Node>, fabric: &BoundFabric, (at, label): (&Span, &str), sink: &Sink) {
    let link = node.torus.map(|block| node.scale_up.bandwidth_per_direction / f64::from(2 * block.dimensions().max(1)));
    if link.is_some_and(|link| (link / fabric.entry.link_speed - 1.0).abs() < 1e-9) {
        return;
    }
    let has = link.map_or_else(
        || "is no block of a torus".to_owned(),
        |link| format!("has links of {link} between its accelerators"),
    );
    let message =
        format!("`{}` {has}, and `{}` goes on from links of {}", node.id, fabric.entry.id, fabric.entry.link_speed);
    let hint = "the fabric is for accelerators that form a torus; `clusterplan catalog list` shows the others";
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, label).hint(hint));
}

/// Every part of a fabric has a price.
pub fn check_fabric_prices(fabric: &BoundFabric, prices: &Entry<PriceBook>, at: &Span, sink: &Sink) {
    let mut parts = vec![fabric.nic.id.as_str()];
    parts.extend(fabric.switches.iter().map(|switch| switch.id.as_str()));
    for link in [&fabric.node_link, &fabric.switch_link] {
        parts.push(&link.cable.id);
        parts.extend([&link.upper, &link.lower].into_iter().flatten().map(|optic| optic.id.as_str()));
    }
    if fabric.entry.managers.is_some() {
        parts.push(MANAGER_PART);
    }
    check_priced(parts, prices, at, sink);
}

/// Every part of the links between sites has a price.
pub fn check_site_prices(choice: &TopologyChoice, prices: &Entry<PriceBook>, at: &Span, sink: &Sink) {
    if let Some(SiteChoice { link, .. }) = &choice.sites {
        check_priced(vec![&link.optic.id, &link.switch.id, &link.cable.id], prices, at, sink);
    }
}

/// Each of these parts has a price.
pub(super) fn check_priced(mut parts: Vec<&str>, prices: &Entry<PriceBook>, at: &Span, sink: &Sink) {
    parts.sort_unstable();
    parts.dedup();
    for part in parts.into_iter().filter(|part| prices.price(part).is_none()) {
        let message = format!("price book `{}` has no price for `{part}`", prices.id);
        sink.push(
            Diagnostic::new(Code::NotInCatalog, message)
                .at(at, "this price book")
                .hint(format!("add a [[price]] with part = \"{part}\"")),
        );
    }
}

/// Collective constants exist for the node's links and the fabric's class.
pub(super) fn check_wires(
    set: &CollectiveEfficiency,
    node: &Entry<Node>,
    fabric: &BoundFabric,
    node_at: &Reference,
    fabric_at: &Reference,
    sink: &Sink,
) {
    for (known, key, at, label) in [
        (set.scale_up.contains_key(&node.scale_up.kind), &node.scale_up.kind, &node_at.at, "this node"),
        (set.network.contains_key(&fabric.entry.class), &fabric.entry.class, &fabric_at.at, "this fabric"),
    ] {
        if !known {
            let message = format!("no measured collective constants for \"{key}\"");
            sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, label).hint(UNMEASURED));
        }
    }
}
