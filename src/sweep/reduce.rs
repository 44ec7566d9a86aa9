//! What is kept of a sweep as its rows go by, none of them stored: the best, those that no other beats, the best of each
//! group, and how figures spread.

use std::collections::BTreeMap;

use sketches_ddsketch::{Config, DDSketch};

use super::columns::Column;
use super::row::{Place, Row};
use crate::evaluate::MissedLimit;
use crate::parallelism::Layout;
use crate::scenario::Overlap;
use crate::search::Deployment;

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
    /// How it serves.
    pub served: Option<Deployment>,
    /// Whether it can be.
    pub feasible: bool,
    /// The first limit of a latency that it misses.
    pub missed: Option<MissedLimit>,
    /// Why it cannot be, or that limit.
    pub reason: Option<String>,
    /// Its figures.
    pub figures: Vec<Option<f64>>,
}

impl Kept {
    /// All of a row.
    pub fn new(row: &Row<'_>) -> Self {
        Self {
            place: row.place,
            point: row.point.to_vec(),
            layout: row.layout,
            served: row.served(),
            feasible: row.outcome.is_ok(),
            missed: row.missed(),
            reason: row.reason(),
            figures: (0..row.figures.len()).map(|figure| row.figure(figure)).collect(),
        }
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

/// By what rows are ordered, less being better: whether they miss a limit of a latency, then a value.
type Rank = (bool, f64);

/// The same of several values, none of which is worth more than another.
type Ranks = (bool, [f64; MOST_KEYS]);

/// What was kept so far.
#[derive(Clone)]
pub struct Reduction<'a> {
    wanted: &'a Wanted,
    rows: u64,
    feasible: u64,
    missing: u64,
    reasons: BTreeMap<String, u64>,
    /// Ascending.
    top: Vec<(Rank, Kept)>,
    front: Vec<(Ranks, Kept)>,
    groups: BTreeMap<[u64; MOST_KEYS], (Rank, Kept)>,
    sketches: Vec<DDSketch>,
}

/// What was kept of a whole sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Rows that met the conditions.
    pub rows: u64,
    /// Those of them that can be.
    pub feasible: u64,
    /// Those that can be and miss a limit of a latency: whatever else they are best in, they come after all that keep theirs.
    pub missing: u64,
    /// Why the others cannot be, and how many, the most first.
    pub reasons: Vec<(String, u64)>,
    /// The best, in order.
    pub top: Vec<Kept>,
    /// Those that no other beats, the best in the first figure first.
    pub front: Vec<Kept>,
    /// The best of each group, in the order in which their values come on the axes.
    pub groups: Vec<Kept>,
    /// How figures spread.
    pub quantiles: Vec<Quantiles>,
}

impl Reduced {
    /// What was wanted and is nothing in every row that can be, by the option that asked for it.
    pub fn never(&self, wanted: &Wanted) -> Vec<&'static str> {
        if self.feasible == 0 {
            return Vec::new();
        }
        let ranked = wanted.by.is_some() && (wanted.top > 0 || !wanted.groups.is_empty());
        let spread = self.quantiles.iter().any(|quantiles| quantiles.count == 0);
        [
            ("--by", ranked && self.top.is_empty() && self.groups.is_empty()),
            ("--pareto", !wanted.pareto.is_empty() && self.front.is_empty()),
            ("--quantiles", spread),
        ]
        .into_iter()
        .filter_map(|(option, nothing)| nothing.then_some(option))
        .collect()
    }
}

