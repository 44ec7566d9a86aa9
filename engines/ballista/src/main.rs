//! Sweeps of clusterplan by SQL: in one process on Apache DataFusion, or on a cluster of Apache DataFusion Ballista.

mod cluster;
mod codec;
mod columns;
mod functions;
mod output;
mod points;
mod query;
mod question;
mod values;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ballista_core::error::BallistaError;
use clap::{Args, Parser, Subcommand};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use cluster::{Executor, Scheduler};
use output::Target;
use query::Query;
use question::{Evaluator, Mistakes};

/// Planning a query goes deep.
const STACK: usize = 32 << 20;

/// So often is an answer asked for again whose rows were lost.
const AGAIN: u32 = 3;

/// Sweeps of clusterplan by SQL, in one process or on a cluster of them.
#[derive(Debug, Parser)]
#[command(name = "clusterplan-ballista", version, arg_required_else_help = true)]
struct Arguments {
    /// A directory laid over the built-in catalog; the same for all processes of a cluster
    #[arg(long, global = true, value_name = "DIR")]
    catalog: Vec<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Scheduler(Scheduler),
    Executor(Executor),
    /// Answers a query on the executors of a scheduler
    Client {
        /// The scheduler
        #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
        scheduler: String,
        #[command(flatten)]
        asked: Asked,
    },
    /// Answers a query in this process
    Local(Asked),
}

/// What is asked.
#[derive(Args, Debug)]
struct Asked {
    /// A scenario file; its [sweep] axes give the points
    scenario: PathBuf,
    /// A query over the table `sweep`, whose columns are those of `clusterplan sweep`
    #[arg(default_value = "select * from sweep")]
    sql: String,
    /// Sets a key of the scenario
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A Parquet file that gives the points instead: a column for each key that is set, a row for each point
    #[arg(long, value_name = "FILE")]
    points: Option<PathBuf>,
    /// Parts that points are shared out in: on a cluster at least as many as all executors' tasks
    /// [default: one a core, 16 on a cluster]
    #[arg(long, value_name = "N")]
    partitions: Option<usize>,
    /// Writes the answer to a file, whole or not at all: Parquet where it ends in .parquet, else CSV
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    #[error("error: {0}\n")]
    Query(DataFusionError),
    #[error("error: {0}\n")]
    Cluster(#[from] BallistaError),
    #[error("error: {0}\n")]
    Io(#[from] io::Error),
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(inner) => match inner.downcast() {
                Ok(mistakes) => Self::Mistakes(*mistakes),
                Err(inner) => Self::Query(DataFusionError::External(inner)),
            },
            error => Self::Query(error),
        }
    }
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(2)
        }
    }
}

fn run(Arguments { catalog, command }: Arguments) -> Result<(), Failure> {
    let evaluator = Evaluator::new(&catalog)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    match command {
        Command::Scheduler(scheduler) => {
            let ready = |address| complain(&format!("listening at {address}\n"));
            Ok(runtime.block_on(scheduler.run(&evaluator, ready))?)
        }
        Command::Executor(executor) => Ok(runtime.block_on(executor.run(&evaluator))?),
        Command::Client { scheduler, asked } => runtime.block_on(asked.ask(&scheduler, &evaluator)),
        Command::Local(asked) => {
            let context = query::local(asked.partitions);
            runtime.block_on(asked.answer(&context, &evaluator, Target::Stream))
        }
    }
}

impl Asked {
    /// The answer of a cluster. Rows lie with the executors that made them until they are fetched: where one is lost before,
    /// they are asked for again.
    async fn ask(&self, scheduler: &str, evaluator: &Arc<Evaluator>) -> Result<(), Failure> {
        let mut again = AGAIN;
        loop {
            let context = query::remote(scheduler, self.partitions).await?;
            match self.answer(&context, evaluator, Target::Whole).await {
                Err(Failure::Query(error)) if again > 0 && query::lost_rows(&error) => {
                    again -= 1;
                    complain(&format!("rows were lost with an executor, and are asked for again: {error}\n"));
                }
                answered => return answered,
            }
        }
    }

    /// The answer, in the file that is named or else where `printed` says.
    async fn answer(
        &self,
        context: &SessionContext,
        evaluator: &Arc<Evaluator>,
        printed: Target<'_>,
    ) -> Result<(), Failure> {
        let query =
            Query { scenario: &self.scenario, settings: &self.set, points: self.points.as_deref(), sql: &self.sql };
        let answer = query.run(context, evaluator).await?;
        let rows = output::write(answer, self.output.as_deref().map_or(printed, Target::File)).await?;
        complain(&format!("{rows} rows\n"));
        Ok(())
    }
}

/// Writes to stderr; if that fails there is nowhere left to say so.
fn complain(message: &str) {
    let _ = io::stderr().write_all(message.as_bytes());
}
