//! Rows against `eval` of each point, in any order and by any number of threads.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::report::{METRICS, Unit, sweep_figures};
use clusterplan::scenario::ScenarioFile;
use clusterplan::sweep::{Cursor, Row, Shard, Sweep};

use super::{AXES, Bench, GPT, LAYOUTS, SEARCHED, SERVED, SMALL, clusterplan, rows, stdout};

/// Axes of requests, of what serves them, and of money, some turning within others.
const REQUESTS: &str = r#"
[sweep]
axes = [
  { key = "serving.arrivals", values = ["max", { rate = "2 request/s" }, { rate = "1000 request/s" }, { concurrency = 64 }] },
  { zip = [
    { key = "finance.margin", values = [0.2, 0.5] },
    { key = "finance.cost_of_capital", values = [0.05, 0.15] },
  ] },
  { zip = [
    { key = "serving.input_tokens", values = [512, 4096] },
    { key = "serving.output_tokens", values = [256, 1024] },
    { key = "serving.prefix_hit", values = [0.0, 0.6] },
  ] },
]
"#;

const REQUEST_KEYS: [&str; 6] = [
    "serving.arrivals",
    "finance.margin",
    "serving.input_tokens",
    "serving.output_tokens",
    "serving.prefix_hit",
    "finance.cost_of_capital",
];

/// Agents ask for their own requests.
const OF_AGENTS: &str = r#"
[sweep]
axes = [
  { key = "agents.retries", values = [1.0, 1.05] },
  { key = "finance.utilisation", values = [0.5, 0.9] },
]
"#;

const AGENT_KEYS: [&str; 2] = ["agents.retries", "finance.utilisation"];

const AGENTS: &str = "serve-coding-agents-64-h200.toml";

/// Requests that are tenants', and others; prompts that go through in waves beside lengths that scatter, which they may not.
const TENANTS: &str = r#"
[serving.tenants]
count = 10
mean = "1 request/s"
peak = "3 request/s"

[sweep]
axes = [
  { key = "serving.arrivals", values = [{ rate = "2 request/s" }, "tenants", "max", { prompts = 1000 }] },
  { key = "serving.input_tokens", values = [512, { mean = 512, cv = 0.5 }] },
]
"#;

const TENANT_KEYS: [&str; 2] = ["serving.arrivals", "serving.input_tokens"];

/// Lengths beyond what an engine takes, of which others are answered.
const CONTEXT: &str = r#"
[sweep]
axes = [{ key = "serving.max_model_len", values = [1024, 3072, 8192, 16384] }]
"#;

