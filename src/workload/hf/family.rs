//! What the published code of each family fixes, and no key says.

use crate::catalog::model::{Norm, QkNorm};

/// How layers with a window stand among the others, where the configuration lists no `layer_types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Windows {
    /// There are none.
    None,
    /// `sliding_window` holds for all layers where it is given.
    All,
    /// From layer `max_window_layers` on, where `use_sliding_window` is true.
    FromLayer,
    /// All but every so many-th layer; `sliding_window_pattern` says otherwise.
    AllButEvery(u32),
    /// Chunks, in all but every fourth layer.
    Chunks,
}

/// Which part of the code reads the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Attention, windows, an MLP or experts.
    Common,
    /// Multi-head latent attention.
    Latent,
    /// Full attention every so many layers, gated delta rule in the others.
    GatedDelta,
    /// A letter a layer: Mamba-2, attention, MLP, experts.
    NemotronH,
    /// Attention every so many layers, Mamba in the others.
    Jamba,
    /// A description a layer.
    NemotronNas,
    /// Cross-attention in some layers.
    Mllama,
    /// Windowed layers with heads of their own.
    MiMoV2,
    /// Full layers with heads of their own.
    Gemma4,
}

/// Where the width of an expert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpertWidth {
    /// `moe_intermediate_size`.
    OfItsOwn,
    /// `intermediate_size`: there is no other MLP.
    Intermediate,
}

/// What a family's code fixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) kind: Kind,
    pub(super) gated: bool,
    pub(super) norm: Norm,
    pub(super) norms: u32,
    /// Biases of query, key and value projections; `attention_bias` and its like say otherwise.
    pub(super) input_biases: bool,
    /// Bias of the output projection; follows the key where it is `None`.
    pub(super) output_bias: Option<bool>,
    pub(super) mlp_biases: bool,
    pub(super) qk_norm: QkNorm,
    pub(super) tied: bool,
    pub(super) windows: Windows,
    pub(super) head_bias: bool,
    pub(super) embedding_norm: bool,
    /// Learned positions: the entries beyond the longest sequence, if there are any positions.
    pub(super) positions: Option<u32>,
    pub(super) expert_width: ExpertWidth,
    /// Whether routed experts have a correction each.
    pub(super) correction: bool,
    /// Whether a gate weighs the shared experts.
    pub(super) shared_gate: bool,
    /// Inner width of the MLP over the hidden width, where no key says.
    pub(super) widening: Option<u32>,
    /// Defaults of the configuration class, for a table that leaves out what equals them.
    pub(super) defaults: &'static [(&'static str, u32)],
}

const LLAMA: Family = Family {
    kind: Kind::Common,
    gated: true,
    norm: Norm::RmsNorm,
    norms: 2,
    input_biases: false,
    output_bias: None,
    mlp_biases: false,
    qk_norm: QkNorm::None,
    tied: false,
    windows: Windows::None,
    head_bias: false,
    embedding_norm: false,
    positions: None,
    expert_width: ExpertWidth::OfItsOwn,
    correction: false,
    shared_gate: false,
    widening: None,
    defaults: &[],
};

const GPT: Family = Family {
    gated: false,
    norm: Norm::LayerNorm,
    input_biases: true,
    mlp_biases: true,
    tied: true,
    widening: Some(4),
    ..LLAMA
};

const GEMMA: Family = Family { tied: true, ..LLAMA };
const LATENT: Family = Family { kind: Kind::Latent, ..LLAMA };
const QWEN2: Family = Family { input_biases: true, output_bias: Some(false), windows: Windows::FromLayer, ..LLAMA };
const QWEN3: Family = Family { qk_norm: QkNorm::Head, windows: Windows::FromLayer, ..LLAMA };
const QWEN_HYBRID: Family = Family { kind: Kind::GatedDelta, qk_norm: QkNorm::Head, shared_gate: true, ..LLAMA };
const MIXTRAL: Family = Family { expert_width: ExpertWidth::Intermediate, windows: Windows::All, ..LLAMA };
const COHERE: Family = Family { norm: Norm::LayerNormWeight, norms: 1, tied: true, ..LLAMA };
const PHI: Family = Family { norms: 1, tied: false, head_bias: true, ..GPT };
const OLMO2: Family = Family { qk_norm: QkNorm::Full, ..LLAMA };

