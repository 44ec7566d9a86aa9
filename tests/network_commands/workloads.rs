//! What networks do to training and serving.

use serde_json::Value;

use super::{json, near, run};

#[test]
fn two_nodes_train_alike_on_every_fabric_and_pay_apart() {
    let comparison = json("compare scenarios/train-llama3.1-8b-16-h100-two-nodes.toml");
    let figure = |variant: &Value, group: &str, key: &str| variant["evaluation"][group][key].as_f64().unwrap();
    let variants = comparison["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 4);
    for variant in &variants[1..] {
        near(figure(variant, "training", "iteration_s"), figure(&variants[0], "training", "iteration_s"), 0.01);
        assert!(
            (figure(variant, "cost", "usd_per_run") / figure(&variants[0], "cost", "usd_per_run") - 1.0).abs() > 0.005
        );
    }
}

/// Iterations of a comparison's variants, in seconds.
fn iterations(line: &str) -> Vec<f64> {
    let comparison = json(line);
    let variants = comparison["variants"].as_array().unwrap();
    variants.iter().map(|variant| variant["evaluation"]["training"]["iteration_s"].as_f64().unwrap()).collect()
}

#[test]
fn plain_ecmp_loses_most_between_racks() {
    let scenario = "compare scenarios/train-llama3.1-405b-16k-h100-load-balancing.toml";
    let [ecmp, split, adaptive] = iterations(scenario)[..] else { panic!("three variants") };
    assert!(ecmp > 1.3 * adaptive && split > 1.1 * adaptive && ecmp > split, "{ecmp} {split} {adaptive}");
    let rails = iterations(&format!("{scenario} --set cluster.topology.kind=rail-fat-tree"));
    // On rails every other hop of a ring of replicas stays within its leaf.
    assert!(rails[0] > rails[2] && rails[0] / rails[2] - 1.0 < 0.5 * (ecmp / adaptive - 1.0), "{rails:?}");
}

#[test]
fn a_card_for_four_gpus_is_slower_than_one_each() {
    let [shared, rails] = iterations("compare scenarios/train-llama3.1-8b-64-a100-one-nic.toml")[..] else {
        panic!("two variants")
    };
    assert!(shared > 1.3 * rails, "{shared} against {rails}");
}

#[test]
fn a_dear_fabric_is_wasted_where_replicas_stay_in_their_nodes() {
    let (code, out, error) = run("compare scenarios/serve-llama3.1-70b-64-h100-fabrics.toml --format json");
    assert_eq!(code, 0, "{error}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let variants = answer["variants"].as_array().unwrap();
    let figure = |variant: &Value, group: &str, key: &str| variant["evaluation"][group][key].as_f64().unwrap();
    let (first, rest) = variants.split_first().unwrap();
    for other in rest {
        for key in ["ttft_s", "tpot_s", "output_tokens_per_s_per_gpu"] {
            assert!((figure(other, "serving", key) / figure(first, "serving", key) - 1.0).abs() < 1e-9, "{key}");
        }
        assert!(figure(other, "cost", "usd_per_mtok_output") < 0.95 * figure(first, "cost", "usd_per_mtok_output"));
    }
    let (_, page, _) = run("compare scenarios/serve-llama3.1-70b-64-h100-fabrics.toml");
    assert!(page.contains("All serve alike: they differ in cost alone."), "{page}");
}
