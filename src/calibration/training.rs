//! The constants of the step-time form from training runs.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::{Errors, FitError};
use super::least_squares::{CaseErrors, Minimum, minimise};
use super::set_file::{FittedSetConstant, SetFile};
use crate::catalog::training_efficiency::TrainingEfficiency;
use crate::document::Node;
use crate::scenario::StepEfficiency;

/// A measured step, bound to all but the constants.
pub trait MeasuredStep {
    /// Where it was published.
    fn source(&self) -> &str;

    /// The constants of a set for it, where the set has them.
    fn efficiency(&self, set: &TrainingEfficiency) -> Option<StepEfficiency>;

    /// The logarithm of predicted over measured with these constants.
    fn log_error(&self, efficiency: StepEfficiency) -> f64;
}

/// A fit of the constants.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingFit {
    /// The set with fitted values.
    pub set: TrainingEfficiency,
    /// What became of each free constant.
    pub constants: Vec<FittedSetConstant>,
    /// Runs that it was fitted to.
    pub runs: usize,
    /// Sources of those runs.
    pub sources: usize,
    /// How far it is from them.
    pub errors: Errors,
}

impl TrainingFit {
    /// The file of the set, in the words of the priors' file.
    pub fn to_toml(&self, prior: &str, text: &str, document: &Node) -> String {
        let file = SetFile {
            command: "calibrate training",
            name: "Training software, fitted to runs",
            measurements: "training runs",
            constants: &self.constants,
            runs: self.runs,
            sources: self.sources,
            errors: self.errors,
        };
        file.to_toml(prior, text, document)
    }
}

/// Predictions of runs by constants.
struct Runs<'a, R> {
    all: Vec<&'a R>,
    prior: &'a TrainingEfficiency,
    /// Index among all constants of the set, prior value and logarithmic standard deviation of each free one.
    free: Vec<(usize, f64, f64)>,
    /// What the last evaluation bound and found.
    bound: Vec<(StepEfficiency, f64)>,
}

impl<'a, R: MeasuredStep> Runs<'a, R> {
    fn new(runs: Vec<&'a R>, prior: &'a TrainingEfficiency) -> Self {
        let mut set = prior.clone();
        let constants = set.constants_mut();
        let free = constants.iter().enumerate().filter_map(|(index, (_, constant))| {
            let [value, low, high] = constant.range();
            (low > 0.0 && low < high).then(|| (index, value, (high / low).ln() / 2.0))
        });
        let free = free.collect();
        Self { all: runs, prior, free, bound: Vec::new() }
    }

    /// The set at constants in standard deviations from the priors.
    fn set(&self, constants: &[f64]) -> TrainingEfficiency {
        let mut set = self.prior.clone();
        let mut all = set.constants_mut();
        for ((index, value, spread), x) in self.free.iter().zip(constants) {
            all[*index].1.set(value * (spread * x).exp());
        }
        drop(all);
        set
    }
}

impl<R: MeasuredStep> CaseErrors for Runs<'_, R> {
    fn cases(&self) -> usize {
        self.all.len()
    }

    fn at(&mut self, constants: &[f64]) -> Vec<f64> {
        let set = self.set(constants);
        let bound = self.all.iter().filter_map(|run| {
            let efficiency = run.efficiency(&set)?;
            Some((efficiency, run.log_error(efficiency)))
        });
        self.bound = bound.collect();
        self.bound.iter().map(|(_, error)| *error).collect()
    }

    fn moved(&self, constants: &[f64]) -> Vec<f64> {
        let set = self.set(constants);
        let error = |(run, (bound, found)): (&&R, &(StepEfficiency, f64))| {
            // A constant that the run does not use leaves everything as it was.
            let efficiency = run.efficiency(&set).filter(|efficiency| efficiency != bound);
            efficiency.map_or(*found, |efficiency| run.log_error(efficiency))
        };
        self.all.iter().zip(&self.bound).map(error).collect()
    }
}

