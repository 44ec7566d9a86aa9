//! How much replicas take at once and serve at most, and what keeps them from more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

const DENSE: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";
const EXPERTS: &str = "scenarios/serve-deepseek-v3-wide-experts-nvl72.toml";
const ENDLESS: &str = "serving.arrivals=\"max\"";
/// One value of lengths, and pools.
const FIXED: &str = "serving.input_tokens=2048";
const POOLS: &str = "serving.layout={ prefill = { tensor = 2 }, decode = { tensor = 4 } }";

fn eval(scenario: &str, settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", scenario, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

fn answered(scenario: &str, settings: &[&str]) -> Value {
    let (code, json, stderr) = eval(scenario, settings);
    assert_eq!(code, 0, "{settings:?}: {stderr} {}", json["infeasible"]);
    json
}

fn of(json: &Value, key: &str) -> f64 {
    json["serving"][key].as_f64().unwrap_or_else(|| panic!("serving.{key}"))
}

/// A limit of a latency, in milliseconds.
fn limit(key: &str, milliseconds: f64) -> String {
    format!("serving.limits={{ {key} = \"{milliseconds} ms\" }}")
}

#[test]
fn the_largest_batch_is_the_largest_that_keeps_the_limits() {
    for (scenario, more) in [(DENSE, FIXED), (DENSE, POOLS), (EXPERTS, "cluster.accelerators=72")] {
        let free = answered(scenario, &[ENDLESS, more]);
        let mut before = 0.0;
        for part in [0.85, 0.9, 0.97, 1.0 + 1e-9] {
            let wanted = of(&free, "tpot_s") * part;
            let json = answered(scenario, &[ENDLESS, more, &limit("tpot", wanted * 1e3)]);
            let (batch, tpot) = (of(&json, "batch_count"), of(&json, "tpot_s"));
            assert!(tpot <= wanted && json["serving"]["limits_kept"] == true, "{scenario} {more} {tpot} {wanted}");
            // Looser limits let more in, serve more, and make tokens cheaper.
            let served = of(&json, "requests_per_s");
            assert!(served >= before, "{scenario} {more} {part}: {served} after {before}");
            before = served;
            if part > 1.0 {
                assert!((batch / of(&free, "batch_count") - 1.0).abs() < 1e-6, "{scenario} {more}");
                assert_eq!(json["serving"]["batch_bound"], free["serving"]["batch_bound"]);
                continue;
            }
            // Prefill's pool may let fewer in than the limit does.
            let bound = json["serving"]["batch_bound"].as_str().unwrap();
            if bound == "prefill" {
                continue;
            }
            assert_eq!(bound, "serving.limits.tpot", "{scenario} {more}");
            assert!(batch < of(&free, "batch_count"));
            if more == POOLS || scenario == EXPERTS {
                // A pool's batch is the mean of many.
                assert!(tpot > wanted * (1.0 - 1e-6), "{scenario} {more}: {tpot} of {wanted}");
                continue;
            }
            // A limit just below what it comes to lets one fewer in, and one just below what one more comes to none more.
            let at = |milliseconds: f64| answered(scenario, &[ENDLESS, more, &limit("tpot", milliseconds)]);
            assert!((of(&at(tpot * 1e3 * (1.0 - 1e-7)), "batch_count") - (batch - 1.0)).abs() < 1e-9);
            let next = at(wanted * 1e3 * 1.01);
            assert!(of(&next, "batch_count") <= batch || of(&next, "tpot_s") > wanted, "{scenario} {more}");
        }
    }
}

#[test]
fn what_bounds_a_batch_is_told() {
    let bound = |scenario: &str, settings: &[&str]| {
        answered(scenario, settings)["serving"]["batch_bound"].as_str().unwrap().to_owned()
    };
    assert_eq!(bound(DENSE, &[]), "rate");
    assert_eq!(bound(DENSE, &["serving.arrivals={ concurrency = 64 }"]), "concurrency");
    assert_eq!(bound(DENSE, &["serving.arrivals={ concurrency = 100000 }"]), "memory");
    assert_eq!(bound(DENSE, &[ENDLESS]), "memory");
    // Short requests of a small model: as many as engines take at once.
    let small = ["serving.model=\"llama-3.1-8b\"", "serving.input_tokens=128", "serving.output_tokens=64", ENDLESS];
    assert_eq!(bound(DENSE, &small), "max_num_seqs");
    // As given: with eight at once the rate at which as many end is the most, and the engine's limit is said to be what runs out.
    let few = |arrivals: &str| {
        let all = ["serving.max_num_seqs=8", "serving.layout={ tensor = 4 }", arrivals];
        eval(DENSE, &all)
    };
    let (code, json, stderr) = few(ENDLESS);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!((json["serving"]["batch_bound"].as_str(), of(&json, "batch_count")), (Some("max_num_seqs"), 8.0));
    let (code, json, _) = few("serving.arrivals={ concurrency = 100000 }");
    assert!(code == 0 && json["serving"]["batch_bound"] == "max_num_seqs" && of(&json, "batch_count") <= 8.0, "{json}");
    let (code, json, stderr) = few("serving.arrivals={ rate = \"500 request/s\" }");
    let (reason, advice) = (json["infeasible"]["reason"].to_string(), json["infeasible"]["advice"].to_string());
    assert!(code == 1 && reason.contains("(`max_num_seqs`)") && advice.contains("serving.max_num_seqs"), "{stderr}");
    // Each request at once has a row of logits at the peak of vLLM's sampling: fewer leave the cache more.
    let cache = |settings: &[&str]| {
        let settings = [&["serving.engine=\"vllm\"", "serving.arrivals={ concurrency = 1 }"], settings].concat();
        answered(DENSE, &settings)["memory"]["kv_cache_bytes"].as_f64().unwrap()
    };
    assert!(cache(&["serving.max_num_seqs=64"]) >= cache(&[]));
    let (code, _, stderr) = eval(DENSE, &["serving.max_num_seqs=0"]);
    assert!(code == 2 && stderr.contains("max_num_seqs") && stderr.contains("at least 1"), "{stderr}");
    assert_eq!(bound(DENSE, &[ENDLESS, "serving.limits={ tpot = \"20 ms\" }"]), "serving.limits.tpot");
    let long = ["serving.input_tokens=8000", "serving.output_tokens=16", ENDLESS, POOLS];
    assert_eq!(bound(DENSE, &long), "prefill");
    // Text and derivation say so too.
    let set = ["--set", ENDLESS, "--set", "serving.limits={ tpot = \"20 ms\" }"];
    let text = program::run(&[&["eval", DENSE], &set[..]].concat()).stdout;
    assert!(text.contains("As many are in decode at once as serving.limits.tpot lets"), "{text}");
    let why = program::run(&[&["explain", DENSE, "serving.batch_bound"], &set[..]].concat()).stdout;
    assert!(why.contains("serving.limits.tpot") && why.contains("20 ms"), "{why}");
}

#[test]
fn a_limit_that_one_request_misses_is_a_no_with_numbers() {
    for more in [FIXED, POOLS, "serving.layout=\"auto\""] {
        let (code, json, stderr) = eval(DENSE, &[ENDLESS, more, "serving.limits={ tpot = \"2 ms\" }"]);
        assert_eq!(code, 1, "{more}: {stderr}");
        let reason = json["infeasible"]["reason"].as_str().unwrap();
        assert!(
            reason.contains("serving.limits.tpot is 2 ms") && reason.contains("with one request at once"),
            "{reason}"
        );
    }
    // Of first tokens it is the prefill that takes longer, whatever the batch.
    let (code, json, _) = eval(DENSE, &[ENDLESS, "serving.limits={ ttft = \"20 ms\" }"]);
    assert!(code == 1 && json["infeasible"]["reason"].as_str().unwrap().contains("serving.limits.ttft"), "{json}");
}

#[test]
fn a_search_and_the_layout_that_it_finds_agree_within_limits() {
    let limits = "serving.limits={ tpot = \"25 ms\" }";
    let found = answered(DENSE, &[ENDLESS, limits, "serving.layout=\"auto\""]);
    assert_eq!(found["serving"]["limits_kept"], true);
    for tensor in [1, 2, 4, 8] {
        let layout = format!("serving.layout={{ tensor = {tensor} }}");
        let (code, given, _) = eval(DENSE, &[ENDLESS, limits, &layout]);
        if code == 0 {
            assert!(of(&given, "requests_per_s") <= of(&found, "requests_per_s") * (1.0 + 1e-9), "{tensor}");
        }
    }
    let layout = |key: &str| found["scenario"][key].as_str().map(str::to_owned);
    let tensor = layout("serving.layout.tensor").unwrap();
    if layout("serving.layout.prefill.tensor").is_none() {
        let again = answered(DENSE, &[ENDLESS, limits, &format!("serving.layout={{ tensor = {tensor} }}")]);
        assert_eq!(again["serving"], found["serving"]);
    }
}

#[test]
fn the_most_that_is_served_keeps_the_limits_and_no_more_does() {
    let limits = [
        "serving.limits={ tpot = \"25 ms\" }",
        "serving.limits={ ttft_p95 = \"900 ms\", tpot_p95 = \"30 ms\" }",
        "serving.limits={ ttft_p99 = \"1500 ms\" }",
        "serving.limits={ e2e_p95 = \"16 s\" }",
    ];
    for limits in limits {
        for more in [FIXED, POOLS] {
            let free = of(&answered(DENSE, &[more]), "most_requests_per_s");
            let asked = answered(DENSE, &[more, limits]);
            let most = of(&asked, "most_requests_per_s");
            assert!(most > 0.0 && most < free, "{limits} {more}: {most} of {free}");
            let at = |part: f64| {
                let rate = format!("serving.arrivals={{ rate = \"{} request/s\" }}", most * part);
                answered(DENSE, &[more, limits, &rate])
            };
            let (below, above) = (at(1.0 - 1e-4), at(1.0 + 1e-4));
            assert_eq!(below["serving"]["limits_kept"], true, "{limits} {more} {most}");
            assert_eq!(above["serving"]["limits_kept"], false, "{limits} {more} {most}");
            // However much is asked, it is the same, and what is over it leaves nothing free.
            assert!((of(&above, "most_requests_per_s") / most - 1.0).abs() < 1e-5, "{limits} {more}");
            assert!(of(&above, "capacity.headroom_ratio").abs() < 1e-9);
            let told =
                above["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("is missed"));
            assert!(told, "{limits} {more}");
            let headroom = 1.0 - of(&asked, "requests_per_s") / most;
            assert!((of(&asked, "capacity.headroom_ratio") - headroom.max(0.0)).abs() < 1e-6, "{limits} {more}");
        }
    }
}

/// Scenarios with other settings, each a way to serve of its own.
const WAYS: [(&str, &[&str]); 12] = [
    (DENSE, &[]),
    (DENSE, &[FIXED]),
    (DENSE, &[POOLS]),
    (DENSE, &["serving.input_tokens=8000", "serving.output_tokens=16"]),
    (DENSE, &["serving.input_tokens={ mean = 9000, cv = 1.0 }", "serving.output_tokens={ mean = 100, cv = 1.0 }"]),
    (DENSE, &["serving.layout={ tensor = 4, pipeline = 2 }"]),
    (DENSE, &[FIXED, "serving.max_num_seqs=48", "serving.prefix_hit=0.5"]),
    (
        DENSE,
        &[
            "serving.model=\"llama-3.1-8b\"",
            "serving.engine=\"sglang\"",
            "serving.layout={ tensor = 2 }",
            "serving.input_tokens=1000",
            "serving.output_tokens=700",
            "serving.prefix_hit=0.9",
        ],
    ),
    (DENSE, &["serving.model=\"llama-3.1-8b\"", "serving.layout={ tensor = 1 }", "serving.input_tokens=128"]),
    (
        DENSE,
        &[
            "serving.model=\"gpt-oss-120b\"",
            "serving.chunk_tokens=2048",
            "serving.kv_cache=\"bf16\"",
            "serving.weights=\"mxfp4\"",
        ],
    ),
    (EXPERTS, &[]),
    (EXPERTS, &["serving.layout={ tensor = 1, attention_data = 8, expert = 8 }"]),
];

#[test]
fn what_is_served_at_most_is_served_and_no_more() {
    const PROMPTS_BIND: [&str; 2] = ["serving.output_tokens=16", "serving.output_tokens={ mean = 100, cv = 1.0 }"];
    for (scenario, more) in WAYS {
        let at = |rate: f64| {
            let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
            eval(scenario, &[more, &[rate.as_str()]].concat())
        };
        let (code, json, stderr) = eval(scenario, &[more, &[ENDLESS]].concat());
        assert_eq!(code, 0, "{scenario} {more:?}: {stderr}");
        let most = of(&json, "most_requests_per_s");
        // Without end as many are served as that.
        let without_end = of(&json, "requests_per_s") / most;
        assert!((without_end - 1.0).abs() < 1e-9, "{scenario} {more:?} {without_end}");
        let (code, below, stderr) = at(most * (1.0 - 1e-6));
        assert_eq!(code, 0, "{scenario} {more:?} {most}: {stderr} {}", below["infeasible"]);
        assert!((of(&below, "most_requests_per_s") / most - 1.0).abs() < 1e-6, "{scenario} {more:?}");
        assert!(of(&below, "capacity.headroom_ratio").abs() < 2e-6);
        let (code, above, _) = at(most * (1.0 + 1e-6));
        assert_eq!(code, 1, "{scenario} {more:?} {most}");
        let reason = above["infeasible"]["reason"].as_str().unwrap();
        assert!(reason.contains(" at most: "), "{reason}");
        // As it fills up, as many are in decode as without end, and half of tokens and all on average come at the same pace: but for
        // a request's own prefill, which none of its tokens waits for, and for what those that begin together save.
        let (below, full) = (&below, &json);
        let filled = |key: &str| of(below, key) / of(full, key) - 1.0;
        let own = of(full, "batch_count").recip();
        // Where prompts bind, those that come wait for their prefill rather than in decode, which has room left.
        let prompts_bind = PROMPTS_BIND.iter().any(|answers| more.contains(answers));
        let fills = |key: &str| filled(key).abs() < 1.5e-3 + own;
        assert!(
            if prompts_bind { filled("batch_count") < -0.5 } else { fills("batch_count") },
            "{scenario} {more:?}: {}",
            filled("batch_count")
        );
        for key in ["tpot_s", "tpot_p50_s"] {
            let told = filled(key);
            assert!(if prompts_bind { told < -0.5 } else { fills(key) }, "{scenario} {more:?} {key}: {told}");
        }
        // As many open as are then come to as much.
        let many = format!("serving.arrivals={{ concurrency = {} }}", (of(below, "open_count") * 2.0).min(4e9).round());
        let closed = answered(scenario, &[more, &[many.as_str()]].concat());
        let part = of(&closed, "requests_per_s") / most;
        assert!(part > 0.98 && part < 1.01, "{scenario} {more:?}: {part}");
        assert!((of(&closed, "most_requests_per_s") / most - 1.0).abs() < 1e-9, "{scenario} {more:?}");
        // The nearer to it, the longer are waits.
        let (mut before, mut queued, mut paced) = (0.0, 0.0, 0.0);
        for part in [0.5, 0.8, 0.95, 0.99, 0.999, 0.9999] {
            let (_, json, _) = at(most * part);
            let (ttft, waits) = (of(&json, "ttft_s"), of(&json, "queue_s"));
            assert!(of(&json, "tpot_s") >= paced, "{scenario} {more:?} {part}");
            paced = of(&json, "tpot_s");
            assert!(
                ttft >= before * (1.0 - 1e-6) && waits >= queued,
                "{scenario} {more:?} {part}: {waits} after {queued}"
            );
            (before, queued) = (ttft, waits);
        }
    }
}

/// With a number open, more open never serve less, and never more than the most.
#[test]
fn more_open_serve_no_less() {
    const SHORT: [&str; 3] = ["serving.input_tokens=4096", "serving.output_tokens=16", "serving.chunk_tokens=512"];
    const LONG: [&str; 2] = ["serving.input_tokens=30000", "serving.output_tokens=4"];
    for (scenario, more) in WAYS.into_iter().chain([(DENSE, &SHORT[..]), (DENSE, &LONG[..])]) {
        let mut before = 0.0;
        for open in [4, 16, 20, 47, 64, 128, 145, 300, 1_000, 3_000, 9_000, 15_777, 40_000] {
            let json = answered(scenario, &[more, &[&format!("serving.arrivals={{ concurrency = {open} }}")]].concat());
            let (served, most) = (of(&json, "requests_per_s"), of(&json, "most_requests_per_s"));
            assert!(served >= before * (1.0 - 1e-12), "{scenario} {more:?} {open}: {served} after {before}");
            assert!(served <= most * (1.0 + 1e-9), "{scenario} {more:?} {open}: {served} of {most}");
            before = served;
        }
    }
}

#[test]
fn engines_take_as_many_at_once_as_they_do_by_default() {
    let of = |engine: &str, more: &[&str]| {
        let engine = format!("serving.engine=\"{engine}\"");
        let small = ["serving.model=\"llama-3.1-8b\"", "serving.layout={ tensor = 1 }", "serving.input_tokens=100"];
        let settings = [&small[..], &["serving.output_tokens=50", ENDLESS, &engine], more].concat();
        let json = answered(DENSE, &settings);
        let told = json["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("by default"));
        (of(&json, "batch_count"), json["serving"]["batch_bound"].as_str().unwrap().to_owned(), told)
    };
    let bound = |batch: f64, told: bool| (batch, "max_num_seqs".to_owned(), told);
    // vLLM: 1,024 from 70 GiB on but for A100, which keep 256; SGLang at least 2,048, TensorRT-LLM 2,048; all in each attention group.
    assert_eq!(of("vllm", &[]), bound(1_024.0, true));
    assert_eq!(
        of(
            "vllm",
            &[
                "cluster.node=\"hgx-a100-8\"",
                "cluster.fabric=\"quantum-hdr\"",
                "serving.weights=\"bf16\"",
                "serving.kv_cache=\"bf16\""
            ]
        ),
        bound(256.0, true)
    );
    assert_eq!(of("sglang", &[]), bound(2_048.0, true));
    assert_eq!(of("trtllm", &[]), bound(2_048.0, true));
    let groups = "serving.layout={ tensor = 1, attention_data = 2 }";
    assert_eq!(of("vllm", &[groups]), bound(2_048.0, true));
    assert_eq!(of("vllm", &["serving.max_num_seqs=3000"]), bound(3_000.0, false));
}

#[test]
fn with_spares_as_much_is_served_as_by_the_others() {
    let spares = "serving.spare_replicas=2";
    let most = of(&answered(DENSE, &[FIXED, spares]), "most_requests_per_s");
    let at = |part: f64| {
        let rate = format!("serving.arrivals={{ rate = \"{} request/s\" }}", most * 14.0 / 16.0 * part);
        eval(DENSE, &[FIXED, spares, &rate]).0
    };
    assert_eq!([at(1.0 - 1e-6), at(1.0 + 1e-6)], [0, 1]);
}

#[test]
fn what_runs_out_is_what_more_of_would_serve_more() {
    // 123 billion parameters: prompts take nearly all of the time, however many are in decode beside.
    let long = [
        "serving.model=\"mistral-large-2407\"",
        "serving.weights=\"bf16\"",
        "serving.prefix_hit=0",
        "serving.input_tokens=3000",
        "serving.output_tokens=300",
        "serving.layout={ tensor = 8 }",
    ];
    let with = |more: &[&str]| {
        let (code, json, stderr) = eval(DENSE, &[&long[..], more].concat());
        let refused = |key: &str| json["infeasible"][key].as_str().map(str::to_owned);
        (code, refused("reason").unwrap_or(stderr))
    };
    let most = |more: &[&str]| of(&answered(DENSE, &[&long[..], &[ENDLESS], more].concat()), "requests_per_s");
    let often = "serving.arrivals={ rate = \"1000 request/s\" }";
    for (format, seqs) in [("serving.kv_cache=\"bf16\"", 1_024), ("serving.kv_cache=\"fp8\"", 256)] {
        let (code, reason) = with(&[often, format, &format!("serving.max_num_seqs={seqs}")]);
        assert!(code == 1 && reason.ends_with("no more time is left for prompts"), "{reason}");
    }
    // More room and more places do nothing.
    let places = |seqs: u32| most(&["serving.kv_cache=\"fp8\"", &format!("serving.max_num_seqs={seqs}")]);
    assert!(places(512) / places(256) < 1.001 && places(16) / places(8) > 1.1);
    // With few places more of them do, and that is what is told.
    let (code, reason) = with(&[often, "serving.max_num_seqs=8"]);
    assert!(code == 1 && reason.contains("as many requests run as engines take at once (`max_num_seqs`)"), "{reason}");
    // Without prompts to speak of and with long answers each brings a cache to read, which more room does not shorten.
    let answers = ["serving.input_tokens=100", "serving.output_tokens=20000", "serving.max_num_seqs=4096", often];
    let (code, json, _) = eval(DENSE, &answers);
    let reason = json["infeasible"]["reason"].as_str().unwrap_or_default();
    assert!(code == 1 && reason.ends_with("no more time is left for tokens of answers"), "{reason}");
}
