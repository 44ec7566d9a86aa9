//! Fabrics: the parts of a scale-out network that are chosen together, and how well it balances its load.

use super::Reference;
use super::quantity::positive;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, Schema, choices};
use crate::units::{Bandwidth, Factor, Fraction, Ranged};

/// RDMA payload of a packet where a fabric does not say, in bytes: the largest that InfiniBand and RoCE have, and the one
/// at which the constants of a class of network were measured.
pub const USUAL_MTU: u32 = 4_096;
/// The most flows that one card sends at a time: 32 channels of the library with 8 queue pairs each.
const MOST_FLOWS: f64 = 256.0;
/// The least that a spine keeps of the payload rate; below, nothing ever arrives.
const LEAST_SHARE: f64 = 1e-3;
choices! {
    /// How memory is moved between nodes.
    pub enum Transport {
        /// InfiniBand.
        Infiniband = "infiniband",
        /// RDMA over Ethernet, routable.
        RoceV2 = "rocev2",
        /// Ultra Ethernet.
        Uec = "uec",
        /// Amazon's Elastic Fabric Adapter.
        Efa = "efa",
        /// Google's GPUDirect-TCPX: TCP whose payload a card writes into accelerator memory.
        Tcpx = "tcpx",
        /// Google's GPUDirect-TCPXO: the same with the protocol offloaded.
        Tcpxo = "tcpxo",
        /// The links of accelerators that form a torus, between nodes as inside them (Google's ICI).
        Ici = "ici",
    }
}

impl Transport {
    /// Whether a sender has room promised at the next hop before it sends, so that what many send to one waits where it is.
    /// Elsewhere senders find out too late: by marks, by pauses, or by loss.
    pub const fn grants_credits(self) -> bool {
        matches!(self, Self::Infiniband | Self::Ici)
    }
}

choices! {
    /// How traffic is spread over equal paths.
    pub enum LoadBalancing {
        /// A flow stays on the path that its hash picks.
        Ecmp = "ecmp",
        /// The same, with each connection split into several flows.
        EcmpQpScaling = "ecmp-qp-scaling",
        /// Switches move a flow to the least loaded path wherever it pauses (flowlets, dynamic load balancing).
        Flowlet = "flowlet",
        /// Switches choose the least loaded path, packet by packet or burst by burst.
        Adaptive = "adaptive",
        /// The sender spreads its packets over all paths.
        Spray = "spray",
    }
}

choices! {
    /// What is wrapped around packets where tenants share the network.
    pub enum Encapsulation {
        /// Nothing.
        None = "none",
        /// A tag (802.1Q).
        Vlan = "vlan",
        /// An overlay (RFC 7348).
        Vxlan = "vxlan",
    }
}

impl LoadBalancing {
    /// Whether a flow stays on the path that its hash picks, so that how evenly paths fill is a matter of chance.
    pub const fn is_hashed(self) -> bool {
        matches!(self, Self::Ecmp | Self::EcmpQpScaling)
    }
}

/// The switch model of each tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierSwitches {
    /// Where the nodes' links end.
    pub leaf: Reference,
    /// Above the leaves.
    pub spine: Reference,
    /// Above the spines, in three-tier networks.
    pub core: Reference,
}

/// The optical modules at the ends of a link: `"A+B"` is A at the upper end (a switch) and B at the lower (a network
/// card, or the switch below); `"A"` is A at both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOptics {
    /// At the end nearer the top of the network.
    pub upper: Reference,
    /// At the other end.
    pub lower: Reference,
}

impl FromNode for LinkOptics {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let text = String::from_node(node, path, sink);
        let (upper, lower) = text.split_once('+').unwrap_or((&text, &text));
        let end = |id: &str| Reference { id: id.trim().to_owned(), at: node.at.clone() };
        let optics = Self { upper: end(upper), lower: end(lower) };
        let malformed = |end: &Reference| end.is_empty() || end.contains('+');
        if !text.is_empty() && (malformed(&optics.upper) || malformed(&optics.lower)) {
            sink.push(
                Diagnostic::new(Code::OutOfRange, format!("`{path}` is no pair of optics"))
                    .at(&node.at, "one or two ids are needed")
                    .hint("write \"upper+lower\", or one id for both ends"),
            );
        }
        optics
    }

    fn schema() -> Schema {
        Schema::Text
    }
}

/// A kind of link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Modules at its ends; none where the cable has ends of its own.
    pub optics: Option<LinkOptics>,
    /// The cable.
    pub cable: Reference,
}

/// A fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// How memory is moved.
    pub transport: Transport,
    /// The network card's id.
    pub nic: Reference,
    /// The switches' ids.
    pub switch: TierSwitches,
    /// Speed of every link, each direction.
    pub link_speed: Bandwidth,
    /// Links from node to leaf.
    pub node_link: Link,
    /// Links between switches.
    pub switch_link: Link,
    /// Key of its constants in the catalog of collective efficiencies.
    pub class: String,
    /// How traffic is spread over equal paths.
    pub load_balancing: LoadBalancing,
    /// Share of the payload rate that traffic through the spine keeps at full load: what collisions and congestion
    /// leave. Where flows are hashed it may be left open; then it follows from the flows and the links.
    pub spine_efficiency: Option<Ranged<Fraction>>,
    /// Flows that one card sends at a time, where flows are hashed: channels of the library times queue pairs of each.
    pub flows_per_nic: Option<Ranged<Factor>>,
    /// RDMA payload of a packet, in bytes.
    pub mtu: u32,
    /// What is wrapped around packets.
    pub encapsulation: Encapsulation,
    /// Whether the switches can add up what passes through them (SHARP).
    pub in_network_reduction: bool,
    /// Servers that run the fabric's manager, plugged into the fabric itself.
    pub managers: Option<Managers>,
}

