//! Uncertainty: a seed gives the same answer on any number of threads, what is certain does not spread, and odds add up.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

const GPT: &str = "train-gpt3-175b-1k-h100.toml";

fn scenario(dir: &Path, more: &str) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(GPT);
    let text = fs::read_to_string(shipped).unwrap();
    let text = text.split("\n[compare]").next().unwrap().to_owned();
    let path = dir.join("scenario.toml");
    fs::write(&path, text + more).unwrap();
    path
}

fn run(path: &Path, more: &[&str], threads: &str) -> String {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.arg("uncertainty").arg(path).args(["--format", "json"]).args(more).env("RAYON_NUM_THREADS", threads);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_input_gives_the_quantiles_of_its_own_answers() {
    let dir = tempfile::tempdir().unwrap();
    // Ownership by the hour goes with one over the share of hours used, so that the P10 of one is the P90 of the other.
    let more = "\n[uncertainty]\ncatalog = false\nsamples = 256\ninputs = [{ key = \"finance.utilisation\", uniform = { low = 0.5, high = 1.0 } }]\n";
    let path = scenario(dir.path(), more);
    let answer: Value = serde_json::from_str(&run(&path, &[], "2")).unwrap();
    assert_eq!(answer["inputs"].as_array().unwrap().len(), 1);
    let figures = &answer["variants"][0]["figures"];
    let at = |utilisation: f64| {
        let output = Command::cargo_bin("clusterplan")
            .unwrap()
            .arg("eval")
            .arg(&path)
            .args(["--format", "json", "--set", &format!("finance.utilisation={utilisation}")])
            .output()
            .unwrap();
        let one: Value = serde_json::from_slice(&output.stdout).unwrap();
        one["cost"]["usd_per_run"].as_f64().unwrap()
    };
    let cost = &figures["cost.usd_per_run"];
    for (key, utilisation) in [("p10", 0.95), ("p50", 0.75), ("p90", 0.55)] {
        let (sampled, expected) = (cost[key].as_f64().unwrap(), at(utilisation));
        assert!((sampled / expected - 1.0).abs() < 0.005, "{key}: {sampled} {expected}");
    }
    let hinge = &cost["hangs_on"][0];
    assert!((hinge["at_p10"].as_f64().unwrap() / at(0.55) - 1.0).abs() < 1e-6);
    assert!((hinge["at_p90"].as_f64().unwrap() / at(0.95) - 1.0).abs() < 1e-6);
    // All of the variance, but for what lies within a sixteenth of the range.
    assert!(hinge["first_order_ratio"].as_f64().unwrap() > 0.97);
    // The step does not know of it.
    assert_eq!(figures["training.iteration_s"]["p10"], figures["training.iteration_s"]["p90"]);
    assert_eq!(figures["training.iteration_s"]["hangs_on"].as_array().unwrap().len(), 0);
}

#[test]
fn the_catalogs_ranges_spread_every_variant_alike() {
    let dir = tempfile::tempdir().unwrap();
    let path = scenario(dir.path(), "");
    let vary = ["--vary", "cluster.fabric=quantum-2-ndr,roce-400g,quantum-2-ndr", "--samples", "16"];
    let two = run(&path, &vary, "2");
    assert!(two == run(&path, &vary, "1"), "threads change nothing");
    assert!(two != run(&path, &[&vary[..], &["--seed", "9"]].concat(), "2"), "another seed draws others");
    let answer: Value = serde_json::from_str(&two).unwrap();
    let keys: Vec<&str> =
        answer["inputs"].as_array().unwrap().iter().map(|input| input["key"].as_str().unwrap()).collect();
    for part in ["/fabrics/", "/sites/", "/prices/", "/reliability/", "/network_reliability/"] {
        assert!(keys.iter().any(|key| key.contains(part)), "{part}: {keys:?}");
    }
    let [first, other, same] = [0, 1, 2].map(|index| &answer["variants"][index]["figures"]);
    for (key, figure) in same.as_object().unwrap() {
        assert_eq!(figure["p50"], first[key]["p50"], "{key}");
        assert_eq!(figure["beats_first_ratio"], 0.5, "{key}: the same network, the same draws");
    }
    let odds = other["fabric.capex_usd"]["beats_first_ratio"].as_f64().unwrap();
    assert!(odds > 0.5, "{odds}: the open network is the cheaper one at typical prices");
    for figure in first.as_object().unwrap().values() {
        let [low, middle, high] = ["p10", "p50", "p90"].map(|key| figure[key].as_f64().unwrap());
        assert!(low <= middle && middle <= high);
    }
}

#[test]
fn inputs_that_move_together_widen_or_narrow_what_hangs_on_both() {
    let dir = tempfile::tempdir().unwrap();
    let spread = |correlations: &str| {
        // An hour costs more with dearer capital and less with more hours used.
        let more = format!(
            "\n[uncertainty]\ncatalog = false\nsamples = 256\ninputs = [\n  {{ key = \"finance.utilisation\", uniform = {{ low = 0.6, high = 0.9 }} }},\n  {{ key = \"finance.cost_of_capital\", triangular = {{ low = 0.04, mode = 0.11, high = 0.2 }} }},\n]\n{correlations}\n"
        );
        let path = scenario(dir.path(), &more);
        let answer: Value = serde_json::from_str(&run(&path, &[], "2")).unwrap();
        let cost = answer["variants"][0]["figures"]["cost.usd_per_run"].clone();
        cost["p90"].as_f64().unwrap() - cost["p10"].as_f64().unwrap()
    };
    let pair = |rank: f64| {
        format!(
            "correlations = [{{ between = [\"finance.utilisation\", \"finance.cost_of_capital\"], rank = {rank} }}]"
        )
    };
    let (apart, against, along) = (spread(""), spread(&pair(-0.9)), spread(&pair(0.9)));
    assert!(against > 1.1 * apart && along < 0.9 * apart, "{against} {apart} {along}");
    assert!((spread(&pair(0.0)) / apart - 1.0).abs() < 1e-9, "no correlation is none");
}

#[test]
fn numbers_of_a_file_spread_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("used.csv"), "# of last year\nmonth,used\n1,0.5\n2,0.5\n3,0.5\n4,0.8\n").unwrap();
    let of = |column: &str| {
        let more = format!(
            "\n[uncertainty]\ncatalog = false\nsamples = 256\ninputs = [{{ key = \"finance.utilisation\", values = \"used.csv\"{column} }}]\n"
        );
        scenario(dir.path(), &more)
    };
    let answer: Value = serde_json::from_str(&run(&of(", column = \"used\""), &[], "2")).unwrap();
    let cost = answer["variants"][0]["figures"]["cost.usd_per_run"].clone();
    let [p10, p50, p90] = ["p10", "p50", "p90"].map(|key| cost[key].as_f64().unwrap());
    // A quarter of the hours costs 0.5 / 0.8 of the others.
    assert!((p50 / p90 - 1.0).abs() < 1e-9 && p10 < 0.8 * p50, "{p10} {p50} {p90}");
    for (column, word) in [("", "column"), (", column = \"usd\"", "used")] {
        let mut command = Command::cargo_bin("clusterplan").unwrap();
        let output = command.arg("uncertainty").arg(of(column)).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(word), "{stderr}");
    }
}

