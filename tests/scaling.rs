//! Curves of strong and weak scaling.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use program::{LLAMA, MIXTRAL, run};

const GPT: &str = "scenarios/train-gpt3-175b-1k-h100.toml";

fn curve(arguments: &[&str]) -> serde_json::Value {
    let answer = run(&[&["scaling", GPT, "--format", "json"], arguments].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn figures(curve: &serde_json::Value, key: &str) -> Vec<f64> {
    curve["points"].as_array().unwrap().iter().filter_map(|point| point[key].as_f64()).collect()
}

#[test]
fn a_strong_curve_follows_amdahl() {
    let curve = curve(&["--accelerators", "512,1024,2048,4096,8192"]);
    let (efficiency, speedup) = (figures(&curve, "efficiency_ratio"), figures(&curve, "speedup_ratio"));
    assert!(efficiency.windows(2).all(|pair| pair[1] < pair[0]), "{efficiency:?}");
    assert!(speedup.windows(2).all(|pair| pair[1] > pair[0]), "{speedup:?}");
    // By hand at 16 times the accelerators: s = (1/S - 1/16) / (1 - 1/16).
    let serial = figures(&curve, "serial_ratio");
    assert!((serial[3] - (1.0 / speedup[4] - 1.0 / 16.0) / (15.0 / 16.0)).abs() < 1e-12);
    // What does not shrink adds up to what the efficiency lost: 1 - E = sum of excess over the step, failures counted.
    let parts: f64 = curve["serial"].as_array().unwrap().iter().map(|part| part["share_ratio"].as_f64().unwrap()).sum();
    assert!((parts - (1.0 - efficiency[4])).abs() < 5e-3, "{parts}, {}", efficiency[4]);
    // Replicas' messages and the pipeline's bubble come to much the same here, and everything else to less.
    let first: Vec<_> = (0..2).map(|part| curve["serial"][part]["name"].as_str().unwrap()).collect();
    assert!(first.contains(&"pipeline bubble") && first.contains(&"data-parallel messages"), "{first:?}");
}

#[test]
fn the_batch_of_a_weak_curve_grows() {
    let curve = curve(&["--weak", "--accelerators", "1024,256,4096"]);
    assert_eq!(figures(&curve, "accelerators_count"), [256.0, 1_024.0, 4_096.0]);
    assert_eq!(figures(&curve, "global_batch_count"), [512.0, 2_048.0, 8_192.0]);
    assert!(figures(&curve, "serial_ratio").is_empty());
    let steps = figures(&curve, "iteration_s");
    assert!(steps.iter().all(|step| (step / steps[0] - 1.0).abs() < 0.05), "{steps:?}");
}

#[test]
fn more_stop_paying_where_the_last_bring_less_than_asked() {
    let curve = |least: &str| curve(&["--accelerators", "1024,2048,4096,8192,16384", "--least-gain", least]);
    let (half, most) = (curve("0.5"), curve("0.9"));
    let marginal = figures(&half, "marginal_ratio");
    assert!(marginal[0] > 0.9 && marginal[1] < 0.9 && marginal[2] > 0.5, "{marginal:?}");
    assert_eq!(
        (&half["pays_to_accelerators_count"], &most["pays_to_accelerators_count"]),
        (&8_192.into(), &2_048.into())
    );
    // 16,384 leave four microbatches for a pipeline of eight that is interleaved.
    assert!(half["points"][4]["reason"].as_str().unwrap().contains("rounds of pipeline 8"));
    assert_eq!(half["fastest_accelerators_count"], 8_192);
}

#[test]
fn a_curve_is_a_table_in_every_format() {
    let sizes = ["--accelerators", "1024,16384"];
    let csv = run(&[&["scaling", GPT, "--format", "csv"], &sizes[..]].concat()).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("accelerators_count,global_batch_count,iteration_s"), "{csv}");
    assert!(lines[2].starts_with("16384,2048,,") && lines[2].contains("interleaving takes"), "{csv}");
    let table = run(&[&["scaling", GPT], &sizes[..]].concat()).stdout;
    assert!(table.contains("Sizes that cannot be") && table.contains("the most that can be"), "{table}");
}

#[test]
fn odd_curves_are_mistakes() {
    for (arguments, said) in [
        (&["--accelerators", "1024"][..], "1 different sizes; a curve has 2 to 64"),
        (&["--accelerators", "64,64"], "1 different sizes"),
        (&["--accelerators", "0,64"], "0"),
        (&["--accelerators", "64,128", "--least-gain", "1.5"], "a share from 0 to 1"),
    ] {
        let answer = run(&[&["scaling", MIXTRAL], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.stdout);
        assert!(answer.stderr.contains(said), "{}", answer.stderr);
    }
    let thin = run(&["scaling", LLAMA, "--accelerators", "16384,16388", "--weak"]);
    assert_eq!(thin.code, 2, "{}", thin.stdout);
    let said = "2048 sequences on 16384 accelerators are no whole number of sequences on 16388";
    assert!(thin.stderr.contains(said), "{}", thin.stderr);
    // Sizes that fill no nodes are answers; where none can be, the answer is no.
    let none = run(&["scaling", MIXTRAL, "--accelerators", "3,5"]);
    assert_eq!(none.code, 1, "{}", none.stderr);
}
