//! Plans: the best of all combinations, monotone in their limits, and what decides.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// A small space of layouts on few sizes of cluster.
fn plan(minimise: &str, limits: &str) -> (Option<i32>, Value) {
    plan_of(
        "\"cluster.accelerators\" = \"auto\", \"cluster.fabric\" = [\"quantum-2-ndr\", \"roce-400g\"]",
        minimise,
        limits,
    )
}

fn plan_of(vary: &str, minimise: &str, limits: &str) -> (Option<i32>, Value) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/train-gpt3-175b-512-h100-layout.toml");
    let text = fs::read_to_string(shipped).unwrap();
    let (before, _) = text.split_once("\nlayout = {").unwrap();
    let layout = "layout = { search = \"fastest\", context = 1, micro_batch = 1, virtual_stages = 1, schedule = \"1f1b\", sharding = \"optimizer\", recompute = \"none\" }";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.toml");
    fs::write(&path, format!("{before}\n{layout}\n[plan]\nminimise = \"{minimise}\"\nvary = {{ {vary} }}\n{limits}\n"))
        .unwrap();
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

#[test]
fn topologies_are_chosen_among_and_more_choice_never_costs_more() {
    let counts = "\"cluster.accelerators\" = [512, 1024]";
    let kinds = |kinds: &str| format!("{counts}, \"cluster.topology.kind\" = {kinds}");
    let cost = |found: &Value| figure(&found["best"], "cost", "usd_per_run");
    let (code, all) = plan_of(&kinds("\"any\""), "cost", "");
    assert_eq!(code, Some(0));
    let words = ["rail-fat-tree", "tor-fat-tree", "rail-only", "multi-plane", "dragonfly-plus", "torus"];
    let single: Vec<(Option<i32>, Value)> =
        words.iter().map(|word| plan_of(&kinds(&format!("[\"{word}\"]")), "cost", "")).collect();
    let least =
        single.iter().filter(|(code, _)| *code == Some(0)).map(|(_, found)| cost(found)).fold(f64::MAX, f64::min);
    assert!((cost(&all) / least - 1.0).abs() < 1e-12, "{} {least}", cost(&all));
    assert!(single.iter().filter(|(code, _)| *code == Some(0)).count() >= 2, "several kinds can be");
    // Fewer spines cost less where the job does not need them.
    let thinner = format!("{counts}, \"cluster.topology.oversubscription\" = [[1, 1], [1, 2], [1, 4]]");
    let (_, chosen) = plan_of(&thinner, "cost", "");
    let (_, full) = plan_of(&format!("{counts}, \"cluster.topology.oversubscription\" = [[1, 1]]"), "cost", "");
    assert!(cost(&chosen) <= cost(&full));
    let settings = chosen["best"]["chosen"].to_string();
    assert!(settings.contains("cluster.topology.oversubscription"), "{settings}");
}
