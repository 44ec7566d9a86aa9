//! Activations that a layer keeps from the forward to the backward pass.

use super::Software;
use crate::catalog::memory_allowance::SelectiveRecompute;
use crate::parallelism::{Layout, Module, Modules, Recompute};
use crate::units::Bytes;
use crate::workload::{LayerKind, TrainingJob, Transformer};

/// Bytes of one layer for one microbatch on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerActivations {
    /// Kept until the backward pass.
    pub kept: Bytes,
    /// Computed again there, and held while the layer is worked on.
    pub recomputed: Bytes,
}

/// Bytes a token, by what splits them; numbers of 2 bytes unless they say otherwise.
#[derive(Default)]
pub(super) struct TokenBytes {
    /// The layer's input.
    pub(super) input: f64,
    /// All that the backward pass of attention reads but scores.
    pub(super) attention: f64,
    /// Scores, their softmax and its dropout.
    pub(super) scores: f64,
    /// All that the backward pass of the MLP or the experts reads.
    pub(super) mlp: f64,
    /// What the policy of alternate matrix multiplications keeps.
    pub(super) alternate: f64,
    /// Parts of the above that single modules compute again.
    pub(super) parts: Parts,
}

/// What each module would not keep.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) norm_outputs: f64,
    pub(super) mlp: f64,
    pub(super) routed: f64,
    pub(super) activation: f64,
    pub(super) shared: f64,
    pub(super) latent_up: f64,
}

impl Parts {
    /// What a set of modules drops, each part once.
    fn dropped(&self, modules: Modules, scores: f64) -> f64 {
        let of = |module, bytes: f64| if modules.has(module) { bytes } else { 0.0 };
        // Inside the layer of experts are its activation functions and its shared experts.
        let within = of(Module::MoeActivation, self.activation) + of(Module::SharedExperts, self.shared);
        let experts = if modules.has(Module::Moe) { self.routed + self.shared } else { within };
        let rest = of(Module::LayerNorm, self.norm_outputs) + of(Module::Mlp, self.mlp);
        of(Module::CoreAttention, scores) + of(Module::LatentUp, self.latent_up) + experts + rest
    }
}

impl TokenBytes {
    /// A layer of so many tokens under a policy of recomputation.
    pub(super) fn layer(&self, layout: &Layout, job: &TrainingJob, software: &Software) -> LayerActivations {
        let whole = self.attention + self.scores + self.mlp;
        let kept = match (layout.recompute, software.selective_recompute) {
            (Recompute::None, _) => whole,
            (Recompute::Selective, SelectiveRecompute::AttentionCore) => whole - self.scores,
            (Recompute::Selective, SelectiveRecompute::AlternateMatmuls) => self.alternate.min(whole),
            (Recompute::Modules(modules), _) => whole - self.parts.dropped(modules, self.scores),
            (Recompute::Full | Recompute::Layers(_), _) => self.input,
        };
        let tokens = layout.tokens_per_microbatch(job);
        LayerActivations { kept: Bytes::new(kept * tokens), recomputed: Bytes::new((whole - kept) * tokens) }
    }
}

pub(super) const MASK: f64 = 1.0;
pub(super) const SINGLE: f64 = 4.0;

/// Bytes of a number, and what a rank has of the residual stream.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes of an activation.
    pub(super) number: f64,
    /// Bytes of an input of a matrix multiplication, where the framework keeps what it was cast to.
    pub(super) input: f64,
    /// Ranks that split matrices.
    pub(super) tensor: f64,
    /// Ranks that split what lies between them.
    pub(super) shards: f64,
    /// Channels of the residual stream.
    pub(super) stream: f64,
    /// Whether attention's projection behind its kernel has a cast copy of its own.
    copies: bool,
    /// Whether scores stay out of memory.
    pub(super) fused: bool,
    /// Whether a rank dispatches a part of a token's copies.
    spread: bool,
}

/// Channels of attention on a rank.
#[derive(Clone, Copy)]
pub(super) struct Channels {
    pub(super) heads: f64,
    pub(super) query: f64,
    pub(super) key: f64,
    pub(super) value: f64,
    pub(super) output: f64,
    /// Latent vectors and their norms' outputs.
    pub(super) latent: f64,
}

