//! Where the order of two variants turns: the value of one of the other's properties at which a run costs the same on
//! both.

use std::sync::Arc;

use roots::{SimpleConvergency, find_root_brent};

use crate::evaluate::{Evaluation, evaluate};
use crate::scenario::Scenario;
use crate::topology::{Balance, Collisions};
use crate::units::{Fraction, Ranged, Seconds, Usd};

/// The lowest spine efficiency that is tried: a hundredth of the payload rate.
const LEAST_EFFICIENCY: f64 = 0.01;

/// The property that is moved, of the variant that is no baseline; all else stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// What all parts of its fabric cost.
    FabricCapex,
    /// The share of the payload rate that traffic through the spines of its fabric keeps.
    SpineEfficiency,
    /// The time of its training step, goodput being the same.
    StepTime,
}

/// A value of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// Of a price.
    Price(Usd),
    /// Of an efficiency.
    Efficiency(Fraction),
    /// Of a time.
    Time(Seconds),
}

/// Whether and where the order turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// At this value.
    At(Level),
    /// Nowhere between these values: the variant of that index costs less at each of them.
    Never {
        /// Index of the variant that costs less.
        winner: usize,
        /// The lowest value tried.
        from: Level,
        /// The highest.
        to: Level,
    },
}

/// Where the order of two variants turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakEven {
    /// Indices of the baseline and the other variant.
    pub between: (usize, usize),
    /// The property of the other that is moved.
    pub variable: Variable,
    /// Its value now.
    pub present: Level,
    /// Where a run costs the same on both.
    pub turn: Turn,
    /// Of a spine efficiency: where the other's flows are hashed, how they collide at full load on the uplinks of a leaf.
    pub collisions: Option<Collisions>,
}

/// A variant whose run has a cost.
#[derive(Clone, Copy)]
struct Run<'a> {
    index: usize,
    evaluation: &'a Evaluation,
    cost: Usd,
    step: Seconds,
}

impl<'a> Run<'a> {
    fn new((index, evaluation): (usize, &'a Evaluation)) -> Option<Self> {
        evaluation.point.map(|point| Self { index, evaluation, cost: point.run, step: point.step.iteration() })
    }
}

/// The break-even in each property between a baseline and another variant, each with its index; none where one of them
/// trains nothing.
pub fn break_even(baseline: (usize, &Evaluation), other: (usize, &Evaluation)) -> Vec<BreakEven> {
    let (Some(baseline), Some(other)) = (Run::new(baseline), Run::new(other)) else { return Vec::new() };
    let between = (baseline.index, other.index);
    let present = other.evaluation.built.fabric_capex();
    let found = [
        (Variable::FabricCapex, Level::Price(present), fabric_capex(baseline, other)),
        (Variable::SpineEfficiency, Level::Efficiency(present_efficiency(other)), spine_efficiency(baseline, other)),
        (Variable::StepTime, Level::Time(other.step), step_time(baseline, other)),
    ];
    let collisions = |variable| {
        let built = &other.evaluation.built.topology;
        let balance = Balance::of(&other.evaluation.scenario.cluster.fabric.entry);
        balance.collisions(built.leaf.most_uplinks()).filter(|_| variable == Variable::SpineEfficiency)
    };
    let line =
        |(variable, present, turn)| BreakEven { between, variable, present, turn, collisions: collisions(variable) };
    found.into_iter().map(line).collect()
}

/// A run's cost is linear in the price of the fabric's parts, lines that are a share of the parts included; the line is
/// drawn through a free fabric and the present one.
fn fabric_capex(baseline: Run<'_>, other: Run<'_>) -> Turn {
    let present = other.evaluation.built.fabric_capex();
    let never = |winner| Turn::Never { winner, from: Level::Price(Usd::ZERO), to: Level::Price(present) };
    let Some(free) = run_cost(with_fabric_price(other.evaluation, 0.0)) else { return never(baseline.index) };
    if free > baseline.cost {
        return never(baseline.index);
    }
    let share = (baseline.cost - free) / (other.cost - free);
    // A fabric whose price moves nothing leaves the order as it is.
    if share.is_finite() { Turn::At(Level::Price(present * share)) } else { never(other.index) }
}

/// Found by evaluating the other variant again and again: every step time depends on the efficiency in its own way.
fn spine_efficiency(baseline: Run<'_>, other: Run<'_>) -> Turn {
    match crossing(other.evaluation, baseline.cost) {
        Crossing::At(efficiency) => Turn::At(Level::Efficiency(efficiency)),
        crossing => Turn::Never {
            winner: if crossing == Crossing::Below { other.index } else { baseline.index },
            from: Level::Efficiency(Fraction::new(LEAST_EFFICIENCY).unwrap_or_default()),
            to: Level::Efficiency(Fraction::ONE),
        },
    }
}

/// What a fabric's spines keep of the payload rate at full load: what it states; or, where flows are hashed and the loss
/// depends on the traffic, the stated share at which the run would cost as much, so that it lies on the scale on which the
/// order turns. What hashed flows keep at full load stands beside it ([`BreakEven::collisions`]).
fn present_efficiency(of: Run<'_>) -> Fraction {
    if let Some(stated) = of.evaluation.scenario.cluster.fabric.entry.spine_efficiency {
        return stated.value;
    }
    match crossing(of.evaluation, of.cost) {
        Crossing::At(efficiency) => efficiency,
        Crossing::Below | Crossing::Above => Fraction::ONE,
    }
}

/// How the cost of a run, over all spine efficiencies, lies to an amount.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crossing {
    /// It is that amount at this one.
    At(Fraction),
    /// It is less at each.
    Below,
    /// It is more, or the same, at each.
    Above,
}

