//! The layout of a row, and the rules for what it leaves open.

use super::Filled;
use crate::catalog::training_efficiency::Framework;
use crate::memory;
use crate::parallelism::{ContextExchange, Layout, Recompute, Schedule, Sharding};
use crate::scenario::Software;
use crate::units::Bytes;
use crate::validation::aliases::{Aliases, StatedRecompute};
use crate::validation::table::{Row, Unusable};
use crate::workload::{TrainingJob, Transformer};

/// Share of idle time in the pipeline that the virtual stages are chosen to stay below.
const BUBBLE: f64 = 0.08;
/// An estimate of memory that is this much above the capacity still counts as fitting.
const MEMORY_SLACK: f64 = 1.05;

/// What a layout is filled from beside the row.
pub(super) struct Known<'a> {
    pub(super) gpus: u32,
    /// GPUs at work in a node.
    pub(super) at_work: u32,
    pub(super) model: &'a Transformer,
    pub(super) job: &'a TrainingJob,
    pub(super) software: &'a Software,
    pub(super) allowances: &'a memory::Software,
    pub(super) memory: Bytes,
}

/// Reads the layout of a row.
pub(super) fn layout(row: &Row, known: &Known<'_>, aliases: &Aliases, filled: &mut Filled) -> Result<Layout, Unusable> {
    let (tensor, pipeline) = (row.needed_count("tp")?, row.needed_count("pp")?);
    let context = one(row, "cp", true, filled)?;
    let expert = one(row, "ep", known.model.experts.is_some(), filled)?;
    let bare = Layout {
        tensor,
        context,
        context_exchange: ContextExchange::AllGather,
        pipeline,
        data: 1,
        expert,
        virtual_stages: 1,
        micro_batch: 1,
        schedule: Schedule::OneF1b,
        sharding: Sharding::None,
        stage_layers: None,
        shard_ranks: 0,
        recompute: Recompute::None,
        sequence_parallel: false,
        order: Software::usual_order(known.software.framework),
    };
    let impossible = |error: crate::parallelism::LayoutError| Unusable(format!("the layout cannot be: {error}"));
    let mut layout = bare.over(known.gpus).map_err(impossible)?;
    if let Some(stated) = row.count("dp")?.filter(|stated| *stated != layout.data) {
        return Err(Unusable(format!("dp is {stated}, and {} GPUs make {} replicas", known.gpus, layout.data)));
    }
    let chunks = if pipeline > 1 { aliases.usual_chunks(row.text("source").unwrap_or_default()) } else { None };
    layout.micro_batch = micro_batch(row, &layout, known.job.global_batch, chunks.is_some(), filled)?;
    layout.check(known.model, known.job).map_err(impossible)?;
    layout.virtual_stages = virtual_stages(row, &layout, known, chunks, filled)?;
    layout.schedule = match super::word(row, "schedule", Schedule::ALL, Schedule::word)? {
        Some(stated) => stated,
        None if layout.virtual_stages > 1 => Schedule::Interleaved,
        None => Schedule::OneF1b,
    };
    layout.sharding = sharding(row, &layout, known.software, aliases, filled)?;
    if layout.sharding == Sharding::Hybrid {
        layout.shard_ranks = (known.at_work / (tensor * context)).max(1);
        filled.push("shard_ranks", &layout.shard_ranks, "the ranks of a node, as hybrid sharding is usual");
    }
    let recompute = stated_recompute(row, aliases)?;
    layout.sequence_parallel = sequence_parallel(row, tensor, recompute, known.software, aliases, filled);
    layout.recompute = recompute.unwrap_or_else(|| fill_recompute(&layout, known, filled));
    layout.check(known.model, known.job).map_err(impossible)?;
    Ok(layout)
}

/// A degree that is one where nothing is stated.
fn one(row: &Row, column: &'static str, shown: bool, filled: &mut Filled) -> Result<u32, Unusable> {
    let stated = row.count(column)?;
    if stated.is_none() && shown {
        filled.push(column, &1, "not stated");
    }
    Ok(stated.unwrap_or(1))
}

/// Sequences of a microbatch: one with a pipeline (or as leaves a microbatch a stage), else the largest divisor of a
/// replica's share up to four.
fn micro_batch(
    row: &Row,
    layout: &Layout,
    global_batch: u32,
    one_a_stage: bool,
    filled: &mut Filled,
) -> Result<u32, Unusable> {
    if let Some(stated) = row.count("mbs")? {
        return Ok(stated);
    }
    let share = global_batch / layout.data;
    let (size, rule) = if one_a_stage && share.is_multiple_of(layout.pipeline) {
        (share / layout.pipeline, "a microbatch a stage, as the program does")
    } else if layout.pipeline > 1 {
        (1, "one with a pipeline")
    } else {
        ((1..=4).rev().find(|size| share.is_multiple_of(*size)).unwrap_or(1), "as a replica's share divides, up to 4")
    };
    filled.push("mbs", &size, rule);
    Ok(size)
}

