//! What follows the mixer: an MLP of a width, or experts, by layer.

use super::family::ExpertWidth;
use super::{CLASS, CODE, Importer, Kind};
use crate::catalog::model::{Feed, Mlp, MoeBlock};
use crate::diagnostics::Code;
use crate::document::Value;

pub(super) const PER_TOKEN: &[&str] = &[
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_top_k",
    "moe_topk",
    "top_k_experts",
    "moe_k",
];
const EXPERTS: &[&str] = &["n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"];
const FFN: &[&str] = &["intermediate_size", "ffn_hidden_size", "n_inner", "ff_intermediate_size", "ffn_dim"];
const EXPERT_FFN: &[&str] = &["moe_intermediate_size", "expert_intermediate_size"];
const SHARED: &[&str] = &["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"];
const SHARED_FFN: &[&str] = &[
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
];

impl Importer<'_> {
    /// What follows the mixer in each layer.
    pub(super) fn feeds(&self, layers: u32, hidden: u32) -> Vec<Feed> {
        let moe = self.moe();
        let sparse = moe.map_or_else(|| vec![false; layers as usize], |_| self.sparse(layers));
        let all_sparse = sparse.iter().all(|sparse| *sparse);
        // Many configurations give a width that no layer has.
        self.config.node(&[FFN, &["intermediate_size_mlp"]].concat());
        let dense = if all_sparse && moe.is_some() { Mlp::default() } else { self.mlp(self.dense_ffn(hidden)) };
        let experts = |moe: MoeBlock| {
            let beside = (self.family.kind == Kind::Gemma4).then(|| self.mlp(self.dense_ffn(hidden)));
            Feed::Moe(MoeBlock { beside, ..moe })
        };
        sparse.into_iter().map(|sparse| moe.filter(|_| sparse).map_or(Feed::Mlp(dense), experts)).collect()
    }

    /// Width of the MLP of a layer without experts.
    pub(super) fn dense_ffn(&self, hidden: u32) -> u32 {
        let config = self.config;
        // Llama 4's `intermediate_size` is an expert's.
        if let Some(ffn) = config.optional(&["intermediate_size_mlp"]) {
            return ffn;
        }
        match self.optional(FFN) {
            // Qwen's first models halve it: their MLP has two up-projections of half that width.
            Some(ffn) if self.model_type() == Some("qwen") => {
                config.fill(&["width of the MLP"], &(ffn / 2).to_string(), CODE);
                (ffn / 2).max(1)
            }
            Some(ffn) => ffn,
            None => match (config.optional(&["expansion_ratio", "ffn_expansion_ratio"]), self.family.widening) {
                (Some(ratio), _) => hidden.saturating_mul(ratio),
                (None, Some(widening)) => {
                    let ffn = hidden.saturating_mul(widening);
                    config.fill(FFN, &ffn.to_string(), CLASS);
                    ffn
                }
                (None, None) => config.get(FFN),
            },
        }
    }

    pub(super) fn model_type(&self) -> Option<&str> {
        self.config.text(&["model_type"]).or_else(|| self.outer.text(&["model_type"]))
    }

    /// A router and experts, where the configuration has any.
    pub(super) fn moe(&self) -> Option<MoeBlock> {
        let config = self.config;
        if let Some(inner) = config.table("ffn_config") {
            inner.node(&["ffn_act_fn"]);
            let expert = Mlp { ffn: inner.get(&["ffn_hidden_size"]), gated: true, biases: false };
            let (experts, per_token) = (inner.get(&["moe_num_experts"]), inner.get(&["moe_top_k"]));
            inner.finish();
            return Some(MoeBlock { experts, per_token, expert, ..MoeBlock::default() });
        }
        if config.flag(&["enable_moe_block"]) == Some(false) {
            config.node(EXPERTS);
            return None;
        }
        let experts = config.count(EXPERTS).filter(|experts| *experts > 0)?;
        let width = self.expert_width(FFN);
        let model_type = self.model_type().unwrap_or_default();
        let gpt_oss = model_type == "gpt_oss";
        let expert = Mlp { biases: gpt_oss, ..self.mlp(width) };
        let correction = config.flag(&["use_routing_bias", "use_moe_router_bias"]);
        let method = config.text(&["topk_method"]);
        let correction_bias = correction.unwrap_or(self.family.correction || method == Some("noaux_tc"));
        let block = MoeBlock {
            experts,
            per_token: config.get(PER_TOKEN),
            expert,
            shared_ffn: self.shared_ffn(width),
            shared_gate: false,
            router_bias: gpt_oss,
            correction_bias,
            latent: config.optional(&["moe_latent_size"]).unwrap_or(0),
            beside: None,
        };
        Some(MoeBlock { shared_gate: self.family.shared_gate && block.shared_ffn > 0, ..block })
    }

    fn expert_width(&self, ffn: &[&str]) -> u32 {
        let config = self.config;
        match (config.optional(EXPERT_FFN), self.family.expert_width) {
            (Some(width), _) => width,
            (None, ExpertWidth::Intermediate) => config.get(ffn),
            (None, ExpertWidth::OfItsOwn) => {
                config.missing(EXPERT_FFN);
                1
            }
        }
    }

    /// Width of all shared experts together.
    fn shared_ffn(&self, expert_width: u32) -> u32 {
        let config = self.config;
        let count = config.count(SHARED);
        match (config.count(SHARED_FFN), count) {
            // Nemotron and Step give the width of one.
            (Some(width), Some(count)) => width.saturating_mul(count.max(1)),
            (Some(width), None) => width,
            (None, Some(count)) => count.saturating_mul(expert_width),
            (None, None) if self.model_type().is_some_and(|name| name.starts_with("llama4")) => {
                config.fill(&["shared experts"], "1", CODE);
                expert_width
            }
            (None, None) => 0,
        }
    }

    /// Of each layer whether it has experts.
    fn sparse(&self, layers: u32) -> Vec<bool> {
        let config = self.config;
        let all = vec![true; layers as usize];
        if let Some(types) = config.list(&["mlp_layer_types"]) {
            self.of_each_layer("mlp_layer_types", types, layers);
            config.node(&["first_k_dense_replace", "moe_layer_freq"]);
            return types.iter().map(|node| node.as_str() == Some("sparse")).collect();
        }
        if let Some(node) = config.node(&["moe_layer_freq"]) {
            if let Value::Array(list) = &node.value {
                return self.flags("moe_layer_freq", list, layers, 1);
            }
            if node.value != Value::Integer(1) {
                config.refuse("moe_layer_freq", "experts in every so many layers under this key");
            }
        }
        if let Some(leading) = config.count(&["first_k_dense_replace", "moe_layer_start_index"]) {
            let end = config.count(&["moe_layer_end_index"]).unwrap_or(layers);
            if leading >= layers {
                let message = format!("all {layers} layers are dense with {leading} leading ones");
                config.report(&["first_k_dense_replace"], Code::Inconsistent, message, "some layer has the experts");
            }
            return (0..layers).map(|layer| layer >= leading && layer <= end).collect();
        }
        if let Some(step) = config.optional(&["interleave_moe_layer_step"]) {
            return (1..=layers).map(|layer| layer.is_multiple_of(step)).collect();
        }
        if let Some(period) = config.optional(&["expert_layer_period"]) {
            let offset = config.count(&["expert_layer_offset"]).unwrap_or(0);
            return (0..layers).map(|layer| layer % period == offset).collect();
        }
        let step = config.optional(&["decoder_sparse_step"]).unwrap_or(1);
        let dense: Vec<i64> = config
            .list(&["mlp_only_layers"])
            .unwrap_or_default()
            .iter()
            .filter_map(|node| if let Value::Integer(layer) = node.value { Some(layer) } else { None })
            .collect();
        if step == 1 && dense.is_empty() {
            return all;
        }
        (0..layers).map(|layer| (layer + 1).is_multiple_of(step) && !dense.contains(&i64::from(layer))).collect()
    }
}
