//! Nodes: what is bought and racked as one.

use super::Reference;
use super::check::positive;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Watts};

choices! {
    /// The host processors of a node.
    pub enum Host {
        /// Intel or AMD processors behind PCIe.
        X86 = "x86",
        /// NVIDIA Grace, joined to the accelerators by NVLink-C2C.
        Grace = "grace",
    }
}

choices! {
    /// The way from an accelerator to its network card, shortest first.
    pub enum NicPath {
        /// Both hang on one PCIe switch, so the host is not on the way.
        PcieSwitch = "same PCIe switch",
        /// Through the PCIe ports of one host processor.
        HostSocket = "same host socket",
        /// From one host processor to the other.
        AcrossSockets = "across host sockets",
    }
}

choices! {
    /// How a node sheds its heat.
    pub enum Cooling {
        /// Fans blow through the node.
        Air = "air",
        /// Cold plates on the accelerators; the rest by air.
        Liquid = "liquid",
    }
}

/// The network inside a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleUp {
    /// Accelerators that reach each other over it.
    pub domain: u32,
    /// What one accelerator can send; as much again it can receive at the same time.
    pub bandwidth_per_direction: Bandwidth,
    /// Name and generation of the links, lower case, such as `nvlink4`.
    pub kind: String,
    /// Whether its switches can add up what passes through them (NVLS).
    pub in_network_reduction: bool,
}

/// Places for scale-out network cards; the cards come with the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NicSlots {
    /// How many.
    pub count: u32,
    /// What a slot feeds, each direction.
    pub speed: Bandwidth,
    /// The way from the accelerators.
    pub path: NicPath,
    /// Power of the maker's own cards for these slots, part of `max_power`; the fabric's cards come instead.
    pub included_power: Watts,
}

/// Ports towards the storage network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StoragePorts {
    /// How many.
    pub count: u32,
    /// Speed of one, each direction.
    pub speed: Bandwidth,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its accelerators' id.
    pub accelerator: Reference,
    /// Accelerators in it.
    pub accelerators: u32,
    /// Accelerators on one tray (one host): what fails and is repaired together.
    pub accelerators_per_tray: u32,
    /// The network inside.
    pub scale_up: ScaleUp,
    /// The host processors.
    pub host: Host,
    /// Places for scale-out network cards.
    pub nic_slots: NicSlots,
    /// Ports towards the storage network.
    pub storage_ports: StoragePorts,
    /// What it may draw at most, network cards in their slots included.
    pub max_power: Watts,
    /// Height in the rack.
    pub rack_units: u32,
    /// How it sheds its heat.
    pub cooling: Cooling,
}

impl Node {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let node = Self {
            accelerator: reader.get("accelerator"),
            accelerators: reader.get("accelerators"),
            accelerators_per_tray: reader.get("accelerators_per_tray"),
            scale_up: reader.table("scale_up", |reader| ScaleUp {
                domain: reader.get("domain"),
                bandwidth_per_direction: positive(reader, "bandwidth_per_direction"),
                kind: reader.get("kind"),
                in_network_reduction: reader.get("in_network_reduction"),
            }),
            host: reader.get("host"),
            nic_slots: reader.table("nic_slots", |reader| NicSlots {
                count: reader.get("count"),
                speed: positive(reader, "speed"),
                path: reader.get("path"),
                included_power: reader.get("included_power"),
            }),
            storage_ports: reader.table("storage_ports", |reader| StoragePorts {
                count: reader.get("count"),
                speed: positive(reader, "speed"),
            }),
            max_power: positive(reader, "max_power"),
            rack_units: reader.get("rack_units"),
            cooling: reader.get("cooling"),
        };
        if reader.sink().len() == before {
            node.check_counts(reader);
        }
        node
    }

    /// Network cards per accelerator; below one where accelerators share a card.
    pub fn nics_per_accelerator(&self) -> f64 {
        f64::from(self.nic_slots.count) / f64::from(self.accelerators)
    }

    fn check_counts(&self, reader: &Reader<'_>) {
        let all = self.accelerators;
        let divides = |part: u32| all.is_multiple_of(part);
        if !divides(self.accelerators_per_tray) {
            let message = format!("trays of {} do not make up {all} accelerators", self.accelerators_per_tray);
            reader.report("accelerators_per_tray", Code::Inconsistent, message, "it divides `accelerators`");
        }
        if !divides(self.scale_up.domain) {
            let message = format!("scale-up domains of {} do not make up {all} accelerators", self.scale_up.domain);
            reader.report("scale_up", Code::Inconsistent, message, "`domain` divides `accelerators`");
        }
        let slots = self.nic_slots.count;
        if !divides(slots) && !slots.is_multiple_of(all) {
            let message = format!("{slots} network slots cannot be shared out evenly among {all} accelerators");
            reader.report("nic_slots", Code::Inconsistent, message, "count the slots of the compute network only");
        }
    }
}
