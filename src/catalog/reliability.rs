//! Reliability: how often the components of a training cluster fail, and how long a job takes to come back.

use super::check::positive_range;
use crate::document::Reader;
use crate::units::{Ranged, Seconds};

/// Mean time between the failures of one component that interrupt a synchronous job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComponentMtbf {
    /// An accelerator without its memory: dead, on-chip memory, system processor, heat, silent corruption.
    pub accelerator: Ranged<Seconds>,
    /// The memory (HBM) of one accelerator.
    pub memory: Ranged<Seconds>,
    /// A scale-out network card.
    pub nic: Ranged<Seconds>,
    /// A link of the scale-out network on any tier, with its share of the switches at its ends.
    pub link: Ranged<Seconds>,
    /// A host: processors, memory, disks, power supplies, unplanned maintenance.
    pub host: Ranged<Seconds>,
    /// Software, by host: bugs, dependencies, hangs without a known cause.
    pub software: Ranged<Seconds>,
}

/// How long a job takes to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoveryTimes {
    /// From the failure until it is known which node to replace.
    pub detection: Ranged<Seconds>,
    /// From then until the job runs again, without reading the checkpoint.
    pub restart: Ranged<Seconds>,
    /// Pause of training while an asynchronous checkpoint is copied to the memory of the hosts.
    pub snapshot: Ranged<Seconds>,
}

/// The reliability of clusters with accelerators of one generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Mean times between failures.
    pub mtbf: ComponentMtbf,
    /// Times to come back.
    pub recovery: RecoveryTimes,
}

impl Reliability {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            mtbf: reader.table("mtbf", |reader| ComponentMtbf {
                accelerator: positive_range(reader, "accelerator"),
                memory: positive_range(reader, "memory"),
                nic: positive_range(reader, "nic"),
                link: positive_range(reader, "link"),
                host: positive_range(reader, "host"),
                software: positive_range(reader, "software"),
            }),
            recovery: reader.table("recovery", |reader| RecoveryTimes {
                detection: reader.get("detection"),
                restart: reader.get("restart"),
                snapshot: reader.get("snapshot"),
            }),
        }
    }
}
