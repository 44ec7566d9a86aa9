//! The arithmetic of a decoder-only transformer: parameters, exactly, and floating-point operations of a token.
//!
//! A multiply-add counts as two operations. Norms, activations, softmax and the embedding's look-up are left out, as in
//! published utilisations: they cost memory traffic, not matrix arithmetic.

use super::Detail;
use crate::catalog::model::Norm;
use crate::document::choices;
use crate::units::Flops;

choices! {
    /// How attention's scores are counted. Published utilisations use either.
    pub enum AttentionCount {
        /// Half of the scores: what causal attention needs, sequence after sequence.
        Causal = "causal",
        /// All of them, as the Megatron and PaLM papers count.
        Full = "full",
    }
}

impl AttentionCount {
    /// Keys that a query is counted against, in a sequence of that length.
    pub fn keys(self, sequence_length: u32) -> f64 {
        match self {
            Self::Causal => f64::from(sequence_length) / 2.0,
            Self::Full => f64::from(sequence_length),
        }
    }
}

/// A model's dimensions with nothing left to default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// Transformer layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Channels of a head.
    pub head_dim: u32,
    /// Width inside the MLP of a dense layer; 0 where there is none.
    pub ffn: u32,
    /// Whether MLPs and experts multiply two up-projections.
    pub gated: bool,
    /// Entries of the vocabulary.
    pub vocab: u32,
    /// Whether the output projection is the embedding again.
    pub tied_embeddings: bool,
    /// The normalisation.
    pub norm: Norm,
    /// Whether projections have biases.
    pub biases: bool,
    /// Learned position embeddings; 0 where there are none.
    pub learned_positions: u32,
    /// The experts of a mixture-of-experts model.
    pub experts: Option<Experts>,
    /// What differs from plain grouped-query attention with two norms.
    pub detail: Detail,
}

/// The experts of a layer and where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Routed experts of a layer.
    pub count: u32,
    /// Routed experts that a token visits.
    pub per_token: u32,
    /// Width inside an expert.
    pub ffn: u32,
    /// Experts that every token visits.
    pub shared: u32,
    /// Layers at the start that have an ordinary MLP instead.
    pub leading_dense_layers: u32,
}

/// What follows attention in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// An ordinary MLP.
    Dense,
    /// A router and experts.
    Moe,
}

/// Parameters of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerParameters {
    /// Query, key, value and output projections.
    pub attention: u64,
    /// The dense MLP.
    pub mlp: u64,
    /// The router.
    pub router: u64,
    /// All routed experts.
    pub experts: u64,
    /// The experts that every token visits.
    pub shared_experts: u64,
    /// The norms, and other vectors.
    pub norms: u64,
}

impl LayerParameters {
    /// Their sum.
    pub const fn total(&self) -> u64 {
        self.attention + self.mlp + self.router + self.experts + self.shared_experts + self.norms
    }
}

/// Parameters of a whole model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Token embeddings.
    pub embedding: u64,
    /// Learned position embeddings.
    pub positions: u64,
    /// Layers with an ordinary MLP.
    pub dense_layers: u64,
    /// Layers with experts.
    pub moe_layers: u64,
    /// The last norm.
    pub final_norm: u64,
    /// The output projection; 0 where it is the embedding again.
    pub head: u64,
}

impl Parameters {
    /// Their sum.
    pub const fn total(&self) -> u64 {
        self.embedding + self.positions + self.dense_layers + self.moe_layers + self.final_norm + self.head
    }
}

/// Forward operations of one token in one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerFlops {
    /// Query, key and value projections.
    pub query_key_value: Flops,
    /// Scores, and their product with the values.
    pub attention: Flops,
    /// Output projection.
    pub output: Flops,
    /// The dense MLP.
    pub mlp: Flops,
    /// The router.
    pub router: Flops,
    /// The experts that the token visits, shared ones too.
    pub experts: Flops,
}

impl LayerFlops {
    /// Their sum.
    pub fn total(&self) -> Flops {
        self.query_key_value + self.attention + self.output + self.mlp + self.router + self.experts
    }
}

impl Transformer {
    /// Layers with an ordinary MLP among the first so many.
    pub const fn dense_before(&self, layer: u32) -> u32 {
        match self.experts {
            Some(experts) if experts.leading_dense_layers < layer => experts.leading_dense_layers,
            None | Some(_) => layer,
        }
    }

