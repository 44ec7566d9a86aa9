//! Questions about serving that people got wrong in public, each answered by the product itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use program::run;
use serde_json::Value;

const LLAMA: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";
const PLAN: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr))
}

fn memory(arguments: &[&str]) -> Value {
    json(&[&["memory"], arguments].concat())
}

fn part(answer: &Value, key: &str) -> f64 {
    answer["memory"][key].as_f64().unwrap_or_else(|| panic!("no {key}"))
}

fn near(found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() <= within, "{found}, not {wanted}");
}

/// ai-dynamo/aiconfigurator issues 1396 and 1423: a planner filled 179.7 of 180 GiB with 96 requests a rank; the engine keeps
/// to its fraction of all memory, 0.92, and admitted 28.98 requests of 8,192 + 1,024 tokens a rank of Kimi-K2.5 in NVFP4.
#[test]
fn an_engine_keeps_to_its_fraction_of_all_memory() {
    let flags = ["--model", "kimi-k2.5", "--accelerator", "b200-sxm-180gb", "--attention-data", "4", "--expert", "4"];
    let formats = ["--weights", "nvfp4", "--kv-cache", "bf16", "--context", "9216", "--fraction", "0.92"];
    let answer = memory(&[&flags[..], &formats].concat());
    near(part(&answer, "total_bytes"), 0.92 * part(&answer, "usable_bytes"), 1e-9);
    let each = answer["max_concurrency_count"].as_f64().unwrap() / 4.0;
    assert!((27.0..=30.0).contains(&each), "{each}");
}

/// ai-dynamo/aiconfigurator issue 1159: TensorRT-LLM takes its fraction of what is left free, vLLM of all memory less what else
/// it holds, SGLang of all memory less what is static: weights, and what was taken before they were loaded.
#[test]
fn engines_take_their_fraction_of_different_wholes() {
    let of = |engine: &str| {
        memory(&["--model", "llama-3.1-8b", "--accelerator", "h100-sxm-80gb", "--engine", engine, "--fraction", "0.8"])
    };
    let [usable, weights, activations, outside, pool] =
        ["usable_bytes", "weights_bytes", "activations_bytes", "workspace_bytes", "kv_cache_bytes"]
            .map(|key| move |answer: &Value| part(answer, key));
    let beside = |answer: &Value| weights(answer) + activations(answer) + outside(answer);
    let [vllm, sglang, trtllm] = ["vllm", "sglang", "trtllm"].map(of);
    near(pool(&vllm), 0.8 * usable(&vllm) - beside(&vllm), 1e-9);
    near(pool(&trtllm), 0.8 * (usable(&trtllm) - beside(&trtllm)), 1e-9);
    near(pool(&sglang), 0.8 * (usable(&sglang) - outside(&sglang)) - weights(&sglang), 1e-9);
    // The thread's arithmetic: of 80 with 20 beside the cache, 0.9 leaves 54 by the one rule and 52 by the other.
    let rule = |answer: &Value| (pool(answer) + 0.8 * beside(answer)) / usable(answer);
    near(rule(&trtllm), 0.8, 1e-9);
    assert!(rule(&vllm) < 0.8);
    // llm-d-planner issue 194: vLLM's own fraction was long 0.90, not 0.95, and is 0.92 from 0.22 on (aiconfigurator issue 1396).
    for (version, fraction) in [(None, 0.9), (Some("0.21"), 0.9), (Some("0.22"), 0.92)] {
        let flags = ["--model", "llama-3.1-8b", "--accelerator", "h100-sxm-80gb"];
        let version: Vec<&str> = version.into_iter().flat_map(|version| ["--engine-version", version]).collect();
        let usual = memory(&[&flags[..], &version].concat());
        near(part(&usual, "total_bytes"), fraction * part(&usual, "usable_bytes"), 1e-9);
    }
}

/// An engine that sizes its cache without regard to activations is told when they no longer fit beside it.
#[test]
fn a_fraction_that_leaves_a_forward_pass_no_room_is_refused() {
    let flags = ["memory", "--model", "llama-3.1-8b", "--accelerator", "h100-sxm-80gb", "--engine", "sglang"];
    let refused = run(&[&flags[..], &["--fraction", "0.98", "--batched-tokens", "32768"]].concat());
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("a forward pass lacks 2.2"), "{}", refused.stdout);
    let settings = [
        "serving.engine=\"sglang\"",
        "serving.memory_fraction=0.98",
        "serving.chunk_tokens=65536",
        "serving.layout.tensor=8",
    ];
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    // A cache that keeps prefixes makes no room.
    for scenario in [LLAMA, "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml"] {
        let answer = run(&[&["eval", scenario], &set[..]].concat());
        assert_eq!(answer.code, 1, "{scenario}: {}", answer.stderr);
        assert!(answer.stderr.contains("a forward pass lacks"), "{}", answer.stderr);
        assert!(answer.stderr.contains("serving.memory_fraction"), "{}", answer.stderr);
    }
}

