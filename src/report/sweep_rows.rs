//! Rows of a sweep as they come: CSV for spreadsheets, JSON for programs.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use super::csv::{BYTE_ORDER_MARK, text};
use super::figure::Unit;
use super::metrics::metric;
use super::number::{finite, whole_or_finite};
use super::sweep_words::layout_toml;
use crate::sweep::{ABSENT, Figure, Kept, LayoutKey, Row, Sweep};

/// How rows are written.
#[derive(Debug)]
pub enum SweepLines<'a> {
    /// A line of keys, then a line a row.
    Csv(SweepCsv),
    /// One object, in it an array of rows, an object and a line each.
    Json(&'a Sweep<'a>),
}

/// How rows are written for a spreadsheet: every text but reasons and layouts is made ready once.
#[derive(Debug)]
pub struct SweepCsv {
    axes: Vec<Vec<String>>,
    layouts: bool,
    serves: bool,
    flags: Vec<bool>,
    header: Vec<String>,
}

/// Some rows as they are written.
#[derive(Debug)]
pub enum SweepRows {
    /// As CSV, with a buffer for what is no text.
    Csv(Box<csv::Writer<Vec<u8>>>, String),
    /// As JSON.
    Json(String),
}

impl SweepLines<'_> {
    /// For a spreadsheet.
    pub fn csv(sweep: &Sweep<'_>) -> Self {
        Self::Csv(SweepCsv::new(sweep))
    }

    /// What comes before all rows; for spreadsheets that need it under a byte order mark.
    pub fn header(&self, bom: bool) -> Vec<u8> {
        match self {
            Self::Csv(csv) => csv.header(bom),
            Self::Json(sweep) => format!("{{\"title\": {}, \"rows\": [\n", Json::from(sweep.title.as_str())).into(),
        }
    }

    /// What comes between rows.
    pub const fn between(&self) -> &'static str {
        match self {
            Self::Csv(_) => "",
            Self::Json(_) => ",\n",
        }
    }

    /// What comes after all rows.
    pub const fn footer(&self) -> &'static str {
        match self {
            Self::Csv(_) => "",
            Self::Json(_) => "\n]}\n",
        }
    }

    /// A place for rows.
    pub fn rows(&self) -> SweepRows {
        match self {
            Self::Csv(_) => SweepRows::csv(),
            Self::Json(_) => SweepRows::Json(String::new()),
        }
    }

    /// Writes a row.
    pub fn row(&self, rows: &mut SweepRows, row: &Row<'_>) {
        match (self, rows) {
            (Self::Csv(csv), rows) => csv.row(rows, row),
            (Self::Json(sweep), SweepRows::Json(text)) => {
                if !text.is_empty() {
                    text.push_str(self.between());
                }
                // A text takes whatever is written to it.
                let _ = write!(text, "{}", Json::Object(kept_object(sweep, &Kept::new(row))));
            }
            (Self::Json(_), SweepRows::Csv(..)) => {}
        }
    }
}

impl SweepCsv {
    fn new(sweep: &Sweep<'_>) -> Self {
        let mut header = vec!["point".to_owned()];
        header.extend(sweep.axes.columns.iter().map(|column| column.key.clone()));
        if sweep.layouts {
            header.extend(LayoutKey::ALL.iter().map(|key| key.word().to_owned()));
        }
        header.extend(sweep.serves.then(|| "layout".to_owned()));
        header.extend(["feasible".to_owned(), "reason".to_owned()]);
        header.extend(sweep.figures.iter().map(|figure| figure.key.to_owned()));
        let texts = |column: &crate::sweep::AxisColumn| column.values.iter().map(|value| text(&value.text)).collect();
        Self {
            axes: sweep.axes.columns.iter().map(texts).collect(),
            layouts: sweep.layouts,
            serves: sweep.serves,
            flags: sweep.figures.iter().map(is_flag).collect(),
            header,
        }
    }

    fn header(&self, bom: bool) -> Vec<u8> {
        let mut part = SweepRows::csv();
        for key in &self.header {
            part.cell(&text(key));
        }
        part.end();
        let start = if bom { BYTE_ORDER_MARK } else { &[] };
        [start, &part.finish()].concat()
    }

    fn row(&self, part: &mut SweepRows, row: &Row<'_>) {
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
        if self.serves {
            part.cell(&row.served().map(|served| layout_toml(&served)).unwrap_or_default());
        }
        part.show(row.outcome.is_ok());
        part.cell(&row.reason().map(|reason| text(&reason)).unwrap_or_default());
        for (figure, flag) in self.flags.iter().enumerate() {
            match row.figure(figure) {
                None => part.cell(""),
                Some(value) if *flag => part.show(value > 0.0),
                Some(value) => part.show(value),
            }
        }
        part.end();
    }
}

impl SweepRows {
    fn csv() -> Self {
        let writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        Self::Csv(Box::new(writer), String::new())
    }

    fn cell(&mut self, text: &str) {
        if let Self::Csv(writer, _) = self {
            // Writing to memory cannot fail.
            let written = writer.write_field(text);
            debug_assert!(written.is_ok());
        }
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        if let Self::Csv(writer, scratch) = self {
            scratch.clear();
            let written = write!(scratch, "{value}");
            debug_assert!(written.is_ok());
            let written = writer.write_field(&scratch);
            debug_assert!(written.is_ok());
        }
    }

    fn end(&mut self) {
        if let Self::Csv(writer, _) = self {
            let written = writer.write_record(None::<&[u8]>);
            debug_assert!(written.is_ok());
        }
    }

    /// The bytes of the rows.
    pub fn finish(self) -> Vec<u8> {
        match self {
            Self::Csv(writer, _) => writer.into_inner().unwrap_or_default(),
            Self::Json(text) => text.into_bytes(),
        }
    }
}

/// Whether a figure is a yes or a no.
fn is_flag(figure: &Figure) -> bool {
    metric(figure.key).is_some_and(|metric| metric.unit == Unit::Flag)
}

/// A row under the keys of the columns.
pub(super) fn kept_object(sweep: &Sweep<'_>, row: &Kept) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("point".to_owned(), row.place.point.into());
    for (axis, column) in sweep.axes.columns.iter().enumerate() {
        let value = match row.point[axis] {
            ABSENT => Json::Null,
            number => {
                let value = &column.values[number as usize];
                value.number.map_or_else(|| value.text.as_str().into(), whole_or_finite)
            }
        };
        object.insert(column.key.clone(), value);
    }
    for layout_key in LayoutKey::ALL.iter().filter(|_| sweep.layouts) {
        let value = row.layout.map(|(layout, overlap)| layout_key.of(&layout, overlap).to_string());
        object.insert(layout_key.word().to_owned(), value.into());
    }
    if sweep.serves {
        object.insert("layout".to_owned(), row.served.as_ref().map(layout_toml).into());
    }
    object.insert("feasible".to_owned(), row.feasible.into());
    object.insert("reason".to_owned(), row.reason.as_deref().into());
    for (figure, value) in sweep.figures.iter().zip(&row.figures) {
        let written = |value| match metric(figure.key).map(|metric| metric.unit) {
            Some(Unit::Flag) => (value > 0.0).into(),
            Some(Unit::Count) => whole_or_finite(value),
            _ => finite(value),
        };
        object.insert(figure.key.to_owned(), value.map_or(Json::Null, written));
    }
    object
}
