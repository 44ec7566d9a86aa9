//! What `plan` says of its answers: what binds, what is beyond what there is, and how far estimates may be off.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planned;
mod program;

use planned::{number, run, setting, wide};

#[test]
fn what_cannot_be_is_a_no_with_reasons_and_mistakes_are_told() {
    let (code, plan, stderr) = run("plan", &["serving.limits={ tpot_p95 = \"2 ms\" }"]);
    assert_eq!(code, 1);
    assert!(plan["best"].is_null() && !plan["rejected"].as_array().unwrap().is_empty(), "{plan}");
    // A token by itself takes longer with any layout: no doubling of GPUs is told.
    let said = "serving.limits.tpot_p95 is missed on any number of GPUs: a token of a request by itself takes";
    assert!(stderr.contains(said) && stderr.contains("over the limit of 2 ms"), "{stderr}");
    for (setting, said) in [
        ("serving.arrivals=\"max\"", "at a rate"),
        ("plan.limits={ deadline = \"3 days\" }", "serving has no deadline"),
        ("plan.limits={ budget = \"$0\" }", "`plan.limits.budget` is not above zero"),
        ("plan.limits={ power = \"0 W\" }", "`plan.limits.power` is not above zero"),
        ("plan.vary={ \"cluster.site\" = \"any\" }", "`cluster.site` is nothing that a plan varies"),
        ("plan.vary={ \"cluster.node\" = [\"hgx-h100\"] }", "no node has the id"),
    ] {
        let (code, _, stderr) = run("plan", &[setting]);
        assert_eq!(code, 2, "{setting}");
        assert!(stderr.contains(said), "{setting}: {stderr}");
    }
    // A model that one GPU holds is bound by the node that is bought, not by memory.
    let small = ["serving.model=\"llama-3.1-8b\"", "serving.arrivals={ rate = \"5 request/s\" }"];
    let (_, small, stderr) = run("plan", &small);
    let binding = small["best"]["binding"].to_string();
    assert!(binding.contains("whole nodes and replicas: nothing smaller is bought"), "{binding} {stderr}");
    // Replicas on parts of GPUs are not told as so many GPUs.
    let part =
        ["serving.model=\"llama-3.1-8b\"", "serving.arrivals={ rate = \"5 request/s\" }", "serving.slice=\"3g.40gb\""];
    let page = program::run(
        &["plan", "scenarios/plan-llama3.1-70b-40-rps.toml"]
            .into_iter()
            .chain(part.iter().flat_map(|setting| ["--set", setting]))
            .collect::<Vec<_>>(),
    );
    assert!(page.stdout.contains(" of one 3g.40gb slice: tensor 1"), "{}", page.stdout);
    let (_, all, _) = run("plan", &[]);
    let budget = number(&all["runners_up"][0], "cost", "total_usd").ceil();
    let (code, plan, _) = run("plan", &[&format!("plan.limits={{ budget = \"${budget}\" }}")]);
    assert_eq!(code, 0);
    assert!(plan["rejected"].to_string().contains("budget"));
}

#[test]
fn what_is_beyond_the_budget_or_the_power_is_told_with_what_gives_way() {
    let one = "plan.vary={ \"cluster.node\" = [\"hgx-h100-8\"], \"cluster.fabric\" = [\"quantum-2-ndr\"] }";
    let rate = "serving.arrivals={ rate = \"100 request/s\" }";
    let (_, free, stderr) = run("plan", &[one, rate]);
    let cost = number(&free["best"], "cost", "total_usd");
    let power = number(&free["best"], "facility", "total_kw");
    let gpus = setting(&free["best"], "cluster.accelerators");
    assert!(gpus > 16, "{stderr}");
    for (limit, why) in [
        (format!("budget = \"${:.0}\"", cost * 0.8), "costs more than the budget over the horizon, capex and opex"),
        (format!("power = \"{:.3} kW\"", power * 0.8), "takes more power than there is"),
    ] {
        let (code, plan, _) = run("plan", &[one, rate, &format!("plan.limits={{ {limit} }}")]);
        let reason = plan["rejected"][0]["reason"].as_str().unwrap();
        assert!(code == 1 && reason.starts_with(why), "{reason}");
        assert!(
            reason.contains(&format!("the least, {gpus} GPUs of hgx-h100-8")) && reason.contains("25.0% more than")
        );
        // As many as are within it do not keep the limits, or serve what comes.
        let instead = reason.split("; ").nth(1).unwrap();
        let fewer: u32 = instead.split(' ').next().unwrap().parse().unwrap();
        let (code, json, _) = run("eval", &[one, rate, &format!("cluster.accelerators={fewer}")]);
        assert!(fewer < gpus && (code == 1 || json["serving"]["limits_kept"] == false), "{reason}");
        assert_eq!(code == 1, instead.contains(" at most "), "{reason}");
    }
}

