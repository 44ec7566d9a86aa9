//! What tests know of the table of figures.

use clusterplan::report::{Group, Metric};

/// Whether a figure is there only where something is served, or kept by the hosts.
pub(crate) fn is_conditional(metric: &Metric) -> bool {
    let of_serving = [
        "_mtok_input",
        "_mtok_cached",
        "_mtok_output",
        "_mtok_blended",
        "_mtok_used",
        "_mtok_off_peak",
        "_mtok_headroom",
        "_mtok_standby",
        "cost.margin_on_cost",
        "cost.break_even_",
        "cost.memory_tiers",
        "cost.prefill_share",
        "cost.prompts_share",
        "memory.prefill_",
    ];
    let kept_by_hosts = metric.key == "training.other_host_s";
    let asked_for = ["facility.budget_", "_per_task", "_per_success"].iter().any(|part| metric.key.contains(part));
    kept_by_hosts
        || asked_for
        || matches!(metric.group, Group::Serving | Group::Agents)
        || of_serving.iter().any(|part| metric.key.contains(part))
}
