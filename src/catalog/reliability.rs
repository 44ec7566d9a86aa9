//! Reliability: how often the components of a training cluster fail, and how long a job takes to come back.

use super::quantity::positive_range;
use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::{Ranged, Seconds};

/// Mean time between the failures of one component that interrupt a synchronous job; those of the network are in
/// [`NetworkReliability`](super::NetworkReliability).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComponentMtbf {
    /// An accelerator without its memory: dead, on-chip memory, system processor, heat, silent corruption.
    pub accelerator: Ranged<Seconds>,
    /// The memory (HBM) of one accelerator.
    pub memory: Ranged<Seconds>,
    /// A host: processors, memory, disks, power supplies, unplanned maintenance.
    pub host: Ranged<Seconds>,
    /// Software, by host: bugs, dependencies, hangs without a known cause.
    pub software: Ranged<Seconds>,
}

/// Failures of jobs that no failing component explains: users' programs, schedulers, nodes in a bad state at the start.
/// They are many where people share a cluster, and few where one tuned job has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobLevel {
    /// Mean time between them, of one host's share of a job.
    pub mtbf: Ranged<Seconds>,
    /// Hosts of the largest job in which they were measured; a larger job is taken to have no more of them.
    pub hosts: u32,
}

/// How long a job takes to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoveryTimes {
    /// From the failure until it is known which node to replace.
    pub detection: Ranged<Seconds>,
    /// From then until the job runs again, without reading the checkpoint.
    pub restart: Ranged<Seconds>,
    /// What the first steps after that take beyond their usual time: compiling, capturing graphs, filling buffers.
    pub rewarm: Ranged<Seconds>,
    /// From a node's failure until it can be a spare again.
    pub repair: Ranged<Seconds>,
    /// Pause of training while an asynchronous checkpoint is copied to the memory of the hosts.
    pub snapshot: Ranged<Seconds>,
}

/// The reliability of clusters with accelerators of one generation, or of one fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Mean times between failures.
    pub mtbf: ComponentMtbf,
    /// Failures of jobs in shared clusters.
    pub job_level: JobLevel,
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
                host: positive_range(reader, "host"),
                software: positive_range(reader, "software"),
            }),
            job_level: reader.table("job_level", |reader| {
                let before = reader.sink().len();
                let read = JobLevel { mtbf: positive_range(reader, "mtbf"), hosts: reader.get("hosts") };
                if reader.sink().len() == before && read.hosts == 0 {
                    reader.report("hosts", Code::OutOfRange, "a job of no hosts", "at least 1");
                }
                read
            }),
            recovery: reader.table("recovery", |reader| RecoveryTimes {
                detection: reader.get("detection"),
                restart: reader.get("restart"),
                rewarm: reader.get("rewarm"),
                repair: positive_range(reader, "repair"),
                snapshot: reader.get("snapshot"),
            }),
        }
    }
}
