//! How a job or a stage of it is spread, and how large its batch is.

use super::cluster::MOST_ACCELERATORS;
use crate::diagnostics::{Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema};
use crate::parallelism::{ContextExchange, Objective, RankOrder, Recompute, Schedule, Sharding};
use crate::units::Tokens;

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

impl LayoutFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let search = r
            .about("what is wanted of a layout whose other keys are searched")
            .usually("all keys are given")
            .optional("search");
        // What a search does not find must be given.
        let mut degree = |key, says| {
            let optional = search.is_some() || r.about(says).describes(key, u32::schema, false);
            if optional { r.optional(key) } else { Some(r.get(key)) }
        };
        let tensor = degree("tensor", "ranks that split every matrix; may be left to a search");
        let pipeline = degree("pipeline", "stages that split the layers; may be left to a search");
        let micro_batch = degree("micro_batch", "sequences of a forward pass; may be left to a search");
        Self {
            search,
            tensor,
            pipeline,
            virtual_stages: r.about("model chunks of a pipeline stage").usually("1").optional("virtual_stages"),
            stage_layers: r
                .about("layers of each chunk, in the model's order")
                .usually("as even as they go")
                .optional("stage_layers"),
            stage_layers_at: r.place("stage_layers"),
            context: r.about("ranks that split a sequence").usually("1").optional("context"),
            context_exchange: r
                .about("how they attend to what is on the others")
                .usually("\"all-gather\"")
                .optional("context_exchange"),
            expert: r.about("ranks that split a layer's experts").usually("1").optional("expert"),
            micro_batch,
            schedule: r
                .about("pipeline schedule")
                .usually("\"1f1b\", or \"interleaved\" with virtual stages")
                .optional("schedule"),
            sharding: r.about("what data parallelism shards").usually("\"optimizer\"").optional("sharding"),
            shard_ranks: r
                .about("ranks among which it does")
                .usually("all")
                .optional_within("shard_ranks", &(1..=MOST_ACCELERATORS)),
            shard_ranks_at: r.place("shard_ranks"),
            recompute: r.about("what the backward pass computes again").usually("\"none\"").optional("recompute"),
            sequence_parallel: r
                .about("whether norms and residuals are split along the sequence over tensor ranks")
                .usually("true where tensor is above 1")
                .optional("sequence_parallel"),
            order: r.about("order of the axes in global ranks").usually("as the framework does").optional("order"),
            at: r.at().clone(),
        }
    }
}
