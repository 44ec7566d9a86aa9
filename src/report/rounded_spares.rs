//! Spares that are many more than asked for, in words.

use super::figure::{grouped, percent};
use crate::evaluate::Evaluation;
use crate::units::Usd;

/// How many are bought, and what costs would be without them.
pub(super) fn rounded_spares(evaluation: &Evaluation) -> Option<String> {
    let found = evaluation.rounded_spares()?;
    let nodes = |count: u32| format!("{} node{}", grouped(count.into()), if count == 1 { "" } else { "s" });
    let now = evaluation.unit_costs.per_useful_gpu_hour;
    let less = found.without.per_useful_gpu_hour;
    let million = |cost: Usd| format!(", and a million tokens {} instead of {cost}", cost * (less / now));
    let million = evaluation.token_costs().map(|costs| million(costs.blended)).unwrap_or_default();
    Some(format!(
        "Spares: {} of {} at work, bought whole, {} {}: {} GPUs are paid for {} at work. Without spares a useful hour of a GPU would cost {less} instead of {now}{million}: `cluster.spares = 0` says that a pool shared with others, or whoever rents them out, stands in.",
        percent(evaluation.scenario.cluster.spares.get()),
        nodes(found.at_work),
        if found.spare == 1 { "is" } else { "are" },
        nodes(found.spare),
        grouped(evaluation.built.drivers.accelerators),
        grouped(evaluation.scenario.cluster.accelerators.into()),
    ))
}
