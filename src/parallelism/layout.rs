//! The degrees of parallelism and the policies that go with them.

use super::{LayoutError, Recompute, StageLayers};
use crate::document::choices;
use crate::workload::TrainingJob;

choices! {
    /// The order of forward and backward passes in a pipeline.
    pub enum Schedule {
        /// All forward, then all backward.
        Gpipe = "gpipe",
        /// One forward, one backward once the pipeline is full.
        OneF1b = "1f1b",
        /// 1F1B with several chunks of layers on each stage.
        Interleaved = "interleaved",
        /// 1F1B whose weight gradients fill what would be idle (ZB-H1, arXiv 2401.10241).
        ZeroBubble = "zero-bubble",
        /// Microbatches enter at both ends; each stage holds its layers and those of its mirror image (DeepSeek-V3, arXiv
        /// 2412.19437, section 3.2.1).
        DualPipe = "dualpipe",
    }
}

choices! {
    /// How ranks that split the sequence let each query attend to all keys before it.
    pub enum ContextExchange {
        /// Keys and values are gathered before attention, and their gradients scattered after (Llama 3, arXiv 2407.21783,
        /// section 3.3.2).
        AllGather = "all-gather",
        /// Blocks of keys and values go round from neighbour to neighbour while attention works on those at hand (ring
        /// attention, arXiv 2310.01889).
        Ring = "ring",
        /// Heads are exchanged for parts of the sequence before attention, and back after (DeepSpeed Ulysses, arXiv
        /// 2309.14509).
        AllToAll = "all-to-all",
    }
}

choices! {
    /// What data-parallel ranks split among themselves instead of each holding a copy.
    pub enum Sharding {
        /// Nothing.
        None = "none",
        /// Optimizer states (ZeRO stage 1, Megatron's distributed optimizer).
        Optimizer = "optimizer",
        /// Optimizer states and gradients (ZeRO stage 2).
        OptimizerGradients = "optimizer+gradients",
        /// Weights too (ZeRO stage 3, fully sharded data parallelism).
        Full = "full",
        /// As "full", but among `shard_ranks` ranks, each such group holding a copy (hybrid sharding, arXiv 2304.11277,
        /// section 3.2.2).
        Hybrid = "hybrid",
    }
}

choices! {
    /// How parallel axes are laid on global ranks, fastest axis first.
    pub enum RankOrder {
        /// Tensor, context, expert, data, pipeline: Megatron's default.
        TpCpEpDpPp = "tp-cp-ep-dp-pp",
        /// Tensor, context, pipeline, data: Llama 3 (arXiv 2407.21783, section 3.3.2).
        TpCpPpDp = "tp-cp-pp-dp",
    }
}

impl Sharding {
    /// Those that need no size of a group.
    pub const UNGROUPED: &'static [Self] = &[Self::None, Self::Optimizer, Self::OptimizerGradients, Self::Full];

    /// Whether optimizer states are split.
    pub const fn optimizer(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether gradients are split.
    pub const fn gradients(self) -> bool {
        matches!(self, Self::OptimizerGradients | Self::Full | Self::Hybrid)
    }

    /// Whether weights are split.
    pub const fn weights(self) -> bool {
        matches!(self, Self::Full | Self::Hybrid)
    }
}

/// One way to spread a training job over accelerators.
///
/// With `expert` above one, experts are spread over the ranks of tensor, context and data axes together and not split
/// inside (expert tensor parallelism of one, as Megatron-Core folds it, arXiv 2504.14960); with `expert` at one, each
/// expert is split by `tensor` as an MLP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Ranks that split every matrix.
    pub tensor: u32,
    /// Ranks that split the sequence.
    pub context: u32,
    /// How they attend to what is on the others.
    pub context_exchange: ContextExchange,
    /// Stages that split the layers.
    pub pipeline: u32,
    /// Replicas that split the batch.
    pub data: u32,
    /// Ranks that split a layer's experts.
    pub expert: u32,
    /// Chunks of layers on a stage.
    pub virtual_stages: u32,
    /// Layers of each chunk; where they are not given, as even a split as there is.
    pub stage_layers: Option<StageLayers>,
    /// Sequences of a forward pass.
    pub micro_batch: u32,
    /// The order of passes.
    pub schedule: Schedule,
    /// What data-parallel ranks split.
    pub sharding: Sharding,
    /// Ranks among which they split it, each such group holding a copy; 0 for all that hold the same.
    pub shard_ranks: u32,
    /// What is computed again.
    pub recompute: Recompute,
    /// Whether tensor ranks also split what lies between the matrices along the sequence.
    pub sequence_parallel: bool,
    /// The order of axes on ranks.
    pub order: RankOrder,
}

impl std::fmt::Display for Layout {
    /// The degrees above one and the policies, in words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tensor {}, pipeline {}", self.tensor, self.pipeline)?;
        for (name, degree) in
            [("virtual stages", self.virtual_stages), ("expert", self.expert), ("context", self.context)]
        {
            if degree > 1 {
                write!(f, ", {name} {degree}")?;
            }
        }
        if self.context > 1 {
            write!(f, " by {}", self.context_exchange)?;
        }
        if let Some(layers) = self.stage_layers {
            write!(f, ", stage_layers {layers}")?;
        }
        let Self { data, micro_batch, schedule, sharding, recompute, .. } = self;
        write!(f, ", data {data}, micro_batch {micro_batch}, {schedule}, sharding {sharding}, recompute {recompute}")?;
        if self.tensor > 1 && !self.sequence_parallel {
            write!(f, ", no sequence parallelism")?;
        }
        Ok(())
    }
}

