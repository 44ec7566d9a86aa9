//! The scenario as it was evaluated: every key with its value, given or by default.

use crate::evaluate::Evaluation;
use crate::parallelism::Layout;
use crate::scenario::{Scenario, Software, TierCount};
use crate::units::significant;

/// A key of the scenario and its value, written as the scenario writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The dotted key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where the value of a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The scenario says it.
    Given,
    /// It is a default, because the scenario does not say.
    Default,
    /// The search of the layout found it.
    Found,
}

/// Every key that has a value.
pub fn settings(scenario: &Scenario, layout: &Layout) -> Vec<Setting> {
    let mut all = cluster(scenario);
    all.extend(software(&scenario.training.software));
    all.extend(training(scenario));
    all.extend(of_layout(layout));
    let finance = &scenario.finance;
    all.extend([
        ("finance.horizon", finance.horizon.to_string()),
        ("finance.accelerator_life", finance.accelerator_life.to_string()),
        ("finance.cost_of_capital", finance.cost_of_capital.get().to_string()),
        ("finance.utilisation", finance.utilisation.get().to_string()),
    ]);
    let origin = |key: &str| {
        if scenario.training.search.is_some_and(|search| search.settles(key)) {
            Origin::Found
        } else if scenario.assumed.iter().any(|assumption| assumption.key == key) {
            Origin::Default
        } else {
            Origin::Given
        }
    };
    all.into_iter().map(|(key, value)| Setting { key, value, origin: origin(key) }).collect()
}

fn cluster(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let cluster = &scenario.cluster;
    let topology = &cluster.topology;
    let tiers = match topology.tiers {
        TierCount::Auto => "auto".to_owned(),
        TierCount::Fixed(tiers) => tiers.to_string(),
    };
    let oversubscription = format!("[1, {}, {}]", topology.leaf_oversubscription, topology.spine_oversubscription);
    let mut all = vec![
        ("cluster.node", cluster.node.id.clone()),
        ("cluster.accelerators", cluster.accelerators.to_string()),
        ("cluster.spares", cluster.spares.get().to_string()),
        ("cluster.fabric", cluster.fabric.entry.id.clone()),
        ("cluster.topology.kind", topology.kind.to_string()),
        ("cluster.topology.tiers", tiers),
        ("cluster.topology.oversubscription", oversubscription),
        ("cluster.site", cluster.site.id.clone()),
        ("cluster.prices", cluster.prices.id.clone()),
        ("cluster.storage", cluster.storage.id.clone()),
        ("cluster.storage_units", cluster.storage_units.to_string()),
        ("cluster.reliability", cluster.reliability.id.clone()),
    ];
    all.extend(topology.pod.map(|pod| ("cluster.topology.pod", pod.to_string())));
    all
}

fn software(software: &Software) -> Vec<(&'static str, String)> {
    vec![
        ("software.date", month(software.date)),
        ("software.framework", software.framework.to_string()),
        ("software.attention_kernel", software.attention_kernel.to_string()),
        ("software.overlap.tensor", software.overlap.tensor.to_string()),
        ("software.overlap.data", software.overlap.data.to_string()),
        ("software.overlap.expert", software.overlap.expert.to_string()),
    ]
}

fn training(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let training = &scenario.training;
    let job = &training.job;
    vec![
        ("training.model", training.model.id.clone()),
        ("training.precision", job.precision.to_string()),
        ("training.gradients", job.gradients.to_string()),
        ("training.optimizer", job.optimizer.to_string()),
        ("training.sequence_length", job.sequence_length.to_string()),
        ("training.global_batch", job.global_batch.to_string()),
        ("training.tokens", job.tokens.to_string()),
        ("training.checkpoint", training.checkpoint.to_string()),
    ]
}

pub(super) fn of_layout(layout: &Layout) -> Vec<(&'static str, String)> {
    vec![
        ("training.layout.tensor", layout.tensor.to_string()),
        ("training.layout.pipeline", layout.pipeline.to_string()),
        ("training.layout.virtual_stages", layout.virtual_stages.to_string()),
        ("training.layout.context", layout.context.to_string()),
        ("training.layout.expert", layout.expert.to_string()),
        ("training.layout.micro_batch", layout.micro_batch.to_string()),
        ("training.layout.schedule", layout.schedule.to_string()),
        ("training.layout.sharding", layout.sharding.to_string()),
        ("training.layout.recompute", layout.recompute.to_string()),
        ("training.layout.sequence_parallel", layout.sequence_parallel.to_string()),
        ("training.layout.order", layout.order.to_string()),
    ]
}

/// A decimal year as the month that it lies in.
fn month(date: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a month of a year, 0 to 11")]
    let month = ((date.fract() * 12.0).round() as u32).min(11) + 1;
    format!("{}-{month:02}", date.floor())
}

/// The layout in a line.
pub(super) fn layout_in_words(evaluation: &Evaluation) -> String {
    let layout = &evaluation.point.layout;
    let microbatches = layout.microbatches(evaluation.scenario.training.job.global_batch);
    let mut degrees = vec![format!("tensor {}", layout.tensor), format!("pipeline {}", layout.pipeline)];
    if layout.virtual_stages > 1 {
        degrees.push(format!("virtual stages {}", layout.virtual_stages));
    }
    if layout.context > 1 {
        degrees.push(format!("context {}", layout.context));
    }
    if layout.expert > 1 {
        degrees.push(format!("expert {}", layout.expert));
    }
    degrees.push(format!("data {}", layout.data));
    let training = &evaluation.scenario.training;
    format!(
        "{} ({} parameters) on {} GPUs: {}; {microbatches} microbatches of {}; schedule {}, sharding {}, recompute {}.",
        training.model.name,
        in_billions(training.transformer.parameters().total()),
        super::figure::grouped(layout.accelerators()),
        degrees.join(", "),
        layout.micro_batch,
        layout.schedule,
        layout.sharding,
        layout.recompute,
    )
}

fn in_billions(count: u64) -> String {
    format!("{} billion", significant(count as f64 / 1e9, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_year_is_a_month() {
        assert_eq!(
            [month(2024.25), month(2021.0), month(2026.5), month(2022.0 + 11.0 / 12.0)],
            ["2024-04", "2021-01", "2026-07", "2022-12"]
        );
    }
}
