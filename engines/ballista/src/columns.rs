//! Rows of a sweep as columns of Arrow.

use std::str::FromStr;
use std::sync::Arc;

use clusterplan::report::{Unit, layout_toml, metric};
use clusterplan::sweep::{ABSENT, AxisColumn, LayoutKey, LayoutValue, Row, Sweep};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, StructArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;

use crate::points::POINT;
use crate::question::Bound;

/// All texts as what they say, if they do.
fn all<'a, T: FromStr>(texts: impl Iterator<Item = &'a str>) -> Option<Vec<T>> {
    texts.map(|text| text.parse().ok()).collect()
}

/// The values of an axis, by number.
pub(crate) fn axis_values(column: &AxisColumn) -> ArrayRef {
    let texts = || column.values.iter().map(|value| value.text.as_str());
    // A text may read like a number and be none.
    if column.values.iter().all(|value| value.number.is_some()) {
        if let Some(whole) = all::<i64>(texts()) {
            return Arc::new(Int64Array::from(whole));
        }
        if let Some(numbers) = all::<f64>(texts()) {
            return Arc::new(Float64Array::from(numbers));
        }
    }
    if let Some(flags) = all::<bool>(texts()) {
        return Arc::new(BooleanArray::from(flags));
    }
    Arc::new(StringArray::from_iter_values(texts()))
}

/// The columns of axes, after the point where rows are not points.
pub(crate) fn axis_fields(sweep: &Sweep<'_>) -> Fields {
    let point = sweep.axes.layouts.then(|| Field::new(POINT, DataType::UInt64, true));
    let columns = sweep.axes.columns.iter();
    let columns = columns.map(|column| Field::new(&column.key, axis_values(column).data_type().clone(), true));
    point.into_iter().chain(columns).collect()
}

/// The values of the axes at these rows.
pub(crate) fn axes(bound: &Bound, rows: &[u64]) -> Result<StructArray> {
    let sweep = &bound.sweep;
    let mut numbers = vec![Vec::with_capacity(rows.len()); sweep.axes.columns.len()];
    let mut at = vec![ABSENT; sweep.axes.columns.len()];
    let points: Vec<u64> = rows.iter().map(|row| bound.point(*row)).collect();
    for point in &points {
        sweep.axes.at(*point, &mut at);
        for (column, number) in numbers.iter_mut().zip(&at) {
            column.push((*number != ABSENT).then_some(*number));
        }
    }
    let values = sweep.axes.columns.iter().zip(numbers);
    let values = values.map(|(column, numbers)| take(&axis_values(column), &UInt32Array::from(numbers), None));
    let mut arrays = values.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
    if sweep.axes.layouts {
        arrays.insert(0, Arc::new(UInt64Array::from(points)));
    }
    Ok(StructArray::try_new_with_length(axis_fields(sweep), arrays, None, rows.len())?)
}

/// A column of answers.
enum Column {
    Flag(Vec<Option<bool>>),
    Degree(Vec<Option<u32>>),
    Number(Vec<Option<f64>>),
    Word(Vec<Option<String>>),
}

impl Column {
    fn with(kind: &DataType, rows: usize) -> Self {
        match kind {
            DataType::Boolean => Self::Flag(vec![None; rows]),
            DataType::UInt32 => Self::Degree(vec![None; rows]),
            DataType::Float64 => Self::Number(vec![None; rows]),
            _ => Self::Word(vec![None; rows]),
        }
    }

    fn set_layout(&mut self, row: usize, value: LayoutValue) {
        match (self, value) {
            (Self::Flag(flags), LayoutValue::Flag(yes)) => flags[row] = Some(yes),
            (Self::Degree(degrees), LayoutValue::Degree(degree)) => degrees[row] = Some(degree),
            (Self::Word(words), value) => words[row] = Some(value.to_string()),
            // The columns' kinds are those of the keys.
            _ => {}
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Flag(values) => Arc::new(BooleanArray::from(values)),
            Self::Degree(values) => Arc::new(UInt32Array::from(values)),
            Self::Number(values) => Arc::new(Float64Array::from(values)),
            Self::Word(values) => Arc::new(StringArray::from(values)),
        }
    }
}

