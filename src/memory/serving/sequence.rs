//! Bytes that one sequence takes of the cache.

use super::{CacheFormats, ServingLayout};
use crate::catalog::engine_memory::Paging;
use crate::catalog::model::Model;
use crate::units::{Bytes, to_integer};
use crate::workload::{Keeps, LayerCache, layer_caches};

/// How an engine lays the cache out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// How layers that differ share pages.
    pub paging: Paging,
    /// Tokens of a block.
    pub block: u32,
    /// Tokens of a forward pass at most, which a windowed layer holds beside its window; 0 for the bound.
    pub batched_tokens: u32,
}

impl Pages {
    /// What must be kept, whatever the engine.
    pub const BOUND: Self = Self { paging: Paging::PerLayer, block: 1, batched_tokens: 0 };
}

/// Bytes of a sequence of that length on one rank.
///
/// A windowed layer of an engine holds the window but for the token at hand, the tokens of a forward pass, and one block
/// more because neither begins with a block: `window - 1 + batched_tokens`, as vLLM reserves.
///
/// Latent attention's cache is whole on every tensor rank, and so is an indexer's; a key and value head is on every rank
/// that has none of its own. Recurrent layers keep one state. With pages of one size, a block is made long enough for a
/// state to fit into the page of an attention layer, as vLLM does for hybrid models.
pub fn sequence_bytes(
    model: &Model,
    formats: &CacheFormats,
    pages: Pages,
    layout: &ServingLayout,
    tokens: u64,
) -> Bytes {
    let caches = layer_caches(model);
    let on_stage = |cache: &LayerCache| f64::from(cache.layers.div_ceil(layout.pipeline));
    let token = |cache: &LayerCache| {
        let entries = if let Keeps::Each(ratio) = cache.keeps { 1.0 / f64::from(ratio.max(1)) } else { 1.0 };
        formats.keys_values.bytes(cache.per_token as f64 * entries * cache.shared_by.part(layout.tensor))
    };
    let state = |cache: &LayerCache| {
        let part = cache.shared_by.part(layout.tensor);
        formats.states.bytes(cache.state as f64 * part) + formats.convolutions.bytes(cache.convolution as f64 * part)
    };
    let rounded = |tokens: u64, block: u64| tokens.div_ceil(block).saturating_mul(block) as f64;
    let block = u64::from(pages.block.max(1));
    if pages.paging == Paging::UnifiedPages {
        let widest = caches.clone().map(|cache| token(&cache)).fold(Bytes::ZERO, Bytes::max);
        let largest_state = caches.clone().map(|cache| state(&cache)).fold(Bytes::ZERO, Bytes::max);
        // Where nothing grows, there are only states.
        let per_page = if widest > Bytes::ZERO { largest_state / widest } else { 0.0 };
        let needed = to_integer::<u64>((per_page / block as f64).ceil());
        let block = block.saturating_mul(needed.max(1));
        let page = widest * block as f64;
        let of = |cache: &LayerCache| {
            let states = if cache.state > 0 { page.max(state(cache)) } else { Bytes::ZERO };
            let growing = if cache.per_token > 0 { widest * rounded(tokens, block) } else { Bytes::ZERO };
            (states + growing) * on_stage(cache)
        };
        return caches.map(|cache| of(&cache)).sum();
    }
    let windowed = |window: u64| {
        if pages.batched_tokens == 0 {
            return rounded(tokens.min(window), block);
        }
        let held = window - 1 + u64::from(pages.batched_tokens);
        rounded(tokens, block).min(rounded(held, block) + block as f64)
    };
    let of = |cache: &LayerCache| {
        let kept = match cache.keeps {
            Keeps::Last(window) if pages.paging == Paging::PerLayer => windowed(u64::from(window)),
            // Blocks are of tokens; an entry for several that is not full counts by its part.
            Keeps::Last(_) | Keeps::Always | Keeps::Each(_) => rounded(tokens, block),
        };
        (state(cache) + token(cache) * kept) * on_stage(cache)
    };
    caches.map(|cache| of(&cache)).sum()
}
