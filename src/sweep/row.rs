//! A row of a sweep.

use super::axes::Axes;
use super::columns::Figure;
use crate::evaluate::{Evaluation, Infeasible};
use crate::parallelism::Layout;
use crate::scenario::Overlap;

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

impl Reason<'_> {
    /// What kind of reason it is, without its numbers.
    pub fn kind(&self) -> String {
        match self {
            Self::Infeasible(Infeasible::NoLayout(_)) => "no layout works".to_owned(),
            Self::Infeasible(Infeasible::Memory { .. }) => "a stage does not fit in memory".to_owned(),
            Self::Infeasible(Infeasible::Layout(_)) => "the layout cannot be spread".to_owned(),
            Self::Infeasible(Infeasible::PartNode { .. }) => "nodes would be part filled".to_owned(),
            Self::Infeasible(Infeasible::Topology(_)) => "the network cannot be built".to_owned(),
            Self::Infeasible(Infeasible::Endless { .. }) => "failures leave no progress".to_owned(),
            Self::Infeasible(_) => "it cannot be built or run".to_owned(),
            Self::Mistake(message) => (*message).to_owned(),
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
}
