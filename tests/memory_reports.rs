//! What users found wrong in other estimators, each with the answer that its thread establishes.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod setup;

use clusterplan::catalog::engine_version::EngineVersion;
use clusterplan::catalog::model::{Attention, Block, Feed, Format, Mixer, Mlp, Model, Number};
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::memory::serving::{
    CacheFormats, Engine, Pages, Paging, ServingLayout, fits, largest_context, rank_weights, sequence_bytes,
};
use clusterplan::memory::{Software, footprint, worst};
use clusterplan::parallelism::{Layout, Sharding};
use clusterplan::units::{Bytes, Fraction};
use clusterplan::workload::{CacheNumbers, LayerKind, Transformer, census, import, numbers_at, weight_bytes};
use setup::{BARE, CATALOG, job, model};

const GIB: f64 = 1_073_741_824.0;

fn config(text: &str) -> Model {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let file = sources.add("config.json", text);
    let root = clusterplan::load::parse_json(&sources, file, &sink);
    let found = import(&root, None, &sink).unwrap();
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    found.model
}

/// Attention layers alone.
fn layers(layers: u32, heads: u32, kv_heads: u32, head_dim: u32, hidden: u32) -> Model {
    let attention = Attention { heads, kv_heads, head_dim, value_dim: head_dim, ..Attention::default() };
    let block = Block {
        layers,
        norms: 2,
        mixer: Mixer::Attention(attention),
        feed: Feed::Mlp(Mlp { ffn: 4 * hidden, gated: true, biases: false }),
        ..Block::default()
    };
    Model { hidden, vocab: 32_000, blocks: vec![block], ..Model::default() }
}

/// Bytes of bf16 a token.
fn per_token(model: &Model) -> u64 {
    2 * CacheNumbers::of(model).growing_per_token
}

/// GiB of bf16 at a context, without states.
fn gib_at(model: &Model, tokens: u64) -> f64 {
    2.0 * numbers_at(model, tokens) as f64 / GIB
}

fn near(found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() <= within, "{found} for {wanted}");
}

#[test]
fn heads_are_as_wide_as_their_key_says() {
    // LMCache/LMCache#688: 147,456 bytes a token of Qwen3 4B, not the 92,160 of hidden / heads.
    assert_eq!(per_token(&layers(36, 32, 8, 128, 2_560)), 147_456);
    // ai-dynamo/dynamo#14431: 8,192 a layer with heads of 256, not 7,168.
    assert_eq!(per_token(&layers(1, 16, 8, 256, 3_584)), 8_192);
    // unslothai/unsloth#4757, row 6: Qwen3 0.6B takes 4.375 GiB at 40,960 tokens, not 2.19.
    near(gib_at(&model("qwen3-0.6b"), 40_960), 4.375, 1e-12);
}

#[test]
fn grouped_heads_count_once() {
    // jranaraki/vllm-fit#2 and pytorch/ao#539.
    assert_eq!(per_token(&model("llama-2-7b")), 524_288);
    assert_eq!(per_token(&model("llama-3.1-8b")), 131_072);
    near(gib_at(&model("llama-3.1-8b"), 131_072), 16.0, 1e-12);
    // A key for the heads of keys is not heeded by Falcon 7B's multi-query attention: 8,192, not 581,632.
    let falcon = r#"{"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_kv_heads": 71,
        "num_hidden_layers": 32, "vocab_size": 65024, "multi_query": true, "new_decoder_architecture": false,
        "parallel_attn": true, "bias": false, "alibi": false}"#;
    assert_eq!(per_token(&config(falcon)), 8_192);
}

