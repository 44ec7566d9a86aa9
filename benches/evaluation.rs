//! Evaluations: one layout through the full chain (memory, step time, goodput, cost), and many on all cores.
//!
//! `cargo bench` prints the time and the allocations of each. The first must allocate nothing and stay below 10 us; others show
//! layouts a second: considered by a search, and as rows of a sweep of which the best is kept. Of serving, an estimate with all
//! that is bound for it has to stay below 100 us, and a search for one model on one system below a second, in every way that
//! requests come. What whole runs of the program take is in reports/performance.md.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]

use std::ops::ControlFlow;
use std::path::Path;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{BuiltCluster, Prepared, serving_point};
use clusterplan::load;
use clusterplan::parallelism::{Objective, Space};
use clusterplan::report::sweep_figures;
use clusterplan::scenario::{LayoutSearch, Scenario, ScenarioFile, Serving, Training};
use clusterplan::search::{self, Variants};
use clusterplan::sweep::{Cursor, Reduction, Shard, Sweep, Wanted};
use divan::Bencher;
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

fn read(name: &str) -> Scenario {
    with(name, &[])
}

fn with(name: &str, settings: &[&str]) -> Scenario {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let document = load::scenario(&path, &settings, &mut sources, &sink).unwrap();
    Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap()
}

const DENSE: &str = "serve-llama3.1-70b-64-h100.toml";
const RACKS: &str = "serve-deepseek-v3-wide-experts-nvl72.toml";
const ONE_LENGTH: &str = "serving.input_tokens=2048";
const SCATTERED: [&str; 2] =
    ["serving.input_tokens={ mean = 2048, cv = 1.0 }", "serving.output_tokens={ mean = 512, cv = 1.0 }"];
const RATE: &str = "serving.arrivals={ rate = \"20 request/s\" }";
const OPEN: &str = "serving.arrivals={ concurrency = 256 }";
const MOST: &str = "serving.arrivals=\"max\"";
const LIMITS: &str = "serving.limits={ ttft_p95 = \"2 s\", tpot_p95 = \"50 ms\" }";
const POOLS: &str = "serving.layout={ decode = { tensor = 4 }, prefill = { tensor = 4 } }";
const WIDE: &str = "serving.layout={ tensor = 1, attention_data = 64, expert = 64, left_over = true }";
const PREFIXES: &str = "serving.cache={ prefixes = 100000, prefix_tokens = 500, popularity = 0.8 }";
const AWARE: &str =
    "serving.cache={ prefixes = 100000, prefix_tokens = 500, popularity = 0.8, routing = \"cache-aware\" }";
const TIERS: &str = "serving.cache={ prefixes = 100000, prefix_tokens = 500, popularity = 0.8, tiers = [{ tier = \"host-dram-pcie5\" }] }";
const SESSIONS: &str = "serving.cache={ tiers = [{ tier = \"host-dram-pcie5\" }] }";
const SEARCH: &str = "serving.layout=\"auto\"";
const EXPERTS: &str = "plan-deepseek-v3-100-rps.toml";
const AGENTS: &str = "serve-coding-agents-64-h200.toml";
const H200: &str = "\"cluster.node\" = [\"hgx-h200-8\"]";
const TENANTS: &str = "serving.tenants={ count = 40, mean = \"0.05 request/s\", peak = \"2 request/s\" }";

