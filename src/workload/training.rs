//! A training job: how much data in which steps, and in which number formats.

use crate::catalog::accelerator::DataType;
use crate::document::choices;
use crate::units::{Bytes, Factor, Tokens};

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
        /// Adam with fp32 master weights and bf16 moments.
        AdamBf16 = "adam-bf16",
        /// Adam with fp32 master weights and moments of 8 bits in blocks.
        Adam8bit = "adam-8bit",
        /// Muon for the matrices of layers, with fp32 master weights and one fp32 momentum; Adam for the tables. Its
        /// Newton-Schulz steps, below 1% of a step at usual batches, are not timed.
        Muon = "muon",
    }
}

choices! {
    /// What is kept in the hosts' memory instead of the accelerators'.
    pub enum Offload {
        /// Nothing.
        None = "none",
        /// Optimizer states (ZeRO-Offload, arXiv 2101.06840).
        Optimizer = "optimizer",
        /// Optimizer states, and weights but those of the layers at work (ZeRO-Infinity, arXiv 2104.07857).
        OptimizerWeights = "optimizer+weights",
        /// What layers keep for the backward pass, but for the layer at work and the next.
        Activations = "activations",
        /// Optimizer states and activations.
        OptimizerActivations = "optimizer+activations",
    }
}

impl Offload {
    /// Whether optimizer states are.
    pub const fn optimizer(self) -> bool {
        matches!(self, Self::Optimizer | Self::OptimizerWeights | Self::OptimizerActivations)
    }

    /// Whether weights are.
    pub const fn weights(self) -> bool {
        matches!(self, Self::OptimizerWeights)
    }

    /// Whether activations are.
    pub const fn activations(self) -> bool {
        matches!(self, Self::Activations | Self::OptimizerActivations)
    }
}

choices! {
    /// Where checkpoints go, and whether training waits until they are there.
    pub enum CheckpointMode {
        /// Training goes on once the state is copied to the hosts, which store it in the background.
        Asynchronous = "asynchronous",
        /// Training waits until all is stored.
        Blocking = "blocking",
        /// Training goes on once the state is copied to the hosts, which copy it to the memory of other hosts.
        InMemory = "in-memory",
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
    /// States of one parameter of a layer.
    ///
    /// Adam: the fp32 master weight, the mean and the variance of its gradient, K = 12 in the ZeRO paper (arXiv
    /// 1910.02054, section 3.1). bf16 moments: DeepSeek-V3 (arXiv 2412.19437, section 3.3.2). 8-bit moments: a byte each,
    /// and an fp32 scale for 2,048 (arXiv 2110.02861, section 2). Muon: master weight and momentum (arXiv 2502.16982,
    /// section 2.1).
    pub const fn state_size(self) -> Bytes {
        match self {
            Self::Adam => Bytes::new(12.0),
            Self::AdamBf16 | Self::Muon => Bytes::new(8.0),
            Self::Adam8bit => Bytes::new(4.0 + 2.0 * (1.0 + 4.0 / 2_048.0)),
        }
    }

    /// Bytes that a step moves through memory for one parameter: states are read and written, a gradient in fp32 is read,
    /// and a weight in 16 bits written. Adam moves 2 x 12 + 4 + 2 = 30.
    pub fn traffic(self) -> Bytes {
        self.state_size() * 2.0 + Bytes::new(4.0 + 2.0)
    }

    /// That over Adam's.
    pub fn traffic_over_adam(self) -> f64 {
        self.traffic() / Self::Adam.traffic()
    }

    /// States of one parameter of an embedding or of the output projection.
    pub const fn table_state_size(self) -> Bytes {
        match self {
            Self::Muon => Self::Adam.state_size(),
            Self::Adam | Self::AdamBf16 | Self::Adam8bit => self.state_size(),
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
    /// What the hosts keep.
    pub offload: Offload,
    /// Tokens of the fullest expert rank over the average; 1 where experts are loaded evenly.
    pub expert_imbalance: Factor,
}

impl TrainingJob {
    /// Tokens of an optimizer step.
    pub fn tokens_per_step(&self) -> Tokens {
        Tokens::new(f64::from(self.sequence_length) * f64::from(self.global_batch))
    }

    /// Optimizer steps of the run: whole ones, so the last may take more tokens than the run has left.
    pub fn steps(&self) -> f64 {
        let steps = self.tokens / self.tokens_per_step();
        // A budget that is written as so many steps is so many, whatever the rounding of its text.
        if (steps - steps.round()).abs() < 1e-9 * steps { steps.round() } else { steps.ceil() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_states_move_fewer_bytes() {
        assert!((Optimizer::Adam.traffic_over_adam() - 1.0).abs() < 1e-12);
        // 2 x 8 + 6 of 30; and 2 x (4 + 2 x 1.001953) + 6 of 30.
        assert!((Optimizer::Muon.traffic_over_adam() - 22.0 / 30.0).abs() < 1e-12);
        assert!((Optimizer::Adam8bit.traffic_over_adam() - 18.007_812_5 / 30.0).abs() < 1e-9);
    }

    #[test]
    fn llama_3_405b_takes_930_thousand_steps_of_16_million_tokens() {
        // 2,048 * 8,192 = 16,777,216 tokens a step; 15.6e12 / 16,777,216 = 929,832.46.
        let job = crate::workload::shapes::job(8192, 2048);
        assert_eq!(job.tokens_per_step(), Tokens::new(16_777_216.0));
        let run = TrainingJob { tokens: Tokens::new(15.6e12), ..job };
        assert!((run.steps() - 929_833.0).abs() < 1e-9);
        let whole = TrainingJob { tokens: Tokens::new(3.0 * 16_777_216.0), ..job };
        assert!((whole.steps() - 3.0).abs() < 1e-9);
    }
}