/// Fits the constants to runs, all that the set has constants for.
///
/// Constants of `prior` with a range are free: the range is one standard deviation of what is known beforehand.
///
/// # Errors
/// When there is nothing to fit, or a run's time is no number with the priors.
pub fn fit_training<R: MeasuredStep>(runs: &[&R], prior: &TrainingEfficiency) -> Result<TrainingFit, FitError> {
    let (problem, minimum) = search(runs, prior, None)?;
    Ok(fit(&problem, &minimum))
}

fn search<'a, R: MeasuredStep>(
    runs: &[&'a R],
    prior: &'a TrainingEfficiency,
    start: Option<&[f64]>,
) -> Result<(Runs<'a, R>, Minimum), FitError> {
    let runs: Vec<&R> = runs.iter().copied().filter(|run| run.efficiency(prior).is_some()).collect();
    let mut problem = Runs::new(runs, prior);
    let start = start.map_or_else(|| vec![0.0; problem.free.len()], <[f64]>::to_vec);
    let minimum = minimise(&mut problem, start)?;
    Ok((problem, minimum))
}

fn fit<R: MeasuredStep>(problem: &Runs<'_, R>, minimum: &Minimum) -> TrainingFit {
    let mut set = problem.set(&minimum.constants);
    let mut all = set.constants_mut();
    let mut constants = Vec::new();
    for (at, (index, _, spread)) in problem.free.iter().enumerate() {
        let (name, constant) = &mut all[*index];
        let [value, ..] = constant.range();
        let narrowed = minimum.errors[at].min(1.0);
        let half = (spread * narrowed).exp();
        let range = [value, value / half, value * half];
        constants.push(FittedSetConstant {
            name: name.clone(),
            range,
            narrowed,
            sources: sources(problem, &minimum.influence[at]),
        });
    }
    drop(all);
    let logarithms: Vec<f64> = problem.bound.iter().map(|(_, error)| *error).collect();
    let sources: BTreeSet<&str> = problem.all.iter().map(|run| run.source()).collect();
    TrainingFit { set, constants, runs: problem.all.len(), sources: sources.len(), errors: Errors::of(&logarithms) }
}

/// Sources by what their runs say of a constant, most first.
fn sources<R: MeasuredStep>(problem: &Runs<'_, R>, influence: &[f64]) -> Vec<(String, f64)> {
    let mut by_source: BTreeMap<&str, f64> = BTreeMap::new();
    for (run, derivative) in problem.all.iter().zip(influence) {
        *by_source.entry(run.source()).or_default() += derivative * derivative;
    }
    let total: f64 = by_source.values().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let mut shares: Vec<(String, f64)> =
        by_source.into_iter().map(|(source, part)| (source.to_owned(), part / total)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// The constants without each group of runs, by group: fitted to the others, from the same priors. Groups that `kept`
/// names stay in every fit.
///
/// # Errors
/// As [`fit_training`].
pub fn leave_out<R: MeasuredStep>(
    runs: &[&R],
    prior: &TrainingEfficiency,
    group: impl Fn(&R) -> String,
    kept: impl Fn(&R) -> bool,
) -> Result<BTreeMap<String, TrainingEfficiency>, FitError> {
    let (_, whole) = search(runs, prior, None)?;
    let mut groups: Vec<String> = runs.iter().filter(|run| !kept(run)).map(|run| group(run)).collect();
    groups.sort();
    groups.dedup();
    let mut sets = BTreeMap::new();
    for name in groups {
        let others: Vec<&R> = runs.iter().copied().filter(|run| kept(run) || group(run) != name).collect();
        let set = if others.is_empty() {
            prior.clone()
        } else {
            let (problem, minimum) = search(&others, prior, Some(&whole.constants))?;
            problem.set(&minimum.constants)
        };
        sets.insert(name, set);
    }
    Ok(sets)
}
