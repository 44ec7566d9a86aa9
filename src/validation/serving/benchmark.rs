//! TensorRT-LLM's benchmark, `trtllm-bench throughput`, as its documents have it run: what they set, and what it works out for
//! itself where they leave it open.

use crate::catalog::engine_version::EngineVersion;
use crate::catalog::model::{Model, Module};
use crate::inference::{Chunks, Graphs, Replayed, Request, graphs_hold};
use crate::memory::serving::{CacheFormats, Engine, Pages};
use crate::parallelism::ServingLayout;
use crate::units::{Bytes, Fraction, Seconds, to_integer};
use crate::workload::{census, layer_caches, module_bits};

/// Sizes of decode batches that are captured as graphs, up to the next of which others are padded: the documents' option file, of
/// v0.20 to v1.2.
const GRAPHS: &[f64] =
    &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 384.0, 512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0];
/// Part of the free memory that the cache gets "in many cases", by the documents.
pub(super) const FRACTION: f64 = 0.95;
/// Requests of a step at most, whatever there is room for.
const MOST: f64 = 4_096.0;
/// Tokens of a step: at most, and at least.
const TOKENS: (f64, f64) = (32_768.0, 2_048.0);
/// Requests at least.
const LEAST: f64 = 64.0;
/// Requests, and tokens, up to which they are rounded up to a multiple of so many; beyond all, to the last.
const REQUESTS_BY: [(f64, f64); 3] = [(256.0, 32.0), (1_024.0, 128.0), (f64::INFINITY, 256.0)];
const TOKENS_BY: [(f64, f64); 3] = [(4_096.0, 256.0), (8_192.0, 512.0), (f64::INFINITY, 1_024.0)];

/// What a run of the benchmark goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Benchmark {
    /// Requests of an attention group and stage in a step, at most.
    pub(super) requests: f64,
    /// Tokens of one in a step, at most.
    pub(super) tokens: f64,
    /// Graphs of decode steps, where the engine replays such.
    pub(super) graphs: &'static [f64],
}

impl Benchmark {
    /// Of requests of so many tokens, by the benchmark's own rule (tensorrt_llm/bench/build/tuning.py): as many as the memory of
    /// all accelerators beside the weights has room for, and of tokens as many as then are in step.
    pub(super) fn new(
        model: &Model,
        layout: ServingLayout,
        memory: Bytes,
        version: Option<EngineVersion>,
        (input, output): (f64, f64),
    ) -> Self {
        let widest = if model.blocks.iter().any(|block| block.moe().is_some()) { Module::Experts } else { Module::Mlp };
        let weights = Bytes::new(census(model).total() as f64 * module_bits(model, widest).floor() / 8.0);
        let ranks = layout.tensor * layout.attention_data;
        let free = (memory * f64::from(ranks * layout.pipeline)).saturating_sub(weights) * FRACTION;
        let formats = CacheFormats::of(model);
        let kept = |numbers: f64| formats.keys_values.bytes(numbers);
        let token: Bytes = layer_caches(model)
            .map(|cache| {
                let copies = cache.shared_by.part(ranks) * f64::from(ranks);
                kept(cache.per_token as f64 * copies.max(1.0)) * f64::from(cache.layers)
            })
            .sum();
        let requests = (free / (token * (input + output))).min(MOST) / f64::from(layout.pipeline);
        let tokens = (requests * (1.0 + input / output)).min(TOKENS.0);
        // One that was built before the run enqueues all of a step at once.
        let built = version.zip(EngineVersion::parse("0.19")).is_some_and(|(version, first)| version < first);
        Self {
            requests: rounded_up(requests, &REQUESTS_BY).max(LEAST),
            tokens: rounded_up(tokens, &TOKENS_BY).max(TOKENS.1),
            graphs: if built { &[] } else { GRAPHS },
        }
    }
}

impl Benchmark {
    /// An engine's memory with what the benchmark sets.
    pub(super) fn of(&self, engine: Engine, model: &Model) -> Engine {
        let batched_tokens = to_integer::<u32>(self.tokens);
        let largest = self.graphs.last().copied().unwrap_or(0.0).min(self.requests);
        let beside = engine.beside + graphs_hold(largest, model.vocab);
        Engine { beside, fraction: Fraction::new(FRACTION), pages: Pages { batched_tokens, ..engine.pages }, ..engine }
    }

    /// Whether steps without prompts are replayed as graphs.
    pub(super) const fn replays(&self) -> bool {
        !self.graphs.is_empty()
    }

    /// How prompts go into steps of so many sequences in decode in an attention group: a run that was built before it leaves those
    /// their tokens too.
    pub(super) fn chunks(&self, own: f64) -> Chunks {
        let tokens = if self.replays() { self.tokens } else { (self.tokens - own).max(1.0) };
        Chunks { tokens, shared: true }
    }

    /// Graphs of its steps.
    pub(super) fn graphs(&self, request: &Request, launch: Seconds) -> Graphs<'static> {
        let replayed = Replayed::Beside { prompts: request.input / request.output, tokens: self.tokens };
        Graphs { sizes: self.graphs, most: self.requests, replayed, launch }
    }
}

fn rounded_up(number: f64, by: &[(f64, f64)]) -> f64 {
    let multiple = by.iter().find(|(below, _)| number < *below).map_or(1.0, |(_, multiple)| *multiple);
    (number / multiple).ceil() * multiple
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_tokens_are_rounded_up_as_the_benchmark_does() {
        for (number, rounded) in [(3.0, 32.0), (33.0, 64.0), (257.0, 384.0), (1_025.0, 1_280.0)] {
            assert!((rounded_up(number, &REQUESTS_BY) - rounded).abs() < 1e-9, "{number}");
        }
        for (number, rounded) in [(2_049.0, 2_304.0), (4_097.0, 4_608.0), (8_193.0, 9_216.0)] {
            assert!((rounded_up(number, &TOKENS_BY) - rounded).abs() < 1e-9, "{number}");
        }
    }
}
