//! A Hugging Face style configuration as a model: offline, and never by a guess.
//!
//! A configuration says only a part of a model's shape; the rest is in the family's published code, which `family` has.
//! What neither says is filled from the family's configuration class and listed. What a model cannot hold is refused by
//! the name of its key, and so is every key that was not asked for and whose name says that it changes the shape.

mod attention;
mod catalog_file;
mod config;
mod context;
mod family;
mod feed;
mod hybrid;
mod inert;
mod quantisation;
mod tower;

use crate::catalog::model::{Block, Feed, Field, Mixer, Mlp, Model, Norm, Tower};
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean};
use crate::document::Node;

use attention::Common;
pub use config::Fill;
use config::{CLASS, CODE, Config};
use family::{Family, KNOWN, Kind, UNMODELLED, family};

/// A model read from a configuration, and what was taken for what it leaves open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The model.
    pub model: Model,
    /// The family: the configuration's `model_type`.
    pub family: String,
    /// What was filled.
    pub fills: Vec<Fill>,
}

/// More layers than any model has; a typing error stays one and does not fill memory.
const MOST_LAYERS: u32 = 10_000;

const LAYERS: &[&str] = &["num_hidden_layers", "n_layers", "n_layer", "num_layers"];
/// Layers that predict further tokens; none where nothing is said of them.
const PREDICTION: &[&str] = &["num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"];
const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "n_embed", "hidden_dim"];

/// The table of the language model inside a configuration that wraps one, by the names that wrappers give it.
const WRAPPED: &[&str] = &["text_config", "llm_config", "language_config", "thinker_config"];

/// Families that wrap the language model of another.
const WRAPPERS: &[&str] = &[
    "llava",
    "llava_next",
    "gemma3",
    "gemma4",
    "llama4",
    "mllama",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_5",
    "qwen3_5_moe",
    "kimi_k25",
    "mistral3",
    "internvl_chat",
    "qwen3_omni_moe",
    "qwen2_5_omni",
];

/// Reads a configuration, with the `hf_quant_config.json` beside it where there is one; mistakes go to the sink.
pub fn import(root: &Node, quantisation: Option<&Node>, sink: &Sink) -> Option<Imported> {
    let outer = Config::new(root, "", sink)?;
    let mut inner = WRAPPED.iter().find_map(|key| outer.table(key));
    if let Some(deeper) = inner.as_ref().and_then(|config| config.table("text_config")) {
        inner = Some(deeper);
    }
    let nested = inner.is_some();
    let wrapper = outer.text(&["model_type"]);
    let config = inner.as_ref().unwrap_or(&outer);
    let Some(name) = config.text(&["model_type"]).or(wrapper) else {
        config.missing(&["model_type"]);
        return None;
    };
    let known_wrapper = wrapper.is_none_or(|name| !nested || WRAPPERS.contains(&name));
    let Some(family) = family(name).filter(|_| known_wrapper) else {
        let unknown = if known_wrapper { name } else { wrapper.unwrap_or(name) };
        if let Some((_, why)) = UNMODELLED.iter().find(|(known, _)| *known == unknown) {
            let message = format!("the architecture `{unknown}` is not modelled: {why}");
            config.report(&["model_type"], Code::Unsupported, message, "no figure is given that leaves a part out");
            return None;
        }
        let hint = did_you_mean(unknown, KNOWN.iter().copied()).map_or_else(
            || format!("known are {}; a model can also be described in a catalog file", KNOWN.join(", ")),
            |close| format!("`{close}` is known: use it only if this is the same architecture"),
        );
        let message = format!("the architecture `{unknown}` is not known");
        config.report(&["model_type"], Code::Unsupported, message, hint);
        return None;
    };
    let before = sink.len();
    let mut model = Importer { config, outer: &outer, family, nested }.model();
    model.formats = quantisation::formats(&outer, config, quantisation, &model, sink);
    if let Some(vision) = outer.table("vision_config") {
        model.towers.extend(tower::vision(&vision, &outer, &model));
    }
    if let Some(audio) = outer.node(&["audio_config"]).filter(|_| name.starts_with("gemma4")) {
        let refused =
            Diagnostic::new(Code::Unsupported, "`audio_config`: the weights of an audio tower are not modelled");
        sink.push(refused.at(&audio.at, "").hint("remove the table to count the model without it"));
    }
    if sink.len() == before {
        config.finish();
        report_problems(config, &model);
    }
    let fills = [outer.take_fills(), if nested { config.take_fills() } else { Vec::new() }].concat();
    Some(Imported { model, family: name.to_owned(), fills })
}

