//! Steps in cost that nobody asked for, in words.

use super::figure::{counted, grouped, percent};
use crate::evaluate::Evaluation;
use crate::units::Usd;

/// How many are bought, and what costs would be without them.
pub(super) fn rounded_spares(evaluation: &Evaluation) -> Option<String> {
    let found = evaluation.rounded_spares()?;
    let now = evaluation.unit_costs.per_useful_gpu_hour;
    let less = found.without.per_useful_gpu_hour;
    let million = |cost: Usd| format!(", and a million tokens {} instead of {cost}", cost * (less / now));
    let million = evaluation.token_costs().map(|costs| million(costs.blended)).unwrap_or_default();
    Some(format!(
        "Spares: {} of {} at work, bought whole, {} {}: {} GPUs are paid for {} at work. Without spares a useful hour of a GPU would cost {less} instead of {now}{million}: `cluster.spares = 0` says that a pool shared with others, or whoever rents them out, stands in.",
        percent(evaluation.scenario.cluster.spares.get()),
        counted(found.at_work.into(), "node"),
        if found.spare == 1 { "is" } else { "are" },
        counted(found.spare.into(), "node"),
        grouped(evaluation.built.drivers.accelerators),
        grouped(evaluation.scenario.cluster.accelerators.into()),
    ))
}

/// What storage for checkpoints takes where nothing trains, and what costs would be without.
pub(super) fn unused_storage(evaluation: &Evaluation) -> Option<String> {
    let found = evaluation.unused_storage()?;
    let cluster = &evaluation.scenario.cluster;
    let now = evaluation.unit_costs.per_useful_gpu_hour;
    let less = found.without.per_useful_gpu_hour;
    let million = |cost: Usd| format!(", and a million tokens {} instead of {cost}", cost * (less / now));
    let million = evaluation.token_costs().map(|costs| million(costs.blended)).unwrap_or_default();
    Some(format!(
        "Storage: {} of {} is {} of what a year costs, and nothing here trains. Without it a useful hour of a GPU would cost {less} instead of {now}{million}: `cluster.storage_units = 0` says that weights come from drives of the hosts or an object store that others pay for.",
        counted(cluster.storage_units.into(), "unit"),
        cluster.storage.id,
        percent(found.share),
    ))
}

/// What a fabric takes that one node has for itself, and what costs would be without.
pub(super) fn unused_fabric(evaluation: &Evaluation) -> Option<String> {
    let found = evaluation.unused_fabric()?;
    let now = evaluation.unit_costs.per_useful_gpu_hour;
    let less = found.without.per_useful_gpu_hour;
    let million = |cost: Usd| format!(", and a million tokens {} instead of {cost}", cost * (less / now));
    let million = evaluation.token_costs().map(|costs| million(costs.blended)).unwrap_or_default();
    Some(format!(
        "Fabric: {} is {} of capex, and one node is at work: nothing here crosses it. Without its switches, modules and cables a useful hour of a GPU would cost {less} instead of {now}{million}; they are there for nodes to come.",
        evaluation.built.fabric_capex(),
        percent(found.share),
    ))
}

/// A tier of switches that is there for the ports of fabric managers alone.
pub(super) fn manager_ports(evaluation: &Evaluation) -> Option<String> {
    let found = evaluation.manager_ports()?;
    let tiers = |count: u32| format!("{} of switches", counted(count.into(), "tier"));
    Some(format!(
        "The {} ports that fabric managers take are one step too many: without them the nodes fit {}, and the fabric would cost {} less; with them it has {}. A node or two fewer, spares among them, or managers beside the fabric come to the same.",
        found.ports,
        tiers(found.tiers),
        found.saved,
        tiers(evaluation.built.topology.tiers)
    ))
}
