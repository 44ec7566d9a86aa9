//! Language models: the dimensions from which parameters, arithmetic and memory follow.
//!
//! A model is a list of blocks, each a kind of layer and how many there are of it. A file whose layers are all attention
//! with an MLP or experts may give their dimensions at its top level instead.

mod block;
mod check;
mod format;
mod write;

use crate::diagnostics::Code;
use crate::document::{FromNode, Reader, choices};

pub use block::{
    Attention, Block, Compressed, Feed, Gate, GatedDelta, Indexer, Latent, Mamba, Mamba2, Mixer, Mlp, MoeBlock, QkNorm, Span,
};
pub use check::{Field, Problem};
pub use format::{Format, Formats, Module, ModuleFormat, Number};

choices! {
    /// The normalisation before attention, before the MLP and at the end.
    pub enum Norm {
        /// Mean and variance; a weight and a bias per channel.
        LayerNorm = "layernorm",
        /// Root mean square; a weight per channel.
        RmsNorm = "rmsnorm",
        /// Mean and variance; a weight per channel and no bias.
        LayerNormWeight = "layernorm-without-bias",
        /// Mean and variance, without parameters.
        LayerNormBare = "layernorm-without-parameters",
    }
}

/// A tower of another modality, or whatever else a checkpoint holds beside the language model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tower {
    /// What it is.
    pub name: String,
    /// Its parameters, with the projector into the language model.
    pub parameters: u64,
}

/// A decoder-only language model as its publisher describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Width of the residual stream.
    pub hidden: u32,
    /// Entries of the vocabulary, as embedded.
    pub vocab: u32,
    /// Whether the output projection is the embedding again.
    pub tied_embeddings: bool,
    /// Whether the output projection has a bias.
    pub head_bias: bool,
    /// The normalisation.
    pub norm: Norm,
    /// Whether the embedding is normed.
    pub embedding_norm: bool,
    /// Learned position embeddings; absent with rotary or no positions.
    pub learned_positions: Option<u32>,
    /// Tokens of prompt and answer that it takes at most, as its publisher states, extended positions among them; where it has
    /// learned positions, and none is stated, as many as those.
    pub max_context: Option<u32>,
    /// Layers beyond those below that predict further tokens (multi-token prediction), by which its own tokens can be drafted.
    /// They are in no count of parameters.
    pub prediction_layers: u32,
    /// The layers, by kind.
    pub blocks: Vec<Block>,
    /// The block of each layer, from the first layer on, by its place among them: 1 is the first block. Empty where the source
    /// does not say.
    pub order: Vec<u32>,
    /// Whatever else the checkpoint holds.
    pub towers: Vec<Tower>,
    /// Number formats of weights, cache and activations.
    pub formats: Formats,
    /// The parameter count that its publisher states, to as many digits as stated.
    pub published_parameters: Option<u64>,
    /// The parameters that one token uses, as its publisher states.
    pub published_active_parameters: Option<u64>,
}

impl Model {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let blocks = reader.tables("block", Block::read);
        let blocks = if blocks.is_empty() { flat(reader) } else { blocks };
        let model = Self {
            hidden: reader.get("hidden"),
            vocab: reader.get("vocab"),
            tied_embeddings: reader.get("tied_embeddings"),
            head_bias: reader.or("head_bias", false),
            norm: reader.get("norm"),
            embedding_norm: reader.or("embedding_norm", false),
            learned_positions: reader.optional("learned_positions"),
            max_context: reader.optional("max_context"),
            prediction_layers: reader.optional("prediction_layers").unwrap_or(0),
            blocks,
            order: reader.optional("order").unwrap_or_default(),
            towers: reader
                .tables("tower", |reader| Tower { name: reader.get("name"), parameters: reader.get("parameters") }),
            formats: reader.optional_table("formats", Formats::read).unwrap_or_default(),
            published_parameters: reader.optional("published_parameters"),
            published_active_parameters: reader.optional("published_active_parameters"),
        };
        if reader.sink().len() == before {
            for problem in model.problems() {
                reader.report(problem.field.toml_key(), problem.code, problem.message, problem.hint);
            }
        }
        model
    }

    /// Tokens of prompt and answer that it takes at most, where that is known.
    pub fn context(&self) -> Option<u32> {
        self.max_context.or(self.learned_positions)
    }

    /// Layers of all blocks.
    pub fn layers(&self) -> u32 {
        self.blocks.iter().fold(0, |sum, block| sum.saturating_add(block.layers))
    }

    /// The block of each layer, by its index among them, from the first layer on.
    ///
    /// Where `order` does not say, blocks that lead come first and the layers of the others are spread evenly: of a block
    /// with `n` of the `m` layers that follow, the `k`-th is nearest to place `(k + 1/2) m/n`.
    pub fn layer_order(&self) -> Vec<usize> {
        if !self.order.is_empty() {
            return self.order.iter().map(|place| (*place as usize).saturating_sub(1)).collect();
        }
        let mut order = Vec::new();
        let mut places: Vec<(f64, usize)> = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            if block.leading {
                order.extend(std::iter::repeat_n(index, block.layers as usize));
            } else {
                let place = |layer: u32| (f64::from(layer) + 0.5) / f64::from(block.layers);
                places.extend((0..block.layers).map(|layer| (place(layer), index)));
            }
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        order.extend(places.into_iter().map(|(_, index)| index));
        order
    }
}

