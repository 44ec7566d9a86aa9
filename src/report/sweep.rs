//! Sweeps: what was kept of their rows, for people and programs.

use serde_json::{Value as Json, json};

use super::evaluation::HEADLINES;
use super::figure::{Metric, Unit, Value, counted, grouped};
use super::json::pretty;
use super::metrics::{METRICS, metric};
use super::number::finite;
use super::page::{Block, Grid, Page, Section};
use super::sweep_break_even;
use super::sweep_rows::kept_object;
use super::sweep_words::{LAYOUT, LIMITS, axis_name, axis_text, layout_text, way_text};
use crate::evaluate::{Evaluation, MissedLimit};
use crate::sweep::{Column, Figure, Kept, Quantiles, Reduced, Size, Sweep, Wanted};
use crate::units::significant;

/// Figures of a row where none are asked for: those by which plans are told apart.
const USUAL: [&str; 27] = [
    "memory.total_bytes",
    "memory.fits",
    "training.iteration_s",
    "training.exposed_communication_s",
    "training.mfu_ratio",
    "training.tokens_per_s",
    "training.duration_days",
    "training.effective_days",
    "serving.replicas_count",
    "serving.max_concurrency_count",
    "serving.ttft_s",
    "serving.tpot_s",
    "serving.output_tokens_per_s_per_gpu",
    "serving.requests_per_s",
    "serving.limits_kept",
    "goodput.ratio",
    "goodput.interruptions_per_day",
    "fabric.power_w",
    "fabric.capex_usd",
    "facility.it_kw",
    "facility.total_kw",
    "cost.capex_usd",
    "cost.opex_per_year_usd",
    "cost.usd_per_gpu_hour",
    "cost.usd_per_mtok_blended",
    "cost.usd_per_mtok_output",
    "cost.usd_per_run",
];

/// A few of them that everybody wants to see, of a run and of serving.
const FEW: [&str; 5] =
    ["training.iteration_s", "training.mfu_ratio", "training.effective_days", "memory.total_bytes", "cost.usd_per_run"];
const FEW_OF_SERVING: [&str; 5] = [
    "serving.ttft_s",
    "serving.tpot_s",
    "serving.output_tokens_per_s_per_gpu",
    "cost.usd_per_mtok_blended",
    "cost.usd_per_mtok_output",
];

/// Of figures that are asked for besides, so many are shown to people.
const MOST_ASKED: usize = 12;

/// The keys of all figures that are numbers, as those of rows are.
pub fn all_figures() -> impl Iterator<Item = &'static str> {
    METRICS.iter().filter(|metric| metric.unit != Unit::Word).map(|metric| metric.key)
}

/// The figures of a sweep's rows: the usual ones, and those that are asked for besides.
pub fn sweep_figures(asked: &[&'static str]) -> Vec<Figure> {
    let keys = USUAL.iter().chain(asked.iter().filter(|key| !USUAL.contains(key)));
    keys.filter_map(|key| metric(key)).map(figure).collect()
}

pub(super) fn figure(metric: &'static Metric) -> Figure {
    let extract = |evaluation: &Evaluation| match metric.value(evaluation)? {
        Value::Flag(yes) => Some(f64::from(u8::from(yes))),
        value => value.number(),
    };
    Figure { key: metric.key, extract: Box::new(extract) }
}

/// How large a sweep is, in a line.
pub fn sweep_size(size: Size) -> String {
    let Size { points, rows } = size;
    if rows == points {
        counted(points, "point")
    } else {
        format!("{}, {}", counted(points, "point"), counted(rows, "layout"))
    }
}

/// Along which axis the order turns.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakEvenOf {
    /// Columns of the groups, the axis among them.
    pub groups: Vec<Column>,
    /// The axis, by its place.
    pub axis: usize,
    /// The figure that is held against each other, by its place.
    pub by: usize,
}

