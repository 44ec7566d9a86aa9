//! Rented hours and tokens bought.

use serde_json::Value;

use super::{JOB, OWN_OR_RENT, number, priced_of, program, sensitivity, study_of};

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
fn owning_pays_from_a_load_on_against_an_api_in_the_same_hours() {
    let offers = |rate: f64, input: f64| {
        let api = format!(
            "name = \"API\"\nkind = \"api\"\ninput = \"${input}\"\noutput = \"$0.8\"\ndate = 2026-11-01\nsource = \"a list\"\n"
        );
        let set = format!("[set]\n\"serving.arrivals\" = {{ rate = \"{rate} request/s\" }}\n");
        format!("{set}[[offer]]\nname = \"own\"\nkind = \"own\"\n[[offer]]\n{api}")
    };
    let turn = |study: &Value, variable: &str| {
        let all = study["break_even"].as_array().unwrap();
        all.iter().find(|turn| turn["variable"] == variable).unwrap()["value"].as_f64()
    };
    let few = priced_of(SERVING, &offers(5.0, 0.6));
    // No share of the hours makes up for as few requests.
    assert_eq!(turn(&few, "finance.utilisation"), None);
    let load = turn(&few, "serving.requests_per_s").unwrap();
    let even = priced_of(SERVING, &offers(load, 0.6));
    let [own, api] = [0, 1].map(|offer| number(&even, offer, "usd_per_mtok_blended"));
    assert!(load > 5.0 && (own / api - 1.0).abs() < 1e-6, "{load}: {own} and {api}");
    let dir = study_of(SERVING, &offers(5.0, 0.6));
    let page = program::run(&["price", dir.path().join("study.toml").to_str().unwrap()]).stdout.replace('\n', " ");
    assert!(page.contains("costs less a token than \"API\" in the same hours from"), "{page}");
    // Of an API that costs nearly nothing even all that can be served is too little.
    let cheap = offers(5.0, 0.0001).replace("$0.8", "$0.001");
    assert_eq!(turn(&priced_of(SERVING, &cheap), "serving.requests_per_s"), None);
}

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
