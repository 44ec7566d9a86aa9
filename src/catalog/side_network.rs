//! Networks beside the scale-out fabric: to storage, for management, and to the boards that watch over servers.

use super::Reference;
use super::quantity::positive;
use super::fabric::Link;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::Bandwidth;

/// The most ports that one device takes.
const MOST_PORTS: u32 = 256;
/// The most that a side network is oversubscribed: beyond, a switch has no uplink left.
const MOST_OVERSUBSCRIPTION: f64 = 64.0;

choices! {
    /// What a network beside the fabric is for.
    pub enum Purpose {
        /// From nodes to shared storage.
        Storage = "storage",
        /// Login, scheduling, logs and the way out.
        InBand = "in-band",
        /// The boards that watch over servers, switches and power strips.
        OutOfBand = "out-of-band",
    }
}

/// Ports that each kind of device takes in a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePorts {
    /// A host: a node, or a tray where the node is a rack. None where the node states its ports, as it does towards storage.
    pub host: u32,
    /// A unit of storage; in a storage network at least these, and as many as its rate of reading fills.
    pub storage_unit: u32,
    /// A server that runs a fabric's manager.
    pub server: u32,
    /// A switch of the fabric or of another network.
    pub switch: u32,
    /// A rack: its power strips.
    pub rack: u32,
}

/// A network beside the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct SideNetwork {
    /// What it is for.
    pub purpose: Purpose,
    /// The id of its switches, in every tier.
    pub switch: Reference,
    /// Speed of a device's port, each direction.
    pub link_speed: Bandwidth,
    /// Links from devices to leaves.
    pub node_link: Link,
    /// Links between switches.
    pub switch_link: Link,
    /// Bandwidth of hosts' ports over that of the uplinks they share; storage has full bandwidth.
    pub oversubscription: f64,
    /// Links of a leaf into the in-band network, where this network has no tier above the leaves.
    pub uplinks: Option<u32>,
    /// Ports that devices take.
    pub ports: DevicePorts,
}

impl SideNetwork {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let optics = |reader: &mut Reader<'_>| (reader.optional("node"), reader.optional("switch"));
        let (node_optics, switch_optics) = reader.optional_table("link", optics).unwrap_or_default();
        let cables = |reader: &mut Reader<'_>| (reader.get("node"), reader.get("switch"));
        let (node_cable, switch_cable) = reader.table("cable", cables);
        let before = reader.sink().len();
        let oversubscription = reader.or("oversubscription", 1.0);
        if reader.sink().len() == before && !(1.0..=MOST_OVERSUBSCRIPTION).contains(&oversubscription) {
            let message = format!("an oversubscription of {oversubscription} is not from 1 to {MOST_OVERSUBSCRIPTION}");
            reader.report("oversubscription", Code::OutOfRange, message, "1 is full bandwidth");
        }
        Self {
            purpose: reader.get("purpose"),
            switch: reader.get("switch"),
            link_speed: positive(reader, "link_speed"),
            node_link: Link { optics: node_optics, cable: node_cable },
            switch_link: Link { optics: switch_optics, cable: switch_cable },
            oversubscription,
            uplinks: reader.optional_within("uplinks", &(1..=MOST_PORTS)),
            ports: reader.table("ports", |reader| {
                let mut count = |key| reader.optional_within(key, &(1..=MOST_PORTS)).unwrap_or(0);
                DevicePorts {
                    host: count("host"),
                    storage_unit: count("storage_unit"),
                    server: count("server"),
                    switch: count("switch"),
                    rack: count("rack"),
                }
            }),
        }
    }
}
