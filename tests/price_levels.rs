//! What an accelerator's hour costs its owner by the dated price books, against what others publish for their dates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

/// Hardware as a large owner builds it: a thousand accelerators on InfiniBand with two links down for one up (the tuned bill
/// of SemiAnalysis's AI Neocloud Playbook), no spares.
const BUILT: &[&str] = &["cluster.spares=0", "cluster.topology.oversubscription=[1, 2]"];

/// Where an owner builds. Prices, the life of accelerators and the cost of capital are the price book's.
const NEOCLOUD: &str = "us-wholesale";
const HYPERSCALER: &str = "us-hyperscale-liquid";

fn cost(node: &str, book: &str, site: &str, more: &[&str]) -> serde_json::Value {
    let accelerators = if node == "gb200-nvl72" { 14 * 72 } else { 128 * 8 };
    let mut settings: Vec<String> = BUILT.iter().chain(more).map(|setting| (*setting).to_owned()).collect();
    settings.extend([
        format!("cluster.node={node}"),
        format!("cluster.accelerators={accelerators}"),
        format!("cluster.prices={book}"),
        format!("cluster.site={site}"),
    ]);
    let mut arguments = vec!["eval", "scenarios/serve-llama3.1-70b-64-h100.toml", "--format", "json"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let answer = program::run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn hour(node: &str, book: &str, site: &str, more: &[&str]) -> f64 {
    cost(node, book, site, more)["cost"]["usd_per_gpu_hour"].as_f64().unwrap()
}

/// Node, and what InferenceX gives for a hyperscaler's and a neocloud giant's own.
type Published = (&'static str, f64, f64);

fn held(level: &str, published: &[Published]) {
    for (node, hyperscaler, neocloud) in published {
        for (who, site, there) in [("hyperscaler", HYPERSCALER, hyperscaler), ("neocloud", NEOCLOUD, neocloud)] {
            let here = hour(node, &format!("{who}-{level}"), site, &[]);
            assert!((here / there - 1.0).abs() < 0.10, "{node}, {who}, {level}: {here} here, {there} there");
        }
    }
}

#[test]
fn hours_of_april_2026() {
    // github.com/SemiAnalysisAI/InferenceX-app at 77ca49a6, packages/app/src/lib/constants.ts. One set of lines, site and
    // terms for each owner; only the nodes' prices differ.
    let published = [
        ("hgx-h100-8", 1.30, 1.69),
        ("hgx-h200-8", 1.41, 1.74),
        ("hgx-b200-8", 1.95, 2.34),
        ("gb200-nvl72", 2.21, 2.75),
    ];
    held("2026-04", &published);
}

#[test]
fn hours_of_july_2026() {
    // The same project's pull request 661. The prices are those that were found for 2026, and nothing was reckoned from these
    // hours. The book's life of accelerators is what moves them: five years and not April's four.
    let published = [
        ("hgx-h100-8", 1.17, 1.55),
        ("hgx-h200-8", 1.22, 1.59),
        ("hgx-b200-8", 1.73, 2.07),
        ("gb200-nvl72", 1.86, 2.26),
    ];
    held("2026-07", &published);
}

#[test]
fn terms_of_a_book_are_said_and_give_way_to_the_scenario_s() {
    let answer = cost("hgx-h100-8", "neocloud-2026-04", NEOCLOUD, &[]);
    assert_eq!(answer["scenario"]["finance.accelerator_life"], "4 years", "{}", answer["scenario"]);
    assert_eq!(answer["scenario"]["finance.cost_of_capital"], "0.09");
    // A book without terms leaves the usual ones.
    let usual = cost("hgx-h100-8", "neocloud-2026h2", NEOCLOUD, &[]);
    assert_eq!(usual["scenario"]["finance.accelerator_life"], "5 years");
    assert_eq!(usual["scenario"]["finance.cost_of_capital"], "0.11");
    let said = ["finance.accelerator_life=5 years", "finance.cost_of_capital=0.11"];
    let own = hour("hgx-h100-8", "neocloud-2026-04", NEOCLOUD, &said);
    let book = answer["cost"]["usd_per_gpu_hour"].as_f64().unwrap();
    assert!((own - book).abs() > 0.01, "{own} {book}");
}
