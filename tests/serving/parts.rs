//! Slices of accelerators and the tenants that share them.

use serde_json::Value;

use super::{eval, figure, program};

#[test]
fn slices_are_gpus_of_their_own() {
    let small = ["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", "serving.arrivals=\"max\""];
    let of = |more: &[&str]| {
        let (code, json, stderr) = eval(&[&small[..], more].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (whole, slices) = (of(&[]), of(&["serving.slice=\"3g.40gb\""]));
    // Two of half the memory and its bandwidth, and of three sevenths of the multiprocessors.
    assert_eq!(slices["serving"]["replicas_count"], 128);
    assert_eq!(slices["serving"]["slices_per_gpu_count"], 2);
    let usable = |json: &Value| json["memory"]["usable_bytes"].as_f64().unwrap();
    let capacity = 81_559.0 * 1_048_576.0;
    assert!((usable(&whole) - usable(&slices) - capacity / 2.0).abs() < 1.0);
    // The same weights are read by both halves: less is served than by the whole, and more than half of it.
    let each = |json: &Value| figure(json, "output_tokens_per_s_per_gpu");
    let ratio = each(&slices) / each(&whole);
    assert!(ratio > 0.5 && ratio < 1.0, "{ratio}");
    let rate = figure(&slices, "requests_per_s") * 512.0 / 64.0;
    assert!((rate / each(&slices) - 1.0).abs() < 1e-9);
    assert_eq!(slices["serving"]["uncalibrated"], true);
    let notes: Vec<&str> = slices["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notes.iter().any(|note| note.contains("with slices of an accelerator;")), "{notes:?}");
    // What 64 GPUs cost in a second is what its tokens cost.
    let of = |key: &str| slices["cost"][key].as_f64().unwrap();
    let paid = of("usd_per_mtok_blended") * figure(&slices, "requests_per_s") * 2_560.0;
    assert!((paid / (of("usd_per_useful_gpu_hour") * 64.0 / 3_600.0 * 1e6) - 1.0).abs() < 1e-9);
}

#[test]
fn every_slice_is_cut_as_often_as_it_is() {
    // Of an H100 of 80 GB, as NVIDIA's user guide of MIG lists its profiles.
    for (slice, instances) in [("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2)] {
        let slice = format!("serving.slice=\"{slice}\"");
        let (code, json, stderr) = eval(&["serving.model=\"llama-3.1-8b\"", "serving.layout={ tensor = 1 }", &slice]);
        assert_eq!(code, 0, "{slice}: {stderr}");
        assert_eq!(json["serving"]["slices_per_gpu_count"], instances, "{slice}");
        assert_eq!(json["serving"]["replicas_count"], 64 * instances, "{slice}");
    }
}

/// A small model on shares of each GPU, with so many requests open on each of its replicas.
fn shared(slice: &str, each: u32, replicas: u32) -> Value {
    let open = format!("serving.arrivals={{ concurrency = {} }}", each * replicas);
    let mut settings = vec!["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", open.as_str()];
    let slice = format!("serving.slice={slice}");
    settings.extend((!slice.ends_with('=')).then_some(slice.as_str()));
    let (code, json, stderr) = eval(&settings);
    assert_eq!(code, 0, "{stderr}");
    json
}

#[test]
fn shares_of_a_gpu_are_in_turns_or_side_by_side() {
    let (whole, turns, beside) = (
        shared("", 8, 64),
        shared("{ share = 0.5, by = \"time-slicing\" }", 8, 128),
        shared("{ share = 0.5, by = \"mps\" }", 8, 128),
    );
    for json in [&turns, &beside] {
        assert_eq!(
            (&json["serving"]["replicas_count"], &json["serving"]["slices_per_gpu_count"]),
            (&128.into(), &2.into())
        );
        assert_eq!(json["serving"]["uncalibrated"], true);
        let notes: Vec<&str> = json["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(notes.iter().any(|note| note.contains("all 2 on its GPU are at work")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("with shares of an accelerator;")), "{notes:?}");
    }
    // Half of the turns, and 10.9% for switching: all of a step but the host's part of it takes 2 x 1.109 times as long.
    let step = |json: &Value| figure(json, "decode_step_s");
    let (slow, plain) = (step(&turns), step(&whole));
    assert!(slow > 1.7 * plain && slow < 2.0 * 1.109 * plain, "{slow} {plain}");
    // Of a quarter four: the host's part is no longer, so that 2.218 times what the GPU does come on top of 1.218 times.
    let fourth = step(&shared("{ share = 0.25, by = \"time-slicing\" }", 8, 256));
    assert!(((fourth - slow) / (slow - plain) / (2.218 / 1.218) - 1.0).abs() < 0.02, "{fourth} {slow} {plain}");
    // Side by side what has a time of its own takes no longer, and nothing switches: reading at half the bandwidth does.
    assert!(step(&beside) > plain && step(&beside) < slow);
    let ends = |json: &Value| figure(json, "tpot_high_s") / figure(json, "tpot_s");
    assert!((ends(&beside) / ends(&turns) - 1.51).abs() < 1e-6);
    // Memory is divided, and each process has a context of its own.
    let usable = |json: &Value| json["memory"]["usable_bytes"].as_f64().unwrap();
    assert!((usable(&whole) - usable(&turns) - 81_559.0 * 1_048_576.0 / 2.0).abs() < 1.0);
    assert_eq!(usable(&turns).to_bits(), usable(&beside).to_bits());
}

#[test]
fn all_of_a_gpu_is_a_gpu() {
    let whole = shared("", 8, 64);
    for by in ["mps", "time-slicing"] {
        let all = shared(&format!("{{ share = 1, by = \"{by}\" }}"), 8, 64);
        for group in ["serving", "memory", "cost"] {
            assert_eq!(all[group], whole[group], "{by}");
        }
    }
    // A third is a third however it is written.
    for share in ["0.333", "0.3333333333", "0.33"] {
        let thirds = shared(&format!("{{ share = {share}, by = \"mps\" }}"), 8, 192);
        assert_eq!(thirds["serving"]["slices_per_gpu_count"], 3, "{share}");
    }
    // Less memory than its share leaves less for caches.
    let less = shared("{ share = 0.5, by = \"mps\", memory = \"30 GB\" }", 8, 128);
    let usual = shared("{ share = 0.5, by = \"mps\" }", 8, 128);
    assert!(figure(&less, "max_concurrency_count") < figure(&usual, "max_concurrency_count"));
}

#[test]
fn shares_that_cannot_be_are_refused_with_their_place() {
    let small = "serving.layout={ tensor = 1 }";
    for (slice, said) in [
        ("{ share = 0, by = \"mps\" }", "takes 48 processes"),
        ("{ share = 0.01, by = \"mps\" }", "takes 48 processes"),
        ("{ share = 50, by = \"mps\" }", "50% is 0.5"),
        ("{ share = 0.5, by = \"mig\" }", "mps"),
        ("{ share = 0.5 }", "serving.slice.by"),
        ("{ by = \"mps\" }", "serving.slice.share"),
        ("{ share = 0.5, by = \"mps\", memory = \"60 GB\" }", "2 replicas on each"),
        ("{ share = 0.5, by = \"mps\", memory = \"0 GB\" }", "no memory"),
        ("0.5", "serving.slice"),
    ] {
        let (code, _, stderr) = eval(&["serving.model=\"llama-3.1-8b\"", small, &format!("serving.slice={slice}")]);
        assert!(code == 2 && stderr.contains(said) && stderr.matches("error[").count() == 1, "{slice}: {stderr}");
    }
    let (code, _, stderr) = eval(&["serving.slice={ share = 0.5, by = \"mps\" }"]);
    assert!(code == 2 && stderr.contains("each other's turns"), "{stderr}");
}

#[test]
fn tenants_together_take_less_than_apart() {
    let tenants = "serving.tenants={ count = 40, mean = \"0.05 request/s\", peak = \"2 request/s\" }";
    let settings = ["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", "serving.arrivals=\"max\"", tenants];
    let (code, whole, stderr) = eval(&settings);
    assert_eq!(code, 0, "{stderr}");
    // A whole GPU serves more than any tenant asks for: one each, apart. Together they ask for 40 x 0.05 + sqrt(40) x 1.95 =
    // 14.33 a second.
    assert!((figure(&whole, "tenants_apart_count") - 40.0).abs() < 1e-9);
    let each = figure(&whole, "requests_per_s") / 64.0;
    assert!((figure(&whole, "tenants_pooled_count") - (14.33 / each).ceil()).abs() < 1e-9, "{each}");
    // Slices come nearer to what a tenant alone asks for.
    let (_, slices, _) = eval(&[&settings[..], &["serving.slice=\"1g.20gb\""]].concat());
    assert!(figure(&slices, "tenants_apart_count") < 40.0);
    assert!(figure(&slices, "tenants_pooled_count") <= figure(&slices, "tenants_apart_count"));
}

#[test]
fn tenants_of_other_hours_take_the_parts_that_others_leave() {
    let settings = ["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", "serving.slice=\"1g.20gb\""];
    let of = |hours: [&str; 2]| {
        let class =
            |hour| format!("{{ count = 20, mean = \"2 request/s\", peak = \"4 request/s\", busiest_hour = {hour} }}");
        let tenants = format!("serving.tenants=[{}, {}]", class(hours[0]), class(hours[1]));
        let (code, json, stderr) = eval(&[&settings[..], &["serving.arrivals=\"max\"", &tenants]].concat());
        assert_eq!(code, 0, "{stderr}");
        ["apart", "reallocated", "pooled"].map(|how| figure(&json, &format!("tenants_{how}_count")))
    };
    let ([apart, by_hour, pooled], same) = (of(["2", "14"]), of(["14", "14"]));
    // Offices of opposite hours: shared, half of what each has for itself; given by the hour, between.
    assert!(
        (pooled / apart - 0.5).abs() < 0.1 && pooled <= by_hour && by_hour < 0.9 * apart,
        "{apart} {by_hour} {pooled}"
    );
    assert!((same[1] - same[0]).abs() < 1e-9 && same[2] <= same[0] && (same[0] - apart).abs() < 1e-9, "{same:?}");
    for (tenants, said, hint) in [
        ("[]", "names nobody", "name at least one"),
        ("{ count = 2, mean = \"1 request/s\", peak = \"2 request/s\", busiest_hour = 25 }", "outside 0 to 24", "24"),
        (
            "[{ count = 2, mean = \"1 request/s\", peak = \"60 request/s\", busiest_hour = 3 }]",
            "at one hour of the day",
            "leave busiest_hour out",
        ),
    ] {
        let (code, _, stderr) = eval(&[&format!("serving.tenants={tenants}")]);
        assert_eq!(code, 2, "{tenants}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{tenants}: {stderr}");
    }
}

#[test]
fn each_tenant_has_a_bill_and_a_latency_in_each_arrangement() {
    let (office, night) = (
        "{ count = 20, mean = \"2 request/s\", peak = \"4 request/s\", busiest_hour = 14 }",
        "{ count = 5, mean = \"6 request/s\", peak = \"20 request/s\", busiest_hour = 2 }",
    );
    let of = |tenants: &str, more: &[&str]| {
        let tenants = format!("serving.tenants={tenants}");
        let settings = [
            "serving.model=\"llama-3.1-8b\"",
            "serving.layout.tensor=1",
            "serving.slice=\"1g.20gb\"",
            "serving.arrivals={ rate = \"100 request/s\" }",
            "serving.limits={ ttft_p95 = \"2 s\" }",
            tenants.as_str(),
        ];
        let (code, json, stderr) = eval(&[&settings[..], more].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let json = of(&format!("[{office}, {night}]"), &[]);
    let bills = json["serving"]["tenants"].as_array().unwrap();
    assert_eq!(bills.len(), 2);
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    // 72 GPUs are bought for 64 at work, and four fifths of the hours are in use.
    let gpu = json["cost"]["usd_per_gpu_hour"].as_f64().unwrap() * 72.0 / 64.0;
    let cluster = json["cost"]["annualised_per_year_usd"].as_f64().unwrap() / 8_760.0;
    assert!((gpu * 64.0 / cluster - 1.0).abs() < 1e-9);
    for how in ["apart", "reallocated", "pooled"] {
        // Bills add up to what the arrangement costs, and prices to what tokens of a request take.
        let all: f64 = bills.iter().map(|bill| number(&bill["count"]) * number(&bill[how]["usd_per_hour"])).sum();
        let gpus = figure(&json, &format!("tenants_{how}_count"));
        assert!((all / (gpus * gpu) - 1.0).abs() < 1e-9, "{how}");
        assert!((all / figure(&json, &format!("tenants_{how}_usd_per_hour")) - 1.0).abs() < 1e-9);
        for bill in bills {
            let tokens = number(&bill["mean_requests_per_s"]) * 3_600.0 * 2_560.0 * 0.8;
            let price = number(&bill[how]["usd_per_hour"]) / tokens * 1e6;
            assert!((number(&bill[how]["usd_per_mtok"]) / price - 1.0).abs() < 1e-9);
            assert!((number(&bill[how]["usd_per_month"]) / number(&bill[how]["usd_per_hour"]) - 730.0).abs() < 1e-9);
            // Replicas are as many as keep the limit at the worst quarter of an hour.
            let late = number(&bill[how]["ttft"]["p95_s"]);
            assert!(late <= 2.0 * (1.0 + 1e-6) && late > 0.0, "{how}: {late}");
            assert!(number(&bill[how]["tpot"]["p99_s"]) >= number(&bill[how]["tpot"]["p50_s"]));
        }
        // Those whose day is flatter pay less for a token than those with a peak of three times the mean, unless all share.
        let prices = [0, 1].map(|index: usize| number(&bills[index][how]["usd_per_mtok"]));
        if how == "pooled" {
            assert!((prices[0] / prices[1] - 1.0).abs() < 1e-9);
        }
    }
    // A steady tenant does not pay for what others' peaks make all share: by its use it would, several times what it has apart.
    let steady = "{ count = 3, mean = \"1 request/s\", peak = \"1.2 request/s\", busiest_hour = 3 }";
    let peaky = "{ count = 5, mean = \"0.5 request/s\", peak = \"20 request/s\", busiest_hour = 15 }";
    for bill in of(&format!("[{steady}, {peaky}]"), &[])["serving"]["tenants"].as_array().unwrap() {
        let cost = |how: &str| number(&bill[how]["usd_per_hour"]);
        for how in ["reallocated", "pooled"] {
            assert!(cost(how) <= cost("apart") * (1.0 + 1e-9), "{how}: {} of {}", cost(how), cost("apart"));
        }
    }
    // Where their requests are what is served, all tokens at their prices and the hours of the GPUs that they do not need are what the
    // cluster costs, and on all of it what a million tokens cost is the same as without tenants.
    let tenants = format!("[{office}, {night}]");
    let served = of(&tenants, &["serving.arrivals=\"tenants\""]);
    let bills = served["serving"]["tenants"].as_array().unwrap();
    let mean = |bill: &Value| number(&bill["count"]) * number(&bill["mean_requests_per_s"]);
    let paid: f64 = bills.iter().map(|bill| mean(bill) * number(&bill["pooled"]["usd_per_mtok"])).sum();
    let all: f64 = bills.iter().map(mean).sum::<f64>() * served["cost"]["usd_per_mtok_blended"].as_f64().unwrap();
    let pooled = figure(&served, "tenants_pooled_count");
    assert!((paid / all - pooled / 64.0).abs() < 1e-9, "{paid} of {all} on {pooled}");
    let saved = |how: &str| figure(&json, &format!("tenants_{how}_saves_ratio"));
    assert!(saved("pooling") > saved("reallocation") && saved("reallocation") > 0.05, "{}", saved("reallocation"));
    assert!(
        (1.0 - saved("pooling") - figure(&json, "tenants_pooled_count") / figure(&json, "tenants_apart_count")).abs()
            < 1e-9
    );
    // Whose hour is not known has no parts by the hour; one tenant alone pays the same however it is served.
    let unknown = of("{ count = 3, mean = \"2 request/s\", peak = \"4 request/s\" }", &[]);
    assert!(unknown["serving"]["tenants"][0].get("reallocated").is_none());
    let alone = of("{ count = 1, mean = \"4 request/s\", peak = \"4 request/s\", busiest_hour = 3 }", &[]);
    let bill = &alone["serving"]["tenants"][0];
    for how in ["reallocated", "pooled"] {
        for key in ["usd_per_hour", "usd_per_mtok", "ttft", "tpot"] {
            assert_eq!(bill[how][key], bill["apart"][key], "{how} {key}");
        }
    }
}

#[test]
fn parts_and_adapters_that_cannot_be_are_refused_with_a_hint() {
    for (settings, said, hint) in [
        (&["serving.slice=\"5g.40gb\"", "serving.layout.tensor=1"][..], "has no slice \"5g.40gb\"", "3g.40gb"),
        (&["serving.slice=\"0.5\"", "serving.layout.tensor=1"], "has no slice \"0.5\"", "share = 0.5"),
        (&["serving.slice=\"3g.40gb\""], "do not reach each other's memory", "tensor = 1"),
        (
            &[
                "serving.slice=\"3g.40gb\"",
                "serving.layout=\"auto\"",
                "cluster.prefill={ node = \"hgx-h200-8\", accelerators = 8 }",
            ],
            "all parts of one share its network card",
            "leave cluster.prefill out, so that each part prefills and decodes",
        ),
        (&["serving.adapters={ count = 10, rank = 16, resident = 20 }"], "20 of 10 adapters", "at most count"),
        (&["serving.tenants=[]"], "`serving.tenants` names nobody", "at least one"),
        (
            &["serving.adapters={ count = 10, rank = 16, targets = \"all\" }", "serving.model=\"mixtral-8x7b\""],
            "adapters of experts are not modelled",
            "targets = \"attention\"",
        ),
        (
            &["serving.tenants={ count = 4, mean = \"2 request/s\", peak = \"1 request/s\" }"],
            "at their busiest",
            "peak at least as much",
        ),
    ] {
        let (code, _, stderr) = eval(settings);
        assert_eq!(code, 2, "{settings:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{settings:?}: {stderr}");
    }
}

/// A plan of GPUs for tenants, on whole nodes.
fn planned(settings: &[&str]) -> (i32, Value, String) {
    let scenario = "scenarios/plan-llama3.1-70b-40-rps.toml";
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let set: Vec<&str> = [one].iter().chain(settings).flat_map(|setting| ["--set", *setting]).collect();
    let answer = program::run(&[&["plan", scenario, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

#[test]
fn as_few_gpus_are_planned_as_keep_what_each_tenant_is_promised() {
    let tenants = |limits: &str| {
        let strict =
            format!("{{ count = 10, mean = \"1 request/s\", peak = \"2 request/s\", busiest_hour = 14{limits} }}");
        let steady = "{ count = 20, mean = \"1 request/s\", peak = \"1 request/s\", busiest_hour = 3 }";
        format!("serving.tenants=[{strict}, {steady}]")
    };
    let theirs = "serving.arrivals=\"tenants\"";
    let (code, alike, stderr) = planned(&[theirs, &tenants("")]);
    assert_eq!(code, 0, "{stderr}");
    let gpus =
        |plan: &Value| plan["best"]["scenario"]["cluster.accelerators"].as_str().unwrap().parse::<u32>().unwrap();
    // All together come to 10 x 2 + 20 x 1 = 40 a second at 14 o'clock, of 30 on the mean of the day: as many as at that rate.
    let (_, by_rate, _) =
        planned(&["serving.arrivals={ rate = \"30 request/s\" }", "serving.peak_to_mean=1.3333333333333333"]);
    let of = |plan: &Value, key: &str| figure(&plan["best"]["evaluation"], key);
    assert_eq!(gpus(&alike), gpus(&by_rate));
    for key in ["requests_per_s", "ttft_p95_s", "tpot_p95_s"] {
        assert!((of(&alike, key) / of(&by_rate, key) - 1.0).abs() < 1e-6, "{key}");
    }
    assert!((of(&alike, "requests_per_s") - 40.0).abs() < 1e-9);
    // A tenant that is promised more binds what all share; with replicas of their own the others keep to what they have.
    let (code, strict, stderr) = planned(&[theirs, &tenants(", limits = { tpot_p95 = \"20 ms\" }")]);
    assert_eq!(code, 0, "{stderr}");
    assert!(gpus(&strict) > gpus(&alike) && of(&strict, "tpot_p95_s") <= 0.02, "{} {}", gpus(&strict), gpus(&alike));
    assert!(of(&strict, "ttft_p95_s") <= 1.0);
    let binding = strict["best"]["binding"].to_string();
    assert!(binding.contains("the next fewer that are bought"), "{binding}");
    // One that is promised less does not loosen what others are.
    let (_, loose, _) = planned(&[theirs, &tenants(", limits = { tpot_p95 = \"90 ms\" }")]);
    assert_eq!(gpus(&loose), gpus(&alike));
    assert!(of(&loose, "tenants_apart_count") <= of(&alike, "tenants_apart_count"));
    let page = program::run(&[
        "plan",
        "scenarios/plan-llama3.1-70b-40-rps.toml",
        "--set",
        "plan.vary={ \"cluster.accelerators\" = \"auto\" }",
        "--set",
        theirs,
        "--set",
        &tenants(""),
    ]);
    assert!(page.stdout.contains("come to 40 request/s together at their busiest"), "{}", page.stdout);
}

#[test]
fn what_is_asked_of_tenants_is_said_once() {
    let tenants = "serving.tenants={ count = 4, mean = \"1 request/s\", peak = \"2 request/s\" }";
    for (settings, said, hint) in [
        (&[tenants][..], "`serving.arrivals` says others", "`serving.arrivals = \"tenants\"`"),
        (&["serving.arrivals=\"tenants\""], "there are no `serving.tenants`", "add tenants ="),
        (
            &["serving.arrivals=\"tenants\"", tenants, "serving.peak_to_mean=2"],
            "`serving.peak_to_mean` follows from `serving.tenants`",
            "leave it out",
        ),
        (
            &[
                "serving.arrivals=\"tenants\"",
                "serving.tenants={ count = 4, mean = \"1 request/s\", peak = \"2 request/s\", limits = { ttft = \"0 s\" } }",
            ],
            "`serving.tenants.limits.ttft` is no time at all",
            "500 ms",
        ),
        (
            &[
                "serving.arrivals=\"tenants\"",
                "serving.limits={ tpot_p95 = \"50 ms\" }",
                "serving.tenants={ count = 4, mean = \"1 request/s\", peak = \"2 request/s\", limits = { tpot_p95 = \"90 ms\" } }",
            ],
            "`serving.limits.tpot_p95` holds for nobody",
            "leave it out here, or in the classes",
        ),
    ] {
        let (code, _, stderr) = planned(settings);
        assert_eq!((code, stderr.matches("error[").count()), (2, 1), "{settings:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{settings:?}: {stderr}");
    }
}
