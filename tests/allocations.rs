//! Points of a sweep that are alike but for their load, their money or their layout allocate nothing, but for the first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::report::sweep_figures;
use clusterplan::scenario::ScenarioFile;
use clusterplan::sweep::{Sweep, Visitor};

const TRAINING: &str = "scenarios/train-llama3.1-8b-16-h100-two-nodes.toml";
const SERVING: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";
const POOLS: &str = "serving.layout={ decode = { tensor = 4 }, prefill = { tensor = 4 } }";

/// Allocations of all points of a sweep that was gone through before, and how many of them can be.
fn again(scenario: &str, axes: &str, settings: &[&str]) -> (u64, u64, u64) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let settings: Vec<String> =
        settings.iter().map(|setting| (*setting).to_owned()).chain([format!("sweep.axes={axes}")]).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(scenario);
    let document = load::scenario(&path, &settings, &mut sources, &sink).unwrap();
    let wanted = ScenarioFile::read(&document, &sink).sweep.unwrap();
    let sweep = Sweep::bind(&document, &wanted, &catalog, sweep_figures(&[]), &sink).unwrap();
    let mut visitor = sweep.visitor();
    let all = |visitor: &mut Visitor| {
        let (mut feasible, mut sum) = (0, 0.0);
        for point in 0..sweep.axes.size() {
            sweep.visit(visitor, point, |row| {
                feasible += u64::from(row.outcome.is_ok());
                sum += (0..row.figures.len()).filter_map(|figure| row.figure(figure)).sum::<f64>();
            });
        }
        assert!(sum.is_finite());
        feasible
    };
    let feasible = all(&mut visitor);
    let found = allocation_counter::measure(|| {
        all(&mut visitor);
    });
    (found.count_total, feasible, sweep.axes.size())
}

fn nothing(scenario: &str, axes: &str, settings: &[&str]) {
    let (allocations, feasible, points) = again(scenario, axes, settings);
    assert!(points >= 12 && feasible == points, "{axes}: {feasible} of {points}");
    assert_eq!(allocations, 0, "{axes}, {settings:?}: {points} points");
}

const HITS: &str = "{ key = \"serving.prefix_hit\", range = { from = 0.0, to = 0.6, steps = 5 } }";
const RATES: &str = "{ key = \"serving.arrivals\", values = [{ rate = \"10 request/s\" }, { rate = \"20 request/s\" }, { rate = \"30 request/s\" }] }";

#[test]
fn requests_at_a_rate_allocate_nothing() {
    let axes = format!("[{RATES}, {HITS}]");
    let one_length = ["serving.input_tokens=2048"];
    let scattered =
        ["serving.input_tokens={ mean = 2048, cv = 1.0 }", "serving.output_tokens={ mean = 512, cv = 1.0 }"];
    for lengths in [&one_length[..], &scattered] {
        nothing(SERVING, &axes, lengths);
        nothing(SERVING, &axes, &[lengths, &[POOLS]].concat());
    }
    // The rate of each point beside another, too.
    let axes = "[{ key = \"serving.arrivals.rate\", range = { from = 5, to = 30, steps = 20, unit = \"request/s\" } }]";
    nothing(SERVING, axes, &scattered);
}

#[test]
fn axes_of_length_allocate_nothing() {
    let lengths = |input: &str, output: &str| {
        format!(
            "[{{ key = \"{input}\", range = {{ from = 256, to = 4096, steps = 4, whole = true }} }}, {{ key = \"{output}\", range = {{ from = 64, to = 512, steps = 4, whole = true }} }}]"
        )
    };
    let (single, means) = (
        lengths("serving.input_tokens", "serving.output_tokens"),
        lengths("serving.input_tokens.mean", "serving.output_tokens.mean"),
    );
    let of_one = ["serving.input_tokens=2048", "serving.output_tokens=512"];
    let scattered =
        ["serving.input_tokens={ mean = 2048, cv = 1.0 }", "serving.output_tokens={ mean = 512, cv = 0.5 }"];
    for arrivals in [
        "serving.arrivals={ concurrency = 64 }",
        "serving.arrivals=\"max\"",
        "serving.arrivals={ rate = \"10 request/s\" }",
    ] {
        nothing(SERVING, &single, &[&of_one[..], &[arrivals]].concat());
        nothing(SERVING, &means, &[&scattered[..], &[arrivals]].concat());
    }
}

