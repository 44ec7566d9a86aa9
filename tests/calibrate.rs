//! `calibrate nccl-tests`: logs that the model itself writes, with other constants, give those constants back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clusterplan::calibration::fit_collective_set;
use clusterplan::catalog::{CollectiveEfficiency, Section};
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::validation::{ALIASES, Aliases, CollectiveRun, Domain, collective_runs};
use program::run;
use serde_json::Value;

/// A catalog of one file over the built-in one.
fn overlay(dir: &Path, text: &str) -> PathBuf {
    let folder = dir.join("efficiency/collectives");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("nccl.toml"), text).unwrap();
    dir.to_owned()
}

const NETWORK: [&str; 4] = ["--node", "dgx-h100", "--fabric", "roce-400g-cx7"];

/// Microseconds of an all-gather on so many ranks.
fn time(ranks: &str, bytes: u64, catalog: Option<&Path>) -> f64 {
    let bytes = bytes.to_string();
    let mut arguments = vec!["collective", "all_gather", "--ranks", ranks, "--bytes", &bytes, "--format", "json"];
    arguments.extend(NETWORK);
    if let Some(catalog) = catalog {
        arguments.extend(["--catalog", catalog.to_str().unwrap()]);
    }
    let answer = run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str::<Value>(&answer.stdout).unwrap()["answer"]["time_us"].as_f64().unwrap()
}

/// What nccl-tests would print of a cluster with those constants, behind srun's marks.
fn log(ranks: u32, catalog: &Path) -> String {
    let mut text = "0: # Collective test starting: all_gather_perf\n".to_owned();
    for rank in 0..ranks {
        writeln!(text, "0: #  Rank {rank:2} Group  0 Pid 25 on host{} device {} [0x8d] GPU", rank / 8, rank % 8)
            .unwrap();
    }
    for exponent in [10, 14, 18].into_iter().chain(22..=34) {
        let bytes = 1_u64 << exponent;
        let us = time(&ranks.to_string(), bytes, Some(catalog));
        let rate = bytes as f64 / us / 1e3;
        let bus = rate * f64::from(ranks - 1) / f64::from(ranks);
        writeln!(
            text,
            "0: {bytes} {} float none -1 {us:.2} {rate:.2} {bus:.2} 0 {us:.2} {rate:.2} {bus:.2} 0",
            bytes / 64
        )
        .unwrap();
    }
    text
}

#[test]
fn a_log_gives_the_constants_back_that_it_was_made_with() {
    let dir = tempfile::tempdir().unwrap();
    let truth = overlay(
        &dir.path().join("truth"),
        "[network.roce-cx7]\npayload = 0.70\nll_hop = \"12 us\"\n[scale_up.nvlink4]\nring = 0.75\n\
         [[source]]\nfields = [\"network.roce-cx7.payload\", \"network.roce-cx7.ll_hop\", \"scale_up.nvlink4.ring\"]\n\
         basis = \"assumed\"\ntitle = \"The truth of this test\"\naccessed = 2026-11-29\n",
    );
    let files: Vec<PathBuf> = [8, 32]
        .map(|ranks| {
            let file = dir.path().join(format!("{ranks}.log"));
            fs::write(&file, log(ranks, &truth)).unwrap();
            file
        })
        .into();
    let mut arguments = vec!["calibrate", "nccl-tests"];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    arguments.extend(NETWORK);

    let fitted = run(&[&arguments[..], &["--format", "json"]].concat());
    assert_eq!(fitted.code, 0, "{}", fitted.stderr);
    let fitted: Value = serde_json::from_str(&fitted.stdout).unwrap();
    let of = |name: &str| {
        let constants = fitted["constants"].as_array().unwrap();
        let constant = constants.iter().find(|constant| constant["constant"] == name).unwrap();
        constant["value"].as_f64().unwrap()
    };
    // Within a node the ring's share is the only rate; across nodes the cards bind: 8 x 50 x 0.70 < 450 x 0.75.
    assert!((of("scale_up.nvlink4.ring") / 0.75 - 1.0).abs() < 0.02, "{}", of("scale_up.nvlink4.ring"));
    assert!((of("network.roce-cx7.payload") / 0.70 - 1.0).abs() < 0.05, "{}", of("network.roce-cx7.payload"));
    let median = |errors: &Value| errors["median_abs_error_ratio"].as_f64().unwrap();
    assert!(median(&fitted["after"]) < 0.02 && median(&fitted["before"]) > 2.0 * median(&fitted["after"]));
    // A log that was left out is met better by constants fitted to the other.
    let held_out = fitted["held_out"].as_array().unwrap();
    assert_eq!(held_out.len(), 2);
    assert!(held_out.iter().all(|held| median(&held["after"]) < median(&held["before"])), "{held_out:?}");

    // What is written is a catalog, and with it the program answers as measured.
    let written = run(&arguments);
    let mine = overlay(&dir.path().join("mine"), &written.stdout);
    for bytes in [1 << 14, 1 << 32] {
        let (truth, mine) = (time("32", bytes, Some(&truth)), time("32", bytes, Some(&mine)));
        assert!((mine / truth - 1.0).abs() < 0.03, "{bytes}: {mine}, made with {truth}");
        assert!((time("32", bytes, None) / truth - 1.0).abs() > 0.03);
    }
}