impl<'a> Reduction<'a> {
    /// Nothing kept yet.
    pub fn new(wanted: &'a Wanted) -> Self {
        let sketch = || DDSketch::new(Config::new(QUANTILE_ERROR, BINS, SMALLEST));
        Self {
            wanted,
            rows: 0,
            feasible: 0,
            missing: 0,
            reasons: BTreeMap::new(),
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
        if let Err(reason) = row.outcome {
            let kind = reason.kind();
            match self.reasons.get_mut(kind) {
                Some(count) => *count += 1,
                None => _ = self.reasons.insert(kind.to_owned(), 1),
            }
            return;
        }
        let misses = row.missed().is_some();
        self.feasible += 1;
        self.missing += u64::from(misses);
        if let Some(by) = self.wanted.by {
            let value = signed(by, row);
            // What is no number is the best of nothing.
            if !value.is_nan() {
                self.rank((misses, value), row);
                self.group((misses, value), row);
            }
        }
        if !self.wanted.pareto.is_empty() {
            let mut keys = [0.0; MOST_KEYS];
            for (key, aim) in keys.iter_mut().zip(&self.wanted.pareto) {
                *key = signed(*aim, row);
            }
            let ranks = (misses, keys);
            if keys.iter().all(|key| !key.is_nan()) && !beaten(&self.front, &ranks) {
                self.join(ranks, Kept::new(row));
            }
        }
        for (column, sketch) in self.wanted.quantiles.iter().zip(&mut self.sketches) {
            let value = column.code(row);
            if value.is_finite() {
                sketch.add(value);
            }
        }
    }

    fn rank(&mut self, rank: Rank, row: &Row<'_>) {
        let full = self.top.len() >= self.wanted.top;
        // Of equals, the first that came stays.
        if full && self.top.last().is_none_or(|(last, _)| rank >= *last) {
            return;
        }
        self.insert(rank, Kept::new(row));
    }

    fn insert(&mut self, rank: Rank, kept: Kept) {
        let place = self.top.partition_point(|(other, _)| *other <= rank);
        if place < self.wanted.top {
            self.top.insert(place, (rank, kept));
            self.top.truncate(self.wanted.top);
        }
    }

    fn group(&mut self, rank: Rank, row: &Row<'_>) {
        if self.wanted.groups.is_empty() {
            return;
        }
        let mut key = [0; MOST_KEYS];
        for (part, column) in key.iter_mut().zip(&self.wanted.groups) {
            *part = ordered(column.code(row));
        }
        match self.groups.get_mut(&key) {
            Some((best, kept)) if rank < *best => (*best, *kept) = (rank, Kept::new(row)),
            Some(_) => {}
            None => {
                self.groups.insert(key, (rank, Kept::new(row)));
            }
        }
    }

    /// Takes one that no other beats into the front, and those out that it beats.
    fn join(&mut self, ranks: Ranks, kept: Kept) {
        self.front.retain(|(other, _)| !no_worse(&ranks, other));
        self.front.push((ranks, kept));
    }

    /// Takes in what was kept of the rows that follow.
    pub fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.feasible += later.feasible;
        self.missing += later.missing;
        for (kind, count) in later.reasons {
            *self.reasons.entry(kind).or_default() += count;
        }
        for (rank, kept) in later.top {
            self.insert(rank, kept);
        }
        for (ranks, kept) in later.front {
            if !beaten(&self.front, &ranks) {
                self.join(ranks, kept);
            }
        }
        for (key, (rank, kept)) in later.groups {
            match self.groups.get_mut(&key) {
                Some((best, _)) if *best <= rank => {}
                _ => {
                    self.groups.insert(key, (rank, kept));
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
        front.sort_by(|((_, a), one), ((_, b), other)| a[0].total_cmp(&b[0]).then(one.place.cmp(&other.place)));
        let mut reasons: Vec<(String, u64)> = self.reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
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
            missing: self.missing,
            reasons,
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

/// Whether it is no worse in anything; of equals the one that came first beats the other. What keeps its limits is better than
/// what does not.
fn no_worse((a_misses, a): &Ranks, (b_misses, b): &Ranks) -> bool {
    if a_misses == b_misses { a.iter().zip(b).all(|(a, b)| a <= b) } else { *b_misses }
}

fn beaten(front: &[(Ranks, Kept)], new: &Ranks) -> bool {
    front.iter().any(|(old, _)| no_worse(old, new))
}

/// Bits that sort as the numbers do; what is no number comes last.
const fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}
