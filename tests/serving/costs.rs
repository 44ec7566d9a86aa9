//! What tokens cost, by hand.

use super::eval;
use serde_json::Value;

const YEAR: f64 = 8_760.0 * 3_600.0;
/// Of a prompt of 2,048 tokens 30% are cached, and an answer has 512.
const TOKENS: [f64; 3] = [2_048.0 * 0.7, 2_048.0 * 0.3, 512.0];

fn answer(settings: &[&str]) -> Value {
    let (code, json, stderr) = eval(settings);
    assert_eq!(code, 0, "{settings:?}: {stderr}");
    json
}

fn of(json: &Value, group: &str, key: &str) -> f64 {
    json[group][key].as_f64().unwrap_or_else(|| panic!("{group}.{key}: {}", json[group][key]))
}

fn cost(json: &Value, key: &str) -> f64 {
    of(json, "cost", key)
}

#[test]
fn idle_hours_are_borne_by_prompts_and_answers_alike() {
    let ratio = |json: &Value| cost(json, "usd_per_mtok_output") / cost(json, "usd_per_mtok_input");
    let full = answer(&["serving.arrivals=\"max\""]);
    // A replica's whole time where it is full: what prefill stops it for is prompts', the rest answers'.
    let stall = of(&full, "serving", "prefill_stall_s") / of(&full, "serving", "tpot_s");
    assert!((cost(&full, "prompts_share_ratio") / stall - 1.0).abs() < 0.02, "{stall}");
    for rate in ["1", "40"] {
        let idle = answer(&[&format!("serving.arrivals={{ rate = \"{rate} request/s\" }}")]);
        assert!((ratio(&idle) / ratio(&full) - 1.0).abs() < 1e-9, "{rate}");
    }
    // So do limits of latency, and as many requests as they leave that come by themselves.
    let limits = "serving.limits={ tpot = \"25 ms\" }";
    let most = answer(&["serving.arrivals=\"max\"", limits]);
    assert!(of(&most, "serving", "requests_per_s") < 0.9 * of(&full, "serving", "requests_per_s"), "they bind");
    let rate = format!("serving.arrivals={{ rate = \"{} request/s\" }}", 0.9 * of(&most, "serving", "requests_per_s"));
    for json in [&most, &answer(&[&rate, limits])] {
        assert!((ratio(json) / ratio(&full) - 1.0).abs() < 1e-9);
    }
    // Pools that are larger than they need be cost more, and not one kind of token alone.
    let pools = |workers: u32| {
        let layout = format!(
            "serving.layout={{ decode = {{ tensor = 4 }}, prefill = {{ tensor = 4 }}, prefill_accelerators = {workers} }}"
        );
        answer(&["serving.arrivals={ rate = \"20 request/s\" }", &layout])
    };
    let [few, many] = [16, 48].map(pools);
    let spread = (ratio(&few) / ratio(&many) - 1.0).abs();
    assert!(spread < 0.1, "{spread}");
    let blended = |json: &Value| cost(json, "usd_per_mtok_blended");
    assert!((blended(&few) / blended(&many) - 1.0).abs() < 1e-9);
    for json in [&full, &few, &many] {
        let second = of(json, "serving", "requests_per_s") * YEAR * 0.8 * 1e-6;
        let kinds = ["input", "cached", "output"].map(|key| cost(json, &format!("usd_per_mtok_{key}")));
        let paid: f64 = kinds.iter().zip(TOKENS).map(|(price, tokens)| price * tokens * second).sum();
        assert!((paid / cost(json, "annualised_per_year_usd") - 1.0).abs() < 1e-9, "{paid}");
    }
}

#[test]
fn energy_of_answers_and_their_prompts_is_that_of_both() {
    let json = answer(&[]);
    let [input, cached, output] =
        ["input", "cached", "output"].map(|key| of(&json, "facility", &format!("energy_kwh_per_mtok_{key}")));
    let all = output + (TOKENS[0] * input + TOKENS[1] * cached) / TOKENS[2];
    assert!((cost(&json, "energy_per_mtok_output_kwh") / all - 1.0).abs() < 1e-9, "{all}");
    // A year's energy over a year's answers, in millions.
    let answers = 40.0 * 512.0 * YEAR * 0.8 * 1e-6;
    assert!((of(&json, "facility", "energy_kwh_per_year") / answers / all - 1.0).abs() < 1e-9);
}