/// Chunks of a stage: one before 2022, when interleaving was new; later as few as keep the bubble small.
fn virtual_stages(
    row: &Row,
    layout: &Layout,
    known: &Known<'_>,
    usual: Option<u32>,
    filled: &mut Filled,
) -> Result<u32, Unusable> {
    if let Some(stated) = row.count("vpp")? {
        return Ok(stated);
    }
    let pipeline = layout.pipeline;
    if pipeline == 1 {
        return Ok(1);
    }
    if let Some(usual) = usual {
        let notes = row.text("notes").unwrap_or_default();
        let plain = notes.contains("1F1B") && !notes.contains("Interleaved");
        let chunks = if plain { 1 } else { usual };
        filled.push("vpp", &chunks, "as the program does");
        return Ok(chunks);
    }
    let microbatches = layout.microbatches(known.job.global_batch);
    if known.software.date < 2022.0 || !microbatches.is_multiple_of(pipeline) {
        let rule = if known.software.date < 2022.0 {
            "not interleaved before 2022"
        } else {
            "microbatches make no whole rounds"
        };
        filled.push("vpp", &1, rule);
        return Ok(1);
    }
    // Where layers do not divide, the embedding and the loss count as a layer each.
    let layers = known.model.layers;
    let slots = if layers.is_multiple_of(pipeline) { layers / pipeline } else { (layers + 2).div_ceil(pipeline) };
    let idle = |chunks: &u32| f64::from(pipeline - 1) / (f64::from(*chunks) * f64::from(microbatches));
    let fits = |chunks: &u32| slots.is_multiple_of(*chunks) && pipeline * chunks <= layers + 2;
    let chunks = (1..=slots)
        .filter(fits)
        .find(|chunks| idle(chunks) <= BUBBLE)
        .or_else(|| (1..=slots).rev().find(fits))
        .unwrap_or(1);
    filled.push("vpp", &chunks, "fewest chunks that keep the bubble below 8 %, else the most");
    Ok(chunks)
}

/// What data-parallel ranks split.
fn sharding(
    row: &Row,
    layout: &Layout,
    software: &Software,
    aliases: &Aliases,
    filled: &mut Filled,
) -> Result<Sharding, Unusable> {
    let pytorch = matches!(software.framework, Framework::PytorchNative | Framework::PytorchFsdp);
    let Some(text) = row.text("dp_sharding") else {
        let usual = if software.framework == Framework::PytorchFsdp { Sharding::Full } else { Sharding::Optimizer };
        let usual = if layout.data_ranks() == 1 { Sharding::None } else { usual };
        filled.push("dp_sharding", &usual, "usual of the framework");
        return Ok(usual);
    };
    let stated = aliases.sharding(text).ok_or_else(|| Unusable(format!("dp_sharding \"{text}\" is unknown")))?;
    if stated == Sharding::OptimizerGradients && layout.pipeline > 1 && !pytorch {
        // Megatron and DeepSpeed pipelines add up whole gradients over the microbatches of a step.
        filled.push("dp_sharding", &Sharding::Optimizer, "a pipeline of this framework accumulates whole gradients");
        return Ok(Sharding::Optimizer);
    }
    Ok(stated)
}

/// What the row says of recomputation; nothing where it states nothing.
fn stated_recompute(row: &Row, aliases: &Aliases) -> Result<Option<Recompute>, Unusable> {
    let Some(text) = row.text("recompute") else { return Ok(None) };
    match aliases.recompute(text) {
        Some(StatedRecompute::Is(recompute)) => Ok(Some(recompute)),
        Some(StatedRecompute::Unstated) => Ok(None),
        None => Err(Unusable(format!("recompute \"{text}\" is unknown"))),
    }
}

/// The least recomputation whose estimated memory fits; none since 2025, when recipes offload or recompute cheap modules
/// instead.
fn fill_recompute(layout: &Layout, known: &Known<'_>, filled: &mut Filled) -> Recompute {
    if known.software.date >= 2025.0 {
        filled.push("recompute", &Recompute::None, "usual since 2025");
        return Recompute::None;
    }
    let fits = |recompute: &Recompute| {
        let (_, peak) =
            memory::worst(known.model, known.job, &Layout { recompute: *recompute, ..*layout }, known.allowances);
        peak.total() <= known.memory * MEMORY_SLACK
    };
    let least = [Recompute::None, Recompute::Selective].into_iter().find(fits).unwrap_or(Recompute::Full);
    filled.push("recompute", &least, "the least whose estimated memory fits");
    least
}

/// Whether tensor ranks split the sequence between matrices: in software since 2022 that does (Korthikanti et al.,
/// arXiv 2205.05198, brought it in together with selective recomputation).
fn sequence_parallel(
    row: &Row,
    tensor: u32,
    recompute: Option<Recompute>,
    software: &Software,
    aliases: &Aliases,
    filled: &mut Filled,
) -> bool {
    if tensor == 1 {
        return false;
    }
    if row.text("notes").is_some_and(|notes| aliases.denies_sequence_parallel(notes)) {
        return false;
    }
    let before = software.date < 2022.0
        || (software.date < 2023.0 && recompute == Some(Recompute::Full))
        || software.framework == Framework::MegatronDeepspeed;
    let rule = if before { "not yet in this software" } else { "usual with tensor parallelism since 2022" };
    filled.push("sequence_parallel", &!before, rule);
    !before
}
