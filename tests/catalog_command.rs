//! `clusterplan catalog` from outside: a newcomer's files, lists, frozen copies, gaps, and files that are broken.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use std::fs;
use std::path::Path;

use program::{MIXTRAL, files, run, text};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr))
}

fn shipped(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogs").join(path)).unwrap()
}

/// A card of a known architecture that is faster and larger, its server, and what that costs: no line of the program.
#[test]
fn a_newcomers_files_appear_everywhere() {
    let card = shipped("accelerators/h100-sxm-80gb.toml")
        .replace("memory_capacity = \"81559 MiB\"", "memory_capacity = \"120 GiB\"")
        .replace("memory_bandwidth = \"3.35 TB/s\"", "memory_bandwidth = \"5 TB/s\"");
    let node = shipped("nodes/dgx-h100.toml").replace("h100-sxm-80gb", "newcomer-x1");
    let price = "[[price]]\npart = \"newcomer-8\"\nusd = \"$200,000\"\ndate = 2026-11-20\nbasis = \"quote\"\nsource = \"An offer\"\n";
    let dir = files(&[
        ("accelerators/newcomer-x1.toml", card.as_bytes()),
        ("nodes/newcomer-8.toml", node.as_bytes()),
        ("prices/neocloud-2026h2.toml", price.as_bytes()),
    ]);
    let with = |arguments: &[&str]| json(&[arguments, &["--catalog", text(dir.path())]].concat());
    assert_eq!(run(&["catalog", "check", "--catalog", text(dir.path())]).stderr, "");
    let listed = with(&["catalog", "list", "accelerators"]);
    let row = listed.as_array().unwrap().iter().find(|row| row["id"] == "newcomer-x1").unwrap().clone();
    let bare = ["memory_capacity_bytes", "memory_bandwidth_gbytes_per_s"].map(|key| row[key].as_f64());
    assert_eq!(bare, [Some(f64::from(120 << 10) * f64::from(1 << 20)), Some(5_000.0)]);
    let priced = with(&["catalog", "list", "nodes"]);
    let row = priced.as_array().unwrap().iter().find(|row| row["id"] == "newcomer-8").unwrap().clone();
    assert_eq!((row["price_usd_low"].as_f64(), row["price_date"].as_str()), (Some(200e3), Some("2026-11-20")));
    let evaluation =
        with(&["eval", MIXTRAL, "--set", "cluster.node=newcomer-8", "--set", "cluster.reliability=hopper"]);
    assert!(evaluation["training"]["iteration_s"].as_f64().unwrap() > 0.0);
    assert!(evaluation["memory"]["usable_bytes"].as_f64().unwrap() > 110e9);
    let memory = ["memory", "--model", "llama-3.1-70b", "--accelerator", "newcomer-x1", "--tensor", "2"];
    assert!(with(&memory).to_string().contains("weights"));
    let collective = ["collective", "all_reduce", "--node", "newcomer-8", "--fabric", "quantum-2-ndr", "--ranks", "16"];
    assert!(with(&[&collective[..], &["--bytes", "1 GB"]].concat())["algorithms"].as_array().unwrap().len() > 1);
    let fabric = ["fabric", "--node", "newcomer-8", "--fabric", "roce-400g", "--accelerators", "64"];
    assert!(with(&fabric)["parts"].as_array().is_some_and(|parts| !parts.is_empty()));
}

#[test]
fn a_list_of_one_kind_shows_its_key_figures() {
    let find = |rows: Value, id: &str| rows.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
    let h100 = find(json(&["catalog", "list", "accelerators"]), "h100-sxm-80gb");
    assert!(h100.get("kind").is_none(), "the kind of a list of one kind is known: {h100}");
    assert_eq!(find(json(&["catalog", "list", "cables"]), "400g-aoc")["kind"], "aoc");
    assert_eq!(find(json(&["catalog", "list"]), "400g-aoc")["kind"], "cables");
    for (key, value) in [
        ("peak_dense.bf16_tflops_per_s", Some(989.4)),
        ("memory_bandwidth_gbytes_per_s", Some(3_350.0)),
        ("tdp_w", Some(700.0)),
        ("peak_dense.fp4_tflops_per_s", None),
    ] {
        assert_eq!(h100[key].as_f64(), value, "{key}");
    }
    assert!(h100["basis"].as_str().unwrap().contains("secondary"), "{h100}");
    let switch = find(json(&["catalog", "list", "switches"]), "sn5600");
    assert!(switch["ports_count"].as_str().unwrap().starts_with("64"), "{switch}");
    assert!(switch["ports_speed_gbps"].as_str().unwrap().starts_with("800"), "{switch}");
    assert!(switch["price_date"].as_str().unwrap().starts_with("20"), "{switch}");
    let aws = find(json(&["catalog", "list", "providers"]), "aws");
    for key in ["spot_usd_per_gpu_hour_low", "term_1_year_usd_per_gpu_hour_high"] {
        assert!(aws[key].as_f64().unwrap() > 1.0, "{aws}");
    }
}

