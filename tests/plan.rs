//! `plan`: the cheapest cluster that serves what is asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

const SCENARIO: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";

fn run(command: &str, settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&[command, SCENARIO, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

fn number(answer: &Value, group: &str, key: &str) -> f64 {
    answer["evaluation"][group][key].as_f64().unwrap_or_else(|| panic!("no {group}.{key}"))
}

/// The setting of a layout: of replicas that prefill and decode, or of pools.
fn layout(tensor: &str, prefill: Option<&str>) -> String {
    match prefill {
        Some(prefill) => {
            format!("serving.layout={{ decode = {{ tensor = {tensor} }}, prefill = {{ tensor = {prefill} }} }}")
        }
        None => format!("serving.layout={{ tensor = {tensor} }}"),
    }
}

#[test]
fn the_best_is_the_cheapest_and_eval_says_the_same_of_it() {
    let (code, plan, stderr) = run("plan", &[]);
    assert_eq!(code, 0, "{stderr}");
    let best = &plan["best"];
    let runners_up = plan["runners_up"].as_array().unwrap();
    assert_eq!(runners_up.len(), 8, "three nodes on three fabrics, one of them the best");
    let cost = |answer: &Value| number(answer, "cost", "total_usd");
    assert!(runners_up.windows(2).all(|pair| cost(&pair[0]) <= cost(&pair[1])));
    assert!(cost(best) <= cost(&runners_up[0]));
    for answer in [best, &runners_up[0], &runners_up[7]] {
        let of = |key: &str| answer["scenario"][key].as_str().unwrap().to_owned();
        let pools = answer["scenario"]["serving.layout.prefill.tensor"].as_str();
        let tensor = of("serving.layout.tensor");
        let settings = [
            format!("cluster.node=\"{}\"", of("cluster.node")),
            format!("cluster.fabric=\"{}\"", of("cluster.fabric")),
            format!("cluster.accelerators={}", of("cluster.accelerators")),
            layout(&tensor, pools),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (code, again, stderr) = run("eval", &settings);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(again["serving"], answer["evaluation"]["serving"]);
        assert_eq!(again["cost"]["total_usd"], answer["evaluation"]["cost"]["total_usd"]);
        assert_eq!(again["serving"]["limits_kept"], true);
        assert!(number(answer, "serving", "ttft_p95_s") <= 1.0 && number(answer, "serving", "tpot_p95_s") <= 0.04);
        // Replicas x GPUs of each, and the requests open in each and in all.
        let replicas = number(answer, "serving", "replicas_count");
        let open = number(answer, "serving", "open_per_replica_count");
        assert!((number(answer, "serving", "open_count") / (replicas * open) - 1.0).abs() < 1e-12);
    }
}

#[test]
fn one_node_fewer_would_not_do() {
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let (_, plan, _) = run("plan", &[one]);
    let (best, binding) = (&plan["best"], plan["binding"][0].as_str().unwrap());
    let of = |key: &str| best["scenario"][key].as_str().unwrap().parse::<u32>().unwrap();
    let fewer = format!("cluster.accelerators={}", of("cluster.accelerators") - 8);
    let pools = best["scenario"]["serving.layout.prefill.tensor"].as_str();
    let layout = layout(&of("serving.layout.tensor").to_string(), pools);
    let (code, json, _) = run("eval", &[&fewer, &layout]);
    assert!(code == 1 || json["serving"]["limits_kept"] == false, "{binding}");
    assert_eq!(code == 1, binding == "requests served", "{binding}");
}

#[test]
fn more_requests_never_need_fewer_gpus() {
    let mut before = 0;
    for rate in ["1", "10", "40", "160", "640"] {
        let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
        let (code, plan, stderr) = run("plan", &[&rate, "plan.vary={ \"cluster.accelerators\" = \"auto\" }"]);
        assert_eq!(code, 0, "{stderr}");
        let gpus: u32 = plan["best"]["scenario"]["cluster.accelerators"].as_str().unwrap().parse().unwrap();
        assert!(gpus >= before, "{gpus} after {before}");
        before = gpus;
    }
    assert!(before > 64);
}

#[test]
fn more_gpus_never_serve_less() {
    let mut before = 0.0;
    for gpus in [8, 16, 24, 32, 40, 72, 128] {
        let gpus = format!("cluster.accelerators={gpus}");
        let limits = "serving.limits={ tpot = \"60 ms\" }";
        let (code, json, stderr) = run("eval", &[&gpus, "serving.arrivals=\"max\"", limits]);
        assert_eq!(code, 0, "{stderr}");
        let served = json["serving"]["requests_per_s"].as_f64().unwrap();
        assert!(served >= before, "{gpus}: {served} after {before}");
        before = served;
    }
}

#[test]
fn what_cannot_be_is_a_no_with_reasons_and_mistakes_are_told() {
    let (code, plan, stderr) = run("plan", &["serving.limits={ tpot_p95 = \"2 ms\" }"]);
    assert_eq!(code, 1);
    assert!(plan["best"].is_null() && !plan["rejected"].as_array().unwrap().is_empty(), "{plan}");
    assert!(stderr.contains("serving.limits.tpot_p95 is missed"), "{stderr}");
    for (setting, said) in [
        ("serving.arrivals=\"max\"", "at a rate"),
        ("plan.limits={ deadline = \"3 days\" }", "serving has no deadline"),
        ("plan.vary={ \"cluster.site\" = \"any\" }", "`cluster.site` is nothing that a plan varies"),
        ("plan.vary={ \"cluster.node\" = [\"hgx-h100\"] }", "no node has the id"),
    ] {
        let (code, _, stderr) = run("plan", &[setting]);
        assert_eq!(code, 2, "{setting}");
        assert!(stderr.contains(said), "{setting}: {stderr}");
    }
    let (_, all, _) = run("plan", &[]);
    let budget = number(&all["runners_up"][0], "cost", "total_usd").ceil();
    let (code, plan, _) = run("plan", &[&format!("plan.limits={{ budget = \"${budget}\" }}")]);
    assert_eq!(code, 0);
    assert!(plan["rejected"].to_string().contains("budget"));
}
