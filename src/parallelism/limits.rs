//! Layouts that cannot be, with the numbers that clash and what would work.

use super::{ContextExchange, Layout, Schedule};
use crate::catalog::model::Mixer;
use crate::workload::{Layers, TrainingJob, Transformer};

/// Why a layout cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A degree is zero.
    #[error("every degree of a layout is at least 1")]
    Zero,
    /// The accelerators are no multiple of a replica.
    #[error(
        "{accelerators} accelerators are no multiple of the {} of a replica (tensor {tensor} x context {context} x pipeline {pipeline}); {}",
        replica(*tensor, *context, *pipeline),
        neighbours(u64::from(*accelerators), replica(*tensor, *context, *pipeline))
    )]
    Accelerators {
        /// Accelerators at work.
        accelerators: u32,
        /// Tensor-parallel degree.
        tensor: u32,
        /// Context-parallel degree.
        context: u32,
        /// Pipeline stages.
        pipeline: u32,
    },
    /// Query heads don't split evenly.
    #[error("{heads} heads do not split over tensor {tensor}; {} do, and pipeline splits layers instead", divisors(*heads))]
    Heads {
        /// Query heads of the model.
        heads: u32,
        /// Tensor-parallel degree.
        tensor: u32,
    },
    /// Key and value heads neither split nor copy evenly.
    #[error(
        "{kv_heads} key and value heads neither split over tensor {tensor} nor repeat in it; divisors and multiples of {kv_heads} work"
    )]
    KvHeads {
        /// Key and value heads of the model.
        kv_heads: u32,
        /// Tensor-parallel degree.
        tensor: u32,
    },
    /// The MLP's width doesn't split evenly.
    #[error("an MLP of width {ffn} does not split over tensor {tensor}; {} do", divisors(*ffn))]
    Ffn {
        /// Width inside the MLP, or inside an expert.
        ffn: u32,
        /// Tensor-parallel degree.
        tensor: u32,
    },
    /// A recurrent layer doesn't split evenly.
    #[error("{count} {part} of a recurrent layer do not split over tensor {tensor}; {} do", divisors(*count))]
    Recurrent {
        /// What would be split.
        part: &'static str,
        /// How many there are.
        count: u32,
        /// Tensor-parallel degree.
        tensor: u32,
    },
    /// The sequence doesn't split evenly.
    #[error("a sequence of {sequence_length} tokens does not split over {parts} ranks (context {context}{})", if *parts == u64::from(*context) { "" } else { " x tensor, by sequence parallelism" })]
    Sequence {
        /// Tokens of a sequence.
        sequence_length: u32,
        /// Context-parallel degree.
        context: u32,
        /// Ranks that would hold a part each.
        parts: u64,
    },
    /// Heads don't split over context ranks too.
    #[error(
        "{heads} heads do not split over {parts} ranks (tensor x context), which \"all-to-all\" exchanges them among; \"all-gather\" and \"ring\" split the sequence alone"
    )]
    ContextHeads {
        /// Query heads of the model.
        heads: u32,
        /// Ranks that would hold some each.
        parts: u64,
    },
    /// The batch is no multiple of what the replicas take at once.
    #[error(
        "a global batch of {global_batch} is no multiple of {} (data {data} x micro_batch {micro_batch}); {}",
        u64::from(*data) * u64::from(*micro_batch),
        neighbours(u64::from(*global_batch), u64::from(*data) * u64::from(*micro_batch))
    )]
    GlobalBatch {
        /// Sequences of a step.
        global_batch: u32,
        /// Data-parallel replicas.
        data: u32,
        /// Sequences of a forward pass.
        micro_batch: u32,
    },
    /// Virtual stages where the schedule has none, or the reverse.
    #[error(
        "schedule \"{schedule}\" with pipeline {pipeline} and virtual_stages {virtual_stages}: \"interleaved\" needs at least 2 of both, the others have virtual_stages 1"
    )]
    VirtualStages {
        /// The schedule.
        schedule: Schedule,
        /// Pipeline stages.
        pipeline: u32,
        /// Chunks of layers on a stage.
        virtual_stages: u32,
    },
    /// Interleaving needs whole rounds of microbatches.
    #[error("interleaving takes microbatches in rounds of pipeline {pipeline}, and there are {microbatches}; {}", neighbours(u64::from(*microbatches), u64::from(*pipeline)))]
    InterleavedRounds {
        /// Microbatches of a step.
        microbatches: u32,
        /// Pipeline stages.
        pipeline: u32,
    },
    /// Both ends of the pipeline are fed alike.
    #[error("dualpipe feeds both ends: an even pipeline and an even number of microbatches, at least {}; not {pipeline} and {microbatches}", 2 * pipeline)]
    BothEnds {
        /// Pipeline stages.
        pipeline: u32,
        /// Microbatches of a step.
        microbatches: u32,
    },
    /// More chunks than there is to put in them.
    #[error("{chunks} chunks (pipeline x virtual_stages) are more than {layers} layers, the embedding and the loss; at most {} work", layers + 2)]
    Stages {
        /// Layers of the model.
        layers: u32,
        /// Chunks that would hold some each.
        chunks: u64,
    },
    /// A split of the layers for other stages, or of other layers.
    #[error(
        "stage_layers splits {split} layers into {listed}, and the model has {layers} layers on {chunks} chunks (pipeline x virtual_stages)"
    )]
    StageLayers {
        /// Layers that the split names.
        split: u32,
        /// Chunks that it names.
        listed: u32,
        /// Layers of the model.
        layers: u32,
        /// Chunks of the pipeline.
        chunks: u64,
    },
    /// A split of the layers where stages hold those of two ends.
    #[error("stage_layers with schedule \"dualpipe\", whose stages hold the layers of both ends, is not modelled")]
    BothEndsSplit,
    /// Expert parallelism without experts.
    #[error("expert {expert} needs a mixture-of-experts model; a dense one has expert 1")]
    NoExperts {
        /// Expert-parallel degree.
        expert: u32,
    },
    /// Experts don't split evenly.
    #[error("{experts} experts do not split over expert {expert}; {} do", divisors(*experts))]
    Experts {
        /// Routed experts of a layer.
        experts: u32,
        /// Expert-parallel degree.
        expert: u32,
    },
    /// The ranks of a stage don't split evenly into expert groups.
    #[error("the {ranks} ranks of a stage (tensor x context x data) do not split into groups of expert {expert}; {} do", divisors(*ranks))]
    ExpertRanks {
        /// Expert-parallel degree.
        expert: u32,
        /// Ranks of a stage.
        ranks: u32,
    },
    /// States don't split evenly into groups.
    #[error("the {ranks} ranks that hold the same weights (data x context) do not split into groups of shard_ranks {shard_ranks}; {} do", divisors(*ranks))]
    ShardRanks {
        /// Ranks that split states among them.
        shard_ranks: u32,
        /// Ranks that hold the same.
        ranks: u32,
    },
}

