//! Parts that an accelerator can be cut into, each with its own multiprocessors and memory (multi-instance GPU).

use super::Accelerator;
use crate::document::Reader;
use crate::units::Bytes;

/// Slices of compute of a whole accelerator: what is sold as the largest has all of them.
const COMPUTE: f64 = 7.0;
/// Slices of memory, each with its part of the bandwidth.
const MEMORY: f64 = 8.0;

/// A part of an accelerator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuSlice {
    /// Its name, as `nvidia-smi` prints it.
    pub name: String,
    /// Sevenths of the multiprocessors.
    pub compute: u32,
    /// Eighths of the memory and of its bandwidth.
    pub memory: u32,
    /// How many of it an accelerator has at once.
    pub instances: u32,
}

impl GpuSlice {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            name: reader.get("name"),
            compute: reader.within("compute", &(1..=7)),
            memory: reader.within("memory", &(1..=8)),
            instances: reader.within("instances", &(1..=7)),
        }
    }

    /// The part as an accelerator of its own; slices do not reach each other's memory, so that it has no links.
    pub fn of(&self, whole: &Accelerator) -> Accelerator {
        let memory = f64::from(self.memory) / MEMORY;
        whole.part(f64::from(self.compute) / COMPUTE, memory, whole.memory_capacity * memory)
    }
}

impl Accelerator {
    /// So large a share of the multiprocessors and of the memory's bandwidth, with so much of the memory and no links.
    #[must_use]
    pub fn part(&self, compute: f64, bandwidth: f64, memory_capacity: Bytes) -> Self {
        Self {
            peak_dense: self.peak_dense.scaled(compute),
            peak_sparse: self.peak_sparse.scaled(compute),
            memory_capacity,
            memory_bandwidth: self.memory_bandwidth * bandwidth,
            scale_up: None,
            ..self.clone()
        }
    }
}
