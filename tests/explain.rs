//! What `explain` tells: parts with their amounts, that add up to the figure, and nothing that it is not made of.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use std::collections::BTreeSet;

use program::{LLAMA, run};
use serde_json::Value as Json;

/// Two pools, on two nodes.
const POOLS: &str = "scenarios/serve-deepseek-v3-day.toml";

fn json(arguments: &[&str]) -> Json {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn inputs(tree: &Json) -> &[Json] {
    tree["inputs"].as_array().map_or(&[], Vec::as_slice)
}

/// The items that have an amount in the figure's unit, which figures and keys among its inputs do not.
fn items(tree: &Json) -> Vec<&Json> {
    inputs(tree).iter().filter(|input| input["value"].is_f64() && input["label"].is_null()).collect()
}

/// Keys at the ends of a tree.
fn ends<'a>(tree: &'a Json, found: &mut BTreeSet<&'a str>) {
    if inputs(tree).is_empty() {
        found.insert(tree["key"].as_str().unwrap());
    }
    for input in inputs(tree) {
        ends(input, found);
    }
}

#[test]
fn items_add_up_to_what_they_are_of() {
    for scenario in [LLAMA, POOLS] {
        for figure in [
            "cost.capex_usd",
            "cost.opex_per_year_usd",
            "cost.annualised_per_year_usd",
            "cost.total_usd",
            "fabric.capex_usd",
            "fabric.side_networks_capex_usd",
            "fabric.power_w",
            "fabric.side_networks_power_w",
            "facility.it_kw",
            "facility.average_it_kw",
        ] {
            let tree = json(&["explain", scenario, figure]);
            let sum: f64 = items(&tree).iter().map(|item| item["value"].as_f64().unwrap()).sum();
            let all = tree["value"].as_f64().unwrap();
            assert!((sum / all - 1.0).abs() < 1e-9, "{scenario}, {figure}: {sum} of {all}");
            for item in items(&tree) {
                // What one costs or draws is said by the catalog, with its source and date.
                let sourced = |end: &Json| end["value"].is_null() && end["origin"].as_str().unwrap().contains(", 20");
                assert!(inputs(item).iter().any(sourced), "{figure}: {item}");
            }
        }
    }
}

#[test]
fn costs_are_told_by_their_own_lines_alone() {
    for scenario in [LLAMA, POOLS] {
        let evaluation = json(&["eval", scenario]);
        for (figure, category) in [("cost.capex_usd", "capex"), ("cost.opex_per_year_usd", "opex")] {
            let lines = evaluation["cost"]["lines"].as_array().unwrap().iter();
            let amount = |line: &Json| line["quantity"].as_f64().unwrap() * line["unit_amount_usd"].as_f64().unwrap();
            let own = lines.filter(|line| line["category"] == category && amount(line) != 0.0);
            let own: Vec<(&str, &str, &str)> = own
                .map(|line| ["name", "source", "date"].map(|key| line[key].as_str().unwrap()))
                .map(|[name, source, date]| (name, source, date))
                .collect();
            let tree = json(&["explain", scenario, figure]);
            assert_eq!(items(&tree).len(), inputs(&tree).len());
            let told: Vec<&str> = items(&tree).iter().map(|item| item["key"].as_str().unwrap()).collect();
            assert_eq!(told, own.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), "{scenario}, {figure}");
            for (item, (name, source, date)) in items(&tree).iter().zip(&own) {
                let origin = inputs(item)[0]["origin"].as_str().unwrap();
                assert!(origin.contains(source) && origin.contains(date), "{name}: {origin}");
            }
        }
    }
}

#[test]
fn networks_are_told_by_their_own_parts() {
    let prices = |figure: &str| {
        let tree = json(&["explain", POOLS, figure]);
        let mut found = BTreeSet::new();
        ends(&tree, &mut found);
        found.iter().filter_map(|key| Some(key.split_once(".price ")?.1.to_owned())).collect::<BTreeSet<_>>()
    };
    let evaluation = json(&["eval", POOLS]);
    let lines = evaluation["cost"]["lines"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap());
    let (beside, others): (Vec<&str>, Vec<&str>) = lines.partition(|name| name.contains(" network, "));
    let ids = |names: &[&str]| -> BTreeSet<String> {
        names.iter().filter_map(|name| Some(name.rsplit_once(": ")?.1.to_owned())).collect()
    };
    assert_eq!(prices("fabric.side_networks_capex_usd"), ids(&beside));
    let fabric: Vec<&str> = others.into_iter().filter(|name| name.contains(", ")).collect();
    assert_eq!(prices("fabric.capex_usd"), ids(&fabric));
    // A page has the amount beside what is multiplied.
    let page = run(&["explain", POOLS, "facility.it_kw"]).stdout;
    let node = page.lines().find(|line| line.contains("Nodes at work: ")).unwrap();
    assert!(node.contains(" MW ") && node.contains(" x 10.2 kW"), "{node}");
}

