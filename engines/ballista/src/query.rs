//! A question in SQL over the table `sweep`, which has the columns that `clusterplan sweep` writes.

use std::path::Path;
use std::sync::Arc;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::error::BallistaError;
use clusterplan::report::all_figures;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, ScalarUDF, col, lit};
use datafusion::prelude::{DataFrame, ParquetReadOptions, SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};

use crate::codec::Tables;
use crate::functions::{functions, keys_argument};
use crate::points::{POINT, Points};
use crate::question::{Bound, Evaluator, Mistakes};

/// The table that is asked.
const SWEEP: &str = "sweep";

/// The name of a struct while its fields are not yet columns.
const STRUCT: &str = "struct";

/// The number of a row, where points have several.
const ROW: &str = "row";

/// Parts that a table of points is shared out in on a cluster, unless asked for others.
const PARTS: usize = 16;

/// What is asked.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) scenario: &'a Path,
    pub(crate) settings: &'a [String],
    /// A Parquet file whose rows are the points; else they are those of the scenario's axes.
    pub(crate) points: Option<&'a Path>,
    pub(crate) sql: &'a str,
}

/// Planners take a field of a struct for cheap, wherever the struct comes from, and would evaluate a point once for each.
const FIELDS_MOVE: &str = "datafusion.optimizer.enable_leaf_expression_pushdown";

/// A session without a rule that moves conditions below a projection and into what it computes, as DataFusion 55 does
/// whatever that is: a point would be evaluated once more for each condition.
pub(crate) fn evaluating_once(state: SessionState) -> SessionState {
    let rules = state.physical_optimizers().iter().filter(|rule| !rule.name().starts_with("FilterPushdown"));
    let rules = rules.cloned().collect();
    SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build()
}

/// A context that runs queries in this process.
pub(crate) fn local(partitions: Option<usize>) -> SessionContext {
    let config = SessionConfig::new().set_bool(FIELDS_MOVE, false);
    let config = match partitions {
        Some(partitions) => config.with_target_partitions(partitions),
        None => config,
    };
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    SessionContext::new_with_state(evaluating_once(state))
}

/// A context that runs queries on the executors of a scheduler.
pub(crate) async fn remote(scheduler: &str, partitions: Option<usize>) -> Result<SessionContext> {
    let config = SessionConfig::new_with_ballista()
        .set_bool(FIELDS_MOVE, false)
        .with_target_partitions(partitions.unwrap_or(PARTS))
        .with_ballista_logical_extension_codec(Arc::new(Tables::default()));
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    SessionContext::remote_with_state(&format!("df://{scheduler}"), state).await
}

/// Whether rows could not be fetched from the executor that made them, after their query had ended well.
pub(crate) fn lost_rows(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(inner) => matches!(
            inner.downcast_ref::<BallistaError>(),
            Some(
                BallistaError::FetchFailed(..)
                    | BallistaError::GrpcActionError(_)
                    | BallistaError::GrpcConnectionError(_)
                    | BallistaError::GrpcError(_)
                    | BallistaError::TonicError(_)
            )
        ),
        // Rows break off.
        DataFusionError::ArrowError(error, _) => {
            matches!(**error, ArrowError::IpcError(_) | ArrowError::ExternalError(_))
        }
        // The client words so that nobody is there any more; that the query itself failed reads otherwise.
        DataFusionError::Execution(told) => told.starts_with("GrpcConnectionError"),
        _ => false,
    }
}

impl Query<'_> {
    /// The answer, as it comes.
    pub(crate) async fn run(
        &self,
        context: &SessionContext,
        evaluator: &Arc<Evaluator>,
    ) -> Result<SendableRecordBatchStream> {
        let functions = functions(evaluator);
        for function in &functions {
            context.register_udf(function.as_ref().clone());
        }
        let figures = all_figures().filter(|key| self.sql.contains(key)).collect::<Vec<_>>().join(",");
        let text = evaluator.ask(self.scenario, self.settings, self.points.is_none())?;
        let table = if let Some(path) = self.points {
            self::values(context, &functions, &text, &figures, path).await?
        } else {
            let bound = evaluator.bound(&text, Some(&figures))?;
            numbered(context, &functions, &text, &figures, &bound).await?
        };
        let keys = names(&table);
        context.register_table(SWEEP, table.into_view())?;
        let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        context.sql_with_options(&quote(self.sql, &keys)?, only_queries).await?.execute_stream().await
    }
}