const LLAMA_CLASS: &[(&str, u32)] = &[
    ("hidden_size", 4_096),
    ("intermediate_size", 11_008),
    ("num_hidden_layers", 32),
    ("num_attention_heads", 32),
    ("vocab_size", 32_000),
];

const MISTRAL_CLASS: &[(&str, u32)] = &[
    ("hidden_size", 4_096),
    ("intermediate_size", 14_336),
    ("num_hidden_layers", 32),
    ("num_attention_heads", 32),
    ("num_key_value_heads", 8),
    ("vocab_size", 32_000),
];

const GEMMA3_CLASS: &[(&str, u32)] = &[
    ("vocab_size", 262_208),
    ("hidden_size", 2_304),
    ("intermediate_size", 9_216),
    ("num_hidden_layers", 26),
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("head_dim", 256),
    ("sliding_window", 4_096),
];

/// The family of a `model_type`; `None` where it is not known.
#[allow(clippy::too_many_lines, reason = "one line a family")]
pub(super) fn family(model_type: &str) -> Option<Family> {
    Some(match model_type {
        "llama" | "llava" | "llava_next" | "yi" | "Yi" | "aquila" | "xverse" | "decilm" | "smollm3" | "granite"
        | "internlm2" | "internlm3" | "internlm" | "baichuan" | "exaone" | "minicpm" => {
            Family { defaults: LLAMA_CLASS, ..LLAMA }
        }
        "mistral" | "ministral" => Family { windows: Windows::All, defaults: MISTRAL_CLASS, ..LLAMA },
        "mixtral" | "granitemoe" => MIXTRAL,
        "phimoe" => Family { norm: Norm::LayerNorm, ..MIXTRAL },
        "olmoe" => Family { qk_norm: QkNorm::Full, ..MIXTRAL },
        "minimax_m2" => Family { qk_norm: QkNorm::Full, correction: true, ..MIXTRAL },
        "gpt_oss" => Family { input_biases: true, windows: Windows::AllButEvery(2), ..MIXTRAL },
        "llama4" | "llama4_text" => Family { windows: Windows::Chunks, ..MIXTRAL },
        "qwen2" | "qwen2_vl" | "qwen2_5_vl" | "qwen2_vl_text" | "qwen2_5_vl_text" | "mimo" => QWEN2,
        "seed_oss" | "chatglm" | "glm" | "qwen" => Family { input_biases: true, output_bias: Some(false), ..LLAMA },
        "qwen2_moe" => Family { shared_gate: true, ..QWEN2 },
        "qwen3" | "qwen3_moe" | "qwen3_vl_text" | "qwen3_vl_moe_text" | "qwen3_vl" | "qwen3_vl_moe" => QWEN3,
        "qwen3_next" | "qwen3_5" | "qwen3_5_text" | "qwen3_5_moe" | "qwen3_5_moe_text" => QWEN_HYBRID,
        "gemma" => GEMMA,
        "gemma2" => Family { norms: 4, windows: Windows::AllButEvery(2), ..GEMMA },
        "gemma3" | "gemma3_text" => Family {
            norms: 4,
            qk_norm: QkNorm::Head,
            windows: Windows::AllButEvery(6),
            defaults: GEMMA3_CLASS,
            ..GEMMA
        },
        "gemma4" | "gemma4_text" => {
            Family { kind: Kind::Gemma4, norms: 4, qk_norm: QkNorm::Head, windows: Windows::AllButEvery(6), ..GEMMA }
        }
        "phi3" => Family { windows: Windows::All, ..LLAMA },
        "phi" | "phi-msft" => PHI,
        "phi3small" => Family { norm: Norm::LayerNorm, input_biases: true, mlp_biases: true, tied: true, ..LLAMA },
        "gpt2" | "gpt_bigcode" => Family { positions: Some(0), ..GPT },
        "opt" => Family { positions: Some(2), ..GPT },
        "gptj" => Family { norms: 1, input_biases: false, tied: false, head_bias: true, ..GPT },
        "gpt_neox" => Family { tied: false, ..GPT },
        "bloom" => Family { embedding_norm: true, ..GPT },
        "falcon" | "RefinedWeb" | "RefinedWebModel" => Family { input_biases: false, mlp_biases: false, ..GPT },
        "mpt" => Family { norm: Norm::LayerNormWeight, input_biases: false, mlp_biases: false, ..GPT },
        "starcoder2" => Family { windows: Windows::All, ..GPT },
        "nemotron" => Family { tied: false, input_biases: false, mlp_biases: false, ..GPT },
        "stablelm" => Family { norm: Norm::LayerNorm, output_bias: Some(false), ..LLAMA },
        "dbrx" => Family { norm: Norm::LayerNormWeight, ..MIXTRAL },
        "glm4" => Family { input_biases: true, output_bias: Some(false), norms: 4, ..LLAMA },
        "glm4_moe" => Family { output_bias: Some(false), correction: true, ..LLAMA },
        "cohere" => COHERE,
        "cohere2" => Family { windows: Windows::AllButEvery(4), ..COHERE },
        "olmo" => Family { norm: Norm::LayerNormBare, ..LLAMA },
        "olmo2" => OLMO2,
        "olmo3" => Family { windows: Windows::AllButEvery(4), ..OLMO2 },
        "exaone4" => Family { qk_norm: QkNorm::Head, windows: Windows::AllButEvery(4), ..LLAMA },
        "dots1" => Family { qk_norm: QkNorm::Head, correction: true, ..LLAMA },
        "deepseek" | "ernie4_5" => LLAMA,
        "ernie4_5_moe" => Family { tied: true, correction: true, ..LLAMA },
        "deepseek_v2" | "minicpm3" => LATENT,
        "deepseek_v3" | "deepseek_v32" | "kimi_k2" | "glm_moe_dsa" | "glm4_moe_lite" => {
            Family { correction: true, ..LATENT }
        }
        "step3p5" | "step3p7" => Family { windows: Windows::AllButEvery(4), ..LLAMA },
        "mimo_v2_flash" => Family { kind: Kind::MiMoV2, ..LLAMA },
        "jamba" => Family { kind: Kind::Jamba, expert_width: ExpertWidth::Intermediate, ..LLAMA },
        "nemotron_h" => Family { kind: Kind::NemotronH, gated: false, norms: 1, correction: true, ..LLAMA },
        "nemotron-nas" => Family { kind: Kind::NemotronNas, ..LLAMA },
        "mllama" | "mllama_text_model" => Family { kind: Kind::Mllama, ..LLAMA },
        _ => return None,
    })
}

