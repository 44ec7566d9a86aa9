//! Requests of a recorded trace and at random: quantiles, bursts, and the hours of a day.

use serde_json::Value;

use super::{SCENARIO, eval, figure, program, serving};

/// A file of a scenario beside a trace.
pub(super) fn with_trace(rows: &str, settings: &[&str]) -> (i32, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.csv"), rows).unwrap();
    let text = std::fs::read_to_string(SCENARIO).unwrap();
    let text = text.replace("input_tokens = { mean = 2048, cv = 0.5 }\noutput_tokens = 512", "trace = \"trace.csv\"");
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", path.to_str().unwrap(), "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

/// The rows of a trace.
pub(super) fn trace(rows: impl Iterator<Item = (f64, f64, f64)>) -> String {
    let row = |(at, input, output): (f64, f64, f64)| format!("{at:.4},{input:.0},{output:.0}\n");
    rows.map(row).fold("arrival_s,input_tokens,output_tokens\n".to_owned(), |text, row| text + &row)
}

const QUANTILES: [&str; 9] = [
    "ttft_p50_s",
    "ttft_p95_s",
    "ttft_p99_s",
    "tpot_p50_s",
    "tpot_p95_s",
    "tpot_p99_s",
    "e2e_p50_s",
    "e2e_p95_s",
    "e2e_p99_s",
];

#[test]
fn a_trace_of_one_length_is_that_length() {
    let rows = trace((0..100).map(|row| (f64::from(row), 2_048.0, 512.0)));
    let (code, traced, stderr) = with_trace(&rows, &[]);
    assert_eq!(code, 0, "{stderr}");
    let (_, fixed, _) = eval(&["serving.input_tokens=2048"]);
    let (traced, fixed) = (serving(&traced), serving(&fixed));
    for key in QUANTILES.into_iter().chain(["ttft_s", "tpot_s", "batch_count", "max_concurrency_count"]) {
        assert!((traced(key) / fixed(key) - 1.0).abs() < 1e-9, "{key}");
    }
}

#[test]
fn a_trace_that_is_lognormal_and_comes_at_random_is_what_the_queue_says() {
    // Numbers of a linear congruential generator (Knuth's MMIX), two of them a normal one (Box and Muller).
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let lengths: Vec<(f64, f64)> = (0..20_000)
        .map(|_| {
            // A coefficient of variation of 0.5: sigma^2 = ln 1.25.
            let (sigma, half) = (1.25_f64.ln().sqrt(), 1.25_f64.ln() / 2.0);
            (2_048.0 * (sigma * normal() - half).exp(), 512.0 * (sigma * normal() - half).exp())
        })
        .collect();
    let mut now = 0.0;
    let mut coming = lengths.iter().map(|(input, output)| {
        now -= uniform().ln();
        (now, *input, *output)
    });
    let rows = trace(&mut coming);
    // One engine of eight GPUs whose prefill is busy for a half and for two thirds of the time; of so many requests, P99 of the
    // wait is told to about 5%.
    let shape = ["cluster.accelerators=8", "serving.layout.tensor=8", "serving.prefix_hit=0"];
    let both = ["serving.input_tokens={ mean = 2048, cv = 0.5 }", "serving.output_tokens={ mean = 512, cv = 0.5 }"];
    // And four prefill workers of one GPU, each with what it takes in together, before four GPUs of decode.
    let pools = [
        "cluster.accelerators=8",
        "serving.layout={ decode = { tensor = 4 }, prefill = { tensor = 1 }, prefill_accelerators = 4 }",
        "serving.prefix_hit=0",
    ];
    for (shape, rate) in [(shape, "5 request/s"), (shape, "7 request/s"), (pools, "8 request/s")] {
        let random = format!("serving.arrivals={{ rate = \"{rate}\" }}");
        let replayed = format!("serving.arrivals={{ rate = \"{rate}\", replay = true }}");
        let (code, formula, stderr) = eval(&[&shape[..], &both[..], &[random.as_str()]].concat());
        assert_eq!(code, 0, "{stderr}");
        let (code, replay, stderr) = with_trace(&rows, &[&shape[..], &[replayed.as_str()]].concat());
        assert_eq!(code, 0, "{stderr}");
        let (formula, replay) = (serving(&formula), serving(&replay));
        for key in QUANTILES.into_iter().chain(["ttft_s", "tpot_s"]) {
            let error = formula(key) / replay(key) - 1.0;
            assert!(error.abs() < 0.1, "{key} at {rate}: {} by formula, {} replayed", formula(key), replay(key));
        }
        assert!(formula("queue_s") > 0.02, "{}", formula("queue_s"));
    }
}

#[test]
fn what_comes_in_bursts_waits_longer() {
    let of = |cv: &str| serving(&eval(&[&format!("serving.arrivals={{ rate = \"60 request/s\"{cv} }}")]).1);
    let (random, same, even, bursts) = (of(""), of(", cv = 1"), of(", cv = 0"), of(", cv = 6"));
    for key in QUANTILES {
        assert_eq!(random(key).to_bits(), same(key).to_bits(), "{key}");
    }
    for key in ["queue_s", "ttft_p95_s", "tpot_p99_s"] {
        assert!(even(key) < random(key) && random(key) < bursts(key), "{key}");
    }
    // Recorded requests: 64 at once every 1.6 s wait, eight in a replica, where 64 in a row do not.
    let replay = ["serving.arrivals=\"trace\""];
    let even = with_trace(&trace((0..640).map(|row| (0.025 * f64::from(row), 2_048.0, 512.0))), &replay).1;
    let burst = trace((0..640).map(|row| (1.6 * f64::from(row / 64) + 1e-4 * f64::from(row % 64), 2_048.0, 512.0)));
    let burst = with_trace(&burst, &["cluster.accelerators=32", replay[0]]).1;
    assert!(serving(&even)("queue_s") < 1e-9, "{}", even["serving"]["queue_s"]);
    assert!(serving(&burst)("queue_s") > 0.01 && serving(&burst)("ttft_p99_s") > 1.2 * serving(&burst)("ttft_p50_s"));
    assert!((serving(&even)("requests_per_s") - 40.0).abs() < 1e-6);
    // A trace that ends long before so many are in decode as would be at its rate without end: the mean is the trace's too.
    let short = trace((0..320).map(|row| (f64::from(row) / 80.0, 2_048.0, 512.0)));
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    for layout in ["serving.layout.tensor=4", pools] {
        let (code, json, stderr) = with_trace(&short, &[layout, replay[0]]);
        assert_eq!(code, 0, "{stderr}");
        let of = serving(&json);
        let [mean, p50, p99] = ["tpot_s", "tpot_p50_s", "tpot_p99_s"].map(&of);
        assert!(0.9 * p50 < mean && mean < p99, "{layout}: {p50} {mean} {p99}");
    }
}

#[test]
fn quantiles_stand_in_their_order_in_the_widest_bursts() {
    for cv in [0, 1, 10, 100] {
        let (code, json, stderr) = eval(&[&format!("serving.arrivals={{ rate = \"40 request/s\", cv = {cv} }}")]);
        assert_eq!(code, 0, "{stderr}");
        for of in ["ttft", "tpot", "e2e"] {
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(|share| figure(&json, &format!("{of}_{share}_s")));
            assert!(p50 <= p95 && p95 <= p99, "{of} at {cv}: {p50} {p95} {p99}");
        }
    }
}

#[test]
fn a_benchmarks_opening_burst_is_another_mode_than_arrivals() {
    let ttft = |prompts: &str| {
        let setting = format!("serving.arrivals={{ concurrency = 512{prompts} }}");
        let (code, json, stderr) = eval(&[&setting, "serving.input_tokens=2048"]);
        assert_eq!(code, 0, "{stderr}");
        serving(&json)("ttft_s")
    };
    let (one, ten, endless) = (ttft(", prompts = 512"), ttft(", prompts = 5120"), ttft(""));
    assert!(one > ten && ten > endless, "{one} {ten} {endless}");
    // Of 32 open in a replica, each waits for half of the others in a single burst, a tenth of that in ten rounds.
    assert!(((one - endless) / (ten - endless) - 10.0).abs() < 1.0, "{one} {ten} {endless}");
}

#[test]
fn capacity_is_of_the_peak_and_cost_of_the_mean() {
    let rate = |rate: &str| format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
    let (_, peak, _) = eval(&[&rate("60")]);
    let (_, day, _) = eval(&[&rate("40"), "serving.peak_to_mean=1.5"]);
    let (served, mean) = (serving(&peak), serving(&day));
    for key in QUANTILES {
        assert!((served(key) / mean(key) - 1.0).abs() < 1e-9, "{key}");
    }
    assert!((mean("mean_requests_per_s") - 40.0).abs() < 1e-9 && (mean("requests_per_s") - 60.0).abs() < 1e-9);
    // The same machines for two thirds of the tokens.
    let of = |json: &Value| json["cost"]["usd_per_mtok_blended"].as_f64().unwrap();
    assert!((of(&day) / of(&peak) - 1.5).abs() < 1e-9);
    // One replica of 16 stands by: latencies are those of 15, and it is paid for.
    let (_, spare, _) = eval(&[&rate("60"), "serving.spare_replicas=1"]);
    assert_eq!(
        (spare["serving"]["replicas_count"].as_u64(), spare["serving"]["spare_replicas_count"].as_u64()),
        (Some(15), Some(1))
    );
    assert!(serving(&spare)("ttft_p95_s") > served("ttft_p95_s"));
    let both = eval(&[&rate("40"), "serving.peak_to_mean=1.5", "serving.spare_replicas=1"]).1;
    for json in [&peak, &day, &spare, &both] {
        let cost = |key: &str| json["cost"][key].as_f64().unwrap_or_default();
        let blended = cost("usd_per_mtok_blended");
        let capacity: f64 =
            ["used", "off_peak", "headroom", "standby"].iter().map(|key| cost(&format!("usd_per_mtok_{key}"))).sum();
        assert!((capacity / blended - 1.0).abs() < 1e-9, "{capacity} and {blended}");
        let shares: f64 = ["used", "off_peak", "headroom", "standby"]
            .iter()
            .map(|key| json["serving"][format!("capacity.{key}_ratio")].as_f64().unwrap_or_default())
            .sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        // Of answers, all that is paid for: by elements, and by both kinds of token over those of answers.
        let elements: f64 = ["weights", "kv", "compute", "network", "waiting"]
            .iter()
            .map(|key| cost(&format!("usd_per_mtok_output_{key}")))
            .sum();
        assert!((elements / (blended * 2_560.0 / 512.0) - 1.0).abs() < 1e-9, "{elements} and {blended}");
        // A second of 64 GPUs is what the tokens of a second cost, on the mean of a day.
        let paid = serving(json)("mean_requests_per_s") * 2_560.0 * blended;
        assert!((paid / (cost("usd_per_useful_gpu_hour") * 64.0 / 3_600.0 * 1e6) - 1.0).abs() < 1e-9);
    }
    let (code, json, _) = eval(&["serving.spare_replicas=16"]);
    assert_eq!(code, 1);
    assert!(
        json["infeasible"]["reason"].as_str().unwrap().contains("leave no replica of 4 beside 16 to spare"),
        "{json}"
    );
}

#[test]
fn mistakes_of_a_trace_are_told_with_their_rows() {
    for (rows, settings, said) in [
        ("input_tokens,output_tokens\n100,20\n100,x\n", &[][..], "\"x\" under `output_tokens` is no number"),
        ("input_tokens,output_tokens\n100,20\n100\n", &[], "a row of 1 cells under 2 columns"),
        ("input_tokens,output_tokens\n100,20\n0,20\n", &[], "0 under `input_tokens`"),
        ("arrival_s,input_tokens,output_tokens\n5,100,20\n4,100,20\n", &[], "a time of 4 s after one of 5 s"),
        ("arrival_s,input_tokens,output_tokens\n-5,100,20\n4,100,20\n", &[], "a time of -5 s, before the beginning"),
        ("input_tokens,output_tokens,input_tokens\n100,20,5\n", &[], "two columns are called `input_tokens`"),
        ("input_tokens,answers\n100,20\n", &[], "a trace has no column `answers`"),
        ("input_tokens\n100\n", &[], "has no column `output_tokens`"),
        ("input_tokens,output_tokens\n", &[], "has no request"),
        ("input_tokens,output_tokens\n100,20\n", &["serving.arrivals=\"trace\""], "does not say when requests came"),
        (
            "input_tokens,output_tokens\n100,20\n",
            &["serving.input_tokens=5"],
            "`serving.input_tokens` follows from `serving.trace`",
        ),
        ("input_tokens,output_tokens\n100,20\n", &["serving.trace=\"none.csv\""], "none.csv"),
    ] {
        let (code, _, stderr) = with_trace(rows, settings);
        assert_eq!(code, 2, "{rows}: {stderr}");
        assert!(stderr.contains(said), "{rows}: {stderr}");
    }
    // The place is the row's line of the trace.
    let (_, _, stderr) = with_trace("# a note\ninput_tokens,output_tokens\n100,20\n-4,20\n", &[]);
    assert!(stderr.contains("trace.csv:4:1") && stderr.contains("-4,20"), "{stderr}");
    // The longest that the engine takes has to fit.
    let long = trace((0..100).map(|row| (f64::from(row), if row == 50 { 3e6 } else { 100.0 }, 20.0)));
    let (code, json, _) = with_trace(&long, &["serving.max_model_len=4000000"]);
    assert_eq!(code, 1);
    assert!(json["infeasible"]["reason"].as_str().unwrap().contains("3000020 tokens"), "{json}");
}

#[test]
fn terms_of_arrivals_that_do_not_belong_are_refused() {
    for (setting, said) in [
        ("serving.arrivals={ concurrency = 64, cv = 2 }", "is of requests that come at a rate"),
        ("serving.arrivals={ rate = \"4 request/s\", prompts = 64 }", "a benchmark's"),
        ("serving.arrivals={ concurrency = 64, prompts = 6 }", "6 prompts in all are fewer than the 64"),
        ("serving.arrivals=\"trace\"", "there is no `serving.trace`"),
        ("serving.arrivals={ rate = \"0 request/s\" }", "such as \"40 request/s\""),
        ("serving.arrivals={ rate = \"40 request/s\", cv = 101 }", "`serving.arrivals.cv` is above 100"),
        ("serving.peak_to_mean=0.5", "outside 1 to 1000"),
        ("serving.spare_replicas=-1", "a whole number from 0"),
    ] {
        let (code, _, stderr) = eval(&[setting]);
        assert_eq!(code, 2, "{setting}");
        assert!(stderr.contains(said), "{setting}: {stderr}");
    }
    let (code, _, stderr) = eval(&["serving.arrivals=\"max\"", "serving.peak_to_mean=2"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`serving.peak_to_mean` is of requests that come at a rate"), "{stderr}");
}
