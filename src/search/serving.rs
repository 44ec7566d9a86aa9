//! Layouts of serving: all that an engine can take, and the best of them on given accelerators.

use crate::catalog::model::Model;
use crate::evaluate::{Infeasible, ServingPoint, serving_point};
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, Cluster, Scenario, Serving};

/// Layouts of a model on at most so many accelerators in scale-up domains of so many: tensor parallelism within a domain, and
/// for models with experts also attention in groups of their own with the experts spread over all ranks, of several domains
/// where they fill them. Degrees are powers of two.
pub fn serving_layouts(model: &Model, domain: u32, most: u32) -> Vec<ServingLayout> {
    let up_to = |most: u32| {
        std::iter::successors(Some(1_u32), |degree| degree.checked_mul(2)).take_while(move |&degree| degree <= most)
    };
    let experts = model.blocks.iter().any(|block| block.moe().is_some());
    let mut all = Vec::new();
    for tensor in up_to(domain) {
        for attention_data in up_to(most.max(domain)).filter(|&groups| groups == 1 || experts) {
            let Some(ranks) = tensor.checked_mul(attention_data) else { break };
            let expert = if attention_data > 1 { ranks } else { 1 };
            let layout = ServingLayout { tensor, pipeline: 1, expert, attention_data };
            let placed = ranks <= domain || (ranks <= most && ranks.is_multiple_of(domain));
            if placed && layout.check(model).is_ok() {
                all.push(layout);
            }
        }
    }
    all
}

/// A layout on a cluster, and whether limits are kept.
fn tried(serving: &Serving, cluster: &Cluster, layout: ServingLayout) -> Result<ServingPoint, Infeasible> {
    serving_point(&Serving { layout, ..serving.clone() }, cluster)
}

/// The scenario with the best layout on its accelerators where that is left to a search.
///
/// # Errors
/// As [`best_serving_layout`].
pub(super) fn settle_serving(scenario: Scenario) -> Result<Scenario, Infeasible> {
    let Some(serving) = scenario.serving.as_ref().filter(|serving| serving.search) else { return Ok(scenario) };
    let layout = best_serving_layout(serving, &scenario.cluster)?;
    let serving = Serving { layout, ..serving.clone() };
    Ok(Scenario { serving: Some(serving), ..scenario })
}

/// The best layout on a cluster's accelerators: of those that keep the limits (of all where none does), the one that answers
/// soonest where requests come at a rate, and the one that serves most else.
///
/// # Errors
/// That of the layout that comes nearest, where none works.
pub fn best_serving_layout(serving: &Serving, cluster: &Cluster) -> Result<ServingLayout, Infeasible> {
    let mut best: Option<(bool, f64, ServingLayout)> = None;
    let mut nearest: Option<Infeasible> = None;
    for layout in serving_layouts(&serving.model, cluster.node.scale_up.domain, cluster.accelerators) {
        match tried(serving, cluster, layout) {
            Ok(point) => {
                let kept = point.missed(&serving.limits).is_none();
                let replicas = point.replicas as f64;
                let merit = match serving.arrivals {
                    // Of so many a second, the fewest are open at once where each is answered soonest.
                    Arrivals::Rate(_) => -point.open_per_replica() * replicas,
                    Arrivals::Most | Arrivals::Concurrency(_) => point.state.requests_per_second * replicas,
                };
                if best.is_none_or(|(was_kept, was, _)| (kept, merit) > (was_kept, was)) {
                    best = Some((kept, merit, layout));
                }
            }
            Err(infeasible) => nearest = Some(nearer(nearest, infeasible)),
        }
    }
    match (best, nearest) {
        (Some((_, _, layout)), _) => Ok(layout),
        (None, Some(infeasible)) => Err(infeasible),
        (None, None) => Ok(serving.layout),
    }
}

/// The reason that comes nearer to working: requests that are too many, before those that do not fit.
fn nearer(earlier: Option<Infeasible>, later: Infeasible) -> Infeasible {
    match (earlier, later) {
        (
            Some(Infeasible::Overload { most, asked, replicas, short }),
            Infeasible::Overload { most: other, replicas: others, short: why, .. },
        ) => {
            if other > most {
                Infeasible::Overload { asked, most: other, replicas: others, short: why }
            } else {
                Infeasible::Overload { asked, most, replicas, short }
            }
        }
        (Some(earlier @ Infeasible::Overload { .. }), _) | (Some(earlier), Infeasible::PartReplica { .. }) => earlier,
        (_, later) => later,
    }
}
