//! Laws of memory in training, over generated configurations of models whose layers are of several kinds.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod setup;

use clusterplan::catalog::model::Mixer;
use clusterplan::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use clusterplan::memory::{all_stages, worst};
use clusterplan::parallelism::{Layout, RankParameters, Recompute, StageLayers};
use clusterplan::units::Bytes;
use clusterplan::workload::{Layers, Mixed, block_parameters, census};
use proptest::prelude::*;
use setup::{BARE, imported, job};

prop_compose! {
    /// Linear attention and attention with a gate; Mamba, attention and experts in every so many layers; Mamba-2, attention
    /// and MLPs in any order; windows between full attention.
    fn configs()(
        family in 0..4_usize,
        layers in 4_usize..=24,
        eights in 1_u32..=8,
        share in prop::sample::select(vec![1_u32, 2, 4]),
        sixteens in 1_u32..=8,
        widths in 1_u32..=32,
        words in 1_u32..=100,
        tied in any::<bool>(),
        period in 2_u32..=5,
        offset in 0_u32..=1,
        letters in prop::collection::vec(prop::sample::select(vec!['M', '*', '-', 'E']), 24),
        experts in 1_u32..=4,
    ) -> String {
        let (heads, head_dim, ffn) = (8 * eights, 16 * sixteens, 128 * widths);
        let hidden = heads * head_dim;
        let common = format!(
            "\"hidden_size\": {hidden}, \"num_hidden_layers\": {layers}, \"num_attention_heads\": {heads}, \
             \"num_key_value_heads\": {}, \"intermediate_size\": {ffn}, \"vocab_size\": {}, \"tie_word_embeddings\": {tied}, \
             \"torch_dtype\": \"bfloat16\"",
            heads / share,
            1_000 * words,
        );
        let routed = format!("\"num_experts\": {}, \"num_experts_per_tok\": {experts}", 8 * experts);
        let (name, more) = match family {
            0 => ("qwen3_5", format!(
                "\"head_dim\": {head_dim}, \"linear_num_key_heads\": 8, \"linear_num_value_heads\": 16, \
                 \"linear_key_head_dim\": {head_dim}, \"linear_value_head_dim\": {head_dim}, \"linear_conv_kernel_dim\": 4, \
                 \"full_attention_interval\": {period}"
            )),
            1 => ("jamba", format!(
                "{routed}, \"attn_layer_period\": {period}, \"attn_layer_offset\": {offset}, \"expert_layer_period\": 2, \
                 \"expert_layer_offset\": {offset}, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_state\": 16, \
                 \"mamba_dt_rank\": {head_dim}, \"mamba_expand\": 2, \"mamba_proj_bias\": false"
            )),
            2 => {
                let pattern: String = letters[..layers].iter().collect();
                let routed = format!(
                    ", \"n_routed_experts\": {}, \"num_experts_per_tok\": {experts}, \"moe_intermediate_size\": {ffn}",
                    8 * experts
                );
                let routed = if pattern.contains('E') { routed } else { String::new() };
                ("nemotron_h", format!(
                    "\"attention_head_dim\": {head_dim}, \"hybrid_override_pattern\": \"{pattern}\", \"mamba_num_heads\": {heads}, \
                     \"mamba_head_dim\": {head_dim}, \"n_groups\": 8, \"ssm_state_size\": 64, \"conv_kernel\": 4, \
                     \"use_conv_bias\": true, \"mlp_hidden_act\": \"relu2\"{routed}"
                ))
            }
            _ => ("gemma2", format!("\"head_dim\": {head_dim}, \"sliding_window\": {}", 256 * period)),
        };
        format!("{{\"model_type\": \"{name}\", {common}, {more}}}")
    }
}

