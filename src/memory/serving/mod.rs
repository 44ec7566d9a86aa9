//! Memory of one accelerator in serving: weights, the cache's pool by the engine's rule, and what fits into it.

mod fit;
mod sequence;
mod weights;

use crate::catalog::memory_allowance::{EngineMemory, PoolRule};
use crate::catalog::model::{Feed, Format, Model};
use crate::units::{Bytes, Fraction};

pub use crate::parallelism::ServingLayout;

pub use fit::{Fits, fits, largest_context, smallest_tensor};
pub use sequence::{Pages, Paging, sequence_bytes};
pub use weights::{rank_layers, rank_weights};

/// Formats of what a sequence keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFormats {
    /// Keys and values.
    pub keys_values: Format,
    /// Recurrent states.
    pub states: Format,
    /// What convolutions keep.
    pub convolutions: Format,
}

impl CacheFormats {
    /// As the checkpoint says, the base format where it says nothing.
    pub fn of(model: &Model) -> Self {
        let formats = &model.formats;
        let base = formats.base;
        Self {
            keys_values: formats.kv_cache.unwrap_or(base),
            states: formats.state.unwrap_or(base),
            convolutions: base,
        }
    }
}

/// A serving engine at work on an accelerator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// How the pool of the cache is sized.
    pub rule: PoolRule,
    /// The fraction that the rule takes.
    pub fraction: Fraction,
    /// How the cache is laid out; its tokens of a forward pass, over all requests, set the peak of activations.
    pub pages: Pages,
    /// Requests at most, each with one row of logits.
    pub requests: u32,
    /// Whether the probabilities of prompts' own tokens are asked for, so that every token of a forward pass has its logits.
    pub prompt_logprobs: bool,
    /// Memory outside the allocator: the context, the communicators' buffers.
    pub outside: Bytes,
}

impl Engine {
    /// The engine by the catalog's typical values.
    pub fn new(memory: &EngineMemory) -> Self {
        Self {
            rule: memory.rule,
            fraction: memory.fraction,
            pages: Pages { paging: Paging::PerLayer, block: memory.block, batched_tokens: memory.batched_tokens },
            requests: memory.requests,
            prompt_logprobs: false,
            outside: memory.outside.value,
        }
    }

    /// The peak of activations: of the widest layer the residual stream, its norm, and the inputs and output of the MLP;
    /// and the logits of each request twice in single precision.
    ///
    /// Four hidden widths and three inner ones a token of 2 bytes come to vLLM's profiled peaks: 1.15 GiB at 8,192 tokens
    /// of Llama 3.1 8B where 1.26 was logged (vllm-project/vllm pull request 10511), 2.46 at 20,000 where 2.45 is left
    /// between pool and weights (issue 10517).
    ///
    /// Or, where that is more, the sampler's: for each request a row of logits in 16 and in 32 bits, its sorted values with
    /// their indices of 8 bytes, softmax, running sums and noise: 38.5 bytes a logit. With 1,024 requests, vLLM's default on
    /// an H100, that is what llm-d-planner states as measured whatever the context: 4.76 GiB for 128,256 entries, 5.56 for
    /// 151,936 and 7.38 for the 201,088 of gpt-oss (src/planner/capacity_planner.py: 38.9, 38.4 and 38.5 bytes).
    pub fn activations(&self, model: &Model, tensor: u32) -> Bytes {
        const NUMBER: f64 = 2.0;
        const LOGIT: f64 = 8.0;
        const SAMPLED: f64 = 38.5;
        let tensor = f64::from(tensor);
        let width = |feed: &Feed| match feed {
            Feed::None => 0.0,
            Feed::Mlp(mlp) => 3.0 * f64::from(mlp.ffn),
            Feed::Moe(moe) => {
                let beside = moe.beside.map_or(0.0, |mlp| f64::from(mlp.ffn));
                let experts = f64::from(moe.per_token)
                    * (f64::from(moe.expert.ffn) * 3.0 + 2.0 * f64::from(model.hidden) * tensor);
                experts + 3.0 * (f64::from(moe.shared_ffn) + beside)
            }
        };
        let inner = model.blocks.iter().map(|block| width(&block.feed)).fold(0.0, f64::max) / tensor;
        let layer = f64::from(self.pages.batched_tokens) * NUMBER * (4.0 * f64::from(model.hidden) + inner);
        let logits = f64::from(self.requests) * f64::from(model.vocab);
        Bytes::new((layer + logits * LOGIT).max(logits * SAMPLED)) + self.prompt_logits(model)
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

    /// The pool of the cache on one rank, of what the process can have of an accelerator; nothing where no memory is left.
    pub fn pool(&self, usable: Bytes, weights: Bytes, activations: Bytes) -> Bytes {
        let taken = weights + activations + self.outside;
        match self.rule {
            PoolRule::OfTotal => (usable * self.fraction.get()).saturating_sub(taken),
            PoolRule::OfFree => usable.saturating_sub(taken) * self.fraction.get(),
        }
    }
}

#[cfg(test)]
mod tests;
