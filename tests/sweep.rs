//! Sweeps: the same rows as evaluating each point by itself, whatever the number of threads; and what is kept of them.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::report::sweep_figures;
use clusterplan::scenario::ScenarioFile;
use clusterplan::sweep::{Cursor, Row, Shard, Sweep};

/// A small model on few nodes, with axes on every stage.
const AXES: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [256, 512] },
  { key = "cluster.fabric", values = ["quantum-2-ndr", "roce-400g"] },
  { key = "training.layout.tensor", values = [4, 8, 3] },
  { key = "finance.utilisation", range = { from = 0.6, to = 0.9, steps = 2 } },
]
"#;

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

/// Prices and a site of the catalog, turning within others; a price book that the scenario does not use changes nothing.
const PRICES: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [256, 512] },
  { key = "catalog/prices/neocloud-2026h2/price/dgx-h100/usd", values = ["$250,000", "$300,000"] },
  { key = "catalog/sites/us-colo/electricity", range = { from = 0.06, to = 0.12, steps = 2, unit = "$/kWh" } },
  { key = "finance.utilisation", values = [0.6, 0.9] },
]
"#;

/// Two prices of a book, of which points have one, the other or none, beside two fields of a site.
const PRICES_APART: &str = r#"
[sweep]
axes = [
  { cases = [
    [{ key = "catalog/prices/neocloud-2026h2/price/dgx-h100/usd", values = ["$250,000", "$300,000"] }],
    [{ key = "catalog/prices/neocloud-2026h2/price/qm9700/usd", values = ["$20,000", { value = "$40,000", low = "$30,000", high = "$50,000" }] }],
    [{ key = "finance.utilisation", values = [0.7] }],
  ] },
  { key = "catalog/sites/us-colo/pue", values = [1.2, 1.4] },
  { key = "catalog/sites/us-colo/electricity", values = ["$0.06/kWh", "$0.12/kWh"] },
]
"#;

/// Agents ask for their own requests.
const OF_AGENTS: &str = r#"
[sweep]
axes = [
  { key = "agents.retries", values = [1.0, 1.05] },
  { key = "finance.utilisation", values = [0.5, 0.9] },
]
"#;
const AGENT_KEYS: [&str; 2] = ["agents.retries", "finance.utilisation"];

/// Few layouts of GPT-3 on 64 GPUs.
const LAYOUTS: &str = r#"
[sweep]
axes = [
  { key = "cluster.fabric", all = ["id = quantum-2-ndr"] },
  { key = "training.layout", values = "all" },
]
"#;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A scenario of the project's with axes.
    fn scenario(&self, name: &str, axes: &str) -> PathBuf {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let text = fs::read_to_string(shipped).unwrap();
        // A table of its own would be a second one.
        let text = text.split("\n[compare]").next().unwrap().to_owned();
        let path = self.path("scenario.toml");
        fs::write(&path, text + axes).unwrap();
        path
    }
}

fn clusterplan(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.args(arguments);
    command
}