const fn kind_of(key: LayoutKey) -> DataType {
    match key {
        LayoutKey::Tensor
        | LayoutKey::Context
        | LayoutKey::Pipeline
        | LayoutKey::Data
        | LayoutKey::Expert
        | LayoutKey::VirtualStages
        | LayoutKey::MicroBatch => DataType::UInt32,
        LayoutKey::ContextExchange | LayoutKey::Schedule | LayoutKey::Sharding | LayoutKey::Recompute => DataType::Utf8,
        LayoutKey::SequenceParallel | LayoutKey::OverlapTensor | LayoutKey::OverlapData => DataType::Boolean,
    }
}

/// The answers of some rows, beside the values of their axes: the layout where it is searched, and of serving, whether and why
/// not, figures.
pub(crate) struct Answers {
    layouts: Vec<LayoutKey>,
    serves: bool,
    fields: Fields,
    columns: Vec<Column>,
    present: Vec<bool>,
}

impl Answers {
    /// For so many rows of a sweep, with the layout's keys but for those that the table has already.
    pub(crate) fn new(sweep: &Sweep<'_>, own: &[&str], rows: usize) -> Self {
        let shown = |key: &LayoutKey| sweep.layouts && !own.contains(&key.word());
        let layouts: Vec<LayoutKey> = LayoutKey::ALL.iter().copied().filter(shown).collect();
        let figure = |key: &'static str| {
            let flag = metric(key).is_some_and(|metric| metric.unit == Unit::Flag);
            Field::new(key, if flag { DataType::Boolean } else { DataType::Float64 }, true)
        };
        let fields: Fields = layouts
            .iter()
            .map(|key| Field::new(key.word(), kind_of(*key), true))
            .chain(sweep.serves.then(|| Field::new("layout", DataType::Utf8, true)))
            .chain([Field::new("feasible", DataType::Boolean, true), Field::new("reason", DataType::Utf8, true)])
            .chain(sweep.figures.iter().map(|found| figure(found.key)))
            .collect();
        let columns = fields.iter().map(|field| Column::with(field.data_type(), rows)).collect();
        Self { layouts, serves: sweep.serves, fields, columns, present: vec![false; rows] }
    }

    /// The columns.
    pub(crate) fn fields(&self) -> Fields {
        self.fields.clone()
    }

    /// Writes a row at its place; a place without one stays nothing.
    pub(crate) fn set(&mut self, at: usize, row: &Row<'_>) {
        self.present[at] = true;
        if let Some((layout, overlap)) = row.layout {
            for (column, key) in self.columns.iter_mut().zip(&self.layouts) {
                column.set_layout(at, key.of(&layout, overlap));
            }
        }
        let mut columns = self.columns.iter_mut().skip(self.layouts.len());
        if self.serves
            && let Some(Column::Word(ways)) = columns.next()
        {
            ways[at] = row.served().map(|way| layout_toml(&way));
        }
        for (place, column) in columns.enumerate() {
            match (place, column) {
                (0, Column::Flag(feasible)) => feasible[at] = Some(row.outcome.is_ok()),
                (_, Column::Word(reasons)) => reasons[at] = row.reason(),
                (place, Column::Flag(flags)) => flags[at] = row.figure(place - 2).map(|value| value > 0.0),
                (place, Column::Number(numbers)) => numbers[at] = row.figure(place - 2),
                (_, Column::Degree(_)) => {}
            }
        }
    }

    /// All rows.
    pub(crate) fn finish(self) -> Result<StructArray> {
        let rows = self.present.len();
        let arrays = self.columns.into_iter().map(Column::finish).collect();
        Ok(StructArray::try_new_with_length(self.fields, arrays, Some(NullBuffer::from(self.present)), rows)?)
    }
}
