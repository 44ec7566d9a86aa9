//! The program from outside: exit codes, what goes to stdout and what to stderr, formats, and what users ran into elsewhere.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod figures;
mod program;

use std::fs;
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use clusterplan::report::METRICS;
use figures::is_conditional;
use program::{Answer, LLAMA, MIXTRAL, run};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr))
}

/// The program's answer with a scenario's text changed.
fn changed(from: &str, to: &str) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(format!("{}/{LLAMA}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(text.contains(from));
    let path = dir.path().join("scenario.toml");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    run(&["eval", path.to_str().unwrap()])
}

#[test]
fn an_answer_is_on_stdout_alone() {
    for format in ["table", "json", "csv", "md"] {
        let answer = run(&["eval", MIXTRAL, "--format", format]);
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{format}");
        assert!(answer.stdout.ends_with('\n') && answer.stdout.len() > 1_000, "{format}");
    }
}

#[test]
fn what_does_not_fit_is_a_no_with_its_footprint() {
    let answer = run(&["eval", LLAMA, "--set", "training.layout.pipeline=8"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
    for part in ["Infeasible: stage", "short by", "Weights", "Activations", "Total", "Usable"] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    let object = json(&["eval", LLAMA, "--set", "training.layout.pipeline=8"]);
    assert_eq!(object["memory"]["fits"], false);
    assert!(object["memory"]["total_bytes"].as_f64() > object["memory"]["usable_bytes"].as_f64());
    assert!(object["infeasible"]["reason"].as_str().unwrap().contains("short by"));
}

#[test]
fn policies_of_memory_are_keys_of_a_scenario() {
    let of = |set: &[&str]| {
        let sets: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
        json(&[["memory", MIXTRAL].as_slice(), &sets].concat())
    };
    let bytes = |object: &Value, key: &str| object["memory"][key].as_f64().unwrap();
    let plain = of(&[]);
    let offloaded = of(&["training.offload=optimizer"]);
    assert_eq!(offloaded["memory"]["optimizer_bytes"], 0);
    assert_eq!(offloaded["memory"]["offloaded_bytes"], plain["memory"]["optimizer_bytes"]);
    let less = ["training.layout.recompute={ layers = 2 }", "training.layout.recompute={ modules = [\"moe\"] }"];
    for key in less {
        assert!(bytes(&of(&[key]), "activations_bytes") < bytes(&plain, "activations_bytes"), "{key}");
    }
    assert!(bytes(&of(&["training.expert_imbalance=1.5"]), "activations_bytes") > bytes(&plain, "activations_bytes"));
    let hybrid = of(&["training.layout.sharding=hybrid", "training.layout.shard_ranks=8"]);
    let full = of(&["training.layout.sharding=full"]);
    assert!(bytes(&hybrid, "optimizer_bytes") > bytes(&full, "optimizer_bytes"));
}

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
fn a_file_gets_the_answer_instead_of_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.json");
    let answer = run(&["eval", MIXTRAL, "--format", "json", "-o", file.to_str().unwrap()]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""));
    let object: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(object["memory"]["fits"], true);
    let answer = run(&["eval", MIXTRAL, "-o", "/nowhere/out.md"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("cannot write /nowhere/out.md"));
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
fn json_has_groups_with_their_basis_and_bare_numbers() {
    let object = json(&["eval", MIXTRAL, "--set", "training.data.raw=1 PB", "--set", "training.data.cleaned=160 TB"]);
    assert!(object["serving"].is_null(), "nothing is served");
    for metric in METRICS.iter().filter(|metric| !is_conditional(metric)) {
        let (group, name) = metric.key.split_once('.').unwrap();
        assert!(object[group][name].is_number() || object[group][name].is_boolean(), "{}", metric.key);
    }
    for group in ["memory", "training", "data", "goodput", "fabric", "facility", "cost"] {
        assert!(object[group]["basis"].is_string(), "{group}");
    }
    assert!(object["cost"]["lines"].as_array().unwrap().len() > 5);
    assert!(object["fabric"]["parts"].as_array().unwrap().len() > 5);
}

#[test]
fn csv_has_a_column_a_figure() {
    let data = ["--set", "training.data.raw=1 PB", "--set", "training.data.cleaned=160 TB"];
    let answer = run(&[&["eval", MIXTRAL, "--format", "csv"], &data[..]].concat());
    let mut reader = csv::Reader::from_reader(answer.stdout.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
    assert_eq!(header[0], "title");
    assert_eq!(header[1..], keys);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 1);
    let numbers = rows[0].iter().skip(1).filter(|cell| cell.parse::<f64>().is_ok()).count();
    let serving = METRICS.iter().filter(|metric| is_conditional(metric)).count();
    assert_eq!(
        numbers,
        METRICS.len() - serving - 2,
        "all but `memory.fits`, `data.storage_suffices` and serving's are numbers"
    );
    assert!(run(&["eval", MIXTRAL, "--format", "csv", "--bom"]).stdout.starts_with('\u{feff}'));
}

#[test]
fn a_title_cannot_become_a_formula() {
    let answer = run(&["eval", MIXTRAL, "--format", "csv", "--set", "title=\"=HYPERLINK(1)\""]);
    assert!(answer.stdout.lines().nth(1).unwrap().starts_with("'=HYPERLINK(1),"), "{}", answer.stdout);
}

#[test]
fn settings_change_the_scenario_and_point_at_themselves() {
    let cost = |tariff: &str| {
        let setting = format!("finance.cost_of_capital={tariff}");
        json(&["eval", MIXTRAL, "--set", &setting])["cost"]["usd_per_gpu_hour"].as_f64().unwrap()
    };
    assert!(cost("0.2") > cost("0.05"));
    let answer = run(&["eval", MIXTRAL, "--set", "cluster.spares=\"many\""]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("--set:1:16") && answer.stderr.contains("cluster.spares=\"many\""),
        "{}",
        answer.stderr
    );
    let later = json(&["eval", MIXTRAL, "--set", "cluster.spares=0.5", "--set", "cluster.spares=0.1"]);
    assert_eq!(later["scenario"]["cluster.spares"], "0.1");
}

#[test]
fn three_fabrics_stand_side_by_side() {
    let object = json(&["compare", LLAMA]);
    assert_eq!(object["baseline"], "quantum-2-ndr");
    let names: Vec<&str> =
        object["variants"].as_array().unwrap().iter().map(|variant| variant["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["quantum-2-ndr", "spectrum-x-400g", "roce-400g"]);
    for variant in object["variants"].as_array().unwrap() {
        let delta = variant["delta"]["cost.usd_per_run"].as_f64().unwrap();
        let of = |variant: &Value| variant["evaluation"]["cost"]["usd_per_run"].as_f64().unwrap();
        assert!((of(variant) / of(&object["variants"][0]) - 1.0 - delta).abs() < 1e-12);
    }
    let broken_even = object["break_even"].as_array().unwrap();
    assert_eq!(broken_even.len(), 6);
    for found in broken_even {
        assert_eq!(found["between"][0], "quantum-2-ndr");
        assert!(found["value"].is_number() || (found["value"].is_null() && found["reason"].is_string()), "{found}");
    }
    let table = run(&["compare", LLAMA]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    for part in [
        "Memory of a GPU",
        "Fits",
        "Exposed communication",
        "MFU",
        "Tokens a second",
        "Run without failures",
        "Goodput",
        "optical module, spine",
        "IT power, provisioned",
        "Facility power, provisioned",
        "Capex",
        "Opex a year",
        "A GPU for an hour",
        "Cost of the run",
        "Break-even",
        "price of the fabric of roce-400g",
        "spine efficiency of roce-400g",
    ] {
        assert!(table.stdout.contains(part), "{part}");
    }
}

#[test]
fn a_variant_that_cannot_be_is_shown_and_others_too() {
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("3 cannot be: "), "{}", answer.stdout);
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3", "--baseline", "3"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("Infeasible"), "{}", answer.stderr);
    let answer = run(&["compare", LLAMA, "--vary", "training.layout.tensor=8,3", "--baseline", "4"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("none of the variants"), "{}", answer.stderr);
    let twice = ["--vary", "cluster.spares=0.1", "--vary", "cluster.spares=0.2"];
    assert!(run(&[&["compare", LLAMA], &twice[..]].concat()).stderr.contains("`cluster.spares` is varied twice"));
}

#[test]
fn csv_of_a_comparison_has_a_line_a_variant() {
    let answer = run(&["compare", LLAMA, "--format", "csv", "--vary", "training.layout.pipeline=16,8"]);
    let mut reader = csv::Reader::from_reader(answer.stdout.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!([&rows[0][0], &rows[0][1], &rows[0][2]], ["16", "true", "true"]);
    assert_eq!([&rows[1][0], &rows[1][2]], ["8", "false"]);
    assert!(rows[1][3].contains("short by"));
}

#[test]
fn narrow_terminals_and_no_colour_are_respected() {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("COLUMNS", "72").env("NO_COLOR", "1");
    let output = command.args(["eval", MIXTRAL]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 72).collect();
    assert_eq!(long, Vec::<&str>::new());
    assert!(!text.contains('\u{1b}'));
    let mistaken = run(&["eval", MIXTRAL, "--set", "cluster.node=x"]);
    assert!(!mistaken.stderr.contains('\u{1b}'), "no codes where stderr is no terminal");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Process::new(env!("CARGO_BIN_EXE_clusterplan"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["compare", LLAMA, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn the_catalog_shows_every_field_with_its_source() {
    let list = run(&["catalog", "list", "fabrics"]);
    assert!(list.stdout.contains("quantum-2-ndr") && !list.stdout.contains("dgx-h100"), "{}", list.stdout);
    assert!(run(&["catalog", "list", "fabric"]).stdout.contains("roce-400g"));
    assert!(run(&["catalog", "list", "fabirc"]).stderr.contains("did you mean \"fabrics\"?"));
    let fields = json(&["catalog", "show", "spectrum-x-400g"]);
    let field = fields.as_array().unwrap().iter().find(|field| field["field"] == "spine_efficiency").unwrap();
    assert_eq!(field["value"], "0.95 (0.88 to 0.98)");
    assert_eq!(field["basis"], "assumed");
    assert!(fields.as_array().unwrap().iter().all(|field| !field["source"].as_str().unwrap().is_empty()));
    let switch = run(&["catalog", "show", "qm9700"]);
    assert!(switch.stdout.contains("price in neocloud-2026h2"), "{}", switch.stdout);
    let unknown = run(&["catalog", "show", "qm970"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean \"qm9700\"?"));
    assert_eq!(run(&["catalog", "check"]).code, 0);
}

#[test]
fn the_catalog_answers_questions_about_its_figures() {
    let big =
        run(&["catalog", "list", "accelerators", "--where", "vendor = AMD", "--where", "memory_capacity >= 250 GiB"]);
    assert!(big.stdout.contains("mi325x") && !big.stdout.contains("mi300x"), "{}", big.stdout);
    assert!(run(&["catalog", "list", "--where", "vendor"]).stderr.contains("is no condition"));
    let fields = json(&["catalog", "show", "dgx-h100", "--on", "2026-11-30"]);
    let power = fields.as_array().unwrap().iter().find(|row| row["field"] == "max_power").unwrap();
    assert_eq!((power["basis"].as_str(), power["age_days"].as_str()), (Some("secondary"), Some("1")));
    let shown = run(&["catalog", "show", "eu-ireland", "--on", "2026-11-29"]).stdout;
    assert!(shown.contains("= 0.2765 USD/kWh at 1 EUR = 1.08 USD, fixed on 2024-12-31"), "{shown}");
    assert!(run(&["catalog", "show", "dgx-h100", "--on", "today"]).stderr.contains("\"today\" is no day"));
    let changes = json(&["catalog", "diff", "h100-sxm-80gb", "h200-sxm-141gb"]);
    let bandwidth = changes.as_array().unwrap().iter().find(|row| row["field"] == "memory_bandwidth").unwrap();
    assert_eq!(bandwidth["ratio"], "1.433");
    let old = run(&["catalog", "check", "--older-than", "2 years", "--on", "2026-11-29"]);
    assert_eq!(old.code, 1);
    assert!(old.stdout.contains("dgx-h100") && old.stderr.contains("prices are older than 2 years on 2026-11-29"));
    assert_eq!(run(&["catalog", "check", "--older-than", "20 years", "--on", "2026-11-29"]).code, 0);
}

#[test]
fn a_frozen_price_book_outlives_later_changes() {
    let frozen = run(&["catalog", "freeze", "neocloud-2026h2", "--on", "2026-11-29"]).stdout;
    let kept = overlay("prices/neocloud-2026h2.toml", &frozen);
    let cheap = overlay(
        "prices/neocloud-2026h2.toml",
        "[[price]]\npart = \"dgx-h100\"\nusd = \"$1,000\"\ndate = 2026-11-29\nbasis = \"assumed\"\nsource = \"A dream\"\n",
    );
    let (kept, cheap) = (kept.path().to_str().unwrap(), cheap.path().to_str().unwrap());
    let capex = |arguments: &[&str]| json(arguments)["cost"]["capex_usd"].as_f64().unwrap();
    let before = capex(&["eval", LLAMA]);
    assert!(capex(&["eval", LLAMA, "--catalog", cheap]) < 0.8 * before);
    assert!((capex(&["eval", LLAMA, "--catalog", cheap, "--catalog", kept]) / before - 1.0).abs() < 1e-12);
    let changes = run(&["catalog", "diff", kept, cheap]).stdout;
    assert!(changes.contains("price dgx-h100") && changes.contains("usd $1,000"), "{changes}");
}

#[test]
fn editors_get_a_schema_of_every_catalog_file() {
    let one: serde_json::Value = serde_json::from_str(&run(&["schema", "catalog", "accelerator"]).stdout).unwrap();
    assert_eq!(one["properties"]["tdp"]["examples"][0], "700 W");
    let all: serde_json::Value = serde_json::from_str(&run(&["schema", "catalog"]).stdout).unwrap();
    assert!(all.as_object().unwrap().len() >= 20);
    assert!(run(&["schema", "catalog", "gadgets"]).stderr.contains("the kinds are"));
}

#[test]
fn a_new_accelerator_is_one_file_and_an_unmeasured_one_is_not_guessed_at() {
    let text = std::fs::read_to_string("catalogs/accelerators/h100-sxm-80gb.toml").unwrap();
    let dir = overlay("accelerators/example-x1.toml", &text.replace("\"hopper\"", "\"example\""));
    let node = std::fs::read_to_string("catalogs/nodes/dgx-h100.toml").unwrap().replace("h100-sxm-80gb", "example-x1");
    std::fs::create_dir_all(dir.path().join("nodes")).unwrap();
    std::fs::write(dir.path().join("nodes/example-8.toml"), node).unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(run(&["catalog", "list", "accelerators", "--catalog", path]).stdout.contains("example-x1"));
    assert_eq!(run(&["catalog", "check", "--catalog", path]).code, 0);
    let answer = run(&["eval", LLAMA, "--catalog", path, "--set", "cluster.node=example-8"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("has no price for `example-8`"), "{}", answer.stderr);
    std::fs::create_dir_all(dir.path().join("prices")).unwrap();
    let price = "[[price]]\npart = \"example-8\"\nusd = \"$200,000\"\ndate = 2026-11-29\nbasis = \"quote\"\nsource = \"An offer\"\n";
    std::fs::write(dir.path().join("prices/neocloud-2026h2.toml"), price).unwrap();
    let failures = ["--set", "cluster.node=example-8", "--set", "cluster.reliability=hopper"];
    let answer = run(&[&["eval", LLAMA, "--catalog", path][..], &failures[..]].concat());
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("no measured efficiency for accelerators of generation \"example\""),
        "{}",
        answer.stderr
    );
}

/// A catalog directory with one file.
fn overlay(path: &str, text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    dir
}

#[test]
fn directories_lie_over_the_built_in_catalog() {
    let dear = overlay(
        "sites/us-colo.toml",
        "electricity = { value = \"$0.2/kWh\", low = \"$0.1/kWh\", high = \"$0.3/kWh\" }\n\
         [[source]]\nfields = [\"electricity\"]\nbasis = \"quote\"\ntitle = \"An offer\"\naccessed = 2026-11-20\n",
    );
    let opex = |arguments: &[&str]| json(arguments)["cost"]["opex_per_year_usd"].as_f64().unwrap();
    assert!(opex(&["eval", MIXTRAL, "--catalog", dear.path().to_str().unwrap()]) > opex(&["eval", MIXTRAL]));
    let unsourced = overlay("sites/mine.toml", "name = \"Mine\"\n");
    let answer = run(&["catalog", "check", "--catalog", unsourced.path().to_str().unwrap()]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("`pue` is missing"), "{}", answer.stderr);
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
fn shells_and_the_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (0, ""), "{shell}");
        for word in ["uncertainty", "nccl-tests", "break-even"] {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert!(run(&["man"]).stdout.contains("clusterplan\\-eval"));
    assert!(run(&["man", "calibrate", "training"]).stdout.contains("prior"));
    let unknown = run(&["man", "evla"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean `eval`"), "{}", unknown.stderr);
}

#[test]
fn a_figure_is_explained_or_the_mistake_is() {
    let tree = json(&["explain", MIXTRAL, "training.iteration_s", "--depth", "1"]);
    let parts: f64 = tree["inputs"].as_array().unwrap().iter().map(|part| part["value"].as_f64().unwrap()).sum();
    assert!((parts / tree["value"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let page = run(&["explain", MIXTRAL, "cost.usd_per_run"]);
    assert!(page.stdout.contains("h100-sxm-80gb.peak_dense.bf16") && page.stdout.contains("by default"));
    let of = |arguments: &[&str]| {
        let answer = run(&[&["explain", MIXTRAL], arguments].concat());
        (answer.code, answer.stderr)
    };
    let (code, slip) = of(&["cost.usd_per_rnu"]);
    assert!(code == 2 && slip.contains("did you mean `cost.usd_per_run`"), "{slip}");
    // Where prefill has nodes of its own, what is counted by accelerators says how many of them are those.
    let nodes = "scenarios/plan-deepseek-v3-prefill-nodes.toml";
    let few = "serving.arrivals={ rate = \"8 request/s\" }";
    for figure in
        ["serving.prefill_workers_count", "serving.replicas_count", "serving.kv_transfer_s", "fabric.nics_count"]
    {
        let page = run(&["explain", nodes, figure, "--set", few]).stdout;
        assert!(page.contains("cluster.prefill.node"), "{figure}: {page}");
        assert!(page.contains("cluster.prefill.accelerators"), "{figure}: {page}");
    }
    // Tiers that a scenario uses are told with their fields and sources.
    let adapters = "serving.adapters={ count = 100, rank = 16, resident = 8 }";
    let serve = "scenarios/serve-llama3.1-70b-64-h100.toml";
    let page = run(&["explain", serve, "serving.adapter_wait_s", "--set", adapters, "--set", few]).stdout;
    assert!(page.contains("read_bandwidth") && !page.contains("not in this scenario"), "{page}");
    let (code, absent) = of(&["serving.tpot_s"]);
    assert!(code == 2 && absent.contains("no `serving.tpot_s`"), "{absent}");
    let (code, short) = of(&["memory.fits", "--set", "training.global_batch=255"]);
    assert!(code == 1 && short.contains("Infeasible"), "{short}");
}
