//! Laws of layouts and memory, over generated models and layouts.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::sync::LazyLock;

use clusterplan::catalog::model::Norm;
use clusterplan::catalog::training_efficiency::{AttentionKernel, Framework};
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::memory::{MemoryFootprint, Software, all_stages, footprint, worst};
use clusterplan::parallelism::{
    ContextExchange, Layout, Module, Modules, RankOrder, Recompute, Schedule, Sharding, StagePlan,
};
use clusterplan::units::{Bytes, Factor, Tokens};
use clusterplan::workload::{
    Detail, Experts, GradientPrecision, Offload, Optimizer, Precision, TrainingJob, Transformer,
};
use proptest::prelude::*;

static FRAMEWORKS: LazyLock<Vec<Software>> = LazyLock::new(|| {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = clusterplan::load::catalog(&[], &mut sources, &sink);
    let allowance = catalog.memory_allowances.get("cuda").expect("the built-in allowances").part.clone();
    let bind = |framework, kernel| {
        Software::new(&allowance, allowance.framework(framework).expect("a known framework"), kernel)
    };
    vec![
        bind(Framework::MegatronLm, AttentionKernel::Unfused),
        bind(Framework::MegatronCore, AttentionKernel::Cudnn),
        bind(Framework::PytorchNative, AttentionKernel::Fa3),
    ]
});

prop_compose! {
    fn experts()(
        count in prop::sample::select(vec![8_u32, 16, 64]),
        per_token in 1_u32..=4,
        ffn in (1_u32..=32).prop_map(|n| n * 256),
        shared in 0_u32..=2,
        leading_dense_layers in 0_u32..=3,
    ) -> Experts {
        Experts { count, per_token, ffn, shared, leading_dense_layers }
    }
}

prop_compose! {
    fn model()(
        layers in 4_u32..=130,
        heads in (1_u32..=16).prop_map(|n| n * 8),
        kv_share in prop::sample::select(vec![1_u32, 2, 4, 8]),
        head_dim in prop::sample::select(vec![64_u32, 96, 128]),
        ffn in (1_u32..=64).prop_map(|n| n * 1_024),
        gated in any::<bool>(),
        vocab in 1_000_u32..=260_000,
        tied_embeddings in any::<bool>(),
        biases in any::<bool>(),
        learned_positions in prop::sample::select(vec![0_u32, 8_192]),
        experts in prop::option::of(experts()),
    ) -> Transformer {
        let norm = if biases { Norm::LayerNorm } else { Norm::RmsNorm };
        let kv_heads = heads / kv_share;
        Transformer { layers, hidden: heads * head_dim, heads, kv_heads, head_dim, ffn, gated, vocab, tied_embeddings, norm, biases, learned_positions, experts, detail: Detail::NONE }
    }
}

/// Any recomputation: a word, so many layers, or some modules.
fn recompute() -> impl Strategy<Value = Recompute> {
    let modules = prop::sample::subsequence(Module::ALL, 1..=Module::ALL.len());
    prop_oneof![
        prop::sample::select(Recompute::WORDS),
        (1_u32..=40).prop_map(Recompute::Layers),
        modules.prop_map(|modules| Recompute::Modules(Modules::of(&modules))),
    ]
}

prop_compose! {
    fn layout()(
        tensor in prop::sample::select(vec![1_u32, 2, 4, 8]),
        context in prop::sample::select(vec![1_u32, 2, 4]),
        pipeline in 1_u32..=9,
        data in prop::sample::select(vec![1_u32, 2, 8, 16]),
        spread in prop::sample::select(vec![1_u32, 2, 4, 8]),
        virtual_stages in 1_u32..=4,
        micro_batch in 1_u32..=4,
        gpipe in any::<bool>(),
        sharding in prop::sample::select(Sharding::ALL),
        group in prop::sample::select(vec![0_u32, 1, 2, 8]),
        recompute in recompute(),
        sequence_parallel in any::<bool>(),
        order in prop::sample::select(RankOrder::ALL),
    ) -> Layout {
        let interleaved = pipeline > 1 && virtual_stages > 1;
        let schedule = match (interleaved, gpipe) {
            (true, _) => Schedule::Interleaved,
            (_, true) => Schedule::Gpipe,
            _ => Schedule::OneF1b,
        };
        let expert = if (tensor * context * data).is_multiple_of(spread) { spread } else { 1 };
        let groups = group > 0 && (data * context).is_multiple_of(group);
        let shard_ranks = if groups { group } else { 0 };
        let virtual_stages = if interleaved { virtual_stages } else { 1 };
        let context_exchange = ContextExchange::AllGather;
        Layout { tensor, context, context_exchange, pipeline, data, expert, virtual_stages, stage_layers: None, micro_batch, schedule, sharding, shard_ranks, recompute, sequence_parallel, order }
    }
}

