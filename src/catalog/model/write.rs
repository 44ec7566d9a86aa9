//! A model as the text of a catalog file, without its sources.

use std::fmt::Write as _;

use super::{Attention, Block, Compressed, Feed, Format, Formats, Gate, Indexer, Latent, Mixer, Mlp, Model, QkNorm, Span};

impl Model {
    /// The keys of a catalog file, blocks and all, without name and sources.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        line(&mut text, "hidden", self.hidden);
        line(&mut text, "vocab", self.vocab);
        line(&mut text, "tied_embeddings", self.tied_embeddings);
        line(&mut text, "norm", quoted(self.norm));
        if_set(&mut text, "head_bias", self.head_bias);
        if_set(&mut text, "embedding_norm", self.embedding_norm);
        let positions = self.learned_positions.unwrap_or(0);
        if_above(&mut text, "learned_positions", positions, 0);
        if_above(&mut text, "max_context", self.max_context.unwrap_or(0), 0);
        if_above(&mut text, "prediction_layers", self.prediction_layers, 0);
        for (key, count) in [
            ("published_parameters", self.published_parameters),
            ("published_active_parameters", self.published_active_parameters),
        ] {
            if let Some(count) = count {
                line(&mut text, key, count);
            }
        }
        if !self.order.is_empty() {
            line(&mut text, "order", format!("{:?}", self.order));
        }
        self.formats.write(&mut text);
        for block in &self.blocks {
            block.write(&mut text);
        }
        for tower in &self.towers {
            text.push_str("\n[[tower]]\n");
            line(&mut text, "name", quoted(&tower.name));
            line(&mut text, "parameters", tower.parameters);
        }
        text
    }

    /// The top-level keys that [`Model::to_toml`] writes, as a source names them.
    pub fn toml_keys(&self) -> Vec<&'static str> {
        let optional = [
            ("head_bias", self.head_bias),
            ("embedding_norm", self.embedding_norm),
            ("learned_positions", self.learned_positions.is_some()),
            ("max_context", self.max_context.is_some()),
            ("prediction_layers", self.prediction_layers > 0),
            ("published_parameters", self.published_parameters.is_some()),
            ("published_active_parameters", self.published_active_parameters.is_some()),
            ("order", !self.order.is_empty()),
            ("formats", self.formats != Formats::default()),
            ("tower", !self.towers.is_empty()),
        ];
        let always = ["hidden", "vocab", "tied_embeddings", "norm", "block"];
        always.into_iter().chain(optional.into_iter().filter(|(_, there)| *there).map(|(key, _)| key)).collect()
    }
}

fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn quoted(word: impl std::fmt::Display) -> String {
    format!("\"{word}\"")
}

fn if_set(text: &mut String, key: &str, value: bool) {
    if value {
        line(text, key, true);
    }
}

fn if_above(text: &mut String, key: &str, value: u32, default: u32) {
    if value != default {
        line(text, key, value);
    }
}

impl Formats {
    fn write(&self, text: &mut String) {
        if *self == Self::default() {
            return;
        }
        text.push_str("\n[formats]\n");
        line(text, "base", value(self.base));
        for (module, of) in &self.modules {
            line(text, module.word(), value(of.format));
        }
        for (key, format) in [("kv_cache", self.kv_cache), ("state", self.state), ("activations", self.activations)] {
            if let Some(format) = format {
                line(text, key, value(format));
            }
        }
        let kept: Vec<String> = self
            .modules
            .iter()
            .filter(|(_, of)| of.kept_layers > 0)
            .map(|(module, of)| format!("{module} = {}", of.kept_layers))
            .collect();
        if !kept.is_empty() {
            line(text, "kept_layers", format!("{{ {} }}", kept.join(", ")));
        }
    }
}

/// A format as a word, or as a table where it has no name.
fn value(format: Format) -> String {
    let word = format.to_string();
    if Format::named(&word) == Some(format) {
        return quoted(word);
    }
    format!("{{ number = \"{}\", group = {}, scale_bits = {} }}", format.number, format.group, format.scale_bits)
}

