//! A scenario's answer, its layout searched first where that is asked.

use super::layouts::{Variants, search};
use super::serving::settle_serving;
use crate::evaluate::{BuiltCluster, Evaluation, Found, Infeasible, evaluate as evaluate_as_it_is};
use crate::parallelism::Layout;
use crate::scenario::Scenario;

/// Evaluates a scenario, with the best layout where that is left to a search.
///
/// # Errors
/// As `evaluate::evaluate`, and when no layout works.
pub fn evaluate(scenario: Scenario) -> Result<Evaluation, Infeasible> {
    let (scenario, ways) = settle_serving(scenario)?;
    let (scenario, found) = settle_training(scenario)?;
    let mut evaluation = evaluate_as_it_is(scenario)?;
    (evaluation.found, evaluation.ways) = (found, ways);
    Ok(evaluation)
}

/// The scenario with the layout that its search finds, and what else the search came to; unchanged where nothing is left
/// to a search.
///
/// # Errors
/// When the cluster cannot be built, or no layout works.
pub fn settle(scenario: Scenario) -> Result<(Scenario, Option<Found>), Infeasible> {
    settle_training(settle_serving(scenario)?.0)
}

/// The same of training alone.
fn settle_training(scenario: Scenario) -> Result<(Scenario, Option<Found>), Infeasible> {
    let Some((training, wanted)) = scenario.training.as_ref().and_then(|training| Some((training, training.search?)))
    else {
        return Ok((scenario, None));
    };
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance)?;
    let found = search(&Variants::new(&scenario, training, &built), &wanted)?;
    let Some(best) = found.best.first() else { return Ok((scenario, None)) };
    let mut settled = training.with_overlap(best.overlap, &scenario.cluster).unwrap_or_else(|_| training.clone());
    settled.layout = Layout { data: 1, ..best.point.layout };
    Ok((Scenario { training: Some(settled), ..scenario }, Some(found)))
}
