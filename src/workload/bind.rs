//! From a model's blocks to the one shape that the training model takes.

use super::census::{block_parameters, census};
use super::{Detail, Experts, LatentShape, LayerKind, Transformer};
use crate::catalog::model::{Attention, Block, Feed, Gate, Latent, Mixer, Mlp, Model, MoeBlock, Span};

/// What keeps a model from the training model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the step time of {0} is not modelled")]
pub struct Untrainable(pub &'static str);

/// Attention of any layer of the model, less its window.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Attention(Attention),
    Latent(Latent),
}

impl TryFrom<&Model> for Transformer {
    type Error = Untrainable;

    fn try_from(model: &Model) -> Result<Self, Untrainable> {
        let shapes = model.blocks.iter().map(|block| shape(&block.mixer)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = shapes.first().copied() else { return Err(Untrainable("a model without layers")) };
        if shapes.iter().any(|shape| *shape != first) {
            return Err(Untrainable("layers with different attention heads"));
        }
        let windowed =
            model.blocks.iter().filter_map(|block| window(&block.mixer).map(|window| (block.layers, window)));
        let (windowed_layers, window) =
            windowed.fold((0, 0), |(sum, most), (layers, window)| (sum + layers, most.max(window)));
        let (dense, moe) = feeds(&model.blocks)?;
        let experts = moe.map(experts).transpose()?;
        let expert_or_dense = dense.or(moe.map(|moe| moe.expert)).unwrap_or_default();
        if dense.zip(moe).is_some_and(|(dense, moe)| dense.gated != moe.expert.gated) {
            return Err(Untrainable("experts and MLPs of different kinds"));
        }
        let leading_dense_layers = if moe.is_some() {
            model.blocks.iter().filter(|block| block.moe().is_none()).map(|block| block.layers).sum()
        } else {
            0
        };
        let mut transformer = Self {
            layers: model.layers(),
            hidden: model.hidden,
            ffn: dense.map_or(0, |mlp| mlp.ffn),
            gated: expert_or_dense.gated,
            vocab: model.vocab,
            tied_embeddings: model.tied_embeddings,
            norm: model.norm,
            learned_positions: model.learned_positions.unwrap_or(0),
            experts: experts.map(|experts| Experts { leading_dense_layers, ..experts }),
            ..attention(first, expert_or_dense.biases)
        };
        // A layer with one norm for attention and what follows has them side by side.
        let parallel = model.blocks.iter().all(|block| block.norms == 1);
        transformer.detail = Detail { windowed_layers, window, parallel, ..transformer.detail };
        transformer.count_vectors(model);
        Ok(transformer)
    }
}

impl Transformer {
    /// Counts what the blocks have beyond matrices and two norms, so that both ways of counting agree.
    fn count_vectors(&mut self, model: &Model) {
        let beyond = |exact: u64, counted: u64| exact.cast_signed() - counted.cast_signed();
        let of = |moe: bool| model.blocks.iter().find(|block| block.moe().is_some() == moe);
        if let Some(block) = of(false) {
            let counted = self.layer_parameters(LayerKind::Dense).total();
            self.detail.dense_vectors = beyond(block_parameters(model, block).total(), counted);
        }
        if let Some(block) = of(true) {
            let counted = self.layer_parameters(LayerKind::Moe).total();
            self.detail.moe_vectors = beyond(block_parameters(model, block).total(), counted);
        }
        self.detail.model_vectors = beyond(census(model).total(), self.parameters().total());
    }
}

fn shape(mixer: &Mixer) -> Result<Shape, Untrainable> {
    match *mixer {
        Mixer::Attention(attention) if attention.span == Span::Cross => Err(Untrainable("cross-attention layers")),
        Mixer::Attention(attention) if attention.gate != Gate::None => Err(Untrainable("gated attention")),
        Mixer::Attention(attention) if attention.keys_as_values || attention.value_dim != attention.head_dim => {
            Err(Untrainable("attention whose keys and values differ in width"))
        }
        Mixer::Attention(attention) => Ok(Shape::Attention(Attention { span: Span::Full, window: 0, ..attention })),
        Mixer::Latent(latent) => Ok(Shape::Latent(latent)),
        Mixer::Compressed(_) => Err(Untrainable("attention to a compressed cache")),
        Mixer::None => Err(Untrainable("layers without attention")),
        Mixer::Mamba(_) | Mixer::Mamba2(_) | Mixer::GatedDelta(_) => Err(Untrainable("recurrent layers")),
    }
}

fn window(mixer: &Mixer) -> Option<u32> {
    match mixer {
        Mixer::Attention(attention) if attention.span != Span::Full => Some(attention.window),
        _ => None,
    }
}

/// The MLP and the experts of a model that has one of each at most, and no MLP behind experts.
fn feeds(blocks: &[Block]) -> Result<(Option<Mlp>, Option<MoeBlock>), Untrainable> {
    let (mut dense, mut moe) = (None, None);
    for block in blocks {
        match block.feed {
            Feed::None => return Err(Untrainable("layers without an MLP")),
            Feed::Mlp(mlp) => {
                if moe.is_some() || (blocks.iter().any(|block| block.moe().is_some()) && !block.leading) {
                    return Err(Untrainable("experts in every so many layers"));
                }
                if dense.replace(mlp).is_some_and(|before| before != mlp) {
                    return Err(Untrainable("MLPs of different widths"));
                }
            }
            Feed::Moe(experts) => {
                if moe.replace(experts).is_some_and(|before| before != experts) {
                    return Err(Untrainable("experts that differ between layers"));
                }
            }
        }
    }
    Ok((dense, moe))
}

fn experts(moe: MoeBlock) -> Result<Experts, Untrainable> {
    if moe.latent > 0 || moe.beside.is_some() {
        return Err(Untrainable("experts with parts of their own around them"));
    }
    if !moe.shared_ffn.is_multiple_of(moe.expert.ffn) {
        return Err(Untrainable("shared experts of another width than the routed ones"));
    }
    let shared = moe.shared_ffn / moe.expert.ffn;
    Ok(Experts { count: moe.experts, per_token: moe.per_token, ffn: moe.expert.ffn, shared, leading_dense_layers: 0 })
}

/// A transformer of that attention, all else empty.
fn attention(shape: Shape, mlp_biases: bool) -> Transformer {
    let (heads, kv_heads, head_dim, biases, latent) = match shape {
        Shape::Attention(attention) => {
            let biases = attention.input_biases && attention.output_bias && mlp_biases;
            (attention.heads, attention.kv_heads, attention.head_dim, biases, None)
        }
        Shape::Latent(latent) => {
            let input = latent.query_rank.unwrap_or(0);
            let indexer = latent.indexer.map_or(0, |indexer| {
                let [heads, dim] = [indexer.heads, indexer.head_dim].map(u64::from);
                u64::from(input) * heads * dim
            });
            let latent_shape = LatentShape {
                query_rank: input,
                rank: latent.rank,
                rope_dim: latent.rope_dim,
                value_dim: latent.value_dim,
                indexer,
            };
            (latent.heads, latent.heads, latent.nope_dim + latent.rope_dim, false, Some(latent_shape))
        }
    };
    Transformer {
        layers: 0,
        hidden: 0,
        heads,
        kv_heads,
        head_dim,
        ffn: 0,
        gated: false,
        vocab: 0,
        tied_embeddings: false,
        norm: crate::catalog::model::Norm::default(),
        biases,
        learned_positions: 0,
        experts: None,
        detail: Detail { latent, ..Detail::NONE },
    }
}
