//! A serving engine's memory beside weights and cache, and the pool that is left for the cache.

use super::{Pages, ServingLayout};
use crate::catalog::engine_memory::{EngineMemory, Headroom, PoolRule};
use crate::catalog::model::{Feed, Model, Module, MoeBlock};
use crate::units::{Bytes, Fraction};
use crate::workload::module_bits;

/// Bytes of a number in 16 bits, as activations are.
const NUMBER: f64 = 2.0;
/// Bits of a weight from which on experts' kernels read tokens gathered beforehand.
const EIGHT_BITS: f64 = 8.0;

/// A serving engine at work on an accelerator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// How the pool of the cache is sized.
    pub rule: PoolRule,
    /// The fraction that the rule takes; what the headroom leaves where there is none.
    pub fraction: Option<Fraction>,
    /// What is left beside weights and cache where no fraction is given.
    pub headroom: Headroom,
    /// What the accelerator reports as its memory.
    pub capacity: Bytes,
    /// How the cache is laid out; its tokens of a forward pass, over all requests, set the peak of activations.
    pub pages: Pages,
    /// Requests at most, each with one row of logits.
    pub requests: u32,
    /// Requests that an attention group runs at once at most.
    pub at_once: u32,
    /// Whether the probabilities of prompts' own tokens are asked for, so that every token of a forward pass has its logits.
    pub prompt_logprobs: bool,
    /// Memory of a logit at the peak of sampling; nothing where the engine sizes the cache without sampling.
    pub sampled: Bytes,
    /// Memory outside the allocator of a rank alone: the context, workspaces of libraries, graphs.
    pub alone: Bytes,
    /// What a rank has besides where ranks share a layer: the communicator's buffers.
    pub communicator: Bytes,
    /// Whether ranks that attend for requests of their own have a communicator in common too.
    pub one_group: bool,
    /// Workspace of all-reduces for each rank that splits matrices with it.
    pub exchange: Bytes,
    /// Whether experts have room for the tokens of all ranks that attend for requests of their own.
    pub gathers: bool,
    /// Weights of a rank beside the model's: of what drafts, and of adapters.
    pub beside: Bytes,
}

impl Engine {
    /// The engine by the catalog's typical values, on an accelerator of that name that reports so much memory.
    pub fn new(memory: &EngineMemory, device: &str, capacity: Bytes) -> Self {
        let (batched_tokens, requests) = memory.on(device, capacity);
        Self {
            rule: memory.rule,
            fraction: memory.fraction,
            headroom: memory.headroom.unwrap_or_default(),
            capacity,
            pages: Pages { paging: memory.paging, block: memory.block, batched_tokens },
            requests,
            at_once: memory.running.unwrap_or(requests),
            prompt_logprobs: false,
            sampled: memory.sampled,
            alone: memory.outside.value,
            communicator: memory.communicator.value,
            one_group: memory.one_group,
            exchange: memory.exchange,
            gathers: memory.gathers,
            beside: Bytes::ZERO,
        }
    }

    /// The peak of activations that the engine sees before it sizes the cache, the greater of two.
    ///
    /// In the widest layer: the residual stream, its norm, and the inputs and output of the MLP. Four hidden widths and three
    /// inner ones a token of 2 bytes come to vLLM's profiled peaks where the vocabulary is small: 0.75 GiB at 8,192 tokens of
    /// `CodeLlama` 7B, 1.16 of `Mixtral` on each of two ranks (0.77 and 1.21 logged by vLLM 0.19: llm-d-planner pull request
    /// 205), 2.2 at 20,000 tokens of Llama 3.1 8B, where 2.45 are left for it and for what is outside the allocator (issue
    /// 10517).
    ///
    /// In sampling: for each request a row of logits with its copies, beside the hidden states and the residual stream of the
    /// forward pass, and the buffers of experts, which one layer hands to the next; none where experts are in four bits, whose
    /// kernels gather tokens as they read them (gpt-oss: 2.87 GiB, where its logits and hidden states are 2.78).
    pub fn activations(&self, model: &Model, layout: &ServingLayout) -> Bytes {
        let ranks = f64::from(layout.tensor);
        let hidden = f64::from(model.hidden);
        let inner = widest(model, |feed| match feed {
            Feed::None => 0.0,
            Feed::Mlp(mlp) => 3.0 * f64::from(mlp.ffn),
            Feed::Moe(moe) => {
                let beside = moe.beside.map_or(0.0, |mlp| f64::from(mlp.ffn));
                let experts = self.rows(moe, layout) * (f64::from(moe.expert.ffn) * 3.0 + 2.0 * hidden * ranks);
                experts + 3.0 * (f64::from(moe.shared_ffn) + beside)
            }
        });
        let gathered = module_bits(model, Module::Experts) >= EIGHT_BITS;
        let handed_on = widest(model, |feed| match feed {
            Feed::Moe(moe) if gathered => f64::from(moe.per_token) * (f64::from(moe.expert.ffn) * 2.0 + hidden * ranks),
            Feed::None | Feed::Mlp(_) | Feed::Moe(_) => 0.0,
        });
        let pass = |widths: f64| Bytes::new(f64::from(self.pages.batched_tokens) * NUMBER * widths);
        let layer = pass(4.0 * hidden + inner / ranks);
        let sampling = if self.sampled > Bytes::ZERO {
            let logits = f64::from(self.requests) * f64::from(model.vocab);
            self.sampled * logits + pass(2.0 * hidden + handed_on / ranks)
        } else {
            Bytes::ZERO
        };
        layer.max(sampling) + self.prompt_logits(model)
    }

