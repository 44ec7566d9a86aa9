//! The longest requests that an engine takes: beyond the model's context they are refused.

use clusterplan::units::{Quantity, RequestRate};

use super::{eval, figure, traces::with_trace};

const LONG: [&str; 3] = ["serving.model=\"qwen3-32b\"", "serving.input_tokens=60000", "serving.arrivals=\"max\""];

#[test]
fn what_is_longer_than_the_context_is_refused_with_figures() {
    let (code, _, stderr) = eval(&LONG);
    assert_eq!(code, 2);
    // Qwen3 32B: 40,960 positions.
    let message = "a prompt of 60000 and an answer of 512 tokens are longer than the 40960 tokens that Qwen3 32B takes";
    assert!(stderr.contains(message) && stderr.contains("serving.max_model_len = 60512"), "{stderr}");
    // An engine that extends the model's positions takes them.
    let with = |setting| eval(&[&LONG[..], &[setting]].concat());
    assert_eq!(with("serving.max_model_len=131072").0, 0);
    // One that is given less takes less.
    let (code, _, stderr) = with("serving.max_model_len=50000");
    assert!(code == 2 && stderr.contains("longer than `serving.max_model_len`, 50000 tokens"), "{stderr}");
    let (code, _, stderr) = with("serving.max_model_len=1");
    assert!(code == 2 && stderr.contains("max_model_len"), "{stderr}");
    // What is written wrongly is the only mistake.
    for wrong in ["true", "0", "\"8k\"", "-1", "1.5"] {
        let setting = format!("serving.max_model_len={wrong}");
        let (code, _, stderr) = eval(&[&LONG[..], &[setting.as_str()]].concat());
        assert!(code == 2 && stderr.matches("error[").count() == 1 && !stderr.contains("longer than"), "{stderr}");
    }
}

#[test]
fn lengths_are_cut_and_the_refused_share_is_told() {
    let of = |settings: &[&str]| {
        let (code, json, stderr) =
            eval(&[&["serving.model=\"qwen3-32b\"", "serving.output_tokens=700"], settings].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let uncut = of(&["serving.input_tokens={ mean = 3000, cv = 0.5 }"]);
    assert!(uncut["serving"]["refused_ratio"].is_null());
    let wide = of(&["serving.input_tokens={ mean = 3000, cv = 2 }"]);
    // ln(40,260 / 3,000) = 2.5966 and sigma^2 = ln 5: (2.5966 + 0.8047) / 1.2686 = 2.681 deviations, beyond which are 0.367%.
    assert!((figure(&wide, "refused_ratio") / 0.003_67 - 1.0).abs() < 0.01, "{}", wide["serving"]["refused_ratio"]);
    // Twice the context leaves more of it, and no more than all is refused at any.
    let longer = of(&["serving.input_tokens={ mean = 3000, cv = 2 }", "serving.max_model_len=81920"]);
    assert!(figure(&longer, "refused_ratio") < 0.001);
    let prefill = |json: &serde_json::Value| figure(json, "prefill_s");
    assert!(prefill(&wide) < prefill(&longer));
}

#[test]
fn rows_of_a_trace_that_are_longer_are_left_out() {
    let rows = |longest: usize| {
        let row = |index: usize| format!("{index},{},200\n", if index % 10 == 9 { longest } else { 1_000 });
        (0..100).map(row).fold("arrival_s,input_tokens,output_tokens\n".to_owned(), |text, row| text + &row)
    };
    let settings = ["serving.max_model_len=8192"];
    let (code, json, stderr) = with_trace(&rows(20_000), &settings);
    assert_eq!(code, 0, "{stderr}");
    assert!((figure(&json, "refused_ratio") - 0.1).abs() < 1e-9);
    let (_, alike, _) = with_trace(&rows(1_000), &settings);
    let prefill = |json: &serde_json::Value| figure(json, "prefill_s");
    assert!((prefill(&json) / prefill(&alike) - 1.0).abs() < 1e-9, "the others are of one length");
    let (code, _, stderr) = with_trace("input_tokens,output_tokens\n9000,200\n", &settings);
    assert!(code == 2 && stderr.contains("every request of"), "{stderr}");
}

#[test]
fn the_most_that_is_told_is_served_and_more_is_not() {
    for setting in ["serving.limits={}", "serving.limits={ tpot = \"40 ms\" }", "serving.layout={ tensor = 2 }"] {
        let at = |rate: &str| eval(&[setting, &format!("serving.arrivals={{ rate = \"{rate} request/s\" }}")]);
        let most = figure(&at("20").1, "most_requests_per_s");
        let (code, json, stderr) = at(&most.to_string());
        assert_eq!(code, 0, "{setting}: {json} {stderr}");
        // As its four digits say it, cut short.
        let told = RequestRate::new(most).told_as_most();
        assert_eq!(at(&told.base().to_string()).0, 0, "{setting}: {most}");
        let (code, json, _) = at(&(most * 1.000_001).to_string());
        let reason = json["infeasible"]["reason"].as_str().unwrap_or_default().to_owned();
        if code == 1 {
            assert!(
                reason.contains(&format!("serve {told} at most")) && !reason.starts_with(&told.to_string()),
                "{reason}"
            );
        } else {
            assert_eq!(json["serving"]["limits_kept"], false, "{setting}: {json}");
        }
    }
}

#[test]
fn agents_whose_prompts_outgrow_it_are_refused() {
    let scenario = "scenarios/serve-coding-agents-64-h200.toml";
    let answer = super::program::run(&["eval", scenario, "--set", "serving.max_model_len=50000"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("the last prompt of these agents and its answer are"), "{}", answer.stderr);
}
