//! The arithmetic of a decoder-only transformer: parameters, exactly, and floating-point operations of a token.
//!
//! A multiply-add counts as two operations. Norms, activations, softmax and the embedding's look-up are left out, as in
//! published utilisations: they cost memory traffic, not matrix arithmetic.

use crate::catalog::model::{Model, Norm};
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
    /// The two norms.
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

impl From<&Model> for Transformer {
    fn from(model: &Model) -> Self {
        Self {
            layers: model.layers,
            hidden: model.hidden,
            heads: model.heads,
            kv_heads: model.kv_heads,
            head_dim: model.head_dim,
            ffn: model.ffn.unwrap_or(0),
            gated: model.gated,
            vocab: model.vocab,
            tied_embeddings: model.tied_embeddings,
            norm: model.norm,
            biases: model.biases,
            learned_positions: model.learned_positions.unwrap_or(0),
            experts: model.moe.map(|moe| Experts {
                count: moe.experts,
                per_token: moe.experts_per_token,
                ffn: moe.expert_ffn,
                shared: moe.shared_experts.unwrap_or(0),
                leading_dense_layers: moe.leading_dense_layers.unwrap_or(0),
            }),
        }
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

    /// Parameters of one projection.
    const fn linear(&self, inputs: u64, outputs: u64) -> u64 {
        inputs * outputs + if self.biases { outputs } else { 0 }
    }

    /// Parameters of one norm.
    pub const fn norm_parameters(&self) -> u64 {
        match self.norm {
            Norm::LayerNorm => 2 * self.hidden as u64,
            Norm::RmsNorm => self.hidden as u64,
        }
    }

    /// Parameters of the key and value projections of a layer, a part of its attention.
    pub const fn key_value_parameters(&self) -> u64 {
        2 * self.linear(self.hidden as u64, self.key_width())
    }

    /// Parameters of a layer's attention.
    const fn attention_parameters(&self) -> u64 {
        let hidden = self.hidden as u64;
        self.linear(hidden, self.query_width()) + self.key_value_parameters() + self.linear(self.query_width(), hidden)
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
            norms: 2 * self.norm_parameters(),
        };
        match (kind, self.experts) {
            (LayerKind::Moe, Some(experts)) => {
                let expert = self.mlp_parameters(experts.ffn);
                parameters.router = self.hidden as u64 * experts.count as u64;
                parameters.experts = experts.count as u64 * expert;
                parameters.shared_experts = experts.shared as u64 * expert;
            }
            _ => parameters.mlp = self.mlp_parameters(self.ffn),
        }
        parameters
    }