impl Block {
    fn write(&self, text: &mut String) {
        text.push_str("\n[[block]]\n");
        line(text, "layers", self.layers);
        if_set(text, "leading", self.leading);
        if_above(text, "norms", self.norms, Self::usual_norms(&self.mixer, &self.feed));
        if_above(text, "scalars", self.scalars, 0);
        match &self.mixer {
            Mixer::None => {}
            Mixer::Attention(attention) => attention.write(text),
            Mixer::Latent(latent) => latent.write(text),
            Mixer::Compressed(compressed) => compressed.write(text),
            Mixer::Mamba2(mamba) => {
                text.push_str("[block.mamba2]\n");
                line(text, "heads", mamba.heads);
                line(text, "head_dim", mamba.head_dim);
                line(text, "groups", mamba.groups);
                line(text, "state", mamba.state);
                line(text, "kernel", mamba.kernel);
                line(text, "conv_bias", mamba.conv_bias);
                line(text, "biases", mamba.biases);
            }
            Mixer::Mamba(mamba) => {
                text.push_str("[block.mamba]\n");
                line(text, "inner", mamba.inner);
                line(text, "state", mamba.state);
                line(text, "kernel", mamba.kernel);
                line(text, "step_rank", mamba.step_rank);
                line(text, "conv_bias", mamba.conv_bias);
                line(text, "biases", mamba.biases);
                line(text, "norms", mamba.norms);
            }
            Mixer::GatedDelta(delta) => {
                text.push_str("[block.gated_delta]\n");
                line(text, "key_heads", delta.key_heads);
                line(text, "value_heads", delta.value_heads);
                line(text, "key_dim", delta.key_dim);
                line(text, "value_dim", delta.value_dim);
                line(text, "kernel", delta.kernel);
            }
        }
        match &self.feed {
            Feed::None => {}
            Feed::Mlp(mlp) => {
                text.push_str("[block.mlp]\n");
                line(text, "ffn", mlp.ffn);
                line(text, "gated", mlp.gated);
                if_set(text, "biases", mlp.biases);
            }
            Feed::Moe(moe) => {
                text.push_str("[block.moe]\n");
                line(text, "experts", moe.experts);
                line(text, "per_token", moe.per_token);
                line(text, "expert", moe.expert.inline());
                if_above(text, "shared_ffn", moe.shared_ffn, 0);
                if_set(text, "shared_gate", moe.shared_gate);
                if_set(text, "router_bias", moe.router_bias);
                if_set(text, "correction_bias", moe.correction_bias);
                if_above(text, "latent", moe.latent, 0);
                if let Some(mlp) = moe.beside {
                    line(text, "beside", mlp.inline());
                }
            }
        }
    }
}

impl Mlp {
    fn inline(self) -> String {
        let biases = if self.biases { ", biases = true" } else { "" };
        format!("{{ ffn = {}, gated = {}{biases} }}", self.ffn, self.gated)
    }
}

impl Attention {
    fn write(&self, text: &mut String) {
        text.push_str("[block.attention]\n");
        line(text, "heads", self.heads);
        line(text, "kv_heads", self.kv_heads);
        line(text, "head_dim", self.head_dim);
        if_above(text, "value_dim", self.value_dim, self.head_dim);
        if self.span != Span::Full {
            line(text, "span", quoted(self.span));
        }
        if_above(text, "window", self.window, 0);
        if_set(text, "input_biases", self.input_biases);
        if_set(text, "output_bias", self.output_bias);
        if self.qk_norm != QkNorm::None {
            line(text, "qk_norm", quoted(self.qk_norm));
        }
        if_set(text, "sinks", self.sinks);
        if self.gate != Gate::None {
            line(text, "gate", quoted(self.gate));
        }
        if_set(text, "keys_as_values", self.keys_as_values);
    }
}

impl Indexer {
    fn inline(self) -> String {
        let selected = self.selected.map_or_else(String::new, |count| format!(", selected = {count}"));
        format!("{{ heads = {}, head_dim = {}{selected} }}", self.heads, self.head_dim)
    }
}

impl Compressed {
    fn write(&self, text: &mut String) {
        text.push_str("[block.compressed]\n");
        line(text, "heads", self.heads);
        line(text, "head_dim", self.head_dim);
        line(text, "query_rank", self.query_rank);
        line(text, "ratio", self.ratio);
        line(text, "window", self.window);
        line(text, "output_groups", self.output_groups);
        line(text, "output_rank", self.output_rank);
        if let Some(indexer) = self.indexer {
            line(text, "indexer", indexer.inline());
        }
    }
}

impl Latent {
    fn write(&self, text: &mut String) {
        text.push_str("[block.latent]\n");
        line(text, "heads", self.heads);
        if let Some(rank) = self.query_rank {
            line(text, "query_rank", rank);
        }
        line(text, "rank", self.rank);
        line(text, "nope_dim", self.nope_dim);
        line(text, "rope_dim", self.rope_dim);
        line(text, "value_dim", self.value_dim);
        if let Some(indexer) = self.indexer {
            line(text, "indexer", indexer.inline());
        }
    }
}
