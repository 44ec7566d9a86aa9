//! What the hosts keep: its way there and back beside the passes, and the optimizer's step on their processors.

use super::TrainingEstimate;
use super::step::{StepModel, updated};
use crate::parallelism::Layout;
use crate::units::{Bandwidth, Bytes, Seconds};

/// A memory beside an accelerator's own: one accelerator's share of its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostMemory {
    /// From it to the accelerator.
    pub read: Bandwidth,
    /// From the accelerator to it.
    pub write: Bandwidth,
    /// What its processors move of states while they update them; zero where it has none, and then keeps no states.
    pub update: Bandwidth,
}

/// What a step does with the host's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offloaded {
    /// What one microbatch leaves there in its forward pass, and takes back in its backward pass.
    pub activations: Bytes,
    /// Whether weights are trained; frozen ones have neither gradients nor states.
    pub trained: bool,
}

/// Times that a gradient is moved where it is added to others: two reads and a write.
const ADDING: f64 = 3.0;

impl StepModel {
    /// The step of a job that keeps some of its memory in the host's.
    ///
    /// Copies run beside compute on engines of their own, each direction by itself; what they take longer than the pass
    /// that they run beside shows. Activations leave in the forward pass and come back in the backward pass. Gradients go
    /// in the backward pass as they are reduced: once a step, or after every microbatch where ranks keep their own part
    /// alone. The host updates states while nothing else runs, and sends weights back in pieces as they are ready, so that
    /// the slower of the two counts (ZeRO-Offload, arXiv 2101.06840, sections 4.1 and 5.1; without its delayed update,
    /// which trains on weights of a step before). Weights that the host keeps are read for the forward pass and again for
    /// the backward pass, under a pipeline once a step (ZeRO-Infinity, arXiv 2104.07857, section 5.1).
    pub fn with_host(
        &self,
        full: TrainingEstimate,
        layout: &Layout,
        host: &HostMemory,
        kept: &Offloaded,
    ) -> TrainingEstimate {
        let offload = self.job.offload;
        let microbatches = f64::from(layout.microbatches(self.job.global_batch));
        let beside = full.exposed.total() - full.exposed.data + full.other.launch;
        let passes = (full.compute + beside) / microbatches;
        let backward = passes * self.backward_share(layout);
        let forward = passes - backward;

        let (out, mut back) = (kept.activations / host.write, kept.activations / host.read);
        let (mut ahead, mut once, mut step) = (Seconds::ZERO, Seconds::ZERO, full);
        let updated = updated(layout, &self.fullest_stage(layout));
        if offload.weights() {
            let read = self.job.precision.gathered_size() * updated / host.read;
            if layout.pipeline == 1 {
                ahead = read;
                back += read;
            } else {
                once = read;
            }
        }
        if offload.optimizer() && kept.trained {
            let gradients = self.job.gradients.size() * updated;
            let way = gradients / host.write;
            once += if layout.sharding.gradients() {
                way.max(gradients * ADDING / host.update).saturating_sub(backward) * microbatches
            } else {
                way.saturating_sub(backward)
            };
            let update = self.job.optimizer.traffic() * updated / host.update;
            let weights =
                if offload.weights() { Seconds::ZERO } else { self.job.precision.size() * updated / host.read };
            step.optimizer = update.max(weights);
        }
        let waits = out.saturating_sub(forward) + ahead.saturating_sub(forward) + back.saturating_sub(backward);
        step.other.host = waits * microbatches + once;
        // Stragglers grow with what there is to wait for.
        step.other.stragglers = full.other.stragglers * (step.before_stragglers() / full.before_stragglers());
        step
    }
}
