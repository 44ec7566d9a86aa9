//! Layers of a model: what mixes tokens, and what follows it.

use crate::document::{Reader, choices};

choices! {
    /// Which earlier tokens a layer's attention sees.
    pub enum Span {
        /// All of them.
        Full = "full",
        /// The last `window` tokens.
        Window = "window",
        /// Those of the same chunk of `window` tokens.
        Chunk = "chunk",
        /// The tokens of another modality, whose keys and values are computed once; the text's are not cached.
        Cross = "cross",
    }
}

choices! {
    /// Norms of queries and keys before their product.
    pub enum QkNorm {
        /// None, or one without parameters.
        None = "none",
        /// One weight a channel of a head, the same for all heads.
        Head = "head",
        /// One weight a channel of all heads together.
        Full = "full",
    }
}

choices! {
    /// A gate on the output of attention.
    pub enum Gate {
        /// None.
        None = "none",
        /// One for each channel of the query heads, projected from the layer's input.
        Channel = "channel",
        /// One for each head, projected from the layer's input.
        Head = "head",
    }
}

/// Attention with keys and values cached as such: multi-head, grouped or multi-query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads: as many as query heads without grouping, one for multi-query attention.
    pub kv_heads: u32,
    /// Channels of a query or key head; not always `hidden / heads`.
    pub head_dim: u32,
    /// Channels of a value head.
    pub value_dim: u32,
    /// Which tokens it sees.
    pub span: Span,
    /// Tokens of the window or chunk; 0 for the other spans.
    pub window: u32,
    /// Biases of the query, key and value projections.
    pub input_biases: bool,
    /// Bias of the output projection.
    pub output_bias: bool,
    /// Norms of queries and keys.
    pub qk_norm: QkNorm,
    /// A learned logit a head that takes up attention (sink).
    pub sinks: bool,
    /// A gate on the output.
    pub gate: Gate,
    /// Keys serve as values too: there is no value projection. The cache is counted with both all the same.
    pub keys_as_values: bool,
}

/// The small attention that picks the tokens which sparse attention sees, with its own cache of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexer {
    /// Its query heads.
    pub heads: u32,
    /// Channels of a head, and of its one key.
    pub head_dim: u32,
    /// Tokens that it picks for attention to see; all where it isn't said.
    pub selected: Option<u32>,
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values come from one latent vector
/// a token, which is cached with one rotary key for all heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latent {
    /// Heads.
    pub heads: u32,
    /// Width of the queries' latent vector; absent where queries are projected at once.
    pub query_rank: Option<u32>,
    /// Width of the latent vector of keys and values.
    pub rank: u32,
    /// Channels of a head's key without position.
    pub nope_dim: u32,
    /// Channels of the rotary key.
    pub rope_dim: u32,
    /// Channels of a value head.
    pub value_dim: u32,
    /// The indexer of sparse attention.
    pub indexer: Option<Indexer>,
}

#[cfg(test)]
impl Latent {
    /// DeepSeek-V3's (arXiv 2412.19437, section 4.2).
    pub(crate) const DEEPSEEK_V3: Self = Self {
        heads: 128,
        query_rank: Some(1_536),
        rank: 512,
        nope_dim: 128,
        rope_dim: 64,
        value_dim: 128,
        indexer: None,
    };
}

/// Attention to one key for each so many tokens, and to all of a window (DeepSeek-V4, its technical report, sections 2.3.1 and
/// 2.3.2; parameters as in Hugging Face's `modeling_deepseek_v4.py`). One vector of `head_dim` numbers is the key and the value
/// of all heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Query heads.
    pub heads: u32,
    /// Channels of a head, and of a cached vector.
    pub head_dim: u32,
    /// Width of the queries' latent vector.
    pub query_rank: u32,
    /// Tokens that one cached vector stands for.
    pub ratio: u32,
    /// Last tokens whose vectors are kept one by one.
    pub window: u32,
    /// Groups of heads that are projected apart before they are mixed.
    pub output_groups: u32,
    /// Channels that each group is projected to.
    pub output_rank: u32,
    /// What picks the vectors that attention sees, with a key for each of them; with it, windows of compression overlap, so
    /// that the compressor is twice as wide.
    pub indexer: Option<Indexer>,
}