#[test]
fn logs_that_say_too_little_or_something_else_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |text: &str, more: &[&str], expected: &str| {
        let file = dir.path().join("a.log");
        fs::write(&file, text).unwrap();
        let answer = run(&[&["calibrate", "nccl-tests", file.to_str().unwrap()], &NETWORK[..], more].concat());
        assert_eq!(answer.code, 2, "{text}");
        assert!(answer.stderr.contains(expected), "{}", answer.stderr);
    };
    let line = "8388608 2097152 float sum -1 100 83.89 157.29 0";
    refused("hello", &[], "no line with a size and a time");
    refused(line, &["--ranks", "16"], "does not say which collective");
    refused(line, &["--collective", "all_reduce"], "does not say how many ranks");
    refused(line, &["--collective", "all_reduce", "--ranks", "8"], "are not those of all_reduce on 8 ranks");
    refused(line, &["--collective", "all_reduce", "--ranks", "1"], "one rank");
    refused("8 2 float sum -1 12.9 0 0 7", &["--collective", "all_reduce", "--ranks", "8"], "7 wrong elements");
}

#[test]
fn runs_of_numbers_that_no_run_has_are_refused_in_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("runs.csv");
    for (column, cell) in [
        ("time_us", "1e300"),
        ("time_us", "1e-300"),
        ("time_us", "0"),
        ("time_us", "NaN"),
        ("size_bytes", "1e300"),
        ("size_bytes", "3.5"),
        ("n_gpus", "-8"),
    ] {
        let (mut bytes, mut time, mut gpus) = ("8388608", "166.6", "16");
        match column {
            "time_us" => time = cell,
            "size_bytes" => bytes = cell,
            _ => gpus = cell,
        }
        let head = "collective,n_gpus,gpus_per_node,gpu,fabric,nics_per_node,nic_gbps,size_bytes,time_us";
        let row = format!("all_reduce,{gpus},8,A100 80GB,efa-v1,4,100,{bytes},{time}");
        fs::write(&table, format!("{head}\nall_reduce,16,8,A100 80GB,efa-v1,4,100,8,164.3\n{row}\n")).unwrap();
        for more in [&[][..], &["--toml"]] {
            let answer = run(&[&["calibrate", "collectives", table.to_str().unwrap()], more].concat());
            let place = format!("line 3, column `{column}`: {cell} is not ");
            assert!(answer.code == 2 && answer.stderr.contains(&place), "{column} {cell}: {}", answer.stderr);
        }
    }
}

/// Names, typical values and ends of all constants of a set.
fn constants(set: &CollectiveEfficiency) -> Vec<(String, [f64; 3])> {
    let links = set.scale_up.keys().flat_map(|kind| [Section::ScaleUp(kind.clone()), Section::Nvls(kind.clone())]);
    let networks = set.network.keys().map(|class| Section::Network(class.clone()));
    let shared = [Section::Library, Section::Pat, Section::Sharp, Section::Mpi, Section::Staging];
    let all = shared.into_iter().chain(links).chain(networks).flat_map(|section| set.constants(&section));
    all.map(|one| (one.path.to_string(), [one.range.value, one.range.low, one.range.high])).collect()
}