fn report_problems(config: &Config<'_>, model: &Model) {
    for problem in model.problems() {
        let keys: &[&str] = match problem.field {
            Field::Layers | Field::Order => LAYERS,
            Field::Hidden => HIDDEN,
            Field::Heads => attention::HEADS,
            Field::KvHeads => attention::KV_HEADS,
            Field::Window => attention::WINDOW,
            Field::Experts => feed::PER_TOKEN,
        };
        config.report(keys, problem.code, problem.message, problem.hint);
    }
}

/// Reads one configuration by the rules of its family.
struct Importer<'a> {
    config: &'a Config<'a>,
    outer: &'a Config<'a>,
    family: Family,
    nested: bool,
}

impl Importer<'_> {
    fn model(&self) -> Model {
        let Self { config, outer, family, .. } = self;
        self.refuse_foreign_parts();
        let hidden = self.get(HIDDEN);
        config.node(&["vocab_size"]);
        let padded = config.optional(&["padded_vocab_size"]);
        let vocab = padded.unwrap_or_else(|| self.get(&["vocab_size"]));
        let tie = &["tie_word_embeddings", "tie_embedding", "weight_tying"];
        let tied = config.flag(tie).or_else(|| outer.flag(tie)).unwrap_or_else(|| {
            config.fill(tie, if family.tied { "true" } else { "false" }, CLASS);
            family.tied
        });
        let norm = self.norm();
        let head_bias = config.flag(&["lm_head_bias"]).unwrap_or(family.head_bias);
        let positions = &["n_positions", "max_position_embeddings"];
        let learned_positions = family.positions.map(|beyond| config.get(positions).saturating_add(beyond));
        // Lists and patterns that name every layer say how many there are.
        let letters =
            if family.kind == Kind::NemotronH && config.node(LAYERS).is_none() { self.letters() } else { None };
        let layers =
            letters.and_then(|all| u32::try_from(all.chars().count()).ok()).unwrap_or_else(|| self.get(LAYERS));
        let (mut blocks, mut order) = (Vec::new(), Vec::new());
        if layers > MOST_LAYERS {
            let hint = "the most that is taken; the largest published models have a few hundred";
            config.report(LAYERS, Code::OutOfRange, format!("{layers} layers are more than {MOST_LAYERS}"), hint);
        } else {
            (blocks, order) = group(self.layers(layers, hidden));
        }
        // Tables of the embedding have eight more entries, for images.
        let extra = if family.kind == Kind::Mllama { 8 * u64::from(hidden) } else { 0 };
        let towers = if extra > 0 {
            vec![Tower { name: "embeddings of image tokens".to_owned(), parameters: extra }]
        } else {
            Vec::new()
        };
        Model {
            hidden,
            vocab,
            tied_embeddings: tied,
            head_bias,
            norm,
            embedding_norm: family.embedding_norm,
            learned_positions,
            max_context: context::longest(config, outer, self.nested),
            prediction_layers: config.count(PREDICTION).unwrap_or(0),
            blocks,
            order,
            towers,
            ..Model::default()
        }
    }

    /// Parts that no family here has.
    fn refuse_foreign_parts(&self) {
        let config = self.config;
        for (key, what) in [
            ("add_cross_attention", "cross-attention to an encoder"),
            ("is_encoder_decoder", "an encoder beside the decoder"),
            ("compress_ratios", "caches compressed along the sequence"),
            ("linear_attn_config", "linear attention of this kind"),
            ("num_kv_shared_layers", "layers that use the cache of another"),
            ("hidden_size_per_layer_input", "embeddings of each layer"),
            ("use_double_wide_mlp", "MLPs of two widths"),
            ("hc_mult", "several residual streams"),
            ("o_lora_rank", "an output projection in two steps"),
        ] {
            config.refuse_unless_off(key, what);
        }
    }

    fn norm(&self) -> Norm {
        let config = self.config;
        // ChatGLM says which it has, MPT and others whether there are biases at all.
        match (config.flag(&["rmsnorm"]), config.flag(&["no_bias"])) {
            (Some(false), _) => Norm::LayerNorm,
            (_, Some(false)) if self.family.norm == Norm::LayerNormWeight => Norm::LayerNorm,
            _ => self.family.norm,
        }
    }

    /// A dimension: from the configuration, or, in a table inside another, from the family's configuration class, which
    /// writes only what differs from it.
    fn get(&self, keys: &[&str]) -> u32 {
        let default = self.family.defaults.iter().find(|(key, _)| self.nested && keys.contains(key));
        match default {
            Some((_, value)) => self.config.or(keys, *value, CLASS),
            None => self.config.get(keys),
        }
    }

    /// Like [`Importer::get`], and none where neither says.
    fn optional(&self, keys: &[&str]) -> Option<u32> {
        let default = self.family.defaults.iter().find(|(key, _)| self.nested && keys.contains(key));
        match default {
            Some((_, value)) => Some(self.config.or(keys, *value, CLASS)),
            None => self.config.optional(keys),
        }
    }

    /// Each layer as a block of one.
    fn layers(&self, layers: u32, hidden: u32) -> Vec<Block> {
        match self.family.kind {
            Kind::NemotronH => self.nemotron_h(layers),
            Kind::Jamba => self.jamba(layers, hidden),
            Kind::NemotronNas => self.nemotron_nas(layers, hidden),
            Kind::GatedDelta => self.gated_delta(layers, hidden),
            Kind::Mllama => self.mllama(layers, hidden),
            Kind::MiMoV2 => self.mimo_v2(layers),
            Kind::Latent => {
                let (latents, feeds) = (self.latents(layers), self.feeds(layers, hidden));
                let norms = self.family.norms;
                latents
                    .into_iter()
                    .zip(feeds)
                    .map(|(latent, feed)| Block {
                        layers: 1,
                        norms,
                        mixer: Mixer::Latent(latent),
                        feed,
                        ..Block::default()
                    })
                    .collect()
            }
            Kind::Common | Kind::Gemma4 => {
                let common = Common::read(self, hidden);
                let feeds = self.feeds(layers, hidden);
                let windowed = self.windowed(layers);
                let mixers = windowed.into_iter().map(|windowed| common.mixer(self, windowed));
                let mut blocks: Vec<Block> = mixers
                    .zip(feeds)
                    .map(|(mixer, feed)| Block { layers: 1, norms: self.norms(), mixer, feed, ..Block::default() })
                    .collect();
                if self.family.kind == Kind::Gemma4 {
                    for block in &mut blocks {
                        gemma4_extras(block, hidden);
                    }
                }
                blocks
            }
        }
    }

    /// Norms of a layer. Falcon has one where attention and MLP stand side by side in the old form.
    fn norms(&self) -> u32 {
        let config = self.config;
        let new = config.flag(&["new_decoder_architecture"]);
        match config.flag(&["parallel_attn"]) {
            Some(true) if new != Some(true) => 1,
            _ => self.family.norms,
        }
    }

    /// The MLP of a layer without experts, with that inner width.
    fn mlp(&self, ffn: u32) -> Mlp {
        let config = self.config;
        let biases = config.flag(&["mlp_bias", "add_bias_linear", "use_bias", "bias"]);
        let biases = biases.unwrap_or(self.family.mlp_biases);
        let gated = match config.text(&["mlp_type"]) {
            Some("gated") => true,
            _ => self.family.gated,
        };
        Mlp { ffn, gated, biases }
    }
}

