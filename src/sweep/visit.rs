//! Points of a sweep in any order, for engines that share them out themselves.

use std::ops::Range;

use super::Sweep;
use super::row::{Place, Row};
use super::run::Prelude;
use super::stages::Worker;

/// What a thread keeps from point to point of one sweep. It changes how fast answers come, and no answer.
#[derive(Debug)]
pub struct Visitor {
    worker: Worker,
    /// The point whose layouts were taken last.
    space: Option<Space>,
}

/// The layouts of a point.
#[derive(Debug)]
struct Space {
    point: u64,
    base: Prelude,
    /// Rows of the sweep up to each row of the space and with it.
    ends: Vec<u64>,
}

impl Sweep<'_> {
    /// A visitor of this sweep, and of no other.
    pub fn visitor(&self) -> Visitor {
        Visitor { worker: Worker::new(self.axes.columns.len()), space: None }
    }

    /// Hands on the row of a point, by its number below [`super::Axes::size`]; nothing where the sweep's conditions leave it
    /// out, or where points have a row for every layout.
    pub fn visit(&self, visitor: &mut Visitor, point: u64, take: impl FnOnce(&Row<'_>)) {
        let worker = &mut visitor.worker;
        self.axes.at(point, &mut worker.point);
        if !self.axes.layouts && self.wants(&worker.point) {
            worker.single(self, Place { point, row: 0 }, |row| {
                if self.keeps(row) {
                    take(row);
                }
            });
        }
    }

    /// Hands on some rows of a point that has one for every layout, each with its number among those of the point, as
    /// [`Sweep::ends`] counts them; none of those that the sweep's conditions leave out.
    pub fn visit_layouts(
        &self,
        visitor: &mut Visitor,
        point: u64,
        rows: Range<u64>,
        mut take: impl FnMut(u64, &Row<'_>),
    ) {
        if !self.axes.layouts || rows.is_empty() {
            return;
        }
        let Visitor { worker, space } = visitor;
        if space.as_ref().is_none_or(|space| space.point != point) {
            let base = self.prelude(worker, point);
            *space = base.map(|base| Space { point, ends: base.ends(), base });
        }
        let Some(Space { base, ends, .. }) = space else { return };
        let from = ends.partition_point(|end| *end <= rows.start);
        let to = (ends.partition_point(|end| *end < rows.end) + 1).min(ends.len());
        // A row of the sweep is numbered by the row of the space, and within it.
        let before = |of: usize| of.checked_sub(1).map_or(0, |last| ends[last]);
        self.layouts(point, base, from, to, |row| {
            let of = usize::try_from(row.place.row >> 32).unwrap_or(usize::MAX);
            let number = before(of) + (row.place.row & u64::from(u32::MAX));
            if rows.contains(&number) && self.keeps(row) {
                take(number, row);
            }
        });
    }
}
