//! Bytes of weights on one rank.

use super::ServingLayout;
use crate::catalog::model::{Block, Mixer, Model, Module};
use crate::units::Bytes;
use crate::workload::{block_parameters, census, module_bits};

/// Weights of the fullest rank: its part of the layers of a stage, and the tables.
///
/// Attention, MLPs and tables, padded to whole rows, are split by `tensor`; norms, routers, towers and latent attention's
/// projections to the latent vector are held whole; key and value heads are held again beyond one a rank. Experts are split
/// by `expert`, copies among them, or by `tensor` where that is 1. Stages hold as many layers of each kind, rounded up, so that with several
/// kinds and stages this is an upper bound.
pub fn rank_weights(model: &Model, layout: &ServingLayout) -> Bytes {
    let bytes = |module: Module, parameters: f64| Bytes::new(parameters * module_bits(model, module) / 8.0);
    let tensor = f64::from(layout.tensor);
    let census = census(model);
    // Rows of tables are split whole, the vocabulary padded for that.
    let padded = layout.padded_vocabulary(model) as f64 / f64::from(model.vocab.max(1)) / tensor;
    let embedding = bytes(Module::Embedding, census.embedding as f64 * padded + census.positions as f64);
    let head = bytes(Module::Head, census.head as f64 * padded);
    let tables = if layout.pipeline > 1 {
        // On one end each; a tied table is needed on both.
        embedding.max(if census.head == 0 { embedding } else { head })
    } else {
        embedding + head
    };
    let towers = bytes(Module::Towers, census.towers as f64);
    let in_layers: u64 =
        model.blocks.iter().map(|block| block_parameters(model, block).norms * u64::from(block.layers)).sum();
    let last_norm = bytes(Module::Norms, (census.norms - in_layers) as f64);
    rank_layers(model, layout) + tables + towers + last_norm
}

/// Weights of the layers alone on the fullest rank, as [`rank_weights`] has them.
pub fn rank_layers(model: &Model, layout: &ServingLayout) -> Bytes {
    let bytes = |module: Module, parameters: f64| Bytes::new(parameters * module_bits(model, module) / 8.0);
    let layers = model.blocks.iter().map(|block| {
        let stage = f64::from(block.layers.div_ceil(layout.pipeline));
        block_weights(model, block, layout, &bytes) * stage
    });
    layers.sum()
}

fn block_weights(model: &Model, block: &Block, layout: &ServingLayout, bytes: &impl Fn(Module, f64) -> Bytes) -> Bytes {
    let count = block_parameters(model, block);
    let tensor = f64::from(layout.tensor);
    let keys_values = count.keys_values as f64;
    let key_part = match block.mixer {
        Mixer::Attention(attention) if layout.tensor > attention.kv_heads => {
            keys_values / f64::from(attention.kv_heads)
        }
        _ => keys_values / tensor,
    };
    let copied = count.mixer_copied as f64;
    let split = count.mixer as f64 - keys_values - copied;
    let experts = f64::from(if layout.expert > 1 { layout.expert } else { layout.tensor });
    let copied_experts = f64::from(layout.redundant_experts);
    let slots = block.moe().map_or(1.0, |moe| 1.0 + copied_experts / f64::from(moe.experts.max(1)));
    bytes(Module::Attention, split / tensor + key_part + copied)
        + bytes(Module::Mlp, count.mlp as f64 / tensor)
        + bytes(Module::Experts, count.experts as f64 * slots / experts)
        + bytes(Module::SharedExperts, count.shared_experts as f64 / tensor)
        + bytes(Module::Router, count.router as f64)
        + bytes(Module::Norms, count.norms as f64)
}
