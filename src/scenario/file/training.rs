//! `[training]`: the job and its layout.

use super::layout::{GlobalBatch, LayoutFile};
use super::run::{DataFile, EvaluationFile, RampFile, StageFile};
use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{Reader, Schema};
use crate::parallelism::Objective;
use crate::units::{Factor, Quantity, SECONDS_PER_YEAR, Seconds, Tokens, to_integer};
use crate::workload::{CheckpointMode, GradientPrecision, Offload, Optimizer, Precision};

/// The shortest and the longest useful work between checkpoints.
const SHORTEST_INTERVAL: Seconds = Seconds::new(1.0);
const LONGEST_INTERVAL: Seconds = Seconds::new(SECONDS_PER_YEAR);

/// `[training]`
#[derive(Clone, Debug, Default)]
pub struct TrainingFile {
    /// Model id.
    pub model: Reference,
    /// Data type of weights and matrix multiplications.
    pub precision: Precision,
    /// Data type that gradients are accumulated and reduced in.
    pub gradients: Option<GradientPrecision>,
    /// The optimizer.
    pub optimizer: Option<Optimizer>,
    /// What the hosts keep.
    pub offload: Option<Offload>,
    /// Place of it.
    pub offload_at: Span,
    /// The memory tier that keeps it.
    pub offload_to: Option<Reference>,
    /// Tokens of the fullest expert rank over the average.
    pub expert_imbalance: Option<Factor>,
    /// Place of it.
    pub expert_imbalance_at: Span,
    /// Tokens of a sequence.
    pub sequence_length: u32,
    /// Sequences or tokens of a step.
    pub global_batch: GlobalBatch,
    /// Place of it.
    pub global_batch_at: Span,
    /// Tokens of the run.
    pub tokens: Tokens,
    /// Where they were written.
    pub tokens_at: Span,
    /// How checkpoints are written.
    pub checkpoint: Option<CheckpointMode>,
    /// Useful work between two of them.
    pub checkpoint_interval: Option<Seconds>,
    /// The layout.
    pub layout: LayoutFile,
    /// Stages of the run.
    pub stages: Vec<StageFile>,
    /// A batch that grows.
    pub ramp: Option<RampFile>,
    /// Pauses for evaluation.
    pub evaluation: Option<EvaluationFile>,
    /// The way of the data.
    pub data: Option<DataFile>,
}

impl TrainingFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            model: r.about("id of the model, or the path of a config.json beside the scenario").get("model"),
            precision: r.about("data type of weights and matrix multiplications").get("precision"),
            gradients: r
                .about("data type that gradients are accumulated and reduced in")
                .usually("\"fp32\"")
                .optional("gradients"),
            optimizer: r.about("optimizer").usually("\"adam\"").optional("optimizer"),
            offload: r.about("what of the states the hosts keep").usually("\"none\"").optional("offload"),
            offload_at: r.place("offload"),
            offload_to: r
                .about("id of the memory tier that keeps it")
                .usually("the hosts' memory")
                .optional("offload_to"),
            expert_imbalance: expert_imbalance(r),
            expert_imbalance_at: r.place("expert_imbalance"),
            sequence_length: r.about("tokens of a sequence").get("sequence_length"),
            global_batch: r
                .about("sequences of a step, or its tokens with their unit")
                .such_as("16 Mtoken")
                .get("global_batch"),
            global_batch_at: r.place("global_batch"),
            tokens: positive_tokens(r),
            tokens_at: r.place("tokens"),
            checkpoint: r.about("how checkpoints are written").usually("\"asynchronous\"").optional("checkpoint"),
            checkpoint_interval: r
                .about("useful work between two checkpoints")
                .usually("what loses the least")
                .such_as("30 min")
                .optional_within("checkpoint_interval", &(SHORTEST_INTERVAL..=LONGEST_INTERVAL)),
            layout: layout(r),
            stages: r
                .about("stages of the run, one after the other")
                .usually("one stage of all tokens")
                .tables("stage", StageFile::read),
            ramp: r
                .about("a batch that grows to the full one")
                .usually("the full one from the start")
                .optional_table("ramp", RampFile::read),
            evaluation: r
                .about("pauses for evaluation")
                .usually("none")
                .optional_table("evaluation", EvaluationFile::read),
            data: r.about("the way of the data to the accelerators").optional_table("data", DataFile::read),
        }
    }
}

/// Of all experts one at most has more tokens than the others, so that no imbalance is larger than their number.
pub(super) const IMBALANCES: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;

pub(super) fn expert_imbalance(r: &mut Reader<'_>) -> Option<Factor> {
    r.about("tokens of the fullest expert rank over the average")
        .usually("1")
        .bounded::<Factor>("expert_imbalance", &IMBALANCES);
    let before = r.sink().len();
    let given: Option<Factor> = r.optional("expert_imbalance");
    let outside = given.filter(|factor| r.sink().len() == before && !IMBALANCES.contains(&factor.get()));
    if let Some(factor) = outside {
        let message = format!("an expert imbalance of {} is not from 1 to {}", factor.get(), IMBALANCES.end());
        r.report("expert_imbalance", Code::OutOfRange, message, "1 is an even load");
    }
    given
}

/// The token budget, which must not be zero.
fn positive_tokens(r: &mut Reader<'_>) -> Tokens {
    let before = r.sink().len();
    let tokens: Tokens = r.about("tokens of the run").get("tokens");
    if r.sink().len() == before && tokens <= Tokens::ZERO {
        r.report("tokens", Code::OutOfRange, "`training.tokens` is zero", "such as \"15.6 Ttoken\"");
    }
    tokens
}

/// The layout: a table, or the word "auto", which leaves every key to a search for the fastest.
fn layout(r: &mut Reader<'_>) -> LayoutFile {
    if r.about("how the job is spread: a table of degrees, with `search` for those left out, or \"auto\"").describes(
        "layout",
        || Schema::word_or("auto", Reader::describe(LayoutFile::read)),
        true,
    ) {
        return LayoutFile::default();
    }
    let word = r.node("layout").filter(|node| node.as_str().is_some());
    let Some(node) = word else { return r.table("layout", LayoutFile::read) };
    if node.as_str() != Some("auto") {
        node.wrong_type(&r.path_of("layout"), "\"auto\" or a table", r.sink());
    }
    LayoutFile { search: Some(Objective::Fastest), at: node.at.clone(), ..LayoutFile::default() }
}

/// Sequences of a batch, or a report where tokens do not make up whole sequences.
pub(in crate::scenario) fn sequences(batch: GlobalBatch, at: &Span, sequence_length: u32, sink: &Sink) -> u32 {
    match batch {
        GlobalBatch::Sequences(count) => count,
        GlobalBatch::Tokens(tokens) => {
            // The base number, because a count of sequences is wanted.
            let count = tokens.base() / f64::from(sequence_length);
            if count.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&count) {
                return to_integer::<u32>(count);
            }
            let message = format!("{tokens} are no whole number of sequences of {sequence_length}");
            let hint = format!(
                "{} sequences would be {}",
                count.floor().max(1.0),
                Tokens::new(count.floor().max(1.0) * f64::from(sequence_length))
            );
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "does not divide").hint(hint));
            1
        }
    }
}