    /// Parameters of the whole model.
    pub const fn parameters(&self) -> Parameters {
        let table = self.vocab as u64 * self.hidden as u64;
        Parameters {
            embedding: table,
            positions: self.learned_positions as u64 * self.hidden as u64,
            dense_layers: self.dense_layers() as u64 * self.layer_parameters(LayerKind::Dense).total(),
            moe_layers: self.moe_layers() as u64 * self.layer_parameters(LayerKind::Moe).total(),
            final_norm: self.norm_parameters(),
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

    /// Forward operations of one token in a layer of that kind.
    pub fn layer_flops(&self, kind: LayerKind, sequence_length: u32, count: AttentionCount) -> LayerFlops {
        let hidden = f64::from(self.hidden);
        let [query, key] = [self.query_width() as f64, self.key_width() as f64];
        let mlp = |width: f64| Flops::new(2.0 * hidden * width * f64::from(self.up_projections() + 1));
        let mut flops = LayerFlops {
            query_key_value: Flops::new(2.0 * hidden * (query + 2.0 * key)),
            attention: Flops::new(4.0 * query * count.keys(sequence_length)),
            output: Flops::new(2.0 * query * hidden),
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
mod tests {
    use super::super::shapes::{gpt, llama, llama_405b, mixtral_8x7b};
    use super::*;

    #[test]
    fn parameters_of_llama_3_are_exact() {
        // 8B by hand: a layer has 4096*4096*2 + 2*4096*1024 + 3*4096*14336 + 2*4096 = 218,112,000 parameters; 32 layers,
        // two tables of 128256*4096 and a norm of 4096 make 8,030,261,248.
        let small = llama(32, 4_096, 32, 14_336);
        assert_eq!(small.layer_parameters(LayerKind::Dense).total(), 218_112_000);
        assert_eq!(small.parameters().total(), 8_030_261_248);
        assert_eq!(llama(80, 8_192, 64, 28_672).parameters().total(), 70_553_706_496);
        assert_eq!(llama_405b().parameters().total(), 405_853_388_800);
        assert_eq!(llama_405b().active_parameters(), 405_853_388_800);
    }

    #[test]
    fn mixtral_uses_12_9_of_46_7_billion_parameters() {
        let model = mixtral_8x7b();
        assert_eq!(model.parameters().total(), 46_702_792_704);
        // Six idle experts of 3*4096*14336 in each of 32 layers: 46,702,792,704 - 33,822,867,456.
        assert_eq!(model.active_parameters(), 12_879_925_248);
        assert_eq!((model.dense_layers(), model.moe_layers()), (0, 32));
    }

    #[test]
    fn parameters_of_a_gpt_follow_the_megatron_paper() {
        // SC21 (arXiv 2104.04473) equation 2, P = 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)), and the last norm's 2h.
        for (layers, hidden, heads) in [(24, 2_304, 24), (96, 12_288, 96), (128, 25_600, 160)] {
            let (l, h) = (u64::from(layers), u64::from(hidden));
            let equation = 12 * l * h * h + 13 * l * h + (51_200 + 2_048) * h;
            assert_eq!(gpt(layers, hidden, heads).parameters().total(), equation + 2 * h);
        }
    }

    #[test]
    fn shared_experts_and_leading_dense_layers_count() {
        let experts = Experts { count: 8, per_token: 2, ffn: 1_024, shared: 1, leading_dense_layers: 1 };
        let model = Transformer { experts: Some(experts), ..llama(4, 4_096, 32, 14_336) };
        assert_eq!([0, 1, 3].map(|layers| model.dense_before(layers)), [0, 1, 1]);
        assert_eq!(model.moe_layers(), 3);
        let expert = 3 * 4_096 * 1_024;
        let moe = model.layer_parameters(LayerKind::Moe);
        assert_eq!((moe.experts, moe.shared_experts, moe.router), (8 * expert, expert, 8 * 4_096));
        assert_eq!(model.active_parameters(), model.parameters().total() - 3 * 6 * expert);
        let flops = model.layer_flops(LayerKind::Moe, 4_096, AttentionCount::Causal);
        assert_eq!(flops.experts, Flops::new(3.0 * 2.0 * 3.0 * 4_096.0 * 1_024.0));
    }

    #[test]
    fn model_flops_of_a_gpt_follow_the_megatron_paper() {
        let (l, h, s, v) = (96.0, 12_288.0, 2_048.0, 51_200.0);
        let equation = 72.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
        let ours = gpt(96, 12_288, 96).model_flops_per_token(2_048, AttentionCount::Full);
        assert!((ours / Flops::new(equation) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn causal_attention_is_counted_by_half() {
        // Llama 3 405B at 8,192: 3 * (2 * (405.85e9 - the embedding's 2.10e9 - norms) + 126 * 2 * 16384 * 8192).
        let model = llama_405b();
        let [causal, full] =
            [AttentionCount::Causal, AttentionCount::Full].map(|c| model.model_flops_per_token(8_192, c));
        let scores = Flops::new(3.0 * 126.0 * 4.0 * 16_384.0 * 4_096.0);
        assert_eq!(full - causal, scores);
        let parameters = model.parameters();
        let norms = 126 * 2 * 16_384 + parameters.final_norm;
        let weights = parameters.total() - parameters.embedding - norms;
        assert!(((causal - scores) / Flops::new(6.0 * weights as f64) - 1.0).abs() < 1e-12);
    }
}