/// Ways to serve: a scenario and what is set in it.
const WAYS: [(&str, &str, &[&str]); 17] = [
    ("rate", DENSE, &[RATE, ONE_LENGTH]),
    ("rate, scattered", DENSE, &[RATE, SCATTERED[0], SCATTERED[1]]),
    ("concurrency", DENSE, &[OPEN, ONE_LENGTH]),
    ("concurrency, scattered", DENSE, &[OPEN, SCATTERED[0], SCATTERED[1]]),
    ("max within limits", DENSE, &[MOST, LIMITS, ONE_LENGTH]),
    ("max within limits, scattered", DENSE, &[MOST, LIMITS, SCATTERED[0], SCATTERED[1]]),
    ("pools, rate, scattered", DENSE, &[POOLS, RATE, SCATTERED[0], SCATTERED[1]]),
    ("pools, concurrency, scattered", DENSE, &[POOLS, OPEN, SCATTERED[0], SCATTERED[1]]),
    ("pools, max within limits, scattered", DENSE, &[POOLS, MOST, LIMITS, SCATTERED[0], SCATTERED[1]]),
    ("tenants", DENSE, &["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", TENANTS, OPEN]),
    ("uneven experts", RACKS, &[]),
    ("an idle rack", RACKS, &["cluster.accelerators=144", WIDE, RATE]),
    ("agents", AGENTS, &[]),
    ("kept prefixes", DENSE, &[RATE, SCATTERED[0], SCATTERED[1], PREFIXES]),
    ("kept prefixes, sent to their caches", DENSE, &[RATE, SCATTERED[0], SCATTERED[1], AWARE]),
    ("kept prefixes, tiers", DENSE, &[RATE, SCATTERED[0], SCATTERED[1], TIERS]),
    ("a trace, replayed", "serve-trace-azure-2023.toml", &[]),
];

fn way(named: &str) -> Scenario {
    let (_, name, settings) = WAYS.iter().find(|(name, ..)| *name == named).unwrap();
    with(name, settings)
}

/// One estimate of serving, with all that is bound for it.
#[divan::bench(args = WAYS.map(|(name, ..)| name))]
fn one_estimate(bencher: Bencher<'_, '_>, named: &str) {
    let Scenario { serving, cluster, .. } = way(named);
    let serving = serving.unwrap();
    bencher.bench_local(|| serving_point(divan::black_box(&serving), &cluster).unwrap());
}

/// The search for the best way of one model on one system.
#[divan::bench(args = WAYS.map(|(name, ..)| name), sample_count = 5, sample_size = 1)]
fn one_search(bencher: Bencher<'_, '_>, named: &str) {
    let Scenario { serving, cluster, .. } = way(named);
    let serving = Serving { search: true, prefill: None, left_over: true, ..serving.unwrap() };
    bencher.bench_local(|| search::best_deployment(divan::black_box(&serving), &cluster).unwrap());
}

/// Plans: a scenario, the kinds of nodes that are chosen from, and what is set in it.
const PLANS: [(&str, &str, &str, &[&str]); 10] = [
    ("dense", "plan-llama3.1-70b-40-rps.toml", "\"cluster.node\" = [\"dgx-h100\"]", &[]),
    ("experts", EXPERTS, H200, &[]),
    ("experts, racks", EXPERTS, "\"cluster.node\" = [\"gb200-nvl72\"]", &[]),
    (
        "nodes for prefill",
        "plan-deepseek-v3-prefill-nodes.toml",
        "\"cluster.node\" = [\"gb200-nvl72\"], \"cluster.prefill.node\" = [\"rtx-pro-6000-8\"]",
        &[],
    ),
    ("kept prefixes", EXPERTS, H200, &[PREFIXES]),
    ("kept prefixes, sent to their caches", EXPERTS, H200, &[AWARE]),
    ("kept prefixes, tiers", EXPERTS, H200, &[TIERS]),
    ("agents", AGENTS, H200, &[SEARCH, "serving.limits={ ttft_p95 = \"20 s\" }"]),
    ("agents, tiers", AGENTS, H200, &[SEARCH, "serving.limits={ ttft_p95 = \"20 s\" }", SESSIONS]),
    ("a trace, replayed", "serve-trace-azure-2023.toml", "\"cluster.node\" = [\"hgx-h100-8\"]", &[SEARCH]),
];

