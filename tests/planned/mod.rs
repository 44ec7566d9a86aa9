//! Plans of serving, and what `eval` says on the same scenarios.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use serde_json::Value;

use crate::program;

const SCENARIO: &str = "scenarios/plan-llama3.1-70b-40-rps.toml";

pub(crate) fn run(command: &str, settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&[command, SCENARIO, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

pub(crate) fn number(answer: &Value, group: &str, key: &str) -> f64 {
    answer["evaluation"][group][key].as_f64().unwrap_or_else(|| panic!("no {group}.{key}"))
}

const WIDE: &str = "scenarios/plan-deepseek-v3-100-rps.toml";

pub(crate) fn wide(command: &str, settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&[command, WIDE, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

pub(crate) fn setting(answer: &Value, key: &str) -> u32 {
    answer["evaluation"]["scenario"][key].as_str().unwrap_or_else(|| panic!("no {key}")).parse().unwrap()
}
