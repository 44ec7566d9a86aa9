//! Floating-point operations of one token in a forward pass, for any architecture.

use super::census::{block_parameters, census};
use crate::catalog::model::{Attention, Mixer, Model, Span};
use crate::units::Flops;

/// Forward operations of one token, a multiply-add as two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenFlops {
    /// Products with weights, the output projection among them; the experts that the token visits.
    pub weights: Flops,
    /// Scores against the cache and their product with it, an indexer's too; updates of recurrent states.
    pub cache: Flops,
}

impl TokenFlops {
    /// Their sum.
    pub fn total(&self) -> Flops {
        self.weights + self.cache
    }
}

/// Operations of the token that follows a context of so many tokens.
///
/// Norms, activations and the embedding's look-up are left out. A recurrent state is decayed, added to and read: four
/// operations a number. Latent attention is counted with its keys and values expanded.
pub fn token_flops(model: &Model, context: u64) -> TokenFlops {
    let counted = census(model);
    let head = if model.tied_embeddings { counted.embedding } else { counted.head };
    let mut flops = TokenFlops { weights: Flops::new(2.0 * head as f64), cache: Flops::ZERO };
    for block in &model.blocks {
        let count = block_parameters(model, block);
        let used = count.active() - count.norms;
        let layers = f64::from(block.layers);
        flops.weights += Flops::new(2.0 * used as f64) * layers;
        flops.cache += Flops::new(cache_operations(&block.mixer, context)) * layers;
    }
    flops
}

fn cache_operations(mixer: &Mixer, context: u64) -> f64 {
    const STATE: f64 = 4.0;
    let all = context as f64;
    match mixer {
        Mixer::None => 0.0,
        Mixer::Attention(attention) => 2.0 * attention_width(attention) * seen(attention, context),
        Mixer::Latent(latent) => {
            let width = f64::from(latent.nope_dim) + f64::from(latent.rope_dim) + f64::from(latent.value_dim);
            let indexer = latent.indexer.map_or(0.0, |indexer| f64::from(indexer.heads) * f64::from(indexer.head_dim));
            2.0 * all * (f64::from(latent.heads) * width + indexer)
        }
        Mixer::Compressed(compressed) => {
            let entries = all / f64::from(compressed.ratio.max(1));
            let picked =
                compressed.indexer.and_then(|indexer| indexer.selected).map_or(entries, f64::from).min(entries);
            let seen = picked + all.min(f64::from(compressed.window));
            let indexer =
                compressed.indexer.map_or(0.0, |indexer| f64::from(indexer.heads) * f64::from(indexer.head_dim));
            2.0 * (2.0 * f64::from(compressed.heads) * f64::from(compressed.head_dim) * seen + indexer * entries)
        }
        Mixer::Mamba2(mamba) => STATE * f64::from(mamba.heads) * f64::from(mamba.head_dim) * f64::from(mamba.state),
        Mixer::Mamba(mamba) => STATE * f64::from(mamba.inner) * f64::from(mamba.state),
        Mixer::GatedDelta(delta) => {
            STATE * f64::from(delta.value_heads) * f64::from(delta.value_dim) * f64::from(delta.key_dim)
        }
    }
}

fn attention_width(attention: &Attention) -> f64 {
    f64::from(attention.heads) * (f64::from(attention.head_dim) + f64::from(attention.value_dim))
}

/// Tokens of the context that attention sees; none of the text across modalities.
fn seen(attention: &Attention, context: u64) -> f64 {
    match attention.span {
        Span::Full => context as f64,
        Span::Window | Span::Chunk => context.min(u64::from(attention.window)) as f64,
        Span::Cross => 0.0,
    }
}
