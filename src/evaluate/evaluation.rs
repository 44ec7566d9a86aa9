//! One scenario's answer, with all that a report shows.

use super::day_shares::DayShares;
use super::most_served::most_within;
use super::{
    AgentsPoint, Bases, BuiltCluster, Evidence, Failures, Found, FoundWays, Infeasible, MissedLimit, NodesBought,
    Point, Prepared, Run, ServingPoint, TokenCosts, serving_point,
};
use crate::memory::MemoryFootprint;
use crate::scenario::{Assumption, NodeGroup, Scenario, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::topology::{PartKind, Tier};
use crate::units::{Bytes, CarbonMass, RequestRate, SECONDS_PER_YEAR, Seconds};

/// Counted parts of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricCounts {
    /// Leaf switches.
    pub leaf_switches: u64,
    /// Spine switches.
    pub spine_switches: u64,
    /// Core switches.
    pub core_switches: u64,
    /// Optical modules.
    pub optics: u64,
    /// Cables.
    pub cables: u64,
    /// Network cards.
    pub nics: u64,
}

/// A scenario's answer.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// What was asked.
    pub scenario: Scenario,
    /// What is built.
    pub built: BuiltCluster,
    /// The training job's figures, where there is one.
    pub point: Option<Point>,
    /// The run: its stages, one after the other.
    pub run: Option<Run>,
    /// What interrupts it, and what that costs it.
    pub failures: Option<Failures>,
    /// Serving's, where it is asked for.
    pub serving: Option<ServingPoint>,
    /// The agents' tasks behind it.
    pub agents: Option<AgentsPoint>,
    /// Dollars an hour; useful hours are those of the training job, and all hours in serving.
    pub unit_costs: UnitCosts,
    /// Memory that a job may use on one accelerator.
    pub usable_memory: Bytes,
    /// What the search of the layout came to, where it was searched.
    pub found: Option<Found>,
    /// The same of the way to serve.
    pub ways: Option<FoundWays>,
    /// The most that is served with limits kept; none where it is worked out as it is asked for, which takes as long as some tens
    /// of answers.
    pub(super) most: Option<RequestRate>,
    /// The same of a replica, of each class of tenants; none where it is worked out as it is asked for.
    pub(super) most_of_tenants: Option<Vec<RequestRate>>,
    /// Where time goes on the mean of a day; none where it is worked out as it is asked for, which takes as long as an answer for
    /// each load that stands for the day's.
    pub(super) day: Option<DayShares>,
}

impl Evaluation {
    /// Parts of the fabric, counted.
    pub fn fabric(&self) -> FabricCounts {
        let count = |kind: PartKind, tier: Option<Tier>| {
            let parts =
                self.built.parts.iter().filter(|part| part.kind == kind && tier.is_none_or(|tier| part.tier == tier));
            parts.map(|part| part.count).sum()
        };
        FabricCounts {
            leaf_switches: count(PartKind::Switch, Some(Tier::Leaf)),
            spine_switches: count(PartKind::Switch, Some(Tier::Spine)),
            core_switches: count(PartKind::Switch, Some(Tier::Core)),
            optics: count(PartKind::Optic, None),
            cables: count(PartKind::Cable, None),
            nics: count(PartKind::Nic, None),
        }
    }

    /// Time of the run with failures.
    pub fn effective_duration(&self) -> Option<Seconds> {
        self.point.map(|point| point.effective)
    }

    /// Hours of useful work of one accelerator that the cluster does in a year: of the job where it trains.
    pub fn useful_hours_per_year(&self) -> f64 {
        let hours = Seconds::new(SECONDS_PER_YEAR) / Seconds::new(3_600.0);
        let goodput = self.point.map_or(1.0, |point| point.goodput.ratio);
        let at_work = f64::from(self.scenario.cluster.accelerators);
        hours * self.scenario.finance.utilisation.get() * goodput * at_work
    }

    /// The run's part of a year's costs, energy and emissions: of the hours that the cluster is used.
    pub fn share_of_year(&self) -> Option<f64> {
        let used = Seconds::new(SECONDS_PER_YEAR) * self.scenario.finance.utilisation.get();
        Some(self.effective_duration()? / used)
    }

    /// Emissions of making the accelerators that are bought, where their maker states them.
    pub fn embodied(&self) -> Option<CarbonMass> {
        let of = |(nodes, bought): (NodeGroup<'_>, &NodesBought)| {
            let accelerators = f64::from(bought.all()) * f64::from(nodes.node.accelerators);
            Some(nodes.accelerator.embodied_carbon? * accelerators)
        };
        let kinds = self.scenario.cluster.kinds_of_nodes().zip(&self.built.kinds);
        kinds.map(of).try_fold(CarbonMass::ZERO, |all, of_kind| Some(all + of_kind?))
    }

    /// Memory of an accelerator: in training, or in serving where nothing is trained.
    pub fn memory(&self) -> Option<MemoryFootprint> {
        self.point.map(|point| point.memory).or_else(|| self.serving.as_ref().map(|serving| serving.memory))
    }

    /// Bytes of weights, gradients and optimizer states of the whole model, unsharded.
    pub fn model_states(&self) -> Option<Bytes> {
        let training = self.scenario.training.as_ref()?;
        let per_parameter =
            training.job.precision.size() + training.job.gradients.size() + training.job.optimizer.state_size();
        Some(per_parameter * training.transformer.parameters().total() as f64)
    }

    /// Limits of latencies that are not kept.
    pub fn missed_limits(&self) -> impl Iterator<Item = MissedLimit> {
        let served = self.serving.as_ref().zip(self.scenario.serving.as_ref());
        served.into_iter().flat_map(|(point, serving)| point.all_missed(serving))
    }

