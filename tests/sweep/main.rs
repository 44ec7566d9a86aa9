//! Sweeps: the same rows as evaluating each point by itself, whatever the number of threads; and what is kept of them.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod axes;
mod kept;
mod limits;
mod points;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// A small model on few nodes, with axes on every stage.
const AXES: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [256, 512] },
  { key = "cluster.fabric", values = ["quantum-2-ndr", "roce-400g"] },
  { key = "training.layout.tensor", values = [4, 8, 3] },
  { key = "finance.utilisation", range = { from = 0.6, to = 0.9, steps = 2 } },
]
"#;

/// Prices and a site of the catalog, turning within others; a price book that the scenario does not use changes nothing.
const PRICES: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [256, 512] },
  { key = "catalog/prices/neocloud-2026h2/price/dgx-h100/usd", values = ["$250,000", "$300,000"] },
  { key = "catalog/sites/us-colo/electricity", range = { from = 0.06, to = 0.12, steps = 2, unit = "$/kWh" } },
  { key = "finance.utilisation", values = [0.6, 0.9] },
]
"#;

/// Few layouts of GPT-3 on 64 GPUs.
const LAYOUTS: &str = r#"
[sweep]
axes = [
  { key = "cluster.fabric", all = ["id = quantum-2-ndr"] },
  { key = "training.layout", values = "all" },
]
"#;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A scenario of the project's with axes.
    fn scenario(&self, name: &str, axes: &str) -> PathBuf {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let text = fs::read_to_string(shipped).unwrap();
        // A table of its own would be a second one.
        let text = text.split("\n[compare]").next().unwrap().to_owned();
        let path = self.path("scenario.toml");
        fs::write(&path, text + axes).unwrap();
        path
    }
}

fn clusterplan(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("clusterplan").unwrap();
    command.args(arguments);
    command
}

fn stdout(arguments: &[&str]) -> String {
    let output = clusterplan(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Rows by column.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

const GPT: &str = "train-gpt3-175b-1k-h100.toml";

const SMALL: &str = "train-llama3.1-8b-16-h100-two-nodes.toml";

const SERVED: &str = "serve-llama3.1-70b-64-h100.toml";

const SEARCHED: &str = "train-gpt3-175b-512-h100-layout.toml";