/// A state-space layer with one scalar decay a head (Mamba-2, arXiv 2405.21060).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mamba2 {
    /// Heads.
    pub heads: u32,
    /// Channels of a head.
    pub head_dim: u32,
    /// Groups of heads that share B and C.
    pub groups: u32,
    /// Width of the state.
    pub state: u32,
    /// Tokens that the convolution sees.
    pub kernel: u32,
    /// Whether the convolution has a bias.
    pub conv_bias: bool,
    /// Whether the projections have biases.
    pub biases: bool,
}

/// A selective state-space layer (Mamba, arXiv 2312.00752), with norms of its inputs as Jamba has (arXiv 2403.19887).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mamba {
    /// Channels inside.
    pub inner: u32,
    /// Width of the state of a channel.
    pub state: u32,
    /// Tokens that the convolution sees.
    pub kernel: u32,
    /// Width of the time step's projection.
    pub step_rank: u32,
    /// Whether the convolution has a bias.
    pub conv_bias: bool,
    /// Whether the projections have biases.
    pub biases: bool,
    /// Whether the time step, B and C are normed.
    pub norms: bool,
}

/// Linear attention with the gated delta rule (arXiv 2412.06464), as Qwen3-Next has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatedDelta {
    /// Query and key heads.
    pub key_heads: u32,
    /// Value heads.
    pub value_heads: u32,
    /// Channels of a key head.
    pub key_dim: u32,
    /// Channels of a value head.
    pub value_dim: u32,
    /// Tokens that the convolution sees.
    pub kernel: u32,
}

/// What mixes tokens in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixer {
    /// Nothing.
    #[default]
    None,
    /// Attention.
    Attention(Attention),
    /// Multi-head latent attention.
    Latent(Latent),
    /// Attention to a compressed cache.
    Compressed(Compressed),
    /// Mamba-2.
    Mamba2(Mamba2),
    /// Mamba.
    Mamba(Mamba),
    /// Gated delta rule.
    GatedDelta(GatedDelta),
}

/// An MLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mlp {
    /// Width inside.
    pub ffn: u32,
    /// Whether two up-projections are multiplied (SwiGLU, GeGLU).
    pub gated: bool,
    /// Whether the projections have biases.
    pub biases: bool,
}

/// A router and experts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoeBlock {
    /// Routed experts.
    pub experts: u32,
    /// Routed experts that a token visits.
    pub per_token: u32,
    /// An expert.
    pub expert: Mlp,
    /// Width inside the experts that every token visits, all together; 0 where there are none.
    pub shared_ffn: u32,
    /// Whether a learned gate weighs the shared experts.
    pub shared_gate: bool,
    /// Whether the router's projection has a bias.
    pub router_bias: bool,
    /// Whether a correction a routed expert balances the load.
    pub correction_bias: bool,
    /// Width that routed experts work on instead of the hidden size, projected to and fro; 0 where there is none.
    pub latent: u32,
    /// An MLP beside the experts, added to what they give.
    pub beside: Option<Mlp>,
}

/// What follows the mixer in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feed {
    /// Nothing.
    #[default]
    None,
    /// An MLP.
    Mlp(Mlp),
    /// Experts.
    Moe(MoeBlock),
}

/// Layers of one kind. They need not be neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// How many there are.
    pub layers: u32,
    /// Whether they all stand before the layers of the other blocks.
    pub leading: bool,
    /// Norms of the hidden width in each.
    pub norms: u32,
    /// Scalars and vectors beside: gates of cross-attention, scales of a layer.
    pub scalars: u32,
    /// What mixes tokens.
    pub mixer: Mixer,
    /// What follows it.
    pub feed: Feed,
}