    /// Layers with an ordinary MLP.
    pub const fn dense_layers(&self) -> u32 {
        self.dense_before(self.layers)
    }

    /// Layers with experts.
    pub const fn moe_layers(&self) -> u32 {
        self.layers - self.dense_layers()
    }

    /// Up-projections of an MLP: two where it is gated.
    pub const fn up_projections(&self) -> u32 {
        if self.gated { 2 } else { 1 }
    }

    /// Channels of all query heads together.
    pub const fn query_width(&self) -> u64 {
        self.heads as u64 * self.head_dim as u64
    }

    /// Channels of all key heads together, or of all value heads.
    pub const fn key_width(&self) -> u64 {
        self.kv_heads as u64 * self.head_dim as u64
    }

    /// Channels of a value head.
    pub const fn value_dim(&self) -> u32 {
        match self.detail.latent {
            Some(latent) => latent.value_dim,
            None => self.head_dim,
        }
    }

    /// Channels of all value heads together, as the output projection reads them.
    pub const fn output_width(&self) -> u64 {
        self.heads as u64 * self.value_dim() as u64
    }

    /// Parameters of one projection.
    const fn linear(&self, inputs: u64, outputs: u64) -> u64 {
        inputs * outputs + if self.biases { outputs } else { 0 }
    }

    /// Parameters of one norm.
    pub const fn norm_parameters(&self) -> u64 {
        match self.norm {
            Norm::LayerNorm => 2 * self.hidden as u64,
            Norm::RmsNorm | Norm::LayerNormWeight => self.hidden as u64,
            Norm::LayerNormBare => 0,
        }
    }

    /// Parameters of the key and value projections of a layer, a part of its attention.
    ///
    /// Latent attention's are the projections from the latent vector to all heads.
    pub const fn key_value_parameters(&self) -> u64 {
        match self.detail.latent {
            None => 2 * self.linear(self.hidden as u64, self.key_width()),
            Some(latent) => {
                let nope = (self.head_dim - latent.rope_dim) as u64;
                latent.rank as u64 * self.heads as u64 * (nope + latent.value_dim as u64)
            }
        }
    }

    /// Parameters of attention's matrices that every tensor-parallel rank holds whole: latent attention's projections to
    /// the latent vectors, and its indexer.
    pub const fn copied_attention_parameters(&self) -> u64 {
        match self.detail.latent {
            None => 0,
            Some(latent) => {
                let down = latent.query_rank as u64 + latent.rank as u64 + latent.rope_dim as u64;
                self.hidden as u64 * down + latent.indexer
            }
        }
    }

    /// Parameters of a layer's attention.
    const fn attention_parameters(&self) -> u64 {
        let (hidden, query) = (self.hidden as u64, self.query_width());
        let (queries, output) = match self.detail.latent {
            None => (self.linear(hidden, query), self.linear(query, hidden)),
            Some(latent) => {
                let input = if latent.query_rank == 0 { hidden } else { latent.query_rank as u64 };
                (input * query, self.output_width() * hidden)
            }
        };
        queries + self.copied_attention_parameters() + self.key_value_parameters() + output
    }

    /// Parameters of an MLP, or of one expert, of that inner width.
    const fn mlp_parameters(&self, width: u32) -> u64 {
        let (hidden, width) = (self.hidden as u64, width as u64);
        self.up_projections() as u64 * self.linear(hidden, width) + self.linear(width, hidden)
    }

    /// Parameters of a layer of that kind.
    pub const fn layer_parameters(&self, kind: LayerKind) -> LayerParameters {
        let mut parameters = LayerParameters {
            attention: self.attention_parameters(),
            mlp: 0,
            router: 0,
            experts: 0,
            shared_experts: 0,
            norms: (2 * self.norm_parameters()).saturating_add_signed(self.detail.dense_vectors),
        };
        match (kind, self.experts) {
            (LayerKind::Moe, Some(experts)) => {
                parameters.norms = (2 * self.norm_parameters()).saturating_add_signed(self.detail.moe_vectors);
                let expert = self.mlp_parameters(experts.ffn);
                parameters.router = self.hidden as u64 * experts.count as u64;
                parameters.experts = experts.count as u64 * expert;
                parameters.shared_experts = experts.shared as u64 * expert;
            }
            _ => parameters.mlp = self.mlp_parameters(self.ffn),
        }
        parameters
    }

    /// Parameters of the token embedding, or of the output projection.
    pub const fn table_parameters(&self) -> u64 {
        self.vocab as u64 * self.hidden as u64
    }

