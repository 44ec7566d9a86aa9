//! One layer's time on silicon for one microbatch, from its shapes.

use super::shard::Shard;
use super::step::StepModel;
use crate::compute::{AttentionShape, Gemm, Linear};
use crate::parallelism::Layout;
use crate::units::{Bytes, Flops, Seconds};
use crate::workload::Experts;

/// Forward and backward time of a part of a layer, and what of the forward is computed again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    /// Matrix multiplications of the linear layers, forward.
    pub(super) linear: Seconds,
    /// Attention core, forward.
    pub(super) attention: Seconds,
    /// Streaming kernels, forward.
    pub(super) streaming: Seconds,
    /// All of the backward pass.
    pub(super) backward: Seconds,
}

impl Pass {
    /// Forward time.
    pub(super) fn forward(&self) -> Seconds {
        self.linear + self.attention + self.streaming
    }

    fn and(self, other: Self) -> Self {
        Self {
            linear: self.linear + other.linear,
            attention: self.attention + other.attention,
            streaming: self.streaming + other.streaming,
            backward: self.backward + other.backward,
        }
    }
}

/// Time of projections.
#[derive(Clone, Copy)]
struct Projections {
    forward: Seconds,
    backward: Seconds,
}

/// Two bytes an element: activations are kept in 16 bits.
const ELEMENT: f64 = 2.0;
/// Elements of the hidden state that one layer's norms, residuals, dropouts and biases read and write, forward and
/// backward, counted at two reads or writes each for two norms, two residual adds and their dropouts.
const RESIDUAL_PASSES: (f64, f64) = (10.0, 14.0);
/// The same of a parallel block: one norm and one residual add, which takes in a second branch.
const PARALLEL_PASSES: (f64, f64) = (6.0, 8.0);
/// Reads and writes of queries, keys and values: rotary embedding, layout changes.
const ATTENTION_PASSES: (f64, f64) = (2.0, 3.0);
/// Reads and writes of the feed-forward activation, gated and plain.
const GATED_PASSES: (f64, f64) = (3.0, 5.0);
const PLAIN_PASSES: (f64, f64) = (2.0, 3.0);
/// Bytes that loss and its gradient move per logit: fp32 logits, softmax and gradient, and their 16-bit copies.
const LOSS_BYTES: f64 = 20.0;
/// Rows that grouped matrix multiplications round each expert's tokens up to.
const EXPERT_ROWS: f64 = 128.0;

impl StepModel {
    /// A layer with a dense feed-forward part.
    pub(super) fn dense_layer(&self, shard: &Shard) -> Pass {
        self.attention_part(shard).and(self.feed_forward(shard, shard.ffn))
    }

    /// A layer with experts, and with shared experts as a dense part beside them.
    pub(super) fn expert_layer(&self, shard: &Shard, experts: &Experts, layout: &Layout) -> Pass {
        let mut pass = self.attention_part(shard).and(self.routed_experts(shard, experts, layout));
        if experts.shared > 0 {
            let ffn = f64::from(experts.shared) * f64::from(experts.ffn) / f64::from(layout.tensor);
            pass = pass.and(self.feed_forward(shard, ffn));
        }
        pass
    }

    /// Logits, loss and their gradients for one microbatch on the last stage.
    pub(super) fn logits(&self, shard: &Shard) -> Seconds {
        let layer = Linear { tokens: shard.tokens, input: shard.hidden, output: shard.vocab };
        self.silicon.logits(layer) + self.silicon.stream(Bytes::new(LOSS_BYTES * shard.tokens * shard.vocab))
    }

    /// Projections, attention core, and the layer's norms and residuals.
    fn attention_part(&self, shard: &Shard) -> Pass {
        let silicon = &self.silicon;
        let projected = shard.query + shard.key + shard.value;
        let outward = Linear { tokens: shard.tokens, input: shard.output, output: shard.hidden };
        let (share, length) = shard.windowed;
        let core = |time: &dyn Fn(AttentionShape) -> Seconds| {
            let of = |sequence| {
                time(AttentionShape { tokens: shard.tokens, sequence, heads: shard.heads, head_dim: shard.head_dim })
            };
            let full = if share < 1.0 { of(shard.sequence) * (1.0 - share) } else { Seconds::ZERO };
            if share > 0.0 { full + of(length) * share } else { full }
        };
        let parallel = self.transformer.detail.parallel;
        let residual_passes = if parallel { PARALLEL_PASSES } else { RESIDUAL_PASSES };
        let touched =
            |residual: f64, attention: f64| residual * shard.residual() + attention * projected * shard.tokens;
        let inputs = (shard.hidden + shard.output) * shard.tokens;
        let gradients = (projected + shard.hidden) * shard.tokens;
        let inward = self.projections(shard, projected);
        Pass {
            linear: inward.forward + silicon.linear_forward(outward),
            attention: core(&|shape| silicon.attention_forward(shape)),
            streaming: self.elementwise(touched(residual_passes.0, ATTENTION_PASSES.0)) + self.casts(inputs),
            backward: inward.backward
                + silicon.linear_backward(outward)
                + core(&|shape| silicon.attention_backward(shape))
                + self.elementwise(touched(residual_passes.1, ATTENTION_PASSES.1))
                + self.casts(gradients),
        }
    }

