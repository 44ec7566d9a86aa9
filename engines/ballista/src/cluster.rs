//! The scheduler and the executors of a cluster.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::error::Result;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use clap::Args;
use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionConfig;

use crate::codec::{Plans, Tables};
use crate::functions::functions;
use crate::query::evaluating_once;
use crate::question::Evaluator;

/// Shares queries out to executors
#[derive(Args, Debug)]
pub(crate) struct Scheduler {
    /// The address to listen at; others must reach it under this name
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 for any that is free
    #[arg(long, default_value_t = 50050)]
    port: u16,
    /// An executor that is silent for so many seconds is lost, and its work is given to others
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    executor_timeout: u64,
}

/// Evaluates points for a scheduler
#[derive(Args, Debug)]
pub(crate) struct Executor {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: String,
    /// The address to listen at; scheduler, executors and clients must reach it under this name
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port for results; 0 for any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Tasks at a time; 0 for one a core
    #[arg(long, default_value_t = 0)]
    tasks: usize,
    /// Says that it is alive every so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    heartbeat: u64,
    /// A directory for results that wait to be fetched
    #[arg(long, value_name = "DIR")]
    work_dir: PathBuf,
}

/// A port that is free, where none is given.
fn port(host: IpAddr, port: u16) -> Result<u16> {
    if port != 0 {
        return Ok(port);
    }
    Ok(TcpListener::bind(SocketAddr::new(host, 0))?.local_addr()?.port())
}

impl Scheduler {
    /// Runs until it is stopped; `ready` is told the address.
    pub(crate) async fn run(&self, evaluator: &Arc<Evaluator>, ready: impl FnOnce(SocketAddr)) -> Result<()> {
        let address = SocketAddr::new(self.host, port(self.host, self.port)?);
        let functions = functions(evaluator);
        let session = move |config: SessionConfig| {
            let mut state = evaluating_once(default_session_builder(config)?);
            for function in &functions {
                state.register_udf(function.clone())?;
            }
            Ok(state)
        };
        let config = SchedulerConfig {
            bind_host: self.host.to_string(),
            external_host: self.host.to_string(),
            bind_port: address.port(),
            executor_timeout_seconds: self.executor_timeout,
            expire_dead_executor_interval_seconds: (self.executor_timeout / 4).max(1),
            override_session_builder: Some(Arc::new(session)),
            override_logical_codec: Some(Arc::new(Tables::default())),
            override_physical_codec: Some(Arc::new(Plans::default())),
            ..SchedulerConfig::default()
        };
        let cluster = BallistaCluster::new_from_config(&config).await?;
        ready(address);
        start_server(cluster, address, Arc::new(config)).await
    }
}

impl Executor {
    /// Runs until it is stopped.
    pub(crate) async fn run(&self, evaluator: &Arc<Evaluator>) -> Result<()> {
        let (scheduler_host, scheduler_port) = self.scheduler.rsplit_once(':').unwrap_or((&self.scheduler, "50050"));
        let scheduler_port = scheduler_port.parse().map_err(|_| {
            let message = format!("`--scheduler` takes HOST:PORT, not \"{}\"", self.scheduler);
            ballista_core::error::BallistaError::Configuration(message)
        })?;
        std::fs::create_dir_all(&self.work_dir)?;
        let mut registry = BallistaFunctionRegistry::default();
        let named = functions(evaluator).map(|function| (function.name().to_owned(), function));
        registry.scalar_functions.extend(named);
        let defaults = ExecutorProcessConfig::default();
        let config = ExecutorProcessConfig {
            bind_host: self.host.to_string(),
            external_host: Some(self.host.to_string()),
            port: port(self.host, self.port)?,
            grpc_port: port(self.host, 0)?,
            scheduler_host: scheduler_host.to_owned(),
            scheduler_port,
            scheduler_connect_timeout_seconds: 60,
            vcores: if self.tasks == 0 { defaults.vcores } else { self.tasks },
            work_dir: Some(self.work_dir.to_string_lossy().into_owned()),
            executor_heartbeat_interval_seconds: self.heartbeat,
            override_function_registry: Some(Arc::new(registry)),
            override_logical_codec: Some(Arc::new(Tables::default())),
            override_physical_codec: Some(Arc::new(Plans::default())),
            ..defaults
        };
        start_executor_process(Arc::new(config)).await
    }
}
