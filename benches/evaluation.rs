//! Evaluations: one layout through the full chain (memory, step time, goodput, cost), and many on all cores.
//!
//! `cargo bench` prints the time and the allocations of each. The first must allocate nothing and stay below 10 us; the
//! others show layouts a second: considered by a search, and as rows of a sweep of which the best is kept. What whole runs of
//! the program take is in reports/performance.md.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]

use std::ops::ControlFlow;
use std::path::Path;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{BuiltCluster, Prepared};
use clusterplan::load;
use clusterplan::parallelism::{Objective, Space};
use clusterplan::report::sweep_figures;
use clusterplan::scenario::{LayoutSearch, Scenario, ScenarioFile, Training};
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
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let document = load::read(&path, &mut sources, &sink).unwrap();
    Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap()
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