/// Holds every row of a sweep against `eval` of its point; how many can be, and how many not.
fn against_eval(path: &Path, keys: &[&str]) -> (usize, usize) {
    let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv", "--figures", "all"]));
    let (mut feasible, mut not) = (0, 0);
    for row in &found {
        let mut arguments =
            vec!["eval".to_owned(), path.display().to_string(), "--format".to_owned(), "csv".to_owned()];
        for key in keys {
            // A cell can be entered as it stands.
            arguments.extend(["--set".to_owned(), format!("{key}={}", row[*key])]);
        }
        let output = clusterplan(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        let Some(alone) = rows(&String::from_utf8(output.stdout).unwrap()).pop() else {
            // A mistake of the point, as whoever gives that alone is told it.
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(row["feasible"] == "false" && told.contains(&row["reason"]), "{row:?}: {told}");
            not += 1;
            continue;
        };
        if row["feasible"] == "true" {
            feasible += 1;
            // Words are no figures of a sweep's rows.
            let word = |key: &str| METRICS.iter().any(|metric| metric.key == key && metric.unit == Unit::Word);
            let figures = alone.iter().filter(|(key, _)| *key != "title" && !word(key));
            for (key, value) in figures {
                assert_eq!(row.get(key), Some(value), "{key} of {row:?}");
            }
        } else {
            not += 1;
            assert_eq!(row["reason"], alone["reason"]);
        }
    }
    (feasible, not)
}

#[test]
fn a_row_is_what_eval_says_of_its_point() {
    let bench = Bench::new();
    let path = bench.scenario(GPT, AXES);
    let keys = ["cluster.accelerators", "cluster.fabric", "training.layout.tensor", "finance.utilisation"];
    let (feasible, not) = against_eval(&path, &keys);
    assert_eq!(feasible + not, 24);
    assert!(feasible > 8 && not > 0, "{feasible} feasible, {not} not");
}

#[test]
fn axes_of_requests_and_of_money_say_what_eval_says() {
    let bench = Bench::new();
    for (name, axes, keys) in [(SERVED, REQUESTS, &REQUEST_KEYS[..]), (AGENTS, OF_AGENTS, &AGENT_KEYS[..])] {
        let path = bench.scenario(name, axes);
        let (feasible, not) = against_eval(&path, keys);
        assert!(feasible > 3, "{name}: {feasible} feasible, {not} not");
        // The most requests are more than are served.
        assert!(not > 0 || name == AGENTS, "{name}");
    }
}

#[test]
fn what_may_not_be_together_is_refused_by_the_row() {
    let bench = Bench::new();
    assert_eq!(against_eval(&bench.scenario(SERVED, TENANTS), &TENANT_KEYS), (7, 1));
    let path = bench.scenario(SERVED, CONTEXT);
    let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv"]));
    assert_eq!(found.iter().filter(|row| row["feasible"] == "true").count(), 3);
    assert!(found[0]["reason"].contains("are longer than `serving.max_model_len`, 1024 tokens"), "{:?}", found[0]);
}

#[test]
fn threads_change_nothing() {
    let bench = Bench::new();
    for (name, axes) in [(GPT, AXES), (SEARCHED, LAYOUTS)] {
        let path = bench.scenario(name, axes);
        let with = |threads: &str| {
            let small = ["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"];
            let small: &[&str] = if name == SEARCHED { &small } else { &[] };
            let arguments =
                [&["sweep", path.to_str().unwrap(), "--format", "csv", "--max-points", "10000000"], small].concat();
            let output = clusterplan(&arguments).env("RAYON_NUM_THREADS", threads).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        let one = with("1");
        assert!(one.len() > 1_000);
        assert!(one == with("3"), "{name}");
    }
}

/// What is told of every row of a sweep, in order.
fn all<T: Send>(sweep: &Sweep<'_>, told: impl Fn(&Row<'_>) -> T + Sync) -> Vec<T> {
    let mut whole = Vec::new();
    sweep.run(
        Shard::WHOLE,
        Cursor::default(),
        Vec::new,
        |rows, row| rows.push(told(row)),
        |_, rows| {
            whole.extend(rows);
            ControlFlow::Continue(())
        },
    );
    whole
}

#[test]
fn points_visited_in_any_order_give_the_rows_of_the_whole() {
    let bench = Bench::new();
    let axes = AXES.to_owned() + "where = [\"finance.utilisation < 0.8\"]\n";
    let scenario = bench.scenario(GPT, &axes);
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let document = load::read(&scenario, &mut sources, &sink).unwrap();
    let wanted = ScenarioFile::read(&document, &sink).sweep.unwrap();
    let sweep = Sweep::bind(&document, &wanted, &catalog, sweep_figures(&[]), &sink).unwrap();
    let told = |row: &Row<'_>| {
        let figures: Vec<Option<u64>> = (0..row.figures.len()).map(|at| row.figure(at).map(f64::to_bits)).collect();
        (row.place.point, figures, row.outcome.err().map(|reason| reason.to_string()))
    };
    let whole = all(&sweep, told);
    assert_eq!((whole.len(), sweep.axes.size()), (12, 24));
    let (mut visitor, mut visited) = (sweep.visitor(), Vec::new());
    for point in (0..sweep.axes.size()).rev() {
        sweep.visit(&mut visitor, point, |row| visited.push(told(row)));
    }
    visited.reverse();
    assert_eq!(visited, whole);
}

