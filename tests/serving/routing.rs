//! Which replica a request goes to.

use serde_json::Value;

use super::{eval, figure, program};

#[test]
fn requests_go_to_replicas_by_chance_in_turn_or_where_the_fewest_are() {
    let rate = "serving.arrivals={ rate = \"60 request/s\" }";
    let of = |more: &[&str]| {
        let (code, json, stderr) = eval(&[&[rate], more].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (usual, random) = (of(&[]), of(&["serving.routing=\"random\""]));
    for group in ["serving", "memory", "cost"] {
        assert_eq!(usual[group], random[group]);
    }
    let (in_turn, least) = (of(&["serving.routing=\"round-robin\""]), of(&["serving.routing=\"least-loaded\""]));
    let wait = |json: &Value| figure(json, "queue_s");
    assert!(wait(&random) > wait(&in_turn) && wait(&in_turn) > wait(&least), "{} {}", wait(&in_turn), wait(&least));
    // As many are served. Those in decode are kept level, so that a token shares its step with fewer, and fewer are in decode.
    for json in [&in_turn, &least] {
        assert_eq!(json["serving"]["most_requests_per_s"], random["serving"]["most_requests_per_s"]);
        let level = figure(json, "batch_count") / figure(&random, "batch_count");
        assert!(0.97 < level && level <= 1.0, "{level}");
    }
    assert!(figure(&least, "tpot_p99_s") < figure(&random, "tpot_p99_s"));
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    let pooled = |way: &str| figure(&of(&[pools, &format!("serving.routing=\"{way}\"")]), "tpot_p99_s");
    assert!(pooled("least-loaded") < pooled("random"));
    for (settings, said) in [
        (&["serving.routing=\"least\"", rate][..], "least-loaded"),
        (&["serving.routing=\"least-loaded\"", "serving.arrivals=\"max\""], "come at a rate"),
        (&["serving.routing=\"least-loaded\"", "serving.arrivals={ concurrency = 64 }"], "come at a rate"),
        (
            &[
                "serving.routing=\"round-robin\"",
                rate,
                "serving.adapters={ count = 9, rank = 8, routing = \"adapter-aware\" }",
            ],
            "their prefix or adapter",
        ),
        (
            &[
                "serving.routing=\"random\"",
                rate,
                "serving.adapters={ count = 9, rank = 8, routing = \"adapter-aware\" }",
            ],
            "their prefix or adapter",
        ),
    ] {
        let (code, _, stderr) = eval(settings);
        assert!(code == 2 && stderr.contains(said), "{settings:?}: {stderr}");
    }
}

#[test]
fn requests_that_go_to_their_prefix_do_not_go_elsewhere() {
    let tiers = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";
    let rate = "serving.arrivals={ rate = \"20 request/s\" }";
    let with = |more: &[&str]| {
        let mut arguments = vec!["eval", tiers, "--set", rate, "--set", "serving.routing=\"least-loaded\""];
        arguments.extend(more.iter().flat_map(|more| ["--set", more]));
        program::run(&arguments)
    };
    let aware = with(&[]);
    assert!(aware.code == 2 && aware.stderr.contains("their prefix or adapter"), "{}", aware.stderr);
    let balanced = with(&["serving.cache.routing=\"balanced\""]);
    assert_eq!(balanced.code, 0, "{}", balanced.stderr);
}

#[test]
fn so_many_that_are_kept_open_are_all_at_some_replica() {
    let tiers = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";
    let with = |routing: &str, open: u32| {
        let settings = [
            format!("serving.arrivals={{ concurrency = {open} }}"),
            format!("serving.cache={{ prefixes = 24, prefix_tokens = 500, popularity = 0, routing = \"{routing}\" }}"),
        ];
        let answer = program::run(&["eval", tiers, "--format", "json", "--set", &settings[0], "--set", &settings[1]]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        serde_json::from_str::<Value>(&answer.stdout).unwrap()
    };
    let mut before = 0.0;
    for open in [64, 256, 1024, 4096, 16384] {
        let (aware, balanced) = (with("cache-aware", open), with("balanced", open));
        for json in [&aware, &balanced] {
            assert!((figure(json, "open_count") / f64::from(open) - 1.0).abs() < 1e-9);
            // By Little's law latencies are the mean over all of them, not that of the busiest replica.
            let whole = figure(json, "ttft_s") + figure(json, "tpot_s") * 400.0;
            let here = figure(json, "requests_per_s") * whole;
            assert!((here / f64::from(open) - 1.0).abs() < 1e-6, "{open}: {here}");
        }
        // Those that go to the busiest are the latest.
        assert!(figure(&aware, "tpot_p95_s") > figure(&aware, "tpot_s") * 1.002, "{open}");
        let (served, anywhere) = (figure(&aware, "requests_per_s"), figure(&balanced, "requests_per_s"));
        let uneven = figure(&aware, "busiest_replica_ratio");
        assert!(uneven > 1.3 && served >= before * (1.0 - 1e-6), "{open}: {served} {before}");
        // With few open every replica has room for all of them; with many the busiest is all that counts.
        assert!(open > 64 || served > 0.8 * anywhere, "{open}: {served} {anywhere}");
        let most = figure(&aware, "most_requests_per_s");
        assert!(served <= most * 1.000_001 && (open < 16384 || served > 0.97 * most), "{open}: {served} {most}");
        before = served;
    }
}

#[test]
fn pools_take_as_many_to_their_prefixes_as_they_are_told_to() {
    let tiers = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    for prefixes in [1, 3, 5, 10, 24] {
        let cache = format!("serving.cache={{ prefixes = {prefixes}, prefix_tokens = 6000, popularity = 0.7 }}");
        let with = |arrivals: &str| {
            let arrivals = format!("serving.arrivals={arrivals}");
            let set =
                ["--set", pools, "--set", &cache, "--set", &arrivals, "--set", "serving.cache.routing=\"cache-aware\""];
            let answer = program::run(&[&["eval", tiers, "--format", "json"], &set[..]].concat());
            (answer.code, serde_json::from_str::<Value>(&answer.stdout).unwrap_or_default())
        };
        let most = figure(&with("\"max\"").1, "most_requests_per_s");
        for (part, code) in [(0.6, 0), (0.9, 0), (0.999, 0), (1.001, 1)] {
            let (found, json) = with(&format!("{{ rate = \"{} request/s\" }}", most * part));
            assert_eq!(found, code, "{prefixes} {part}: {}", json["infeasible"]);
            let told = if code == 0 { figure(&json, "most_requests_per_s") } else { most };
            assert!((told / most - 1.0).abs() < 1e-3, "{prefixes} {part}: {told} {most}");
        }
    }
}
