//! Components: things that are bought but take no place of their own in a plan.

use super::quantity::some_positive;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Watts};

choices! {
    /// What a component is.
    pub enum ComponentKind {
        /// A solid-state drive.
        Drive = "drive",
        /// A memory module, or a set of them.
        Memory = "memory",
        /// A board with accelerators, without its server.
        Board = "board",
        /// A single accelerator.
        Card = "card",
        /// A server.
        Server = "server",
        /// A right to use software.
        Licence = "licence",
        /// What a rack or a port of any maker costs.
        Share = "share",
    }
}

/// A drive, memory module, board, server or licence: price books name it, and other files are reckoned from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Who makes it.
    pub vendor: Option<String>,
    /// What it is.
    pub kind: ComponentKind,
    /// Capacity.
    pub capacity: Option<Bytes>,
    /// Rate of reading.
    pub read_bandwidth: Option<Bandwidth>,
    /// Rate of writing.
    pub write_bandwidth: Option<Bandwidth>,
    /// Power in use.
    pub power: Option<Watts>,
    /// Height in the rack, of what stands in one by itself.
    pub rack_units: Option<u32>,
    /// Ports on the fabric, of cards that are part of it.
    pub fabric_ports: Option<u32>,
}

impl Component {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            vendor: reader.optional("vendor"),
            kind: reader.get("kind"),
            capacity: some_positive(reader, "capacity"),
            read_bandwidth: some_positive(reader, "read_bandwidth"),
            write_bandwidth: some_positive(reader, "write_bandwidth"),
            power: reader.optional("power"),
            rack_units: reader.optional("rack_units"),
            fabric_ports: reader.optional("fabric_ports"),
        }
    }
}
