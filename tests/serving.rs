//! Serving: what a scenario with `[serving]` answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

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

#[test]
fn drafts_gain_with_few_requests_and_lose_with_many() {
    let of = |arrivals: &str, draft: &str| {
        let mut settings = vec![format!("serving.arrivals={arrivals}")];
        if !draft.is_empty() {
            settings.push(format!("serving.speculation={{ draft = \"{draft}\", tokens = 4, acceptance = 0.75 }}"));
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (code, json, stderr) = eval(&settings);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let few = "{ concurrency = 16 }";
    let (plain, drafted) = (of(few, ""), of(few, "llama-3.2-1b"));
    // (1 - 0.75^5) / 0.25 tokens a step.
    assert!((figure(&drafted, "tokens_per_step_count") - 3.0508).abs() < 1e-3);
    assert!(figure(&drafted, "tpot_s") < 0.75 * figure(&plain, "tpot_s"));
    let step = figure(&drafted, "decode_step_s") * figure(&drafted, "tokens_per_step_count");
    assert!((step / figure(&drafted, "step_s") - 1.0).abs() < 1e-9, "a step is that of all its tokens");
    let (plain, drafted) = (of("\"max\"", ""), of("\"max\"", "llama-3.2-1b"));
    assert!(figure(&drafted, "output_tokens_per_s_per_gpu") < figure(&plain, "output_tokens_per_s_per_gpu"));
    // Weights of the draft, a quarter of 1.24 billion in 16 bits on each of four ranks, and its cache, are held too.
    let held = |json: &Value| json["memory"]["weights_bytes"].as_f64().unwrap();
    assert!(((held(&drafted) - held(&plain)) / (1.236e9 * 2.0 / 4.0) - 1.0).abs() < 0.03);
    let token = |layers: f64, heads: f64, width: f64| layers * 2.0 * heads * width / 4.0;
    let (model, draft) = (token(80.0, 8.0, 128.0), token(16.0, 8.0, 64.0));
    let most = |json: &Value| json["memory"]["kv_cache_bytes"].as_f64().unwrap() / 2_560.0;
    let fits = (most(&drafted) / (model + draft)).floor() * 16.0;
    assert!((figure(&drafted, "max_concurrency_count") - fits).abs() < 0.5);
}

#[test]
fn chunks_bound_the_wait_of_a_token_and_cost_time_to_the_first() {
    let of = |tokens: u32| {
        let chunk = format!("serving.chunk_tokens={tokens}");
        let (code, json, stderr) =
            eval(&[&chunk, "serving.input_tokens=8192", "serving.arrivals={ rate = \"10 request/s\" }"]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (large, small) = (of(8_192), of(512));
    // 0.7 x 8,192 tokens are computed, in 12 steps of at most 512.
    assert!((figure(&large, "prefill_chunks_count") - 1.0).abs() < 1e-12);
    assert!((figure(&small, "prefill_chunks_count") - 12.0).abs() < 1e-12);
    assert!(figure(&small, "longest_gap_s") < 0.25 * figure(&large, "longest_gap_s"));
    assert!(figure(&small, "ttft_s") > figure(&large, "ttft_s"));
    // More tokens of a forward pass leave less memory for the cache.
    assert!(figure(&of(32_768), "max_concurrency_count") < figure(&large, "max_concurrency_count"));
    // A chunk as large as the engine's usual step is what is modelled anyway.
    let (_, usual, _) = eval(&["serving.input_tokens=8192", "serving.arrivals={ rate = \"10 request/s\" }"]);
    assert!((figure(&usual, "tpot_s") / figure(&large, "tpot_s") - 1.0).abs() < 1e-9);
}

#[test]
fn blocks_of_the_cache_waste_half_of_one() {
    let of = |tokens: u32| eval(&[&format!("serving.block_tokens={tokens}"), "serving.arrivals=\"max\""]).1;
    let (one, large) = (of(1), of(256));
    assert!(figure(&one, "block_waste_ratio").abs() < 1e-12);
    // 127.5 tokens behind 2,048 and half of 512.
    assert!((figure(&large, "block_waste_ratio") - 127.5 / (2_304.0 + 127.5)).abs() < 1e-3);
    let batch = figure(&large, "batch_count") / figure(&one, "batch_count");
    assert!((batch - (1.0 - 127.5 / 2_431.5)).abs() < 0.01, "{batch}");
}

#[test]
fn drafts_are_accepted_by_their_place() {
    let of = |acceptance: &str| {
        let asked = format!("serving.speculation={{ draft = \"mtp\", tokens = 3, acceptance = {acceptance} }}");
        eval(&[&asked]).1["serving"]["tokens_per_step_count"].as_f64().unwrap()
    };
    // 1 + 0.85 + 0.85 x 0.3, and 1 + 0.85 + 0.7225 + 0.614125.
    assert!((of("[0.85, 0.3, 0]") - 2.105).abs() < 1e-9);
    assert!((of("0.85") - 3.186_625).abs() < 1e-9 && (of("[0.85, 0.85, 0.85]") - 3.186_625).abs() < 1e-9);
}

#[test]
fn what_an_engine_cannot_do_is_refused_with_a_hint() {
    for (settings, said, hint) in [
        (
            &["serving.speculation={ draft = \"qwen2.5-7b\", tokens = 4, acceptance = 0.7 }"][..],
            "the draft has a vocabulary of 152064, and the model one of 128256",
            "name a draft of the same family",
        ),
        (
            &["serving.speculation={ draft = \"mtp\", tokens = 0, acceptance = 0.7 }"],
            "`serving.speculation.tokens`",
            "1",
        ),
        (&["serving.speculation={ draft = \"mtp\", tokens = 2, acceptance = 1.2 }"], "acceptance", "1"),
        (&["serving.speculation={ draft = \"mtp\", tokens = 2, acceptance = [0.8, 1.2] }"], "acceptance", "1"),
        (
            &["serving.speculation={ draft = \"mtp\", tokens = 3, acceptance = [0.85, 0.3] }"],
            "2 shares of acceptance for 3 drafted tokens",
            "as many as `tokens`",
        ),
        (
            &["serving.speculation={ draft = \"mtp\", tokens = 2, acceptance = 0.7 }", "serving.layout.pipeline=2"],
            "split over pipeline stages",
            "serving.layout.pipeline = 1",
        ),
        (&["serving.two_batch_overlap=true"], "nothing to overlap", "attention_data above 1"),
        (&["serving.chunk_tokens=4"], "outside 16 to", "at least 16"),
    ] {
        let (code, _, stderr) = eval(settings);
        assert_eq!(code, 2, "{settings:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{settings:?}: {stderr}");
    }
}

const TIERS: &str = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";

fn cached(settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", TIERS, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

#[test]
fn tiers_find_more_prefixes_and_are_paid_for() {
    let of = |tiers: &str| {
        let (code, json, stderr) = cached(&[&format!("serving.cache.tiers={tiers}")]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let none = of("[]");
    let host = of("[{ tier = \"host-dram-pcie5\" }]");
    let more = of("[{ tier = \"host-dram-pcie5\", capacity = \"1 TB\" }]");
    let hit = |json: &Value| json["serving"]["prefix_found_ratio"].as_f64().unwrap();
    assert!(hit(&none) < hit(&host) && hit(&host) < hit(&more) && hit(&more) <= 0.75);
    assert!(figure(&more, "ttft_s") < figure(&none, "ttft_s"));
    assert!(figure(&more, "requests_per_s") > figure(&none, "requests_per_s"));
    // What the nodes have, 2 TB for eight GPUs, costs nothing more. A terabyte a GPU is 750 GB more, on the 72 GPUs of nine
    // nodes, a spare among them: 54 TB in kits of 4.096 TB, 14 of $76,999.
    let price = |json: &Value| json["cost"]["memory_tiers_usd"].as_f64().unwrap();
    assert!(price(&none).abs() < 1e-9 && price(&host).abs() < 1e-9);
    assert!((price(&more) - 14.0 * 76_999.0).abs() < 1e-6, "{}", price(&more));
    let capex = |json: &Value| json["cost"]["capex_usd"].as_f64().unwrap();
    assert!(capex(&more) - capex(&host) >= price(&more));
    // The link of a prefix of 6,000 tokens: 80 layers x 2 x 8 heads x 128 bytes a token over four links of 55.4 GB/s, 2 us, and
    // the wait for loads before it on links that are busy for a small share of the time.
    let transfer = 80.0 * 2.0 * 8.0 * 128.0 * 6_000.0 / (4.0 * 55.4e9);
    let busy = figure(&host, "cache_links_busy_ratio");
    let load = transfer * (1.0 + busy / (2.0 * (1.0 - busy))) + 2e-6;
    let waited = figure(&host, "cache_load_s") / figure(&host, "hits.tier_1_ratio");
    assert!((waited / load - 1.0).abs() < 1e-6, "{waited} {load}");
}

#[test]
fn tiers_draw_power_and_stand_in_racks() {
    let of = |tiers: &str| cached(&[&format!("serving.cache.tiers={tiers}")]).1;
    let none = of("[]");
    let it = |json: &Value| json["facility"]["it_kw"].as_f64().unwrap();
    for (tiers, watts, racks) in [
        // 12 TB a GPU beside the 3.84 in the node on 72 GPUs: 829.44 TB, 28 drives of 25 W, in the nodes.
        ("[{ tier = \"local-nvme-gen5\", capacity = \"15.36 TB\" }]", 28.0 * 25.0, 0.0),
        ("[{ tier = \"cxl-gen5\" }]", 72.0 * 70.0, 0.0),
        // A terabyte a GPU in servers of 4.096 TB, 18 of 706 W beside what else shares racks.
        ("[{ tier = \"remote-dram-400g\" }]", 18.0 * 706.0, 1.0),
    ] {
        let some = of(tiers);
        assert!((it(&some) - it(&none) - watts / 1e3).abs() < 1e-6, "{tiers}: {} {}", it(&some), it(&none));
        let counted = |json: &Value| json["facility"]["racks_count"].as_f64().unwrap();
        assert!(counted(&some) >= counted(&none) + racks, "{tiers}");
    }
}

#[test]
fn loads_share_their_links_and_are_limited_to_what_comes_sooner() {
    // A tier on which everything lies, and requests at a rate: the link's share of the time follows from it.
    let tier = "serving.cache.tiers=[{ tier = \"remote-flash-400g\" }]";
    let of = |rate: f64| {
        let (code, json, stderr) = cached(&[tier, &format!("serving.arrivals={{ rate = \"{rate} request/s\" }}")]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (calm, busy) = (of(10.0), of(30.0));
    let share = |json: &Value| figure(json, "cache_links_busy_ratio");
    assert!((share(&busy) / share(&calm) - 3.0).abs() < 1e-6);
    assert!(figure(&busy, "cache_load_s") > figure(&calm, "cache_load_s"));
    // Writes of what is not found in the own memory, at 10 GB/s and four ranks; the busiest of 16 replicas.
    let prefix = 80.0 * 2.0 * 8.0 * 128.0 * 6_000.0;
    let missed = 1.0 - figure(&busy, "hits.own_ratio");
    let each = 30.0 / 16.0 * figure(&busy, "busiest_replica_ratio");
    let written = each * missed * prefix / (4.0 * 10e9);
    assert!((figure(&busy, "cache_writes_busy_ratio") / written - 1.0).abs() < 1e-4, "{written}");
    // Links of 700 MB/s carry a part of the hits; the others are computed again, and the answer says so.
    let folder = tempfile::tempdir().unwrap();
    let tiers = folder.path().join("memory_tiers");
    std::fs::create_dir(&tiers).unwrap();
    let text = std::fs::read_to_string("catalogs/memory_tiers/remote-flash-400g.toml").unwrap();
    let slow = text.replace("\"20 GB/s\", low = \"5 GB/s\"", "\"700 MB/s\", low = \"700 MB/s\"");
    assert_ne!(text, slow);
    std::fs::write(tiers.join("remote-flash-400g.toml"), slow).unwrap();
    let answer = program::run(&[
        "eval",
        TIERS,
        "--catalog",
        folder.path().to_str().unwrap(),
        "--set",
        tier,
        "--set",
        "serving.arrivals={ rate = \"30 request/s\" }",
    ]);
    assert!(answer.stdout.contains("The links of a tier are overrun"), "{} {}", answer.stdout, answer.stderr);
}

#[test]
fn routing_to_caches_finds_more_and_loads_unevenly() {
    let of = |routing: &str| {
        cached(&[
            &format!("serving.cache.routing=\"{routing}\""),
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\" }]",
        ])
        .1
    };
    let (anywhere, aware) = (of("balanced"), of("cache-aware"));
    assert!(figure(&aware, "prefix_found_ratio") > 2.0 * figure(&anywhere, "prefix_found_ratio"));
    // Both shares stand in both answers.
    for json in [&anywhere, &aware] {
        assert!(figure(json, "hits.cache_aware_ratio") > figure(json, "hits.balanced_ratio"));
        assert!(figure(json, "busiest_replica_ratio") > 1.0);
    }
    // Replicas that are not the busiest wait: shares of the time still add up, and costs of tokens to what is owned.
    let shares = ["weights", "kv", "compute", "network", "idle"];
    let all: f64 = shares.iter().map(|part| figure(&aware, &format!("time_share.{part}_ratio"))).sum();
    assert!((all - 1.0).abs() < 1e-9, "{all}");
    let of = |key: &str| aware["cost"][key].as_f64().unwrap();
    let found = figure(&aware, "prefix_found_ratio");
    let paid = figure(&aware, "requests_per_s")
        * (8_000.0 * ((1.0 - found) * of("usd_per_mtok_input") + found * of("usd_per_mtok_cached"))
            + 400.0 * of("usd_per_mtok_output"));
    let owned = of("usd_per_useful_gpu_hour") * 64.0 / 3_600.0 * 1e6;
    assert!((paid / owned - 1.0).abs() < 1e-9, "{paid} and {owned}");
}

#[test]
fn caches_that_cannot_be_are_refused_with_a_hint() {
    for (setting, said, hint) in [
        ("serving.prefix_hit=0.2", "follows from `serving.cache`", "leave one of both out"),
        ("serving.cache={ tiers = [] }", "`serving.cache.prefix_tokens` is missing", ""),
        ("serving.cache.prefix_tokens=8000", "is all of a prompt of 8000", "below serving.input_tokens"),
        ("serving.cache.tiers=[{ tier = \"hbm3-h100\" }]", "no tier beyond it", "serving.cache.own_share"),
        ("serving.cache.tiers=[{ tier = \"grace-lpddr\", capacity = \"4 TB\" }]", "is bought as", "no more than that"),
        ("serving.cache.popularity=-1", "serving.cache.popularity", ""),
        (
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\" }, { tier = \"host-dram-pcie5\" }]",
            "tier \"host-dram-pcie5\" is named twice",
            "name each once",
        ),
        (
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\", capacity = \"0 B\" }]",
            "a tier of no capacity",
            "leave the tier out",
        ),
    ] {
        let (code, _, stderr) = cached(&[setting]);
        assert_eq!(code, 2, "{setting}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{setting}: {stderr}");
    }
}

#[test]
fn what_was_refused_is_not_refused_again_for_what_stands_in_its_place() {
    let places = |stderr: &str| stderr.matches("error[").count();
    let big = "serving.cache.tiers=[{ tier = \"host-dram-pcie5\", capacity = \"1e300 B\" }]";
    let (code, _, stderr) = cached(&[big]);
    assert_eq!((code, places(&stderr)), (2, 1), "{stderr}");
    let (code, _, stderr) = cached(&["serving.trace=\"none.csv\""]);
    assert_eq!(code, 2);
    assert!(!stderr.contains("a prompt of") && !stderr.contains("catalogs/"), "{stderr}");
    for setting in
        ["serving.layout=\"fast\"", "serving.tenants={ count = 2, mean = \"1 request/s\", peak = \"1e300 request/s\" }"]
    {
        let (code, _, stderr) = eval(&[setting]);
        assert_eq!((code, places(&stderr)), (2, 1), "{setting}: {stderr}");
    }
}

/// A file of a scenario beside a trace.
fn with_trace(rows: &str, settings: &[&str]) -> (i32, Value, String) {
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
fn trace(rows: impl Iterator<Item = (f64, f64, f64)>) -> String {
    let row = |(at, input, output): (f64, f64, f64)| format!("{at:.4},{input:.0},{output:.0}\n");
    rows.map(row).fold("arrival_s,input_tokens,output_tokens\n".to_owned(), |text, row| text + &row)
}

fn serving(json: &Value) -> impl Fn(&str) -> f64 + use<> {
    let serving = json["serving"].clone();
    move |key| serving[key].as_f64().unwrap_or_else(|| panic!("serving.{key}"))
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
    // And four prefill workers of one GPU behind one queue, before four GPUs of decode.
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
    for key in ["input", "cached", "output", "blended"] {
        let of = |json: &Value| json["cost"][format!("usd_per_mtok_{key}")].as_f64().unwrap();
        assert!((of(&day) / of(&peak) - 1.5).abs() < 1e-9, "{key}");
    }
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
    // The longest has to fit.
    let long = trace((0..100).map(|row| (f64::from(row), if row == 50 { 3e6 } else { 100.0 }, 20.0)));
    let (code, json, _) = with_trace(&long, &[]);
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

#[test]
fn stages_hand_activations_over() {
    // One request in each replica, of which 2,048 tokens are computed.
    let of = |layout: &str, replicas: u32, fabric: &str| {
        let (layout, open) = (format!("serving.layout={layout}"), replicas.to_string());
        let (open, fabric) =
            (format!("serving.arrivals={{ concurrency = {open} }}"), format!("cluster.fabric=\"{fabric}\""));
        let (code, json, stderr) = eval(&[&layout, &open, &fabric, "serving.prefix_hit=0"]);
        assert_eq!(code, 0, "{stderr}");
        ["ttft_s", "tpot_s"].map(|key| figure(&json, key))
    };
    for fabric in ["quantum-2-ndr", "roce-400g"] {
        let (one, two) = (of("{ tensor = 8 }", 8, fabric), of("{ tensor = 8, pipeline = 2 }", 4, fabric));
        // 8,192 numbers of 16 bits a token, from each rank to the one in its place on the next node.
        let wire = 2_048.0 * 8_192.0 * 2.0 / 50e9;
        let handed = two[0] - one[0];
        assert!(handed > wire && handed < 1.25 * wire + 0.2e-3, "{fabric}: {handed} for {wire}");
        let token = two[1] - one[1];
        assert!(token > 5e-6 && token < 60e-6, "{fabric}: {token}");
    }
    // Within a node the network between them has no part.
    let within = ["quantum-2-ndr", "roce-400g"].map(|fabric| of("{ tensor = 4, pipeline = 2 }", 8, fabric));
    assert!((within[0][0] - within[1][0]).abs() < 1e-12 && (within[0][1] - within[1][1]).abs() < 1e-12, "{within:?}");
    assert!(within[0][0] > of("{ tensor = 4 }", 16, "quantum-2-ndr")[0]);
}

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
fn an_engine_s_share_of_memory_is_that_of_its_version_or_as_it_is_given() {
    let pool = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        let of = |key: &str| json["memory"][key].as_f64().unwrap();
        (of("kv_cache_bytes"), of("usable_bytes"))
    };
    let (usual, usable) = pool(&[]);
    // vLLM takes 0.9 of it by default, and 0.92 from version 0.22 on (ai-dynamo/aiconfigurator, issue 1396); 0.95 is not its
    // default in any.
    for (settings, share) in [
        (&["serving.engine_version=\"0.21.1\""][..], 0.9),
        (&["serving.engine_version=\"0.22\""], 0.92),
        (&["serving.engine_version=\"v0.23.0rc1\""], 0.92),
        (&["serving.memory_fraction=0.95"], 0.95),
        (&["serving.engine_version=\"0.22\"", "serving.memory_fraction=0.8"], 0.8),
    ] {
        let more = (pool(settings).0 - usual) / usable;
        assert!((more - (share - 0.9)).abs() < 1e-6, "{settings:?}: {more}");
    }
    for (setting, said, hint) in [
        ("serving.engine_version=\"newest\"", "which is no version", "0.22"),
        ("serving.engine_version=0.22", "a version in quotes", ""),
        ("serving.memory_fraction=0", "an engine with no memory", "such as 0.9"),
        ("serving.memory_fraction=92", "must be 0 to 1", "92% is 0.92"),
    ] {
        let (code, _, stderr) = eval(&[setting]);

        assert_eq!(code, 2, "{setting}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{setting}: {stderr}");
    }
}

#[test]
fn what_a_token_costs_is_the_sum_of_its_parts() {
    for settings in [
        &[][..],
        &["serving.peak_to_mean=1.7", "serving.spare_replicas=2", "serving.arrivals={ rate = \"12 request/s\" }"],
        &["serving.prefix_hit=0.4", "serving.speculation={ draft = \"mtp\", tokens = 2, acceptance = [0.8, 0.4] }"],
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

#[test]
fn adapters_take_memory_time_and_loads() {
    let rate = "serving.arrivals={ rate = \"20 request/s\" }";
    let of = |adapters: &str| {
        let (code, json, stderr) = eval(&[&format!("serving.adapters={adapters}"), rate]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (_, none, _) = eval(&[rate]);
    let all = of("{ count = 100, rank = 16 }");
    // 80 layers: queries and outputs of 8,192 and 8,192, keys and values of 1,024, rank 16, two bytes.
    let each = 80.0 * 16.0 * (4.0 * 8_192.0 + 2.0 * 8_192.0 + 2.0 * 1_024.0) * 2.0;
    assert!((figure(&all, "adapter_bytes") - each).abs() < 1.0);
    // The side of 8,192 of each projection is whole on every rank, the other is split over four.
    let held = 100.0 * 80.0 * 16.0 * (4.0 * 8_192.0 + (2.0 * 8_192.0 + 2.0 * 1_024.0) / 4.0) * 2.0;
    assert!((figure(&all, "adapters_held_bytes") - held).abs() < 1.0);
    let weights = |json: &Value| json["memory"]["weights_bytes"].as_f64().unwrap();
    assert!((weights(&all) - weights(&none) - held).abs() < 1.0);
    // Two kernels for each of 4 x 80 projections, 4.5 us each, and adapters to read: 2.9 ms and more.
    let slower = figure(&all, "decode_step_s") - figure(&none, "decode_step_s");
    assert!(slower > 2.88e-3 && slower < 6e-3, "{slower}");
    // A quarter of them in memory, all as popular: three quarters of the requests load theirs.
    let some = of("{ count = 100, rank = 16, resident = 25 }");
    assert!((figure(&some, "adapter_loads_ratio") - 0.75).abs() < 1e-6);
    let load = 2e-6 + each / (4.0 * 55.4e9);
    assert!((figure(&some, "adapter_wait_s") - 0.75 * load).abs() < 1e-9);
    let popular = of("{ count = 100, rank = 16, resident = 25, popularity = 1.2 }");
    assert!(figure(&popular, "adapter_loads_ratio") < 0.4);
}

#[test]
fn parts_and_adapters_that_cannot_be_are_refused_with_a_hint() {
    for (settings, said, hint) in [
        (&["serving.slice=\"5g.40gb\"", "serving.layout.tensor=1"][..], "has no slice \"5g.40gb\"", "3g.40gb"),
        (&["serving.slice=\"3g.40gb\""], "do not reach each other's memory", "tensor = 1"),
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

#[test]
fn without_graphs_steps_take_as_long_as_their_launches() {
    let of = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        serving(&json)
    };
    let few = "serving.arrivals={ concurrency = 16 }";
    let (usual, graphs) = (of(&[few]), of(&[few, "serving.cuda_graphs=true"]));
    let eager = of(&[few, "serving.cuda_graphs=false"]);
    assert_eq!(usual("tpot_s").to_bits(), graphs("tpot_s").to_bits());
    // 80 layers of 0.76 ms and more, where the device has hardly anything to do.
    assert!(eager("decode_step_s") > 80.0 * 0.76e-3 && eager("decode_step_s") > 2.0 * usual("decode_step_s"));
    // The host runs ahead of a device that takes longer.
    let large = [
        "serving.weights=\"bf16\"",
        "serving.kv_cache=\"bf16\"",
        "serving.input_tokens=60000",
        "serving.arrivals=\"max\"",
    ];
    let gain = |settings: &[&str]| {
        let eager = [settings, &["serving.cuda_graphs=false"]].concat();
        of(&eager)("decode_step_s") / of(settings)("decode_step_s")
    };
    assert!(gain(&large) < gain(&[few]) / 1.5, "{}", gain(&large));
    let (code, _, stderr) = eval(&["serving.cuda_graphs=\"no\""]);
    assert!(code == 2 && stderr.contains("serving.cuda_graphs"), "{stderr}");
}

#[test]
fn links_between_pools_bound_what_is_served() {
    // Four A100s a card of 100 Gbit/s; 24 of them prefill, most of each prompt from their cache. Keys and values of 8,000 tokens
    // of Llama 3.1 8B: 32 layers x 2 x 8 heads x 128 x 2 bytes a token, 1.05 GB, and six cards carry 75 GB/s before headers.
    let at = |arrivals: &str, settings: &[&str]| {
        let arrivals = format!("serving.arrivals={arrivals}");
        let shape = [
            "cluster.node=\"a100-pcie-4-shared\"",
            "cluster.fabric=\"roce-100g\"",
            "cluster.accelerators=48",
            "serving.model=\"llama-3.1-8b\"",
            "serving.weights=\"bf16\"",
            "serving.kv_cache=\"bf16\"",
            "serving.input_tokens=8000",
            "serving.output_tokens=64",
            "serving.prefix_hit=0.95",
            "serving.layout={ decode = { tensor = 1 }, prefill = { tensor = 1 }, prefill_accelerators = 24 }",
            arrivals.as_str(),
        ];
        eval(&[&shape[..], settings].concat())
    };
    let of = |arrivals: &str| {
        let (code, json, stderr) = at(arrivals, &[]);
        assert_eq!(code, 0, "{stderr}");
        serving(&json)
    };
    let cache = 8_000.0 * 32.0 * 2.0 * 8.0 * 128.0 * 2.0;
    let idle = of("{ rate = \"0.01 request/s\" }");
    let carried = idle("kv_transfer_most_requests_per_s") * cache / 75e9;
    assert!(carried > 0.9 && carried <= 1.0, "{carried} of the cards' rate");
    assert!(idle("prefill_most_requests_per_s") > 131.0 && idle("decode_most_requests_per_s") > 131.0);
    assert!(idle("queue_s") < 1e-4, "{}", idle("queue_s"));
    // More than that is refused, and said to be for the links; without end, and with any number open, no more comes through.
    let (code, json, stderr) = at("{ rate = \"131 request/s\" }", &[]);
    assert_eq!(code, 1, "{stderr}");
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(reason.contains("131 request/s come") && reason.contains("links between prefill and decode"), "{reason}");
    let most = idle("kv_transfer_most_requests_per_s");
    assert!((of("\"max\"")("requests_per_s") / most - 1.0).abs() < 1e-9);
    assert!(of("{ concurrency = 20000 }")("requests_per_s") <= most);
    // Caches wait for each other as the links fill up: M/D/1 at each end, 24 GPUs of either pool.
    let rate = 0.8 * most;
    let busy = of(&format!("{{ rate = \"{rate} request/s\" }}"));
    assert!((busy("kv_links_busy_ratio") - 0.8).abs() < 1e-9);
    let wait = 2.0 * (24.0 / most) * 0.8 / (2.0 * 0.2);
    assert!((busy("queue_s") / wait - 1.0).abs() < 1e-2, "{} and {wait}", busy("queue_s"));
    // In one domain of scale-up links there is next to no load.
    let pools = "serving.layout={ decode = { tensor = 4 }, prefill = { tensor = 4 } }";
    let (_, json, _) = eval(&["cluster.accelerators=8", pools, "serving.arrivals={ rate = \"2 request/s\" }"]);
    assert!(serving(&json)("kv_links_busy_ratio") < 1e-3, "{json}");
}
