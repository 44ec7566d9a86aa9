//! What the texts of a published run name: its model, its accelerator and the formats that they are served in.

use std::sync::Arc;

use super::benchmark::Benchmark;
use crate::catalog::engine_memory::EngineMemory;
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::model::{Format, Model, Module, Number};
use crate::catalog::{Accelerator, Catalog, Entry, MemoryAllowance, Node};
use crate::inference::Room;
use crate::memory::serving::{CacheFormats, Engine, fits};
use crate::parallelism::ServingLayout;
use crate::units::{Bandwidth, Bytes, Fraction};
use crate::validation::aliases::{Aliases, ScriptedCache};
use crate::validation::outcome::Fill;
use crate::validation::table::Unusable;
use crate::workload::{attend_to_all, requantise};

/// The parts of a run that its texts name.
pub(super) struct Named {
    pub(super) id: String,
    pub(super) model: Model,
    pub(super) node: Arc<Entry<Node>>,
    pub(super) accelerator: Arc<Entry<Accelerator>>,
    /// What 8 bits of the model are published in, beside a scale for a whole tensor or row.
    eight: Option<Format>,
    /// The part of the memory that the scripts of its campaign have the engine use.
    fraction: Option<Fraction>,
}

fn allowance(catalog: &Catalog) -> Result<&MemoryAllowance, Unusable> {
    let entry = catalog.memory_allowances.get("cuda").ok_or_else(|| Unusable("no memory allowances".to_owned()))?;
    Ok(&entry.part)
}

/// The memory rules of a version of an engine.
fn engine_memory(
    allowance: &MemoryAllowance,
    (engine, version): (&str, Option<EngineVersion>),
) -> Result<EngineMemory, Unusable> {
    let rules = allowance.engines.get(engine);
    let rules = rules.ok_or_else(|| Unusable(format!("no memory rules of engine {engine}")))?;
    Ok(rules.of_version(version))
}

impl Named {
    /// Finds a model and an accelerator by their published names.
    pub(super) fn find(model: &str, gpu: &str, catalog: &Catalog, aliases: &Aliases) -> Result<Self, Unusable> {
        let unknown = || Unusable(format!("the catalog has no model \"{model}\""));
        let served = aliases.served(model).ok_or_else(unknown)?;
        let entry = catalog.models.get(&served.model).ok_or_else(unknown)?;
        let no_part = || Unusable(format!("the catalog has no part for GPU \"{gpu}\""));
        let hardware = aliases.hardware(gpu).ok_or_else(no_part)?;
        let node = Arc::clone(catalog.nodes.get(&hardware.node).ok_or_else(no_part)?);
        let accelerator = Arc::clone(catalog.accelerators.get(&node.accelerator).ok_or_else(no_part)?);
        Ok(Self {
            id: served.model.clone(),
            model: entry.part.clone(),
            eight: served.eight,
            fraction: None,
            node,
            accelerator,
        })
    }

    /// Gives the model the attention that an engine computes for it.
    pub(super) fn run_by(&mut self, run_by: (&str, Option<EngineVersion>), catalog: &Catalog) -> Result<(), Unusable> {
        if !engine_memory(allowance(catalog)?, run_by)?.attends_in_chunks {
            attend_to_all(&mut self.model);
        }
        Ok(())
    }

