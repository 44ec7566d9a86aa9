//! Owned clusters: years, debt, tax, sales and what an hour hangs on.

use serde_json::Value;

use super::{JOB, OWN_OR_RENT, number, priced, priced_of, program, study_of};

#[test]
fn an_owned_cluster_s_years_add_up() {
    let study = &*OWN_OR_RENT;
    for offer in study["offers"].as_array().unwrap().iter().filter(|offer| offer["kind"] == "own") {
        let years = offer["years"].as_array().unwrap();
        let sum = |key: &str| years.iter().map(|year| year[key].as_f64().unwrap()).sum::<f64>();
        let kept = sum("revenue_usd") - sum("running_usd") - sum("bought_usd") + sum("resale_usd") - sum("tax_usd");
        let owners = kept + sum("borrowed_usd") - sum("interest_usd") - sum("principal_usd");
        assert!((sum("owners_usd") - owners).abs() < 1.0, "{offer}");
        // The horizon is the life of what is bought: bought once, and written off whole.
        assert!((sum("bought_usd") / offer["capex_usd"].as_f64().unwrap() - 1.0).abs() < 1e-12);
        assert!((sum("written_off_usd") / sum("bought_usd") - 1.0).abs() < 1e-9);
    }
}

#[test]
fn without_tax_debt_and_residual_the_levelised_hour_is_the_owned_one_over_what_is_sold() {
    // Lines that live as long as the horizon, and level opex: both ways of reckoning are one.
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\nset = { \"finance.cost_of_capital\" = 0, \"cluster.spares\" = 0 }\n";
    let study = priced_of(JOB, own);
    let answer = &study["offers"][0];
    let (hour, levelised) = (number(&study, 0, "usd_per_gpu_hour"), number(&study, 0, "levelised_usd_per_gpu_hour"));
    // At no discount a life beyond the horizon is worth its share of the price, sold at the end.
    assert!((levelised / (hour / 0.8) - 1.0).abs() < 1e-9, "{answer}");
}

#[test]
fn what_is_sold_never_exceeds_what_is_owned() {
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\nset = { \"finance.utilisation\" = 1 }\nsell = { market = \"$2.5/h\", \
               delivered = [0.4, 0.7, 1], contract = [{ share = 0.6, price = \"$2.5/h\", term = \"2 years\" }] }\n";
    let study = priced_of(JOB, own);
    let years = study["offers"][0]["years"].as_array().unwrap().clone();
    for (year, delivered) in years[1..].iter().zip([0.4, 0.7, 1.0, 1.0, 1.0]) {
        let hours = year["revenue_usd"].as_f64().unwrap() / 2.5;
        assert!((hours - 16.0 * 8_760.0 * delivered).abs() < 1e-3, "{year}");
    }
}

#[test]
fn why_there_is_no_return_is_said() {
    let own = |more: &str| format!("[[offer]]\nname = \"own\"\nkind = \"own\"\n{more}\n");
    let told = |offers: &str, said: &str| {
        let dir = study_of(JOB, offers);
        let path = dir.path().join("study.toml");
        let answer = program::run(&["price", path.to_str().unwrap(), "--format", "md"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stdout.contains(said), "{said} is not in\n{}", answer.stdout);
    };
    // Nothing is earned.
    told(&own("sell = { market = \"$0.000001/h\" }"), "the amounts never change sign");
    // Customers pay for more than is bought.
    let ahead =
        "sell = { market = \"$60/h\", contract = [{ share = 1, price = \"$60/h\", term = \"5 years\", prepaid = 1 }] }";
    told(&own(ahead), "what comes first is received");
    // They pay part of it, and are served without paying in the last years: the flow turns twice.
    let both =
        "sell = { market = \"$4/h\", contract = [{ share = 1, price = \"$4/h\", term = \"5 years\", prepaid = 0.3 }] }";
    told(&own(both), "not unique: the amounts are worth nothing at each of");
}

#[test]
fn a_hundred_thousand_h100_take_the_power_that_was_published() {
    let study = priced("studies/campus-100k-h100.toml");
    let of = |key: &str| number(&study, 0, key);
    assert!((of("bought_accelerators_count") - 100_000.0).abs() < 0.5);
    // 100,000 x (700 + 575) W x 1.1 (SemiAnalysis, June 2024, restated): 140.25 MW of IT.
    assert!((of("it_kw") / 140_250.0 - 1.0).abs() < 0.01, "{}", of("it_kw"));
    // 150 MW with what cools them; a hyperscaler's 1.10 makes 155 MW of it, management networks of three tiers among it.
    assert!((of("facility_kw") / 150_000.0 - 1.0).abs() < 0.04, "{}", of("facility_kw"));
    // 1.59 TWh a year for $124M, from what they follow from: full power in all hours, cooling of 29%, $0.078 a kWh.
    let lines = study["offers"][1]["lines"].as_array().unwrap();
    let electricity = lines.iter().find(|line| line["name"] == "Electricity").unwrap();
    let of = |key: &str| electricity[key].as_f64().unwrap();
    assert!((of("quantity") / 1.59e9 - 1.0).abs() < 0.02, "{electricity}");
    assert!((of("opex_per_year_usd") / 124.02e6 - 1.0).abs() < 0.02, "{electricity}");
    assert_eq!(electricity["date"], "2024-06-17");
}

#[test]
fn dpus_are_weighed_against_the_host_cores_that_they_free() {
    let dpus = "[offer.dpus]\nper_node = 2\nprice = \"$2,800\"\ncores_freed = { value = 8, low = 2, high = 34 }\ncore_hour = \"$0.03/h\"\n\
                date = 2026-11-01\nbasis = \"assumed\"\nsource = \"a test\"\n";
    let own = "kind = \"own\"\nset = { \"finance.cost_of_capital\" = 0 }\n";
    let study = priced_of(JOB, &format!("[[offer]]\nname = \"a\"\n{own}[[offer]]\nname = \"b\"\n{own}{dpus}"));
    // Two nodes, two cards each at $2,800 over five years: $2,240 a year. Eight cores a card at $0.03 for 8,760 h: $8,409.60.
    // The price book's shares of what parts cost do not move: DPUs are a line.
    let (spent, freed) = (number(&study, 1, "dpus_usd_per_year"), number(&study, 1, "dpus_freed_usd_per_year"));
    assert!((spent - 2_240.0).abs() < 1e-6 && (freed - 8_409.6).abs() < 1e-6, "{spent} {freed}");
    let hours = number(&study, 0, "bought_accelerators_count") * 8_760.0;
    let saved = (number(&study, 0, "usd_per_gpu_hour") - number(&study, 1, "usd_per_gpu_hour")) * hours;
    assert!((saved / (freed - spent) - 1.0).abs() < 1e-9, "{saved}");
    let moved = |offer: usize, what: &str| {
        let all = study["offers"][offer]["sensitivity"].as_array().unwrap();
        all.iter().find(|one| one["assumption"] == what).cloned()
    };
    let cores = moved(1, "Host cores that DPUs free").unwrap();
    assert!(cores["usd_per_useful_gpu_hour_low"].as_f64() > cores["usd_per_useful_gpu_hour_high"].as_f64());
}

#[test]
fn an_owned_hour_is_told_by_every_way_of_amortisation() {
    let own = |set: &str| format!("[[offer]]\nname = \"own\"\nkind = \"own\"\nset = {{ {set} }}\n");
    let study = priced_of(JOB, &own(""));
    for (word, key) in [("annuity", "annuity"), ("epoch", "epoch"), ("monthly-loan", "monthly_loan")] {
        let chosen = priced_of(JOB, &own(&format!("\"finance.method\" = \"{word}\"")));
        let told = number(&study, 0, &format!("usd_per_gpu_hour_{key}"));
        assert!((number(&chosen, 0, "usd_per_gpu_hour") / told - 1.0).abs() < 1e-12, "{word}");
    }
    // A year before the first hour costs 10^-0.14 of what is written off with the accelerators: 27.6%.
    let aged = priced_of(JOB, &own("\"finance.method\" = \"epoch\", \"finance.hardware_age\" = \"1 year\""));
    let ratio = number(&aged, 0, "usd_per_gpu_hour") / number(&study, 0, "usd_per_gpu_hour_epoch");
    assert!((0.724..0.85).contains(&ratio), "{ratio}");
    let dir = study_of(JOB, &own("\"finance.hardware_age\" = \"1 year\""));
    let refused = program::run(&["price", dir.path().join("study.toml").to_str().unwrap()]);
    assert!(refused.code == 2 && refused.stderr.contains("says nothing but with method"), "{}", refused.stderr);
}

#[test]
fn hours_of_burn_in_are_paid_for_and_earn_nothing() {
    let own = |burn_in: &str| {
        format!(
            "[[offer]]\nname = \"own\"\nkind = \"own\"\nset = {{ \"finance.utilisation\" = 1 }}\n{burn_in}sell = {{ market = \"$2.5/h\", delivered = [0.5, 1] }}\n"
        )
    };
    let study = priced_of(JOB, &own("burn_in = \"36.5 days\"\n"));
    let years = study["offers"][0]["years"].as_array().unwrap().clone();
    // A tenth of a year of each half: 0.5 x 0.9; 1 - 0.5 x 0.1; then all.
    for (year, share) in years[1..].iter().zip([0.45, 0.95, 1.0, 1.0, 1.0]) {
        let hours = year["revenue_usd"].as_f64().unwrap() / 2.5;
        assert!((hours - 16.0 * 8_760.0 * share).abs() < 1e-3, "{year}");
    }
    let without = priced_of(JOB, &own(""));
    let running = |study: &Value| study["offers"][0]["years"][1]["running_usd"].as_f64().unwrap();
    assert!((running(&study) / running(&without) - 1.0).abs() < 1e-12, "it is run all the same");
    assert!(number(&study, 0, "levelised_usd_per_gpu_hour") > number(&without, 0, "levelised_usd_per_gpu_hour"));
}

#[test]
fn inflation_raises_what_has_no_growth_of_its_own() {
    let own = |inflation: &str| {
        format!(
            "[[offer]]\nname = \"own\"\nkind = \"own\"\nset = {{ \"finance.inflation\" = {inflation} }}\nsell = {{ market = \"$2.5/h\" }}\n"
        )
    };
    let running = |inflation: &str, year: usize| {
        priced_of(JOB, &own(inflation))["offers"][0]["years"][year]["running_usd"].as_f64().unwrap()
    };
    assert!((running("0.03", 1) / running("0", 1) - 1.0).abs() < 1e-12, "the first year is as priced");
    // All lines grow by 3% or by their own 3%: staff and fabric operations.
    assert!((running("0.03", 3) / (running("0", 1) * 1.03 * 1.03) - 1.0).abs() < 1e-9);
}

#[test]
fn a_building_is_written_off_as_one() {
    let own = |building: &str| {
        format!(
            "[[offer]]\nname = \"own{building}\"\nkind = \"own\"\nset = {{ \"cluster.site\" = \"us-hyperscale\" }}\n\
             sell = {{ market = \"$2.5/h\" }}\ntax = {{ rate = 0.25, depreciation = \"macrs-5\"{building} }}\n"
        )
    };
    let all = [own(""), own(", building = 'macrs-5'"), own(", building = 'macrs-39'")].concat();
    let study = priced_of(JOB, &all);
    let first = |offer: usize| study["offers"][offer]["years"][1]["written_off_usd"].as_f64().unwrap();
    let lines = study["offers"][0]["lines"].as_array().unwrap();
    let building = lines.iter().find(|line| line["name"] == "Building").unwrap()["capex_usd"].as_f64().unwrap();
    assert!((first(0) - first(2)).abs() < 1e-6, "39 years unless it is said");
    // A fifth in the first year of five against 2.461% of 39 (Table A-7a).
    assert!(((first(1) - first(0)) / building / (0.2 - 0.024_61) - 1.0).abs() < 1e-9);
    // What is not written off when it is sold goes with the sale: nothing is lost.
    for offer in study["offers"].as_array().unwrap() {
        let sum =
            |key: &str| offer["years"].as_array().unwrap().iter().map(|year| year[key].as_f64().unwrap()).sum::<f64>();
        assert!((sum("written_off_usd") / sum("bought_usd") - 1.0).abs() < 1e-9);
    }
}

#[test]
fn debt_is_owed_as_agreed_however_the_market_falls() {
    let paths = "[[path]]\nname = \"flat\"\nprices = [1]\n[[path]]\nname = \"halves\"\nprices = [1, 0.5]\n";
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\nsell = { market = \"$3/h\" }\n\
               debt = { share = 0.9, rate = 0.1, tenor = \"5 years\", repayment = \"sculpted\", cover = 1.3 }\n";
    let study = priced_of(JOB, &format!("{own}{paths}"));
    let [flat, halves] =
        [0, 1].map(|path| study["offers"][0]["paths"][path]["least_debt_cover_ratio"].as_f64().unwrap());
    assert!((flat - number(&study, 0, "least_debt_cover_ratio")).abs() < 1e-9);
    assert!(halves < 1.0, "lenders want what was agreed: {halves}");
    assert_eq!(study["offers"][0]["paths"][1]["short_in_year"], 2);
}
