//! Weights of vision towers and of their projectors into the language model.

use super::Config;
use crate::catalog::model::{Model, Tower};

/// Parameters of a projection with a bias.
fn linear(inputs: u64, outputs: u64) -> u64 {
    inputs.saturating_mul(outputs).saturating_add(outputs)
}

/// A vision transformer: layers of attention and a two-layer MLP with biases, two norms with biases each.
struct Vit {
    hidden: u64,
    layers: u64,
    ffn: u64,
    patch: u64,
}

impl Vit {
    fn read(config: &Config<'_>) -> Self {
        let get = |keys: &[&str]| u64::from(config.get(keys));
        let hidden = get(&["embed_dim", "vt_hidden_size", "hidden_size"]);
        config.node(&["hidden_size", "num_attention_heads", "num_heads", "attention_heads", "vt_num_attention_heads"]);
        let ffn = match config.optional(&["intermediate_size", "vt_intermediate_size"]) {
            Some(ffn) => u64::from(ffn),
            None => hidden.saturating_mul(get(&["mlp_ratio"])),
        };
        Self {
            hidden,
            layers: get(&["num_hidden_layers", "depth", "vt_num_hidden_layers"]),
            ffn,
            patch: get(&["patch_size"]),
        }
    }

    fn layer(&self) -> u64 {
        4 * linear(self.hidden, self.hidden)
            + linear(self.hidden, self.ffn)
            + linear(self.ffn, self.hidden)
            + 4 * self.hidden
    }

    /// Numbers of a patch of three colours, over so many frames.
    fn pixels(&self, frames: u64) -> u64 {
        3 * frames * self.patch * self.patch
    }

    fn patches(&self, image: u64) -> u64 {
        (image / self.patch.max(1)).pow(2)
    }
}

/// The towers that a `vision_config` describes, for a language model of that shape.
///
/// Counts follow each family's published code; CLIP with LLaVA's projector and Qwen2-VL's come to the published totals.
pub(super) fn vision(config: &Config<'_>, outer: &Config<'_>, model: &Model) -> Vec<Tower> {
    let stated = config.text(&["model_type"]).filter(|kind| !kind.is_empty());
    let kind = stated.or_else(|| outer.text(&["model_type"])).unwrap_or_default();
    let text = u64::from(model.hidden);
    let Some(parameters) = count(kind, config, text) else {
        config.refuse(
            "model_type",
            &format!(
                "the weights of a vision tower `{kind}`; remove `vision_config` to count the language model alone"
            ),
        );
        return Vec::new();
    };
    vec![Tower { name: "vision tower and projector".to_owned(), parameters }]
}

fn count(kind: &str, config: &Config<'_>, text: u64) -> Option<u64> {
    let vit = Vit::read(config);
    let (hidden, layers) = (vit.hidden, vit.layers.saturating_mul(vit.layer()));
    let get = |key: &str| u64::from(config.get(&[key]));
    Some(match kind {
        "clip_vision_model" => {
            let positions = (vit.patches(get("image_size")) + 2) * hidden;
            layers + vit.pixels(1) * hidden + positions + 4 * hidden + linear(hidden, text) + linear(text, text)
        }
        "siglip_vision_model" => {
            let positions = vit.patches(get("image_size")) * hidden;
            // Gemma 3's projector: a norm and a matrix.
            layers + linear(vit.pixels(1), hidden) + positions + 2 * hidden + hidden * text + hidden
        }
        "mllama_vision_model" => {
            let aspects = config.list(&["supported_aspect_ratios"]).map_or(0, <[_]>::len) as u64 + 1;
            let (tiles, outputs) = (get("max_num_tiles"), get("vision_output_dim"));
            let places = vit.patches(get("image_size")) + 1;
            // Attention without biases; gates of the global layers, of tile embeddings and of positions.
            let layer = vit.layer() - 4 * hidden;
            let global = get("num_global_layers");
            let tile_tables = aspects * tiles * (places + 2) * hidden + 3;
            vit.layers * layer
                + global * (layer + 2)
                + vit.pixels(1) * hidden
                + (places + 1) * hidden
                + tile_tables
                + 4 * hidden
                + linear(outputs, text)
        }
        "llama4_vision_model" => {
            let positions = (vit.patches(get("image_size")) + 2) * hidden;
            let (inside, outside) = (get("projector_input_dim"), get("projector_output_dim"));
            let adapter = vit.ffn * inside + inside * outside + get("vision_output_dim") * text;
            layers + vit.pixels(1) * hidden + positions + 4 * hidden + adapter
        }
        "qwen2_vl" => {
            let merged = hidden * get("spatial_merge_size").pow(2);
            let merger = 2 * hidden + linear(merged, merged) + linear(merged, text);
            layers + vit.pixels(get("temporal_patch_size")) * hidden + merger
        }
        "qwen2_5_vl" => {
            // A gated MLP and norms without biases.
            let layer = 4 * linear(hidden, hidden) + 2 * linear(hidden, vit.ffn) + linear(vit.ffn, hidden) + 2 * hidden;
            let merged = hidden * get("spatial_merge_size").pow(2);
            let merger = hidden + linear(merged, merged) + linear(merged, get("out_hidden_size"));
            vit.layers * layer + vit.pixels(get("temporal_patch_size")) * hidden + merger
        }
        "qwen3_vl" | "qwen3_vl_moe" | "qwen3_5" | "qwen3_5_moe" | "qwen3_5_vision" | "qwen3_5_moe_vision" => {
            let merged = hidden * get("spatial_merge_size").pow(2);
            let outputs = get("out_hidden_size");
            let deep = config.list(&["deepstack_visual_indexes"]).map_or(0, <[_]>::len) as u64;
            let inside = linear(merged, merged) + linear(merged, outputs);
            let patches =
                linear(vit.pixels(get("temporal_patch_size")), hidden) + get("num_position_embeddings") * hidden;
            layers + patches + 2 * hidden + inside + deep * (2 * merged + inside)
        }
        "kimi_k25" => {
            config.node(&["merge_kernel_size", "mm_hidden_size", "text_hidden_size", "init_pos_emb_time"]);
            let positions = get("init_pos_emb_height") * get("init_pos_emb_width") * hidden;
            let projector = 2 * hidden + linear(4 * hidden, 4 * hidden) + linear(4 * hidden, text);
            layers + linear(vit.pixels(1), hidden) + positions + 2 * hidden + projector
        }
        "gemma4_vision" => {
            config.node(&["head_dim", "global_head_dim", "num_key_value_heads", "pooling_kernel_size"]);
            // No biases; a gated MLP; norms around both parts and of queries and keys.
            let head_dim = get("head_dim");
            let layer = 4 * hidden * hidden + 3 * hidden * vit.ffn + 4 * hidden + 2 * head_dim;
            let positions = 2 * get("position_embedding_size") * hidden;
            vit.layers * layer + vit.pixels(1) * hidden + positions + 2 * hidden + hidden * text
        }
        _ => return None,
    })
}
