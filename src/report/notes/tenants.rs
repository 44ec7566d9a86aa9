//! Replicas of tenants, where that is not told or is bare.

use crate::evaluate::Evaluation;
use crate::scenario::Limits;

/// Tenants of whom a class has a limit that is kept at no rate.
pub(super) fn never_kept_for_tenants(evaluation: &Evaluation) -> Option<String> {
    evaluation.scenario.serving.as_ref()?.features.tenants.as_ref()?;
    let never = evaluation.serving.is_some() && evaluation.tenants().is_none();
    never.then(|| {
        "What tenants take is not told: a limit of one of their classes is kept at no rate (`serving.tenants`)."
            .to_owned()
    })
}

/// Tenants whose replicas are reckoned as full as they can be.
pub(in crate::report) fn full_for_tenants(evaluation: &Evaluation) -> Option<String> {
    let serving = evaluation.scenario.serving.as_ref()?;
    (serving.features.tenants.is_some() && serving.limits == Limits::default()).then(|| {
        "No latency has a limit, so that tenants have as few replicas as serve them at any: with `serving.limits` of P95 or P99 and requests at a rate they have as many as keep those.".to_owned()
    })
}
