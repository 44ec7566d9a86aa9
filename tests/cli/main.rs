//! The program from outside: exit codes, what goes to stdout and what to stderr, formats, and what users ran into elsewhere.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod catalog;
#[path = "../figures/mod.rs"]
mod figures;
mod formats;
mod mistakes;
#[path = "../program/mod.rs"]
mod program;

use std::fs;

use program::{Answer, LLAMA, MIXTRAL, run};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr))
}

/// The program's answer with a scenario's text changed.
fn changed(from: &str, to: &str) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(format!("{}/{LLAMA}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(text.contains(from));
    let path = dir.path().join("scenario.toml");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    run(&["eval", path.to_str().unwrap()])
}

#[test]
fn what_does_not_fit_is_a_no_with_its_footprint() {
    let answer = run(&["eval", LLAMA, "--set", "training.layout.pipeline=8"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
    for part in ["Infeasible: stage", "short by", "Weights", "Activations", "Total", "Usable"] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    let object = json(&["eval", LLAMA, "--set", "training.layout.pipeline=8"]);
    assert_eq!(object["memory"]["fits"], false);
    assert!(object["memory"]["total_bytes"].as_f64() > object["memory"]["usable_bytes"].as_f64());
    assert!(object["infeasible"]["reason"].as_str().unwrap().contains("short by"));
}

#[test]
fn policies_of_memory_are_keys_of_a_scenario() {
    let of = |set: &[&str]| {
        let sets: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
        json(&[["memory", MIXTRAL].as_slice(), &sets].concat())
    };
    let bytes = |object: &Value, key: &str| object["memory"][key].as_f64().unwrap();
    let plain = of(&[]);
    let offloaded = of(&["training.offload=optimizer"]);
    assert_eq!(offloaded["memory"]["optimizer_bytes"], 0);
    assert_eq!(offloaded["memory"]["offloaded_bytes"], plain["memory"]["optimizer_bytes"]);
    let less = ["training.layout.recompute={ layers = 2 }", "training.layout.recompute={ modules = [\"moe\"] }"];
    for key in less {
        assert!(bytes(&of(&[key]), "activations_bytes") < bytes(&plain, "activations_bytes"), "{key}");
    }
    assert!(bytes(&of(&["training.expert_imbalance=1.5"]), "activations_bytes") > bytes(&plain, "activations_bytes"));
    let hybrid = of(&["training.layout.sharding=hybrid", "training.layout.shard_ranks=8"]);
    let full = of(&["training.layout.sharding=full"]);
    assert!(bytes(&hybrid, "optimizer_bytes") > bytes(&full, "optimizer_bytes"));
}

#[test]
fn settings_change_the_scenario_and_point_at_themselves() {
    let cost = |tariff: &str| {
        let setting = format!("finance.cost_of_capital={tariff}");
        json(&["eval", MIXTRAL, "--set", &setting])["cost"]["usd_per_gpu_hour"].as_f64().unwrap()
    };
    assert!(cost("0.2") > cost("0.05"));
    let answer = run(&["eval", MIXTRAL, "--set", "cluster.spares=\"many\""]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("--set:1:16") && answer.stderr.contains("cluster.spares=\"many\""),
        "{}",
        answer.stderr
    );
    let later = json(&["eval", MIXTRAL, "--set", "cluster.spares=0.5", "--set", "cluster.spares=0.1"]);
    assert_eq!(later["scenario"]["cluster.spares"], "0.1");
}

#[test]
fn three_fabrics_stand_side_by_side() {
    let object = json(&["compare", LLAMA]);
    assert_eq!(object["baseline"], "quantum-2-ndr");
    let names: Vec<&str> =
        object["variants"].as_array().unwrap().iter().map(|variant| variant["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["quantum-2-ndr", "spectrum-x-400g", "roce-400g"]);
    for variant in object["variants"].as_array().unwrap() {
        let delta = variant["delta"]["cost.usd_per_run"].as_f64().unwrap();
        let of = |variant: &Value| variant["evaluation"]["cost"]["usd_per_run"].as_f64().unwrap();
        assert!((of(variant) / of(&object["variants"][0]) - 1.0 - delta).abs() < 1e-12);
    }
    let broken_even = object["break_even"].as_array().unwrap();
    assert_eq!(broken_even.len(), 6);
    for found in broken_even {
        assert_eq!(found["between"][0], "quantum-2-ndr");
        assert!(found["value"].is_number() || (found["value"].is_null() && found["reason"].is_string()), "{found}");
    }
    let table = run(&["compare", LLAMA]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    for part in [
        "Memory of a GPU",
        "Fits",
        "Exposed communication",
        "MFU",
        "Tokens a second",
        "Run without failures",
        "Goodput",
        "optical module, spine",
        "IT power, provisioned",
        "Facility power, provisioned",
        "Capex",
        "Opex a year",
        "A GPU for an hour",
        "Cost of the run",
        "Break-even",
        "price of the fabric of roce-400g",
        "spine efficiency of roce-400g",
    ] {
        assert!(table.stdout.contains(part), "{part}");
    }
}

#[test]
fn a_variant_that_cannot_be_is_shown_and_others_too() {
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("3 cannot be: "), "{}", answer.stdout);
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3", "--baseline", "3"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("Infeasible"), "{}", answer.stderr);
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3", "--baseline", "4"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("none of the variants"), "{}", answer.stderr);
    let twice = ["--vary", "cluster.spares=0.1", "--vary", "cluster.spares=0.2"];
    assert!(run(&[&["compare", LLAMA], &twice[..]].concat()).stderr.contains("`cluster.spares` is varied twice"));
}

#[test]
fn a_figure_is_explained_or_the_mistake_is() {
    let tree = json(&["explain", MIXTRAL, "training.iteration_s", "--depth", "1"]);
    let parts: f64 = tree["inputs"].as_array().unwrap().iter().map(|part| part["value"].as_f64().unwrap()).sum();
    assert!((parts / tree["value"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let page = run(&["explain", MIXTRAL, "cost.usd_per_run"]);
    assert!(page.stdout.contains("h100-sxm-80gb.peak_dense.bf16") && page.stdout.contains("by default"));
    let of = |arguments: &[&str]| {
        let answer = run(&[&["explain", MIXTRAL], arguments].concat());
        (answer.code, answer.stderr)
    };
    let (code, slip) = of(&["cost.usd_per_rnu"]);
    assert!(code == 2 && slip.contains("did you mean `cost.usd_per_run`"), "{slip}");
    // Where prefill has nodes of its own, what is counted by accelerators says how many of them are those.
    let nodes = "scenarios/plan-deepseek-v3-prefill-nodes.toml";
    let few = "serving.arrivals={ rate = \"8 request/s\" }";
    for figure in
        ["serving.prefill_workers_count", "serving.replicas_count", "serving.kv_transfer_s", "fabric.nics_count"]
    {
        let page = run(&["explain", nodes, figure, "--set", few]).stdout;
        assert!(page.contains("cluster.prefill.node"), "{figure}: {page}");
        assert!(page.contains("cluster.prefill.accelerators"), "{figure}: {page}");
    }
    // Tiers that a scenario uses are told with their fields and sources.
    let adapters = "serving.adapters={ count = 100, rank = 16, resident = 8 }";
    let serve = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let page = run(&["explain", serve, "serving.adapter_wait_s", "--set", adapters, "--set", few]).stdout;
    assert!(page.contains("read_bandwidth") && !page.contains("not in this scenario"), "{page}");
    let (code, absent) = of(&["serving.tpot_s"]);
    assert!(code == 2 && absent.contains("no `serving.tpot_s`"), "{absent}");
    let (code, short) = of(&["memory.fits", "--set", "training.global_batch=255"]);
    assert!(code == 1 && short.contains("Infeasible"), "{short}");
}
