//! The same work on more and more accelerators: how much faster it gets, what does not shrink, and where more do not pay.

use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::{Evaluation, Infeasible, Point};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search;
use crate::units::{Seconds, TokenRate};

/// The most sizes of a curve.
const MOST_SIZES: usize = 64;

/// What grows with the accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Nothing: the batch stays, and each has less to do (strong scaling).
    Strong,
    /// The batch, in proportion: each has as much to do (weak scaling).
    Weak,
}

/// One size of a curve.
#[derive(Clone, Debug)]
pub struct ScalingPoint {
    /// Accelerators at work.
    pub accelerators: u32,
    /// Sequences of a step.
    pub global_batch: u32,
    /// The answer.
    pub outcome: Result<Box<Evaluation>, Infeasible>,
}

/// How a size compares with the smallest that works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Useful tokens a second, failures counted.
    pub useful_rate: TokenRate,
    /// That over that of the smallest.
    pub speedup: f64,
    /// The speedup over how many times the accelerators are.
    pub efficiency: f64,
    /// The share of the smallest's time that does not shrink (strong), by Amdahl's law from these two sizes alone (Karp and
    /// Flatt, CACM 33, 1990); none for the smallest, and in weak scaling.
    pub serial: Option<f64>,
    /// What the accelerators added since the size before bring, over what they would bring if all were used as well: the
    /// logarithm of the rates' ratio over that of the sizes'. None for the smallest.
    pub marginal: Option<f64>,
}

/// Time of a step that is more than its share of the smallest size's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SerialPart {
    /// What it is.
    pub name: &'static str,
    /// How much more.
    pub excess: Seconds,
    /// That over the whole step of the largest size, failures counted.
    pub share: f64,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// What is asked, in a line.
    pub title: String,
    /// What grows.
    pub growth: Growth,
    /// Sizes, the smallest first.
    pub points: Vec<ScalingPoint>,
    /// The least marginal gain that pays.
    pub least_marginal: f64,
}

impl Scaling {
    fn feasible(&self) -> impl Iterator<Item = (&ScalingPoint, &Point)> {
        self.points.iter().filter_map(|point| Some((point, point.outcome.as_ref().ok()?.point.as_ref()?)))
    }

    /// The gain of each size, in order; none where it cannot be.
    pub fn gains(&self) -> Vec<Option<Gain>> {
        let mut first: Option<(f64, TokenRate)> = None;
        let mut before: Option<(f64, TokenRate)> = None;
        let gain = |point: &ScalingPoint| {
            let answer = point.outcome.as_ref().ok()?.point?;
            let (size, rate) = (f64::from(point.accelerators), answer.step.token_rate() * answer.goodput.ratio);
            let (smallest, base) = *first.get_or_insert((size, rate));
            let (times, speedup) = (size / smallest, rate / base);
            // T = T1 (s + (1 - s) / p), so 1 / speedup = s + (1 - s) / p.
            let serial = (times > 1.0 && self.growth == Growth::Strong)
                .then(|| (1.0 / speedup - 1.0 / times) / (1.0 - 1.0 / times));
            let marginal = before.map(|(earlier, slower)| (rate / slower).ln() / (size / earlier).ln());
            before = Some((size, rate));
            Some(Gain { useful_rate: rate, speedup, efficiency: speedup / times, serial, marginal })
        };
        self.points.iter().map(gain).collect()
    }

    /// The parts of a step that kept the largest size from being as efficient as the smallest, the largest part first.
    pub fn serial_parts(&self) -> Vec<SerialPart> {
        let feasible: Vec<_> = self.feasible().collect();
        let ([first, .., last], growth) = (&feasible[..], self.growth) else { return Vec::new() };
        let shrinks = match growth {
            Growth::Strong => f64::from(first.0.accelerators) / f64::from(last.0.accelerators),
            Growth::Weak => 1.0,
        };
        let (small, large) = (parts(first.1), parts(last.1));
        let whole: Seconds = large.iter().map(|(_, time)| *time).sum();
        let mut found: Vec<SerialPart> = small
            .iter()
            .zip(&large)
            .map(|((name, small), (_, large))| {
                let excess = *large - *small * shrinks;
                SerialPart { name, excess, share: excess / whole }
            })
            .filter(|part| part.share > 5e-4)
            .collect();
        found.sort_by(|a, b| b.excess.value().total_cmp(&a.excess.value()));
        found
    }

    /// The size with the shortest run, failures counted; none where nothing works.
    pub fn fastest(&self) -> Option<u32> {
        let best = self.feasible().min_by(|a, b| a.1.effective.value().total_cmp(&b.1.effective.value()));
        best.map(|(point, _)| point.accelerators)
    }

