//! Every command in every format that the README says it takes: JSON and CSV that parse, numbers bare under keys that end in their
//! unit, Markdown and tables for people.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use program::{MIXTRAL, files, run, text};
use serde_json::Value;

const SERVED: &str = "scenarios/serve-llama3.1-70b-64-h100.toml";

/// What keys of bare numbers end in.
const UNITS: [&str; 24] = [
    "_s",
    "_us",
    "_days",
    "_bytes",
    "_gbps",
    "_gbytes_per_s",
    "_flops",
    "_tflops_per_s",
    "_w",
    "_kw",
    "_kwh",
    "_usd",
    "_usd_per_hour",
    "_usd_per_mtok",
    "_ratio",
    "_count",
    "_tokens_per_s",
    "_tco2e",
    "_m",
    "_h",
    "_per_gpu",
    "_per_year",
    "_per_day",
    "_usd_low",
];

/// Columns of what is written as the scenario or the catalog has it, with its unit: settings, fields, and figures in words.
const WRITTEN: [&str; 8] = ["text", "value", "low", "high", "before", "after", "reason", "basis"];

/// A study of two ways to come by the same hour.
const OFFERS: &str = r#"
title = "Eight H100 for an hour"
job = "JOB"
[[offer]]
name = "rented"
kind = "rent"
price = "$34/h"
per = "instance"
accelerators = 8
date = 2025-03-17
[[offer]]
name = "own"
kind = "own"
"#;

/// A log of nccl-tests on a node of eight.
fn log() -> String {
    let mut log = "# Collective test starting: all_gather_perf\n".to_owned();
    for rank in 0..8 {
        writeln!(log, "#  Rank {rank:2} Group  0 Pid 25 on host0 device {rank} [0x8d] GPU").unwrap();
    }
    for exponent in 22..=34 {
        let bytes = 1_u64 << exponent;
        let us = 30.0 + bytes as f64 / 380e3;
        let (rate, bus) = (bytes as f64 / us / 1e3, bytes as f64 / us / 1e3 * 7.0 / 8.0);
        writeln!(log, "{bytes} {} float none -1 {us:.2} {rate:.2} {bus:.2} 0 {us:.2} {rate:.2} {bus:.2} 0", bytes / 32)
            .unwrap();
    }
    log
}

/// The commands, by what the README calls them, as they are asked here.
fn commands(dir: &Path) -> Vec<(&'static str, Vec<String>)> {
    let [log, offers] = ["gather.log", "offers.toml"].map(|name| dir.join(name).display().to_string());
    let axes = "sweep.axes=[{ key = \"cluster.fabric\", values = [\"quantum-2-ndr\", \"roce-400g\"] }]";
    let rates = "sweep.axes=[{ key = \"serving.arrivals.rate\", values = [\"20 request/s\", \"5000 request/s\"] }]";
    let fabrics = "cluster.fabric=quantum-2-ndr,roce-400g";
    let (deadline, sizes) = ("plan.limits.deadline=60 days", "plan.vary={ \"cluster.accelerators\" = [64, 128] }");
    let limits = "serving.limits={ ttft_p95 = \"1 s\", tpot_p95 = \"40 ms\" }";
    let network = ["--node", "dgx-h100", "--fabric", "roce-400g"];
    let replica = "serving.layout={ tensor = 4 }";
    let all: Vec<(&'static str, Vec<&str>)> = vec![
        ("eval", vec!["eval", MIXTRAL]),
        ("eval", vec!["eval", SERVED, "--set", "serving.limits.tpot_p95=1 ms", "--set", "serving.layout=auto"]),
        ("eval", vec!["eval", MIXTRAL, "--set", "training.layout.micro_batch=8"]),
        ("compare", vec!["compare", MIXTRAL, "--vary", fabrics]),
        ("explain", vec!["explain", MIXTRAL, "training.mfu_ratio"]),
        ("scaling", vec!["scaling", MIXTRAL, "--accelerators", "64,128"]),
        ("sweep", vec!["sweep", MIXTRAL, "--set", axes]),
        ("sweep", vec!["sweep", SERVED, "--set", rates]),
        ("sweep", vec!["sweep", SERVED, "--set", rates, "--top", "1", "--quantiles", "serving.tpot_s"]),
        ("uncertainty", vec!["uncertainty", SERVED, "--samples", "16"]),
        ("plan", vec!["plan", MIXTRAL, "--set", deadline, "--set", sizes]),
        ("plan", vec!["plan", SERVED, "--set", limits, "--set", replica]),
        ("plan", vec!["plan", SERVED, "--set", "serving.limits={ tpot_p95 = \"1 us\" }", "--set", replica]),
        ("collective", [&["collective", "all_reduce", "--ranks", "64", "--bytes", "1 GB"][..], &network].concat()),
        ("fabric", [&["fabric", "--accelerators", "64"][..], &network].concat()),
        ("model", vec!["model", "llama-3.1-70b"]),
        ("memory", vec!["memory", MIXTRAL]),
        ("memory", vec!["memory", SERVED]),
        ("memory", vec!["memory", "--model", "llama-3.1-70b", "--accelerator", "h100-sxm-80gb"]),
        ("price", vec!["price", &offers]),
        ("validate", vec!["validate", "--domain", "topology"]),
        ("calibrate nccl-tests", [&["calibrate", "nccl-tests", &log][..], &network].concat()),
        ("catalog list", vec!["catalog", "list"]),
        ("catalog list", vec!["catalog", "list", "accelerators"]),
        ("catalog list", vec!["catalog", "list", "nodes"]),
        ("catalog list", vec!["catalog", "list", "switches"]),
        ("catalog list", vec!["catalog", "list", "sites"]),
        ("catalog list", vec!["catalog", "list", "providers"]),
        ("catalog list", vec!["catalog", "list", "memory_tiers"]),
        ("catalog show", vec!["catalog", "show", "dgx-h100"]),
        ("catalog check", vec!["catalog", "check"]),
    ];
    all.into_iter().map(|(name, asked)| (name, asked.into_iter().map(str::to_owned).collect())).collect()
}

