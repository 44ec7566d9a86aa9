//! Nodes: what is bought and racked as one.

use super::quantity::{positive, some_positive};
use super::{Accelerator, Pcie, Reference};
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Watts};

/// The most accelerators, or network slots, of a node that are taken; the largest racks have 256.
const MOST_COUNT: u32 = 4_096;

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
        /// The accelerator has the ports itself, and no bus is on the way.
        OnAccelerator = "on the accelerator",
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
    /// What of it can go to one other; all, where none is stated. In a mesh each other one is reached by a link of its own.
    pub peer_bandwidth: Option<Bandwidth>,
    /// Name and generation of the links, lower case, such as `nvlink4`.
    pub kind: String,
    /// Whether its switches can add up what passes through them (NVLS).
    pub in_network_reduction: bool,
}

/// A block of a torus: accelerators that are joined to their neighbours alone, inside the node and beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusBlock {
    /// Accelerators of the node along each dimension; 1 beyond the last.
    pub sides: [u32; 3],
    /// Accelerators along a dimension from which its ends are joined to a ring; fewer are a line.
    pub closes_at: u32,
}

impl TorusBlock {
    /// Dimensions of the torus.
    pub fn dimensions(self) -> u32 {
        self.sides.iter().map(|side| u32::from(*side > 1)).sum()
    }

    /// Links that leave one face of the node along each dimension; none beyond the last.
    pub fn face_links(self) -> [u32; 3] {
        let all: u32 = self.sides.iter().product();
        self.sides.map(|side| if side > 1 { all / side } else { 0 })
    }
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
    /// The bus that feeds one slot.
    pub pcie: Option<Pcie>,
}

/// The host processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processors {
    /// How many in the node; none where a cloud does not say.
    pub count: Option<u32>,
    /// Their maker's name for them, or their family.
    pub model: String,
    /// Cores of one.
    pub cores: Option<u32>,
    /// The PCI Express lanes of one, all together.
    pub pcie: Option<Pcie>,
}

/// Drives inside the node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LocalStorage {
    /// How many for data; those of the operating system are left out.
    pub count: u32,
    /// Capacity of one.
    pub size: Bytes,
}

/// The trays of a rack that is bought as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trays {
    /// With accelerators.
    pub compute: u32,
    /// With the switches of the scale-up network.
    pub switch: u32,
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
    /// The torus that it is a block of, where its accelerators are joined so.
    pub torus: Option<TorusBlock>,
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
    /// The host processors.
    pub processors: Option<Processors>,
    /// Hardware threads that an instance offers.
    pub vcpus: Option<u32>,
    /// Memory of the hosts.
    pub host_memory: Option<Bytes>,
    /// Drives for data.
    pub local_storage: Option<LocalStorage>,
    /// Trays, where the node is a rack.
    pub trays: Option<Trays>,
    /// Who rents it out, where it is an instance of a cloud and cannot be bought.
    pub provider: Option<Reference>,
}

/// Sides of a block, filled up to three.
fn sides(reader: &mut Reader<'_>) -> [u32; 3] {
    let given: Vec<u32> = reader.get("sides");
    let mut sides = [1; 3];
    if given.is_empty() || given.len() > sides.len() || given.iter().any(|side| !(1..=MOST_COUNT).contains(side)) {
        let hint = "one to three counts, such as [4, 4, 4]";
        reader.report("sides", Code::OutOfRange, "`sides` are no sides of a block", hint);
        return sides;
    }
    sides[..given.len()].copy_from_slice(&given);
    sides
}

impl Node {
    /// Hosts: trays, of a node that is a rack.
    pub fn hosts(&self) -> u32 {
        self.accelerators / self.accelerators_per_tray
    }

