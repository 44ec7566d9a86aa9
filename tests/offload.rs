//! Time of what the hosts keep.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::fs;

use program::run;

const LLAMA_8B: &str = "scenarios/train-llama3.1-8b-16-h100-two-nodes.toml";

fn with(settings: &[&str], beside: &[&str]) -> program::Answer {
    let mut arguments = vec!["eval", LLAMA_8B, "--format", "json"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    arguments.extend(beside);
    run(&arguments)
}

fn training(settings: &[&str]) -> serde_json::Value {
    let answer = with(settings, &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    answer["training"].clone()
}

fn number(training: &serde_json::Value, key: &str) -> f64 {
    training[key].as_f64().unwrap_or_else(|| panic!("{key}"))
}

fn parts(training: &serde_json::Value) -> f64 {
    ["compute_s", "exposed_communication_s", "bubble_s", "optimizer_s", "other_s"]
        .map(|key| number(training, key))
        .iter()
        .sum()
}

#[test]
fn states_are_updated_on_the_hosts_processors() {
    let (plain, hosted) = (training(&[]), training(&["training.offload=optimizer"]));
    // Each of two tensor ranks holds 4.015 billion parameters, an eighth of which it updates: 30 B of each at the
    // 35 GB/s of a host's memory that one of eight accelerators has.
    let updated = 8_030_261_248.0_f64 / 2.0 / 8.0;
    let expected = updated * 30.0 / 35e9;
    assert!((number(&hosted, "optimizer_s") / expected - 1.0).abs() < 1e-3, "{} {expected}", hosted["optimizer_s"]);
    // Gradients of 2 GB take 36 ms of a backward pass that is far longer.
    assert!(number(&hosted, "other_host_s").abs() < 1e-12);
    assert!((parts(&hosted) / number(&hosted, "iteration_s") - 1.0).abs() < 1e-9);
    assert!(plain["other_host_s"].is_null());
    // A memory that moves more bytes updates sooner.
    let grace = training(&["training.offload=optimizer", "training.offload_to=grace-lpddr"]);
    assert!((number(&grace, "optimizer_s") / (updated * 30.0 / 117e9) - 1.0).abs() < 1e-3);
}

#[test]
fn activations_wait_for_a_bus_that_is_slower_than_the_passes() {
    let plain = training(&[]);
    let of = |tier: &str| training(&["training.offload=activations", &format!("training.offload_to={tier}")]);
    let (pcie4, pcie5, grace) = (of("host-dram-pcie4"), of("host-dram-pcie5"), of("grace-lpddr"));
    let wait = |training: &serde_json::Value| number(training, "other_host_s");
    assert!(wait(&pcie4) > 2.0 * wait(&pcie5) && wait(&pcie5) > 0.1 * number(&plain, "compute_s"));
    assert!(wait(&grace).abs() < 1e-12);
    assert!((number(&grace, "iteration_s") / number(&plain, "iteration_s") - 1.0).abs() < 1e-9);
    assert!((parts(&pcie5) / number(&pcie5, "iteration_s") - 1.0).abs() < 1e-9);
    // By default, the way that the node has.
    assert_eq!(training(&["training.offload=activations"])["other_host_s"], pcie5["other_host_s"]);
}

#[test]
fn weights_that_the_host_keeps_are_read_for_each_pass() {
    let full = ["training.layout.sharding=full", "training.offload=optimizer+weights"];
    let hosted = training(&full);
    // A sixteenth of the weights of a model in 16 bits is read in less than a pass; no weights go back after an update.
    assert!(number(&hosted, "other_host_s") >= 0.0 && number(&hosted, "optimizer_s") > 0.0);
    let slow = training(&[full[0], "training.offload=optimizer+weights", "training.offload_to=host-dram-pcie4"]);
    assert!(number(&slow, "iteration_s") > number(&hosted, "iteration_s"));
}

#[test]
fn what_the_host_cannot_keep_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let nodes = directory.path().join("nodes");
    fs::create_dir(&nodes).unwrap();
    let overlay = "host_memory = \"64 GB\"\nsource = [{ fields = [\"host_memory\"], basis = \"assumed\", title = \"Small hosts\", accessed = 2026-11-29 }]\n";
    fs::write(nodes.join("dgx-h100.toml"), overlay).unwrap();
    let settings = ["training.offload=optimizer", "training.layout.sharding=none"];
    let answer = with(&settings, &["--catalog", directory.path().to_str().unwrap()]);
    // States of 12 B for each of four billion parameters, where each of eight accelerators has 8 GB.
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("offloads 48.18 GB a GPU, and the host has 8 GB for each"), "{}", answer.stderr);
    assert!(answer.stderr.contains("The nearest layout that works"), "{}", answer.stderr);
}

#[test]
fn a_memory_that_makes_no_sense_is_a_mistake() {
    for (settings, said) in [
        (&["training.offload_to=host-dram-pcie5"][..], "nothing is offloaded to `host-dram-pcie5`"),
        (&["training.offload=optimizer", "training.offload_to=local-nvme-gen5"], "no processors update states"),
        (&["training.offload=optimizer", "training.offload_to=host-dram"], "host-dram-pcie"),
    ] {
        let answer = with(settings, &[]);
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert!(answer.stderr.contains(said), "{}", answer.stderr);
    }
}
