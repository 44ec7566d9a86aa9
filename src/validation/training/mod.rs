//! Training runs: the row's own sizes and layout, timed by the same step model as a scenario.
//!
//! A row need not state everything. What it leaves open is filled by the rules below, and every filled field is listed
//! with the row.
//!
//! - Sizes of the model come from the row, else from the catalog's model of that name. Its layers are shaped as its
//!   family is: gated MLPs, RMS norms and no biases in Llama, Mistral and Qwen, plain ones in GPT and MPT. Heads of keys
//!   and values are as many as those of queries, a head has hidden over heads channels (128 in Qwen3), a GPT's vocabulary
//!   is 51,200.
//! - The network is what the fabric's text says for one GPU: a rate "per node" is shared by its GPUs. Where nothing is
//!   stated it is what the node is usually built with; where the rate is another than the catalog's fabric of that class
//!   has, cards of the stated rate stand in its place.
//! - Microbatches are of one sequence with a pipeline, else of the largest divisor of a replica's share up to four.
//! - Virtual stages: one before 2022; later the fewest chunks that divide a stage's layers and keep the bubble
//!   `(p - 1)/(v m)` below 8 %, else as many as there are.
//! - Recomputation: the least (none, selective, full) whose estimated memory is at most 1.05 of the GPU's. Memory decides
//!   nothing else: a published run did fit.
//! - Gradients travel in 32 bits with bf16, and in 16 bits before 2023 and with narrower formats.
//! - Tensor ranks split the sequence in software since 2022; not in runs before 2023 that recompute everything, nor in
//!   Megatron-DeepSpeed.
//! - Pipelines of Megatron and DeepSpeed add up whole gradients, so that sharded gradients ("ZeRO-2") count there as a
//!   sharded optimizer alone.
//! - A FLOP rate counts as its publisher counts (attention whole or by its causal half, recomputed operations or not),
//!   over the model's time; the convention is shown with the row.
//! - Experts that are spread over the network exchange tokens beside other microbatches' compute in Megatron-Core since
//!   2026, where the pipeline has chunks.
//! - A blank framework is Megatron-LM before 2023 and Megatron-Core after; a blank attention kernel is the usual one of
//!   the date; a blank date is that of a scenario that gives none.

mod fabric_text;
mod hardware;
mod layout;
mod metric;
mod model;
mod run;

use self::hardware::Machine;
use self::layout::Known;
use self::metric::Metric;
pub use self::run::Run;
use super::aliases::Aliases;
use super::outcome::{Fill, Outcome, Prediction};
use super::table::{Holds, Row, Unusable};
use crate::catalog::Catalog;
use crate::catalog::memory_allowance::Loss;
use crate::catalog::training_efficiency::{AttentionKernel, Framework, TrainingEfficiency};
use crate::evaluate::StepInputs;
use crate::memory;
use crate::parallelism::{Layout, Recompute, Sharding};
use crate::scenario::{Communication, Overlap, Software, StepEfficiency};
use crate::units::{Factor, Tokens};
use crate::workload::{GradientPrecision, Offload, Optimizer, Precision, TrainingJob};

/// Columns that a table of training runs must have; others may be missing or blank.
pub(super) const COLUMNS: &[&str] = &["id", "model", "gpu", "num_gpus", "seq", "gbs", "tp", "pp", "precision"];

/// What the numbers of a table of training runs may be: steps of a millisecond to a day, and up to 100 PFLOP/s a GPU.
pub(super) const NUMBERS: &[(&str, Holds)] = &[
    ("num_gpus", Holds::COUNT),
    ("iter_s", Holds::any(1e-3, 86_400.0)),
    ("tokens_s_gpu", Holds::any(1e-3, 1e7)),
    ("tflops_per_gpu", Holds::any(1e-3, 1e5)),
];

/// The constants for a row: the same for all, or those fitted without its group.
pub(super) type Sets<'a> = dyn Fn(&Row) -> Option<&'a TrainingEfficiency> + 'a;

/// The runs of a table that can be predicted with the constants of a set, in the order of the table.
pub(super) fn runs(table: &[Row], catalog: &Catalog, aliases: &Aliases, set: &TrainingEfficiency) -> Vec<Run> {
    let run = |row: &Row| {
        let metric = Metric::read(row).ok().flatten()?;
        prepare(row, metric, catalog, aliases, set, &mut Filled::default()).ok()
    };
    table.iter().filter(|row| super::excluded(row, aliases).is_none()).filter_map(run).collect()
}

