//! Papers and measured peaks.

use super::*;
use crate::catalog::memory_allowance::SelectiveRecompute;
use crate::parallelism::{Module, Modules, SINGLE, Sharding};
use crate::units::{Factor, Fraction};
use crate::workload::shapes::{gpt, job, llama, llama_405b, mixtral_8x7b};
use crate::workload::{GradientPrecision, Offload, Optimizer};

const GIB: f64 = 1_073_741_824.0;

/// Fused attention and no allowances.
pub(crate) const FUSED: Software = Software {
    driver_reserve: Bytes::ZERO,
    context: Bytes::ZERO,
    communicator: Bytes::ZERO,
    fragmentation: Fraction::ZERO,
    logit: Bytes::new(4.0),
    selective_recompute: SelectiveRecompute::AttentionCore,
    cast_inputs: false,
    casts_weights: false,
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
    let layout =
        Layout { tensor: 8, pipeline: 16, sharding: Sharding::OptimizerGradients, sequence_parallel: true, ..SINGLE };
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
    for (tensor, pipeline, data, measured) in [(1, 2, 4, 66.55), (2, 1, 4, 60.68), (4, 1, 2, 39.07), (8, 1, 1, 28.29)] {
        let layout =
            Layout { tensor, pipeline, data, sharding: Sharding::Optimizer, sequence_parallel: tensor > 1, ..SINGLE };
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
    let experts = crate::workload::Experts { count: 8, per_token: 2, ffn: 2_048, shared: 1, leading_dense_layers: 3 };
    let mixed = Transformer { experts: Some(experts), ..llama(31, 4_096, 32, 16_384) };
    for model in [llama_405b(), gpt(105, 20_480, 128), mixtral_8x7b(), mixed] {
        for (pipeline, virtual_stages, schedule) in [
            (1, 1, Schedule::OneF1b),
            (4, 1, Schedule::Gpipe),
            (8, 1, Schedule::OneF1b),
            (8, 2, Schedule::Interleaved),
            (5, 3, Schedule::Interleaved),
        ] {
            let layout =
                Layout { tensor: 8, pipeline, virtual_stages, schedule, data: 8, sequence_parallel: true, ..SINGLE };
            let job = job(4_096, 320);
            let (stage, footprint) = worst(&model, &job, &layout, &software);
            let most = all_stages(&model, &job, &layout, &software).map(|f| f.total()).fold(Bytes::ZERO, Bytes::max);
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

#[test]
fn other_optimizers_keep_less() {
    let model = llama(32, 4_096, 32, 14_336);
    let of = |optimizer| {
        let job = TrainingJob { optimizer, ..job(4_096, 1) };
        footprint(&model, &job, &SINGLE, &FUSED, 0).optimizer
    };
    let parameters = model.parameters();
    let (all, tables) = (parameters.total() as f64, (parameters.embedding + parameters.head) as f64);
    assert_eq!(of(Optimizer::Adam), Bytes::new(12.0 * all));
    assert_eq!(of(Optimizer::AdamBf16), Bytes::new(8.0 * all));
    // A byte and 4/2048 for each of two moments, and the master weight.
    assert_eq!(of(Optimizer::Adam8bit), Bytes::new(6.003_906_25 * all));
    assert_eq!(of(Optimizer::Muon), Bytes::new(8.0 * (all - tables) + 12.0 * tables));
}

#[test]
fn hybrid_sharding_splits_within_its_groups() {
    let model = llama(32, 4_096, 32, 14_336);
    let layout = Layout { data: 64, sharding: Sharding::Full, ..SINGLE };
    let of = |shard_ranks| {
        let layout = Layout { shard_ranks, ..layout };
        footprint(&model, &job(4_096, 64), &layout, &FUSED, 0)
    };
    assert_eq!(of(8).weights, of(0).weights * 8.0);
    assert_eq!(of(8).optimizer, of(64).optimizer * 8.0);
    assert_eq!(of(0).optimizer, of(64).optimizer);
}

#[test]
fn what_is_offloaded_is_not_held() {
    let model = llama_405b();
    let of = |layout: &Layout, offload| footprint(&model, &TrainingJob { offload, ..job(8_192, 8) }, layout, &FUSED, 0);
    let whole = Layout { data: 8, sharding: Sharding::Optimizer, ..SINGLE };
    let (plain, states) = (of(&whole, Offload::None), of(&whole, Offload::Optimizer));
    assert_eq!(states, MemoryFootprint { optimizer: Bytes::ZERO, offloaded: plain.optimizer, ..plain });
    // Where each rank keeps its own part of weights and gradients, they follow.
    let parts = Layout { sharding: Sharding::Full, ..whole };
    let (plain, all) = (of(&parts, Offload::None), of(&parts, Offload::OptimizerWeights));
    assert_eq!((all.weights, all.gradients, all.optimizer), (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO));
    assert_eq!(all.offloaded, plain.weights + plain.gradients + plain.optimizer);
    // Of 126 layers' activations, two stay: each 64 KiB and more a token.
    let (kept, moved) = (of(&whole, Offload::Activations), of(&whole, Offload::None));
    let layer = whole.layer_activations(&model, LayerKind::Dense, &job(8_192, 8), &FUSED).kept;
    assert_eq!(kept.offloaded, layer * 124.0);
    assert_eq!(kept.activations + kept.offloaded, moved.activations);
}

#[test]
fn uneven_experts_take_more() {
    let layout = Layout { data: 8, expert: 8, ..SINGLE };
    let of = |imbalance| {
        let job = TrainingJob { expert_imbalance: Factor::new(imbalance).unwrap(), ..job(4_096, 8) };
        footprint(&mixtral_8x7b(), &job, &layout, &FUSED, 0).activations
    };
    // Two visits of 4 h outside and 6 f inside in each of 32 layers, half as much again.
    let visits = 32.0 * 4_096.0 * 2.0 * (4.0 * 4_096.0 + 6.0 * 14_336.0);
    let more = (of(1.5) - of(1.0)) / Bytes::new(0.5 * visits);
    assert!((more - 1.0).abs() < 1e-9, "{more}");
}

#[test]
fn recomputation_may_cover_some_layers() {
    let model = llama(32, 4_096, 32, 14_336);
    let of = |recompute| footprint(&model, &job(8_192, 1), &Layout { recompute, ..SINGLE }, &FUSED, 0).activations;
    let (none, all) = (of(Recompute::None), of(Recompute::Full));
    assert_eq!(of(Recompute::Layers(99)), all);
    let half = of(Recompute::Layers(16));
    assert!(((none - half) / (half - all) - 1.0).abs() < 1e-9);
}

#[test]
fn recomputation_may_cover_the_dense_layers_first() {
    // Three layers with an MLP lead; four covered are those and one with experts.
    let mut model = mixtral_8x7b();
    model.ffn = 14_336;
    model.experts = model.experts.map(|experts| crate::workload::Experts { leading_dense_layers: 3, ..experts });
    let of = |recompute| footprint(&model, &job(8_192, 1), &Layout { recompute, ..SINGLE }, &FUSED, 0).activations;
    let layer = |kind| SINGLE.layer_activations(&model, kind, &job(8_192, 1), &FUSED).kept;
    let input = Bytes::new(2.0 * 4_096.0 * 8_192.0);
    let saved = layer(LayerKind::Dense) * 3.0 + layer(LayerKind::Moe) - input * 4.0;
    assert!(((of(Recompute::None) - of(Recompute::Layers(4))) / saved - 1.0).abs() < 1e-9);
}

#[test]
fn recomputation_may_cover_modules() {
    let saved = |model: &Transformer, kind, modules: &[Module]| {
        let of = |recompute| {
            let layout = Layout { recompute, ..SINGLE };
            layout.layer_activations(model, kind, &job(1, 1), &FUSED).kept
        };
        of(Recompute::None) - of(Recompute::Modules(Modules::of(modules)))
    };
    let llama = llama(32, 4_096, 32, 14_336);
    // Two outputs of 4096; gate, up and their product of 14336.
    assert_eq!(saved(&llama, LayerKind::Dense, &[Module::LayerNorm]), Bytes::new(2.0 * 2.0 * 4_096.0));
    assert_eq!(saved(&llama, LayerKind::Dense, &[Module::Mlp]), Bytes::new(2.0 * 3.0 * 14_336.0));
    assert_eq!(saved(&llama, LayerKind::Dense, &[Module::CoreAttention, Module::Moe]), Bytes::ZERO);
    // Of two visits: the products between the matrices; or all, with the router's 2*4*8 and four copies of 4096.
    let mixtral = mixtral_8x7b();
    let visit = 3.0 * 2.0 * 14_336.0 + 4.0 * 4_096.0;
    assert_eq!(saved(&mixtral, LayerKind::Moe, &[Module::MoeActivation]), Bytes::new(2.0 * 2.0 * 14_336.0));
    let all = Bytes::new(2.0 * visit + 64.0);
    assert_eq!(saved(&mixtral, LayerKind::Moe, &[Module::Moe]), all);
    assert_eq!(saved(&mixtral, LayerKind::Moe, &[Module::Moe, Module::MoeActivation]), all);
}

#[test]
fn dualpipe_holds_layers_twice_and_one_microbatch_more() {
    // DeepSeek-V3, table 2: parameters twice, activations of p + 1 microbatches; zero bubble as the first stage of 1F1B.
    let model = gpt(96, 12_288, 96);
    let of = |schedule, stage| {
        let layout = Layout { tensor: 8, pipeline: 8, schedule, ..SINGLE };
        layout.check(&model, &job(2_048, 64)).unwrap();
        footprint(&model, &job(2_048, 64), &layout, &FUSED, stage)
    };
    let (plain, dual) = (of(Schedule::OneF1b, 3), of(Schedule::DualPipe, 3));
    assert_eq!(dual.weights, plain.weights * 2.0);
    // Five microbatches on the fourth of eight stages, nine in both directions.
    assert!((dual.activations / plain.activations - 9.0 / 5.0).abs() < 1e-9);
    assert_eq!(of(Schedule::ZeroBubble, 3).activations, plain.activations * (8.0 / 5.0));
    let odd = Layout { pipeline: 3, schedule: Schedule::DualPipe, ..SINGLE };
    assert!(odd.check(&model, &job(2_048, 64)).unwrap_err().to_string().contains("both ends"));
}
