//! Families whose layers differ: recurrent layers between attention, described layers, cross-attention.

use super::attention::HEADS;
use super::{CODE, Importer};
use crate::catalog::model::{Attention, Block, Feed, GatedDelta, Mamba, Mamba2, Mixer, Mlp, Span};
use crate::diagnostics::Code;
use crate::document::{Node, Value};
use crate::units::to_integer;

impl Importer<'_> {
    /// Qwen3-Next and Qwen3.5.
    pub(super) fn gated_delta(&self, layers: u32, hidden: u32) -> Vec<Block> {
        let config = self.config;
        let attention = Mixer::Attention(self.attention(hidden));
        let delta = Mixer::GatedDelta(GatedDelta {
            key_heads: config.get(&["linear_num_key_heads"]),
            value_heads: config.get(&["linear_num_value_heads"]),
            key_dim: config.get(&["linear_key_head_dim"]),
            value_dim: config.get(&["linear_value_head_dim"]),
            kernel: config.get(&["linear_conv_kernel_dim"]),
        });
        let interval = config.optional(&["full_attention_interval"]);
        let full: Vec<bool> = match (config.list(&["layer_types"]), interval) {
            (Some(types), _) => {
                self.of_each_layer("layer_types", types, layers);
                types.iter().map(|node| self.is_full(node)).collect()
            }
            (None, Some(interval)) => (1..=layers).map(|layer| layer.is_multiple_of(interval)).collect(),
            (None, None) => {
                config.missing(&["layer_types", "full_attention_interval"]);
                Vec::new()
            }
        };
        let mixers = full.into_iter().map(|full| if full { attention } else { delta });
        mixers
            .zip(self.feeds(layers, hidden))
            .map(|(mixer, feed)| Block { layers: 1, norms: 2, mixer, feed, ..Block::default() })
            .collect()
    }

    fn is_full(&self, node: &Node) -> bool {
        match node.as_str() {
            Some("full_attention") => true,
            Some("linear_attention") => false,
            other => {
                let kind = other.unwrap_or("something that is no text").to_owned();
                self.config.refuse("layer_types", &format!("layers of type \"{kind}\""));
                false
            }
        }
    }

    /// A letter a layer, from a pattern of letters or from a list of words.
    pub(super) fn letters(&self) -> Option<String> {
        let config = self.config;
        let words = config.list(&["layers_block_type"]);
        let letter = |node: &Node| match node.as_str() {
            Some("mamba") => 'M',
            Some("attention") => '*',
            Some("moe") => 'E',
            Some("mlp") => '-',
            other => {
                config.refuse("layers_block_type", &format!("a layer `{}`", other.unwrap_or("that is no text")));
                '-'
            }
        };
        let pattern = config.text(&["hybrid_override_pattern"]).map(str::to_owned);
        pattern.or_else(|| words.map(|words| words.iter().map(letter).collect()))
    }

    /// Nemotron-H: one letter a layer, each with one norm.
    pub(super) fn nemotron_h(&self, layers: u32) -> Vec<Block> {
        let config = self.config;
        config.node(&["mtp_layers_block_type"]);
        let Some(pattern) = self.letters() else {
            config.missing(&["hybrid_override_pattern", "layers_block_type"]);
            return Vec::new();
        };
        if pattern.chars().count() != layers as usize {
            let message = format!("the pattern has {} layers, and there are {layers}", pattern.chars().count());
            config.report(&["hybrid_override_pattern"], Code::Inconsistent, message, "it has one letter a layer");
        }
        config.node(&["expand"]);
        let head_dim = config.get(&["attention_head_dim", "head_dim"]);
        let biases = config.flag(&["attention_bias"]).unwrap_or(false);
        let attention = Attention {
            heads: config.get(HEADS),
            kv_heads: config.get(&["num_key_value_heads"]),
            head_dim,
            value_dim: head_dim,
            input_biases: biases,
            output_bias: biases,
            ..Attention::default()
        };
        let mamba = Mamba2 {
            heads: config.get(&["mamba_num_heads"]),
            head_dim: config.get(&["mamba_head_dim"]),
            groups: config.get(&["n_groups"]),
            state: config.get(&["ssm_state_size"]),
            kernel: config.get(&["conv_kernel"]),
            conv_bias: config.flag_or(&["use_conv_bias"], true, super::CLASS),
            biases: config.flag(&["mamba_proj_bias", "use_bias"]).unwrap_or(false),
        };
        let moe = if pattern.contains('E') { self.moe() } else { None };
        let mlp = if pattern.contains('-') { Some(self.mlp(config.get(&["intermediate_size"]))) } else { None };
        config.node(&["intermediate_size", "use_bias"]);
        let layer = |letter| {
            let (mixer, feed) = match letter {
                'M' => (Mixer::Mamba2(mamba), Feed::None),
                '*' => (Mixer::Attention(attention), Feed::None),
                '-' => (Mixer::None, mlp.map_or(Feed::None, Feed::Mlp)),
                'E' => (Mixer::None, moe.map_or(Feed::None, Feed::Moe)),
                other => {
                    config.refuse("hybrid_override_pattern", &format!("a layer `{other}`"));
                    (Mixer::None, Feed::None)
                }
            };
            Block { layers: 1, norms: 1, mixer, feed, ..Block::default() }
        };
        pattern.chars().map(layer).collect()
    }

    /// Jamba.
    pub(super) fn jamba(&self, layers: u32, hidden: u32) -> Vec<Block> {
        let config = self.config;
        let attention = Mixer::Attention(self.attention(hidden));
        let mamba = Mixer::Mamba(Mamba {
            inner: hidden.saturating_mul(config.get(&["mamba_expand"])),
            state: config.get(&["mamba_d_state"]),
            kernel: config.get(&["mamba_d_conv"]),
            step_rank: config.get(&["mamba_dt_rank"]),
            conv_bias: config.flag_or(&["mamba_conv_bias"], true, super::CLASS),
            biases: config.flag(&["mamba_proj_bias"]).unwrap_or(false),
            norms: true,
        });
        let (period, offset) = (config.get(&["attn_layer_period"]), config.count(&["attn_layer_offset"]).unwrap_or(0));
        self.feeds(layers, hidden)
            .into_iter()
            .zip(0..layers)
            .map(|(feed, layer)| {
                let mixer = if layer % period == offset { attention } else { mamba };
                Block { layers: 1, norms: 2, mixer, feed, ..Block::default() }
            })
            .collect()
    }

    /// Llama-Nemotron: attention and MLP of each layer are described, and may be left out.
    pub(super) fn nemotron_nas(&self, layers: u32, hidden: u32) -> Vec<Block> {
        let config = self.config;
        let Some(described) = config.list(&["block_configs"]) else {
            config.missing(&["block_configs"]);
            return Vec::new();
        };
        self.of_each_layer("block_configs", described, layers);
        let heads = self.get(HEADS);
        let head_dim = (hidden / heads).max(1);
        described.iter().map(|node| self.described(node, hidden, heads, head_dim)).collect()
    }

    fn described(&self, node: &Node, hidden: u32, heads: u32, head_dim: u32) -> Block {
        let on = |path: &str| node.at_path(path).is_some_and(|node| node.value == Value::Boolean(true));
        let number = |path: &str| match node.at_path(path).map(|node| &node.value) {
            Some(Value::Integer(number)) => Some(*number as f64),
            Some(Value::Float(number)) => Some(*number),
            _ => None,
        };
        for key in ["attention.replace_with_linear", "ffn.replace_with_linear"] {
            if on(key) {
                self.config.refuse("block_configs", "a layer replaced by one projection");
            }
        }
        let (mut mixer, mut feed, mut norms) = (Mixer::None, Feed::None, 0);
        if !on("attention.no_op") {
            let group = number("attention.n_heads_in_group").unwrap_or(0.0);
            if group < 1.0 || f64::from(heads) % group > 0.0 {
                self.config.refuse("block_configs", "attention without `n_heads_in_group` that divides the heads");
            }
            let kv_heads = to_integer::<u32>(f64::from(heads) / group.max(1.0));
            mixer =
                Mixer::Attention(Attention { heads, kv_heads, head_dim, value_dim: head_dim, ..Attention::default() });
            norms += 1;
        }
        if !on("ffn.no_op") {
            match number("ffn.ffn_mult").filter(|mult| (0.0..1e4).contains(mult)) {
                None => self.config.refuse("block_configs", "an MLP without `ffn_mult`"),
                Some(mult) => {
                    // As the published code rounds it: two thirds, up to a multiple of 256.
                    let width = to_integer::<u64>(2.0 * mult * f64::from(hidden) / 3.0);
                    let ffn = u32::try_from(width.div_ceil(256) * 256).unwrap_or(u32::MAX).max(1);
                    feed = Feed::Mlp(Mlp { ffn, gated: true, biases: false });
                    norms += 1;
                }
            }
        }
        Block { layers: 1, norms, mixer, feed, ..Block::default() }
    }

    /// Llama 3.2 Vision: some layers attend to the image, with normed queries and keys and two gates.
    pub(super) fn mllama(&self, layers: u32, hidden: u32) -> Vec<Block> {
        let config = self.config;
        let attention = self.attention(hidden);
        let feeds = self.feeds(layers, hidden);
        let cross = config.list(&["cross_attention_layers"]).unwrap_or_else(|| {
            config.missing(&["cross_attention_layers"]);
            &[]
        });
        let is_cross = |layer: u32| cross.iter().any(|node| node.value == Value::Integer(i64::from(layer)));
        let of_image = Attention { span: Span::Cross, qk_norm: crate::catalog::model::QkNorm::Head, ..attention };
        (0..layers)
            .zip(feeds)
            .map(|(layer, feed)| {
                let (mixer, scalars) = if is_cross(layer) { (of_image, 2) } else { (attention, 0) };
                Block { layers: 1, norms: 2, scalars, mixer: Mixer::Attention(mixer), feed, ..Block::default() }
            })
            .collect()
    }

    /// MiMo-V2: windowed layers have heads of their own.
    pub(super) fn mimo_v2(&self, layers: u32) -> Vec<Block> {
        let config = self.config;
        config.node(&["attention_chunk_size", "attention_bias"]);
        let heads = |heads: &[&str], kv_heads: &[&str], key: &[&str], value: &[&str]| Attention {
            heads: config.get(heads),
            kv_heads: config.get(kv_heads),
            head_dim: config.get(key),
            value_dim: config.get(value),
            ..Attention::default()
        };
        let sinks = |key: &str| config.flag(&[key]).unwrap_or(false);
        let full = Attention {
            sinks: sinks("add_full_attention_sink_bias"),
            ..heads(HEADS, &["num_key_value_heads"], &["head_dim"], &["v_head_dim"])
        };
        let windowed = Attention {
            sinks: sinks("add_swa_attention_sink_bias"),
            span: Span::Window,
            window: config.get(super::attention::WINDOW),
            ..heads(&["swa_num_attention_heads"], &["swa_num_key_value_heads"], &["swa_head_dim"], &["swa_v_head_dim"])
        };
        let Some(pattern) = config.list(&["hybrid_layer_pattern"]) else {
            config.missing(&["hybrid_layer_pattern"]);
            return Vec::new();
        };
        config.fill(&["meaning of 1 in `hybrid_layer_pattern`"], "a window", CODE);
        self.flags("hybrid_layer_pattern", pattern, layers, 1)
            .into_iter()
            .zip(self.feeds(layers, 0))
            .map(|(window, feed)| {
                let mixer = Mixer::Attention(if window { windowed } else { full });
                Block { layers: 1, norms: 2, mixer, feed, ..Block::default() }
            })
            .collect()
    }
}
