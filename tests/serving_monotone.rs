//! Looser limits never cost more, and what a search finds within its limits no search within others finds better.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::document::Node;
use clusterplan::evaluate::{ServingPoint, serving_point};
use clusterplan::load;
use clusterplan::scenario::{Arrivals, Cluster, Scenario, ScenarioFile, Serving};
use clusterplan::search::{best_deployment, plan};

const DENSE: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";
const EXPERTS: &str = "scenarios/plan-deepseek-v3-100-rps.toml";
const TWO_KINDS: &str = "scenarios/plan-deepseek-v3-prefill-nodes.toml";

/// Limits of first tokens and between tokens in milliseconds, from the strictest; some are kept by nothing.
const FIRST: [u32; 4] = [150, 400, 1_000, 6_000];
const BETWEEN: [u32; 4] = [6, 12, 25, 80];

fn catalog() -> Catalog {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    assert!(sink.is_empty());
    catalog
}

fn document(path: &str, settings: &[String]) -> Node {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    load::scenario(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), settings, &mut sources, &sink).unwrap()
}

fn limits() -> impl Iterator<Item = (u32, u32)> {
    FIRST.into_iter().flat_map(|first| BETWEEN.into_iter().map(move |between| (first, between)))
}

fn within((first, between): (u32, u32), quantile: &str) -> String {
    format!("serving.limits={{ ttft{quantile} = \"{first} ms\", tpot{quantile} = \"{between} ms\" }}")
}

/// What makes one way better than another under limits: that they are kept, then what is served or how soon; or how near it comes.
fn merit(serving: &Serving, cluster: &Cluster, way: &Serving) -> Option<(bool, f64)> {
    let judged = Serving { limits: serving.limits, ..way.clone() };
    let point: ServingPoint = serving_point(&judged, cluster).ok()?;
    let kept = point.missed(&serving.limits).is_none();
    let merit = match serving.arrivals {
        _ if !kept => -point.over_limits(&serving.limits),
        Arrivals::Rate(_) => -point.open_per_replica() * point.replicas as f64,
        Arrivals::Most | Arrivals::Concurrency(_) => point.request_rate().value(),
    };
    Some((kept, merit))
}

#[test]
fn no_search_within_other_limits_finds_better() {
    let catalog = catalog();
    for (path, settings) in [
        (DENSE, &["cluster.accelerators=32", "serving.arrivals={ rate = \"20 request/s\" }"][..]),
        (DENSE, &["cluster.accelerators=16", "serving.arrivals=\"max\""]),
        (DENSE, &["cluster.accelerators=16", "serving.arrivals={ concurrency = 200 }"]),
        (
            EXPERTS,
            &["cluster.node=\"hgx-h200-8\"", "cluster.accelerators=32", "serving.arrivals={ rate = \"6 request/s\" }"],
        ),
    ] {
        let found: Vec<_> = limits()
            .map(|limits| {
                let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
                let rest = [within(limits, "_p95"), "serving.layout=\"auto\"".to_owned()];
                let rest =
                    rest.into_iter().chain(["serving.peak_to_mean=1", "serving.spare_replicas=0"].map(str::to_owned));
                let sink = Sink::default();
                let document = document(path, &settings.into_iter().chain(rest).collect::<Vec<_>>());
                let scenario = Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap();
                let (serving, cluster) = (scenario.serving.unwrap(), scenario.cluster);
                let way = best_deployment(&serving, &cluster).ok().map(|way| way.of(&serving));
                (limits, serving, cluster, way)
            })
            .collect();
        let mut kept = 0;
        for (limits, serving, cluster, way) in &found {
            let own = way.as_ref().and_then(|way| merit(serving, cluster, way));
            kept += usize::from(own.is_some_and(|(kept, _)| kept));
            for (others, .., there) in &found {
                let Some(other) = there.as_ref().and_then(|way| merit(serving, cluster, way)) else { continue };
                let own = own.unwrap_or_else(|| panic!("{path} {settings:?} {limits:?}: {others:?} finds a way"));
                assert!(
                    own >= other || (own.0 == other.0 && own.1 >= other.1 - other.1.abs() * 1e-3),
                    "{path} {settings:?} {limits:?}: {own:?}, and as within {others:?} {other:?}: {:?} {:?}",
                    way.as_ref().map(|way| (way.layout, way.prefill)),
                    there.as_ref().map(|way| (way.layout, way.prefill))
                );
            }
        }
        assert!((1..FIRST.len() * BETWEEN.len()).contains(&kept), "{path} {settings:?}: {kept} kept");
    }
}

