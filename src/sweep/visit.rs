//! Points of a sweep in any order, for engines that share them out themselves.

use super::Sweep;
use super::row::{Place, Row};
use super::stages::Worker;

/// What a thread keeps from point to point of one sweep. It changes how fast answers come, and no answer.
#[derive(Debug)]
pub struct Visitor(Worker);

impl Sweep<'_> {
    /// A visitor of this sweep, and of no other.
    pub fn visitor(&self) -> Visitor {
        Visitor(Worker::new(self.axes.columns.len()))
    }

    /// Hands on the row of a point, by its number below [`super::Axes::size`]; nothing where the sweep's conditions leave it
    /// out, or where points have a row for every layout.
    pub fn visit(&self, visitor: &mut Visitor, point: u64, take: impl FnOnce(&Row<'_>)) {
        let worker = &mut visitor.0;
        self.axes.at(point, &mut worker.point);
        if !self.axes.layouts && self.wants(&worker.point) {
            worker.single(self, Place { point, row: 0 }, |row| {
                if self.keeps(row) {
                    take(row);
                }
            });
        }
    }
}
