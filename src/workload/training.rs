//! A training job: how much data in which steps, and in which number formats.

use crate::catalog::accelerator::DataType;
use crate::document::choices;
use crate::units::{Bytes, Tokens};

choices! {
    /// The number format of weights, activations and matrix multiplications.
    pub enum Precision {
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE half precision, with loss scaling.
        Fp16 = "fp16",
        /// Matrix multiplications in FP8 with scales of whole tensors (current or delayed scaling).
        Fp8 = "fp8",
        /// Matrix multiplications in FP8 with a scale for each block of 32.
        Mxfp8 = "mxfp8",
        /// Matrix multiplications in FP4 with a scale for each block of 16.
        Nvfp4 = "nvfp4",
    }
}

choices! {
    /// The number format in which gradients are accumulated and reduced.
    pub enum GradientPrecision {
        /// Single precision.
        Fp32 = "fp32",
        /// bfloat16.
        Bf16 = "bf16",
    }
}

choices! {
    /// The optimizer.
    pub enum Optimizer {
        /// Adam, and AdamW, with fp32 master weights and moments.
        Adam = "adam",
    }
}

choices! {
    /// Whether training waits until a checkpoint is stored.
    pub enum CheckpointMode {
        /// Training goes on once the state is copied to the hosts, which store it in the background.
        Asynchronous = "asynchronous",
        /// Training waits until all is stored.
        Blocking = "blocking",
    }
}

impl Precision {
    /// Memory of one weight or activation: 16 bits also where matrix multiplications cast to less.
    pub const fn size(self) -> Bytes {
        Bytes::new(2.0)
    }

    /// Size of a weight on the wire: low precisions are gathered as they are multiplied, in 8 bits.
    pub const fn gathered_size(self) -> Bytes {
        match self {
            Self::Bf16 | Self::Fp16 => Bytes::new(2.0),
            Self::Fp8 | Self::Mxfp8 | Self::Nvfp4 => Bytes::new(1.0),
        }
    }

    /// The data type of an accelerator that multiplies matrices in this precision.
    pub const fn matrix_type(self) -> DataType {
        match self {
            Self::Bf16 => DataType::Bf16,
            Self::Fp16 => DataType::Fp16,
            Self::Fp8 | Self::Mxfp8 => DataType::Fp8,
            Self::Nvfp4 => DataType::Fp4,
        }
    }
}

impl GradientPrecision {
    /// Memory of one number.
    pub const fn size(self) -> Bytes {
        match self {
            Self::Fp32 => Bytes::new(4.0),
            Self::Bf16 => Bytes::new(2.0),
        }
    }
}

impl Optimizer {
    /// States of one parameter. Adam: the fp32 master weight, the mean and the variance of its gradient, K = 12 in the
    /// ZeRO paper (arXiv 1910.02054, section 3.1).
    pub const fn state_size(self) -> Bytes {
        match self {
            Self::Adam => Bytes::new(12.0),
        }
    }
}

/// A training job with nothing left to default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingJob {
    /// Tokens of a sequence.
    pub sequence_length: u32,
    /// Sequences of an optimizer step, over the whole cluster.
    pub global_batch: u32,
    /// Tokens of the whole run.
    pub tokens: Tokens,
    /// The number format of weights and activations.
    pub precision: Precision,
    /// The number format of gradients.
    pub gradients: GradientPrecision,
    /// The optimizer.
    pub optimizer: Optimizer,
}

impl TrainingJob {
    /// Tokens of an optimizer step.
    pub fn tokens_per_step(&self) -> Tokens {
        Tokens::new(f64::from(self.sequence_length) * f64::from(self.global_batch))
    }

    /// Optimizer steps of the run; the last may be a part of one.
    pub fn steps(&self) -> f64 {
        self.tokens / self.tokens_per_step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama_3_405b_takes_930_thousand_steps_of_16_million_tokens() {
        // 2,048 * 8,192 = 16,777,216 tokens a step; 15.6e12 / 16,777,216 = 929,832.
        let job = crate::workload::shapes::job(8192, 2048);
        assert_eq!(job.tokens_per_step(), Tokens::new(16_777_216.0));
        let run = TrainingJob { tokens: Tokens::new(15.6e12), ..job };
        assert!((run.steps() - 929_832.46).abs() < 0.01);
    }
}
