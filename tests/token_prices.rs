//! What tokens cost by element, at a margin, and against buying them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

fn costs(settings: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let scenario = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let answer = program::run(&[&["eval", scenario, "--format", "json"], &set[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    move |key| json["cost"][key].as_f64().unwrap_or_else(|| panic!("cost.{key}"))
}

const PRICES: &str =
    "finance.token_prices={ input = \"$0.6/Mtoken\", cached = \"$0.3/Mtoken\", output = \"$0.8/Mtoken\" }";

#[test]
fn elements_add_up_to_what_answers_and_their_prompts_cost() {
    let of = costs(&[]);
    let parts = ["weights", "kv", "compute", "network", "waiting"];
    let all: f64 = parts.iter().map(|part| of(&format!("usd_per_mtok_output_{part}"))).sum();
    // 2,048 tokens of prompts, 30% of them cached, for 512 of an answer: 2.8 and 1.2 tokens for each of an answer.
    let paid = of("usd_per_mtok_output") + 2.8 * of("usd_per_mtok_input") + 1.2 * of("usd_per_mtok_cached");
    assert!((all / paid - 1.0).abs() < 1e-9, "{all} and {paid}");
    assert!(of("energy_per_mtok_output_kwh") > 0.0);
}

#[test]
fn a_margin_is_a_share_of_the_price() {
    let of = costs(&["finance.margin=0.4"]);
    for kind in ["input", "cached", "output"] {
        let price = of(&format!("price_usd_per_mtok_{kind}"));
        assert!((price * 0.6 / of(&format!("usd_per_mtok_{kind}")) - 1.0).abs() < 1e-12, "{kind}");
    }
}

#[test]
fn at_the_utilisation_that_pays_tokens_cost_as_much_as_elsewhere() {
    let of = costs(&[PRICES]);
    let even = of("break_even_utilisation_ratio");
    assert!(even > 0.0 && even < 1.0, "{even}");
    let at = costs(&[PRICES, &format!("finance.utilisation={even}")]);
    // The cost of an hour grows as 1 / utilisation, so that nothing is left, but for the energy that idle hours save.
    assert!(at("margin_on_cost_ratio").abs() < 0.01, "{}", at("margin_on_cost_ratio"));
    assert!((at("break_even_utilisation_ratio") / even - 1.0).abs() < 0.01);
}
