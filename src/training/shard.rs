//! What one rank holds of a layer, as the numbers that formulas take.

use crate::parallelism::Layout;
use crate::workload::{AttentionCount, TrainingJob, Transformer};

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
    /// Key features of this rank; heads are repeated where ranks outnumber them.
    pub(super) key: f64,
    /// Value features of this rank.
    pub(super) value: f64,
    /// Features that attention puts out on this rank: heads x value head size.
    pub(super) output: f64,
    /// Latent attention's widths: of the queries' latent vector, of that of keys and values, and of the rotary key; the
    /// projections to them are not split by tensor ranks.
    pub(super) latent: Option<[f64; 3]>,
    /// Features of the feed-forward layer on this rank.
    pub(super) ffn: f64,
    /// Matrices into the feed-forward layer: 2 when gated.
    pub(super) gate: f64,
    /// Vocabulary of this rank.
    pub(super) vocab: f64,
    /// Query heads of this rank.
    pub(super) heads: f64,
    /// Size of a head: the mean of keys' and values'.
    pub(super) head_dim: f64,
    /// Sequence length.
    pub(super) sequence: f64,
    /// Share of layers with a window, and the length whose causal half their kernels go through: what a window lets queries
    /// see, and half a tile of keys at either edge that is computed for nothing.
    pub(super) windowed: (f64, f64),
}

/// Keys of a tile of a fused attention kernel (FlashAttention-2, arXiv 2307.08691, section 3.3: blocks of 64 or 128).
const KEY_TILE: f64 = 128.0;

/// Share of layers with a window, and the length whose causal half their kernels go through.
fn windowed(model: &Transformer, sequence: u32) -> (f64, f64) {
    let share = f64::from(model.detail.windowed_layers) / f64::from(model.layers);
    if share == 0.0 {
        return (0.0, 0.0);
    }
    let all = AttentionCount::Causal.keys(sequence);
    // Windows alone, from the average over all layers.
    let seen = all + (model.keys(sequence, AttentionCount::Causal) - all) / share;
    (share, 2.0 * (seen + KEY_TILE).min(all))
}

impl Shard {
    pub(super) fn new(model: &Transformer, job: &TrainingJob, layout: &Layout) -> Self {
        let tensor = f64::from(layout.tensor);
        let tokens = layout.tokens_per_microbatch(job);
        let (heads, head_dim) = (f64::from(model.heads), f64::from(model.head_dim));
        let value_dim = f64::from(model.value_dim());
        Self {
            tokens,
            sequence_tokens: if layout.sequence_parallel { tokens / tensor } else { tokens },
            share_tokens: tokens / tensor,
            hidden: f64::from(model.hidden),
            query: heads * head_dim / tensor,
            key: f64::from(layout.kv_heads_per_rank(model.kv_heads)) * head_dim,
            value: f64::from(layout.kv_heads_per_rank(model.kv_heads)) * value_dim,
            output: heads * value_dim / tensor,
            latent: model.detail.latent.map(|latent| [latent.query_rank, latent.rank, latent.rope_dim].map(f64::from)),
            ffn: f64::from(model.ffn) / tensor,
            gate: f64::from(model.up_projections()),
            vocab: f64::from(model.vocab) / tensor,
            heads: heads / tensor,
            head_dim: f64::midpoint(head_dim, value_dim),
            sequence: f64::from(job.sequence_length),
            windowed: windowed(model, job.sequence_length),
        }
    }

    /// Elements of the hidden state that this rank's norms and residuals touch.
    pub(super) fn residual(&self) -> f64 {
        self.hidden * self.sequence_tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Detail;
    use crate::workload::shapes::gpt;

    #[test]
    fn windows_go_through_their_keys_and_the_edges() {
        let with = |windowed_layers, window| Transformer {
            detail: Detail { windowed_layers, window, ..Detail::NONE },
            ..gpt(36, 2_880, 64)
        };
        // 128 keys, of which the first queries of 4,096 lack 128^2/(2 x 4096) = 2 on average, and 128 at the edges: 254 on
        // average are the causal half of 508.
        assert_eq!(windowed(&with(18, 128), 4_096), (0.5, 508.0));
        // A window as long as the sequence is none.
        assert_eq!(windowed(&with(18, 4_096), 4_096), (0.5, 4_096.0));
        assert_eq!(windowed(&with(0, 0), 4_096), (0.0, 0.0));
    }
}
