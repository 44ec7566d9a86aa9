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

#[test]
fn from_the_load_that_pays_tokens_cost_less_than_elsewhere_in_the_same_hours() {
    let rate = |rate: f64| format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
    let few = costs(&[PRICES, &rate(5.0)]);
    // More hours do not make up for as few requests.
    assert!(few("break_even_utilisation_ratio") > 1.0);
    let even = few("break_even_requests_per_s");
    assert!(even > 5.0 && few("break_even_load_ratio") < 1.0, "{even}");
    let at = costs(&[PRICES, &rate(even)]);
    assert!(at("margin_on_cost_ratio").abs() < 1e-9, "{}", at("margin_on_cost_ratio"));
    assert!((at("break_even_load_ratio") / few("break_even_load_ratio") - 1.0).abs() < 1e-9);
}

/// DeepSeek's own count of a day (open-infra-index, day 6, 2025-02-28): 608 billion tokens of prompts, 342 of them cached, 168 of
/// answers, on 226.75 nodes of eight H800 on average and 278 at the peak; $87,072 at $2 a GPU-hour, $562,027 at R1's prices, a cost
/// profit margin of 545%.
#[test]
fn deepseeks_day_is_served_and_costs_and_earns_what_it_published() {
    let answer = program::run(&["price", "studies/deepseek-day.toml", "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    let [rented, sold] = [0, 1].map(|offer| json["offers"][offer]["total_usd"].as_f64().unwrap() / 365.0);
    assert!((rented / 87_072.0 - 1.0).abs() < 1e-4, "{rented}");
    // Its tokens are rounded to billions.
    assert!((sold / 562_027.0 - 1.0).abs() < 1e-3, "{sold}");
    assert!((sold / rented - 1.0 - 5.45).abs() < 0.01, "{}", sold / rented - 1.0);
    // $0.112 a million tokens of both kinds: 87,072 / 776,000.
    let blended = json["offers"][0]["usd_per_mtok_blended"].as_f64().unwrap();
    assert!((blended / 0.112_2 - 1.0).abs() < 1e-3, "{blended}");
    // The day's tokens, and that the model of it serves them. 20 to 22 tokens a second a stream were published and 25.7 are
    // computed, for ranks whose caches are all alike; and 14.8 thousand tokens a second a node of decode, which takes 162 nodes.
    let answer = program::run(&["eval", "scenarios/serve-deepseek-v3-day.toml", "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    let of = |key: &str| json["serving"][key].as_f64().unwrap_or_else(|| panic!("serving.{key}"));
    let day = of("requests_per_s") * 0.815_65 * 86_400.0 * 1e-9;
    assert!((day * 4_383.0 / 608.0 - 1.0).abs() < 2e-3 && (day * 1_211.0 / 168.0 - 1.0).abs() < 2e-3);
    assert!((20.0..26.0).contains(&of("tpot_s").recip()), "{}", of("tpot_s"));
    // Nine of ten runs of the kind lie in a band that reaches from 31.6 to 20.8, and so into what was published, not over all of it.
    assert!(of("tpot_low_s") < 1.0 / 22.0 && of("tpot_high_s") > 1.0 / 21.0);
    // Prefill is nearly full (0.98), for it pays for its exchange between experts, for the busiest of their ranks and for tokens that
    // are moved to them; above 1 the run would be refused.
    assert!((0.9..0.999).contains(&of("capacity.used_ratio")), "{}", of("capacity.used_ratio"));
}
