//! `[agents]` as it stands in its file.

use crate::diagnostics::{Code, Span};
use crate::document::Reader;
use crate::units::{Fraction, Seconds, Usd, UsdPerHour};

/// The most steps of a run, and attempts of a call.
const MOST_STEPS: f64 = 100_000.0;
/// The most agents of a task, and branches of an agent.
const MOST_WAYS: u32 = 100_000;
/// The most tokens of a prompt, more than any context.
const MOST_TOKENS: f64 = 100e6;
/// The shortest and the longest time between two tasks of a user: a second and a year.
const EVERY: [f64; 2] = [1.0, 3.2e7];

/// `[agents]`
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentsFile {
    /// Users.
    pub users: Option<u32>,
    /// Time between two tasks of a user.
    pub task_every: Option<Seconds>,
    /// Agents of a task.
    pub agents: Option<u32>,
    /// Ways that each tries.
    pub branches: Option<u32>,
    /// Attempts of a call.
    pub retries: Option<f64>,
    /// A run that succeeds.
    pub run: RunFile,
    /// What differs in a run that fails.
    pub failed: RunFile,
    /// Tokens that all tasks begin with.
    pub shared_tokens: Option<f64>,
    /// Tokens of the first prompt beyond those.
    pub prompt_tokens: f64,
    /// Share of runs that succeed.
    pub success: Option<Fraction>,
    /// Share of further steps that find their session where it is kept: in the memory that running requests leave, or where
    /// `serving.cache` says.
    pub session_hit: Option<Fraction>,
    /// Share of first steps that find the shared tokens.
    pub shared_hit: Option<Fraction>,
    /// Tokens of a block of the cache.
    pub cache_block: Option<f64>,
    /// Time of a step's tools.
    pub tool_time: Option<Seconds>,
    /// Money for them.
    pub tool_cost: Option<Usd>,
    /// The machine of a branch.
    pub sandbox: Option<UsdPerHour>,
    /// Approvals of a run.
    pub approvals: Option<f64>,
    /// Time that one takes.
    pub approval_time: Option<Seconds>,
    /// Place of the table.
    pub at: Span,
}

/// The length of a run, where given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunFile {
    /// Calls, one after another.
    pub steps: Option<f64>,
    /// Tokens that tools or users add before each further step.
    pub added_tokens: Option<f64>,
    /// Tokens of an answer.
    pub output_tokens: Option<f64>,
    /// Those of them that the next prompt lacks.
    pub reasoning_tokens: Option<f64>,
}

impl AgentsFile {
    pub(in crate::scenario) fn read(r: &mut Reader<'_>) -> Self {
        let [shortest, longest] = EVERY.map(Seconds::new);
        let tokens = 0.0..=MOST_TOKENS;
        let before = r.sink().len();
        let read = Self {
            users: r.optional("users"),
            task_every: r.optional_within("task_every", &(shortest..=longest)),
            agents: r.optional_within("agents", &(1..=MOST_WAYS)),
            branches: r.optional_within("branches", &(1..=MOST_WAYS)),
            retries: r.optional_within("retries", &(1.0..=MOST_STEPS)),
            run: RunFile {
                steps: Some(r.within("steps", &(1.0..=MOST_STEPS))),
                added_tokens: Some(r.within("added_tokens", &tokens)),
                output_tokens: Some(r.within("output_tokens", &(1.0..=MOST_TOKENS))),
                reasoning_tokens: r.optional_within("reasoning_tokens", &tokens),
            },
            failed: r.optional_table("failed", RunFile::read).unwrap_or_default(),
            shared_tokens: r.optional_within("shared_tokens", &tokens),
            prompt_tokens: r.within("prompt_tokens", &(1.0..=MOST_TOKENS)),
            success: r.optional("success"),
            session_hit: r.optional("session_hit"),
            shared_hit: r.optional("shared_hit"),
            cache_block: r.optional_within("cache_block", &(1.0..=MOST_TOKENS)),
            tool_time: r.optional("tool_time"),
            tool_cost: r.optional("tool_cost"),
            sandbox: r.optional("sandbox"),
            approvals: r.optional_within("approvals", &(0.0..=MOST_STEPS)),
            approval_time: r.optional("approval_time"),
            at: r.at().clone(),
        };
        // What is no share has been refused, and stands as none.
        if read.success == Some(Fraction::ZERO) && r.sink().len() == before {
            let message = "`agents.success` is 0: a success would cost without end";
            r.report("success", Code::OutOfRange, message, "such as 0.64");
        }
        for (one, other) in [("users", "task_every"), ("approvals", "approval_time")] {
            if r.place_of(one).is_some() != r.place_of(other).is_some() {
                let given = if r.place_of(one).is_some() { one } else { other };
                let message = format!("`agents.{one}` and `agents.{other}` belong together");
                r.report(given, Code::Inconsistent, message, "give both, or neither");
            }
        }
        read
    }
}

impl RunFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let tokens = 0.0..=MOST_TOKENS;
        Self {
            steps: r.optional_within("steps", &(1.0..=MOST_STEPS)),
            added_tokens: r.optional_within("added_tokens", &tokens),
            output_tokens: r.optional_within("output_tokens", &(1.0..=MOST_TOKENS)),
            reasoning_tokens: r.optional_within("reasoning_tokens", &tokens),
        }
    }
}