#[test]
fn all_ways_of_arriving_allocate_nothing() {
    let open = "{ key = \"serving.arrivals.concurrency\", range = { from = 64, to = 512, steps = 4, whole = true } }";
    let axes = format!("[{open}, {HITS}]");
    let one_length = ["serving.arrivals={ concurrency = 64 }", "serving.input_tokens=2048"];
    let scattered = [
        "serving.arrivals={ concurrency = 64 }",
        "serving.input_tokens={ mean = 2048, cv = 1.0 }",
        "serving.output_tokens={ mean = 512, cv = 1.0 }",
    ];
    for lengths in [&one_length[..], &scattered] {
        nothing(SERVING, &axes, lengths);
        nothing(SERVING, &axes, &[lengths, &[POOLS]].concat());
    }
    let used = "{ key = \"finance.utilisation\", range = { from = 0.5, to = 0.9, steps = 4 } }";
    nothing(
        SERVING,
        &format!("[{used}, {HITS}]"),
        &["serving.arrivals=\"max\"", "serving.limits={ tpot_p95 = \"60 ms\" }"],
    );
}

#[test]
fn uneven_experts_allocate_nothing() {
    let groups = "serving.layout={ tensor = 1, attention_data = 16, expert = 16 }";
    let model = ["cluster.node=\"hgx-h200-8\"", "serving.model=\"deepseek-v3\""];
    nothing(SERVING, &format!("[{RATES}, {HITS}]"), &[&model[..], &[groups]].concat());
    let pools = "serving.layout={ decode = { tensor = 1, attention_data = 16, expert = 16 }, prefill = { tensor = 8, expert = 8 } }";
    nothing(SERVING, &format!("[{RATES}, {HITS}]"), &[&model[..], &[pools]].concat());
}

#[test]
fn nodes_that_idle_allocate_nothing() {
    // Of nine nodes, one idles beside replicas or pools of 32 and 16 ranks.
    let nodes = ["cluster.node=\"hgx-h200-8\"", "serving.model=\"deepseek-v3\"", "cluster.accelerators=72"];
    let replicas = "serving.layout={ tensor = 1, attention_data = 32, expert = 32, left_over = true }";
    nothing(SERVING, &format!("[{RATES}, {HITS}]"), &[&nodes[..], &[replicas]].concat());
    let pools = "serving.layout={ decode = { tensor = 1, attention_data = 32, expert = 32 }, prefill = { tensor = 16, expert = 16 }, left_over = true }";
    nothing(SERVING, &format!("[{RATES}, {HITS}]"), &[&nodes[..], &[pools]].concat());
}

#[test]
fn tenants_allocate_nothing() {
    let tenants = "serving.tenants={ count = 40, mean = \"0.05 request/s\", peak = \"2 request/s\" }";
    let settings = ["serving.model=\"llama-3.1-8b\"", "serving.layout.tensor=1", "serving.input_tokens=2048", tenants];
    for arrivals in ["serving.arrivals=\"max\"", "serving.arrivals={ concurrency = 64 }"] {
        let used = "{ key = \"finance.utilisation\", range = { from = 0.5, to = 0.9, steps = 4 } }";
        nothing(SERVING, &format!("[{used}, {HITS}]"), &[&settings[..], &[arrivals]].concat());
    }
}

#[test]
fn layouts_and_money_allocate_nothing() {
    let used = "{ key = \"finance.utilisation\", range = { from = 0.5, to = 0.9, steps = 8 } }";
    let batch = "{ key = \"training.layout.micro_batch\", values = [1, 2] }";
    nothing(TRAINING, &format!("[{batch}, {used}]"), &[]);
    nothing(SERVING, &format!("[{RATES}, {used}]"), &[]);
}