#[test]
fn counts_at_the_ends_of_the_band_are_planned_for_again() {
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let (code, plan, stderr) = run("plan", &[one]);
    assert_eq!(code, 0, "{stderr}");
    let band = |end: &str| plan["band"][end].as_f64().unwrap();
    let gpus = f64::from(setting(&plan["best"], "cluster.accelerators"));
    let factor = band("factor_ratio");
    let serving = &plan["best"]["evaluation"]["serving"];
    let rate = |key: &str| serving[key].as_f64().unwrap();
    assert!((rate("tpot_high_s") / rate("tpot_s") / factor - 1.0).abs() < 1e-9, "the band of times between tokens");
    assert!(band("low_accelerators_count") < gpus && gpus < band("high_accelerators_count"), "{}", plan["band"]);
    let ttft = band("ttft_factor_ratio");
    assert!((rate("ttft_high_s") / rate("ttft_s") / ttft - 1.0).abs() < 1e-9, "the band of times to the first token");
    assert_eq!(plan["band"]["uncalibrated"], serving["uncalibrated"]);
    // Where no measurement covers what was found, the plan says so as `eval` does.
    let page = |settings: &[&str]| {
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let file = "scenarios/plan-llama3.1-70b-40-rps.toml";
        program::run(&[&["plan", file, "--format", "md"], &set[..]].concat()).stdout
    };
    let note = "uncalibrated: no published measurement covers";
    for (settings, known) in
        [(vec![one], serving["uncalibrated"] == false), (vec![one, "serving.engine=sglang"], false)]
    {
        let page = page(&settings);
        assert_eq!((page.contains(note), page.contains("Nine of ten measurements")), (!known, known), "{page}");
    }
    // As many times the requests, within limits as many times shorter as each is longer.
    let asked = [
        format!("serving.arrivals={{ rate = \"{} request/s\" }}", 40.0 * factor),
        format!("serving.limits={{ ttft_p95 = \"{} ms\", tpot_p95 = \"{} ms\" }}", 1000.0 / ttft, 40.0 / factor),
    ];
    let (_, slower, stderr) = run("plan", &[one, &asked[0], &asked[1]]);
    let high = plan["band"]["high_accelerators_count"].as_u64().unwrap();
    assert_eq!(u64::from(setting(&slower["best"], "cluster.accelerators")), high, "{stderr}");
    // A limit that the slower end misses is the scenario's, where there are no tenants.
    let page = page(&[one, "serving.limits={ ttft_p95 = \"200 ms\" }"]);
    assert!(page.contains("no number of GPUs would do (serving.limits.ttft\\_p95 is missed"), "{page}");
}

#[test]
fn racks_that_are_bought_whole_bind_where_fewer_of_their_gpus_do() {
    let rack = "plan.vary={ \"cluster.node\" = [\"gb200-nvl72\"], \"cluster.accelerators\" = \"auto\" }";
    let (code, plan, stderr) = wide("plan", &[rack]);
    assert_eq!(code, 0, "{stderr}");
    let binding = |place: usize| plan["binding"][place].as_str().unwrap();
    let bought = setting(&plan["best"], "cluster.accelerators");
    let enough = binding(0).strip_prefix("racks that are bought whole: ").unwrap();
    let enough: u32 = enough.split(' ').next().unwrap().parse().unwrap();
    let racks = bought / 72;
    // What it says of GPUs at work in as many racks, and of a rack fewer.
    let eval = |gpus: u32, spares: u32| {
        let on = [
            "cluster.node=\"gb200-nvl72\"".to_owned(),
            format!("cluster.accelerators={gpus}"),
            format!("serving.spare_replicas={spares}"),
        ];
        let (code, json, _) = wide("eval", &[&on[0], &on[1], &on[2]]);
        code == 0 && json["serving"]["limits_kept"] == true
    };
    assert!(enough < bought && eval(enough, 1) && !eval(enough - 4 * racks, 1), "{}", binding(0));
    let fewer = bought - 72;
    assert!(binding(1).contains(&format!("{fewer} GPUs, the next fewer")) && !eval(fewer, 1), "{}", binding(1));
    assert_eq!(binding(1).starts_with("replicas to spare"), eval(fewer, 0), "{}", binding(1));
}

