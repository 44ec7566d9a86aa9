//! What serving engines logged of their memory, against what is computed of it.
//!
//! `engine_memory/runs.csv` has a run a row: its public source, what was asked of the engine, and what it logged. Empty
//! settings are the engine's or the checkpoint's own.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod setup;

use std::collections::BTreeMap;

use clusterplan::catalog::engine_version::EngineVersion;
use clusterplan::catalog::model::Format;
use clusterplan::memory::serving::{CacheFormats, Engine, Fits, Pages, ServingLayout, fits, sequence_bytes};
use clusterplan::units::{Bytes, Fraction};
use clusterplan::workload::requantise;
use setup::{CATALOG, model};

const GIB: Bytes = Bytes::new(1_073_741_824.0);

/// A row.
struct Run(BTreeMap<String, String>);

/// What is computed of a run.
struct Computed {
    fits: Fits,
    token: Bytes,
}

impl Run {
    fn all() -> Vec<Self> {
        let mut reader = csv::Reader::from_reader(include_str!("engine_memory/runs.csv").as_bytes());
        reader.deserialize().map(|row| Self(row.unwrap())).collect()
    }

    fn of(engine: &str) -> Vec<Self> {
        let runs: Vec<Self> = Self::all().into_iter().filter(|run| run.text("engine") == Some(engine)).collect();
        assert!(!runs.is_empty());
        runs
    }

    fn text(&self, column: &str) -> Option<&str> {
        Some(self.0[column].as_str()).filter(|text| !text.is_empty())
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column).map(|text| text.parse().unwrap())
    }

    fn count(&self, column: &str) -> u32 {
        self.text(column).unwrap().parse().unwrap()
    }

    fn version(&self) -> Option<EngineVersion> {
        self.text("version").and_then(EngineVersion::parse)
    }

    fn name(&self) -> String {
        let part = |column| self.text(column).unwrap_or("–");
        ["engine", "version", "accelerator", "model", "weights", "tensor", "batched_tokens", "context"]
            .map(part)
            .join(" ")
    }

    fn computed(&self) -> Computed {
        let mut model = model(self.text("model").unwrap());
        if let Some(weights) = self.text("weights") {
            requantise(&mut model, Format::named(weights).unwrap());
        }
        let keys_values = Format::named(self.text("kv_cache").unwrap()).unwrap();
        let formats = CacheFormats { keys_values, ..CacheFormats::of(&model) };
        let layout = ServingLayout {
            tensor: self.count("tensor"),
            pipeline: self.count("pipeline"),
            expert: self.count("expert"),
            ..ServingLayout::SINGLE
        };
        let accelerator = CATALOG.accelerators.get(self.text("accelerator").unwrap()).unwrap();
        let capacity = accelerator.memory_capacity;
        let allowance = CATALOG.memory_allowances.get("cuda").unwrap();
        let memory = &allowance.engines[self.text("engine").unwrap()];
        let engine = Engine::new(&memory.of_version(self.version()), &accelerator.name, capacity);
        let fraction = self.number("fraction").and_then(Fraction::new).or(engine.fraction);
        let batched_tokens =
            self.text("batched_tokens").map_or(engine.pages.batched_tokens, |text| text.parse().unwrap());
        let engine = Engine { fraction, pages: Pages { batched_tokens, ..engine.pages }, ..engine };
        let usable = capacity.saturating_sub(allowance.driver_reserve.value);
        let context = u64::from(self.count("context"));
        let of = |tokens| sequence_bytes(&model, &formats, Pages::BOUND, &layout, tokens);
        Computed { fits: fits(&model, &layout, &engine, &formats, usable, (context, 0)), token: of(2) - of(1) }
    }
}

/// ai-dynamo/aiconfigurator pull request 652: TensorRT-LLM's most sequences at once in 72 runs, with room for 1,000 tokens more
/// than prompt and answer and twice the prompt in a forward pass, caches in bf16. The right answer is within 2% or one sequence.
#[test]
fn tensorrt_llm_admits_what_its_blocks_hold() {
    let runs = Run::of("trtllm");
    assert_eq!(runs.len(), 72);
    for run in runs {
        let (found, measured) = (run.computed().fits.requests as f64, run.number("requests").unwrap());
        let near = (found / measured - 1.0).abs() <= 0.02 || (found - measured).abs() <= 1.0;
        assert!(near, "{}: {found}, not {measured}", run.name());
    }
}

/// Errors in size, the smallest first.
fn sizes(errors: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

impl Run {
    /// How far the cache is off what was logged: its memory, or the tokens that it holds.
    fn cache_error(&self) -> f64 {
        let computed = self.computed();
        let pool = computed.fits.pool;
        let (found, logged) = match self.number("cache_gib") {
            Some(logged) => (pool / GIB, logged),
            None => (pool / computed.token, self.number("tokens").unwrap()),
        };
        found / logged - 1.0
    }
}

/// vLLM's logs: 28 models and layouts with 0.19 on an H100, one with 0.15 to 0.18, and two of older releases in no constant. What
/// is off by 3% there are towers of Gemma 3 and Mistral Small that the catalog leaves out, embeddings of Gemma 2 9B that it has in
/// 32 bits, and an engine of 2024. Of Qwen3 235B on four H100, with 0.9 and a connector to a cache beside it, 8.1 GiB of 79 were
/// left and 9.3 are computed.
#[test]
fn vllm_leaves_what_it_logs_for_the_cache() {
    let runs = Run::of("vllm");
    let errors = sizes(runs.iter().map(Run::cache_error));
    assert!(errors.len() >= 36);
    let (median, p90, most) = (errors[errors.len() / 2], errors[errors.len() * 9 / 10], errors[errors.len() - 1]);
    assert!(median < 0.004 && p90 < 0.035 && most < 0.15, "{median} {p90} {most}");
    for run in runs.iter().filter(|run| run.version() >= EngineVersion::parse("0.15")) {
        let fits = run.computed().fits;
        let near = |column, found: Bytes, within: f64| {
            let Some(logged) = run.number(column) else { return };
            assert!((found / GIB - logged).abs() <= within, "{}: {column} {}, not {logged}", run.name(), found / GIB);
        };
        near("activations_gib", fits.activations, 0.35);
        near("outside_gib", fits.outside, 0.13);
        near("weights_gib", fits.weights, 1.75);
    }
}

/// SGLang's logs, in no constant but for the memory that is free before weights are loaded: with a fraction and with its default.
#[test]
fn sglang_leaves_what_it_logs_for_the_cache() {
    for run in Run::of("sglang") {
        let error = run.cache_error();
        assert!(error.abs() < 0.015, "{}: {error}", run.name());
    }
}

/// vLLM's defaults hang on the memory that the device reports, but for those of its name (vllm/engine/arg_utils.py).
#[test]
fn vllm_keeps_its_smaller_defaults_on_a100_of_any_memory() {
    let memory = &CATALOG.memory_allowances.get("cuda").unwrap().engines["vllm"];
    let defaults = |accelerator: &str| {
        let accelerator = CATALOG.accelerators.get(accelerator).unwrap();
        memory.on(&accelerator.name, accelerator.memory_capacity)
    };
    assert_eq!(defaults("h100-sxm-80gb"), (8_192, 1_024));
    assert_eq!(defaults("a100-sxm-40gb"), (2_048, 256));
    assert_eq!(defaults("a100-sxm-80gb"), (2_048, 256));
    assert_eq!(defaults("a100-pcie-80gb"), (2_048, 256));
}
