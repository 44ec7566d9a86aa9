//! Prefill on nodes of its own, of another kind than those that decode.

use serde_json::Value;

use super::{RACKS, eval};

const TOGETHER: [&str; 2] = ["serving.layout.prefill_accelerators=128", "cluster.spares=0"];

/// The settings of prefill's own nodes.
fn apart(node: &str, accelerators: u32) -> [String; 2] {
    [format!("cluster.prefill={{ node = \"{node}\", accelerators = {accelerators} }}"), "cluster.spares=0".to_owned()]
}

fn on(node: &str, accelerators: u32, settings: &[&str]) -> Value {
    let own = apart(node, accelerators);
    let own: Vec<&str> = own.iter().map(String::as_str).chain(settings.iter().copied()).collect();
    let (code, json, stderr) = eval(RACKS, &own);
    assert_eq!(code, 0, "{node}: {stderr}");
    json
}

#[test]
fn nodes_of_its_own_of_the_same_kind_change_nothing() {
    let (code, shared, stderr) = eval(RACKS, &TOGETHER);
    assert_eq!(code, 0, "{stderr}");
    let own = on("hgx-h200-8", 128, &[]);
    for group in ["memory", "serving", "fabric", "facility"] {
        assert_eq!(own[group], shared[group], "{group}");
    }
    for (key, figure) in shared["cost"].as_object().unwrap().iter().filter(|(_, figure)| figure.is_number()) {
        let (figure, same) = (figure.as_f64().unwrap(), own["cost"][key].as_f64().unwrap());
        assert!((same - figure).abs() <= 1e-12 * figure, "{key}: {same} and {figure}");
    }
    assert_eq!(own["cost"]["prefill_share_ratio"], 0.5);
    // Nodes of one kind stand by for each other: one in fifty of 32 is one, not one for each pool.
    let nodes = |json: &Value| {
        let lines = json["cost"]["lines"].as_array().unwrap();
        let nodes = lines.iter().filter(|line| line["name"].as_str().unwrap().starts_with("Nodes"));
        nodes.map(|line| line["quantity"].as_f64().unwrap()).sum::<f64>()
    };
    let spares = "cluster.spares=0.02";
    let shared = eval(RACKS, &[TOGETHER[0], spares]).1;
    let own = on("hgx-h200-8", 128, &[spares]);
    assert!((nodes(&shared) - 33.0).abs() < 1e-9 && (nodes(&own) - 33.0).abs() < 1e-9);
    let cost = |json: &Value| json["cost"]["capex_usd"].as_f64().unwrap();
    assert!((cost(&own) / cost(&shared) - 1.0).abs() < 1e-12);
    // So both pools pay for it by their nodes at work, and a million tokens of either kind cost as on nodes of one group.
    assert_eq!(own["cost"]["prefill_share_ratio"], 0.5);
    for (key, figure) in shared["cost"].as_object().unwrap().iter().filter(|(_, figure)| figure.is_number()) {
        let (figure, same) = (figure.as_f64().unwrap(), own["cost"][key].as_f64().unwrap());
        assert!((same - figure).abs() <= 1e-12 * figure, "{key}: {same} and {figure}");
    }
    // Those of two kinds do not.
    assert!((nodes(&on("hgx-b200-8", 128, &[spares])) - 34.0).abs() < 1e-9);
}