#[test]
fn one_node_fewer_would_not_do() {
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let (_, plan, _) = run("plan", &[one]);
    let (best, binding) = (&plan["best"], plan["binding"][0].as_str().unwrap());
    let of = |key: &str| best["scenario"][key].as_str().unwrap().parse::<u32>().unwrap();
    let fewer = of("cluster.accelerators") - 8;
    // In the best of all ways, as `eval` finds it.
    let (code, json, _) = run("eval", &[&format!("cluster.accelerators={fewer}")]);
    assert!(code == 1 || json["serving"]["limits_kept"] == false, "{binding}");
    assert_eq!(code == 1, binding.starts_with("requests served: "), "{binding}");
    assert!(binding.contains(&format!("{fewer} GPUs, the next fewer that are bought,")), "{binding}");
}

#[test]
fn each_pool_tells_what_its_time_goes_to() {
    let long =
        ["serving.input_tokens=30000", "serving.output_tokens=50", "serving.arrivals={ rate = \"10 request/s\" }"];
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let limits = "serving.limits={ ttft_p95 = \"3 s\", tpot_p95 = \"20 ms\" }";
    let (code, plan, stderr) = run("plan", &[long[0], long[1], long[2], one, limits]);
    assert_eq!(code, 0, "{stderr}");
    let binding = plan["binding"].to_string();
    // Prompts this long beside answers this short: the pool that takes them in has little time to spare.
    let busy = binding.split("prefill: taking prompts in, ").nth(1).unwrap_or_else(|| panic!("{binding}"));
    let busy: f64 = busy.split('%').next().unwrap().parse().unwrap();
    // The share is that on the next fewer GPUs, which are late.
    let fewer = setting(&plan["best"], "cluster.accelerators") - 8;
    let on_fewer = format!("cluster.accelerators={fewer}");
    let (_, late, _) = run("eval", &[long[0], long[1], long[2], limits, &on_fewer]);
    let most = late["serving"]["prefill_most_requests_per_s"].as_f64().unwrap_or_else(|| panic!("{binding} {late}"));
    assert!(binding.contains("decode: ") && (busy / 100.0 - 10.0 / most).abs() < 1e-4, "{binding}");
}

/// The fewest GPUs of a plan on one kind of node, and what binds.
fn planned_for(settings: &[String]) -> (u32, String) {
    let set: Vec<&str> = settings.iter().map(String::as_str).collect();
    let (code, plan, stderr) = run("plan", &set);
    assert_eq!(code, 0, "{settings:?} {stderr}");
    (setting(&plan["best"], "cluster.accelerators"), plan["binding"][0].as_str().unwrap().to_owned())
}

/// What serves a model at a rate within two seconds and 35 ms, on one kind of node.
fn asked_of(model: &str, engine: &str, node: &str, rate: u32) -> Vec<String> {
    vec![
        format!("serving.model=\"{model}\""),
        format!("serving.engine=\"{engine}\""),
        "serving.input_tokens={ mean = 3500, cv = 0.8 }".to_owned(),
        "serving.output_tokens={ mean = 900, cv = 0.6 }".to_owned(),
        "serving.prefix_hit=0".to_owned(),
        format!("serving.arrivals={{ rate = \"{rate} request/s\" }}"),
        "serving.limits={ ttft_p95 = \"2 s\", tpot_p95 = \"35 ms\" }".to_owned(),
        format!(
            "plan.vary={{ \"cluster.node\" = [\"{node}\"], \"cluster.fabric\" = [\"roce-400g\"], \"cluster.accelerators\" = \"auto\" }}"
        ),
    ]
}

/// Seconds of a figure and its unit, such as "43.28 ms,".
fn seconds(text: &str) -> f64 {
    let mut words = text.split([' ', ',']);
    let number: f64 = words.next().unwrap().parse().unwrap();
    match words.next().unwrap() {
        "s" => number,
        "ms" => number * 1e-3,
        unit => panic!("{unit} in {text}"),
    }
}