/// ai-dynamo/aiconfigurator issue 652: requests beyond the cache wait; they are not served as if they were admitted.
#[test]
fn requests_beyond_the_cache_wait() {
    let of = |open: u32| {
        let arrivals = format!("serving.arrivals={{ concurrency = {open} }}");
        let answer = json(&["eval", LLAMA, "--set", &arrivals]);
        ["requests_per_s", "queue_s", "batch_count"].map(|key| answer["serving"][key].as_f64().unwrap())
    };
    let ([served, waits, batch], [twice, longer, same]) = (of(10_000), of(20_000));
    near(twice, served, 0.01);
    near(same, batch, 0.01);
    // Ten thousand more wait for as long as serving them takes.
    near(longer - waits, 10_000.0 / twice, 0.02);
}

/// ai-dynamo/aiconfigurator pull request 652: TensorRT-LLM's most sequences at once. `engine_memory.rs` holds all 72 runs; these
/// are what the command says of some.
#[test]
fn an_engine_admits_what_its_blocks_hold() {
    // GPU, model, ranks, prompt, answer, fraction of free memory, sequences.
    const MEASURED: [(&str, &str, u32, u32, u32, &str, f64); 4] = [
        ("h100-sxm-80gb", "qwen3-32b", 4, 4096, 4096, "0.8", 93.0),
        ("h100-sxm-80gb", "llama-3.1-8b", 1, 2048, 2048, "0.8", 78.0),
        ("gb300-288gb", "qwen3-32b", 1, 4096, 4096, "0.9", 95.0),
        ("gb300-288gb", "llama-3.1-8b", 2, 2048, 2048, "0.9", 762.0),
    ];
    for (gpu, model, tensor, input, output, fraction, measured) in MEASURED {
        let [tensor, batched, context] = [tensor, 2 * input, input + output + 1_000].map(|count| count.to_string());
        let weights = if model == "qwen3-32b" { "fp8" } else { "bf16" };
        let flags =
            ["--model", model, "--accelerator", gpu, "--tensor", &tensor, "--engine", "trtllm", "--kv-cache", "bf16"];
        let more = ["--weights", weights, "--fraction", fraction, "--batched-tokens", &batched, "--context", &context];
        let found = memory(&[&flags[..], &more].concat())["max_concurrency_count"].as_f64().unwrap();
        let near = (found / measured - 1.0).abs() <= 0.02 || (found - measured).abs() <= 1.0;
        assert!(near, "{model} over {tensor} of {gpu}: {found}, not {measured}");
    }
}

/// vllm-project/vllm issue 10517: Llama 3.1 8B on an RTX 3090 of 23.58 GiB starts with contexts of 20,000 tokens and refuses 29,000:
/// what a forward pass of as many tokens takes leaves less for the cache, 2.89 GiB for 3.81.
#[test]
fn longer_passes_leave_less_for_the_cache() {
    let of = |tokens| {
        let flags = ["memory", "--model", "llama-3.1-8b", "--accelerator", "24146 MiB", "--format", "json"];
        let answer = run(&[&flags[..], &["--context", tokens, "--batched-tokens", tokens]].concat());
        (answer.code, serde_json::from_str::<Value>(&answer.stdout).unwrap())
    };
    let ((fits, short), (refused, long)) = (of("20000"), of("29000"));
    assert_eq!((fits, refused), (0, 1));
    let shrinks = part(&short, "kv_cache_bytes") - part(&long, "kv_cache_bytes");
    near(shrinks, (3.81 - 2.89) * f64::from(1 << 30), 0.1);
}

