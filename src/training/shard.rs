//! What one rank holds of a layer, as the numbers that formulas take.

use crate::parallelism::Layout;
use crate::workload::{TrainingJob, Transformer};

/// Local shapes of one microbatch on one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shard {
    /// Tokens that a tensor-parallel group works on.
    pub(super) tokens: f64,
    /// Tokens of this rank where norms and residuals are split along the sequence; else all of the group's.
    pub(super) sequence_tokens: f64,
    /// Tokens of this rank's share, split or not.
    pub(super) share_tokens: f64,
    /// h.
    pub(super) hidden: f64,
    /// Query features of this rank: heads x head size.
    pub(super) query: f64,
    /// Key features of this rank (values have as many); heads are repeated where ranks outnumber them.
    pub(super) key: f64,
    /// Features of the feed-forward layer on this rank.
    pub(super) ffn: f64,
    /// Matrices into the feed-forward layer: 2 when gated.
    pub(super) gate: f64,
    /// Vocabulary of this rank.
    pub(super) vocab: f64,
    /// Query heads of this rank.
    pub(super) heads: f64,
    /// Size of a head.
    pub(super) head_dim: f64,
    /// Sequence length.
    pub(super) sequence: f64,
}

impl Shard {
    pub(super) fn new(model: &Transformer, job: &TrainingJob, layout: &Layout) -> Self {
        let tensor = f64::from(layout.tensor);
        let tokens = layout.tokens_per_microbatch(job);
        let (heads, head_dim) = (f64::from(model.heads), f64::from(model.head_dim));
        Self {
            tokens,
            sequence_tokens: if layout.sequence_parallel { tokens / tensor } else { tokens },
            share_tokens: tokens / tensor,
            hidden: f64::from(model.hidden),
            query: heads * head_dim / tensor,
            key: f64::from(layout.kv_heads_per_rank(model.kv_heads)) * head_dim,
            ffn: f64::from(model.ffn) / tensor,
            gate: f64::from(model.up_projections()),
            vocab: f64::from(model.vocab) / tensor,
            heads: heads / tensor,
            head_dim,
            sequence: f64::from(job.sequence_length),
        }
    }

    /// Elements of the hidden state that this rank's norms and residuals touch.
    pub(super) fn residual(&self) -> f64 {
        self.hidden * self.sequence_tokens
    }
}
