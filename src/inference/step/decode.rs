//! A decode step: one token of every sequence in the batch.

use super::exchange::reached;
use super::shape::{ACTIVATION, COMBINED, Class, DISPATCHED, ExpertLayers, Projections, Unit};
use crate::compute::roofline;
use crate::inference::{Context, Replica};
use crate::units::{Bytes, Seconds};

/// Bytes of a token's sums of squares, of its queries and of its keys, where a norm is over all heads (vLLM's and SGLang's MiniMax M2
/// reduce both together).
const NORMED: f64 = 2.0 * 4.0;

/// Time of a decode step by what it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTime {
    /// Weights read: projections that every token passes, and the experts that the batch touches.
    pub weights: Seconds,
    /// What multiplying by them takes beyond reading them.
    pub arithmetic: Seconds,
    /// Keys, values and states read.
    pub cache: Seconds,
    /// Messages between ranks.
    pub network: Seconds,
    /// Units, the step itself, and the host's part for each sequence.
    pub overhead: Seconds,
}

impl StepTime {
    /// All of it.
    pub fn total(&self) -> Seconds {
        self.weights + self.arithmetic + self.cache + self.network + self.overhead
    }
}

/// Time of weights: read, and what multiplying takes beyond that.
#[derive(Clone, Copy, Debug, Default)]
struct Matrices {
    read: Seconds,
    beyond: Seconds,
}

impl Matrices {
    fn new(multiplied: Seconds, read: Seconds) -> Self {
        Self { read, beyond: roofline(multiplied, read).saturating_sub(read) }
    }
}

