//! Every parameter of a model, by the module that it belongs to.
//!
//! Counted are the matrices, their biases, all norms with those of queries and keys, attention sinks, routing biases and
//! the small vectors of recurrent layers: what a checkpoint of the language model holds. Towers of other modalities are
//! counted apart; modules for predicting more than the next token are not counted.

use crate::catalog::model::{
    Attention, Block, Compressed, Feed, Gate, GatedDelta, Latent, Mamba, Mamba2, Mixer, Mlp, Model, Module, MoeBlock,
    Norm, QkNorm,
};

/// Parameters of one layer of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockParameters {
    /// Projections of attention or of what stands in its place, with their biases.
    pub mixer: u64,
    /// Of those, what each tensor-parallel rank holds whole: down-projections to a latent vector and the indexer.
    pub mixer_copied: u64,
    /// Of those, keys and values, held whole by a rank for each head beyond one a rank.
    pub keys_values: u64,
    /// The MLP.
    pub mlp: u64,
    /// The router.
    pub router: u64,
    /// All routed experts, and the projections around them.
    pub experts: u64,
    /// Of those, the experts that a token visits, and the projections.
    pub visited: u64,
    /// Experts that every token visits.
    pub shared_experts: u64,
    /// Norms, sinks, routing corrections and other vectors.
    pub norms: u64,
}

impl BlockParameters {
    /// Their sum.
    pub const fn total(&self) -> u64 {
        self.mixer + self.mlp + self.router + self.experts + self.shared_experts + self.norms
    }

    /// Those that one token uses.
    pub const fn active(&self) -> u64 {
        self.total() - self.experts + self.visited
    }
}

/// Parameters of a whole model by module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Token embeddings.
    pub embedding: u64,
    /// Learned position embeddings.
    pub positions: u64,
    /// The output projection; 0 where it is the embedding again.
    pub head: u64,
    /// Projections of attention, and of what stands in its place.
    pub attention: u64,
    /// MLPs of layers without experts.
    pub mlp: u64,
    /// Routers.
    pub router: u64,
    /// Routed experts.
    pub experts: u64,
    /// Of those, the ones that a token visits.
    pub visited: u64,
    /// Experts that every token visits.
    pub shared_experts: u64,
    /// Norms and other vectors.
    pub norms: u64,
    /// Towers of other modalities.
    pub towers: u64,
}

impl Census {
    /// The language model.
    pub const fn total(&self) -> u64 {
        self.embedding
            + self.positions
            + self.head
            + self.attention
            + self.mlp
            + self.router
            + self.experts
            + self.shared_experts
            + self.norms
    }

    /// What one token uses of the language model.
    pub const fn active(&self) -> u64 {
        self.total() - self.experts + self.visited
    }

    /// The whole checkpoint, towers too.
    pub const fn with_towers(&self) -> u64 {
        self.total() + self.towers
    }

    /// Parameters of a kind of module.
    pub const fn of(&self, module: Module) -> u64 {
        match module {
            Module::Attention => self.attention,
            Module::Mlp => self.mlp,
            Module::Experts => self.experts,
            Module::SharedExperts => self.shared_experts,
            Module::Router => self.router,
            Module::Embedding => self.embedding + self.positions,
            Module::Head => self.head,
            Module::Norms => self.norms,
            Module::Towers => self.towers,
        }
    }
}

/// Parameters of a projection.
const fn linear(inputs: u64, outputs: u64, bias: bool) -> u64 {
    inputs * outputs + if bias { outputs } else { 0 }
}

/// Parameters of a norm of so many channels.
const fn norm(norm: Norm, channels: u64) -> u64 {
    match norm {
        Norm::LayerNorm => 2 * channels,
        Norm::RmsNorm | Norm::LayerNormWeight => channels,
        Norm::LayerNormBare => 0,
    }
}

fn wide(count: u32) -> u64 {
    u64::from(count)
}