/// Every `model_type` that is known, for the message about one that is not.
pub(super) const KNOWN: &[&str] = &[
    "aquila",
    "baichuan",
    "bloom",
    "chatglm",
    "cohere",
    "cohere2",
    "dbrx",
    "decilm",
    "deepseek",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "dots1",
    "ernie4_5",
    "ernie4_5_moe",
    "exaone",
    "exaone4",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "gpt2",
    "gpt_bigcode",
    "gpt_neox",
    "gpt_oss",
    "gptj",
    "granite",
    "granitemoe",
    "internlm",
    "internlm2",
    "internlm3",
    "jamba",
    "kimi_k2",
    "kimi_k25",
    "llama",
    "llama4",
    "llama4_text",
    "llava",
    "llava_next",
    "mimo",
    "mimo_v2_flash",
    "minicpm",
    "minicpm3",
    "minimax_m2",
    "ministral",
    "mistral",
    "mixtral",
    "mllama",
    "mpt",
    "nemotron",
    "nemotron_h",
    "nemotron-nas",
    "olmo",
    "olmo2",
    "olmo3",
    "olmoe",
    "opt",
    "phi",
    "phi3",
    "phi3small",
    "phimoe",
    "qwen",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_moe",
    "qwen2_vl",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl",
    "qwen3_vl_moe",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder2",
    "step3p5",
    "step3p7",
    "xverse",
];

/// Architectures that are known and not modelled, and what of them is not.
pub(super) const UNMODELLED: &[(&str, &str)] = &[
    (
        "deepseek_v4",
        "its cache is compressed along the sequence (`compress_ratios`), its residual stream is several (`hc_mult`), and \
         its output is projected in two steps (`o_lora_rank`)",
    ),
    (
        "kimi_k3",
        "its linear attention decays by channel (`linear_attn_config`), its latent attention has a gate \
         (`mla_use_output_gate`), and layers attend to earlier ones (`attn_res_block_size`)",
    ),
    ("kimi_linear", "its linear attention decays by channel (`linear_attn_config`)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_families_are_known() {
        for name in KNOWN {
            // A wrapper of another family has no rules of its own.
            assert!(family(name).is_some() || *name == "kimi_k25", "{name}");
        }
        assert!(KNOWN.len() > 60);
        assert!(family("deepseek_v4").is_none());
    }
}
