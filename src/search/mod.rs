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
    fn add(&mut self, result: &Result<Point, Infeasible>) {
        match result {
            Ok(point) => {
                self.feasible += 1;
                faster(&mut self.fastest, point);
            }
            Err(Infeasible::Memory { .. }) => self.too_large += 1,
            Err(_) => self.indivisible += 1,
        }
    }

    fn and(mut self, other: &Self) -> Self {
        if let Some(point) = &other.fastest {
            faster(&mut self.fastest, point);
        }
        self.feasible += other.feasible;
        self.too_large += other.too_large;
        self.indivisible += other.indivisible;
        self
    }
}

/// Keeps the point of less step time; the first of equals, so that threads do not change the answer.
fn faster(kept: &mut Option<Point>, other: &Point) {
    if kept.as_ref().is_none_or(|kept| other.step.iteration() < kept.step.iteration()) {
        *kept = Some(*other);
    }
}

/// Evaluates all layouts, on all cores.
pub fn fastest(prepared: &Prepared, layouts: &[Layout]) -> Outcome {
    layouts
        .par_chunks(256)
        .map(|chunk| {
            let mut outcome = Outcome::default();
            for layout in chunk {
                outcome.add(&prepared.point(layout));
            }
            outcome
        })
        .reduce(Outcome::default, |first, second| first.and(&second))
}
