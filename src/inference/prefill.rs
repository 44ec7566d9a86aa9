//! Prefill: the prompt's tokens at once, up to the first new one.

use super::Replica;
use super::shape::Unit;
use crate::compute::roofline;
use crate::units::{Flops, Seconds};

/// Tokens of a step that is full of prompts, as engines batch by default.
pub(super) const FULL_STEP: f64 = 8_192.0;

impl Replica<'_> {
    /// The prefill of one request of so many new tokens behind `cached` ones whose keys and values are at hand.
    pub fn prefill(&self, new: f64, cached: f64) -> Seconds {
        self.prompt_step(new) + self.prompt_attention(new, cached) + self.prefill_overhead()
    }

    /// The part of full steps, each packed with prompts, that one request of so many tokens takes.
    pub fn packed_prefill(&self, new: f64, cached: f64) -> Seconds {
        let part = new / FULL_STEP;
        (self.prompt_step(FULL_STEP) + self.prefill_overhead()) * part + self.prompt_attention(new, cached)
    }

    /// Matrix multiplications and messages of a step of so many prompt tokens.
    fn prompt_step(&self, tokens: f64) -> Seconds {
        let hardware = self.hardware;
        let memory = hardware.memory * hardware.kernels.prefill_weights.get();
        let (mut multiplied, mut read) = (Seconds::ZERO, Seconds::ZERO);
        // The head is for the last token alone.
        for part in &self.shape.common()[..4] {
            multiplied += part.flops * tokens / (hardware.class(part.class).peak * hardware.gemm);
            read += part.bytes / memory;
        }
        let (mut multiplied, mut read) = (multiplied / self.tensor(), read / self.tensor());
        for layers in &self.shape.experts {
            let each = layers.layers / self.spread.stage();
            let peak = hardware.class(layers.expert.class).peak;
            multiplied += layers.expert.flops * (layers.per_token * tokens * each) / (peak * hardware.experts);
            let untouched = (1.0 - layers.per_token / layers.experts).powf(tokens);
            read += layers.expert.bytes * (layers.experts * (1.0 - untouched) * each) / memory;
        }
        let messages = if self.exchanges() { Seconds::ZERO } else { self.all_reduces(tokens, Seconds::ZERO) };
        (roofline(multiplied, read) + messages) * hardware.prefill
    }

    /// Attention of a prompt's tokens among themselves and to those that are cached.
    fn prompt_attention(&self, new: f64, cached: f64) -> Seconds {
        let flops: Flops = self.shape.mixers.iter().map(|layers| layers.prefill(cached, new)).sum();
        flops / self.hardware.attention / self.tensor() * self.hardware.prefill
    }

    fn prefill_overhead(&self) -> Seconds {
        let units = |unit| if unit == Unit::Grouped { 1.0 } else { self.mixer_units(unit) };
        let layers: f64 = self.shape.mixers.iter().map(|layers| layers.layers * units(layers.unit)).sum();
        self.hardware.overhead.prefill_layer * layers
    }
}
