//! Rows that miss a limit of a latency: told so, after those that keep theirs, and never mixed with them; and the formats of rows.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::{Bench, SERVED, clusterplan, rows, stdout};

/// Loads that keep the limits, miss them, and are too much.
const LOADS: &str = r#"
[sweep]
axes = [
  { key = "serving.weights", values = ["fp8", "bf16"] },
  { key = "serving.arrivals.rate", values = ["5 request/s", "20 request/s", "5000 request/s"] },
  { key = "serving.limits.tpot_p95", values = ["40 ms", "1 ms"] },
]
"#;

/// The scenario with its layout searched.
fn searched(bench: &Bench) -> String {
    bench.scenario(SERVED, LOADS).display().to_string()
}

/// Three kinds of rows: kept, missed, not to be.
fn kinds(all: &[BTreeMap<String, String>]) -> [usize; 3] {
    let kept = |word: &str| all.iter().filter(|row| row["serving.limits_kept"] == word).count();
    [kept("true"), kept("false"), all.iter().filter(|row| row["feasible"] == "false").count()]
}

#[test]
fn rows_that_miss_limits_say_which_and_come_last() {
    let bench = Bench::new();
    let path = searched(&bench);
    let auto = ["--set", "serving.layout=auto"];
    let with = |more: &[&str]| stdout(&[&["sweep", &path], &auto[..], more].concat());
    let all = rows(&with(&["--format", "csv"]));
    let [kept, missed, cannot] = kinds(&all);
    assert!(kept > 1 && missed > 1 && cannot > 1, "{kept} {missed} {cannot}");
    assert_eq!(kept + missed + cannot, all.len());
    for row in &all {
        let told = row["reason"].contains("serving.limits.tpot_p95 of 1 ms is missed: it comes to ");
        assert_eq!(told, row["serving.limits_kept"] == "false", "{row:?}");
        assert_eq!(row["serving.tpot_s"].is_empty(), row["feasible"] == "false", "{row:?}");
    }
    // Best in what rows that miss are best in too, if nothing looks at limits.
    let best: Value = serde_json::from_str(&with(&[
        "--format",
        "json",
        "--top",
        &all.len().to_string(),
        "--by",
        "max:serving.output_tokens_per_s_per_gpu",
        "--pareto",
        "serving.ttft_s,cost.usd_per_mtok_blended",
        "--group-by",
        "serving.arrivals.rate",
    ]))
    .unwrap();
    assert_eq!([&best["feasible_count"], &best["limits_missed_count"]], [kept + missed, missed]);
    let keeps = |row: &Value| row["serving.limits_kept"] == true;
    let top = best["top"].as_array().unwrap();
    assert_eq!(top.len(), kept + missed);
    assert!(top[..kept].iter().all(keeps) && !top[kept..].iter().any(keeps));
    assert!(best["pareto"].as_array().unwrap().iter().all(keeps));
    assert_eq!(best["groups"].as_array().unwrap().len(), 2);
    assert!(best["groups"].as_array().unwrap().iter().all(keeps));
    let why = best["rejected"][0].clone();
    assert_eq!([&why["reason"], &why["count"]], [&Value::from("more requests come than are served"), &cannot.into()]);
    let page = with(&[]);
    let counts = format!("{kept} of them keep their limits, {missed} can be and miss them, {cannot} cannot be");
    assert!(page.contains(&counts), "{page}");
    assert!(page.contains("more requests come than are served"), "{page}");
}

#[test]
fn a_sweep_none_of_whose_rows_keeps_its_limits_is_a_no_as_a_plan_is() {
    let bench = Bench::new();
    let axes = "[sweep]\naxes = [{ key = \"serving.weights\", values = [\"fp8\", \"bf16\"] }]";
    let path = bench.scenario(SERVED, axes);
    let never = ["sweep", path.to_str().unwrap(), "--set", "serving.limits.tpot_p95=1 us"];
    let output = clusterplan(&never).output().unwrap();
    let [told, page] = [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("none of the rows keeps its limits"), "{told}");
    assert!(page.contains("0 of them keep their limits, 2 can be and miss them"), "{page}");
    assert!(page.contains("over 1 us"), "{page}");
}

#[test]
fn the_layout_of_a_row_serves_it_again() {
    let bench = Bench::new();
    let path = searched(&bench);
    let auto = ["--set", "serving.layout=auto", "--format", "csv"];
    let all = rows(&stdout(&[&["sweep", path.as_str()], &auto[..]].concat()));
    let pools = all.iter().filter(|row| row["layout"].contains("prefill")).count();
    let served: Vec<_> = all.iter().filter(|row| row["feasible"] == "true").collect();
    assert!(pools > 0 && pools < served.len(), "{pools}");
    for row in served {
        let axes = ["serving.weights", "serving.arrivals.rate", "serving.limits.tpot_p95"];
        let mut again = vec!["eval".to_owned(), path.clone(), "--format".to_owned(), "csv".to_owned()];
        for key in axes {
            again.extend(["--set".to_owned(), format!("{key}={}", row[key])]);
        }
        again.extend(["--set".to_owned(), format!("serving.layout={}", row["layout"])]);
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        let again = rows(&stdout(&again)).remove(0);
        for key in ["serving.ttft_s", "serving.tpot_s", "serving.replicas_count", "cost.usd_per_mtok_blended"] {
            assert_eq!(row[key], again[key], "{key}: {}", row["layout"]);
        }
    }
}

