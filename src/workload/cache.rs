//! What a sequence keeps between tokens: keys and values that grow, windows that fill up, states that are fixed.
//!
//! All in numbers, not bytes: the format comes in where memory is counted.

use crate::catalog::model::{Block, Mixer, Model, Span};

/// How long a layer keeps the keys and values of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// As long as the sequence lasts.
    Always,
    /// While it is among the last so many tokens, or in their chunk.
    Last(u32),
    /// As long as the sequence lasts, in one entry for so many tokens.
    Each(u32),
}

/// How tensor-parallel ranks share a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedBy {
    /// By heads, of which there are so many; beyond that, each is held again.
    Heads(u32),
    /// Not at all: each rank holds all, as latent attention needs.
    Nobody,
}

impl SharedBy {
    /// The part of the whole that one of so many ranks holds.
    pub fn part(self, tensor: u32) -> f64 {
        match self {
            Self::Heads(heads) if tensor < heads => f64::from(heads.div_ceil(tensor)) / f64::from(heads),
            Self::Heads(heads) => 1.0 / f64::from(heads),
            Self::Nobody => 1.0,
        }
    }
}

/// The cache of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerCache {
    /// Layers like it.
    pub layers: u32,
    /// Numbers of a token, or of an entry for several.
    pub per_token: u64,
    /// How long they are kept.
    pub keeps: Keeps,
    /// How ranks share them.
    pub shared_by: SharedBy,
    /// Numbers of a recurrent state, whatever the length.
    pub state: u64,
    /// Numbers that the convolution before it keeps of the last tokens.
    pub convolution: u64,
}

impl LayerCache {
    /// Numbers of a sequence of that length, beside states.
    pub fn numbers_at(&self, tokens: u64) -> u64 {
        let kept = match self.keeps {
            Keeps::Always => tokens,
            Keeps::Last(window) => tokens.min(u64::from(window)),
            Keeps::Each(ratio) => tokens.div_ceil(u64::from(ratio.max(1))),
        };
        self.per_token.saturating_mul(kept)
    }
}

/// The caches of a model's layers. Layers that cache nothing of the text, cross-attention among them, are left out.
pub fn layer_caches(model: &Model) -> impl Iterator<Item = LayerCache> + Clone + '_ {
    model.blocks.iter().flat_map(|block| caches_of(block).into_iter().flatten())
}

/// The caches of a block's layers: none, one, or one and a window beside it.
fn caches_of(block: &Block) -> [Option<LayerCache>; 2] {
    let mut cache = LayerCache {
        layers: block.layers,
        per_token: 0,
        keeps: Keeps::Always,
        shared_by: SharedBy::Nobody,
        state: 0,
        convolution: 0,
    };
    let mut window = None;
    match block.mixer {
        Mixer::None => return [None; 2],
        Mixer::Attention(attention) => {
            let width = u64::from(attention.head_dim) + u64::from(attention.value_dim);
            cache.per_token = u64::from(attention.kv_heads) * width;
            cache.shared_by = SharedBy::Heads(attention.kv_heads);
            match attention.span {
                Span::Full => {}
                Span::Window | Span::Chunk => cache.keeps = Keeps::Last(attention.window),
                Span::Cross => return [None; 2],
            }
        }
        Mixer::Latent(latent) => {
            let indexer = latent.indexer.map_or(0, |indexer| u64::from(indexer.head_dim));
            cache.per_token = u64::from(latent.rank) + u64::from(latent.rope_dim) + indexer;
        }
        Mixer::Compressed(compressed) => {
            let dim = u64::from(compressed.head_dim);
            window = Some(LayerCache { per_token: dim, keeps: Keeps::Last(compressed.window), ..cache });
            cache.per_token = dim + compressed.indexer.map_or(0, |indexer| u64::from(indexer.head_dim));
            cache.keeps = Keeps::Each(compressed.ratio);
        }
        Mixer::Mamba2(mamba) => {
            let inner = u64::from(mamba.heads) * u64::from(mamba.head_dim);
            let convolved = inner + 2 * u64::from(mamba.groups) * u64::from(mamba.state);
            cache.state = inner * u64::from(mamba.state);
            cache.convolution = convolved * u64::from(mamba.kernel.saturating_sub(1));
            cache.shared_by = SharedBy::Heads(mamba.heads);
        }
        Mixer::Mamba(mamba) => {
            cache.state = u64::from(mamba.inner) * u64::from(mamba.state);
            cache.convolution = u64::from(mamba.inner) * u64::from(mamba.kernel.saturating_sub(1));
            cache.shared_by = SharedBy::Heads(mamba.inner);
        }
        Mixer::GatedDelta(delta) => {
            let keys = u64::from(delta.key_heads) * u64::from(delta.key_dim);
            let values = u64::from(delta.value_heads) * u64::from(delta.value_dim);
            cache.state = values * u64::from(delta.key_dim);
            cache.convolution = (2 * keys + values) * u64::from(delta.kernel.saturating_sub(1));
            cache.shared_by = SharedBy::Heads(delta.value_heads);
        }
    }
    [window, Some(cache)]
}

/// Numbers of a sequence, by what they depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheNumbers {
    /// A token's, in layers that keep all tokens; where one entry stands for several, its part, rounded up.
    pub growing_per_token: u64,
    /// A token's, in layers that keep a window.
    pub windowed_per_token: u64,
    /// All that windowed layers keep once their windows are full.
    pub full_windows: u64,
    /// Recurrent states.
    pub states: u64,
    /// What convolutions keep.
    pub convolutions: u64,
}

impl CacheNumbers {
    /// Those of a model.
    pub fn of(model: &Model) -> Self {
        let mut numbers = Self::default();
        for cache in layer_caches(model) {
            let layers = u64::from(cache.layers);
            let token = cache.per_token * layers;
            match cache.keeps {
                Keeps::Always => numbers.growing_per_token += token,
                Keeps::Each(ratio) => numbers.growing_per_token += token.div_ceil(u64::from(ratio.max(1))),
                Keeps::Last(window) => {
                    numbers.windowed_per_token += token;
                    numbers.full_windows += token * u64::from(window);
                }
            }
            numbers.states += cache.state * layers;
            numbers.convolutions += cache.convolution * layers;
        }
        numbers
    }

    /// All that does not grow once windows are full.
    pub const fn fixed(&self) -> u64 {
        self.full_windows + self.states + self.convolutions
    }
}

/// Numbers of keys and values of a sequence of that length, in layers that cache the text.
pub fn numbers_at(model: &Model, tokens: u64) -> u64 {
    layer_caches(model).map(|cache| cache.numbers_at(tokens).saturating_mul(u64::from(cache.layers))).sum()
}