/// Gemma 4's scale of a layer; with experts, three more norms, and the router's scales of channels and of experts.
fn gemma4_extras(block: &mut Block, hidden: u32) {
    block.scalars = 1;
    if let Feed::Moe(moe) = block.feed {
        block.norms += 3;
        block.scalars += hidden + moe.experts;
    }
}

/// Equal layers together, in the order of their first; and the order of layers, unless the blocks simply follow each other.
fn group(layers: Vec<Block>) -> (Vec<Block>, Vec<u32>) {
    let mut blocks: Vec<(Block, bool)> = Vec::new();
    let mut order = Vec::new();
    let mut before = None;
    for layer in layers {
        let found = blocks.iter().position(|(block, _)| Block { layers: 1, ..*block } == layer);
        if let Some(index) = found {
            blocks[index].0.layers += 1;
            // Layers of one kind that stand apart from each other.
            blocks[index].1 &= before == Some(index);
            before = Some(index);
        } else {
            blocks.push((layer, true));
            before = Some(blocks.len() - 1);
        }
        order.extend(before.and_then(|index| u32::try_from(index + 1).ok()));
    }
    if blocks.iter().all(|(_, together)| *together) {
        order.clear();
    }
    let several = blocks.len() > 1;
    let whole = |index: usize, blocks: &[(Block, bool)]| blocks[..=index].iter().all(|(_, together)| *together);
    let leading: Vec<bool> =
        (0..blocks.len()).map(|index| several && index + 1 < blocks.len() && whole(index, &blocks)).collect();
    let blocks = blocks.into_iter().zip(leading).map(|((block, _), leading)| Block { leading, ..block }).collect();
    (blocks, order)
}
