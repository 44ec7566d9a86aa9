//! Number formats of a checkpoint: the base, what is quantised and what is left out of it.

use super::{Config, config::CODE};
use crate::catalog::model::{Block, Feed, Format, Formats, Mixer, Model, Module, ModuleFormat, Number};
use crate::diagnostics::Sink;
use crate::document::{Node, Value};

/// The most numbers that share a scale; blocks of 128 x 128 are the largest in use.
const MOST_GROUP: u32 = 1 << 20;

/// Formats by the configuration and by the `hf_quant_config.json` beside it.
pub(super) fn formats(
    outer: &Config<'_>,
    inner: &Config<'_>,
    beside: Option<&Node>,
    model: &Model,
    sink: &Sink,
) -> Formats {
    let keys = &["torch_dtype", "dtype"];
    let found = [inner, outer].into_iter().find_map(|config| Some((config, config.text(keys)?)));
    let base = found.and_then(|(config, word)| named_dtype(config, "torch_dtype", word)).unwrap_or_else(|| {
        outer.fill(keys, "bf16", CODE);
        Format::plain(Number::Bf16)
    });
    let mut formats = Formats { base, ..Formats::default() };
    formats.state = inner
        .text(&["mamba_ssm_cache_dtype", "mamba_ssm_dtype"])
        .and_then(|word| named_dtype(inner, "mamba_ssm_cache_dtype", word));
    let table = outer.table("quantization_config").or_else(|| inner.table("quantization_config"));
    if let Some(table) = table {
        checkpoint(&table, model, &mut formats);
    } else if let Some(table) = outer.table("quantization") {
        mlx(&table, &mut formats);
    }
    if let Some(node) = beside {
        match Config::new(node, "", sink).and_then(|config| config.table("quantization")) {
            Some(table) => model_optimizer(&table, model, &mut formats),
            None => node.wrong_type("hf_quant_config.json", "a table with `quantization`", sink),
        }
    }
    formats
}

fn named_dtype(config: &Config<'_>, key: &str, word: &str) -> Option<Format> {
    let number = match word {
        "bfloat16" | "torch.bfloat16" => Number::Bf16,
        "float16" | "torch.float16" | "half" => Number::Fp16,
        "float32" | "torch.float32" | "float" => Number::Fp32,
        "auto" => return None,
        other => {
            config.refuse(key, &format!("the number format \"{other}\""));
            return None;
        }
    };
    Some(Format::plain(number))
}

/// A `quantization_config`, by its method.
fn checkpoint(table: &Config<'_>, model: &Model, formats: &mut Formats) {
    let algorithm = table.text(&["quant_algo"]);
    let Some(method) = table.text(&["quant_method"]).or(algorithm.map(|_| "modelopt")) else {
        table.missing(&["quant_method"]);
        return;
    };
    let fp8 = Format::plain(Number::Fp8);
    let (format, activations) = match method {
        "fp8" => {
            let block = table.list(&["weight_block_size"]).map(sizes);
            let format =
                block.map_or(fp8, |sizes| Format { number: Number::Fp8, group: product(&sizes), scale_bits: 32 });
            (format, Some(fp8))
        }
        "fbgemm_fp8" => (fp8, Some(fp8)),
        "mxfp4" => (Format::named("mxfp4").unwrap_or_default(), None),
        "compressed-tensors" | "modelopt" => match group(table) {
            Some(found) => found,
            None => return,
        },
        "awq" | "gptq" => {
            let (bits, group) = (table.get(&["bits", "w_bit"]), table.get(&["group_size", "q_group_size"]));
            let zero = if table.flag(&["zero_point"]).unwrap_or(method == "gptq") { bits } else { 0 };
            match integers(bits) {
                Some(number) => (Format { number, group, scale_bits: 16 + zero }, None),
                None => return table.refuse("bits", &format!("integers of {bits} bits")),
            }
        }
        "bitsandbytes" if table.flag(&["load_in_8bit"]) == Some(true) => (Format::plain(Number::Int8), None),
        // QLoRA (arXiv 2305.14314), section 3: a 32-bit constant for 64 numbers.
        "bitsandbytes" if table.flag(&["load_in_4bit"]) == Some(true) => {
            (Format { number: Number::Fp4, group: 64, scale_bits: 32 }, None)
        }
        other => return table.refuse("quant_method", &format!("the method \"{other}\"")),
    };
    if format.group > MOST_GROUP {
        return table.refuse("group_size", &format!("a scale for {} numbers", format.group));
    }
    let left_out = table.list(&["modules_to_not_convert", "ignore", "exclude_modules"]).unwrap_or_default();
    // The method of gpt-oss is for experts alone.
    let groups = table.table("config_groups");
    let modules = match groups.and_then(|groups| groups.table("group_0")) {
        _ if method == "mxfp4" => vec![Module::Experts],
        Some(group) => targets(&group, table),
        None => Formats::LINEAR.to_vec(),
    };
    apply(format, &modules, left_out, model, formats);
    formats.activations = activations;
    further_groups(table, formats);
    if table.node(&["kv_cache_scheme"]).is_some_and(|node| node.as_str() == Some("FP8")) {
        formats.kv_cache = Some(fp8);
    } else if let Some(scheme) = table.table("kv_cache_scheme") {
        formats.kv_cache = match (scheme.count(&["num_bits"]), scheme.text(&["type"])) {
            (Some(8), Some("float")) => Some(fp8),
            (Some(8), Some("int")) => Some(Format::plain(Number::Int8)),
            _ => {
                table.refuse("kv_cache_scheme", "a cache of this format");
                None
            }
        };
    }
}