/// vllm-project/vllm issue 19029: where every layer looks at a window, a request holds the window but one and a forward pass of
/// tokens, in whole blocks: 12,304 tokens of StarCoder2 and not all 16,384.
#[test]
fn a_window_bounds_what_a_request_holds() {
    let more = ["--batched-tokens", "8192", "--max-model-len", "1048576"];
    let flags = [&["--model", "starcoder2-7b", "--accelerator", "h100-sxm-80gb"][..], &more].concat();
    let of = |context| memory(&[&flags[..], &["--context", context]].concat())["request_bytes"].as_f64().unwrap();
    // 32 layers, keys and values of 4 heads of 128 in bf16.
    let token = 32.0 * 2.0 * 4.0 * 128.0 * 2.0;
    near(of("16384"), 12_304.0 * token, 1e-9);
    near(of("1048576"), 12_304.0 * token, 1e-9);
    near(of("4096"), 4_096.0 * token, 1e-9);
}

/// modular/modular issue 6268: what activations take, they take on every device.
#[test]
fn activations_are_taken_on_each_device() {
    let of = |tensor| memory(&["--model", "qwen2.5-7b", "--accelerator", "a100-sxm-40gb", "--tensor", tensor]);
    let four = of("4");
    let left = 0.9 * part(&four, "usable_bytes") - part(&four, "weights_bytes") - part(&four, "workspace_bytes");
    let pooled = 4.0 * part(&four, "kv_cache_bytes");
    near(pooled, 4.0 * (left - part(&four, "activations_bytes")), 1e-9);
    assert!(4.0 * part(&four, "activations_bytes") > 1.5 * part(&of("1"), "activations_bytes"));
}

/// ai-dynamo/dynamo issue 10104: one sequence of 131,072 tokens of Llama 3.1 70B takes 40.0 GiB in bf16, 20.0 in FP8, beside
/// 70.6 GB of weights: too much for one GPU, and a layout that cannot hold it is refused before it is emitted.
#[test]
fn a_context_that_does_not_fit_is_refused() {
    let of = |cache| {
        let flags =
            ["--model", "llama-3.1-70b", "--accelerator", "h100-sxm-80gb", "--tensor", "8", "--context", "131072"];
        memory(&[&flags[..], &["--weights", "fp8", "--kv-cache", cache]].concat())
    };
    let gib = f64::from(1 << 30);
    near(of("bf16")["request_bytes"].as_f64().unwrap() * 8.0, 40.0 * gib, 1e-9);
    near(of("fp8")["request_bytes"].as_f64().unwrap() * 8.0, 20.0 * gib, 1e-9);
    near(part(&of("fp8"), "weights_bytes") * 8.0, 70.6e9, 0.04);
    let long = [
        "--set",
        "serving.input_tokens=130000",
        "--set",
        "serving.output_tokens=1072",
        "--set",
        "serving.layout.tensor=1",
    ];
    let answer = run(&[&["eval", LLAMA, "--format", "json"], &long[..]].concat());
    assert_eq!(answer.code, 1, "{}", answer.stderr);
}

/// redhat-performance/configiq issue 89: Nemotron 3 Ultra 550B in FP8 runs on one node of eight H200 for a small workload,
/// not on eleven.
#[test]
fn a_small_workload_takes_one_node() {
    let settings = [
        "serving.model=\"nemotron-3-ultra-550b-a55b\"",
        "serving.arrivals={ rate = \"1 request/s\" }",
        "plan.vary={ \"cluster.node\" = [\"hgx-h200-8\"] }",
    ];
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let plan = json(&[&["plan", PLAN], &set[..]].concat());
    assert_eq!(plan["best"]["scenario"]["cluster.accelerators"], "8");
}

/// ai-dynamo/aiconfigurator issue 1390: of Kimi-K2.5's 384 experts a rank of eight holds an eighth.
#[test]
fn experts_are_split_over_their_ranks() {
    let of = |expert| {
        let flags = ["--model", "kimi-k2.5", "--accelerator", "mi355x", "--attention-data", "8", "--expert", expert];
        part(&memory(&flags), "weights_bytes")
    };
    let experts = json(&["model", "kimi-k2.5"])["modules"]
        .as_array()
        .unwrap()
        .iter()
        .find(|module| module["module"] == "experts")
        .and_then(|module| module["weight_bytes"].as_f64())
        .unwrap();
    near(of("1") - of("8"), experts * 7.0 / 8.0, 1e-6);
}