    /// Scale-out network cards of a host.
    pub fn cards_of_host(&self) -> u32 {
        (self.nic_slots.count / self.hosts()).max(1)
    }

    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let node = Self {
            accelerator: reader.get("accelerator"),
            accelerators: reader.within("accelerators", &(1..=MOST_COUNT)),
            accelerators_per_tray: reader.within("accelerators_per_tray", &(1..=MOST_COUNT)),
            scale_up: reader.table("scale_up", |reader| ScaleUp {
                domain: reader.within("domain", &(1..=MOST_COUNT)),
                bandwidth_per_direction: positive(reader, "bandwidth_per_direction"),
                peer_bandwidth: reader.optional("peer_bandwidth"),
                kind: reader.get("kind"),
                in_network_reduction: reader.get("in_network_reduction"),
            }),
            torus: reader.optional_table("torus", |reader| TorusBlock {
                sides: sides(reader),
                closes_at: reader.within("closes_at", &(1..=MOST_COUNT)),
            }),
            host: reader.get("host"),
            nic_slots: reader.table("nic_slots", |reader| NicSlots {
                count: reader.within("count", &(1..=MOST_COUNT)),
                speed: positive(reader, "speed"),
                path: reader.get("path"),
                included_power: reader.get("included_power"),
                pcie: reader.optional("pcie"),
            }),
            storage_ports: reader.table("storage_ports", |reader| StoragePorts {
                count: reader.get("count"),
                speed: positive(reader, "speed"),
            }),
            max_power: positive(reader, "max_power"),
            rack_units: reader.get("rack_units"),
            cooling: reader.get("cooling"),
            processors: reader.optional_table("processors", |reader| Processors {
                count: reader.optional("count"),
                model: reader.get("model"),
                cores: reader.optional("cores"),
                pcie: reader.optional("pcie"),
            }),
            vcpus: reader.optional("vcpus"),
            host_memory: some_positive(reader, "host_memory"),
            local_storage: reader.optional_table("local_storage", |reader| LocalStorage {
                count: reader.get("count"),
                size: positive(reader, "size"),
            }),
            trays: reader.optional_table("trays", |reader| Trays {
                compute: reader.get("compute"),
                switch: reader.get("switch"),
            }),
            provider: reader.optional("provider"),
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

    /// What PCIe carries each direction between one of its accelerators and the host, where the catalog knows it.
    pub fn host_bus(&self, accelerator: &Accelerator) -> Option<Bandwidth> {
        accelerator.pcie.or(self.nic_slots.pcie).map(Pcie::bandwidth_per_direction)
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
        if let Some(block) = self.torus
            && (block.dimensions() < 1 || block.sides.iter().product::<u32>() != all)
        {
            let message = format!("a block of {:?} is not {all} accelerators", block.sides);
            reader.report("torus", Code::Inconsistent, message, "the product of `sides` is `accelerators`");
        }
        if let Some(trays) = self.trays.filter(|trays| trays.compute * self.accelerators_per_tray != all) {
            let message =
                format!("{} trays of {} are not {all} accelerators", trays.compute, self.accelerators_per_tray);
            reader.report("trays", Code::Inconsistent, message, "`compute` trays hold all of the node's accelerators");
        }
        if let Some(bus) = self.nic_slots.pcie.filter(|bus| bus.bandwidth_per_direction() < self.nic_slots.speed) {
            let message = format!(
                "a slot of {} cannot feed a card of {}: the bus carries {} each direction",
                bus,
                self.nic_slots.speed,
                bus.bandwidth_per_direction()
            );
            reader.report("nic_slots", Code::Inconsistent, message, "a card of that speed needs more lanes");
        }
        if self.nic_slots.included_power > self.max_power {
            let message = format!(
                "cards of {} are more than the {} that the node draws with them",
                self.nic_slots.included_power, self.max_power
            );
            let hint = "`included_power` is the part of `max_power` that the maker's own cards draw";
            reader.report("nic_slots", Code::Inconsistent, message, hint);
        }
        let slots = self.nic_slots.count;
        if !divides(slots) && !slots.is_multiple_of(all) {
            let message = format!("{slots} network slots cannot be shared out evenly among {all} accelerators");
            reader.report("nic_slots", Code::Inconsistent, message, "count the slots of the compute network only");
        }
    }
}
