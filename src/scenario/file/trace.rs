//! `serving.trace`: requests that were recorded.

use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{FromNode, Node, Rows, Schema, Value};
use crate::units::{Seconds, brief};

/// The columns that a trace may have; the first two it must.
const COLUMNS: [&str; 3] = ["input_tokens", "output_tokens", "arrival_s"];
/// The most tokens of a prompt or an answer, more than any context.
const MOST_TOKENS: f64 = 100e6;
/// Mistakes of a trace that are told one by one.
const MOST_MISTAKES: usize = 8;

/// `serving.trace`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TraceFile {
    /// The file.
    pub name: String,
    /// Tokens of prompts.
    pub inputs: Vec<f64>,
    /// Tokens of answers.
    pub outputs: Vec<f64>,
    /// When each came, where that was recorded.
    pub times: Option<Vec<Seconds>>,
    /// Place of the name.
    pub at: Span,
}

impl FromNode for TraceFile {
    fn schema() -> Schema {
        Schema::Text
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let nothing = || Self { at: node.at.clone(), ..Self::default() };
        let rows = match &node.value {
            Value::Rows(rows) => rows,
            // The name of a file that could not be read, which has been told.
            Value::String(_) if !sink.is_empty() => return nothing(),
            Value::String(_) => {
                let message = format!("`{path}` is read with its scenario, and cannot be varied");
                let hint = "give each trace a scenario of its own, or --set serving.trace=FILE.csv";
                sink.push(Diagnostic::new(Code::Unsupported, message).at(&node.at, "named here").hint(hint));
                return nothing();
            }
            _ => {
                node.wrong_type(path, "the name of a CSV file with columns input_tokens and output_tokens", sink);
                return nothing();
            }
        };
        check_columns(rows, &node.at, sink);
        let lengths = |name: &str| rows.column(name).map(<[f64]>::to_vec).unwrap_or_default();
        let times = rows.column(COLUMNS[2]);
        check_rows(rows, sink);
        Self {
            name: rows.name.clone(),
            inputs: lengths(COLUMNS[0]),
            outputs: lengths(COLUMNS[1]),
            times: times.map(|times| times.iter().copied().map(Seconds::new).collect()),
            at: node.at.clone(),
        }
    }
}

fn check_columns(rows: &Rows, at: &Span, sink: &Sink) {
    let hint = "the columns are input_tokens, output_tokens and, where it was recorded, arrival_s";
    for column in rows.columns.iter().filter(|column| !COLUMNS.contains(&column.name.as_str())) {
        let message = format!("a trace has no column `{}`", column.name);
        sink.push(Diagnostic::new(Code::UnknownKey, message).at(&column.at, "in this head").hint(hint));
    }
    for name in &COLUMNS[..2] {
        if rows.column(name).is_none() {
            let message = format!("{} has no column `{name}`", rows.name);
            sink.push(Diagnostic::new(Code::MissingKey, message).at(at, "this trace").hint(hint));
        } else if rows.places.is_empty() {
            let message = format!("{} has no request", rows.name);
            sink.push(Diagnostic::new(Code::MissingKey, message).at(at, "this trace").hint("a row for each"));
            return;
        }
    }
}

/// Lengths are of at least a token, and times go up.
fn check_rows(rows: &Rows, sink: &Sink) {
    let mut mistakes = 0;
    let mut mistake = |row: usize, message: String, hint: &str| {
        mistakes += 1;
        if let Some(at) = rows.places.get(row).filter(|_| mistakes <= MOST_MISTAKES) {
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(at, "this row").hint(hint));
        }
    };
    for name in &COLUMNS[..2] {
        for (row, tokens) in rows.column(name).unwrap_or_default().iter().enumerate() {
            if !(1.0..=MOST_TOKENS).contains(tokens) {
                mistake(row, format!("{} under `{name}`", brief(tokens)), "tokens of a request, at least 1");
            }
        }
    }
    let mut before = f64::NEG_INFINITY;
    for (row, time) in rows.column(COLUMNS[2]).unwrap_or_default().iter().enumerate() {
        if *time < 0.0 {
            mistake(row, format!("a time of {} s, before the beginning", brief(time)), "times begin at 0 s or later");
        } else if *time < before {
            mistake(
                row,
                format!("a time of {} s after one of {} s", brief(time), brief(before)),
                "rows stand in the order of coming",
            );
        }
        before = *time;
    }
    if mistakes > MOST_MISTAKES {
        let message = format!("{}: {} more rows are wrong", rows.name, mistakes - MOST_MISTAKES);
        sink.push(Diagnostic::new(Code::OutOfRange, message));
    }
}
