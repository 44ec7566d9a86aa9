//! The constants of a form from measured runs: of training steps, of serving engines.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::{FitError, Prior};
use super::influence::shares;
use super::least_squares::{CaseErrors, Minimum, minimise, robust};
use super::set_file::{FittedSetConstant, SetFit};
use crate::catalog::ConstantSet;

/// How far a figure of a run is from what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The logarithm of predicted over measured.
    pub error: f64,
    /// How far figures of its kind scatter, as a logarithm: errors up to about this count by their square.
    pub scatter: f64,
    /// How many independent figures it counts for: errors of one campaign go together.
    pub weight: f64,
}

impl Deviation {
    fn residual(&self) -> f64 {
        self.weight.sqrt() * robust(self.error / self.scatter)
    }
}

/// A measured run, bound to all but the constants.
pub trait MeasuredRun {
    /// The set that its constants are of.
    type Set: ConstantSet;
    /// The constants of a set that it uses.
    type Bound: PartialEq;

    /// Where it was published.
    fn source(&self) -> &str;

    /// The constants of a set for it, where the set has them.
    fn bind(&self, set: &Self::Set) -> Option<Self::Bound>;

    /// How far each of its figures is met with these constants.
    fn deviations(&self, bound: &Self::Bound) -> Vec<Deviation>;
}

/// Predictions of runs by constants.
struct Runs<'a, R: MeasuredRun> {
    all: Vec<&'a R>,
    prior: &'a R::Set,
    /// Index among all constants of the set, and what is known of it beforehand, of each free one.
    free: Vec<(usize, Prior)>,
    /// What the last evaluation bound and found.
    bound: Vec<(R::Bound, Vec<Deviation>)>,
}

impl<'a, R: MeasuredRun> Runs<'a, R> {
    fn new(runs: Vec<&'a R>, prior: &'a R::Set) -> Self {
        let mut set = prior.clone();
        let constants = set.constants_mut();
        let free = constants.iter().enumerate().filter_map(|(index, (_, constant))| {
            let [value, low, high] = constant.range();
            let prior = Prior { value, low, high, share: constant.is_share() };
            (low > 0.0 && prior.is_open()).then_some((index, prior))
        });
        let free = free.collect();
        Self { all: runs, prior, free, bound: Vec::new() }
    }

    /// The set at constants in standard deviations from the priors.
    fn set(&self, constants: &[f64]) -> R::Set {
        let mut set = self.prior.clone();
        let mut all = set.constants_mut();
        for ((index, prior), x) in self.free.iter().zip(constants) {
            all[*index].1.set(prior.at(*x));
        }
        drop(all);
        set
    }

    /// Where each figure was published.
    fn sources_of_figures(&self) -> impl Iterator<Item = &str> {
        self.all.iter().zip(&self.bound).flat_map(|(run, (_, found))| found.iter().map(|_| run.source()))
    }

    fn deviations(&self) -> impl Iterator<Item = &Deviation> {
        self.bound.iter().flat_map(|(_, deviations)| deviations)
    }
}

impl<R: MeasuredRun> CaseErrors for Runs<'_, R> {
    fn at(&mut self, constants: &[f64]) -> Vec<f64> {
        let set = self.set(constants);
        let bound = self.all.iter().filter_map(|run| {
            let bound = run.bind(&set)?;
            let deviations = run.deviations(&bound);
            Some((bound, deviations))
        });
        self.bound = bound.collect();
        self.bound.iter().flat_map(|(_, deviations)| deviations.iter().map(Deviation::residual)).collect()
    }

    fn moved(&self, constants: &[f64]) -> Vec<f64> {
        let set = self.set(constants);
        let mut residuals = Vec::new();
        for (run, (bound, found)) in self.all.iter().zip(&self.bound) {
            // A constant that the run does not use leaves everything as it was.
            match run.bind(&set).filter(|moved| moved != bound) {
                Some(moved) => residuals.extend(run.deviations(&moved).iter().map(Deviation::residual)),
                None => residuals.extend(found.iter().map(Deviation::residual)),
            }
        }
        residuals
    }
}

/// Fits the constants to runs, all that the set has constants for.
///
/// Constants of `prior` with a range are free: the range is one standard deviation of what is known beforehand.
///
/// # Errors
/// When there is nothing to fit, or a run's time is no number with the priors.
pub fn fit_set<R: MeasuredRun>(runs: &[&R], prior: &R::Set) -> Result<SetFit<R::Set>, FitError> {
    let (problem, minimum) = search(runs, prior, None)?;
    Ok(fitted(&problem, &minimum))
}

fn search<'a, R: MeasuredRun>(
    runs: &[&'a R],
    prior: &'a R::Set,
    start: Option<&[f64]>,
) -> Result<(Runs<'a, R>, Minimum), FitError> {
    let runs: Vec<&R> = runs.iter().copied().filter(|run| run.bind(prior).is_some()).collect();
    let mut problem = Runs::new(runs, prior);
    let start = start.map_or_else(|| vec![0.0; problem.free.len()], <[f64]>::to_vec);
    let minimum = minimise(&mut problem, start)?;
    Ok((problem, minimum))
}

fn fitted<R: MeasuredRun>(problem: &Runs<'_, R>, minimum: &Minimum) -> SetFit<R::Set> {
    let mut set = problem.set(&minimum.constants);
    let mut constants = Vec::new();
    for (at, (index, prior)) in problem.free.iter().enumerate() {
        let narrowed = minimum.errors[at].min(1.0);
        let x = minimum.constants[at];
        constants.push(FittedSetConstant {
            name: set.constants_mut()[*index].0.clone(),
            range: [x, x - narrowed, x + narrowed].map(|x| prior.at(x)),
            narrowed,
            sources: shares(problem.sources_of_figures().zip(minimum.influence[at].iter().copied())),
        });
    }
    let logarithms: Vec<f64> = problem.deviations().map(|deviation| deviation.error).collect();
    SetFit::new(set, constants, problem.all.iter().map(|run| run.source()), &logarithms)
}

/// The constants without each of some groups of runs, by group: fitted to the others, from the same priors. Runs that
/// `kept` says yes of stay in every fit.
///
/// # Errors
/// As [`fit_set`].
pub fn leave_out<R: MeasuredRun>(
    runs: &[&R],
    prior: &R::Set,
    groups: &BTreeSet<String>,
    group: impl Fn(&R) -> String,
    kept: impl Fn(&R) -> bool,
) -> Result<BTreeMap<String, R::Set>, FitError> {
    let (_, whole) = search(runs, prior, None)?;
    let mut sets = BTreeMap::new();
    for name in groups {
        let others: Vec<&R> = runs.iter().copied().filter(|run| kept(run) || group(run) != *name).collect();
        let set = if others.is_empty() {
            prior.clone()
        } else {
            let (problem, minimum) = search(&others, prior, Some(&whole.constants))?;
            problem.set(&minimum.constants)
        };
        sets.insert(name.clone(), set);
    }
    Ok(sets)
}
