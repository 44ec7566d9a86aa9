//! Mistakes: all at once, each with its place and what would be right.

use std::fs;

use super::catalog::overlay;
use super::{changed, json};
use crate::program::{LLAMA, MIXTRAL, run};

#[test]
fn mistakes_are_told_all_at_once_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.json");
    let out = file.to_str().unwrap();
    let mistaken = ["eval", LLAMA, "--set", "cluster.node=dgx-h10", "--set", "training.tokens=5", "-o", out];
    let answer = run(&mistaken);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(
        answer.stderr.contains("did you mean \"dgx-h100\"?") && answer.stderr.contains("a bare number"),
        "{}",
        answer.stderr
    );
    assert!(!file.exists());
    fs::write(&file, "before").unwrap();
    run(&mistaken);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn wrong_arguments_are_mistakes_too() {
    for arguments in [
        &["eval"][..],
        &["evil", LLAMA],
        &["eval", LLAMA, "--format", "xml"],
        &["eval", "nowhere.toml"],
        &["compare", MIXTRAL],
    ] {
        let answer = run(arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(!answer.stderr.is_empty());
    }
    assert_eq!(run(&["--help"]).code, 0);
    assert!(run(&["--version"]).stdout.starts_with("clusterplan "));
}

#[test]
fn a_layout_that_serves_is_not_sent_to_the_keys_of_training() {
    let served = "scenarios/serve-llama3.1-70b-64-h100.toml";
    for layout in ["{ search = \"cheapest\" }", "{ tensor = 8, search = \"fastest\" }", "{ tensor = 8, serach = true }"]
    {
        let answer = run(&["eval", served, "--set", &format!("serving.layout={layout}")]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{layout}");
        assert!(answer.stderr.contains("layout = \"auto\""), "{}", answer.stderr);
        assert!(!answer.stderr.contains("training.layout") && !answer.stderr.contains("missing"), "{}", answer.stderr);
    }
}

#[test]
fn drafts_need_a_layer_of_the_model_that_predicts() {
    let served = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let of = |model: &str| {
        let model = format!("serving.model={model}");
        let drafts = "serving.speculation={ draft = \"mtp\", tokens = 1, acceptance = 0.8 }";
        run(&["eval", served, "--set", &model, "--set", "serving.layout.tensor=8", "--set", drafts])
    };
    // Of MiMo 7B one is published like its last layer; of MiMo-V2-Flash three that are not.
    assert_eq!(of("mimo-7b-base").code, 0, "{}", of("mimo-7b-base").stderr);
    for model in ["mimo-v2-flash", "llama-3.1-70b"] {
        let answer = of(model);
        assert_eq!(answer.code, 2, "{model}");
        assert!(answer.stderr.contains("that predicts further tokens is known"), "{}", answer.stderr);
    }
}

// What users of other programs ran into: keys that were not known were read over without a word.

#[test]
fn a_dash_for_an_underscore_is_refused_and_the_effective_configuration_is_printed() {
    let answer = changed("site = \"us-colo\"", "site = \"us-colo\"\nstorage-units = 4");
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("unknown key `storage-units`")
            && answer.stderr.contains("did you mean `storage_units`?")
    );
    let object = json(&["eval", LLAMA, "--set", "cluster.storage_units=32"]);
    assert_eq!(object["scenario"]["cluster.storage_units"], "32");
    assert_eq!(object["scenario"]["cluster.reliability"], "hopper");
    let assumed: Vec<&str> = object["assumed"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert!(assumed.contains(&"cluster.reliability") && !assumed.contains(&"cluster.storage_units"));
    assert!(run(&["eval", LLAMA]).stdout.contains("by default"));
}

#[test]
fn a_slip_in_bandwidth_is_recognised() {
    let slip = overlay("accelerators/h100-sxm-80gb.toml", "memory_bandwith = \"3.9 TB/s\"\n");
    let answer = run(&["eval", LLAMA, "--catalog", slip.path().to_str().unwrap()]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("unknown key `memory_bandwith`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("did you mean `memory_bandwidth`"), "{}", answer.stderr);
}

#[test]
fn a_key_at_the_wrong_level_is_told_where_it_belongs() {
    let answer = changed("site = \"us-colo\"", "site = \"us-colo\"\nutilisation = 0.9");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("it belongs at `finance.utilisation`"), "{}", answer.stderr);
}

#[test]
fn heads_that_do_not_split_name_what_would_and_the_other_way() {
    // Llama 3.1 70B has 64 heads.
    let settings = [
        "training.model=llama-3.1-70b",
        "training.layout.tensor=3",
        "training.layout.pipeline=4",
        "training.layout.virtual_stages=1",
        "training.layout.schedule=1f1b",
        "cluster.accelerators=1536",
        "training.global_batch=1536",
    ];
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = run(&[&["eval", LLAMA], &set[..]].concat());
    assert_eq!(answer.code, 1);
    assert!(
        answer.stderr.contains("64 heads do not split over tensor 3; 1, 2, 4, 8, 16, 32 or 64 do"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("pipeline"), "{}", answer.stderr);
}

#[test]
fn half_a_format_of_numbers_is_a_mistake() {
    for (format, why) in [
        ("{ number = \"fp8\", scale_bits = 32 }", "`scale_bits` says nothing without `group`"),
        ("{ number = \"fp8\", group = 128 }", "`group` says nothing without `scale_bits`"),
    ] {
        let answer =
            run(&["eval", "scenarios/serve-llama3.1-70b-64-h100.toml", "--set", &format!("serving.weights={format}")]);
        assert!(
            answer.code == 2 && answer.stderr.contains(why) && answer.stderr.contains("help: "),
            "{}",
            answer.stderr
        );
    }
}
