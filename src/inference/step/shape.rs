//! A model's arithmetic and traffic, counted once.

use crate::catalog::model::{Attention, Block, Feed, Format, Mixer, Model, Module, Number, QkNorm, Span};
use crate::catalog::serving_coverage::Architecture;
use crate::inference::Context;
use crate::inference::state::pairs_within;
use crate::memory::serving::CacheFormats;
use crate::units::{Bytes, Flops};
use crate::workload::{SharedBy, block_parameters, census, module_bits};

/// Bytes of an activation on the wire in an all-reduce, or from one stage to the next.
pub(super) const ACTIVATION: f64 = 2.0;
/// Bytes of an activation dispatched to experts, in 8 bits.
pub(super) const DISPATCHED: f64 = 1.0;
/// The same of one that comes back from them and is combined, in 16 (DeepEP).
pub(super) const COMBINED: f64 = 2.0;

/// How matrix units take a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inference) enum Class {
    /// 16 bits and more.
    Wide,
    /// 8 bits, activations quantised to match.
    Eight,
    /// The same with a scale for each block, and activations with scales that are found as they come.
    EightBlocks,
    /// NVFP4, activations quantised to match where the matrix units have it.
    Nvfp4,
    /// MXFP4 with activations of 8 bits, or of 16 where the matrix units do not have it.
    Mxfp4,
    /// Integers of 4 bits, unpacked to 16 before they are multiplied.
    Int4,
}

impl Class {
    fn of(format: Format) -> Self {
        match format.number {
            Number::Fp8 if format.group > 0 => Self::EightBlocks,
            Number::Fp8 | Number::Int8 | Number::Fp6 => Self::Eight,
            Number::Fp4 if format.group == 32 => Self::Mxfp4,
            Number::Fp4 => Self::Nvfp4,
            Number::Int4 | Number::Int3 | Number::Int2 => Self::Int4,
            Number::Bf16 | Number::Fp16 | Number::Fp32 => Self::Wide,
        }
    }
}

/// Projections of one format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Projections {
    /// Their format.
    pub(in crate::inference) class: Class,
    /// Bytes of all of them.
    pub(in crate::inference) bytes: Bytes,
    /// Operations of one token.
    pub(in crate::inference) flops: Flops,
}

impl Projections {
    fn new(model: &Model, module: Module, parameters: u64) -> Self {
        let bits = module_bits(model, module);
        Self {
            class: Class::of(model.formats.of(module).format),
            bytes: Bytes::new(parameters as f64 * bits / 8.0),
            flops: Flops::new(2.0 * parameters as f64),
        }
    }
}

/// Layers with experts of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct ExpertLayers {
    /// How many.
    pub(in crate::inference) layers: f64,
    /// Routed experts of a layer.
    pub(in crate::inference) experts: f64,
    /// Routed experts that a token visits.
    pub(in crate::inference) per_token: f64,
    /// Width of what is sent to an expert.
    pub(in crate::inference) width: f64,
    /// Width within an expert.
    pub(in crate::inference) inner: f64,
    /// One expert of one layer.
    pub(in crate::inference) expert: Projections,
}

impl ExpertLayers {
    /// What kernels move of a token on its way through an expert beside the expert itself: it is read in 16 bits, written in the
    /// order of experts with so many bytes a number, and read again; gates, what they gate, and their product are written and
    /// read, the last as it was; what comes out is written and read, in 16 bits, to be added up. `width` is that of a token.
    pub(in crate::inference) fn moved(&self, width: f64, activation: f64) -> Bytes {
        let outside = 3.0 * ACTIVATION + 2.0 * activation;
        let within = 4.0 * ACTIVATION + 2.0 * activation;
        Bytes::new(width * outside + self.inner * within)
    }

    /// What one token sends to an expert, and what comes back.
    pub(in crate::inference) fn token_both_ways(&self) -> Bytes {
        Bytes::new(self.width * (DISPATCHED + COMBINED))
    }
}

