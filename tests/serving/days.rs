//! Costs of a day whose load has a peak.

use super::eval;
use serde_json::Value;

const ELEMENTS: [&str; 5] = ["weights", "kv", "compute", "network", "waiting"];

fn cost(json: &Value, key: &str) -> f64 {
    json["cost"][format!("usd_per_mtok_{key}")].as_f64().unwrap_or_else(|| panic!("{key}: {}", json["cost"]))
}

fn element(json: &Value, key: &str) -> f64 {
    cost(json, &format!("output_{key}"))
}

fn at(rate: f64, settings: &[&str]) -> Value {
    let arrivals = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
    let (code, json, stderr) = eval(&[&[arrivals.as_str()], settings].concat());
    assert_eq!(code, 0, "{stderr}");
    json
}

#[test]
fn elements_of_a_day_are_the_mean_of_its_hours() {
    let pools = ["serving.layout={ decode = { tensor = 2 }, prefill = { tensor = 2 }, prefill_accelerators = 16 }"];
    for settings in [&[][..], &pools] {
        let double = [settings, &["serving.peak_to_mean=2"]].concat();
        let (day, mean, peak) = (at(15.0, &double), at(15.0, settings), at(30.0, settings));
        // Twice the mean at the peak is a cosine: what a second costs by element, over 24 moments of half a day.
        let hours: Vec<(f64, Value)> = (0..24)
            .map(|moment| {
                let angle = (f64::from(moment) + 0.5) / 24.0 * std::f64::consts::PI;
                let rate = 15.0 * (1.0 + angle.cos());
                (rate, at(rate, settings))
            })
            .collect();
        for key in ELEMENTS {
            let seconds = hours.iter().map(|(rate, json)| rate * element(json, key)).sum::<f64>() / 24.0;
            let off = element(&day, key) * 15.0 / seconds - 1.0;
            assert!(off.abs() < 5e-3, "{key}: {off}");
        }
        for key in ["input", "cached", "output"] {
            let seconds = hours.iter().map(|(rate, json)| rate * cost(json, key)).sum::<f64>() / 24.0;
            let off = cost(&day, key) * 15.0 / seconds - 1.0;
            assert!(off.abs() < 5e-3, "{key}: {off}");
        }
        // A token's part of what a step reads and sends falls with the batch: that of the day is between those of its mean and of
        // its peak.
        for key in ["weights", "kv", "network"] {
            let [of_day, of_mean, of_peak] = [&day, &mean, &peak].map(|json| element(json, key));
            assert!(of_peak < of_day && of_day < of_mean, "{key}: {of_peak}, {of_day} and {of_mean}");
        }
        // All of it is what it would be at the mean all day, by element and by kind of token.
        assert!((cost(&day, "blended") / cost(&mean, "blended") - 1.0).abs() < 1e-9);
        let all: f64 = ELEMENTS.iter().map(|key| element(&day, key)).sum();
        assert!((all / (cost(&day, "blended") * 2_560.0 / 512.0) - 1.0).abs() < 1e-9, "{all}");
        let kinds = 2_048.0 * (0.7 * cost(&day, "input") + 0.3 * cost(&day, "cached")) + 512.0 * cost(&day, "output");
        assert!((kinds / (2_560.0 * cost(&day, "blended")) - 1.0).abs() < 1e-9, "{kinds}");
    }
}

#[test]
fn a_day_without_a_peak_is_its_mean() {
    let (level, low) = (at(30.0, &[]), at(30.0, &["serving.peak_to_mean=1.0001"]));
    for key in ["input", "cached", "output", "blended"] {
        assert!((cost(&low, key) / cost(&level, key) - 1.0).abs() < 1e-3, "{key}");
    }
    for key in ELEMENTS {
        assert!((element(&low, key) / element(&level, key) - 1.0).abs() < 1e-3, "{key}");
    }
    // The costliest of days: nearly all of it waits.
    let steep = at(0.04, &["serving.peak_to_mean=1000"]);
    let all: f64 = ELEMENTS.iter().map(|key| element(&steep, key)).sum();
    assert!((all / (cost(&steep, "blended") * 5.0) - 1.0).abs() < 1e-9);
    assert!(element(&steep, "waiting") > 0.99 * all);
}
