//! Formats, files, terminals and readers that go away.

use std::fs;
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use clusterplan::report::METRICS;
use serde_json::Value;

use super::json;
use crate::figures::is_conditional;
use crate::program::{LLAMA, MIXTRAL, run};

#[test]
fn an_answer_is_on_stdout_alone() {
    for format in ["table", "json", "csv", "md"] {
        let answer = run(&["eval", MIXTRAL, "--format", format]);
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{format}");
        assert!(answer.stdout.ends_with('\n') && answer.stdout.len() > 1_000, "{format}");
    }
}

#[test]
fn a_file_gets_the_answer_instead_of_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.json");
    let answer = run(&["eval", MIXTRAL, "--format", "json", "-o", file.to_str().unwrap()]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""));
    let object: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(object["memory"]["fits"], true);
    let answer = run(&["eval", MIXTRAL, "-o", "/nowhere/out.md"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("cannot write /nowhere/out.md"));
}

#[test]
fn json_has_groups_with_their_basis_and_bare_numbers() {
    let object = json(&["eval", MIXTRAL, "--set", "training.data.raw=1 PB", "--set", "training.data.cleaned=160 TB"]);
    assert!(object["serving"].is_null(), "nothing is served");
    for metric in METRICS.iter().filter(|metric| !is_conditional(metric)) {
        let (group, name) = metric.key.split_once('.').unwrap();
        assert!(object[group][name].is_number() || object[group][name].is_boolean(), "{}", metric.key);
    }
    for group in ["memory", "training", "data", "goodput", "fabric", "facility", "cost"] {
        assert!(object[group]["basis"].is_string(), "{group}");
    }
    assert!(object["cost"]["lines"].as_array().unwrap().len() > 5);
    assert!(object["fabric"]["parts"].as_array().unwrap().len() > 5);
}

#[test]
fn csv_has_a_column_a_figure() {
    let data = ["--set", "training.data.raw=1 PB", "--set", "training.data.cleaned=160 TB"];
    let answer = run(&[&["eval", MIXTRAL, "--format", "csv"], &data[..]].concat());
    let mut reader = csv::Reader::from_reader(answer.stdout.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
    assert_eq!(header[0], "title");
    assert_eq!(header[1..], keys);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 1);
    let numbers = rows[0].iter().skip(1).filter(|cell| cell.parse::<f64>().is_ok()).count();
    let serving = METRICS.iter().filter(|metric| is_conditional(metric)).count();
    assert_eq!(
        numbers,
        METRICS.len() - serving - 2,
        "all but `memory.fits`, `data.storage_suffices` and serving's are numbers"
    );
    assert!(run(&["eval", MIXTRAL, "--format", "csv", "--bom"]).stdout.starts_with('\u{feff}'));
}

#[test]
fn a_title_cannot_become_a_formula() {
    let answer = run(&["eval", MIXTRAL, "--format", "csv", "--set", "title=\"=HYPERLINK(1)\""]);
    assert!(answer.stdout.lines().nth(1).unwrap().starts_with("'=HYPERLINK(1),"), "{}", answer.stdout);
}

#[test]
fn csv_of_a_comparison_has_a_line_a_variant() {
    let answer = run(&["compare", LLAMA, "--format", "csv", "--vary", "training.layout.pipeline=16,8"]);
    let mut reader = csv::Reader::from_reader(answer.stdout.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!([&rows[0][0], &rows[0][1], &rows[0][2]], ["16", "true", "true"]);
    assert_eq!([&rows[1][0], &rows[1][2]], ["8", "false"]);
    assert!(rows[1][3].contains("short by"));
}

#[test]
fn narrow_terminals_and_no_colour_are_respected() {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("COLUMNS", "72").env("NO_COLOR", "1");
    let output = command.args(["eval", MIXTRAL]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 72).collect();
    assert_eq!(long, Vec::<&str>::new());
    assert!(!text.contains('\u{1b}'));
    let mistaken = run(&["eval", MIXTRAL, "--set", "cluster.node=x"]);
    assert!(!mistaken.stderr.contains('\u{1b}'), "no codes where stderr is no terminal");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Process::new(env!("CARGO_BIN_EXE_clusterplan"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["compare", LLAMA, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn shells_and_the_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (0, ""), "{shell}");
        for word in ["uncertainty", "nccl-tests", "break-even"] {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert!(run(&["man"]).stdout.contains("clusterplan\\-eval"));
    assert!(run(&["man", "calibrate", "training"]).stdout.contains("prior"));
    let unknown = run(&["man", "evla"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean `eval`"), "{}", unknown.stderr);
}