/// Parameters of all modules of a model that `Model::problems` finds nothing wrong with.
pub fn census(model: &Model) -> Census {
    let hidden = wide(model.hidden);
    let table = wide(model.vocab) * hidden;
    let head_bias = if model.head_bias { wide(model.vocab) } else { 0 };
    let mut census = Census {
        embedding: table,
        positions: wide(model.learned_positions.unwrap_or(0)) * hidden,
        head: head_bias + if model.tied_embeddings { 0 } else { table },
        norms: norm(model.norm, hidden) * if model.embedding_norm { 2 } else { 1 },
        towers: model.towers.iter().map(|tower| tower.parameters).sum(),
        ..Census::default()
    };
    for block in &model.blocks {
        let (layer, layers) = (block_parameters(model, block), wide(block.layers));
        census.attention += layer.mixer * layers;
        census.mlp += layer.mlp * layers;
        census.router += layer.router * layers;
        census.experts += layer.experts * layers;
        census.visited += layer.visited * layers;
        census.shared_experts += layer.shared_experts * layers;
        census.norms += layer.norms * layers;
    }
    census
}

/// Parameters of one layer of a block.
pub fn block_parameters(model: &Model, block: &Block) -> BlockParameters {
    let hidden = wide(model.hidden);
    let mut count = BlockParameters {
        norms: wide(block.norms) * norm(model.norm, hidden) + wide(block.scalars),
        ..BlockParameters::default()
    };
    match &block.mixer {
        Mixer::None => {}
        Mixer::Attention(attention) => count_attention(attention, hidden, &mut count),
        Mixer::Latent(latent) => count_latent(latent, hidden, &mut count),
        Mixer::Compressed(compressed) => count_compressed(compressed, hidden, &mut count),
        Mixer::Mamba2(mamba) => count_mamba2(mamba, hidden, &mut count),
        Mixer::Mamba(mamba) => count_mamba(mamba, hidden, &mut count),
        Mixer::GatedDelta(delta) => count_delta(delta, hidden, &mut count),
    }
    match &block.feed {
        Feed::None => {}
        Feed::Mlp(mlp) => count.mlp = mlp_parameters(*mlp, hidden),
        Feed::Moe(moe) => count_experts(moe, hidden, &mut count),
    }
    count
}

/// Parameters of an MLP, or of an expert.
fn mlp_parameters(mlp: Mlp, hidden: u64) -> u64 {
    let ffn = wide(mlp.ffn);
    let up = if mlp.gated { 2 } else { 1 };
    up * linear(hidden, ffn, mlp.biases) + linear(ffn, hidden, mlp.biases)
}

fn count_experts(moe: &MoeBlock, hidden: u64, count: &mut BlockParameters) {
    let experts = wide(moe.experts);
    let (width, around) = if moe.latent == 0 { (hidden, 0) } else { (wide(moe.latent), 2 * hidden * wide(moe.latent)) };
    let expert = mlp_parameters(moe.expert, width);
    count.experts = experts * expert + around;
    count.visited = wide(moe.per_token) * expert + around;
    if moe.shared_ffn > 0 {
        count.shared_experts = mlp_parameters(Mlp { ffn: moe.shared_ffn, ..moe.expert }, hidden);
    }
    count.shared_experts += if moe.shared_gate { hidden } else { 0 };
    count.router = linear(hidden, experts, moe.router_bias);
    count.norms += if moe.correction_bias { experts } else { 0 };
    count.mlp = moe.beside.map_or(0, |mlp| mlp_parameters(mlp, hidden));
}

fn count_attention(attention: &Attention, hidden: u64, count: &mut BlockParameters) {
    let [heads, kv_heads, key, value] =
        [attention.heads, attention.kv_heads, attention.head_dim, attention.value_dim].map(wide);
    let query = linear(hidden, heads * key, attention.input_biases);
    let values = if attention.keys_as_values { 0 } else { linear(hidden, kv_heads * value, attention.input_biases) };
    count.keys_values = linear(hidden, kv_heads * key, attention.input_biases) + values;
    let gate = match attention.gate {
        Gate::None => 0,
        Gate::Channel => hidden * heads * value,
        Gate::Head => hidden * heads,
    };
    count.mixer = query + count.keys_values + linear(heads * value, hidden, attention.output_bias) + gate;
    count.norms += match attention.qk_norm {
        QkNorm::None => 0,
        QkNorm::Head => 2 * key,
        QkNorm::Full => (heads + kv_heads) * key,
    };
    count.norms += if attention.sinks { heads } else { 0 };
}