const ONE_KIND: &str = "plan.vary={ \"cluster.node\" = [\"hgx-h200-8\"], \"cluster.accelerators\" = \"auto\" }";
const TWO_KINDS_OF_NODES: &str = "plan.vary={ \"cluster.node\" = [\"hgx-h200-8\"], \"cluster.prefill.node\" = [\"hgx-b200-8\"], \"cluster.accelerators\" = \"auto\" }";
const SMALLER: [&str; 2] = ["serving.model=\"gpt-oss-120b\"", "serving.weights=\"bf16\""];

/// Questions of a dense model, of experts, and of two kinds of nodes.
fn questions() -> [(&'static str, Vec<&'static str>); 3] {
    let experts = |vary| [vary].into_iter().chain(SMALLER).chain(["serving.expert_imbalance=1"]).collect();
    [(DENSE, vec![ONE_KIND]), (EXPERTS, experts(ONE_KIND)), (TWO_KINDS, experts(TWO_KINDS_OF_NODES))]
}

/// What the best cluster costs, if there is one.
fn cost(catalog: &Catalog, path: &str, settings: impl Iterator<Item = String>) -> Option<f64> {
    let sink = Sink::default();
    let found = plan(&document(path, &settings.collect::<Vec<_>>()), catalog, &sink).unwrap();
    found.answers.first().map(|best| best.evaluation.built.costs.total.value())
}

fn own(settings: &[&str]) -> impl Iterator<Item = String> {
    settings.iter().map(|setting| (*setting).to_owned()).collect::<Vec<_>>().into_iter()
}

#[test]
fn looser_limits_never_cost_more() {
    let catalog = catalog();
    for (path, settings) in questions() {
        let cost = |limits| cost(&catalog, path, own(&settings).chain([within(limits, "_p95")]));
        let some = limits().filter(|(first, between)| *first >= FIRST[1] && *between >= BETWEEN[1]);
        let found: Vec<_> = some.map(|limits| (limits, cost(limits))).collect();
        for (loose, less) in &found {
            let stricter = found.iter().filter(|((first, between), _)| *first <= loose.0 && *between <= loose.1);
            for (strict, more) in stricter.filter_map(|(strict, more)| Some((strict, (*more)?))) {
                let less = less.unwrap_or_else(|| panic!("{path}: nothing within {loose:?}, and within {strict:?}"));
                assert!(less <= more * (1.0 + 1e-9), "{path}: {less} within {loose:?}, {more} within {strict:?}");
            }
        }
        let mut costs: Vec<u64> = found.iter().filter_map(|(_, cost)| Some((*cost)?.to_bits())).collect();
        costs.sort_unstable();
        costs.dedup();
        assert!(costs.len() > 1, "{path}: {found:?}");
    }
}

#[test]
fn more_requests_never_cost_less() {
    let catalog = catalog();
    for (path, settings) in questions() {
        let mut before = 0.0;
        for rate in [5, 60, 300] {
            let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
            let cost =
                cost(&catalog, path, own(&settings).chain([rate.clone()])).unwrap_or_else(|| panic!("{path} {rate}"));
            assert!(cost >= before, "{path} {rate}: {cost} after {before}");
            before = cost;
        }
    }
}

#[test]
fn more_gpus_keep_what_fewer_keep() {
    let catalog = catalog();
    for (path, settings) in questions().into_iter().take(2) {
        let (mut kept, mut served) = (false, 0);
        for nodes in [1, 2, 3, 4, 6, 9, 16] {
            let more = [
                "cluster.node=\"hgx-h200-8\"".to_owned(),
                format!("cluster.accelerators={}", nodes * 8),
                "serving.arrivals={ rate = \"30 request/s\" }".to_owned(),
                "serving.layout=\"auto\"".to_owned(),
            ];
            let sink = Sink::default();
            let document = document(path, &own(&settings).chain(more).collect::<Vec<_>>());
            let scenario = Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap();
            let serving = scenario.serving.unwrap();
            let way = best_deployment(&serving, &scenario.cluster);
            let point = way.and_then(|way| serving_point(&way.of(&serving), &scenario.cluster));
            let keeps = point.is_ok_and(|point| point.missed(&serving.limits).is_none());
            assert!(keeps || !kept, "{path}: {nodes} nodes, and fewer keep what is asked");
            (kept, served) = (keeps, served + u32::from(keeps));
        }
        assert!((1..7).contains(&served), "{path}: {served}");
    }
}