#[test]
fn utilisation_that_pays_is_a_years_cost_over_what_the_same_tokens_cost_elsewhere() {
    let prices = "finance.token_prices={ input = \"$0.6/Mtoken\", cached = \"$0.3/Mtoken\", output = \"$0.8/Mtoken\" }";
    let json = answer(&[prices]);
    let request: f64 = TOKENS.iter().zip([0.6, 0.3, 0.8]).map(|(tokens, price)| tokens * price * 1e-6).sum();
    // 40 requests in each second of a year; those of the share of hours in use pay for all of it.
    let elsewhere = 40.0 * YEAR * request;
    let even = cost(&json, "annualised_per_year_usd") / elsewhere;
    assert!((cost(&json, "break_even_utilisation_ratio") / even - 1.0).abs() < 1e-9, "{even}");
    assert!((cost(&json, "margin_on_cost_ratio") - (0.8 / even - 1.0)).abs() < 1e-9);
}

#[test]
fn a_million_tokens_is_split_by_use_peak_room_and_standby() {
    // A mean of 15 requests a second with a peak of 30, on 14 replicas and two that stand by (N + 2).
    let json =
        answer(&["serving.arrivals={ rate = \"15 request/s\" }", "serving.peak_to_mean=2", "serving.spare_replicas=2"]);
    let (mean, peak) = (of(&json, "serving", "mean_requests_per_s"), of(&json, "serving", "requests_per_s"));
    assert!((mean - 15.0).abs() < 1e-9 && (peak - 30.0).abs() < 1e-9, "{mean} {peak}");
    let year = cost(&json, "annualised_per_year_usd");
    let blended = year / (mean * 2_560.0 * YEAR * 0.8) * 1e6;
    assert!((cost(&json, "usd_per_mtok_blended") / blended - 1.0).abs() < 1e-9, "{blended}");
    let most = of(&json, "serving", "most_requests_per_s");
    for (key, share) in [
        ("used", mean / most),
        ("off_peak", (peak - mean) / most),
        ("headroom", 14.0 / 16.0 - peak / most),
        ("standby", 2.0 / 16.0),
    ] {
        assert!((cost(&json, &format!("usd_per_mtok_{key}")) / (share * blended) - 1.0).abs() < 1e-9, "{key}");
    }
    // Those that stand by are paid for and answer nobody: seven nodes without any answer as fast, and cost less.
    let seven =
        answer(&["serving.arrivals={ rate = \"15 request/s\" }", "serving.peak_to_mean=2", "cluster.accelerators=56"]);
    for key in ["ttft_s", "tpot_s", "ttft_p99_s", "tpot_p99_s"] {
        assert!((of(&json, "serving", key) / of(&seven, "serving", key) - 1.0).abs() < 1e-6, "{key}");
    }
    let dearer = cost(&json, "usd_per_mtok_blended") / cost(&seven, "usd_per_mtok_blended");
    assert!((dearer / (year / cost(&seven, "annualised_per_year_usd")) - 1.0).abs() < 1e-9, "{dearer}");
}

#[test]
fn spares_that_are_many_more_than_asked_for_are_told_with_what_they_cost() {
    let few = ["cluster.accelerators=8", "serving.arrivals={ rate = \"4 request/s\" }"];
    let (one, none) = (answer(&few), answer(&[&few[..], &["cluster.spares=0"]].concat()));
    let notes = |json: &Value| json["notes"].to_string();
    let told = format!(
        "3% of 1 node at work, bought whole, is 1 node: 16 GPUs are paid for 8 at work. Without spares a useful hour of a GPU would cost ${:.3}/h instead of ${:.2}/h",
        cost(&none, "usd_per_useful_gpu_hour"),
        cost(&one, "usd_per_useful_gpu_hour")
    );
    assert!(notes(&one).contains(&told), "{told}: {}", notes(&one));
    assert!(!notes(&none).contains("bought whole"));
    // Without spares 64 GPUs fill a switch of 64 ports, and four of fabric managers take another tier; eight GPUs fewer do not.
    let full = |count: &str| notes(&answer(&["cluster.spares=0", &format!("cluster.accelerators={count}")]));
    assert!(full("64").contains("The 4 ports that fabric managers take"), "{}", full("64"));
    assert!(!full("56").contains("that fabric managers take") && !full("72").contains("that fabric managers take"));
    // 3% of 32 nodes are one, as asked for.
    assert!(!notes(&answer(&["cluster.accelerators=256"])).contains("bought whole"));
}

