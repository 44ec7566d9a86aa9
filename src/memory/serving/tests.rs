//! Engines' logs.

use super::*;
use crate::catalog::engine_memory::{EngineMemory, Headroom, LeastHeadroom, PoolRule};
use crate::catalog::model::{Attention, Block, Feed, GatedDelta, Latent, Mixer, Mlp, Norm, Number, Span};
use crate::units::{Bytes, Fraction};

const GIB: f64 = 1_073_741_824.0;

fn attention(heads: u32, kv_heads: u32, head_dim: u32) -> Attention {
    Attention { heads, kv_heads, head_dim, value_dim: head_dim, ..Attention::default() }
}

fn block(layers: u32, mixer: Mixer, ffn: u32) -> Block {
    Block { layers, norms: 2, mixer, feed: Feed::Mlp(Mlp { ffn, gated: true, biases: false }), ..Block::default() }
}

fn llama_8b() -> Model {
    let blocks = vec![block(32, Mixer::Attention(attention(32, 8, 128)), 14_336)];
    Model { hidden: 4_096, vocab: 128_256, norm: Norm::RmsNorm, blocks, ..Model::default() }
}

fn vllm() -> Engine {
    let memory = EngineMemory {
        fraction: Fraction::new(0.9),
        block: 16,
        batched_tokens: 8_192,
        requests: 256,
        sampled: Bytes::new(38.5),
        ..EngineMemory::default()
    };
    Engine::new(&memory, "", Bytes::new(80.0 * GIB))
}

/// Equal but for rounding.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs()
}

fn gib(bytes: Bytes) -> f64 {
    bytes / Bytes::new(GIB)
}

#[test]
fn weights_of_a_rank_are_what_vllm_logs() {
    // Pull request 10511: 14.96 GiB on one GPU, 7.48 on each of two.
    assert!((gib(rank_weights(&llama_8b(), &ServingLayout::SINGLE)) - 14.958).abs() < 0.001);
    let two = ServingLayout { tensor: 2, ..ServingLayout::SINGLE };
    assert!((gib(rank_weights(&llama_8b(), &two)) - 7.48).abs() < 0.005);
    // One rank holds all parameters.
    let all = crate::workload::census(&llama_8b()).total() as f64 * 2.0;
    assert_eq!(rank_weights(&llama_8b(), &ServingLayout::SINGLE), Bytes::new(all));
}

#[test]
fn the_pool_follows_vllm_on_three_gpus() {
    let model = llama_8b();
    let formats = CacheFormats::of(&model);
    let engine = |batched_tokens, outside: f64| {
        let pages = Pages { batched_tokens, ..vllm().pages };
        Engine { pages, alone: Bytes::new(outside * GIB), ..vllm() }
    };
    let fit = |usable: f64, batched_tokens, outside: f64| {
        let engine = engine(batched_tokens, outside);
        fits(&model, &ServingLayout::SINGLE, &engine, &formats, Bytes::new(usable * GIB), (8_192, 0))
    };
    // Pull request 10511: 79.22 GiB, 1.79 outside the allocator, an activation peak of 1.26: 53.29 for the cache.
    let eighty = fit(79.22, 8_192, 1.79);
    assert!((gib(eighty.activations) / 1.26 - 1.0).abs() < 0.1);
    assert!((gib(eighty.pool) / 53.29 - 1.0).abs() < 0.003, "{}", gib(eighty.pool));
    // Issue 10517: an RTX 3090 of 23.58 GiB holds 31,232 tokens where 20,000 are batched and 23,648 where 29,000 are,
    // fewer than one such sequence needs.
    let twenty = fit(23.58, 20_000, 0.25);
    assert!((gib(twenty.pool) / 3.81 - 1.0).abs() < 0.02, "{}", gib(twenty.pool));
    let more = fit(23.58, 29_000, 0.25);
    assert!((gib(more.pool) / 2.89 - 1.0).abs() < 0.04, "{}", gib(more.pool));
    let longest = |batched_tokens, pool| {
        largest_context(&model, &ServingLayout::SINGLE, &engine(batched_tokens, 0.0), &formats, pool)
    };
    assert!(longest(29_000, more.pool) < 29_000 && longest(20_000, twenty.pool) > 20_000);
}

