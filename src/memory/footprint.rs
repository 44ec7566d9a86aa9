//! The footprint of a rank.

use super::Software;
use crate::parallelism::{Layout, RankParameters, Schedule, Stage, StagePlan};
use crate::units::Bytes;
use crate::workload::{LayerKind, TrainingJob, Transformer};

/// Bytes of one accelerator, by component.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryFootprint {
    /// Weights in the number format of the forward pass.
    pub weights: Bytes,
    /// Gradients as they are accumulated.
    pub gradients: Bytes,
    /// Master weights and moments.
    pub optimizer: Bytes,
    /// What layers keep of the microbatches in flight, and the logits.
    pub activations: Bytes,
    /// Keys and values of a serving engine; none in training.
    pub kv_cache: Bytes,
    /// What is held for the layer at work, buffers of libraries, and what the allocator cannot use.
    pub workspace: Bytes,
}

impl MemoryFootprint {
    /// The sum of all components.
    pub fn total(&self) -> Bytes {
        self.weights + self.gradients + self.optimizer + self.activations + self.kv_cache + self.workspace
    }

    /// Whether it fits into that much.
    pub fn fits(&self, usable: Bytes) -> bool {
        self.total() <= usable
    }
}

/// The footprint of a rank on the stage of that index, for a layout that `Layout::check` let pass.
pub fn footprint(
    model: &Transformer,
    job: &TrainingJob,
    layout: &Layout,
    software: &Software,
    stage: u32,
) -> MemoryFootprint {
    Rank { model, job, layout, software }.footprint(stage)
}

/// The stage that takes most, and what it takes.
pub fn worst(model: &Transformer, job: &TrainingJob, layout: &Layout, software: &Software) -> (u32, MemoryFootprint) {
    let rank = Rank { model, job, layout, software };
    let last = layout.pipeline - 1;
    let mut most = (0, rank.footprint(0));
    let mut consider = |stage: u32| {
        let footprint = rank.footprint(stage);
        if footprint.total() > most.1.total() {
            most = (stage, footprint);
        }
    };
    if last > 0 && rank.uniform() {
        // Later stages keep fewer microbatches and no more layers than the second; only the last holds the loss.
        consider(1);
        consider(last);
    } else {
        (1..=last).for_each(consider);
    }
    most
}

/// The footprints of all stages, in order.
pub fn all_stages<'a>(
    model: &'a Transformer,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
) -> impl Iterator<Item = MemoryFootprint> + 'a {
    (0..layout.pipeline).map(move |stage| footprint(model, job, layout, software, stage))
}

#[derive(Clone, Copy)]
struct Rank<'a> {
    model: &'a Transformer,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
}

