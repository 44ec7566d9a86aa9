//! Prefill: the prompt's tokens at once, up to the first new one.

use super::shape::{MixerLayers, Unit};
use crate::compute::roofline;
use crate::inference::Replica;
use crate::units::{Bandwidth, Flops, Seconds};

/// Tokens of a step that is full of prompts, as engines batch by default.
pub(in crate::inference) const FULL_STEP: f64 = 8_192.0;

/// What steps of prompts take whatever their prompts are.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct PromptCosts {
    /// Multiplying a token by the projections that every token passes.
    token: Seconds,
    /// Reading those.
    read: Seconds,
}

/// A step that is full of prompts in all attention groups, but for launching its kernels.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct FullStep {
    time: Seconds,
    /// Tokens of each group.
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
    pub(in crate::inference) fn prefill_by(&self, costs: &PromptCosts, new: f64, cached: f64) -> Seconds {
        self.together_by(costs, 1.0, new, cached)
    }

    /// The prefill of so many such requests in one step of the engine. Attention groups take a prompt each before one takes
    /// a second; experts work for the prompts of all.
    pub fn prefill_together(&self, prompts: f64, new: f64, cached: f64) -> Seconds {
        self.together_by(&self.prompt_costs(), prompts, new, cached)
    }

    /// The same where what steps take is known.
    pub(in crate::inference) fn together_by(
        &self,
        costs: &PromptCosts,
        prompts: f64,
        new: f64,
        cached: f64,
    ) -> Seconds {
        let draft = self.drafting().map_or(Seconds::ZERO, |draft| draft.prefill_together(prompts, new, cached));
        let groups = f64::from(self.spread.attention_data);
        let of_group = (prompts / groups).max(1.0);
        let (own, busy) = (new * of_group, prompts / of_group);
        let computed = if let Some(cut) = self.cut(new) {
            self.chunked_prefill(new, cached, busy, cut) * of_group
        } else {
            let device =
                self.prompt_step_by(costs, own, own * busy, false) + self.prompt_attention(new, cached) * of_group;
            while_launching(device, self.prefill_overhead(new + cached))
        };
        computed + draft + self.adapter_prefill(own, self.chunks(new))
    }

    /// The most prompts of so many new tokens that one step takes.
    pub(in crate::inference) fn prompts_of_step(&self, new: f64) -> f64 {
        (self.step_tokens().0 / new).max(1.0) * f64::from(self.spread.attention_data)
    }

    /// Prompts' tokens of a step of all attention groups, at most.
    pub(in crate::inference) fn tokens_of_steps(&self) -> f64 {
        self.step_tokens().0 * f64::from(self.spread.attention_data)
    }

    /// The most prompts that steps take in on average, where none is cut: of one length as many as go into a step, of lengths that
    /// scatter as many as come to its end one after another (a renewal process, less the one that reaches beyond it).
    pub(in crate::inference) fn prompts_of_steps(&self, new: f64, scatter: f64) -> f64 {
        let of_step = self.step_tokens().0 / new;
        let whole = if scatter > 0.0 { of_step + (scatter - 1.0) / 2.0 } else { of_step.floor() };
        whole.max(1.0) * f64::from(self.spread.attention_data)
    }

    /// The part of full steps, each packed with prompts in all attention groups, that one request of so many tokens takes.
    pub fn packed_prefill(&self, new: f64, cached: f64) -> Seconds {
        self.packed_by(&self.full_step(&self.prompt_costs()), new, cached)
    }

    /// The same but for launches of its kernels.
    pub(in crate::inference) fn packed_unlaunched(&self, new: f64, cached: f64) -> Seconds {
        self.packed_with(&self.full_step(&self.prompt_costs()), new, cached, Seconds::ZERO)
    }

    /// The same with them where a full step is known.
    pub(in crate::inference) fn packed_by(&self, full: &FullStep, new: f64, cached: f64) -> Seconds {
        self.packed_with(full, new, cached, self.prefill_overhead(new + cached))
    }

    fn packed_with(&self, full: &FullStep, new: f64, cached: f64, launching: Seconds) -> Seconds {
        let draft = self.drafting().map_or(Seconds::ZERO, |draft| draft.packed_prefill(new, cached));
        let attention = match self.cut(new) {
            Some(cut) => self.cut_attention(new, cached, cut),
            None => self.prompt_attention(new, cached),
        };
        let part = new / full.tokens;
        let step = while_launching(full.time * part + attention, launching * part);
        (step + self.adapter_prefill(new, part)) / f64::from(self.spread.attention_data) + draft
    }

    /// A step that is full of prompts.
    pub(in crate::inference) fn full_step(&self, costs: &PromptCosts) -> FullStep {
        let (tokens, shared) = self.step_tokens();
        let all = tokens * f64::from(self.spread.attention_data);
        FullStep { time: self.prompt_step_by(costs, tokens, all, shared), tokens }
    }

    /// Prompts' tokens of an attention group's step at most, and whether sequences in decode share it.
    fn step_tokens(&self) -> (f64, bool) {
        self.features.chunks.map_or((FULL_STEP, false), |chunks| (chunks.tokens, chunks.shared))
    }

    /// What steps of prompts take whatever their prompts are.
    pub(in crate::inference) fn prompt_costs(&self) -> PromptCosts {
        let hardware = self.hardware;
        let memory = self.prompt_memory();
        let (mut token, mut read) = (Seconds::ZERO, Seconds::ZERO);
        // The head is for the last token alone.
        for part in &self.shape.common()[..4] {
            token += part.flops / (hardware.class(part.class).peak * hardware.gemm);
            read += part.bytes / memory;
        }
        PromptCosts { token: token / self.tensor(), read: read / self.tensor() }
    }

    /// Rate at which weights are read in prefill.
    fn prompt_memory(&self) -> Bandwidth {
        self.hardware.memory * self.hardware.kernels.prefill_weights.value.get()
    }

    /// Matrix multiplications and messages of a step of so many prompt tokens in an attention group, and in all of them;
    /// `shared` where sequences in decode share it, whose reading of the projections that every token passes is theirs.
    pub(in crate::inference) fn prompt_step(&self, tokens: f64, all: f64, shared: bool) -> Seconds {
        self.prompt_step_by(&self.prompt_costs(), tokens, all, shared)
    }

    fn prompt_step_by(&self, costs: &PromptCosts, tokens: f64, all: f64, shared: bool) -> Seconds {
        let hardware = self.hardware;
        let memory = self.prompt_memory();
        let mut read = if shared { Seconds::ZERO } else { costs.read };
        let mut multiplied = costs.token * tokens;
        let mut moved = Seconds::ZERO;
        for layers in &self.shape.experts {
            let each = layers.layers / self.spread.stage();
            let rates = hardware.class(layers.expert.class);
            let slots = self.spread.slots(layers.experts);
            let untouched = (1.0 - layers.per_token / slots).powf(all);
            // Beyond a full step of one group, experts' tiles fill up to what large batches in decode reach.
            let rate = hardware.experts * rates.expert_rate;
            let filled = hardware.kernels.decode_experts.value.get().max(rate);
            let rate = (rate * (all / FULL_STEP).max(1.0)).min(filled);
            let copies = layers.per_token * all * each * self.busiest();
            multiplied += layers.expert.flops * copies / (rates.peak * rate);
            // Ranks that share each expert take all of its tokens, as wide as they are.
            let shared_by = if self.spread.expert_parallel { 1.0 } else { self.spread.stage() };
            let width = layers.width * shared_by;
            moved += layers.moved(width, rates.activation) * copies / memory;
            read += layers.expert.bytes * (slots * (1.0 - untouched) * each) / memory;
        }
        let messages =
            if self.exchanges() { self.prompt_exchange(tokens) } else { self.all_reduces(tokens, Seconds::ZERO) };
        (roofline(multiplied, read) + moved + messages) * hardware.prefill + self.handed_over(tokens)
    }

    /// Attention of a prompt's tokens among themselves and to those that are cached.
    pub(in crate::inference) fn prompt_attention(&self, new: f64, cached: f64) -> Seconds {
        let flops: Flops = self.shape.mixers.iter().map(|layers| layers.prefill(cached, new)).sum();
        flops / self.hardware.attention / self.tensor() * self.hardware.prefill
    }

    /// Launching the kernels of all layers, those of experts among them.
    ///
    /// A prompt of which an indexer would select all has none to run: attention is latent attention's.
    pub(in crate::inference) fn prefill_overhead(&self, context: f64) -> Seconds {
        let (shape, hardware) = (self.shape, self.hardware);
        let unit = |layers: &MixerLayers| {
            let all = layers.unit == Unit::Indexed && context <= layers.window;
            self.mixer_units(if all { Unit::Latent } else { layers.unit })
        };
        let mixers: f64 = shape.mixers.iter().map(|layers| layers.layers * unit(layers)).sum();
        let experts: f64 = shape.experts.iter().map(|layers| layers.layers).sum();
        hardware.prefill_layer * (mixers + hardware.overhead.experts.value.get() * experts)
    }
}

/// A step whose kernels the host launches ahead of the device: it takes the longer of both.
pub(in crate::inference) fn while_launching(device: Seconds, launching: Seconds) -> Seconds {
    device.max(launching)
}