#[test]
fn a_window_holds_what_vllm_reserves() {
    // vllm-project/vllm#19029: starcoder2-3b, windows of 4,096 in all layers: 12,304 tokens a request, not 16,384.
    let window = Attention { span: Span::Window, window: 4_096, ..attention(24, 2, 128) };
    let model = Model {
        hidden: 3_072,
        vocab: 49_152,
        blocks: vec![block(30, Mixer::Attention(window), 12_288)],
        ..Model::default()
    };
    let formats = CacheFormats::of(&model);
    let per_token = Bytes::new(30.0 * 2.0 * 2.0 * 128.0 * 2.0);
    let of = |pages, tokens| sequence_bytes(&model, &formats, pages, &ServingLayout::SINGLE, tokens) / per_token;
    assert!(same(of(vllm().pages, 16_384), 12_304.0));
    assert!(same(of(Pages::BOUND, 16_384), 4_096.0));
    assert!(same(of(Pages { paging: Paging::AllTokens, ..vllm().pages }, 16_384), 16_384.0));
    assert!(same(of(Pages::BOUND, 100), 100.0));
    // 2,198,512 tokens of pool: 178.68 requests, not 134.19.
    assert!((2_198_512.0 / of(vllm().pages, 16_384) - 178.68).abs() < 0.01);
}

#[test]
fn latent_caches_are_whole_on_every_rank() {
    let model = Model {
        hidden: 7_168,
        vocab: 129_280,
        blocks: vec![block(61, Mixer::Latent(Latent::DEEPSEEK_V3), 18_432)],
        ..Model::default()
    };
    let formats = CacheFormats::of(&model);
    for tensor in [1, 4, 8] {
        let layout = ServingLayout { tensor, ..ServingLayout::SINGLE };
        assert_eq!(sequence_bytes(&model, &formats, Pages::BOUND, &layout, 1), Bytes::new(70_272.0));
    }
    // Grouped heads split, and are held again beyond one a rank.
    let grouped = llama_8b();
    let at = |tensor| {
        let layout = ServingLayout { tensor, ..ServingLayout::SINGLE };
        sequence_bytes(&grouped, &CacheFormats::of(&grouped), Pages::BOUND, &layout, 1)
    };
    assert_eq!([at(1), at(8), at(16)], [131_072.0, 16_384.0, 16_384.0].map(Bytes::new));
}

#[test]
fn layers_that_differ_are_padded_to_the_widest() {
    // Gemma 4 31B (alvarobartt/hf-mem#61): ten layers of 4 heads of 512, fifty windows of 16 heads of 256. vLLM held
    // 983,040 bytes a token, every layer padded to the wider page; 901,120 without padding.
    let local = Attention { span: Span::Window, window: 1_024, ..attention(32, 16, 256) };
    let blocks =
        vec![block(50, Mixer::Attention(local), 21_504), block(10, Mixer::Attention(attention(32, 4, 512)), 21_504)];
    let model = Model { hidden: 5_376, vocab: 262_144, blocks, ..Model::default() };
    let of = |paging, tokens| {
        let pages = Pages { paging, block: 1, batched_tokens: 0 };
        sequence_bytes(&model, &CacheFormats::of(&model), pages, &ServingLayout::SINGLE, tokens) / Bytes::new(1.0)
    };
    assert!(same(of(Paging::UnifiedPages, 1), 983_040.0));
    assert!(same(of(Paging::AllTokens, 1), 901_120.0));
    assert!(same(of(Paging::PerLayer, 100_000), 81_920.0 * 100_000.0 + 819_200.0 * 1_024.0));
}

#[test]
fn states_do_not_grow_and_prefixes_are_shared() {
    let delta = GatedDelta { key_heads: 16, value_heads: 32, key_dim: 128, value_dim: 128, kernel: 4 };
    let blocks =
        vec![block(30, Mixer::GatedDelta(delta), 512), block(10, Mixer::Attention(attention(16, 2, 256)), 512)];
    let model = Model { hidden: 2_048, vocab: 248_320, blocks, ..Model::default() };
    let formats = CacheFormats::of(&model);
    let of = |tokens| sequence_bytes(&model, &formats, Pages::BOUND, &ServingLayout::SINGLE, tokens) / Bytes::new(1.0);
    // 30 layers of 32 * 128 * 128 + 3 * (2 * 16 * 128 + 32 * 128) numbers; 10 * 2 * 2 * 256 a token.
    assert!(same(of(0), 2.0 * 16_465_920.0));
    assert!(same(of(8_192) - of(0), 20_480.0 * 8_192.0));
    let usable = Bytes::new(80.0 * GIB);
    let ask = |shared| fits(&model, &ServingLayout::SINGLE, &vllm(), &formats, usable, (32_768, shared));
    let (alone, shared) = (ask(0), ask(24_576));
    assert!(shared.requests > 3 * alone.requests, "{} and {}", shared.requests, alone.requests);
    assert_eq!(shared.prefix, Bytes::new(20_480.0 * 24_576.0));
}