/// A key that must be there where there are no blocks.
fn need<T: FromNode>(reader: &mut Reader<'_>, key: &'static str) -> T {
    reader.optional(key).unwrap_or_else(|| {
        let message = format!("`{key}` is missing");
        reader.report(key, Code::MissingKey, message, "give it here, or describe the layers in [[block]] tables");
        T::default()
    })
}

/// The blocks of a model whose layers are all attention with an MLP or experts.
fn flat(reader: &mut Reader<'_>) -> Vec<Block> {
    let before = reader.sink().len();
    let layers: u32 = need(reader, "layers");
    let (biases, gated, head_dim) = (need(reader, "biases"), need(reader, "gated"), need(reader, "head_dim"));
    let mixer = Mixer::Attention(Attention {
        heads: need(reader, "heads"),
        kv_heads: need(reader, "kv_heads"),
        head_dim,
        value_dim: head_dim,
        input_biases: biases,
        output_bias: biases,
        ..Attention::default()
    });
    let ffn: Option<u32> = reader.optional("ffn");
    let moe = reader.optional_table("moe", FlatMoe::read);
    let block = |layers, feed| Block { layers, norms: 2, mixer, feed, ..Block::default() };
    let mlp = |ffn| Mlp { ffn, gated, biases };
    let dense_layers = moe.map_or(layers, |moe| moe.leading_dense_layers);
    if dense_layers > 0 && ffn.is_none() && reader.sink().len() == before {
        let message = "`ffn` is missing, and there are layers with an ordinary MLP";
        reader.report("ffn", Code::MissingKey, message, "give the width inside that MLP");
    }
    let dense = block(dense_layers, Feed::Mlp(mlp(ffn.unwrap_or(1))));
    let Some(moe) = moe else { return vec![dense] };
    if dense_layers >= layers {
        let message = format!("all {layers} layers are dense with {dense_layers} leading ones");
        let hint = "`leading_dense_layers` is below `layers`; leave `moe` out for a dense model";
        reader.report("moe", Code::Inconsistent, message, hint);
    }
    let experts = block(
        layers.saturating_sub(dense_layers),
        Feed::Moe(MoeBlock {
            experts: moe.experts,
            per_token: moe.experts_per_token,
            expert: mlp(moe.expert_ffn),
            shared_ffn: moe.shared_experts.saturating_mul(moe.expert_ffn),
            ..MoeBlock::default()
        }),
    );
    let leading = Block { leading: true, ..dense };
    if dense_layers > 0 { vec![leading, experts] } else { vec![experts] }
}

/// The experts of a file without blocks.
#[derive(Clone, Copy, Debug, Default)]
struct FlatMoe {
    experts: u32,
    experts_per_token: u32,
    expert_ffn: u32,
    shared_experts: u32,
    leading_dense_layers: u32,
}

impl FlatMoe {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            experts: reader.get("experts"),
            experts_per_token: reader.get("experts_per_token"),
            expert_ffn: reader.get("expert_ffn"),
            shared_experts: reader.optional("shared_experts").unwrap_or(0),
            leading_dense_layers: reader.optional("leading_dense_layers").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Sink, Sources};

    const GOOD: &str = "layers = 2\nhidden = 64\nheads = 8\nkv_heads = 2\nhead_dim = 8\nffn = 128\ngated = true\nvocab = 100\n\
                        tied_embeddings = false\nnorm = \"rmsnorm\"\nbiases = false\n";

    fn mistakes(text: &str) -> Vec<String> {
        let mut sources = Sources::default();
        let file = sources.add("model.toml", text);
        let sink = Sink::default();
        let root = crate::load::parse(&sources, file, &sink);
        {
            let mut reader = Reader::new(&root, "", &sink).unwrap();
            Model::read(&mut reader);
        }
        sink.into_diagnostics().into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    #[test]
    fn a_consistent_shape_is_taken() {
        assert_eq!(mistakes(GOOD), Vec::<String>::new());
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        let uneven = mistakes(&GOOD.replace("kv_heads = 2", "kv_heads = 3"));
        assert_eq!(uneven, ["8 query heads cannot share 3 key and value heads evenly"]);
        let greedy = mistakes(&format!("{GOOD}moe = {{ experts = 4, experts_per_token = 8, expert_ffn = 32 }}\n"));
        assert_eq!(greedy, ["a token cannot visit 8 of 4 experts"]);
        let dense = mistakes(&GOOD.replace("ffn = 128\n", ""));
        assert_eq!(dense, ["`ffn` is missing, and there are layers with an ordinary MLP"]);
        let absurd =
            mistakes(&GOOD.replace("hidden = 64", "hidden = 2000000000").replace("ffn = 128", "ffn = 2000000000"));
        assert_eq!(absurd, ["this shape has more than a thousand trillion parameters"]);
        assert_eq!(mistakes(&GOOD.replace("layers = 2", "layers = 0")).len(), 1);
    }
}
