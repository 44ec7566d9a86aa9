//! Answers as CSV or Parquet, written as they come: to stdout, or to a file that is there whole or not at all.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::{Writer, WriterBuilder};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use futures::StreamExt;
use tempfile::NamedTempFile;

/// Where an answer goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// To stdout as it comes.
    Stream,
    /// To stdout once it is whole.
    Whole,
    /// To a file: Parquet where it ends in `.parquet`, else CSV.
    File(&'a Path),
}

/// Writes an answer and returns how many rows it has. A file is there whole or not at all.
pub(crate) async fn write(answer: SendableRecordBatchStream, target: Target<'_>) -> Result<usize> {
    match target {
        Target::Stream => csv(answer, io::stdout().lock()).await,
        Target::Whole => {
            let mut file = tempfile::tempfile()?;
            let rows = csv(answer, io::BufWriter::new(&mut file)).await?;
            file.rewind()?;
            io::copy(&mut file, &mut io::stdout().lock())?;
            Ok(rows)
        }
        Target::File(path) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut file = temporary(directory)?;
            let rows = if path.extension().is_some_and(|extension| extension == "parquet") {
                parquet(answer, file.as_file_mut()).await?
            } else {
                csv(answer, io::BufWriter::new(file.as_file_mut())).await?
            };
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| DataFusionError::IoError(error.error))?;
            Ok(rows)
        }
    }
}

/// A file that is removed unless it becomes the answer, for others to read as any new file is.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    let builder = {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666))
    };
    builder.tempfile_in(directory)
}

async fn csv(mut answer: SendableRecordBatchStream, mut out: impl Write) -> Result<usize> {
    let mut rows = 0;
    {
        let mut writer: Writer<_> = WriterBuilder::new().with_header(true).build(&mut out);
        while let Some(batch) = answer.next().await {
            let batch = batch?;
            rows += batch.num_rows();
            writer.write(&batch)?;
        }
        // An answer without rows has columns too.
        if rows == 0 {
            writer.write(&RecordBatch::new_empty(answer.schema()))?;
        }
    }
    out.flush()?;
    Ok(rows)
}

async fn parquet(mut answer: SendableRecordBatchStream, file: &mut File) -> Result<usize> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(file, answer.schema(), Some(properties))?;
    let mut rows = 0;
    while let Some(batch) = answer.next().await {
        let batch = batch?;
        rows += batch.num_rows();
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(rows)
}
