//! `model` and `memory` from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use assert_cmd::Command;
use serde_json::Value;

const CONFIG: &str = r#"{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
  "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "rope_scaling": {"factor": 8.0, "limit": Infinity}}"#;

fn run(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("clusterplan").unwrap().args(arguments).output().unwrap()
}

fn json(arguments: &[&str], code: i32) -> Value {
    let output = run(&[arguments, &["--format", "json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

/// A directory with a configuration, for one test.
fn directory(name: &str, config: &str, beside: Option<&str>) -> std::path::PathBuf {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.json"), config).unwrap();
    if let Some(text) = beside {
        std::fs::write(directory.join("hf_quant_config.json"), text).unwrap();
    }
    directory
}

#[test]
fn a_model_by_id_and_by_configuration_is_the_same() {
    let directory = directory("llama", CONFIG, None);
    let path = directory.to_str().unwrap();
    let (by_id, by_path) = (json(&["model", "llama-3.1-8b"], 0), json(&["model", path, "--context", "131072"], 0));
    for key in ["parameters_count", "active_parameters_count", "kv_bytes_per_token", "weight_bytes"] {
        assert_eq!(by_id[key], by_path[key], "{key}");
    }
    assert_eq!(by_path["parameters_count"], 8_030_261_248_u64);
    assert_eq!(by_path["kv_bytes_per_token"], 131_072);
    assert_eq!(by_path["state_bytes_per_sequence"], 0);
    assert_eq!(by_path["kv_bytes_at_context"], 17_179_869_184_u64);
    assert_eq!(by_path["weight_bytes"], 16_060_522_496_u64);
    assert!(by_path["flops_per_token"].as_f64().unwrap() > 15e9);
    let table = run(&["model", path]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("8,030,261,248"));
}

#[test]
fn quantisation_beside_the_configuration_is_read() {
    let beside =
        r#"{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#;
    let directory = directory("llama-fp8", CONFIG, Some(beside));
    let found = json(&["model", directory.join("config.json").to_str().unwrap()], 0);
    assert_eq!((&found["kv_format"], &found["kv_bytes_per_token"]), (&Value::from("fp8"), &Value::from(65_536)));
    // Projections in a byte; two tables and the norms in two.
    assert_eq!(found["weight_bytes"], 8_030_261_248_u64 + 2 * 128_256 * 4_096 + 65 * 4_096);
}

#[test]
fn an_imported_model_is_a_catalog_file() {
    let source = directory("source", CONFIG, None);
    let overlay = directory("overlay", CONFIG, None);
    std::fs::create_dir_all(overlay.join("models")).unwrap();
    let file = overlay.join("models/my-model.toml");
    let output = run(&["model", "import", source.to_str().unwrap(), "--name", "Mine", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found = json(&["model", "my-model", "--catalog", overlay.to_str().unwrap()], 0);
    assert_eq!((&found["name"], &found["parameters_count"]), (&Value::from("Mine"), &Value::from(8_030_261_248_u64)));
}

#[test]
fn what_is_not_understood_is_a_mistake_with_its_place() {
    let directory =
        directory("odd", &CONFIG.replace("\"rope_scaling\"", "\"compress_ratios\": [4], \"rope_scaling\""), None);
    let output = run(&["model", directory.to_str().unwrap()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(message.contains("compress_ratios") && message.contains("config.json:3"), "{message}");
    assert_eq!(run(&["model", "no-such-model"]).status.code(), Some(2));
    assert_eq!(run(&["model", "no/such/config.json"]).status.code(), Some(2));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_configuration() {
    let marked = directory("marked", &format!("{}{CONFIG}", '\u{feff}'), None);
    let found = json(&["model", marked.to_str().unwrap()], 0);
    assert_eq!(found["parameters_count"], 8_030_261_248_u64);
    // Characters of several bytes are told whole, wherever a parser stops in them.
    for (name, text) in [("umlaut", "\u{fc}{}"), ("quotes", "{\u{201c}a\u{201d}: 1}"), ("marks", "\u{feff}\u{feff}{}")]
    {
        let wrong = directory(name, text, None);
        for arguments in [&["model"][..], &["model", "import"]] {
            let output = run(&[arguments, &[wrong.to_str().unwrap()]].concat());
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains("the text is not JSON") && stderr.contains("config.json:1:"), "{stderr}");
        }
    }
}

#[test]
fn serving_memory_says_what_fits() {
    let serve = ["memory", "--model", "llama-3.1-70b", "--accelerator", "h100-sxm-80gb", "--tensor"];
    let four = json(&[&serve[..], &["4", "--context", "8192"]].concat(), 0);
    let memory = &four["memory"];
    let part = |key: &str| memory[key].as_f64().unwrap();
    let parts = ["weights_bytes", "activations_bytes", "kv_cache_bytes", "workspace_bytes"].map(part);
    assert!((parts.iter().sum::<f64>() - part("total_bytes")).abs() < 1.0);
    assert_eq!(memory["fits"], true);
    // 35.3 GB of weights on each, 81,920 bytes a token.
    assert_eq!(four["request_bytes"], 81_920_u64 * 8_192);
    let requests = four["max_concurrency_count"].as_f64().unwrap();
    assert!((requests - part("kv_cache_bytes") / (81_920.0 * 8_192.0)).abs() < 1.0);
    assert!(four["longest_context_tokens_count"].as_u64().unwrap() > 131_072);
    // On one it does not fit, which is an answer, and says how many would do.
    let one = json(&[&serve[..], &["1"]].concat(), 1);
    assert_eq!((&one["memory"]["fits"], &one["fewest_tensor_ranks_count"]), (&Value::from(false), &Value::from(2)));
    let free = json(&[&serve[..], &["4", "--engine", "trtllm"]].concat(), 0);
    assert!(free["memory"]["kv_cache_bytes"].as_f64() > memory["kv_cache_bytes"].as_f64());
    assert_eq!(run(&[&serve[..], &["3"]].concat()).status.code(), Some(2));
    assert_eq!(run(&[&serve[..], &["4", "--engine", "ollama"]].concat()).status.code(), Some(2));
}

#[test]
fn windows_are_kept_as_the_engine_does_unless_it_is_said_otherwise() {
    let room = |model: &str, settings: &[&str]| {
        let serve =
            ["memory", "--model", model, "--accelerator", "h200-sxm-141gb", "--tensor", "8", "--context", "65536"];
        let kept = ["--kv-cache", "fp8", "--weights", "fp8", "--engine"];
        json(&[&serve[..], &kept[..], settings].concat(), 0)["max_concurrency_count"].as_u64().unwrap()
    };
    let [all, windows] = [&["--paging", "all-tokens"], &["--paging", "per-layer"]].map(|paging| &paging[..]);
    let with = |engine: &[&'static str], paging: &[&'static str]| [engine, paging].concat();
    // Half of GPT-OSS's layers have windows of 128 tokens.
    let gpt = |settings: &[&str]| room("gpt-oss-120b", settings);
    let trtllm = ["trtllm"];
    assert_eq!(gpt(&trtllm), gpt(&with(&trtllm, all)));
    assert!(gpt(&with(&trtllm, windows)) as f64 > 1.5 * gpt(&trtllm) as f64);
    assert_eq!(gpt(&["vllm"]), gpt(&with(&["vllm"], windows)));
    // TensorRT-LLM 0.20 does not know of Llama 4's chunks, so that there is nothing to give back.
    let llama = |settings: &[&str]| room("llama-4-maverick-17b-128e", settings);
    let [before, since] = ["0.20", "0.21"].map(|version| ["trtllm", "--engine-version", version]);
    assert_eq!(llama(&before), llama(&with(&before, windows)));
    assert!(llama(&with(&since, windows)) > llama(&since));
}

#[test]
fn an_engine_takes_no_more_requests_than_it_is_told() {
    let serve = ["memory", "--model", "llama-3.1-70b", "--accelerator", "h100-sxm-80gb", "--tensor", "4"];
    let room = json(&serve, 0)["max_concurrency_count"].as_u64().unwrap();
    assert!(room > 8);
    let of = |more: &[&str], code| json(&[&serve[..], &["--max-num-seqs", "4"], more].concat(), code);
    let (four, eight) = (of(&[], 0), of(&["--requests", "8"], 1));
    assert_eq!((&four["max_concurrency_count"], &four["memory"]["fits"]), (&Value::from(4), &Value::from(true)));
    assert_eq!(eight["memory"]["fits"], false);
    let text = run(&[&serve[..], &["--max-num-seqs", "4", "--requests", "8"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("4 requests of 8192 tokens at once, as many as the engine takes"), "{text}");
    assert!(text.contains("8 wanted"), "{text}");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/serve-llama3.1-70b-64-h100.toml");
    let of_scenario = json(&["memory", scenario, "--set", "serving.max_num_seqs=4"], 0);
    assert_eq!(of_scenario["max_concurrency_count"], 4);
    // A scenario's keys say what these do.
    for flag in [
        ["--tensor", "8"],
        ["--max-num-seqs", "4"],
        ["--fraction", "0.5"],
        ["--context", "100"],
        ["--requests", "9"],
        ["--engine-version", "0.22"],
        ["--max-model-len", "9000"],
        ["--redundant-experts", "1"],
        ["--accelerator", "h100-sxm-80gb"],
        ["--kv-cache", "fp8"],
    ] {
        let output = run(&[&["memory", scenario][..], &flag].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(flag[0]), "{flag:?}: {stderr}");
    }
}

#[test]
fn training_memory_says_what_else_would_fit() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/train-gpt3-175b-1k-a100.toml");
    let found = json(&["memory", scenario], 0);
    let memory = &found["memory"];
    let keys = ["weights", "gradients", "optimizer", "activations", "kv_cache", "workspace"];
    let parts: f64 = keys.iter().map(|key| memory[format!("{key}_bytes")].as_f64().unwrap()).sum();
    assert!((parts - memory["total_bytes"].as_f64().unwrap()).abs() < 1.0);
    let stages = found["stages"].as_array().unwrap();
    let most = stages.iter().map(|stage| stage["total_bytes"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(memory["total_bytes"].as_f64(), Some(most));
    assert!(found["longest_sequence_tokens_count"].as_u64().unwrap() >= 2_048);
    assert!(found["fewest_accelerators_count"].as_u64().unwrap() >= 32);
    let evaluated = json(&["eval", scenario], 0);
    assert_eq!(evaluated["memory"]["total_bytes"].as_f64(), memory["total_bytes"].as_f64());
    // A batch of longer sequences that does not fit.
    let long = ["memory", scenario, "--set", "training.model=gpt-3-175b", "--set", "training.layout.micro_batch=64"];
    assert_ne!(run(&long).status.code(), Some(0));
}

#[test]
fn a_scenario_names_a_model_by_the_path_of_its_configuration() {
    let folder = directory("by-path/llama", CONFIG, None);
    let of = |scenario: &str, settings: &[&str], code: i32| {
        let text = std::fs::read_to_string(std::path::Path::new("scenarios").join(scenario)).unwrap();
        let copy = folder.parent().unwrap().join(scenario);
        std::fs::write(&copy, text).unwrap();
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> =
            ["eval", copy.to_str().unwrap(), "--format", "json"].into_iter().chain(set).collect();
        let output = run(&arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        (serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(), stderr)
    };
    let serve = "serve-llama3.1-70b-64-h100.toml";
    let by_id = of(serve, &["serving.model=llama-3.1-8b"], 0).0;
    for path in ["llama/config.json", "llama/", "./llama"] {
        let by_path = of(serve, &[&format!("serving.model={path}")], 0).0;
        assert_eq!(by_path["serving"], by_id["serving"], "{path}");
        assert_eq!(by_path["memory"], by_id["memory"], "{path}");
        assert_eq!(by_path["scenario"]["serving.model"], path);
    }
    let train = "train-llama3.1-8b-16-h100-two-nodes.toml";
    let by_id = of(train, &[], 0).0;
    let by_path = of(train, &["training.model=llama/config.json"], 0).0;
    assert_eq!(by_path["training"], by_id["training"]);
    // Mistakes stand where they are: in the scenario, or in the configuration.
    let (_, stderr) = of(serve, &["serving.model=lama/config.json"], 2);
    assert!(stderr.contains("named here") && stderr.contains("paths begin at the folder"), "{stderr}");
    assert_eq!(stderr.matches("error[").count(), 1, "{stderr}");
    directory("by-path/wrong", &CONFIG.replace("4096", "\"wide\""), None);
    let (_, stderr) = of(serve, &["serving.model=wrong/config.json"], 2);
    assert!(stderr.contains("`hidden_size` must be a whole number") && stderr.contains("config.json:1:"), "{stderr}");
    // Among the models of a comparison, too.
    let copy = folder.parent().unwrap().join(serve);
    let vary = "serving.model=llama-3.1-8b,llama/config.json";
    let output = run(&["compare", copy.to_str().unwrap(), "--vary", vary, "--format", "json"]);
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variants = compared["variants"].as_array().unwrap();
    assert_eq!(variants[0]["evaluation"]["serving"], variants[1]["evaluation"]["serving"]);
}
