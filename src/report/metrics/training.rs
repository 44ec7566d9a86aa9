//! The training step and the run.

use super::measure::count_up;
use crate::evaluate::Evaluation;
use crate::units::{Quantity, Seconds};

figures! {
    Training:
    "training.iteration_s": Seconds, "Iteration", "Time of an optimizer step.";
        "compute + exposed communication + bubble + optimizer + other"
        from ["training.compute_s", "training.exposed_communication_s", "training.bubble_s", "training.optimizer_s", "training.other_s"]
        => |e| e.point?.step.iteration();
    "training.compute_s": Seconds, "  Compute", "Arithmetic and streaming kernels of the slowest stage, recomputation included.";
        "microbatches x layers of the slowest stage x (forward + backward + recomputation), and its logits"
        from ["training.model", "training.layout", "accelerators.peak_dense", "accelerators.memory_bandwidth", "efficiency/training.generation"]
        => |e| e.point?.step.compute;
    "training.exposed_communication_s": Seconds, "  Exposed communication", "Communication that compute does not hide.";
        "tensor + expert + context + pipeline + data"
        from ["training.exposed_tensor_s", "training.exposed_expert_s", "training.exposed_context_s",
            "training.exposed_pipeline_s", "training.exposed_data_s"]
        => |e| e.point?.step.exposed.total();
    "training.exposed_tensor_s": Seconds, "    Tensor parallel", "All-gathers and reduce-scatters (or all-reduces) of tensor parallelism that are not hidden.";
        "time of the collectives of a layer x layers x microbatches x exposed share"
        from ["training.layout.tensor", "nodes.scale_up", "efficiency/training.exposure", "software.overlap.tensor"]
        => |e| e.point?.step.exposed.tensor;
    "training.exposed_expert_s": Seconds, "    Expert parallel", "Dispatch and combine of experts that are not hidden.";
        "time of the all-to-alls of a layer x layers x microbatches x exposed share"
        from ["training.layout.expert", "nodes.scale_up", "fabrics.link_speed", "fabrics.spine_efficiency", "software.overlap.expert"]
        => |e| e.point?.step.exposed.expert;
    "training.exposed_context_s": Seconds, "    Context parallel", "Key and value exchange that is not hidden.";
        "time of the exchange of a layer x layers x microbatches x exposed share"
        from ["training.layout.context", "fabrics.link_speed", "fabrics.spine_efficiency", "efficiency/training.exposure"]
        => |e| e.point?.step.exposed.context;
    "training.exposed_pipeline_s": Seconds, "    Pipeline parallel", "Messages between pipeline stages that are not hidden.";
        "time of a stage's messages x microbatches x exposed share"
        from ["training.layout.pipeline", "fabrics.link_speed", "fabrics.spine_efficiency", "efficiency/training.exposure"]
        => |e| e.point?.step.exposed.pipeline;
    "training.exposed_data_s": Seconds, "    Data parallel", "Gradient reduction and weight gathering that are not hidden.";
        "time of the collectives beyond what the last microbatch hides, and the traffic's share of memory bandwidth"
        from ["training.layout.sharding", "cluster.accelerators", "fabrics.link_speed", "fabrics.spine_efficiency", "cluster.topology.oversubscription"]
        => |e| e.point?.step.exposed.data;
    "training.bubble_s": Seconds, "  Pipeline bubble", "Idle time of the pipeline's fill and drain.";
        "time of all layers for a microbatch x (stages - 1) / stages / virtual stages"
        from ["training.layout.pipeline", "training.layout.virtual_stages", "training.layout.schedule"]
        => |e| e.point?.step.bubble;
    "training.optimizer_s": Seconds, "  Optimizer", "Optimizer step.";
        "bytes of the step of the parameters that a rank updates / memory bandwidth"
        from ["training.optimizer", "training.layout.sharding", "accelerators.memory_bandwidth"]
        => |e| e.point?.step.optimizer;
    "training.other_s": Seconds, "  Other", "What is neither arithmetic nor communication nor bubble nor optimizer.";
        "launch + accumulation + fixed + stragglers + data + hosts' memory"
        from ["training.other_launch_s", "training.other_accumulation_s", "training.other_step_s", "training.other_stragglers_s", "training.other_data_s", "training.other_host_s"]
        => |e| e.point?.step.other.total();
    "training.other_launch_s": Seconds, "    Launching kernels", "Layers that wait for the host to launch their kernels.";
        "what the host's launch time adds to a layer x layers x microbatches"
        from ["nodes.host", "software.date", "efficiency/training.era"] => |e| e.point?.step.other.launch;
    "training.other_accumulation_s": Seconds, "    Accumulating gradients", "Accumulation of gradients over microbatches.";
        "bytes of the accumulation / memory bandwidth x microbatches"
        from ["training.gradients", "accelerators.memory_bandwidth", "efficiency/training.kernel"]
        => |e| e.point?.step.other.accumulation;
    "training.other_step_s": Seconds, "    Fixed time of a step", "Data loading, gradient norm, logging.";
        "fixed time of a step" from ["efficiency/training.scale"] => |e| e.point?.step.other.step;
    "training.other_stragglers_s": Seconds, "    Stragglers", "Waiting for the slowest of many ranks, and for the allocator.";
        "all else x growth per logarithm of nodes" from ["cluster.accelerators", "efficiency/training.scale"]
        => |e| e.point?.step.other.stragglers;
    "training.other_data_s": Seconds, "    Waiting for data", "Steps that are faster than their data come.";
        "time to read, and to tokenise, a step's tokens beyond the step's own; all of it where nothing is read ahead"
        from ["data.read_available_gbytes_per_s", "training.data", "training.global_batch", "training.sequence_length"] => |e| e.point?.step.other.data;
    "training.other_host_s": Seconds, "    Waiting for the hosts' memory", "Copies of what the hosts keep that take longer than the passes they run beside.";
        "per microbatch, bytes offloaded / bandwidth of the tier beyond the pass beside it; of gradients, beyond the backward pass"
        from ["training.offload", "training.offload_to", "memory_tiers.read_bandwidth", "memory_tiers.write_bandwidth"] => |e| offload_wait(e)?;
    "training.mfu_ratio": Ratio, "MFU, causal attention", "Model FLOPs utilisation, causal attention counted once (half of full).";
        "model FLOPs of a step, causal attention / iteration / accelerators / dense peak"
        from ["training.model", "training.iteration_s", "accelerators.peak_dense"]
        => |e| e.point?.step.mfu();
    "training.mfu_full_attention_ratio": Ratio, "MFU, full attention", "Model FLOPs utilisation with full attention, as Megatron-LM's formula counts.";
        "model FLOPs of a step, full attention / iteration / accelerators / dense peak"
        from ["training.model", "training.iteration_s", "accelerators.peak_dense"]
        => |e| e.point?.step.mfu() * (e.point?.step.model_flops_full_attention / e.point?.step.model_flops);
    "training.hfu_ratio": Ratio, "HFU, causal attention", "Hardware FLOPs utilisation: recomputation counted, causal attention.";
        "(model FLOPs + recomputed FLOPs) of a step / iteration / accelerators / dense peak"
        from ["training.model", "training.layout.recompute", "training.iteration_s", "accelerators.peak_dense"]
        => |e| e.point?.step.hfu();
    "training.tflops_per_s_per_gpu": TflopsPerSecond, "Model FLOP rate a GPU, causal attention", "Model FLOPs, causal attention, of one accelerator in a second.";
        "MFU x dense peak" from ["training.mfu_ratio", "accelerators.peak_dense"]
        => |e| e.point?.step.rate_per_accelerator();
    "training.tokens_per_s": TokensPerSecond, "Tokens a second", "Tokens of the whole job in a second, without failures.";
        "sequences x tokens of a sequence / iteration"
        from ["training.global_batch", "training.sequence_length", "training.iteration_s"]
        => |e| e.point?.step.token_rate();
    "training.steps_count": Count, "Steps of the run", "Optimizer steps of all stages and batches.";
        "sum over stages and batches of tokens / tokens of a step, rounded up"
        from ["training.tokens", "training.global_batch", "training.sequence_length", "training.stage", "training.ramp"]
        => |e| count_up(e.run.as_ref()?.steps)?;
    "training.evaluation_days": Days, "Pauses for evaluation", "Time in which the model is evaluated and not trained.";
        "steps of the run / steps between two, rounded down x time of one" from ["training.steps_count", "training.evaluation"]
        => |e| e.run.as_ref()?.evaluation;
    "training.rollout_days": Days, "Rollouts", "Time of reinforcement learning that writes what is rewarded.";
        "time of training steps x share / (1 - share)" from ["training.stage"] => |e| e.run.as_ref()?.rollout;
    "training.ramp_days": Days, "Lost to a growing batch", "What steps of small batches take beyond the same tokens in full ones.";
        "sum over batches of steps x step - tokens / tokens a second with the full batch" from ["training.ramp", "training.iteration_s"]
        => |e| e.run.as_ref()?.ramp;
    "training.data_wait_days": Days, "Lost to waiting for data", "Over the whole run.";
        "sum over stages of steps x wait of a step" from ["training.other_data_s", "training.steps_count"]
        => |e| e.run.as_ref()?.data_wait;
    "training.duration_days": Days, "Run without failures", "Time of the run if nothing ever failed: its stages, and pauses for evaluation.";
        "sum over stages of steps x step + rollouts + pauses"
        from ["training.steps_count", "training.iteration_s", "training.rollout_days", "training.evaluation_days"]
        => |e| e.point?.duration;
    "training.effective_days": Days, "Run with failures", "Wall time of the run.";
        "sum over stages of time without failures / the stage's goodput" from ["training.duration_days", "goodput.ratio", "training.stage"]
        => |e| e.effective_duration()?;
    "training.gpu_hours_count": Count, "GPU-hours of the run", "Hours of all accelerators at work together, failures included.";
        "accelerators at work x run with failures" from ["cluster.accelerators", "training.effective_days"]
        => |e| f64::from(e.scenario.cluster.accelerators) * e.effective_duration()?.in_unit("h")?;
}

/// The wait for the hosts' memory, where something is kept there.
fn offload_wait(e: &Evaluation) -> Option<Seconds> {
    e.scenario.training.as_ref()?.host_memory.as_ref()?;
    Some(e.point?.step.other.host)
}