    /// From the hidden state to queries, keys and values. Latent attention goes by way of the latent vectors: one narrow
    /// projection on the tokens that the rank's norms work on, and two from there to the heads.
    fn projections(&self, shard: &Shard, projected: f64) -> Projections {
        let time = |tokens: f64, input: f64, output: f64| {
            let linear = Linear { tokens, input, output };
            Projections { forward: self.silicon.linear_forward(linear), backward: self.silicon.linear_backward(linear) }
        };
        let Some([query_rank, rank, rope]) = shard.latent else {
            return time(shard.tokens, shard.hidden, projected);
        };
        let down = time(shard.sequence_tokens, shard.hidden, query_rank + rank + rope);
        let query_input = if query_rank > 0.0 { query_rank } else { shard.hidden };
        let queries = time(shard.tokens, query_input, shard.query);
        let keys = time(shard.tokens, rank, shard.key - shard.heads * rope + shard.value);
        Projections {
            forward: down.forward + queries.forward + keys.forward,
            backward: down.backward + queries.backward + keys.backward,
        }
    }

    /// A dense feed-forward part of `ffn` features on this rank.
    fn feed_forward(&self, shard: &Shard, ffn: f64) -> Pass {
        let silicon = &self.silicon;
        let up = Linear { tokens: shard.tokens, input: shard.hidden, output: shard.gate * ffn };
        let down = Linear { tokens: shard.tokens, input: ffn, output: shard.hidden };
        let passes = if shard.gate > 1.0 { GATED_PASSES } else { PLAIN_PASSES };
        Pass {
            linear: silicon.linear_forward(up) + silicon.linear_forward(down),
            attention: Seconds::ZERO,
            streaming: self.elementwise(passes.0 * ffn * shard.tokens)
                + self.casts((shard.hidden + ffn) * shard.tokens),
            backward: silicon.linear_backward(up)
                + silicon.linear_backward(down)
                + self.elementwise(passes.1 * ffn * shard.tokens)
                + self.casts((shard.gate * ffn + shard.hidden) * shard.tokens),
        }
    }

    /// Router, permutation and grouped matrix multiplications of the experts on this rank, tokens spread evenly.
    ///
    /// Spread experts take whole tokens of their group; experts that are not spread are split by the tensor ranks, each of
    /// which then works on all tokens of the group.
    fn routed_experts(&self, shard: &Shard, experts: &Experts, layout: &Layout) -> Pass {
        let spread = layout.expert > 1;
        let local = f64::from(experts.count) / f64::from(layout.expert);
        let tokens = if spread { shard.share_tokens } else { shard.tokens };
        // Where tokens are spread unevenly, all wait for the fullest rank.
        let copies = tokens * f64::from(experts.per_token) * self.job.expert_imbalance.get();
        let rows = copies / local;
        let ffn = f64::from(experts.ffn) / if spread { 1.0 } else { f64::from(layout.tensor) };
        let (hidden, gate) = (shard.hidden, shard.gate);
        let bytes = |passes_hidden: f64, passes_ffn: f64| {
            Bytes::new(self.efficiency.moe_bytes * ELEMENT * (passes_hidden * hidden + passes_ffn * ffn) * copies)
        };
        let forward = self.grouped(rows, gate * ffn, hidden, local) + self.grouped(rows, hidden, ffn, local);
        let input_gradients = self.grouped(rows, hidden, gate * ffn, local) + self.grouped(rows, ffn, hidden, local);
        let weight_gradients =
            self.grouped_weights(rows, gate * ffn, hidden, local) + self.grouped_weights(rows, hidden, ffn, local);
        Pass {
            linear: forward,
            attention: Seconds::ZERO,
            streaming: self.silicon.stream(bytes(8.0, 3.0))
                + self.casts((hidden + ffn) * copies)
                + self.efficiency.moe_layer,
            backward: input_gradients
                + weight_gradients
                + self.silicon.stream(bytes(8.0, 5.0))
                + self.casts((gate * ffn + hidden) * copies)
                + self.efficiency.moe_layer,
        }
    }

    /// One grouped multiplication: `experts` of (rows x k) times (k x n), bound by arithmetic or by reading the weights.
    fn grouped(&self, rows: f64, n: f64, k: f64, experts: f64) -> Seconds {
        self.grouped_arithmetic(rows, n, k, experts)
            .max(self.silicon.stream(Bytes::new(1.5 * experts * (rows * k + rows * n + n * k))))
    }

    /// The same for weight gradients, which are written in fp32.
    fn grouped_weights(&self, rows: f64, n: f64, k: f64, experts: f64) -> Seconds {
        self.grouped_arithmetic(rows, n, k, experts)
            .max(self.silicon.stream(Bytes::new(experts * (4.0 * n * k + 1.5 * rows * (n + k)))))
    }

    fn grouped_arithmetic(&self, rows: f64, n: f64, k: f64, experts: f64) -> Seconds {
        let padded = (rows / EXPERT_ROWS).ceil() * EXPERT_ROWS;
        let flops: Flops = Gemm { m: padded, n, k }.flops() * experts;
        let tiles = experts * (padded / 128.0) * (n / 128.0).ceil();
        flops / self.silicon.gemm_rate + self.silicon.tile_epilogue * (tiles / self.silicon.sms)
    }

    /// Element-wise kernels over so many elements in 16 bits.
    fn elementwise(&self, elements: f64) -> Seconds {
        self.silicon.stream(Bytes::new(self.efficiency.elementwise * ELEMENT * elements))
    }

    /// Casting and scaling so many elements to a low precision.
    fn casts(&self, elements: f64) -> Seconds {
        self.silicon.stream(Bytes::new(4.0 * self.efficiency.cast * elements))
    }
}