/// The part of a table that a row belongs to, where it says: constants are fitted to one, and judged by the other.
pub(super) fn role(row: &Row) -> Option<&'static str> {
    match row.text("role")? {
        "holdout" => Some("held out of the fit"),
        "calibration" => Some("fitted to"),
        _ => None,
    }
}

/// Fields filled so far.
#[derive(Default)]
struct Filled(Vec<Fill>);

impl Filled {
    fn push(&mut self, field: &'static str, value: &dyn std::fmt::Display, rule: impl Into<String>) {
        self.0.push(Fill { field, value: value.to_string(), rule: rule.into() });
    }
}

/// Predicts one row, which no rule about the data leaves out.
pub(super) fn case(row: &Row, catalog: &Catalog, aliases: &Aliases, sets: &Sets<'_>) -> (Vec<Fill>, Outcome) {
    let mut filled = Filled::default();
    let outcome = match Metric::read(row) {
        Ok(None) => Outcome::Excluded("no numeric value of iter_s, tokens_s_gpu or tflops_per_gpu".to_owned()),
        Ok(Some(metric)) => predict(row, metric, catalog, aliases, sets, &mut filled)
            .map_or_else(|Unusable(reason)| Outcome::Skipped(reason), Outcome::Predicted),
        Err(Unusable(reason)) => Outcome::Excluded(reason),
    };
    (filled.0, outcome)
}

fn predict(
    row: &Row,
    metric: Metric,
    catalog: &Catalog,
    aliases: &Aliases,
    sets: &Sets<'_>,
    filled: &mut Filled,
) -> Result<Prediction, Unusable> {
    let set = sets(row).ok_or_else(|| Unusable("the catalog has no training constants".to_owned()))?;
    let run = prepare(row, metric, catalog, aliases, set, filled)?;
    Ok(run.predict(run.efficiency(set).map_err(|error| Unusable(error.to_string()))?))
}

/// Binds a row to hardware, model and layout.
fn prepare(
    row: &Row,
    metric: Metric,
    catalog: &Catalog,
    aliases: &Aliases,
    set: &TrainingEfficiency,
    filled: &mut Filled,
) -> Result<Run, Unusable> {
    let counting = metric.counting(row, aliases)?;
    let machine = Machine::read(row, catalog, aliases, filled)?;
    let precision = precision(row, aliases)?;
    let sequence_length = row.needed_count("seq")?;
    let transformer = model::transformer(row, sequence_length, catalog, aliases, filled)?;
    let missing = |what: &str| Unusable(format!("the catalog has no {what}"));
    let (software, states_overlap) = software(row, &machine, set, aliases, filled)?;
    let host = machine.node.host;
    let efficiency = StepEfficiency::bind(set, &machine.accelerator, host, precision, &software)
        .map_err(|error| Unusable(error.to_string()))?;
    let global_batch = row.needed_count("gbs")?;
    let job = TrainingJob {
        sequence_length,
        global_batch,
        tokens: Tokens::new(f64::from(global_batch) * f64::from(sequence_length)),
        precision,
        gradients: gradients(precision, software.date, filled),
        optimizer: Optimizer::Adam,
        offload: Offload::None,
        expert_imbalance: Factor::ONE,
    };
    let allowance = catalog.memory_allowances.get("cuda").ok_or_else(|| missing("memory allowances"))?;
    let framework =
        allowance.framework(software.framework).ok_or_else(|| missing("memory allowance of the framework"))?;
    let known = Known {
        gpus: machine.gpus,
        at_work: machine.at_work,
        model: &transformer,
        job: &job,
        software: &software,
        allowances: &memory::Software::new(allowance, framework, software.attention_kernel),
        memory: machine.accelerator.memory_capacity,
    };
    let layout = layout::layout(row, &known, aliases, filled)?;
    let (_, data) = set.usual_overlap(software.framework, software.date, layout.sharding == Sharding::Full);
    let data = if states_overlap { software.overlap.data } else { data };
    let expert = hides_experts(&software, &layout, &machine);
    if expert {
        filled.push("overlap.expert", &true, "usual across the network with chunked pipelines since 2026");
    }
    let software = Software { overlap: Overlap { data, expert, ..software.overlap }, ..software };
    let mut step = StepInputs {
        transformer,
        job,
        node: &machine.node,
        at_work: machine.at_work,
        accelerators: machine.gpus,
        accelerator: &machine.accelerator,
        fabric: &machine.fabric,
        collectives: &machine.collectives,
        topology: &machine.topology,
        software: &software,
        efficiency,
        allowances: memory::Software::new(allowance, framework, software.attention_kernel),
    }
    .bind();
    if let Some(line_rate) = machine.line_rate {
        step.wires.network.line_rate = line_rate;
    }
    Ok(Run {
        source: row.text("source").unwrap_or_default().to_owned(),
        model: row.needed("model")?.to_owned(),
        holdout: row.text("role") == Some("holdout"),
        kept: row.text("source").is_some_and(|source| aliases.always_fitted(source)),
        metric,
        counting,
        accelerator: machine.accelerator,
        host,
        gpus: machine.gpus,
        software,
        step,
        layout,
    })
}