#[test]
fn a_way_to_serve_is_searched_once_and_stays() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/serve-llama3.1-70b-64-h100.toml");
    let text = fs::read_to_string(shipped).unwrap();
    let text = text.split("\n[compare]").next().unwrap();
    let of = |layout: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scenario.toml");
        let more = "\n[uncertainty]\nsamples = 16\n";
        fs::write(&path, text.replace("layout = { tensor = 4 }", &format!("layout = {layout}")) + more).unwrap();
        let asked = ["eval", path.to_str().unwrap(), "--format", "json"];
        let one = Command::cargo_bin("clusterplan").unwrap().args(asked).output().unwrap();
        let one: Value = serde_json::from_slice(&one.stdout).unwrap();
        let figures: Value = serde_json::from_str(&run(&path, &[], "2")).unwrap();
        (one["scenario"].clone(), figures["variants"].clone())
    };
    let (settings, searched) = of("\"auto\"");
    let degree = |key: &str| settings.get(key).cloned();
    // What was found, written out: the layout of replicas or of pools, with their split.
    let side = |prefix: &str| {
        let degrees = ["tensor", "pipeline", "expert", "attention_data"].into_iter();
        let given = degrees.filter_map(|axis| {
            let found = degree(&format!("serving.layout.{prefix}{axis}"))?;
            Some(format!("{axis} = {}", found.as_str().unwrap()))
        });
        given.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(degree("serving.layout.left_over"), None);
    let (_, given) = match degree("serving.layout.prefill_accelerators") {
        None => of(&format!("{{ {} }}", side(""))),
        Some(split) => of(&format!(
            "{{ decode = {{ {} }}, prefill = {{ {} }}, prefill_accelerators = {} }}",
            side(""),
            side("prefill."),
            split.as_str().unwrap()
        )),
    };
    assert_eq!(searched, given);
    // How far the model itself is off is no input, and stands beside.
    let band = |key: &str| searched[0]["band"][key].as_f64().unwrap();
    assert!(
        band("tpot_factor_ratio") > 1.0 && band("ttft_factor_ratio") > 1.0 && band("throughput_factor_ratio") > 1.0
    );
}

