//! What an engine does beside its plain loop, as the model of it takes it, and the figures of it.

use crate::inference::{Chunks, Features, ModelShape, Replica, Request, Speculation, SteadyState};
use crate::scenario::Serving;
use crate::units::Seconds;
use crate::workload::prediction_inputs;

/// Arithmetic of all that an engine runs.
pub(super) struct Shapes {
    /// The model.
    pub(super) model: ModelShape,
    /// What drafts for it.
    draft: Option<ModelShape>,
}

impl Shapes {
    pub(super) fn new(serving: &Serving) -> Self {
        let draft = serving.features.speculation.as_ref().map(|speculation| {
            let shape = ModelShape::new(&speculation.model);
            if speculation.layer { shape.behind(&serving.model, prediction_inputs(&serving.model)) } else { shape }
        });
        Self { model: ModelShape::new(&serving.model), draft }
    }

    /// What engines of a scenario do beside; `decodes` where prompts share steps with sequences in decode.
    pub(super) fn features(&self, serving: &Serving, decodes: bool) -> Features<'_> {
        let asked = &serving.features;
        let speculation = asked.speculation.as_ref().zip(self.draft.as_ref()).map(|(asked, draft)| Speculation {
            draft,
            tokens: asked.tokens,
            acceptance: asked.acceptance.get(),
        });
        let chunks = asked.chunk_tokens.map(|tokens| Chunks { tokens: f64::from(tokens), shared: decodes });
        Features { speculation, chunks, two_batches: asked.two_batch_overlap }
    }
}

/// Figures of what an engine does beside its plain loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnginePoint {
    /// Tokens of a sequence that a step makes on average, where drafts are verified.
    pub tokens_per_step: Option<f64>,
    /// Steps that a prompt of mean length takes, where prompts are cut into chunks.
    pub chunks: Option<f64>,
    /// The longest wait between two tokens where steps are shared with chunks.
    pub longest_gap: Option<Seconds>,
}

impl EnginePoint {
    /// Of a replica in a steady state; `prefill` is what takes prompts in.
    pub(super) fn new(decode: &Replica<'_>, prefill: &Replica<'_>, request: &Request, state: &SteadyState) -> Self {
        let chunked = prefill.features.chunks.is_some();
        Self {
            tokens_per_step: decode.features.speculation.map(|speculation| speculation.tokens_per_step()),
            chunks: chunked.then(|| prefill.chunks(request.input)),
            longest_gap: prefill.longest_gap(request.input, request.cached, state.cycle),
        }
    }
}