#[test]
fn pods_and_sites_hold_nodes_of_two_kinds() {
    let pods = ["cluster.topology.kind=\"rail-fat-tree\"", "cluster.topology.pod=64"];
    let sites = ["cluster.topology.sites={ count = 2, distance = \"80 km\", bandwidth = \"3.2 Tbit/s\" }"];
    for settings in [&pods[..], &sites] {
        let (code, shared, stderr) = eval(RACKS, &[&TOGETHER[..], settings].concat());
        assert_eq!(code, 0, "{stderr}");
        // Of equal kinds nothing changes.
        let own = on("hgx-h200-8", 128, settings);
        for group in ["memory", "serving", "fabric", "facility"] {
            assert_eq!(own[group], shared[group], "{group} {settings:?}");
        }
        // Others have as many ports.
        let other = on("hgx-b200-8", 128, settings);
        assert_eq!(other["fabric"]["nics_count"], shared["fabric"]["nics_count"]);
        assert_eq!(other["fabric"]["switches_count"], shared["fabric"]["switches_count"]);
    }
    // Requests are answered at the site where they were taken in: no fibre between.
    let transfer = |settings: &[&str]| on("hgx-b200-8", 128, settings)["serving"]["kv_transfer_s"].as_f64().unwrap();
    assert!((transfer(&sites) / transfer(&[]) - 1.0).abs() < 1e-3);
}

#[test]
fn tiers_are_bought_for_the_nodes_that_prefill() {
    let kept = |tiers: &str| {
        format!("serving.cache={{ prefixes = 200000, prefix_tokens = 6000, popularity = 0.7, tiers = {tiers} }}")
    };
    let with = |tiers: &str, settings: &[&str]| on("hgx-b200-8", 128, &[&[kept(tiers).as_str()], settings].concat());
    let long = ["serving.input_tokens=8000", "serving.arrivals={ rate = \"20 request/s\" }"];
    let (none, some) = (with("[]", &long), with("[{ tier = \"cxl-gen5\" }]", &long));
    let of = |json: &Value, group: &str, key: &str| json[group][key].as_f64().unwrap();
    assert!(of(&some, "serving", "prefix_found_ratio") > of(&none, "serving", "prefix_found_ratio"));
    assert!(of(&some, "serving", "prefill_s") < of(&none, "serving", "prefill_s"));
    // Decode reads none of it.
    assert_eq!(some["serving"]["decode_most_requests_per_s"], none["serving"]["decode_most_requests_per_s"]);
    // Half of what all GPUs would have, paid for by prompts.
    let shared = eval(RACKS, &[&TOGETHER[..], &long, &[kept("[{ tier = \"cxl-gen5\" }]").as_str()]].concat()).1;
    let tiers = |json: &Value| of(json, "cost", "memory_tiers_usd");
    assert!(tiers(&some) > 0.0 && (tiers(&shared) / tiers(&some) - 2.0).abs() < 1e-9, "{}", tiers(&some));
    assert!(of(&some, "cost", "prefill_share_ratio") > of(&none, "cost", "prefill_share_ratio"));
    // Memory of hosts is that of the nodes that prefill.
    let host = with("[{ tier = \"host-dram-pcie5\" }]", &long);
    assert!(
        tiers(&host).abs() < 1e-9
            && of(&host, "serving", "prefix_found_ratio") > of(&none, "serving", "prefix_found_ratio")
    );
}

#[test]
fn workers_are_whole_and_as_many_as_match_decode() {
    // Where the split is left open, one worker more or fewer serves no more.
    let at = |settings: &[&str]| eval(RACKS, &[&["serving.arrivals=\"max\"", "cluster.spares=0"], settings].concat()).1;
    let found = at(&[]);
    let of = |json: &Value, key: &str| json["serving"][key].as_f64().unwrap();
    let (all, each) = (of(&found, "prefill_accelerators_count"), 8.0);
    assert!((all / each).fract().abs() < 1e-9 && ((256.0 - all) / 128.0).fract().abs() < 1e-9, "{all}");
    let small = "serving.layout={ decode = { tensor = 1, attention_data = 8, expert = 8 }, prefill = { tensor = 8, expert = 8 } }";
    let found = at(&[small]);
    let workers = of(&found, "prefill_workers_count");
    for other in [workers - 1.0, workers + 1.0] {
        let given = small.replace("prefill = {", &format!("prefill_accelerators = {}, prefill = {{", other * each));
        let served = of(&at(&[&given]), "requests_per_s");
        assert!(served <= of(&found, "requests_per_s") * (1.0 + 1e-9), "{other}: {served}");
    }
}

