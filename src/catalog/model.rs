//! Language models: the dimensions from which parameters, arithmetic and memory follow.

use crate::diagnostics::Code;
use crate::document::{Reader, choices};

choices! {
    /// The normalisation before attention, before the MLP and at the end.
    pub enum Norm {
        /// Mean and variance; a weight and a bias per channel.
        LayerNorm = "layernorm",
        /// Root mean square; a weight per channel.
        RmsNorm = "rmsnorm",
    }
}

/// A decoder-only transformer as its publisher describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Transformer layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads: as many as query heads without grouping, one for multi-query attention.
    pub kv_heads: u32,
    /// Channels of a head; not always `hidden / heads`.
    pub head_dim: u32,
    /// Width inside the MLP of a dense layer; absent where every layer has experts.
    pub ffn: Option<u32>,
    /// Whether MLPs and experts multiply two up-projections (SwiGLU, GeGLU).
    pub gated: bool,
    /// Entries of the vocabulary, as embedded.
    pub vocab: u32,
    /// Whether the output projection is the embedding again.
    pub tied_embeddings: bool,
    /// The normalisation.
    pub norm: Norm,
    /// Whether the projections of attention and MLP have biases.
    pub biases: bool,
    /// Learned position embeddings; absent with rotary or no positions.
    pub learned_positions: Option<u32>,
    /// The experts of a mixture-of-experts model.
    pub moe: Option<Moe>,
    /// The parameter count that its publisher states, to as many digits as stated.
    pub published_parameters: Option<u64>,
    /// The parameters that one token uses, as its publisher states.
    pub published_active_parameters: Option<u64>,
}

/// The experts of a layer and where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moe {
    /// Routed experts of a layer.
    pub experts: u32,
    /// Routed experts that a token visits.
    pub experts_per_token: u32,
    /// Width inside an expert.
    pub expert_ffn: u32,
    /// Experts of that width that every token visits.
    pub shared_experts: Option<u32>,
    /// Layers at the start that have an ordinary MLP instead.
    pub leading_dense_layers: Option<u32>,
}

/// More parameters than any count here can hold exactly; nobody trains such a model.
const MOST_PARAMETERS: f64 = 1e15;

impl Model {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let model = Self {
            layers: reader.get("layers"),
            hidden: reader.get("hidden"),
            heads: reader.get("heads"),
            kv_heads: reader.get("kv_heads"),
            head_dim: reader.get("head_dim"),
            ffn: reader.optional("ffn"),
            gated: reader.get("gated"),
            vocab: reader.get("vocab"),
            tied_embeddings: reader.get("tied_embeddings"),
            norm: reader.get("norm"),
            biases: reader.get("biases"),
            learned_positions: reader.optional("learned_positions"),
            moe: reader.optional_table("moe", Moe::read),
            published_parameters: reader.optional("published_parameters"),
            published_active_parameters: reader.optional("published_active_parameters"),
        };
        if reader.sink().len() == before {
            model.check(reader);
        }
        model
    }

    /// Layers with an ordinary MLP.
    fn dense_layers(&self) -> u32 {
        self.moe.map_or(self.layers, |moe| moe.leading_dense_layers.unwrap_or(0))
    }

    fn check(&self, reader: &Reader<'_>) {
        if !self.heads.is_multiple_of(self.kv_heads) {
            let message =
                format!("{} query heads cannot share {} key and value heads evenly", self.heads, self.kv_heads);
            reader.report("kv_heads", Code::Inconsistent, message, format!("`kv_heads` divides {}", self.heads));
        }
        if self.dense_layers() > 0 && self.ffn.is_none() {
            let message = "`ffn` is missing, and there are layers with an ordinary MLP";
            reader.report("ffn", Code::MissingKey, message, "give the width inside that MLP");
        }
        if self.parameter_bound() > MOST_PARAMETERS {
            let message = "this shape has more than a thousand trillion parameters";
            reader.report(
                "hidden",
                Code::OutOfRange,
                message,
                "one of `layers`, `hidden`, `ffn`, `vocab` or `experts` has too many digits",
            );
        }
        if let Some(moe) = self.moe {
            moe.check(self.layers, reader);
        }
    }

    /// Not less than the parameters, in floating point so that no digit typed too many overflows.
    fn parameter_bound(&self) -> f64 {
        let [layers, hidden, heads] = [self.layers, self.hidden, self.heads].map(f64::from);
        let attention = 4.0 * hidden * heads * f64::from(self.head_dim);
        let mlp = |width: f64| 3.0 * (hidden + 1.0) * width;
        let experts = self.moe.map_or(0.0, |moe| {
            let copies = f64::from(moe.experts) + f64::from(moe.shared_experts.unwrap_or(0));
            copies * mlp(f64::from(moe.expert_ffn) + 1.0)
        });
        let embeddings = f64::from(self.vocab) * 2.0 + f64::from(self.learned_positions.unwrap_or(0));
        layers * (attention + mlp(f64::from(self.ffn.unwrap_or(0))) + experts) + embeddings * hidden
    }
}

impl Moe {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            experts: reader.get("experts"),
            experts_per_token: reader.get("experts_per_token"),
            expert_ffn: reader.get("expert_ffn"),
            shared_experts: reader.optional("shared_experts"),
            leading_dense_layers: reader.optional("leading_dense_layers"),
        }
    }

    fn check(&self, layers: u32, reader: &Reader<'_>) {
        if self.experts_per_token > self.experts {
            let message = format!("a token cannot visit {} of {} experts", self.experts_per_token, self.experts);
            reader.report("moe", Code::Inconsistent, message, "`experts_per_token` is at most `experts`");
        }
        if let Some(leading) = self.leading_dense_layers.filter(|leading| *leading >= layers) {
            let message = format!("all {layers} layers are dense with {leading} leading ones");
            reader.report(
                "moe",
                Code::Inconsistent,
                message,
                "`leading_dense_layers` is below `layers`; leave `moe` out for a dense model",
            );
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
