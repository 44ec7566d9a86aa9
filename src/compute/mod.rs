//! Time on silicon: what one operation takes, from its shape.
//!
//! [`Silicon`] holds an accelerator's bound constants; each file is one kind of operation. Nothing here knows of models,
//! layouts or networks.

mod attention;
mod gemm;
mod roofline;

pub use attention::AttentionShape;
pub use gemm::{Gemm, Linear};
pub use roofline::roofline;

use crate::units::{Bandwidth, Bytes, FlopRate, Seconds};

/// An accelerator as software finds it: sustained rates bound once, so that the inner evaluation looks nothing up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silicon {
    /// Streaming multiprocessors (or the like) that a wave of tiles fills.
    pub sms: f64,
    /// Sustained matrix-multiplication rate in the data type of the linear layers.
    pub gemm_rate: FlopRate,
    /// The same in bf16, which logits keep.
    pub logits_rate: FlopRate,
    /// Fixed time of a wave of tiles.
    pub tile_epilogue: Seconds,
    /// Reached memory bandwidth of streaming kernels.
    pub memory_bandwidth: Bandwidth,
    /// How attention runs.
    pub attention: AttentionRate,
}

impl Silicon {
    /// Time to move so many bytes through memory in streaming kernels: norms, activations, residuals, casts, loss,
    /// optimizer.
    pub fn stream(&self, bytes: Bytes) -> Seconds {
        bytes / self.memory_bandwidth
    }
}

/// The attention kernel's rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionRate {
    /// Forward rate at long sequences (fused), or of the batched matrix multiplications (unfused).
    pub forward: FlopRate,
    /// Sequence length at which a fused kernel reaches half of it.
    pub half_length: f64,
    /// Backward time beyond 2.5 times the forward's.
    pub backward: f64,
    /// Whether scores stay on chip.
    pub fused: bool,
    /// Score traffic of an unfused kernel over its count.
    pub softmax: f64,
    /// Slowdown when the head size is no multiple of 8.
    pub misaligned_head: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round figures of an A100: 254 TFLOP/s sustained, attention at 72.4 TFLOP/s, 1.758 TB/s.
    pub(super) fn a100() -> Silicon {
        Silicon {
            sms: 108.0,
            gemm_rate: FlopRate::new(254e12),
            logits_rate: FlopRate::new(254e12),
            tile_epilogue: Seconds::new(1.5e-6),
            memory_bandwidth: Bandwidth::new(1.758e12),
            attention: AttentionRate {
                forward: FlopRate::new(72.4e12),
                half_length: 512.0,
                backward: 1.13,
                fused: true,
                softmax: 0.65,
                misaligned_head: 11.2,
            },
        }
    }
}