impl Rank<'_> {
    /// Whether all layers are of one kind.
    fn uniform(&self) -> bool {
        self.model.dense_layers() == 0 || self.model.moe_layers() == 0
    }

    fn footprint(&self, index: u32) -> MemoryFootprint {
        let stage = StagePlan::new(self.model.layers, self.layout).stage(index, self.model);
        let held = self.layout.stage_shard(self.model, stage);
        let sharding = self.layout.sharding;
        let activations = self.activations(stage, index);
        let buffers = self.buffers(stage, held);
        let pooled = (activations + buffers) * self.software.fragmentation.get();
        MemoryFootprint {
            weights: self.job.precision.size() * self.share(held, sharding.weights()),
            gradients: self.job.gradients.size() * self.share(held, sharding.gradients()),
            optimizer: self.job.optimizer.state_size() * self.share(held, sharding.optimizer()),
            activations,
            kv_cache: Bytes::ZERO,
            workspace: buffers + pooled + self.software.context + self.communicators(),
        }
    }

    /// Parameters of the rank that it keeps something of: all that it holds, or its part among those who hold the same.
    fn share(&self, held: RankParameters, sharded: bool) -> f64 {
        if !sharded {
            return held.total();
        }
        held.dense() / f64::from(self.layout.data_ranks()) + held.experts / f64::from(self.layout.expert_data_ranks())
    }

    /// Layers of the microbatches in flight; on the first stage the mask of the embedding's dropout, on the last the input
    /// of the last norm, its output, and the logits (Korthikanti et al., section 4.3).
    fn activations(&self, stage: Stage, index: u32) -> Bytes {
        let Self { model, job, layout, software } = self;
        let microbatches = layout.microbatches(job.global_batch);
        let in_flight = layout.in_flight(index, microbatches);
        let layers = |kind, count: u32| {
            if count == 0 {
                Bytes::ZERO
            } else {
                layout.layer_activations(model, kind, job, software).kept * f64::from(count)
            }
        };
        let mut kept =
            (layers(LayerKind::Dense, stage.dense_layers) + layers(LayerKind::Moe, stage.moe_layers)) * in_flight;
        let tokens = layout.tokens_per_microbatch(job);
        let stream = tokens * f64::from(model.hidden) / f64::from(layout.sequence_shards());
        if stage.embedding && !software.fused_attention {
            kept += Bytes::new(stream * in_flight);
        }
        if stage.head {
            let logits = self.logits();
            let waiting = if layout.schedule == Schedule::Gpipe { in_flight } else { 1.0 };
            // One microbatch is at its peak; those that wait for their backward pass keep fp32 logits.
            kept += (job.precision.size() * (2.0 * stream) + Bytes::new(4.0 * logits)) * waiting;
            kept += software.logit.saturating_sub(Bytes::new(4.0)) * logits + self.gathered_input();
        }
        kept
    }

    /// With sequence parallelism, the input that tensor ranks gather for the matrices at work, and its gradient.
    fn gathered_input(&self) -> Bytes {
        let Self { model, job, layout, .. } = self;
        if !layout.sequence_parallel || layout.tensor == 1 {
            return Bytes::ZERO;
        }
        job.precision.size() * (2.0 * layout.tokens_per_microbatch(job) * f64::from(model.hidden))
    }

    /// Logits of one microbatch on a rank.
    fn logits(&self) -> f64 {
        self.layout.tokens_per_microbatch(self.job) * f64::from(self.model.vocab) / f64::from(self.layout.tensor)
    }

    /// What the layer at work holds for a while: the gradient of its weights before it joins the others, what it computes
    /// again, and the gathered weights of fully sharded ones; on the last stage also the output projection's gradient.
    fn buffers(&self, stage: Stage, held: RankParameters) -> Bytes {
        let Self { model, job, layout, software } = self;
        let number = job.precision.size();
        let sharded = layout.sharding.weights();
        // Between microbatches of a pipeline, gathered weights stay and gradients add up unsharded: gathering again for
        // each would cost more than the bubble (torchtitan keeps them so, reshard_after_forward being off).
        let stays = sharded && layout.pipeline > 1;
        // The loss's buffers are gone when the last layer's backward pass begins.
        let freed = if stage.head { software.logit * self.logits() + self.gathered_input() } else { Bytes::ZERO };
        let at_work = |kind, count: u32| {
            if count == 0 {
                return Bytes::ZERO;
            }
            let parameters = layout.layer_shard(model, kind).total();
            // Its own and the next one's, fetched ahead.
            let gathered = if sharded && !stays { 2.0 * parameters } else { 0.0 };
            let recomputed = layout.layer_activations(model, kind, job, software).recomputed;
            number * (parameters + gathered) + (recomputed + self.gathered_input()).saturating_sub(freed)
        };
        let layer = at_work(LayerKind::Dense, stage.dense_layers).max(at_work(LayerKind::Moe, stage.moe_layers));
        let table = |here: bool| if here { layout.table_shard(model) } else { 0.0 };
        let tables = number * (table(stage.head) + table(sharded && !stays && (stage.head || stage.embedding)));
        let staying = if stays { (number + job.gradients.size()) * held.total() } else { Bytes::ZERO };
        layer + tables + staying
    }

    fn communicators(&self) -> Bytes {
        let groups = self.layout.groups();
        let used = |sizes: &[u32]| sizes.iter().filter(|size| **size > 1).count();
        let axes = used(&[groups.tensor.size, groups.context.size, groups.pipeline.size, groups.data.size]);
        // Experts that are not spread are reduced with the rest.
        let experts = if groups.expert.size > 1 { used(&[groups.expert.size, groups.expert_data.size]) } else { 0 };
        self.software.communicator * (axes + experts) as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::catalog::memory_allowance::SelectiveRecompute;
    use crate::parallelism::{Recompute, SINGLE, Sharding};
    use crate::units::Fraction;
    use crate::workload::GradientPrecision;
    use crate::workload::shapes::{gpt, job, llama, llama_405b, mixtral_8x7b};

    const GIB: f64 = 1_073_741_824.0;

    /// Fused attention and no allowances.
    pub(crate) const FUSED: Software = Software {
        driver_reserve: Bytes::ZERO,
        context: Bytes::ZERO,
        communicator: Bytes::ZERO,
        fragmentation: Fraction::ZERO,
        logit: Bytes::new(4.0),
        selective_recompute: SelectiveRecompute::AttentionCore,
        fused_attention: true,
    };

    /// Scores in memory and no allowances.
    pub(crate) const UNFUSED: Software = Software { fused_attention: false, ..FUSED };

    /// Megatron-Core on an H100 with the catalog's typical allowances.
    fn megatron() -> Software {
        Software {
            driver_reserve: Bytes::new(0.5 * GIB),
            context: Bytes::new(0.6 * GIB),
            communicator: Bytes::new(0.6 * GIB),
            fragmentation: Fraction::new(0.05).unwrap(),
            logit: Bytes::new(6.0),
            ..FUSED
        }
    }

    #[test]
    fn states_follow_the_zero_paper() {
        // Figure 1 of arXiv 1910.02054: 7.5 billion parameters on 64 ranks take 120, 31.4, 16.6 and 1.9 GB.
        let model = gpt(36, 4_096, 32);
        let job = TrainingJob { gradients: GradientPrecision::Bf16, ..job(2_048, 64) };
        let parameters = model.parameters().total() as f64;
        let expected = [
            (Sharding::None, 120.0),
            (Sharding::Optimizer, 31.4),
            (Sharding::OptimizerGradients, 16.6),
            (Sharding::Full, 1.9),
        ];
        for (sharding, gigabytes) in expected {
            let footprint = footprint(&model, &job, &Layout { data: 64, sharding, ..SINGLE }, &FUSED, 0);
            let states = footprint.weights + footprint.gradients + footprint.optimizer;
            let scaled = states * (7.5e9 / parameters) / Bytes::new(1e9);
            assert!((scaled - gigabytes).abs() < 0.05, "{sharding}: {scaled}");
        }
    }

    #[test]
    fn activations_of_whole_models_follow_korthikanti() {
        // Figure 1 of arXiv 2205.05198, first stage, digitised in calculon's validation data: GiB without recomputation
        // and without sequence parallelism, and with both selective recomputation and sequence parallelism.
        let interleaved = |pipeline, virtual_stages| Layout {
            tensor: 8,
            pipeline,
            virtual_stages,
            schedule: if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneF1b },
            ..SINGLE
        };
        let rows = [
            (gpt(48, 6_144, 64), Layout { micro_batch: 4, ..interleaved(1, 1) }, 4, 59.25, 9.5625),
            (gpt(96, 12_288, 96), interleaved(8, 3), 64, 66.84, 12.35),
            (gpt(105, 20_480, 128), interleaved(35, 3), 280, 114.02, 23.08),
            (gpt(128, 25_600, 160), interleaved(64, 1), 512, 131.25, 26.56),
        ];
        for (model, plain, batch, without, with) in rows {
            let layers_only = |layout: &Layout| {
                let layer = layout.layer_activations(&model, LayerKind::Dense, &job(2_048, batch), &UNFUSED).kept;
                layer * f64::from(layout.most_layers(model.layers)) * layout.in_flight(0, layout.microbatches(batch))
                    / Bytes::new(GIB)
            };
            let new = Layout { recompute: Recompute::Selective, sequence_parallel: true, ..plain };
            assert!((layers_only(&plain) / without - 1.0).abs() < 0.005, "{}", layers_only(&plain));
            assert!((layers_only(&new) / with - 1.0).abs() < 0.005, "{}", layers_only(&new));
        }
    }

    #[test]
    fn llama_3_405b_fits_on_80_gb_without_recomputation() {
        // As arXiv 2407.21783, section 3.3.2, reports for TP8 PP16 at 8,192 tokens.
        let layout = Layout {
            tensor: 8,
            pipeline: 16,
            sharding: Sharding::OptimizerGradients,
            sequence_parallel: true,
            ..SINGLE
        };
        let (model, job) = (llama_405b(), job(8_192, 2_048));
        let usable = megatron().usable(Bytes::new(81_559.0 * 1_048_576.0));
        for accelerators in [8_192, 16_384] {
            let (stage, footprint) = worst(&model, &job, &layout.over(accelerators).unwrap(), &megatron());
            // The second stage holds eight layers to the first one's seven.
            assert_eq!(stage, 1);
            assert!(footprint.fits(usable), "{} of {usable}", footprint.total());
            assert!(!footprint.fits(usable * 0.8));
        }
    }

    #[test]
    fn measured_peaks_of_llama_3_70b_layers_are_met() {
        // SimuMax v1.2, docs/b200/b200_release_v1.2_summary.md: largest memory allocated by Megatron-Core on eight B200 for
        // 12 layers of Llama 3 70B, 4,096 tokens, microbatch 1, distributed optimizer. GiB.
        let model = llama(12, 8_192, 64, 28_672);
        let software =
            Software { fragmentation: Fraction::ZERO, context: Bytes::ZERO, communicator: Bytes::ZERO, ..megatron() };
        for (tensor, pipeline, data, measured) in
            [(1, 2, 4, 66.55), (2, 1, 4, 60.68), (4, 1, 2, 39.07), (8, 1, 1, 28.29)]
        {
            let layout = Layout {
                tensor,
                pipeline,
                data,
                sharding: Sharding::Optimizer,
                sequence_parallel: tensor > 1,
                ..SINGLE
            };
            let (_, footprint) = worst(&model, &job(4_096, 8 * data), &layout, &software);
            let error = footprint.total() / Bytes::new(measured * GIB) - 1.0;
            assert!(error.abs() < 0.04, "tensor {tensor}: {error}");
        }
    }

    #[test]
    fn measured_peaks_of_fully_sharded_llama_3_1_8b_are_met() {
        // torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: peak memory reserved, eager, 8,192 tokens, local batch 2,
        // selective recomputation. GiB.
        let software = Software {
            selective_recompute: SelectiveRecompute::AlternateMatmuls,
            logit: Bytes::new(14.0),
            context: Bytes::ZERO,
            communicator: Bytes::ZERO,
            ..megatron()
        };
        let model = llama(32, 4_096, 32, 14_336);
        for (data, measured) in [(8, 82.4), (128, 67.0)] {
            let layout =
                Layout { data, micro_batch: 2, sharding: Sharding::Full, recompute: Recompute::Selective, ..SINGLE };
            let footprint = footprint(&model, &job(8_192, 2 * data), &layout, &software, 0);
            let error = footprint.total() / Bytes::new(measured * GIB) - 1.0;
            assert!(error.abs() < 0.02, "{data}: {error}");
        }
    }

    #[test]
    fn sharded_weights_stay_gathered_in_a_pipeline() {
        let layout =
            Layout { tensor: 8, pipeline: 8, data: 8, sharding: Sharding::Full, sequence_parallel: true, ..SINGLE };
        let model = llama_405b();
        let of = |layout: &Layout| footprint(&model, &job(8_192, 256), layout, &FUSED, 1);
        let whole = of(&Layout { sharding: Sharding::None, ..layout });
        let (weights, gradients) = (whole.weights, whole.gradients);
        assert_eq!(of(&layout).workspace, whole.workspace + weights + gradients);
        assert_eq!(of(&layout).weights, weights / 8.0);
    }

    #[test]
    fn the_worst_stage_is_the_worst_of_all() {
        let software = megatron();
        let experts =
            crate::workload::Experts { count: 8, per_token: 2, ffn: 2_048, shared: 1, leading_dense_layers: 3 };
        let mixed = Transformer { experts: Some(experts), ..llama(31, 4_096, 32, 16_384) };
        for model in [llama_405b(), gpt(105, 20_480, 128), mixtral_8x7b(), mixed] {
            for (pipeline, virtual_stages, schedule) in [
                (1, 1, Schedule::OneF1b),
                (4, 1, Schedule::Gpipe),
                (8, 1, Schedule::OneF1b),
                (8, 2, Schedule::Interleaved),
                (5, 3, Schedule::Interleaved),
            ] {
                let layout = Layout {
                    tensor: 8,
                    pipeline,
                    virtual_stages,
                    schedule,
                    data: 8,
                    sequence_parallel: true,
                    ..SINGLE
                };
                let job = job(4_096, 320);
                let (stage, footprint) = worst(&model, &job, &layout, &software);
                let most =
                    all_stages(&model, &job, &layout, &software).map(|f| f.total()).fold(Bytes::ZERO, Bytes::max);
                assert_eq!(footprint.total(), most);
                assert_eq!(super::footprint(&model, &job, &layout, &software, stage), footprint);
            }
        }
    }

    #[test]
    fn experts_are_sharded_over_their_own_replicas() {
        let layout = Layout { data: 64, expert: 8, sharding: Sharding::Optimizer, ..SINGLE };
        let model = mixtral_8x7b();
        let footprint = footprint(&model, &job(4_096, 256), &layout, &FUSED, 0);
        let experts = 45_097_156_608.0;
        let dense = model.parameters().total() as f64 - experts;
        assert_eq!(footprint.weights, Bytes::new(2.0 * (dense + experts / 8.0)));
        assert_eq!(footprint.optimizer, Bytes::new(12.0 * (dense / 64.0 + experts / 8.0 / 8.0)));
    }
}
