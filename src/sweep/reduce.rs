//! What is kept of a sweep as its rows go by, none of them stored: the best, those that no other beats, the best of each
//! group, and how figures spread.

use std::collections::BTreeMap;

use sketches_ddsketch::{Config, DDSketch};

use super::columns::Column;
use super::row::{Place, Row};
use crate::parallelism::Layout;
use crate::scenario::Overlap;

/// The most figures of a front, and keys of a group.
pub const MOST_KEYS: usize = 4;
/// How far quantiles may be off, as a share of them.
pub const QUANTILE_ERROR: f64 = 1e-3;
/// Enough bins for sixty powers of e at that error.
const BINS: u32 = 32_768;
/// Below this, a figure counts as zero.
const SMALLEST: f64 = 1e-15;

/// A column, and whether more of it is better.
pub type Aim = (Column, bool);

/// What is to be kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// How many of the best.
    pub top: usize,
    /// What they are the best in, and the best of each group.
    pub by: Option<Aim>,
    /// Of these figures, the rows that no other beats.
    pub pareto: Vec<Aim>,
    /// Columns whose values make groups.
    pub groups: Vec<Column>,
    /// Columns whose spread is asked.
    pub quantiles: Vec<Column>,
}

/// A row that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Where it stood.
    pub place: Place,
    /// The numbers of its axes' values.
    pub point: Vec<u32>,
    /// Its layout.
    pub layout: Option<(Layout, Overlap)>,
    /// Its figures.
    pub figures: Vec<Option<f64>>,
}

impl Kept {
    fn new(row: &Row<'_>) -> Self {
        let figures = (0..row.figures.len()).map(|figure| row.figure(figure)).collect();
        Self { place: row.place, point: row.point.to_vec(), layout: row.layout, figures }
    }
}

/// How a figure spreads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// The column.
    pub column: Column,
    /// Rows that have it.
    pub count: usize,
    /// The least, the 10th, 50th and 90th hundredth, and the most; within a thousandth of them.
    pub values: [f64; 5],
}

/// Values by which rows are ordered, less being better.
type Keys = [f64; MOST_KEYS];

/// What was kept so far.
#[derive(Clone)]
pub struct Reduction<'a> {
    wanted: &'a Wanted,
    rows: u64,
    feasible: u64,
    /// Ascending.
    top: Vec<(f64, Kept)>,
    front: Vec<(Keys, Kept)>,
    groups: BTreeMap<[u64; MOST_KEYS], (f64, Kept)>,
    sketches: Vec<DDSketch>,
}

/// What was kept of a whole sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Rows that met the conditions.
    pub rows: u64,
    /// Those of them that can be.
    pub feasible: u64,
    /// The best, in order.
    pub top: Vec<Kept>,
    /// Those that no other beats, the best in the first figure first.
    pub front: Vec<Kept>,
    /// The best of each group, in the order in which their values come on the axes.
    pub groups: Vec<Kept>,
    /// How figures spread.
    pub quantiles: Vec<Quantiles>,
}

impl<'a> Reduction<'a> {
    /// Nothing kept yet.
    pub fn new(wanted: &'a Wanted) -> Self {
        let sketch = || DDSketch::new(Config::new(QUANTILE_ERROR, BINS, SMALLEST));
        Self {
            wanted,
            rows: 0,
            feasible: 0,
            top: Vec::new(),
            front: Vec::new(),
            groups: BTreeMap::new(),
            sketches: wanted.quantiles.iter().map(|_| sketch()).collect(),
        }
    }

    /// Rows that were taken in.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes a row in.
    pub fn take(&mut self, row: &Row<'_>) {
        self.rows += 1;
        if row.outcome.is_err() {
            return;
        }
        self.feasible += 1;
        if let Some(by) = self.wanted.by {
            let value = signed(by, row);
            // What is no number is the best of nothing.
            if !value.is_nan() {
                self.rank(value, row);
                self.group(value, row);
            }
        }
        if !self.wanted.pareto.is_empty() {
            let mut keys = [0.0; MOST_KEYS];
            for (key, aim) in keys.iter_mut().zip(&self.wanted.pareto) {
                *key = signed(*aim, row);
            }
            if keys.iter().all(|key| !key.is_nan()) && !beaten(&self.front, &keys) {
                self.join(keys, Kept::new(row));
            }
        }
        for (column, sketch) in self.wanted.quantiles.iter().zip(&mut self.sketches) {
            let value = column.code(row);
            if value.is_finite() {
                sketch.add(value);
            }
        }
    }