impl Replica<'_> {
    /// A step of so many sequences over the whole engine, each with a context of so many tokens on average, and `tokens`
    /// of each at once (more than one where drafts are verified).
    pub fn decode(&self, sequences: f64, context: impl Into<Context>, tokens: f64) -> StepTime {
        let context = context.into();
        if self.halves() {
            return self.in_halves(sequences, context, tokens);
        }
        self.step_of(sequences, context, tokens)
    }

    /// The same in one batch.
    pub(in crate::inference) fn step_of(&self, sequences: f64, context: Context, tokens: f64) -> StepTime {
        let heads = self.heads(sequences);
        let sequences = self.of_stage(sequences);
        let own = sequences / f64::from(self.spread.attention_data);
        let padded = tokens * self.padding(own);
        let (common, experts) = (self.common_projections(own * padded, heads), self.experts(sequences * padded));
        let step = StepTime {
            weights: common.read + experts.read,
            arithmetic: common.beyond + experts.beyond,
            cache: self.cache(own, context, tokens),
            network: self.step_messages(sequences * padded) + self.handed_over(own * padded),
            overhead: self.step_overhead(own * tokens),
        };
        let step = self.launched(step);
        if self.features.adapters.is_some() { step.plus(self.adapter_step(own, own * tokens), 1.0) } else { step }
    }

    /// Sequences that a stage works on, of so many of the engine: a part of them, while a token still passes all layers one after
    /// another. With fewer sequences than stages, some of these stand idle, and none works on less than a sequence.
    pub(in crate::inference) fn of_stage(&self, sequences: f64) -> f64 {
        (sequences / f64::from(self.spread.pipeline)).max(sequences.min(1.0))
    }

    /// A step whose kernels the host launches one by one: launches run ahead of the device, so that the step takes the longer of
    /// both. Layers of mixers and of experts launch about as many kernels each, however long those run.
    fn launched(&self, step: StepTime) -> StepTime {
        let Some(unit) = self.features.launch else { return step };
        StepTime { overhead: step.overhead + self.launching(unit).saturating_sub(step.total()), ..step }
    }

    /// The host's time to launch the kernels of a step one by one, so long for a layer or its experts.
    pub(in crate::inference) fn launching(&self, unit: Seconds) -> Seconds {
        let mixers: f64 = self.shape.mixers.iter().map(|layers| layers.layers).sum();
        let experts: f64 = self.shape.experts.iter().map(|layers| layers.layers).sum();
        self.hardware.step + unit * (mixers + experts)
    }

    /// How often the model's head counts in a token's time, of so many sequences of the engine.
    ///
    /// The last stage has it beside its layers. Where all stages are at work they go by that one, and each turn is longer by it; a
    /// token that others do not keep waiting passes it once.
    fn heads(&self, sequences: f64) -> f64 {
        let others = f64::from(self.spread.pipeline) - 1.0;
        1.0 + others * (sequences - others).clamp(0.0, 1.0)
    }

    /// Projections that every token passes, `own` tokens on each tensor group, the model's head so many times.
    fn common_projections(&self, own: f64, heads: f64) -> Matrices {
        let (mut read, mut multiplied) = (Seconds::ZERO, Seconds::ZERO);
        let [layers @ .., head] = self.shape.common();
        for (part, times) in layers.into_iter().map(|part| (part, 1.0)).chain([(head, heads)]) {
            let of_part = self.projections(part, own);
            (read, multiplied) = (read + of_part.0 * times, multiplied + of_part.1 * times);
        }
        Matrices::new(multiplied / self.tensor(), read / self.tensor())
    }

    /// Time to read projections, and to multiply `own` tokens by them, on one tensor rank.
    fn projections(&self, part: Projections, own: f64) -> (Seconds, Seconds) {
        let hardware = self.hardware;
        let rates = hardware.class(part.class);
        let read = part.bytes / (hardware.memory * (hardware.weights * rates.read));
        (read, part.flops * own / (rates.peak * hardware.kernels.decode_gemm.value.get()))
    }

    /// Time of projections of all layers, for `own` tokens on each tensor group.
    pub(in crate::inference) fn projecting(&self, part: Projections, own: f64) -> Seconds {
        let (read, multiplied) = self.projections(part, own);
        roofline(multiplied, read) / self.tensor()
    }

    /// Experts of all layers, for that many tokens over the engine.
    ///
    /// Tokens that choose `k` of `E` experts independently leave `(1 - k/E)^tokens` of them untouched. Real routing is
    /// skewed, as if fewer tokens had chosen. Copies are of those that most tokens choose, so that each of `S` slots gets as
    /// many (DeepSeek's EPLB): `k/S`.
    fn experts(&self, tokens: f64) -> Matrices {
        let hardware = self.hardware;
        let mut time = Matrices::default();
        for layers in &self.shape.experts {
            let rates = hardware.class(layers.expert.class);
            let independent = tokens * hardware.kernels.routing.value.get();
            let slots = self.spread.slots(layers.experts);
            let untouched = (1.0 - layers.per_token / slots).powf(independent);
            let touched = (slots * (1.0 - untouched)).max(layers.per_token);
            let each = layers.layers / self.spread.stage();
            let read =
                layers.expert.bytes * (touched * each) / (hardware.memory * (hardware.weights * rates.expert_read));
            let multiplied = layers.expert.flops * (layers.per_token * tokens * each * self.busiest())
                / (rates.peak * hardware.kernels.decode_experts.value.get());
            let both = Matrices::new(multiplied, read);
            // Each expert's tiles begin and end for themselves; those of copies at the same time as on other ranks.
            let begun = hardware.overhead.expert.value * (touched * (layers.experts / slots) * layers.layers);
            time = Matrices { read: time.read + both.read + begun, beyond: time.beyond + both.beyond };
        }
        time
    }

    /// Caches of `own` sequences of a tensor group, `tokens` of each at once: read, or attended to where they are latents and that
    /// takes longer. One kernel does both, and reads the tiles ahead of those that it multiplies (FlashMLA).
    pub(in crate::inference) fn cache(&self, own: f64, context: impl Into<Context>, tokens: f64) -> Seconds {
        let (hardware, context) = (self.hardware, context.into());
        let mut time = Seconds::ZERO;
        for layers in &self.shape.mixers {
            let latent = matches!(layers.unit, Unit::Latent | Unit::Indexed);
            let share = if latent { hardware.kernels.latent_cache.value.get() } else { hardware.keys_values };
            let by_head = hardware.chunks_by_head && self.features.longest.is_none_or(|longest| longest > layers.chunk);
            let read = layers.read(context, self.spread.tensor, by_head) * own / (hardware.memory * share);
            let attended = layers.attend(context) * (own * tokens / self.tensor()) / hardware.latent;
            time += attended.max(read);
        }
        time
    }

    /// All-reduces of tensor parallelism; or the exchange of tokens with experts, and beside it the all-reduces of attention and
    /// dense layers in groups of several tensor ranks.
    fn step_messages(&self, tokens: f64) -> Seconds {
        let latency = self.hardware.messages.all_reduce.value;
        if !self.exchanges() {
            return self.all_reduces(tokens, latency);
        }
        let [dispatch, combine] = self.ways(tokens);
        self.all_reduces(tokens / f64::from(self.spread.attention_data), latency) + dispatch + combine
    }

    /// The exchange of that many tokens with experts in all layers: dispatch, and combine.
    pub(in crate::inference) fn ways(&self, tokens: f64) -> [Seconds; 2] {
        let ranks = self.spread.stage();
        // Tensor ranks send a part of their group's tokens each, and wait for the one that gets most.
        let own = tokens / f64::from(self.spread.attention_data) / self.tensor() * self.busiest();
        let messages = &self.hardware.messages;
        let latency = if self.features.gathers { messages.gather } else { messages.all_to_all };
        let beyond = self.beyond(ranks);
        let way = |layers: &ExpertLayers, bytes: f64| {
            let token = Bytes::new(layers.width * bytes);
            let time = match beyond {
                Some(across) => across.dispatch(own, layers.per_token, token, ranks, self.hardware.links),
                None => latency.value + self.wire(token * (own * self.reached(ranks, layers.per_token))),
            };
            time * layers.layers
        };
        [DISPATCHED, COMBINED].map(|bytes| self.shape.experts.iter().map(|layers| way(layers, bytes)).sum())
    }

    /// Ranks that a token goes to on its way to its `chosen` experts.
    fn reached(&self, ranks: f64, chosen: f64) -> f64 {
        if self.features.gathers { ranks - 1.0 } else { reached(ranks, chosen) }
    }

    /// All-reduces of tensor ranks in all layers: one behind each mixer and each feed, but where experts exchange tokens instead.
    pub(in crate::inference) fn reductions_of_layers(&self) -> f64 {
        let exchanging = self.shape.experts.iter().filter(|_| self.exchanges());
        self.shape.branches - exchanging.map(|layers| layers.layers).sum::<f64>()
    }

    /// The exchange of a prefill step's tokens with experts, so many of them in each attention group, and all-reduces beside it.
    /// Tokens are so many that latencies do not count.
    pub(in crate::inference) fn prompt_exchange(&self, of_group: f64) -> Seconds {
        let own = of_group / self.tensor() * self.busiest();
        let beside = self.all_reduces(of_group, Seconds::ZERO);
        let (ranks, links) = (self.spread.stage(), self.hardware.exchange);
        let beyond = self.beyond(ranks);
        let layer = |layers: &ExpertLayers| {
            let way = |bytes: f64| {
                let (token, chosen) = (Bytes::new(layers.width * bytes), layers.per_token);
                match beyond {
                    Some(across) => across.forwarded(own, chosen, token, ranks, links),
                    None => token * (own * self.reached(ranks, chosen)) / links,
                }
            };
            (way(DISPATCHED) + way(COMBINED)) * layers.layers
        };
        beside + self.shape.experts.iter().map(layer).sum::<Seconds>()
    }

    /// All-reduces of all layers, of so many tokens' activations, and of what norms over all heads sum up.
    ///
    /// Engines' kernels take one phase, in which each rank reads all others' buffers, or two, in which each reduces its part and
    /// the parts are gathered: whichever is sooner (TensorRT-LLM's and vLLM's one-shot and two-shot).
    pub(in crate::inference) fn all_reduces(&self, tokens: f64, latency: Seconds) -> Seconds {
        if self.spread.tensor == 1 {
            return Seconds::ZERO;
        }
        let activations = Bytes::new(tokens * self.shape.hidden * ACTIVATION);
        let time = self.all_reduce(activations, latency) * self.reductions_of_layers();
        if self.shape.normed > 0.0 {
            let sums = Bytes::new(tokens * NORMED);
            return time + self.all_reduce(sums, latency) * self.shape.normed;
        }
        time
    }

    fn all_reduce(&self, buffer: Bytes, latency: Seconds) -> Seconds {
        if let Some(reduction) = &self.hardware.reduction {
            return reduction.time(buffer);
        }
        let others = self.tensor() - 1.0;
        let (one, two) = (self.wire(buffer * others), self.wire(buffer * (2.0 * others / self.tensor())));
        (latency + one).min(latency * 2.0 + two)
    }

    /// Units of all layers, the step of each stage, and the host's part for each sequence: groups that attend for requests of their own have
    /// schedulers of their own (vLLM's engine cores, SGLang's schedulers, TensorRT-LLM's ranks).
    fn step_overhead(&self, sequences: f64) -> Seconds {
        let hardware = self.hardware;
        let [mixers, experts] = self.units();
        hardware.step * f64::from(self.spread.pipeline)
            + mixers
            + experts
            + hardware.overhead.sequence.value * sequences
    }

    /// Operator units of mixers of all layers, and of experts.
    pub(in crate::inference) fn units(&self) -> [Seconds; 2] {
        let (shape, overhead) = (self.shape, &self.hardware.overhead);
        // Activations are quantised to match by kernels of their own.
        let quantised = |class: Class| match class {
            Class::Eight => overhead.quantised.value.get(),
            Class::EightBlocks => overhead.quantised_blocks.value.get(),
            Class::Nvfp4 => overhead.quantised_fp4.value.get(),
            Class::Wide | Class::Mxfp4 | Class::Int4 => 0.0,
        };
        let own = 1.0 + quantised(shape.attention.class);
        let mixers: f64 = shape.mixers.iter().map(|layers| layers.layers * self.mixer_units(layers.unit) * own).sum();
        let each = |layers: &ExpertLayers| overhead.experts.value.get() + quantised(layers.expert.class);
        let experts: f64 = shape.experts.iter().map(|layers| layers.layers * each(layers)).sum();
        [self.hardware.unit * mixers, self.hardware.unit * experts]
    }

    pub(in crate::inference) const fn mixer_units(&self, unit: Unit) -> f64 {
        let overhead = &self.hardware.overhead;
        match unit {
            // A state-space layer launches as many kernels: projections, a convolution, the state's update and a gated norm
            // (vLLM's mamba_mixer2), beside projections, rotation, the cache's write and attention in one or two.
            Unit::Grouped | Unit::StateSpace => 1.0,
            Unit::Latent => overhead.latent.value.get(),
            Unit::Indexed => overhead.indexed.value.get(),
            Unit::Recurrent => overhead.recurrent.value.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Features, ModelShape, Spread, fixture};

    #[test]
    fn the_last_stage_s_head_delays_only_those_that_queue_for_it() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let read = |pipeline: u32, sequences: f64| {
            let spread = Spread { pipeline, ..fixture::tensor(8) };
            Replica::new(&model, &hardware, spread).decode(sequences, 1_000.0, 1.0).weights.value()
        };
        // One token alone passes all layers and the head once, in however many stages.
        for sequences in [1.0, 3.0] {
            assert!((read(4, sequences) / read(1, 1.0) - 1.0).abs() < 1e-12, "{sequences}");
        }
        // Four go by the stage with the head one after another: 128,256 x 8,192 numbers of 16 bits in each turn.
        let head = 128_256.0 * 8_192.0 * 2.0 / 8.0 / (3.35e12 * hardware.weights);
        assert!(((read(4, 4.0) - read(1, 4.0)) / (3.0 * head) - 1.0).abs() < 1e-9, "{} {head}", read(4, 4.0));
    }

    #[test]
    fn a_norm_over_all_heads_is_one_more_message_of_tensor_ranks() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let normed = ModelShape { normed: 80.0, ..model.clone() };
        let network = |model: &ModelShape, tensor: u32| {
            Replica::new(model, &hardware, fixture::tensor(tensor)).decode(16.0, 1_000.0, 1.0).network
        };
        let more = network(&normed, 4) - network(&model, 4);
        // 16 tokens of 8 bytes take no time beside the latency.
        assert!((more / (hardware.messages.all_reduce.value * 80.0) - 1.0).abs() < 0.01, "{more}");
        assert_eq!(network(&normed, 1), Seconds::ZERO);
    }

    #[test]
    fn kernels_that_know_of_chunks_may_read_a_cache_for_each_query_head() {
        let (mut model, plain) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        model.mixers[0].chunk = 8_192.0;
        let by_head = crate::inference::Hardware { chunks_by_head: true, ..plain };
        let time = |hardware, tensor: u32, longest: f64| {
            let features = Features { longest: Some(longest), ..Features::default() };
            let engine = Replica::new(&model, hardware, fixture::tensor(tensor)).with(features);
            engine.cache(10.0, 5_000.0, 1.0).value()
        };
        // 64 query heads share the keys and values of 8, eight to each; of 16 ranks two have copies of one, for half of its heads.
        for (tensor, heads) in [(1, 8.0), (8, 8.0), (16, 4.0)] {
            let times = time(&by_head, tensor, 9_000.0) / time(&plain, tensor, 9_000.0);
            assert!((times / heads - 1.0).abs() < 1e-12, "{tensor}: {times}");
        }
        // Where no sequence is longer than a chunk, engines take others.
        assert!((time(&by_head, 1, 8_192.0) / time(&plain, 1, 8_192.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn heads_that_share_a_latent_are_bound_by_arithmetic() {
        let (model, hardware) = (fixture::shape("deepseek-v3"), fixture::h100());
        let time = |tensor: u32| {
            let spread =
                Spread { tensor, attention_data: 8 / tensor, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
            Replica::new(&model, &hardware, spread).cache(100.0, 2_000.0, 1.0)
        };
        // 58 layers of 576 numbers in 16 bits; 128 heads times 2 x (512 + 64 + 512) operations, at 650 TFLOP/s.
        let read = 58.0 * 576.0 * 2.0 * 200e3 / (3.35e12 * hardware.kernels.latent_cache.value.get());
        let attended = |heads: f64| 58.0 * heads * 2.0 * 1_088.0 * 200e3 / 650e12;
        for (tensor, heads) in [(1, 128.0), (8, 16.0)] {
            let by_hand = attended(heads).max(read);
            assert!((time(tensor).value() / by_hand - 1.0).abs() < 1e-9, "{tensor}: {} {by_hand}", time(tensor));
        }
        // Ranks that hold all heads multiply for longer than they read, those of a tensor group do not.
        assert!(attended(128.0) > 0.7 * read && attended(16.0) < 0.1 * read);
    }
}
