//! The constants of collectives as a whole set from a table of runs of many sources.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::fit::{Fit, FitError, Prior, fit_from};
use super::influence::shares;
use super::set_file::{FittedSetConstant, SetFit};
use crate::catalog::{CollectiveEfficiency, ConstantPath, Kind, Section};
use crate::collectives::Wires;
use crate::units::Ranged;

/// Share of its prior's deviation that must be gone before runs have said something about a constant; one of which they
/// have said less stays as it was.
const DETERMINED: f64 = 0.8;

/// A measured collective, bound to all but the constants.
pub trait MeasuredCall {
    /// Where it was published.
    fn source(&self) -> &str;

    /// The kinds of link and classes of network whose constants its time hangs on.
    fn sections(&self) -> BTreeSet<Section>;

    /// The wires that it ran on with the constants of a set, where the set has them.
    fn wires(&self, set: &CollectiveEfficiency) -> Option<Wires>;

    /// The logarithm of predicted over measured on those wires; `None` where no algorithm serves the call.
    fn log_error(&self, wires: &Wires) -> Option<f64>;
}

/// The constants that runs hang on and that have a range, and what is known of each.
fn open<R: MeasuredCall>(runs: &[&R], prior: &CollectiveEfficiency) -> Vec<(ConstantPath, Prior)> {
    let mut sections: BTreeSet<Section> = runs.iter().flat_map(|run| run.sections()).collect();
    sections.insert(Section::Library);
    let constants = sections.iter().flat_map(|section| prior.constants(section)).map(|constant| {
        let Ranged { value, low, high } = constant.range;
        (constant.path, Prior { value, low, high, share: constant.kind == Kind::Fraction })
    });
    constants.filter(|(_, prior)| prior.is_open()).collect()
}

/// The set with constants so many deviations from their priors.
fn moved(
    prior: &CollectiveEfficiency,
    open: &[(ConstantPath, Prior)],
    deviations: &[f64],
) -> Option<CollectiveEfficiency> {
    let mut set = prior.clone();
    for ((path, prior), deviations) in open.iter().zip(deviations) {
        set.change(path, prior.at(*deviations))?;
    }
    Some(set)
}

fn search<R: MeasuredCall>(
    runs: &[&R],
    prior: &CollectiveEfficiency,
    open: &[(ConstantPath, Prior)],
    start: &[f64],
) -> Result<Fit, FitError> {
    // A constant that a run does not use leaves its wires as they were, and its time with them.
    let last: RefCell<Vec<Option<(Wires, f64)>>> = RefCell::new(vec![None; runs.len()]);
    fit_from(start, |deviations| {
        let set = moved(prior, open, deviations)?;
        let mut last = last.borrow_mut();
        let errors = runs.iter().zip(last.iter_mut()).map(|(run, last)| {
            let wires = run.wires(&set)?;
            if let Some((before, error)) = last
                && *before == wires
            {
                return Some(*error);
            }
            let error = run.log_error(&wires)?;
            *last = Some((wires, error));
            Some(error)
        });
        errors.collect()
    })
}

/// Fits the set to runs.
///
/// Constants of `prior` that the runs hang on and that have a range are free: the range is one standard deviation of what
/// is known beforehand. All others stay.
///
/// # Errors
/// When there is nothing to fit, or no algorithm serves a run.
pub fn fit_collective_set<R: MeasuredCall>(
    runs: &[&R],
    prior: &CollectiveEfficiency,
) -> Result<SetFit<CollectiveEfficiency>, FitError> {
    let open = open(runs, prior);
    let found = search(runs, prior, &open, &vec![0.0; open.len()])?;
    let mut set = prior.clone();
    let mut constants = Vec::new();
    for (index, (path, prior)) in open.iter().enumerate() {
        let (moves, left) = (found.moved[index], found.left[index]);
        if left > DETERMINED {
            continue;
        }
        let range = [0.0, -left, left].map(|deviations| prior.at(moves + deviations));
        set.set_range(path, Ranged { value: range[0], low: range[1], high: range[2] }).ok_or(FitError::NotFinite)?;
        constants.push(FittedSetConstant {
            name: path.to_string(),
            range,
            narrowed: left,
            sources: shares(runs.iter().map(|run| run.source()).zip(found.influence[index].iter().copied())),
        });
    }
    let errors: Option<Vec<f64>> = runs.iter().map(|run| run.log_error(&run.wires(&set)?)).collect();
    let errors = errors.ok_or(FitError::NotFinite)?;
    Ok(SetFit::new(set, constants, runs.iter().map(|run| run.source()), &errors))
}

/// The set without each source of runs, by source: fitted to the others from the same priors. Of a source that alone
/// measures a kind of link or a class of network, the section that nothing else measures.
pub fn collective_sets_without_sources<R: MeasuredCall>(
    runs: &[&R],
    prior: &CollectiveEfficiency,
) -> BTreeMap<String, Result<CollectiveEfficiency, Without>> {
    let sources: BTreeSet<&str> = runs.iter().map(|run| run.source()).collect();
    // What all runs say is near what all but one source do.
    let all = open(runs, prior);
    let whole = search(runs, prior, &all, &vec![0.0; all.len()]);
    let without = |source: &str| {
        let (own, rest): (Vec<&R>, Vec<&R>) = runs.iter().partition(|run| run.source() == source);
        let needed: BTreeSet<Section> =
            own.iter().flat_map(|run| run.sections()).filter(Section::is_hardware).collect();
        let elsewhere: BTreeSet<Section> = rest.iter().flat_map(|run| run.sections()).collect();
        if let Some(alone) = needed.difference(&elsewhere).next() {
            return Err(Without::Alone(alone.clone()));
        }
        let open = open(&rest, prior);
        let at = |(path, _): &(ConstantPath, Prior)| {
            let index = all.iter().position(|(other, _)| other == path)?;
            whole.as_ref().ok().map(|fit| fit.moved[index])
        };
        let start: Vec<f64> = open.iter().map(|constant| at(constant).unwrap_or(0.0)).collect();
        let found = search(&rest, prior, &open, &start).map_err(Without::Unfitted)?;
        moved(prior, &open, &found.moved).ok_or(Without::Unfitted(FitError::NotFinite))
    };
    sources.into_iter().map(|source| (source.to_owned(), without(source))).collect()
}

/// Why there is no set without a source.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Without {
    /// Nothing else measures this.
    #[error("no other source measures {0}")]
    Alone(Section),
    /// The others cannot be fitted to.
    #[error(transparent)]
    Unfitted(FitError),
}
