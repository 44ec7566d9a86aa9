//! Evaluations: one layout through the full chain (memory, step time, goodput, cost), and many on all cores.
//!
//! `cargo bench` prints the time and the allocations of each. The first must allocate nothing and stay below 10 us; the
//! second shows layouts a second.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]

use std::path::Path;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{BuiltCluster, Prepared};
use clusterplan::load;
use clusterplan::parallelism::{Choices, Layout, RankOrder, Recompute, Sharding, layouts};
use clusterplan::scenario::{Scenario, ScenarioFile};
use clusterplan::search;
use divan::Bencher;
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

fn scenario(name: &str) -> (Prepared, Layout) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let document = load::read(&path, &mut sources, &sink).unwrap();
    let scenario = Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap();
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
    (Prepared::new(&scenario, &built), scenario.training.layout)
}

#[divan::bench(args = ["train-llama3.1-405b-16k-h100.toml"])]
fn one_layout(bencher: Bencher<'_, '_>, name: &str) {
    let (prepared, layout) = scenario(name);
    bencher.bench_local(|| divan::black_box(&prepared).point(divan::black_box(&layout)));
}

#[divan::bench(args = ["train-llama3.1-405b-16k-h100.toml"], sample_count = 5)]
fn all_layouts(bencher: Bencher<'_, '_>, name: &str) {
    let (prepared, _) = scenario(name);
    let choices = Choices {
        sharding: Sharding::ALL,
        recompute: Recompute::ALL,
        most_micro_batch: 16,
        most_virtual_stages: 16,
        most_tensor: 8,
        order: RankOrder::TpCpPpDp,
    };
    let all = layouts(&prepared.step.transformer, &prepared.step.job, prepared.accelerators, choices);
    bencher.counter(ItemsCount::new(all.len())).bench_local(|| search::fastest(&prepared, divan::black_box(&all)));
}
