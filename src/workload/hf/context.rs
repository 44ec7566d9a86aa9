//! The longest sequence that a configuration says its model takes.

use super::config::Config;
use crate::diagnostics::{Code, did_you_mean};
use crate::document::Value;
use crate::units::{brief, to_integer};

/// Keys of it, by the names that families give it.
const LENGTHS: [&str; 6] =
    ["max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx"];
/// What it is where positions were extended in training beyond what the others say (Command R).
const STATED: [&str; 1] = ["model_max_length"];
/// Tables of the scaling of rotary positions.
const SCALING: [&str; 2] = ["rope_scaling", "rope_parameters"];
/// The most that positions are extended: the longest published are some hundred times.
const MOST_FACTOR: f64 = 10_000.0;
/// Kinds of it whose factor is within the stated length already.
const WITHIN: [&str; 6] = ["default", "llama3", "longrope", "su", "mrope", "proportional"];
/// Kinds whose factor it is to be multiplied by.
const BEYOND: [&str; 5] = ["linear", "dynamic", "yarn", "deepseek_yarn", "ntk"];

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
    let gemma = config.text(&["model_type"]).is_some_and(|name| name.starts_with("gemma3"));
    let Some((kind, factor)) = extended(&scaling).filter(|_| !gemma) else { return Some(length) };
    let from = if kind.ends_with("yarn") { scaling.optional(&["original_max_position_embeddings"]) } else { None };
    let tokens = (f64::from(from.unwrap_or(length)) * factor).round();
    let tokens = to_integer::<u32>(tokens);
    Some(tokens)
}

/// A table inside, where it says anything.
fn table<'a>(config: &Config<'a>, key: &str) -> Option<Config<'a>> {
    let node = config.node(&[key])?;
    if node.as_table().is_none() {
        config.wrong_type(node, &[key], "a table, or null");
        return None;
    }
    config.table(key)
}

/// The kind of a scaling that takes positions beyond the stated length, and its factor.
fn extended<'a>(scaling: &Config<'a>) -> Option<(&'a str, f64)> {
    const KIND: [&str; 2] = ["rope_type", "type"];
    const FACTOR: [&str; 1] = ["factor"];
    let kind = scaling.text(&KIND).unwrap_or("default");
    if WITHIN.contains(&kind) {
        return None;
    }
    if !BEYOND.contains(&kind) {
        let known = || WITHIN.iter().chain(&BEYOND).copied();
        let hint = did_you_mean(kind, known()).map_or_else(
            || format!("known are {}; remove the table for the stated length", known().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        let message = format!("rotary positions scaled by the rule \"{kind}\" are not known");
        scaling.report(&KIND, Code::UnknownWord, message, hint);
        return None;
    }
    let factor = match scaling.node(&FACTOR).map(|node| (node, &node.value)) {
        Some((_, Value::Integer(factor))) => *factor as f64,
        Some((_, Value::Float(factor))) => *factor,
        Some((node, _)) => {
            scaling.wrong_type(node, &FACTOR, "a number");
            return None;
        }
        // Hunyuan's has another base of positions in its place, within the stated length.
        None if scaling.node(&["alpha"]).is_some() => return None,
        None => {
            scaling.missing(&FACTOR);
            return None;
        }
    };
    if !(1.0..=MOST_FACTOR).contains(&factor) {
        let message = format!("a factor of rotary positions of {} is not from 1 to {MOST_FACTOR}", brief(factor));
        scaling.report(&FACTOR, Code::OutOfRange, message, "such as 4.0: four times the length that was trained");
        return None;
    }
    Some((kind, factor))
}