    /// The inputs of each group of figures, and how they were come by.
    pub fn evidence(&self) -> Evidence {
        Evidence::new(&self.scenario, &self.built)
    }

    /// The weakest basis of each group.
    pub fn bases(&self) -> Bases {
        Bases::from(&self.evidence())
    }

    /// Defaults that were applied.
    pub fn assumed(&self) -> &[Assumption] {
        &self.scenario.assumed
    }
}

/// The last check before an answer leaves: every total is a number.
fn check_finite(built: &BuiltCluster, point: Option<&Point>, unit_costs: &UnitCosts) -> Result<(), Infeasible> {
    point.map_or(Ok(()), check_finite_point)?;
    check_finite_totals(built)?;
    check_finite_hour(unit_costs)
}

/// The same of an hour.
pub(super) fn check_finite_hour(unit_costs: &UnitCosts) -> Result<(), Infeasible> {
    finite([("the cost of an hour of use", unit_costs.per_useful_gpu_hour.value())])
}

/// The same of what a layout decides.
pub(super) fn check_finite_point(point: &Point) -> Result<(), Infeasible> {
    // Base numbers, because whether they are finite is the same in every unit.
    finite([
        ("the time of an iteration", point.step.iteration().value()),
        ("MFU", point.step.mfu()),
        ("HFU", point.step.hfu()),
        ("goodput", point.goodput.ratio),
        ("time between interruptions", point.goodput.mtbf.value()),
        ("the time of the run", point.effective.value()),
        ("the cost of the run", point.run.value()),
        ("the cost of an hour of use", point.unit_costs.per_useful_gpu_hour.value()),
    ])
}

/// The same of what no layout changes.
pub(super) fn check_finite_totals(built: &BuiltCluster) -> Result<(), Infeasible> {
    let (costs, facility) = (&built.costs, &built.facility);
    finite([
        ("the power of the fabric", built.fabric_power().value()),
        ("the price of the fabric", built.fabric_capex().value()),
        ("provisioned power", facility.provisioned_total.value()),
        ("average power", facility.average_total.value()),
        ("emissions", facility.emissions_per_year.value()),
        ("capex", costs.capex.value()),
        ("opex", costs.opex_per_year.value()),
        ("the cost of a year", costs.annualised.value()),
        ("the cost over the horizon", costs.total.value()),
    ])
}

fn finite<const N: usize>(figures: [(&'static str, f64); N]) -> Result<(), Infeasible> {
    let broken = figures.into_iter().find(|(_, value)| !value.is_finite());
    broken.map_or(Ok(()), |(what, value)| Err(Infeasible::NotFinite { what, value }))
}

/// What a training job comes to.
struct Trained {
    point: Point,
    run: Run,
    usable_memory: Bytes,
    failures: Failures,
}

fn train(scenario: &Scenario, training: &Training, built: &BuiltCluster) -> Result<Trained, Infeasible> {
    let prepared = Prepared::new(scenario, training, built);
    let point = prepared.point(&training.layout)?;
    let run = prepared.run(&training.plan, &point)?;
    let point = prepared.of_run(&point, &run);
    Ok(Trained { point, run, usable_memory: prepared.usable_memory, failures: prepared.failures })
}

/// Evaluates a scenario with the layout that it has: one that is searched must have been found before.
///
/// # Errors
/// When the cluster cannot be built, the layout cannot be, its worst stage does not fit, the run never ends, or a figure
/// is no number.
pub fn evaluate(scenario: Scenario) -> Result<Evaluation, Infeasible> {
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance)?;
    let trained = scenario.training.as_ref().map(|training| train(&scenario, training, &built)).transpose()?;
    let (point, run, usable, failures) = trained.map_or((None, None, None, None), |trained| {
        (Some(trained.point), Some(trained.run), Some(trained.usable_memory), Some(trained.failures))
    });
    let serving = scenario.serving.as_ref().map(|serving| serving_point(serving, &scenario.cluster)).transpose()?;
    let most =
        scenario.serving.as_ref().zip(serving).map(|(asked, point)| most_within(asked, &scenario.cluster, &point));
    let day = scenario.serving.as_ref().zip(serving);
    let day = day.map(|(asked, point)| DayShares::of(asked, &scenario.cluster, &point)).transpose()?;
    let usable_memory = usable.or(serving.map(|serving| serving.usable)).unwrap_or(Bytes::ZERO);
    let unit_costs = point.map_or_else(
        || {
            CostTotals::new(&built.costs, &built.drivers, u64::from(scenario.cluster.accelerators), &scenario.finance)
                .unit_costs(1.0)
        },
        |point| point.unit_costs,
    );
    check_finite(&built, point.as_ref(), &unit_costs)?;
    let agents = agents_point(&scenario, serving.as_ref(), &built, &unit_costs);
    let mut evaluation = Evaluation {
        scenario,
        built,
        point,
        run,
        failures,
        serving,
        agents,
        unit_costs,
        usable_memory,
        found: None,
        ways: None,
        most,
        most_of_tenants: None,
        day,
    };
    evaluation.most_of_tenants = evaluation.most_of_tenants();
    Ok(evaluation)
}

/// The agents' tasks that are served, where there are any.
pub(super) fn agents_point(
    scenario: &Scenario,
    serving: Option<&ServingPoint>,
    built: &BuiltCluster,
    unit_costs: &UnitCosts,
) -> Option<AgentsPoint> {
    let (agents, served, point) = (scenario.agents.as_ref()?, scenario.serving.as_ref()?, serving?);
    let of_prefill = built.shares_of_prefill().cost;
    let costs = TokenCosts::new(point, unit_costs.per_useful_gpu_hour, &scenario.cluster, of_prefill);
    Some(AgentsPoint::new(agents, served, point, &costs))
}