fn integers(bits: u32) -> Option<Number> {
    Some(match bits {
        8 => Number::Int8,
        4 => Number::Int4,
        3 => Number::Int3,
        2 => Number::Int2,
        _ => return None,
    })
}

/// Weights and activations of the one group of a `config_groups` table.
fn group(table: &Config<'_>) -> Option<(Format, Option<Format>)> {
    let algorithm = table.text(&["quant_algo"]);
    let Some(groups) = table.table("config_groups") else {
        let Some(word) = algorithm else {
            table.missing(&["config_groups"]);
            return None;
        };
        return by_algorithm(table, word);
    };
    let group = groups.table("group_0")?;
    let packed = table.text(&["format"]).is_some_and(|format| format.contains("mxfp4"));
    let weights = group.table("weights").map(|weights| numbers(&weights, table, packed))??;
    let inputs = group.table("input_activations").and_then(|inputs| numbers(&inputs, table, packed));
    let inputs = inputs.or(if weights.number == Number::Fp4 && !packed { Some(weights) } else { None });
    Some((weights, inputs))
}

/// The kinds of modules that a group's targets name: all projections, or some by their names.
fn targets(group: &Config<'_>, table: &Config<'_>) -> Vec<Module> {
    let names = group.list(&["targets"]).unwrap_or_default();
    let names: Vec<&str> = names.iter().filter_map(Node::as_str).collect();
    if names.is_empty() || names.contains(&"Linear") {
        return Formats::LINEAR.to_vec();
    }
    let named = names.into_iter().filter_map(|name| {
        let whole = left_out_by(name).filter(|(_, layer)| layer.is_none()).map(|(module, _)| module);
        if whole.is_none() {
            table.refuse("config_groups", &format!("a format for \"{name}\" alone"));
        }
        whole
    });
    named.collect()
}

/// The groups after the first, each of whole kinds of modules that its targets name.
fn further_groups(table: &Config<'_>, formats: &mut Formats) {
    let Some(groups) = table.table("config_groups") else { return };
    let packed = table.text(&["format"]).is_some_and(|format| format.contains("mxfp4"));
    for index in 1..Module::ALL.len() {
        let Some(group) = groups.table(&format!("group_{index}")) else { break };
        let Some(format) = group.table("weights").and_then(|weights| numbers(&weights, table, packed)) else { return };
        for module in targets(&group, table) {
            formats.modules.retain(|(known, _)| *known != module);
            formats.modules.push((module, ModuleFormat { format, kept_layers: 0 }));
        }
        let inputs = group.table("input_activations").and_then(|inputs| numbers(&inputs, table, packed));
        // One format stands for all inputs: the widest, so that no input is taken as less than it is.
        formats.activations = match (formats.activations, inputs) {
            (Some(one), Some(other)) => Some(if other.bits() > one.bits() { other } else { one }),
            _ => None,
        };
    }
}