#[test]
fn rows_are_a_table_or_csv_or_json_by_what_is_asked() {
    let bench = Bench::new();
    let path = searched(&bench);
    let with = |more: &[&str]| stdout(&[&["sweep", path.as_str()], more].concat());
    let csv = with(&["--format", "csv"]);
    let all = rows(&csv);
    let json: Value = serde_json::from_str(&with(&["--format", "json"])).unwrap();
    let objects = json["rows"].as_array().unwrap();
    assert_eq!(objects.len(), all.len());
    for (row, object) in all.iter().zip(objects) {
        for (key, cell) in row {
            let same = match &object[key] {
                Value::Null => cell.is_empty(),
                Value::String(text) => text == cell,
                Value::Number(number) => cell.parse::<f64>().ok() == number.as_f64(),
                Value::Bool(yes) => cell.parse() == Ok(*yes),
                other => panic!("{other}"),
            };
            assert!(same, "{key}: {cell} {}", object[key]);
        }
    }
    let table = with(&[]);
    assert_eq!(table, with(&["--format", "table"]));
    assert!(table.contains("tensor 4") && table.contains("────"), "{table}");
    assert!(with(&["--format", "md"]).contains("| --- |"));
    // A file's ending is the format where none is named; one that says nothing gets the table.
    for (name, same) in [("rows.csv", &csv), ("rows", &table), ("rows.md", &with(&["--format", "md"]))] {
        let file = bench.path(name);
        with(&["-o", file.to_str().unwrap()]);
        assert!(fs::read_to_string(&file).unwrap() == *same, "{name}");
    }
    // In parts too, some of them empty.
    let file = bench.path("rows.json");
    let few = ["--where", "serving.weights = bf16 and serving.limits_kept = true"];
    with(&[&few[..], &["--part-bytes", "1", "-o", file.to_str().unwrap()]].concat());
    let parts: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let meets = objects.iter().filter(|row| row["serving.weights"] == "bf16" && row["serving.limits_kept"] == true);
    assert_eq!(parts["rows"].as_array().unwrap().iter().collect::<Vec<_>>(), meets.collect::<Vec<_>>());
}

#[test]
fn whole_numbers_are_written_whole_and_reasons_say_what_is_wrong() {
    let axes = "sweep.axes=[{ key = \"serving.output_tokens\", values = [1, 512] }, { key = \"serving.layout.decode.tensor\", values = [4] }]";
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    let asked = ["sweep", "scenarios/serve-llama3.1-70b-64-h100.toml", "--set", axes, "--set", pools];
    let with = |more: &[&str]| stdout(&[&asked[..], more].concat());
    let json: Value = serde_json::from_str(&with(&["--format", "json", "--top", "2"])).unwrap();
    let row = &json["top"][0];
    for key in ["serving.output_tokens", "serving.layout.decode.tensor", "serving.replicas_count"] {
        assert!(row[key].is_u64(), "{key}: {row}");
    }
    assert_eq!(
        json["rejected"][0]["reason"],
        "answers are of one token, which the prefill makes: a pool of decode has nothing to do"
    );
    // Kept rows of CSV are written as all of them are.
    let (kept, all) = (rows(&with(&["--format", "csv", "--top", "1"])), rows(&with(&["--format", "csv"])));
    let same = all.iter().find(|row| row["feasible"] == "true").unwrap();
    for key in ["serving.output_tokens", "serving.layout.decode.tensor", "serving.replicas_count"] {
        assert_eq!(kept[0][key], same[key], "{key}");
    }
}

/// Two sizes of one layout, which is an axis too.
const SIZES: &str = r#"
[sweep]
axes = [
  { key = "serving.layout", values = [{ tensor = 4 }] },
  { key = "cluster.accelerators", values = [32, 64] },
]
"#;

#[test]
fn a_figure_that_no_row_has_is_refused_with_those_that_rows_have() {
    let bench = Bench::new();
    let path = bench.scenario(SERVED, SIZES).display().to_string();
    for (option, key) in [
        ("--by", "cost.usd_per_run"),
        ("--pareto", "cost.usd_per_run,serving.ttft_s"),
        ("--quantiles", "training.mfu_ratio"),
    ] {
        let output = clusterplan(&["sweep", &path, option, key]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
        let named = key.replace(',', ", ");
        assert!(told.contains(&format!("`{option}`: none of the rows that can be has `{named}`")), "{told}");
        assert!(told.contains("cost.usd_per_mtok_blended"), "{told}");
    }
    let none = clusterplan(&["sweep", &path, "--where", "cost.usd_per_run < 3"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8(none.stderr).unwrap().contains("no row meets the conditions"));
    stdout(&["sweep", &path, "--by", "cost.usd_per_mtok_output", "--top", "1"]);
}

#[test]
fn no_two_columns_of_a_table_are_called_the_same() {
    let bench = Bench::new();
    let path = bench.scenario(SERVED, SIZES).display().to_string();
    let page = stdout(&["sweep", &path, "--format", "md"]);
    let header: Vec<&str> =
        page.lines().find(|line| line.contains("layout")).unwrap().split('|').map(str::trim).collect();
    assert_eq!(header[1..4], ["serving.layout", "accelerators", "layout"]);
}
