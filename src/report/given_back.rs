//! What a plan chose, as a scenario takes it: beside the file that was planned for, `--set` of each gives the same answer.

use super::settings::{Origin, settings};
use super::sweep_words::layout_toml;
use crate::evaluate::Evaluation;
use crate::scenario::{Arrivals, Lengths, Serving};
use crate::search::Deployment;
use crate::units::Seconds;

/// Keys whose texts are for people: what stands in the file says them, or one key for all of them does.
const IN_WORDS: [&str; 8] = [
    "serving.layout.",
    "serving.arrivals.",
    "serving.arrivals",
    "serving.input_tokens",
    "serving.output_tokens",
    "serving.limits.",
    "serving.tenants.",
    "serving.cache.tiers",
];

/// Keys and values. What follows from agents, tenants or a trace is left to them.
pub(super) fn given_back(evaluation: &Evaluation) -> Vec<(String, String)> {
    let settings = settings(evaluation).into_iter();
    let settings = settings.filter(|setting| !matches!(setting.origin, Origin::Agents | Origin::Tenants));
    let in_words =
        |key: &str| IN_WORDS.iter().any(|own| if own.ends_with('.') { key.starts_with(own) } else { key == *own });
    let unknown = |key: &str| {
        let limit = evaluation.scenario.serving.as_ref().and_then(|serving| serving.context);
        key == "serving.max_model_len" && limit.is_none()
    };
    let plain = settings.filter(|setting| !in_words(setting.key) && !unknown(setting.key));
    let mut all: Vec<(String, String)> = plain.map(|setting| (setting.key.to_owned(), setting.value)).collect();
    let Some(serving) = &evaluation.scenario.serving else { return all };
    if evaluation.scenario.agents.is_none() && serving.trace.is_none() {
        all.extend(
            [("input_tokens", serving.input), ("output_tokens", serving.output)]
                .map(|(key, lengths)| (format!("serving.{key}"), in_toml(lengths))),
        );
        all.extend(arrivals(serving).map(|come| ("serving.arrivals".to_owned(), come)));
    }
    if !serving.terms.tenants {
        let limits = serving.limits.named().into_iter();
        all.extend(limits.filter_map(|(key, limit)| Some((format!("serving.limits.{key}"), seconds(limit?)))));
    }
    all.push(("serving.layout".to_owned(), layout_toml(&Deployment::given(serving))));
    all
}

fn in_toml(lengths: Lengths) -> String {
    if lengths.cv > 0.0 {
        return format!("{{ mean = {}, cv = {} }}", decimal(lengths.mean), decimal(lengths.cv));
    }
    lengths.mean.to_string()
}

/// How requests come, where no table of others says so.
fn arrivals(serving: &Serving) -> Option<String> {
    let terms = &serving.terms;
    let Arrivals::Rate(rate) = serving.asked() else { return None };
    let cv = (terms.cv.to_bits() != 1.0_f64.to_bits()).then(|| format!(", cv = {}", decimal(terms.cv)));
    let come = format!("{{ rate = \"{} request/s\"{} }}", rate.value(), cv.unwrap_or_default());
    (!terms.tenants).then_some(come)
}

/// All digits.
fn seconds(limit: Seconds) -> String {
    format!("{} s", limit.value())
}

/// A number that is no whole one to whoever reads it.
fn decimal(number: f64) -> String {
    format!("{number:?}")
}