#[test]
fn latent_attention_caches_one_vector() {
    // LMCache/LMCache#694, aliyun/SimAI#268.
    assert_eq!(per_token(&model("deepseek-v3")), 70_272);
    // unslothai/unsloth#4757, rows 3 and 5.
    near(gib_at(&model("deepseek-v3"), 163_840), 10.72, 1e-3);
    near(gib_at(&model("kimi-k2.5"), 262_144), 17.16, 1e-3);
    // gpustack/gguf-parser-go#8: 18 MiB a layer at 65,536 tokens of 4 bits, 1.07 GiB in all.
    let formats = CacheFormats { keys_values: Format::plain(Number::Int4), ..CacheFormats::of(&model("deepseek-v3")) };
    let all = sequence_bytes(&model("deepseek-v3"), &formats, Pages::BOUND, &ServingLayout::SINGLE, 65_536);
    near(all / Bytes::new(61.0 * 18.0 * 1_048_576.0), 1.0, 1e-12);
    near(all / Bytes::new(GIB), 1.07, 5e-3);
    // tenstorrent/tt-xla#5861: every one of four ranks holds all of DeepSeek-V2-Lite's.
    let lite = model("deepseek-v2-lite");
    let four = ServingLayout { tensor: 4, ..ServingLayout::SINGLE };
    let rank = sequence_bytes(&lite, &CacheFormats::of(&lite), Pages::BOUND, &four, 1);
    assert_eq!(rank, Bytes::new(31_104.0));
    // tenstorrent/tt-xla#5728: grouped heads are split.
    let grouped = model("llama-3.1-8b");
    let of = |layout| sequence_bytes(&grouped, &CacheFormats::of(&grouped), Pages::BOUND, layout, 1_000);
    assert_eq!(of(&four) * 4.0, of(&ServingLayout::SINGLE));
}

#[test]
fn recurrent_layers_do_not_grow() {
    // unslothai/unsloth#4757, row 2: 16 GiB for Qwen3.5 27B at 262,144 tokens, not 53.25.
    near(gib_at(&model("qwen3.5-27b"), 262_144), 16.0, 1e-12);
    assert!(CacheNumbers::of(&model("qwen3.5-27b")).states > 0);
    // inference-sim/inference-sim#1558: attention layers alone.
    assert_eq!(per_token(&model("nemotron-h-56b")), 2 * 10 * 8 * 2 * 128);
}

#[test]
fn windows_have_two_bounds() {
    // alvarobartt/hf-mem#60: every layer of gpt-oss 120B keeps its token while its window is open: 73,728 bytes.
    let large = CacheNumbers::of(&model("gpt-oss-120b"));
    assert_eq!(2 * (large.growing_per_token + large.windowed_per_token), 73_728);
    near(5.38 * GIB / 73_728.0, 78_384.0, 1e-3);
    // alvarobartt/hf-mem#70: gpt-oss 20B, 32 requests of 8,192 tokens: 6.09 GiB with windows, 12 in pages of one size.
    let small = model("gpt-oss-20b");
    let of = |paging| {
        let pages = Pages { paging, ..Pages::BOUND };
        let one = sequence_bytes(&small, &CacheFormats::of(&small), pages, &ServingLayout::SINGLE, 8_192);
        one * 32.0 / Bytes::new(GIB)
    };
    near(of(Paging::PerLayer), 6.09, 1e-3);
    near(of(Paging::UnifiedPages), 12.0, 1e-12);
    // lablup/mlxcel#172: Gemma 3 1B at 32,768 tokens takes 139 MiB, not 832.
    let gemma = r#"{"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
        "sliding_window": 512, "sliding_window_pattern": 6, "max_position_embeddings": 32768}"#;
    near(gib_at(&config(gemma), 32_768) * 1_024.0, 139.0, 1e-3);
    // dogkeeper886/ollama37#451: a smaller model of a family must not take more than a larger one.
    assert!(gib_at(&model("gemma-2-9b"), 131_072) < gib_at(&model("gemma-2-27b"), 131_072));
}

