//! What users of other tools had reckoned wrong about prices, and what is right.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;

fn study(offers: &str, format: &str, currency: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let job = format!("{}/scenarios/train-llama3.1-8b-16-h100-two-nodes.toml", env!("CARGO_MANIFEST_DIR"));
    let text = format!("title = \"One?\"\njob = \"{job}\"\n{currency}{offers}");
    std::fs::write(dir.path().join("study.toml"), text).unwrap();
    let answer = program::run(&["price", dir.path().join("study.toml").to_str().unwrap(), "--format", format]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.stdout
}

fn rent(price: &str, per: &str) -> String {
    format!("[[offer]]\nname = \"rent\"\nkind = \"rent\"\nprice = \"{price}\"\ndate = 2026-11-01\n{per}\n")
}

fn number(answer: &str, key: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(answer).unwrap();
    json["offers"][0][key].as_f64().unwrap()
}

#[test]
fn a_node_s_price_is_not_a_gpu_s() {
    // Four GPUs at $4 an hour together are $1 each, not $4 each (skypilot-org/skypilot#9000, opencost/opencost#2523).
    let whole = study(&rent("$4/h", "per = \"instance\"\naccelerators = 4"), "json", "");
    let each = study(&rent("$1/h", ""), "json", "");
    assert!((number(&whole, "usd_per_gpu_hour") - 1.0).abs() < 1e-12);
    assert!((number(&whole, "total_usd") / number(&each, "total_usd") - 1.0).abs() < 1e-12);
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog: Catalog = load::catalog(&[], &mut sources, &sink);
    for offer in catalog.providers.iter().flat_map(|provider| &provider.offers) {
        let whole = offer.price_per_accelerator_hour * f64::from(offer.accelerators);
        assert!((offer.price_per_instance_hour() / whole - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_month_has_730_hours_and_a_price_says_its_period() {
    // 8,760 / 12, not 672 or 744 (ubicloud/ubicloud#501); a monthly price is not an hourly one (opencost/opencost-helm-chart#288).
    let monthly = study(&rent("$1,460/month", ""), "json", "");
    assert!((number(&monthly, "usd_per_gpu_hour") - 2.0).abs() < 1e-12);
    for none in ["$1,460", "1460"] {
        let dir = tempfile::tempdir().unwrap();
        let job = format!("{}/scenarios/train-llama3.1-8b-16-h100-two-nodes.toml", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(dir.path().join("s.toml"), format!("title = \"One?\"\njob = \"{job}\"\n{}", rent(none, "")))
            .unwrap();
        let answer = program::run(&["price", dir.path().join("s.toml").to_str().unwrap()]);
        assert_eq!(answer.code, 2, "{none}: {}", answer.stdout);
        assert!(answer.stderr.contains("a price of time is needed"), "{none}: {}", answer.stderr);
    }
    // A kilowatt's rent of a month is that of 730 hours: $0.20 an hour and kilowatt are $146 a month.
    let hour = facility_cost("$146/kW-month");
    assert!((hour["unit_amount_usd"].as_f64().unwrap() - 0.2 * 8_760.0).abs() < 1e-9, "{hour}");
}

/// The line of a colocation's rent, at a rent.
fn facility_cost(rent: &str) -> serde_json::Value {
    let figure = format!(
        "[[offer]]\nname = \"own\"\nkind = \"own\"\n[[offer.figure]]\nkey = \"catalog/sites/us-colo/colocation\"\nvalue = \"{rent}\"\n\
         date = 2026-11-01\nbasis = \"assumed\"\nsource = \"a test\"\n"
    );
    let json: serde_json::Value = serde_json::from_str(&study(&figure, "json", "")).unwrap();
    let lines = json["offers"][0]["lines"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == "Colocation").unwrap().clone()
}

/// What a year of serving on rented accelerators comes to, at a price of an hour.
fn served(price: &str, settings: &str) -> serde_json::Value {
    let dir = tempfile::tempdir().unwrap();
    let job = format!("{}/scenarios/serve-llama3.1-70b-64-h100.toml", env!("CARGO_MANIFEST_DIR"));
    let text = format!("title = \"One?\"\njob = \"{job}\"\n[set]\n{settings}\n{}", rent(price, ""));
    std::fs::write(dir.path().join("study.toml"), text).unwrap();
    let answer = program::run(&["price", dir.path().join("study.toml").to_str().unwrap(), "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    json["offers"][0].clone()
}

#[test]
fn hours_of_many_are_their_number_times_the_time_and_both_are_told() {
    // Two endpoints for a month are 2 x 730 hours, and the answer has the number and the time apart (infracost/infracost#2673).
    let year = served("$1/h", "\"finance.utilisation\" = 1");
    let of = |key: &str| year[key].as_f64().unwrap();
    assert!((of("accelerators_count") - 64.0).abs() < 1e-12 && (of("paid_days") - 365.0).abs() < 1e-9);
    // A month of two of the 64.
    assert!((of("total_usd") / 12.0 * 2.0 / 64.0 - 1_460.0).abs() < 1e-6, "{}", of("total_usd"));
}

#[test]
fn an_hour_at_a_price_over_a_day_and_over_tokens() {
    // H200 at $5 an hour for a day is $120 (huggingface/blog#3382): of 64 for a year, over both.
    let year = served("$5/h", "\"finance.utilisation\" = 1\n\"cluster.node\" = \"dgx-h200\"");
    let of = |offer: &serde_json::Value, key: &str| offer[key].as_f64().unwrap();
    assert!((of(&year, "total_usd") / 64.0 / 365.0 - 120.0).abs() < 1e-9);
    // $2 an hour at 1,000 tokens a second: 2 / 3.6 a million (kubernetes-sigs/inference-perf#139). Requests of 2,048 and 512
    // tokens, 40 a second on 64: 1,600 tokens a second each, at $3.2 an hour.
    let year = served("$3.2/h", "\"finance.utilisation\" = 1");
    let expected: f64 = 3.2 / (1_600.0 * 3_600.0) * 1e6;
    assert!((expected - 2.0 / 3.6).abs() < 1e-12);
    assert!((of(&year, "usd_per_mtok_blended") / expected - 1.0).abs() < 1e-3, "{year}");
}

#[test]
fn another_currency_has_its_own_sign_one_rate_and_its_day() {
    // Euros are not shown as dollars (infracost/infracost#919); a rate is one, fixed and said (infracost/infracost#2766, #3124).
    let page = study(&rent("$2/h", ""), "md", "currency = \"EUR\"\n");
    assert!(page.contains("EUR") || page.contains('€'), "{page}");
    let json: serde_json::Value =
        serde_json::from_str(&study(&rent("$2/h", ""), "json", "currency = \"EUR\"\n")).unwrap();
    assert_eq!(json["currency"]["code"], "EUR");
    let (usd, date) = (json["currency"]["usd"].as_f64().unwrap(), json["currency"]["date"].as_str().unwrap());
    assert!((0.8..1.6).contains(&usd) && date.len() == 10, "{usd} {date}");
    assert!(page.contains(date), "{page}");
    // The amount itself stays that of dollars.
    let dollars = study(&rent("$2/h", ""), "json", "");
    assert!((json["offers"][0]["total_usd"].as_f64().unwrap() / number(&dollars, "total_usd") - 1.0).abs() < 1e-12);
}

/// Figures of a scenario's facility with settings.
fn facility(settings: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["eval", "scenarios/train-llama3.1-8b-16-h100-two-nodes.toml", "--format", "json"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let answer = program::run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    json["facility"].clone()
}

#[test]
fn a_power_budget_holds_whole_chassis_cooled_once_with_headroom_that_is_not_billed() {
    // GPUs = floor(MW x 1,000 / kW of a GPU, all in), in whole chassis (SemiAnalysisAI/InferenceX-app#564, #1113).
    let plain = facility(&[]);
    let held = facility(&["cluster.power.budget=1 GW", "cluster.power.headroom=1.1"]);
    let of = |object: &serde_json::Value, key: &str| object[key].as_f64().unwrap();
    let (nodes, gpus) = (of(&held, "budget_nodes_count"), of(&held, "budget_gpus_count"));
    // 16 GPUs in 2 nodes: half of the facility's power each, cooling in it once, times the headroom.
    let node_kw = of(&plain, "total_kw") / 2.0;
    assert!((node_kw / (of(&plain, "it_kw") * 1.25 / 2.0) - 1.0).abs() < 1e-12);
    assert!((of(&plain, "all_in_kw_per_gpu") - node_kw / 8.0).abs() < 1e-12);
    assert_eq!((nodes, gpus), ((1e6 / (node_kw * 1.1)).floor(), 8.0 * (1e6 / (node_kw * 1.1)).floor()));
    // Headroom sizes and is not billed.
    for key in ["total_kw", "average_total_kw", "energy_kwh_per_year", "emissions_tco2e_per_year"] {
        assert_eq!(plain[key], held[key], "{key}");
    }
    assert!(plain["budget_gpus_count"].is_null());
}

#[test]
fn a_budget_that_holds_fewer_is_a_no_with_its_numbers() {
    let job = "scenarios/train-llama3.1-8b-16-h100-two-nodes.toml";
    let answer = program::run(&["eval", job, "--set", "cluster.power.budget=30 kW"]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);
    let said = answer.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("2 nodes need") && said.contains("holds 1 of them"), "{said}");
    let mistake = program::run(&["eval", job, "--set", "cluster.power={ budget = \"30 kW\", headroom = 0.9 }"]);
    assert_eq!(mistake.code, 2);
    assert!(mistake.stderr.contains("a headroom of 0.9"), "{}", mistake.stderr);
}

#[test]
fn a_million_tokens_say_which_they_are_and_pay_for_the_accelerators_of_both_pools() {
    // $/h over tokens an hour (kubernetes-sigs/inference-perf#139), by kind, of prefill's and decode's accelerators together
    // (SemiAnalysisAI/InferenceX#552, #553, InferenceX-app#653).
    for layout in ["{ tensor = 4 }", "{ prefill = { tensor = 4 }, decode = { tensor = 4 } }"] {
        let layout = format!("serving.layout={layout}");
        let arguments = ["eval", "scenarios/serve-llama3.1-70b-64-h100.toml", "--format", "json", "--set", &layout];
        let answer = program::run(&arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        let cost = |key: &str| json["cost"][format!("usd_per_{key}")].as_f64().unwrap();
        // Prompts of 2,048 tokens, 30% of them found in the cache, and answers of 512, 40 requests a second.
        let millions = |tokens: f64| json["serving"]["requests_per_s"].as_f64().unwrap() * 3_600.0 * tokens / 1e6;
        let hour = 64.0 * cost("useful_gpu_hour");
        let by_kind = millions(2_048.0 * 0.7) * cost("mtok_input")
            + millions(2_048.0 * 0.3) * cost("mtok_cached")
            + millions(512.0) * cost("mtok_output");
        assert!((by_kind / hour - 1.0).abs() < 2e-3, "{layout}: {by_kind} of {hour}");
        assert!((millions(2_560.0) * cost("mtok_blended") / hour - 1.0).abs() < 2e-3, "{layout}");
    }
}

#[test]
fn every_offer_of_serving_is_for_the_same_tokens() {
    let answer = program::run(&["price", "studies/serve-llama3.1-70b-api.toml", "--format", "json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let offer = |name: &str| json["offers"].as_array().unwrap().iter().find(|offer| offer["name"] == name).unwrap();
    // 40 requests a second of 2,560 tokens, in four fifths of a year's hours.
    let tokens = 40.0 * 2_560.0 * 0.8 * 8_760.0 * 3_600.0;
    for name in ["own", "CoreWeave, on demand", "API"] {
        let of = |key: &str| offer(name)[key].as_f64().unwrap_or_else(|| panic!("{name}: {key}"));
        assert!((of("tokens_count") / tokens - 1.0).abs() < 1e-9, "{name}");
        assert!((of("usd_per_mtok_blended") * tokens / 1e6 / of("total_usd") - 1.0).abs() < 1e-9, "{name}");
        let kinds =
            1_433.6 * of("usd_per_mtok_input") + 614.4 * of("usd_per_mtok_cached") + 512.0 * of("usd_per_mtok_output");
        assert!((kinds / 2_560.0 / of("usd_per_mtok_blended") - 1.0).abs() < 1e-9, "{name}");
    }
    // An API asks $0.60 of prompts, cached or not, and $0.80 of answers: (4 x 0.6 + 0.8) / 5.
    assert!((offer("API")["usd_per_mtok_blended"].as_f64().unwrap() - 0.64).abs() < 1e-9);
}

#[test]
fn owning_that_pays_after_its_life_never_does() {
    let json = |price: &str| -> serde_json::Value {
        let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\n";
        serde_json::from_str(&study(&format!("{own}{}", rent(price, "")), "json", "")).unwrap()
    };
    let held = |json: &serde_json::Value| {
        let turns = json["break_even"].as_array().unwrap();
        turns.iter().find(|turn| turn["variable"] == "held_months").unwrap()["value"].as_f64()
    };
    // Owned for five years; capex over what is saved of rent a year.
    let dear = json("$6/h");
    assert!(held(&dear).is_some_and(|months| months < 60.0), "{dear}");
    let months: Vec<Option<f64>> = ["$1.7/h", "$2/h", "$2.4/h"].map(|price| held(&json(price))).to_vec();
    assert!(months.iter().flatten().all(|months| *months <= 60.0), "{months:?}");
    assert_eq!(months[0], None, "{months:?}");
    let own = "[[offer]]\nname = \"own\"\nkind = \"own\"\n";
    let page = study(&format!("{own}{}", rent("$1.7/h", "")), "md", "");
    assert!(page.contains("never falls below that for") && page.contains("accelerators' life of 5 years"), "{page}");
}
