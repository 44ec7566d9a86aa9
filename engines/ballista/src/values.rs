//! Points given as a table of values: a column for each key, a row for each point.
//!
//! A batch is bound as a sweep of its own, whose axes are the distinct values of its columns: what rows share is computed
//! once, as in any sweep.

use std::collections::HashMap;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::document::Node;
use clusterplan::load;
use clusterplan::scenario::{AxisFile, SweepFile, ValuesFile};
use datafusion::arrow::array::{Array, StringArray, StructArray};
use datafusion::arrow::datatypes::Fields;
use datafusion::common::Result;

use crate::columns::Answers;
use crate::question::{Evaluator, Mistakes};

/// The columns of the answers.
pub(crate) fn fields(evaluator: &Evaluator, text: &str, figures: &str, keys: &[&str]) -> Result<Fields> {
    let (document, sources) = evaluator.document(text)?;
    let bound = evaluator.bind(&document, &SweepFile::default(), figures, &sources)?;
    Ok(Answers::new(&bound.sweep, keys, 0).fields())
}

/// The distinct values of a column, in the order in which they come, and each row's place among them.
#[derive(Default)]
struct Distinct<'a> {
    values: Vec<&'a str>,
    places: HashMap<&'a str, u64>,
}

impl<'a> Distinct<'a> {
    fn place(&mut self, value: &'a str) -> u64 {
        *self.places.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() as u64 - 1
        })
    }
}

/// The answers of all rows.
pub(crate) fn answers(
    evaluator: &Evaluator,
    text: &str,
    figures: &str,
    keys: &[&str],
    columns: &[&StringArray],
    rows: usize,
) -> Result<StructArray> {
    let (document, mut sources) = evaluator.document(text)?;
    let plain = evaluator.bind(&document, &SweepFile::default(), figures, &sources)?;
    let mut answers = Answers::new(&plain.sweep, keys, rows);
    // Rows that leave out the same keys.
    let mut groups: HashMap<Vec<bool>, Vec<usize>> = HashMap::new();
    for row in 0..rows {
        groups.entry(columns.iter().map(|column| column.is_valid(row)).collect()).or_default().push(row);
    }
    for (given, rows) in groups {
        let given =
            keys.iter().zip(columns).zip(given).filter(|(_, given)| *given).map(|((key, column), _)| (*key, *column));
        let given: Vec<(&str, &StringArray)> = given.collect();
        let mut open = vec![&rows[..]];
        while let Some(part) = open.pop() {
            let mut distinct: Vec<Distinct<'_>> = given.iter().map(|_| Distinct::default()).collect();
            let places: Vec<Vec<u64>> = part
                .iter()
                .map(|row| {
                    given
                        .iter()
                        .zip(&mut distinct)
                        .map(|((_, column), distinct)| distinct.place(column.value(*row)))
                        .collect()
                })
                .collect();
            let sizes: Vec<u64> = distinct.iter().map(|distinct| distinct.values.len() as u64).collect();
            // Of too many combinations to be numbered, half the rows have fewer.
            if sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size)).is_none() {
                let (first, second) = part.split_at(part.len() / 2);
                open.extend([first, second]);
                continue;
            }
            let file = axes_of(&given, &distinct, &mut sources)?;
            let bound = evaluator.bind(&document, &file, figures, &sources)?;
            bound.with(|visitor| {
                for (row, places) in part.iter().zip(&places) {
                    let point = places.iter().zip(&sizes).fold(0, |point, (place, size)| point * size + place);
                    bound.sweep.visit(visitor, point, |found| answers.set(*row, found));
                }
            });
        }
    }
    answers.finish()
}

/// Axes of these values, each written as `--set` takes it.
fn axes_of(
    given: &[(&str, &StringArray)],
    distinct: &[Distinct<'_>],
    sources: &mut Sources,
) -> std::result::Result<SweepFile, Mistakes> {
    let sink = Sink::default();
    let mut axes = Vec::new();
    for ((key, _), distinct) in given.iter().zip(distinct) {
        let mut node = |value: &&str| load::setting("--points", &format!("{key}={value}"), sources, &sink);
        let values: Vec<Node> = distinct.values.iter().filter_map(|value| node(value).map(|(_, node)| node)).collect();
        let at = values.first().map(|value| value.at.clone()).unwrap_or_default();
        axes.push(AxisFile::One { key: (*key).to_owned(), at, values: ValuesFile::List(values) });
    }
    if sink.is_empty() { Ok(SweepFile { axes, ..SweepFile::default() }) } else { Err(Mistakes::of(sink, sources)) }
}
