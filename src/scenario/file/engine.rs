//! What an engine of `[serving]` does beside its plain loop, as it stands in its file.

use crate::catalog::Reference;
use crate::diagnostics::Span;
use crate::document::Reader;
use crate::units::Fraction;

/// Tokens of a chunk: at least a block of usual size, and no more than any context.
const CHUNK: std::ops::RangeInclusive<u32> = 16..=100_000_000;
/// Tokens of a block.
const BLOCK: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Tokens drafted at once.
const DRAFTED: std::ops::RangeInclusive<u32> = 1..=64;

/// Keys of `[serving]` that change how the engine works.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct EngineFile {
    /// Drafting and verifying.
    pub(in crate::scenario) speculation: Option<SpeculationFile>,
    /// Prompts' tokens of a step, at most.
    pub(in crate::scenario) chunk_tokens: Option<u32>,
    /// Two halves of a decode batch that hide each other's exchange.
    pub(in crate::scenario) two_batch_overlap: Option<bool>,
    /// Tokens of a block of the cache.
    pub(in crate::scenario) block_tokens: Option<u32>,
    /// Whether the probabilities of prompts' own tokens are asked for.
    pub(in crate::scenario) prompt_logprobs: Option<bool>,
    /// Place of the key of the overlap.
    pub(in crate::scenario) overlap_at: Span,
}

/// `serving.speculation`
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct SpeculationFile {
    /// The model that drafts, or "mtp".
    pub(in crate::scenario) draft: Reference,
    /// Tokens drafted for each sequence in a step.
    pub(in crate::scenario) tokens: u32,
    /// Share of them that the model would have chosen too.
    pub(in crate::scenario) acceptance: Fraction,
    /// Place of the table.
    pub(in crate::scenario) at: Span,
}

impl EngineFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            speculation: r.optional_table("speculation", |r| SpeculationFile {
                draft: r.get("draft"),
                tokens: r.within("tokens", &DRAFTED),
                acceptance: r.get("acceptance"),
                at: r.at().clone(),
            }),
            chunk_tokens: r.optional_within("chunk_tokens", &CHUNK),
            two_batch_overlap: r.optional("two_batch_overlap"),
            block_tokens: r.optional_within("block_tokens", &BLOCK),
            prompt_logprobs: r.optional("prompt_logprobs"),
            overlap_at: r.place("two_batch_overlap"),
        }
    }
}
