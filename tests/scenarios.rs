//! The shipped scenarios and studies, and their committed reports.
//!
//! When figures have moved on purpose, `CLUSTERPLAN_UPDATE=1 cargo test --test scenarios` writes `reports/` and the
//! README's excerpt anew; the snapshots are reviewed as insta's always are.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod claims;
mod program;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use assert_cmd::Command;

/// Held while the README is read and written: two tests do.
static README: Mutex<()> = Mutex::new(());

/// Set to write what is committed anew instead of comparing with it.
const UPDATE: &str = "CLUSTERPLAN_UPDATE";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn scenarios() -> Vec<PathBuf> {
    questions("scenarios")
}

/// The files of a folder that ask something, in order.
fn questions(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    found.sort();
    found
}

/// What the program prints for a scenario, compared where the scenario says with what, else evaluated; or for a study.
fn answer(scenario: &Path, format: &str, columns: &str) -> String {
    let text = fs::read_to_string(scenario).unwrap();
    let in_folder = |name: &str| scenario.parent().is_some_and(|folder| folder.ends_with(name));
    let verb = if in_folder("studies") {
        "price"
    } else if in_folder("sweeps") {
        "sweep"
    } else if text.contains("[compare]") {
        "compare"
    } else {
        "eval"
    };
    said(verb, scenario, format, columns)
}

fn said(verb: &str, scenario: &Path, format: &str, columns: &str) -> String {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.current_dir(root()).env("COLUMNS", columns).arg(verb).arg(scenario);
    let output = command.args(["--format", format]).assert().success().get_output().clone();
    String::from_utf8(output.stdout).unwrap()
}

/// The report of a scenario or a study: its answer, behind what a plan finds where the scenario says what a plan may choose.
fn report(scenario: &Path) -> String {
    let answer = answer(scenario, "md", "110");
    if !fs::read_to_string(scenario).unwrap().contains("\n[plan]\n") {
        return answer;
    }
    let plan = said("plan", scenario, "md", "110");
    let (title, rest) = answer.split_once('\n').unwrap();
    assert!(plan.starts_with(title), "{}: a plan and an evaluation of one title", scenario.display());
    let between = "The cluster and the layout that the scenario writes, evaluated:";
    format!("{}\n\n{between}\n{rest}", plan.trim_end())
}

/// Compares a committed file with what it should be, or writes it.
fn fresh(path: &Path, expected: &str) {
    if std::env::var_os(UPDATE).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(committed == expected, "{} is stale: look at what moved and run with {UPDATE}=1", path.display());
}

#[test]
fn tables() {
    insta::glob!("../scenarios", "*.toml", |path| {
        insta::assert_snapshot!(answer(path, "table", "110"));
    });
}

#[test]
fn reports_are_fresh() {
    let mut expected = Vec::new();
    for scenario in [scenarios(), questions("studies"), questions("sweeps")].concat() {
        let path = root().join("reports").join(format!("{}.md", scenario.file_stem().unwrap().display()));
        fresh(&path, &report(&scenario));
        expected.push(path);
    }
    let committed = fs::read_dir(root().join("reports")).unwrap().map(|entry| entry.unwrap().path());
    let orphan = committed.into_iter().find(|path| {
        let report = path.file_name().is_some_and(|name| name.display().to_string().starts_with("train-"));
        report && !expected.contains(path)
    });
    assert_eq!(orphan, None, "a report without its scenario");
}

#[test]
fn statements_are_held_against_what_is_computed() {
    fresh(&root().join("reports/claims.md"), &claims::page());
}

#[test]
fn the_excerpt_in_the_readme_is_fresh() {
    const BEGIN: &str = "<!-- begin: first command -->\n```text\n";
    const END: &str = "\n```\n<!-- end: first command -->";
    let _held = README.lock();
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let whole = answer(&root().join("scenarios/train-llama3.1-405b-16k-h100.toml"), "table", "96");
    let excerpt = whole.split_once("\nMemory of a GPU, on").unwrap().0.trim_end();
    fresh(&path, &format!("{before}{BEGIN}{excerpt}{END}{after}"));
}

#[test]
fn the_errors_in_the_readme_are_fresh() {
    const BEGIN: &str = "<!-- validation -->\n";
    const END: &str = "\n<!-- /validation -->";
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    let output = command.args(["validate", "--format", "json"]).assert().get_output().clone();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut table = vec![
        "| held against | rows | predicted | median error | 90th percentile | bias |".to_owned(),
        "|---|---:|---:|---:|---:|---:|".to_owned(),
    ];
    let mut row = |what: &str, errors: &serde_json::Value| {
        let share = |key: &str| format!("{:.1}%", errors[key].as_f64().unwrap() * 100.0);
        let [median, p90, bias] = ["median_abs_error_ratio", "p90_abs_error_ratio", "bias_ratio"].map(share);
        table.push(format!("| {what} | {} | {} | {median} | {p90} | {bias} |", errors["rows"], errors["predicted"]));
    };
    for (domain, what) in [
        ("training", "published training runs: time of a step, or rate"),
        ("memory", "published memory of training"),
        ("collectives", "published times of collective operations"),
        ("topology", "published networks: switches and cables"),
        ("reliability", "published failures of clusters, and the useful time that they leave"),
        ("economics", "published costs that state their inputs"),
    ] {
        row(what, &json[domain]["summary"]);
    }
    // Kinds of figure and of model, which one median would hide.
    for (domain, start) in [("serving", "time "), ("throughput", "offline")] {
        for group in json[domain]["groups"].as_array().unwrap() {
            let name = group["group"].as_str().unwrap();
            if name.starts_with(start) && group["predicted"].as_u64() >= Some(30) {
                row(&format!("published serving: {name}"), group);
            }
        }
    }
    let _held = README.lock();
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    fresh(&path, &format!("{before}{BEGIN}{}{END}{after}", table.join("\n")));
}

#[test]
fn every_title_is_a_question() {
    for scenario in [scenarios(), questions("studies")].concat() {
        let text = fs::read_to_string(&scenario).unwrap();
        let title = text.lines().find(|line| line.starts_with("title = ")).unwrap();
        assert!(title.trim_end_matches('"').ends_with('?'), "{}: {title}", scenario.display());
        assert!(text.starts_with("# The question: "), "{} does not say its question and sources", scenario.display());
    }
}

#[test]
fn every_scenario_is_as_the_schema_says() {
    use clusterplan::diagnostics::{Sink, Sources};

    let answer = program::run(&["schema", "scenario"]);
    let shape: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let mut found = Vec::new();
    for path in scenarios().into_iter().chain(questions("sweeps")) {
        let document = clusterplan::load::scenario(&path, &[], &mut Sources::default(), &Sink::default()).unwrap();
        schema::mistakes(&shape, &document, path.file_stem().unwrap().to_str().unwrap(), &mut found);
        let missing = serde_json::json!({ "type": "object", "required": ["nothing"], "properties": {} });
        let before = found.len();
        schema::mistakes(&missing, &document, "", &mut found);
        assert!(found.len() > before + 1, "a wrong schema is noticed");
        found.truncate(before);
    }
    assert_eq!(found, Vec::<String>::new());
}
