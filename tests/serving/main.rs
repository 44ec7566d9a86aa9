//! Serving: what a scenario with `[serving]` answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapters;
mod benchmark;
mod context;
mod costs;
mod days;
mod engine;
mod open;
mod parts;
mod pools;
mod prefill_only;
#[path = "../program/mod.rs"]
mod program;
mod routing;
mod tiers;
mod traces;

use serde_json::Value;

const SCENARIO: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";

fn eval(settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", SCENARIO, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

#[test]
fn a_replica_holds_what_its_memory_does() {
    let (code, json, _) = eval(&[]);
    assert_eq!(code, 0);
    // 64 GPUs in replicas of 4. Keys and values of a token: 80 layers x 2 x 8 heads x 128, in FP8, over 4 ranks: 40,960
    // bytes; of 2,560 tokens, 104.9 MB.
    assert_eq!(json["serving"]["replicas_count"], 16);
    let request = 80.0 * 2.0 * 8.0 * 128.0 / 4.0 * 2_560.0;
    let each = (json["memory"]["kv_cache_bytes"].as_f64().unwrap() / request).floor();
    let most = json["serving"]["max_concurrency_count"].as_f64().unwrap();
    assert!((most - each * 16.0).abs() < 0.5, "{most}");
    assert!(json["training"].is_null() && json["goodput"].is_null(), "nothing is trained");
    // A cache of twice the bytes holds half as many, but for the last one of each replica.
    let (_, wide, _) = eval(&["serving.kv_cache=\"bf16\""]);
    let halved = wide["serving"]["max_concurrency_count"].as_f64().unwrap();
    assert!((each * 16.0 - 2.0 * halved).abs() <= 16.0, "{halved}");
}

#[test]
fn memory_of_a_scenario_is_what_its_answer_holds() {
    for settings in [
        &[][..],
        &["serving.speculation={ draft = \"llama-3.2-1b\", tokens = 4, acceptance = 0.75 }"],
        &[
            "serving.adapters={ count = 100, rank = 16 }",
            "serving.layout={ prefill = { tensor = 8 }, decode = { tensor = 2 } }",
        ],
        &["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", "serving.slice=\"3g.40gb\""],
        &["serving.layout=\"auto\""],
    ] {
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let answer = program::run(&[&["memory", SCENARIO, "--format", "json"], &set[..]].concat());
        assert_eq!(answer.code, 0, "{settings:?}: {}", answer.stderr);
        let held: Value = serde_json::from_str(&answer.stdout).unwrap();
        let (_, json, _) = eval(settings);
        for key in ["weights_bytes", "kv_cache_bytes", "total_bytes", "usable_bytes"] {
            let [held, whole] = [&held, &json].map(|json| json["memory"][key].as_f64().unwrap());
            assert!((held / whole - 1.0).abs() < 1e-9, "{settings:?} {key}: {held} {whole}");
        }
        let each = held["max_concurrency_count"].as_f64().unwrap();
        let all = figure(&json, "max_concurrency_count");
        assert!((each * figure(&json, "replicas_count") - all).abs() < 0.5, "{settings:?}: {each} {all}");
    }
}

#[test]
fn what_does_not_fit_or_divide_is_a_no_with_numbers() {
    let (code, json, stderr) = eval(&["serving.layout.tensor=1", "serving.weights=\"bf16\""]);
    assert_eq!(code, 1);
    assert!(json["infeasible"]["reason"].as_str().unwrap().contains("141.1 GB of weights"), "{json}{stderr}");
    let (code, _, stderr) = eval(&["serving.layout.tensor=4", "serving.layout.attention_data=3"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("64 accelerators are no whole number of replicas of 12"), "{stderr}");
    let (code, _, stderr) = eval(&["serving.layout.tensor=3"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("64 heads do not split over tensor 3"), "{stderr}");
}

#[test]
fn shares_of_time_and_costs_of_tokens_add_up() {
    for arrivals in ["\"max\"", "{ rate = \"40 request/s\" }", "{ concurrency = 512 }"] {
        let (code, json, stderr) = eval(&[&format!("serving.arrivals={arrivals}")]);
        assert_eq!(code, 0, "{stderr}");
        let of = |group: &str, key: &str| json[group][key].as_f64().unwrap_or_else(|| panic!("{group}.{key}"));
        let shares = ["weights", "kv", "compute", "network", "idle"];
        let all: f64 = shares.iter().map(|part| of("serving", &format!("time_share.{part}_ratio"))).sum();
        assert!((all - 1.0).abs() < 1e-9, "{arrivals}: {all}");
        // A second of 64 GPUs at their useful price is what the tokens of that second cost.
        let rate = of("serving", "requests_per_s");
        let paid = rate
            * (2_048.0 * (0.7 * of("cost", "usd_per_mtok_input") + 0.3 * of("cost", "usd_per_mtok_cached"))
                + 512.0 * of("cost", "usd_per_mtok_output"));
        let owned = of("cost", "usd_per_useful_gpu_hour") * 64.0 / 3_600.0 * 1e6;
        assert!((paid / owned - 1.0).abs() < 1e-9, "{arrivals}: {paid} and {owned}");
        assert!((of("cost", "usd_per_mtok_blended") * rate * 2_560.0 / owned - 1.0).abs() < 1e-9);
        // So are the elements of what its answers cost, of which power is a part.
        let elements = ["weights", "kv", "compute", "network", "waiting"];
        let all: f64 = elements.iter().map(|part| of("cost", &format!("usd_per_mtok_output_{part}"))).sum();
        assert!((all * rate * 512.0 / owned - 1.0).abs() < 1e-9, "{arrivals}: {all}");
        assert!((of("cost", "usd_per_mtok_output_with_prompts") / all - 1.0).abs() < 1e-12);
        assert!(of("cost", "usd_per_mtok_output_power") < all);
    }
}

#[test]
fn a_rate_is_met_or_refused_with_what_is_served() {
    let (_, json, _) = eval(&[]);
    assert!((json["serving"]["requests_per_s"].as_f64().unwrap() - 40.0).abs() < 1e-6);
    // Little's law, in one of 16 replicas.
    let tpot = json["serving"]["tpot_s"].as_f64().unwrap();
    let batch = json["serving"]["batch_count"].as_f64().unwrap();
    assert!((batch / (40.0 / 16.0 * 512.0 * tpot) - 1.0).abs() < 1e-6, "{batch}");
    let (code, json, _) = eval(&["serving.arrivals={ rate = \"4000 request/s\" }"]);
    assert_eq!(code, 1);
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(reason.contains("come, and 16 replicas serve"), "{reason}");
}

#[test]
fn more_hits_and_more_bandwidth_are_never_slower() {
    let ttft = |hit: &str| eval(&[&format!("serving.prefix_hit={hit}")]).1["serving"]["ttft_s"].as_f64().unwrap();
    assert!(ttft("0.9") < ttft("0.3") && ttft("0.3") < ttft("0"));
    let tpot = |node: &str| eval(&[&format!("cluster.node=\"{node}\"")]).1["serving"]["tpot_s"].as_f64().unwrap();
    assert!(tpot("dgx-h200") < tpot("dgx-h100"));
}

fn figure(json: &Value, key: &str) -> f64 {
    json["serving"][key].as_f64().unwrap_or_else(|| panic!("serving.{key}: {}", json["serving"][key]))
}

fn serving(json: &Value) -> impl Fn(&str) -> f64 + use<> {
    let serving = json["serving"].clone();
    move |key| serving[key].as_f64().unwrap_or_else(|| panic!("serving.{key}"))
}

#[test]
fn what_a_token_costs_is_the_sum_of_its_parts() {
    for settings in [
        &[][..],
        &["serving.peak_to_mean=1.7", "serving.spare_replicas=2", "serving.arrivals={ rate = \"12 request/s\" }"],
        &["serving.prefix_hit=0.4", "serving.speculation={ draft = \"eagle\", tokens = 2, acceptance = [0.8, 0.4] }"],
    ] {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        let of = |key: &str| json["cost"][key].as_f64().unwrap_or_else(|| panic!("{key}"));
        let sum = |keys: &[&str], of: &dyn Fn(&str) -> f64| keys.iter().map(|key| of(key)).sum::<f64>();
        // By what the time goes into: all that the GPUs cost while as many tokens are answered, by the mean of a day.
        let elements =
            ["weights", "kv", "compute", "network", "waiting"].map(|key| format!("usd_per_mtok_output_{key}"));
        let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
        let mean = figure(&json, "mean_requests_per_s") * 512.0 / 64.0;
        let all = of("usd_per_useful_gpu_hour") / 3_600.0 / mean * 1e6;
        assert!((sum(&elements, &of) / all - 1.0).abs() < 1e-9, "{settings:?}");
        assert!(of("usd_per_mtok_output_power") < all);
        // By where the capacity goes, and by kind of token.
        let capacity = ["used", "off_peak", "headroom", "standby"].map(|key| format!("usd_per_mtok_{key}"));
        let capacity: Vec<&str> = capacity.iter().map(String::as_str).collect();
        assert!((sum(&capacity, &of) / of("usd_per_mtok_blended") - 1.0).abs() < 1e-9, "{settings:?}");
        let hit = if settings.iter().any(|setting| setting.contains("prefix_hit")) { 0.4 } else { 0.3 };
        let cached = json["cost"]["usd_per_mtok_cached"].as_f64().unwrap_or_default();
        let kinds =
            2_048.0 * ((1.0 - hit) * of("usd_per_mtok_input") + hit * cached) + 512.0 * of("usd_per_mtok_output");
        assert!((kinds / (2_560.0 * of("usd_per_mtok_blended")) - 1.0).abs() < 1e-9, "{settings:?}");
    }
}
