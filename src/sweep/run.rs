//! Going through a sweep: points in order, on all cores.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::Sweep;
use super::row::{Place, Reason, Row};
use super::stages::{Base, Open, Worker};
use crate::evaluate::Evaluation;
use crate::parallelism::Layout;
use crate::scenario::{LayoutSearch, Overlap};

/// Points that a thread takes at a time.
const BLOCK: u64 = 256;
/// Rows of a space of layouts that a thread takes at a time.
const ROWS: usize = 8;
/// Pieces of work that are handed out together for each thread; their results wait until they can be put in order.
const PIECES: usize = 16;

/// A part of a sweep: every so manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from zero.
    pub index: u64,
    /// Of how many.
    pub count: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Its part of so many.
    fn of(self, size: u64) -> (u64, u64) {
        let bound = |index: u64| {
            let bound = u128::from(size) * u128::from(index) / u128::from(self.count);
            u64::try_from(bound).unwrap_or(size)
        };
        (bound(self.index), bound(self.index + 1))
    }
}

/// Where a part of a sweep begins: a point, and of its layouts a row of their space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The point.
    pub point: u64,
    /// The row.
    pub row: u64,
}

/// How large a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Combinations of the axes' values.
    pub points: u64,
    /// Rows, with every layout of every point.
    pub rows: u64,
}

/// What a thread is given.
enum Piece<'a> {
    Points(u64, u64),
    Layouts { point: u64, base: &'a Prelude, from: usize, to: usize },
}

/// A point whose layouts are to be taken.
#[derive(Debug)]
pub(super) struct Prelude {
    values: Vec<u32>,
    /// None where no layout is looked at.
    pub(super) rows: Vec<Layout>,
    open: Result<(Box<Open>, LayoutSearch), String>,
}

/// Counts as sums up to each and with it.
fn running(mut counts: Vec<u64>) -> Vec<u64> {
    let mut before = 0;
    for count in &mut counts {
        before += *count;
        *count = before;
    }
    counts
}

impl Prelude {
    /// Rows of the sweep up to each row of the space and with it.
    pub(super) fn ends(&self) -> Vec<u64> {
        running(self.counts())
    }

    /// Rows of the sweep in each row of the space; one where no layout is looked at.
    fn counts(&self) -> Vec<u64> {
        match &self.open {
            Ok((open, wanted)) => self.rows.par_iter().map(|row| open.variants.count(wanted, *row)).collect(),
            Err(_) => vec![1],
        }
    }
}