/// Formats layer by layer (`MIXED_PRECISION`): one for all layers of a kind of module that are listed, the base for the
/// others.
fn by_layer(table: &Config<'_>, model: &Model, formats: &mut Formats) {
    let Some(layers) = table.table("quantized_layers") else { return table.missing(&["quantized_layers"]) };
    let mut found: Vec<(Module, Format, Vec<u32>)> = Vec::new();
    for name in layers.names() {
        let Some(entry) = layers.table(&name) else { continue };
        let Some(word) = entry.text(&["quant_algo"]) else { return entry.missing(&["quant_algo"]) };
        let Some((format, _)) = by_algorithm(&entry, word) else { return };
        let Some((module, Some(layer))) = left_out_by(&name) else {
            return table.refuse("quantized_layers", &format!("a format for \"{name}\""));
        };
        match found.iter_mut().find(|(known, ..)| *known == module) {
            Some((_, known, layers)) if *known == format => layers.push(layer),
            Some(_) => return table.refuse("quantized_layers", &format!("two formats for {module} by layer")),
            None => found.push((module, format, vec![layer])),
        }
    }
    let of = |module: Module| {
        let has = |block: &&Block| match module {
            Module::Attention => block.mixer != Mixer::None,
            Module::Mlp => matches!(block.feed, Feed::Mlp(_)),
            _ => block.moe().is_some(),
        };
        model.blocks.iter().filter(has).map(|block| block.layers).sum::<u32>()
    };
    formats.modules = found
        .into_iter()
        .map(|(module, format, mut layers)| {
            layers.sort_unstable();
            layers.dedup();
            let covered = u32::try_from(layers.len()).unwrap_or(u32::MAX);
            (module, ModuleFormat { format, kept_layers: of(module).saturating_sub(covered) })
        })
        .collect();
}

fn numbers(weights: &Config<'_>, table: &Config<'_>, packed: bool) -> Option<Format> {
    let bits = weights.get(&["num_bits"]);
    let group = weights.count(&["group_size"]).unwrap_or(0);
    let number = match (weights.text(&["type"]), bits) {
        (Some("float"), 8) => Number::Fp8,
        (Some("float"), 4) => Number::Fp4,
        (Some("int"), bits) => integers(bits)?,
        _ => {
            table.refuse("config_groups", &format!("numbers of {bits} bits of this type"));
            return None;
        }
    };
    let scale_bits = match (number, group) {
        (_, 0) => 0,
        (Number::Fp4, 16) => 8,
        (Number::Fp4, 32) if packed => 8,
        _ => 16,
    };
    Some(Format { number, group, scale_bits })
}

/// The algorithms of NVIDIA's Model Optimizer.
fn by_algorithm(table: &Config<'_>, word: &str) -> Option<(Format, Option<Format>)> {
    let fp8 = Format::plain(Number::Fp8);
    let nvfp4 = Format::named("nvfp4").unwrap_or_default();
    let int4 =
        || Format { number: Number::Int4, group: table.optional(&["group_size"]).unwrap_or(128), scale_bits: 16 };
    Some(match word {
        "FP8" | "FP8_PER_CHANNEL_PER_TOKEN" => (fp8, Some(fp8)),
        "FP8_PB_WO" | "FP8_PB_REAL" => (Format::named("fp8-block").unwrap_or_default(), Some(fp8)),
        "NVFP4" => (nvfp4, Some(nvfp4)),
        "W4A16_NVFP4" => (nvfp4, None),
        "W4A8_AWQ" => (int4(), Some(fp8)),
        "W4A16_AWQ" | "W4A16" => (int4(), None),
        "W8A16" => (Format::plain(Number::Int8), None),
        "W8A8_SQ_PER_CHANNEL" => (Format::plain(Number::Int8), Some(Format::plain(Number::Int8))),
        other => {
            table.refuse("quant_algo", &format!("the algorithm \"{other}\""));
            return None;
        }
    })
}

