//! The program, run as a user runs it.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use assert_cmd::Command;

#[allow(dead_code, reason = "not every test reads a scenario")]
pub(crate) const LLAMA: &str = "scenarios/train-llama3.1-405b-16k-h100.toml";
#[allow(dead_code, reason = "not every test reads a scenario")]
pub(crate) const MIXTRAL: &str = "scenarios/train-mixtral-8x7b-64-h100.toml";

/// What a run left.
#[allow(dead_code, reason = "not every test looks at all of it")]
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
