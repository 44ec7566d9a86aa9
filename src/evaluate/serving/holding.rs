//! What a rank of a replica holds: weights, what drafts, and the cache.

use super::joined::accelerator;
use super::{Infeasible, tokens_up};
use crate::catalog::engine_memory::PoolRule;
use crate::catalog::model::Module;
use crate::inference::{Adapters, Request, Room, graphs_hold};
use crate::memory::MemoryFootprint;
use crate::memory::serving::{
    CacheFormats, Engine, Fits, Pages, Paging, ServingLayout, fits, rank_layers, rank_weights, sequence_bytes,
};
use crate::scenario::{AdapterSet, NodeGroup, Serving, Speculation};
use crate::units::Bytes;
use crate::workload::{module_bits, prediction_inputs};

/// Memory of the ranks that serve.
pub(super) struct Holding<'a> {
    serving: &'a Serving,
    engine: Engine,
    formats: CacheFormats,
    /// What a process can have of an accelerator.
    pub(super) usable: Bytes,
    /// Share of the pool that keeps prefixes of requests to come, where prompts are taken in beside decode.
    kept: f64,
}

impl<'a> Holding<'a> {
    /// Of ranks on nodes of a kind.
    pub(super) fn new(serving: &'a Serving, nodes: NodeGroup<'_>) -> Self {
        let capacity = accelerator(serving, nodes).memory_capacity;
        let engine = Engine::new(&serving.engine_memory, &nodes.accelerator.name, capacity);
        Self {
            serving,
            engine: Engine { prompt_logprobs: serving.features.prompt_logprobs, ..engine },
            formats: CacheFormats::of(&serving.model),
            usable: capacity.saturating_sub(serving.memory.driver_reserve.value),
            kept: serving
                .cache
                .as_ref()
                .filter(|_| serving.prefill.is_none())
                .map_or(0.0, |cache| cache.own_share.get()),
        }
    }

    /// Requests that each attention group takes at once: as given, or by the engine's default.
    pub(super) const fn at_once(&self) -> u32 {
        self.engine.at_once
    }

    /// What fits of requests of that many tokens, with what drafts for them.
    pub(super) fn fits(&self, layout: &ServingLayout, tokens: u64) -> Fits {
        self.fits_in(layout, tokens, self.engine.pages)
    }

    /// What a rank holds of requests of that many tokens.
    pub(super) fn of_a_rank(&self, layout: &ServingLayout, tokens: u64, paging: Option<Paging>) -> HeldByRank {
        let pages = Pages { paging: paging.unwrap_or(self.engine.pages.paging), ..self.engine.pages };
        let engine = Engine { pages, beside: self.beside(layout), ..self.engine };
        HeldByRank { fits: self.fits_in(layout, tokens, pages), usable: self.usable, tokens, engine }
    }

    /// What a rank holds beside the model's own weights: those of what drafts and of adapters, and what graphs of stated sizes keep.
    fn beside(&self, layout: &ServingLayout) -> Bytes {
        let features = &self.serving.features;
        let draft = features.speculation.as_ref();
        let draft = draft.map_or(Bytes::ZERO, |draft| draft_weights(draft, &self.serving.model, layout));
        let adapters = features
            .adapters
            .as_ref()
            .map_or(Bytes::ZERO, |adapters| adapters_on_rank(adapters, layout, f64::from(adapters.resident)));
        let graphs = features.graphs.as_ref().and_then(|sizes| sizes.last()).map_or(Bytes::ZERO, |largest| {
            let most = features.max_num_seqs.map_or(f64::INFINITY, f64::from);
            graphs_hold(largest.min(most), self.serving.model.vocab)
        });
        draft + adapters + graphs
    }

    fn fits_in(&self, layout: &ServingLayout, tokens: u64, pages: Pages) -> Fits {
        let model = &self.serving.model;
        let engine = Engine { pages, beside: self.beside(layout), ..self.engine };
        let found = fits(model, layout, &engine, &self.formats, self.usable, (tokens, 0));
        let draft = self.serving.features.speculation.as_ref();
        if draft.is_none() && self.kept <= 0.0 {
            return found;
        }
        let cached = draft.map_or(Bytes::ZERO, |draft| {
            sequence_bytes(&draft.model, &CacheFormats::of(&draft.model), pages, layout, tokens)
        });
        found.beside(cached, self.kept, layout)
    }