fn crossing(evaluation: &Evaluation, amount: Usd) -> Crossing {
    let excess = |efficiency: f64| {
        let run =
            Fraction::new(efficiency).and_then(|share| run_cost(with_spine_efficiency(&evaluation.scenario, share)));
        run.map_or(f64::NAN, |run| run / amount - 1.0)
    };
    let (low, high) = (excess(LEAST_EFFICIENCY), excess(1.0));
    let all = if high < 0.0 { Crossing::Below } else { Crossing::Above };
    if (low < 0.0) == (high < 0.0) {
        return all;
    }
    let mut precision = SimpleConvergency { eps: 1e-9, max_iter: 60 };
    let found = find_root_brent(LEAST_EFFICIENCY, 1.0, excess, &mut precision);
    found.ok().and_then(Fraction::new).map_or(all, Crossing::At)
}

/// A run's cost is proportional to the time of a step as long as goodput does not change with it, which it only does
/// where a step takes longer than the interval between checkpoints.
fn step_time(baseline: Run<'_>, other: Run<'_>) -> Turn {
    Turn::At(Level::Time(other.step * (baseline.cost / other.cost)))
}

/// What the run of a scenario costs, where it can be.
pub(super) fn run_cost(scenario: Scenario) -> Option<Usd> {
    evaluate(scenario).ok()?.point.map(|point| point.run)
}

/// The scenario with every part of its fabric at so many times its price.
pub(super) fn with_fabric_price(evaluation: &Evaluation, factor: f64) -> Scenario {
    let mut scenario = evaluation.scenario.clone();
    let mut book = (*scenario.cluster.prices).clone();
    for price in &mut book.part.prices {
        if evaluation.built.parts.iter().any(|part| part.id == price.part.id) {
            price.usd = Ranged::exact(price.usd.value * factor);
        }
    }
    scenario.cluster.prices = Arc::new(book);
    scenario
}

/// The scenario with another efficiency of its fabric's spines.
pub(super) fn with_spine_efficiency(scenario: &Scenario, efficiency: Fraction) -> Scenario {
    let mut scenario = scenario.clone();
    let mut fabric = (*scenario.cluster.fabric.entry).clone();
    fabric.part.spine_efficiency = Some(Ranged::exact(efficiency));
    scenario.cluster.fabric.entry = Arc::new(fabric);
    scenario
}
