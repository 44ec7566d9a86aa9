//! Every dependency may be used under a permissive licence, and comes from the registry with a locked version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than attribution.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether a licence expression can be met by permissive licences: one of each alternative, all of each conjunction.
fn is_permissive(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| PERMISSIVE.contains(&licence.trim())))
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn dependencies_are_permissive() {
    for package in packages() {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        assert!(is_permissive(licence), "{name} is licensed \"{licence}\"");
    }
}

#[test]
fn dependencies_come_from_the_registry() {
    for package in packages() {
        let source = package["source"].as_str();
        assert!(
            source.is_none_or(|source| source.starts_with("registry+")),
            "{} comes from {source:?}",
            package["name"]
        );
    }
}

#[test]
fn an_alternative_is_enough_and_a_conjunction_needs_all() {
    assert!(is_permissive("MIT OR GPL-3.0"));
    assert!(is_permissive("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_permissive("MIT AND GPL-3.0"));
    assert!(!is_permissive(""));
}
