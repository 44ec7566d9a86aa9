//! The constants of collectives fitted to nccl-tests runs of a planner's own node and fabric.

use super::fit::{Errors, Fit, FitError, Prior, fit};
use super::nccl_log::Point;
use crate::catalog::{CollectiveEfficiency, ConstantPath, Kind, RangedConstant, Section};
use crate::collectives::choose;
use crate::study::{Call, Placed};
use crate::units::Ranged;

/// Share of a prior's deviation that must be gone before runs have said something about a constant.
const DETERMINED: f64 = 0.8;
/// Deviations of its prior below which a constant that they say little about is left where it is.
const MOVED: f64 = 0.05;

/// Sizes of one run: the call that they belong to (its payload is each point's), and where its ranks are.
#[derive(Clone, Debug)]
pub struct LoggedRun<'a> {
    /// What it is called, such as the log's file.
    pub name: String,
    /// The call.
    pub call: Call<'a>,
    /// Where its ranks are.
    pub placed: Placed,
    /// What was measured.
    pub points: Vec<Point>,
}

/// A constant that the runs determine, or that goes with those that they do.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedConstant {
    /// Where it stands.
    pub path: ConstantPath,
    /// What it is.
    pub kind: Kind,
    /// Its value in the catalog.
    pub before: f64,
    /// Its value and what uncertainty the runs leave of it, a deviation each way.
    pub after: Ranged<f64>,
}

/// A run met by constants that were fitted without it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// The run, or the part of it, that was left out.
    pub name: String,
    /// By the catalog's constants.
    pub before: Errors,
    /// By those fitted to the rest.
    pub after: Errors,
}

/// What the runs say.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveCalibration {
    /// The constants that move, in the order of the catalog's sections.
    pub constants: Vec<FittedConstant>,
    /// How many others could have been moved, and stay.
    pub unmoved: usize,
    /// How far the catalog's constants are from all runs.
    pub before: Errors,
    /// How far the fitted ones are from the runs that they were fitted to.
    pub after: Errors,
    /// Each run with constants fitted to the others; of a single run, every other size.
    pub held_out: Vec<HeldOut>,
}

/// A point of a run.
#[derive(Clone, Copy)]
struct Measured<'a, 'b> {
    run: &'a LoggedRun<'b>,
    point: Point,
}

/// ln(model / measured) of points with a set of constants; `None` where no algorithm serves a run.
fn errors_of(points: &[Measured<'_, '_>], constants: &CollectiveEfficiency) -> Option<Vec<f64>> {
    let error = |measured: &Measured<'_, '_>| {
        let (call, point) = (&measured.run.call, measured.point);
        let wires = call.wires(constants);
        let group = &measured.run.placed.group;
        let choice = choose(call.kind, point.payload, group, &wires, call.gpus_per_process, call.allowed)?;
        Some((choice.time.time / point.time).ln())
    };
    points.iter().map(error).collect()
}

fn points_of<'a, 'b>(runs: &'a [LoggedRun<'b>]) -> Vec<Measured<'a, 'b>> {
    runs.iter().flat_map(|run| run.points.iter().map(move |&point| Measured { run, point })).collect()
}

