//! A row of a sweep.

use super::axes::Axes;
use super::figure::Figure;
use crate::evaluate::{Evaluation, Infeasible, MissedLimit};
use crate::parallelism::Layout;
use crate::scenario::Overlap;
use crate::search::Deployment;

/// Where a row stands: points in order, and rows of a point in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The point.
    pub point: u64,
    /// The row among those of the point: the row of its space of layouts, and the layout in it.
    pub row: u64,
}

/// Why a row has no figures.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// It cannot be.
    Infeasible(&'a Infeasible),
    /// Its values contradict each other, or lack something of the catalog's.
    Mistake(&'a str),
}

impl<'a> Reason<'a> {
    /// What kind of reason it is, without its numbers.
    pub const fn kind(&self) -> &'a str {
        match self {
            Self::Infeasible(infeasible) => infeasible.kind(),
            Self::Mistake(message) => message,
        }
    }
}

impl std::fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Infeasible(infeasible) => infeasible.fmt(f),
            Self::Mistake(message) => f.write_str(message),
        }
    }
}

/// A row, while it lasts.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Where it stands.
    pub place: Place,
    /// The axes of the sweep.
    pub axes: &'a Axes,
    /// The number of each axis's value.
    pub point: &'a [u32],
    /// The layout, where all are taken.
    pub layout: Option<(Layout, Overlap)>,
    /// The answer.
    pub outcome: Result<&'a Evaluation, Reason<'a>>,
    /// The figures of the sweep.
    pub figures: &'a [Figure],
}

impl Row<'_> {
    /// A figure of the row, by its place.
    pub fn figure(&self, figure: usize) -> Option<f64> {
        self.outcome.ok().and_then(|evaluation| (self.figures[figure].extract)(evaluation))
    }

    /// The first limit of a latency that it misses.
    pub fn missed(&self) -> Option<MissedLimit> {
        self.outcome.ok()?.missed_limits().next()
    }

    /// How it serves.
    pub fn served(&self) -> Option<Deployment> {
        self.outcome.ok()?.scenario.serving.as_ref().map(Deployment::given)
    }

    /// Why it has no figures, or misses its limits.
    pub fn reason(&self) -> Option<String> {
        match &self.outcome {
            Err(reason) => Some(reason.to_string()),
            Ok(_) => self.missed().map(|missed| missed.to_string()),
        }
    }
}