#[test]
fn eight_bit_caches_take_half() {
    // vllm-project/vllm#25350, and ollama/ollama#10128: 7.4 GiB for Qwen2.5 7B at 262,144 tokens in q8_0.
    let qwen = model("qwen2.5-7b");
    let at = |word: &str| {
        let formats = CacheFormats { keys_values: Format::named(word).unwrap(), ..CacheFormats::of(&qwen) };
        sequence_bytes(&qwen, &formats, Pages::BOUND, &ServingLayout::SINGLE, 262_144)
    };
    assert_eq!(at("fp8") * 2.0, at("bf16"));
    near(at("q8_0") / Bytes::new(GIB), 7.4, 6e-3);
}

fn vllm(batched_tokens: u32, fraction: f64) -> Engine {
    let memory = CATALOG.memory_allowances.get("cuda").unwrap().engines["vllm"].clone();
    let engine = Engine::new(&memory.with_batched_tokens(batched_tokens), "", Bytes::new(24.0 * GIB));
    Engine { fraction: Fraction::new(fraction), ..engine }
}

#[test]
fn one_whole_request_must_fit() {
    // OpenRLHF/OpenRLHF#336: 378 blocks of 16 are 6,048 tokens, fewer than 8,192: no such request is served. On two GPUs
    // of 80 GiB, where Llama 3 70B leaves next to nothing, the planner says so too.
    let llama = model("llama-3.1-70b");
    let two = ServingLayout { tensor: 2, ..ServingLayout::SINGLE };
    let (engine, formats) = (vllm(8_192, 0.9), CacheFormats::of(&llama));
    let found = fits(&llama, &two, &engine, &formats, Bytes::new(79.15 * GIB), (32_768, 0));
    assert_eq!(found.requests, 0);
    let longest = largest_context(&llama, &two, &engine, &formats, found.pool);
    assert!(longest > 0 && longest < 32_768, "{longest}");
}

#[test]
fn a_rank_is_not_the_whole() {
    // vllm-project/vllm#13061: R1-Distill-Qwen-14B over two GPUs weighs 13.95 GiB on each, and leaves 8.69 on each.
    let qwen = r#"{"model_type": "qwen2", "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "intermediate_size": 13824, "vocab_size": 152064, "tie_word_embeddings": false}"#;
    let qwen = config(qwen);
    let two = ServingLayout { tensor: 2, ..ServingLayout::SINGLE };
    near(rank_weights(&qwen, &two) / Bytes::new(GIB), 13.95, 0.015);
    let left = 23.08 * GIB - 13.95 * GIB - (0.25 + 0.19) * GIB;
    near(left / GIB, 8.69, 1e-3);
    // modal-labs/modal-client#2797: an H100 of "80 GB" reports 81,559 MiB, 85.52 GB or 79.65 GiB.
    let h100 = CATALOG.accelerators.get("h100-sxm-80gb").unwrap().memory_capacity;
    near(h100 / Bytes::new(1e9), 85.52, 1e-4);
    near(h100 / Bytes::new(GIB), 79.65, 1e-4);
    // meta-pytorch/torchtune#1348: 83 GB are 77 GiB.
    near(83e9 / GIB, 77.3, 1e-3);
}

#[test]
fn parameters_count_what_is_there() {
    // jranaraki/vllm-fit#27, huggingface/transformers#14960, Abdullah-Taha9/ui-training#29.
    let mixtral = census(&model("mixtral-8x7b"));
    assert_eq!((mixtral.total(), mixtral.active() / 100_000_000), (46_702_792_704, 128));
    assert_eq!(census(&model("qwen2.5-72b")).total(), 72_706_203_648);
    let gpt2 = r#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "vocab_size": 50257}"#;
    assert_eq!(census(&config(gpt2)).total(), 124_439_808);
}

