//! The search of ways to serve: nothing that it leaves out is better, and more GPUs never serve less.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{ServingPoint, serving_point};
use clusterplan::load;
use clusterplan::parallelism::ServingLayout;
use clusterplan::scenario::{Arrivals, Cluster, PrefillPool, Scenario, ScenarioFile, Serving};
use clusterplan::search::{Deployment, best_deployment, serving_layouts};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const DENSE: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";
const EXPERTS: &str = "scenarios/plan-deepseek-v3-100-rps.toml";

fn catalog() -> Catalog {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    assert!(sink.is_empty());
    catalog
}

fn scenario(catalog: &Catalog, path: &str, settings: &[String]) -> Scenario {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let document =
        load::scenario(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), settings, &mut sources, &sink).unwrap();
    let file = ScenarioFile::read(&document, &sink);
    let found = Scenario::resolve(&file, catalog, &sink);
    found.unwrap_or_else(|| panic!("{settings:?}: {:?}", sink.len()))
}

/// What makes one way better: limits that are kept, then what is served, or how few are open.
fn merit(serving: &Serving, point: &ServingPoint) -> (bool, f64) {
    let merit = match serving.arrivals {
        Arrivals::Rate(_) => -point.open_per_replica() * point.replicas as f64,
        Arrivals::Most | Arrivals::Concurrency(_) => point.request_rate().value(),
    };
    (point.missed(&serving.limits).is_none(), merit)
}

/// All ways that there are: every layout together and in pools with every other.
fn all_ways(serving: &Serving, cluster: &Cluster) -> Vec<Deployment> {
    let domain = cluster.main_nodes().node.scale_up.domain;
    let of = |stages: u32| serving_layouts(&serving.model, stages, (domain, cluster.accelerators));
    let layouts: Vec<ServingLayout> = [1, 2, 3, 4, 6, 8, 12, 16].into_iter().flat_map(of).collect();
    let pools = layouts.iter().flat_map(|&layout| {
        let pool = |&prefill: &ServingLayout| Some(PrefillPool { layout: prefill, accelerators: None });
        layouts.iter().map(move |prefill| Deployment { layout, prefill: pool(prefill), left_over: true })
    });
    layouts.iter().map(|&layout| Deployment { layout, prefill: None, left_over: true }).chain(pools).collect()
}

