//! Models and an H100 with round constants.

use super::step::hardware::ClassRates;
use super::step::uneven::scatter;
use super::{Hardware, ModelShape, Spread};
use crate::catalog::model::{Attention, Block, Feed, Latent, Mixer, Mlp, Model, MoeBlock, Norm};
use crate::catalog::serving_efficiency::{
    EngineRates, ServingBatching, ServingKernels, ServingMessages, ServingOverhead,
};
use crate::units::{Bandwidth, Factor, FlopRate, Fraction, Ranged, Seconds};

const fn us(us: f64) -> Seconds {
    Seconds::new(us * 1e-6)
}

fn factor(factor: f64) -> Ranged<Factor> {
    Ranged::exact(Factor::new(factor).unwrap())
}

fn share(share: f64) -> Ranged<Fraction> {
    Ranged::exact(Fraction::new(share).unwrap())
}

fn llama(hidden: u32, layers: u32, heads: u32, ffn: u32) -> Model {
    let head_dim = hidden / heads;
    let attention = Attention { heads, kv_heads: 8, head_dim, value_dim: head_dim, ..Attention::default() };
    let feed = Feed::Mlp(Mlp { ffn, gated: true, biases: false });
    let block = Block { layers, norms: 2, mixer: Mixer::Attention(attention), feed, ..Block::default() };
    Model { hidden, vocab: 128_256, norm: Norm::RmsNorm, blocks: vec![block], ..Model::default() }
}

/// DeepSeek-V3, dense layers left out.
pub(super) fn deepseek() -> Model {
    let expert = Mlp { ffn: 2_048, gated: true, biases: false };
    let moe = MoeBlock { experts: 256, per_token: 8, expert, shared_ffn: 2_048, ..MoeBlock::default() };
    let block = Block {
        layers: 58,
        norms: 2,
        mixer: Mixer::Latent(Latent::DEEPSEEK_V3),
        feed: Feed::Moe(moe),
        ..Block::default()
    };
    Model { hidden: 7_168, vocab: 129_280, norm: Norm::RmsNorm, blocks: vec![block], ..Model::default() }
}

/// Shapes of published models, in 16 bits.
pub(super) fn shape(id: &str) -> ModelShape {
    ModelShape::new(&match id {
        "llama-3.1-70b" => llama(8_192, 80, 64, 28_672),
        "llama-3.2-1b" => llama(2_048, 16, 32, 8_192),
        "deepseek-v3" => deepseek(),
        other => panic!("no shape of {other}"),
    })
}

/// So many tensor ranks.
pub(super) const fn tensor(tensor: u32) -> Spread {
    Spread { tensor, attention_data: 1, pipeline: 1, expert_parallel: false, redundant_experts: 0 }
}

/// An H100 as an engine finds it.
pub(super) fn h100() -> Hardware {
    let class = |tera: f64| {
        let peak = FlopRate::new(tera * 1e12);
        ClassRates { peak, read: 1.0, expert_read: 1.0, expert_rate: 1.0, activation: 2.0 }
    };
    Hardware {
        wide: class(989.4),
        eight: ClassRates { activation: 1.0, ..class(1_978.9) },
        nvfp4: class(989.4),
        mxfp4: class(989.4),
        int4: class(989.4),
        memory: Bandwidth::new(3.35e12),
        weights: 0.95,
        keys_values: 0.8,
        gemm: 0.6,
        experts: 0.35,
        attention: FlopRate::new(350e12),
        latent: FlopRate::new(650e12),
        chunks_by_head: false,
        gathers: false,
        links: Bandwidth::new(190e9),
        exchange: Bandwidth::new(350e9),
        unit: us(20.0),
        step: us(1_400.0),
        prefill: 1.2,
        prefill_layer: us(150.0),
        first_token: us(30_000.0),
        uneven: scatter(2.56),
        placed: 0.11,
        host: us(0.0),
        rates: EngineRates::default(),
        launch: us(760.0),
        across: None,
        reduction: None,
        stages: None,
        kernels: ServingKernels {
            decode_gemm: share(0.5),
            latent_cache: share(0.6),
            latent_attention: share(0.66),
            fp4_unpacked: share(0.5),
            int4_unpacked: share(0.3),
            decode_experts: share(0.35),
            prefill_weights: share(0.8),
            block_scaled: factor(1.5),
            routing: factor(0.7),
        },
        overhead: ServingOverhead {
            step: Ranged::exact(us(1_400.0)),
            sequence: Ranged::exact(us(0.3)),
            latent: factor(2.5),
            indexed: factor(5.0),
            recurrent: factor(2.5),
            experts: factor(0.7),
            quantised: factor(0.8),
            quantised_blocks: factor(0.8),
            quantised_fp4: factor(0.8),
            expert: Ranged::exact(us(0.1)),
        },
        messages: ServingMessages {
            all_reduce: Ranged::exact(us(6.0)),
            all_to_all: Ranged::exact(us(6.0)),
            gather: Ranged::exact(us(20.0)),
            exchange: share(0.78),
        },
        batching: ServingBatching {
            stall: factor(0.75),
            fixed_length: factor(1.1),
            transfer: Ranged::exact(us(80_000.0)),
        },
    }
}