impl Block {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let attention = reader.optional_table("attention", Attention::read).map(Mixer::Attention);
        let latent = reader.optional_table("latent", Latent::read).map(Mixer::Latent);
        let compressed = reader.optional_table("compressed", Compressed::read).map(Mixer::Compressed);
        let mamba2 = reader.optional_table("mamba2", Mamba2::read).map(Mixer::Mamba2);
        let mamba = reader.optional_table("mamba", Mamba::read).map(Mixer::Mamba);
        let delta = reader.optional_table("gated_delta", GatedDelta::read).map(Mixer::GatedDelta);
        let mlp = reader.optional_table("mlp", Mlp::read).map(Feed::Mlp);
        let moe = reader.optional_table("moe", MoeBlock::read).map(Feed::Moe);
        let mixer = attention.or(latent).or(compressed).or(mamba2).or(mamba).or(delta).unwrap_or_default();
        let feed = mlp.or(moe).unwrap_or_default();
        Self {
            layers: reader.get("layers"),
            leading: reader.or("leading", false),
            norms: reader.optional("norms").unwrap_or(Self::usual_norms(&mixer, &feed)),
            scalars: reader.optional("scalars").unwrap_or(0),
            mixer,
            feed,
        }
    }

    /// Norms where none are given: one before what mixes and one before what follows; of a block that was pruned away, none.
    pub(super) const fn usual_norms(mixer: &Mixer, feed: &Feed) -> u32 {
        if matches!((mixer, feed), (Mixer::None, Feed::None)) { 0 } else { 2 }
    }

    /// The experts, if it has any.
    pub const fn moe(&self) -> Option<&MoeBlock> {
        match &self.feed {
            Feed::Moe(moe) => Some(moe),
            Feed::None | Feed::Mlp(_) => None,
        }
    }
}

impl Attention {
    fn read(reader: &mut Reader<'_>) -> Self {
        let head_dim = reader.get("head_dim");
        Self {
            heads: reader.get("heads"),
            kv_heads: reader.get("kv_heads"),
            head_dim,
            value_dim: reader.or("value_dim", head_dim),
            span: reader.or("span", Span::Full),
            window: reader.optional("window").unwrap_or(0),
            input_biases: reader.or("input_biases", false),
            output_bias: reader.or("output_bias", false),
            qk_norm: reader.or("qk_norm", QkNorm::None),
            sinks: reader.or("sinks", false),
            gate: reader.or("gate", Gate::None),
            keys_as_values: reader.or("keys_as_values", false),
        }
    }
}

impl Indexer {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            heads: reader.get("heads"),
            head_dim: reader.get("head_dim"),
            selected: reader.optional("selected"),
        }
    }
}

impl Compressed {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            heads: reader.get("heads"),
            head_dim: reader.get("head_dim"),
            query_rank: reader.get("query_rank"),
            ratio: reader.get("ratio"),
            window: reader.get("window"),
            output_groups: reader.get("output_groups"),
            output_rank: reader.get("output_rank"),
            indexer: reader.optional_table("indexer", Indexer::read),
        }
    }
}

impl Latent {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            heads: reader.get("heads"),
            query_rank: reader.optional("query_rank"),
            rank: reader.get("rank"),
            nope_dim: reader.get("nope_dim"),
            rope_dim: reader.get("rope_dim"),
            value_dim: reader.get("value_dim"),
            indexer: reader.optional_table("indexer", Indexer::read),
        }
    }
}

impl Mamba2 {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            heads: reader.get("heads"),
            head_dim: reader.get("head_dim"),
            groups: reader.get("groups"),
            state: reader.get("state"),
            kernel: reader.get("kernel"),
            conv_bias: reader.get("conv_bias"),
            biases: reader.get("biases"),
        }
    }
}

impl Mamba {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            inner: reader.get("inner"),
            state: reader.get("state"),
            kernel: reader.get("kernel"),
            step_rank: reader.get("step_rank"),
            conv_bias: reader.get("conv_bias"),
            biases: reader.get("biases"),
            norms: reader.get("norms"),
        }
    }
}

impl GatedDelta {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            key_heads: reader.get("key_heads"),
            value_heads: reader.get("value_heads"),
            key_dim: reader.get("key_dim"),
            value_dim: reader.get("value_dim"),
            kernel: reader.get("kernel"),
        }
    }
}

impl Mlp {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self { ffn: reader.get("ffn"), gated: reader.get("gated"), biases: reader.or("biases", false) }
    }
}

impl MoeBlock {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            experts: reader.get("experts"),
            per_token: reader.get("per_token"),
            expert: reader.table("expert", Mlp::read),
            shared_ffn: reader.optional("shared_ffn").unwrap_or(0),
            shared_gate: reader.or("shared_gate", false),
            router_bias: reader.or("router_bias", false),
            correction_bias: reader.or("correction_bias", false),
            latent: reader.optional("latent").unwrap_or(0),
            beside: reader.optional_table("beside", Mlp::read),
        }
    }
}