/// ai-dynamo/aiconfigurator issues 328 and 528: what is missing is named, and a model that is not known is no guess.
#[test]
fn what_is_missing_is_named() {
    // A generation that nobody has constants for, laid over one that has.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("accelerators")).unwrap();
    let source =
        "[[source]]\nfields = [\"generation\"]\nbasis = \"assumed\"\ntitle = \"a test\"\naccessed = 2026-11-30\n";
    std::fs::write(folder.path().join("accelerators/mi300x.toml"), format!("generation = \"cdna9\"\n{source}"))
        .unwrap();
    for (setting, said) in [
        ("cluster.node=\"mi300x-8\"", "no serving constants for accelerators of generation \"cdna9\""),
        ("serving.model=\"no-such-model\"", "no model has the id \"no-such-model\""),
    ] {
        let answer = run(&["eval", LLAMA, "--catalog", folder.path().to_str().unwrap(), "--set", setting]);
        assert_eq!(answer.code, 2, "{setting}");
        assert!(answer.stderr.contains(said), "{setting}: {}", answer.stderr);
    }
}

/// gpustack/gpustack issue 814 and jranaraki/vllm-fit issue 35: heads split over the ranks, and key and value heads split or
/// repeat: 64 heads not over 3, 28 heads with 4 of keys and values over 1, 2 and 4, not 7.
#[test]
fn heads_split_over_ranks() {
    let code = |model: &str, tensor: &str| {
        run(&["memory", "--model", model, "--accelerator", "h200-sxm-141gb", "--tensor", tensor]).code
    };
    assert_eq!(code("llama-3.1-70b", "3"), 2);
    assert_eq!(["1", "2", "4", "28"].map(|tensor| code("qwen2.5-7b", tensor)), [0; 4]);
    assert_eq!(["3", "5", "7", "8"].map(|tensor| code("qwen2.5-7b", tensor)), [2; 4]);
}

