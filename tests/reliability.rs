//! Failures and goodput as a user meets them: settings that change them, and settings that cannot be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::fs;

use program::{Answer, LLAMA, MIXTRAL, run};

fn figures(scenario: &str, settings: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["eval", scenario, "--format", "json"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let answer = run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn goodput(figures: &serde_json::Value, name: &str) -> f64 {
    figures["goodput"][name].as_f64().unwrap()
}

/// The scenario on failure rates of its own, as an overlay gives them.
fn with_rates(field: &str, rates: &str) -> Answer {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("reliability");
    fs::create_dir(&folder).unwrap();
    let source =
        format!("[[source]]\nfields = [\"{field}\"]\nbasis = \"assumed\"\ntitle = \"A test\"\naccessed = 2026-11-29\n");
    fs::write(folder.join("hopper.toml"), format!("{rates}{source}")).unwrap();
    run(&["eval", MIXTRAL, "--catalog", directory.path().to_str().unwrap()])
}

#[test]
fn small_jobs_of_shared_clusters_are_interrupted_more_often() {
    let rate = |settings: &[&str]| goodput(&figures(MIXTRAL, settings), "interruptions_per_day");
    let (alone, shared) = (rate(&[]), rate(&["cluster.tenancy=shared"]));
    // Eight hosts, each interrupted once in 1,393 h more.
    assert!((shared - alone - 8.0 * 24.0 / 1_393.0).abs() < 1e-9, "{alone}, {shared}");
}

#[test]
fn checkpoints_in_memory_lose_least_and_those_that_block_most() {
    let of = |mode: &str| figures(LLAMA, &[&format!("training.checkpoint={mode}"), "cluster.storage_units=2"]);
    let [memory, behind, blocking] = ["in-memory", "asynchronous", "blocking"].map(of);
    let ratios = [&memory, &behind, &blocking].map(|figures| goodput(figures, "ratio"));
    assert!(ratios[0] > ratios[1] && ratios[1] > ratios[2], "{ratios:?}");
    // 5.68 TB over two units of 62 GB/s take 45.8 s.
    assert!((goodput(&blocking, "checkpoint_stall_s") - 50.82).abs() < 0.01);
    assert!((goodput(&behind, "checkpoint_pending_s") - 45.82).abs() < 0.01);
    // Over 16,384 cards of 50 GB/s, 6.9 ms.
    assert!((goodput(&memory, "checkpoint_pending_s") - 0.006_936).abs() < 1e-5);
}

#[test]
fn the_best_interval_is_no_worse_than_another() {
    let best = figures(LLAMA, &[]);
    for interval in ["1 min", "3 min", "20 min", "2 h"] {
        let other = figures(LLAMA, &[&format!("training.checkpoint_interval={interval}")]);
        assert!(goodput(&other, "ratio") < goodput(&best, "ratio"), "{interval}");
    }
}

#[test]
fn without_spares_failures_wait_for_repairs() {
    let few = figures(LLAMA, &["cluster.spares=0.01"]);
    let many = figures(LLAMA, &["cluster.spares=0.03"]);
    let [few_wait, many_wait] = [&few, &many].map(|figures| goodput(figures, "lost_spares_ratio"));
    // 5.94 failures of hosts a day, each repaired in 61 h: 15.1 in repair on average.
    assert!(few_wait > 10.0 * many_wait && few_wait > 1e-3, "{few_wait}, {many_wait}");
    assert!((20.0..40.0).contains(&goodput(&few, "enough_spare_hosts_count")));
}

#[test]
fn roce_stalls_more_than_infiniband_only_by_its_storms() {
    let of = |fabric: &str| {
        let figures = figures(LLAMA, &[&format!("cluster.fabric={fabric}")]);
        goodput(&figures, "lost_network_ratio") * 921_600.0 * 3_600.0
            - figures["fabric"]["cables_count"].as_f64().unwrap() * 10.0
    };
    assert!(of("quantum-2-ndr").abs() < 1e-3, "{}", of("quantum-2-ndr"));
    // 16,384 cards, 0.4 s in 3,033,381 h each, in the unit of the flaps.
    assert!((of("roce-400g") - 16_384.0 * 0.4 / 3_033_381.0 * 921_600.0).abs() < 1e-2, "{}", of("roce-400g"));
}

#[test]
fn checkpoints_faster_than_storage_are_refused_with_numbers() {
    let answer =
        run(&["eval", LLAMA, "--set", "training.checkpoint_interval=10 s", "--set", "cluster.storage_units=2"]);
    assert_eq!(answer.code, 1);
    assert!(
        answer.stderr.contains("a checkpoint every 10 s of work is not stored in time: it takes 45.82 s"),
        "{}",
        answer.stderr
    );
    let answer = run(&["eval", LLAMA, "--set", "training.checkpoint_interval=0 s"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("`training.checkpoint_interval` is 0 s, outside"), "{}", answer.stderr);
}

#[test]
fn failures_faster_than_a_restart_never_end() {
    let answer = with_rates("mtbf.accelerator", "[mtbf]\naccelerator = \"1 h\"\n");
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("the run never ends"), "{}", answer.stderr);
    let hopeless = with_rates("mtbf.accelerator", "[mtbf]\naccelerator = \"0.001 s\"\n");
    assert_eq!(hopeless.code, 1, "{}", hopeless.stderr);
    let zero = with_rates("recovery.repair", "[recovery]\nrepair = \"0 h\"\n");
    assert_eq!(zero.code, 2);
    assert!(zero.stderr.contains("`recovery.repair` is zero"), "{}", zero.stderr);
}
