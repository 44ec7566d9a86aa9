//! Agents: from a task to the calls, tokens, cached tokens and waiting sessions that it means for the engines.
//!
//! [`Run`] is one way through a task, [`Fan`] how many go at once and again, [`Reuse`] what the cache keeps. Together they
//! give [`RunTokens`]; [`Task`] mixes runs that succeed with those that fail, whose means differ; [`Pace`] and [`Fleet`]
//! add the times of an engine and of tools, and the users. What a task costs is tco's.

mod fleet;
mod run;
mod task;

pub use fleet::{Fleet, Load, Pace};
pub use run::{Fan, Reuse, Run, RunTokens};
pub use task::Task;