fn stdout(arguments: &[&str]) -> String {
    let output = clusterplan(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Rows by column.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

const GPT: &str = "train-gpt3-175b-1k-h100.toml";
const SMALL: &str = "train-llama3.1-8b-16-h100-two-nodes.toml";
const SERVED: &str = "serve-llama3.1-70b-64-h100.toml";
const AGENTS: &str = "serve-coding-agents-64-h200.toml";
const SEARCHED: &str = "train-gpt3-175b-512-h100-layout.toml";

/// Holds every row of a sweep against `eval` of its point; how many can be, and how many not.
fn against_eval(path: &Path, keys: &[&str]) -> (usize, usize) {
    let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--figures", "all"]));
    let (mut feasible, mut not) = (0, 0);
    for row in &found {
        let mut arguments =
            vec!["eval".to_owned(), path.display().to_string(), "--format".to_owned(), "csv".to_owned()];
        for key in keys {
            // A cell can be entered as it stands.
            arguments.extend(["--set".to_owned(), format!("{key}={}", row[*key])]);
        }
        let output = clusterplan(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        let alone = rows(&String::from_utf8(output.stdout).unwrap()).remove(0);
        if row["feasible"] == "true" {
            feasible += 1;
            let figures = alone.iter().filter(|(key, _)| *key != "title");
            for (key, value) in figures {
                assert_eq!(row[key], *value, "{key} of {row:?}");
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
fn threads_change_nothing() {
    let bench = Bench::new();
    for (name, axes) in [(GPT, AXES), (SEARCHED, LAYOUTS)] {
        let path = bench.scenario(name, axes);
        let with = |threads: &str| {
            let small = ["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"];
            let small: &[&str] = if name == SEARCHED { &small } else { &[] };
            let arguments = [&["sweep", path.to_str().unwrap(), "--max-points", "10000000"], small].concat();
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

#[test]
fn the_best_layout_is_what_a_search_finds() {
    let bench = Bench::new();
    let path = bench.scenario(SEARCHED, LAYOUTS);
    let path = path.to_str().unwrap();
    let small = ["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1", "--format", "json"];
    let swept = stdout(&[&["sweep", path, "--top", "1", "--by", "training.iteration_s"], &small[..]].concat());
    let swept: serde_json::Value = serde_json::from_str(&swept).unwrap();
    let searched = stdout(&[&["eval", path], &small[..]].concat());
    let searched: serde_json::Value = serde_json::from_str(&searched).unwrap();
    assert_eq!(swept["top"][0]["training.iteration_s"], searched["training"]["iteration_s"]);
    assert_eq!(swept["top"][0]["cost.usd_per_run"], searched["cost"]["usd_per_run"]);
}

#[test]
fn what_is_kept_is_what_all_rows_say() {
    let bench = Bench::new();
    let path = bench.scenario(GPT, AXES);
    let path = path.to_str().unwrap();
    let all = rows(&stdout(&["sweep", path]));
    let cost = |row: &BTreeMap<String, String>| row["cost.usd_per_run"].parse::<f64>().unwrap();
    let days = |row: &BTreeMap<String, String>| row["training.effective_days"].parse::<f64>().unwrap();
    let feasible: Vec<_> = all.iter().filter(|row| row["feasible"] == "true").collect();
    let kept = stdout(&[
        "sweep",
        path,
        "--format",
        "json",
        "--top",
        "3",
        "--by",
        "cost.usd_per_run",
        "--pareto",
        "cost.usd_per_run,training.effective_days",
        "--group-by",
        "cluster.accelerators,cluster.fabric",
        "--quantiles",
        "cost.usd_per_run",
        "--where",
        "finance.utilisation < 0.7 or cluster.fabric = roce-400g",
    ]);
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let mut meets: Vec<_> = feasible
        .iter()
        .filter(|row| row["finance.utilisation"] == "0.6" || row["cluster.fabric"] == "roce-400g")
        .collect();
    assert_eq!(kept["feasible_count"], meets.len());
    let front = meets.iter().filter(|row| {
        !meets.iter().any(|other| {
            cost(other) <= cost(row) && days(other) <= days(row) && (cost(other) < cost(row) || days(other) < days(row))
        })
    });
    assert_eq!(kept["pareto"].as_array().unwrap().len(), front.count());
    meets.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    for (row, kept) in meets.iter().zip(kept["top"].as_array().unwrap()) {
        assert_eq!(kept["cost.usd_per_run"].as_f64().unwrap().to_string(), row["cost.usd_per_run"]);
    }
    assert_eq!(kept["groups"].as_array().unwrap().len(), 4);
    for group in kept["groups"].as_array().unwrap() {
        let of = |row: &&&&BTreeMap<String, String>| {
            row["cluster.fabric"] == group["cluster.fabric"].as_str().unwrap()
                && row["cluster.accelerators"].parse::<f64>().ok() == group["cluster.accelerators"].as_f64()
        };
        let least = meets.iter().filter(of).map(|row| cost(row)).fold(f64::INFINITY, f64::min);
        assert!((group["cost.usd_per_run"].as_f64().unwrap() - least).abs() < 1e-6);
    }
    let spread = &kept["quantiles"][0];
    assert_eq!(spread["rows_count"], meets.len());
    assert!((spread["least"].as_f64().unwrap() - cost(meets[0])).abs() < 1e-6);
    // The rank below which half of the rows lie, within a thousandth.
    let median = cost(meets[(meets.len() - 1) / 2]);
    assert!((spread["p50"].as_f64().unwrap() / median - 1.0).abs() < 3e-3, "{spread} {median}");
}

#[test]
fn a_field_of_the_catalog_is_an_axis() {
    let bench = Bench::new();
    let axes = r#"
[sweep]
axes = [
  { cases = [
    [{ key = "cluster.fabric", values = ["quantum-2-ndr"] }],
    [{ key = "cluster.fabric", values = ["roce-400g"] }, { key = "catalog/fabrics/roce-400g/spine_efficiency", values = [0.3, 0.6, 1.0] }],
  ] },
]
where = ["catalog/fabrics/roce-400g/spine_efficiency != 0.6"]
"#;
    let path = bench.scenario(GPT, axes);
    let all = rows(&stdout(&["sweep", path.to_str().unwrap()]));
    // What a point does not have meets no condition, so that the other fabric is left out, too.
    let points: Vec<&str> = all.iter().map(|row| row["point"].as_str()).collect();
    assert_eq!(points, ["1", "3"]);
    let iteration = |row: &BTreeMap<String, String>| row["training.iteration_s"].parse::<f64>().unwrap();
    assert!(iteration(&all[0]) > iteration(&all[1]) * 1.001, "a lower efficiency is slower");
}

#[test]
fn prices_of_the_catalog_are_axes_that_say_what_an_overlay_says() {
    let bench = Bench::new();
    for (axes, points) in [(PRICES, 16), (PRICES_APART, 20)] {
        let path = bench.scenario(GPT, axes);
        let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--figures", "all"]));
        assert_eq!(found.len(), points);
        // Each alone is evaluated afresh where it is the only point.
        for row in &found {
            let columns = row.iter().filter(|(key, value)| key.starts_with("catalog/") && !value.is_empty());
            let text =
                |value: &str| if value.starts_with(['$', 'E']) { format!("\"{value}\"") } else { value.to_owned() };
            let axes: Vec<String> =
                columns.map(|(key, value)| format!("{{ key = \"{key}\", values = [{}] }}", text(value))).collect();
            let mut alone = vec!["sweep".to_owned(), path.to_str().unwrap().to_owned()];
            alone.extend(["--figures".to_owned(), "all".to_owned()]);
            alone.extend(["--set".to_owned(), format!("sweep.axes=[{}]", axes.join(", "))]);
            for key in ["finance.utilisation", "cluster.accelerators"] {
                if let Some(value) = row.get(key).filter(|value| !value.is_empty()) {
                    alone.extend(["--set".to_owned(), format!("{key}={value}")]);
                }
            }
            let alone: Vec<&str> = alone.iter().map(String::as_str).collect();
            let alone = rows(&stdout(&alone)).remove(0);
            for (key, value) in alone.iter().filter(|(key, _)| *key != "point") {
                assert_eq!(row[key], *value, "{key}");
            }
        }
        let costs: std::collections::BTreeSet<&str> = found.iter().map(|row| row["cost.total_usd"].as_str()).collect();
        assert_eq!(costs.len(), points, "every value counts");
    }
}

#[test]
fn sets_lists_and_drawn_values_are_axes() {
    let bench = Bench::new();
    let axes = r#"
[sweep]
axes = [
  { key = "cluster.node", all = ["accelerator in [h100-sxm-80gb, h200-sxm-141gb]", "id in [dgx-h100, dgx-h200, dgx-b200]"] },
  { key = "cluster.fabric", all = ["transport = rocev2", "id in [roce-400g, spectrum-x-400g]"] },
  { zip = [
    { key = "finance.utilisation", sample = { count = 8, seed = 3, triangular = { low = 0.4, mode = 0.8, high = 0.9 } } },
    { key = "cluster.spares", sample = { count = 8, seed = 3, uniform = { low = 0.0, high = 0.1 } } },
  ] },
]
"#;
    let path = bench.scenario(GPT, axes);
    let all = rows(&stdout(&["sweep", path.to_str().unwrap()]));
    let of = |key: &str| all.iter().map(|row| row[key].as_str()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(of("cluster.fabric"), ["roce-400g", "spectrum-x-400g"].into());
    assert!(of("cluster.node").contains("dgx-h100") && !of("cluster.node").contains("dgx-b200"));
    assert_eq!((of("finance.utilisation").len(), of("cluster.spares").len()), (8, 8));
    assert_eq!(all.len(), of("cluster.node").len() * 2 * 8);
    let kept = "cluster.node in [dgx-h100, \"dgx-h200\"] and cluster.fabric in [roce-400g]";
    let kept = rows(&stdout(&["sweep", path.to_str().unwrap(), "--where", kept]));
    let expected = all.iter().filter(|row| {
        ["dgx-h100", "dgx-h200"].contains(&row["cluster.node"].as_str()) && row["cluster.fabric"] == "roce-400g"
    });
    assert!(!kept.is_empty() && kept.iter().eq(expected));
    let output =
        clusterplan(&["sweep", path.to_str().unwrap(), "--where", "cluster.fabric in roce-400g"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn mistakes_of_values_are_told_before_anything_runs() {
    let bench = Bench::new();
    for (axes, told) in [
        ("[sweep]\naxes = [{ key = \"cluster.fabrc\", values = [1] }]", "did you mean \"cluster.fabric\""),
        ("[sweep]\naxes = [{ key = \"cluster.fabric\", values = [\"roce-400\"] }]", "roce-400g"),
        (
            "[sweep]\naxes = [{ key = \"cluster.spares\", range = { from = 0, to = 1, steps = 3, scale = \"log\" } }]",
            "logarithmic",
        ),
        ("[sweep]\naxes = [{ key = \"catalog/fabrics/roce-400g/spine\", values = [1] }]", "spine_efficiency"),
        ("[sweep]\naxes = [{ key = \"catalog/fabrics/roce-401g/class\", values = [1] }]", "the catalog has no"),
        (
            "[sweep]\naxes = [{ key = \"cluster.spares\", values = [0.1] }]\nwhere = [\"cluster.spare < 1\"]",
            "cluster.spares",
        ),
        (
            "[sweep]\naxes = [{ zip = [{ key = \"cluster.spares\", values = [0.1] }, { key = \"finance.utilisation\", values = [0.5, 0.6] }] }]",
            "as many values",
        ),
        ("", "has no axes"),
    ] {
        let path = bench.scenario(GPT, axes);
        let output = clusterplan(&["sweep", path.to_str().unwrap()]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{axes}: {stderr}");
        assert!(stderr.contains(told), "{axes}: {stderr}");
    }
}

#[test]
fn a_sweep_that_is_too_large_is_not_begun() {
    let bench = Bench::new();
    let path = bench.scenario(GPT, AXES);
    let output = clusterplan(&["sweep", path.to_str().unwrap(), "--max-points", "10"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("24 points") && stderr.contains("--max-points 24"), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    let bench = Bench::new();
    let path = bench.scenario(SEARCHED, LAYOUTS);
    let (path, whole, broken) = (path.to_str().unwrap(), bench.path("whole.csv"), bench.path("broken.csv"));
    let sweep = |output: &Path| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("clusterplan"));
        command.args(["sweep", path, "--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"]);
        command.args(["--part-bytes", "1000", "-o", output.to_str().unwrap()]);
        command.stderr(std::process::Stdio::null());
        command
    };
    assert!(sweep(&whole).status().unwrap().success());
    let parts = || {
        let there = fs::read_dir(bench.path("broken.csv.parts"));
        there.map_or(0, |there| {
            there
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "csv"))
                })
                .count()
        })
    };
    // Killed ten times at whatever it is doing: after a number of further parts and of turns of this loop that are drawn.
    let mut state = 7_u32;
    let mut drawn = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let (mut killed, mut tries) = (0, 0);
    while killed < 10 {
        tries += 1;
        assert!(tries < 100, "killed {killed} times in {tries} tries");
        let wanted = parts() + drawn(4) as usize;
        let mut child = sweep(&broken).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && parts() <= wanted {
            std::thread::yield_now();
        }
        for _ in 0..drawn(300) {
            std::thread::yield_now();
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        if broken.exists() {
            // It came to its end before; the next begins anew.
            assert!(fs::read(&whole).unwrap() == fs::read(&broken).unwrap());
            fs::remove_file(&broken).unwrap();
        }
    }
    assert!(sweep(&broken).status().unwrap().success());
    assert!(fs::read(&whole).unwrap() == fs::read(&broken).unwrap());
    assert!(!bench.path("broken.csv.parts").exists());
}

#[test]
fn parts_made_apart_are_the_whole() {
    let bench = Bench::new();
    for (name, axes, small) in [
        (GPT, AXES, &[][..]),
        (SEARCHED, LAYOUTS, &["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"][..]),
    ] {
        let path = bench.scenario(name, axes);
        let path = path.to_str().unwrap();
        let file = |name: &str| bench.path(name).display().to_string();
        let make = |output: &str, shard: &[&str]| {
            stdout(&[&["sweep", path, "-o", output], small, shard].concat());
        };
        make(&file("all.csv"), &[]);
        let names: Vec<String> = (0..3).map(|index| file(&format!("{index}.csv"))).collect();
        for (index, output) in names.iter().enumerate() {
            make(output, &["--shard", &format!("{index}/3")]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let merged = file("merged.csv");
        stdout(&[&["merge", "-o", &merged], &[names[2], names[0], names[1]][..]].concat());
        assert!(fs::read(&merged).unwrap() == fs::read(file("all.csv")).unwrap(), "{name}");

        let refused = |files: &[&str], told: &str| {
            let output = clusterplan(&[&["merge", "-o", &merged], files].concat()).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr.contains(told), "{stderr}");
        };
        refused(&names[..2], "2 is missing");
        refused(&[names[0], names[0]], "the same part");
        refused(&[&file("all.csv")], "says nothing");
        let mut bytes = fs::read(names[1]).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        fs::write(names[1], bytes).unwrap();
        refused(&names, "damaged");
    }
}

#[test]
fn the_order_turns_where_the_costs_cross() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sweeps/fabric-by-size.toml");
    let answer: serde_json::Value =
        serde_json::from_str(&stdout(&["sweep", path.to_str().unwrap(), "--format", "json"])).unwrap();
    let turns = answer["break_even"]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 24);
    let mut crossings = 0;
    for turn in turns {
        let along: Vec<(f64, f64)> = serde_json::from_value(turn["along"].clone()).unwrap();
        assert!(along.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "a better spine costs no more: {turn}");
        let Some(without) = turn["without"].as_f64() else {
            // Three tiers of these switches do not reach so many nodes.
            assert!(turn["of"]["cluster.accelerators"].as_str().unwrap().parse::<u32>().unwrap() >= 65_536);
            continue;
        };
        match (turn["value"].as_f64(), turn["winner"].as_str()) {
            (Some(value), None) => {
                crossings += 1;
                let below = along.iter().rfind(|point| point.0 <= value).unwrap();
                let above = along.iter().find(|point| point.0 >= value).unwrap();
                assert!(below.1 >= without && without >= above.1, "{turn}");
            }
            (None, Some("with")) => assert!(along.iter().all(|point| point.1 <= without), "{turn}"),
            (None, Some("without")) => assert!(along.iter().all(|point| point.1 > without), "{turn}"),
            _ => panic!("{turn}"),
        }
    }
    assert!(crossings > 0);
}

#[test]
fn sweeps_of_nothing_and_of_the_same_twice_are_refused() {
    let bench = Bench::new();
    let refused = |file: &str, axes: &str, more: &[&str], word: &str| {
        let path = bench.scenario(file, &format!("[sweep]\naxes = [{axes}]"));
        let output = clusterplan(&[&["sweep", path.to_str().unwrap()], more].concat()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{axes} {more:?}: {stderr}");
        assert!(stderr.contains(word) && !stderr.contains("panicked"), "{axes} {more:?}: {stderr}");
    };
    let gpus = "{ key = \"cluster.accelerators\", values = [512, 1024] }";
    let used = "{ key = \"finance.utilisation\", values = [0.5, 0.6] }";
    for (axes, word) in [
        (format!("{gpus}, {gpus}"), "varied twice"),
        (format!("{gpus}, {{ zip = [{used}, {gpus}] }}"), "varied twice"),
        (format!("{{ zip = [{gpus}, {gpus}] }}"), "varied twice"),
        (format!("{{ cases = [[{gpus}], [{used}, {used}]] }}"), "varied twice"),
        (format!("{{ cases = [[{gpus}], [{used}]] }}, {used}"), "varied twice"),
        ("{ zip = [] }".to_owned(), "`zip` holds no axes"),
        ("{ cases = [] }".to_owned(), "`cases` holds no axes"),
        ("{ cases = [[], []] }".to_owned(), "`cases` holds no axes"),
        ("{ key = \"cluster.accelerators\", values = [512, 1024, 512] }".to_owned(), "takes 512 twice"),
    ] {
        refused(GPT, &axes, &[], word);
    }
    for (more, word) in [
        (["--top", "0"], "--top"),
        (["--pareto", "cost.usd_per_run,max:cost.usd_per_run"], "twice"),
        (["--where", "cost.usd_per_run > nan"], "`nan`"),
        (["--where", "cost.usd_per_run < inf"], "`inf`"),
    ] {
        refused(GPT, gpus, &more, word);
    }
    // Nothing is trained, so that no run has a cost.
    let serving = "{ key = \"cluster.spares\", values = [0.0, 0.1] }";
    refused(SERVED, serving, &["--top", "3"], "--by");
    // Cases follow each other, and axes that move together may come back to a value.
    for axes in [
        format!("{{ cases = [[{used}], [{used}]] }}"),
        "{ zip = [{ key = \"finance.utilisation\", values = [0.5, 0.5] }, { key = \"cluster.spares\", values = [0.0, 0.1] }] }"
            .to_owned(),
    ] {
        let path = bench.scenario(GPT, &format!("[sweep]\naxes = [{axes}]"));
        assert!(rows(&stdout(&["sweep", path.to_str().unwrap()])).len() >= 2, "{axes}");
    }
}
