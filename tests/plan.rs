//! `plan`: the cheapest cluster that serves what is asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planned;
mod program;

use planned::{number, run, setting, wide};
use serde_json::Value;

/// The setting of the layout that an answer found.
fn layout(answer: &Value) -> String {
    format!("serving.layout={}", answer["scenario"]["serving.layout"].as_str().unwrap())
}

#[test]
fn the_best_is_the_cheapest_and_eval_says_the_same_of_it() {
    let (code, plan, stderr) = run("plan", &[]);
    assert_eq!(code, 0, "{stderr}");
    let best = &plan["best"];
    let runners_up = plan["runners_up"].as_array().unwrap();
    assert_eq!(runners_up.len(), 8, "three nodes on three fabrics, one of them the best");
    let cost = |answer: &Value| number(answer, "cost", "total_usd");
    assert!(runners_up.windows(2).all(|pair| cost(&pair[0]) <= cost(&pair[1])));
    assert!(cost(best) <= cost(&runners_up[0]));
    for answer in [best, &runners_up[0], &runners_up[7]] {
        let of = |key: &str| answer["scenario"][key].as_str().unwrap().to_owned();
        let settings = [
            format!("cluster.node=\"{}\"", of("cluster.node")),
            format!("cluster.fabric=\"{}\"", of("cluster.fabric")),
            format!("cluster.accelerators={}", of("cluster.accelerators")),
            layout(answer),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (code, again, stderr) = run("eval", &settings);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(again["serving"], answer["evaluation"]["serving"]);
        assert_eq!(again["cost"]["total_usd"], answer["evaluation"]["cost"]["total_usd"]);
        assert_eq!(again["serving"]["limits_kept"], true);
        assert!(number(answer, "serving", "ttft_p95_s") <= 1.0 && number(answer, "serving", "tpot_p95_s") <= 0.04);
        // Replicas x GPUs of each, and the requests open in each and in all.
        let replicas = number(answer, "serving", "replicas_count");
        let open = number(answer, "serving", "open_per_replica_count");
        assert!((number(answer, "serving", "open_count") / (replicas * open) - 1.0).abs() < 1e-12);
    }
}

#[test]
fn more_requests_never_need_fewer_gpus() {
    let mut before = 0;
    for rate in ["1", "10", "40", "160", "640"] {
        let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
        let (code, plan, stderr) = run("plan", &[&rate, "plan.vary={ \"cluster.accelerators\" = \"auto\" }"]);
        assert_eq!(code, 0, "{stderr}");
        let gpus: u32 = plan["best"]["scenario"]["cluster.accelerators"].as_str().unwrap().parse().unwrap();
        assert!(gpus >= before, "{gpus} after {before}");
        before = gpus;
    }
    assert!(before > 64);
}

#[test]
fn more_gpus_never_serve_less() {
    let mut before = 0.0;
    for gpus in [8, 16, 24, 32, 40, 72, 128] {
        let gpus = format!("cluster.accelerators={gpus}");
        let limits = "serving.limits={ tpot = \"60 ms\" }";
        let (code, json, stderr) = run("eval", &[&gpus, "serving.arrivals=\"max\"", limits]);
        assert_eq!(code, 0, "{stderr}");
        let served = json["serving"]["requests_per_s"].as_f64().unwrap();
        assert!(served >= before, "{gpus}: {served} after {before}");
        before = served;
    }
}

#[test]
fn topologies_and_counts_are_chosen_among() {
    let one = "\"cluster.node\" = [\"hgx-h100-8\"]";
    let of = |more: &str| run("plan", &[&format!("plan.vary={{ {one}, {more} }}")]);
    let cost = |plan: &Value| number(&plan["best"], "cost", "total_usd");
    let (code, all, stderr) = of("\"cluster.topology.kind\" = \"any\"");
    assert_eq!(code, 0, "{stderr}");
    let kind = |answer: &Value| answer["scenario"]["cluster.topology.kind"].as_str().unwrap().to_owned();
    let answers: Vec<&Value> = std::iter::once(&all["best"]).chain(all["runners_up"].as_array().unwrap()).collect();
    assert!(answers.len() >= 3, "several kinds can be");
    // Each answer is what a plan of its topology alone says, and the best costs no more than any.
    for answer in &answers {
        let alone = format!("cluster.topology.kind=\"{}\"", kind(answer));
        let (code, alone, stderr) = run("plan", &[&alone, &format!("plan.vary={{ {one} }}")]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(alone["best"]["evaluation"], answer["evaluation"]);
        assert!(cost(&all) <= cost(&alone));
    }
    // Two keys go together in every combination.
    let both = "\"cluster.topology.kind\" = [\"rail-fat-tree\", \"tor-fat-tree\"], \"cluster.topology.oversubscription\" = [[1, 1], [1, 4]]";
    let (code, found, stderr) = of(both);
    assert_eq!((code, found["runners_up"].as_array().unwrap().len()), (0, 3), "{stderr}");

    // Of given numbers of GPUs the fewest that does, or none.
    let (_, auto, _) = of("\"cluster.accelerators\" = \"auto\"");
    let least = setting(&auto["best"], "cluster.accelerators");
    let (code, given, stderr) = of(&format!("\"cluster.accelerators\" = [{}, {}, 8]", least + 16, least + 8));
    assert_eq!((code, setting(&given["best"], "cluster.accelerators")), (0, least + 8), "{stderr}");
    let (code, _, stderr) = of("\"cluster.accelerators\" = [8]");
    assert_eq!(code, 1);
    assert!(stderr.contains("8 GPUs "), "{stderr}");

    // Mistakes are told.
    for (more, said) in [
        ("\"cluster.topology.kind\" = [\"rail-fat-tree\", \"hypercube\"]", "hypercube"),
        ("\"cluster.accelerators\" = [8, \"many\"]", "a whole number from 1"),
        ("\"cluster.fabric\" = [\"roce-400g\", \"quantum-2-ndr\", \"roce-400g\"]", "takes roce-400g twice"),
        (
            "\"cluster.topology.kind\" = [\"rail-fat-tree\"], \"cluster.topology\" = [{ kind = \"tor-fat-tree\" }]",
            "`cluster.topology.kind` is varied, and `cluster.topology` with it",
        ),
    ] {
        let (code, _, stderr) = of(more);
        assert_eq!(code, 2, "{more}");
        assert!(stderr.contains(said), "{more}: {stderr}");
    }
}

#[test]
fn more_replicas_to_spare_than_a_node_holds_take_more_nodes() {
    let (_, before, _) = run("plan", &[]);
    let mut least = number(&before["best"], "cost", "total_usd");
    for spares in [3, 5_000] {
        let (code, plan, stderr) = run("plan", &[&format!("serving.spare_replicas={spares}")]);
        assert_eq!(code, 0, "{stderr}");
        let (taken, cost) =
            (setting(&plan["best"], "cluster.accelerators"), number(&plan["best"], "cost", "total_usd"));
        assert!(taken > spares && cost >= least, "{spares}: {taken} for {cost} after {least}");
        least = cost;
    }
}

#[test]
fn throughput_never_falls_as_gpus_are_added() {
    // Counts that no replica of many ranks divides among them.
    for (node, counts) in [
        ("hgx-h200-8", &[16, 24, 40, 64, 72, 104, 128, 136, 200, 256][..]),
        ("gb200-nvl72", &[36, 64, 72, 128, 144, 216, 432]),
    ] {
        for fabric in ["quantum-2-ndr", "roce-400g-ecmp"] {
            let mut before = 0.0;
            for gpus in counts {
                let settings = [
                    format!("cluster.node=\"{node}\""),
                    format!("cluster.fabric=\"{fabric}\""),
                    format!("cluster.accelerators={gpus}"),
                ];
                let rest = [
                    "serving.arrivals=\"max\"",
                    "serving.limits={}",
                    "serving.peak_to_mean=1",
                    "serving.spare_replicas=0",
                ];
                let settings: Vec<&str> = settings.iter().map(String::as_str).chain(rest).collect();
                let (code, json, stderr) = wide("eval", &settings);
                assert_eq!(code, 0, "{stderr}");
                let served = json["serving"]["requests_per_s"].as_f64().unwrap();
                assert!(served >= before, "{node} on {fabric}, {gpus}: {served} after {before}");
                before = served;
            }
        }
    }
}

#[test]
fn within_limits_throughput_never_falls_as_gpus_are_added() {
    // Where all GPUs at work would miss a limit, some idle.
    let mut before = 0.0;
    for gpus in (32..=160).step_by(8) {
        let gpus = format!("cluster.accelerators={gpus}");
        let rest = [
            "serving.arrivals=\"max\"",
            "serving.limits={ ttft = \"5 s\", tpot = \"40 ms\" }",
            "serving.peak_to_mean=1",
            "serving.spare_replicas=0",
        ];
        let (code, json, stderr) = wide("eval", &[&[gpus.as_str()], &rest[..]].concat());
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(json["serving"]["limits_kept"], true, "{gpus}");
        let served = json["serving"]["requests_per_s"].as_f64().unwrap();
        assert!(served >= before, "{gpus}: {served} after {before}");
        before = served;
    }
    assert!(before > 0.0);
}

#[test]
fn no_split_given_by_hand_takes_fewer_gpus_than_the_plan() {
    let one = "plan.vary={ \"cluster.node\" = [\"hgx-h200-8\"], \"cluster.fabric\" = [\"roce-400g-ecmp\"], \"cluster.accelerators\" = \"auto\" }";
    let (code, plan, stderr) = wide("plan", &[one]);
    assert_eq!(code, 0, "{stderr}");
    let fewest = setting(&plan["best"], "cluster.accelerators");
    let own = |pool: &str| {
        let of = |side: &str| setting(&plan["best"], &format!("{pool}.{side}"));
        let [tensor, pipeline, groups, expert] = ["tensor", "pipeline", "attention_data", "expert"].map(of);
        format!("{{ tensor = {tensor}, pipeline = {pipeline}, attention_data = {groups}, expert = {expert} }}")
    };
    let (decode, found) = (own("serving.layout"), own("serving.layout.prefill"));
    let wide_worker = "{ tensor = 1, attention_data = 8, expert = 8 }";
    let kept = |accelerators: u32, decode: &str, prefill: u32, worker: &str| {
        let (_, json, _) = wide(
            "eval",
            &[
                "cluster.fabric=\"roce-400g-ecmp\"",
                &format!("cluster.accelerators={accelerators}"),
                &format!(
                    "serving.layout={{ decode = {decode}, prefill = {worker}, prefill_accelerators = {prefill} }}"
                ),
            ],
        );
        json["serving"]["limits_kept"] == true
    };
    // Its own split by hand keeps the limits, and none on a node fewer does: prefill on fewer GPUs than make the pools equally
    // fast leaves decode its pace.
    let prefill = number(&plan["best"], "serving", "prefill_accelerators_count");
    let given = (8..fewest).step_by(8).find(|given| (f64::from(*given) - prefill).abs() < 0.5).unwrap();
    assert!(kept(fewest, &decode, given, &found), "{decode} beside {given} on {fewest} GPUs");
    let fewer = fewest - 8;
    let ranks = |ranks: u32| (ranks, format!("{{ tensor = 1, attention_data = {ranks}, expert = {ranks} }}"));
    let own = setting(&plan["best"], "serving.layout.tensor") * setting(&plan["best"], "serving.layout.attention_data");
    for (ranks, decode) in [8, 16, 32].map(ranks).into_iter().chain([(own, decode)]) {
        for prefill in (16..=96).step_by(8).filter(|prefill| (fewer - prefill).is_multiple_of(ranks)) {
            for worker in [found.as_str(), wide_worker] {
                assert!(!kept(fewer, &decode, prefill, worker), "{decode} beside {prefill} on {fewer} GPUs: {worker}");
            }
        }
    }
}

#[test]
fn prefill_gets_nodes_of_another_kind_where_that_is_cheaper() {
    let vary = |prefill: &str| {
        format!(
            "plan.vary={{ \"cluster.node\" = [\"hgx-h200-8\"], {prefill} \"cluster.fabric\" = [\"roce-400g\"], \"cluster.accelerators\" = \"auto\" }}"
        )
    };
    let cost = |answer: &Value| number(answer, "cost", "total_usd");
    let rate = "serving.arrivals={ rate = \"400 request/s\" }";
    let (_, shared, _) = run("plan", &[&vary(""), rate]);
    let kinds = "\"cluster.prefill.node\" = [\"hgx-b200-8\", \"rtx-pro-6000-8\", \"hgx-h200-8\"],";
    let (code, plan, stderr) = run("plan", &[&vary(kinds), rate]);
    assert_eq!(code, 0, "{stderr}");
    let answers: Vec<&Value> = std::iter::once(&plan["best"]).chain(plan["runners_up"].as_array().unwrap()).collect();
    assert_eq!(answers.len(), 3, "shared, and two kinds of others");
    assert!(cost(answers[0]) <= cost(&shared["best"]));
    let own = answers.iter().find(|answer| answer["scenario"]["cluster.prefill.node"] == "hgx-b200-8").unwrap();
    assert!(own["binding"].to_string().contains("prefill: ") && own["binding"].to_string().contains("decode: "));
    // `eval` says the same of it, and of one node fewer of either kind that it does not do.
    let (all, prefill) = (setting(own, "cluster.accelerators"), setting(own, "cluster.prefill.accelerators"));
    let on = |all: u32, prefill: u32| {
        let cluster = format!("cluster.prefill={{ node = \"hgx-b200-8\", accelerators = {prefill} }}");
        let all = format!("cluster.accelerators={all}");
        run("eval", &[rate, "cluster.node=\"hgx-h200-8\"", "cluster.fabric=\"roce-400g\"", &cluster, &all])
    };
    let (code, again, stderr) = on(all, prefill);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(again["serving"], own["evaluation"]["serving"]);
    assert_eq!(again["cost"]["total_usd"], own["evaluation"]["cost"]["total_usd"]);
    assert_eq!(again["serving"]["limits_kept"], true);
    for (all, prefill) in [(all - 8, prefill), (all - 8, prefill - 8)] {
        let (code, fewer, _) = on(all, prefill);
        assert!(code == 1 || fewer["serving"]["limits_kept"] == false, "{all} with {prefill}");
    }
    let (code, _, stderr) = run("plan", &[&vary(&kinds.replace("hgx-b200-8", "hgx-b200"))]);
    assert!(code == 2 && stderr.contains("did you mean"), "{stderr}");
    let numbers = vary(kinds).replace("\"auto\"", "[64]");
    let (code, _, stderr) = run("plan", &[&numbers]);
    assert!(code == 2 && stderr.contains("numbers of accelerators"), "{stderr}");
}

#[test]
fn eval_finds_what_the_plan_found() {
    // The scenario's own cluster is what the plan came to on that node and fabric when it was written.
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let (_, plan, _) = wide("plan", &[one]);
    let accelerators = format!("cluster.accelerators={}", setting(&plan["best"], "cluster.accelerators"));
    let (code, json, stderr) = wide("eval", &[&accelerators]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(json["serving"], plan["best"]["evaluation"]["serving"]);
    assert_eq!(json["cost"]["total_usd"], plan["best"]["evaluation"]["cost"]["total_usd"]);
    assert_eq!(json["serving"]["limits_kept"], true);
    // Storage grows with the cluster in both.
    let many = "serving.arrivals={ rate = \"3000 request/s\" }";
    let (_, plan, _) = wide("plan", &[one, many]);
    let accelerators = format!("cluster.accelerators={}", setting(&plan["best"], "cluster.accelerators"));
    let (_, json, _) = wide("eval", &[&accelerators, many]);
    assert_eq!(json["cost"]["total_usd"], plan["best"]["evaluation"]["cost"]["total_usd"]);
}

#[test]
fn an_answer_that_is_written_out_is_the_same_to_the_last_digit() {
    // One of a rack, of which some GPUs idle, and those of a plan: pools and replicas, on fabrics with and without collisions.
    let rack = ["cluster.node=\"gb200-nvl72\"", "cluster.accelerators=72"];
    let odd = "serving.layout={ tensor = 1, attention_data = 64, expert = 64 }";
    let rest = ["serving.arrivals=\"max\"", "serving.limits={}", "serving.peak_to_mean=1", "serving.spare_replicas=0"];
    let (code, json, stderr) = wide("eval", &[&rack[..], &rest, &[odd]].concat());
    let reason = json["infeasible"]["reason"].as_str().unwrap_or_default();
    assert!(code == 1 && reason.contains("no whole number of replicas"), "{reason}");
    assert!(stderr.contains("left_over = true"), "{stderr}");
    let idle = odd.replace(" }", ", left_over = true }");
    let (code, json, stderr) = wide("eval", &[&rack[..], &rest, &[&idle]].concat());
    assert!(code == 0 && json["serving"]["left_over_accelerators_count"] == 8, "{stderr}");
    let mut left_over = 0;
    for rate in ["15", "260"] {
        let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
        let tight = "serving.limits={ ttft_p95 = \"2 s\", tpot_p95 = \"30 ms\" }";
        let (code, plan, stderr) = wide("plan", &[&rate, tight]);
        assert_eq!(code, 0, "{stderr}");
        for answer in std::iter::once(&plan["best"]).chain(plan["runners_up"].as_array().unwrap()) {
            let of = |key: &str| answer["scenario"][key].as_str().unwrap().to_owned();
            let settings = [
                format!("cluster.node=\"{}\"", of("cluster.node")),
                format!("cluster.fabric=\"{}\"", of("cluster.fabric")),
                format!("cluster.accelerators={}", of("cluster.accelerators")),
                layout(answer),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).chain([rate.as_str(), tight]).collect();
            let (code, again, stderr) = wide("eval", &settings);
            assert_eq!(code, 0, "{settings:?}: {stderr}");
            for group in ["serving", "memory", "fabric", "facility"] {
                assert_eq!(again[group], answer["evaluation"][group], "{settings:?}");
            }
            assert_eq!(again["cost"]["total_usd"], answer["evaluation"]["cost"]["total_usd"]);
            left_over += u32::from(answer["evaluation"]["scenario"]["serving.layout.left_over"] == "true");
        }
    }
    assert!(left_over > 0, "none of the answers leaves GPUs over");
}

/// The sorted keys of groups of figures, and what they come to.
fn figures(answer: &Value) -> Vec<(String, Value)> {
    let groups = answer.as_object().unwrap().iter().filter(|(group, of)| of.is_object() && *group != "scenario");
    let all = groups.flat_map(|(group, of)| {
        let own = of.as_object().unwrap().iter().filter(|(_, figure)| figure.is_number());
        own.map(move |(key, figure)| (format!("{group}.{key}"), figure.clone()))
    });
    all.collect()
}

#[test]
fn what_was_chosen_is_given_back_and_comes_to_the_same() {
    const CHAT: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";
    let one = "plan.vary={ \"cluster.node\" = [\"hgx-h200-8\"], \"cluster.accelerators\" = \"auto\" }";
    let together = "serving.layout={ tensor = 4 }";
    let long = [
        "serving.input_tokens=30000",
        "serving.output_tokens=50",
        "serving.arrivals={ rate = \"9.87654 request/s\", cv = 2 }",
    ];
    let limits = "serving.limits={ ttft_p95 = \"3.14159 s\", tpot_p95 = \"20 ms\" }";
    let tiers = "tiers = [{ tier = \"host-dram-pcie5\" }]";
    let cache = format!("serving.cache={{ prefixes = 1000, prefix_tokens = 500, popularity = 0.8, {tiers} }}");
    let kept = program::files(&[(
        "kept.toml",
        std::fs::read_to_string(CHAT).unwrap().replace("prefix_hit = 0.3\n", "").as_bytes(),
    )]);
    let kept = kept.path().join("kept.toml");
    let agents = program::files(&[(
        "agents.toml",
        (std::fs::read_to_string("scenarios/serve-coding-agents-64-h200.toml").unwrap()
            + "\n[plan]\nvary = { \"cluster.accelerators\" = [64, 128] }\n")
            .as_bytes(),
    )]);
    let agents = agents.path().join("agents.toml");
    let cases: [(&str, Vec<&str>); 6] = [
        (CHAT, vec![one, together]),
        (CHAT, [&[one, limits], &long[..]].concat()),
        ("scenarios/plan-deepseek-v3-prefill-nodes.toml", vec![]),
        ("scenarios/plan-llama3.1-8b-tenants.toml", vec![]),
        (kept.to_str().unwrap(), vec![one, &cache, together]),
        (agents.to_str().unwrap(), vec![]),
    ];
    for (file, settings) in cases {
        let run = |command: &str, more: &[String]| {
            let set = settings.iter().copied().chain(more.iter().map(String::as_str));
            let set: Vec<&str> = set.flat_map(|setting| ["--set", setting]).collect();
            let answer = program::run(&[&[command, file, "--format", "json"], &set[..]].concat());
            assert_eq!(answer.code, 0, "{command} {file} {more:?}: {}", answer.stderr);
            serde_json::from_str::<Value>(&answer.stdout).unwrap()
        };
        let plan = run("plan", &[]);
        let chosen = plan["best"]["scenario"].as_object().unwrap();
        let given: Vec<String> =
            chosen.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
        let again = run("eval", &given);
        let (was, is) = (figures(&plan["best"]["evaluation"]), figures(&again));
        let off: Vec<_> = was.iter().zip(&is).filter(|(was, is)| was != is).collect();
        assert!(was.len() == is.len() && off.is_empty(), "{file}: {off:?}");
    }
}
