//! Where the order turns along an axis that only one side of a sweep has: rows without it are what the others are held
//! against.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::figure::Value;
use super::metrics::metric;
use super::number::{finite, whole_or_finite};
use super::page::Grid;
use super::sweep_words::{axis_name, axis_text};
use crate::sweep::{ABSENT, Column, Reduced, Sweep};
use crate::units::significant;

/// Where the order turns for one combination of the other axes' values.
struct Turn {
    /// The others' values.
    others: Vec<String>,
    /// The figure of the side without the axis; none where it cannot be.
    without: Option<f64>,
    /// Values of the axis, ascending, with the figure of the side that has it.
    along: Vec<(f64, f64)>,
}

/// What comes of it.
enum Outcome {
    /// At this value of the axis.
    At(f64),
    /// The side with the axis is better at all values.
    Always,
    /// At none.
    Never,
    /// One of the sides cannot be.
    Alone,
}

impl Turn {
    fn outcome(&self) -> Outcome {
        let Some(without) = self.without.filter(|_| !self.along.is_empty()) else { return Outcome::Alone };
        let lead = |(_, figure): &(f64, f64)| without - figure;
        let turns = self.along.windows(2).find(|pair| (lead(&pair[0]) < 0.0) != (lead(&pair[1]) < 0.0));
        match turns {
            // In proportion between neighbours.
            Some([a, b]) => Outcome::At(a.0 + (b.0 - a.0) * lead(a) / (lead(a) - lead(b))),
            _ if self.along.iter().all(|point| lead(point) >= 0.0) => Outcome::Always,
            _ => Outcome::Never,
        }
    }
}

fn turns(sweep: &Sweep<'_>, reduced: &Reduced, groups: &[Column], axis: usize, by: usize) -> Vec<Turn> {
    let others: Vec<usize> = groups
        .iter()
        .filter_map(|column| match column {
            Column::Axis(other) if *other != axis => Some(*other),
            _ => None,
        })
        .collect();
    let mut found: BTreeMap<Vec<u32>, Turn> = BTreeMap::new();
    for row in &reduced.groups {
        let Some(figure) = row.figures[by] else { continue };
        let key: Vec<u32> = others.iter().map(|other| row.point[*other]).collect();
        let texts = || others.iter().map(|other| axis_text(sweep, row, *other).to_owned()).collect();
        let turn = found.entry(key).or_insert_with(|| Turn { others: texts(), without: None, along: Vec::new() });
        match row.point[axis] {
            ABSENT => turn.without = Some(figure),
            value => turn.along.extend(sweep.axes.columns[axis].values[value as usize].number.map(|at| (at, figure))),
        }
    }
    let mut turns: Vec<Turn> = found.into_values().collect();
    for turn in &mut turns {
        turn.along.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    turns
}

/// For people: a line for each combination of the other axes' values.
pub(super) fn grid(sweep: &Sweep<'_>, reduced: &Reduced, groups: &[Column], axis: usize, by: usize) -> Grid {
    let name = axis_name(sweep, axis);
    let others = groups.iter().filter(|column| **column != Column::Axis(axis));
    let mut header: Vec<String> = others
        .filter_map(|column| match column {
            Column::Axis(other) => Some(axis_name(sweep, *other)),
            _ => None,
        })
        .collect();
    let numeric_from = header.len();
    let metric = metric(sweep.figures[by].key);
    let text = |figure: f64| metric.map_or_else(|| significant(figure, 4), |metric| metric.text(Value::Number(figure)));
    header.push(format!("without {name}"));
    header.extend(["at its least", "at its most"].map(str::to_owned));
    header.push(format!("{name} at which the order turns"));
    let line = |turn: Turn| {
        let end =
            |point: Option<&(f64, f64)>| point.map_or_else(|| "cannot be".to_owned(), |(_, figure)| text(*figure));
        let outcome = match turn.outcome() {
            Outcome::At(value) => significant(value, 3),
            Outcome::Always => "better throughout".to_owned(),
            Outcome::Never => "worse throughout".to_owned(),
            Outcome::Alone => String::new(),
        };
        let without = turn.without.map_or_else(|| "cannot be".to_owned(), text);
        let cells = [without, end(turn.along.first()), end(turn.along.last()), outcome];
        turn.others.iter().cloned().chain(cells).collect()
    };
    Grid { header, rows: turns(sweep, reduced, groups, axis, by).into_iter().map(line).collect(), numeric_from }
}

/// For programs.
pub(super) fn object(sweep: &Sweep<'_>, reduced: &Reduced, groups: &[Column], axis: usize, by: usize) -> Json {
    let others: Vec<&str> = groups
        .iter()
        .filter_map(|column| match column {
            Column::Axis(other) if *other != axis => Some(sweep.axes.columns[*other].key.as_str()),
            _ => None,
        })
        .collect();
    let one = |turn: &Turn| {
        let (value, winner) = match turn.outcome() {
            Outcome::At(value) => (finite(value), Json::Null),
            Outcome::Always => (Json::Null, "with".into()),
            Outcome::Never => (Json::Null, "without".into()),
            Outcome::Alone => (Json::Null, Json::Null),
        };
        let of: serde_json::Map<String, Json> =
            others.iter().zip(&turn.others).map(|(key, text)| ((*key).to_owned(), text.as_str().into())).collect();
        json!({ "of": of, "without": turn.without.map_or(Json::Null, finite), "value": value, "winner": winner,
            "along": turn.along.iter().map(|(at, figure)| json!([whole_or_finite(*at), finite(*figure)])).collect::<Vec<Json>>() })
    };
    json!({ "variable": sweep.axes.columns[axis].key, "figure": sweep.figures[by].key,
        "turns": turns(sweep, reduced, groups, axis, by).iter().map(one).collect::<Vec<Json>>() })
}
