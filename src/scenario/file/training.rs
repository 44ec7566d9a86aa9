//! `[training]`: the job and its layout.

use super::cluster::MOST_ACCELERATORS;
use super::run::{DataFile, EvaluationFile, RampFile, StageFile};
use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema};
use crate::parallelism::{ContextExchange, Objective, RankOrder, Recompute, Schedule, Sharding};
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

/// A batch in sequences, or in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GlobalBatch {
    /// So many sequences.
    Sequences(u32),
    /// So many tokens.
    Tokens(Tokens),
}

/// `training.layout`
#[derive(Clone, Debug, Default)]
pub struct LayoutFile {
    /// What is wanted of a layout whose other keys are left to a search.
    pub search: Option<Objective>,
    /// Tensor-parallel ranks.
    pub tensor: Option<u32>,
    /// Pipeline stages.
    pub pipeline: Option<u32>,
    /// Model chunks a stage.
    pub virtual_stages: Option<u32>,
    /// Layers of each chunk, in the model's order.
    pub stage_layers: Option<Vec<u32>>,
    /// Place of it.
    pub stage_layers_at: Span,
    /// Context-parallel ranks.
    pub context: Option<u32>,
    /// How context-parallel ranks attend to what is on the others.
    pub context_exchange: Option<ContextExchange>,
    /// Expert-parallel ranks.
    pub expert: Option<u32>,
    /// Sequences of a microbatch.
    pub micro_batch: Option<u32>,
    /// Pipeline schedule.
    pub schedule: Option<Schedule>,
    /// What data parallelism shards.
    pub sharding: Option<Sharding>,
    /// Ranks among which it does.
    pub shard_ranks: Option<u32>,
    /// Place of it.
    pub shard_ranks_at: Span,
    /// What the backward pass computes again.
    pub recompute: Option<Recompute>,
    /// Whether norms and residuals are split along the sequence.
    pub sequence_parallel: Option<bool>,
    /// Order of the axes in global ranks.
    pub order: Option<RankOrder>,
    /// Place of the table.
    pub at: Span,
}

impl TrainingFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            model: r.get("model"),
            precision: r.get("precision"),
            gradients: r.optional("gradients"),
            optimizer: r.optional("optimizer"),
            offload: r.optional("offload"),
            offload_at: r.place("offload"),
            offload_to: r.optional("offload_to"),
            expert_imbalance: expert_imbalance(r),
            expert_imbalance_at: r.place("expert_imbalance"),
            sequence_length: r.get("sequence_length"),
            global_batch: r.get("global_batch"),
            global_batch_at: r.place("global_batch"),
            tokens: positive_tokens(r),
            tokens_at: r.place("tokens"),
            checkpoint: r.optional("checkpoint"),
            checkpoint_interval: r.optional_within("checkpoint_interval", &(SHORTEST_INTERVAL..=LONGEST_INTERVAL)),
            layout: layout(r),
            stages: r.tables("stage", StageFile::read),
            ramp: r.optional_table("ramp", RampFile::read),
            evaluation: r.optional_table("evaluation", EvaluationFile::read),
            data: r.optional_table("data", DataFile::read),
        }
    }
}

/// Of all experts one at most has more tokens than the others, so that no imbalance is larger than their number.
pub(super) const IMBALANCES: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;

pub(super) fn expert_imbalance(r: &mut Reader<'_>) -> Option<Factor> {
    r.bounded::<Factor>("expert_imbalance", &IMBALANCES);
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
    let tokens: Tokens = r.get("tokens");
    if r.sink().len() == before && tokens <= Tokens::ZERO {
        r.report("tokens", Code::OutOfRange, "`training.tokens` is zero", "such as \"15.6 Ttoken\"");
    }
    tokens
}

impl Default for GlobalBatch {
    fn default() -> Self {
        Self::Sequences(1)
    }
}

impl FromNode for GlobalBatch {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_str().is_some() {
            Self::Tokens(Tokens::from_node(node, path, sink))
        } else {
            Self::Sequences(u32::from_node(node, path, sink))
        }
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(u32::schema()), Box::new(Tokens::schema()))
    }
}

/// The layout: a table, or the word "auto", which leaves every key to a search for the fastest.
fn layout(r: &mut Reader<'_>) -> LayoutFile {
    if r.describes("layout", || Schema::word_or("auto", Reader::describe(LayoutFile::read)), true) {
        return LayoutFile::default();
    }
    let word = r.node("layout").filter(|node| node.as_str().is_some());
    let Some(node) = word else { return r.table("layout", LayoutFile::read) };
    if node.as_str() != Some("auto") {
        node.wrong_type(&r.path_of("layout"), "\"auto\" or a table", r.sink());
    }
    LayoutFile { search: Some(Objective::Fastest), at: node.at.clone(), ..LayoutFile::default() }
}

impl LayoutFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let search = r.optional("search");
        // What a search does not find must be given.
        let mut degree = |key| {
            let optional = search.is_some() || r.describes(key, u32::schema, false);
            if optional { r.optional(key) } else { Some(r.get(key)) }
        };
        let [tensor, pipeline, micro_batch] = ["tensor", "pipeline", "micro_batch"].map(&mut degree);
        Self {
            search,
            tensor,
            pipeline,
            virtual_stages: r.optional("virtual_stages"),
            stage_layers: r.optional("stage_layers"),
            stage_layers_at: r.place("stage_layers"),
            context: r.optional("context"),
            context_exchange: r.optional("context_exchange"),
            expert: r.optional("expert"),
            micro_batch,
            schedule: r.optional("schedule"),
            sharding: r.optional("sharding"),
            shard_ranks: r.optional_within("shard_ranks", &(1..=MOST_ACCELERATORS)),
            shard_ranks_at: r.place("shard_ranks"),
            recompute: r.optional("recompute"),
            sequence_parallel: r.optional("sequence_parallel"),
            order: r.optional("order"),
            at: r.at().clone(),
        }
    }
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