#[test]
fn the_committed_constants_are_the_fit_to_the_project_s_own_logs() {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let file = sources.add("aliases.toml", ALIASES);
    let aliases = Aliases::read(&load::parse(&sources, file, &sink), &sink);
    assert!(sink.is_empty());
    let set = |id: &str| &catalog.collective_efficiency.get(id).unwrap().part;
    let runs = collective_runs(Domain::Collectives.own_cases(), &catalog, &aliases).unwrap();
    let runs: Vec<&CollectiveRun> = runs.iter().collect();
    let fit = fit_collective_set(&runs, set("before-logs")).unwrap();
    let how = "cargo run --release -- calibrate collectives --toml -o catalogs/efficiency/collectives/nccl.toml";
    let (fresh, committed) = (constants(&fit.set), constants(set("nccl")));
    assert_eq!(fresh.len(), committed.len());
    for ((name, fresh), (_, committed)) in fresh.into_iter().zip(committed) {
        for (fresh, committed) in fresh.into_iter().zip(committed) {
            // Files keep four digits, and libraries differ in the last digits of a logarithm.
            let near = (fresh - committed).abs() <= 2e-3 * committed.abs();
            assert!(near, "{name} is {fresh}, committed {committed}; `{how}` writes it anew");
        }
    }
    // The logs say something: most of what they hang on has moved and is narrower than before them.
    assert!(fit.constants.len() > 30 && fit.constants.iter().all(|constant| constant.narrowed < 0.8));
}

#[test]
fn a_fitted_set_is_a_file_of_a_catalog_and_meets_what_it_was_fitted_to() {
    let dir = tempfile::tempdir().unwrap();
    // Runs of one machine: the own table's, each a fifth slower.
    let own = Domain::Collectives.own_cases();
    let slower = |line: &str| {
        let (row, time) = line.rsplit_once(',').unwrap();
        time.parse::<f64>().map_or_else(|_| line.to_owned(), |time| format!("{row},{}", time * 1.2))
    };
    let rows = own.lines().enumerate().filter(|(index, line)| *index == 0 || line.contains("simumax-h100-8,"));
    let table = dir.path().join("runs.csv");
    fs::write(&table, rows.map(|(_, line)| slower(line)).collect::<Vec<_>>().join("\n")).unwrap();
    let table = table.to_str().unwrap();
    let written = run(&["calibrate", "collectives", table, "--toml"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(
        written.stdout.starts_with("# Written by `clusterplan calibrate collectives --toml`: "),
        "{}",
        written.stdout
    );
    let mine = overlay(&dir.path().join("mine"), &written.stdout);
    let mine = mine.to_str().unwrap();
    assert_eq!(run(&["catalog", "check", "--catalog", mine]).code, 0);
    let median = |more: &[&str]| {
        let arguments = ["validate", "--domain", "collectives", "--cases", table, "--format", "json"];
        let answer: Value = serde_json::from_str(&run(&[&arguments[..], more].concat()).stdout).unwrap();
        answer["summary"]["median_abs_error_ratio"].as_f64().unwrap()
    };
    let (before, after) = (median(&[]), median(&["--catalog", mine]));
    assert!(before > 0.12 && after < before / 2.0, "{before} {after}");

    // Each source without itself, by either command.
    let rows = own
        .lines()
        .enumerate()
        .filter(|(index, line)| *index == 0 || line.contains("mlperf5-h200-8,") || line.contains("mlperf4-h100-8,"));
    fs::write(dir.path().join("two.csv"), rows.map(|(_, line)| line).collect::<Vec<_>>().join("\n")).unwrap();
    let two = dir.path().join("two.csv");
    let two = two.to_str().unwrap();
    let left_out = run(&["calibrate", "collectives", two, "--format", "json"]);
    let same =
        run(&["validate", "--domain", "collectives", "--cases", two, "--leave-out", "source", "--format", "json"]);
    assert_eq!((same.code, &same.stdout), (0, &left_out.stdout), "{}", same.stderr);

    let refused = run(&["calibrate", "collectives", "--prior", "ncl"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("no set of collective constants has the id"), "{}", refused.stderr);
}
