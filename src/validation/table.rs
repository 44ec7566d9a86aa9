//! A table of cases: CSV text as rows whose cells are asked for by the name of their column.

use std::collections::BTreeMap;

use crate::diagnostics::{Code, Diagnostic};
use crate::units::to_integer;

/// Why a text is no table of cases.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TableError {
    /// The text is not CSV.
    #[error("not a CSV file: {0}")]
    Csv(String),
    /// A row with more or fewer cells than the header.
    #[error("line {line} has {cells} cells, and the header {columns}: a cell with a comma in it needs quotes")]
    Ragged {
        /// The line, from 1.
        line: u64,
        /// Its cells.
        cells: u64,
        /// Cells of the header.
        columns: u64,
    },
    /// Columns that every table of the domain has are missing.
    #[error("{} missing; the columns are {}", missing(columns), found.join(", "))]
    MissingColumns {
        /// The columns.
        columns: Vec<&'static str>,
        /// Those that are there.
        found: Vec<String>,
    },
    /// A column that is there twice.
    #[error("two columns are called `{0}`")]
    Twice(String),
    /// A number that its column cannot hold.
    #[error("line {line}, column `{column}`: {found} is not {range}")]
    Cell {
        /// The line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// As it stands there.
        found: String,
        /// What the column holds.
        range: Holds,
    },
}

impl TableError {
    /// The mistake of a table that is called so.
    pub fn diagnostic(&self, table: &str) -> Diagnostic {
        let code = if matches!(self, Self::Cell { .. }) { Code::OutOfRange } else { Code::Syntax };
        let diagnostic = Diagnostic::new(code, format!("{table}: {self}"));
        diagnostic.hint(match self {
            Self::Csv(_) | Self::Ragged { .. } => "write it as CSV: a header, and a row a case with as many cells",
            Self::Twice(_) => "rename one of them, or leave it out",
            Self::MissingColumns { .. } => "add them to the first row; a cell that is not known is empty",
            Self::Cell { .. } => "correct the cell, or leave its row out; a cell that is not known is empty",
        })
    }
}

/// What a column of numbers holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holds {
    least: f64,
    most: f64,
    whole: bool,
}

impl Holds {
    /// Counts of GPUs, layers, tokens or requests.
    pub(super) const COUNT: Self = Self { least: 1.0, most: MOST, whole: true };

    /// Whole numbers.
    pub(super) const fn whole(least: f64, most: f64) -> Self {
        Self { least, most, whole: true }
    }

    /// Numbers.
    pub(super) const fn any(least: f64, most: f64) -> Self {
        Self { least, most, whole: false }
    }
}

impl std::fmt::Display for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.whole { "a whole number" } else { "a number" };
        write!(f, "{kind} from {} to {}", self.least, self.most)
    }
}

fn missing(columns: &[&str]) -> String {
    let names: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
    match &names[..] {
        [one] => format!("the column {one} is"),
        _ => format!("the columns {} are", names.join(", ")),
    }
}

fn csv_error(error: &csv::Error) -> TableError {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => TableError::Ragged {
            line: pos.as_ref().map_or(0, csv::Position::line),
            cells: *len,
            columns: *expected_len,
        },
        _ => TableError::Csv(error.to_string()),
    }
}

/// The largest count that is taken: more GPUs, layers or tokens than any run has.
const MOST: f64 = 1e7;

/// Why a cell cannot be used; the reason for which its row is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) String);

/// One row; empty cells and columns that the file doesn't have are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    cells: BTreeMap<String, String>,
    line: u64,
}