/// Layers whose attention, or whatever stands in its place, is of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct MixerLayers {
    /// How many.
    pub(in crate::inference) layers: f64,
    /// What a unit of it is.
    pub(in crate::inference) unit: Unit,
    /// Bytes that a cached token takes in one layer.
    pub(in crate::inference) token: Bytes,
    /// Tokens of the context that are read: at most so many.
    pub(in crate::inference) window: f64,
    /// Tokens of the chunks within which they attend; endless where they attend beyond.
    pub(in crate::inference) chunk: f64,
    /// Query heads.
    heads: f64,
    /// Bytes of a cached token that are read of the whole context, beside: an indexer's keys.
    pub(in crate::inference) index_token: Bytes,
    /// How tensor-parallel ranks share the cache.
    pub(in crate::inference) shared_by: SharedBy,
    /// Bytes of state that a step reads and writes.
    pub(in crate::inference) state: Bytes,
    /// Operations of one query against one cached token, over all heads.
    pub(in crate::inference) score: Flops,
    /// The same of an indexer.
    pub(in crate::inference) index_score: Flops,
    /// The same in decode where all heads attend to one latent of a token, expanded for none of them: so many share what is read
    /// that arithmetic counts. Zero where heads have keys and values of their own.
    pub(in crate::inference) absorbed: Flops,
}

/// The kind of operator unit that mixes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inference) enum Unit {
    /// Attention with keys and values of heads.
    Grouped,
    /// Latent attention.
    Latent,
    /// Latent attention that an indexer makes sparse.
    Indexed,
    /// A recurrent layer of gated delta rules.
    Recurrent,
    /// A state-space layer (Mamba).
    StateSpace,
}

/// What an engine runs: a model's arithmetic and traffic in the formats that it is served in.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Mixers and feeds of all layers; tensor ranks reduce behind each.
    pub(in crate::inference) branches: f64,
    /// Layers whose queries and keys are normed over all heads, which tensor ranks sum up together.
    pub(in crate::inference) normed: f64,
    pub(in crate::inference) hidden: f64,
    pub(in crate::inference) attention: Projections,
    pub(in crate::inference) mlp: Projections,
    pub(in crate::inference) shared: Projections,
    pub(in crate::inference) router: Projections,
    pub(in crate::inference) head: Projections,
    pub(in crate::inference) experts: Vec<ExpertLayers>,
    pub(in crate::inference) mixers: Vec<MixerLayers>,
}

impl ModelShape {
    /// Counts a model in its formats.
    pub fn new(model: &Model) -> Self {
        let counted = census(model);
        let head = if model.tied_embeddings { counted.embedding } else { counted.head };
        let formats = CacheFormats::of(model);
        let mut experts: Vec<ExpertLayers> = Vec::new();
        let mut mixers: Vec<MixerLayers> = Vec::new();
        let (mut branches, mut normed) = (0.0, 0.0);
        for block in &model.blocks {
            let of_layer = u8::from(block.mixer != Mixer::None) + u8::from(block.feed != Feed::None);
            branches += f64::from(of_layer) * f64::from(block.layers);
            if matches!(block.mixer, Mixer::Attention(attention) if attention.qk_norm == QkNorm::Full) {
                normed += f64::from(block.layers);
            }
            if let Some(kind) = expert_layers(model, block) {
                match experts.iter_mut().find(|known| ExpertLayers { layers: kind.layers, ..**known } == kind) {
                    Some(known) => known.layers += kind.layers,
                    None => experts.push(kind),
                }
            }
            if let Some(kind) = mixer_layers(block, &formats) {
                match mixers.iter_mut().find(|known| MixerLayers { layers: kind.layers, ..**known } == kind) {
                    Some(known) => known.layers += kind.layers,
                    None => mixers.push(kind),
                }
            }
        }
        Self {
            branches,
            normed,
            hidden: f64::from(model.hidden),
            attention: Projections::new(model, Module::Attention, counted.attention),
            mlp: Projections::new(model, Module::Mlp, counted.mlp),
            shared: Projections::new(model, Module::SharedExperts, counted.shared_experts),
            router: Projections::new(model, Module::Router, counted.router),
            head: Projections::new(model, Module::Head, head),
            experts,
            mixers,
        }
    }

    /// The same behind a further projection of so many parameters, in the format of a model's attention.
    #[must_use]
    pub fn behind(mut self, model: &Model, parameters: u64) -> Self {
        let projection = Projections::new(model, Module::Attention, parameters);
        self.attention.bytes += projection.bytes;
        self.attention.flops += projection.flops;
        self
    }