    /// Room for requests that are so on average, of which as many fit at their full length as `whole` says.
    ///
    /// Engines that take blocks as sequences grow admit by what a sequence holds on average; where blocks are asked about,
    /// half of one is empty at any time.
    pub(super) fn room(&self, layout: &ServingLayout, request: &Request, whole: &Fits) -> Room {
        if self.engine.rule == PoolRule::OfFree {
            return Room { requests: whole.requests as f64 };
        }
        let held = request.context();
        let found = match self.serving.features.block_tokens {
            Some(block) => {
                let pages = Pages { block: 1, ..self.engine.pages };
                self.fits_in(layout, tokens_up(held + half_block(block)), pages)
            }
            None => self.fits(layout, tokens_up(held)),
        };
        Room { requests: found.requests as f64 }
    }

    /// Logits of a forward pass where those of all tokens are asked for.
    pub(super) fn prompt_logits(&self) -> Option<Bytes> {
        self.engine.prompt_logprobs.then(|| self.engine.prompt_logits(&self.serving.model))
    }

    /// Share of the cache of a sequence in decode that is the empty end of its last blocks: half a block on average.
    pub(super) fn block_waste(&self, layout: &ServingLayout, context: f64) -> f64 {
        let pages = Pages { block: 1, ..self.engine.pages };
        let held = |tokens: f64| sequence_bytes(&self.serving.model, &self.formats, pages, layout, tokens_up(tokens));
        let with_end = held(context + half_block(self.engine.pages.block));
        if with_end > Bytes::ZERO { with_end.saturating_sub(held(context)) / with_end } else { 0.0 }
    }
}

/// What a rank of a replica holds, and could.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldByRank {
    /// What fits.
    pub fits: Fits,
    /// What a process can have of an accelerator.
    pub usable: Bytes,
    /// Tokens of a request at its full length.
    pub tokens: u64,
    /// The engine, which takes what drafts and adapters hold beside the model for memory outside its allocator.
    pub engine: Engine,
}

/// Parameters of an adapter on a rank, over all stages.
pub(super) fn adapter_numbers(adapters: &AdapterSet, layout: &ServingLayout) -> f64 {
    adapters.parameters.whole + adapters.parameters.split / f64::from(layout.tensor)
}

/// Bytes of so many adapters on a rank: those of its stage, of which it keeps the factors that no rank splits whole.
pub(super) fn adapters_on_rank(adapters: &AdapterSet, layout: &ServingLayout, count: f64) -> Bytes {
    Adapters::held(adapter_numbers(adapters, layout) / f64::from(layout.pipeline), count)
}

/// Tokens that a last block has room for on average: none to all but one.
fn half_block(block: u32) -> f64 {
    (f64::from(block) - 1.0) / 2.0
}

/// Weights of what drafts on one rank: a further layer shares the model's tables, and its projection of both inputs is whole
/// on every rank.
fn draft_weights(draft: &Speculation, model: &crate::catalog::model::Model, layout: &ServingLayout) -> Bytes {
    if !draft.layer {
        return rank_weights(&draft.model, layout);
    }
    let inputs = prediction_inputs(model) as f64 * module_bits(model, Module::Attention) / 8.0;
    rank_layers(&draft.model, layout) + Bytes::new(inputs)
}

/// Memory of a rank as reports have it.
pub(super) fn footprint(found: &Fits) -> MemoryFootprint {
    MemoryFootprint {
        weights: found.weights,
        activations: found.activations,
        kv_cache: found.pool,
        workspace: found.outside,
        ..MemoryFootprint::default()
    }
}

/// Whether a rank holds a request of that many tokens at all.
pub(super) fn holds(found: &Fits, tokens: u64, usable: Bytes) -> Result<(), Infeasible> {
    if found.requests > 0 {
        return Ok(());
    }
    let lacking = found.lacking(usable);
    if lacking > Bytes::ZERO && found.pool > found.request {
        return Err(Infeasible::NoForwardPass { lacking, usable });
    }
    let (request, pool, footprint) = (found.request, found.pool, footprint(found));
    Err(Infeasible::NoRequestFits { tokens, request, pool, footprint, usable })
}
