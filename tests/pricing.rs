//! Pricing studies from the command line: shipped ones answer, and figures hold together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

fn priced(study: &str) -> Value {
    let answer = program::run(&["price", study, "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

#[test]
fn an_owned_cluster_s_years_add_up() {
    let study = priced("studies/own-or-rent-1k-h100.toml");
    for offer in study["offers"].as_array().unwrap().iter().filter(|offer| offer["kind"] == "own") {
        let years = offer["years"].as_array().unwrap();
        let sum = |key: &str| years.iter().map(|year| year[key].as_f64().unwrap()).sum::<f64>();
        let kept = sum("revenue_usd") - sum("running_usd") - sum("bought_usd") + sum("resale_usd") - sum("tax_usd");
        let owners = kept + sum("borrowed_usd") - sum("interest_usd") - sum("principal_usd");
        assert!((sum("owners_usd") - owners).abs() < 1.0, "{offer}");
        // The horizon is the life of what is bought: bought once, and written off whole.
        assert!((sum("bought_usd") / offer["capex_usd"].as_f64().unwrap() - 1.0).abs() < 1e-12);
        assert!((sum("written_off_usd") / sum("bought_usd") - 1.0).abs() < 1e-9);
    }
}

#[test]
fn rent_is_hours_at_their_price_and_what_comes_with_them() {
    let study = priced("studies/own-or-rent-1k-h100.toml");
    for offer in study["offers"].as_array().unwrap().iter().filter(|offer| offer["kind"] == "rent") {
        let figure = |key: &str| offer[key].as_f64().unwrap();
        let hours = figure("paid_days") * 24.0 * 1_024.0;
        let total = hours * figure("usd_per_gpu_hour") + figure("egress_usd") + figure("storage_usd");
        assert!((figure("total_usd") / total - 1.0).abs() < 1e-9, "{offer}");
        assert!(figure("ready_after_days") >= figure("effective_days"));
    }
}
