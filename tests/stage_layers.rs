//! Splits of the layers over pipeline stages that a scenario gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use assert_cmd::Command;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::workload::{Transformer, import};
use serde_json::Value;

/// A command on a scenario with that layout.
fn run(command: &str, model: &str, node: &str, layout: &str, catalog: Option<&str>) -> std::process::Output {
    let text = format!(
        "title = \"t\"\n[cluster]\nnode = \"{node}\"\naccelerators = 32\nfabric = \"quantum-2-ndr\"\nsite = \"us-colo\"\n\
         prices = \"neocloud-2026h2\"\n[training]\nmodel = \"{model}\"\nprecision = \"bf16\"\nsequence_length = 4096\n\
         global_batch = 256\ntokens = \"1 Ttoken\"\nlayout = {layout}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(&path, text).unwrap();
    let mut run = Command::cargo_bin("clusterplan").unwrap();
    run.arg(command).arg(&path).arg("--format=json");
    if let Some(text) = catalog {
        let models = folder.path().join("catalog/models");
        std::fs::create_dir_all(&models).unwrap();
        std::fs::write(models.join("toy.toml"), text).unwrap();
        run.arg("--catalog").arg(folder.path().join("catalog"));
    }
    run.output().unwrap()
}

fn answer(command: &str, model: &str, layout: &str) -> Value {
    let output = run(command, model, "dgx-h100", layout, None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The toy of NVIDIA-NeMo/Megatron-Bridge#5077: 16 channels, plain MLPs of 64, norms with biases, 32 words, tables apart.
const TOY: &str = r#"{"model_type": "starcoder2", "hidden_size": 16, "num_hidden_layers": 8, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 64, "vocab_size": 32, "use_bias": false, "sliding_window": null,
    "tie_word_embeddings": false, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}"#;

#[test]
fn the_heaviest_of_uneven_stages_decides() {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let file = sources.add("config.json", TOY);
    let root = clusterplan::load::parse_json(&sources, file, &sink);
    let found = import(&root, None, &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    let model = found.unwrap().model;
    // A layer: 4 x 16^2 of attention, 2 x 16 x 64 of its MLP, two norms of 2 x 16.
    let layer = 1_024 + 2_048 + 64;
    let table = 32 * 16;
    assert_eq!(Transformer::try_from(&model).unwrap().parameters().total(), 8 * layer + 32 + 2 * table);
    let folder = tempfile::tempdir().unwrap();
    let (config, out) = (folder.path().join("config.json"), folder.path().join("toy.toml"));
    std::fs::write(&config, TOY).unwrap();
    let imported = Command::cargo_bin("clusterplan")
        .unwrap()
        .args(["model", "import"])
        .arg(&config)
        .arg("-o")
        .arg(&out)
        .output()
        .unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let toml = std::fs::read_to_string(&out).unwrap();
    let stages = |layout: &str| -> Vec<u64> {
        let output = run("memory", "toy", "dgx-h100", layout, Some(&toml));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = answer["stages"].as_array().unwrap().clone();
        // Two bytes a weight.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands of weights")]
        let weights = |stage: &Value| (stage["weights_bytes"].as_f64().unwrap() / 2.0) as u64;
        stages.iter().map(weights).collect()
    };
    let uneven = stages("{ tensor = 1, pipeline = 4, micro_batch = 1, stage_layers = [1, 2, 2, 3] }");
    assert_eq!(uneven, [layer + table, 2 * layer, 2 * layer, 9_952]);
    // What was foreseen: a quarter of the layers and of the last norm, and one table.
    assert_eq!((8 * layer + 32) / 4 + table, 6_792);
    let even = stages("{ tensor = 1, pipeline = 4, micro_batch = 1 }");
    assert_eq!(even, [2 * layer + table, 2 * layer, 2 * layer, 2 * layer + 32 + table]);
    // Chunks in the model's order: of two stages, the second has the second chunk and the fourth.
    let chunks = "{ tensor = 1, pipeline = 2, virtual_stages = 2, micro_batch = 1, stage_layers = [1, 2, 2, 3] }";
    assert_eq!(stages(chunks), [3 * layer + table, 5 * layer + 32 + table]);
}

#[test]
fn the_slowest_stage_paces() {
    let of = |split: &str| {
        let layout = format!("{{ tensor = 2, pipeline = 4, micro_batch = 1{split} }}");
        answer("eval", "llama-3.1-8b", &layout)
    };
    let time = |answer: &Value| answer["training"]["iteration_s"].as_f64().unwrap();
    let even = of("");
    let listed = of(", stage_layers = [8, 8, 8, 8]");
    assert_eq!(listed["training"], even["training"]);
    // A layer fewer beside the loss is faster than the even split; twice the layers on one stage take near twice as long.
    let relieved = of(", stage_layers = [8, 8, 9, 7]");
    let heavy = of(", stage_layers = [16, 6, 5, 5]");
    assert!(time(&relieved) < time(&even));
    let ratio = time(&heavy) / time(&even);
    assert!(ratio > 1.5 && ratio < 1.8, "{ratio}");
    assert_eq!(heavy["scenario"]["training.layout.stage_layers"], "[16, 6, 5, 5]");
}

#[test]
fn a_split_of_other_stages_or_layers_is_a_mistake() {
    for (layout, said) in [
        ("pipeline = 4, stage_layers = [8, 8, 16]", "`stage_layers` has 3 entries for pipeline 4"),
        ("pipeline = 4, stage_layers = [8, 8, 8, 7]", "`stage_layers` adds up to 31 layers, and the model has 32"),
        ("pipeline = 4, stage_layers = [8, 8, 8, -8]", "stage_layers"),
        ("pipeline = 1, stage_layers = []", "`stage_layers` has 0 entries for pipeline 1"),
        (
            "pipeline = 2, virtual_stages = 2, stage_layers = [16, 16]",
            "`stage_layers` has 2 entries for 2 stages of 2 chunks",
        ),
        ("pipeline = 4, schedule = \"dualpipe\", stage_layers = [8, 8, 8, 8]", "\"dualpipe\""),
        ("pipeline = 4, search = \"fastest\", stage_layers = [8, 8, 8, 8]", "beside a search"),
    ] {
        let layout = format!("{{ tensor = 2, micro_batch = 1, {layout} }}");
        for command in ["eval", "memory"] {
            let output = run(command, "llama-3.1-8b", "dgx-h100", &layout, None);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{layout}: {stderr}");
            assert!(stderr.contains(said) && stderr.contains("stage_layers"), "{layout}: {stderr}");
            assert!(stderr.contains("job.toml:"), "{stderr}");
        }
    }
}
