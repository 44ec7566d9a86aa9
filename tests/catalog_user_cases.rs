//! Questions that people got wrong in public for want of such a catalog, each answered by the product itself.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;

use program::run;
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}"))
}

/// The answer about a model that a `config.json` describes.
fn model(config: &Value, context: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.json");
    std::fs::write(&path, config.to_string()).unwrap();
    json(&["model", path.to_str().unwrap(), "--context", context])
}

fn mixtral() -> Value {
    serde_json::json!({
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
    })
}

/// AI-Hypercomputer/maxtext issue 678: a step over 1,024 tokens, three times the forward pass, is 79.98 TFLOP with the
/// two experts that work, not 287.78 with all eight.
#[test]
fn experts_that_do_not_work_are_not_counted() {
    let step = |answer: &Value| 3.0 * 1_024.0 * number(answer, "flops_per_token") / 1e12;
    let catalog = json(&["model", "mixtral-8x7b", "--context", "1024"]);
    assert!((step(&catalog) - 79.98).abs() < 0.01, "{}", step(&catalog));
    let mut all = mixtral();
    assert!((step(&model(&all, "1024")) - 79.98).abs() < 0.01);
    all["num_experts_per_tok"] = 8.into();
    assert!((step(&model(&all, "1024")) / 287.78 - 1.0).abs() < 0.005, "{}", step(&model(&all, "1024")));
}

/// huggingface/trl pull request 6731: looking an embedding up costs nothing and the head costs 2 V h, whether or not they
/// share their numbers.
#[test]
fn tied_embeddings_change_parameters_and_not_operations() {
    let mut config = mixtral();
    let apart = model(&config, "1024");
    config["tie_word_embeddings"] = true.into();
    let tied = model(&config, "1024");
    assert!((number(&apart, "flops_per_token") - number(&tied, "flops_per_token")).abs() < 0.5);
    let saved = number(&apart, "parameters_count") - number(&tied, "parameters_count");
    assert!((saved - 32_000.0 * 4_096.0).abs() < 0.5, "{saved}");
    config["vocab_size"] = 64_000.into();
    let wider = number(&model(&config, "1024"), "flops_per_token") - number(&tied, "flops_per_token");
    assert!((wider - 2.0 * 32_000.0 * 4_096.0).abs() < 0.5, "{wider}");
}

/// allenai/OLMo-core issue 478: a window bounds what a token looks at, and projections have as many heads of keys as
/// there are, not as of queries.
#[test]
fn windows_and_shared_heads_count_in_operations() {
    let dense = |window: Option<u32>, heads: u32| {
        let mut config = mixtral();
        config["model_type"] = "mistral".into();
        for key in ["num_local_experts", "num_experts_per_tok"] {
            config.as_object_mut().unwrap().remove(key);
        }
        config["num_key_value_heads"] = heads.into();
        config["sliding_window"] = window.map_or(Value::Null, Value::from);
        model(&config, "32768")
    };
    let (full, windowed) = (dense(None, 8), dense(Some(4_096), 8));
    assert!(number(&windowed, "cache_flops_per_token") < 0.26 * number(&full, "cache_flops_per_token"));
    assert!((number(&windowed, "weight_flops_per_token") - number(&full, "weight_flops_per_token")).abs() < 0.5);
    // Keys and values of 24 heads more of 128 numbers, in 32 layers, two operations each.
    let more = number(&dense(None, 32), "weight_flops_per_token") - number(&full, "weight_flops_per_token");
    assert!((more - 2.0 * 2.0 * 24.0 * 128.0 * 4_096.0 * 32.0).abs() < 0.5, "{more}");
}

/// meta-llama/llama3 issue 91: 1.3 million GPU-hours on 24,576 GPUs are 52.9 hours of wall clock, not 1.3 million.
#[test]
fn gpu_hours_are_wall_clock_times_gpus() {
    use clusterplan::units::{Quantity, Seconds};
    let all = Seconds::parse("1300000 h").unwrap();
    assert!(((all / 24_576.0).in_unit("h").unwrap() - 52.9).abs() < 0.05);
    // The product's own run: what it costs is its useful GPU-hours at the cost of one.
    let answer = json(&["eval", program::MIXTRAL]);
    let (cost, training) = (&answer["cost"], &answer["training"]);
    let hours = 64.0 * 24.0 * number(training, "duration_days");
    let run = hours * number(cost, "usd_per_useful_gpu_hour");
    let stated = number(cost, "usd_per_run");
    assert!((run / stated - 1.0).abs() < 1e-9, "{hours} useful GPU-hours cost {run}, and the run {stated}");
}

