//! Binding of `[agents]`, and the requests that it means for an engine.

use super::context::{Context, Taken};
use super::{Defaults, Share};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{AgentsFile, ArrivalTerms, Arrivals, Lengths, RunFile, ServingFile, TraceFile};
use crate::units::{Factor, Fraction, RequestRate, Seconds, Tokens, Usd, UsdPerHour};
use crate::workload::{Call, Fan, Fleet, Reuse, Run, Task, moments};

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

/// Requests of an engine, as far as they are said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Requests {
    /// Whose requests they are, where they are agents'.
    pub(super) agents: Option<Agents>,
    /// Of agents, what is computed and what is cached of their prompts.
    pub(super) calls: Vec<Call>,
    pub(super) input: Lengths,
    pub(super) output: Lengths,
    pub(super) hit: Option<Fraction>,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) terms: ArrivalTerms,
    /// Tokens of prompt and answer that the engine takes at most, where that is known.
    pub(super) context: Option<u32>,
    /// Those of a trace that the engine takes.
    pub(super) taken: Option<Taken>,
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

impl Requests {
    /// Those of agents that were refused: of any length, and at a rate where users would send them.
    fn of_refused(file: &AgentsFile) -> Self {
        let any = Lengths { mean: 1.0, cv: 0.0 };
        let arrivals = file.users.map(|_| Arrivals::Rate(RequestRate::new(1.0)));
        Self { input: any, output: any, arrivals, ..Self::default() }
    }
}

impl Agents {
    /// What an engine sees of the tasks: calls of one mean length, whose prompts scatter as they grow from step to step.
    fn requests(&self) -> Requests {
        let tokens = self.task.tokens();
        let each = |all: Tokens| all / Tokens::new(tokens.calls);
        Requests {
            agents: Some(*self),
            calls: self.task.calls(),
            input: Lengths { mean: each(tokens.input), cv: self.task.success.prompt_scatter() },
            output: Lengths { mean: each(tokens.output), cv: 0.0 },
            hit: Fraction::new(tokens.hit()),
            arrivals: self.fleet.map(|fleet| Arrivals::Rate(fleet.tasks() * tokens.calls)),
            terms: ArrivalTerms::default(),
            ..Requests::default()
        }
    }
}

/// Reports agents that nothing serves.
pub(super) fn not_served(wanted: &AgentsFile, sink: &Sink) {
    let hint = "add a [serving] table with model, engine and layout";
    sink.push(Diagnostic::new(Code::MissingKey, "nothing serves the agents").at(&wanted.at, "these").hint(hint));
}

/// What is asked of the engines: by agents where there are any, else by `[serving]` itself. Agents that were refused stand for
/// some, so that only their own mistakes are told.
pub(super) fn requests(
    wanted: &ServingFile,
    file: Option<&AgentsFile>,
    agents: Option<&Agents>,
    context: &Context<'_>,
    sink: &Sink,
) -> Requests {
    let given = [
        ("input_tokens", wanted.input_tokens.is_some()),
        ("output_tokens", wanted.output_tokens.is_some()),
        ("trace", wanted.trace.is_some()),
        ("prefix_hit", wanted.prefix_hit.is_some()),
        ("arrivals", wanted.arrivals.is_some()),
    ];
    let arrivals = wanted.arrivals.and_then(|arrivals| arrivals.kind);
    let terms = wanted.arrivals.unwrap_or_default().terms;
    let Some(file) = file else {
        if let Some(trace) = &wanted.trace {
            return recorded(wanted, context.of_trace(trace, sink), trace, sink);
        }
        if terms.replay {
            let message = "requests come as in a trace, and there is no `serving.trace`";
            let hint = "name a CSV file with columns arrival_s, input_tokens and output_tokens";
            sink.push(Diagnostic::new(Code::MissingKey, message).at(&wanted.at, "in this table").hint(hint));
        }
        for (key, given) in &given[..2] {
            if !given && wanted.at != Span::default() {
                let message = format!("`serving.{key}` is missing");
                let hint = "tokens of a request, such as 2048; a trace or [agents] says them too";
                sink.push(Diagnostic::new(Code::MissingKey, message).at(&wanted.at, "in this table").hint(hint));
            }
        }
        return Requests {
            agents: None,
            calls: Vec::new(),
            input: wanted.input_tokens.unwrap_or_default(),
            output: wanted.output_tokens.unwrap_or_default(),
            hit: wanted.prefix_hit,
            arrivals,
            terms,
            ..Requests::default()
        };
    };
    let asked = agents.map_or_else(|| Requests::of_refused(file), Agents::requests);
    let follows = if asked.arrivals.is_some() { &given[..] } else { &given[..4] };
    for (key, _) in follows.iter().filter(|(_, given)| *given) {
        let message = format!("`serving.{key}` follows from `agents`");
        let hint = format!("leave `serving.{key}` out, or the agents");
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&file.at, "these agents").hint(hint));
    }
    Requests { arrivals: asked.arrivals.or(arrivals), terms, ..asked }
}

/// Requests of a trace.
fn recorded(wanted: &ServingFile, taken: Taken, trace: &TraceFile, sink: &Sink) -> Requests {
    for (key, given) in
        [("input_tokens", wanted.input_tokens.is_some()), ("output_tokens", wanted.output_tokens.is_some())]
    {
        if given {
            let message = format!("`serving.{key}` follows from `serving.trace`");
            let hint = format!("leave `serving.{key}` out, or the trace");
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&trace.at, "this trace").hint(hint));
        }
    }
    let of = |tokens: &[f64]| {
        let found = moments(tokens);
        Lengths { mean: found.mean, cv: found.cv }
    };
    let arrivals = wanted.arrivals.unwrap_or_default();
    let mut kind = arrivals.kind;
    if arrivals.terms.replay {
        let rate = taken.times.as_deref().and_then(|times| {
            let span = times.last()?.saturating_sub(*times.first()?);
            (span > Seconds::ZERO).then(|| Arrivals::Rate(RequestRate::of((times.len() - 1) as f64, span)))
        });
        if rate.is_none() && sink.is_empty() {
            let message = format!("{} does not say when requests came", trace.name);
            let hint =
                "add a column arrival_s with different times, or give `serving.arrivals = { rate = \"40 request/s\" }`";
            sink.push(Diagnostic::new(Code::MissingKey, message).at(&trace.at, "this trace").hint(hint));
        }
        kind = kind.or(rate);
    }
    Requests {
        agents: None,
        calls: Vec::new(),
        input: of(&taken.inputs),
        output: of(&taken.outputs),
        hit: wanted.prefix_hit,
        arrivals: kind,
        terms: arrivals.terms,
        taken: Some(taken),
        context: None,
    }
}
