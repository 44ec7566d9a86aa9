//! Plans: the best of all combinations, monotone in their limits, and what decides.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// A small space of layouts on few sizes of cluster.
fn plan(minimise: &str, limits: &str) -> (Option<i32>, Value) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/train-gpt3-175b-512-h100-layout.toml");
    let text = fs::read_to_string(shipped).unwrap();
    let (before, _) = text.split_once("\nlayout = {").unwrap();
    let layout = "layout = { search = \"fastest\", context = 1, micro_batch = 1, virtual_stages = 1, schedule = \"1f1b\", sharding = \"optimizer\", recompute = \"none\" }";
    let vary =
        "vary = { \"cluster.accelerators\" = \"auto\", \"cluster.fabric\" = [\"quantum-2-ndr\", \"roce-400g\"] }";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.toml");
    fs::write(&path, format!("{before}\n{layout}\n[plan]\nminimise = \"{minimise}\"\n{vary}\n{limits}\n")).unwrap();
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    let output = command.args(["plan", path.to_str().unwrap(), "--format", "json"]).output().unwrap();
    let json = serde_json::from_slice(&output.stdout);
    (output.status.code(), json.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr))))
}

fn figure(choice: &Value, group: &str, key: &str) -> f64 {
    choice["evaluation"][group][key].as_f64().unwrap()
}

#[test]
fn a_tighter_deadline_never_costs_less_and_decides_where_it_does_more() {
    let unlimited = figure(&plan("cost", "").1["best"], "cost", "usd_per_run");
    let mut last = 0.0;
    // The fastest of these runs takes how long?
    let (_, fastest) = plan("time", "");
    let least = figure(&fastest["best"], "training", "effective_days");
    for factor in [1e3, 8.0, 2.0, 1.001] {
        let deadline = least * factor;
        let (code, found) = plan("cost", &format!("limits = {{ deadline = \"{deadline} days\" }}"));
        assert_eq!(code, Some(0));
        let cost = figure(&found["best"], "cost", "usd_per_run");
        assert!(figure(&found["best"], "training", "effective_days") <= deadline);
        assert!(cost >= last, "{factor}: {cost} {last}");
        for other in found["runners_up"].as_array().unwrap() {
            assert!(figure(other, "cost", "usd_per_run") >= cost);
            assert!(figure(other, "training", "effective_days") <= deadline);
        }
        let binds = found["binding"].as_array().unwrap().iter().any(|binding| binding["limit"] == "deadline");
        assert_eq!(binds, cost > unlimited, "{factor}");
        last = cost;
    }
    // Too few GPUs for the model's states.
    let reasons: Vec<&str> =
        fastest["rejected"].as_array().unwrap().iter().map(|reason| reason["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"no layout works"), "{reasons:?}");
}

#[test]
fn what_no_cluster_meets_is_a_no_with_the_nearest() {
    let (code, found) = plan("cost", "limits = { deadline = \"1 days\", budget = \"$1000\" }");
    assert_eq!(code, Some(1));
    assert_eq!(found["best"], Value::Null);
    let beyond = found["nearest"]["beyond"].as_array().unwrap();
    assert!(beyond.iter().all(|limit| limit["ratio"].as_f64().unwrap() > 0.0) && beyond.len() == 2, "{beyond:?}");
}
