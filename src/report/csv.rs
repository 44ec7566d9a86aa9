//! Reports for spreadsheets: RFC 4180, numbers bare in the unit that their header names.

use serde_json::{Map, Value as Json};

use super::figure::Value;
use super::infeasible::footprint_values;
use super::metrics::METRICS;
use super::page::Grid;
use crate::evaluate::{Evaluation, Infeasible};
use crate::search::Nearest;
use crate::study::Comparison;

/// What makes a spreadsheet take a file for UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One evaluation: a line of keys and a line of values.
pub fn evaluation_csv(evaluation: &Evaluation, bom: bool) -> Vec<u8> {
    let header = ["title"].into_iter().chain(METRICS.iter().map(|metric| metric.key));
    let mut sheet = Sheet::new(header, bom);
    sheet.row([text(&evaluation.scenario.title)].into_iter().chain(values(evaluation)));
    sheet.finish()
}

/// What cannot be: its title and the reason, the nearest layout that can be, and of its figures those of the memory where
/// that is the reason.
pub fn infeasible_csv(title: &str, infeasible: &Infeasible, nearest: Option<&Nearest>, bom: bool) -> Vec<u8> {
    let (mut header, mut line) = (vec!["title", "reason"], vec![text(title), text(&infeasible.to_string())]);
    if let Some(nearest) = nearest {
        header.push("nearest");
        line.push(text(&nearest.point.layout.to_string()));
    }
    if let Infeasible::Memory { footprint, usable, .. } = infeasible {
        for (key, value) in footprint_values(footprint, *usable) {
            header.push(key);
            line.push(written(value));
        }
    }
    let mut sheet = Sheet::new(header.into_iter(), bom);
    sheet.row(line.into_iter());
    sheet.finish()
}

/// Variants, a line each. What cannot be has its reason and no figures.
pub fn comparison_csv(comparison: &Comparison, bom: bool) -> Vec<u8> {
    let first = ["name", "baseline", "feasible", "reason"];
    let mut sheet = Sheet::new(first.into_iter().chain(METRICS.iter().map(|metric| metric.key)), bom);
    for (index, variant) in comparison.variants.iter().enumerate() {
        let reason = variant.outcome.as_ref().err().map(Infeasible::to_string).unwrap_or_default();
        let is = |yes: bool| yes.to_string();
        let start = [text(&variant.name), is(index == comparison.baseline), is(variant.outcome.is_ok()), text(&reason)];
        let rest: Vec<String> = match &variant.outcome {
            Ok(evaluation) => values(evaluation).collect(),
            Err(_) => METRICS.iter().map(|_| String::new()).collect(),
        };
        sheet.row(start.into_iter().chain(rest));
    }
    sheet.finish()
}

/// Answers, a line each: what was chosen under its keys, and all figures.
pub(super) fn answers_csv(answers: &[(Vec<(String, String)>, &Evaluation)], bom: bool) -> Vec<u8> {
    let chosen = answers.first().map(|(chosen, _)| chosen.iter().map(|(key, _)| key.as_str()));
    let keys = chosen.into_iter().flatten().chain(METRICS.iter().map(|metric| metric.key));
    let mut sheet = Sheet::new(keys, bom);
    for (chosen, evaluation) in answers {
        sheet.row(chosen.iter().map(|(_, value)| text(value)).chain(values(evaluation)));
    }
    sheet.finish()
}

/// Objects of the same keys, a line each.
pub fn objects_csv(objects: &[Map<String, Json>], bom: bool) -> Vec<u8> {
    let mut sheet = Sheet::new(objects.first().into_iter().flat_map(|first| first.keys().map(String::as_str)), bom);
    for object in objects {
        sheet.row(object.values().map(|value| match value {
            Json::Null => String::new(),
            Json::String(words) => text(words),
            bare => bare.to_string(),
        }));
    }
    sheet.finish()
}

/// A table of texts.
pub fn grid_csv(grid: &Grid, bom: bool) -> Vec<u8> {
    let mut sheet = Sheet::new(grid.header.iter().map(String::as_str), bom);
    for row in &grid.rows {
        sheet.row(row.iter().map(|cell| text(cell)));
    }
    sheet.finish()
}

fn values(evaluation: &Evaluation) -> impl Iterator<Item = String> {
    METRICS.iter().map(|metric| metric.value(evaluation).map(written).unwrap_or_default())
}

fn written(value: Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Flag(yes) => yes.to_string(),
        Value::Word(word) => word.to_owned(),
    }
}

/// A text that no spreadsheet takes for a formula: where it would begin as one, an apostrophe stands before it.
pub(super) fn text(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    // A number is no formula, whatever its sign.
    if formula && cell.parse::<f64>().is_err() { format!("'{cell}") } else { cell.to_owned() }
}

struct Sheet(csv::Writer<Vec<u8>>);

impl Sheet {
    fn new<'a>(header: impl Iterator<Item = &'a str>, bom: bool) -> Self {
        let start = if bom { BYTE_ORDER_MARK.to_vec() } else { Vec::new() };
        let mut sheet = Self(csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(start));
        sheet.row(header.map(text));
        sheet
    }

    fn row(&mut self, cells: impl Iterator<Item = String>) {
        let cells: Vec<String> = cells.collect();
        // Writing to memory cannot fail, nor can a line be shorter than the header: both come from the same rows.
        let written = self.0.write_record(&cells);
        debug_assert!(written.is_ok());
    }

    fn finish(self) -> Vec<u8> {
        self.0.into_inner().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rows: &[&[&str]], bom: bool) -> Vec<u8> {
        let mut grid = Grid::new(&["name", "value"], 1);
        grid.rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        grid_csv(&grid, bom)
    }

    #[test]
    fn formulas_are_neutralised_and_negative_numbers_stay() {
        let rows: &[&[&str]] = &[&["=1+2", "-1.5"], &["+cmd", "+3"], &["-x", "-1e3"], &["@a", "\tb"]];
        let text = String::from_utf8(lines(rows, false)).unwrap();
        assert_eq!(text, "name,value\r\n'=1+2,-1.5\r\n'+cmd,+3\r\n'-x,-1e3\r\n'@a,'\tb\r\n");
    }

    #[test]
    fn commas_quotes_and_line_ends_are_quoted() {
        let text = String::from_utf8(lines(&[&["a,b", "say \"no\"\nor yes"]], false)).unwrap();
        assert_eq!(text, "name,value\r\n\"a,b\",\"say \"\"no\"\"\nor yes\"\r\n");
    }

    #[test]
    fn a_byte_order_mark_comes_first_where_asked() {
        assert!(lines(&[], true).starts_with(b"\xEF\xBB\xBFname,value"));
        assert!(lines(&[], false).starts_with(b"name"));
    }
}
