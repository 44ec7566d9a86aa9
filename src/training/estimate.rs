//! What a step takes, in parts that add up.

use crate::units::{FlopRate, Flops, Seconds, TokenRate, Tokens};

/// Communication that compute does not hide, in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExposedCommunication {
    /// All-gathers and reduce-scatters (or all-reduces) of tensor parallelism.
    pub tensor: Seconds,
    /// Key and value exchange of context parallelism.
    pub context: Seconds,
    /// Dispatch and combine of expert parallelism.
    pub expert: Seconds,
    /// Messages between pipeline stages.
    pub pipeline: Seconds,
    /// Gradient reduction and weight gathering of data parallelism.
    pub data: Seconds,
}

impl ExposedCommunication {
    /// All of it.
    pub fn total(&self) -> Seconds {
        self.tensor + self.context + self.expert + self.pipeline + self.data
    }
}

/// What is neither arithmetic nor communication nor bubble nor optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OtherTime {
    /// Layers that wait for the host to launch their kernels.
    pub launch: Seconds,
    /// Accumulation of gradients over microbatches.
    pub accumulation: Seconds,
    /// Fixed time of a step: data loading, gradient norm, logging.
    pub step: Seconds,
    /// Waiting for the slowest of many ranks, and for the allocator.
    pub stragglers: Seconds,
    /// Waiting for data that come more slowly than they are used.
    pub data: Seconds,
    /// Waiting for what the hosts keep.
    pub host: Seconds,
}

impl OtherTime {
    /// All of it.
    pub fn total(&self) -> Seconds {
        self.launch + self.accumulation + self.step + self.stragglers + self.data + self.host
    }
}

/// A training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingEstimate {
    /// Arithmetic and streaming kernels of the slowest stage, recomputation included.
    pub compute: Seconds,
    /// Exposed communication.
    pub exposed: ExposedCommunication,
    /// Idle time of the pipeline's fill and drain.
    pub bubble: Seconds,
    /// Optimizer step.
    pub optimizer: Seconds,
    /// The rest.
    pub other: OtherTime,
    /// FLOPs that the model needs for the step, causal attention counted once (half of full).
    pub model_flops: Flops,
    /// FLOPs that the hardware carries out, recomputation included, causal attention.
    pub hardware_flops: Flops,
    /// FLOPs of the model with full attention, as Megatron-LM's formula counts.
    pub model_flops_full_attention: Flops,
    /// Tokens of the step.
    pub tokens: Tokens,
    /// Accelerators at work.
    pub accelerators: f64,
    /// Dense peak of one accelerator in the data type of the linear layers.
    pub peak: FlopRate,
}

impl TrainingEstimate {
    /// Time of the step: the sum of its parts.
    pub fn iteration(&self) -> Seconds {
        self.compute + self.exposed.total() + self.bubble + self.optimizer + self.other.total()
    }

    /// What stragglers make longer: all but them and the wait for data.
    pub(super) fn before_stragglers(&self) -> Seconds {
        let other = OtherTime { stragglers: Seconds::ZERO, data: Seconds::ZERO, ..self.other };
        self.compute + self.exposed.total() + self.bubble + self.optimizer + other.total()
    }

    /// Model FLOPs (causal attention) per accelerator over the step's time.
    pub fn rate_per_accelerator(&self) -> FlopRate {
        self.model_flops / self.iteration() / self.accelerators
    }

    /// Model FLOPs utilisation: model FLOPs, causal attention, over the dense peak.
    pub fn mfu(&self) -> f64 {
        self.rate_per_accelerator() / self.peak
    }

    /// Hardware FLOPs utilisation: recomputation counted, causal attention, over the dense peak.
    pub fn hfu(&self) -> f64 {
        self.hardware_flops / self.iteration() / self.accelerators / self.peak
    }

    /// Tokens of the whole job in a second.
    pub fn token_rate(&self) -> TokenRate {
        self.tokens / self.iteration()
    }
}
