//! The longest sequence that a configuration says its model takes.

use super::config::Config;
use crate::document::Value;
use crate::units::to_integer;

/// Keys of it, by the names that families give it.
const LENGTHS: [&str; 6] =
    ["max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx"];
/// What it is where positions were extended in training beyond what the others say (Command R).
const STATED: [&str; 1] = ["model_max_length"];
/// Tables of the scaling of rotary positions.
const SCALING: [&str; 2] = ["rope_scaling", "rope_parameters"];
/// Kinds of it whose factor is within the stated length already.
const WITHIN: [&str; 6] = ["default", "llama3", "longrope", "su", "mrope", "proportional"];

/// Tokens of prompt and answer at most, by the rule of vLLM (`_get_and_verify_max_len`): the least of the lengths that are there,
/// times the factor by which rotary positions are scaled where that is not in it; YaRN's is of the original length. Gemma 3 states
/// the scaled one. None where nothing is said.
pub(super) fn longest(config: &Config<'_>, outer: &Config<'_>, nested: bool) -> Option<u32> {
    let of = |config: &Config<'_>| {
        let stated = config.optional(&STATED);
        let least = LENGTHS.iter().filter_map(|key| config.optional(&[key])).min();
        stated.or(least)
    };
    let length = of(config).or_else(|| if nested { of(outer) } else { None })?;
    let Some(scaling) = SCALING.iter().find_map(|key| table(config, key)) else { return Some(length) };
    let kind = scaling.text(&["rope_type", "type"]).unwrap_or("default");
    let gemma = config.text(&["model_type"]).is_some_and(|name| name.starts_with("gemma3"));
    let factor = scaling.node(&["factor"]).and_then(|node| match node.value {
        Value::Integer(factor) => Some(factor as f64),
        Value::Float(factor) => Some(factor),
        _ => None,
    });
    let Some(factor) = factor.filter(|factor| *factor >= 1.0 && !WITHIN.contains(&kind) && !gemma) else {
        return Some(length);
    };
    let from = if kind == "yarn" { scaling.optional(&["original_max_position_embeddings"]) } else { None };
    let tokens = (f64::from(from.unwrap_or(length)) * factor).round();
    let tokens = to_integer::<u32>(tokens);
    Some(tokens)
}

/// A table inside, where it is one: some leave it at null.
fn table<'a>(config: &Config<'a>, key: &str) -> Option<Config<'a>> {
    config.node(&[key]).filter(|node| node.as_table().is_some())?;
    config.table(key)
}