/// The file that NVIDIA's Model Optimizer writes beside the configuration.
fn model_optimizer(table: &Config<'_>, model: &Model, formats: &mut Formats) {
    let algorithm = table.text(&["quant_algo"]);
    if algorithm == Some("MIXED_PRECISION") {
        by_layer(table, model, formats);
    } else if let Some((format, activations)) = algorithm.and_then(|word| by_algorithm(table, word)) {
        let left_out = table.list(&["exclude_modules"]).unwrap_or_default();
        apply(format, &Formats::LINEAR, left_out, model, formats);
        formats.activations = activations;
    }
    formats.kv_cache = match table.text(&["kv_cache_quant_algo"]) {
        None => formats.kv_cache,
        Some("FP8") => Some(Format::plain(Number::Fp8)),
        Some("INT8") => Some(Format::plain(Number::Int8)),
        Some("NVFP4") => Format::named("nvfp4"),
        Some(other) => {
            table.refuse("kv_cache_quant_algo", &format!("a cache in \"{other}\""));
            None
        }
    };
}

/// MLX quantises every matrix with a 16-bit scale and a 16-bit bias a group.
fn mlx(table: &Config<'_>, formats: &mut Formats) {
    let (bits, group) = (table.get(&["bits"]), table.get(&["group_size"]));
    let Some(number) = integers(bits) else { return table.refuse("bits", &format!("integers of {bits} bits")) };
    let format = ModuleFormat { format: Format { number, group, scale_bits: 32 }, kept_layers: 0 };
    let tables = [Module::Embedding, Module::Head];
    formats.modules = Formats::LINEAR.into_iter().chain(tables).map(|module| (module, format)).collect();
}

fn sizes(nodes: &[Node]) -> Vec<u32> {
    nodes
        .iter()
        .filter_map(|node| if let Value::Integer(size) = node.value { u32::try_from(size).ok() } else { None })
        .collect()
}

fn product(sizes: &[u32]) -> u32 {
    sizes.iter().fold(1, |product, size| product.saturating_mul(*size))
}

/// What a name or pattern leaves out: a module, in one layer or in all.
fn left_out_by(pattern: &str) -> Option<(Module, Option<u32>)> {
    let layer = pattern.split("layers.").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    let has = |part: &str| pattern.contains(part);
    let vector = has("norm") || has("indexer") || has("eh_proj");
    let module =
        if vector || has("vision") || has("mm_projector") || has("multi_modal") || has("lm_head") || has("embed") {
            return None;
        } else if has("shared_expert") {
            // Its gate is a vector.
            if pattern.ends_with("shared_expert_gate") {
                return None;
            }
            Module::SharedExperts
        } else if has("experts") {
            Module::Experts
        } else if has("attn") || has("attention") || has("mixer") {
            Module::Attention
        } else if has("router") || pattern.ends_with("gate") || pattern.ends_with("gate*") || has("e_score") {
            Module::Router
        } else if has("mlp") || has("feed_forward") {
            Module::Mlp
        } else {
            return None;
        };
    Some((module, layer))
}

/// Gives these modules a format, but for what is left out.
fn apply(format: Format, modules: &[Module], left_out: &[Node], model: &Model, formats: &mut Formats) {
    let patterns: Vec<(Module, Option<u32>)> =
        left_out.iter().filter_map(Node::as_str).filter_map(left_out_by).collect();
    formats.modules.clear();
    for module in modules.iter().copied() {
        let of_module = || patterns.iter().filter(|(left_out, _)| *left_out == module);
        if of_module().any(|(_, layer)| layer.is_none()) {
            continue;
        }
        let mut layers: Vec<u32> =
            of_module().filter_map(|(_, layer)| *layer).filter(|l| *l < model.layers()).collect();
        layers.sort_unstable();
        layers.dedup();
        let kept_layers = u32::try_from(layers.len()).unwrap_or(u32::MAX);
        formats.modules.push((module, ModuleFormat { format, kept_layers }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modules_are_understood() {
        let of = left_out_by;
        assert_eq!(of("model.layers.7.self_attn.q_proj"), Some((Module::Attention, Some(7))));
        assert_eq!(of("re:.*self_attn.*"), Some((Module::Attention, None)));
        assert_eq!(of("model.layers.0.mlp.gate"), Some((Module::Router, Some(0))));
        assert_eq!(of("re:.*mlp\\.(gate|up|gate_up|down)_proj.*"), Some((Module::Mlp, None)));
        assert_eq!(of("re:.*shared_experts.*"), Some((Module::SharedExperts, None)));
        assert_eq!(of("model.layers.3.mlp.shared_expert_gate"), None);
        assert_eq!(of("lm_head"), None);
        assert_eq!(of("model.layers.3.post_attention_layernorm"), None);
    }
}
