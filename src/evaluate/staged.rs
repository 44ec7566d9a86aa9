//! One answer whose layout, load or money is set again and again: what does not depend on them is computed once.

use super::evaluation::{agents_point, check_finite_hour, check_finite_point, check_finite_totals};
use super::serving::{BoundServing, serving_point, serving_point_of};
use super::{BuiltCluster, Evaluation, Infeasible, Point, Prepared};
use crate::inference::Scratch;
use crate::memory::serving::ServingLayout;
use crate::scenario::{Cluster, Finance, Lengths, Money, PrefillPool, Scenario, Serving, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::units::{Bytes, Fraction};
use crate::workload::LengthShapes;

/// An answer without its layout's part.
#[derive(Clone, Debug)]
pub struct Staged {
    evaluation: Evaluation,
    /// Whether the run is steps of one kind, so that its parts follow from the step.
    plain: bool,
    /// Whether all that the layout does not change is a number.
    totals: Result<(), Infeasible>,
}

impl Staged {
    /// Of a scenario whose cluster is built.
    pub fn new(scenario: Scenario, built: BuiltCluster, prepared: &Prepared) -> Self {
        let plain = scenario.training.as_ref().is_some_and(|Training { plan, .. }| {
            plan.stages.is_empty() && plan.ramp.is_none() && plan.evaluation.is_none()
        });
        let unit_costs = prepared.unit_costs(1.0);
        let totals = check_finite_totals(&built);
        let evaluation = Evaluation {
            failures: Some(prepared.failures),
            usable_memory: prepared.usable_memory,
            ..of_built(scenario, built, unit_costs)
        };
        Self { evaluation, plain, totals }
    }

    /// The same with other money. Nothing is allocated.
    pub fn refinance(&mut self, money: &Money) -> (&BuiltCluster, &Finance) {
        let Evaluation { scenario, built, .. } = &mut self.evaluation;
        money.set(scenario);
        built.refinance(&scenario.cluster, &scenario.finance);
        self.totals = check_finite_totals(built);
        (built, &scenario.finance)
    }

    /// The same at the prices, or at a site with those, that `set` gives its scenario.
    ///
    /// # Errors
    /// When what is built does not go there.
    pub fn reprice(&mut self, set: impl FnOnce(&mut Scenario)) -> Result<(&BuiltCluster, &Finance), Infeasible> {
        let Evaluation { scenario, built, .. } = &mut self.evaluation;
        set(scenario);
        *built = built.repriced(&scenario.cluster, &scenario.finance)?;
        self.totals = check_finite_totals(built);
        Ok((built, &scenario.finance))
    }

    /// The answer with a layout's figures, under the choices that `prepared` was bound with. Nothing is allocated for a run
    /// of steps of one kind, but the first time.
    ///
    /// # Errors
    /// As [`super::evaluate`].
    pub fn at(&mut self, prepared: &Prepared, mut point: Point) -> Result<&Evaluation, Infeasible> {
        let evaluation = &mut self.evaluation;
        let (duration, effective) = match (&mut evaluation.run, &evaluation.scenario.training) {
            (Some(run), _) if self.plain => {
                run.repeat(&point);
                (run.duration, run.effective)
            }
            (run, Some(training)) => {
                let run = run.insert(prepared.run(&training.plan, &point)?);
                (run.duration, run.effective)
            }
            (_, None) => (point.duration, point.effective),
        };
        prepared.set_run(&mut point, duration, effective);
        evaluation.unit_costs = point.unit_costs;
        self.totals.clone()?;
        check_finite_point(&point)?;
        evaluation.point = Some(point);
        Ok(evaluation)
    }
}

/// An answer of serving alone, without what the load decides.
#[derive(Clone, Debug)]
pub struct StagedServing {
    evaluation: Evaluation,
    /// What serving depends on but the requests, where the layout is given.
    bound: Option<BoundServing>,
    totals: Result<(), Infeasible>,
    /// What the last answer left behind, and what of it goes for.
    scratch: Scratch,
    timed: Option<Timed>,
    shapes: LengthShapes,
}

/// What times of prompts depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timed {
    lengths: [Lengths; 2],
    hit: Fraction,
    layout: ServingLayout,
    prefill: Option<PrefillPool>,
}