/// ai-dynamo/aiconfigurator issue 1205: an engine on a GPU that nobody measured it on was presented as if it were: time to the
/// first token of Qwen3 32B on A100 with vLLM was off by 45%. A band says how far it may be off, wider than where points are.
/// Issue 328: what is measured near it is named.
#[test]
fn a_kind_that_was_never_measured_says_so() {
    let of = |node: &str, engine: &str| {
        let settings = [
            "serving.model=\"qwen3-32b\"".to_owned(),
            "serving.weights=\"bf16\"".to_owned(),
            "serving.kv_cache=\"bf16\"".to_owned(),
            "serving.arrivals={ concurrency = 64 }".to_owned(),
            format!("cluster.node=\"{node}\""),
            format!("serving.engine=\"{engine}\""),
            "cluster.fabric=\"quantum-hdr\"".to_owned(),
        ];
        let fabric = usize::from(node != "dgx-a100");
        let set: Vec<&str> =
            settings[..settings.len() - fabric].iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
        json(&[&["eval", LLAMA], &set[..]].concat())
    };
    let band = |answer: &Value, key: &str| {
        let of = |end: &str| answer["serving"][format!("{key}_{end}_s")].as_f64().unwrap();
        let value = answer["serving"][format!("{key}_s")].as_f64().unwrap();
        assert!((of("low") * of("high") / value / value - 1.0).abs() < 1e-9);
        of("high") / value
    };
    let note = |answer: &Value| {
        answer["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("uncalibrated"))
    };
    let (unmeasured, measured) = (of("dgx-a100", "vllm"), of("dgx-h100", "vllm"));
    assert_eq!(unmeasured["serving"]["uncalibrated"], true);
    assert_eq!(measured["serving"]["uncalibrated"], false);
    assert!(note(&unmeasured) && !note(&measured));
    let near = unmeasured["notes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note.as_str().unwrap().contains("vllm on hopper with dense"));
    assert!(near, "{}", unmeasured["notes"]);
    for key in ["ttft", "tpot"] {
        assert!(band(&unmeasured, key) > band(&measured, key), "{key}");
    }
    // What the reporter measured lies in the band.
    assert!(band(&unmeasured, "ttft") > 1.45);
}

#[test]
fn a_format_that_was_never_measured_on_a_generation_says_so() {
    let of = |weights: &str| json(&["eval", LLAMA, "--set", &format!("serving.weights=\"{weights}\"")]);
    let band = |answer: &Value| {
        answer["serving"]["tpot_high_s"].as_f64().unwrap() / answer["serving"]["tpot_s"].as_f64().unwrap()
    };
    let measured = of("fp8");
    assert_eq!(measured["serving"]["uncalibrated"], false);
    for format in ["nvfp4", "int8", "int4-g128"] {
        let answer = of(format);
        assert_eq!(answer["serving"]["uncalibrated"], true, "{format}");
        assert!(band(&answer) > band(&measured) * 1.2, "{format}: {}", band(&answer));
        assert!(answer["notes"].to_string().contains("weights in"), "{}", answer["notes"]);
    }
}

/// vllm-project/vllm issue 31474: GLM-4.7's vocabulary of 151,552 does not split over six ranks, 151,552 = 6 x 25,258 + 4. Every
/// rank holds as many rows: 151,554 at least. (Its heads of keys and values do not split over six either, and are told first;
/// GLM-4.5-Air has the same vocabulary and heads. Over 24 its heads do.)
#[test]
fn a_vocabulary_that_does_not_split_is_padded() {
    let of = |tensor| ["memory", "--model", "glm-4.5-air", "--accelerator", "h200-sxm-141gb", "--tensor", tensor];
    let refused = run(&of("6"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("8 key and value heads neither split over tensor 6"), "{}", refused.stderr);
    assert!(refused.stderr.contains("at least 151554 are needed with padding"), "{}", refused.stderr);
    let padded = json(&of("24"));
    // 151,552 = 24 x 6,314 + 16: 6,315 rows a rank, of the embedding and of the output.
    assert_eq!(padded["padded_vocabulary_count"], 24 * 6_315);
    assert!(run(&of("24")).stdout.contains("at least 151560 are needed with padding"));
    let even = json(&of("8"));
    assert_eq!(even["padded_vocabulary_count"], 151_552);
    assert!(!run(&of("8")).stdout.contains("padding"));
}

/// vllm-project/vllm issue 5907 and THUDM/slime issue 2253: a cache sized without the logits of all tokens, which are asked for
/// with the probabilities of prompts: 11.6k tokens x 248,320 x 4 bytes are 11.5 GB, 10.7 GiB.
#[test]
fn logits_of_all_tokens_are_held_where_they_are_asked_for() {
    let model = ["--model", "qwen3.5-27b", "--accelerator", "h200-sxm-141gb", "--batched-tokens", "11600"];
    let [plain, asked] = [memory(&model), memory(&[&model[..], &["--prompt-logprobs"]].concat())];
    let logits = part(&asked, "activations_bytes") - part(&plain, "activations_bytes");
    near(logits, 11_600.0 * 248_320.0 * 4.0, 1e-9);
    near(logits / 1_073_741_824.0, 10.7, 0.01);
    // The pool is less by as much.
    near(part(&plain, "kv_cache_bytes") - part(&asked, "kv_cache_bytes"), logits, 1e-6);
    let settings = ["serving.model=\"qwen3.5-27b\"", "serving.chunk_tokens=11600", "serving.prompt_logprobs=true"];
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = json(&[&["eval", LLAMA], &set[..]].concat());
    near(answer["serving"]["prompt_logits_bytes"].as_f64().unwrap(), logits, 1e-9);
}

/// Quantised, pruned and distilled variants are models of their own shape: a configuration is imported and served. Pruned to
/// half of its layers, a model reads half of what they weigh, and in four bits a quarter of 16.
#[test]
fn variants_are_models_of_their_own_shape() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("models")).unwrap();
    let config = |layers: u32| {
        format!(
            r#"{{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": {layers},
            "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256,
            "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "bfloat16"}}"#
        )
    };
    for (name, layers) in [("whole", 80), ("pruned", 40)] {
        let from = dir.path().join(format!("{name}.json"));
        std::fs::write(&from, config(layers)).unwrap();
        let to = dir.path().join(format!("models/{name}.toml"));
        let answer = run(&["model", "import", from.to_str().unwrap(), "-o", to.to_str().unwrap()]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let of = |model: &str, weights: &str| {
        let settings = [
            format!("serving.model=\"{model}\""),
            format!("serving.weights=\"{weights}\""),
            "serving.layout.tensor=8".to_owned(),
            "serving.arrivals={ concurrency = 8 }".to_owned(),
        ];
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
        json(&[&["eval", LLAMA, "--catalog", dir.path().to_str().unwrap()], &set[..]].concat())
    };
    let (whole, pruned, four) = (of("whole", "bf16"), of("pruned", "bf16"), of("whole", "int4-g128"));
    // Both tables of 128,256 x 8,192 are no layers: 4.2 GB of 141.
    let layers = |answer: &Value| part(answer, "weights_bytes") * 8.0 - 2.0 * 128_256.0 * 8_192.0 * 2.0;
    near(layers(&pruned) * 2.0, layers(&whole), 1e-3);
    near(layers(&four) / layers(&whole), 0.26, 0.02);
    let tpot = |answer: &Value| answer["serving"]["tpot_s"].as_f64().unwrap();
    assert!(tpot(&pruned) < 0.6 * tpot(&whole) && tpot(&four) < tpot(&whole));
}
