//! Memory of training, by component, against closed forms of papers and measured peaks.
//!
//! - What a row counts is in its `component`: states a parameter, states of the layers alone, activations of one layer or
//!   of a stage's layers, their ratio to plain tensor parallelism, or a peak.
//! - A peak that is *allocated* has no allowance; one that is *reserved* has the allocator's, and one of a whole device
//!   those of the context and of the communicators too.
//! - Sizes that a row leaves out are its model's in the catalog, with the row's layers (`known_model`); a GPT's inner width is four times
//!   the hidden one. Layers of BLOOM's candidates follow from their parameters: the multiple of the stages that is
//!   nearest to (N - V h)/(12 h^2).
//! - A formula's figure that rounds to the published digits is exact.
//! - The loss of a torchtitan run of April 2025 or later is compiled; the date is in its source.
//! - Microbatches are enough to fill the pipeline where the batch is not given.

use super::aliases::{Aliases, Shape};
use super::known_model::known_model;
use super::outcome::{Fill, Outcome, Prediction};
use super::table::{Row, Unusable};
use crate::catalog::Catalog;
use crate::catalog::memory_allowance::{FrameworkMemory, Loss, SelectiveRecompute};
use crate::catalog::model::Norm;
use crate::catalog::training_efficiency::{AttentionKernel, Framework};
use crate::memory::{Software, worst};
use crate::parallelism::{ContextExchange, Layout, Module, Modules, RankOrder, Recompute, Schedule, Sharding};
use crate::scenario::Software as ScenarioSoftware;
use crate::units::{Bytes, Factor, Fraction, Tokens, to_integer};
use crate::workload::{Detail, GradientPrecision, LayerKind, Offload, Optimizer, Precision, TrainingJob, Transformer};

/// Columns that a table of memory must have.
pub(super) const COLUMNS: &[&str] = &["id", "component", "value", "unit", "model"];

/// What a row is about.
struct Case {
    model: Transformer,
    job: TrainingJob,
    layout: Layout,
    software: Software,
}

/// Predicts one row, which no rule about the data leaves out.
pub(super) fn case(row: &Row, catalog: &Catalog, aliases: &Aliases) -> (Vec<Fill>, Outcome) {
    let mut filled = Vec::new();
    let measured = match row.number("value") {
        Ok(Some(value)) if value > 0.0 => value,
        _ => return (filled, Outcome::Excluded("no numeric value".to_owned())),
    };
    let component = row.text("component").unwrap_or_default();
    if row.text("kind").is_some_and(|kind| kind.starts_with("estimate") || kind == "theoretical") {
        return (filled, Outcome::Excluded("an estimate, not a measurement".to_owned()));
    }
    if row.text("model").is_some_and(|model| model.contains("LoRA")) {
        return (filled, Outcome::Excluded("adapters: not every parameter is trained".to_owned()));
    }
    let outcome = predict(row, component, catalog, aliases, &mut filled).map_or_else(
        |Unusable(reason)| Outcome::Skipped(reason),
        |(predicted, convention)| {
            let gpus = row.count("num_gpus").ok().flatten();
            let mut convention = convention.map(str::to_owned);
            let mut measured = measured;
            let text = row.text("value").unwrap_or_default();
            // What a formula comes to was published with so many digits: a figure that rounds to it is the same figure.
            let off = (predicted - measured).abs();
            if row.text("kind") == Some("formula") && off > 0.0 && off <= half_of_last_digit(text) {
                measured = predicted;
                let known = convention.map_or_else(String::new, |known| format!("{known}; "));
                convention = Some(format!("{known}published as {text}, which this rounds to"));
            }
            Outcome::Predicted(Prediction { metric: component.to_owned(), measured, predicted, convention, gpus })
        },
    );
    (filled, outcome)
}

/// Half a unit of the last digit that is written.
fn half_of_last_digit(text: &str) -> f64 {
    let decimals = text.trim().split_once('.').map_or(0, |(_, fraction)| fraction.len());
    #[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation, reason = "digits of a cell")]
    let unit = 10_f64.powi(-(decimals as i32));
    unit / 2.0
}