    /// Its kind, by what an engine runs differently.
    pub fn architecture(&self) -> Architecture {
        let any = |units: &[Unit]| self.mixers.iter().any(|layers| units.contains(&layers.unit));
        if any(&[Unit::Recurrent, Unit::StateSpace]) {
            Architecture::Hybrid
        } else if any(&[Unit::Latent, Unit::Indexed]) {
            Architecture::Latent
        } else if self.has_experts() {
            Architecture::Experts
        } else {
            Architecture::Dense
        }
    }

    /// Whether it has experts.
    pub fn has_experts(&self) -> bool {
        !self.experts.is_empty()
    }

    /// Projections that every token passes, in order.
    pub(in crate::inference) fn common(&self) -> [Projections; 5] {
        [self.attention, self.mlp, self.shared, self.router, self.head]
    }
}

fn expert_layers(model: &Model, block: &Block) -> Option<ExpertLayers> {
    let moe = block.moe()?;
    let count = block_parameters(model, block);
    let width = if moe.latent == 0 { model.hidden } else { moe.latent };
    // What is around a latent bottleneck is visited by all tokens, and small.
    let each = count.visited / u64::from(moe.per_token.max(1));
    Some(ExpertLayers {
        layers: f64::from(block.layers),
        experts: f64::from(moe.experts),
        per_token: f64::from(moe.per_token),
        width: f64::from(width),
        inner: f64::from(moe.expert.ffn),
        expert: Projections::new(model, Module::Experts, each),
    })
}

fn mixer_layers(block: &Block, formats: &CacheFormats) -> Option<MixerLayers> {
    let stored = |numbers: f64| formats.keys_values.bytes(numbers);
    let nothing = MixerLayers {
        layers: f64::from(block.layers),
        unit: Unit::Recurrent,
        token: Bytes::ZERO,
        window: f64::INFINITY,
        chunk: f64::INFINITY,
        heads: 0.0,
        index_token: Bytes::ZERO,
        shared_by: SharedBy::Nobody,
        state: Bytes::ZERO,
        score: Flops::ZERO,
        index_score: Flops::ZERO,
        absorbed: Flops::ZERO,
    };
    // A state is read and written; recurrences are computed in single precision where the checkpoint says nothing.
    let state = |numbers: f64| Bytes::new(2.0 * 4.0 * numbers);
    Some(match block.mixer {
        Mixer::None => return None,
        Mixer::Attention(attention) => grouped(&attention, stored, nothing),
        Mixer::Latent(latent) => {
            let [heads, rank, nope, rope, value] =
                [latent.heads, latent.rank, latent.nope_dim, latent.rope_dim, latent.value_dim].map(f64::from);
            let selected = latent.indexer.and_then(|indexer| indexer.selected);
            let index = latent.indexer.map_or([0.0; 2], |indexer| [indexer.heads, indexer.head_dim].map(f64::from));
            MixerLayers {
                unit: if latent.indexer.is_some() { Unit::Indexed } else { Unit::Latent },
                token: stored(rank + rope),
                window: selected.map_or(f64::INFINITY, f64::from),
                index_token: stored(index[1]),
                score: Flops::new(2.0 * heads * (nope + rope + value)),
                index_score: Flops::new(2.0 * index[0] * index[1]),
                absorbed: Flops::new(2.0 * heads * (2.0 * rank + rope)),
                ..nothing
            }
        }
        Mixer::Compressed(compressed) => {
            // A token's part of the entry that stands for it and others; the window is read beside.
            let [heads, dim, ratio] = [compressed.heads, compressed.head_dim, compressed.ratio.max(1)].map(f64::from);
            let indexer = compressed.indexer;
            let index = indexer.map_or([0.0; 2], |indexer| [indexer.heads, indexer.head_dim].map(f64::from));
            let selected = indexer.and_then(|indexer| indexer.selected);
            MixerLayers {
                unit: if indexer.is_some() { Unit::Indexed } else { Unit::Latent },
                token: stored(dim / ratio),
                window: selected.map_or(f64::INFINITY, |entries| f64::from(entries) * ratio),
                index_token: stored(index[1] / ratio),
                state: stored(f64::from(compressed.window) * dim),
                score: Flops::new(4.0 * heads * dim / ratio),
                index_score: Flops::new(2.0 * index[0] * index[1] / ratio),
                absorbed: Flops::new(4.0 * heads * dim / ratio),
                ..nothing
            }
        }
        Mixer::Mamba2(mamba) => {
            let [heads, dim, width] = [mamba.heads, mamba.head_dim, mamba.state].map(f64::from);
            MixerLayers {
                unit: Unit::StateSpace,
                state: state(heads * dim * width),
                shared_by: SharedBy::Heads(mamba.heads),
                ..nothing
            }
        }
        Mixer::Mamba(mamba) => {
            let [inner, width] = [mamba.inner, mamba.state].map(f64::from);
            MixerLayers {
                unit: Unit::StateSpace,
                state: state(inner * width),
                shared_by: SharedBy::Heads(mamba.inner),
                ..nothing
            }
        }
        Mixer::GatedDelta(delta) => {
            let [heads, value, key] = [delta.value_heads, delta.value_dim, delta.key_dim].map(f64::from);
            MixerLayers { state: state(heads * value * key), shared_by: SharedBy::Heads(delta.value_heads), ..nothing }
        }
    })
}

