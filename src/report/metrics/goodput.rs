//! Failures, checkpoints, and what they cost.

use crate::evaluate::Evaluation;
use crate::reliability::{daly_interval, young_interval};
use crate::units::Usd;

figures! {
    Goodput:
    "goodput.ratio": Ratio, "Goodput", "Useful share of the wall time, at the run's main step; stages have their own.";
        "interval of work / expected wall time of an interval with its checkpoint and its failures (Daly's model)"
        from ["goodput.mtbf_s", "goodput.checkpoint_interval_s", "reliability.recovery"] => |e| e.point?.goodput.ratio;
    "goodput.lost_checkpoint_ratio": Ratio, "  Lost to checkpoints", "Share of the wall time that waits for checkpoints.";
        "stall of a checkpoint / wall time of an interval" from ["goodput.checkpoint_interval_s", "training.checkpoint", "goodput.checkpoint_stall_s"]
        => |e| e.point?.goodput.lost.checkpoint;
    "goodput.lost_rework_ratio": Ratio, "  Lost to work done again", "Share of the wall time that repeats work since the last stored checkpoint.";
        "expected work lost at a failure x failures / wall time" from ["goodput.mtbf_s", "goodput.checkpoint_interval_s", "goodput.checkpoint_pending_s"]
        => |e| e.point?.goodput.lost.rework;
    "goodput.lost_detection_ratio": Ratio, "  Lost until noticed", "Share of the wall time in which a failure is not yet noticed or understood.";
        "time of detection x failures / wall time" from ["goodput.mtbf_s", "reliability.recovery"]
        => |e| e.point?.goodput.lost.detection;
    "goodput.lost_restart_ratio": Ratio, "  Lost to restarts", "Share of the wall time that replaces the node, starts the job, reads the checkpoint, and runs the first steps slowly.";
        "(restart + reading the checkpoint + rewarming) x failures / wall time" from ["goodput.mtbf_s", "reliability.recovery", "goodput.checkpoint_read_s"]
        => |e| e.point?.goodput.lost.restart;
    "goodput.lost_spares_ratio": Ratio, "  Lost waiting for spares", "Share of the wall time in which no spare is left and a repair is awaited.";
        "mean wait for a spare x failures / wall time" from ["goodput.mtbf_s", "goodput.spare_hosts_count", "goodput.interruptions_of_hosts_per_day", "reliability.recovery"]
        => |e| e.point?.goodput.lost.spares;
    "goodput.lost_network_ratio": Ratio, "  Lost to stalls of the network", "Share of the wall time that waits for links that flap and, on RoCE, for pauses that spread, without being interrupted.";
        "sum over links and cards of time of a stall / time between them" from ["fabric.cables_count", "fabrics.transport", "network_reliability.link_flap", "network_reliability.pause_storm"]
        => |e| e.point?.goodput.lost.network;
    "goodput.mtbf_s": Seconds, "Mean time between interruptions", "Of the whole job: any component at work stops it.";
        "1 / sum over causes of components / mean time between their failures" from ["cluster.accelerators", "fabric.cables_count", "reliability.mtbf"]
        => |e| e.point?.goodput.mtbf;
    "goodput.interruptions_per_day": PerDay, "Interruptions", "Of the whole job, in a day.";
        "a day / mean time between interruptions" from ["goodput.mtbf_s"] => |e| e.point?.goodput.interruptions_per_day;
    "goodput.interruptions_accelerator_per_day": PerDay, "  Accelerators", "Interruptions by accelerators, their memory left out.";
        "accelerators at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
        => |e| e.failures?.interruptions.accelerator;
    "goodput.interruptions_memory_per_day": PerDay, "  Memory (HBM)", "Interruptions by the memory of accelerators.";
        "accelerators at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
        => |e| e.failures?.interruptions.memory;
    "goodput.interruptions_host_per_day": PerDay, "  Hosts", "Interruptions by processors, disks, power supplies and unplanned maintenance.";
        "hosts at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
        => |e| e.failures?.interruptions.host;
    "goodput.interruptions_nic_per_day": PerDay, "  Network cards", "Interruptions by network cards.";
        "cards at work / mean time between failures" from ["cluster.accelerators", "network_reliability.mtbf"]
        => |e| e.failures?.interruptions.nic;
    "goodput.interruptions_switch_per_day": PerDay, "  Switches", "Interruptions by switches of any tier.";
        "switches / mean time between failures" from ["fabric.leaf_switches_count", "fabric.spine_switches_count", "fabric.core_switches_count", "network_reliability.mtbf"]
        => |e| e.failures?.interruptions.switch;
    "goodput.interruptions_optic_per_day": PerDay, "  Optical modules", "Interruptions by optical modules.";
        "modules / mean time between failures" from ["fabric.optics_count", "network_reliability.mtbf"]
        => |e| e.failures?.interruptions.optic;
    "goodput.interruptions_cable_per_day": PerDay, "  Cables", "Interruptions by cables.";
        "cables / mean time between failures" from ["fabric.cables_count", "network_reliability.mtbf"]
        => |e| e.failures?.interruptions.cable;
    "goodput.interruptions_software_per_day": PerDay, "  Software", "Interruptions by bugs, dependencies and hangs without a known cause.";
        "hosts at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
        => |e| e.failures?.interruptions.software;
    "goodput.interruptions_job_per_day": PerDay, "  Jobs of a shared cluster", "Interruptions that no component explains, in shared clusters only.";
        "hosts at work, up to those of the largest job measured / mean time between" from ["cluster.tenancy", "cluster.accelerators", "reliability.job_level"]
        => |e| e.failures?.interruptions.job;
    "goodput.interruptions_of_hosts_per_day": PerDay, "Interruptions that take a host out", "Of accelerators, their memory, hosts and cards: those that need a spare.";
        "accelerators + memory + hosts + cards" from ["goodput.interruptions_accelerator_per_day", "goodput.interruptions_memory_per_day",
            "goodput.interruptions_host_per_day", "goodput.interruptions_nic_per_day"]
        => |e| e.failures?.interruptions.of_hosts();
    "goodput.spare_hosts_count": Count, "Spare hosts", "Hosts that stand by: those of spare nodes, and trays that a rack at work leaves idle.";
        "nodes bought beyond those at work x hosts of each" from ["cluster.spares", "cluster.accelerators"]
        => |e| e.failures?.spare_hosts;
    "goodput.enough_spare_hosts_count": Count, "  that would be enough", "The fewest with which an average failure waits less than a minute for one.";
        "least S with repair / a x P(Poisson(a) > S) within a minute, a being failures of hosts in the time of a repair"
        from ["goodput.interruptions_of_hosts_per_day", "reliability.recovery"] => |e| e.failures?.enough_spare_hosts;
    "goodput.checkpoint_bytes": Bytes, "Checkpoint", "Size of a checkpoint of the whole job: weights and optimizer states.";
        "parameters x (bytes of a weight + of optimizer state)" from ["training.model", "training.precision", "training.optimizer"]
        => |e| e.failures?.hazards.checkpoint.size;
    "goodput.checkpoint_stall_s": Seconds, "  Training waits for it", "The copy to the hosts, and the storage where checkpoints block.";
        "copy to the hosts, and size / write bandwidth where blocking" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.write_bandwidth", "reliability.recovery"]
        => |e| e.failures?.hazards.checkpoint.stall;
    "goodput.checkpoint_pending_s": Seconds, "  Stored in the background in", "After which a failure falls back to it and not to the one before.";
        "size / write bandwidth of the storage; in memory, over the network cards of all hosts" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.write_bandwidth", "nics.speed"]
        => |e| e.failures?.hazards.checkpoint.pending;
    "goodput.checkpoint_read_s": Seconds, "  Read in", "What a restart takes to read it.";
        "size / read bandwidth of the storage; in memory, a host's part over its network cards" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.read_bandwidth", "nics.speed"]
        => |e| e.failures?.hazards.checkpoint.read;
    "goodput.checkpoint_interval_s": Seconds, "Checkpoint interval", "Useful work between two checkpoints.";
        "the best, found numerically, not below an iteration nor below the time in which the checkpoint before is stored; or as the scenario says"
        from ["goodput.mtbf_s", "goodput.checkpoint_stall_s", "goodput.checkpoint_pending_s", "training.iteration_s", "training.checkpoint_interval"]
        => |e| e.point?.goodput.checkpoint_interval;
    "goodput.daly_interval_s": Seconds, "  by Daly's formula", "To higher order, whatever the storage and the iteration allow.";
        "sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C" from ["goodput.checkpoint_stall_s", "goodput.mtbf_s"]
        => |e| daly_interval(e.failures?.hazards.checkpoint.stall, e.failures?.hazards.mtbf);
    "goodput.young_interval_s": Seconds, "  by Young's formula", "To first order.";
        "sqrt(2 C M)" from ["goodput.checkpoint_stall_s", "goodput.mtbf_s"]
        => |e| young_interval(e.failures?.hazards.checkpoint.stall, e.failures?.hazards.mtbf);
    "goodput.lost_checkpoint_usd": Usd, "Lost to checkpoints", "Of the cost of the run.";
        "cost of the run x share" from ["cost.usd_per_run", "goodput.lost_checkpoint_ratio"] => |e| lost(e, e.point?.goodput.lost.checkpoint)?;
    "goodput.lost_accelerator_usd": Usd, "Lost to accelerators", "What their failures cost: work done again, detection, restart, and their part of waiting for spares.";
        "cost of the run x (shares of failures x part of interruptions + share of spares x part of those of hosts)"
        from ["cost.usd_per_run", "goodput.lost_rework_ratio", "goodput.lost_detection_ratio", "goodput.lost_restart_ratio", "goodput.lost_spares_ratio", "goodput.interruptions_accelerator_per_day"]
        => |e| lost_to_host_part(e, e.failures?.interruptions.accelerator)?;
    "goodput.lost_memory_usd": Usd, "Lost to memory (HBM)", "What failures of the accelerators' memory cost: work done again, detection, restart, and their part of waiting for spares.";
        "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_memory_per_day"]
        => |e| lost_to_host_part(e, e.failures?.interruptions.memory)?;
    "goodput.lost_host_usd": Usd, "Lost to hosts", "What failures of hosts cost: work done again, detection, restart, and their part of waiting for spares.";
        "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_host_per_day"]
        => |e| lost_to_host_part(e, e.failures?.interruptions.host)?;
    "goodput.lost_nic_usd": Usd, "Lost to network cards", "What failures of network cards cost: work done again, detection, restart, and their part of waiting for spares.";
        "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_nic_per_day"]
        => |e| lost_to_host_part(e, e.failures?.interruptions.nic)?;
    "goodput.lost_network_usd": Usd, "Lost to the network", "Failures of switches, modules and cables, and stalls without a failure.";
        "cost of the run x (shares of failures x part of interruptions + share of stalls)"
        from ["cost.usd_per_run", "goodput.interruptions_switch_per_day", "goodput.interruptions_optic_per_day", "goodput.interruptions_cable_per_day", "goodput.lost_network_ratio"]
        => |e| lost(e, of_failures(e, e.failures?.interruptions.of_network())? + e.point?.goodput.lost.network)?;
    "goodput.lost_software_usd": Usd, "Lost to software", "Failures of software, and in shared clusters of jobs.";
        "cost of the run x shares of failures x part of interruptions"
        from ["cost.usd_per_run", "goodput.interruptions_software_per_day", "goodput.interruptions_job_per_day"]
        => |e| lost(e, of_failures(e, e.failures?.interruptions.software + e.failures?.interruptions.job)?)?;
}

/// A share of the cost of the run.
fn lost(e: &Evaluation, share: f64) -> Option<Usd> {
    Some(e.point?.run * share)
}

/// The share of the wall time that interruptions of so many a day cost, spares apart.
fn of_failures(e: &Evaluation, per_day: f64) -> Option<f64> {
    let lost = e.point?.goodput.lost;
    Some((lost.rework + lost.detection + lost.restart) * (per_day / e.failures?.interruptions.total()))
}

/// What interruptions of so many a day cost that take a host out.
fn lost_to_host_part(e: &Evaluation, per_day: f64) -> Option<Usd> {
    let spares = e.point?.goodput.lost.spares * (per_day / e.failures?.interruptions.of_hosts());
    lost(e, of_failures(e, per_day)? + spares)
}