    /// Gives the model the formats of a published precision. The cache is in that of its own column (`fp8`, `bf16`); where the
    /// row leaves it open, in that of the scripts that ran it, or else in 8 bits where weights have 8 bits or are NVFP4.
    pub(super) fn serve_in(
        &mut self,
        precision: &str,
        cache: Option<&str>,
        scripted: Option<ScriptedCache>,
    ) -> Result<Option<Fill>, Unusable> {
        let model = &mut self.model;
        let experts = model.formats.of(Module::Experts).format;
        let format = match precision.to_lowercase().as_str() {
            "bf16" | "fp16" => Format::plain(Number::Bf16),
            "fp8" => self.eight.unwrap_or(Format::plain(Number::Fp8)),
            // A checkpoint that is published in four bits is served as it is.
            "fp4" | "nvfp4" if experts.number == Number::Fp4 => experts,
            "fp4" | "nvfp4" => Format::named("nvfp4").unwrap_or_default(),
            "int4" if experts.number == Number::Int4 => experts,
            "int4" => Format::named("int4-g128").unwrap_or_default(),
            other => return Err(Unusable(format!("no number format is known for weights in \"{other}\""))),
        };
        let own = model.blocks.iter().any(|block| block.moe().is_some()) && experts == format;
        if !own {
            requantise(model, format);
        }
        let stated = match cache {
            Some("fp8") => Some(Number::Fp8),
            Some("bf16") => Some(Number::Bf16),
            Some(other) => return Err(Unusable(format!("no number format is known for a cache in \"{other}\""))),
            None => None,
        };
        if let Some(number) = stated {
            model.formats.kv_cache = Some(Format::plain(number));
            return Ok(None);
        }
        if let Some(scripted) = scripted {
            let cache = Format::plain(scripted.number);
            self.fraction = scripted.fraction;
            model.formats.kv_cache = Some(cache);
            let rule = "as the scripts of InferenceX have it (kv-cache-dtype, gpu-memory-utilization)".to_owned();
            return Ok(Some(Fill { field: "kv_cache", value: cache.to_string(), rule }));
        }
        let narrow = matches!(format.number, Number::Fp8) || format == Format::named("nvfp4").unwrap_or_default();
        let cache = Format::plain(if narrow { Number::Fp8 } else { Number::Bf16 });
        model.formats.kv_cache = Some(cache);
        let rule = "8 bits where weights have 8 bits or are NVFP4, else 16".to_owned();
        Ok(Some(Fill { field: "kv_cache", value: cache.to_string(), rule }))
    }

    /// Room for requests of that many tokens, counted at their full length by engines that reserve it.
    pub(super) fn room(
        &self,
        layout: ServingLayout,
        run_by: (&str, Option<EngineVersion>),
        (input, output): (f64, f64),
        benchmark: Option<&Benchmark>,
        catalog: &Catalog,
    ) -> Result<Room, Unusable> {
        layout.check(&self.model).map_err(Unusable)?;
        let allowance = allowance(catalog)?;
        let memory = engine_memory(allowance, run_by)?;
        let engine = Engine::new(&memory, &self.accelerator.name, self.accelerator.memory_capacity);
        let usable = self.accelerator.memory_capacity.saturating_sub(allowance.driver_reserve.value);
        let formats = CacheFormats::of(&self.model);
        let held = if memory.rule == crate::catalog::engine_memory::PoolRule::OfFree {
            input + output
        } else {
            input + output / 2.0
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tokens of a request")]
        let tokens = held.ceil() as u64;
        let engine = Engine { fraction: self.fraction.or(engine.fraction), ..engine };
        let engine = benchmark.map_or(engine, |benchmark| benchmark.of(engine, &self.model));
        let found = fits(&self.model, &layout, &engine, &formats, usable, (tokens, 0));
        if found.pool < found.request || found.request <= Bytes::ZERO {
            return Err(Unusable(format!(
                "{} of weights leave no room for a request of {tokens} tokens",
                found.weights
            )));
        }
        let requests = found.pool / found.request * f64::from(layout.attention_data) * f64::from(layout.pipeline);
        Ok(Room { requests })
    }

    /// Kinds of the formats of its weights, which most are experts' where it has such, and its cache.
    pub(super) fn formats(&self) -> [&'static str; 2] {
        let module = if self.has_experts() { Module::Experts } else { Module::Mlp };
        let weights = self.model.formats.of(module).format;
        [weights.kind(), CacheFormats::of(&self.model).keys_values.kind()]
    }

    pub(super) fn has_experts(&self) -> bool {
        self.model.blocks.iter().any(|block| block.moe().is_some())
    }

    /// What the benchmark of TensorRT-LLM goes by.
    pub(super) fn benchmark(
        &self,
        layout: ServingLayout,
        version: Option<EngineVersion>,
        lengths: (f64, f64),
    ) -> Benchmark {
        Benchmark::new(&self.model, layout, self.accelerator.memory_capacity, version, lengths)
    }

    pub(super) fn links(&self) -> Bandwidth {
        self.node.scale_up.bandwidth_per_direction
    }
}
