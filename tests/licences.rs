//! Every dependency may be used under a permissive licence, and comes from the registry with a locked version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// Licences that ask for no more than attribution.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// Whether a licence expression can be met by permissive licences: one of each alternative, all of each conjunction.
fn is_permissive(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| PERMISSIVE.contains(&licence.trim())))
}

/// The packages that this one is made of, on any system, and with its tests; `PACKAGE` names another of the workspace.
///
/// What only other members of the workspace need is not even fetched.
fn packages() -> Vec<(String, String)> {
    let package = std::env::var("PACKAGE").unwrap_or_else(|_| env!("CARGO_PKG_NAME").to_owned());
    let tree = ["tree", "--locked", "--target", "all", "--edges", "normal,build,dev", "--prefix", "none"];
    let output = Command::new(env!("CARGO"))
        .args(tree)
        .args(["--format", "{p}\t{l}\t", "--package", &package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut packages: Vec<_> = text
        .lines()
        .map(|line| {
            let (name, rest) = line.split_once('\t').unwrap();
            (name.to_owned(), rest.split('\t').next().unwrap().to_owned())
        })
        .collect();
    packages.sort();
    packages.dedup();
    assert!(packages.len() > 50, "{packages:?}");
    packages
}

#[test]
fn dependencies_are_permissive() {
    for (name, licence) in packages() {
        assert!(is_permissive(&licence), "{name} is licensed \"{licence}\"");
    }
}

#[test]
fn dependencies_come_from_the_registry() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let sources: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("source = \"")).collect();
    assert!(sources.len() > 50);
    for source in sources {
        assert!(source.starts_with("registry+"), "{source}");
    }
}

#[test]
fn an_alternative_is_enough_and_a_conjunction_needs_all() {
    assert!(is_permissive("MIT OR GPL-3.0"));
    assert!(is_permissive("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_permissive("MIT AND GPL-3.0"));
    assert!(!is_permissive(""));
}