#[test]
fn scales_of_four_bit_weights_count() {
    // Andyyyy64/whichllm#99: 0.53125 and 0.5625 bytes; 0xBakeer/inference-atlas#70: 4.5 bits with scale and bias for 64.
    near(Format::named("mxfp4").unwrap().bits() / 8.0, 0.53125, 1e-12);
    near(Format::named("nvfp4").unwrap().bits() / 8.0, 0.5625, 1e-12);
    near(Format { number: Number::Int4, group: 64, scale_bits: 32 }.bits(), 4.501, 1e-3);
    // vllm-project/vllm#12569: Llama 3.1 70B with weights in 8 bits and tables in 16: 67.72 GiB.
    let mut llama = model("llama-3.1-70b");
    let int8 = clusterplan::catalog::model::ModuleFormat { format: Format::plain(Number::Int8), kept_layers: 0 };
    llama.formats.modules =
        clusterplan::catalog::model::Formats::LINEAR.into_iter().map(|module| (module, int8)).collect();
    let bytes: Bytes = weight_bytes(&llama).map(|(_, bytes)| bytes).sum();
    near(bytes / Bytes::new(GIB), 67.7229, 2e-3);
}

#[test]
fn states_are_not_all_that_training_takes() {
    // deepspeedai/DeepSpeed#5099: ZeRO-2 keeps the fp16 weights whole: 2 P + 18 P / N with both copies of gradients.
    let llama = Transformer::try_from(&model("llama-3.1-8b")).unwrap();
    let sharded = Layout { data: 8, sharding: Sharding::OptimizerGradients, ..Layout::SINGLE };
    let held = footprint(&llama, &job(4_096, 8), &sharded, &BARE, 0);
    let parameters = llama.parameters().total() as f64;
    assert_eq!(held.weights, Bytes::new(2.0 * parameters));
    assert_eq!(held.gradients + held.optimizer, Bytes::new(16.0 * parameters / 8.0));
    assert!(held.total() > (held.weights + held.gradients + held.optimizer) * 1.1);
}

#[test]
fn the_heaviest_stage_decides() {
    // NVIDIA-NeMo/Megatron-Bridge#5077 and NVIDIA/Megatron-LM#1304: layers that do not divide are all built, and the
    // heaviest stage is the answer, not the average. 30 layers over four stages: 8, 8, 7, 7 or the like, none lost.
    let mut llama = Transformer::try_from(&model("llama-3.1-8b")).unwrap();
    llama.layers = 30;
    let layout = Layout { pipeline: 4, ..Layout::SINGLE };
    let plan = clusterplan::parallelism::StagePlan::new(30, &layout);
    let layers: Vec<u32> = (0..4).map(|stage| plan.stage(stage, &llama).layers()).collect();
    assert_eq!((layers.iter().sum::<u32>(), layers.iter().max()), (30, Some(&8)));
    let stages: Vec<Bytes> =
        (0..4).map(|stage| footprint(&llama, &job(4_096, 8), &layout, &BARE, stage).total()).collect();
    let most = stages.iter().copied().fold(Bytes::ZERO, Bytes::max);
    assert_eq!(worst(&llama, &job(4_096, 8), &layout, &BARE).1.total(), most);
    assert!(most > stages.iter().copied().sum::<Bytes>() / 4.0);
    // bigscience-workshop/Megatron-DeepSpeed#99: tied tables are held on the first and the last stage.
    let tied = Transformer { tied_embeddings: true, ..llama };
    let weights = |stage| footprint(&tied, &job(4_096, 8), &layout, &BARE, stage).weights;
    let table = Bytes::new(2.0 * 128_256.0 * 4_096.0);
    assert!(weights(0) > table && weights(3) > table);
}

