//! Models whose layers are not all of one shape: recurrent layers between attention, gates on attention, experts in every so
//! many layers. Their memory in training is known layer by layer; their step time is not modelled.

use super::bind::Untrainable;
use super::{Detail, Experts, Transformer, census};
use crate::catalog::model::{Attention, Block, Feed, Latent, Mixer, Mlp, Model, Span};

/// More layers than any model has.
const MOST_LAYERS: u32 = 10_000;

/// A model in training, layer by layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// What stands around the layers: hidden width, tables, their norm; and the heads and experts of the first layers that
    /// have any.
    pub frame: Transformer,
    /// The model.
    pub model: Model,
    /// The block of each layer, by its index among the model's.
    pub order: Vec<usize>,
}

impl TryFrom<&Model> for Mixed {
    type Error = Untrainable;

    fn try_from(model: &Model) -> Result<Self, Untrainable> {
        if model.layers() == 0 {
            return Err(Untrainable("a model without layers"));
        }
        if model.layers() > MOST_LAYERS {
            return Err(Untrainable("more than 10,000 layers"));
        }
        let cross = |block: &Block| matches!(block.mixer, Mixer::Attention(Attention { span: Span::Cross, .. }));
        if model.blocks.iter().any(cross) {
            return Err(Untrainable("cross-attention layers, whose keys depend on the images,"));
        }
        if model.blocks.iter().any(|block| matches!(block.mixer, Mixer::Compressed(_))) {
            return Err(Untrainable("attention to a compressed cache"));
        }
        let blocks = model.blocks.iter();
        let (heads, kv_heads, head_dim) = blocks.clone().find_map(|block| heads(&block.mixer)).unwrap_or((1, 1, 1));
        let gated = blocks.clone().any(|block| matches!(block.feed, Feed::Mlp(Mlp { gated: true, .. })));
        let vectors = if model.head_bias { u64::from(model.vocab) } else { 0 };
        let embedding_norms = u64::from(model.embedding_norm);
        let mut frame = Transformer {
            layers: model.layers(),
            hidden: model.hidden,
            heads,
            kv_heads,
            head_dim,
            ffn: 0,
            gated,
            vocab: model.vocab,
            tied_embeddings: model.tied_embeddings,
            norm: model.norm,
            biases: false,
            learned_positions: model.learned_positions.unwrap_or(0),
            experts: blocks.clone().find_map(|block| experts(&block.feed)),
            detail: Detail::NONE,
        };
        frame.detail.model_vectors = (vectors + embedding_norms * frame.norm_parameters()).cast_signed();
        Ok(Self { frame, model: model.clone(), order: model.layer_order() })
    }
}

impl Mixed {
    /// Parameters of the language model.
    pub fn parameters(&self) -> u64 {
        census(&self.model).total()
    }

    /// Whether the order of layers was left open.
    pub fn spread_evenly(&self) -> bool {
        self.model.order.is_empty() && self.model.blocks.iter().filter(|block| !block.leading).count() > 1
    }

    /// The block as the frame of a model of such layers alone: its heads where it has any, its MLP and its experts.
    pub fn alone(&self, block: &Block) -> Transformer {
        let (heads, kv_heads, head_dim) = heads(&block.mixer).unwrap_or((1, 1, 1));
        let ffn = if let Feed::Mlp(mlp) = block.feed { mlp.ffn } else { 0 };
        let experts = experts(&block.feed).or(self.frame.experts);
        Transformer { heads, kv_heads, head_dim, ffn, experts, ..self.frame }
    }
}

fn heads(mixer: &Mixer) -> Option<(u32, u32, u32)> {
    match *mixer {
        Mixer::Attention(Attention { heads, kv_heads, head_dim, .. }) => Some((heads, kv_heads, head_dim)),
        Mixer::Latent(Latent { heads, nope_dim, rope_dim, .. }) => Some((heads, heads, nope_dim + rope_dim)),
        Mixer::None | Mixer::Compressed(_) | Mixer::Mamba(_) | Mixer::Mamba2(_) | Mixer::GatedDelta(_) => None,
    }
}

fn experts(feed: &Feed) -> Option<Experts> {
    let Feed::Moe(moe) = feed else { return None };
    let (count, per_token, ffn) = (moe.experts, moe.per_token, moe.expert.ffn);
    Some(Experts { count, per_token, ffn, shared: 0, leading_dense_layers: 0 })
}

/// The layers of a model in training.
#[derive(Clone, Copy, Debug)]
pub enum Layers<'a> {
    /// All of one attention, with an MLP or with experts.
    Alike(&'a Transformer),
    /// Of several kinds.
    Mixed(&'a Mixed),
}

impl<'a> Layers<'a> {
    /// What stands around the layers.
    pub const fn frame(self) -> &'a Transformer {
        match self {
            Self::Alike(model) => model,
            Self::Mixed(mixed) => &mixed.frame,
        }
    }

    /// Parameters of the language model.
    pub fn parameters(self) -> u64 {
        match self {
            Self::Alike(model) => model.parameters().total(),
            Self::Mixed(mixed) => mixed.parameters(),
        }
    }
}

impl<'a> From<&'a Transformer> for Layers<'a> {
    fn from(model: &'a Transformer) -> Self {
        Self::Alike(model)
    }
}

impl<'a> From<&'a Mixed> for Layers<'a> {
    fn from(mixed: &'a Mixed) -> Self {
        Self::Mixed(mixed)
    }
}