/// kubernetes-sigs/inference-perf issue 139: a token's price is the hour's over the tokens of an hour.
#[test]
fn a_price_by_the_token_follows_from_one_by_the_hour() {
    use clusterplan::units::{Quantity, Seconds, TokenRate, UsdPerHour};
    let dollars = UsdPerHour::parse("$2/h").unwrap() * 1.0;
    let tokens = TokenRate::parse("1000 token/s").unwrap() * Seconds::parse("1 h").unwrap();
    let million = dollars.in_unit("$/h").unwrap() / tokens.in_unit("Mtoken").unwrap();
    assert!((million - 0.556).abs() < 0.0005, "{million}");
}

/// SemiAnalysisAI/InferenceX-app issue 661: what an hour costs its owner, by the cent and by who owns.
#[test]
fn costs_of_ownership_are_in_the_catalog_to_the_cent() {
    let rows = json(&["catalog", "show", "rental-index", "--on", "2026-11-29"]);
    let text = rows.to_string();
    for (part, hyperscaler, neocloud) in [
        ("H100", "1.17", "1.55"),
        ("H200", "1.22", "1.59"),
        ("B200", "1.73", "2.07"),
        ("B300", "2.26", "2.52"),
        ("GB200", "1.86", "2.26"),
        ("GB300", "2.31", "2.79"),
        ("MI300X", "0.95", "1.16"),
        ("MI355X", "1.50", "2.09"),
    ] {
        for (owner, rate) in [("hyperscaler", hyperscaler), ("neocloud", neocloud)] {
            let field = format!("offer.{part}, cost to a {owner}, owned");
            let row = rows.as_array().unwrap().iter().find(|row| row["field"] == field.as_str());
            let value = row.unwrap_or_else(|| panic!("no {field} in {text}"))["value"].as_str().unwrap();
            assert!(value.contains(&format!("${rate}/h")), "{field}: {value}");
        }
    }
}

/// opencost/opencost issue 2523 and skypilot-org/skypilot issue 9000: an instance's price is shown as that, and one
/// accelerator's as that.
#[test]
fn prices_name_what_they_are_of() {
    let rows = json(&["catalog", "show", "aws", "--on", "2026-11-29"]);
    let offers = rows.as_array().unwrap().iter().filter(|row| row["field"].as_str().unwrap().starts_with("offer."));
    let mut count = 0;
    for offer in offers {
        let value = offer["value"].as_str().unwrap();
        let (whole, one) = (value.contains("price_per_instance_hour"), value.contains("price_per_accelerator_hour"));
        assert!(whole != one && (!whole || value.contains("an accelerator)")), "{value}");
        assert!(!offer["date"].as_str().unwrap().is_empty() && !offer["source"].as_str().unwrap().is_empty());
        count += 1;
    }
    assert!(count >= 20, "{count}");
}

/// infracost/infracost issue 2766: no rate is fetched and none is silent; the one that is used is printed with its day.
#[test]
fn a_rate_of_exchange_is_printed_where_it_is_used() {
    let shown = run(&["catalog", "show", "eu-ireland", "--on", "2026-11-29"]).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("1 EUR = 1.08 USD, fixed on 2024-12-31"), "{shown}");
    let abroad = run(&["eval", program::MIXTRAL, "--set", "cluster.site=eu-ireland"]).stdout;
    let abroad = abroad.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(abroad.contains("Exchange: 1 EUR = 1.08 USD, fixed on 2024-12-31"), "{abroad}");
}

/// SemiAnalysisAI/InferenceX-app issue 1113: a chassis of 4,837.2 W draws 30% more with what is around it, the facility
/// a tenth more by its PUE, once; a gigawatt feeds 144,566 of them, whole ones.
#[test]
fn a_power_budget_feeds_whole_machines_and_pue_counts_once() {
    use clusterplan::units::{Quantity, Watts};
    let watts = |text: &str| Watts::parse(text).unwrap();
    let all = watts("4837.2 W") * 1.3 * 1.1;
    assert!((all.in_unit("W").unwrap() - 6_917.196).abs() < 0.06, "{all}");
    assert!(((watts("1 GW") / watts("6917.24 W")).floor() - 144_566.0).abs() < 0.5);
    // The product's own facility: total over IT power is the site's PUE, whatever that is.
    let pue =
        b"source = [{ fields = [\"pue\"], basis = \"assumed\", title = \"Ours\", accessed = 2026-11-29 }]\npue = 1.1\n";
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("sites")).unwrap();
    std::fs::write(dir.path().join("sites/us-colo.toml"), pue).unwrap();
    let answer = json(&["eval", program::MIXTRAL, "--catalog", dir.path().to_str().unwrap()]);
    let facility = &answer["facility"];
    assert!((number(facility, "total_kw") / number(facility, "it_kw") - 1.1).abs() < 1e-9, "{facility}");
}