#[test]
fn what_is_done_before_a_place_is_counted() {
    let bench = Bench::new();
    let all = "[sweep]\naxes = [{ key = \"cluster.accelerators\", values = [128, 256] }, { key = \"training.layout\", values = \"all\" }]\n";
    for (axes, set) in
        [(AXES, None), (all, Some("training.layout={ search = \"fastest\", context = 1, micro_batch = 1 }"))]
    {
        let scenario = bench.scenario(GPT, axes);
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let catalog = load::catalog(&[], &mut sources, &sink);
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let document = load::scenario(&scenario, &set, &mut sources, &sink).unwrap();
        let wanted = ScenarioFile::read(&document, &sink).sweep.unwrap();
        let sweep = Sweep::bind(&document, &wanted, &catalog, sweep_figures(&[]), &sink).unwrap();
        for shard in [Shard::WHOLE, Shard { index: 1, count: 3 }] {
            let (mut rows, mut places) = (0, 0);
            sweep.run(
                shard,
                Cursor::default(),
                || 0,
                |part: &mut u64, _| *part += 1,
                |next, part| {
                    (rows, places) = (rows + part, places + 1);
                    // Each of a few places, and the last.
                    assert!(places % 7 != 0 || sweep.before(shard, next) == rows, "{next:?}");
                    ControlFlow::Continue(())
                },
            );
            let end = Cursor { point: sweep.axes.size(), row: 0 };
            let to = if sweep.axes.layouts {
                end
            } else {
                Cursor { point: rows + sweep.axes.size() * shard.index / shard.count, row: 0 }
            };
            assert_eq!(sweep.before(shard, to), rows);
        }
    }
}

#[test]
fn layouts_visited_in_any_order_give_the_rows_of_the_whole() {
    let bench = Bench::new();
    // Of the three points one shares nothing out, and conditions leave some layouts out.
    let axes = "[sweep]\naxes = [{ key = \"cluster.accelerators\", values = [8, 12, 16] }, { key = \"training.layout\", \
                values = \"all\" }]\nwhere = [\"cluster.accelerators < 16 and not training.layout.tensor = 2\"]\n";
    let scenario = bench.scenario(SMALL, axes);
    let small = fs::read_to_string(&scenario).unwrap().replace("global_batch = 128", "global_batch = 4");
    fs::write(&scenario, small).unwrap();
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let document = load::read(&scenario, &mut sources, &sink).unwrap();
    let wanted = ScenarioFile::read(&document, &sink).sweep.unwrap();
    let sweep = Sweep::bind(&document, &wanted, &catalog, sweep_figures(&[]), &sink).unwrap();
    let told =
        |row: &Row<'_>| (row.place, row.layout, row.outcome.map(|found| found.point.map(|point| point.step)).ok());
    let whole = all(&sweep, told);
    let ends = sweep.ends();
    assert_eq!((ends.len(), *ends.last().unwrap()), (3, sweep.size().rows));
    assert!(whole.len() > 500 && whole.len() < usize::try_from(ends[2]).unwrap(), "{} of {ends:?}", whole.len());
    // Parts of 97 rows, from the last to the first; each row at its number.
    let (mut visitor, mut visited) = (sweep.visitor(), Vec::new());
    for point in (0..3).rev() {
        let rows = ends[point] - point.checked_sub(1).map_or(0, |last| ends[last]);
        for part in (0..rows.div_ceil(97)).rev() {
            let (begin, end, mut part) = (part * 97, (part * 97 + 97).min(rows), Vec::new());
            sweep.visit_layouts(&mut visitor, point as u64, begin..end, |number, row| {
                assert!((begin..end).contains(&number));
                part.push(told(row));
            });
            visited.splice(0..0, part);
        }
    }
    assert!(visited == whole, "{} and {}", visited.len(), whole.len());
}
