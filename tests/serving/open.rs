//! Latencies scatter where a number of requests is open, and where as many as can be are served.

use super::{eval, figure, serving};

const MODES: [&str; 2] = ["serving.arrivals={ concurrency = 256 }", "serving.arrivals=\"max\""];

#[test]
fn quantiles_stand_in_all_modes_and_pools() {
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    for mode in MODES.iter().chain(&["serving.arrivals={ concurrency = 256, prompts = 2560 }"]) {
        for layout in ["serving.layout={ tensor = 4 }", pools] {
            let (code, json, stderr) = eval(&[mode, layout]);
            assert_eq!(code, 0, "{mode}: {stderr}");
            let of = serving(&json);
            for latency in ["ttft", "tpot", "e2e"] {
                let [half, most, nearly] = ["p50", "p95", "p99"].map(|share| of(&format!("{latency}_{share}_s")));
                assert!(
                    0.0 < half && half <= most && most <= nearly,
                    "{mode} {layout} {latency}: {half} {most} {nearly}"
                );
            }
            // Tokens of a number that is open scatter little; answers by their lengths.
            assert!((of("tpot_p50_s") / of("tpot_s") - 1.0).abs() < 0.01 && of("tpot_p99_s") < of("tpot_s") * 1.1);
        }
    }
}

#[test]
fn quantiles_of_one_length_that_do_not_spread_say_why() {
    let told = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        let said = json["notes"].as_array().unwrap().iter().any(|note| note.to_string().contains("do not spread"));
        assert_eq!(said, figure(&json, "ttft_p99_s") < figure(&json, "ttft_p50_s") * (1.0 + 1e-9), "{settings:?}");
        said
    };
    let open = "serving.arrivals={ concurrency = 256 }";
    let one_length = "serving.input_tokens=2048";
    assert!(told(&[open, one_length]) && told(&["serving.arrivals=\"max\"", one_length]));
    assert!(!told(&[open]) && !told(&[one_length]));
}

#[test]
fn no_answer_ends_before_it_begins() {
    // 116 replicas that hardly ever share a link, too.
    let many = ["cluster.accelerators=264", "serving.arrivals={ rate = \"40 request/s\" }"];
    let many = [
        &many[..],
        &["serving.layout={ prefill = { tensor = 16 }, decode = { tensor = 2 }, prefill_accelerators = 32 }"],
    ]
    .concat();
    let one = |mode: &'static str| vec!["serving.output_tokens=1", mode];
    for settings in [many, one(MODES[0]), one(MODES[1])] {
        let (code, json, stderr) = eval(&settings);
        assert_eq!(code, 0, "{settings:?}: {stderr}");
        let of = serving(&json);
        for share in ["p50", "p95", "p99"] {
            let (first, last) = (of(&format!("ttft_{share}_s")), of(&format!("e2e_{share}_s")));
            assert!(0.0 < first && first <= last, "{settings:?} {share}: {first} {last}");
        }
    }
}

#[test]
fn more_open_are_never_fewer_served_and_wait_alike() {
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 }, prefill_accelerators = 32 }";
    for setting in ["serving.layout={ tensor = 4 }", "serving.chunk_tokens=512", pools] {
        let mut before = 0.0;
        for open in [64, 512, 1_024, 100_000] {
            let (code, json, stderr) =
                eval(&["serving.output_tokens=16", setting, &format!("serving.arrivals={{ concurrency = {open} }}")]);
            assert_eq!(code, 0, "{setting}: {stderr}");
            let of = serving(&json);
            let (rate, first) = (of("requests_per_s"), of("ttft_s"));
            let most = json["serving"]["most_requests_per_s"].as_f64().unwrap_or(f64::INFINITY);
            assert!(rate > before * 0.999 && rate < most * 1.001, "{setting} {open}: {rate} {before} {most}");
            assert!(open < 512 || of("ttft_p95_s") < first * 2.2, "{setting} {open}: {first}");
            before = rate;
        }
    }
}

#[test]
fn what_is_of_one_length_and_alone_is_one_latency() {
    let (_, json, _) = eval(&["serving.input_tokens=2048", "serving.arrivals={ concurrency = 16 }"]);
    let of = serving(&json);
    for latency in ["ttft", "tpot"] {
        let mean = of(&format!("{latency}_s"));
        assert!(
            ["p50", "p95", "p99"].iter().all(|share| (of(&format!("{latency}_{share}_s")) / mean - 1.0).abs() < 1e-9)
        );
    }
    // At a rate at which hardly any meet, too.
    let (_, json, _) = eval(&["serving.input_tokens=2048", "serving.arrivals={ rate = \"0.001 request/s\" }"]);
    let at_rate = serving(&json);
    for share in ["p50", "p95", "p99"] {
        assert!((at_rate(&format!("tpot_{share}_s")) / at_rate("tpot_s") - 1.0).abs() < 1e-3, "{share}");
    }
    assert!((at_rate("tpot_s") / of("tpot_s") - 1.0).abs() < 1e-3, "{} {}", at_rate("tpot_s"), of("tpot_s"));
}

#[test]
fn limits_of_shares_are_held_in_all_modes() {
    let (_, free, _) = eval(&[MODES[1]]);
    let free = serving(&free);
    let limit = free("tpot_p95_s") * 0.8;
    let (code, json, stderr) = eval(&[MODES[1], &format!("serving.limits={{ tpot_p95 = \"{limit} s\" }}")]);
    assert_eq!(code, 0, "{stderr}");
    let kept = serving(&json);
    assert!(kept("tpot_p95_s") <= limit && kept("batch_count") < free("batch_count"));
    assert_eq!(json["serving"]["batch_bound"], "serving.limits.tpot_p95");
    let with = |limit: &str| eval(&[MODES[0], &format!("serving.limits={{ ttft_p99 = \"{limit}\" }}")]).1;
    assert_eq!(with("1 ms")["serving"]["limits_kept"], false);
    assert_eq!(with("1 hour")["serving"]["limits_kept"], true);
}

#[test]
fn a_queue_that_hardly_settles_is_told() {
    let most = figure(&eval(&["serving.arrivals={ rate = \"40 request/s\" }"]).1, "most_requests_per_s");
    let told = |share: f64| {
        let rate = format!("serving.arrivals={{ rate = \"{} request/s\" }}", most * share);
        let answer = super::program::run(&["eval", super::SCENARIO, "--set", &rate]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout.contains("nearly the most that is served")
    };
    assert!(told(1.0) && told(0.9999) && !told(0.95));
}
