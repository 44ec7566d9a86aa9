//! Constants of serving fitted to runs: the committed ones, and those of a user's own table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;
mod setup;

use std::collections::BTreeSet;

use clusterplan::calibration::{fit_set, leave_out};
use clusterplan::catalog::serving_coverage::ServingCoverage;
use clusterplan::report::markdown;
use clusterplan::units::Factor;
use clusterplan::validation::serving::{Setup, coverage, setups};
use clusterplan::validation::{Domain, LeaveOut, Validation, left_out_page};
use setup::{ALIASES, CATALOG, assert_fitted};

#[test]
fn the_committed_constants_are_the_fit_to_the_project_s_own_runs() {
    let (catalog, aliases) = (&*CATALOG, &*ALIASES);
    let set = |id: &str| &catalog.serving_efficiency.get(id).unwrap().part;
    let read = |domain: Domain| setups(domain, domain.own_cases(), catalog, aliases).unwrap();
    let runs: Vec<(String, Setup)> = Domain::OF_SERVING.into_iter().flat_map(read).collect();
    let runs: Vec<&Setup> = runs.iter().map(|(_, run)| run).collect();
    let fit = fit_set(&runs, set("serving-priors")).unwrap();
    let how = "cargo run --release -- calibrate serving --toml -o \
               catalogs/efficiency/serving/published-points.toml";
    assert_fitted(&fit.set, set("published-points"), how);
}

#[test]
fn the_report_of_models_left_out_is_of_today_s_model_and_constants() {
    // One of its models: a fit without each takes minutes.
    let left = BTreeSet::from(["glm-5".to_owned()]);
    let (catalog, aliases) = (&*CATALOG, &*ALIASES);
    let prior = &catalog.serving_efficiency.get("serving-priors").unwrap().part;
    let read = |domain: Domain| setups(domain, domain.own_cases(), catalog, aliases).unwrap();
    let runs: Vec<(String, Setup)> = Domain::OF_SERVING.into_iter().flat_map(read).collect();
    let runs: Vec<&Setup> = runs.iter().map(|(_, run)| run).collect();
    let model = |run: &Setup| run.left_out_by(LeaveOut::Model).to_owned();
    let sets = leave_out(&runs, prior, &left, model, |_| false).unwrap();
    let own = Domain::Serving.own_cases().lines();
    let table: Vec<&str> = own.filter(|line| line.starts_with("id,") || line.contains("GLM-5")).collect();
    let found =
        Validation::serving_leaving_out(Domain::Serving, &table.join("\n"), catalog, aliases, LeaveOut::Model, &sets);
    let page = markdown(&left_out_page(&[found.unwrap()], LeaveOut::Model));
    // Name, rows, and the errors in percent.
    let groups = |text: &str| -> Vec<(String, Vec<f64>)> {
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let of = text.lines().filter(|line| line.starts_with("| glm-5, ")).map(cells);
        let numbers =
            |cells: &[String]| cells.iter().filter_map(|cell| cell.trim_end_matches('%').parse().ok()).collect();
        of.map(|cells| (cells[1].clone(), numbers(&cells[2..]))).collect()
    };
    let committed = std::fs::read_to_string("reports/serving-left-out.md").unwrap();
    let (fresh, committed) = (groups(&page), groups(&committed));
    assert_eq!(fresh.len(), 2, "{page}");
    for ((group, fresh), (stated, committed)) in fresh.iter().zip(&committed) {
        assert_eq!((group, fresh.len()), (stated, committed.len()));
        for (fresh, stated) in fresh.iter().zip(committed) {
            // Constants of a fit differ in their fourth digit from machine to machine.
            assert!(
                (fresh - stated).abs() <= 0.2,
                "{group}: {fresh}, the report says {stated}: its head says how it is written"
            );
        }
    }
}

/// The rows of the project's own table of which a test says yes.
fn rows(kept: impl Fn(&str) -> bool) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("points.csv");
    let own = std::fs::read_to_string("tests/validation/serving.csv").unwrap();
    let lines: Vec<&str> = own.lines().filter(|line| line.starts_with("id,") || kept(line)).collect();
    std::fs::write(&table, lines.join("\n")).unwrap();
    let table = table.to_str().unwrap().to_owned();
    (dir, table)
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let answer = program::run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

