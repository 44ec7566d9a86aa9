//! Many evaluations: the best layout of a job.

use rayon::prelude::*;

use crate::evaluate::{Infeasible, Point, Prepared};
use crate::parallelism::Layout;

/// What came of evaluating many layouts.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The fastest that fits; of equals, the first.
    pub fastest: Option<Point>,
    /// Layouts that fit.
    pub feasible: usize,
    /// Layouts that do not fit in memory.
    pub too_large: usize,
    /// Layouts that cannot be spread.
    pub indivisible: usize,
}

impl Outcome {
    fn with(mut self, result: Result<Point, Infeasible>) -> Self {
        match result {
            Ok(point) => {
                self.feasible += 1;
                self.fastest = faster(self.fastest, Some(point));
            }
            Err(Infeasible::Memory { .. }) => self.too_large += 1,
            Err(_) => self.indivisible += 1,
        }
        self
    }

    fn and(self, other: Self) -> Self {
        Self {
            fastest: faster(self.fastest, other.fastest),
            feasible: self.feasible + other.feasible,
            too_large: self.too_large + other.too_large,
            indivisible: self.indivisible + other.indivisible,
        }
    }
}

/// The point of less step time; the first of equals, so that threads do not change the answer.
fn faster(first: Option<Point>, second: Option<Point>) -> Option<Point> {
    match (first, second) {
        (Some(a), Some(b)) if b.step.iteration() < a.step.iteration() => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Evaluates all layouts, on all cores.
pub fn fastest(prepared: &Prepared, layouts: &[Layout]) -> Outcome {
    layouts
        .par_chunks(256)
        .map(|chunk| chunk.iter().fold(Outcome::default(), |outcome, layout| outcome.with(prepared.point(layout))))
        .reduce(Outcome::default, Outcome::and)
}
