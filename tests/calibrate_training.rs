//! Constants fitted to runs: the committed ones, and those of a user's own table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod setup;

use assert_cmd::Command;
use clusterplan::calibration::{MeasuredRun, fit_set};
use clusterplan::validation::{Domain, Run, training_runs};
use setup::{ALIASES, CATALOG, assert_fitted};

#[test]
fn the_committed_constants_are_the_fit_to_the_project_s_own_runs() {
    let (catalog, aliases) = (&*CATALOG, &*ALIASES);
    let set = |id: &str| &catalog.training_efficiency.get(id).unwrap().part;
    let runs = training_runs(Domain::Training.own_cases(), catalog, aliases, set("priors")).unwrap();
    let fitted: Vec<&Run> = runs.iter().filter(|run| !run.is_holdout()).collect();
    let fit = fit_set(&fitted, set("priors")).unwrap();
    let how = "cargo run --release -- calibrate training tests/validation/training.csv --prior priors -o \
               catalogs/efficiency/training/published-runs.toml";
    assert_fitted(&fit.set, set("published-runs"), how);
}

fn clusterplan(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("clusterplan").unwrap().args(arguments).output().unwrap()
}

/// Eight runs of one machine, each a tenth slower than the model says.
fn slow_runs() -> String {
    let head = "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,num_gpus,fabric,tp,pp,cp,ep,vpp,mbs,gbs,\
                dp_sharding,recompute,precision,iter_s,framework,software_date,attention_kernel\n";
    let row = |id: u32, seconds: f64| {
        format!(
            "run-{id},ours,GPT 22B,48,6144,64,64,24576,51200,2048,a100-sxm-80gb,8,quantum-hdr,8,1,1,,1,4,{},none,full,\
             bf16,{seconds},megatron-lm,2022.3,unfused\n",
            4 * id
        )
    };
    let table: String = (1..=8).map(|id| row(id, 1.0)).collect();
    let (catalog, aliases) = (&*CATALOG, &*ALIASES);
    let set = &catalog.training_efficiency.get("published-runs").unwrap().part;
    let runs = training_runs(&format!("{head}{table}"), catalog, aliases, set).unwrap();
    let seconds = runs.iter().map(|run| run.predict(run.bind(set).unwrap()).predicted * 1.1);
    let slow: String = (1..).zip(seconds).map(|(id, seconds)| row(id, seconds)).collect();
    format!("{head}{slow}")
}

#[test]
fn a_user_s_own_runs_give_a_catalog_that_fits_them_better() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("runs.csv");
    std::fs::write(&table, slow_runs()).unwrap();
    let table = table.to_str().unwrap();
    let overlay = dir.path().join("efficiency/training");
    std::fs::create_dir_all(&overlay).unwrap();
    let output =
        clusterplan(&["calibrate", "training", table, "-o", overlay.join("published-runs.toml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let median = |arguments: &[&str]| {
        let all = [&["validate", "--domain", "training", "--cases", table, "--format", "json"], arguments].concat();
        let output = clusterplan(&all);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["summary"]["median_abs_error_ratio"].as_f64().unwrap()
    };
    let (before, after) = (median(&[]), median(&["--catalog", dir.path().to_str().unwrap()]));
    assert!((before - (1.0 - 1.0 / 1.1)).abs() < 1e-6, "{before}");
    assert!(after < 0.4 * before, "{after}");
}

#[test]
fn runs_that_the_prior_was_fitted_to_are_told_to_count_twice() {
    // Rows of one source, for speed: three of the project's own, the last with another result.
    let (own, dir) = (Domain::Training.own_cases(), tempfile::tempdir().unwrap());
    let path = dir.path().join("runs.csv");
    let path = path.to_str().unwrap();
    let file = |table: &str, more: &[&str]| {
        std::fs::write(path, table).unwrap();
        let output = clusterplan(&[&["calibrate", "training", path], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let three = own.lines().filter(|line| !line.contains("holdout")).take(4).collect::<Vec<_>>().join("\n");
    let twice = file(&three, &[]);
    assert!(twice.starts_with("# 3 of these 3 runs count twice: `published-runs`"), "{twice}");
    assert!(twice.lines().next().unwrap().contains("`--prior priors` begins before them"), "{twice}");
    assert!(file(&three, &["--prior", "priors"]).starts_with("# Written by"));
    // Runs of one's own are nobody else's.
    let slow = file(&slow_runs(), &[]);
    assert!(slow.starts_with("# Written by"), "{slow}");
}

#[test]
fn what_cannot_be_fitted_says_why() {
    let said = |arguments: &[&str], code: i32, said: &str| {
        let output = clusterplan(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{message}");
        assert!(message.contains(said), "{message}");
    };
    let own = "tests/validation/training.csv";
    said(&["calibrate", "training", own, "--prior", "prior"], 2, "no set of training constants has the id \"prior\"");
    said(&["calibrate", "training", "tests/validation/kv.csv"], 2, "are missing");
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("runs.csv");
    std::fs::write(&table, slow_runs().replace("a100-sxm-80gb", "TPU v4")).unwrap();
    let nothing = "there are no measurements that any constant could be fitted to";
    said(&["calibrate", "training", table.to_str().unwrap()], 1, nothing);
    for cell in ["1e300", "1e-300", "0", "-1", "NaN"] {
        let runs = slow_runs();
        let last = runs.lines().last().unwrap().split(',').nth(23).unwrap();
        std::fs::write(&table, runs.replace(last, cell)).unwrap();
        let place = format!("line 9, column `iter_s`: {cell} is not a number from 0.001 to 86400");
        said(&["calibrate", "training", table.to_str().unwrap()], 2, &place);
    }
    said(
        &["validate", "--domain", "kv", "--leave-out", "source"],
        2,
        "only the constants of training, of serving, and of collectives",
    );
}

#[test]
fn sources_are_left_out_of_the_fit_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("runs.csv");
    let own = std::fs::read_to_string("tests/validation/training.csv").unwrap();
    let kept = |line: &&str| line.starts_with("id,") || line.contains("arXiv 2104.04473") || line.contains("SimuMax");
    std::fs::write(&table, own.lines().filter(kept).collect::<Vec<_>>().join("\n")).unwrap();
    let table = table.to_str().unwrap();
    let rows = |arguments: &[&str]| {
        let all = [&["validate", "--domain", "training", "--cases", table, "--format", "json"], arguments].concat();
        let json: serde_json::Value = serde_json::from_slice(&clusterplan(&all).stdout).unwrap();
        json
    };
    let json = rows(&["--leave-out", "source"]);
    // SimuMax stays in every fit: its 43 rows have no left-out error.
    assert_eq!((json["summary"]["predicted"].as_u64(), json["summary"]["excluded"].as_u64()), (Some(22), Some(43)));
    assert!(json["summary"]["median_abs_error_ratio"].as_f64().unwrap() < 0.15, "{}", json["summary"]);
    let (with, without) = (rows(&[])["rows"][0]["predicted"].as_f64(), json["rows"][0]["predicted"].as_f64());
    assert_ne!(with, without);
}
