//! Pricing studies from the command line: shipped ones answer, and figures hold together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod owned;
#[path = "../program/mod.rs"]
mod program;
mod rented;
mod rows;

use serde_json::Value;

/// A study of one job and the offers of a text.
fn study_of(job: &str, offers: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let job = format!("{}/scenarios/{job}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(dir.path().join("study.toml"), format!("title = \"One?\"\njob = \"{job}\"\n{offers}")).unwrap();
    dir
}

fn priced_of(job: &str, offers: &str) -> Value {
    let dir = study_of(job, offers);
    priced(dir.path().join("study.toml").to_str().unwrap())
}

fn number(study: &Value, offer: usize, key: &str) -> f64 {
    study["offers"][offer][key].as_f64().unwrap_or_else(|| panic!("{key}: {}", study["offers"][offer]))
}

const JOB: &str = "train-llama3.1-8b-16-h100-two-nodes";

fn priced(study: &str) -> Value {
    let answer = program::run(&["price", study, "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

/// The largest of the shipped studies, asked once.
static OWN_OR_RENT: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| priced("studies/own-or-rent-1k-h100.toml"));

/// Prices of the catalog's neocloud book that the job's cluster is built of, `k` times as high.
fn dearer(k: f64) -> String {
    let line = |name: &str, amount: f64| {
        format!(
            "[[offer.line]]\nname = \"{name}\"\ncategory = \"opex\"\nper = \"accelerator\"\namount = \"${amount}\"\n\
             date = 2026-11-01\nbasis = \"assumed\"\nsource = \"a test\"\n"
        )
    };
    format!(
        "[[offer]]\nname = \"own\"\nkind = \"own\"\n[[offer.price_of]]\npart = \"dgx-h100\"\nusd = \"${}\"\ndate = 2026-11-01\n\
         basis = \"assumed\"\nsource = \"a test\"\n{}",
        244_400.0 * k,
        line("Operations staff", 350.0 * k),
    )
}

#[test]
fn a_cheaper_line_never_raises_a_total() {
    let mut before: Option<(f64, f64)> = None;
    for k in [0.5, 0.9, 1.0, 1.3, 2.0] {
        let study = priced_of(JOB, &dearer(k));
        let now = (number(&study, 0, "total_usd"), number(&study, 0, "levelised_usd_per_gpu_hour"));
        if let Some(before) = before {
            assert!(now.0 > before.0 && now.1 > before.1, "{k}: {before:?}, {now:?}");
        }
        before = Some(now);
    }
}

#[test]
fn a_study_sets_keys_of_the_job_for_all_its_offers() {
    let set = "[set]\ntitle = \"Another job\"\n\"finance.utilisation\" = 0.5\n";
    let offers = "[[offer]]\nname = \"a\"\nkind = \"own\"\n[[offer]]\nname = \"b\"\nkind = \"own\"\nset = { \"finance.utilisation\" = 1 }\n";
    let study = priced_of(JOB, &format!("{set}{offers}"));
    assert_eq!(study["job"], "Another job");
    // The offer's own has the last word: half of the hours in use cost nearly twice as much each.
    let ratio = number(&study, 0, "usd_per_useful_gpu_hour") / number(&study, 1, "usd_per_useful_gpu_hour");
    assert!((1.8..2.0).contains(&ratio), "{ratio}");
}

#[test]
fn energy_and_emissions_are_told_of_every_unit_and_add_up() {
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\n";
    let study = priced_of("serve-coding-agents-64-h200", own);
    let of = |key: &str| number(&study, 0, key);
    // Whatever takes a share of the hours takes the same share of the energy.
    for unit in ["mtok_input", "mtok_cached", "mtok_output", "mtok_blended"] {
        let hours = of(&format!("usd_per_{unit}")) / of("usd_per_useful_gpu_hour");
        assert!(
            (of(&format!("kwh_per_{unit}")) / (hours * of("kwh_per_useful_gpu_hour")) - 1.0).abs() < 1e-9,
            "{unit}"
        );
    }
    // One grid: 396.25 g a kWh in Virginia.
    for unit in ["gpu_hour", "useful_gpu_hour", "mtok_output", "task", "success", "run"] {
        let intensity = of(&format!("gco2e_per_{unit}")) / of(&format!("kwh_per_{unit}"));
        assert!((intensity - 396.25).abs() < 1e-6, "{unit}: {intensity}");
    }
    // 64% of the tasks succeed.
    assert!((of("usd_per_success") / of("usd_per_task") - 1.0 / 0.64).abs() < 1e-9);
    assert!((of("kwh_per_success") / of("kwh_per_task") - 1.0 / 0.64).abs() < 1e-9);
    // A year of it.
    assert!(
        (of("kwh_per_run") / (of("kwh_per_gpu_hour") * of("bought_accelerators_count") * 8_760.0) - 1.0).abs() < 1e-9
    );
    // A training run by its PFLOP-days.
    let trained = priced_of("train-gpt3-175b-1k-h100", own);
    let days = number(&trained, 0, "total_usd") / number(&trained, 0, "usd_per_pflop_day");
    let energy = number(&trained, 0, "kwh_per_run") / number(&trained, 0, "kwh_per_pflop_day");
    assert!((days / energy - 1.0).abs() < 1e-9, "{days} {energy}");
}

#[test]
fn who_rents_has_the_energy_of_the_hours_in_use_alone() {
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\n";
    let bare = "[[offer]]\nname = \"bare\"\nkind = \"own\"\nset = { \"cluster.spares\" = 0, \"cluster.storage_units\" = 0, \"finance.utilisation\" = 1 }\n";
    let rent = "[[offer]]\nname = \"rent\"\nkind = \"rent\"\nprice = \"$3/h\"\ndate = 2026-11-01\n";
    let reserved =
        "[[offer]]\nname = \"reserved\"\nkind = \"rent\"\nprice = \"$3/h\"\ndate = 2026-11-01\nminimum = \"1 year\"\n";
    let study = priced_of("serve-coding-agents-64-h200", &format!("{own}{bare}{rent}{reserved}"));
    let [owned, bare, rented, reserved] = [0, 1, 2, 3].map(|offer| number(&study, offer, "kwh_per_useful_gpu_hour"));
    // Spares, storage and idle hours are whose they are.
    assert!((rented / bare - 1.0).abs() < 1e-9, "{rented} {bare}");
    assert!(rented < reserved && reserved < owned, "{rented} {reserved} {owned}");
    // 64 GPUs for four fifths of the year.
    let of_run = number(&study, 2, "kwh_per_run");
    assert!((of_run / (rented * 64.0 * 0.8 * 8_760.0) - 1.0).abs() < 1e-9, "{of_run}");
}

#[test]
fn owning_that_saves_more_than_it_costs_always_pays() {
    let dpus = "[offer.dpus]\nper_node = 1\nprice = \"$2,800\"\ncores_freed = 8\ncore_hour = \"$10,000/h\"\n\
                date = 2026-11-01\nbasis = \"assumed\"\nsource = \"a test\"\n";
    let rent = "[[offer]]\nname = \"b\"\nkind = \"rent\"\nprice = \"$2/h\"\ndate = 2026-11-01\n";
    let study = priced_of(JOB, &format!("[[offer]]\nname = \"a\"\nkind = \"own\"\n{dpus}{rent}"));
    assert!(number(&study, 0, "usd_per_gpu_hour") < 0.0);
    let turn = study["break_even"].as_array().unwrap().iter().find(|turn| turn["variable"] == "finance.utilisation");
    assert_eq!(turn.unwrap()["value"], 0.0);
}

/// The sensitivity of the first offer to an assumption: at its low and its high end.
fn sensitivity(study: &Value, assumption: &str) -> [f64; 2] {
    let all = study["offers"][0]["sensitivity"].as_array().unwrap();
    let one = all.iter().find(|one| one["assumption"] == assumption).unwrap_or_else(|| panic!("{assumption}: {all:?}"));
    ["usd_per_useful_gpu_hour_low", "usd_per_useful_gpu_hour_high"].map(|key| one[key].as_f64().unwrap())
}

#[test]
fn a_figure_of_the_catalog_is_otherwise_with_an_offer_and_says_why() {
    let own = |name: &str, figure: &str| format!("[[offer]]\nname = \"{name}\"\nkind = \"own\"\n{figure}");
    let dated = "date = 2026-11-01\nbasis = \"quote\"\nsource = \"our contract\"\n";
    let tariff =
        format!("[[offer.figure]]\nkey = \"catalog/sites/us-colo/electricity\"\nvalue = \"$0.1652/kWh\"\n{dated}");
    let study = priced_of(JOB, &[own("a", ""), own("b", &tariff)].concat());
    let line = |offer: usize| {
        let lines = study["offers"][offer]["lines"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == "Electricity").unwrap().clone()
    };
    let paid = |offer: usize| line(offer)["opex_per_year_usd"].as_f64().unwrap();
    assert!((paid(1) / paid(0) - 2.0).abs() < 1e-9, "twice $0.0826");
    assert_eq!(
        (&line(1)["source"], &line(1)["basis"], &line(1)["date"]),
        (&"our contract".into(), &"quote".into(), &"2026-11-01".into())
    );
    assert_ne!(line(0)["source"], "our contract");
    for (key, value, says) in [
        ("sites/us-wholesale/pue", "1.1", "moves nothing: `cluster.site` is us-colo"),
        ("models/llama-3.1-8b/layers", "3", "is of the job, which is the same with every offer"),
        ("sites/us-colo/id", "1", "`us-colo` has no field `id`"),
    ] {
        let figure = format!("[[offer.figure]]\nkey = \"catalog/{key}\"\nvalue = {value}\n{dated}");
        let dir = study_of(JOB, &own("a", &figure));
        let answer = program::run(&["price", dir.path().join("study.toml").to_str().unwrap()]);
        assert_eq!(answer.code, 2, "{key}: {}", answer.stderr);
        // It stands at the key.
        assert!(answer.stderr.contains(says) && answer.stderr.contains(":7:7"), "{key}: {}", answer.stderr);
    }
}

#[test]
fn what_an_offer_says_of_a_thing_it_says_once() {
    let why = "date = 2026-11-29\nbasis = \"quote\"\nsource = \"our contract\"\n";
    let line = "name = \"crane\"\namount = \"$1000\"\nper = \"node\"\ncategory = \"capex\"\nlife = \"5 years\"\n";
    for (list, entry) in [
        ("line", line),
        ("price_of", "part = \"dgx-h100\"\nusd = \"$300k\"\n"),
        ("figure", "key = \"catalog/sites/us-colo/pue\"\nvalue = 1.2\n"),
    ] {
        let entry = format!("[[offer.{list}]]\n{entry}{why}");
        let of = |entries: &str| {
            let dir = study_of(JOB, &format!("[[offer]]\nname = \"own\"\nkind = \"own\"\n{entries}"));
            let answer = program::run(&["price", dir.path().join("study.toml").to_str().unwrap()]);
            (answer.code, answer.stderr)
        };
        assert_eq!(of(&entry), (0, String::new()), "{list}");
        let (code, stderr) = of(&[&entry[..], &entry].concat());
        assert!(code == 2 && stderr.contains(&format!("two [[offer.{list}]] of an offer")), "{stderr}");
    }
}
