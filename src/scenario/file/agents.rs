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
            users: r.about("users who set tasks").optional("users"),
            task_every: r
                .about("time between two tasks of a user, on average over all hours")
                .such_as("30 min")
                .optional_within("task_every", &(shortest..=longest)),
            agents: r
                .about("agents that work on a task side by side")
                .usually("1")
                .optional_within("agents", &(1..=MOST_WAYS)),
            branches: r
                .about("ways that each agent tries at once")
                .usually("1")
                .optional_within("branches", &(1..=MOST_WAYS)),
            retries: r
                .about("attempts that a call takes on average, failed ones among them")
                .usually("1")
                .optional_within("retries", &(1.0..=MOST_STEPS)),
            run: RunFile {
                steps: Some(
                    r.about("calls of a run that succeeds, one after another").within("steps", &(1.0..=MOST_STEPS)),
                ),
                added_tokens: Some(
                    r.about("tokens that tools or users add before each further step").within("added_tokens", &tokens),
                ),
                output_tokens: Some(
                    r.about("tokens of an answer, reasoning among them").within("output_tokens", &(1.0..=MOST_TOKENS)),
                ),
                reasoning_tokens: r
                    .about("tokens of an answer that the next prompt lacks")
                    .usually("0")
                    .optional_within("reasoning_tokens", &tokens),
            },
            failed: r
                .about("what differs in a run that fails")
                .optional_table("failed", RunFile::read)
                .unwrap_or_default(),
            shared_tokens: r
                .about("tokens that the prompts of all tasks begin with")
                .usually("0")
                .optional_within("shared_tokens", &tokens),
            prompt_tokens: r
                .about("tokens of the first prompt beyond the shared ones")
                .within("prompt_tokens", &(1.0..=MOST_TOKENS)),
            success: r.about("share of runs that succeed").usually("1").optional("success"),
            session_hit: r
                .about("share of further steps that find their session in the cache")
                .usually("what fits into the memory that running requests leave, or into `serving.cache`")
                .optional("session_hit"),
            shared_hit: r
                .about("share of first steps that find the shared tokens in the cache")
                .usually("1")
                .optional("shared_hit"),
            cache_block: r
                .about("tokens of a block of the cache, whole ones of which are found again")
                .usually("16")
                .optional_within("cache_block", &(1.0..=MOST_TOKENS)),
            tool_time: r.about("time that the tools of a step take").such_as("2 s").optional("tool_time"),
            tool_cost: r.about("what the tools of a step cost").such_as("$0.002").optional("tool_cost"),
            sandbox: r.about("price of the machine that a branch works in").such_as("$0.10/h").optional("sandbox"),
            approvals: r
                .about("approvals by a person that a run waits for")
                .usually("0")
                .optional_within("approvals", &(0.0..=MOST_STEPS)),
            approval_time: r.about("time that an approval takes").such_as("5 min").optional("approval_time"),
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
            steps: r
                .about("calls of a run that fails")
                .usually("those of one that succeeds")
                .optional_within("steps", &(1.0..=MOST_STEPS)),
            added_tokens: r
                .about("tokens added before each further step of one that fails")
                .usually("those of one that succeeds")
                .optional_within("added_tokens", &tokens),
            output_tokens: r
                .about("tokens of an answer in a run that fails")
                .usually("those of one that succeeds")
                .optional_within("output_tokens", &(1.0..=MOST_TOKENS)),
            reasoning_tokens: r
                .about("tokens of such an answer that the next prompt lacks")
                .usually("those of one that succeeds")
                .optional_within("reasoning_tokens", &tokens),
        }
    }
}