#[test]
fn a_gpu_that_computes_more_takes_in_no_less_and_leaves_decode_alone() {
    let mut before = 0.0;
    let decode = |json: &Value| json["serving"]["decode_most_requests_per_s"].as_f64().unwrap();
    let shared = eval(RACKS, &TOGETHER).1;
    // Dense FP8 peaks of 0.15, 1.98 and 4.5 PFLOP/s.
    for node in ["hgx-h20-8", "hgx-h200-8", "hgx-b200-8"] {
        let json = on(node, 128, &[]);
        let taken_in = json["serving"]["prefill_most_requests_per_s"].as_f64().unwrap();
        assert!(taken_in > before, "{node}: {taken_in} after {before}");
        assert!((decode(&json) / decode(&shared) - 1.0).abs() < 1e-12, "{node}");
        before = taken_in;
    }
    // More nodes for prefill take in more by as much.
    let twice = on("hgx-b200-8", 128, &["cluster.accelerators=256"]);
    let all = on("hgx-b200-8", 256, &["cluster.accelerators=384"]);
    let of = |json: &Value| json["serving"]["prefill_most_requests_per_s"].as_f64().unwrap();
    assert!((of(&all) / of(&twice) - 2.0).abs() < 1e-9);
}

#[test]
fn parts_of_both_kinds_are_counted_powered_and_paid() {
    let of =
        |json: &Value, group: &str, key: &str| json[group][key].as_f64().unwrap_or_else(|| panic!("no {group}.{key}"));
    // As many of either kind: half of what all of the one and all of the other take, for the network is the same.
    let own = on("hgx-b200-8", 128, &[]);
    let [h200, b200] = ["hgx-h200-8", "hgx-b200-8"].map(|node| {
        let node = format!("cluster.node=\"{node}\"");
        eval(RACKS, &[&TOGETHER[..], &[&node]].concat()).1
    });
    // Racks of each kind are whole, and a port or two of the networks beside hang on them.
    for (group, key, within) in [
        ("facility", "it_kw", 1e-12),
        ("facility", "energy_kwh_per_year", 1e-12),
        ("fabric", "power_w", 1e-12),
        ("cost", "capex_usd", 1e-6),
        ("cost", "opex_per_year_usd", 1e-6),
        ("cost", "total_usd", 1e-6),
    ] {
        let (mixed, mean) = (of(&own, group, key), f64::midpoint(of(&h200, group, key), of(&b200, group, key)));
        assert!((mixed / mean - 1.0).abs() < within, "{group}.{key}: {mixed} and {mean}");
    }
    // Two racks of 18 trays with four cards each beside 16 nodes with eight, and a spare of each kind.
    let (code, json, stderr) =
        eval(RACKS, &["cluster.prefill={ node = \"gb200-nvl72\", accelerators = 144 }", "cluster.accelerators=272"]);
    assert_eq!(code, 0, "{stderr}");
    assert!((of(&json, "fabric", "nics_count") - f64::from(17 * 8 + 3 * 72)).abs() < 1e-9);
    let lines = json["cost"]["lines"].as_array().unwrap();
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let quantity = |name: &str| line(name)["quantity"].as_f64().unwrap();
    assert!((quantity("Nodes: hgx-h200-8") - 17.0).abs() < 1e-9);
    assert!((quantity("Nodes for prefill: gb200-nvl72") - 3.0).abs() < 1e-9);
    let capex: f64 = lines.iter().filter_map(|line| line["capex_usd"].as_f64()).sum();
    assert!((capex / of(&json, "cost", "capex_usd") - 1.0).abs() < 1e-12);
    // All tokens pay for all GPUs, whichever kind each hangs on.
    let rate = of(&json, "serving", "requests_per_s");
    let tokens = 1_024.0 * of(&json, "cost", "usd_per_mtok_input") + 2_048.0 * of(&json, "cost", "usd_per_mtok_output");
    let owned = of(&json, "cost", "usd_per_useful_gpu_hour") * 272.0 / 3_600.0 * 1e6;
    assert!((rate * tokens / owned - 1.0).abs() < 1e-9);
    let share = of(&json, "cost", "prefill_share_ratio");
    assert!(share > 144.0 / 272.0, "{share}");
    // Prompts and answers pay for both pools by what each takes of its own where it is full: so much of a year's cost over so
    // many a second.
    let [taken_in, finished] =
        ["prefill_most_requests_per_s", "decode_most_requests_per_s"].map(|key| of(&json, "serving", key));
    let by_capacity = share / taken_in / (share / taken_in + (1.0 - share) / finished);
    let prompts = rate * 1_024.0 * of(&json, "cost", "usd_per_mtok_input") / owned;
    assert!((prompts / by_capacity - 1.0).abs() < 1e-9, "{prompts} and {by_capacity}");
    assert!((of(&json, "cost", "prompts_share_ratio") / by_capacity - 1.0).abs() < 1e-9);
}

