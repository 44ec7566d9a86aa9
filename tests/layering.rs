//! The order of modules: a module may use only modules of earlier groups, and siblings of a group never use each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Groups of modules, in the order of dependency.
const LAYERS: &[&[&str]] = &[
    &["units"],
    &["finance", "diagnostics"],
    &["document"],
    &["provenance"],
    &["catalog"],
    &["workload"],
    &["parallelism"],
    &["scenario"],
    &["topology"],
    &["memory", "collectives", "compute"],
    &["training", "inference"],
    &["agents"],
    &["reliability"],
    &["facility"],
    &["tco"],
    &["evaluate"],
    &["search"],
    &["sweep"],
    &["study"],
    &["calibration"],
    &["report"],
    &["validation"],
    &["load"],
    &["cli"],
];

/// Modules that read files, take arguments or print.
const IMPURE: &[&str] = &["load", "cli"];

/// What a pure module must not reach for.
const EFFECTS: &[&str] = &[
    "std::fs",
    "std::env",
    "std::time",
    "std::net",
    "std::process",
    "std::thread",
    "print!(",
    "println!(",
    "static mut",
    "OnceLock",
    "LazyLock",
    "thread_local!",
];

/// Crates that only some modules may use.
const CRATES: &[(&str, &[&str])] = &[
    ("rayon::", &["search", "sweep"]),
    ("comfy_table::", &["report"]),
    ("csv::", &["report", "validation", "load"]),
    ("toml::", &["load"]),
    ("clap::", &["cli"]),
    ("levenberg_marquardt::", &["calibration"]),
    ("nalgebra::", &["sweep", "calibration"]),
    ("sketches_ddsketch::", &["sweep"]),
    ("sobol_burley::", &["sweep"]),
    ("indicatif::", &["cli"]),
];

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(rust_files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The code of each module: every file below `src/<module>` or `src/<module>.rs`, without comments and unit tests.
fn modules() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in rust_files(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.trim_end_matches(".rs").to_owned();
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        // Unit tests close a file; what is declared for tests above them is one line.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code = code.split("#[cfg(test)]\npub(crate) mod tests {").next().unwrap();
        let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = lines.join("\n");
        modules.entry(module).or_default().push((relative.to_owned(), code));
    }
    modules
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|group| group.contains(&module))
}

#[test]
fn every_module_has_its_place() {
    for module in modules().keys() {
        assert!(layer(module).is_some(), "`{module}` is in no layer: add it to LAYERS where it belongs");
    }
}

/// The modules that a code names after `crate::`, in braces too.
fn used(code: &str) -> Vec<String> {
    named_after("crate::", code)
}

/// The names that follow that word in a code, in braces too.
fn named_after(word_before: &str, code: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let mut names = Vec::new();
    for rest in code.match_indices(word_before).map(|(at, found)| &code[at + found.len()..]) {
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0_u32, true);
            for (at, character) in group.char_indices() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    _ if start && !character.is_whitespace() => {
                        names.push(word(&group[at..]));
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            names.push(word(rest));
        }
    }
    names
}

#[test]
fn modules_use_only_earlier_ones() {
    for (module, files) in modules() {
        let own = layer(&module).unwrap();
        for (file, code) in files {
            for name in used(&code) {
                let Some(other) = layer(&name) else { continue };
                let allowed = name == module || other < own;
                assert!(allowed, "{} uses `{name}`, which is not below `{module}`", file.display());
            }
        }
    }
}

/// Files of one folder that use each other all the same: the list may only grow shorter.
const CIRCLES: &[&str] = &[
    "search/apart plan",
    "search/band plan",
    "search/layouts shared",
    "search/serving tried",
    "training/layer step",
    "training/parts step",
    "validation/serving/scatter setup",
];

#[test]
fn files_of_a_folder_do_not_use_each_other_both_ways() {
    let mut uses: BTreeMap<PathBuf, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (file, code) in modules().into_values().flatten() {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let folder = file.parent().unwrap().to_owned();
        // What is behind one `super::` only: `super::super::` is of another folder.
        let of_siblings = named_after("super::", &code.replace("super::super::", "above::"));
        uses.entry(folder).or_default().insert(name, of_siblings);
    }
    let mut circles = Vec::new();
    for (folder, files) in &uses {
        let names = |one: &str, other: &str| files[one].iter().any(|name| name == other);
        for (one, other) in files.keys().flat_map(|one| files.keys().map(move |other| (one, other))) {
            if one < other && one != "mod" && other != "mod" && names(one, other) && names(other, one) {
                circles.push(format!("{}/{one} {other}", folder.display()));
            }
        }
    }
    assert_eq!(circles, CIRCLES, "move what both need down into one of them, or into a file of its own");
}

#[test]
fn groups_in_braces_are_seen() {
    assert_eq!(
        used("use crate::{units::{Bytes, Seconds}, tco};\nuse crate::report::Page;"),
        ["units", "tco", "report"]
    );
}

#[test]
fn heavy_crates_stay_in_their_rooms() {
    for (module, files) in modules() {
        for (file, code) in files {
            for (name, rooms) in CRATES {
                // `toml::Spanned`-like paths of other crates end in the same word.
                let uses = code
                    .match_indices(name)
                    .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'));
                assert!(
                    !uses || rooms.contains(&module.as_str()),
                    "{} uses `{name}`; only {rooms:?} may",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn pure_modules_have_no_effects() {
    for (module, files) in modules() {
        if IMPURE.contains(&module.as_str()) {
            continue;
        }
        for (file, code) in files {
            for effect in EFFECTS {
                assert!(!code.contains(effect), "{} reaches for `{effect}`; only {IMPURE:?} may", file.display());
            }
        }
    }
}