    /// The largest size that can be.
    pub fn largest(&self) -> Option<u32> {
        self.feasible().last().map(|(point, _)| point.accelerators)
    }

    /// The largest size up to which every one brought at least the least marginal gain over the one before.
    pub fn pays_to(&self) -> Option<u32> {
        let gains = self.gains();
        let worked =
            self.points.iter().zip(&gains).filter_map(|(point, gain)| Some((point.accelerators, gain.as_ref()?)));
        worked
            .take_while(|(_, gain)| gain.marginal.is_none_or(|marginal| marginal >= self.least_marginal))
            .last()
            .map(|found| found.0)
    }
}

/// A step's parts, and what failures add to it.
fn parts(point: &Point) -> [(&'static str, Seconds); 14] {
    let (step, iteration) = (&point.step, point.step.iteration());
    [
        ("compute", step.compute),
        ("tensor-parallel messages", step.exposed.tensor),
        ("context-parallel messages", step.exposed.context),
        ("expert-parallel messages", step.exposed.expert),
        ("pipeline messages", step.exposed.pipeline),
        ("data-parallel messages", step.exposed.data),
        ("pipeline bubble", step.bubble),
        ("optimizer", step.optimizer),
        ("launching kernels", step.other.launch),
        ("accumulating gradients", step.other.accumulation),
        ("fixed time of a step", step.other.step),
        ("stragglers", step.other.stragglers),
        ("waiting for data", step.other.data),
        ("failures and checkpoints", iteration / point.goodput.ratio - iteration),
    ]
}

/// What is asked of a curve.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// The scenario, as read.
    pub document: &'a Node,
    /// Accelerators of each size.
    pub accelerators: &'a [u32],
    /// What grows.
    pub growth: Growth,
    /// The least marginal gain that pays.
    pub least_marginal: f64,
}

/// Evaluates a scenario at every size; mistakes go to the sink, and there is a curve only if there are none. A size that
/// cannot be is an answer like any other.
pub fn scaling(curve: &Curve<'_>, catalog: &Catalog, sink: &Sink) -> Option<Scaling> {
    let resolve = |document: &Node| {
        let file = ScenarioFile::read(document, sink);
        Scenario::resolve(&file, catalog, sink)
    };
    let own = resolve(curve.document)?;
    let Some(training) = &own.training else {
        let message = "the scenario trains nothing, so there is no step that could scale";
        sink.push(Diagnostic::new(Code::MissingKey, message).hint("add a [training] table"));
        return None;
    };
    let (batch, size) = (training.job.global_batch, own.cluster.accelerators);
    if curve.growth == Growth::Weak && !training.plan.stages.is_empty() {
        let message = "stages have batches of their own, which do not grow with the accelerators";
        sink.push(Diagnostic::new(Code::Inconsistent, message).hint("leave --weak out, or the stages"));
        return None;
    }
    let mut sizes = curve.accelerators.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 || sizes.len() > MOST_SIZES {
        let message = format!("{} different sizes; a curve has 2 to {MOST_SIZES}", sizes.len());
        sink.push(Diagnostic::new(Code::OutOfRange, message).hint("such as --accelerators 1024,2048,4096"));
        return None;
    }
    let mut points = Vec::new();
    for accelerators in sizes {
        let mut document = curve.document.clone();
        set(&mut document, "cluster.accelerators", i64::from(accelerators));
        let mut global_batch = batch;
        if curve.growth == Growth::Weak {
            let grown = u64::from(batch) * u64::from(accelerators);
            let whole = grown.is_multiple_of(u64::from(size)).then(|| u32::try_from(grown / u64::from(size)).ok());
            let Some(whole) = whole.flatten().filter(|batch| *batch > 0) else {
                let message = format!(
                    "{batch} sequences on {size} accelerators are no whole number of sequences on {accelerators}"
                );
                sink.push(
                    Diagnostic::new(Code::Inconsistent, message).hint("choose sizes that divide, or another batch"),
                );
                return None;
            };
            global_batch = whole;
            set(&mut document, "training.global_batch", i64::from(whole));
        }
        let scenario = resolve(&document)?;
        let outcome = search::evaluate(scenario).map(Box::new);
        points.push(ScalingPoint { accelerators, global_batch, outcome });
    }
    Some(Scaling { title: own.title, growth: curve.growth, points, least_marginal: curve.least_marginal })
}

fn set(document: &mut Node, key: &str, number: i64) {
    let at = document.at_path(key).map(|node| node.at.clone()).unwrap_or_default();
    if let Value::Table(table) = &mut document.value {
        // The key was read before, so that it can be set.
        let written = table.set(key, Node { value: Value::Integer(number), at });
        debug_assert!(written.is_ok());
    }
}