/// The figure in the row's unit, and what it counts.
fn predict(
    row: &Row,
    component: &str,
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<(f64, Option<&'static str>), Unusable> {
    let unit = row.needed("unit")?;
    if let Some(states) = bytes_per_parameter(component) {
        return states_of(component, states, unit);
    }
    let case = read(row, component, catalog, aliases, filled)?;
    let Case { model, job, layout, software } = &case;
    let layers = layout.most_layers(model.layers);
    let activations = |layout: &Layout| layout.layer_activations(model, LayerKind::Dense, job, software).kept;
    let of_stage = |layout: &Layout| {
        activations(layout) * f64::from(layers) * layout.in_flight(0, layout.microbatches(job.global_batch))
    };
    let bytes = if component.starts_with("activation memory relative") {
        let plain = Layout { recompute: Recompute::None, sequence_parallel: false, ..*layout };
        return Ok((100.0 * (activations(&changed(component, &plain)) / activations(&plain)), None));
    } else if component.contains("ONE layer without") {
        activations(&Layout { tensor: 1, sequence_parallel: false, recompute: Recompute::None, ..*layout })
    } else if component.contains("ONE layer per GPU") {
        activations(&changed("SP + selective", layout))
    } else if component.starts_with("activations per GPU") {
        of_stage(&changed(component, layout))
    } else if component.starts_with("parameters+gradients+optimizer") {
        let held = layout.layer_shard(model, LayerKind::Dense).total() * f64::from(layers);
        (job.precision.size() + job.gradients.size() + job.optimizer.state_size()) * held
    } else if component.contains("peak") {
        worst(model, job, layout, software).1.total()
    } else {
        return Err(Unusable(format!("what \"{component}\" counts is not known")));
    };
    let counts = component.starts_with("parameters+").then_some("layers only, as the figure does");
    Ok((in_unit(bytes, unit)?, counts))
}

/// Recomputation and sequence parallelism as a component of the paper names them.
fn changed(component: &str, layout: &Layout) -> Layout {
    let sequence_parallel = component.contains("SP") || layout.sequence_parallel;
    let recompute = if component.contains("selective") {
        Recompute::Selective
    } else if component.contains("full") {
        Recompute::Full
    } else {
        Recompute::None
    };
    // The paper's full recomputation keeps a layer's input whole.
    Layout { recompute, sequence_parallel: sequence_parallel && recompute != Recompute::Full, ..*layout }
}

fn in_unit(bytes: Bytes, unit: &str) -> Result<f64, Unusable> {
    let one = match unit {
        "GiB" => Bytes::new(1_073_741_824.0),
        "MiB" => Bytes::new(1_048_576.0),
        "GB" => Bytes::new(1e9),
        "bytes" => Bytes::new(1.0),
        other => return Err(Unusable(format!("\"{other}\" is no unit of memory"))),
    };
    Ok(bytes / one)
}

/// Weights, gradients and optimizer states of a parameter where a row is about them alone: 16-bit gradients in the ZeRO
/// paper, 32-bit ones in Megatron.
fn bytes_per_parameter(component: &str) -> Option<[Bytes; 3]> {
    let gradients = if component.starts_with("weights+optimizer+fp32 main grads") {
        GradientPrecision::Fp32
    } else if component.starts_with("mixed-precision Adam") || component.starts_with("model states") {
        GradientPrecision::Bf16
    } else {
        return None;
    };
    Some([Precision::Fp16.size(), gradients.size(), Optimizer::Adam.state_size()])
}

/// States of the ZeRO paper's example, 7.5 billion parameters on 64 ranks (arXiv 1910.02054, figure 1), or of one.
fn states_of(
    component: &str,
    [weights, gradients, optimizer]: [Bytes; 3],
    unit: &str,
) -> Result<(f64, Option<&'static str>), Unusable> {
    const PARAMETERS: f64 = 7.5e9;
    const RANKS: f64 = 64.0;
    if unit == "bytes/param" {
        return Ok(((weights + gradients + optimizer) / Bytes::new(1.0), None));
    }
    let sharding = match () {
        () if component.contains("stage 3") => Sharding::Full,
        () if component.contains("stage 2") => Sharding::OptimizerGradients,
        () if component.contains("stage 1") => Sharding::Optimizer,
        () => Sharding::None,
    };
    let part = |sharded: bool| if sharded { 1.0 / RANKS } else { 1.0 };
    let each = weights * part(sharding.weights())
        + gradients * part(sharding.gradients())
        + optimizer * part(sharding.optimizer());
    Ok((in_unit(each * PARAMETERS, unit)?, Some("7.5 billion parameters on 64 ranks")))
}

fn fill(filled: &mut Vec<Fill>, field: &'static str, value: &dyn std::fmt::Display, rule: &str) {
    filled.push(Fill { field, value: value.to_string(), rule: rule.to_owned() });
}

fn read(
    row: &Row,
    component: &str,
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<Case, Unusable> {
    let count = |column| Ok::<u32, Unusable>(row.count(column)?.unwrap_or(1));
    let (tensor, pipeline) = (row.needed_count("tp")?, row.needed_count("pp")?);
    let model = transformer(row, pipeline, catalog, aliases, filled)?;
    let (context, expert) = (count("cp")?, count("ep")?);
    let data = row.count("dp")?.unwrap_or(1);
    let (kind, framework) = software_of(row, component)?;
    let micro_batch = micro_batch(row, data, pipeline, framework, filled)?;
    let virtual_stages = match row.count("vpp")? {
        Some(stated) => stated,
        None if row.text("notes").is_some_and(|notes| notes.contains("Interleaved1F1B")) => {
            fill(filled, "vpp", &2, "two stages a rank, torchtitan's default");
            2
        }
        None => 1,
    };
    let schedule = if virtual_stages > 1 && pipeline > 1 { Schedule::Interleaved } else { Schedule::OneF1b };
    let layout = Layout {
        tensor,
        context,
        context_exchange: ContextExchange::AllGather,
        pipeline,
        data,
        expert,
        virtual_stages: if schedule == Schedule::Interleaved { virtual_stages } else { 1 },
        micro_batch,
        schedule,
        sharding: sharding(row.text("dp_sharding").unwrap_or_default())?,
        stage_layers: None,
        shard_ranks: 0,
        recompute: recompute(row)?,
        sequence_parallel: tensor > 1 && framework != Framework::MegatronDeepspeed && kind != Peak::Formula,
        order: RankOrder::TpCpEpDpPp,
    };
    let step = data * micro_batch * pipeline;
    let global_batch = match row.count("gbs")? {
        Some(batch) if batch >= step && batch.is_multiple_of(data * micro_batch) => batch / step * step,
        _ => step * 2,
    };
    let job = TrainingJob {
        sequence_length: row.count("seq")?.unwrap_or(2_048),
        global_batch,
        tokens: Tokens::new(1e12),
        precision: precision(row),
        gradients: gradients(row, framework, filled),
        optimizer: Optimizer::Adam,
        offload: Offload::None,
        expert_imbalance: Factor::ONE,
    };
    let allowance = catalog.memory_allowances.get("cuda").ok_or_else(|| Unusable("no memory allowances".to_owned()))?;
    let unfused = kind == Peak::Formula;
    let kernel = if unfused { AttentionKernel::Unfused } else { AttentionKernel::Fa2 };
    let loss = loss(row, framework, filled);
    let kept = allowance.with_loss(framework, loss).unwrap_or(FrameworkMemory {
        logit: Bytes::ZERO,
        selective_recompute: SelectiveRecompute::AttentionCore,
        cast_inputs: false,
        casts_weights: false,
    });
    let mut software = Software::new(&allowance.part, kept, kernel);
    if kind != Peak::Device {
        software = Software { context: Bytes::ZERO, communicator: Bytes::ZERO, ..software };
    }
    if kind == Peak::Allocated {
        software.fragmentation = Fraction::ZERO;
    }
    if kind != Peak::Formula {
        layout.check(&model, &job).map_err(|error| Unusable(format!("the layout cannot be: {error}")))?;
    }
    Ok(Case { model, job, layout, software })
}

/// The loss is compiled where the source's date says that the framework compiles it with the model, which these runs do.
fn loss(row: &Row, framework: Framework, filled: &mut Vec<Fill>) -> Loss {
    let digits = |part: &str| part.len() == 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let source = row.text("source").unwrap_or_default();
    let month = source.split('_').find(|part| digits(part)).and_then(|part| part.parse::<u32>().ok());
    let date = month.map(|month| f64::from(month / 100) + f64::from((month % 100).saturating_sub(1)) / 12.0);
    if date.is_some_and(|date| ScenarioSoftware::compiles_loss(framework, date)) {
        fill(filled, "loss", &Loss::Compiled, "compiled with the model, as torchtitan does since April 2025");
        return Loss::Compiled;
    }
    Loss::Plain
}

/// What a row's figure was read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peak {
    /// A formula: attention's scores in memory, as the paper's time had it.
    Formula,
    /// What tensors take at once.
    Allocated,
    /// What the allocator holds.
    Reserved,
    /// What the device reports.
    Device,
}

fn software_of(row: &Row, component: &str) -> Result<(Peak, Framework), Unusable> {
    let source = row.text("source").unwrap_or_default();
    let has = |part: &str| source.contains(part);
    Ok(match () {
        () if has("Korthikanti") => (Peak::Formula, Framework::MegatronLm),
        () if component.contains("allocated") => (Peak::Allocated, Framework::MegatronCore),
        () if component.contains("reserved") => (Peak::Reserved, Framework::PytorchNative),
        () if has("BLOOM") || has("BigScience") => (Peak::Device, Framework::MegatronDeepspeed),
        // "OOM by fragmentation" beside 59 GB of 80: what tensors take, not what the allocator holds.
        () if has("Megatron") => (Peak::Allocated, Framework::MegatronCore),
        () => return Err(Unusable("the software is not stated".to_owned())),
    })
}

fn sharding(text: &str) -> Result<Sharding, Unusable> {
    Ok(match text {
        "" | "none" => Sharding::None,
        "zero1" | "distributed optimizer" => Sharding::Optimizer,
        "FSDP2" | "FSDP" | "zero3" => Sharding::Full,
        other => return Err(Unusable(format!("sharding \"{other}\" is not known"))),
    })
}

fn recompute(row: &Row) -> Result<Recompute, Unusable> {
    let text = row.text("recompute").unwrap_or("none");
    Ok(match text {
        "none" => Recompute::None,
        "full" => Recompute::Full,
        "selective: core_attn" => Recompute::Selective,
        _ if text.starts_with("selective: ") => {
            let words = text.trim_start_matches("selective: ").split('+').map(|word| {
                let found = Module::ALL.iter().copied().find(|module| module.word() == word);
                found.ok_or_else(|| Unusable(format!("recomputation of module \"{word}\" is not known")))
            });
            Recompute::Modules(Modules::of(&words.collect::<Result<Vec<_>, _>>()?))
        }
        _ if text.starts_with("selective") => Recompute::Selective,
        other => return Err(Unusable(format!("recomputation \"{other}\" is not known"))),
    })
}

/// What matrices are multiplied in; scales of torchtitan's are those of whole tensors too.
fn precision(row: &Row) -> Precision {
    if row.text("precision").is_some_and(|text| text.contains("fp8") || text.contains("float8")) {
        Precision::Fp8
    } else {
        Precision::Bf16
    }
}

/// Gradients are kept in 16 bits where Megatron multiplies in FP8, as its recipes have it, and else in 32.
fn gradients(row: &Row, framework: Framework, filled: &mut Vec<Fill>) -> GradientPrecision {
    let low = row.text("precision").is_some_and(|precision| precision.contains("fp8"));
    if low && framework == Framework::MegatronCore {
        fill(filled, "gradients", &GradientPrecision::Bf16, "16 bits with FP8, as recipes have it");
        return GradientPrecision::Bf16;
    }
    GradientPrecision::Fp32
}

/// Sequences of a forward pass: the row's. torchtitan splits a replica's batch into as many microbatches as stages; else
/// one is taken, as pipelines run.
fn micro_batch(
    row: &Row,
    data: u32,
    pipeline: u32,
    framework: Framework,
    filled: &mut Vec<Fill>,
) -> Result<u32, Unusable> {
    if let Some(stated) = row.count("mbs")? {
        return Ok(stated);
    }
    if data == 0 {
        return Err(Unusable("dp is missing".to_owned()));
    }
    if framework == Framework::PytorchNative {
        let split = (row.needed_count("gbs")? / (data * pipeline)).max(1);
        fill(filled, "mbs", &split, "as many microbatches as stages, torchtitan's default");
        return Ok(split);
    }
    fill(filled, "mbs", &1, "one sequence, as pipelines run");
    Ok(1)
}

fn transformer(
    row: &Row,
    pipeline: u32,
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<Transformer, Unusable> {
    let name = row.needed("model")?;
    let Some(hidden) = row.count("hidden")? else {
        let id = match aliases.family(name) {
            Some(Ok(Shape::Catalog(id))) => id,
            _ => name,
        };
        let (model, fill) = known_model(row, id, catalog)?;
        filled.push(fill);
        return Ok(model);
    };
    let heads = row.needed_count("heads")?;
    let vocab = row.needed_count("vocab")?;
    let lower = name.to_lowercase();
    let llama = lower.contains("llama");
    let kv_heads = row.count("kv_heads")?.unwrap_or(heads);
    let layers = match row.count("layers")? {
        Some(layers) => layers,
        None => layers_of(row, hidden, vocab, pipeline, filled)?,
    };
    let ffn = row.count("ffn")?.unwrap_or_else(|| {
        fill(filled, "ffn", &(4 * hidden), "four times hidden, as in a GPT");
        4 * hidden
    });
    Ok(Transformer {
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim: hidden / heads,
        ffn,
        gated: llama,
        vocab,
        tied_embeddings: !llama,
        norm: if llama { Norm::RmsNorm } else { Norm::LayerNorm },
        biases: !llama,
        learned_positions: 0,
        experts: None,
        detail: Detail::NONE,
    })
}

/// Layers from the parameters that a row's notes give, in billions.
fn layers_of(row: &Row, hidden: u32, vocab: u32, pipeline: u32, filled: &mut Vec<Fill>) -> Result<u32, Unusable> {
    let stated =
        row.text("notes").and_then(|notes| notes.split("params ").nth(1)?.split(' ').next()?.parse::<f64>().ok());
    let Some(billions) = stated else { return Err(Unusable("layers are missing".to_owned())) };
    let [h, v] = [hidden, vocab].map(f64::from);
    let layers = (billions * 1e9 - v * h) / (12.0 * h * h);
    let stage = (layers / f64::from(pipeline)).round().max(1.0);
    let layers = to_integer::<u32>(stage) * pipeline;
    fill(filled, "layers", &layers, "from the parameters, as many on each stage");
    Ok(layers)
}