/// A plan for one kind of nodes: a search for one model on one system, of all numbers of accelerators and all ways to serve.
#[divan::bench(args = PLANS.map(|(name, ..)| name), sample_count = 5, sample_size = 1)]
fn one_plan(bencher: Bencher<'_, '_>, named: &str) {
    let (_, name, nodes, settings) = PLANS.iter().find(|(name, ..)| *name == named).unwrap();
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let vary = format!("plan.vary={{ {nodes}, \"cluster.accelerators\" = \"auto\" }}");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).chain([vary]).collect();
    let document = load::scenario(&path, &settings, &mut sources, &sink).unwrap();
    bencher.bench_local(|| search::plan(divan::black_box(&document), &catalog, &sink).unwrap());
}

#[divan::bench(args = ["train-llama3.1-405b-16k-h100.toml"])]
fn one_layout(bencher: Bencher<'_, '_>, name: &str) {
    let scenario = read(name);
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
    let training = scenario.training.as_ref().unwrap();
    let (prepared, layout) = (Prepared::new(&scenario, training, &built), training.layout);
    bencher.bench_local(|| divan::black_box(&prepared).point(divan::black_box(&layout)));
}

/// The whole space of a job: every layout by divisibility, those that divide by memory, those that fit by time.
#[divan::bench(args = ["train-gpt3-175b-512-h100-layout.toml"], sample_count = 5, sample_size = 1)]
fn all_layouts(bencher: Bencher<'_, '_>, name: &str) {
    let scenario = read(name);
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
    let order = scenario.training.as_ref().unwrap().layout.order;
    let wanted = LayoutSearch { objective: Objective::Fastest, space: Space::all(order), overlap: [None; 3] };
    let training = Training { search: Some(wanted), ..scenario.training.clone().unwrap() };
    let variants = Variants::new(&scenario, &training, &built);
    let considered = search::search(&variants, &wanted).unwrap().tally.considered();
    bencher.counter(ItemsCount::new(considered)).bench_local(|| search::search(divan::black_box(&variants), &wanted));
}

/// Every layout that divides as a row of a sweep, figures and all, of which the cheapest is kept.
#[divan::bench(args = ["train-llama3.1-8b-16-h100-two-nodes.toml"], sample_count = 5, sample_size = 1)]
fn rows_of_a_sweep(bencher: Bencher<'_, '_>, name: &str) {
    kept_of_a_sweep(bencher, name, "{ key = \"training.layout\", values = \"all\" }", "cost.usd_per_run");
}

/// Requests of one length at many concurrencies, with all shares of prompts that are cached.
#[divan::bench(args = ["serve-llama3.1-70b-64-h100.toml"], sample_count = 5, sample_size = 1)]
fn requests_of_a_sweep(bencher: Bencher<'_, '_>, name: &str) {
    let axes = "{ key = \"serving.arrivals\", values = [{ concurrency = 64 }, { concurrency = 256 }, { concurrency = 1024 }] }, { key = \"serving.prefix_hit\", range = { from = 0, to = 0.9, steps = 30000 } }";
    kept_of_a_sweep(bencher, name, axes, "cost.usd_per_mtok_output");
}

/// A sweep of which the row is kept that is least in a figure.
fn kept_of_a_sweep(bencher: Bencher<'_, '_>, name: &str, axes: &str, by: &str) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let document = load::scenario(&path, &[format!("sweep.axes=[{axes}]")], &mut sources, &sink).unwrap();
    let file = ScenarioFile::read(&document, &sink).sweep.unwrap();
    let sweep = Sweep::bind(&document, &file, &catalog, sweep_figures(&[]), &sink).unwrap();
    let by = sweep.column(by).unwrap();
    let wanted = Wanted { top: 1, by: Some((by, false)), ..Wanted::default() };
    bencher.counter(ItemsCount::new(sweep.size().rows)).bench_local(|| {
        let mut all = Reduction::new(&wanted);
        sweep.run(
            Shard::WHOLE,
            Cursor::default(),
            || Reduction::new(&wanted),
            Reduction::take,
            |_, part| {
                all.merge(part);
                ControlFlow::Continue(())
            },
        );
        all.finish()
    });
}
