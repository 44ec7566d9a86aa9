//! What a training layout leaves room for.

use super::footprint::{MemoryFootprint, all_stages, worst};
use super::software::Software;
use crate::parallelism::{Layout, RankOrder, Schedule, Space};
use crate::units::{Bytes, to_integer};
use crate::workload::{Layers, TrainingJob};

/// The memory of a job on a layout, rank by rank, and what else would fit.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingFit {
    /// What a process can have of an accelerator.
    pub usable: Bytes,
    /// The footprint of each pipeline stage.
    pub stages: Vec<MemoryFootprint>,
    /// The stage that takes most.
    pub worst_stage: u32,
    /// The most sequences of a forward pass that fit with this batch; none where not even one does.
    pub largest_micro_batch: Option<u32>,
    /// The longest sequence that fits with this microbatch; none where not even the shortest that divides does.
    pub longest_sequence: Option<u32>,
    /// The fewest accelerators, a power of two, on which any layout of the job fits, and that layout.
    pub fewest: Option<Layout>,
}

/// Sequences longer than any that is trained on.
const LONGEST: u32 = 1 << 27;
/// Layouts of more accelerators than this are not searched.
const MOST: u32 = 1 << 17;
/// Tensor ranks of a search: a node's accelerators.
const MOST_TENSOR: u32 = 8;

impl TrainingFit {
    /// Of a layout that `Layout::check` let pass.
    pub fn new<'a>(
        model: impl Into<Layers<'a>>,
        job: &TrainingJob,
        layout: &Layout,
        software: &Software,
        usable: Bytes,
    ) -> Self {
        let model = model.into();
        let fits = |job: &TrainingJob, layout: &Layout| {
            layout.check_layers(model, job).is_ok() && worst(model, job, layout, software).1.fits(usable)
        };
        let share = job.global_batch / layout.data;
        let micro_batches = (1..=share).rev().filter(|size| share.is_multiple_of(*size));
        let largest_micro_batch = micro_batches
            .map(|micro_batch| Layout { micro_batch, ..*layout })
            .find(|layout| fits(job, layout))
            .map(|layout| layout.micro_batch);
        Self {
            usable,
            stages: all_stages(model, job, layout, software).collect(),
            worst_stage: worst(model, job, layout, software).0,
            largest_micro_batch,
            longest_sequence: longest(layout, |length| fits(&TrainingJob { sequence_length: length, ..*job }, layout)),
            fewest: fewest(model, job, software, usable),
        }
    }

    /// The footprint of the stage that takes most.
    pub fn worst(&self) -> MemoryFootprint {
        self.stages.get(self.worst_stage as usize).copied().unwrap_or_default()
    }

    /// Whether every stage fits.
    pub fn fits(&self) -> bool {
        self.worst().fits(self.usable)
    }
}

/// The longest multiple of the parts that a sequence is split into. More to hold never takes less, so that halving finds
/// it.
fn longest(layout: &Layout, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let parts = layout.context * layout.sequence_shards();
    let (mut low, mut high) = (0, LONGEST / parts);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle * parts) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low * parts)
}

/// The first layout that fits on the fewest accelerators: the least recomputation and sharding that do.
fn fewest(model: Layers<'_>, job: &TrainingJob, software: &Software, usable: Bytes) -> Option<Layout> {
    let space = |tensor: u32| Space {
        tensor: Some(tensor),
        micro_batch: Some(1),
        virtual_stages: Some(1),
        schedule: Some(Schedule::OneF1b),
        sequence_parallel: Some(tensor > 1),
        ..Space::all(RankOrder::TpCpEpDpPp)
    };
    let tensors = (1..=MOST_TENSOR).filter(|tensor| tensor.is_power_of_two());
    let least = parameters_need(model, job, usable);
    (0..32).map(|power| 1_u32 << power).take_while(|count| *count <= MOST).filter(|count| *count >= least).find_map(
        |count| {
            let fits = |layout: &Layout| {
                layout.check_layers(model, job).is_ok() && worst(model, job, layout, software).1.fits(usable)
            };
            tensors.clone().find_map(|tensor| space(tensor).layouts(model.frame(), job, count).find(fits))
        },
    )
}

/// Accelerators that the states alone need, fully sharded; no fewer will do.
fn parameters_need(model: Layers<'_>, job: &TrainingJob, usable: Bytes) -> u32 {
    let state = job.precision.size() + job.gradients.size() + job.optimizer.state_size();
    let count = state * model.parameters() as f64 / usable.max(Bytes::new(1.0));
    to_integer(count.ceil())
}
