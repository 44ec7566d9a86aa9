//! `cluster.networks`: the networks beside the fabric, found in the catalog and held against the node.

use std::sync::Arc;

use super::fits::check_priced;
use super::network::LinkParts;
use super::{Defaults, by_default};
use crate::catalog::side_network::Purpose;
use crate::catalog::{Catalog, Entry, Node, PriceBook, Reference, SideNetwork, Switch};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::NetworksFile;
use crate::units::Quantity;

/// The usual networks for management.
const USUAL_IN_BAND: &str = "in-band-100g";
const USUAL_OUT_OF_BAND: &str = "out-of-band-1g";
/// What stands for a network that is not built.
const NOT_BUILT: &str = "none";

/// A network beside the fabric with all its parts bound.
#[derive(Clone, Debug)]
pub struct BoundSideNetwork {
    /// The network.
    pub entry: Arc<Entry<SideNetwork>>,
    /// Its switch.
    pub switch: Arc<Entry<Switch>>,
    /// Ports of the switch at the speed of a device's link.
    pub radix: u32,
    /// Links from devices to leaves.
    pub node_link: LinkParts,
    /// Links between switches.
    pub switch_link: LinkParts,
}

impl BoundSideNetwork {
    fn bind(entry: Arc<Entry<SideNetwork>>, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let switch = catalog.switches.find(&entry.switch, &entry.switch.at, sink)?;
        let radix = switch.ports_at(entry.link_speed).unwrap_or(0);
        let node_link = LinkParts::bind(&entry.node_link, catalog, sink)?;
        let switch_link = LinkParts::bind(&entry.switch_link, catalog, sink)?;
        Some(Self { entry, switch, radix, node_link, switch_link })
    }

    /// The networks of these ids; those that are missing are reported.
    pub fn of(ids: &[String], catalog: &Catalog, sink: &Sink) -> Vec<Self> {
        let known = ids.iter().filter_map(|id| catalog.side_networks.find(id, &Span::default(), sink));
        known.filter_map(|entry| Self::bind(entry, catalog, sink)).collect()
    }

    /// The networks of these ids beside a node that was named at `at`, the usual ones where an id is left out; mistakes
    /// go to the sink.
    pub fn chosen(
        wanted: &NetworksFile,
        node: &Entry<Node>,
        at: &Span,
        catalog: &Catalog,
        sink: &Sink,
    ) -> Option<Vec<Self>> {
        bind(wanted, node, at, catalog, &mut Defaults::default(), sink)
    }
}

/// The first storage network, in the order of ids, that runs at the speed of the node's storage ports.
fn usual_storage<'a>(node: &Node, catalog: &'a Catalog) -> Option<&'a Arc<Entry<SideNetwork>>> {
    let fits = |entry: &&Arc<Entry<SideNetwork>>| {
        entry.purpose == Purpose::Storage && entry.link_speed == node.storage_ports.speed
    };
    catalog.side_networks.iter().find(fits)
}

/// Binds the networks of a cluster; mistakes go to the sink.
pub(super) fn bind(
    wanted: &NetworksFile,
    node: &Entry<Node>,
    at: &Span,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Vec<BoundSideNetwork>> {
    let storage = usual_storage(node, catalog).map_or(NOT_BUILT, |entry| entry.id.as_str());
    let mut found = Vec::new();
    let mut complete = true;
    for (key, given, usual, purpose) in [
        ("cluster.networks.storage", &wanted.storage, storage, Purpose::Storage),
        ("cluster.networks.in_band", &wanted.in_band, USUAL_IN_BAND, Purpose::InBand),
        ("cluster.networks.out_of_band", &wanted.out_of_band, USUAL_OUT_OF_BAND, Purpose::OutOfBand),
    ] {
        let id = by_default(key, given.as_ref(), usual, at, defaults);
        if id.id == NOT_BUILT {
            continue;
        }
        let entry = catalog.side_networks.find(&id, &id.at, sink);
        if let Some(entry) = &entry {
            check(entry, purpose, node, &id, sink);
        }
        match entry.and_then(|entry| BoundSideNetwork::bind(entry, catalog, sink)) {
            Some(bound) => found.push(bound),
            None => complete = false,
        }
    }
    complete.then_some(found)
}

/// The network is for what it stands for, and towards storage it runs at the speed of the node's ports.
fn check(entry: &Entry<SideNetwork>, purpose: Purpose, node: &Entry<Node>, id: &Reference, sink: &Sink) {
    if entry.purpose == purpose {
        check_storage_ports(entry, node, id, "leave it out for the usual network of that speed", sink);
        return;
    }
    let message = format!("`{}` is a network for {}, not for {purpose}", entry.id, entry.purpose);
    let hint = "`clusterplan catalog list networks` shows what each is for";
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(&id.at, "this network").hint(hint));
}

/// A network towards storage runs at the speed of a node's ports.
pub(super) fn check_storage_ports(
    entry: &Entry<SideNetwork>,
    node: &Entry<Node>,
    id: &Reference,
    hint: &str,
    sink: &Sink,
) {
    if entry.purpose == Purpose::Storage && entry.link_speed != node.storage_ports.speed {
        let speed = |rate: crate::units::Bandwidth| rate.in_unit("Gbit/s").unwrap_or_default();
        let message = format!(
            "`{}` has storage ports of {} Gbit/s, and `{}` links of {} Gbit/s",
            node.id,
            speed(node.storage_ports.speed),
            entry.id,
            speed(entry.link_speed)
        );
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&id.at, "asked for here").hint(hint));
    }
}

/// Every part of the networks has a price.
pub fn check_side_prices(networks: &[BoundSideNetwork], prices: &Entry<PriceBook>, at: &Span, sink: &Sink) {
    let mut parts = Vec::new();
    for network in networks {
        parts.push(network.switch.id.as_str());
        for link in [&network.node_link, &network.switch_link] {
            parts.push(&link.cable.id);
            parts.extend([&link.upper, &link.lower].into_iter().flatten().map(|optic| optic.id.as_str()));
        }
    }
    check_priced(parts, prices, at, sink);
}