#[test]
fn no_way_that_the_search_leaves_out_is_better() {
    let catalog = catalog();
    let mut all = 0;
    let set = |all: &[&str]| all.iter().map(|setting| (*setting).to_owned()).collect::<Vec<_>>();
    for (path, settings) in [
        (DENSE, set(&["cluster.accelerators=16", "serving.arrivals=\"max\"", "serving.limits={}"])),
        (DENSE, set(&["cluster.accelerators=16", "serving.arrivals={ rate = \"20 request/s\" }"])),
        (DENSE, set(&["cluster.accelerators=8", "serving.arrivals=\"max\"", "serving.limits={ tpot = \"15 ms\" }"])),
        (
            DENSE,
            set(&[
                "cluster.node=\"l40s-4\"",
                "cluster.fabric=\"roce-200g\"",
                "cluster.accelerators=16",
                "serving.arrivals=\"max\"",
                "serving.limits={ ttft = \"20 s\" }",
                "serving.input_tokens=8192",
                "serving.output_tokens=128",
            ]),
        ),
        (
            EXPERTS,
            set(&[
                "serving.model=\"gpt-oss-120b\"",
                "serving.weights=\"bf16\"",
                "cluster.accelerators=16",
                "serving.arrivals={ rate = \"20 request/s\" }",
            ]),
        ),
    ] {
        let rest = ["serving.peak_to_mean=1", "serving.spare_replicas=0", "serving.layout=\"auto\""];
        let settings: Vec<String> = settings.into_iter().chain(set(&rest)).collect();
        let scenario = scenario(&catalog, path, &settings);
        let (serving, cluster) = (scenario.serving.as_ref().unwrap(), &scenario.cluster);
        let found = best_deployment(serving, cluster).unwrap();
        let point = |way: Deployment| serving_point(&way.of(serving), cluster);
        let (kept, best) = merit(serving, &point(found).unwrap());
        let ways = all_ways(serving, cluster);
        let mut worked = 0;
        for way in &ways {
            let Ok(point) = point(*way) else { continue };
            worked += 1;
            let (also, other) = merit(serving, &point);
            assert!(
                (kept, best) >= (also, other) || (kept == also && best >= other - other.abs() * 1e-3),
                "{settings:?}: {way:?} has {other} where {found:?} has {best}"
            );
        }
        all += worked;
        assert!(worked > 3, "{worked} of {}", ways.len());
    }
    assert!(all > 500, "{all} ways work");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn more_gpus_never_serve_less(
        model in prop::sample::select(vec!["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "gpt-oss-120b", "mixtral-8x7b", "qwen3-235b-a22b"]),
        node in prop::sample::select(vec!["hgx-h100-8", "hgx-h200-8", "hgx-b200-8", "gb200-nvl72"]),
        fabric in prop::sample::select(vec!["quantum-2-ndr", "roce-400g", "roce-400g-ecmp"]),
        input in 64_u32..16_384,
        output in 16_u32..4_096,
        tpot in prop::option::of(15_u32..200),
        ttft in prop::option::of(300_u32..10_000),
        spares in 0_u32..2,
    ) {
        let catalog = catalog();
        let limit = |key: &str, given: Option<u32>| given.map(|ms| format!("{key} = \"{ms} ms\""));
        let limits: Vec<String> = [limit("tpot", tpot), limit("ttft", ttft)].into_iter().flatten().collect();
        let each = if node == "gb200-nvl72" { 72 } else { 8 };
        let mut before = 0.0;
        for count in [1, 2, 3, 5, 8] {
            let settings = [
                format!("serving.model=\"{model}\""),
                format!("cluster.node=\"{node}\""),
                format!("cluster.fabric=\"{fabric}\""),
                format!("cluster.accelerators={}", each * count),
                format!("serving.input_tokens={input}"),
                format!("serving.output_tokens={output}"),
                format!("serving.limits={{ {} }}", limits.join(", ")),
                format!("serving.spare_replicas={spares}"),
            ];
            let rest = [
                "serving.arrivals=\"max\"",
                "serving.peak_to_mean=1",
                "serving.layout=\"auto\"",
                "serving.expert_imbalance=1",
            ]
            .map(str::to_owned);
            let scenario = scenario(&catalog, EXPERTS, &settings.iter().cloned().chain(rest).collect::<Vec<_>>());
            let serving = scenario.serving.as_ref().unwrap();
            // Where nothing works, or keeps the limits, nothing is served.
            let Ok(found) = best_deployment(serving, &scenario.cluster) else {
                prop_assert!(before <= 0.0, "{settings:?}: none after {before}");
                continue;
            };
            let point = serving_point(&found.of(serving), &scenario.cluster).unwrap();
            let served = if point.missed(&serving.limits).is_none() { point.request_rate().value() } else { 0.0 };
            prop_assert!(served >= before, "{settings:?}: {served} after {before} by {found:?}");
            before = served;
        }
    }
}

#[test]
fn stages_of_wide_experts_and_odd_numbers_of_stages_are_tried() {
    let catalog = catalog();
    let set = |all: &[&str]| all.iter().map(|setting| (*setting).to_owned()).collect::<Vec<_>>();
    let rest = [
        "cluster.node=\"hgx-h200-8\"",
        "serving.arrivals=\"max\"",
        "serving.limits={}",
        "serving.peak_to_mean=1",
        "serving.spare_replicas=0",
        "serving.layout=\"auto\"",
    ];
    // Two stages of experts over two nodes each, and three stages that leave two accelerators of a node over.
    for (path, accelerators, settings, way) in [
        (
            EXPERTS,
            64,
            set(&["serving.expert_imbalance=1"]),
            ServingLayout { tensor: 1, pipeline: 2, expert: 16, attention_data: 16, redundant_experts: 0 },
        ),
        (
            DENSE,
            8,
            set(&[]),
            ServingLayout { tensor: 2, pipeline: 3, expert: 1, attention_data: 1, redundant_experts: 0 },
        ),
    ] {
        let count = [format!("cluster.accelerators={accelerators}")];
        let settings: Vec<String> = count.into_iter().chain(settings).chain(set(&rest)).collect();
        let scenario = scenario(&catalog, path, &settings);
        let (serving, cluster) = (scenario.serving.as_ref().unwrap(), &scenario.cluster);
        assert!(serving_layouts(&serving.model, way.pipeline, (8, accelerators)).contains(&way), "{way:?}");
        let served = |way: Deployment| serving_point(&way.of(serving), cluster).unwrap().request_rate();
        let by = served(Deployment { layout: way, prefill: None, left_over: true });
        let found = served(best_deployment(serving, cluster).unwrap());
        assert!(found >= by * (1.0 - 1e-9), "{path}: {found} where {way:?} serves {by}");
    }
}
