//! Sweeps: rows for spreadsheets as they come, and what was kept of them for people and programs.

use serde_json::{Map, Value as Json, json};

use super::csv::{BYTE_ORDER_MARK, text};
use super::figure::{Metric, Unit, Value, grouped};
use super::json::pretty;
use super::metrics::{METRICS, metric};
use super::number::finite;
use super::page::{Block, Grid, Page, Section};
use super::sweep_break_even;
use super::sweep_words::{axis_text, short};
use crate::evaluate::Evaluation;
use crate::parallelism::Layout;
use crate::scenario::Overlap;
use crate::sweep::{ABSENT, Column, Figure, Kept, LayoutKey, Quantiles, Reduced, Row, Size, Sweep, Wanted};
use crate::units::significant;

/// Figures of a row where none are asked for: those by which plans are told apart.
const USUAL: [&str; 25] = [
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
    "goodput.ratio",
    "goodput.interruptions_per_day",
    "fabric.power_w",
    "fabric.capex_usd",
    "facility.it_kw",
    "facility.total_kw",
    "cost.capex_usd",
    "cost.opex_per_year_usd",
    "cost.usd_per_gpu_hour",
    "cost.usd_per_mtok_output",
    "cost.usd_per_run",
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

/// How rows are written for a spreadsheet: every text but reasons and layouts is made ready once.
#[derive(Debug)]
pub struct SweepCsv {
    axes: Vec<Vec<String>>,
    layouts: bool,
    flags: Vec<bool>,
    header: Vec<String>,
}

impl SweepCsv {
    /// For the rows of a sweep.
    pub fn new(sweep: &Sweep<'_>) -> Self {
        let mut header = vec!["point".to_owned()];
        header.extend(sweep.axes.columns.iter().map(|column| column.key.clone()));
        if sweep.layouts {
            header.extend(LayoutKey::ALL.iter().map(|key| key.word().to_owned()));
        }
        header.extend(["feasible".to_owned(), "reason".to_owned()]);
        header.extend(sweep.figures.iter().map(|figure| figure.key.to_owned()));
        let is_flag = |figure: &Figure| metric(figure.key).is_some_and(|metric| metric.unit == Unit::Flag);
        let texts = |column: &crate::sweep::AxisColumn| column.values.iter().map(|value| text(&value.text)).collect();
        Self {
            axes: sweep.axes.columns.iter().map(texts).collect(),
            layouts: sweep.layouts,
            flags: sweep.figures.iter().map(is_flag).collect(),
            header,
        }
    }

    /// The line of keys.
    pub fn header(&self, bom: bool) -> Vec<u8> {
        let mut part = SweepRows::default();
        for key in &self.header {
            part.cell(&text(key));
        }
        part.end();
        let start = if bom { BYTE_ORDER_MARK } else { &[] };
        [start, &part.finish()].concat()
    }

    /// Writes a row.
    pub fn row(&self, part: &mut SweepRows, row: &Row<'_>) {
        part.show(row.place.point);
        for (texts, number) in self.axes.iter().zip(row.point) {
            part.cell(if *number == ABSENT { "" } else { &texts[*number as usize] });
        }
        if self.layouts {
            for key in LayoutKey::ALL {
                match row.layout {
                    Some((layout, overlap)) => part.show(key.of(&layout, overlap)),
                    None => part.cell(""),
                }
            }
        }
        match &row.outcome {
            Ok(_) => {
                part.cell("true");
                part.cell("");
                for (figure, flag) in self.flags.iter().enumerate() {
                    match row.figure(figure) {
                        None => part.cell(""),
                        Some(value) if *flag => part.show(value > 0.0),
                        Some(value) => part.show(value),
                    }
                }
            }
            Err(reason) => {
                part.cell("false");
                part.cell(&text(&reason.to_string()));
                self.flags.iter().for_each(|_| part.cell(""));
            }
        }
        part.end();
    }
}

/// Rows as they are written.
#[derive(Debug)]
pub struct SweepRows {
    writer: csv::Writer<Vec<u8>>,
    scratch: String,
}

impl Default for SweepRows {
    fn default() -> Self {
        let writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        Self { writer, scratch: String::new() }
    }
}

impl SweepRows {
    fn cell(&mut self, text: &str) {
        // Writing to memory cannot fail.
        let written = self.writer.write_field(text);
        debug_assert!(written.is_ok());
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        use std::fmt::Write;
        self.scratch.clear();
        let written = write!(self.scratch, "{value}");
        debug_assert!(written.is_ok());
        let written = self.writer.write_field(&self.scratch);
        debug_assert!(written.is_ok());
    }

    fn end(&mut self) {
        let written = self.writer.write_record(None::<&[u8]>);
        debug_assert!(written.is_ok());
    }

    /// The bytes of the rows.
    pub fn finish(self) -> Vec<u8> {
        self.writer.into_inner().unwrap_or_default()
    }
}

/// How large a sweep is, in a line.
pub fn sweep_size(size: Size) -> String {
    let Size { points, rows } = size;
    let counted = |count: u64, what: &str| format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" });
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
    let Reduced { rows, feasible, .. } = reduced;
    let counts =
        format!("{} rows; {} of them can be, {} cannot.", grouped(*rows), grouped(*feasible), grouped(rows - feasible));
    let mut sections = vec![Section::new("In short", Block::Text(counts))];
    let name = by.map(|column| key(sweep, column)).unwrap_or_default();
    // Groups by the axis are the table of where the order turns.
    let groups: &[Kept] = if break_even.is_some() { &[] } else { &reduced.groups };
    let kept = [
        (format!("Best in {name}"), &reduced.top[..]),
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
    Page { title: sweep.title.clone(), sections }
}

/// Columns of a table for people: axes, the layout, what rows are ordered by, and a few figures.
fn grid(sweep: &Sweep<'_>, rows: &[Kept], aims: &[Column]) -> Grid {
    let axes: Vec<usize> = (0..sweep.axes.columns.len()).collect();
    let mut header: Vec<String> = axes.iter().map(|axis| short(&sweep.axes.columns[*axis].key)).collect();
    if sweep.layouts {
        header.push("layout".to_owned());
    }
    let texts = header.len();
    let few = [
        "training.iteration_s",
        "training.mfu_ratio",
        "training.effective_days",
        "memory.total_bytes",
        "serving.ttft_s",
        "serving.tpot_s",
        "serving.output_tokens_per_s_per_gpu",
        "cost.usd_per_mtok_output",
        "cost.usd_per_run",
    ];
    // What rows are told apart by, what was asked for unless that is everything, and a few that everybody wants.
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
    header.extend(shown.iter().filter_map(of).map(|metric| metric.label.trim().to_owned()));
    let line = |row: &Kept| {
        let mut cells: Vec<String> = axes.iter().map(|axis| axis_text(sweep, row, *axis).to_owned()).collect();
        if sweep.layouts {
            cells.push(row.layout.map(|(layout, overlap)| layout_text(&layout, overlap)).unwrap_or_default());
        }
        let value = |figure: &usize| row.figures[*figure].map(|value| figure_text(of(figure), value));
        cells.extend(shown.iter().map(|figure| value(figure).unwrap_or_default()));
        cells
    };
    Grid { header, rows: rows.iter().map(line).collect(), numeric_from: texts }
}

fn layout_text(layout: &Layout, overlap: Overlap) -> String {
    let on = [("tensor", overlap.tensor), ("data", overlap.data)].into_iter().filter(|(_, on)| *on);
    let overlaps: String = on.map(|(name, _)| [", ", name, " overlap"].concat()).collect();
    layout.to_string() + &overlaps
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
            let label = metric.map_or(key, |metric| metric.label.trim()).to_owned();
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
    let rows = |rows: &[Kept]| rows.iter().map(|row| kept_object(sweep, row)).collect::<Vec<Json>>();
    let quantiles = |quantiles: &Quantiles| {
        let [least, p10, p50, p90, most] = quantiles.values.map(finite);
        json!({ "key": key(sweep, quantiles.column), "rows_count": quantiles.count, "least": least, "p10": p10, "p50": p50,
            "p90": p90, "most": most })
    };
    pretty(&json!({
        "title": sweep.title,
        "rows_count": reduced.rows,
        "feasible_count": reduced.feasible,
        "top": rows(&reduced.top),
        "pareto": rows(&reduced.front),
        "groups": rows(&reduced.groups),
        "break_even": break_even.map_or(Json::Null, |BreakEvenOf { groups, axis, by }| {
            sweep_break_even::object(sweep, reduced, groups, *axis, *by)
        }),
        "quantiles": reduced.quantiles.iter().map(quantiles).collect::<Vec<Json>>(),
    }))
}

fn kept_object(sweep: &Sweep<'_>, row: &Kept) -> Json {
    let mut object = Map::new();
    object.insert("point".to_owned(), row.place.point.into());
    for (axis, column) in sweep.axes.columns.iter().enumerate() {
        let value = match row.point[axis] {
            ABSENT => Json::Null,
            number => {
                let value = &column.values[number as usize];
                value.number.map_or_else(|| value.text.as_str().into(), finite)
            }
        };
        object.insert(column.key.clone(), value);
    }
    if let Some((layout, overlap)) = row.layout.filter(|_| sweep.layouts) {
        for layout_key in LayoutKey::ALL {
            object.insert(layout_key.word().to_owned(), layout_key.of(&layout, overlap).to_string().into());
        }
    }
    for (figure, value) in sweep.figures.iter().zip(&row.figures) {
        let flag = metric(figure.key).is_some_and(|metric| metric.unit == Unit::Flag);
        let value = value.map_or(Json::Null, |value| if flag { (value > 0.0).into() } else { finite(value) });
        object.insert(figure.key.to_owned(), value);
    }
    Json::Object(object)
}

/// Rows that were kept, for spreadsheets.
pub fn sweep_csv(sweep: &Sweep<'_>, reduced: &Reduced, bom: bool) -> Vec<u8> {
    let rows = |kept: &str, rows: &[Kept]| {
        rows.iter().map(|row| (kept.to_owned(), kept_object(sweep, row))).collect::<Vec<(String, Json)>>()
    };
    let all = [rows("top", &reduced.top), rows("pareto", &reduced.front), rows("group", &reduced.groups)].concat();
    let mut grid = Grid::default();
    for (kept, row) in &all {
        let Json::Object(row) = row else { continue };
        if grid.header.is_empty() {
            grid.header = ["kept"].into_iter().chain(row.keys().map(String::as_str)).map(str::to_owned).collect();
        }
        let cell = |key: &String| match row.get(key) {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        grid.rows.push([kept.clone()].into_iter().chain(grid.header.iter().skip(1).map(cell)).collect());
    }
    super::csv::grid_csv(&grid, bom)
}