#[test]
fn nodes_for_prefill_that_cannot_be_are_refused_with_a_hint() {
    let own = |node: &str, accelerators: u32| apart(node, accelerators)[0].clone();
    let h200 = own("hgx-h200-8", 128);
    for (settings, said) in [
        (vec![own("hgx-h200-8", 256)], "leave none to decode"),
        (vec![own("hgx-h201-8", 8)], "did you mean"),
        (vec![own("hgx-b300-8", 8)], "slots"),
        (vec![own("hgx-b300-8", 8)], "this node"),
        (vec![own("hgx-h200-8", 0)], "`cluster.prefill.accelerators` is 0, outside 1 to 10000000"),
        (vec![h200.clone(), "serving.layout={ tensor = 8 }".to_owned()], "no pool of its own"),
        (vec![h200.clone(), TOGETHER[0].to_owned()], "said twice"),
        (vec![h200.clone(), "serving.slice=\"1g.18gb\"".to_owned()], "slices do not reach each other's memory"),
        (
            vec![own("rtx-pro-6000-8", 128), "cluster.topology.pod=64".to_owned()],
            "another number of network cards with `hgx-h200-8` (8 for 8) than with `rtx-pro-6000-8` (4 for 8)",
        ),
        (
            vec![own("gb200-nvl72", 144), "cluster.topology.pod=64".to_owned()],
            "a pod of 64 accelerators is no number of whole nodes of 72, `gb200-nvl72`",
        ),
        (vec!["cluster.prefill={ node = \"hgx-h200-8\" }".to_owned()], "`cluster.prefill.accelerators`"),
        (vec!["cluster.prefill.count=3".to_owned()], "cluster.prefill"),
    ] {
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (code, _, stderr) = eval(RACKS, &settings);
        assert_eq!(code, 2, "{settings:?}");
        assert!(stderr.contains(said) && stderr.contains("help:"), "{settings:?}: {stderr}");
    }
    // A worker that does not hold its weights is told as prefill's.
    let (code, json, _) = eval(RACKS, &[&own("hgx-h100-8", 128)]);
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(code == 1 && reason.contains("of prefill's pool: a request of 1024 tokens"), "{reason}");
    // Nodes that are part filled, and pools that do not fill theirs, are a no.
    for accelerators in [100, 132] {
        assert_eq!(eval(RACKS, &[&own("hgx-h200-8", accelerators)]).0, 1, "{accelerators}");
    }
}

