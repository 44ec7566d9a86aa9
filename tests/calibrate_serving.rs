//! `calibrate serving` from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use clusterplan::catalog::serving_coverage::ServingCoverage;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::validation::serving::{constants, coverage, setups};
use clusterplan::validation::{ALIASES, Aliases, Domain};

#[test]
fn a_pass_over_the_own_tables_comes_nearer() {
    let answer = program::run(&["calibrate", "serving", "--passes", "1", "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let rows: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let number = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().parse::<f64>().unwrap();
    let distance = rows.last().unwrap();
    assert_eq!(distance["Constant"], "distance");
    assert!(number(distance, "Fitted") < number(distance, "Catalog"));
    // Shares stay shares.
    let share = rows.iter().find(|row| row["Constant"] == "generation.hopper.weights").unwrap();
    assert!((0.02..=1.0).contains(&number(share, "Fitted")));
}

#[test]
fn a_table_of_something_else_is_refused() {
    let answer = program::run(&["calibrate", "serving", "tests/validation/kv.csv"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("is no table of serving"), "{}", answer.stderr);
}

#[test]
fn the_fitted_set_is_a_file_of_a_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("efficiency/serving");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("published-points.toml");
    let answer = program::run(&["calibrate", "serving", "--passes", "1", "--toml", "-o", file.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let overlay = ["--catalog", dir.path().to_str().unwrap()];
    assert_eq!(program::run(&[&["catalog", "check"], &overlay[..]].concat()).code, 0);
    // A second pass begins where the first has ended, and comes nearer still.
    let again = ["calibrate", "serving", "--passes", "1", "--format", "json"];
    let rows: serde_json::Value =
        serde_json::from_str(&program::run(&[&again[..], &overlay[..]].concat()).stdout).unwrap();
    let built_in: serde_json::Value = serde_json::from_str(&program::run(&again).stdout).unwrap();
    let before = |rows: &serde_json::Value| {
        rows.as_array().unwrap().last().unwrap()["Catalog"].as_str().unwrap().parse::<f64>().unwrap()
    };
    assert!(before(&rows) < before(&built_in));
}

#[test]
fn what_the_own_tables_cover_the_catalog_says() {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let file = sources.add("aliases.toml", ALIASES);
    let aliases = Aliases::read(&load::parse(&sources, file, &sink), &sink);
    let mut runs = Vec::new();
    for domain in [Domain::Serving, Domain::Throughput] {
        runs.extend(setups(domain, domain.own_cases(), &catalog, &aliases).unwrap().into_iter().map(|(_, run)| run));
    }
    let set = constants(&catalog).unwrap();
    let own = coverage(&runs, set);
    assert!(own.len() > 10, "{}", own.len());
    let kind = |cell: &ServingCoverage| (cell.generation.clone(), cell.engine.clone(), cell.architecture, cell.pools);
    for cell in &own {
        // The catalog's kinds are of all published points, of which the project's tables are a part.
        let all = set.coverage.iter().find(|all| kind(all) == kind(cell));
        let all = all.unwrap_or_else(|| panic!("not in the catalog: {cell:?}"));
        assert!(all.points >= cell.points, "{cell:?}");
        for (own, stated) in [(cell.tpot, all.tpot), (cell.ttft, all.ttft), (cell.throughput, all.throughput)] {
            let Some(own) = own else { continue };
            assert!(own.get().ln() < 1.5 * stated.unwrap().get().ln(), "{stated:?} is stated, and {cell:?}");
        }
    }
}
