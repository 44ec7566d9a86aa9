//! `calibrate nccl-tests`: logs that the model itself writes, with other constants, give those constants back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
