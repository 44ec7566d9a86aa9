//! `calibrate serving` from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

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
