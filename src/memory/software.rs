//! What the training software keeps beside the model's tensors.

use crate::catalog::memory_allowance::{FrameworkMemory, MemoryAllowance, SelectiveRecompute};
use crate::catalog::training_efficiency::AttentionKernel;
use crate::units::{Bytes, Factor, Fraction};

/// What a planner may change of a layout's memory without changing its groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Ranks that split states among them where sharding is on; 0 for all that hold the same. With fewer than all, each
    /// such group holds a copy (hybrid sharding, arXiv 2304.11277, section 3.2.2).
    pub shard_ranks: u32,
    /// Whether optimizer states are kept in the hosts' memory (ZeRO-Offload, arXiv 2101.06840).
    pub offload_optimizer: bool,
    /// Tokens of the fullest expert rank over the average.
    pub expert_imbalance: Factor,
    /// Layers of each stage that full recomputation covers; none for all.
    pub recomputed_layers: Option<u32>,
}

impl Policy {
    /// States split by all ranks that hold the same and kept on the accelerator, experts loaded evenly.
    pub const PLAIN: Self =
        Self { shard_ranks: 0, offload_optimizer: false, expert_imbalance: Factor::ONE, recomputed_layers: None };
}

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
    /// Whether attention keeps its scores out of memory. Where it doesn't, dropout's masks are counted too, as the
    /// training runs of that time had it.
    pub fused_attention: bool,
    /// What the planner chose beside the layout.
    pub policy: Policy,
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
            fused_attention: kernel != AttentionKernel::Unfused,
            policy: Policy::PLAIN,
        }
    }

    /// What a process can have of an accelerator's memory, of the capacity that the driver reports.
    pub fn usable(&self, memory_capacity: Bytes) -> Bytes {
        memory_capacity.saturating_sub(self.driver_reserve)
    }
}
