//! Physical sanity across files: what cannot be true of a part that is built of others.

use super::check::mismatch;
use super::node::{Host, NicPath};
use super::quantity::{PRINTED, same};
use super::scale_up_link::Shape;
use super::{Accelerator, Catalog, Entry, Node, Provider};
use crate::diagnostics::{Code, Sink, Span};
use crate::units::Bandwidth;

/// Reports network cards that take more, all together, than the buses they hang on carry: those of the accelerators whose
/// memory they move, and the lanes of the host processors where no switch multiplies them.
fn check_lanes(node: &Node, accelerator: &Accelerator, at: &Span, sink: &Sink) {
    let slots = node.nic_slots;
    let cards = slots.speed * f64::from(slots.count);
    if slots.path == NicPath::OnAccelerator {
        return;
    }
    if let Some(bus) = accelerator.pcie {
        let fed = bus.bandwidth_per_direction() * f64::from(node.accelerators);
        if cards > fed {
            let message = format!(
                "{} cards of {} take {cards} each direction, and {} accelerators on {bus} give {fed}",
                slots.count, slots.speed, node.accelerators
            );
            mismatch(at, message, sink);
        }
    }
    let Some(processors) = node.processors.as_ref().filter(|_| slots.path != NicPath::PcieSwitch) else { return };
    let (Some(count), Some(lanes)) = (processors.count, processors.pcie) else { return };
    let has = lanes.bandwidth_per_direction() * f64::from(count);
    let accelerators = accelerator
        .pcie
        .filter(|_| node.host == Host::X86)
        .map_or(Bandwidth::ZERO, |bus| bus.bandwidth_per_direction() * f64::from(node.accelerators));
    let needs = slots.pcie.map_or(cards, |slot| slot.bandwidth_per_direction() * f64::from(slots.count)) + accelerators;
    if needs > has * PRINTED {
        let message =
            format!("network slots and accelerators take {needs}, and {count} processors of {lanes} give {has}");
        mismatch(at, message, sink);
    }
}

impl Catalog {
    /// What a node's parts say of it.
    pub(super) fn check_node(&self, node: &Entry<Node>, sink: &Sink) {
        let at = |path: &str| node.document.at_path(path).map_or(&node.at, |found| &found.at);
        if let Some(provider) = &node.provider {
            self.providers.sound(provider, &provider.at, sink);
        }
        let Some(accelerator) = self.accelerators.sound(&node.accelerator, &node.accelerator.at, sink) else { return };
        if let Some(tdp) = accelerator.tdp
            && tdp * f64::from(node.accelerators) > node.max_power
        {
            let message = format!(
                "{} accelerators of {tdp} alone draw more than `max_power`, {}",
                node.accelerators, node.max_power
            );
            mismatch(at("max_power"), message, sink);
        }
        check_lanes(node, &accelerator, at("nic_slots"), sink);
        let Some(link) = self.scale_up_links.sound(&node.scale_up.kind, at("scale_up.kind"), sink) else { return };
        if node.scale_up.bandwidth_per_direction > link.bandwidth_per_direction * PRINTED {
            let message = format!(
                "an accelerator would send {} over `{}`, which carries {} each direction",
                node.scale_up.bandwidth_per_direction, link.id, link.bandwidth_per_direction
            );
            mismatch(at("scale_up.bandwidth_per_direction"), message, sink);
        }
        let peer = node.scale_up.peer_bandwidth;
        if link.shape == Shape::Mesh && peer.is_none_or(|peer| peer > link.peer_bandwidth * PRINTED) {
            let message = format!(
                "in the mesh of `{}` one other is reached at {}, not at {}",
                link.id,
                link.peer_bandwidth,
                peer.unwrap_or(node.scale_up.bandwidth_per_direction)
            );
            mismatch(at("scale_up"), message, sink);
        }
        if node.scale_up.domain > link.largest_domain {
            let message = format!(
                "a domain of {}, and `{}` joins {} at most",
                node.scale_up.domain, link.id, link.largest_domain
            );
            mismatch(at("scale_up.domain"), message, sink);
        }
        if node.scale_up.in_network_reduction && !link.in_network_reduction {
            mismatch(at("scale_up"), format!("`{}` has no switches that reduce", link.id), sink);
        }
    }

    /// What an accelerator says of its links, and the catalog of links says of them.
    pub(super) fn check_accelerator(&self, accelerator: &Entry<Accelerator>, sink: &Sink) {
        let Some(links) = &accelerator.scale_up else { return };
        let Some(link) = self.scale_up_links.sound(&links.link, &links.link.at, sink) else { return };
        if !same(links.bandwidth_per_direction, link.bandwidth_per_direction) {
            let message = format!(
                "`{}` sends {} over `{}`, whose own file says {}",
                accelerator.id, links.bandwidth_per_direction, link.id, link.bandwidth_per_direction
            );
            mismatch(&links.link.at, message, sink);
        }
    }

    /// What a provider's offers say of the parts that they name.
    pub(super) fn check_provider(&self, provider: &Entry<Provider>, sink: &Sink) {
        for offer in &provider.offers {
            self.accelerators.sound(&offer.accelerator, &offer.accelerator.at, sink);
            let Some(named) = &offer.node else { continue };
            let Some(node) = self.nodes.sound(named, &named.at, sink) else { continue };
            if node.accelerator.id != offer.accelerator.id {
                let message = format!("`{}` holds {}, not {}", node.id, node.accelerator.id, offer.accelerator.id);
                mismatch(&named.at, message, sink);
            }
        }
    }

    /// Ids are one space: reports, price books and `catalog show` name an entry by its id alone. Every price stands for
    /// a part.
    pub(super) fn check_ids(&self, sink: &Sink) {
        const PRICED: [&str; 7] = ["nodes", "nics", "switches", "optics", "cables", "storage", "components"];
        let records = self.records();
        let mut first = std::collections::BTreeMap::new();
        for part in &records {
            if let Some(earlier) = first.insert(part.id, part) {
                sink.push(
                    crate::diagnostics::Diagnostic::new(
                        Code::Duplicate,
                        format!("`{}` is the id of two entries: {} and {}", part.id, earlier.kind, part.kind),
                    )
                    .at(&part.document.at, "the second")
                    .at(&earlier.document.at, "the first")
                    .hint("entries are named by id alone: rename one of the files"),
                );
            }
        }
        first.retain(|_, part| PRICED.contains(&part.folder));
        for book in self.price_books.iter_sound() {
            for price in &book.prices {
                if !first.contains_key(price.part.id.as_str()) {
                    let hint = crate::diagnostics::did_you_mean(&price.part, first.keys().copied())
                        .map(|closest| format!("did you mean \"{closest}\"?"));
                    let message = format!("no part has the id \"{}\"", price.part.id);
                    let diagnostic = crate::diagnostics::Diagnostic::new(Code::UnknownId, message)
                        .at(&price.part.at, "not in the catalog");
                    sink.push(hint.into_iter().fold(diagnostic, crate::diagnostics::Diagnostic::hint));
                }
            }
        }
    }
}
