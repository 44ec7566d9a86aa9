//! An agent's task: the calls, tokens and cached tokens that it asks of engines.

mod fleet;
mod run;
mod task;

#[cfg(test)]
pub(crate) mod fixture;

pub use fleet::Fleet;
pub use run::{Fan, Reuse, Run, RunTokens};
pub use task::Task;