/// What is wrong with a CSV, if anything.
fn faults(csv: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(csv.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let mut faults: Vec<String> = Vec::new();
    if header.iter().collect::<BTreeSet<_>>().len() < header.len() {
        faults.push(format!("a key twice: {header:?}"));
    }
    let is_key = |head: &&String| head.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-/".contains(sign));
    faults.extend(header.iter().filter(|head| !is_key(head)).map(|head| format!("no key: {head}")));
    for row in reader.records() {
        for (head, cell) in header.iter().zip(&row.unwrap()) {
            let bare = |cell: &str| cell.is_empty() || cell.parse::<f64>().is_ok();
            let unit = UNITS.iter().any(|unit| head.ends_with(unit));
            if unit && !cell.split(';').all(bare) {
                faults.push(format!("{head} is not bare: {cell}"));
            }
            // `80 GB`, `$1.2M`, `37.6%`.
            let measure = cell.split_once(' ').is_some_and(|(number, word)| bare(number) && !word.contains(' '));
            let shown =
                measure || bare(cell.strip_prefix('$').unwrap_or("-")) || bare(cell.strip_suffix('%').unwrap_or("-"));
            if shown && !cell.is_empty() && !WRITTEN.contains(&head.as_str()) && !head.starts_with("serving.arrivals") {
                faults.push(format!("{head} is written for people: {cell}"));
            }
        }
    }
    faults
}

#[test]
fn every_command_answers_in_every_format() {
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/train-llama3.1-8b-16-h100-two-nodes.toml");
    let study = OFFERS.replace("JOB", &job.display().to_string());
    let dir = files(&[("gather.log", log().as_bytes()), ("offers.toml", study.as_bytes())]);
    let (mut faulty, mut shown) = (Vec::new(), BTreeSet::new());
    for (name, asked) in commands(dir.path()) {
        let with = &|format: &str| {
            let mut asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            asked.extend(["--format", format]);
            let answer = run(&asked);
            assert!(answer.code < 2, "{asked:?}: {}", answer.stderr);
            assert!(answer.code == 0 || !answer.stderr.is_empty(), "{asked:?} says not why not");
            (answer.code, answer.stdout)
        };
        // What people see of a command is looked at once; of these a page takes seconds.
        let formats = match name {
            _ if !shown.insert(name) => &["json", "csv"][..],
            "price" | "uncertainty" => &["json", "csv", "md"],
            _ => &["json", "csv", "table", "md"],
        };
        let mut answers: Vec<(i32, String)> = std::thread::scope(|scope| {
            let started: Vec<_> = formats.iter().map(|format| scope.spawn(move || with(format))).collect();
            started.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        let pages = answers.split_off(2);
        let [(code, json), (also, csv)] = <[_; 2]>::try_from(answers).unwrap();
        assert_eq!(code, also, "{asked:?}");
        if serde_json::from_str::<Value>(&json).is_err() {
            faulty.push(format!("{asked:?}: no JSON: {json}"));
        }
        faulty.extend(faults(&csv).into_iter().map(|fault| format!("{asked:?}: {fault}")));
        if code == 0 && pages.iter().any(|(_, page)| page.is_empty()) {
            faulty.push(format!("{asked:?}: nothing to read"));
        }
        if pages.last().is_some_and(|(_, markdown)| markdown.contains("────")) {
            faulty.push(format!("{asked:?}: no Markdown"));
        }
        if pages.iter().any(|(_, page)| *page == csv) && !csv.is_empty() {
            faulty.push(format!("{asked:?}: people get CSV"));
        }
    }
    assert!(faulty.is_empty(), "{}", faulty.join("\n"));
}

#[test]
fn commands_that_the_readme_names_are_all_asked_or_write_one_thing_only() {
    let dir = files(&[]);
    let asked: BTreeSet<&str> = commands(dir.path()).into_iter().map(|(name, _)| name).collect();
    // Answers that another program reads, and fits of minutes, which have tests of their own.
    let others =
        ["merge", "schema", "completions", "man", "calibrate training", "calibrate serving", "calibrate collectives"];
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `clusterplan "));
    let mut named = 0;
    for row in rows {
        let command = row.trim_start_matches("| `clusterplan ");
        named += 1;
        let known = asked.iter().chain(&others).any(|known| command.starts_with(known));
        assert!(known, "{row}");
    }
    assert!(named >= 15, "{named}");
    for alone in [&["schema", "scenario"][..], &["completions", "bash"], &["man"]] {
        let answer = run(&[alone, &["--format", "csv"]].concat());
        assert_eq!(answer.code, 2, "{alone:?}");
        assert!(answer.stderr.contains("`--format` has no effect"), "{}", answer.stderr);
    }
}

#[test]
fn the_ending_of_a_file_is_its_format() {
    let dir = tempfile::tempdir().unwrap();
    let swept = "sweep.axes=[{ key = \"cluster.accelerators\", values = [64, 128] }]";
    for asked in [&["catalog", "list", "sites"][..], &["sweep", MIXTRAL, "--set", swept]] {
        for (name, format) in [("a.json", "json"), ("a.CSV", "csv"), ("a.Md", "md"), ("a.txt", "table"), ("a", "table")]
        {
            let file = dir.path().join(name);
            assert_eq!(run(&[asked, &["-o", text(&file)]].concat()).code, 0);
            let same = std::fs::read_to_string(&file).unwrap() == run(&[asked, &["--format", format]].concat()).stdout;
            assert!(same, "{asked:?}: {name}");
        }
    }
    let file = dir.path().join("b.json");
    run(&["catalog", "list", "sites", "--format", "csv", "-o", text(&file)]);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("id,"), "a format that is named is the format");
}

#[test]
fn a_file_whose_ending_is_of_no_format_is_refused() {
    let dir = files(&[("config.json", b"{}")]);
    let config = dir.path().join("config.json");
    let formats = "ends in .csv, .json, .md, .txt or in nothing, or say with --format what it is";
    for (asked, ending, hint) in [
        (&["eval", MIXTRAL][..], "parquet", formats),
        (&["sweep", MIXTRAL], "parquet", formats),
        (&["plan", SERVED], "XLSX", formats),
        (&["catalog", "list"], "html", formats),
        (&["model", "import", text(&config)], "csv", "ends in .toml or in nothing"),
        (&["catalog", "freeze", "dgx-h100"], "json", "ends in .toml or in nothing"),
        (&["schema", "scenario"], "md", "ends in .json or in nothing"),
    ] {
        let file = dir.path().join(format!("a.{ending}"));
        let answer = run(&[asked, &["-o", text(&file)]].concat());
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{asked:?}");
        assert!(answer.stderr.contains(hint), "{}", answer.stderr);
        assert!(answer.stderr.contains(&format!("not written as `.{}`", ending.to_lowercase())), "{}", answer.stderr);
        assert!(!file.exists(), "{asked:?}");
    }
    // A format that is named is what is written, and these have none.
    for asked in [&["catalog", "list", "sites", "--format", "csv"][..], &["completions", "fish"]] {
        assert_eq!(run(&[asked, &["-o", text(&dir.path().join("a.tab"))]].concat()).code, 0, "{asked:?}");
    }
}

#[test]
fn a_dash_is_stdout() {
    let asked = ["catalog", "list", "sites"];
    let answer = run(&[&asked[..], &["-o", "-"]].concat());
    assert_eq!((answer.code, answer.stdout), (0, run(&asked).stdout));
    assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join("-").exists());
}
