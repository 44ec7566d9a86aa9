//! Memory tiers: where keys, values and weights may lie, from the accelerator's own memory to drives across the network.

use super::Reference;
use super::node::Host;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Ranged, Seconds};

/// The most parts of a host that are taken.
const MOST_PLACES: u32 = 4_096;

choices! {
    /// What a tier is made of.
    pub enum TierMedium {
        /// Stacked memory beside the accelerator.
        Hbm = "hbm",
        /// Memory of the host.
        Dram = "dram",
        /// Memory behind a CXL port.
        Cxl = "cxl",
        /// Drives in the node.
        LocalNvme = "local nvme",
        /// Memory or drives of other nodes, across the network.
        Remote = "remote",
    }
}

impl TierMedium {
    /// Accelerators that share its parts, of so many in a host: a drive is one accelerator's, whose rate it has, modules and cards
    /// are a host's; none where parts stand outside hosts.
    pub const fn sharing(self, host: u32) -> Option<u32> {
        match self {
            Self::LocalNvme => Some(1),
            Self::Dram | Self::Cxl => Some(host),
            Self::Hbm | Self::Remote => None,
        }
    }
}

/// A memory tier, as one accelerator sees it: its share of what a node or a store has.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryTier {
    /// What it is made of.
    pub medium: TierMedium,
    /// The host processors whose memory it is, where it is no memory of others.
    pub host: Option<Host>,
    /// Capacity that is usual for one accelerator.
    pub capacity: Ranged<Bytes>,
    /// From the tier to the accelerator.
    pub read_bandwidth: Ranged<Bandwidth>,
    /// From the accelerator to the tier.
    pub write_bandwidth: Ranged<Bandwidth>,
    /// From the request to the first byte.
    pub latency: Ranged<Seconds>,
    /// What of an optimizer's states the host's processors move through this memory while they update them, where they
    /// can: one accelerator's share.
    pub update_bandwidth: Option<Ranged<Bandwidth>>,
    /// The component that it is bought as, where it does not come with the node: a price book has its price.
    pub unit: Option<Reference>,
    /// How many of these a host takes, those in place of what comes with it among them; of what goes into hosts.
    pub places: Option<u32>,
}

impl MemoryTier {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let tier = Self {
            medium: reader.get("medium"),
            host: reader.optional("host"),
            capacity: reader.get("capacity"),
            read_bandwidth: reader.get("read_bandwidth"),
            write_bandwidth: reader.get("write_bandwidth"),
            latency: reader.get("latency"),
            update_bandwidth: reader.optional("update_bandwidth"),
            unit: reader.optional("unit"),
            places: reader.optional_within("places", &(1..=MOST_PLACES)),
        };
        if reader.sink().len() == before
            && tier.unit.is_some()
            && (tier.medium.sharing(1).is_some() != tier.places.is_some())
        {
            let message = "`places` are of parts that go into hosts, and each of those has them";
            reader.report("unit", Code::Inconsistent, message, "say how many of its parts a host takes, or leave it out");
        }
        let always = [("read_bandwidth", tier.read_bandwidth), ("write_bandwidth", tier.write_bandwidth)];
        let rates = always.into_iter().chain(tier.update_bandwidth.map(|rate| ("update_bandwidth", rate)));
        for (key, rate) in rates {
            if reader.sink().len() == before && rate.low <= Bandwidth::ZERO {
                reader.report(key, Code::OutOfRange, format!("`{key}` is zero"), "more than zero is needed");
            }
        }
        tier
    }

    /// Time to fetch so much, one request.
    pub fn fetch(&self, size: Bytes) -> Seconds {
        self.latency.value + size / self.read_bandwidth.value
    }
}