/// What was kept of a sweep, for people.
pub fn sweep_page(sweep: &Sweep<'_>, reduced: &Reduced, wanted: &Wanted, break_even: Option<&BreakEvenOf>) -> Page {
    let by = wanted.by.map(|(column, _)| column);
    let aims: Vec<Column> = by.into_iter().chain(wanted.pareto.iter().map(|(column, _)| *column)).collect();
    let mut sections = vec![Section::new("In short", Block::Text(counts(reduced)))];
    let name = by.map(|column| key(sweep, column)).unwrap_or_default();
    // Groups by the axis are the table of where the order turns.
    let groups: &[Kept] = if break_even.is_some() { &[] } else { &reduced.groups };
    let shown = reduced.top.len() as u64;
    let best = if shown == reduced.feasible {
        format!("Rows, the best in {name} first")
    } else {
        format!("The best {} in {name}", grouped(shown))
    };
    let kept = [
        (best, &reduced.top[..]),
        ("What no other row beats".to_owned(), &reduced.front),
        (format!("Best in {name}, by group"), groups),
    ];
    if let Some(BreakEvenOf { groups, axis, by }) = break_even {
        let heading = format!("Where the order turns: {name} along {}", sweep.axes.columns[*axis].key);
        let turns = sweep_break_even::grid(sweep, reduced, groups, *axis, *by);
        sections.push(Section::new(heading, Block::Grid(turns)));
    }
    for (heading, rows) in kept {
        if !rows.is_empty() {
            sections.push(Section::new(heading, Block::Grid(grid(sweep, rows, &aims))));
        }
    }
    if !reduced.quantiles.is_empty() {
        sections.push(Section::new("How figures spread", Block::Grid(spread(sweep, &reduced.quantiles))));
    }
    if !reduced.reasons.is_empty() {
        let mut reasons = Grid::new(&["Why others cannot be", "rows"], 1);
        reasons.rows = reduced.reasons.iter().map(|(why, count)| vec![why.clone(), grouped(*count)]).collect();
        sections.push(Section::new("", Block::Grid(reasons)));
    }
    Page { title: sweep.title.clone(), sections }
}

/// How many rows there are, can be, and keep their limits.
fn counts(reduced: &Reduced) -> String {
    let Reduced { rows, feasible, missing, .. } = *reduced;
    let (all, cannot) = (counted(rows, "row"), grouped(rows - feasible));
    if missing == 0 {
        return format!("{all}; {} of them can be, {cannot} cannot.", grouped(feasible));
    }
    let [kept, missing] = [feasible - missing, missing].map(grouped);
    format!("{all}; {kept} of them keep their limits, {missing} can be and miss them, {cannot} cannot be.")
}

/// Columns of a table for people: axes, the layout, what rows are ordered by, and a few figures.
fn grid(sweep: &Sweep<'_>, rows: &[Kept], aims: &[Column]) -> Grid {
    let axes: Vec<usize> = (0..sweep.axes.columns.len()).collect();
    let mut header: Vec<String> = axes.iter().map(|axis| axis_name(sweep, *axis)).collect();
    let served = sweep.serves && rows.iter().any(|row| row.served.is_some());
    let missing = rows.iter().any(|row| row.missed.is_some());
    header.extend((sweep.layouts || served).then(|| LAYOUT.to_owned()));
    header.extend(missing.then(|| LIMITS.to_owned()));
    let texts = header.len();
    let few = if sweep.serves { FEW_OF_SERVING } else { FEW };
    // What rows are told apart by, what was asked for unless that is everything, and a few.
    let asked = sweep.figures.len() - USUAL.len().min(sweep.figures.len()) <= MOST_ASKED;
    let is_shown = |figure: &usize| {
        let key = sweep.figures[*figure].key;
        aims.contains(&Column::Figure(*figure)) || (asked && !USUAL.contains(&key)) || few.contains(&key)
    };
    let shown: Vec<usize> = (0..sweep.figures.len())
        .filter(is_shown)
        .filter(|figure| rows.iter().any(|row| row.figures[*figure].is_some()))
        .collect();
    let of = |figure: &usize| metric(sweep.figures[*figure].key);
    header.extend(shown.iter().filter_map(of).map(|metric| label(metric).to_owned()));
    let line = |row: &Kept| {
        let mut cells: Vec<String> = axes.iter().map(|axis| axis_text(sweep, row, *axis).to_owned()).collect();
        if sweep.layouts || served {
            let trained = row.layout.map(|(layout, overlap)| layout_text(&layout, overlap));
            let layouts: Vec<String> = trained.into_iter().chain(row.served.as_ref().map(way_text)).collect();
            cells.push(layouts.join("; "));
        }
        let limits = |missed: MissedLimit| format!("{} {}, over {}", missed.key, missed.got, missed.limit);
        cells.extend(missing.then(|| row.missed.map_or_else(|| "kept".to_owned(), limits)));
        let value = |figure: &usize| row.figures[*figure].map(|value| figure_text(of(figure), value));
        cells.extend(shown.iter().map(|figure| value(figure).unwrap_or_default()));
        cells
    };
    Grid { header, rows: rows.iter().map(line).collect(), numeric_from: texts }
}