impl Row {
    /// The text of a cell.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).map(String::as_str)
    }

    /// A cell that must be there.
    pub(super) fn needed(&self, column: &str) -> Result<&str, Unusable> {
        self.text(column).ok_or_else(|| Unusable(format!("{column} is missing")))
    }

    /// A finite number, or nothing where the cell is empty.
    pub(super) fn number(&self, column: &str) -> Result<Option<f64>, Unusable> {
        let Some(text) = self.text(column) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(Unusable(format!("{column} is no number: \"{text}\""))),
        }
    }

    /// That cells hold what their columns do, where they are not empty: a fit would take in the rest, or leave it out
    /// without a word.
    pub(super) fn check(&self, columns: &[(&'static str, Holds)]) -> Result<(), TableError> {
        for &(column, range) in columns {
            let Some(text) = self.text(column) else { continue };
            let within =
                |number: f64| (range.least..=range.most).contains(&number) && (!range.whole || number.fract() == 0.0);
            if !text.parse().is_ok_and(within) {
                return Err(TableError::Cell { line: self.line, column, found: text.to_owned(), range });
            }
        }
        Ok(())
    }

    /// As [`Row::check`], where a row with another number is skipped.
    pub(super) fn usable(&self, columns: &[(&'static str, Holds)]) -> Result<(), Unusable> {
        self.check(columns).map_err(|error| Unusable(error.to_string()))
    }

    /// A positive whole number up to ten million, or nothing where the cell is empty.
    pub(super) fn count(&self, column: &str) -> Result<Option<u32>, Unusable> {
        let Some(value) = self.number(column)? else { return Ok(None) };
        let whole = value.fract() == 0.0 && (1.0..=MOST).contains(&value);
        if whole { Ok(Some(to_integer::<u32>(value))) } else { Err(Unusable(format!("{column} is {value}, no count"))) }
    }

    /// A positive whole number that must be there.
    pub(super) fn needed_count(&self, column: &str) -> Result<u32, Unusable> {
        self.count(column)?.ok_or_else(|| Unusable(format!("{column} is missing")))
    }
}

/// The rows of a CSV text, trimmed; `needed` columns must be there.
pub(super) fn rows(text: &str, needed: &[&'static str]) -> Result<Vec<Row>, TableError> {
    read(text, needed, false)
}

/// The same of a table whose `needed` columns stand first and whose rows may lack cells behind them: of such a row,
/// nothing else is taken, because nobody knows which cells it lacks.
pub(super) fn rows_with_short_ends(text: &str, needed: &[&'static str]) -> Result<Vec<Row>, TableError> {
    read(text, needed, true)
}

fn read(text: &str, needed: &[&'static str], short_ends: bool) -> Result<Vec<Row>, TableError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(short_ends).from_reader(text.as_bytes());
    let head: Vec<String> = reader.headers().map_err(|error| csv_error(&error))?.iter().map(str::to_owned).collect();
    let twice = head.iter().enumerate().find(|(at, column)| !column.is_empty() && head[..*at].contains(column));
    if let Some((_, column)) = twice {
        return Err(TableError::Twice(column.clone()));
    }
    let place = |column: &&'static str| head.iter().position(|found| found == column);
    let columns: Vec<&str> = needed.iter().copied().filter(|column| place(column).is_none()).collect();
    if !columns.is_empty() {
        return Err(TableError::MissingColumns { columns, found: head });
    }
    let sure = needed.iter().filter_map(place).max().map_or(0, |last| last + 1);
    let row = |record: csv::StringRecord| {
        let whole = record.len() == head.len();
        let line = record.position().map_or(0, csv::Position::line);
        if !whole && !(sure..head.len()).contains(&record.len()) {
            return Err(TableError::Ragged { line, cells: record.len() as u64, columns: head.len() as u64 });
        }
        let taken = if whole { head.len() } else { sure };
        let cells = head.iter().cloned().zip(record.iter().map(str::to_owned)).take(taken);
        Ok(Row { cells: cells.filter(|(_, cell)| !cell.is_empty()).collect(), line })
    };
    reader.records().map(|record| row(record.map_err(|error| csv_error(&error))?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_asked_for_by_column() {
        let rows = rows("\u{feff}id,gpus,note\na, 8 ,\"x, y\"\nb,2.5,\nc,many,\n", &["id"]).unwrap();
        assert_eq!(rows[0].text("note"), Some("x, y"));
        assert_eq!(rows[0].count("gpus"), Ok(Some(8)));
        assert_eq!(rows[1].text("note"), None);
        assert_eq!(rows[1].count("gpus"), Err(Unusable("gpus is 2.5, no count".to_owned())));
        assert_eq!(rows[2].number("gpus"), Err(Unusable("gpus is no number: \"many\"".to_owned())));
        assert_eq!(rows[2].needed_count("nodes"), Err(Unusable("nodes is missing".to_owned())));
    }

    #[test]
    fn a_missing_column_says_what_is_there() {
        let error = rows("name,value\na,1\n", &["id"]).unwrap_err();
        assert_eq!(error.to_string(), "the column `id` is missing; the columns are name, value");
        let error = rows("name,value\na,1\n", &["id", "name", "gpus"]).unwrap_err();
        assert_eq!(error.to_string(), "the columns `id`, `gpus` are missing; the columns are name, value");
        let ragged = rows("id,a\n1,2\n1\n", &["id"]).unwrap_err();
        assert!(ragged.to_string().starts_with("line 3 has 1 cells, and the header 2"), "{ragged}");
    }

    #[test]
    fn short_rows_are_taken_as_far_as_they_are_sure() {
        let text = "id,value,source,note\na,1,x,y\nb,2,y\n";
        let rows = rows_with_short_ends(text, &["id", "value"]).unwrap();
        assert_eq!(
            (rows[0].text("source"), rows[1].text("value"), rows[1].text("source")),
            (Some("x"), Some("2"), None)
        );
        let ragged = rows_with_short_ends("id,value,note\na\n", &["id", "value"]).unwrap_err();
        assert!(ragged.to_string().starts_with("line 2 has 1 cells, and the header 3"), "{ragged}");
    }
}
