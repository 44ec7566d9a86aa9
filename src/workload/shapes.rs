//! Shapes of published models, for unit tests.

use super::{Detail, Experts, GradientPrecision, Offload, Optimizer, Precision, TrainingJob, Transformer};
use crate::catalog::model::Norm;
use crate::units::{Factor, Tokens};

/// A GPT of the Megatron papers: vocabulary 51,200, sequences of 2,048.
pub(crate) const fn gpt(layers: u32, hidden: u32, heads: u32) -> Transformer {
    Transformer {
        layers,
        hidden,
        heads,
        kv_heads: heads,
        head_dim: hidden / heads,
        ffn: 4 * hidden,
        gated: false,
        vocab: 51_200,
        tied_embeddings: true,
        norm: Norm::LayerNorm,
        biases: true,
        learned_positions: 2_048,
        experts: None,
        detail: Detail::NONE,
    }
}

/// A Llama 3.1 (arXiv 2407.21783, table 3).
pub(crate) const fn llama(layers: u32, hidden: u32, heads: u32, ffn: u32) -> Transformer {
    Transformer {
        layers,
        hidden,
        heads,
        kv_heads: 8,
        head_dim: 128,
        ffn,
        gated: true,
        vocab: 128_256,
        tied_embeddings: false,
        norm: Norm::RmsNorm,
        biases: false,
        learned_positions: 0,
        experts: None,
        detail: Detail::NONE,
    }
}

pub(crate) const fn llama_405b() -> Transformer {
    llama(126, 16_384, 128, 53_248)
}

/// Mixtral 8x7B (arXiv 2401.04088, table 1).
pub(crate) const fn mixtral_8x7b() -> Transformer {
    let experts = Experts { count: 8, per_token: 2, ffn: 14_336, shared: 0, leading_dense_layers: 0 };
    Transformer { vocab: 32_000, ffn: 0, experts: Some(experts), ..llama(32, 4_096, 32, 0) }
}

/// A bf16 job with fp32 gradients and Adam.
pub(crate) const fn job(sequence_length: u32, global_batch: u32) -> TrainingJob {
    TrainingJob {
        sequence_length,
        global_batch,
        tokens: Tokens::new(1e12),
        precision: Precision::Bf16,
        gradients: GradientPrecision::Fp32,
        optimizer: Optimizer::Adam,
        offload: Offload::None,
        expert_imbalance: Factor::ONE,
    }
}
