//! What an engine does beside its plain loop; nothing unless it is asked for.

use super::Replica;
use super::adapters::Adapters;
use super::speculation::Speculation;
use crate::units::Seconds;

/// What an engine does beside its plain loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features<'a> {
    /// Tokens that are drafted and verified together.
    pub speculation: Option<Speculation<'a>>,
    /// Prompts cut into chunks.
    pub chunks: Option<Chunks>,
    /// Two halves of a decode batch that hide each other's exchange with experts.
    pub two_batches: bool,
    /// Adapters that sequences bring along.
    pub adapters: Option<Adapters<'a>>,
    /// Tokens of the busiest rank's experts beyond the mean of ranks, over it.
    pub excess: f64,
    /// The host's time to launch the kernels of a layer, or of its experts, one by one, where steps of decode are not replayed as graphs.
    pub launch: Option<Seconds>,
}

/// Prompts cut into chunks, one of them a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunks {
    /// Prompts' tokens of a step, at most.
    pub tokens: f64,
    /// Whether sequences in decode share the step, whose projections are then read for both.
    pub shared: bool,
}

/// The time of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenTime {
    /// Of a step of decode, the part that one token of each sequence takes.
    pub(super) step: super::StepTime,
    /// A whole step, which makes several tokens of each sequence where drafts are verified.
    pub(super) cycle: Seconds,
    /// The wait for prefills.
    pub(super) stall: Seconds,
}

impl TokenTime {
    /// All of it.
    pub(super) fn total(&self) -> Seconds {
        self.step.total() + self.stall
    }
}

impl Replica<'_> {
    /// Tokens of the busiest of ranks that hold experts whole, for which the others wait, over the mean.
    pub(super) fn busiest(&self) -> f64 {
        if self.spread.expert_parallel { 1.0 + self.features.excess } else { 1.0 }
    }
}

impl<'a> Replica<'a> {
    /// The same with what its engine does beside.
    #[must_use]
    pub const fn with(self, features: Features<'a>) -> Self {
        Self { features, ..self }
    }
}
