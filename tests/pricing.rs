//! Pricing studies from the command line: shipped ones answer, and figures hold together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

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
fn rent_is_hours_at_their_price_and_what_comes_with_them() {
    let study = &*OWN_OR_RENT;
    for offer in study["offers"].as_array().unwrap().iter().filter(|offer| offer["kind"] == "rent") {
        let figure = |key: &str| offer[key].as_f64().unwrap();
        let hours = figure("paid_days") * 24.0 * 1_024.0;
        let total = hours * figure("usd_per_gpu_hour") + figure("egress_usd") + figure("storage_usd");
        assert!((figure("total_usd") / total - 1.0).abs() < 1e-9, "{offer}");
        assert!(figure("ready_after_days") >= figure("effective_days"));
    }
}

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
fn an_hour_k_times_as_dear_makes_the_job_k_times_as_dear() {
    let rent = |price: f64| {
        format!(
            "[[offer]]\nname = \"rent\"\nkind = \"rent\"\nprice = \"${price}/h\"\nper = \"accelerator\"\ndate = 2026-11-01\n"
        )
    };
    let one = number(&priced_of(JOB, &rent(2.0)), 0, "total_usd");
    for k in [0.25, 3.0, 17.0] {
        let other = number(&priced_of(JOB, &rent(2.0 * k)), 0, "total_usd");
        assert!((other / one / k - 1.0).abs() < 1e-12);
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
fn tokens_are_bought_at_their_prices() {
    let api = "[[offer]]\nname = \"API\"\nkind = \"api\"\ninput = \"$1\"\ncached = \"$0.1\"\noutput = \"$2\"\ndate = 2026-11-01\nsource = \"a list\"\n";
    let study = priced_of("serve-llama3.1-70b-64-h100", api);
    // 40 requests a second of 2,048 tokens, 30% of them cached, and 512; four fifths of the hours of a year.
    let requests = 40.0 * 8_760.0 * 3_600.0 * 0.8;
    let expected = requests / 1e6 * (2_048.0 * (0.7 + 0.3 * 0.1) + 512.0 * 2.0);
    assert!((number(&study, 0, "total_usd") / expected - 1.0).abs() < 1e-3, "{study}");
}

const SERVING: &str = "serve-llama3.1-70b-64-h100";

#[test]
fn served_hours_are_paid_as_they_are_used_on_demand_and_all_on_a_commitment() {
    let rent = |more: &str| {
        format!(
            "[[offer]]\nname = \"rent\"\nkind = \"rent\"\nprice = \"$2/h\"\ndate = 2026-11-01\n{more}[[offer]]\nname = \"own\"\nkind = \"own\"\n"
        )
    };
    let used = 64.0 * 8_760.0 * 0.8;
    let by_the_hour = priced_of(SERVING, &rent(""));
    // 64 GPUs for four fifths of a year at $2: an hour of use costs its price, in the total and in the break-even.
    assert!((number(&by_the_hour, 0, "total_usd") / (2.0 * used) - 1.0).abs() < 1e-9);
    assert!((number(&by_the_hour, 0, "usd_per_useful_gpu_hour") - 2.0).abs() < 1e-9);
    let turn = |study: &Value| study["break_even"][0].clone();
    let own = number(&by_the_hour, 1, "usd_per_gpu_hour");
    // 72 bought, eight of them a spare node, for 64 at work.
    let turns_at = own * (72.0 / 64.0) / 2.0;
    let stated = turn(&by_the_hour)["value"].as_f64();
    assert_eq!(stated.is_some(), turns_at <= 1.0);
    assert!(stated.is_none_or(|stated| (stated / turns_at - 1.0).abs() < 1e-9));
    // A year's commitment pays the fifth that is not used too, and no share of use turns the order.
    let committed = priced_of(SERVING, &rent("term = \"1 year\"\n"));
    assert!((number(&committed, 0, "total_usd") / (2.0 * used / 0.8) - 1.0).abs() < 1e-9);
    assert!((number(&committed, 0, "usd_per_useful_gpu_hour") - 2.5).abs() < 1e-9);
    let less = number(&committed, 1, "total_usd") < number(&committed, 0, "total_usd");
    assert_eq!(turn(&committed)["value"].as_f64(), less.then_some(0.0));
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
fn the_more_often_spot_instances_are_taken_back_the_more_an_hour_of_use_costs() {
    let spot = |rate: &str| {
        format!(
            "[[offer]]\nname = \"spot\"\nkind = \"rent\"\nterm = \"spot\"\nprice = \"$2/h\"\ndate = 2026-11-01\ninterruptions_per_day = {rate}\n"
        )
    };
    let study = priced_of(JOB, &spot("{ value = 0.02, low = 0.005, high = 0.05 }"));
    let [low, high] = sensitivity(&study, "interruptions of an instance a day");
    let typical = number(&study, 0, "usd_per_useful_gpu_hour");
    assert!(low < typical && typical < high, "{low} {typical} {high}");
    // The ends are what a study with that rate alone says.
    for (end, rate) in [(low, "0.005"), (high, "0.05")] {
        let alone = number(&priced_of(JOB, &spot(rate)), 0, "usd_per_useful_gpu_hour");
        assert!((end / alone - 1.0).abs() < 1e-9, "{rate}: {end} {alone}");
    }
}

#[test]
fn prices_of_tokens_have_ranges() {
    let api = |input: &str, output: &str| {
        format!(
            "[[offer]]\nname = \"API\"\nkind = \"api\"\ninput = {input}\noutput = {output}\ndate = 2026-11-01\nsource = \"a list\"\n"
        )
    };
    let study = priced_of(SERVING, &api("{ value = \"$0.6\", low = \"$0.1\", high = \"$0.9\" }", "\"$0.8\""));
    let [low, high] = sensitivity(&study, "price of a million tokens of prompts");
    for (end, input) in [(low, "\"$0.1\""), (high, "\"$0.9\"")] {
        let alone = number(&priced_of(SERVING, &api(input, "\"$0.8\"")), 0, "usd_per_useful_gpu_hour");
        assert!((end / alone - 1.0).abs() < 1e-9);
    }
    assert_eq!(study["offers"][0]["sensitivity"].as_array().unwrap().len(), 1, "a price without a range does not move");
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
}

#[test]
fn accelerators_of_two_kinds_are_rented_at_the_price_of_each() {
    let job = "plan-deepseek-v3-prefill-nodes";
    let nodes = "set = { \"cluster.node\" = \"hgx-b200-8\", \"cluster.accelerators\" = 256, \"cluster.prefill.node\" = \"hgx-h200-8\", \"cluster.prefill.accelerators\" = 64, \"serving.layout\" = { prefill = { tensor = 1, attention_data = 8, expert = 8 }, decode = { tensor = 1, attention_data = 16, expert = 16 } } }";
    let written = "kind = \"rent\"\nprice = \"$4/h\"\nprefill_price = \"$2.50/h\"\ndate = 2026-11-29";
    let one = |node: &str| {
        format!(
            "set = {{ \"cluster.node\" = \"{node}\", \"cluster.accelerators\" = 464, \"cluster.prefill.node\" = \"{node}\", \"cluster.prefill.accelerators\" = 64, \"serving.layout\" = {{ prefill = {{ tensor = 1, attention_data = 8, expert = 8 }}, decode = {{ tensor = 1, attention_data = 16, expert = 16 }} }} }}"
        )
    };
    let listed = "kind = \"rent\"\nprovider = \"nebius\"";
    let offers = format!(
        "[[offer]]\nname = \"written\"\n{written}\n{nodes}\n[[offer]]\nname = \"listed\"\n{listed}\n{nodes}\n\
         [[offer]]\nname = \"b200\"\n{listed}\n{}\n[[offer]]\nname = \"h200\"\n{listed}\n{}\n",
        one("hgx-b200-8"),
        one("hgx-h200-8")
    );
    let study = priced_of(job, &offers);
    let hour = |offer: usize| number(&study, offer, "usd_per_gpu_hour");
    // 64 of 256 take prompts in.
    let mean = |one: f64, two: f64| (one * 192.0 + two * 64.0) / 256.0;
    assert!((hour(0) / mean(4.0, 2.5) - 1.0).abs() < 1e-12, "{}", hour(0));
    assert!((hour(1) / mean(hour(2), hour(3)) - 1.0).abs() < 1e-12, "{} of {} and {}", hour(1), hour(2), hour(3));
    let refused = |offer: &str, said: &str| {
        let dir = study_of(job, &format!("[[offer]]\nname = \"one\"\n{offer}\n"));
        let answer = program::run(&["price", dir.path().join("study.toml").to_str().unwrap()]);
        assert!(answer.code == 2 && answer.stderr.contains(said), "{}", answer.stderr);
    };
    refused(&written.replace("prefill_price = \"$2.50/h\"\n", ""), "no price of an hour of `b200-sxm-180gb`");
    refused(
        &written.replace("price = \"$4/h\"\n", "provider = \"nebius\"\n"),
        "`prefill_price` is given without `price`",
    );
    refused(&written.replace("2.50", "0"), "an hour at no price");
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