fn replica(tensor: u32, context: u32, pipeline: u32) -> u64 {
    (u64::from(tensor) * u64::from(context)).saturating_mul(u64::from(pipeline))
}

/// The multiples of `step` around a number.
fn neighbours(number: u64, step: u64) -> String {
    let below = number / step * step;
    if below == 0 { format!("{step} would be") } else { format!("{below} or {} would be", below + step) }
}

/// Degrees that divide a count, up to what is of use: "1, 2, 4 or 8".
fn divisors(count: u32) -> String {
    const MOST: u32 = 1_024;
    let all: Vec<String> = (1..=count.min(MOST)).filter(|n| count.is_multiple_of(*n)).map(|n| n.to_string()).collect();
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => all.concat(),
    }
}

fn ensure(holds: bool, error: LayoutError) -> Result<(), LayoutError> {
    if holds { Ok(()) } else { Err(error) }
}

impl Layout {
    /// Whether this layout can run that job on that model. Memory is another question.
    ///
    /// # Errors
    /// The first clash of numbers found.
    pub fn check(&self, model: &Transformer, job: &TrainingJob) -> Result<(), LayoutError> {
        self.check_width(model, job)?;
        self.check_experts(model)?;
        self.check_pipeline(model, job)
    }

    /// The same for a model of several kinds of layers: every kind must split.
    ///
    /// # Errors
    /// The first clash of numbers found.
    pub fn check_layers(&self, layers: Layers<'_>, job: &TrainingJob) -> Result<(), LayoutError> {
        let mixed = match layers {
            Layers::Alike(model) => return self.check(model, job),
            Layers::Mixed(mixed) => mixed,
        };
        for block in &mixed.model.blocks {
            // The tensor axis of layers without attention is held against what they split below.
            let attends = matches!(block.mixer, Mixer::Attention(_) | Mixer::Latent(_) | Mixer::Compressed(_));
            let alone = mixed.alone(block);
            let split =
                if attends { alone } else { Transformer { heads: self.tensor, kv_heads: self.tensor, ..alone } };
            self.check(&split, job)?;
            self.check_recurrent(&block.mixer)?;
            if let Some(moe) = block.moe() {
                for ffn in [moe.shared_ffn, moe.beside.map_or(0, |mlp| mlp.ffn)] {
                    ensure(ffn.is_multiple_of(self.tensor), LayoutError::Ffn { ffn, tensor: self.tensor })?;
                }
            }
        }
        Ok(())
    }

