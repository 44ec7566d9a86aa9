//! What an accelerator's hour costs its owner by the dated price books, against what others publish for their dates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

/// Hardware as a large owner builds it: a thousand accelerators on InfiniBand with two links down for one up (the tuned bill
/// of SemiAnalysis's AI Neocloud Playbook), no spares.
const BUILT: &[&str] = &["cluster.spares=0", "cluster.topology.oversubscription=[1, 2]"];

/// An owner: site, and cost of capital. A neocloud's is that of CoreWeave's senior notes of July 2025 (9% to 2031); a
/// hyperscaler's is the middle of the 6 to 8% that they are held to.
const NEOCLOUD: (&str, f64) = ("us-wholesale", 0.09);
const HYPERSCALER: (&str, f64) = ("us-hyperscale-liquid", 0.07);

fn hour(node: &str, book: &str, (site, capital): (&str, f64), life: u32) -> f64 {
    let accelerators = if node == "gb200-nvl72" { 14 * 72 } else { 128 * 8 };
    let mut settings: Vec<String> = BUILT.iter().map(|setting| (*setting).to_owned()).collect();
    settings.extend([
        format!("cluster.node={node}"),
        format!("cluster.accelerators={accelerators}"),
        format!("cluster.prices={book}"),
        format!("cluster.site={site}"),
        format!("finance.cost_of_capital={capital}"),
        format!("finance.accelerator_life=\"{life} years\""),
        format!("finance.horizon=\"{life} years\""),
    ]);
    let mut arguments = vec!["eval", "scenarios/serve-llama3.1-70b-64-h100.toml", "--format", "json"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let answer = program::run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    json["cost"]["usd_per_gpu_hour"].as_f64().unwrap()
}

/// Node, and what InferenceX gives for a hyperscaler's and a neocloud giant's own.
type Published = (&'static str, f64, f64);

fn held(level: &str, life: u32, published: &[Published]) {
    for (node, hyperscaler, neocloud) in published {
        let pairs = [("hyperscaler", HYPERSCALER, hyperscaler), ("neocloud", NEOCLOUD, neocloud)];
        for (who, owner, there) in pairs {
            let here = hour(node, &format!("{who}-{level}"), owner, life);
            assert!((here / there - 1.0).abs() < 0.10, "{node}, {who}, {level}: {here} here, {there} there");
        }
    }
}

#[test]
fn hours_of_april_2026() {
    // github.com/SemiAnalysisAI/InferenceX-app at 77ca49a6, packages/app/src/lib/constants.ts. One set of lines, site and
    // cost of capital for each owner; only the nodes' prices differ. Four years of life, as InferenceX underwrites.
    let published = [
        ("hgx-h100-8", 1.30, 1.69),
        ("hgx-h200-8", 1.41, 1.74),
        ("hgx-b200-8", 1.95, 2.34),
        ("gb200-nvl72", 2.21, 2.75),
    ];
    held("2026-04", 4, &published);
}

#[test]
fn hours_of_july_2026() {
    // The same project's pull request 661. The prices are those that were found for 2026, and nothing was reckoned from these
    // hours: with five years of life they come out, with four they would be 8 to 24% higher. InferenceX does not say what it
    // changed.
    let published = [
        ("hgx-h100-8", 1.17, 1.55),
        ("hgx-h200-8", 1.22, 1.59),
        ("hgx-b200-8", 1.73, 2.07),
        ("gb200-nvl72", 1.86, 2.26),
    ];
    held("2026-07", 5, &published);
}
