//! Answers of one token, which the prefill makes: nothing is ever in decode.

use super::traces::{trace, with_trace};
use super::{eval, figure};
use serde_json::Value;

const ONE: &str = "serving.output_tokens=1";
const MODES: [&str; 6] = [
    "serving.arrivals={ rate = \"60 request/s\" }",
    "serving.arrivals={ concurrency = 16 }",
    "serving.arrivals={ concurrency = 4000 }",
    "serving.arrivals={ concurrency = 64, prompts = 640 }",
    "serving.arrivals={ prompts = 640 }",
    "serving.arrivals=\"max\"",
];

/// What only answers of more tokens have.
const OF_DECODE: [&str; 9] = [
    "tpot_s",
    "tpot_low_s",
    "tpot_high_s",
    "tpot_p50_s",
    "tpot_p95_s",
    "tpot_p99_s",
    "decode_step_s",
    "prefill_stall_s",
    "longest_gap_s",
];

fn ends_with_its_first_token(json: &Value, told: &str) {
    for key in OF_DECODE {
        assert!(json["serving"][key].is_null(), "{told} {key}: {}", json["serving"][key]);
    }
    for share in ["p50", "p95", "p99"] {
        assert_eq!(json["serving"][format!("ttft_{share}_s")], json["serving"][format!("e2e_{share}_s")], "{told}");
    }
    assert!(figure(json, "batch_count") <= 0.0, "{told}");
    let shares =
        ["weights", "kv", "network", "compute", "idle"].map(|part| figure(json, &format!("time_share.{part}_ratio")));
    assert!(shares[..3].iter().all(|share| *share <= 0.0) && (shares[3] + shares[4] - 1.0).abs() < 1e-12, "{told}");
    // By Little's law.
    let open = figure(json, "requests_per_s") * figure(json, "ttft_s") / figure(json, "replicas_count");
    assert!((open / figure(json, "open_per_replica_count") - 1.0).abs() < 1e-9, "{told}: {open}");
}

#[test]
fn the_first_token_is_the_answer_in_all_modes() {
    for mode in MODES {
        for settings in [&[][..], &["serving.chunk_tokens=512"]] {
            let settings = [&["serving.input_tokens=2048", ONE, mode], settings].concat();
            let (code, json, stderr) = eval(&settings);
            assert_eq!(code, 0, "{settings:?}: {stderr}");
            ends_with_its_first_token(&json, &format!("{settings:?}"));
            let rate = figure(&json, "requests_per_s");
            // Two tokens take no less.
            let (_, two, _) = eval(&[&settings[..], &["serving.output_tokens=2"]].concat());
            // A benchmark's rounds are told as measured, beyond the most by a little.
            let rounds = mode.contains("concurrency = 64");
            assert!(rounds || rate >= figure(&two, "requests_per_s") * (1.0 - 1e-9), "{settings:?}: {rate}");
            let most = |json: &Value| json["serving"]["most_requests_per_s"].as_f64().unwrap_or(f64::INFINITY);
            assert!(most(&json) >= most(&two) * (1.0 - 1e-9) && rate <= most(&json) * (1.0 + 1e-9), "{settings:?}");
        }
    }
}

#[test]
fn limits_between_tokens_that_nothing_can_miss_are_told() {
    let told = |settings: &[&str]| {
        let (code, json, stderr) = eval(&[settings, &["serving.arrivals={ concurrency = 16 }"]].concat());
        assert_eq!(code, 0, "{stderr}");
        json["notes"].as_array().unwrap().iter().any(|note| {
            note.as_str().unwrap().contains("`serving.limits.tpot`, `serving.limits.tpot_p95` can be missed by nothing")
        })
    };
    let limits = "serving.limits={ tpot = \"1 ms\", tpot_p95 = \"2 ms\" }";
    assert!(told(&[ONE, limits]) && !told(&[ONE, "serving.limits={ ttft = \"60 s\" }"]));
    assert!(!told(&["serving.output_tokens=8", "serving.limits={ tpot = \"60 s\" }"]));
}

#[test]
fn a_trace_of_such_answers_has_no_decode_either() {
    let rows = trace((0..400).map(|row| (f64::from(row) * 0.013, 2_048.0, 1.0)));
    for replay in ["", ", replay = true"] {
        let rate = format!("serving.arrivals={{ rate = \"60 request/s\"{replay} }}");
        let (code, json, stderr) = with_trace(&rows, &[&rate, "serving.prefix_hit=0"]);
        assert_eq!(code, 0, "{stderr}");
        ends_with_its_first_token(&json, replay);
    }
}

#[test]
fn all_that_is_paid_is_for_prompts_and_limits_of_tokens_are_kept() {
    let (code, json, stderr) = eval(&[ONE, MODES[0], "serving.limits={ tpot_p95 = \"1 ms\" }"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(json["serving"]["limits_kept"], true);
    assert_eq!(json["cost"]["usd_per_mtok_output"], 0.0);
    assert!(json["cost"]["usd_per_mtok_input"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_pool_with_nothing_to_decode_is_refused() {
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    let (code, _, stderr) = eval(&[ONE, pools]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("a pool of decode has nothing to do") && stderr.contains("output_tokens"), "{stderr}");
    // A search finds replicas that do both.
    let (code, json, stderr) = eval(&[ONE, MODES[0], "serving.layout=\"auto\""]);
    assert_eq!(code, 0, "{stderr}");
    assert!(json["serving"]["prefill_workers_count"].is_null(), "{json}");
}
