//! Agents: what a scenario with `[agents]` answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

const SCENARIO: &str = "scenarios/serve-coding-agents-64-h200.toml";

fn eval(settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", SCENARIO, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

fn agents(settings: &[&str]) -> impl Fn(&str) -> f64 {
    let (code, json, stderr) = eval(settings);
    assert_eq!(code, 0, "{stderr}");
    move |key| json["agents"][key].as_f64().unwrap_or_else(|| panic!("agents.{key}"))
}

/// The run of the published traces, without retries and failures: 33 turns, 131 tokens in for one out.
const TRACES: [&str; 3] = ["agents.retries=1", "agents.success=1", "agents.failed.steps=33"];

#[test]
fn a_task_has_the_calls_and_tokens_of_its_traces() {
    let of = agents(&TRACES);
    assert!((of("calls_per_task_count") - 33.0).abs() < 1e-9);
    assert!((of("input_to_output_ratio") - 131.0).abs() < 1.0, "{}", of("input_to_output_ratio"));
    assert!((of("prefix_hit_ratio") - 0.942).abs() < 0.01, "{}", of("prefix_hit_ratio"));
    // 1,000 users, one task each in 40 minutes.
    assert!((of("tasks_per_day") - 36_000.0).abs() < 1e-6);
    assert!((of("cost_per_success_usd") / of("cost_per_task_usd") - 1.0).abs() < 1e-12);
}

#[test]
fn a_task_is_paid_in_full_and_a_success_with_its_failures() {
    let (_, json, _) = eval(&[]);
    let of = |group: &str, key: &str| json[group][key].as_f64().unwrap_or_else(|| panic!("{group}.{key}"));
    let parts = ["input", "cached", "output", "tools", "sandbox"];
    let all: f64 = parts.iter().map(|part| of("agents", &format!("cost_{part}_per_task_usd"))).sum();
    assert!((all / of("agents", "cost_per_task_usd") - 1.0).abs() < 1e-12);
    assert!((of("agents", "cost_per_success_usd") * 0.64 / all - 1.0).abs() < 1e-12);
    // The tasks' tokens are the cluster's: what they pay for is what its GPUs cost.
    let tokens: f64 = parts[..3].iter().map(|part| of("agents", &format!("cost_{part}_per_task_usd"))).sum();
    let gpus = of("cost", "usd_per_useful_gpu_hour") * 64.0 * 24.0;
    assert!((tokens * of("agents", "tasks_per_day") / gpus - 1.0).abs() < 1e-9);
    // Little's law, and calls that are served.
    let alive = of("agents", "tasks_per_day") / 86_400.0 * of("agents", "task_s");
    assert!((of("agents", "sessions_count") / alive - 1.0).abs() < 1e-9);
    let calls = of("agents", "tasks_per_day") * of("agents", "calls_per_task_count") / 86_400.0;
    assert!((of("serving", "requests_per_s") / calls - 1.0).abs() < 1e-9);
}

#[test]
fn longer_waits_hold_more_and_lost_sessions_cost_more() {
    let (usual, slow, lost) =
        (agents(&[]), agents(&["agents.tool_time=\"20 s\""]), agents(&["agents.session_hit=0.97"]));
    assert!(slow("kv_idle_bytes") > usual("kv_idle_bytes") && slow("kv_held_ratio") > usual("kv_held_ratio"));
    assert!(lost("prefix_hit_ratio") < usual("prefix_hit_ratio"));
    assert!(lost("cost_per_task_usd") > usual("cost_per_task_usd"), "what is lost is computed again");
    assert!(lost("gpu_load_ratio") > usual("gpu_load_ratio"));
}

#[test]
fn more_tasks_than_are_served_are_a_no() {
    let (code, json, _) = eval(&["agents.users=20000"]);
    assert_eq!(code, 1);
    assert!(json["infeasible"]["reason"].as_str().unwrap().contains("8 replicas serve"), "{json}");
}

#[test]
fn what_contradicts_itself_is_refused_with_its_place() {
    for (setting, said) in [
        ("serving.input_tokens=1000", "`serving.input_tokens` follows from `agents`"),
        ("serving.arrivals=\"max\"", "`serving.arrivals` follows from `agents`"),
        ("agents.success=0", "`agents.success` is 0"),
        ("agents.reasoning_tokens=400", "reasoning is part of an answer"),
        ("agents.steps=0.5", "`agents.steps`"),
    ] {
        let (code, _, stderr) = eval(&[setting]);
        assert_eq!(code, 2, "{setting}");
        assert!(stderr.contains(said), "{setting}: {stderr}");
    }
}

#[test]
fn calls_that_lost_their_session_hold_the_others_up() {
    let times = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        ["ttft_p50_s", "ttft_p99_s", "queue_s"].map(|key| json["serving"][key].as_f64().unwrap())
    };
    // One call in fifty computes its tens of thousands of tokens again, in seconds, behind which others wait.
    let [half, last, waits] = times(&["agents.session_hit=0.98"]);
    let [kept_half, kept_last, kept_waits] = times(&["agents.session_hit=1"]);
    assert!(last > 10.0 * half && kept_last < 5.0 * kept_half, "{last} of {half}, {kept_last} of {kept_half}");
    assert!(waits > 5.0 * kept_waits && half > kept_half);
}