#[test]
fn storage_that_nothing_needs_is_told_and_can_be_left_out() {
    // Two nodes beside a unit that is meant for 256 GPUs.
    let small = ["cluster.accelerators=16", "serving.arrivals={ rate = \"1 request/s\" }"];
    let note = |json: &Value| {
        let notes = json["notes"].as_array().unwrap();
        notes.iter().filter_map(|note| note.as_str()).find(|note| note.starts_with("Storage: ")).map(str::to_owned)
    };
    let with = answer(&small);
    let without = answer(&[&small[..], &["cluster.storage_units=0"]].concat());
    let unit = |json: &Value| {
        let lines = json["cost"]["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["name"].as_str().unwrap().starts_with("Storage units")).unwrap();
        (line["quantity"].as_f64().unwrap(), line["annualised_per_year_usd"].as_f64().unwrap())
    };
    assert_eq!((unit(&with).0, unit(&without)), (1.0, (0.0, 0.0)));
    // Its price, and its part of racks, power and networks.
    let year = |json: &Value| cost(json, "annualised_per_year_usd");
    let saved = year(&with) - year(&without);
    assert!(saved > unit(&with).1 && saved > 0.1 * year(&with), "{saved}");
    assert_eq!(with["serving"]["tpot_s"], without["serving"]["tpot_s"]);
    let told = note(&with).unwrap();
    assert!(told.contains("1 unit of parallel-flash") && told.contains("`cluster.storage_units = 0`"), "{told}");
    let words: Vec<&str> = told.split_once("a million tokens $").unwrap().1.split([' ', ':']).collect();
    for (word, json) in [(words[0], &without), (words[3].trim_start_matches('$'), &with)] {
        let said: f64 = word.parse().unwrap();
        assert!((said / cost(json, "usd_per_mtok_blended") - 1.0).abs() < 1e-3, "{told}");
    }
    let many = answer(&["cluster.accelerators=256", small[1]]);
    assert_eq!((note(&without), note(&many)), (None, None), "of 256 GPUs it is less than a tenth");
    // What trains stores its checkpoints.
    for (file, set, said) in [
        ("scenarios/train-mixtral-8x7b-64-h100.toml", "cluster.storage_units=0", "checkpoints of training are stored"),
        ("scenarios/serve-llama3.1-70b-64-h100.toml", "cluster.storage=none", "write `storage_units = 0` instead"),
        ("scenarios/serve-llama3.1-70b-64-h100.toml", "cluster.storage_units=-1", "outside 0 to 10000000"),
    ] {
        let refused = crate::program::run(&["eval", file, "--set", set]);
        assert!(refused.code == 2 && refused.stderr.contains(said), "{set}: {}", refused.stderr);
    }
}

#[test]
fn a_margin_says_what_it_is_of_and_one_part_is_priced_to_the_dollar() {
    let set = [
        "finance.margin=0.4",
        "finance.token_prices={ input = \"$0.23/Mtoken\", output = \"$0.80/Mtoken\" }",
        "cluster.accelerators=8",
        "serving.arrivals.rate=5 request/s",
    ];
    let set: Vec<&str> = set.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = super::program::run(&[&["eval", super::SCENARIO, "--format", "md"], &set[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let margins: Vec<&str> = answer.stdout.lines().filter(|line| line.to_lowercase().contains("margin")).collect();
    assert!(margins.len() > 3);
    for line in margins.iter().filter(|line| !line.contains("finance.margin")) {
        assert!(line.contains("margin of the price") || line.contains("Margin over cost"), "{line}");
    }
    let cells = answer.stdout.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|'));
    let prices: Vec<&str> = cells.map(str::trim).filter(|cell| cell.starts_with("\\$")).collect();
    assert!(prices.len() > 20, "{prices:?}");
    // One of what is counted to the dollar, sums in four digits.
    let (to_the_dollar, sums): (Vec<&str>, Vec<&str>) = prices.iter().partition(|price| price.contains(','));
    assert!(to_the_dollar.len() > 5 && to_the_dollar.iter().all(|price| !price.ends_with('k')), "{to_the_dollar:?}");
    assert!(sums.len() > 10, "{sums:?}");
    // One switch, not "1 switches".
    assert!(answer.stdout.contains(" 1 switch,"), "{}", answer.stdout);
}
