//! What must not get through: options that change nothing, files that are no part of a catalog, numbers that no formula
//! can take, and mistakes that hide each other.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use program::{LLAMA, MIXTRAL, files, run, text};

/// A mistake with nothing on stdout, and its text.
#[track_caller]
fn refused(arguments: &[&str], says: &[&str]) {
    let answer = run(arguments);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{arguments:?}: {}", answer.stderr);
    for part in says {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
}

#[test]
fn options_that_change_nothing_are_refused() {
    refused(&["catalog", "check", "--set", "cluster.spares=0.1"], &["this command reads none"]);
    refused(&["model", "llama-3.1-70b", "--set", "cluster.spares=0.1"], &["this command reads none"]);
    refused(&["eval", MIXTRAL, "--bom"], &["add --format csv"]);
    refused(&["catalog", "freeze", "qm9700", "--format", "json"], &["the answer is TOML"]);
    refused(&["schema", "catalog", "nics", "--format", "csv"], &["the answer is JSON"]);
    let torus = ["fabric", "--node", "dgx-h100", "--fabric", "quantum-2-ndr", "--accelerators", "512"];
    refused(&[&torus[..], &["--topology", "torus", "--tiers", "2"]].concat(), &["a torus has no switches"]);
    let answer = run(&["catalog", "check", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(json[0]["mistakes_count"], "0");
}

#[test]
fn lengths_beyond_a_model_or_a_request_are_told() {
    let memory = ["memory", "--model", "llama-3.1-8b", "--accelerator", "h100-sxm-80gb"];
    refused(
        &[&memory[..], &["--shared-prefix", "10000"]].concat(),
        &["10000 tokens that requests share are more than the 8192 of each", "a longer --context"],
    );
    let page = run(&["model", "llama-3.1-8b", "--context", "200000"]).stdout;
    assert!(page.contains("more than the 131,072 that the model takes"), "{page}");
    assert!(!run(&["model", "llama-3.1-8b"]).stdout.contains("that the model takes (--context)"));
    // Rows of a sweep are told one by one, as the scenario is that they make.
    let swept = "sweep.axes=[{ key = \"serving.input_tokens\", values = [1024, 200000] }]";
    let rows = run(&["sweep", "scenarios/serve-llama3.1-70b-64-h100.toml", "--set", swept]);
    assert!(rows.stdout.contains("are longer than the 131072 tokens that Llama 3.1 70B takes"), "{}", rows.stdout);
}

#[test]
fn mistakes_say_what_would_be_right() {
    let served = "scenarios/serve-llama3.1-70b-64-h100.toml";
    for scenario in [("serving", served), ("training", MIXTRAL)] {
        let layout = format!("{}.layout=fast", scenario.0);
        refused(
            &["eval", scenario.1, "--set", &layout],
            &["must be \"auto\" or a table", "write \"auto\", or its keys"],
        );
    }
    refused(&["eval", MIXTRAL, "--set", "finance.utilisation=1e300"], &["is 1e300, and must be 0 to 1", "0.3 is 30%"]);
    refused(&["eval", served, "--set", "serving.layout={ tp = 4 }"], &["did you mean `tensor`?"]);
    let hub = "serving.model=meta-llama/Llama-3.1-70B";
    refused(&["eval", served, "--set", hub], &["the catalog has \"llama-3.1-70b\""]);
    let pool = "serving.layout={ prefill = { tensor = 4 } }";
    refused(&["eval", served, "--set", pool], &["`serving.layout.decode` is missing", "or as decode = { ... }"]);
    // What is no number is told, and nothing of what it would stand for.
    let uneven = run(&["eval", served, "--set", "serving.expert_imbalance=nan"]).stderr;
    assert_eq!(uneven.matches("error[").count(), 1, "{uneven}");
    // Every wrong kind of value has a line of help.
    for value in ["serving.arrivals=3", "serving.slice=3", "serving.cuda_graphs=3", "serving.spare_replicas=x"] {
        refused(&["eval", served, "--set", value], &["error[wrong-type]", "help: write"]);
    }
    let limit = run(&["eval", served, "--set", "serving.limits={ ttft = \"1\" }"]).stderr;
    assert_eq!(limit.matches("error[").count(), 1, "{limit}");
    refused(&["eval", served, "--set", "agents.tool_cost=$-5"], &["`$-5` is negative"]);
    let tiers =
        "serving.cache={ prefixes = 10, prefix_tokens = 100, popularity = 1, tiers = [{ tier = \"grace-lpddr\" }] }";
    let hit = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";
    refused(&["eval", hit, "--set", tiers], &["is memory of grace hosts", "catalog list memory_tiers"]);
    refused(&["eval", MIXTRAL, "--set", "title.text=1"], &["`title` is not a table", "name another key"]);
    refused(&["eval", MIXTRAL, "--set", "training.layout={ tensor = 1 }"], &["`pipeline` takes a whole number from 1"]);
}

#[test]
fn what_is_compared_is_told_apart() {
    refused(&["compare", MIXTRAL, MIXTRAL], &["is named twice", "name each scenario once"]);
    let twice = "cluster.fabric=quantum-2-ndr,quantum-2-ndr";
    refused(&["compare", LLAMA, "--vary", twice], &["two variants are called \"quantum-2-ndr\""]);
    refused(&["compare", LLAMA, "--vary", "cluster.fabric=roce-400g"], &["the only variant is roce-400g"]);
    let mixtral = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(MIXTRAL)).unwrap();
    let dir = files(&[("a/same.toml", &mixtral), ("b/same.toml", &mixtral)]);
    let paths = ["a/same.toml", "b/same.toml"].map(|name| dir.path().join(name));
    let answer = run(&["compare", text(&paths[0]), text(&paths[1]), "--format", "csv"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("a/same.toml,") && answer.stdout.contains("b/same.toml,"), "{}", answer.stdout);
    let both = run(&["compare", MIXTRAL, "scenarios/train-gpt3-175b-1k-a100.toml"]);
    assert!(
        both.stdout.starts_with("Mixtral") && both.stdout.contains(" / GPT-3 175B on 1,024 A100"),
        "{}",
        both.stdout
    );
}

#[test]
fn a_broken_table_of_variants_is_a_mistake_of_the_scenario() {
    let broken = "compare.vary={ \"cluster.fabrics\" = [\"a\"] }";
    refused(&["eval", MIXTRAL, "--set", broken], &["did you mean \"cluster.fabric\"?"]);
}

#[test]
fn an_answer_does_not_replace_what_it_was_made_from() {
    let mixtral = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(MIXTRAL)).unwrap();
    let dir = files(&[("scenario.txt", &mixtral)]);
    let path = dir.path().join("scenario.txt");
    refused(&["eval", text(&path), "-o", text(&path)], &["the answer would replace it"]);
    assert_eq!(fs::read(&path).unwrap(), mixtral);
}

#[test]
fn a_no_is_written_as_csv_too() {
    let answer = run(&["eval", LLAMA, "--set", "training.layout.pipeline=8", "--format", "csv"]);
    assert_eq!(answer.code, 1);
    let mut reader = csv::Reader::from_reader(answer.stdout.as_bytes());
    let header = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    assert!(row[1].contains("short by"), "{row:?}");
    assert_eq!((&header[header.len() - 1], &row[header.len() - 1]), ("memory.fits", "false"));
}

#[test]
fn what_lies_in_an_overlay_is_read_or_named() {
    let strange = files(&[
        ("sites/mine.json", b"{}"),
        ("sites/notes.md", b"notes"),
        ("sites/latin.toml", b"name = \"caf\xe9\"\n"),
        ("mine.toml", b"name = \"lost\"\n"),
        ("sights/mine.toml", b"name = \"lost\"\n"),
    ]);
    let says =
        ["mine.json is no part of a catalog", "latin.toml", "files are UTF-8 text", "lies in no folder", "`sights`"];
    refused(&["catalog", "check", "--catalog", text(strange.path())], &says);
}

/// One field over a shipped site's, with its source.
#[cfg(unix)]
const PUE: &[u8] =
    b"pue = 1.5\n[[source]]\nfields = [\"pue\"]\nbasis = \"assumed\"\ntitle = \"Ours\"\naccessed = 2026-11-29\n";

#[cfg(unix)]
#[test]
fn a_link_that_leads_back_ends() {
    let dir = files(&[("sites/us-colo.toml", PUE)]);
    std::os::unix::fs::symlink(dir.path(), dir.path().join("sites/again")).unwrap();
    let answer = run(&["catalog", "check", "--catalog", text(dir.path())]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn all_mistakes_of_a_catalog_are_told_at_once() {
    let dir = files(&[
        ("sites/mine.toml", b"name = \"Mine\"\npue = 0.5\n"),
        ("sites/us-colo.toml", b"pue = 50\n"),
        ("fabrics/roce-400g.toml", b"nic = \"connectx-8-800g\"\nflows_per_nic = 1000000\n"),
        ("fabrics/quantum-2-ndr.toml", b"nic = \"connectx-9\"\n"),
        ("nodes/dgx-h100.toml", b"[nic_slots]\nincluded_power = \"90 kW\"\n"),
    ]);
    let says = [
        "`pue` is below 1",
        "`pue` is above 10",
        "more than 256 flows a card",
        "cards of 90 kW are more than the 10.2 kW",
        // Between files, although there are mistakes within others.
        "\"connectx-9\"",
    ];
    refused(&["catalog", "check", "--catalog", text(dir.path())], &says);
}

#[test]
fn long_files_of_mistakes_are_answered_soon() {
    let scenario = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(MIXTRAL)).unwrap();
    let keys: Vec<String> = (0..50_000).map(|index| format!("unknown_{index} = {index}\n")).collect();
    let keys = keys.concat();
    let long = format!("{} = 1\n{}", "k".repeat(2_000_000), scenario);
    let title = scenario.replace("title = \"Mixtral", &format!("title = \"{}Mixtral", "m".repeat(2_000_000)));
    let dir = files(&[
        ("keys.toml", format!("{keys}{scenario}").as_bytes()),
        ("long.toml", long.as_bytes()),
        ("title.toml", title.as_bytes()),
    ]);
    let begun = Instant::now();
    refused(&["eval", text(&dir.path().join("keys.toml"))], &["and 49970 more"]);
    refused(&["eval", text(&dir.path().join("long.toml"))], &["unknown key"]);
    refused(&["eval", text(&dir.path().join("title.toml"))], &["at most 10000 are taken"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn oversubscription_is_said_as_it_is_built() {
    refused(
        &["eval", LLAMA, "--set", "cluster.topology={ oversubscription = [1, 2, 7], tiers = 2 }"],
        &["nothing is above the spine switches of two tiers"],
    );
    // Who asks for one network alone is told that a figure of it means nothing.
    for (command, why) in [
        ("fabric --accelerators 256 --oversubscription 1,7", "a network of 2 tiers joins 32 nodes"),
        ("fabric --accelerators 16 --oversubscription 4", "one tier joins 2 nodes"),
        ("collective all_reduce --ranks 128 --bytes 1GB --oversubscription 1,7", "7 at the spine switches"),
    ] {
        let line = format!("{command} --node dgx-h100 --fabric quantum-2-ndr");
        let answer = run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(answer.code, 1, "{line}: {}", answer.stdout);
        assert!(answer.stderr.contains(why), "{}", answer.stderr);
    }
    let small = run(&["eval", MIXTRAL, "--set", "cluster.topology.oversubscription=[1, 2, 7]"]);
    assert_eq!(small.code, 0, "{}", small.stderr);
    assert!(small.stdout.contains("spine to core on quantum-2-ndr: 7 has no effect"), "{}", small.stdout);
    let pods = run(&["eval", LLAMA]);
    assert!(pods.stdout.contains("Oversubscription, leaf to spine"), "{}", pods.stdout);
    let absurd = run(&["eval", LLAMA, "--set", "cluster.topology.oversubscription=[1, 1000000000]"]);
    assert_eq!(absurd.code, 1);
    assert!(absurd.stderr.contains("the 63 links down of a switch"), "{}", absurd.stderr);
}

#[test]
fn one_tier_is_built_or_refused_with_numbers() {
    let one = run(&["eval", MIXTRAL, "--set", "cluster.topology.tiers=1", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!((&json["fabric"]["tiers_count"], &json["fabric"]["spine_switches_count"]), (&1.into(), &0.into()));
    let many = run(&["eval", LLAMA, "--set", "cluster.topology={ tiers = 1 }"]);
    assert_eq!(many.code, 1);
    assert!(many.stderr.contains("one tier reaches 64 nodes"), "{}", many.stderr);
}

#[test]
fn a_table_of_cases_says_what_is_wrong_with_it() {
    let dir = files(&[
        ("none.csv", b"name,parameter,value\n"),
        ("ragged.csv", b"name,parameter,value\na,b,1\na,b\n"),
        ("columns.csv", b"id,gpus\n1,8\n"),
    ]);
    let cases = |name: &str| run(&["validate", "--domain", "topology", "--cases", text(&dir.path().join(name))]);
    let none = cases("none.csv");
    assert_eq!(none.code, 1, "{}", none.stderr);
    assert!(none.stderr.contains("The table has no rows"), "{}", none.stderr);
    let ragged = cases("ragged.csv");
    assert_eq!(ragged.code, 2);
    assert!(ragged.stderr.contains("line 3 has 2 cells, and the header 3"), "{}", ragged.stderr);
    let columns = cases("columns.csv");
    assert_eq!(columns.code, 2);
    assert!(columns.stderr.contains("`name`, `parameter`"), "{}", columns.stderr);
    let skipped = files(&[("a.csv", b"name,parameter,value\nnobody,nothing,1\n")]);
    let skipped = run(&["validate", "--domain", "topology", "--cases", text(&skipped.path().join("a.csv"))]);
    assert_eq!(skipped.code, 1, "{}", skipped.stderr);
    assert!(skipped.stderr.contains("None of the 1 rows was predicted"), "{}", skipped.stderr);
}

#[test]
fn counts_of_commands_have_bounds() {
    for context in ["0", "99999999999999"] {
        refused(&["model", "llama-3.1-70b", "--context", context], &["1..=1000000000"]);
    }
    refused(&["eval", MIXTRAL, "--set", "software.date=\"+2024-4\""], &["a month such as"]);
    let network = ["--node", "dgx-h100", "--fabric", "quantum-2-ndr"];
    let fabric = [&["fabric", "--accelerators", "512"][..], &network].concat();
    refused(&[&fabric[..], &["--oversubscription", "0.1"]].concat(), &["ratios of 1 or more"]);
    let collective = [&["collective", "all_reduce", "--ranks", "16", "--bytes", "1GiB"][..], &network].concat();
    refused(&[&collective[..], &["--accelerators", "8"]].concat(), &["16 ranks are more than a cluster of 8 GPUs has"]);
    let serving = ["memory", "--model", "llama-3.1-70b", "--accelerator", "h100-sxm-80gb"];
    for (option, value) in [("--expert", "4294967295"), ("--context", "0"), ("--block", "0"), ("--requests", "0")] {
        refused(&[&serving[..], &[option, value]].concat(), &["is not in 1.."]);
    }
    refused(
        &["memory", MIXTRAL, "--set", "training.expert_imbalance=1e300"],
        &["`training.expert_imbalance` is 1e300", "from 1e-9 to 1e9"],
    );
    refused(&["catalog", "list", "--where", "memory_capacity >= nan"], &["nan"]);
    for absent in ["nonsense = 3", "tdp > 10 GB"] {
        refused(
            &["catalog", "list", "accelerators", "--where", absent],
            &["no entry has a field", absent, "catalog show"],
        );
    }
}

#[test]
fn mistakes_of_serving_stand_at_their_keys_and_once() {
    let served = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let with = |set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|setting| ["--set", setting]).collect();
        let answer = run(&[&["eval", served][..], &set].concat());
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.stderr);
        answer.stderr
    };
    let tenants = "serving.tenants={ count = 10, mean = \"1 request/s\", peak = \"3 request/s\" }";
    let told = with(&[tenants, "serving.arrivals=tenants", "serving.peak_to_mean=2"]);
    assert!(told.contains("follows from `serving.tenants`") && told.contains("| serving.peak_to_mean=2"), "{told}");
    let told = with(&["serving.arrivals=max", "serving.peak_to_mean=2"]);
    assert!(told.contains("is of requests that come at a rate") && told.contains("| serving.peak_to_mean=2"), "{told}");
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }";
    let told = with(&["serving.output_tokens=1", pools]);
    assert!(told.contains("| serving.output_tokens=1") && told.contains("| serving.layout={"), "{told}");
    assert!(!told.contains("| [serving]"), "{told}");
    let told = with(&["serving.output_tokens=100000000000000000000"]);
    assert_eq!(told.matches("error[").count(), 1, "{told}");
    assert!(told.contains("the whole number is too large"), "{told}");
    let told = with(&["serving.prefix_hit=1.1"]);
    assert!(told.contains("1.1% is 0.011\n"), "{told}");
}
