//! Attention of one layer: heads, windows, biases, latent vectors.

use super::family::Windows;
use super::{CODE, Config, Family, Importer, Kind};
use crate::catalog::model::{Attention, Gate, Indexer, Latent, Mixer, QkNorm, Span};
use crate::diagnostics::Code;

pub(super) const HEADS: &[&str] = &["num_attention_heads", "n_heads", "n_head", "num_heads"];
pub(super) const KV_HEADS: &[&str] =
    &["num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "kv_n_heads", "n_kv_heads"];
pub(super) const WINDOW: &[&str] = &["sliding_window", "sliding_window_size", "attention_chunk_size"];
const HEAD_DIM: &[&str] = &["head_dim", "attention_head_dim", "kv_channels"];

/// What the attention of all layers of a model has in common.
pub(super) struct Common {
    full: Attention,
    windowed: Attention,
}

impl Common {
    pub(super) fn read(importer: &Importer<'_>, hidden: u32) -> Self {
        let family = &importer.family;
        let full = importer.attention(hidden);
        let mut windowed = full;
        if importer.has_windows() {
            windowed.span = if family.windows == Windows::Chunks { Span::Chunk } else { Span::Window };
            windowed.window = importer.get(WINDOW);
        }
        let mut common = Self { full, windowed };
        if family.kind == Kind::Gemma4 {
            let config = importer.config;
            common.full.head_dim = config.get(&["global_head_dim"]);
            common.full.value_dim = common.full.head_dim;
            common.full.kv_heads = config.optional(&["num_global_key_value_heads"]).unwrap_or(full.kv_heads);
            common.full.keys_as_values = config.flag(&["attention_k_eq_v"]).unwrap_or(false);
        }
        common
    }

    pub(super) fn mixer(&self, importer: &Importer<'_>, windowed: bool) -> Mixer {
        let attention = if windowed { self.windowed } else { self.full };
        // A window of at least the longest sequence never closes.
        let longest = importer.config.optional(&["max_position_embeddings"]);
        let never = attention.span == Span::Window && longest.is_some_and(|longest| attention.window >= longest);
        Mixer::Attention(if never { Attention { span: Span::Full, window: 0, ..attention } } else { attention })
    }
}

impl Importer<'_> {
    /// Full attention by the keys that most families share.
    pub(super) fn attention(&self, hidden: u32) -> Attention {
        let (config, family) = (self.config, &self.family);
        let heads = self.get(HEADS);
        let head_dim = self.head_dim(hidden, heads);
        if let Some(types) = config.list(&["attn_type_list"]) {
            // MiniMax: 1 is attention, 0 linear attention.
            if types.iter().any(|node| node.value != crate::document::Value::Integer(1)) {
                config.refuse("attn_type_list", "layers of linear attention of this kind");
            }
        }
        let attention = Attention {
            heads,
            kv_heads: self.kv_heads(heads),
            head_dim,
            value_dim: config.optional(&["v_head_dim"]).unwrap_or(head_dim),
            ..biased(config, family)
        };
        Attention { qk_norm: self.qk_norm(), gate: self.gate(), sinks: self.is("gpt_oss"), ..attention }
    }

    fn is(&self, model_type: &str) -> bool {
        self.config.text(&["model_type"]).or_else(|| self.outer.text(&["model_type"])) == Some(model_type)
    }

    /// Channels of a head: the key for it, or the hidden width over the heads, as every family's code has it.
    fn head_dim(&self, hidden: u32, heads: u32) -> u32 {
        if let Some(head_dim) = self.optional(HEAD_DIM) {
            return head_dim;
        }
        if !hidden.is_multiple_of(heads) {
            let message =
                format!("the hidden width {hidden} is no multiple of {heads} heads, and no `head_dim` is given");
            self.config.report(HEADS, Code::Inconsistent, message, "give the channels of a head in `head_dim`");
        }
        (hidden / heads).max(1)
    }

    /// Key and value heads. Falcon and GPT-BigCode have one with `multi_query`, whatever the other keys say; Falcon's new
    /// form has as many as `num_kv_heads`.
    fn kv_heads(&self, heads: u32) -> u32 {
        let config = self.config;
        let grouped = self.optional(KV_HEADS);
        if let Some(inner) = config.table("attn_config") {
            inner.node(&["attn_type", "attn_impl", "alibi", "clip_qkv", "qk_ln"]);
            if let Some(kv_heads) = inner.optional(&["kv_n_heads"]) {
                return kv_heads;
            }
        }
        let multi_query = config.flag(&["multi_query"]);
        let new = config.flag(&["new_decoder_architecture"]).unwrap_or(false);
        match (multi_query, config.flag(&["multi_query_attention"])) {
            (Some(true), _) if !new => 1,
            (_, Some(false)) => heads,
            _ => grouped.unwrap_or_else(|| {
                config.fill(KV_HEADS, &heads.to_string(), CODE);
                heads
            }),
        }
    }

    fn qk_norm(&self) -> QkNorm {
        let config = self.config;
        let family = &self.family;
        match config.flag(&["use_qk_norm", "qk_layernorm"]) {
            // Llama 4's has no parameters.
            Some(_) if family.windows == Windows::Chunks => QkNorm::None,
            Some(false) => QkNorm::None,
            Some(true) if family.qk_norm == QkNorm::None => {
                // Cohere norms all heads together, GLM each.
                if family.norms == 1 { QkNorm::Full } else { QkNorm::Head }
            }
            _ => family.qk_norm,
        }
    }

    fn gate(&self) -> Gate {
        let config = self.config;
        if config.flag(&["use_head_wise_attn_gate"]).unwrap_or(false) {
            return Gate::Head;
        }
        match config.flag(&["attn_output_gate"]) {
            Some(true) => Gate::Channel,
            None if self.family.kind == Kind::GatedDelta => Gate::Channel,
            _ => Gate::None,
        }
    }

    /// Whether any layer has a window.
    fn has_windows(&self) -> bool {
        let config = self.config;
        let switched_off = config.flag(&["use_sliding_window"]) == Some(false);
        let given = config.node(WINDOW).is_some();
        match self.family.windows {
            Windows::None => config.node(&["layer_types"]).is_some() && given,
            Windows::All => given && !switched_off,
            Windows::FromLayer => given && config.flag(&["use_sliding_window"]) == Some(true),
            Windows::AllButEvery(_) | Windows::Chunks => !switched_off,
        }
    }

    /// Of each layer whether its attention has a window.
    pub(super) fn windowed(&self, layers: u32) -> Vec<bool> {
        let config = self.config;
        // EXAONE writes its pattern in letters, which `layer_types` repeats.
        let pattern = &["sliding_window_pattern"];
        let in_letters = config.node(pattern).is_some_and(|node| node.as_str().is_some());
        let pattern = if in_letters { None } else { config.count(pattern) };
        if !self.has_windows() {
            config.node(&["layer_types"]);
            return vec![false; layers as usize];
        }
        if let Some(types) = config.list(&["layer_types"]) {
            return self.listed(types, layers);
        }
        let every = |period: u32| (1..=layers).map(|layer| !layer.is_multiple_of(period.max(1))).collect();
        match self.family.windows {
            Windows::None => vec![false; layers as usize],
            Windows::All => vec![true; layers as usize],
            Windows::FromLayer => {
                let first = config.get(&["max_window_layers"]);
                (0..layers).map(|layer| layer >= first).collect()
            }
            Windows::AllButEvery(period) => {
                let period = pattern.filter(|period| *period > 0).unwrap_or_else(|| {
                    config.fill(&["sliding_window_pattern"], &period.to_string(), CODE);
                    period
                });
                every(period)
            }
            Windows::Chunks => match config.list(&["no_rope_layers"]).filter(|list| !list.is_empty()) {
                Some(list) => self.flags("no_rope_layers", list, layers, 1),
                None => every(config.optional(&["nope_layer_interval", "no_rope_layer_interval"]).unwrap_or(4)),
            },
        }
    }

    fn listed(&self, types: &[crate::document::Node], layers: u32) -> Vec<bool> {
        self.of_each_layer("layer_types", types, layers);
        types
            .iter()
            .map(|node| match node.as_str() {
                Some("sliding_attention" | "chunked_attention") => true,
                Some("full_attention" | "attention" | "global_attention") => false,
                other => {
                    let kind = other.unwrap_or("something that is no text").to_owned();
                    self.config.refuse("layer_types", &format!("layers of type \"{kind}\""));
                    false
                }
            })
            .collect()
    }

    /// Of each layer whether a list of numbers has that number there.
    pub(super) fn flags(&self, key: &str, list: &[crate::document::Node], layers: u32, yes: i64) -> Vec<bool> {
        self.of_each_layer(key, list, layers);
        list.iter().map(|node| node.value == crate::document::Value::Integer(yes)).collect()
    }

    /// Reports a list that has not one entry a layer.
    pub(super) fn of_each_layer(&self, key: &str, list: &[crate::document::Node], layers: u32) {
        if list.len() != layers as usize {
            let message = format!("`{key}` lists {} layers, and there are {layers}", list.len());
            self.config.report(&[key], Code::Inconsistent, message, "it has one entry a layer");
        }
    }

    /// Latent attention of each layer. A layer that shares the indexer of another has neither its weights nor its keys.
    pub(super) fn latents(&self, layers: u32) -> Vec<Latent> {
        let latent = self.latent();
        self.config.node(&["layer_types"]);
        let Some(types) = self.config.list(&["indexer_types"]) else { return vec![latent; layers as usize] };
        self.of_each_layer("indexer_types", types, layers);
        let shares = |node: &crate::document::Node| node.as_str() == Some("shared");
        types.iter().map(|node| if shares(node) { Latent { indexer: None, ..latent } } else { latent }).collect()
    }

    /// Multi-head latent attention.
    fn latent(&self) -> Latent {
        let config = self.config;
        let rope_dim = config.get(&["qk_rope_head_dim"]);
        let nope_dim = config.get(&["qk_nope_head_dim"]);
        config.node(&["head_dim", "qk_head_dim", "num_key_value_heads"]);
        config.refuse_unless_off("attention_bias", "biases of latent attention");
        let index_heads = config.optional(&["index_n_heads"]);
        let indexer = index_heads.map(|heads| Indexer {
            heads,
            head_dim: config.get(&["index_head_dim"]),
            selected: config.optional(&["index_topk"]),
        });
        Latent {
            heads: config.get(HEADS),
            query_rank: config.optional(&["q_lora_rank"]),
            rank: config.get(&["kv_lora_rank"]),
            nope_dim,
            rope_dim,
            value_dim: config.optional(&["v_head_dim"]).unwrap_or_else(|| {
                config.fill(&["v_head_dim"], &nope_dim.to_string(), CODE);
                nope_dim
            }),
            indexer,
        }
    }
}

/// Biases of the projections.
fn biased(config: &Config<'_>, family: &Family) -> Attention {
    let keys = &["attention_bias", "add_qkv_bias", "use_qkv_bias", "qkv_bias", "use_bias", "bias"];
    let key = config.flag(keys);
    let no_bias = config.flag(&["no_bias"]);
    let input_biases = match (key, no_bias) {
        // Qwen's first models keep these biases under `no_bias`.
        (Some(biases), _) => biases,
        (None, Some(true)) if !family.gated => false,
        _ => family.input_biases,
    };
    let output = match family.output_bias {
        Some(bias) => bias,
        // ChatGLM and GPT-J have none behind attention.
        None => key.unwrap_or(family.input_biases),
    };
    let output_bias = config.flag(&["add_bias_linear", "attention_out_bias"]).unwrap_or(output);
    Attention { input_biases, output_bias, ..Attention::default() }
}
