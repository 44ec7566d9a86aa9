//! Scenarios and studies with mistakes: each is refused with exit code 2, nothing on stdout, and a message that says what to do.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use assert_cmd::Command;

#[test]
fn refused() {
    insta::glob!("../scenarios/invalid", "*.toml", |path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let compared = std::fs::read_to_string(path).unwrap().contains("[compare]");
        let mut command = Command::cargo_bin("clusterplan").unwrap();
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let answer =
            command.args([if compared { "compare" } else { "eval" }, &format!("scenarios/invalid/{name}")]).assert();
        let output = answer.code(2).stdout("").get_output().clone();
        insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
    });
}

#[test]
fn studies_are_refused() {
    insta::glob!("../studies/invalid", "*.toml", |path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut command = Command::cargo_bin("clusterplan").unwrap();
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let answer = command.args(["price", &format!("studies/invalid/{name}")]).assert();
        let output = answer.code(2).stdout("").get_output().clone();
        insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
    });
}