#[test]
fn what_a_scenario_rests_on_is_frozen_and_gives_the_same_answer_later() {
    let dir = tempfile::tempdir().unwrap();
    let frozen = dir.path().join("frozen");
    let kept = run(&["catalog", "freeze", "--scenario", MIXTRAL, "--on", "2026-11-29", "-o", text(&frozen)]);
    assert_eq!((kept.code, kept.stderr.as_str()), (0, ""));
    for path in ["prices/neocloud-2026h2.toml", "nodes/dgx-h100.toml", "accelerators/h100-sxm-80gb.toml"] {
        assert!(fs::read_to_string(frozen.join(path)).unwrap().contains("frozen = 2026-11-29"), "{path}");
    }
    assert!(frozen.join("switches/qm9700.toml").exists() && frozen.join("currencies/eur.toml").exists());
    assert!(!frozen.join("sites/eu-paris.toml").exists());
    // A later catalog says something else of the node, the site and a price.
    let sourced = |field: &str| {
        format!(
            "source = [{{ fields = [\"{field}\"], basis = \"quote\", title = \"Later\", accessed = 2027-11-29 }}]\n"
        )
    };
    let price =
        "[[price]]\npart = \"qm9700\"\nusd = \"$1\"\ndate = 2027-11-29\nbasis = \"quote\"\nsource = \"Later\"\n";
    let later = files(&[
        ("nodes/dgx-h100.toml", format!("{}max_power = \"12 kW\"\n", sourced("max_power")).as_bytes()),
        ("sites/us-colo.toml", format!("{}pue = 1.5\n", sourced("pue")).as_bytes()),
        ("prices/neocloud-2026h2.toml", price.as_bytes()),
    ]);
    let eval = |catalogs: &[&str]| {
        let over = catalogs.iter().flat_map(|catalog| ["--catalog", *catalog]);
        run(&["eval", MIXTRAL, "--format", "json"].into_iter().chain(over).collect::<Vec<_>>()).stdout
    };
    let now = eval(&[]);
    assert!(!now.is_empty());
    assert_ne!(eval(&[text(later.path())]), now);
    assert_eq!(eval(&[text(later.path()), text(&frozen)]), now);
    let again = run(&["catalog", "freeze", "qm9700", "sn5600", "-o", text(&frozen)]);
    assert!(again.code == 2 && again.stderr.contains("it is there already"), "{}", again.stderr);
    // A model by its path is none of the catalog's, and is not left out in silence.
    let named = dir.path().join("scenario.toml");
    let configured = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(MIXTRAL)).unwrap();
    let config = serde_json::json!({
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
    });
    fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    fs::write(&named, configured.replace("\"mixtral-8x7b\"", "\"./config.json\"")).unwrap();
    let left = run(&["catalog", "freeze", "--scenario", text(&named), "-o", text(&dir.path().join("other"))]);
    assert!(left.code == 2 && left.stderr.contains("no entry of the catalog that could be frozen"), "{}", left.stderr);
    assert!(left.stderr.contains("clusterplan model import"), "{}", left.stderr);
    let nowhere = run(&["catalog", "freeze", "qm9700", "sn5600"]);
    assert!(nowhere.code == 2 && nowhere.stderr.contains("name a new directory for them with -o"));
}

#[test]
fn what_could_not_be_found_is_said() {
    let shown = run(&["catalog", "show", "oci", "--on", "2026-11-29"]).stdout;
    assert!(shown.contains("Not found") && shown.contains("price, 3 years: committed rates"), "{shown}");
    let rows = json(&["catalog", "show", "oci", "--on", "2026-11-29"]);
    assert!(rows.as_array().unwrap().iter().any(|row| row["kind"] == "gap"));
}

