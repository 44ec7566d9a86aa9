//! What the training software keeps beside the model's tensors.

use crate::catalog::memory_allowance::{FrameworkMemory, MemoryAllowance, SelectiveRecompute};
use crate::catalog::training_efficiency::AttentionKernel;
use crate::units::{Bytes, Fraction};

/// The software's allowances and habits, bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Software {
    /// Memory that the driver keeps of what it reports.
    pub driver_reserve: Bytes,
    /// The context of the process.
    pub context: Bytes,
    /// Buffers of one communicator.
    pub communicator: Bytes,
    /// What the allocator holds beyond the peak of activations and buffers, over that peak.
    pub fragmentation: Fraction,
    /// Memory of one logit at the loss's peak.
    pub logit: Bytes,
    /// What selective recomputation drops.
    pub selective_recompute: SelectiveRecompute,
    /// Whether matrix multiplications in low precision keep their inputs as they were cast, not whole.
    pub cast_inputs: bool,
    /// Whether weights are kept in single precision alone, and cast as they are multiplied.
    pub casts_weights: bool,
    /// Whether attention keeps its scores out of memory. Where it doesn't, dropout's masks are counted too, as the
    /// training runs of that time had it.
    pub fused_attention: bool,
}

impl Software {
    /// Binds the catalog's typical values with what the framework keeps.
    pub fn new(allowance: &MemoryAllowance, framework: FrameworkMemory, kernel: AttentionKernel) -> Self {
        Self {
            driver_reserve: allowance.driver_reserve.value,
            context: allowance.context.value,
            communicator: allowance.communicator.value,
            fragmentation: allowance.fragmentation.value,
            logit: framework.logit,
            selective_recompute: framework.selective_recompute,
            cast_inputs: framework.cast_inputs,
            casts_weights: framework.casts_weights,
            fused_attention: kernel != AttentionKernel::Unfused,
        }
    }

    /// What a process can have of an accelerator's memory, of the capacity that the driver reports.
    pub fn usable(&self, memory_capacity: Bytes) -> Bytes {
        memory_capacity.saturating_sub(self.driver_reserve)
    }
}