/// DeepSeek-V2 (arXiv 2405.04434), section 2.1 and appendix C; the indexer as in DeepSeek-V3.2-Exp's published code.
fn count_latent(latent: &Latent, hidden: u64, count: &mut BlockParameters) {
    let [heads, rank, rope, value] = [latent.heads, latent.rank, latent.rope_dim, latent.value_dim].map(wide);
    let nope = wide(latent.nope_dim);
    let queries = heads * (nope + rope);
    let (down, up) =
        latent.query_rank.map(wide).map_or((0, hidden * queries), |query| (hidden * query, query * queries));
    count.mixer_copied = down + hidden * (rank + rope);
    count.norms += rank + latent.query_rank.map_or(0, wide);
    if let Some(indexer) = latent.indexer {
        let [index_heads, dim] = [indexer.heads, indexer.head_dim].map(wide);
        let input = latent.query_rank.map_or(hidden, wide);
        count.mixer_copied += input * index_heads * dim + hidden * dim + hidden * index_heads;
        // Its key has a norm with weight and bias.
        count.norms += 2 * dim;
    }
    count.mixer = count.mixer_copied + up + rank * heads * (nope + value) + heads * value * hidden;
}

/// The queries' two projections, one vector for keys and values, a projection a group and one that mixes them, and the
/// compressor of each cache: values and gates, a bias for each place in a window, a norm. Hugging Face,
/// `modeling_deepseek_v4.py`.
fn count_compressed(compressed: &Compressed, hidden: u64, count: &mut BlockParameters) {
    let [heads, dim, query] = [compressed.heads, compressed.head_dim, compressed.query_rank].map(wide);
    let [groups, rank] = [compressed.output_groups, compressed.output_rank].map(wide);
    let series = if compressed.indexer.is_some() { 2 } else { 1 };
    let mut compressor = |dim: u64| {
        count.norms += wide(compressed.ratio) * series * dim + dim;
        2 * hidden * series * dim
    };
    let mut copied = hidden * query + hidden * dim + compressor(dim);
    if let Some(indexer) = compressed.indexer {
        let [index_heads, index_dim] = [indexer.heads, indexer.head_dim].map(wide);
        copied += compressor(index_dim) + query * index_heads * index_dim + hidden * index_heads;
    }
    // Norms of the queries' vector and of keys, and a sink a head.
    count.norms += query + dim + heads;
    count.mixer_copied = copied;
    count.mixer = copied + query * heads * dim + heads * dim * rank + groups * rank * hidden;
}

fn count_mamba2(mamba: &Mamba2, hidden: u64, count: &mut BlockParameters) {
    let heads = wide(mamba.heads);
    let inner = heads * wide(mamba.head_dim);
    let convolved = inner + 2 * wide(mamba.groups) * wide(mamba.state);
    let bias = if mamba.conv_bias { convolved } else { 0 };
    count.mixer = linear(hidden, inner + convolved + heads, mamba.biases) + linear(inner, hidden, mamba.biases);
    // The convolution; decay, skip and time step of each head; the gated norm.
    count.norms += convolved * wide(mamba.kernel) + bias + 3 * heads + inner;
}

fn count_mamba(mamba: &Mamba, hidden: u64, count: &mut BlockParameters) {
    let [inner, state, step] = [mamba.inner, mamba.state, mamba.step_rank].map(wide);
    count.mixer = linear(hidden, 2 * inner, mamba.biases)
        + inner * (step + 2 * state)
        + linear(step, inner, true)
        + linear(inner, hidden, mamba.biases);
    let bias = if mamba.conv_bias { inner } else { 0 };
    // The convolution; decay and skip of each channel; norms of the time step, B and C.
    count.norms += inner * wide(mamba.kernel) + bias + inner * state + inner;
    count.norms += if mamba.norms { step + 2 * state } else { 0 };
}

fn count_delta(delta: &GatedDelta, hidden: u64, count: &mut BlockParameters) {
    let [key_heads, value_heads, key, value] =
        [delta.key_heads, delta.value_heads, delta.key_dim, delta.value_dim].map(wide);
    let (keys, values) = (key_heads * key, value_heads * value);
    // Queries, keys, values and the output's gate; decay and learning rate of each head; the output.
    count.mixer = hidden * (2 * keys + 2 * values) + hidden * 2 * value_heads + values * hidden;
    // The convolution; decay and time step of each head; the gated norm.
    count.norms += (2 * keys + values) * wide(delta.kernel) + 2 * value_heads + value;
}