/// The label of a figure that stands alone.
fn label(metric: &Metric) -> &'static str {
    let headline = HEADLINES.iter().find(|(_, key)| *key == metric.key);
    headline.map_or_else(|| metric.label.trim(), |(label, _)| label)
}

fn figure_text(metric: Option<&Metric>, value: f64) -> String {
    match metric {
        Some(metric) if metric.unit == Unit::Flag => metric.text(Value::Flag(value > 0.0)),
        Some(metric) => metric.text(Value::Number(value)),
        None => significant(value, 4),
    }
}

fn spread(sweep: &Sweep<'_>, quantiles: &[Quantiles]) -> Grid {
    let mut grid = Grid::new(&["Figure", "rows", "least", "P10", "P50", "P90", "most"], 1);
    grid.rows = quantiles
        .iter()
        .map(|quantiles| {
            let key = key(sweep, quantiles.column);
            let metric = metric(key);
            let label = metric.map_or_else(|| key.to_owned(), |metric| label(metric).to_owned());
            let values = quantiles.values.iter().map(|value| figure_text(metric, *value));
            [label, grouped(quantiles.count as u64)].into_iter().chain(values).collect()
        })
        .collect();
    grid
}

/// The key of a column.
fn key<'a>(sweep: &'a Sweep<'_>, column: Column) -> &'a str {
    match column {
        Column::Axis(axis) => &sweep.axes.columns[axis].key,
        Column::Layout(key) => key.word(),
        Column::Figure(figure) => sweep.figures[figure].key,
    }
}

/// What was kept of a sweep, for programs.
pub fn sweep_json(sweep: &Sweep<'_>, reduced: &Reduced, break_even: Option<&BreakEvenOf>) -> String {
    let rows = |rows: &[Kept]| rows.iter().map(|row| kept_object(sweep, row).into()).collect::<Vec<Json>>();
    let quantiles = |quantiles: &Quantiles| {
        let [least, p10, p50, p90, most] = quantiles.values.map(finite);
        json!({ "key": key(sweep, quantiles.column), "rows_count": quantiles.count, "least": least, "p10": p10, "p50": p50,
            "p90": p90, "most": most })
    };
    pretty(&json!({
        "title": sweep.title,
        "rows_count": reduced.rows,
        "feasible_count": reduced.feasible,
        "limits_missed_count": reduced.missing,
        "rejected": reduced.reasons.iter().map(|(why, count)| json!({ "reason": why, "count": count })).collect::<Vec<Json>>(),
        "top": rows(&reduced.top),
        "pareto": rows(&reduced.front),
        "groups": rows(&reduced.groups),
        "break_even": break_even.map_or(Json::Null, |BreakEvenOf { groups, axis, by }| {
            sweep_break_even::object(sweep, reduced, groups, *axis, *by)
        }),
        "quantiles": reduced.quantiles.iter().map(quantiles).collect::<Vec<Json>>(),
    }))
}

/// Rows that were kept, for spreadsheets, and as what they were.
pub fn sweep_csv(sweep: &Sweep<'_>, reduced: &Reduced, bom: bool) -> Vec<u8> {
    let rows = |kept: &'static str, rows: &[Kept]| {
        let line = |row: &Kept| {
            let first = std::iter::once(("kept".to_owned(), kept.into()));
            first.chain(kept_object(sweep, row)).collect::<serde_json::Map<String, Json>>()
        };
        rows.iter().map(line).collect::<Vec<_>>()
    };
    let all = [rows("top", &reduced.top), rows("pareto", &reduced.front), rows("group", &reduced.groups)].concat();
    super::csv::objects_csv(&all, bom)
}
