//! The table of a sweep's points: their numbers, in ranges that are shared out.
//!
//! Ballista shares out rows that lie in memory, and would give all of an unknown source to each task. So ranges lie in
//! memory, one for each partition, and [`Counting`] counts them out where they are wanted.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};

/// The column of the table.
pub(crate) const POINT: &str = "point";

/// The points of a sweep.
#[derive(Debug)]
pub(crate) struct Points {
    /// How many.
    pub(crate) size: u64,
}

fn schema(shown: bool) -> SchemaRef {
    let fields = shown.then(|| Field::new(POINT, DataType::UInt64, false));
    Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()))
}

/// A range of the points for each partition, as rows in memory.
fn ranges(size: u64, partitions: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let column = |name| Field::new(name, DataType::UInt64, false);
    let schema = Arc::new(Schema::new(vec![column("from"), column("to")]));
    let partitions = u64::try_from(partitions).unwrap_or(u64::MAX).clamp(1, size.max(1));
    let bound = |partition: u64| {
        let bound = u128::from(size) * u128::from(partition) / u128::from(partitions);
        u64::try_from(bound).unwrap_or(size)
    };
    let range = |partition| -> Result<Vec<RecordBatch>> {
        let ends = [bound(partition), bound(partition + 1)];
        let columns = ends.map(|end| Arc::new(UInt64Array::from(vec![end])) as ArrayRef).to_vec();
        Ok(vec![RecordBatch::try_new(schema.clone(), columns)?])
    };
    let partitions: Vec<Vec<RecordBatch>> = (0..partitions).map(range).collect::<Result<_>>()?;
    Ok(MemorySourceConfig::try_new_exec(&partitions, schema.clone(), None)?)
}

#[async_trait]
impl TableProvider for Points {
    fn schema(&self) -> SchemaRef {
        schema(true)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let size = limit.map_or(self.size, |limit| self.size.min(limit as u64));
        let shown = projection.is_none_or(|columns| !columns.is_empty());
        Ok(Arc::new(Counting::new(ranges(size, state.config().target_partitions())?, shown)))
    }
}

/// Counts out ranges.
#[derive(Debug)]
pub(crate) struct Counting {
    ranges: Arc<dyn ExecutionPlan>,
    /// Whether the numbers are wanted, or only as many rows.
    pub(crate) shown: bool,
    properties: Arc<PlanProperties>,
}

impl Counting {
    pub(crate) fn new(ranges: Arc<dyn ExecutionPlan>, shown: bool) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema(shown)),
            Partitioning::UnknownPartitioning(ranges.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self { ranges, shown, properties }
    }
}

impl DisplayAs for Counting {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PointsExec")
    }
}

impl ExecutionPlan for Counting {
    fn name(&self) -> &'static str {
        "PointsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.ranges]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(children.pop().map_or(self.clone(), |ranges| Arc::new(Self::new(ranges, self.shown))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let step = context.session_config().batch_size().max(1);
        let of_schema = schema.clone();
        let counted = self.ranges.execute(partition, context)?.map_ok(move |ranges| {
            let end = |column: usize| ranges.column(column).as_primitive::<UInt64Type>().values().to_vec();
            let schema = of_schema.clone();
            let each = end(0).into_iter().zip(end(1)).flat_map(move |(from, to)| {
                let schema = schema.clone();
                (from..to).step_by(step).map(move |first| batch(&schema, first..to.min(first + step as u64)))
            });
            futures::stream::iter(each)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted.try_flatten().boxed())))
    }
}

fn batch(schema: &SchemaRef, points: std::ops::Range<u64>) -> Result<RecordBatch> {
    let points = UInt64Array::from_iter_values(points);
    let options = RecordBatchOptions::new().with_row_count(Some(points.values().len()));
    let columns: Vec<ArrayRef> = schema.fields().iter().map(|_| Arc::new(points.clone()) as _).collect();
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