#[test]
fn activations_count_norms_twice_and_scores_never_with_flash() {
    // cli99/llm-analysis#18: two norms a layer, 4 s b h; Dao-AILab/flash-attention#899: no square of the sequence.
    let llama = Transformer::try_from(&model("llama-3.1-8b")).unwrap();
    let kept = |sequence, software: &Software| {
        Layout::SINGLE.layer_activations(&llama, LayerKind::Dense, &job(sequence, 1), software).kept
    };
    assert_eq!(kept(8_192, &BARE), kept(4_096, &BARE) * 2.0);
    let unfused = Software { fused_attention: false, ..BARE };
    assert!(kept(8_192, &unfused) > kept(4_096, &unfused) * 3.0);
    // foundation-model-stack/fms-fsdp#152: 1 GiB of bf16 logits a sequence of 4,096 with 131,072 entries, twice that in
    // single precision.
    let wide = Transformer { vocab: 131_072, ..llama };
    let narrow = Transformer { vocab: 1, ..llama };
    let total = |model| footprint(model, &job(4_096, 1), &Layout::SINGLE, &BARE, 0).activations;
    near((total(&wide) - total(&narrow)) / Bytes::new(GIB), 2.0, 1e-3);
    // NVIDIA/Megatron-LM#525, radixark/miles#2199: what the allocator and the libraries hold is counted.
    let held = Software { fragmentation: Fraction::new(0.05).unwrap(), context: Bytes::new(0.6 * GIB), ..BARE };
    let of = |software| footprint(&llama, &job(4_096, 1), &Layout::SINGLE, software, 0).total();
    assert!(of(&held) > of(&BARE) + Bytes::new(0.6 * GIB));
}

#[test]
fn engines_logs_are_explained() {
    let gib = |bytes: Bytes| bytes / Bytes::new(GIB);
    let over = |tensor| ServingLayout { tensor, ..ServingLayout::SINGLE };
    // vllm-project/vllm issue 6746: the FP8 checkpoint of Llama 3.1 405B has FP8 in its MLPs alone, and not in the first
    // and the last layer (arXiv 2407.21783, section 6.2): 57.75 GiB on each of eight, scales and buffers among them.
    let mut llama = model("llama-3.1-405b");
    let fp8 = clusterplan::catalog::model::ModuleFormat { format: Format::plain(Number::Fp8), kept_layers: 2 };
    llama.formats.modules = vec![(clusterplan::catalog::model::Module::Mlp, fp8)];
    near(gib(rank_weights(&llama, &over(8))), 57.752, 0.02);
    // Issue 21348: Qwen3 235B-A22B over four GPUs: one of its four heads on each, 178,880 tokens in 8.11 GiB.
    let qwen = model("qwen3-235b-a22b");
    let token = sequence_bytes(&qwen, &CacheFormats::of(&qwen), Pages::BOUND, &over(4), 1);
    near(Bytes::new(8.11 * GIB) / token, 178_880.0, 0.012);
    // alvarobartt/hf-mem issue 60: gpt-oss 120B, all layers keeping all tokens: 78,384 in 5.38 GiB.
    let oss = model("gpt-oss-120b");
    let pages = Pages { paging: Paging::AllTokens, ..Pages::BOUND };
    let token = sequence_bytes(&oss, &CacheFormats::of(&oss), pages, &over(1), 1);
    near(Bytes::new(5.38 * GIB) / token, 78_384.0, 0.001);
    // mitchross/talos-argocd-proxmox pull request 1995: a hybrid of 27 billion on two GPUs holds 302,921 tokens in 9.98
    // GiB; 32 KiB a token are 9.24, and pages of recurrent states the rest.
    let hybrid = model("qwen3.5-27b");
    let formats = CacheFormats { keys_values: Format::plain(Number::Fp8), ..CacheFormats::of(&hybrid) };
    let of = |tokens| sequence_bytes(&hybrid, &formats, Pages::BOUND, &over(1), tokens);
    assert_eq!(of(2) - of(1), Bytes::new(32_768.0));
    near(302_921.0 * 32_768.0 / GIB, 9.24, 1e-3);
    assert!(of(0) > Bytes::ZERO);
    // casys-kaist/LLMServingSim pull request 59: 41,408 tokens of Llama 3.1 8B on an RTX 4090, where weights and 90% of 24
    // GiB would leave 54,400: the peak of activations and the memory that the driver keeps are the difference.
    let small = model("llama-3.1-8b");
    let rtx = fits(&small, &over(1), &vllm(8_192, 0.9), &CacheFormats::of(&small), Bytes::new(23.5 * GIB), (2_048, 0));
    near(rtx.pool / Bytes::new(131_072.0), 41_408.0, 0.04);
}

