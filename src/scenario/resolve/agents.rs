//! Binding of `[agents]`, and the requests that it means for an engine.

use super::{Defaults, Share};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{AgentsFile, RunFile};
use crate::units::{Factor, Fraction, Seconds, Tokens, Usd, UsdPerHour};
use crate::workload::{Fan, Fleet, Reuse, Run, Task};

/// Tokens of a block of the prefix cache, as vLLM has it.
const BLOCK: f64 = 16.0;

/// Agents' tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agents {
    /// What a task asks.
    pub task: Task,
    /// Whose tasks; none where tasks come as fast as requests of `serving.arrivals` let them.
    pub fleet: Option<Fleet>,
    /// Time of a step's tools.
    pub tool_time: Seconds,
    /// Money for a call's tools.
    pub tool_cost: Usd,
    /// The machine that a branch works on.
    pub sandbox: UsdPerHour,
    /// Approvals of a run.
    pub approvals: f64,
    /// Time that one takes.
    pub approval_time: Seconds,
}

pub(super) fn bind(wanted: &AgentsFile, defaults: &mut Defaults, sink: &Sink) -> Option<Agents> {
    // What could not be read stands as none, and has been told.
    let read = |least: f64, given: Option<f64>| given.is_none_or(|given| given >= least);
    let all_read = [&wanted.run, &wanted.failed].iter().all(|run| {
        let [least_one, may_be_none] = [[run.steps, run.output_tokens], [run.added_tokens, run.reasoning_tokens]];
        least_one.into_iter().all(|given| read(1.0, given)) && may_be_none.into_iter().all(|given| read(0.0, given))
    });
    if !all_read || wanted.prompt_tokens < 1.0 || !read(0.0, wanted.shared_tokens) {
        return None;
    }
    let mut share = |key, given: Option<Fraction>| defaults.or(key, given.map(Share), Share(Fraction::ONE)).0;
    let rate = share("agents.success", wanted.success);
    let (session, shared) =
        (share("agents.session_hit", wanted.session_hit), share("agents.shared_hit", wanted.shared_hit));
    let tokens = |count: f64| Tokens::new(count);
    let success = Run {
        steps: wanted.run.steps.unwrap_or(1.0),
        shared: tokens(defaults.or("agents.shared_tokens", wanted.shared_tokens, 0.0)),
        first: tokens(wanted.prompt_tokens),
        added: tokens(wanted.run.added_tokens.unwrap_or_default()),
        output: tokens(wanted.run.output_tokens.unwrap_or_default()),
        reasoning: tokens(defaults.or("agents.reasoning_tokens", wanted.run.reasoning_tokens, 0.0)),
    };
    let failure = of_failure(&success, &wanted.failed);
    if [success, failure].iter().any(|run| run.reasoning > run.output) {
        let message = "reasoning is part of an answer, and has more tokens than it";
        let hint = "change reasoning_tokens or output_tokens";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
        return None;
    }
    let fan = Fan {
        agents: defaults.or("agents.agents", wanted.agents, 1),
        branches: defaults.or("agents.branches", wanted.branches, 1),
        attempts: defaults.or("agents.retries", wanted.retries, 1.0),
    };
    let block = defaults.or("agents.cache_block", wanted.cache_block, BLOCK);
    let reuse = Reuse { session, shared, block: Factor::new(block).unwrap_or(Factor::ONE) };
    let fleet = wanted.users.zip(wanted.task_every).map(|(users, every)| Fleet { users, every });
    Some(Agents {
        task: Task { success, failure, rate, fan, reuse },
        fleet,
        tool_time: defaults.or("agents.tool_time", wanted.tool_time, Seconds::ZERO),
        tool_cost: defaults.or("agents.tool_cost", wanted.tool_cost, Usd::ZERO),
        sandbox: defaults.or("agents.sandbox", wanted.sandbox, UsdPerHour::ZERO),
        approvals: defaults.or("agents.approvals", wanted.approvals, 0.0),
        approval_time: wanted.approval_time.unwrap_or(Seconds::ZERO),
    })
}

/// A run that fails: one that succeeds but for what is given.
fn of_failure(success: &Run, given: &RunFile) -> Run {
    let or = |given: Option<f64>, usual: Tokens| given.map_or(usual, Tokens::new);
    Run {
        steps: given.steps.unwrap_or(success.steps),
        added: or(given.added_tokens, success.added),
        output: or(given.output_tokens, success.output),
        reasoning: or(given.reasoning_tokens, success.reasoning),
        ..*success
    }
}

/// Reports agents that nothing serves.
pub(super) fn not_served(wanted: &AgentsFile, sink: &Sink) {
    let hint = "add a [serving] table with model, engine and layout";
    sink.push(Diagnostic::new(Code::MissingKey, "nothing serves the agents").at(&wanted.at, "these").hint(hint));
}