/// Routed experts: how many, how many a token visits with the job's imbalance, the width that they work on and the one
/// inside, and their up-projections.
#[derive(Clone, Copy)]
pub(super) struct Routed {
    pub(super) count: f64,
    pub(super) visits: f64,
    pub(super) width: f64,
    pub(super) ffn: f64,
    pub(super) up: f64,
}

impl Sizes {
    pub(super) fn new(layout: &Layout, hidden: u32, job: &TrainingJob, software: &Software) -> Self {
        // The size of a number leaves its type here: all that follows are bytes a token.
        let number = job.precision.size().value();
        let input = if software.cast_inputs { job.precision.gathered_size().value() } else { number };
        let shards = f64::from(layout.sequence_shards());
        Self {
            number,
            input,
            tensor: f64::from(layout.tensor),
            shards,
            stream: f64::from(hidden) / shards,
            copies: software.cast_inputs && input < number,
            fused: software.fused_attention,
            spread: layout.expert > 1,
        }
    }

    /// The input of a norm, and its output, which the projections read.
    pub(super) fn normed(&self) -> f64 {
        (self.number + self.input) * self.stream
    }

    /// What the backward pass of attention reads behind its norm, and its scores.
    pub(super) fn attention(&self, channels: &Channels, keys: f64) -> (f64, f64) {
        let Channels { heads, query, key, value, output, latent } = *channels;
        // Attention's kernel keeps its output whole; cast, the projection behind it has a copy of its own.
        let copy = if self.copies { self.input * output } else { 0.0 };
        let read = self.number * (query + output + key + value + latent) + copy;
        if self.fused {
            // Of the softmax, its log-sum in single precision.
            (read + SINGLE * heads, 0.0)
        } else {
            // Softmax, dropout's mask and what it leaves; and the mask after the output projection.
            (read + MASK * self.stream, (2.0 * self.number + MASK) * heads * keys)
        }
    }

    /// The mask of dropout behind an MLP or experts, where there is dropout.
    pub(super) fn mask(&self) -> f64 {
        if self.fused { 0.0 } else { MASK * self.stream }
    }

    /// Each up-projection's output and what the down-projection reads, of that inner width on a rank.
    pub(super) fn inside(&self, width: f64, up: f64) -> f64 {
        width * (self.number * up + self.input)
    }

    /// Bytes of a token's visits to routed experts: all that the backward pass reads, and the first up-projections alone.
    ///
    /// Tokens are taken as spread as evenly as the job says. Kept are the router's scores in single precision, the dispatched copies of the
    /// token, the up-projections and their product, and the experts' outputs, which the gates weight.
    pub(super) fn routed(&self, routed: &Routed) -> (f64, f64) {
        let Routed { count, visits, width, ffn, up } = *routed;
        let router = 2.0 * SINGLE * count / self.shards;
        let inside = self.number * ffn / self.tensor * visits;
        // Spread over ranks, the copies of a token are as many in all as its tensor-parallel group would make once.
        let copies = if self.spread { 1.0 / self.tensor } else { 1.0 };
        let outside = (self.number + self.input) * width * visits * copies;
        (router + outside + inside * up + inside / self.number * self.input, inside)
    }
}

impl Layout {
    /// Activations of one layer of that kind.
    ///
    /// Without recomputation and with scores in memory, a GPT's layer keeps `sbh (10 + 24/t + 5as/(ht))` bytes under
    /// tensor parallelism and `sbh/t (34 + 5as/h)` with sequence parallelism too (Korthikanti et al., equations 2 and 4).
    pub fn layer_activations(
        &self,
        model: &Transformer,
        kind: LayerKind,
        job: &TrainingJob,
        software: &Software,
    ) -> LayerActivations {
        self.token_bytes(model, kind, job, software).layer(self, job, software)
    }