/// A model, a layout that can run it, its job, and the software.
fn cases() -> impl Strategy<Value = (Transformer, Layout, TrainingJob, Software)> {
    let rounds = 1_u32..=4;
    (model(), layout(), rounds, 0..3_usize, prop::sample::select(Offload::ALL))
        .prop_map(|(model, layout, rounds, software, offload)| {
            let layout = Layout { expert: if model.experts.is_some() { layout.expert } else { 1 }, ..layout };
            let job = TrainingJob {
                sequence_length: 4_096,
                global_batch: layout.data * layout.micro_batch * layout.pipeline * rounds,
                tokens: Tokens::new(1e12),
                precision: Precision::Bf16,
                gradients: GradientPrecision::Fp32,
                optimizer: Optimizer::Adam,
                offload,
                expert_imbalance: Factor::ONE,
            };
            (model, layout, job, FRAMEWORKS[software])
        })
        .prop_filter("the layout can be", |(model, layout, job, _)| layout.check(model, job).is_ok())
}

fn states(footprint: &MemoryFootprint) -> Bytes {
    footprint.weights + footprint.gradients + footprint.optimizer
}

/// Sums of many terms agree to rounding.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_sum_to_the_total((model, layout, job, software) in cases()) {
        for footprint in all_stages(&model, &job, &layout, &software) {
            let parts = [footprint.weights, footprint.gradients, footprint.optimizer, footprint.activations, footprint.kv_cache, footprint.workspace];
            prop_assert!(parts.iter().all(|part| part.is_finite() && *part >= Bytes::ZERO));
            prop_assert_eq!(parts.into_iter().sum::<Bytes>(), footprint.total());
        }
    }

    #[test]
    fn what_is_offloaded_is_elsewhere((model, layout, job, software) in cases()) {
        let here = TrainingJob { offload: Offload::None, ..job };
        for stage in 0..layout.pipeline {
            let of = |job: &TrainingJob| footprint(&model, job, &layout, &software, stage);
            let (all, kept) = (of(&here), of(&job));
            let held = |footprint: &MemoryFootprint| states(footprint) + footprint.activations;
            prop_assert_eq!(all.offloaded, Bytes::ZERO);
            prop_assert!(close((held(&kept) + kept.offloaded) / held(&all), 1.0));
            prop_assert!(kept.total() <= all.total());
        }
    }

    #[test]
    fn shards_times_ranks_are_the_whole((model, layout, ..) in cases()) {
        let plan = StagePlan::new(model.layers, &layout);
        let parameters = model.parameters();
        let copies = layout.tensor.div_ceil(model.kv_heads).max(1);
        prop_assert_eq!(layout.kv_heads_per_rank(model.kv_heads) * layout.tensor, model.kv_heads * copies);
        let mut whole = 0.0;
        for index in 0..layout.pipeline {
            let stage = plan.stage(index, &model);
            let shard = layout.stage_shard(&model, stage);
            whole += shard.split * f64::from(layout.tensor) + shard.copied + shard.experts * f64::from(layout.expert_shards());
            if copies > 1 {
                // Each rank holds one head, and so does its neighbour: all heads are kv_heads of those.
                let one_head = model.key_value_parameters() as f64 / f64::from(model.kv_heads);
                whole += one_head * f64::from(model.kv_heads - 1) * f64::from(stage.layers());
            }
        }
        let again = if model.tied_embeddings && layout.pipeline > 1 { parameters.embedding } else { 0 };
        prop_assert!(close(whole, (parameters.total() + again) as f64), "{} of {}", whole, parameters.total());
    }

    #[test]
    fn every_layer_is_on_one_stage((model, layout, ..) in cases()) {
        let plan = StagePlan::new(model.layers, &layout);
        let stages: Vec<_> = (0..layout.pipeline).map(|index| plan.stage(index, &model)).collect();
        prop_assert_eq!(stages.iter().map(|stage| stage.dense_layers).sum::<u32>(), model.dense_layers());
        prop_assert_eq!(stages.iter().map(|stage| stage.moe_layers).sum::<u32>(), model.moe_layers());
        prop_assert_eq!(stages.iter().filter(|stage| stage.embedding).count(), 1);
        prop_assert_eq!(stages.iter().filter(|stage| stage.head).count(), 1);
        prop_assert_eq!(stages.iter().map(clusterplan::parallelism::Stage::layers).max(), Some(layout.most_layers(model.layers)));
    }

    #[test]
    fn the_worst_stage_takes_most((model, layout, job, software) in cases()) {
        let (_, found) = worst(&model, &job, &layout, &software);
        let most = all_stages(&model, &job, &layout, &software).map(|each| each.total()).fold(Bytes::ZERO, Bytes::max);
        prop_assert_eq!(found.total(), most);
    }

    #[test]
    fn more_to_hold_never_takes_less((model, layout, job, software) in cases()) {
        let longer = TrainingJob { sequence_length: 2 * job.sequence_length, ..job };
        let wider = Layout { micro_batch: 2 * layout.micro_batch, ..layout };
        let twice = TrainingJob { global_batch: 2 * job.global_batch, ..job };
        for stage in 0..layout.pipeline {
            let now = footprint(&model, &job, &layout, &software, stage).total();
            prop_assert!(footprint(&model, &longer, &layout, &software, stage).total() >= now);
            prop_assert!(footprint(&model, &twice, &layout, &software, stage).total() >= now);
            prop_assert!(footprint(&model, &twice, &wider, &software, stage).total() >= now);
        }
    }

    #[test]
    fn what_is_recomputed_or_sharded_is_not_kept((model, layout, job, software) in cases()) {
        for stage in 0..layout.pipeline {
            let recomputing = |recompute| footprint(&model, &job, &Layout { recompute, ..layout }, &software, stage);
            let [none, selective, full] = [Recompute::None, Recompute::Selective, Recompute::Full].map(recomputing);
            prop_assert!(full.activations <= selective.activations && selective.activations <= none.activations);
            prop_assert!(full.total() <= none.total() * (1.0 + 1e-12));
            let rank = |covered| recomputing(Recompute::Layers(covered)).activations;
            prop_assert!(rank(1) <= none.activations && rank(2) <= rank(1) && full.activations <= rank(2));
            for module in Module::ALL {
                let one = recomputing(Recompute::Modules(Modules::of(&[*module]))).activations;
                prop_assert!(one <= none.activations && one >= recomputing(Recompute::Modules(Modules::of(Module::ALL))).activations);
            }
            let mut before = Bytes::new(f64::INFINITY);
            for sharding in Sharding::UNGROUPED {
                let now = states(&footprint(&model, &job, &Layout { sharding: *sharding, ..layout }, &software, stage));
                prop_assert!(now <= before);
                before = now;
            }
        }
    }

    #[test]
    fn groups_cover_their_ranks((_, layout, ..) in cases()) {
        let groups = layout.groups();
        prop_assert_eq!(groups.tensor.size * groups.pipeline.size * groups.data.size, u32::try_from(layout.accelerators()).unwrap());
        prop_assert_eq!(groups.expert.size * groups.expert_data.size, if layout.expert > 1 { layout.tensor * layout.data_ranks() } else { layout.data_ranks() });
        for group in groups.all() {
            prop_assert!(u64::from((group.size - 1) * group.stride) < layout.accelerators());
        }
    }
}