    fn rank(&mut self, value: f64, row: &Row<'_>) {
        let full = self.top.len() >= self.wanted.top;
        // Of equals, the first that came stays.
        if full && self.top.last().is_none_or(|(last, _)| value >= *last) {
            return;
        }
        self.insert(value, Kept::new(row));
    }

    fn insert(&mut self, value: f64, kept: Kept) {
        let place = self.top.partition_point(|(other, _)| *other <= value);
        if place < self.wanted.top {
            self.top.insert(place, (value, kept));
            self.top.truncate(self.wanted.top);
        }
    }

    fn group(&mut self, value: f64, row: &Row<'_>) {
        if self.wanted.groups.is_empty() {
            return;
        }
        let mut key = [0; MOST_KEYS];
        for (part, column) in key.iter_mut().zip(&self.wanted.groups) {
            *part = ordered(column.code(row));
        }
        match self.groups.get_mut(&key) {
            Some((best, kept)) if value < *best => (*best, *kept) = (value, Kept::new(row)),
            Some(_) => {}
            None => {
                self.groups.insert(key, (value, Kept::new(row)));
            }
        }
    }

    /// Takes one that no other beats into the front, and those out that it beats.
    fn join(&mut self, keys: Keys, kept: Kept) {
        self.front.retain(|(other, _)| !beats(&keys, other));
        self.front.push((keys, kept));
    }

    /// Takes in what was kept of the rows that follow.
    pub fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.feasible += later.feasible;
        for (value, kept) in later.top {
            self.insert(value, kept);
        }
        for (keys, kept) in later.front {
            if !beaten(&self.front, &keys) {
                self.join(keys, kept);
            }
        }
        for (key, (value, kept)) in later.groups {
            match self.groups.get_mut(&key) {
                Some((best, _)) if *best <= value => {}
                _ => {
                    self.groups.insert(key, (value, kept));
                }
            }
        }
        for (own, later) in self.sketches.iter_mut().zip(&later.sketches) {
            // Both have the same bins.
            let _ = own.merge(later);
        }
    }

    /// What was kept.
    pub fn finish(self) -> Reduced {
        let mut front = self.front;
        front.sort_by(|(a, one), (b, other)| a[0].total_cmp(&b[0]).then(one.place.cmp(&other.place)));
        let quantile = |sketch: &DDSketch, share: f64| sketch.quantile(share).ok().flatten().unwrap_or(f64::NAN);
        let spread = |(column, sketch): (&Column, &DDSketch)| Quantiles {
            column: *column,
            count: sketch.count(),
            values: [
                sketch.min().unwrap_or(f64::NAN),
                quantile(sketch, 0.1),
                quantile(sketch, 0.5),
                quantile(sketch, 0.9),
                sketch.max().unwrap_or(f64::NAN),
            ],
        };
        Reduced {
            rows: self.rows,
            feasible: self.feasible,
            top: self.top.into_iter().map(|(_, kept)| kept).collect(),
            front: front.into_iter().map(|(_, kept)| kept).collect(),
            groups: self.groups.into_values().map(|(_, kept)| kept).collect(),
            quantiles: self.wanted.quantiles.iter().zip(&self.sketches).map(spread).collect(),
        }
    }
}

/// The value of a column, less being better.
fn signed((column, most): Aim, row: &Row<'_>) -> f64 {
    let value = column.code(row);
    if most { -value } else { value }
}

/// Whether it is no worse in anything; of equals the one that came first beats the other.
fn no_worse(a: &Keys, b: &Keys) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b)
}

fn beats(new: &Keys, old: &Keys) -> bool {
    no_worse(new, old)
}

fn beaten(front: &[(Keys, Kept)], new: &Keys) -> bool {
    front.iter().any(|(old, _)| no_worse(old, new))
}

/// Bits that sort as the numbers do; what is no number comes last.
const fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}
