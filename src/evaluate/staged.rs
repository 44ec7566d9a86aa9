//! One answer whose layout is set again and again: what does not depend on the layout is computed once.

use super::evaluation::check_finite;
use super::{Bases, BuiltCluster, Evaluation, Evidence, Fit, Infeasible, Prepared};
use crate::scenario::{Scenario, Training};

/// An answer without its layout's part.
#[derive(Clone, Debug)]
pub struct Staged {
    evaluation: Evaluation,
    /// Whether the run is steps of one kind, so that its parts follow from the step.
    plain: bool,
}

impl Staged {
    /// Of a scenario whose cluster is built.
    pub fn new(scenario: Scenario, built: BuiltCluster, prepared: &Prepared) -> Self {
        let plain = scenario.training.as_ref().is_some_and(|Training { plan, .. }| {
            plan.stages.is_empty() && plan.ramp.is_none() && plan.evaluation.is_none()
        });
        let bases = Bases::from(&Evidence::new(&scenario, &built));
        let evaluation = Evaluation {
            point: None,
            run: None,
            failures: Some(prepared.failures),
            serving: None,
            agents: None,
            unit_costs: prepared.unit_costs(1.0),
            usable_memory: prepared.usable_memory,
            bases,
            found: None,
            scenario,
            built,
        };
        Self { evaluation, plain }
    }

    /// The answer with a layout that fits, under the choices that `prepared` was bound with. Nothing is allocated for a
    /// run of steps of one kind, but the first time.
    ///
    /// # Errors
    /// As [`super::evaluate`].
    pub fn at(&mut self, prepared: &Prepared, fit: Fit) -> Result<&Evaluation, Infeasible> {
        let point = prepared.timed(fit)?;
        let evaluation = &mut self.evaluation;
        let run = match (&mut evaluation.run, &evaluation.scenario.training) {
            (Some(run), _) if self.plain => {
                run.repeat(&point);
                run.duration
            }
            (run, Some(training)) => run.insert(prepared.run(&training.plan, &point)?).duration,
            (_, None) => point.duration,
        };
        let point = prepared.of_run(&point, run);
        evaluation.unit_costs = point.unit_costs;
        evaluation.point = Some(point);
        check_finite(&evaluation.built, Some(&point), &point.unit_costs)?;
        Ok(evaluation)
    }
}