#[test]
fn ids_are_in_small_letters() {
    let dir = files(&[("accelerators/H100-SXM-80GB.toml", b"name = \"x\"\n")]);
    let answer = run(&["catalog", "check", "--catalog", text(dir.path())]);
    assert!(answer.code == 2 && answer.stderr.contains("rename it to h100-sxm-80gb.toml"), "{}", answer.stderr);
    let shown = run(&["catalog", "show", "H100-SXM-80GB"]);
    assert!(shown.code == 2 && shown.stderr.contains("did you mean \"h100-sxm-80gb\"?"), "{}", shown.stderr);
}

/// A shipped file with one text replaced, under another name.
fn broken(path: &str, from: &str, to: &str) -> String {
    let text = shipped(path);
    assert!(text.contains(from), "{path} does not say {from}");
    text.replacen(from, to, 1)
}

#[test]
fn broken_files_are_named_with_their_line_and_nothing_of_them_is_used() {
    let h100 = "accelerators/h100-sxm-80gb.toml";
    let node = "nodes/dgx-h100.toml";
    let huge = format!("tdp = \"{}00 W\"", "9".repeat(300));
    let deep = format!("name = {}1{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let cases: Vec<(&str, String, &str)> = vec![
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"700 W\"\nwatts = 3"), "unknown key `watts`"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"700 GB\""), "is no unit of a power"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = 700"), "tdp"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"-700 W\""), "tdp"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"nan W\""), "tdp"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"inf W\""), "tdp"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", &huge), "tdp"),
        ("accelerators", broken(h100, "tdp = \"700 W\"", "tdp = \"700 W\"\ntdp = \"600 W\""), "not TOML"),
        ("accelerators", broken(h100, "name = ", "name : "), "not TOML"),
        ("accelerators", broken(h100, "\"tdp\", ", ""), "`tdp` has 0 sources"),
        ("accelerators", broken(h100, "accessed = 2026-11-29", ""), "`source.accessed` is missing"),
        ("accelerators", broken(h100, "accessed = 2026-11-29", "accessed = 2026-02-30"), "not TOML"),
        ("accelerators", broken(h100, "accessed = 2026-11-29", "accessed = 12:00:00"), "a date such as"),
        ("accelerators", broken(h100, "accessed = 2026-11-29", "accessed = \"last year\""), "a date such as"),
        ("accelerators", broken(h100, "basis = \"", "basis = \"hearsay "), "has no choice"),
        ("accelerators", broken(h100, "sm_count = 132", "sm_count = -132"), "sm_count"),
        ("accelerators", broken(h100, "sm_count = 132", "sm_count = 99999999999999999999"), "too large"),
        ("accelerators", String::new(), "`name` is missing"),
        ("nodes", broken(node, "h100-sxm-80gb", "h100-sxm-81gb"), "did you mean \"h100-sxm-80gb\"?"),
        ("nodes", broken(node, "count = 8, speed", "count = 80, speed"), "80 cards of 50 GB/s take 4 TB/s"),
        (
            "nodes",
            broken("nodes/gb200-nvl72.toml", "count = 72, speed", "count = 720, speed"),
            "36 processors of Gen5 x68",
        ),
        ("nodes", broken(node, "accelerators = 8", "accelerators = 0"), "`accelerators` is 0"),
        (
            "providers",
            broken("providers/oci.toml", "term = \"on-demand\"", "term = \"by the minute\""),
            "has no choice",
        ),
        ("nodes", deep, "mine.toml"),
    ];
    for (folder, text, says) in &cases {
        let dir = files(&[(&format!("{folder}/mine.toml"), text.as_bytes())]);
        let answer = run(&["catalog", "list", folder, "--catalog", dir.path().to_str().unwrap()]);
        let check = run(&["catalog", "check", "--catalog", dir.path().to_str().unwrap()]);
        assert_eq!(check.code, 2, "{says}: {}{}", check.stdout, check.stderr);
        assert!(check.stderr.contains(says), "{says}: {}", check.stderr);
        let place = check
            .stderr
            .split("mine.toml:")
            .nth(1)
            .and_then(|rest| rest.split([':', '\n', ' ']).next()?.parse::<u32>().ok());
        assert!(place.is_some(), "{says} names no line: {}", check.stderr);
        assert!(!answer.stderr.contains("panicked") && !check.stderr.contains("panicked"), "{says}");
        assert_eq!(check.stdout, "", "{says}");
    }
    let latin = files(&[("accelerators/mine.toml", b"name = \"caf\xe9\"\n")]);
    let answer = run(&["catalog", "check", "--catalog", text(latin.path())]);
    assert!(answer.code == 2 && answer.stderr.contains("mine.toml") && answer.stderr.contains("UTF-8"));
}