#[test]
fn what_no_sample_of_can_be_is_refused_before_any_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let answer = |inputs: &str, more: &[&str]| {
        let text = format!("\n[uncertainty]\ncatalog = false\nsamples = 16\ninputs = [{inputs}]\n");
        let mut command = Command::cargo_bin("clusterplan").unwrap();
        let output = command.arg("uncertainty").arg(scenario(dir.path(), &text)).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let used = "{ key = \"finance.utilisation\", uniform = { low = 0.5, high = 0.9 } }";
    for (inputs, code, word) in [
        (
            "{ key = \"finance.utilisation\", lognormal = { median = 1e-300, p90 = 1e300 } }",
            "out-of-range",
            "spreads further",
        ),
        (
            "{ key = \"finance.utilisation\", lognormal = { median = 0.5, p90 = 1e6 } }",
            "out-of-range",
            "a million medians",
        ),
        ("{ key = \"finance.utilisation\", uniform = { low = -1.7e308, high = 1.7e308 } }", "out-of-range", "1e30"),
        ("{ key = \"finance.utilisation\", uniform = { low = 0.5, high = 1.5 } }", "out-of-range", "must be 0 to 1"),
        ("{ key = \"cluster.accelerators\", uniform = { low = 512, high = 1024 } }", "wrong-type", "whole number"),
        ("{ key = \"cluster.accelerators\", values = [1024, 512.5] }", "wrong-type", "drawn as 512.5"),
        ("{ key = \"cluster.fabric\", values = [1, 2] }", "wrong-type", "must be a text"),
        (&format!("{used}, {used}"), "duplicate", "varied twice"),
    ] {
        let (status, stderr) = answer(inputs, &[]);
        assert_eq!(status, Some(2), "{inputs}: {stderr}");
        assert!(stderr.contains(&format!("error[{code}]")) && stderr.contains(word), "{inputs}: {stderr}");
        assert!(stderr.contains("scenario.toml:") && stderr.contains("help: "), "a place and a hint: {stderr}");
    }
    let (status, stderr) = answer(used, &["--vary", "finance.utilisation=0.5,0.6"]);
    assert_eq!((status, stderr.contains("varied twice")), (Some(2), true), "{stderr}");
    // Whole numbers are drawn as such.
    let (status, stderr) = answer("{ key = \"cluster.accelerators\", values = [512, 1024] }", &[]);
    assert_eq!(status, Some(0), "{stderr}");
    // No layout of seven ways goes with these GPUs and heads, which is no mistake of the number: an answer, and it is no.
    let (status, stderr) = answer("{ key = \"training.layout.tensor\", values = [7] }", &[]);
    assert_eq!((status, stderr.contains("none of the 16 samples can be")), (Some(1), true), "{stderr}");
}

#[test]
fn typical_costs_lie_within_their_band_and_what_does_not_is_named() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    for (file, fabric) in [
        ("serve-llama3.1-70b-64-h100", "quantum-2-ndr"),
        ("serve-deepseek-v3-wide-experts", "roce-400g"),
        ("train-mixtral-8x7b-64-h100", "quantum-2-ndr"),
        // Half a dozen inputs reach far up here, none down.
        ("train-llama3.1-405b-16k-h100", "quantum-2-ndr"),
    ] {
        let vary = format!("cluster.fabric={fabric}");
        let path = scenarios.join(format!("{file}.toml"));
        let answer: Value = serde_json::from_str(&run(&path, &["--vary", &vary, "--samples", "64"], "2")).unwrap();
        let variant = &answer["variants"][0];
        let outside: Vec<&str> =
            variant["typical_outside"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        for (key, figure) in variant["figures"].as_object().unwrap() {
            let [typical, low, high] = ["typical", "p10", "p90"].map(|part| figure[part].as_f64().unwrap());
            let rounding = typical.abs() * 1e-9;
            let within = low - rounding <= typical && typical <= high + rounding;
            assert_eq!(within, !outside.contains(&key.as_str()), "{file} {key}: {low} {typical} {high}");
            // By a few hundredths at most, where at all.
            assert!(typical > 0.96 * low, "{file} {key}: {low} {typical}");
        }
        if file.starts_with("serve") || file.contains("mixtral") {
            assert!(outside.is_empty(), "{file}: {outside:?}");
        }
    }
}