impl Timed {
    const fn of(serving: &Serving) -> Self {
        Self {
            lengths: [serving.input, serving.output],
            hit: serving.prefix_hit,
            layout: serving.layout,
            prefill: serving.prefill,
        }
    }
}

/// Of what is built, without anything that runs on it.
fn of_built(scenario: Scenario, built: BuiltCluster, unit_costs: UnitCosts) -> Evaluation {
    Evaluation {
        point: None,
        run: None,
        failures: None,
        serving: None,
        agents: None,
        unit_costs,
        usable_memory: Bytes::ZERO,
        found: None,
        ways: None,
        most: None,
        most_of_tenants: None,
        day: None,
        scenario,
        built,
    }
}

impl StagedServing {
    /// Of a scenario that serves and trains nothing.
    ///
    /// # Errors
    /// When the cluster cannot be built.
    pub fn new(scenario: Scenario) -> Result<Self, Infeasible> {
        let built = BuiltCluster::new(&scenario.cluster, &scenario.finance)?;
        let unit_costs = unit_costs(&scenario, &built);
        let evaluation = of_built(scenario, built, unit_costs);
        let totals = check_finite_totals(&evaluation.built);
        let Scenario { serving, cluster, .. } = &evaluation.scenario;
        let given = serving.as_ref().filter(|serving| !serving.search);
        let bound = given.and_then(|serving| BoundServing::new(serving, cluster).ok());
        let (scratch, shapes) = (Scratch::default(), LengthShapes::default());
        Ok(Self { evaluation, bound, totals, scratch, timed: None, shapes })
    }

    /// What is served, whose requests may be changed (with the shapes of their lengths that are at hand), and its layout where
    /// that is searched.
    pub fn serving(&mut self) -> Option<(&mut Serving, &Cluster, &mut LengthShapes)> {
        let Scenario { serving, cluster, .. } = &mut self.evaluation.scenario;
        serving.as_mut().map(|serving| (serving, &*cluster, &mut self.shapes))
    }

    /// The same with other money. Nothing is allocated.
    pub fn refinance(&mut self, money: &Money) {
        let Evaluation { scenario, built, .. } = &mut self.evaluation;
        money.set(scenario);
        built.refinance(&scenario.cluster, &scenario.finance);
        self.totals = check_finite_totals(built);
        self.evaluation.unit_costs = unit_costs(scenario, built);
    }

    /// The same at the prices, or at a site with those, that `set` gives its scenario.
    ///
    /// # Errors
    /// When what is built does not go there.
    pub fn reprice(&mut self, set: impl FnOnce(&mut Scenario)) -> Result<(), Infeasible> {
        let Evaluation { scenario, built, .. } = &mut self.evaluation;
        set(scenario);
        *built = built.repriced(&scenario.cluster, &scenario.finance)?;
        self.totals = check_finite_totals(built);
        self.evaluation.unit_costs = unit_costs(scenario, built);
        Ok(())
    }

    /// The answer. Nothing is allocated where the layout is given, but the first time.
    ///
    /// # Errors
    /// As [`super::evaluate`].
    pub fn at(&mut self) -> Result<&Evaluation, Infeasible> {
        let Evaluation { scenario, unit_costs, built, .. } = &self.evaluation;
        let Some(serving) = &scenario.serving else { return Ok(&self.evaluation) };
        let timed = Some(Timed::of(serving));
        if self.timed != timed {
            self.scratch.forget();
            self.timed = timed;
        }
        let point = match &mut self.bound {
            Some(bound) => serving_point_of(serving, &scenario.cluster, bound, &mut self.scratch)?,
            None => serving_point(serving, &scenario.cluster)?,
        };
        self.totals.clone()?;
        check_finite_hour(unit_costs)?;
        let agents = agents_point(scenario, Some(&point), built, unit_costs);
        let evaluation = &mut self.evaluation;
        evaluation.usable_memory = point.usable;
        (evaluation.serving, evaluation.agents) = (Some(point), agents);
        Ok(evaluation)
    }
}

/// Dollars an hour where nothing is trained.
fn unit_costs(scenario: &Scenario, built: &BuiltCluster) -> UnitCosts {
    let at_work = u64::from(scenario.cluster.accelerators);
    CostTotals::new(&built.costs, &built.drivers, at_work, &scenario.finance).unit_costs(1.0)
}
