//! Constants of serving fitted to runs: the committed ones, and those of a user's own table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;
mod setup;

use clusterplan::calibration::fit_set;
use clusterplan::catalog::serving_coverage::ServingCoverage;
use clusterplan::units::Factor;
use clusterplan::validation::Domain;
use clusterplan::validation::serving::{Setup, coverage, setups};
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
        let place = format!("error[out-of-range]: the table: line 2, column `{column}`: {cell} is not ");
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
