//! Limits of latencies as people meet them: what is missed stands first, what was kept is told by what it was held against, and
//! a search says what came after the best.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use program::run;
use serde_json::Value;

const SERVED: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";

fn asked(verb: &str, more: &[&str], set: &[&str]) -> String {
    let set: Vec<&str> = set.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = run(&[&[verb, SERVED], more, &set].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.stdout
}

fn json(verb: &str, set: &[&str]) -> Value {
    serde_json::from_str(&asked(verb, &["--format", "json"], set)).unwrap()
}

/// The first section of a page.
fn in_short(page: &str) -> String {
    let (_, from) = page.split_once("In short\n").unwrap();
    from.split("\n\nMemory of a GPU").next().unwrap().to_owned()
}

#[test]
fn every_limit_that_is_missed_stands_in_short_with_its_figures() {
    let never = ["serving.limits={ ttft_p95 = \"1 ms\", tpot_p95 = \"2 ms\", tpot = \"1 s\" }"];
    let short = in_short(&asked("eval", &[], &never));
    for told in [
        "serving.limits.ttft_p95 of 1 ms is missed: it comes to ",
        "serving.limits.tpot_p95 of 2 ms is missed: it comes to ",
    ] {
        assert!(short.contains(told), "{told}: {short}");
    }
    assert!(!short.contains("serving.limits.tpot of"), "what is kept is not missed: {short}");
    assert!(short.contains("With all limits kept, no number of requests would be served"), "{short}");
    let row = |page: &str| page.lines().find(|line| line.starts_with("Limits kept")).map(|line| line.ends_with("yes"));
    assert_eq!(row(&short), Some(false));
    let kept = in_short(&asked("eval", &[], &["serving.limits={ ttft_p95 = \"1000 s\" }"]));
    assert!(!kept.contains("is missed"), "{kept}");
    assert_eq!(row(&kept), Some(true));
}

#[test]
fn whether_limits_are_kept_is_told_by_the_latencies_that_have_one() {
    let tree = asked(
        "explain",
        &["serving.limits_kept", "--format", "csv", "--depth", "1"],
        &["serving.limits={ ttft_p95 = \"1000 s\", tpot_p99 = \"900 s\" }"],
    );
    let keys: Vec<&str> = tree.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    let told = [
        "serving.limits_kept",
        "serving.limits.ttft_p95",
        "serving.limits.tpot_p99",
        "serving.ttft_p95_s",
        "serving.tpot_p99_s",
    ];
    assert_eq!(keys, told, "{tree}");
}

#[test]
fn a_search_of_ways_to_serve_names_those_after_the_best() {
    for (limits, some_miss) in [("serving.limits={ tpot_p95 = \"20 ms\" }", true), ("serving.limits={}", false)] {
        let auto = ["serving.layout=auto", "serving.peak_to_mean=1", limits];
        let whole = json("eval", &auto);
        let search = &whole["serving_layout_search"];
        let best = search["best"].as_array().unwrap();
        assert!(best.len() > 2, "{search}");
        assert!(search["feasible_count"].as_u64() <= search["considered_count"].as_u64());
        assert_eq!(search["limits_kept_count"].as_u64() < search["feasible_count"].as_u64(), some_miss, "{search}");
        // The best is what is answered, those that miss come last, and of those that keep the fewest open come first.
        assert_eq!(best[0]["ttft_s"], whole["serving"]["ttft_s"]);
        assert_eq!(best[0]["replicas_count"], whole["serving"]["replicas_count"]);
        let rank = |way: &Value| {
            let missed = !way["limits_missed"].as_array().unwrap().is_empty();
            (missed, if missed { 0.0 } else { way["open_count"].as_f64().unwrap() })
        };
        assert!(best.is_sorted_by(|one, other| rank(one) <= rank(other)), "{search}");
        // Each is what the program says of it alone.
        for way in best {
            let alone =
                json("eval", &[auto[1], auto[2], &format!("serving.layout={}", way["layout"].as_str().unwrap())]);
            for key in ["ttft_s", "tpot_s", "ttft_p95_s"] {
                let (one, other) = (way[key].as_f64().unwrap(), alone["serving"][key].as_f64().unwrap());
                assert!((one / other - 1.0).abs() < 1e-9, "{key}: {way}");
            }
        }
        let page = asked("eval", &[], &auto);
        assert_eq!(page.contains("keep all limits and come before those that do not"), some_miss, "{page}");
        assert!(page.contains("ways to serve"), "{page}");
    }
}

#[test]
fn limits_of_tenants_are_settings() {
    let tenants = "serving.tenants=[{ count = 2, mean = \"1 request/s\", peak = \"2 request/s\", limits = { ttft_p95 = \"3 s\" } }, { count = 1, mean = \"1 request/s\", peak = \"2 request/s\", limits = { ttft_p95 = \"2 s\", tpot_p95 = \"60 ms\" } }]";
    let set = [tenants, "serving.arrivals=tenants"];
    let settings = json("eval", &set)["scenario"].clone();
    assert_eq!(settings["serving.tenants.limits.ttft_p95"], "[3 s, 2 s]");
    assert_eq!(settings["serving.limits.ttft_p95"], "2 s", "what all keep together");
    let tpot = settings["serving.tenants.limits.tpot_p95"].as_str().unwrap();
    assert!(tpot.ends_with(", 60 ms]"), "{tpot}");
}

#[test]
fn a_limit_of_tenants_is_told_by_its_own_table() {
    let classes = "serving.tenants={ count = 10, mean = \"1 request/s\", peak = \"3 request/s\", limits = { ttft_p95 = \"1 ms\" } }";
    let of = |verb: &str, limits: &str, arrivals: &str| {
        let set = ["--set", classes, "--set", limits, "--set", arrivals];
        let answer = run(&[&[verb, SERVED], &set[..]].concat());
        answer.stdout + &answer.stderr
    };
    let loose = "serving.limits={ tpot_p95 = \"1 ms\" }";
    let told = of("eval", loose, "serving.arrivals={ concurrency = 64 }");
    assert!(told.contains("serving.tenants.limits.ttft_p95 of 1 ms is missed"), "{told}");
    assert!(told.contains("serving.limits.tpot_p95 of 1 ms is missed"), "{told}");
    let told = of("eval", "serving.limits={ tpot_p95 = \"9 s\" }", "serving.arrivals=max");
    assert!(told.contains("serving.tenants.limits.ttft_p95 is 1 ms, and a replica"), "{told}");
    let told = of("plan", "serving.limits={ tpot_p95 = \"9 s\" }", "serving.arrivals=tenants");
    assert!(told.contains("serving.tenants.limits.ttft_p95") && !told.contains("serving.limits.ttft_p95"), "{told}");
}

#[test]
fn columns_of_dollars_a_million_tokens_say_so() {
    let limits = "serving.limits={ ttft_p95 = \"1 s\", tpot_p95 = \"40 ms\" }";
    let page = asked("plan", &[], &[limits, "serving.layout={ tensor = 4 }"]);
    assert!(page.contains("$/Mtok of prompts") && !page.contains(" Mtok"), "{page}");
}