#[test]
fn a_no_of_two_kinds_of_nodes_names_the_kind_and_the_key_that_says_it() {
    const NODES: &str = "scenarios/plan-deepseek-v3-prefill-nodes.toml";
    const SIZES: [&str; 3] = [
        "cluster.node=gb200-nvl72",
        "cluster.accelerators=104",
        "cluster.prefill={ node = \"hgx-h200-8\", accelerators = 32 }",
    ];
    let pools = |prefill: &str, decode: &str| {
        let layout = |degree: &str| format!("{{ tensor = 1, attention_data = {degree}, expert = {degree} }}");
        format!("serving.layout={{ prefill = {}, decode = {} }}", layout(prefill), layout(decode))
    };
    let h100 = ["cluster.node=hgx-h200-8", "cluster.accelerators=152", "cluster.prefill.accelerators=48"];
    let h100 = [&h100[..], &["cluster.prefill.node=hgx-h100-8", "serving.limits={}"]].concat();
    // Weights that no node of eight holds, 671 GB: workers lie over two.
    let (code, json, stderr) = eval(NODES, &[&SIZES[..], &h100].concat());
    let of = |degree: &str| {
        let key = format!("serving.layout.prefill.{degree}");
        json["scenario"][key].as_str().unwrap().parse::<u32>().unwrap()
    };
    assert!(code == 0 && of("tensor") * of("pipeline") * of("attention_data") > 8, "{stderr}");
    let long = [&h100[..], &["serving.input_tokens=100000000", "serving.max_model_len=100003000"]].concat();
    let (wide, odd, spare) = (pools("64", "8"), pools("16", "32"), pools("32", "8"));
    for (settings, said, help) in [
        // Prompts of which no worker holds one, by the figures of that GPU.
        (long.clone(), "no prefill worker works on `hgx-h100-8`, of up to 512 accelerators", "larger one"),
        (long, "of 84.98 GB a GPU beside", "larger one"),
        (
            vec![&wide],
            "32 accelerators of cluster.prefill are no whole number of prefill workers of 64",
            "cluster.prefill.acc",
        ),
        (
            vec![&spare],
            "32 accelerators of cluster.prefill hold no more prefill workers of 32 than the 1 to spare",
            "degrees",
        ),
        // Two replicas of 32 leave 8 of a rack's 72 over.
        (
            vec![&odd],
            "72 accelerators of decode, those beside cluster.prefill, are no whole number",
            "counts those of pre",
        ),
        (
            vec!["cluster.prefill.accelerators=3"],
            "101 accelerators beside the 3 of cluster.prefill do not fill nodes of 72; cluster.accelerators of 75 or 147 would",
            "or cluster.prefill.accelerators",
        ),
        (
            vec!["cluster.prefill.accelerators=30", "cluster.accelerators=102"],
            "30 accelerators of cluster.prefill do not fill nodes of 8; 24 or 32 would",
            "Change cluster.prefill.accelerators",
        ),
    ] {
        let (code, json, stderr) = eval(NODES, &[&SIZES[..], &settings].concat());
        let reason = json["infeasible"]["reason"].as_str().unwrap_or_default();
        assert!(code == 1 && reason.contains(said), "{settings:?}: {reason} {stderr}");
        assert!(stderr.contains(help), "{stderr}");
        assert!(!stderr.contains("serving.layout.prefill_accelerators"), "{stderr}");
    }
}

#[test]
fn a_search_serves_no_less_on_more_of_either_kind() {
    let rest = ["serving.arrivals=\"max\"", "serving.layout=\"auto\""];
    let served = |all: u32, prefill: u32| {
        let all = format!("cluster.accelerators={all}");
        let json = on("rtx-pro-6000-8", prefill, &[&rest[..], &[&all]].concat());
        json["serving"]["requests_per_s"].as_f64().unwrap()
    };
    for [few, many] in [[(96, 32), (104, 40)], [(96, 32), (104, 32)], [(136, 64), (200, 64)], [(136, 64), (264, 192)]] {
        let (few, many) = (served(few.0, few.1), served(many.0, many.1));
        // In a larger network more of the caches cross spines, and what workers over nodes exchange waits for them: a part in 1e8.
        assert!(many >= few * (1.0 - 1e-7), "{many} after {few}");
    }
}