    fn token_bytes(&self, model: &Transformer, kind: LayerKind, job: &TrainingJob, software: &Software) -> TokenBytes {
        let sizes = Sizes::new(self, model.hidden, job, software);
        let Sizes { number, input, tensor, shards, stream, .. } = sizes;
        let kv_heads = f64::from(self.kv_heads_per_rank(model.kv_heads));
        let channels = Channels {
            heads: f64::from(model.heads) / tensor,
            query: model.query_width() as f64 / tensor,
            key: kv_heads * f64::from(model.head_dim),
            value: kv_heads * f64::from(model.value_dim()),
            output: model.output_width() as f64 / tensor,
            latent: model
                .detail
                .latent
                .map_or(0.0, |latent| latent_width(latent.query_rank, latent.rank, latent.rope_dim) / shards),
        };
        let (read, scores) = sizes.attention(&channels, f64::from(job.sequence_length));
        let up_projections = f64::from(model.up_projections());
        let (routed, up) = match (kind, model.experts) {
            (LayerKind::Moe, Some(experts)) => sizes.routed(&Routed {
                count: f64::from(experts.count),
                visits: f64::from(experts.per_token) * job.expert_imbalance.get(),
                width: f64::from(model.hidden),
                ffn: f64::from(experts.ffn),
                up: up_projections,
            }),
            _ => (0.0, 0.0),
        };
        let is_moe = kind == LayerKind::Moe;
        let shared = model.experts.filter(|_| is_moe).map_or(model.ffn, |experts| experts.shared * experts.ffn);
        let width = f64::from(shared) / tensor;
        let inside = sizes.inside(width, up_projections);
        // Of query, key, value, output, gate, up and down projections: the first, third, fifth and seventh. Without a
        // gate, down is the sixth and is not kept.
        let down = if model.gated { stream } else { 0.0 };
        let Channels { heads, query, key, value, output, .. } = channels;
        let alternate = number * (stream + query + output + value + width + down) + up + SINGLE * heads;
        let parts = Parts {
            norm_outputs: 2.0 * input * stream,
            mlp: if is_moe { 0.0 } else { inside },
            routed,
            activation: up / number * input,
            shared: if is_moe { inside } else { 0.0 },
            latent_up: if model.detail.latent.is_some() { number * (query + key + value) } else { 0.0 },
        };
        TokenBytes {
            input: number * stream,
            attention: sizes.normed() + read,
            scores,
            mlp: routed + sizes.normed() + sizes.mask() + inside,
            alternate,
            parts,
        }
    }
}

/// Channels of latent vectors, and of their norms' outputs.
pub(super) fn latent_width(query_rank: u32, rank: u32, rope_dim: u32) -> f64 {
    2.0 * (f64::from(query_rank) + f64::from(rank)) + f64::from(rope_dim)
}

#[cfg(test)]
mod tests {
    use super::super::footprint::tests::{FUSED, UNFUSED};
    use super::*;
    use crate::parallelism::SINGLE as ONE;
    use crate::units::Quantity;
    use crate::workload::shapes::{gpt, job, llama_405b, mixtral_8x7b};

    const GPT_530B: Transformer = gpt(105, 20_480, 128);

    fn kept(layout: Layout, model: &Transformer, sequence: u32, software: &Software) -> Bytes {
        layout.layer_activations(model, LayerKind::Dense, &job(sequence, 64), software).kept
    }

    #[test]
    fn a_gpt_layer_follows_korthikanti() {
        let (s, b, h, a, t) = (2_048.0, 1.0, 20_480.0, 128.0, 8.0);
        let scores = 5.0 * a * s / h;
        // Equation 1: s b h (34 + 5as/h) = 2048 * 20480 * 98 = 3.8281 GiB.
        let alone = kept(ONE, &GPT_530B, 2_048, &UNFUSED);
        assert_eq!(alone, Bytes::new(s * b * h * (34.0 + scores)));
        assert!((alone / Bytes::parse("1 GiB").unwrap() - 3.8281).abs() < 1e-4);
        // Equation 2.
        let tensor = Layout { tensor: 8, ..ONE };
        assert_eq!(kept(tensor, &GPT_530B, 2_048, &UNFUSED), Bytes::new(s * b * h * (10.0 + 24.0 / t + scores / t)));
        // Equation 4.
        let sequence = Layout { sequence_parallel: true, ..tensor };
        assert_eq!(kept(sequence, &GPT_530B, 2_048, &UNFUSED), Bytes::new(s * b * h / t * (34.0 + scores)));
        // Equation 6: 34 s b h / t.
        let selective = Layout { recompute: Recompute::Selective, ..sequence };
        assert_eq!(kept(selective, &GPT_530B, 2_048, &UNFUSED), Bytes::new(34.0 * s * b * h / t));
        // Table 2: full recomputation keeps 2 s b h.
        let full = Layout { recompute: Recompute::Full, ..tensor };
        assert_eq!(kept(full, &GPT_530B, 2_048, &UNFUSED), Bytes::new(2.0 * s * b * h));
    }

