//! Binding of what an engine does beside its plain loop.

use crate::catalog::Catalog;
use crate::catalog::memory_allowance::EngineMemory;
use crate::catalog::model::Model;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::ServingLayout;
use crate::scenario::file::{EngineFile, SpeculationFile};
use crate::units::Fraction;
use crate::workload::prediction_layer;

/// The word for one more layer of the model as what drafts.
const LAYER: &str = "mtp";

/// What an engine does beside its plain loop; nothing where nothing is asked.
#[derive(Clone, Debug, Default)]
pub struct EngineFeatures {
    /// Tokens drafted and verified.
    pub speculation: Option<Speculation>,
    /// Prompts' tokens of a step, at most; all of a prompt at once where not given.
    pub chunk_tokens: Option<u32>,
    /// Whether two halves of a decode batch hide each other's exchange with experts.
    pub two_batch_overlap: bool,
    /// Tokens of a block of the cache, where they are not the engine's usual.
    pub block_tokens: Option<u32>,
    /// Whether the probabilities of prompts' own tokens are asked for.
    pub prompt_logprobs: bool,
}

impl EngineFeatures {
    /// Whether anything is asked that the constants of serving were not held against.
    pub const fn is_unmeasured(&self) -> bool {
        self.speculation.is_some() || self.two_batch_overlap
    }
}

/// Tokens that are drafted and then verified in one step.
#[derive(Clone, Debug)]
pub struct Speculation {
    /// What drafts, by the word or id of the scenario.
    pub draft: String,
    /// Its dimensions: those of another model, or of one more layer as the model's last.
    pub model: Model,
    /// Whether it is one more layer of the model, which shares the model's embedding and head.
    pub layer: bool,
    /// Tokens drafted for each sequence in a step.
    pub tokens: u32,
    /// Share of them that the model would have chosen too.
    pub acceptance: Fraction,
}

/// Layouts that serve, and whether they are left to a search.
pub(super) struct Layouts<'a> {
    pub(super) given: &'a [ServingLayout],
    pub(super) search: bool,
    pub(super) at: &'a Span,
}

pub(super) fn bind(
    wanted: &EngineFile,
    model: &Model,
    layouts: &Layouts<'_>,
    memory: &mut EngineMemory,
    catalog: &Catalog,
    sink: &Sink,
) -> Option<EngineFeatures> {
    let overlap = wanted.two_batch_overlap.unwrap_or(false);
    if overlap && !layouts.search && layouts.given.iter().all(|layout| layout.attention_data == 1) {
        let message =
            "nothing to overlap: only ranks that attend for requests of their own exchange tokens with experts";
        let hint = "give serving.layout an attention_data above 1, or leave two_batch_overlap out";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.overlap_at, "asked for here").hint(hint));
    }
    let speculation = match &wanted.speculation {
        Some(wanted) => Some(speculation(wanted, model, layouts, catalog, sink)?),
        None => None,
    };
    if let Some(chunk) = wanted.chunk_tokens {
        memory.batched_tokens = chunk;
    }
    if let Some(block) = wanted.block_tokens {
        memory.block = block;
    }
    Some(EngineFeatures {
        speculation,
        chunk_tokens: wanted.chunk_tokens,
        two_batch_overlap: overlap,
        block_tokens: wanted.block_tokens,
        prompt_logprobs: wanted.prompt_logprobs.unwrap_or(false),
    })
}

fn speculation(
    wanted: &SpeculationFile,
    model: &Model,
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    sink: &Sink,
) -> Option<Speculation> {
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "asked for here").hint(hint));
    };
    if layouts.given.iter().any(|layout| layout.pipeline > 1) {
        let message = "drafts of a model whose layers are split over pipeline stages are not modelled".to_owned();
        refuse(message, "use serving.layout.pipeline = 1, or leave speculation out");
    }
    let layer = wanted.draft.id == LAYER;
    let mut draft = if layer {
        prediction_layer(model)
    } else {
        catalog.models.find(&wanted.draft, &wanted.draft.at, sink)?.part.clone()
    };
    draft.formats.kv_cache = model.formats.kv_cache;
    if draft.vocab != model.vocab {
        let message = format!("the draft has a vocabulary of {}, and the model one of {}", draft.vocab, model.vocab);
        refuse(message, "tokens are verified one by one: name a draft of the same family, or \"mtp\"");
    }
    let given = if layouts.search { &[] } else { layouts.given };
    if let Some(reason) = given.iter().find_map(|layout| layout.check(&draft).err()) {
        let message = format!("the draft runs on the ranks of the model: {reason}");
        sink.push(
            Diagnostic::new(Code::Inconsistent, message).at(layouts.at, "this layout").hint("name another draft"),
        );
    }
    Some(Speculation {
        draft: wanted.draft.id.clone(),
        model: draft,
        layer,
        tokens: wanted.tokens,
        acceptance: wanted.acceptance,
    })
}