fn mixed(text: &str) -> Mixed {
    Mixed::try_from(&imported(text)).expect("a model whose memory is known")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn bytes(bytes: Bytes) -> f64 {
    bytes / Bytes::new(1.0)
}

/// A split of layers into stages that are cut at those places, each with a layer at least.
fn split(layers: u32, cuts: &[u32]) -> StageLayers {
    let mut places: Vec<u32> = cuts.iter().map(|cut| 1 + cut % (layers - 1)).chain([0, layers]).collect();
    places.sort_unstable();
    places.dedup();
    let counts: Vec<u8> = places.windows(2).map(|pair| u8::try_from(pair[1] - pair[0]).expect("few layers")).collect();
    StageLayers::new(&counts).expect("few stages")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn stages_sum_to_the_whole(text in configs(), pipeline in 1_u32..=4, cuts in prop::collection::vec(0_u32..1_000, 3)) {
        let mixed = mixed(&text);
        let layers = mixed.frame.layers;
        let whole = census(&mixed.model).total() as f64;
        let given = split(layers, &cuts);
        let uneven = Layout { pipeline: given.chunks(), stage_layers: Some(given), ..Layout::SINGLE };
        for layout in [Layout { pipeline, ..Layout::SINGLE }, uneven] {
            layout.check_layers(Layers::from(&mixed), &job(1_024, 64)).expect("a layout that can be");
            // A tied table is held at both ends.
            let again = mixed.frame.tied_embeddings && layout.pipeline > 1;
            let again = if again { mixed.frame.table_parameters() as f64 } else { 0.0 };
            let job = job(1_024, 64);
            let stages: Vec<_> = all_stages(&mixed, &job, &layout, &BARE).collect();
            let held: f64 = stages.iter().map(|stage| bytes(stage.weights) / 2.0).sum();
            prop_assert!(close(held, whole + again), "{held} of {whole} and {again}");
            for stage in &stages {
                let parts = stage.weights + stage.gradients + stage.optimizer + stage.activations + stage.workspace;
                prop_assert!(close(bytes(parts), bytes(stage.total())));
            }
            let (index, most) = worst(&mixed, &job, &layout, &BARE);
            let fullest = stages.iter().map(|stage| bytes(stage.total())).fold(0.0, f64::max);
            prop_assert!(close(bytes(most.total()), fullest));
            prop_assert!(close(bytes(stages[index as usize].total()), fullest));
        }
    }

    #[test]
    fn ranks_hold_the_whole_and_what_is_copied(text in configs(), power in 0_u32..=3) {
        let (mixed, tensor) = (mixed(&text), 1_u32 << power);
        let layout = Layout { tensor, data: 1, ..Layout::SINGLE };
        prop_assume!(layout.check_layers(Layers::from(&mixed), &job(1_024, 64)).is_ok());
        let ranks = f64::from(tensor);
        for block in &mixed.model.blocks {
            let whole = block_parameters(&mixed.model, block);
            let RankParameters { split, copied, experts } = layout.block_shard(&mixed.model, block);
            // A head of keys and values is on several ranks where there are fewer heads than ranks.
            let shared = match block.mixer {
                Mixer::Attention(attention) if attention.kv_heads < tensor => {
                    let keys_values = whole.keys_values as f64;
                    prop_assert!(copied >= keys_values / f64::from(attention.kv_heads));
                    keys_values - keys_values / f64::from(attention.kv_heads)
                }
                _ => 0.0,
            };
            let all = (split + experts) * ranks + copied + shared;
            prop_assert!(close(all, whole.total() as f64), "{all} of {} in {block:?}", whole.total());
        }
    }

    #[test]
    fn longer_sequences_never_take_less(
        text in configs(),
        pipeline in 1_u32..=4,
        recompute in prop::sample::select(Recompute::WORDS),
        (short, more) in (1_u32..=64, 0_u32..=64),
    ) {
        let mixed = mixed(&text);
        let layout = Layout { pipeline, recompute, ..Layout::SINGLE };
        let of = |sequence| {
            all_stages(&mixed, &job(sequence, 64), &layout, &BARE).map(|stage| bytes(stage.total())).collect::<Vec<_>>()
        };
        for (short, long) in of(128 * short).into_iter().zip(of(128 * (short + more))) {
            prop_assert!(long >= short);
        }
        let formats = CacheFormats::of(&mixed.model);
        let cache =
            |tokens: u32| sequence_bytes(&mixed.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, u64::from(tokens));
        prop_assert!(cache(128 * (short + more)) >= cache(128 * short));
    }
}
