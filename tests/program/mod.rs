//! The program, run as a user runs it.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;

pub(crate) const LLAMA: &str = "scenarios/train-llama3.1-405b-16k-h100.toml";
pub(crate) const MIXTRAL: &str = "scenarios/train-mixtral-8x7b-64-h100.toml";

/// What a run left.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run(arguments: &[&str]) -> Answer {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    let output =
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("COLUMNS").args(arguments).output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A directory with files in it.
pub(crate) fn files(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
