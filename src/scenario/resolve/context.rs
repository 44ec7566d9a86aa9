//! The longest requests that an engine takes.

use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{ServingFile, TraceFile};
use crate::units::Seconds;
use crate::workload::{Cut, Requests};

/// Tokens of prompt and answer together, at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// How many, where that is known.
    pub(super) tokens: Option<u32>,
    /// The model whose they are; none where they are given.
    model: Option<&'a str>,
}

/// Requests of a trace that are no longer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) inputs: Vec<f64>,
    pub(super) outputs: Vec<f64>,
    pub(super) times: Option<Vec<Seconds>>,
    /// Share of the trace that is longer.
    refused: f64,
}

impl Taken {
    pub(super) fn requests(&self) -> Requests {
        let mut requests = Requests::of_trace(&self.inputs, &self.outputs, self.times.as_deref());
        let mean = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len() as f64;
        requests.cut = (self.refused > 0.0).then(|| Cut {
            refused: self.refused,
            input: mean(&self.inputs),
            output: mean(&self.outputs),
        });
        requests
    }
}

impl<'a> Context<'a> {
    /// The model's own, or what is given: with positions that are extended (YaRN, say) an engine takes more than the model does.
    pub(super) fn new(wanted: &ServingFile, catalog: &'a Catalog) -> Self {
        if wanted.max_model_len.is_some() {
            return Self { tokens: wanted.max_model_len, model: None };
        }
        let entry = catalog.models.get(&wanted.model);
        Self { tokens: entry.and_then(|entry| entry.part.context()), model: entry.map(|entry| &*entry.name) }
    }

    /// Requests of a trace that are no longer.
    pub(super) fn of_trace(&self, trace: &TraceFile, sink: &Sink) -> Taken {
        let all = || Taken {
            inputs: trace.inputs.clone(),
            outputs: trace.outputs.clone(),
            times: trace.times.clone(),
            refused: 0.0,
        };
        let Some(most) = self.tokens.map(f64::from) else { return all() };
        let fits: Vec<bool> =
            trace.inputs.iter().zip(&trace.outputs).map(|(input, output)| input + output <= most).collect();
        let count = fits.iter().filter(|fits| **fits).count();
        if count == fits.len() {
            return all();
        }
        if count == 0 {
            let shortest = trace.inputs.iter().zip(&trace.outputs).map(|(input, output)| input + output);
            let shortest = shortest.fold(f64::INFINITY, f64::min);
            let message = format!("every request of {} is longer than {}", trace.name, self.words());
            let hint = format!("the shortest has {} tokens; {}", shortest, self.hint(shortest));
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&trace.at, "this trace").hint(hint));
        }
        Taken {
            inputs: kept(&trace.inputs, &fits),
            outputs: kept(&trace.outputs, &fits),
            times: trace.times.as_ref().map(|times| kept(times, &fits)),
            refused: 1.0 - count as f64 / fits.len().max(1) as f64,
        }
    }

    pub(super) fn report(&self, message: &str, at: &Span, tokens: f64, sink: &Sink) {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "with this prompt").hint(self.hint(tokens)));
    }

    pub(super) fn words(&self) -> String {
        let tokens = self.tokens.unwrap_or_default();
        match self.model {
            Some(name) => format!("the {tokens} tokens that {name} takes"),
            None => format!("`serving.max_model_len`, {tokens} tokens"),
        }
    }

    pub(super) fn hint(&self, tokens: f64) -> String {
        match self.model {
            Some(_) => format!(
                "shorten them, or give `serving.max_model_len = {}` where the engine extends the model's positions (YaRN)",
                tokens.ceil()
            ),
            None => format!("shorten them, or give `serving.max_model_len = {}`", tokens.ceil()),
        }
    }
}

/// Those of which it is said that they fit.
fn kept<T: Copy>(of: &[T], fits: &[bool]) -> Vec<T> {
    of.iter().zip(fits).filter(|(_, fits)| **fits).map(|(value, _)| *value).collect()
}
