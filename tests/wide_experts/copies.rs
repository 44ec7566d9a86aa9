//! Copies of experts, so that as many ranks as a rack has serve.

use serde_json::Value;

use super::{NVL72, eval, program};

/// The rack with prompts and answers on all of its GPUs, experts over so many of them, with copies.
fn rack(ranks: u32, copies: u32, settings: &[&str]) -> (i32, Value, String) {
    let layout = format!(
        "serving.layout={{ tensor = 1, attention_data = {ranks}, expert = {ranks}, redundant_experts = {copies} }}"
    );
    eval(NVL72, &[&[layout.as_str(), "serving.arrivals=\"max\""], settings].concat())
}

#[test]
fn copies_of_experts_let_whole_racks_serve() {
    let on = |accelerators: u32, ranks: u32, copies: u32| {
        let (code, json, stderr) = rack(ranks, copies, &[&format!("cluster.accelerators={accelerators}")]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let of = |json: &Value, group: &str, key: &str| json[group][key].as_f64().unwrap();
    // 256 experts and 32 copies on 72 ranks are four on each, as 256 on 64 are: a rank's weights are the same to the byte.
    let (whole, most) = (on(72, 72, 32), on(64, 64, 0));
    assert_eq!(whole["memory"]["weights_bytes"], most["memory"]["weights_bytes"]);
    // Eight experts and a copy on each of 32 (DeepSeek's prefill) weigh a ninth of their experts more than eight: 58 layers of
    // experts of 3 x 7,168 x 2,048 numbers of 8 bits, with a scale of 32 bits for each 128 x 128 of them.
    let (copied, plain) = (on(32, 32, 32), on(32, 32, 0));
    let expert = 3.0 * 7_168.0 * 2_048.0 * (1.0 + 4.0 / 16_384.0) * 58.0;
    let more = of(&copied, "memory", "weights_bytes") - of(&plain, "memory", "weights_bytes");
    assert!((more / expert - 1.0).abs() < 1e-3, "{more} and {expert}");
    // More places for experts than the batch has use for are read in vain.
    let rate = |json: &Value| of(json, "serving", "requests_per_s");
    assert!(rate(&copied) < rate(&plain) && rate(&copied) > 0.9 * rate(&plain));
    // All 72 serve more than 64 of them.
    assert!(rate(&whole) > 1.05 * rate(&on(64, 64, 0)), "{} and {}", rate(&whole), rate(&most));
    let said = program::run(&[
        "eval",
        NVL72,
        "--set",
        "cluster.accelerators=72",
        "--set",
        "serving.layout={ tensor = 1, attention_data = 72, expert = 72, redundant_experts = 32 }",
    ]);
    assert!(said.stdout.contains("expert 72, 32 redundant experts"), "{}", said.stdout);
}

#[test]
fn a_search_copies_experts_where_a_rack_would_be_left_in_part() {
    let auto = ["cluster.accelerators=72", "serving.layout=\"auto\"", "serving.arrivals=\"max\""];
    let (code, found, stderr) = eval(NVL72, &auto);
    assert_eq!(code, 0, "{stderr}");
    let of = |key: &str| found["scenario"][key].as_str().unwrap_or("0").parse::<u32>().unwrap();
    let (ranks, copies) = (of("serving.layout.expert"), of("serving.layout.redundant_experts"));
    assert!(copies > 0 && 72 % ranks == 0 && (256 + copies) % ranks == 0, "{ranks}, {copies}");
    // No way without copies serves as much on it, and its layout written out is the same answer.
    let rate = |json: &Value| json["serving"]["requests_per_s"].as_f64().unwrap();
    for groups in [8, 16, 32, 64] {
        let pools = format!("serving.layout={{ tensor = 1, attention_data = {groups}, expert = {groups} }}");
        let accelerators = format!("cluster.accelerators={}", 72 / groups * groups);
        let (code, other, stderr) = eval(NVL72, &[&pools, &accelerators, "serving.arrivals=\"max\""]);
        assert!(code == 0 && rate(&other) < rate(&found), "{groups}: {stderr}");
    }
    let (_, written, _) = rack(ranks, copies, &["cluster.accelerators=72"]);
    assert_eq!(written["serving"], found["serving"]);
    assert_eq!(written["cost"]["total_usd"], found["cost"]["total_usd"]);
}

#[test]
fn copies_that_cannot_be_are_refused_with_those_that_can() {
    for (layout, said) in [
        ("{ tensor = 1, attention_data = 72, expert = 72 }", "with redundant_experts = 32 each rank would hold 4"),
        ("{ tensor = 1, attention_data = 72, expert = 72, redundant_experts = 33 }", "redundant_experts = 104"),
        ("{ tensor = 8, redundant_experts = 32 }", "32 redundant experts need ranks that hold experts whole"),
        ("{ tensor = 2, expert = 2, redundant_experts = 400 }", "twice on one of 2 ranks"),
        (
            "{ tensor = 1, attention_data = 72, expert = 72, redundant_experts = 200000 }",
            "a whole number from 0 to 100000",
        ),
    ] {
        let (code, _, stderr) = eval(NVL72, &[&format!("serving.layout={layout}")]);
        assert!(code == 2 && stderr.contains(said) && stderr.contains("help:"), "{layout}: {stderr}");
    }
    let dense = ["serving.model=\"llama-3.1-8b\"", "serving.layout={ tensor = 2, expert = 2, redundant_experts = 2 }"];
    let (code, _, stderr) = eval(NVL72, &dense);
    assert!(code == 2 && stderr.contains("2 redundant experts of a model that has none"), "{stderr}");
}
