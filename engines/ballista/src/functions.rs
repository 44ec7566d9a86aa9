//! The evaluation as scalar functions of SQL, which return a struct for each row.
//!
//! They are the same in every process, and known by name: the scenario is an argument, so that it travels with the query.
//! - `sweep_axes(scenario, row)`: the values of the scenario's axes, and where points have a row for each layout, the point.
//! - `sweep_point(scenario, figures, row)`: the answer at a point of these axes, or of one of its layouts.
//! - `sweep_values(scenario, figures, keys, value, ...)`: the answer with these keys set, one argument for each line of `keys`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::columns::{Answers, axes, axis_fields};
use crate::question::{Bound, Evaluator, Mistakes};
use crate::values;

/// What a function answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Axes,
    Point,
    Values,
}

#[derive(Debug)]
struct SweepFunction {
    answer: Answer,
    signature: Signature,
    evaluator: Arc<Evaluator>,
}

impl PartialEq for SweepFunction {
    fn eq(&self, other: &Self) -> bool {
        self.answer == other.answer && Arc::ptr_eq(&self.evaluator, &other.evaluator)
    }
}

impl Eq for SweepFunction {}

impl Hash for SweepFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.answer.hash(state);
    }
}

/// The functions, in the order of the module's list.
pub(crate) fn functions(evaluator: &Arc<Evaluator>) -> [Arc<ScalarUDF>; 3] {
    [Answer::Axes, Answer::Point, Answer::Values].map(|answer| {
        let signature = match answer {
            Answer::Axes => Signature::any(2, Volatility::Immutable),
            // Answers depend on nothing but their arguments, but are dear: planners repeat what they take for cheap.
            Answer::Point => Signature::any(3, Volatility::Volatile),
            Answer::Values => Signature::variadic_any(Volatility::Volatile),
        };
        Arc::new(ScalarUDF::from(SweepFunction { answer, signature, evaluator: evaluator.clone() }))
    })
}

impl From<Mistakes> for DataFusionError {
    fn from(mistakes: Mistakes) -> Self {
        Self::External(Box::new(mistakes))
    }
}

/// The keys that the columns of a table of values set, as an argument.
pub(crate) fn keys_argument(keys: &[String]) -> String {
    keys.join("\n")
}

impl SweepFunction {
    /// An argument that is the same for all rows.
    fn text<'a>(&self, argument: Option<&'a ScalarValue>) -> Result<&'a str> {
        let text = argument.and_then(|value| value.try_as_str().flatten());
        text.ok_or_else(|| exec_datafusion_err!("{} takes scenario, figures and keys as literal texts", self.name()))
    }

    fn values(&self, texts: [&str; 3], columns: &[ColumnarValue], rows: usize) -> Result<StructArray> {
        let [text, figures, keys] = texts;
        let keys: Vec<&str> = keys.lines().collect();
        let columns: Vec<ArrayRef> =
            columns.iter().map(|column| Ok(cast(&column.to_array(rows)?, &DataType::Utf8)?)).collect::<Result<_>>()?;
        if keys.len() != columns.len() {
            return exec_err!("{} was given {} keys and {} values", self.name(), keys.len(), columns.len());
        }
        let columns: Vec<_> = columns.iter().map(AsArray::as_string::<i32>).collect();
        values::answers(&self.evaluator, text, figures, &keys, &columns, rows)
    }
}

impl ScalarUDFImpl for SweepFunction {
    fn name(&self) -> &str {
        match self.answer {
            Answer::Axes => "sweep_axes",
            Answer::Point => "sweep_point",
            Answer::Values => "sweep_values",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        exec_err!("the columns of {} depend on its arguments", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let argument = |place: usize| self.text(args.scalar_arguments.get(place).copied().flatten());
        let fields: Fields = match self.answer {
            Answer::Axes => axis_fields(&self.evaluator.bound(argument(0)?, None)?.sweep),
            Answer::Point => {
                let bound = self.evaluator.bound(argument(0)?, Some(argument(1)?))?;
                let own: Vec<&str> = bound.sweep.axes.columns.iter().map(|column| column.key.as_str()).collect();
                Answers::new(&bound.sweep, &own, 0).fields()
            }
            Answer::Values => {
                let keys: Vec<&str> = argument(2)?.lines().collect();
                values::fields(&self.evaluator, argument(0)?, argument(1)?, &keys)?
            }
        };
        Ok(Arc::new(Field::new_struct(self.name(), fields, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let literal = |place: usize| match args.args.get(place) {
            Some(ColumnarValue::Scalar(value)) => self.text(Some(value)),
            _ => self.text(None),
        };
        let numbers = |place: usize| -> Result<Vec<u64>> {
            let given = args.args.get(place).ok_or_else(|| exec_datafusion_err!("{} takes a row", self.name()))?;
            let points = cast(&given.to_array(rows)?, &DataType::UInt64)?;
            if points.null_count() > 0 {
                return exec_err!("{} takes the number of a row, which is never nothing", self.name());
            }
            Ok(points.as_primitive::<UInt64Type>().values().to_vec())
        };
        let within = |rows: &[u64], bound: &Bound| match rows.iter().find(|row| **row >= bound.size()) {
            Some(row) => exec_err!("there is no row {row}: the axes have {}", bound.size()),
            None => Ok(()),
        };
        let answers = match self.answer {
            Answer::Axes => {
                let (bound, rows) = (self.evaluator.bound(literal(0)?, None)?, numbers(1)?);
                within(&rows, &bound)?;
                axes(&bound, &rows)?
            }
            Answer::Point => {
                let (bound, given) = (self.evaluator.bound(literal(0)?, Some(literal(1)?))?, numbers(2)?);
                within(&given, &bound)?;
                let own: Vec<&str> = bound.sweep.axes.columns.iter().map(|column| column.key.as_str()).collect();
                let mut answers = Answers::new(&bound.sweep, &own, rows);
                bound.visit(&given, |at, row| answers.set(at, row));
                answers.finish()?
            }
            Answer::Values => {
                self.values([literal(0)?, literal(1)?, literal(2)?], args.args.get(3..).unwrap_or_default(), rows)?
            }
        };
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}
