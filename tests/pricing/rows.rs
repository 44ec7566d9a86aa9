//! What an answer hangs on, and its rows for a spreadsheet.

use super::{JOB, number, priced, priced_of, program, sensitivity, study_of};

#[test]
fn an_hour_hangs_on_every_kind_of_ranged_assumption() {
    let study = priced_of("train-gpt3-175b-1k-h100", "[[offer]]\nname = \"own\"\nkind = \"own\"\n");
    for assumption in [
        "price of dgx-h100",
        "Operations staff",
        "colocation",
        "PUE",
        "electricity",
        "share of power, busy",
        "recovery restart",
        "cost of capital",
        "life of accelerators",
        "share of hours in use",
    ] {
        let [low, high] = sensitivity(&study, assumption);
        assert!((low - high).abs() > 1e-6, "{assumption}");
    }
    // What software reaches moves the job, and hardly an hour of useful work: another share of it is checkpoints.
    let all = study["offers"][0]["sensitivity"].as_array().unwrap();
    let gemm = all.iter().find(|one| one["assumption"].as_str().unwrap().contains("gemm bf16")).unwrap();
    let of = |key: &str| gemm[key].as_f64().unwrap();
    let total = number(&study, 0, "total_usd");
    assert!(of("total_usd_low") > total * 1.005 && of("total_usd_high") < total * 0.995, "{gemm}");
    assert!((of("usd_per_useful_gpu_hour_low") / of("usd_per_useful_gpu_hour_high") - 1.0).abs() < 1e-3, "{gemm}");
    // A range of the catalog moves it as the same value set by hand does.
    let [low, _] = sensitivity(&study, "PUE");
    let pue = "name = \"United States, colocation\"\npue = 1.15\n[[source]]\nfields = [\"pue\"]\nbasis = \"assumed\"\ntitle = \"a test\"\naccessed = 2026-11-29\n";
    let dir = study_of("train-gpt3-175b-1k-h100", "[[offer]]\nname = \"own\"\nkind = \"own\"\n");
    std::fs::create_dir_all(dir.path().join("catalog/sites")).unwrap();
    std::fs::write(dir.path().join("catalog/sites/us-colo.toml"), pue).unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let answer = program::run(&["price", &path("study.toml"), "--format", "json", "--catalog", &path("catalog")]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let by_hand = number(&serde_json::from_str(&answer.stdout).unwrap(), 0, "usd_per_useful_gpu_hour");
    assert!((by_hand / low - 1.0).abs() < 1e-9, "{by_hand} {low}");
}

/// Rows of a study as a spreadsheet takes them, by the heads of their columns.
fn rows(study: &str, of: &str) -> Vec<std::collections::HashMap<String, String>> {
    let answer = program::run(&["price", study, "--format", "csv", "--rows", of]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    csv::Reader::from_reader(answer.stdout.as_bytes()).deserialize().map(Result::unwrap).collect()
}

fn cell(row: &std::collections::HashMap<String, String>, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key} of {row:?}"))
}

#[test]
fn every_line_of_an_owner_has_its_driver_its_time_and_its_source_and_they_add_up() {
    let dir =
        study_of(JOB, "[[offer]]\nname = \"own\"\nkind = \"own\"\nset = { \"cluster.site\" = \"us-hyperscale\" }\n");
    let path = dir.path().join("study.toml");
    let (path, study) = (path.to_str().unwrap(), priced(path.to_str().unwrap()));
    let lines = rows(path, "lines");
    assert_eq!(lines.len(), study["offers"][0]["lines"].as_array().unwrap().len());
    for line in &lines {
        assert!((cell(line, "quantity") * cell(line, "unit_amount_usd") - cell(line, "amount_usd")).abs() < 1e-6);
        assert!(line["date"].len() == 10 && !line["source"].is_empty() && !line["per"].is_empty(), "{line:?}");
        let time = if line["category"] == "capex" { "life_years" } else { "growth_per_year_ratio" };
        assert!(cell(line, time) >= 0.0, "{line:?}");
    }
    let hours = number(&study, 0, "bought_accelerators_count") * 8_760.0;
    let hour: f64 = lines.iter().map(|line| cell(line, "annualised_per_year_usd")).sum::<f64>() / hours;
    assert!((hour / number(&study, 0, "usd_per_gpu_hour") - 1.0).abs() < 1e-12);
    let building = lines.iter().find(|line| line["line"] == "Building").unwrap();
    assert!(
        (cell(building, "life_years") - 12.0).abs() < 1e-9 && building["source"].contains("Cushman"),
        "{building:?}"
    );
    // Rows are CSV's: JSON has all of it.
    let mistake = program::run(&["price", path, "--format", "json", "--rows", "lines"]);
    assert_eq!(mistake.code, 2, "{}", mistake.stdout);
    assert!(mistake.stderr.contains("--format csv"), "{}", mistake.stderr);
}

#[test]
fn rows_of_years_paths_assumptions_and_turns_are_those_of_the_answer() {
    let offers = "[[offer]]\nname = \"rent\"\nkind = \"rent\"\nprice = \"$2/h\"\ndate = 2026-11-01\n\
                  [[offer]]\nname = \"own\"\nkind = \"own\"\ndebt = { share = 0.5, rate = 0.1, tenor = \"5 years\" }\n\
                  [[path]]\nname = \"falls\"\nprices = [1, 0.5]\n";
    let dir = study_of(JOB, offers);
    let path = dir.path().join("study.toml");
    let (path, study) = (path.to_str().unwrap(), priced(path.to_str().unwrap()));
    let offers = study["offers"].as_array().unwrap();
    let of = |key: &str| -> usize { offers.iter().filter_map(|offer| offer[key].as_array()).map(Vec::len).sum() };
    assert_eq!(rows(path, "paths").len(), of("paths"));
    assert_eq!(rows(path, "sensitivity").len(), of("sensitivity"));
    assert_eq!(rows(path, "break-even").len(), study["break_even"].as_array().unwrap().len());
    let years = rows(path, "years");
    assert_eq!(years.len(), of("years") + of("paths") * 6);
    for year in &years {
        let left = cell(year, "ebitda_usd")
            + cell(year, "prepayment_usd")
            + cell(year, "resale_usd")
            + cell(year, "borrowed_usd");
        let spent =
            cell(year, "tax_usd") + cell(year, "bought_usd") + cell(year, "interest_usd") + cell(year, "principal_usd");
        assert!((left - spent - cell(year, "owners_usd")).abs() < 1.0, "{year:?}");
    }
}

#[test]
fn an_owner_s_answer_hangs_on_what_hours_are_sold_for() {
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\nsell = { market = { value = \"$3/h\", low = \"$2/h\", high = \"$4/h\" } }\n";
    let study = priced_of(JOB, own);
    let [low, typical, high] = ["$2/h", "$3/h", "$4/h"].map(|market| {
        let study =
            priced_of(JOB, &format!("[[offer]]\nname = \"own\"\nkind = \"own\"\nsell = {{ market = \"{market}\" }}\n"));
        (number(&study, 0, "npv_usd"), study["offers"][0]["levered_irr_ratio"].as_f64())
    });
    let all = study["offers"][0]["sensitivity"].as_array().unwrap();
    let one = all.iter().find(|one| one["assumption"] == "the market's price").unwrap_or_else(|| panic!("{all:?}"));
    for (end, (worth, rate)) in [("low", low), ("high", high)] {
        assert!((one[format!("npv_usd_{end}")].as_f64().unwrap() / worth - 1.0).abs() < 1e-9, "{one}");
        assert_eq!(one[format!("levered_irr_ratio_{end}")].as_f64(), rate, "{one}");
    }
    assert!((number(&study, 0, "npv_usd") / typical.0 - 1.0).abs() < 1e-9);
    // What it costs does not change by what it is sold for.
    assert_eq!(one["total_usd_low"], one["total_usd_high"]);
}
