//! The way of the data, and what storage it takes.

use super::measure::count_up;
use super::plan;
use crate::evaluate::Evaluation;
use crate::reliability::daly_interval;
use crate::units::{Bandwidth, Bytes};
use crate::workload::CheckpointMode;

figures! {
    Data:
    "data.raw_bytes": Bytes, "Gathered", "Raw data.";
        "as given" from ["training.data.raw"] => |e| plan(e)?.data.raw?;
    "data.cleaned_bytes": Bytes, "Cleaned", "What filters and deduplication leave.";
        "as given" from ["training.data.cleaned"] => |e| plan(e)?.data.cleaned?;
    "data.tokenised_bytes": Bytes, "Tokenised", "The cleaned data as numbers of tokens.";
        "cleaned / text of a token x size of a token" from ["data.cleaned_bytes", "training.data.text_per_token", "training.data.token_size"]
        => |e| plan(e)?.data.tokenised()?;
    "data.epochs_ratio": Quotient, "Times that the data is read", "Tokens of the run over those of the data.";
        "tokens of the run / (cleaned / text of a token)" from ["training.tokens", "data.cleaned_bytes", "training.data.text_per_token"]
        => |e| e.scenario.training.as_ref()?.job.tokens / plan(e)?.data.tokens()?;
    "data.preparation_core_h": Hours, "Preparation, core-hours", "Cleaning all of it and tokenising what is left.";
        "gathered / rate of cleaning + cleaned / rate of tokenising" from ["data.raw_bytes", "data.cleaned_bytes", "training.data.clean_rate", "training.data.tokenise_rate"]
        => |e| plan(e)?.data.preparation()?;
    "data.preparation_days": Days, "  on the cores given", "Before training begins.";
        "core-hours / cores" from ["data.preparation_core_h", "training.data.cores"]
        => |e| plan(e)?.data.preparation()? / f64::from(plan(e)?.data.cores);
    "data.read_gbytes_per_s": GbytesPerSecond, "Training reads", "What loaders read while it runs.";
        "tokens of a step x size of what is stored of one / iteration" from ["training.tokens_per_s", "training.data.stored", "training.data.token_size", "training.data.text_per_token"]
        => |e| read_rate(e)?;
    "data.read_gbytes_per_s_per_gpu": GbytesPerSecond, "  a GPU", "What loaders read while it runs, for one GPU.";
        "what training reads / accelerators at work" from ["data.read_gbytes_per_s", "cluster.accelerators"]
        => |e| read_rate(e)? / f64::from(e.scenario.cluster.accelerators);
    "data.read_available_gbytes_per_s": GbytesPerSecond, "  the storage gives", "Read bandwidth of all its units.";
        "read bandwidth of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.read_bandwidth"]
        => |e| e.scenario.cluster.storage.read_bandwidth.value * units(e)?;
    "data.loader_cores_per_gpu": PerGpu, "Cores that tokenise, a GPU", "Busy while training runs; none where tokens are stored.";
        "text of the tokens a second / rate of tokenising / accelerators" from ["training.tokens_per_s", "training.data.tokenise_rate", "training.data.stored"]
        => |e| plan(e)?.data.busy_cores(e.point?.step.tokens, e.point?.step.iteration()) / f64::from(e.scenario.cluster.accelerators);
    "data.prefetch_bytes_per_gpu": Bytes, "Read ahead, a GPU", "Memory of the hosts that steps read ahead take.";
        "steps ahead x what a step reads / accelerators" from ["training.data.prefetch", "data.read_gbytes_per_s", "training.iteration_s"]
        => |e| plan(e)?.data.read(e.point?.step.tokens) * f64::from(plan(e)?.data.prefetch) / f64::from(e.scenario.cluster.accelerators);
    "data.checkpoint_write_gbytes_per_s": GbytesPerSecond, "Checkpoints take", "The write bandwidth with which each is stored before the next.";
        "checkpoint / best interval" from ["goodput.checkpoint_bytes", "goodput.daly_interval_s", "training.checkpoint"]
        => |e| checkpoint_rate(e)?;
    "data.write_available_gbytes_per_s": GbytesPerSecond, "  the storage takes", "Write bandwidth of all its units.";
        "write bandwidth of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.write_bandwidth"]
        => |e| e.scenario.cluster.storage.write_bandwidth.value * units(e)?;
    "data.storage_needed_bytes": Bytes, "Capacity needed", "What loaders read, once, and two checkpoints: the last, and the one that is being written.";
        "what is stored of the data, or of the run's tokens where they are not given + 2 x checkpoint" from ["data.cleaned_bytes", "data.tokenised_bytes", "training.tokens", "goodput.checkpoint_bytes"]
        => |e| capacity_needed(e)?;
    "data.storage_bytes": Bytes, "  the storage has", "Usable capacity of all its units.";
        "capacity of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.capacity"]
        => |e| e.scenario.cluster.storage.capacity * units(e)?;
    "data.storage_units_needed_count": Count, "Units of storage needed", "For the capacity, the reading and the checkpoints.";
        "the most of capacity, reading and checkpoints over those of a unit, rounded up"
        from ["data.storage_needed_bytes", "data.read_gbytes_per_s", "data.checkpoint_write_gbytes_per_s", "cluster.storage"]
        => |e| units_needed(e)?;
    "data.storage_suffices": Flag, "Storage suffices", "Whether the units that are bought are that many.";
        "units needed <= units" from ["data.storage_units_needed_count", "cluster.storage_units"]
        => |e| units_needed(e)? <= u64::from(e.scenario.cluster.storage_units);
}

/// What loaders read in a second.
fn read_rate(e: &Evaluation) -> Option<Bandwidth> {
    let step = e.point?.step;
    Some(plan(e)?.data.read(step.tokens) / step.iteration())
}

/// How many units of storage a training cluster has.
fn units(e: &Evaluation) -> Option<f64> {
    e.scenario.training.as_ref().map(|_| f64::from(e.scenario.cluster.storage_units))
}

/// Write bandwidth that stores a checkpoint within the best interval; none where they go to the memory of hosts.
fn checkpoint_rate(e: &Evaluation) -> Option<Bandwidth> {
    let (training, hazards) = (e.scenario.training.as_ref()?, e.failures?.hazards);
    if training.checkpoint == CheckpointMode::InMemory {
        return Some(Bandwidth::ZERO);
    }
    Some(hazards.checkpoint.size / daly_interval(hazards.checkpoint.stall, hazards.mtbf))
}

fn capacity_needed(e: &Evaluation) -> Option<Bytes> {
    let data = &plan(e)?.data;
    let whole = data.tokens().unwrap_or(e.scenario.training.as_ref()?.job.tokens);
    Some(data.read(whole) + e.failures?.hazards.checkpoint.size * 2.0)
}

fn units_needed(e: &Evaluation) -> Option<u64> {
    let unit = &e.scenario.cluster.storage;
    let shares = [
        capacity_needed(e)? / unit.capacity,
        read_rate(e)? / unit.read_bandwidth.value,
        checkpoint_rate(e)? / unit.write_bandwidth.value,
    ];
    count_up(shares.into_iter().fold(0.0, f64::max))
}