    /// Heads and groups of recurrent layers are split as those of attention are.
    fn check_recurrent(&self, mixer: &Mixer) -> Result<(), LayoutError> {
        let tensor = self.tensor;
        let parts: [(&'static str, u32); 2] = match mixer {
            Mixer::Mamba2(mamba) => [("heads", mamba.heads), ("groups", mamba.groups)],
            Mixer::Mamba(mamba) => [("channels", mamba.inner); 2],
            Mixer::GatedDelta(delta) => [("value heads", delta.value_heads), ("key heads", delta.key_heads)],
            Mixer::None | Mixer::Attention(_) | Mixer::Latent(_) | Mixer::Compressed(_) => return Ok(()),
        };
        parts.into_iter().try_for_each(|(part, count)| {
            ensure(count.is_multiple_of(tensor), LayoutError::Recurrent { part, count, tensor })
        })
    }

    /// Tensor and context parallelism.
    fn check_width(&self, model: &Transformer, job: &TrainingJob) -> Result<(), LayoutError> {
        let (tensor, context, sequence_length) = (self.tensor, self.context, job.sequence_length);
        let kv_heads = model.kv_heads;
        ensure(
            self.accelerators() > 0 && self.expert > 0 && self.virtual_stages > 0 && self.micro_batch > 0,
            LayoutError::Zero,
        )?;
        ensure(model.heads.is_multiple_of(tensor), LayoutError::Heads { heads: model.heads, tensor })?;
        let fits = kv_heads.is_multiple_of(tensor) || tensor.is_multiple_of(kv_heads);
        ensure(fits, LayoutError::KvHeads { kv_heads, tensor })?;
        ensure(model.ffn.is_multiple_of(tensor), LayoutError::Ffn { ffn: model.ffn, tensor })?;
        let parts = u64::from(context) * u64::from(tensor);
        let exchanged = self.context_exchange == ContextExchange::AllToAll && context > 1;
        ensure(
            !exchanged || u64::from(model.heads).is_multiple_of(parts),
            LayoutError::ContextHeads { heads: model.heads, parts },
        )?;
        let parts = u64::from(context) * u64::from(self.sequence_shards());
        ensure(
            u64::from(sequence_length).is_multiple_of(parts),
            LayoutError::Sequence { sequence_length, context, parts },
        )?;
        let (shard_ranks, ranks) = (self.shard_ranks, self.data_ranks());
        ensure(shard_ranks == 0 || ranks.is_multiple_of(shard_ranks), LayoutError::ShardRanks { shard_ranks, ranks })
    }

    /// Expert parallelism.
    fn check_experts(&self, model: &Transformer) -> Result<(), LayoutError> {
        let expert = self.expert;
        let Some(experts) = model.experts else { return ensure(expert == 1, LayoutError::NoExperts { expert }) };
        ensure(experts.count.is_multiple_of(expert), LayoutError::Experts { experts: experts.count, expert })?;
        // No more than all ranks, which are accelerators.
        let ranks = self.tensor * self.data_ranks();
        ensure(ranks.is_multiple_of(expert), LayoutError::ExpertRanks { expert, ranks })?;
        let whole = expert > 1 || experts.ffn.is_multiple_of(self.tensor);
        ensure(whole, LayoutError::Ffn { ffn: experts.ffn, tensor: self.tensor })
    }

    /// Batch and pipeline.
    fn check_pipeline(&self, model: &Transformer, job: &TrainingJob) -> Result<(), LayoutError> {
        let Self { data, micro_batch, schedule, pipeline, virtual_stages, .. } = *self;
        let global_batch = job.global_batch;
        let step = u64::from(data) * u64::from(micro_batch);
        let whole = global_batch > 0 && u64::from(global_batch).is_multiple_of(step);
        ensure(whole, LayoutError::GlobalBatch { global_batch, data, micro_batch })?;
        let interleaved = schedule == Schedule::Interleaved;
        let stages_fit = if interleaved { virtual_stages > 1 && pipeline > 1 } else { virtual_stages == 1 };
        ensure(stages_fit, LayoutError::VirtualStages { schedule, pipeline, virtual_stages })?;
        let microbatches = self.microbatches(global_batch);
        let both = pipeline.is_multiple_of(2) && microbatches.is_multiple_of(2) && microbatches >= 2 * pipeline;
        ensure(schedule != Schedule::DualPipe || both, LayoutError::BothEnds { pipeline, microbatches })?;
        let rounds = !interleaved || microbatches.is_multiple_of(pipeline);
        ensure(rounds, LayoutError::InterleavedRounds { microbatches, pipeline })?;
        let (layers, chunks) = (model.layers, u64::from(pipeline) * u64::from(virtual_stages));
        if let Some(given) = &self.stage_layers {
            let (split, listed) = (given.total(), given.chunks());
            let fits = split == layers && u64::from(listed) == chunks;
            ensure(fits, LayoutError::StageLayers { split, listed, layers, chunks })?;
            ensure(schedule != Schedule::DualPipe, LayoutError::BothEndsSplit)?;
            return Ok(());
        }
        ensure(chunks <= u64::from(layers) + 2, LayoutError::Stages { layers, chunks })
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::SINGLE;
    use super::*;
    use crate::workload::shapes::{gpt, job, llama_405b, mixtral_8x7b};

    fn message(layout: Layout, model: &Transformer, sequences: u32) -> String {
        layout.check(model, &job(8_192, sequences)).unwrap_err().to_string()
    }

    #[test]
    fn the_published_layout_of_llama_3_405b_can_be() {
        let layout = Layout { tensor: 8, pipeline: 16, virtual_stages: 4, schedule: Schedule::Interleaved, ..SINGLE };
        assert_eq!(layout.over(16_384).unwrap().check(&llama_405b(), &job(8_192, 2_048)), Ok(()));
    }

    #[test]
    fn what_does_not_divide_says_what_would() {
        let model = llama_405b();
        assert_eq!(
            message(Layout { tensor: 3, ..SINGLE }, &model, 16),
            "128 heads do not split over tensor 3; 1, 2, 4, 8, 16, 32, 64 or 128 do, and pipeline splits layers instead"
        );
        let grouped = Transformer { kv_heads: 12, heads: 96, ..model };
        assert_eq!(
            message(Layout { tensor: 8, ..SINGLE }, &grouped, 16),
            "12 key and value heads neither split over tensor 8 nor repeat in it; divisors and multiples of 12 work"
        );
        assert_eq!(
            message(Layout { data: 10, micro_batch: 2, ..SINGLE }, &model, 64),
            "a global batch of 64 is no multiple of 20 (data 10 x micro_batch 2); 60 or 80 would be"
        );
        assert_eq!(
            message(Layout { data: 10, ..SINGLE }, &model, 4),
            "a global batch of 4 is no multiple of 10 (data 10 x micro_batch 1); 10 would be"
        );
        assert_eq!(
            message(Layout { context: 3, ..SINGLE }, &model, 16),
            "a sequence of 8192 tokens does not split over 3 ranks (context 3)"
        );
    }

    #[test]
    fn schedules_need_their_stages() {
        let model = gpt(96, 12_288, 96);
        let staged = Layout { pipeline: 8, schedule: Schedule::Interleaved, virtual_stages: 3, ..SINGLE };
        assert_eq!(staged.check(&model, &job(2_048, 64)), Ok(()));
        assert_eq!(
            message(staged, &model, 12),
            "interleaving takes microbatches in rounds of pipeline 8, and there are 12; 8 or 16 would be"
        );
        assert!(matches!(
            Layout { virtual_stages: 1, ..staged }.check(&model, &job(2_048, 64)),
            Err(LayoutError::VirtualStages { virtual_stages: 1, .. })
        ));
        assert_eq!(
            message(Layout { virtual_stages: 16, ..staged }, &model, 64),
            "128 chunks (pipeline x virtual_stages) are more than 96 layers, the embedding and the loss; at most 98 work"
        );
    }

    #[test]
    fn experts_need_ranks() {
        let model = mixtral_8x7b();
        assert_eq!(Layout { data: 16, expert: 8, ..SINGLE }.check(&model, &job(4_096, 256)), Ok(()));
        assert_eq!(
            message(Layout { data: 16, expert: 16, ..SINGLE }, &model, 256),
            "8 experts do not split over expert 16; 1, 2, 4 or 8 do"
        );
        assert_eq!(
            message(Layout { data: 4, expert: 8, ..SINGLE }, &model, 256),
            "the 4 ranks of a stage (tensor x context x data) do not split into groups of expert 8; 1, 2 or 4 do"
        );
        assert_eq!(
            message(Layout { data: 4, expert: 2, ..SINGLE }, &llama_405b(), 256),
            "expert 2 needs a mixture-of-experts model; a dense one has expert 1"
        );
    }
}
