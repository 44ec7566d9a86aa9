//! The table of points on its way between processes; all else travels as Ballista sends it.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference, exec_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::points::{Counting, Points};

/// What points begin with; no message of Ballista's does.
const MARK: &[u8] = b"clusterplan points\n";

/// Of tables.
#[derive(Debug, Default)]
pub(crate) struct Tables(BallistaLogicalExtensionCodec);

/// Of what executors do.
#[derive(Debug, Default)]
pub(crate) struct Plans(BallistaPhysicalExtensionCodec);

/// Whole numbers as bytes.
fn write(numbers: &[u64], buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(MARK);
    buffer.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Whole numbers, where the bytes are ours.
fn read<const N: usize>(buffer: &[u8]) -> Option<Result<[u64; N]>> {
    let bytes = buffer.strip_prefix(MARK)?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    Some(match <[u64; N]>::try_from(numbers) {
        Ok(numbers) if rest.is_empty() => Ok(numbers),
        _ => exec_err!("a table of points is damaged"),
    })
}

impl LogicalExtensionCodec for Tables {
    fn try_decode(&self, buffer: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.0.try_decode(buffer, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        buffer: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match read(buffer) {
            Some(numbers) => numbers.map(|[size]| Arc::new(Points { size }) as _),
            None => self.0.try_decode_table_provider(buffer, name, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        match table.downcast_ref::<Points>() {
            Some(points) => write(&[points.size], buffer),
            None => return self.0.try_encode_table_provider(name, table, buffer),
        }
        Ok(())
    }

    fn try_decode_file_format(&self, buffer: &[u8], context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(buffer, context)
    }

    fn try_encode_file_format(&self, buffer: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.0.try_encode_file_format(buffer, format)
    }
}

impl PhysicalExtensionCodec for Plans {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(numbers) = read(buffer) else { return self.0.try_decode(buffer, inputs, context, converter) };
        let ([shown], [ranges]) = (numbers?, inputs) else { return exec_err!("a table of points is damaged") };
        Ok(Arc::new(Counting::new(ranges.clone(), shown > 0)))
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match plan.downcast_ref::<Counting>() {
            Some(counting) => write(&[u64::from(counting.shown)], buffer),
            None => return self.0.try_encode(plan, buffer, converter),
        }
        Ok(())
    }
}