#[test]
fn limits_that_are_named_are_those_that_give_way() {
    for (model, engine, node, rate) in [
        ("qwen3-235b-a22b", "sglang", "mi355x-8", 15),
        ("llama-3.1-70b", "vllm", "hgx-b200-8", 90),
        ("llama-3.1-70b", "vllm", "hgx-h100-8", 40),
        ("qwen3-32b", "trtllm", "hgx-h200-8", 90),
        ("qwen3-235b-a22b", "sglang", "hgx-h200-8", 15),
    ] {
        let asked = asked_of(model, engine, node, rate);
        let (gpus, binding) = planned_for(&asked);
        let (worst, figures) = binding.split_once(": ").unwrap();
        let got = seconds(figures.split_once(" come to ").unwrap().1);
        let mut named = vec![(worst.strip_prefix("serving.limits.").unwrap(), got)];
        for other in figures.split(", and to ").skip(1) {
            let key = other.split_once(" of serving.limits.").unwrap().1.split(',').next().unwrap();
            named.push((key, seconds(other)));
        }
        let limit = |key: &str| if key == "ttft_p95" { 2.0 } else { 0.035 };
        // The one that is missed by most stands first.
        let over: Vec<f64> = named.iter().map(|(key, got)| got / limit(key)).collect();
        assert!(over.iter().all(|other| 1.0 < *other && *other <= over[0]), "{binding}");
        let looser = |key: &str| {
            let got = named.iter().find(|(named, _)| *named == key).map_or(limit(key), |(_, got)| got * 1.001);
            format!("{key} = \"{} ms\"", got * 1e3)
        };
        let looser = format!("serving.limits={{ {}, {} }}", looser("ttft_p95"), looser("tpot_p95"));
        let (fewer, _) = planned_for(&[&asked[..], &[looser]].concat());
        assert!(fewer < gpus, "{model} {node} {rate}: {binding} {fewer}");
    }
}

#[test]
fn what_would_let_most_more_be_served_is_what_binds() {
    let (_, binding) = planned_for(&asked_of("llama-3.1-70b", "vllm", "hgx-b200-8", 40));
    assert!(binding.starts_with("requests served: compute: 16 GPUs"), "{binding}");
    let asked = asked_of("minimax-m2.5", "vllm", "hgx-b200-8", 40);
    let (gpus, binding) = planned_for(&asked);
    let fewer = gpus - 8;
    assert!(binding.starts_with(&format!("requests served: memory bandwidth: {fewer} GPUs")), "{binding}");
    let most = |text: &str| -> f64 {
        let told = text.rsplit(", ").next().and_then(|told| told.split(' ').next()).unwrap();
        told.parse().unwrap_or_else(|_| panic!("{text}"))
    };
    let told = most(binding.split(" request/s with twice the memory bandwidth").next().unwrap());
    // What a GPU comes to whose memory is twice as fast, and what one with twice the memory does.
    let served = |changed: &str| -> f64 {
        let field = changed.split(' ').next().unwrap();
        let source = format!(
            "[[source]]\nfields = [\"{field}\"]\nbasis = \"assumed\"\ntitle = \"Twice as much\"\naccessed = 2026-11-30\n"
        );
        let overlay =
            program::files(&[("accelerators/b200-sxm-180gb.toml", format!("{changed}\n{source}").as_bytes())]);
        let gpus = format!("cluster.accelerators={fewer}");
        let on = [
            "cluster.node=\"hgx-b200-8\"",
            "cluster.fabric=\"roce-400g\"",
            "serving.arrivals={ rate = \"400 request/s\" }",
            &gpus,
        ];
        let set: Vec<&str> =
            asked[..5].iter().map(String::as_str).chain(on).flat_map(|setting| ["--set", setting]).collect();
        let file = ["eval", "scenarios/plan-llama3.1-70b-40-rps.toml", "--catalog", overlay.path().to_str().unwrap()];
        let answer = program::run(&[&file[..], &set].concat());
        assert_eq!(answer.code, 1, "{}", answer.stderr);
        // "400 request/s come, and 2 replicas serve 30 request/s at most"
        let (_, told) = answer.stderr.split_once(" come, and ").unwrap_or_else(|| panic!("{}", answer.stderr));
        told.split(' ').nth(3).unwrap().parse().unwrap()
    };
    let faster = served("memory_bandwidth = \"15.4 TB/s\"");
    assert!((faster / told - 1.0).abs() < 1e-3, "{faster} {told}");
    assert!(served("memory_capacity = \"366718 MiB\"") < told, "{binding}");
}
