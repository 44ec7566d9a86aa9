//! Prefill: the prompt's tokens at once, up to the first new one.

use super::Replica;
use crate::compute::roofline;
use crate::units::{Bandwidth, Flops, Seconds};

/// Tokens of a step that is full of prompts, as engines batch by default.
pub(super) const FULL_STEP: f64 = 8_192.0;

/// What steps of prompts take whatever their prompts are.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptCosts {
    /// Multiplying a token by the projections that every token passes.
    token: Seconds,
    /// Reading those.
    read: Seconds,
    /// Launching the kernels of a step.
    overhead: Seconds,
}

/// A step that is full of prompts.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullStep {
    time: Seconds,
    tokens: f64,
}

impl Replica<'_> {
    /// The prefill of one request of so many new tokens behind `cached` ones whose keys and values are at hand.
    ///
    /// What drafts tokens takes the prompt in too.
    pub fn prefill(&self, new: f64, cached: f64) -> Seconds {
        self.prefill_by(&self.prompt_costs(), new, cached)
    }

    /// The same where what steps take is known.
    pub(super) fn prefill_by(&self, costs: &PromptCosts, new: f64, cached: f64) -> Seconds {
        let draft = self.drafting().map_or(Seconds::ZERO, |draft| draft.prefill(new, cached));
        let own = match self.cut(new) {
            Some(cut) => self.chunked_prefill(new, cached, cut),
            None => self.prompt_step_by(costs, new, false) + self.prompt_attention(new, cached) + costs.overhead,
        };
        own + draft + self.adapter_prefill(new, self.chunks(new))
    }

    /// The part of full steps, each packed with prompts, that one request of so many tokens takes.
    pub fn packed_prefill(&self, new: f64, cached: f64) -> Seconds {
        self.packed_by(&self.full_step(&self.prompt_costs()), new, cached)
    }

    /// The same where a full step is known.
    pub(super) fn packed_by(&self, full: &FullStep, new: f64, cached: f64) -> Seconds {
        let draft = self.drafting().map_or(Seconds::ZERO, |draft| draft.packed_prefill(new, cached));
        let attention = match self.cut(new) {
            Some(cut) => self.cut_attention(new, cached, cut),
            None => self.prompt_attention(new, cached),
        };
        full.time * (new / full.tokens) + attention + draft + self.adapter_prefill(new, new / full.tokens)
    }

    /// A step that is full of prompts.
    pub(super) fn full_step(&self, costs: &PromptCosts) -> FullStep {
        let (tokens, shared) = self.features.chunks.map_or((FULL_STEP, false), |chunks| (chunks.tokens, chunks.shared));
        FullStep { time: self.prompt_step_by(costs, tokens, shared) + costs.overhead, tokens }
    }

    /// What steps of prompts take whatever their prompts are.
    pub(super) fn prompt_costs(&self) -> PromptCosts {
        let hardware = self.hardware;
        let memory = self.prompt_memory();
        let (mut token, mut read) = (Seconds::ZERO, Seconds::ZERO);
        // The head is for the last token alone.
        for part in &self.shape.common()[..4] {
            token += part.flops / (hardware.class(part.class).peak * hardware.gemm);
            read += part.bytes / memory;
        }
        PromptCosts { token: token / self.tensor(), read: read / self.tensor(), overhead: self.prefill_overhead() }
    }

    /// Rate at which weights are read in prefill.
    fn prompt_memory(&self) -> Bandwidth {
        self.hardware.memory * self.hardware.kernels.prefill_weights.value.get()
    }

    /// Matrix multiplications and messages of a step of so many prompt tokens; `shared` where sequences in decode share it,
    /// whose reading of the projections that every token passes is theirs.
    pub(super) fn prompt_step(&self, tokens: f64, shared: bool) -> Seconds {
        self.prompt_step_by(&self.prompt_costs(), tokens, shared)
    }

    fn prompt_step_by(&self, costs: &PromptCosts, tokens: f64, shared: bool) -> Seconds {
        let hardware = self.hardware;
        let memory = self.prompt_memory();
        let mut read = if shared { Seconds::ZERO } else { costs.read };
        let mut multiplied = costs.token * tokens;
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
    pub(super) fn prompt_attention(&self, new: f64, cached: f64) -> Seconds {
        let flops: Flops = self.shape.mixers.iter().map(|layers| layers.prefill(cached, new)).sum();
        flops / self.hardware.attention / self.tensor() * self.hardware.prefill
    }

    /// Launching the kernels of all layers, those of experts among them.
    pub(super) fn prefill_overhead(&self) -> Seconds {
        let (shape, hardware) = (self.shape, self.hardware);
        let mixers: f64 = shape.mixers.iter().map(|layers| layers.layers * self.mixer_units(layers.unit)).sum();
        let experts: f64 = shape.experts.iter().map(|layers| layers.layers).sum();
        hardware.prefill_layer * (mixers + hardware.overhead.experts.value.get() * experts)
    }
}