#[test]
fn the_time_to_the_first_token_is_the_sum_of_its_parts() {
    let dense = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let tiers = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";
    let cases: [(&str, &[&str]); 11] = [
        (dense, &["serving.arrivals={ rate = \"20 request/s\" }"]),
        (dense, &["serving.arrivals={ concurrency = 300 }"]),
        (dense, &["serving.arrivals=\"max\""]),
        (dense, &["serving.arrivals={ prompts = 5000 }", "serving.input_tokens=2000", "serving.output_tokens=200"]),
        (dense, &["serving.arrivals={ rate = \"20 request/s\" }", "serving.chunk_tokens=512"]),
        (dense, &["serving.arrivals={ rate = \"20 request/s\" }", "serving.output_tokens=1"]),
        (
            dense,
            &[
                "serving.arrivals={ rate = \"10 request/s\" }",
                "serving.adapters={ count = 100, rank = 16, resident = 8 }",
            ],
        ),
        (
            tiers,
            &["serving.cache.tiers=[{ tier = \"host-dram-pcie5\" }]", "serving.arrivals={ rate = \"20 request/s\" }"],
        ),
        (POOLS, &[]),
        (POOLS, &["serving.arrivals={ concurrency = 2000 }"]),
        (POOLS, &["serving.arrivals=\"max\""]),
    ];
    for (scenario, settings) in cases {
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let tree = json(&[&["explain", scenario, "serving.ttft_s", "--depth", "1"], &set[..]].concat());
        let parts = inputs(&tree);
        assert!(parts.iter().all(|part| !part["label"].is_null()));
        let sum: f64 = parts.iter().map(|part| part["value"].as_f64().unwrap()).sum();
        let all = tree["value"].as_f64().unwrap();
        assert!((sum / all - 1.0).abs() < 1e-9, "{scenario}, {settings:?}: {sum} of {all}: {parts:?}");
    }
    // What engines take to hand a cache over is a constant that nobody measured by itself.
    let page = run(&["eval", POOLS]).stdout;
    assert!(page.contains("are what any engine takes beside the bytes (assumed, "), "{page}");
    assert!(page.contains("of it the host's") && page.contains("of it steps of decode"), "{page}");
}

#[test]
fn both_pools_have_their_own_memory() {
    let layout = "serving.layout={ decode = { tensor = 8 }, prefill = { tensor = 4, pipeline = 2 } }";
    let set = ["--set", layout, "--set", "serving.arrivals={ rate = \"4 request/s\" }"];
    let pools = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let evaluation = json(&[&["eval", pools][..], &set[..]].concat());
    let memory = |key: &str| evaluation["memory"][key].as_f64().unwrap();
    // Eight ranks either way, but the two stages of prefill hold one table each.
    assert_ne!(evaluation["memory"]["prefill_weights_bytes"], evaluation["memory"]["weights_bytes"]);
    let parts =
        ["weights", "activations", "kv_cache", "workspace"].map(|part| memory(&format!("prefill_{part}_bytes")));
    assert!((parts.iter().sum::<f64>() / memory("prefill_total_bytes") - 1.0).abs() < 1e-12);
    let told = json(&[&["memory", pools][..], &set[..]].concat());
    let near =
        |told: &Json, key: &str| (told["memory"]["weights_bytes"].as_f64().unwrap() / memory(key) - 1.0).abs() < 1e-12;
    assert!(near(&told, "weights_bytes"));
    assert!(near(&told["prefill"], "prefill_weights_bytes"));
    let page = run(&[&["memory", pools][..], &set[..]].concat()).stdout;
    assert!(page.contains("Decode, on 8 ") && page.contains("Prefill, on 8 ") && page.contains("pipeline 2"), "{page}");
    let lines = run(&[&["memory", pools, "--format", "csv"][..], &set[..]].concat()).stdout;
    assert!(lines.starts_with("pool,") && lines.lines().count() == 3, "{lines}");
    let page = run(&[&["eval", pools][..], &set[..]].concat()).stdout;
    assert!(page.contains("; of decode, then of prefill") && page.contains("Weights of a GPU of prefill"), "{page}");
    assert!(page.contains("Shares of time are of replicas that decode; prefill's workers"), "{page}");
}

#[test]
fn a_fabric_that_one_node_has_for_itself_is_told() {
    let serve = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let few = ["--set", "serving.arrivals={ rate = \"2 request/s\" }", "--set", "cluster.accelerators=8"];
    let page = run(&[&["eval", serve][..], &few[..]].concat()).stdout;
    let note = page.split("Fabric: $").nth(1).expect(&page);
    assert!(note.contains("of capex, and one node is at work: nothing here crosses it"), "{note}");
    // What hours cost without is less, and by no more than the fabric's part of a year.
    let cost = |after: &str| -> f64 {
        let text = note.split(after).nth(1).unwrap().trim_start_matches(" $");
        text.split('/').next().unwrap().parse().unwrap()
    };
    let (without, with) = (cost("a useful hour of a GPU would cost"), cost("instead of"));
    assert!(without < with && without > 0.6 * with, "{without} {with}");
    let page = run(&["eval", serve]).stdout;
    assert!(!page.contains("one node is at work"), "{page}");
}

#[test]
fn tasks_of_a_year_times_what_one_costs_are_what_a_year_costs() {
    let agents = "scenarios/serve-coding-agents-64-h200.toml";
    let evaluation = json(&["eval", agents]);
    let of = |group: &str, key: &str| evaluation[group][key].as_f64().unwrap();
    let tokens: f64 =
        ["input", "cached", "output"].map(|kind| of("agents", &format!("cost_{kind}_per_task_usd"))).iter().sum();
    let year = tokens * of("agents", "calendar_tasks_per_day") * 365.0;
    assert!((year / of("cost", "annualised_per_year_usd") - 1.0).abs() < 1e-3, "{year}");
    let page = run(&["eval", agents]).stdout;
    assert!(page.contains("Users begin tasks round the clock, on all days, in the "), "{page}");
}