#[test]
fn a_fraction_of_free_memory_is_no_fraction_of_all() {
    let (weights, usable) = (Bytes::new(60.0 * GIB), Bytes::new(80.0 * GIB));
    let of = |rule, outside: f64| {
        let engine = Engine { rule, alone: Bytes::new(outside * GIB), ..vllm() };
        gib(engine.pool(usable, weights, Bytes::ZERO, &ServingLayout::SINGLE))
    };
    for (rule, pool) in [(PoolRule::OfTotal, 12.0), (PoolRule::OfFree, 18.0), (PoolRule::Static, 12.0)] {
        assert!((of(rule, 0.0) - pool).abs() < 1e-9);
    }
    // What is outside is taken before the fraction or after it.
    for (rule, pool) in [(PoolRule::OfTotal, 10.0), (PoolRule::OfFree, 16.2), (PoolRule::Static, 10.2)] {
        assert!((of(rule, 2.0) - pool).abs() < 1e-9);
    }
    let none = vllm().pool(usable, usable, Bytes::ZERO, &ServingLayout::SINGLE);
    assert_eq!(none, Bytes::ZERO);
}

#[test]
fn eight_bit_caches_hold_twice_the_tokens() {
    let model = llama_8b();
    let (full, half) = (
        CacheFormats::of(&model),
        CacheFormats { keys_values: crate::catalog::model::Format::plain(Number::Fp8), ..CacheFormats::of(&model) },
    );
    let of = |formats| sequence_bytes(&model, formats, Pages::BOUND, &ServingLayout::SINGLE, 1_000);
    assert_eq!(of(&full), of(&half) * 2.0);
}

#[test]
fn ranks_that_share_layers_have_buffers_for_it() {
    let own = Engine { alone: Bytes::new(1.0), communicator: Bytes::new(10.0), exchange: Bytes::new(100.0), ..vllm() };
    let of = |one_group, tensor, pipeline, attention_data| {
        let layout = ServingLayout { tensor, pipeline, attention_data, ..ServingLayout::SINGLE };
        Engine { one_group, ..own }.outside(&layout) / Bytes::new(1.0)
    };
    let all = [of(false, 1, 1, 1), of(false, 1, 4, 4), of(true, 1, 4, 4), of(false, 2, 1, 1), of(true, 8, 2, 1)];
    for (bytes, by_hand) in all.into_iter().zip([1.0, 1.0, 11.0, 211.0, 811.0]) {
        assert!((bytes - by_hand).abs() < 1e-12, "{bytes} {by_hand}");
    }
}

#[test]
fn headroom_sets_the_share_where_no_fraction_is_given() {
    // SGLang on an H100: 512 + 12,288 + 512 + 128 MiB of 81,559 (0.835), and at least 10 GiB where passes are short.
    let mib = |count: f64| Bytes::new(count * 1_048_576.0);
    let headroom = Headroom {
        always: mib(512.0),
        token: mib(1.5),
        request: mib(2.0),
        rank: mib(128.0),
        least: Some(LeastHeadroom { above: mib(60.0 * 1_024.0), value: mib(10.0 * 1_024.0) }),
    };
    let engine = Engine { fraction: None, headroom, capacity: mib(81_559.0), ..vllm() };
    assert!((engine.share(&ServingLayout::SINGLE) - (1.0 - 13_440.0 / 81_559.0)).abs() < 1e-12);
    let short = Engine { pages: Pages { batched_tokens: 2_048, ..engine.pages }, ..engine };
    assert!((short.share(&ServingLayout::SINGLE) - (1.0 - 10_240.0 / 81_559.0)).abs() < 1e-12);
    let small = Engine { capacity: mib(24_564.0), ..short };
    assert!((small.share(&ServingLayout::SINGLE) - (1.0 - 4_224.0 / 24_564.0)).abs() < 1e-12);
}