/// The constants that runs depend on and that have a range, and what is known of each: the set's value, and how far
/// clusters may be from it by what was known before any log. The set's own ranges say how well logs of many clusters
/// determine the value, not how far one cluster may be from it.
fn open_constants(
    runs: &[LoggedRun<'_>],
    constants: &CollectiveEfficiency,
    before: &CollectiveEfficiency,
) -> Vec<(RangedConstant, Prior)> {
    let mut sections = vec![Section::Library];
    for run in runs {
        let (links, class) = (&run.call.node.scale_up.kind, &run.call.fabric.entry.class);
        sections.extend([Section::ScaleUp(links.clone()), Section::Nvls(links.clone())]);
        if run.placed.group.domains() > 1 {
            sections.push(Section::Network(class.clone()));
        }
        if run.call.communication.sharp {
            sections.push(Section::Sharp);
        }
        if run.call.communication.pat {
            sections.push(Section::Pat);
        }
    }
    sections.sort();
    sections.dedup();
    let prior = |constant: RangedConstant| {
        let known = before.constants(&constant.path.section);
        let range = known.into_iter().find(|other| other.path == constant.path).map_or(constant.range, |one| one.range);
        let Ranged { value, low, high } = range;
        let prior = Prior { value, low, high, share: constant.kind == Kind::Fraction };
        prior
            .is_open()
            .then(|| (prior.around(constant.range.value), constant))
            .map(|(prior, constant)| (constant, prior))
    };
    sections.iter().flat_map(|section| constants.constants(section)).filter_map(prior).collect()
}

/// The set with constants so many deviations from their priors.
fn moved(
    constants: &CollectiveEfficiency,
    open: &[(RangedConstant, Prior)],
    deviations: &[f64],
) -> Option<CollectiveEfficiency> {
    let mut set = constants.clone();
    for ((constant, prior), deviations) in open.iter().zip(deviations) {
        set.change(&constant.path, prior.at(*deviations))?;
    }
    Some(set)
}

fn fitted(
    points: &[Measured<'_, '_>],
    constants: &CollectiveEfficiency,
    open: &[(RangedConstant, Prior)],
) -> Result<Fit, FitError> {
    fit(open.len(), |deviations| errors_of(points, &moved(constants, open, deviations)?))
}

/// Fits the constants of the runs' links, network and library to them, from those of a set; `before` says how far each may
/// be from it.
///
/// # Errors
/// Where no algorithm serves one of the runs, or there is nothing to fit.
pub fn calibrate_collectives(
    runs: &[LoggedRun<'_>],
    constants: &CollectiveEfficiency,
    before: &CollectiveEfficiency,
) -> Result<CollectiveCalibration, FitError> {
    let open = open_constants(runs, constants, before);
    let points = points_of(runs);
    let mut whole = fitted(&points, constants, &open)?;
    let of = |points: &[Measured<'_, '_>], constants: &CollectiveEfficiency| {
        errors_of(points, constants).map(|errors| Errors::of(&errors)).ok_or(FitError::NotFinite)
    };
    let at = |moves: &[f64]| moved(constants, &open, moves).ok_or(FitError::NotFinite);
    let mut moving = Vec::new();
    for (index, (constant, prior)) in open.iter().enumerate() {
        let (moves, left) = (whole.moved[index], whole.left[index]);
        if left < DETERMINED || moves.abs() > MOVED {
            moving.push(FittedConstant {
                path: constant.path.clone(),
                kind: constant.kind,
                before: constant.range.value,
                after: Ranged { value: prior.at(moves), low: prior.at(moves - left), high: prior.at(moves + left) },
            });
        } else {
            whole.moved[index] = 0.0;
        }
    }
    let mut held_out = Vec::new();
    for (name, left_out, rest) in folds(runs, &points) {
        let without = at(&fitted(&rest, constants, &open)?.moved)?;
        held_out.push(HeldOut { name, before: of(&left_out, constants)?, after: of(&left_out, &without)? });
    }
    Ok(CollectiveCalibration {
        unmoved: open.len() - moving.len(),
        constants: moving,
        before: of(&points, constants)?,
        after: of(&points, &at(&whole.moved)?)?,
        held_out,
    })
}

/// What is left out in turn, with its name and the rest.
type Fold<'a, 'b> = (String, Vec<Measured<'a, 'b>>, Vec<Measured<'a, 'b>>);

/// Each run against the others; a single run by every other size, where it has two.
fn folds<'a, 'b>(runs: &'a [LoggedRun<'b>], points: &[Measured<'a, 'b>]) -> Vec<Fold<'a, 'b>> {
    let split = |name: &str, out: &dyn Fn(usize, &Measured<'a, 'b>) -> bool| {
        let (mut left_out, mut rest) = (Vec::new(), Vec::new());
        for (index, point) in points.iter().enumerate() {
            if out(index, point) { left_out.push(*point) } else { rest.push(*point) }
        }
        (name.to_owned(), left_out, rest)
    };
    match runs {
        [run] if run.points.len() < 2 => Vec::new(),
        [_] => vec![split("every other size", &|index, _| index % 2 == 1)],
        _ => runs.iter().map(|run| split(&run.name, &|_, point| std::ptr::eq(point.run, run))).collect(),
    }
}
