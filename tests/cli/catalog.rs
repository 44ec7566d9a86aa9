//! The catalog on the command line and directories that lie over it.

use std::fs;

use super::json;
use crate::program::{LLAMA, MIXTRAL, run};

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
pub(super) fn overlay(path: &str, text: &str) -> tempfile::TempDir {
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