    #[test]
    fn inputs_may_be_kept_as_they_were_cast() {
        // A GPT's layer in 16 bits keeps 2 bytes of eleven hidden widths and of two times four: norms in and out, query, key,
        // value and output, and the MLP's. In FP8 the norms' outputs and what the last matrix reads are a byte less, and
        // the output projection has a byte of its own.
        let software = Software { cast_inputs: true, ..FUSED };
        let job = TrainingJob { precision: crate::workload::Precision::Fp8, ..job(2_048, 64) };
        let of = |software: &Software| ONE.layer_activations(&GPT_530B, LayerKind::Dense, &job, software).kept;
        let width = 2_048.0 * 20_480.0;
        assert_eq!(of(&FUSED) - of(&software), Bytes::new(width * (2.0 + 4.0 - 1.0)));
        let bf16 = TrainingJob { precision: crate::workload::Precision::Bf16, ..job };
        assert_eq!(ONE.layer_activations(&GPT_530B, LayerKind::Dense, &bf16, &software).kept, of(&FUSED));
    }

    #[test]
    fn what_is_not_kept_is_recomputed() {
        let model = llama_405b();
        for recompute in Recompute::WORDS {
            let layout = Layout { tensor: 8, sequence_parallel: true, recompute: *recompute, ..ONE };
            let layer = layout.layer_activations(&model, LayerKind::Dense, &job(8_192, 64), &FUSED);
            let whole = kept(Layout { recompute: Recompute::None, ..layout }, &model, 8_192, &FUSED);
            assert_eq!(layer.kept + layer.recomputed, whole);
        }
    }

    #[test]
    fn a_layer_of_llama_3_405b_by_hand() {
        // Tensor and sequence parallelism of 8. Per token: norms' inputs and outputs 2*4*16384/8, query and output
        // 2*2*16384/8, one key and one value head 2*2*128, log-sums 4*128/8, MLP 2*3*53248/8: 65,088 bytes.
        let layout = Layout { tensor: 8, sequence_parallel: true, ..ONE };
        assert_eq!(kept(layout, &llama_405b(), 8_192, &FUSED), Bytes::new(8_192.0 * 65_088.0));
        // A sequence split four ways keeps a quarter.
        assert_eq!(kept(Layout { context: 4, ..layout }, &llama_405b(), 8_192, &FUSED), Bytes::new(2_048.0 * 65_088.0));
    }

    #[test]
    fn alternate_matmuls_keep_half_of_the_projections() {
        // Per token of Llama 3.1 8B: input, query, attention's output and the down-projection 4*4096, value 1024, gate
        // 14336 of 2 bytes each, and log-sums 4*32.
        let model = crate::workload::shapes::llama(32, 4_096, 32, 14_336);
        let layout = Layout { recompute: Recompute::Selective, ..ONE };
        let software = Software { selective_recompute: SelectiveRecompute::AlternateMatmuls, ..FUSED };
        assert_eq!(
            kept(layout, &model, 8_192, &software),
            Bytes::new(8_192.0 * (2.0 * (4.0 * 4_096.0 + 1_024.0 + 14_336.0) + 128.0))
        );
    }

    #[test]
    fn a_layer_of_mixtral_by_hand() {
        // Per token: norms 2*4*4096, query and output 2*2*4096, keys and values 2*2*1024, log-sums 4*32, router 2*4*8, two
        // visits of 2*2*4096 outside and 2*3*14336 inside.
        let layout = Layout { data: 8, expert: 8, ..ONE };
        let layer =
            |layout: Layout| layout.layer_activations(&mixtral_8x7b(), LayerKind::Moe, &job(4_096, 256), &FUSED).kept;
        let by_hand =
            8.0 * 4_096.0 + 4.0 * 4_096.0 + 4.0 * 1_024.0 + 128.0 + 64.0 + 2.0 * (4.0 * 4_096.0 + 6.0 * 14_336.0);
        assert_eq!(layer(layout), Bytes::new(4_096.0 * by_hand));
        // Where the experts lie does not change how much passes through a rank, if tokens are spread evenly.
        assert_eq!(layer(Layout { expert: 1, ..layout }), layer(layout));
    }
}
