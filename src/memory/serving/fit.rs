//! How many tokens and requests fit, and how few accelerators will do.

use super::{CacheFormats, Engine, ServingLayout, rank_weights, sequence_bytes};
use crate::catalog::model::Model;
use crate::units::{Bytes, to_integer};

/// What fits beside a model's weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fits {
    /// Weights of a rank, with those beside the model's.
    pub weights: Bytes,
    /// The peak of activations.
    pub activations: Bytes,
    /// Memory outside the allocator.
    pub outside: Bytes,
    /// The cache's pool of a rank.
    pub pool: Bytes,
    /// What a request of the length asked about takes of the pool, beyond the shared prefix.
    pub request: Bytes,
    /// What the shared prefix takes, once.
    pub prefix: Bytes,
    /// Whole requests that fit at once, over all ranks that attend for requests of their own.
    pub requests: u64,
    /// Tokens that those requests hold.
    pub tokens: u64,
}

impl Fits {
    /// What a forward pass lacks beside weights and cache, of what the process can have: something only where the cache is sized
    /// without regard to activations.
    pub fn lacking(&self, usable: Bytes) -> Bytes {
        const ROUNDING: f64 = 1.0;
        let lacking = (self.weights + self.activations + self.outside + self.pool).saturating_sub(usable);
        if lacking > Bytes::new(ROUNDING) { lacking } else { Bytes::ZERO }
    }

    /// The same where each request takes so much more of the pool, as the cache of what drafts for it does, and a share of the
    /// pool is kept for others.
    #[must_use]
    pub fn beside(self, more: Bytes, kept: f64, layout: &ServingLayout) -> Self {
        let request = self.request + more;
        let left = (self.pool * (1.0 - kept)).saturating_sub(self.prefix);
        // Where none fits, for want of room for a forward pass too, none does with less room.
        let requests = (whole(left, request) * u64::from(layout.attention_data)).min(self.requests);
        let tokens = self.tokens.checked_div(self.requests).unwrap_or(0);
        Self { request, requests, tokens: requests.saturating_mul(tokens), ..self }
    }
}

impl Fits {
    /// The same where each attention group's engine takes at most so many requests at once.
    #[must_use]
    pub fn taken(self, most: Option<u32>, layout: &ServingLayout) -> Self {
        let most = most.map_or(u64::MAX, |most| u64::from(most) * u64::from(layout.attention_data));
        let requests = self.requests.min(most);
        let tokens = self.tokens.checked_div(self.requests).unwrap_or(0);
        Self { requests, tokens: requests.saturating_mul(tokens), ..self }
    }
}

/// How many whole requests a pool holds.
fn whole(pool: Bytes, request: Bytes) -> u64 {
    let each = if request > Bytes::ZERO { pool / request } else { 0.0 };
    to_integer(each.floor())
}

/// Longer than any context.
const LONGEST: u64 = 1 << 40;

/// What fits of requests of that many tokens, of which the first `shared_prefix` are the same for all.
///
/// A prefix is shared where whole blocks are the same; the rest of its last block is each request's own.
pub fn fits(
    model: &Model,
    layout: &ServingLayout,
    engine: &Engine,
    formats: &CacheFormats,
    usable: Bytes,
    (tokens, shared_prefix): (u64, u64),
) -> Fits {
    let weights = rank_weights(model, layout) + engine.beside;
    let activations = engine.activations(model, layout);
    let pool = engine.pool(usable, weights, activations, layout);
    let of = |tokens| sequence_bytes(model, formats, engine.pages, layout, tokens);
    let block = u64::from(engine.pages.block.max(1));
    let shared_blocks = shared_prefix.min(tokens) / block * block;
    // Windows and states are each request's own: shared is what only grows.
    let whole_request = of(tokens);
    let shared = if shared_blocks > 0 {
        let prefix = of(shared_blocks).saturating_sub(of(0));
        prefix.min(whole_request.saturating_sub(of(tokens - shared_blocks)))
    } else {
        Bytes::ZERO
    };
    let request = whole_request.saturating_sub(shared);
    let left = pool.saturating_sub(shared);
    let outside = engine.outside(layout);
    let found = Fits { weights, activations, outside, pool, request, prefix: shared, requests: 0, tokens: 0 };
    // Without room for a forward pass nothing runs, whatever the cache holds.
    let requests = if found.lacking(usable) > Bytes::ZERO { 0 } else { whole(left, request) };
    let requests = requests * u64::from(layout.attention_data);
    Fits { requests, tokens: requests.saturating_mul(tokens), ..found }
}

/// The longest sequence that fits into a pool alone.
pub fn largest_context(
    model: &Model,
    layout: &ServingLayout,
    engine: &Engine,
    formats: &CacheFormats,
    pool: Bytes,
) -> u64 {
    let fits = |tokens| sequence_bytes(model, formats, engine.pages, layout, tokens) <= pool;
    if !fits(1) {
        return 0;
    }
    let (mut low, mut high) = (1, LONGEST);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// The least tensor-parallel degree, a power of two, on which a sequence of that length fits; none up to 1,024 ranks.
pub fn smallest_tensor(
    model: &Model,
    layout: &ServingLayout,
    engine: &Engine,
    formats: &CacheFormats,
    usable: Bytes,
    tokens: u64,
) -> Option<u32> {
    (0..=10).map(|power| 1 << power).find(|tensor| {
        let expert = if layout.expert > 1 { layout.expert.max(*tensor) } else { 1 };
        let layout = ServingLayout { tensor: *tensor, expert, ..*layout };
        layout.check(model).is_ok() && fits(model, &layout, engine, formats, usable, (tokens, 0)).requests > 0
    })
}