/// The rows of the scenario's axes.
async fn numbered(
    context: &SessionContext,
    [axes, answer, _]: &[Arc<ScalarUDF>; 3],
    text: &str,
    figures: &str,
    bound: &Bound,
) -> Result<DataFrame> {
    context.register_table("points", Arc::new(Points { size: bound.size() }))?;
    let rows = context.table("points").await?;
    // Axes first, so that conditions on them are met before anything is evaluated.
    if !bound.sweep.axes.layouts {
        let points = spread(rows, axes.call(vec![lit(text), col(POINT)]))?;
        return spread(points, answer.call(vec![lit(text), lit(figures), col(POINT)]));
    }
    let rows = rows.select([col(POINT).alias(ROW)])?;
    let layouts = spread(rows, axes.call(vec![lit(text), col(ROW)]))?;
    spread(layouts, answer.call(vec![lit(text), lit(figures), col(ROW)]))?.drop_columns(&[ROW])
}

/// The rows of a file of values.
async fn values(
    context: &SessionContext,
    [_, _, answer]: &[Arc<ScalarUDF>; 3],
    text: &str,
    figures: &str,
    path: &Path,
) -> Result<DataFrame> {
    let path = path.canonicalize().map_err(|error| {
        let hint = "executors read the file themselves, under the same path";
        DataFusionError::from(Mistakes::one(format!("cannot read {}: {error}", path.display()), hint))
    })?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_owned();
    let options = ParquetReadOptions::default().file_extension(&extension);
    context.register_parquet("points", &*path.to_string_lossy(), options).await?;
    let points = context.table("points").await?;
    // A column of numbers of the points is no key.
    let keys: Vec<String> = names(&points).into_iter().filter(|column| *column != POINT).collect();
    let mut arguments = vec![lit(text), lit(figures), lit(keys_argument(&keys))];
    arguments.extend(keys.iter().map(column));
    spread(points, answer.call(arguments))
}

fn names(table: &DataFrame) -> Vec<String> {
    table.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// The column of a key, whose dots are part of its name.
fn column(key: impl Into<String>) -> Expr {
    Expr::Column(Column::from_name(key))
}

/// Adds the fields of a struct as columns, and leaves out rows that have none.
fn spread(rows: DataFrame, of: Expr) -> Result<DataFrame> {
    let own: Vec<Expr> = names(&rows).into_iter().map(column).collect();
    let rows = rows.select([own.clone(), vec![of.alias(STRUCT)]].concat())?;
    let DataType::Struct(fields) = rows.schema().field_with_unqualified_name(STRUCT)?.data_type() else {
        return plan_err!("{STRUCT} is no struct");
    };
    let field = |field: &Arc<Field>| get_field(col(STRUCT), field.name().as_str()).alias(field.name());
    let fields: Vec<Expr> = fields.iter().map(field).collect();
    rows.filter(col(STRUCT).is_not_null())?.select([own, fields].concat())
}

/// Lets keys be written as they are: `cost.usd_per_run` is a column, and no column of a table `cost`.
fn quote(sql: &str, keys: &[String]) -> Result<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().map_err(|error| plan_datafusion_err!("{error}"))?;
    let mut quoted = String::with_capacity(sql.len());
    let mut at = 0;
    while at < tokens.len() {
        let length = tokens[at..].iter().take_while(|token| is_of_key(token)).count();
        // The longest key that begins here.
        let found = (at + 1..=at + length).rev().find_map(|end| {
            let text: String = tokens[at..end].iter().map(ToString::to_string).collect();
            keys.contains(&text).then_some((end, text))
        });
        if let Some((end, key)) = found {
            quoted.extend(["\"", &key, "\""]);
            at = end;
        } else {
            quoted += &tokens[at].to_string();
            at += 1;
        }
    }
    Ok(quoted)
}

/// Whether a key may have this in it.
const fn is_of_key(token: &Token) -> bool {
    matches!(token, Token::Period | Token::Word(Word { quote_style: None, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_quoted_where_they_are_not() {
        let keys =
            ["cost.usd_per_run", "cluster.accelerators", "cluster.topology.oversubscription", "cluster.topology"];
        let keys = keys.map(str::to_owned);
        for (given, expected) in [
            ("select cost.usd_per_run from sweep", "select \"cost.usd_per_run\" from sweep"),
            ("select \"cost.usd_per_run\" from sweep", "select \"cost.usd_per_run\" from sweep"),
            ("select s.cluster.accelerators*1.5", "select s.\"cluster.accelerators\"*1.5"),
            ("select 'cost.usd_per_run', cost.usd", "select 'cost.usd_per_run', cost.usd"),
            ("cluster.topology.oversubscription > 1e-3", "\"cluster.topology.oversubscription\" > 1e-3"),
            ("cluster.topology, cluster.topology.kind", "\"cluster.topology\", \"cluster.topology\".kind"),
        ] {
            assert_eq!(quote(given, &keys).unwrap(), expected);
        }
    }
}
