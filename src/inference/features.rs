//! What an engine does beside its plain loop; nothing unless it is asked for.

use super::adapters::Adapters;
use super::{ModelShape, Replica};
use crate::units::{Bytes, Fraction, Seconds};

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
    /// Steps that a prompt waits at most for one in each other attention group, where the engine takes them in together.
    pub balance: Option<f64>,
    /// Steps of decode from one look for new requests to the next, where the engine does not look before each.
    pub polls: Option<f64>,
    /// Tokens of a prompt and its answer that the engine is set for, at most; however many where that is not known.
    pub longest: Option<f64>,
    /// Whether ranks gather all tokens for the experts and scatter what comes back, rather than send each where it goes.
    pub gathers: bool,
    /// Graphs that steps of decode are replayed as, where they are of some sizes only.
    pub graphs: Option<Graphs<'a>>,
}

/// Graphs of decode steps. A step of sequences between two sizes is padded to the larger one: what is multiplied and sent is that of
/// a full batch, while caches are those of its own sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Graphs<'a> {
    /// Sequences of an attention group that there are graphs for, in order; beyond the last none is replayed.
    pub sizes: &'a [f64],
    /// Sequences of one in a step, at most: the last size where the next is larger.
    pub most: f64,
    /// Which steps are replayed.
    pub replayed: Replayed,
    /// The host's time to launch the kernels of a layer, or of its experts, one by one, in steps that are not.
    pub launch: Seconds,
}

/// Steps that are replayed as graphs: those without prompts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Replayed {
    /// A part of them.
    Part(f64),
    /// Those that are left where so many new tokens of prompts come with each of answers, into steps of so many tokens, prompts' and
    /// answers'.
    Beside {
        /// Prompts' tokens for each of answers'.
        prompts: f64,
        /// Tokens of a step.
        tokens: f64,
    },
}

impl Replayed {
    /// The part of the steps of so many sequences.
    pub(super) fn part(self, own: f64) -> f64 {
        match self {
            Self::Part(part) => part,
            Self::Beside { prompts, tokens } => 1.0 - (own * prompts / (tokens - own).max(1.0)).min(1.0),
        }
    }
}

/// Bytes of a logit: as it is computed, and in single precision.
const LOGIT: f64 = 6.0;

/// What graphs keep that they compute with, the largest of so many sequences: logits are most of it.
pub fn graphs_hold(largest: f64, vocab: u32) -> Bytes {
    Bytes::new(largest * f64::from(vocab) * LOGIT)
}

impl Graphs<'_> {
    /// Sequences that a step of so many is as long as, on average.
    fn padded(&self, own: f64) -> f64 {
        let size = self.sizes.iter().copied().find(|size| *size >= own).unwrap_or(own).min(self.most.max(own));
        own + (size - own) * self.replayed.part(own)
    }
}

/// Tokens drafted and verified.
#[derive(Clone, Copy, Debug)]
pub struct Speculation<'a> {
    /// What drafts: a smaller model, or one more layer on top of the model (multi-token prediction).
    pub draft: &'a ModelShape,
    /// Share of drafted tokens that the model would have chosen too, of those at each place behind accepted ones: as many as
    /// are drafted for each sequence in a step.
    pub acceptance: &'a [Fraction],
}

impl Speculation<'_> {
    /// Tokens drafted for each sequence in a step.
    pub(super) fn drafted(&self) -> f64 {
        self.acceptance.len() as f64
    }

    /// Tokens of a sequence that a step makes on average: those accepted before the first that is not, and the model's own
    /// in its place or behind the last. With `k` drafted and a share `a` accepted at every place, `(1 - a^(k+1)) / (1 - a)`
    /// (Leviathan et al., arXiv 2211.17192, equation 1).
    pub fn tokens_per_step(&self) -> f64 {
        let (mut reached, mut tokens) = (1.0, 1.0);
        for share in self.acceptance {
            reached *= share.get();
            tokens += reached;
        }
        tokens
    }
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
    /// How many times as many sequences a step multiplies for as it has, of so many in an attention group.
    pub(super) fn padding(&self, own: f64) -> f64 {
        self.features.graphs.map_or(1.0, |graphs| graphs.padded(own) / own)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::fixture;

    #[test]
    fn a_batch_between_two_graphs_multiplies_for_the_larger_and_reads_its_own_caches() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let graphs =
            Graphs { sizes: &[256.0, 512.0], most: 448.0, replayed: Replayed::Part(1.0), launch: Seconds::ZERO };
        let engine = plain.with(Features { graphs: Some(graphs), ..Features::default() });
        let (padded, full, own) =
            (engine.decode(300.0, 1_000.0, 1.0), plain.decode(448.0, 1_000.0, 1.0), plain.decode(300.0, 1_000.0, 1.0));
        // The largest graph is of the most that the engine takes.
        assert!((padded.arithmetic / full.arithmetic - 1.0).abs() < 1e-12 && padded.arithmetic > own.arithmetic);
        assert_eq!((padded.cache, padded.overhead), (own.cache, own.overhead));
        // Steps that are not replayed are not padded, nor are batches that a graph is there for.
        let none = Graphs { replayed: Replayed::Part(0.0), ..graphs };
        let launched = plain.with(Features { graphs: Some(none), ..Features::default() });
        assert_eq!(launched.decode(300.0, 1_000.0, 1.0), own);
        assert_eq!(engine.decode(256.0, 1_000.0, 1.0), plain.decode(256.0, 1_000.0, 1.0));
    }

    #[test]
    fn steps_with_prompts_are_none_that_are_replayed() {
        let of = |input: f64, output: f64| Replayed::Beside { prompts: input / output, tokens: 2_048.0 }.part(500.0);
        // 500 requests of as many new tokens as answers' bring 500 of a prompt's with each step, which has room for 1,548.
        assert!((of(1_000.0, 1_000.0) - (1.0 - 500.0 / 1_548.0)).abs() < 1e-12);
        assert!(of(5_000.0, 500.0) <= 0.0);
        assert!(of(128.0, 4_096.0) > 0.98);
    }
}