#[test]
fn a_user_s_own_points_give_a_catalog_that_meets_them_better() {
    let (_points, table) = rows(|line| line.contains("GLM-5"));
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("efficiency/serving");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("published-points.toml");
    let fit = ["calibrate", "serving", &table, "--prior", "published-points", "--toml", "-o", file.to_str().unwrap()];
    let answer = program::run(&fit);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let overlay = ["--catalog", dir.path().to_str().unwrap()];
    assert_eq!(program::run(&[&["catalog", "check"], &overlay[..]].concat()).code, 0);
    let validate = ["validate", "--domain", "serving", "--cases", &table];
    let error = |json: &serde_json::Value| json["summary"]["mape_ratio"].as_f64().unwrap();
    let (before, after) = (json(&validate), json(&[&validate, &overlay[..]].concat()));
    assert!(error(&after) < error(&before), "{} {}", after["summary"], before["summary"]);
}

#[test]
fn models_are_left_out_of_the_fit_one_by_one() {
    let (_points, table) = rows(|line| line.contains("GLM-5"));
    let rows =
        |arguments: &[&str]| json(&[&["validate", "--domain", "serving", "--cases", &table], arguments].concat());
    let (with, without) = (rows(&[]), rows(&["--leave-out", "model"]));
    let predicted = |json: &serde_json::Value, row: usize| json["rows"][row]["predicted"].as_f64().unwrap();
    assert_eq!(with["summary"]["predicted"], without["summary"]["predicted"]);
    assert!((predicted(&with, 0) / predicted(&without, 0) - 1.0).abs() > 1e-3);
    let groups: Vec<&str> =
        without["groups"].as_array().unwrap().iter().map(|g| g["group"].as_str().unwrap()).collect();
    assert!(groups.iter().any(|group| group.starts_with("glm-5, ")), "{groups:?}");
}

#[test]
fn what_cannot_be_fitted_says_why() {
    let answer = program::run(&["calibrate", "serving", "tests/validation/kv.csv"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("is no table of serving"), "{}", answer.stderr);
    let answer = program::run(&["calibrate", "serving", "--prior", "prior"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("no set of serving constants has the id \"prior\""), "{}", answer.stderr);
    let (_points, table) = rows(|_| false);
    assert_eq!(program::run(&["calibrate", "serving", &table]).code, 1);
    let (_points, table) = rows(|line| line.starts_with("sp0001,"));
    let sound = std::fs::read_to_string(&table).unwrap();
    let head: Vec<&str> = sound.lines().next().unwrap().split(',').collect();
    for (column, cell) in [
        ("silicon_tpot_ms", "-1"),
        ("silicon_tpot_ms", "0"),
        ("silicon_ttft_ms", "NaN"),
        ("isl", "0"),
        ("isl", "-8"),
        ("isl", "3.5"),
        ("n_gpus", "0"),
        ("n_gpus", "-8"),
        ("n_gpus", "1e300"),
        ("n_gpus", "3.5"),
    ] {
        let mut cells: Vec<&str> = sound.lines().nth(1).unwrap().split(',').collect();
        cells[head.iter().position(|name| *name == column).unwrap()] = cell;
        std::fs::write(&table, format!("{}\n{}\n", head.join(","), cells.join(","))).unwrap();
        let answer = program::run(&["calibrate", "serving", &table]);
        let place = format!("points.csv: line 2, column `{column}`: {cell} is not ");
        assert!(answer.code == 2 && answer.stderr.contains(&place), "{column} {cell}: {}", answer.stderr);
    }
}

#[test]
fn what_the_own_tables_cover_the_catalog_says() {
    let (catalog, aliases) = (&*CATALOG, &*ALIASES);
    let read = |domain: Domain| setups(domain, domain.own_cases(), catalog, aliases).unwrap();
    let runs: Vec<(String, Setup)> = Domain::OF_SERVING.into_iter().flat_map(read).collect();
    let set = &catalog.serving_efficiency.get("published-points").unwrap().part;
    let own = coverage(runs.iter().map(|(_, run)| run), set);
    assert!(own.len() > 10, "{}", own.len());
    for (own, stated) in own.iter().zip(&set.coverage) {
        let kind =
            |cell: &ServingCoverage| ServingCoverage { tpot: None, ttft: None, throughput: None, ..cell.clone() };
        assert_eq!(kind(own), kind(stated));
        for (own, stated) in [(own.tpot, stated.tpot), (own.ttft, stated.ttft), (own.throughput, stated.throughput)] {
            let [own, stated] = [own, stated].map(|factor| factor.map_or(1.0, Factor::get));
            assert!((own / stated - 1.0).abs() < 2e-3, "{own} {stated}");
        }
    }
}
