//! Requests that engines are asked for: by agents, by a trace, or by `[serving]` itself.

use super::Agents;
use super::context::{Context, Taken};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{AgentsFile, ArrivalTerms, Arrivals, Lengths, ServingFile, TraceFile};
use crate::units::{Fraction, RequestRate, Seconds, Tokens};
use crate::workload::{Call, moments};

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

impl Requests {
    /// Reports requests that are longer on average, and agents whose last prompts are.
    pub(super) fn check(&self, wanted: &ServingFile, context: &Context<'_>, agents: Option<&AgentsFile>, sink: &Sink) {
        let Some(most) = context.tokens.map(f64::from) else { return };
        if let Some(file) = agents {
            let Some(agents) = self.agents else { return };
            let longest = |of: &crate::workload::Run| of.longest().value();
            let tokens = longest(&agents.task.success).max(longest(&agents.task.failure));
            if tokens > most {
                let message = format!(
                    "the last prompt of these agents and its answer are {} tokens, more than {}",
                    tokens.ceil(),
                    context.words()
                );
                let hint = format!(
                    "fewer steps or tokens that each adds, as of agents that compact what came before; {}",
                    context.hint(tokens)
                );
                sink.push(Diagnostic::new(Code::Inconsistent, message).at(&file.at, "in this table").hint(hint));
            }
            return;
        }
        let (input, output) = (self.input.mean, self.output.mean);
        if wanted.trace.is_none() && input + output > most {
            let scatter = if self.input.cv > 0.0 || self.output.cv > 0.0 { " on average" } else { "" };
            let message = format!(
                "a prompt of {} and an answer of {} tokens{scatter} are longer than {}",
                input,
                output,
                context.words()
            );
            context.report(&message, &wanted.lengths_at, input + output, sink);
        }
    }

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
