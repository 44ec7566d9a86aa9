//! Storage systems: where data sets and checkpoints live, bought in units.

use super::quantity::{positive, positive_range};
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Ranged, Watts};

choices! {
    /// How a storage system is reached.
    pub enum Access {
        /// A parallel file system, read by many clients at once.
        ParallelFile = "parallel file system",
        /// Objects over HTTP.
        Object = "object store",
        /// Block devices over the network (NVMe-oF).
        Block = "nvme-of",
        /// Files over NFS.
        File = "nfs",
    }
}

/// A storage system; all figures are of one unit, and units add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage {
    /// How it is reached.
    pub access: Access,
    /// What it takes in, sustained, from many clients.
    pub write_bandwidth: Ranged<Bandwidth>,
    /// What it gives out, sustained, to many clients.
    pub read_bandwidth: Ranged<Bandwidth>,
    /// Usable capacity.
    pub capacity: Bytes,
    /// Power, taken as constant.
    pub power: Watts,
    /// Height in rack units.
    pub rack_units: u32,
    /// Accelerators that one unit is meant to serve.
    pub accelerators_per_unit: u32,
}

impl Storage {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            access: reader.or("access", Access::ParallelFile),
            write_bandwidth: positive_range(reader, "write_bandwidth"),
            read_bandwidth: positive_range(reader, "read_bandwidth"),
            capacity: positive(reader, "capacity"),
            power: reader.get("power"),
            rack_units: reader.get("rack_units"),
            accelerators_per_unit: reader.get("accelerators_per_unit"),
        }
    }

    /// Units for a number of accelerators, at least one.
    pub fn units_for(&self, accelerators: u64) -> u64 {
        accelerators.div_ceil(u64::from(self.accelerators_per_unit)).max(1)
    }
}
