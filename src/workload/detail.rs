//! What sets a transformer apart from plain grouped-query attention with two norms.

/// What differs from plain grouped-query attention with two norms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Multi-head latent attention, trained with its keys and values expanded: `heads` key heads of `head_dim` channels.
    pub latent: Option<LatentShape>,
    /// Layers whose attention sees a window.
    pub windowed_layers: u32,
    /// Tokens of that window.
    pub window: u32,
    /// Whether attention and MLP read the same norm and are added together (PaLM, arXiv 2204.02311, section 2): one norm
    /// and one residual addition a layer, and half as many sums over tensor ranks.
    pub parallel: bool,
    /// Parameters of a layer with an ordinary MLP beyond its matrices and two norms: biases of some projections, norms of
    /// queries and keys, sinks. Negative where there is one norm.
    pub dense_vectors: i64,
    /// The same of a layer with experts: routing corrections too.
    pub moe_vectors: i64,
    /// The same of the model.
    pub model_vectors: i64,
}

impl Detail {
    /// Nothing differs.
    pub const NONE: Self = Self {
        latent: None,
        windowed_layers: 0,
        window: 0,
        parallel: false,
        dense_vectors: 0,
        moe_vectors: 0,
        model_vectors: 0,
    };
}

/// Widths of multi-head latent attention (arXiv 2405.04434, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentShape {
    /// Width of the queries' latent vector; 0 where queries are projected at once.
    pub query_rank: u32,
    /// Width of the latent vector of keys and values.
    pub rank: u32,
    /// Channels of the rotary key, a part of `head_dim`.
    pub rope_dim: u32,
    /// Channels of a value head.
    pub value_dim: u32,
    /// Parameters of an indexer of sparse attention.
    pub indexer: u64,
}