#[test]
fn peaks_of_sampling_follow_the_vocabulary() {
    // llm-d-incubation/llm-d-planner, src/planner/capacity_planner.py: activation peaks on an H100, where vLLM before 0.17
    // takes 1,024 requests, the same at contexts of 16,000 and 32,000 tokens.
    let peak = |id: &str, batched_tokens| {
        let memory = CATALOG.memory_allowances.get("cuda").unwrap().engines["vllm"].clone();
        let old = memory.of_version(EngineVersion::parse("0.16")).with_batched_tokens(batched_tokens);
        let engine = Engine::new(&old, "", Bytes::new(80.0 * GIB));
        engine.activations(&model(id), &ServingLayout::SINGLE) / Bytes::new(GIB)
    };
    for (id, logged) in [("llama-3.1-8b", 4.76), ("qwen3-0.6b", 5.56), ("gpt-oss-20b", 7.38)] {
        near(peak(id, 8_192), logged, 0.02);
        // The tokens of a forward pass add no more than their hidden states.
        near(peak(id, 2_048), peak(id, 8_192), 0.025);
    }
}

#[test]
fn tokens_and_requests_of_a_hybrid_are_told_apart() {
    // vllm-project/vllm#40691: Qwen3.5 27B holds "290,864 tokens" and "33.04x at 32,768", which would be 1,082,655. Both
    // follow from 1,487 blocks. A block is as long as makes its page hold a recurrent state, 784 tokens: 371 blocks of
    // the attention layers are 290,864 tokens, were every fourth block theirs. But a request of 32,768 takes 42 of those
    // and one for each of the three times as many recurrent layers.
    let hybrid = model("qwen3.5-27b");
    let pages = Pages { paging: Paging::UnifiedPages, block: 16, batched_tokens: 0 };
    let of = |tokens| sequence_bytes(&hybrid, &CacheFormats::of(&hybrid), pages, &ServingLayout::SINGLE, tokens);
    let page = Bytes::new(784.0 * 2.0 * 4.0 * 256.0 * 2.0);
    assert_eq!(of(784) - of(0), page * 16.0);
    assert_eq!(of(785) - of(0), page * 32.0);
    near(of(32_768) / (page * 16.0), 45.0, 1e-12);
    near(page * 16.0 * 1_487.0 / of(32_768), 33.04, 2e-4);
    assert_eq!(1_487 / 4 * 784, 290_864);
}

#[test]
fn a_hybrid_in_eight_bits_fits_where_attention_in_all_layers_would_not() {
    // The shape is that of the published configuration: 32 layers of 4,096, MLPs of 12,288, 248,320 entries, 16 heads and
    // attention in eight layers. Assumed after the family's other models, and confirmed by no configuration of this one: 4 key
    // and value heads of 256, the recurrent layers' 16 and 32 heads of 128 with a convolution over 4 tokens, a head of its own
    // for the output, states in single precision.
    // AlexsJones/llmfit#203: Qwen3.5 9B in q8_0 at 8,192 tokens was said not to fit 16 GB, and took 8.5.
    let qwen = r#"{"model_type": "qwen3_5_text", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 16,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 12288, "vocab_size": 248320,
        "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": false,
        "mamba_ssm_dtype": "float32", "dtype": "bfloat16"}"#;
    let qwen = config(qwen);
    let q8 = Format::named("q8_0").unwrap();
    // llama.cpp leaves the token embedding in the host's memory.
    let table = 248_320.0 * 4_096.0;
    let weights = q8.bytes(census(&qwen).total() as f64 - table);
    let cache = sequence_bytes(&qwen, &CacheFormats::of(&qwen), Pages::BOUND, &ServingLayout::SINGLE, 8_192);
    near((weights + cache) / Bytes::new(1e9), 8.5, 0.05);
}