impl Sweep<'_> {
    /// Counts points and rows.
    pub fn size(&self) -> Size {
        let points = self.axes.size();
        let end = Cursor { point: points, row: 0 };
        Size { points, rows: self.before(Shard::WHOLE, end) }
    }

    /// Counts the rows of a part of the sweep before a place, those too that conditions leave out where points have one row.
    pub fn before(&self, shard: Shard, place: Cursor) -> u64 {
        if !self.axes.layouts {
            return place.point.saturating_sub(shard.of(self.axes.size()).0);
        }
        let pool = Pool::new(self);
        let of_point = |point: u64| {
            let Some(Prelude { open, rows, .. }) = pool.with(|worker| self.prelude(worker, point)) else { return 0 };
            // A point without layouts is a row of the first shard's.
            let (first, end) = shard.of(rows.len().max(1) as u64);
            let end = if point == place.point { end.min(place.row) } else { end };
            let narrow = |row: u64| usize::try_from(row).unwrap_or(rows.len());
            match (open, rows.get(narrow(first)..narrow(end.max(first)))) {
                (Ok((open, wanted)), Some(rows)) => rows.par_iter().map(|row| open.variants.count(&wanted, *row)).sum(),
                (Ok(_), None) => 0,
                (Err(_), _) => end.saturating_sub(first),
            }
        };
        (0..self.axes.size().min(place.point.saturating_add(u64::from(place.row > 0))))
            .into_par_iter()
            .map(of_point)
            .sum()
    }

    /// Of points that have a row for each layout, how many rows there are up to each one and with it.
    pub fn ends(&self) -> Vec<u64> {
        let pool = Pool::new(self);
        let rows = |point| pool.with(|worker| self.prelude(worker, point)).map_or(0, |base| base.counts().iter().sum());
        running((0..self.axes.size()).into_par_iter().map(rows).collect())
    }

    /// Goes through a part of the sweep from a place on: `take` sees each row on some thread, with what `make` made for
    /// its piece of work; `drain` gets these in order, each with the place after it.
    ///
    /// The pieces depend on the sweep only, never on threads.
    pub fn run<P: Send>(
        &self,
        shard: Shard,
        begin: Cursor,
        make: impl Fn() -> P + Sync,
        take: impl Fn(&mut P, &Row<'_>) + Sync,
        mut drain: impl FnMut(Cursor, P) -> ControlFlow<()>,
    ) {
        let pool = Pool::new(self);
        let window = rayon::current_num_threads() * PIECES;
        let mut drain_all = |parts: Vec<(Cursor, P)>| parts.into_iter().try_for_each(|(next, part)| drain(next, part));
        if self.axes.layouts {
            let (mut point, mut row) = (begin.point, begin.row);
            while point < self.axes.size() {
                let many = (self.axes.size() - point).min(window as u64);
                let preludes: Vec<(u64, Option<Prelude>)> = (point..point + many)
                    .into_par_iter()
                    .map(|point| (point, pool.with(|worker| self.prelude(worker, point))))
                    .collect();
                let mut pieces = Vec::new();
                for (at, base) in &preludes {
                    let Some(base) = base else { continue };
                    // A point without layouts is a row of the first shard's.
                    let rows = base.rows.len().max(1);
                    let (from, to) = shard.of(rows as u64);
                    let begin = if *at == point { row.max(from) } else { from };
                    let narrow = |row: u64| usize::try_from(row).unwrap_or(rows);
                    let (mut from, to) = (narrow(begin), narrow(to));
                    while from < to {
                        let end = (from + ROWS).min(to);
                        pieces.push(Piece::Layouts { point: *at, base, from, to: end });
                        from = end;
                    }
                }
                for pieces in pieces.chunks(window) {
                    let done = pieces.par_iter().map(|piece| self.piece(&pool, piece, &make, &take)).collect();
                    if drain_all(done).is_break() {
                        return;
                    }
                }
                point += many;
                row = 0;
            }
            return;
        }
        let (first, end) = shard.of(self.axes.size());
        let mut point = begin.point.max(first);
        while point < end {
            let pieces: Vec<Piece<'_>> = (0..window as u64)
                .map(|index| (point + index * BLOCK, (point + (index + 1) * BLOCK).min(end)))
                .take_while(|(from, _)| *from < end)
                .map(|(from, to)| Piece::Points(from, to))
                .collect();
            let done = pieces.par_iter().map(|piece| self.piece(&pool, piece, &make, &take)).collect();
            if drain_all(done).is_break() {
                return;
            }
            point = (point + window as u64 * BLOCK).min(end);
        }
    }

    fn piece<P>(
        &self,
        pool: &Pool,
        piece: &Piece<'_>,
        make: &impl Fn() -> P,
        take: &impl Fn(&mut P, &Row<'_>),
    ) -> (Cursor, P) {
        let mut part = make();
        let mut kept = |row: &Row<'_>| {
            if self.keeps(row) {
                take(&mut part, row);
            }
        };
        let next = match piece {
            Piece::Points(from, to) => {
                pool.with(|worker| {
                    for point in *from..*to {
                        self.axes.at(point, &mut worker.point);
                        if self.wants(&worker.point) {
                            worker.single(self, Place { point, row: 0 }, &mut kept);
                        }
                    }
                });
                Cursor { point: *to, row: 0 }
            }
            Piece::Layouts { point, base, from, to } => {
                self.layouts(*point, base, *from, *to, kept);
                if *to < base.rows.len() {
                    Cursor { point: *point, row: *to as u64 }
                } else {
                    Cursor { point: point + 1, row: 0 }
                }
            }
        };
        (next, part)
    }

    /// Some rows of a point's space of layouts.
    pub(super) fn layouts(&self, point: u64, base: &Prelude, from: usize, to: usize, mut take: impl FnMut(&Row<'_>)) {
        let (open, wanted) = match &base.open {
            Ok(open) => open,
            Err(reason) => return take(&self.row(base, Place { point, row: 0 }, None, Err(Reason::Mistake(reason)))),
        };
        let mut staged = open.staged.clone();
        for (index, of) in base.rows.iter().enumerate().take(to).skip(from) {
            let mut place = Place { point, row: (index as u64) << 32 };
            open.variants.walk(&mut staged, wanted, *of, |layout, overlap, answer| {
                let layout = Some((layout, overlap));
                match &answer {
                    Ok(evaluation) => take(&self.row(base, place, layout, Ok(evaluation))),
                    Err(infeasible) => take(&self.row(base, place, layout, Err(Reason::Infeasible(infeasible)))),
                }
                place.row += 1;
            });
        }
    }

    fn row<'r>(
        &'r self,
        base: &'r Prelude,
        place: Place,
        layout: Option<(Layout, Overlap)>,
        outcome: Result<&'r Evaluation, Reason<'r>>,
    ) -> Row<'r> {
        Row { place, axes: &self.axes, point: &base.values, layout, outcome, figures: &self.figures }
    }

    /// A point with its rows of layouts; none where the sweep's conditions leave it out.
    pub(super) fn prelude(&self, worker: &mut Worker, point: u64) -> Option<Prelude> {
        self.axes.at(point, &mut worker.point);
        if !self.wants(&worker.point) {
            return None;
        }
        let values = worker.point.clone();
        let (rows, open) = match worker.base(self) {
            Base::Open(open) => match open.search {
                Some(wanted) => (open.variants.rows(&wanted.space), Ok((open.clone(), wanted))),
                None => (Vec::new(), Err("the layout is given".to_owned())),
            },
            Base::Mistake(mistake) => (Vec::new(), Err(mistake.clone())),
            Base::Not(infeasible) => (Vec::new(), Err(infeasible.to_string())),
            Base::Whole(_) | Base::Serving(_) => (Vec::new(), Err("layouts are those of training alone".to_owned())),
        };
        let open =
            if rows.is_empty() { open.and(Err("no layout shares these accelerators out".to_owned())) } else { open };
        Some(Prelude { values, rows, open })
    }

    /// Whether the conditions on axes let a point pass.
    pub(super) fn wants(&self, point: &[u32]) -> bool {
        let row = Row {
            place: Place::default(),
            axes: &self.axes,
            point,
            layout: None,
            outcome: Err(Reason::Mistake("")),
            figures: &self.figures,
        };
        self.only.iter().all(|condition| condition.holds(&row))
    }

    /// Whether the conditions on rows let one pass.
    pub(super) fn keeps(&self, row: &Row<'_>) -> bool {
        self.kept.iter().all(|condition| condition.holds(row))
    }
}

/// What threads keep between pieces of work. It changes how fast answers come, and no answer.
struct Pool {
    idle: Mutex<Vec<Worker>>,
    columns: usize,
}

impl Pool {
    fn new(sweep: &Sweep<'_>) -> Self {
        Self { idle: Mutex::new(Vec::new()), columns: sweep.axes.columns.len() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut worker = taken.unwrap_or_else(|| Worker::new(self.columns));
        let done = work(&mut worker);
        idle().push(worker);
        done
    }
}