    /// Rows that a rank's experts have room for, for each token of a forward pass: its experts where tokens are sent to them, which
    /// come to as many on every rank; those of its experts that are the rank's own for each token of all ranks, where all are
    /// gathered (`getWorkspaceSize` of TensorRT-LLM's mixtures of experts, whose `moe_max_num_tokens` is that many by default).
    fn rows(&self, moe: &MoeBlock, layout: &ServingLayout) -> f64 {
        let own = moe.experts.div_ceil(layout.expert).min(moe.per_token);
        if self.gathers { f64::from(own) * f64::from(layout.attention_data) } else { f64::from(moe.per_token) }
    }

    /// Logits in single precision of every token of a forward pass, which are whole on a rank once they are gathered; none
    /// where nobody asks for the probabilities of prompts' own tokens.
    ///
    /// 11,600 tokens of a vocabulary of 248,320 are 11.5 GB: the 10.7 GiB that THUDM/slime issue 2253 ran out of.
    pub fn prompt_logits(&self, model: &Model) -> Bytes {
        const SINGLE: f64 = 4.0;
        let tokens = if self.prompt_logprobs { f64::from(self.pages.batched_tokens) } else { 0.0 };
        Bytes::new(tokens * f64::from(model.vocab) * SINGLE)
    }

    /// Memory of a rank outside the allocator: its own, and the buffers and workspaces of the ranks that share layers with it.
    pub fn outside(&self, layout: &ServingLayout) -> Bytes {
        let group = layout.tensor * if self.one_group { layout.attention_data } else { 1 };
        let shared = if group > 1 { self.communicator } else { Bytes::ZERO };
        let exchange = if layout.tensor > 1 { self.exchange * f64::from(layout.tensor) } else { Bytes::ZERO };
        self.alone + shared + exchange
    }

    /// The share of memory that the rule takes.
    pub fn share(&self, layout: &ServingLayout) -> f64 {
        let by_headroom = || {
            let ranks = layout.tensor * layout.pipeline;
            let left = self.headroom.of(self.capacity, ranks, self.pages.batched_tokens, self.requests);
            self.capacity.saturating_sub(left) / self.capacity
        };
        self.fraction.map_or_else(by_headroom, Fraction::get)
    }

    /// The pool of the cache on one rank, of what the process can have of an accelerator; nothing where no memory is left.
    pub fn pool(&self, usable: Bytes, weights: Bytes, activations: Bytes, layout: &ServingLayout) -> Bytes {
        let outside = self.outside(layout);
        let share = self.share(layout);
        match self.rule {
            PoolRule::OfTotal => (usable * share).saturating_sub(weights + activations + outside),
            PoolRule::OfFree => usable.saturating_sub(weights + activations + outside) * share,
            PoolRule::Static => (usable.saturating_sub(outside) * share).saturating_sub(weights),
        }
    }
}

/// The widest layer's feed, by a measure of it.
fn widest(model: &Model, width: impl Fn(&Feed) -> f64) -> f64 {
    model.blocks.iter().map(|block| width(&block.feed)).fold(0.0, f64::max)
}