/// Servers that run a fabric's manager and take ports of its leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// Servers.
    pub servers: u32,
    /// Ports that each takes.
    pub ports_per_server: u32,
}

impl Fabric {
    /// RDMA payloads of a packet that InfiniBand and RoCE have, in bytes.
    pub const PACKETS: [u32; 5] = [256, 512, 1_024, 2_048, 4_096];

    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let optics = |reader: &mut Reader<'_>| (reader.optional("node"), reader.optional("switch"));
        let (node_optics, switch_optics) = reader.optional_table("link", optics).unwrap_or_default();
        let cables = |reader: &mut Reader<'_>| (reader.get("node"), reader.get("switch"));
        let (node_cable, switch_cable) = reader.table("cable", cables);
        let fabric = Self {
            transport: reader.get("transport"),
            nic: reader.get("nic"),
            switch: reader.table("switch", |reader| TierSwitches {
                leaf: reader.get("leaf"),
                spine: reader.get("spine"),
                core: reader.get("core"),
            }),
            link_speed: positive(reader, "link_speed"),
            node_link: Link { optics: node_optics, cable: node_cable },
            switch_link: Link { optics: switch_optics, cable: switch_cable },
            class: reader.get("class"),
            load_balancing: reader.get("load_balancing"),
            spine_efficiency: reader.optional("spine_efficiency"),
            flows_per_nic: reader.optional("flows_per_nic"),
            mtu: reader.or("mtu", USUAL_MTU),
            encapsulation: reader.or("encapsulation", Encapsulation::None),
            in_network_reduction: reader.get("in_network_reduction"),
            managers: reader.optional_table("managers", |reader| Managers {
                servers: reader.get("servers"),
                ports_per_server: reader.get("ports_per_server"),
            }),
        };
        if reader.sink().len() == before {
            fabric.check_fields(reader);
        }
        fabric
    }

    fn check_fields(&self, reader: &Reader<'_>) {
        if self.spine_efficiency.is_none() && !(self.load_balancing.is_hashed() && self.flows_per_nic.is_some()) {
            let (missing, hint) = if self.load_balancing.is_hashed() {
                ("flows_per_nic", "channels times queue pairs of each, such as 2; or a measured `spine_efficiency`")
            } else {
                ("spine_efficiency", "such as { value = 0.95, low = 0.85, high = 0.98 }")
            };
            reader.report(missing, Code::MissingKey, format!("`{missing}` is missing"), hint);
        }
        let flows = self.flows_per_nic.map(|flows| flows.low.get().min(flows.value.get()).min(flows.high.get()));
        if flows.is_some_and(|flows| flows < 1.0) {
            reader.report("flows_per_nic", Code::OutOfRange, "less than one flow a card", "at least 1");
        }
        if self.flows_per_nic.is_some_and(|flows| flows.high.get() > MOST_FLOWS) {
            let message = format!("more than {MOST_FLOWS} flows a card");
            let hint = "channels of the library times queue pairs of each, such as 8";
            reader.report("flows_per_nic", Code::OutOfRange, message, hint);
        }
        if !Self::PACKETS.contains(&self.mtu) {
            let message = format!("an RDMA packet of {} bytes", self.mtu);
            reader.report("mtu", Code::OutOfRange, message, "256, 512, 1024, 2048 or 4096");
        }
        if self.encapsulation != Encapsulation::None && self.transport == Transport::Infiniband {
            let message = "InfiniBand keeps tenants apart by partitions, not by an overlay";
            reader.report("encapsulation", Code::Inconsistent, message, "leave it out");
        }
        if self.spine_efficiency.is_some_and(|share| share.low.get() < LEAST_SHARE) {
            reader.report(
                "spine_efficiency",
                Code::OutOfRange,
                "`spine_efficiency` reaches down to less than a thousandth",
                "nothing would ever arrive",
            );
        }
        if self.in_network_reduction && self.transport != Transport::Infiniband && self.transport != Transport::Uec {
            let message = format!("no switch for {} reduces in the network", self.transport);
            reader.report("in_network_reduction", Code::Inconsistent, message, "set it to false");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;

    fn read(text: &str) -> (LinkOptics, usize) {
        let node = Node { value: Value::String(text.to_owned()), ..Node::default() };
        let sink = Sink::default();
        (LinkOptics::from_node(&node, "link.node", &sink), sink.len())
    }

    #[test]
    fn two_ids_are_the_upper_and_the_lower_end() {
        let (optics, mistakes) = read("twin + single");
        assert_eq!((&*optics.upper, &*optics.lower, mistakes), ("twin", "single", 0));
    }

    #[test]
    fn one_id_stands_at_both_ends() {
        let (optics, mistakes) = read("twin");
        assert_eq!((&*optics.upper, &*optics.lower, mistakes), ("twin", "twin", 0));
    }

    #[test]
    fn a_missing_or_third_end_is_reported() {
        assert_eq!(read("twin+").1, 1);
        assert_eq!(read("a+b+c").1, 1);
        assert_eq!(read("").1, 1);
    }
}
