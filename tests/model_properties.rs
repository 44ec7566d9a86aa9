//! Laws of models, caches and serving memory, over generated configurations.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod setup;

use clusterplan::catalog::model::{Mixer, Module};
use clusterplan::memory::serving::{CacheFormats, Pages, Paging, ServingLayout, rank_weights, sequence_bytes};
use clusterplan::units::Bytes;
use clusterplan::workload::{block_parameters, census, token_flops, weight_bytes};
use proptest::prelude::*;
use setup::imported;

/// A configuration and what its layers are.
fn configs() -> impl Strategy<Value = String> {
    let sizes = (1_u32..=40, 1_u32..=16, prop::sample::select(vec![1_u32, 2, 4]), 1_u32..=64, 1_u32..=64, 1_u32..=200);
    let family = 0..6_usize;
    (sizes, family, any::<bool>(), 1_u32..=8).prop_map(|((layers, eights, share, heads_of, ffn, vocab), family, tied, experts)| {
        let (heads, head_dim) = (8 * eights, 8 * heads_of);
        let (hidden, ffn, vocab) = (64 * eights, 64 * ffn, 1_000 * vocab);
        let common = format!(
            "\"hidden_size\": {hidden}, \"num_hidden_layers\": {layers}, \"num_attention_heads\": {heads}, \"vocab_size\": {vocab}, \
             \"intermediate_size\": {ffn}, \"tie_word_embeddings\": {tied}, \"torch_dtype\": \"bfloat16\""
        );
        let kv = heads / share;
        let grouped = format!("\"num_key_value_heads\": {kv}, \"head_dim\": {head_dim}");
        let routed = format!(
            "\"num_experts\": {}, \"num_experts_per_tok\": {}, \"moe_intermediate_size\": {}, \"n_shared_experts\": 1",
            8 * experts, experts, ffn
        );
        let latent = format!(
            "\"q_lora_rank\": {}, \"kv_lora_rank\": {}, \"qk_nope_head_dim\": {head_dim}, \"qk_rope_head_dim\": 16, \
             \"v_head_dim\": {head_dim}, \"index_n_heads\": 4, \"index_head_dim\": 32",
            hidden / 2, hidden / 4
        );
        let delta = format!(
            "\"linear_num_key_heads\": 8, \"linear_num_value_heads\": 16, \"linear_key_head_dim\": {head_dim}, \
             \"linear_value_head_dim\": {head_dim}, \"linear_conv_kernel_dim\": 4, \"full_attention_interval\": 4"
        );
        let (name, more) = match family {
            0 => ("qwen3", grouped),
            1 => ("qwen3_moe", format!("{grouped}, {routed}")),
            2 => ("gemma2", format!("{grouped}, \"sliding_window\": 512")),
            3 => ("deepseek_v32", format!("{latent}, {routed}")),
            4 => ("qwen3_5", format!("{grouped}, {delta}")),
            _ => ("gpt_neox", "\"use_parallel_residual\": true".to_owned()),
        };
        format!("{{\"model_type\": \"{name}\", {common}, {more}}}")
    })
}

fn close(a: Bytes, b: Bytes) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn parts_sum_to_the_whole(text in configs()) {
        let model = imported(&text);
        let census = census(&model);
        let modules: u64 = Module::ALL.iter().map(|module| census.of(*module)).sum();
        prop_assert_eq!(modules, census.with_towers());
        prop_assert!(census.active() <= census.total());
        let bytes: Bytes = weight_bytes(&model).map(|(_, bytes)| bytes).sum();
        prop_assert!(close(bytes, Bytes::new(2.0 * census.total() as f64)));
        prop_assert_eq!(model.layers(), model.blocks.iter().map(|block| block.layers).sum::<u32>());
    }

    #[test]
    fn ranks_hold_the_whole_and_what_is_held_whole(text in configs(), power in 0_u32..=4) {
        let (model, tensor) = (imported(&text), 1_u32 << power);
        let layout = ServingLayout { tensor, ..ServingLayout::SINGLE };
        prop_assume!(layout.check(&model).is_ok());
        let census = census(&model);
        // Norms, routers and projections to latent vectors are on every rank; key and value heads beyond one a rank too.
        let mut again = (census.norms + census.router + census.positions) as f64;
        for block in &model.blocks {
            let count = block_parameters(&model, block);
            let layers = f64::from(block.layers);
            again += count.mixer_copied as f64 * layers;
            if let Mixer::Attention(attention) = block.mixer && attention.kv_heads < tensor {
                let heads = f64::from(attention.kv_heads);
                let held = f64::from(tensor) / heads - 1.0;
                again += count.keys_values as f64 * held / f64::from(tensor - 1) * layers;
            }
        }
        // Rows of the vocabulary are padded to a whole number a rank, in the embedding and in an output of its own.
        let padding = u64::from(model.vocab.next_multiple_of(tensor) - model.vocab) * u64::from(model.hidden);
        let tables = if census.head == 0 { 1 } else { 2 };
        let all = (census.total() + padding * tables) as f64 + again * f64::from(tensor - 1);
        prop_assert!(close(rank_weights(&model, &layout) * f64::from(tensor), Bytes::new(2.0 * all)));
    }

    #[test]
    fn more_context_never_takes_less(text in configs(), short in 1_u64..200_000, more in 0_u64..200_000, block in 1_u32..=64) {
        let model = imported(&text);
        let formats = CacheFormats::of(&model);
        let layout = ServingLayout::SINGLE;
        let mut before = Bytes::ZERO;
        for paging in [Paging::PerLayer, Paging::AllTokens, Paging::UnifiedPages] {
            for batched_tokens in [0, 8_192] {
                let pages = Pages { paging, block, batched_tokens };
                let of = |tokens| sequence_bytes(&model, &formats, pages, &layout, tokens);
                prop_assert!(of(short + more) >= of(short));
                prop_assert!(of(short) >= sequence_bytes(&model, &formats, Pages::BOUND, &layout, short));
            }
            // Each way of paging takes at least what the one before takes.
            let now = sequence_bytes(&model, &formats, Pages { paging, block: 1, batched_tokens: 0 }, &layout, short);
            prop_assert!(now >= before * (1.0 - 1e-12));
            before = now;
        }
        prop_assert!(token_flops(&model, short + more).total() >= token_flops(&model, short).total());
    }
}
