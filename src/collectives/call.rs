//! One call with what every formula needs of it, worked out once.

use super::wires::{Collective, Group, Wires};
use crate::units::{Bandwidth, Bytes, Meters, Seconds};

/// Light in a metre of single-mode fibre, whose group index is 1.468 at 1,550 nm (Corning SMF-28 product information).
const LIGHT_IN_A_METER_OF_FIBRE: Seconds = Seconds::new(1.468 / 299_792_458.0);

/// A line's time in its two parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// What even an empty call takes.
    pub(super) latency: Seconds,
    /// What grows with the payload.
    pub(super) bandwidth: Seconds,
}

/// A call: the collective, its payload, and the group's shape on the wires.
pub(super) struct Call<'a> {
    pub(super) kind: Collective,
    pub(super) payload: Bytes,
    /// n.
    pub(super) ranks: f64,
    /// g, at most n.
    pub(super) per_domain: f64,
    /// Ranks in the domain that holds the fewest, at most g.
    pub(super) fewest: f64,
    /// N.
    pub(super) domains: f64,
    /// log2 N.
    pub(super) levels: f64,
    /// Line rate of a rank's links to the others of its domain that take part.
    pub(super) links: Bandwidth,
    /// NIC payload of one domain, of traffic between neighbours: of the one with the fewest ranks, which all others wait
    /// for.
    pub(super) domain_network: Bandwidth,
    pub(super) group: &'a Group,
    pub(super) wires: &'a Wires,
}

impl<'a> Call<'a> {
    pub(super) fn new(kind: Collective, payload: Bytes, group: &'a Group, wires: &'a Wires) -> Self {
        let domains = f64::from(group.domains());
        let nic = wires.network.line_rate * wires.network.efficiency.payload.get();
        let per_domain = f64::from(group.ranks_per_domain.clamp(1, group.ranks.max(1)));
        Self {
            kind,
            payload,
            ranks: f64::from(group.ranks),
            per_domain,
            links: wires.scale_up.rate_to(per_domain - 1.0),
            fewest: f64::from(group.fewest_per_domain.clamp(1, group.ranks_per_domain.max(1))),
            domains,
            levels: if domains > 2.0 { domains.log2() } else { domains - 1.0 },
            domain_network: nic * (group.fewest_nics() * group.network_share),
            group,
            wires,
        }
    }

    /// Whether the call leaves its scale-up domain.
    pub(super) fn crosses_network(&self) -> bool {
        self.domains > 1.0
    }

    /// Bytes that pass each link of a ring.
    pub(super) fn ring_traffic(&self) -> Bytes {
        self.payload * self.kind.bus_factor(self.group.ranks)
    }

    /// Rate of a ring: the slower of the links within and between domains that it uses.
    pub(super) fn ring_rate(&self) -> Bandwidth {
        let torus = self.wires.scale_up.torus.map_or(1.0, |torus| torus.ring_share(self.group.ranks_per_domain));
        let scale_up = self.links * (self.wires.scale_up.efficiency.ring.get() * torus);
        if !self.crosses_network() {
            scale_up
        } else if self.per_domain > 1.0 {
            scale_up.min(self.domain_network)
        } else {
            self.domain_network
        }
    }

    /// Payload rate of one NIC.
    pub(super) fn nic(&self) -> Bandwidth {
        self.wires.network.line_rate * self.wires.network.efficiency.payload.get()
    }

    /// NIC payload that one rank has to itself, of traffic between neighbours.
    pub(super) fn rank_network(&self) -> Bandwidth {
        self.nic() * (self.group.nics_per_domain / self.per_domain * self.group.network_share)
    }

    /// Hop across the network in LL: measured within a leaf, and the switches beyond it.
    pub(super) fn ll_hop(&self) -> Seconds {
        let network = &self.wires.network;
        network.efficiency.ll_hop + network.switch_latency * self.group.more_switches
    }

    /// The same where it is a tree's.
    pub(super) fn tree_ll_hop(&self) -> Seconds {
        self.ll_hop() + self.wires.network.efficiency.tree_ll_extra
    }

    /// A hop in Simple.
    pub(super) fn simple_hop(&self) -> Seconds {
        let network = &self.wires.network;
        network.efficiency.simple_hop + network.switch_latency * self.group.more_switches
    }

    /// Time of light in the fibre between sites: an all-reduce passes it once to reduce and once to spread, all else once;
    /// data that go around in a ring pass the border of every site on the way.
    pub(super) fn between_sites(&self, ring: bool) -> Seconds {
        if self.group.sites < 2 {
            return Seconds::ZERO;
        }
        let passes = if self.kind == Collective::AllReduce { 2.0 } else { 1.0 };
        let borders = if ring { f64::from(self.group.sites) } else { 1.0 };
        LIGHT_IN_A_METER_OF_FIBRE * (self.group.distance / Meters::new(1.0) * passes * borders)
    }

    /// Hop of a tree in Simple: the wire, a chunk through the rank's share of the NICs, the plugin.
    pub(super) fn tree_hop(&self) -> Seconds {
        let extra = self.wires.network.efficiency.tree_hop_extra;
        self.tree_ll_hop() + self.wires.library.tree_chunk / self.rank_network() + extra
    }
}

/// Transfer time with what fills the pipeline.
///
/// A transfer of `x` in chunks of the best size through stages that cost `tau` together takes `x + 2 sqrt(tau x)`;
/// chunks stop growing at the buffer size, and the fill with them.
pub(super) fn piped(transfer: Seconds, stage: Seconds, limit: Seconds) -> Seconds {
    let fill = transfer * (2.0 * (stage / transfer).sqrt());
    transfer + fill.min(limit)
}

/// A line's parts.
pub(super) fn parts(latency: Seconds, bandwidth: Seconds) -> Parts {
    Parts { latency, bandwidth }
}
