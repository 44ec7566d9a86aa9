//! Rules that join files.

use super::cable::CableKind;
use super::fabric::{Link, Transport};
use super::quantity::same;
use super::switch::Protocol;
use super::{Cable, Catalog, Entry, Fabric, LongHaul, SideNetwork};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::units::Bandwidth;

impl Catalog {
    /// Checks what one file says of another: that every named part exists, and that a fabric's parts fit together. Files
    /// with mistakes of their own are left out, because what they say is not known.
    pub fn check(&self, sink: &Sink) {
        self.accelerators.iter_sound().for_each(|accelerator| self.check_accelerator(accelerator, sink));
        self.nodes.iter_sound().for_each(|node| self.check_node(node, sink));
        self.providers.iter_sound().for_each(|provider| self.check_provider(provider, sink));
        self.check_ids(sink);
        for fabric in self.fabrics.iter_sound() {
            self.check_adapter(fabric, sink);
            self.check_switches(fabric, sink);
            let links = Links { owner: &fabric.id, speed: fabric.link_speed };
            self.check_link(&links, &fabric.node_link, sink);
            self.check_link(&links, &fabric.switch_link, sink);
        }
        for network in self.side_networks.iter_sound() {
            self.check_side_network(network, sink);
        }
        for link in self.long_haul.iter_sound() {
            self.check_long_haul(link, sink);
        }
    }

    fn check_long_haul(&self, link: &Entry<LongHaul>, sink: &Sink) {
        self.cables.sound(&link.cable, &link.cable.at, sink);
        if let Some(optic) = self.optics.sound(&link.optic, &link.optic.at, sink)
            && !same(optic.link_speed, link.link_speed)
        {
            let message = format!(
                "`{}` carries links of {}, and `{}` has links of {}",
                optic.id, optic.link_speed, link.id, link.link_speed
            );
            mismatch(&link.optic.at, message, sink);
        }
        if let Some(switch) = self.switches.sound(&link.switch, &link.switch.at, sink)
            && switch.ports_at(link.link_speed).is_none()
        {
            mismatch(&link.switch.at, format!("`{}` has no ports of {}", switch.id, link.link_speed), sink);
        }
    }

    fn check_side_network(&self, network: &Entry<SideNetwork>, sink: &Sink) {
        let links = Links { owner: &network.id, speed: network.link_speed };
        self.check_link(&links, &network.node_link, sink);
        // Uplinks into another network run at that one's speed.
        let cable = &network.switch_link.cable;
        if network.uplinks.is_none() {
            self.check_link(&links, &network.switch_link, sink);
        } else {
            self.cables.sound(cable, &cable.at, sink);
        }
        if let Some(switch) = self.switches.sound(&network.switch, &network.switch.at, sink)
            && switch.ports_at(network.link_speed).is_none()
        {
            mismatch(&network.switch.at, format!("`{}` has no ports of {}", switch.id, network.link_speed), sink);
        }
    }

    fn check_adapter(&self, fabric: &Entry<Fabric>, sink: &Sink) {
        if let Some(nic) = self.nics.sound(&fabric.nic, &fabric.nic.at, sink)
            && !same(nic.speed, fabric.link_speed)
        {
            mismatch(
                &fabric.nic.at,
                format!(
                    "a port of `{}` runs at {}, a link of `{}` at {}",
                    nic.id, nic.speed, fabric.id, fabric.link_speed
                ),
                sink,
            );
        }
    }

    fn check_switches(&self, fabric: &Entry<Fabric>, sink: &Sink) {
        let needed = match fabric.transport {
            Transport::Infiniband => Protocol::Infiniband,
            Transport::Ici => Protocol::OpticalCircuit,
            _ => Protocol::Ethernet,
        };
        for reference in [&fabric.switch.leaf, &fabric.switch.spine, &fabric.switch.core] {
            let Some(switch) = self.switches.sound(reference, &reference.at, sink) else { continue };
            if switch.protocol != needed {
                let message = format!("`{}` forwards {}, and the transport needs {needed}", switch.id, switch.protocol);
                mismatch(&reference.at, message, sink);
            }
            if switch.ports_at(fabric.link_speed).is_none() {
                mismatch(&reference.at, format!("`{}` has no ports of {}", switch.id, fabric.link_speed), sink);
            }
        }
    }

    fn check_link(&self, links: &Links<'_>, link: &Link, sink: &Sink) {
        let Some(cable) = self.cables.sound(&link.cable, &link.cable.at, sink) else { return };
        check_cable(links, link, &cable, sink);
        let Some(optics) = &link.optics else { return };
        for reference in [&optics.upper, &optics.lower] {
            let Some(optic) = self.optics.sound(reference, &reference.at, sink) else { continue };
            if !same(optic.link_speed, links.speed) {
                let message = format!(
                    "`{}` carries links of {}, and `{}` has links of {}",
                    optic.id, optic.link_speed, links.owner, links.speed
                );
                mismatch(&reference.at, message, sink);
            }
            if optic.medium != cable.medium {
                let message =
                    format!("`{}` is for {}, and the cable `{}` is {}", optic.id, optic.medium, cable.id, cable.medium);
                mismatch(&reference.at, message, sink);
            }
        }
    }
}

/// Links of a network: whose, and their speed.
struct Links<'a> {
    owner: &'a str,
    speed: Bandwidth,
}

/// Fibre needs optics at its ends; cables with fixed ends have none and one speed.
fn check_cable(links: &Links<'_>, link: &Link, cable: &Entry<Cable>, sink: &Sink) {
    let fibre = cable.kind == CableKind::Fibre;
    if fibre && link.optics.is_none() {
        let message = format!("`{}` is fibre, and `link` names no optics for its ends", cable.id);
        mismatch(&link.cable.at, message, sink);
    }
    if !fibre && link.optics.is_some() {
        let message = format!("`{}` has ends of its own, and `link` names optics for them", cable.id);
        mismatch(&link.cable.at, message, sink);
    }
    if cable.links > 1 {
        let message =
            format!("`{}` carries {} links, and a fabric counts a cable for each link", cable.id, cable.links);
        mismatch(&link.cable.at, message, sink);
    }
    if let Some(speed) = cable.link_speed
        && !same(speed, links.speed)
    {
        let message = format!("`{}` carries {speed}, and `{}` has links of {}", cable.id, links.owner, links.speed);
        mismatch(&link.cable.at, message, sink);
    }
}

pub(super) fn mismatch(at: &Span, message: String, sink: &Sink) {
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "named here"));
}
