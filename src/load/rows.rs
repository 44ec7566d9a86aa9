//! Files of numbers that a scenario names: read beside it, and put where their names stand.

use std::path::Path;
use std::sync::Arc;

use crate::diagnostics::{Code, Diagnostic, FileId, Sink, Sources, Span};
use crate::document::{Column, Node, Rows, Table, Value};

/// The keys of a scenario whose text names such a file.
const KEYS: [&str; 1] = ["serving.trace"];
/// Mistakes of a file that are told one by one.
const MOST_MISTAKES: usize = 8;

/// Reads the files that a scenario names; paths begin at the folder that it lies in. Mistakes go to the sink.
pub(super) fn attach(document: &mut Node, scenario: &Path, sources: &mut Sources, sink: &Sink) {
    let mut read = |node: &mut Node| {
        if let Some(name) = node.as_str().map(str::to_owned)
            && let Some(rows) = rows_of(name, &node.at, scenario, sources, sink)
        {
            node.value = Value::Rows(Arc::new(rows));
        }
    };
    let Value::Table(table) = &mut document.value else { return };
    for key in KEYS {
        let (head, last) = key.rsplit_once('.').unwrap_or(("", key));
        if let Some(Node { value: Value::Table(inner), .. }) = table.get_mut(head)
            && let Some(node) = inner.get_mut(last)
        {
            read(node);
        }
    }
    if let Some(uncertainty) = table.get_mut("uncertainty") {
        each_table(uncertainty, &mut |table| table.get_mut("values").into_iter().for_each(&mut read));
    }
    if let Some(sweep) = table.get_mut("sweep") {
        each_table(sweep, &mut |table| {
            if let Some(Node { value: Value::Table(sample), .. }) = table.get_mut("sample") {
                sample.get_mut("values").into_iter().for_each(&mut read);
            }
        });
    }
}

/// Sees every table in a tree.
fn each_table(node: &mut Node, see: &mut impl FnMut(&mut Table)) {
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_table(item, see)),
        Value::Table(table) => {
            see(table);
            table.entries.iter_mut().for_each(|entry| each_table(&mut entry.node, see));
        }
        _ => {}
    }
}

/// The numbers of a file; none where it cannot be read.
fn rows_of(name: String, at: &Span, scenario: &Path, sources: &mut Sources, sink: &Sink) -> Option<Rows> {
    let path = scenario.parent().unwrap_or_else(|| Path::new("")).join(&name);
    match super::read_text(&path) {
        Ok(text) => {
            let file = sources.add(path.display().to_string(), text);
            Some(rows(sources.text(file), file, name, sink))
        }
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            let hint = "paths begin at the folder that the scenario lies in";
            sink.push(Diagnostic::new(Code::Unreadable, message).at(at, "named here").hint(hint));
            None
        }
    }
}

/// The numbers of a CSV text under a head of names; lines that begin with # say what it is. Mistakes go to the sink.
fn rows(text: &str, file: FileId, name: String, sink: &Sink) -> Rows {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut table = Rows { name, ..Rows::default() };
    let mut mistakes = 0;
    let mut mistake = |at: &Span, message: String, hint: &str| {
        mistakes += 1;
        if mistakes <= MOST_MISTAKES {
            sink.push(Diagnostic::new(Code::Syntax, message).at(at, "this row").hint(hint));
        }
    };
    let mut record = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                let at = place(text, file, error.position());
                mistake(&at, format!("the text is not CSV: {error}"), "cells are parted by commas");
                break;
            }
        }
        let at = place(text, file, record.position());
        if table.columns.is_empty() {
            let column = |name: &str| Column { name: name.to_owned(), at: at.clone(), values: Vec::new() };
            table.columns = record.iter().map(column).collect();
            for (place, name) in record.iter().enumerate() {
                if record.iter().take(place).any(|earlier| earlier == name) {
                    let message = format!("two columns are called `{name}`");
                    let hint = "name each column once";
                    sink.push(Diagnostic::new(Code::Duplicate, message).at(&at, "in this head").hint(hint));
                }
            }
            continue;
        }
        if record.len() != table.columns.len() {
            let message = format!("a row of {} cells under {} columns", record.len(), table.columns.len());
            mistake(&at, message, "a number for each column of the head");
            continue;
        }
        let numbers: Vec<Option<f64>> =
            record.iter().map(|cell| cell.parse().ok().filter(|number: &f64| number.is_finite())).collect();
        let wrong = numbers
            .iter()
            .position(Option::is_none)
            .and_then(|column| record.get(column).zip(table.columns.get(column)));
        if let Some((cell, column)) = wrong {
            mistake(&at, format!("\"{cell}\" under `{}` is no number", column.name), "bare numbers, without units");
            continue;
        }
        for (column, number) in table.columns.iter_mut().zip(numbers.into_iter().flatten()) {
            column.values.push(number);
        }
        table.places.push(at);
    }
    if mistakes > MOST_MISTAKES {
        let message = format!("{}: {} more rows are wrong", table.name, mistakes - MOST_MISTAKES);
        sink.push(Diagnostic::new(Code::Syntax, message));
    }
    table
}

/// The line at a position.
fn place(text: &str, file: FileId, position: Option<&csv::Position>) -> Span {
    let start = position.map_or(0, |position| usize::try_from(position.byte()).unwrap_or(usize::MAX)).min(text.len());
    // A record's position is before the lines that were skipped to get to it.
    let mut start = start;
    while let Some(line) = text.get(start..).and_then(|rest| rest.split_inclusive('\n').next()) {
        if line.trim().is_empty() || line.starts_with('#') {
            start += line.len();
        } else {
            break;
        }
    }
    let length = text.get(start..).and_then(|rest| rest.lines().next()).map_or(0, str::len);
    Span { file, range: start..start + length }
}