/// Since when recipes of Megatron-Core hide the exchange of experts beside other microbatches' compute.
const EXPERTS_HIDDEN: f64 = 2026.2;

/// Whether the exchange of experts is hidden: recipes ask for it where experts are spread over the network and the pipeline
/// has chunks, which it needs (Megatron Bridge, guide to communication overlap; not with full recomputation).
fn hides_experts(software: &Software, layout: &Layout, machine: &Machine) -> bool {
    software.framework == Framework::MegatronCore
        && software.date >= EXPERTS_HIDDEN
        && layout.virtual_stages > 1
        && layout.recompute != Recompute::Full
        && layout.expert > machine.at_work
}

/// The number format of the linear layers.
fn precision(row: &Row, aliases: &Aliases) -> Result<Precision, Unusable> {
    let text = row.needed("precision")?;
    aliases.precision(text).ok_or_else(|| Unusable(format!("precision \"{text}\" is unknown")))
}

/// The format that gradients are reduced in.
fn gradients(precision: Precision, date: f64, filled: &mut Filled) -> GradientPrecision {
    let narrow = date < 2023.0 || !matches!(precision, Precision::Bf16 | Precision::Fp16);
    let (gradients, bits) =
        if narrow { (GradientPrecision::Bf16, "16 bits") } else { (GradientPrecision::Fp32, "32 bits") };
    filled.push("gradients", &bits, "usual of the format and date");
    gradients
}

/// The software of a row, and whether what it overlaps is stated instead of usual.
fn software(
    row: &Row,
    machine: &Machine,
    set: &TrainingEfficiency,
    aliases: &Aliases,
    filled: &mut Filled,
) -> Result<(Software, bool), Unusable> {
    let date = row.number("software_date")?.unwrap_or_else(|| {
        filled.push("software_date", &Software::USUAL_DATE, "not stated");
        Software::USUAL_DATE
    });
    let named = row.text("framework").and_then(|name| aliases.framework(name));
    if let Some(named) = named {
        filled.push("framework", &named.class, "the class of its kind, with the overlap that its makers state");
    }
    let stated = match named {
        Some(named) => Some(named.class),
        None => word(row, "framework", Framework::ALL, Framework::word)?,
    };
    let framework = stated.unwrap_or_else(|| {
        let usual = if date < 2023.0 { Framework::MegatronLm } else { Framework::MegatronCore };
        filled.push("framework", &usual, "usual of the date");
        usual
    });
    let attention_kernel =
        word(row, "attention_kernel", AttentionKernel::ALL, AttentionKernel::word)?.unwrap_or_else(|| {
            let usual = Software::usual_kernel(&machine.accelerator.generation, date);
            filled.push("attention_kernel", &usual, "usual of the date");
            usual
        });
    let usual = set.usual_overlap(framework, date, false);
    let (tensor, data) = named.map_or(usual, |named| (named.overlaps, named.overlaps));
    let overlap = Overlap { tensor, data, expert: false };
    let communication = Communication::USUAL;
    let software = Software { date, framework, attention_kernel, loss: Loss::Plain, overlap, communication };
    Ok((software, named.is_some()))
}

/// A cell that is one of a closed set of words; nothing where it is empty.
fn word<T: Copy>(row: &Row, column: &str, all: &[T], word: impl Fn(T) -> &'static str) -> Result<Option<T>, Unusable> {
    let Some(text) = row.text(column) else { return Ok(None) };
    match all.iter().find(|choice| word(**choice) == text) {
        Some(choice) => Ok(Some(*choice)),
        None => Err(Unusable(format!("{column} \"{text}\" is not modelled"))),
    }
}
