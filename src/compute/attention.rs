//! The attention core: scores, softmax and the weighted sum, without the projections.

use super::Silicon;
use crate::units::{Bytes, Flops, Seconds};

/// Bytes of score traffic per score element of an unfused kernel, forward: scores written and read for scale and mask,
/// softmax, dropout and the weighted sum, two bytes each and one of dropout mask.
const SCORE_BYTES_FORWARD: f64 = 11.0;
/// The same backward.
const SCORE_BYTES_BACKWARD: f64 = 25.0;
/// Backward over forward FLOPs of a fused kernel: five matrix multiplications against two (FlashAttention-2,
/// arXiv 2307.08691, section 4.1).
const FUSED_BACKWARD: f64 = 2.5;

/// Attention of `heads` heads of a rank over its tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Query tokens on this rank.
    pub tokens: f64,
    /// Keys that a query of a full sequence sees at most: the sequence length, or the window.
    pub sequence: f64,
    /// Query heads on this rank.
    pub heads: f64,
    /// Size of a query or key head.
    pub head_dim: f64,
}

impl AttentionShape {
    /// FLOPs with every query against every key: 2 (dqk + dv) heads sequence tokens.
    fn full_flops(self) -> Flops {
        Flops::new(4.0 * self.head_dim * self.heads * self.sequence * self.tokens)
    }
}

impl Silicon {
    /// Forward time of causal attention.
    ///
    /// A fused kernel skips the masked half and nears its long-sequence rate as s/(s + half); an unfused one computes all
    /// scores and moves them through memory.
    pub fn attention_forward(&self, shape: AttentionShape) -> Seconds {
        if self.attention.fused { self.fused_forward(shape) } else { self.unfused(shape, 1.0, SCORE_BYTES_FORWARD) }
    }

    /// Backward time of causal attention.
    pub fn attention_backward(&self, shape: AttentionShape) -> Seconds {
        if self.attention.fused {
            FUSED_BACKWARD * self.attention.backward * self.fused_forward(shape)
        } else {
            self.unfused(shape, 2.0, SCORE_BYTES_BACKWARD)
        }
    }

    fn fused_forward(&self, shape: AttentionShape) -> Seconds {
        let reached = shape.sequence / (shape.sequence + self.attention.half_length);
        let flops = shape.full_flops() * 0.5;
        flops / (self.attention.forward * reached) * self.head_slowdown(shape)
    }

    fn unfused(&self, shape: AttentionShape, passes: f64, score_bytes: f64) -> Seconds {
        let scores = shape.heads * shape.sequence * shape.tokens;
        let multiplications = shape.full_flops() * passes / self.attention.forward * self.head_slowdown(shape);
        multiplications + Bytes::new(score_bytes * scores * self.attention.softmax) / self.memory_bandwidth
    }

    /// Tensor cores want rows of 16 bytes: eight two-byte elements.
    fn head_slowdown(&self, shape: AttentionShape) -> f64 {
        if shape.head_dim % 8.0 == 0.0 { 1.0 } else { self.attention.misaligned_head }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::a100;
    use super::*;

    const SHAPE: AttentionShape = AttentionShape { tokens: 2_048.0, sequence: 2_048.0, heads: 12.0, head_dim: 128.0 };

    #[test]
    fn unfused_attention_moves_its_scores() {
        // 12 * 2048^2 = 50.3 M scores. FLOPs 4 * 128 * 50.3 M = 25.77 G at 72.4 TFLOP/s = 356 us; traffic
        // 11 * 50.3 M * 0.65 = 360 MB at 1.758 TB/s = 205 us.
        let mut silicon = a100();
        silicon.attention.fused = false;
        let scores = 12.0 * 2_048.0 * 2_048.0;
        let expected = 4.0 * 128.0 * scores / 72.4e12 + 11.0 * scores * 0.65 / 1.758e12;
        assert!((silicon.attention_forward(SHAPE) / Seconds::new(expected) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn fused_attention_skips_the_masked_half() {
        // Half of 25.77 GFLOP at 72.4 TFLOP/s * 2048/2560.
        let silicon = a100();
        let expected = 2.0 * 128.0 * 12.0 * 2_048.0 * 2_048.0 / (72.4e12 * 0.8);
        assert!((silicon.attention_forward(SHAPE) / Seconds::new(expected) - 1.0).abs() < 1e-9);
    }
}