/// Attention with keys and values of heads, of what other mixers have nothing of; `stored` are bytes of so many numbers of the cache.
fn grouped(attention: &Attention, stored: impl Fn(f64) -> Bytes, nothing: MixerLayers) -> MixerLayers {
    let [heads, kv_heads, key, value] =
        [attention.heads, attention.kv_heads, attention.head_dim, attention.value_dim].map(f64::from);
    MixerLayers {
        unit: Unit::Grouped,
        token: if attention.span == Span::Cross { Bytes::ZERO } else { stored(kv_heads * (key + value)) },
        window: match attention.span {
            Span::Full | Span::Chunk => f64::INFINITY,
            Span::Window => f64::from(attention.window),
            Span::Cross => 0.0,
        },
        chunk: if attention.span == Span::Chunk { f64::from(attention.window) } else { f64::INFINITY },
        heads,
        shared_by: SharedBy::Heads(attention.kv_heads),
        score: Flops::new(2.0 * heads * (key + value)),
        ..nothing
    }
}

impl MixerLayers {
    /// Bytes that one sequence of that context has read of its cache in a step, on one of so many tensor ranks; `by_head` where kernels
    /// that know of chunks read a token's keys and values for each query head.
    pub(in crate::inference) fn read(&self, context: Context, tensor: u32, by_head: bool) -> Bytes {
        let part = self.shared_by.part(tensor);
        let copies = match self.shared_by {
            SharedBy::Heads(kept) if by_head => self.heads / f64::from(kept) / f64::from(tensor),
            SharedBy::Heads(_) | SharedBy::Nobody => part,
        };
        let beside = self.index_token * context.mean + self.state;
        (self.token * (self.seen(context) * copies) + beside * part) * self.layers
    }

    /// Tokens that one in decode attends to.
    fn seen(&self, context: Context) -> f64 {
        context.within(self.chunk).min(self.window)
    }

    /// Operations of one token of a sequence of that context against latents in its cache, over all tensor ranks.
    pub(in crate::inference) fn attend(&self, context: Context) -> Flops {
        self.absorbed * (self.seen(context) * self.layers)
    }

    /// Operations of causal attention over a prompt's `new` tokens behind `before` that are cached.
    pub(in crate::inference) fn prefill(&self, before: f64, new: f64) -> Flops {
        let all = before + new;
        // Pairs of a query and a key not after it, within the window.
        let pairs = |window: f64| {
            if all <= window {
                new * (before + new / 2.0)
            } else if before >= window {
                new * window
            } else {
                let filling = window - before;
                filling * (before + filling / 2.0) + (new - filling) * window
            }
        };
        let attended = if self.chunk.is_finite() {
            pairs_within(all, self.chunk) - pairs_within(before, self.chunk)
        } else {
            pairs(self.window)
        };
        (self.score * attended + self.index_score * pairs(f64::INFINITY)) * self.layers
    }
}
