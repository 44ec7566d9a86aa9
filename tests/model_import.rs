//! Configurations of published models against published parameter counts and cache sizes, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::document::{Node, Value};
use clusterplan::workload::{CacheNumbers, Imported, Transformer, census, import, weight_bytes};

const CONFIGS: &str = include_str!("validation/configs.jsonl");

fn number(node: &Node, key: &str) -> Option<u64> {
    match node.at_path(key)?.value {
        Value::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn imported(text: &str, beside: Option<&str>) -> Result<Imported, String> {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let file = sources.add("config.json", text);
    let root = clusterplan::load::parse_json(&sources, file, &sink);
    let quantisation = beside.map(|text| {
        let file = sources.add("hf_quant_config.json", text);
        clusterplan::load::parse_json(&sources, file, &sink)
    });
    let found = if sink.is_empty() { import(&root, quantisation.as_ref(), &sink) } else { None };
    match found {
        Some(found) if sink.is_empty() => Ok(found),
        _ => Err(render(&sink.into_diagnostics(), &sources, false)),
    }
}

/// The published configurations, each as (name, line, model).
fn published() -> Vec<(String, Node, Imported)> {
    let mut all = Vec::new();
    for line in CONFIGS.lines() {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let file = sources.add("configs.jsonl", line);
        let node = clusterplan::load::parse_json(&sources, file, &sink);
        let name = node.at_path("name").and_then(Node::as_str).unwrap().to_owned();
        let model = import(node.at_path("config").unwrap(), None, &sink);
        assert!(sink.is_empty(), "{name}: {}", render(&sink.into_diagnostics(), &sources, false));
        all.push((name, node, model.unwrap()));
    }
    all
}

#[test]
fn the_context_is_that_which_engines_take() {
    let of = |more: &str| {
        let text = format!(
            r#"{{"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
            "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": false{more}}}"#
        );
        imported(&text, None).unwrap().model.max_context
    };
    assert_eq!(of(""), None);
    assert_eq!(of(r#", "max_position_embeddings": 40960, "rope_scaling": null"#), Some(40_960));
    // YaRN: the original times its factor, whatever is stated beside them.
    let yarn = r#""rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}"#;
    assert_eq!(of(&format!(r#", "max_position_embeddings": 40960, {yarn}"#)), Some(131_072));
    // A linear factor is not in the stated length, that of Llama 3 is.
    let scaled = |kind: &str| {
        of(&format!(r#", "max_position_embeddings": 16384, "rope_scaling": {{"rope_type": "{kind}", "factor": 4}}"#))
    };
    assert_eq!((scaled("linear"), scaled("llama3")), (Some(65_536), Some(16_384)));
    // The least of several lengths; one that is stated for the model as a whole goes before (Command R).
    assert_eq!(of(r#", "max_position_embeddings": 8192, "n_positions": 4096"#), Some(4_096));
    assert_eq!(of(r#", "max_position_embeddings": 8192, "model_max_length": 131072"#), Some(131_072));
    let nested = r#"{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "max_position_embeddings": 131072,
        "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 128, "vocab_size": 100, "sliding_window": 32,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}}"#;
    assert_eq!(imported(nested, None).unwrap().model.max_context, Some(131_072));
}

#[test]
fn positions_that_are_scaled_in_no_known_way_are_refused() {
    let of = |more: &str| {
        let text = format!(
            r#"{{"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
            "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": false,
            "max_position_embeddings": 4096, {more}}}"#
        );
        imported(&text, None).unwrap_err()
    };
    for (scaling, said, hint) in [
        (r#"{"rope_type": "yarnn", "factor": 4}"#, "by the rule \"yarnn\" are not known", "did you mean \"yarn\"?"),
        (r#"{"rope_type": "other", "factor": 4}"#, "by the rule \"other\"", "remove the table"),
        (r#"{"rope_type": "linear"}"#, "`rope_scaling.factor` is missing", "nothing is taken in its place"),
        (r#"{"rope_type": "linear", "factor": 0.5}"#, "a factor of rotary positions of 0.5", "such as 4.0"),
        (r#"{"rope_type": "yarn", "factor": "4"}"#, "`rope_scaling.factor` must be a number", "without quotes: 4"),
        (r#"{"rope_type": 3, "factor": 4}"#, "`rope_scaling.rope_type` must be a text", "put it in quotes"),
        ("[4.0]", "`rope_scaling` must be a table, or null", "write its keys"),
    ] {
        let told = of(&format!(r#""rope_scaling": {scaling}"#));
        assert_eq!(told.matches("error[").count(), 1, "{scaling}: {told}");
        assert!(told.contains(said) && told.contains(hint), "{scaling}: {told}");
    }
    // What several parts ask for is told once.
    let gpt = r#"{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 8, "vocab_size": 100, "n_positions": 0}"#;
    let told = imported(gpt, None).unwrap_err();
    assert_eq!(told.matches("error[").count(), 1, "{told}");
}

#[test]
fn published_configurations_come_to_their_parameters_and_caches() {
    let all = published();
    assert!(all.len() >= 90);
    let mut exact = 0;
    for (name, line, found) in &all {
        let numbers = CacheNumbers::of(&found.model);
        if let Some(parameters) = number(line, "parameters") {
            assert_eq!(census(&found.model).total(), parameters, "{name}");
            exact += 1;
        }
        assert_eq!(Some(numbers.growing_per_token), number(line, "growing_per_token"), "{name}");
        assert_eq!(numbers.windowed_per_token, number(line, "windowed_per_token").unwrap_or(0), "{name}");
        assert_eq!(numbers.states, number(line, "states").unwrap_or(0), "{name}");
        assert_eq!(numbers.convolutions, number(line, "convolutions").unwrap_or(0), "{name}");
    }
    assert!(exact >= 60, "{exact}");
}

#[test]
fn the_shape_that_training_takes_has_the_same_parameters() {
    let mut trainable = 0;
    for (name, _, found) in published() {
        let Ok(transformer) = Transformer::try_from(&found.model) else { continue };
        assert_eq!(transformer.parameters().total(), census(&found.model).total(), "{name}");
        assert_eq!(transformer.layers, found.model.layers(), "{name}");
        trainable += 1;
    }
    assert!(trainable >= 60, "{trainable}");
}

#[test]
fn a_written_model_reads_as_the_same() {
    for (name, _, found) in published() {
        let text = found.model.to_toml();
        let keys: Vec<String> = found.model.toml_keys().iter().map(|key| format!("\"{key}\"")).collect();
        let text = format!(
            "name = \"x\"\n{text}\n[[source]]\nfields = [{}]\nbasis = \"assumed\"\ntitle = \"t\"\naccessed = 2026-11-29\n",
            keys.join(", ")
        );
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let file = sources.add("model.toml", text);
        let root = clusterplan::load::parse(&sources, file, &sink);
        let mut catalog = clusterplan::catalog::Catalog::default();
        catalog.add("models", "x", &root, &sink);
        assert!(sink.is_empty(), "{name}: {}", render(&sink.into_diagnostics(), &sources, false));
        assert_eq!(catalog.models.get("x").unwrap().part, found.model, "{name}");
    }
}

/// Exact counts of published weights, or of the count that their publisher states.
#[test]
fn more_families_come_to_their_published_counts() {
    for (parameters, text) in [
        // facebook/opt-125m.
        (
            125_239_296,
            r#"{"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072, "num_attention_heads": 12, "vocab_size": 50272, "max_position_embeddings": 2048, "torch_dtype": "float16"}"#,
        ),
        // bigscience/bloom: 176,247,271,424 parameters (model card).
        (
            176_247_271_424,
            r#"{"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880}"#,
        ),
        // Qwen/Qwen3-4B: 4,022,468,096 with embeddings.
        (
            4_022_468_096,
            r#"{"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936, "tie_word_embeddings": true}"#,
        ),
        // bigcode/starcoder2-3b.
        (
            3_030_371_328,
            r#"{"model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288, "vocab_size": 49152, "use_bias": true, "sliding_window": 4096, "max_position_embeddings": 16384}"#,
        ),
        // HuggingFaceTB/SmolLM3-3B.
        (
            3_075_098_624,
            r#"{"model_type": "smollm3", "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008, "vocab_size": 128256, "tie_word_embeddings": true}"#,
        ),
        // allenai/OLMoE-1B-7B-0924.
        (
            6_919_161_856,
            r#"{"model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 1024, "vocab_size": 50304, "num_experts": 64, "num_experts_per_tok": 8}"#,
        ),
        // deepseek-ai/deepseek-moe-16b-base.
        (
            16_375_728_128,
            r#"{"model_type": "deepseek", "hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 102400}"#,
        ),
    ] {
        let found = imported(text, None).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(census(&found.model).total(), parameters, "{}", found.family);
    }
}

#[test]
fn what_is_not_modelled_is_named() {
    for (text, parts) in [
        (
            r#"{"model_type": "deepseek_v4", "hidden_size": 7168, "compress_ratios": [128, 4], "hc_mult": 4}"#,
            ["the architecture `deepseek_v4` is not modelled", "`compress_ratios`", "`hc_mult`"],
        ),
        (
            r#"{"model_type": "kimi_k3", "text_config": {"model_type": "kimi_linear", "hidden_size": 7168}}"#,
            ["the architecture `kimi_k3` is not modelled", "`linear_attn_config`", "`mla_use_output_gate`"],
        ),
    ] {
        let said = imported(text, None).unwrap_err();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn towers_come_to_the_published_totals() {
    let all = published();
    let total = |name: &str| {
        let (_, _, found) = all.iter().find(|(known, ..)| known == name).unwrap();
        census(&found.model).with_towers()
    };
    // Sizes of the published safetensors: llava-hf/llava-1.5-7b-hf, google/gemma-3-27b-it, Qwen/Qwen2-VL-7B-Instruct.
    assert_eq!(total("llava-1.5-7b-hf"), 7_063_427_072);
    assert_eq!(total("gemma-3-27b-it"), 27_432_406_640);
    assert_eq!(total("qwen2-vl-7b"), 8_291_375_616);
}

#[test]
fn quantised_weights_take_what_their_modules_take() {
    let bytes = |text: &str, beside: Option<&str>| -> f64 {
        let found = imported(text, beside).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        weight_bytes(&found.model).map(|(_, bytes)| bytes / clusterplan::units::Bytes::new(1.0)).sum()
    };
    let llama_70b = r#"{"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "torch_dtype": "bfloat16"#;
    // 70.55 billion in bf16; projections of 68.45 billion in one byte, tables and norms in two.
    let plain = bytes(&format!("{llama_70b}\"}}"), None);
    assert!((plain - 141_107_412_992.0).abs() < 1.0);
    let beside =
        r#"{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#;
    let quantised = bytes(&format!("{llama_70b}\"}}"), Some(beside));
    let kept = 2.0 * 128_256.0 * 8_192.0 + 161.0 * 8_192.0;
    assert!((quantised - (70_553_706_496.0 + kept)).abs() < 1.0);
    // MLX: 4 bits, and 32 bits of scale and bias for 64: 4.5 bits of every matrix.
    let mlx = bytes(&format!("{llama_70b}\", \"quantization\": {{\"group_size\": 64, \"bits\": 4}}}}"), None);
    assert!((mlx - ((70_553_706_496.0 - 161.0 * 8_192.0) * 4.5 / 8.0 + 161.0 * 8_192.0 * 2.0)).abs() < 1.0);
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let base = r#""model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000"#;
    let refused = |text: &str| imported(text, None).err().unwrap_or_default();
    let with = |more: &str| refused(&format!("{{{base}, {more}}}"));
    assert!(imported(&format!("{{{base}}}"), None).is_ok());
    insta::assert_snapshot!(
        [
            with("\"num_key_value_heads\": 7"),
            with("\"num_key_value_heads\": 0"),
            with("\"head_dim\": -1"),
            with("\"head_dim\": \"128\""),
            with("\"compress_ratios\": [4, 128]"),
            with("\"num_state_heads\": 12"),
            with("\"quantization_config\": {\"quant_method\": \"hqq\"}"),
            with("\"torch_dtype\": \"float8_e4m3fn\""),
            refused("{\"model_type\": \"llama\", \"hidden_size\": 4096}"),
            refused("{\"model_type\": \"deepseek_v9\"}"),
            refused(&format!("{{{}}}", base.replace("32000", "99999999999999999999"))),
            refused(&format!("{{{}}}", base.replace("4096", "2147483647").replace("11008", "2147483647"))),
            refused(&format!("{{{}}}", base.replace("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 2000000000"))),
            refused(&format!("{{{base}")),
            refused(r#"{"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 9}"#),
            refused("[]"),
        ]
        .join("---\n")
    );
}

/// Qwen3 30B-A3B, and what is said of its formats.
fn experts(quantisation: &str, beside: Option<&str>) -> Result<Imported, String> {
    let text = format!(
        r#"{{"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "vocab_size": 151936, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
        {quantisation}}}"#
    );
    imported(&text, beside)
}

#[test]
fn formats_by_group_and_by_layer_are_told_apart() {
    let bytes =
        |model: &Imported| weight_bytes(&model.model).map(|(_, bytes)| bytes).sum::<clusterplan::units::Bytes>();
    let plain = experts("", None).unwrap();
    let weights = |parameters: u64, bits: f64| clusterplan::units::Bytes::new(parameters as f64 * bits / 8.0);
    // Experts of three matrices of 2048 x 768 in 4 bits with a 16-bit scale for 128, attention in FP8.
    let in_experts = 48 * 128 * 3 * 2_048 * 768;
    let in_attention = 48 * (2 * 2_048 * 32 * 128 + 2 * 2_048 * 4 * 128);
    let group = |number: &str, bits: u32, size: &str, target: &str| {
        format!(r#"{{"targets": ["{target}"], "weights": {{"num_bits": {bits}, "type": "{number}"{size}}}}}"#)
    };
    let groups = format!(
        r#", "quantization_config": {{"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore": ["lm_head"],
        "config_groups": {{"group_0": {}, "group_1": {}}}}}"#,
        group("int", 4, r#", "group_size": 128"#, "re:.*experts.*"),
        group("float", 8, "", "re:.*self_attn.*"),
    );
    let found = experts(&groups, None).unwrap();
    let saved = weights(in_experts, 16.0 - 4.125) + weights(in_attention, 8.0);
    assert!(((bytes(&plain) - bytes(&found)) / saved - 1.0).abs() < 1e-9);
    // NVIDIA's file lists layers: here attention of the first twelve in FP8.
    let listed: Vec<String> =
        (0..12).map(|layer| format!(r#""model.layers.{layer}.self_attn.q_proj": {{"quant_algo": "FP8"}}"#)).collect();
    let beside = |layers: &str| {
        format!(r#"{{"quantization": {{"quant_algo": "MIXED_PRECISION", "quantized_layers": {{{layers}}}}}}}"#)
    };
    let found = experts("", Some(&beside(&listed.join(", ")))).unwrap();
    let saved = weights(in_attention / 4, 8.0);
    assert!(((bytes(&plain) - bytes(&found)) / saved - 1.0).abs() < 1e-9);
    let two = format!(r#"{}, "model.layers.13.self_attn.q_proj": {{"quant_algo": "NVFP4"}}"#, listed.join(", "));
    assert!(experts("", Some(&beside(&two))).unwrap_err().contains("two formats for attention"));
    let single = groups.replace("re:.*self_attn.*", "model.layers.3.self_attn.q_proj");
    assert!(experts(&single, None).unwrap_err().contains("model.layers.3.self_attn.q_proj"));
}