impl Layout {
    /// One rank with everything on it.
    pub const SINGLE: Self = Self {
        tensor: 1,
        context: 1,
        context_exchange: ContextExchange::AllGather,
        pipeline: 1,
        data: 1,
        expert: 1,
        virtual_stages: 1,
        stage_layers: None,
        micro_batch: 1,
        schedule: Schedule::OneF1b,
        sharding: Sharding::None,
        shard_ranks: 0,
        recompute: Recompute::None,
        sequence_parallel: false,
        order: RankOrder::TpCpEpDpPp,
    };

    /// Ranks that hold one copy of the model; of absurd degrees, the most that 64 bits hold.
    pub const fn replica(&self) -> u64 {
        (self.tensor as u64 * self.context as u64).saturating_mul(self.pipeline as u64)
    }

    /// Ranks in all.
    pub const fn accelerators(&self) -> u64 {
        self.replica().saturating_mul(self.data as u64)
    }

    /// This layout with as many data-parallel replicas as fill the accelerators.
    ///
    /// # Errors
    /// When a degree is zero, or the accelerators are no multiple of a replica.
    pub fn over(self, accelerators: u32) -> Result<Self, LayoutError> {
        let replica = self.replica();
        if replica == 0 || self.expert == 0 || self.virtual_stages == 0 || self.micro_batch == 0 {
            return Err(LayoutError::Zero);
        }
        let error = LayoutError::Accelerators {
            accelerators,
            tensor: self.tensor,
            context: self.context,
            pipeline: self.pipeline,
        };
        match u32::try_from(u64::from(accelerators) / replica) {
            Ok(data) if data > 0 && u64::from(data) * replica == u64::from(accelerators) => Ok(Self { data, ..self }),
            _ => Err(error),
        }
    }

    /// Forward passes of a replica in an optimizer step; exact for a layout that [`Layout::check`] let pass.
    pub const fn microbatches(&self, global_batch: u32) -> u32 {
        let step = self.data as u64 * self.micro_batch as u64;
        #[allow(clippy::cast_possible_truncation, reason = "a quotient of a number of 32 bits")]
        let passes = (global_batch as u64 / step) as u32;
        passes
    }

    /// Tokens of a microbatch on one rank of the context axis.
    pub fn tokens_per_microbatch(&self, job: &TrainingJob) -> f64 {
        f64::from(self.micro_batch) * f64::from(job.sequence_length) / f64::from(self.context)
    }

    /// Ranks that split what lies between the matrices.
    pub const fn sequence_shards(&self) -> u32 {
        if self.sequence_parallel { self.tensor } else { 1 }
    }

    /// Key and value heads on a rank of a model with so many: at least one, so that they are copied beyond that.
    pub const fn kv_heads_per_rank(&self, kv_heads: u32) -> u32 {
        if kv_heads > self.tensor { kv_heads / self.tensor } else { 1 }
    }

    /// Into how many parts the weights of a layer's experts are cut.
    pub const fn expert_shards(&self) -> u32 {
        if self.expert > 1 { self.expert } else { self.tensor }
    }

    /// Ranks that hold the same dense weights and split the batch and the sequence: they reduce gradients together, and
    /// split what `sharding` says.
    pub const fn data_ranks(&self) -> u32 {
        self.data * self.context
    }

    /// Ranks that split dense states among them, and those that split the experts': all that hold the same, or the size of
    /// a shard group.
    pub fn sharding_ranks(&self) -> [u32; 2] {
        let most = if self.shard_ranks == 0 { u32::MAX } else { self.shard_ranks };
        [self.data_ranks().min(most), self.expert_data_ranks().min(most)]
    }

    /// Ranks that hold the same experts.
    pub const fn expert_data_ranks(&self) -> u32 {
        self.tensor * self.context * self.data / self.expert_shards()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A layout with every degree at one.
    pub(crate) const SINGLE: Layout = Layout::SINGLE;

    #[test]
    fn data_parallel_fills_the_accelerators() {
        let layout = Layout { tensor: 8, pipeline: 16, ..SINGLE };
        let filled = layout.over(16_384).unwrap();
        assert_eq!((filled.data, filled.microbatches(2_048)), (128, 16));
        let error = layout.over(16_200).unwrap_err();
        assert_eq!(
            error.to_string(),
            "16200 accelerators are no multiple of the 128 of a replica (tensor 8 x context 1 x pipeline 16); 16128 or 16256 would be"
        );
        assert_eq!(Layout { tensor: 0, ..SINGLE }.over(8), Err(LayoutError::Zero));
        let absurd = Layout { tensor: 1 << 31, context: 1 << 31, pipeline: 1 << 31, ..SINGLE };
        assert!(absurd.over(8).unwrap_err().to_string().contains("no multiple"));
        assert_eq!(Layout { data: 1 << 20, micro_batch: 1 << 20, ..SINGLE }.microbatches(64), 0);
    }

    #[test]
    fn key_and_value_heads_are_copied_beyond_their_number() {
        let at = |tensor| Layout { tensor, ..SINGLE }.kv_heads_per_rank(8);
        assert_eq!([at(1), at(4), at(8), at(16)], [8, 2, 1, 1]);
    }

    #[test]
    fn experts_are_split_by_expert_or_else_by_tensor() {
        let layout = Layout { tensor: 2, data: 8, ..SINGLE };
        assert_eq!((layout.expert_shards(), layout.expert_data_ranks()), (2, 8));
        let spread = Layout { expert: 8, ..layout };
        assert_eq!((spread.expert_shards(), spread.expert_data_ranks()), (8, 2));
    }
}