    /// Parameters of learned position embeddings.
    pub const fn position_parameters(&self) -> u64 {
        self.learned_positions as u64 * self.hidden as u64
    }

    /// Parameters of the whole model.
    pub const fn parameters(&self) -> Parameters {
        let table = self.table_parameters();
        Parameters {
            embedding: table,
            positions: self.position_parameters(),
            dense_layers: self.dense_layers() as u64 * self.layer_parameters(LayerKind::Dense).total(),
            moe_layers: self.moe_layers() as u64 * self.layer_parameters(LayerKind::Moe).total(),
            final_norm: self.norm_parameters().saturating_add_signed(self.detail.model_vectors),
            head: if self.tied_embeddings { 0 } else { table },
        }
    }

    /// Parameters that one token uses: all but the routed experts that it doesn't visit.
    pub const fn active_parameters(&self) -> u64 {
        let total = self.parameters().total();
        match self.experts {
            None => total,
            Some(experts) => {
                let idle = (experts.count - experts.per_token) as u64 * self.mlp_parameters(experts.ffn);
                total - self.moe_layers() as u64 * idle
            }
        }
    }

    /// Keys that a query is counted against, on average over layers with a window and without.
    pub fn keys(&self, sequence_length: u32, count: AttentionCount) -> f64 {
        let Detail { windowed_layers, window, .. } = self.detail;
        let all = count.keys(sequence_length);
        if windowed_layers == 0 || sequence_length <= window {
            return all;
        }
        // The first `window` queries see half a window on average, the others a whole one; a full count is no less.
        let [length, seen] = [sequence_length, window].map(f64::from);
        let windowed = match count {
            AttentionCount::Causal => seen - seen * seen / (2.0 * length),
            AttentionCount::Full => seen,
        };
        let share = f64::from(windowed_layers) / f64::from(self.layers);
        all + share * (windowed - all)
    }

    /// Forward operations of one token in a layer of that kind.
    pub fn layer_flops(&self, kind: LayerKind, sequence_length: u32, count: AttentionCount) -> LayerFlops {
        let hidden = f64::from(self.hidden);
        let [query, key, output] =
            [self.query_width(), self.key_width(), self.output_width()].map(|width| width as f64);
        // Biases are additions, not products.
        let projected = match self.detail.latent {
            None => hidden * (query + 2.0 * key),
            Some(_) => self.attention_parameters() as f64 - output * hidden,
        };
        let mlp = |width: f64| Flops::new(2.0 * hidden * width * f64::from(self.up_projections() + 1));
        let mut flops = LayerFlops {
            query_key_value: Flops::new(2.0 * projected),
            attention: Flops::new(2.0 * (query + output) * self.keys(sequence_length, count)),
            output: Flops::new(2.0 * output * hidden),
            ..LayerFlops::default()
        };
        match (kind, self.experts) {
            (LayerKind::Moe, Some(experts)) => {
                flops.router = Flops::new(2.0 * hidden * f64::from(experts.count));
                flops.experts = mlp(f64::from(experts.per_token + experts.shared) * f64::from(experts.ffn));
            }
            _ => flops.mlp = mlp(f64::from(self.ffn)),
        }
        flops
    }

    /// Forward operations of one token in the output projection.
    pub fn head_flops(&self) -> Flops {
        Flops::new(2.0 * f64::from(self.hidden) * f64::from(self.vocab))
    }

    /// Forward operations of one token in all layers, without the output projection.
    pub fn layers_flops(&self, sequence_length: u32, count: AttentionCount) -> Flops {
        let all = |kind, layers| self.layer_flops(kind, sequence_length, count).total() * f64::from(layers);
        all(LayerKind::Dense, self.dense_layers()) + all(LayerKind::Moe, self.moe_layers())
    }

    /// Operations that training on one token needs, forward and backward, whatever is recomputed: the numerator of MFU.
    ///
    /// The backward pass multiplies twice for each multiplication forward. For a GPT this is Korthikanti et al.,
    /// arXiv 2205.05198, appendix A: `72 L h^2 (1 + s/(6h) + V/(12 L h))` with full attention.
    pub fn model_flops_per_token(&self, sequence_length: u32, count: AttentionCount) -> Flops {
        3.0 * (self.layers_flops(sequence_length, count) + self.head_flops())
    }
}

#[cfg(test)]
mod tests;
