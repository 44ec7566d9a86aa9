//! Every figure of an evaluation, one row each: the one origin of JSON keys, CSV headers, tables and the glossary.

use super::figure::{Group, Metric, Unit, Value};
use crate::evaluate::{Evaluation, Footprint};
use crate::reliability::{daly_interval, young_interval};
use crate::scenario::RunPlan;
use crate::units::{Bandwidth, Bytes, Quantity, SECONDS_PER_DAY, Seconds, Tokens, Usd, UsdPerHour, UsdPerToken, Watts};
use crate::workload::CheckpointMode;

/// `"key": Unit, "label", "description"; "formula" from ["input", ...] => extractor`, by group.
macro_rules! metrics {
    ($($group:ident {$(
        $key:literal: $unit:ident, $label:literal, $description:literal;
        $formula:literal from [$($input:literal),+] => $extract:expr;
    )+})+) => {
        /// All figures, those of a group together, parts before their total's explanation.
        pub const METRICS: &[Metric] = &[$($(Metric {
            key: $key,
            unit: Unit::$unit,
            group: Group::$group,
            label: $label,
            description: $description,
            formula: $formula,
            inputs: &[$($input),+],
            extract: $extract,
        },)+)+];
    };
}

metrics! {
    Memory {
        "memory.weights_bytes": Bytes, "Weights", "Weights in the number format of the forward pass.";
            "parameters of the rank x bytes of the precision, over the data-parallel ranks where weights are sharded"
            from ["training.model", "training.precision", "training.layout"] => |e| bytes(e.memory()?.weights);
        "memory.gradients_bytes": Bytes, "Gradients", "Gradients as they are accumulated.";
            "parameters of the rank x bytes of a gradient, over the data-parallel ranks where gradients are sharded"
            from ["training.model", "training.gradients", "training.layout"] => |e| bytes(e.memory()?.gradients);
        "memory.optimizer_bytes": Bytes, "Optimizer states", "Master weights and moments.";
            "parameters of the rank x bytes of optimizer state, over the data-parallel ranks where states are sharded"
            from ["training.model", "training.optimizer", "training.layout"] => |e| bytes(e.memory()?.optimizer);
        "memory.activations_bytes": Bytes, "Activations", "What layers keep of the microbatches in flight, and the logits.";
            "activations that a layer keeps x layers of the stage x microbatches in flight, and the loss on the last stage"
            from ["training.model", "training.sequence_length", "training.layout", "software.attention_kernel"]
            => |e| bytes(e.memory()?.activations);
        "memory.kv_cache_bytes": Bytes, "Key-value cache", "The pool of keys and values of a serving engine; none in training.";
            "none in training; the share of the memory that the engine takes, less weights, activations and buffers"
            from ["training", "serving.engine", "efficiency/memory.engines"] => |e| bytes(e.memory()?.kv_cache);
        "memory.workspace_bytes": Bytes, "Workspace", "Buffers of the layer at work and of libraries, the process's context, and what the allocator cannot use.";
            "buffers of the layer at work + context + communicators + fragmentation of activations and buffers"
            from ["training.layout", "efficiency/memory.context", "efficiency/memory.communicator", "efficiency/memory.fragmentation"]
            => |e| bytes(e.memory()?.workspace);
        "memory.total_bytes": Bytes, "Total", "All of the above.";
            "weights + gradients + optimizer + activations + key-value cache + workspace"
            from ["memory.weights_bytes", "memory.gradients_bytes", "memory.optimizer_bytes", "memory.activations_bytes",
                "memory.kv_cache_bytes", "memory.workspace_bytes"]
            => |e| bytes(e.memory()?.total());
        "memory.usable_bytes": Bytes, "Usable", "What a process can have of an accelerator's memory.";
            "capacity that the driver reports - what the driver keeps"
            from ["accelerators.memory_capacity", "efficiency/memory.driver_reserve"] => |e| bytes(e.usable_memory);
        "memory.fits": Flag, "Fits", "Whether the total is within the usable memory.";
            "total <= usable" from ["memory.total_bytes", "memory.usable_bytes"]
            => |e| Some(Value::Flag(e.memory()?.fits(e.usable_memory)));
        "memory.model_states_bytes": Bytes, "States of the whole model", "Weights, gradients and optimizer states of the whole model, unsharded.";
            "parameters x (bytes of a weight + of a gradient + of optimizer state)"
            from ["training.model", "training.precision", "training.gradients", "training.optimizer"]
            => |e| bytes(e.model_states()?);
        "memory.accelerators_to_hold_states_count": Count, "Accelerators to hold the states", "The fewest accelerators whose usable memory holds the states and nothing else.";
            "states of the whole model / usable memory, rounded up" from ["memory.model_states_bytes", "memory.usable_bytes"]
            => |e| count_up(e.model_states()? / e.usable_memory);
    }
    Training {
        "training.iteration_s": Seconds, "Iteration", "Time of an optimizer step.";
            "compute + exposed communication + bubble + optimizer + other"
            from ["training.compute_s", "training.exposed_communication_s", "training.bubble_s", "training.optimizer_s", "training.other_s"]
            => |e| seconds(e.point?.step.iteration());
        "training.compute_s": Seconds, "  Compute", "Arithmetic and streaming kernels of the slowest stage, recomputation included.";
            "microbatches x layers of the slowest stage x (forward + backward + recomputation), and its logits"
            from ["training.model", "training.layout", "accelerators.peak_dense", "accelerators.memory_bandwidth", "efficiency/training.generation"]
            => |e| seconds(e.point?.step.compute);
        "training.exposed_communication_s": Seconds, "  Exposed communication", "Communication that compute does not hide.";
            "tensor + expert + context + pipeline + data"
            from ["training.exposed_tensor_s", "training.exposed_expert_s", "training.exposed_context_s",
                "training.exposed_pipeline_s", "training.exposed_data_s"]
            => |e| seconds(e.point?.step.exposed.total());
        "training.exposed_tensor_s": Seconds, "    Tensor parallel", "All-gathers and reduce-scatters (or all-reduces) of tensor parallelism that are not hidden.";
            "time of the collectives of a layer x layers x microbatches x exposed share"
            from ["training.layout.tensor", "nodes.scale_up", "efficiency/training.exposure", "software.overlap.tensor"]
            => |e| seconds(e.point?.step.exposed.tensor);
        "training.exposed_expert_s": Seconds, "    Expert parallel", "Dispatch and combine of experts that are not hidden.";
            "time of the all-to-alls of a layer x layers x microbatches x exposed share"
            from ["training.layout.expert", "nodes.scale_up", "fabrics.link_speed", "fabrics.spine_efficiency", "software.overlap.expert"]
            => |e| seconds(e.point?.step.exposed.expert);
        "training.exposed_context_s": Seconds, "    Context parallel", "Key and value exchange that is not hidden.";
            "time of the exchange of a layer x layers x microbatches x exposed share"
            from ["training.layout.context", "fabrics.link_speed", "fabrics.spine_efficiency", "efficiency/training.exposure"]
            => |e| seconds(e.point?.step.exposed.context);
        "training.exposed_pipeline_s": Seconds, "    Pipeline parallel", "Messages between pipeline stages that are not hidden.";
            "time of a stage's messages x microbatches x exposed share"
            from ["training.layout.pipeline", "fabrics.link_speed", "fabrics.spine_efficiency", "efficiency/training.exposure"]
            => |e| seconds(e.point?.step.exposed.pipeline);
        "training.exposed_data_s": Seconds, "    Data parallel", "Gradient reduction and weight gathering that are not hidden.";
            "time of the collectives beyond what the last microbatch hides, and the traffic's share of memory bandwidth"
            from ["training.layout.sharding", "cluster.accelerators", "fabrics.link_speed", "fabrics.spine_efficiency", "cluster.topology.oversubscription"]
            => |e| seconds(e.point?.step.exposed.data);
        "training.bubble_s": Seconds, "  Pipeline bubble", "Idle time of the pipeline's fill and drain.";
            "time of all layers for a microbatch x (stages - 1) / stages / virtual stages"
            from ["training.layout.pipeline", "training.layout.virtual_stages", "training.layout.schedule"]
            => |e| seconds(e.point?.step.bubble);
        "training.optimizer_s": Seconds, "  Optimizer", "Optimizer step.";
            "bytes of the step of the parameters that a rank updates / memory bandwidth"
            from ["training.optimizer", "training.layout.sharding", "accelerators.memory_bandwidth"]
            => |e| seconds(e.point?.step.optimizer);
        "training.other_s": Seconds, "  Other", "What is neither arithmetic nor communication nor bubble nor optimizer.";
            "launch + accumulation + fixed + stragglers + data + hosts' memory"
            from ["training.other_launch_s", "training.other_accumulation_s", "training.other_step_s", "training.other_stragglers_s", "training.other_data_s", "training.other_host_s"]
            => |e| seconds(e.point?.step.other.total());
        "training.other_launch_s": Seconds, "    Launching kernels", "Layers that wait for the host to launch their kernels.";
            "what the host's launch time adds to a layer x layers x microbatches"
            from ["nodes.host", "software.date", "efficiency/training.era"] => |e| seconds(e.point?.step.other.launch);
        "training.other_accumulation_s": Seconds, "    Accumulating gradients", "Accumulation of gradients over microbatches.";
            "bytes of the accumulation / memory bandwidth x microbatches"
            from ["training.gradients", "accelerators.memory_bandwidth", "efficiency/training.kernel"]
            => |e| seconds(e.point?.step.other.accumulation);
        "training.other_step_s": Seconds, "    Fixed time of a step", "Data loading, gradient norm, logging.";
            "fixed time of a step" from ["efficiency/training.scale"] => |e| seconds(e.point?.step.other.step);
        "training.other_stragglers_s": Seconds, "    Stragglers", "Waiting for the slowest of many ranks, and for the allocator.";
            "all else x growth per logarithm of nodes" from ["cluster.accelerators", "efficiency/training.scale"]
            => |e| seconds(e.point?.step.other.stragglers);
        "training.other_data_s": Seconds, "    Waiting for data", "Steps that are faster than their data come.";
            "time to read, and to tokenise, a step's tokens beyond the step's own; all of it where nothing is read ahead"
            from ["data.read_available_gbytes_per_s", "training.data", "training.global_batch", "training.sequence_length"] => |e| seconds(e.point?.step.other.data);
        "training.other_host_s": Seconds, "    Waiting for the hosts' memory", "Copies of what the hosts keep that take longer than the passes they run beside.";
            "per microbatch, bytes offloaded / bandwidth of the tier beyond the pass beside it; of gradients, beyond the backward pass"
            from ["training.offload", "training.offload_to", "memory_tiers.read_bandwidth", "memory_tiers.write_bandwidth"] => |e| offload_wait(e);
        "training.mfu_ratio": Ratio, "MFU, causal attention", "Model FLOPs utilisation, causal attention counted once (half of full).";
            "model FLOPs of a step, causal attention / iteration / accelerators / dense peak"
            from ["training.model", "training.iteration_s", "accelerators.peak_dense"]
            => |e| number(e.point?.step.mfu());
        "training.mfu_full_attention_ratio": Ratio, "MFU, full attention", "The same with full attention, as Megatron-LM's formula counts.";
            "model FLOPs of a step, full attention / iteration / accelerators / dense peak"
            from ["training.model", "training.iteration_s", "accelerators.peak_dense"]
            => |e| number(e.point?.step.mfu() * (e.point?.step.model_flops_full_attention / e.point?.step.model_flops));
        "training.hfu_ratio": Ratio, "HFU, causal attention", "Hardware FLOPs utilisation: recomputation counted, causal attention.";
            "(model FLOPs + recomputed FLOPs) of a step / iteration / accelerators / dense peak"
            from ["training.model", "training.layout.recompute", "training.iteration_s", "accelerators.peak_dense"]
            => |e| number(e.point?.step.hfu());
        "training.tflops_per_s_per_gpu": TflopsPerSecond, "Model FLOP rate a GPU, causal attention", "Model FLOPs, causal attention, of one accelerator in a second.";
            "MFU x dense peak" from ["training.mfu_ratio", "accelerators.peak_dense"]
            => |e| e.point?.step.rate_per_accelerator().in_unit("TFLOP/s").and_then(number);
        "training.tokens_per_s": TokensPerSecond, "Tokens a second", "Tokens of the whole job in a second, without failures.";
            "sequences x tokens of a sequence / iteration"
            from ["training.global_batch", "training.sequence_length", "training.iteration_s"]
            => |e| number(e.point?.step.token_rate().value());
        "training.steps_count": Count, "Steps of the run", "Optimizer steps of all stages and batches.";
            "sum over stages and batches of tokens / tokens of a step, rounded up"
            from ["training.tokens", "training.global_batch", "training.sequence_length", "training.stage", "training.ramp"]
            => |e| count_up(e.run.as_ref()?.steps);
        "training.evaluation_days": Days, "Pauses for evaluation", "Time in which the model is evaluated and not trained.";
            "steps of the run / steps between two, rounded down x time of one" from ["training.steps_count", "training.evaluation"]
            => |e| days(e.run.as_ref()?.evaluation);
        "training.rollout_days": Days, "Rollouts", "Time of reinforcement learning that writes what is rewarded.";
            "time of training steps x share / (1 - share)" from ["training.stage"] => |e| days(e.run.as_ref()?.rollout);
        "training.ramp_days": Days, "Lost to a growing batch", "What steps of small batches take beyond the same tokens in full ones.";
            "sum over batches of steps x step - tokens / tokens a second with the full batch" from ["training.ramp", "training.iteration_s"]
            => |e| days(e.run.as_ref()?.ramp);
        "training.data_wait_days": Days, "Lost to waiting for data", "Over the whole run.";
            "sum over stages of steps x wait of a step" from ["training.other_data_s", "training.steps_count"]
            => |e| days(e.run.as_ref()?.data_wait);
        "training.duration_days": Days, "Run without failures", "Time of the run if nothing ever failed: its stages, and pauses for evaluation.";
            "sum over stages of steps x step + rollouts + pauses"
            from ["training.steps_count", "training.iteration_s", "training.rollout_days", "training.evaluation_days"]
            => |e| days(e.point?.duration);
        "training.effective_days": Days, "Run with failures", "Wall time of the run.";
            "sum over stages of time without failures / the stage's goodput" from ["training.duration_days", "goodput.ratio", "training.stage"]
            => |e| days(e.effective_duration()?);
        "training.gpu_hours_count": Count, "GPU-hours of the run", "Hours of all accelerators at work together, failures included.";
            "accelerators at work x run with failures" from ["cluster.accelerators", "training.effective_days"]
            => |e| number(f64::from(e.scenario.cluster.accelerators) * e.effective_duration()?.in_unit("h")?);
    }
    Serving {
        "serving.replicas_count": Count, "Replicas", "Engines, each with the whole model.";
            "accelerators at work / accelerators of the layout" from ["cluster.accelerators", "serving.layout"]
            => |e| Some(Value::Count(e.serving?.replicas));
        "serving.max_concurrency_count": Count, "Requests at once, at most", "Requests of the asked length whose cache fits at once, in all replicas.";
            "cache of a GPU / cache of a request at its full length, whole requests x attention groups x replicas"
            from ["memory.kv_cache_bytes", "serving.input_tokens", "serving.output_tokens", "serving.kv_cache", "serving.replicas_count"]
            => |e| Some(Value::Count(e.serving?.max_concurrency));
        "serving.ttft_s": Seconds, "Time to first token", "Mean over requests; without the wait where more requests come than are served.";
            "host time + prefill + a decode step + wait for prefills before it and for room in the cache"
            from ["serving.model", "serving.input_tokens", "serving.prefix_hit", "serving.arrivals", "accelerators.peak_dense", "efficiency/serving.engine"]
            => |e| seconds(e.serving?.state.ttft);
        "serving.ttft_low_s": Seconds, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
            "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.ttft_s", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; seconds(point.state.ttft / point.bands?.ttft) };
        "serving.ttft_high_s": Seconds, "  High end", "The other end.";
            "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.ttft_s", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; seconds(point.state.ttft * point.bands?.ttft) };
        "serving.tpot_s": Seconds, "Time between tokens", "Mean over requests.";
            "decode step + wait for prefills of other requests"
            from ["serving.decode_step_s", "serving.prefill_stall_s"] => |e| seconds(e.serving?.state.tpot);
        "serving.tpot_low_s": Seconds, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
            "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.tpot_s", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; seconds(point.state.tpot / point.bands?.tpot) };
        "serving.tpot_high_s": Seconds, "  High end", "The other end.";
            "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.tpot_s", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; seconds(point.state.tpot * point.bands?.tpot) };
        "serving.ttft_p50_s": Seconds, "Time to first token, P50", "Half of all requests stay below it, where requests come at random.";
            "quantile of prefills of scattered prompts behind an exponential wait" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| seconds(e.serving?.latencies?.first_token.p50);
        "serving.ttft_p95_s": Seconds, "Time to first token, P95", "95% of requests stay below it, where requests come at random.";
            "quantile of prefills of scattered prompts behind an exponential wait" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| seconds(e.serving?.latencies?.first_token.p95);
        "serving.ttft_p99_s": Seconds, "Time to first token, P99", "99% of requests stay below it, where requests come at random.";
            "quantile of prefills of scattered prompts behind an exponential wait" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| seconds(e.serving?.latencies?.first_token.p99);
        "serving.tpot_p50_s": Seconds, "Time between tokens, P50", "Half of all tokens stay below it, where requests come at random.";
            "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| seconds(e.serving?.latencies?.token.p50);
        "serving.tpot_p95_s": Seconds, "Time between tokens, P95", "95% of tokens stay below it, where requests come at random.";
            "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| seconds(e.serving?.latencies?.token.p95);
        "serving.tpot_p99_s": Seconds, "Time between tokens, P99", "99% of tokens stay below it, where requests come at random.";
            "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| seconds(e.serving?.latencies?.token.p99);
        "serving.e2e_p50_s": Seconds, "Whole request, P50", "Half of all requests stay below it, where requests come at random.";
            "quantile of first tokens and scattered answers behind an exponential wait" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| seconds(e.serving?.latencies?.whole.p50);
        "serving.e2e_p95_s": Seconds, "Whole request, P95", "95% of requests stay below it, where requests come at random.";
            "quantile of first tokens and scattered answers behind an exponential wait" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| seconds(e.serving?.latencies?.whole.p95);
        "serving.e2e_p99_s": Seconds, "Whole request, P99", "99% of requests stay below it, where requests come at random.";
            "quantile of first tokens and scattered answers behind an exponential wait" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| seconds(e.serving?.latencies?.whole.p99);
        "serving.prefill_workers_count": Count, "Prefill workers", "Where prefill has a pool of its own; those to spare among them.";
            "as given, or as many as make the slower pool as fast as can be" from ["serving.layout.prefill", "cluster.accelerators"]
            => |e| Some(Value::Count(e.serving?.pool?.workers));
        "serving.prefill_accelerators_count": Count, "Accelerators of prefill's pool", "The others decode.";
            "prefill workers x accelerators of one" from ["serving.prefill_workers_count", "serving.layout.prefill"]
            => |e| { let point = e.serving?; point.pool?; Some(Value::Count(point.prefill_accelerators())) };
        "serving.kv_transfer_s": Seconds, "Handing a cache over", "From a prefill worker to decode.";
            "fixed part of engines + bytes of the cache / rate of the links of an attention group" from ["serving.layout.prefill", "fabrics.link_speed", "efficiency/serving.batching"]
            => |e| seconds(e.serving?.pool?.transfer);
        "serving.limits_kept": Flag, "Limits kept", "Whether every limit of a latency is.";
            "each latency <= its limit" from ["serving.limits", "serving.ttft_s", "serving.tpot_s"]
            => |e| limits_kept(e);
        "serving.decode_step_s": Seconds, "  Decode step", "One token of every sequence in decode.";
            "weights read and multiplied + cache read + messages + units"
            from ["serving.model", "serving.layout", "accelerators.memory_bandwidth", "nodes.scale_up", "efficiency/serving.generation"]
            => |e| seconds(e.serving?.state.step.total());
        "serving.prefill_stall_s": Seconds, "  Wait for prefills", "What prefills of other requests hold a token up.";
            "prefill x requests that begin in a time between tokens x share of a prefill that is waited for"
            from ["serving.prefill_s", "serving.arrivals", "efficiency/serving.batching"] => |e| seconds(e.serving?.state.stall);
        "serving.prefill_s": Seconds, "Prefill of a request", "The prompt's tokens that are not cached, alone.";
            "matrix multiplications + attention + messages + time of layers" from ["serving.model", "serving.input_tokens", "serving.prefix_hit", "accelerators.peak_dense"]
            => |e| seconds(e.serving?.state.prefill);
        "serving.step_s": Seconds, "Step that verifies drafts", "Of the draft's passes and the model's one over all drafted tokens.";
            "passes of the draft + a step of drafted tokens and one more a sequence" from ["serving.speculation", "serving.model", "serving.layout", "efficiency/serving.generation"]
            => |e| { let point = e.serving?; point.engine.tokens_per_step?; seconds(point.state.cycle) };
        "serving.tokens_per_step_count": Count, "Tokens of a sequence a step", "Drafted tokens that are accepted, and the model's own.";
            "(1 - acceptance^(drafted + 1)) / (1 - acceptance)" from ["serving.speculation.tokens", "serving.speculation.acceptance"]
            => |e| number(e.serving?.engine.tokens_per_step?);
        "serving.prefill_chunks_count": Count, "Chunks of a prompt", "Steps that take the prompt's tokens in.";
            "tokens that are not cached / tokens of a chunk, rounded up" from ["serving.chunk_tokens", "serving.input_tokens", "serving.prefix_hit"]
            => |e| number(e.serving?.engine.chunks?);
        "serving.longest_gap_s": Seconds, "Longest wait between two tokens", "A step that is shared with the last whole chunk of another's prompt.";
            "step + arithmetic and attention of a chunk behind the rest of its prompt" from ["serving.chunk_tokens", "serving.input_tokens", "serving.decode_step_s"]
            => |e| seconds(e.serving?.engine.longest_gap?);
        "serving.prompt_logits_bytes": Bytes, "Logits of prompts' own tokens", "Of every token of a forward pass in single precision, a part of activations.";
            "tokens of a forward pass x entries of the vocabulary x 4 bytes" from ["serving.prompt_logprobs", "serving.chunk_tokens", "serving.model", "efficiency/memory.engines"]
            => |e| bytes(e.serving?.prompt_logits?);
        "serving.adapter_bytes": Bytes, "An adapter", "Both factors of every projection that it changes, in 16 bits.";
            "rank x (inputs + outputs) x 2 bytes, over projections and layers" from ["serving.adapters.rank", "serving.adapters.targets", "serving.model"]
            => |e| bytes(e.serving?.adapters?.each);
        "serving.adapters_held_bytes": Bytes, "Adapters on a GPU", "Those in its memory: a part of weights.";
            "factors that ranks hold whole + split ones over the ranks, x adapters in memory" from ["serving.adapter_bytes", "serving.adapters.resident", "serving.layout"]
            => |e| bytes(e.serving?.adapters?.held);
        "serving.adapter_loads_ratio": Ratio, "Requests that load an adapter", "Whose adapter is not in the memory of the GPUs.";
            "1 - found by a cache of as many last used adapters" from ["serving.adapters.count", "serving.adapters.resident", "serving.adapters.popularity"]
            => |e| number(e.serving?.adapters?.missed);
        "serving.adapter_wait_s": Seconds, "Wait for adapters", "The mean over all requests, in the time to the first token.";
            "share that loads x (latency + bytes / bandwidth of the group's links)" from ["serving.adapter_loads_ratio", "serving.adapter_bytes", "memory_tiers.read_bandwidth"]
            => |e| seconds(e.serving?.adapters?.wait);
        "serving.slices_per_gpu_count": Count, "Parts of a GPU", "Each with a replica of its own, where GPUs are cut.";
            "instances of the slice" from ["serving.slice", "accelerators.slice"]
            => |e| { let point = e.serving?; e.scenario.serving.as_ref()?.features.slice.as_ref()?; Some(Value::Count(point.slices.into())) };
        "serving.tenants_apart_count": Count, "GPUs with tenants apart", "Where each tenant has replicas of its own for its busiest time.";
            "tenants x requests of one at its busiest / most that a replica serves, in whole replicas" from ["serving.tenants.peak", "serving.tenants.count", "serving.slice"]
            => |e| number(e.serving?.tenants?.apart);
        "serving.tenants_pooled_count": Count, "GPUs with tenants pooled", "Where all share replicas, and their busiest times are independent.";
            "(tenants x mean + sqrt(tenants) x (peak - mean)) / most that a replica serves, in whole replicas" from ["serving.tenants.mean", "serving.tenants.peak", "serving.tenants.count", "serving.slice"]
            => |e| number(e.serving?.tenants?.pooled);
        "serving.block_waste_ratio": Ratio, "Cache in part-filled blocks", "Share of a sequence's cache that is the empty end of its last blocks.";
            "half a block / (tokens held on average + half a block)" from ["serving.block_tokens", "serving.input_tokens", "serving.output_tokens", "efficiency/memory.engines"]
            => |e| number(e.serving?.block_waste);
        "serving.prefix_found_ratio": Ratio, "Prompts' tokens found", "Share of prompts' tokens whose keys and values are at hand or loaded, by what is kept.";
            "requests that find their prefix x tokens of it / tokens of a prompt" from ["serving.cache.popularity", "serving.cache.prefix_tokens", "serving.input_tokens"]
            => |e| { let point = e.serving?; number(point.caching?.reused.share * point.caching?.tokens / (point.request.input + point.request.cached)) };
        "serving.hits.own_ratio": Ratio, "  Hits in the GPU's memory", "Share of requests whose prefix the accelerators' own memory has.";
            "Che's approximation of a cache of last used prefixes" from ["serving.cache.own_share", "serving.cache.prefixes", "serving.cache.popularity", "memory.kv_cache_bytes"]
            => |e| number(e.serving?.caching?.hits().own);
        "serving.hits.tier_1_ratio": Ratio, "  Hits in the first tier", "Share whose prefix the first tier beyond has.";
            "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
            => |e| tier(e, 0);
        "serving.hits.tier_2_ratio": Ratio, "  Hits in the second tier", "The same of the second.";
            "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
            => |e| tier(e, 1);
        "serving.hits.tier_3_ratio": Ratio, "  Hits in the third tier", "The same of the third.";
            "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
            => |e| tier(e, 2);
        "serving.hits.tier_4_ratio": Ratio, "  Hits in the fourth tier", "The same of the fourth.";
            "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
            => |e| tier(e, 3);
        "serving.hits.recomputed_ratio": Ratio, "  Found and computed again", "Share whose prefix is in a tier and is computed all the same: sooner, or the links are full.";
            "hits of tiers whose load takes longer than computing, and loads beyond what links carry" from ["serving.cache.tiers", "memory_tiers.read_bandwidth", "serving.prefill_s"]
            => |e| number(e.serving?.caching?.reused.recomputed);
        "serving.hits.balanced_ratio": Ratio, "Hits with requests sent anywhere", "Share that find their prefix where every replica keeps what is popular.";
            "found by one replica's memory and tiers" from ["serving.cache.tiers", "serving.cache.popularity"]
            => |e| number(e.serving?.caching?.balanced);
        "serving.hits.cache_aware_ratio": Ratio, "Hits with requests sent to their cache", "Share that find their prefix where each is kept by one replica.";
            "found by all replicas' memory and tiers together" from ["serving.cache.tiers", "serving.cache.popularity", "serving.replicas_count"]
            => |e| number(e.serving?.caching?.aware);
        "serving.busiest_replica_ratio": Ratio, "Busiest replica then", "Requests of the busiest over the mean where requests are sent to their cache.";
            "1 + sqrt(2 ln n (n - 1) sum of p^2)" from ["serving.cache.popularity", "serving.cache.prefixes", "serving.replicas_count"]
            => |e| number(e.serving?.caching?.busiest);
        "serving.cache_load_s": Seconds, "Wait for loads", "The mean over all requests, in the time to the first token.";
            "hits of a tier x (latency + bytes of a prefix / bandwidth of the group's links), over tiers" from ["memory_tiers.read_bandwidth", "memory_tiers.latency", "serving.cache.prefix_tokens"]
            => |e| seconds(e.serving?.caching?.reused.wait);
        "serving.cache_links_busy_ratio": Ratio, "Busiest links of a tier", "Loads over what the links of a tier carry.";
            "requests a second of a group x hits x time of a transfer" from ["serving.requests_per_s", "memory_tiers.read_bandwidth"]
            => |e| number(e.serving?.caching?.busy.into_iter().fold(0.0, f64::max));
        "serving.queue_s": Seconds, "Wait before the first token", "For prefills before it, and for room in the cache.";
            "mean wait of the queue" from ["serving.arrivals", "serving.prefill_s"] => |e| seconds(e.serving?.state.queue);
        "serving.batch_count": Count, "Sequences in decode", "Of one replica, on average.";
            "requests that are neither in prefill nor waiting, within the room of the cache"
            from ["serving.arrivals", "serving.output_tokens", "memory.kv_cache_bytes"] => |e| number(e.serving?.state.batch);
        "serving.open_per_replica_count": Count, "Requests open in a replica", "From their coming to their last token, on average.";
            "requests a second of a replica x (first token + answer)"
            from ["serving.requests_per_s", "serving.replicas_count", "serving.ttft_s", "serving.tpot_s"] => |e| number(e.serving?.open_per_replica());
        "serving.open_count": Count, "Requests open in all", "From their coming to their last token, on average.";
            "requests open in a replica x replicas" from ["serving.open_per_replica_count", "serving.replicas_count"]
            => |e| number(e.serving?.open_per_replica() * e.serving?.replicas as f64);
        "serving.requests_per_s": PerSecond, "Requests a second", "That end, in all replicas.";
            "sequences in decode x replicas / tokens of an answer / time between tokens (Little's law)"
            from ["serving.batch_count", "serving.replicas_count", "serving.output_tokens", "serving.tpot_s"] => |e| number(e.serving?.request_rate().value());
        "serving.mean_requests_per_s": PerSecond, "Requests a second, mean of a day", "The others are of its peak.";
            "requests a second / peak to mean" from ["serving.requests_per_s", "serving.peak_to_mean"] => |e| number(e.serving?.mean_rate().value());
        "serving.most_requests_per_s": PerSecond, "Requests a second, at most", "That all replicas would serve, those to spare too, whatever latencies that takes.";
            "sequences that caches hold x replicas / tokens of an answer / time between tokens then"
            from ["memory.kv_cache_bytes", "serving.replicas_count", "serving.output_tokens"] => |e| number(e.serving?.most.value());
        "serving.spare_replicas_count": Count, "Replicas to spare", "That stand by for others that are down; as many prefill workers where those have a pool.";
            "as given" from ["serving.spare_replicas"] => |e| Some(Value::Count(e.serving?.spares));
        "serving.left_over_accelerators_count": Count, "GPUs left over", "That make no whole replica or prefill worker; they are paid for.";
            "accelerators - those of replicas and workers, to spare too" from ["cluster.accelerators", "serving.layout", "serving.replicas_count", "serving.spare_replicas_count"]
            => |e| Some(Value::Count(e.serving?.left_over()));
        "serving.capacity.used_ratio": Ratio, "Capacity used", "On the mean of a day, of the most that all replicas would serve.";
            "requests a second, mean / at most" from ["serving.mean_requests_per_s", "serving.most_requests_per_s"] => |e| number(e.serving?.capacity().used);
        "serving.capacity.off_peak_ratio": Ratio, "  there for the peak", "Used at the peak of a day, and not on its mean.";
            "(requests a second - mean) / at most" from ["serving.requests_per_s", "serving.mean_requests_per_s", "serving.most_requests_per_s"] => |e| number(e.serving?.capacity().off_peak);
        "serving.capacity.headroom_ratio": Ratio, "  left free at the peak", "So that latencies are what they are.";
            "replicas that serve / all - requests a second / at most" from ["serving.replicas_count", "serving.spare_replicas_count", "serving.requests_per_s", "serving.most_requests_per_s"]
            => |e| number(e.serving?.capacity().headroom);
        "serving.capacity.standby_ratio": Ratio, "  to spare", "That of replicas which stand by.";
            "replicas to spare / all" from ["serving.spare_replicas_count", "serving.replicas_count"] => |e| number(e.serving?.capacity().standby);
        "serving.output_tokens_per_s_per_gpu": TokensPerSecond, "Answers' tokens a second a GPU", "Of one GPU.";
            "requests a second x tokens of an answer / GPUs" from ["serving.requests_per_s", "serving.output_tokens", "cluster.accelerators"]
            => |e| number(e.serving?.output_tokens_per_second());
        "serving.output_low_tokens_per_s_per_gpu": TokensPerSecond, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
            "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.output_tokens_per_s_per_gpu", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; number(point.output_tokens_per_second() / point.bands?.throughput) };
        "serving.output_high_tokens_per_s_per_gpu": TokensPerSecond, "  High end", "The other end.";
            "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.output_tokens_per_s_per_gpu", "efficiency/serving.coverage"]
            => |e| { let point = e.serving?; number(point.output_tokens_per_second() * point.bands?.throughput) };
        "serving.uncalibrated": Flag, "No measurement covers this", "Whether no published point is of this accelerator generation, engine and kind of model, so that the ends are twice as far off as those of the nearest kinds.";
            "the constants' catalog does not list the kind" from ["efficiency/serving.coverage", "serving.engine", "serving.model", "accelerators.generation"]
            => |e| Some(Value::Flag(e.serving?.bands?.uncalibrated));
        "serving.time_share.weights_ratio": Ratio, "Time in weights", "Share of a replica's time that reads weights in decode.";
            "time to read weights / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| number(e.serving?.shares.weights);
        "serving.time_share.kv_ratio": Ratio, "Time in the cache", "Share that reads keys, values and states in decode.";
            "time to read the cache / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| number(e.serving?.shares.cache);
        "serving.time_share.compute_ratio": Ratio, "Time in arithmetic", "Share that multiplies: prefill, and what decode takes beyond reading.";
            "(prefill stall + arithmetic beyond reading) / time between tokens" from ["serving.prefill_stall_s", "serving.decode_step_s", "serving.tpot_s"]
            => |e| number(e.serving?.shares.compute);
        "serving.time_share.network_ratio": Ratio, "Time in messages", "Share that waits for messages between ranks in decode.";
            "time of messages / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| number(e.serving?.shares.network);
        "serving.time_share.idle_ratio": Ratio, "Time idle", "Share that waits for the host and between kernels, and without a request.";
            "(time of units and of the step + time without a request) / time between tokens" from ["serving.decode_step_s", "serving.arrivals"]
            => |e| number(e.serving?.shares.idle);
    }
    Agents {
        "agents.calls_per_task_count": Count, "Calls of a task", "Of all agents, branches and attempts, runs that fail among them.";
            "steps x agents x branches x attempts, by the share of runs that succeed and that fail"
            from ["agents.steps", "agents.agents", "agents.branches", "agents.retries", "agents.success"] => |e| number(e.agents?.tokens.calls);
        "agents.input_tokens_per_task_count": Count, "Prompts' tokens of a task", "Cached tokens among them; a prompt grows from step to step.";
            "steps x first prompt + growth x steps x (steps - 1) / 2, of all ways and attempts"
            from ["agents.steps", "agents.shared_tokens", "agents.prompt_tokens", "agents.added_tokens", "agents.output_tokens"] => |e| tokens(e.agents?.tokens.input);
        "agents.cached_tokens_per_task_count": Count, "  cached", "Prompts' tokens that the prefix cache has.";
            "last prompts and answers of kept sessions + shared tokens + prompts of repeated attempts"
            from ["agents.session_hit", "agents.shared_hit", "agents.cache_block", "agents.input_tokens_per_task_count"] => |e| tokens(e.agents?.tokens.cached);
        "agents.output_tokens_per_task_count": Count, "Answers' tokens of a task", "Reasoning among them.";
            "calls x tokens of an answer" from ["agents.calls_per_task_count", "agents.output_tokens"] => |e| tokens(e.agents?.tokens.output);
        "agents.prefix_hit_ratio": Ratio, "Prompts' tokens cached", "Share of all prompts' tokens.";
            "cached / prompts' tokens" from ["agents.cached_tokens_per_task_count", "agents.input_tokens_per_task_count"] => |e| number(e.agents?.tokens.hit());
        "agents.input_to_output_ratio": Quotient, "Prompts' tokens for one of answers", "In all calls.";
            "prompts' tokens / answers' tokens" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count"]
            => |e| number(e.agents?.tokens.input / e.agents?.tokens.output);
        "agents.succeeding.calls_per_task_count": Count, "Calls of a run that succeeds", "Without runs that fail.";
            "steps x agents x branches x attempts" from ["agents.steps", "agents.retries"] => |e| number(e.agents?.by_outcome[0].calls);
        "agents.failing.calls_per_task_count": Count, "Calls of a run that fails", "Failures have means of their own.";
            "steps x agents x branches x attempts" from ["agents.failed.steps", "agents.retries"] => |e| number(e.agents?.by_outcome[1].calls);
        "agents.tasks_per_day": PerDay, "Tasks", "That begin, of all users.";
            "users / time between two tasks; or requests served / calls of a task"
            from ["agents.users", "agents.task_every", "serving.requests_per_s", "agents.calls_per_task_count"] => |e| number(e.agents?.tasks.over(Seconds::new(SECONDS_PER_DAY)));
        "agents.task_s": Seconds, "A task", "From its first call to its last answer, on average.";
            "steps x attempts x (first token + answer) + steps x tools + approvals"
            from ["agents.steps", "serving.ttft_s", "serving.tpot_s", "agents.tool_time", "agents.approval_time"] => |e| seconds(e.agents?.load.task);
        "agents.waiting_s": Seconds, "  waiting", "For tools and people.";
            "steps x tools + approvals" from ["agents.tool_time", "agents.approvals", "agents.approval_time"] => |e| seconds(e.agents?.load.waiting);
        "agents.sessions_count": Count, "Sessions", "Agents and branches of all tasks under way.";
            "tasks that begin x their time x agents x branches" from ["agents.tasks_per_day", "agents.task_s"] => |e| number(e.agents?.load.sessions);
        "agents.idle_sessions_count": Count, "  waiting", "For tools and people.";
            "tasks that begin x their wait x agents x branches" from ["agents.tasks_per_day", "agents.waiting_s"] => |e| number(e.agents?.load.idle_sessions);
        "agents.kv_held_tokens_count": Count, "Tokens held in caches", "Of sessions in a call and of those that wait and are kept.";
            "sessions x their mean prompt and answer" from ["agents.sessions_count", "agents.session_hit"] => |e| tokens(e.agents?.load.held);
        "agents.kv_idle_bytes": Bytes, "Caches of sessions that wait", "One copy of each: what other memory would hold for them.";
            "sessions that wait x share kept x cache of a session" from ["agents.idle_sessions_count", "agents.session_hit", "serving.kv_cache"]
            => |e| bytes(e.agents?.waiting_caches);
        "agents.kv_held_ratio": Ratio, "Sessions' caches over what memory holds", "Above the whole, sessions that wait have to leave the GPUs or lose their caches.";
            "(sessions in a call + kept sessions that wait) / requests at once, at most"
            from ["agents.sessions_count", "agents.idle_sessions_count", "serving.max_concurrency_count"] => |e| number(e.agents?.of_room);
        "agents.kv_fetch_gbytes_per_s": GbytesPerSecond, "Caches fetched", "From storage, where sessions wait there.";
            "tasks x cached tokens of own sessions x bytes of a token" from ["agents.tasks_per_day", "agents.cached_tokens_per_task_count", "serving.kv_cache"]
            => |e| gbytes_per_s(e.agents?.fetched);
        "agents.kv_store_gbytes_per_s": GbytesPerSecond, "Caches stored", "To storage, where sessions wait there.";
            "tasks x (computed prompts' + answers' tokens) x bytes of a token" from ["agents.tasks_per_day", "agents.output_tokens_per_task_count", "serving.kv_cache"]
            => |e| gbytes_per_s(e.agents?.stored);
        "agents.gpu_load_ratio": Ratio, "Load of the GPUs", "Calls over the most that the replicas serve with caches full.";
            "requests a second / the most" from ["serving.requests_per_s", "serving.model", "serving.layout"] => |e| number(e.agents?.gpu_load);
        "agents.cost_input_per_task_usd": Usd, "Prompts of a task", "Computed tokens.";
            "computed tokens x their cost" from ["agents.input_tokens_per_task_count", "cost.usd_per_mtok_input"] => |e| usd(e.agents?.cost.input);
        "agents.cost_cached_per_task_usd": Usd, "Cached tokens of a task", "At their own cost.";
            "cached tokens x their cost" from ["agents.cached_tokens_per_task_count", "cost.usd_per_mtok_cached"] => |e| usd(e.agents?.cost.cached);
        "agents.cost_output_per_task_usd": Usd, "Answers of a task", "Reasoning among them.";
            "answers' tokens x their cost" from ["agents.output_tokens_per_task_count", "cost.usd_per_mtok_output"] => |e| usd(e.agents?.cost.output);
        "agents.cost_tools_per_task_usd": Usd, "Tools of a task", "Of all its calls.";
            "calls x tools of a call" from ["agents.calls_per_task_count", "agents.tool_cost"] => |e| usd(e.agents?.cost.tools);
        "agents.cost_sandbox_per_task_usd": Usd, "Machines of a task", "One for each branch, as long as the task.";
            "time of a task x agents x branches x price of a machine" from ["agents.task_s", "agents.sandbox"] => |e| usd(e.agents?.cost.sandbox);
        "agents.cost_per_task_usd": Usd, "A task", "All of it, runs that fail among them.";
            "prompts + cached + answers + tools + machines"
            from ["agents.cost_input_per_task_usd", "agents.cost_cached_per_task_usd", "agents.cost_output_per_task_usd", "agents.cost_tools_per_task_usd", "agents.cost_sandbox_per_task_usd"]
            => |e| usd(e.agents?.cost.total());
        "agents.cost_per_success_usd": Usd, "A success", "With the failures paid for it.";
            "a task / share that succeeds" from ["agents.cost_per_task_usd", "agents.success"] => |e| usd(e.agents?.per_success);
    }
    Data {
        "data.raw_bytes": Bytes, "Gathered", "Raw data.";
            "as given" from ["training.data.raw"] => |e| bytes(plan(e)?.data.raw?);
        "data.cleaned_bytes": Bytes, "Cleaned", "What filters and deduplication leave.";
            "as given" from ["training.data.cleaned"] => |e| bytes(plan(e)?.data.cleaned?);
        "data.tokenised_bytes": Bytes, "Tokenised", "The cleaned data as numbers of tokens.";
            "cleaned / text of a token x size of a token" from ["data.cleaned_bytes", "training.data.text_per_token", "training.data.token_size"]
            => |e| bytes(plan(e)?.data.tokenised()?);
        "data.epochs_ratio": Quotient, "Times that the data is read", "Tokens of the run over those of the data.";
            "tokens of the run / (cleaned / text of a token)" from ["training.tokens", "data.cleaned_bytes", "training.data.text_per_token"]
            => |e| number(e.scenario.training.as_ref()?.job.tokens / plan(e)?.data.tokens()?);
        "data.preparation_core_h": Hours, "Preparation, core-hours", "Cleaning all of it and tokenising what is left.";
            "gathered / rate of cleaning + cleaned / rate of tokenising" from ["data.raw_bytes", "data.cleaned_bytes", "training.data.clean_rate", "training.data.tokenise_rate"]
            => |e| plan(e)?.data.preparation()?.in_unit("h").and_then(number);
        "data.preparation_days": Days, "  on the cores given", "Before training begins.";
            "core-hours / cores" from ["data.preparation_core_h", "training.data.cores"]
            => |e| days(plan(e)?.data.preparation()? / f64::from(plan(e)?.data.cores));
        "data.read_gbytes_per_s": GbytesPerSecond, "Training reads", "What loaders read while it runs.";
            "tokens of a step x size of what is stored of one / iteration" from ["training.tokens_per_s", "training.data.stored", "training.data.token_size", "training.data.text_per_token"]
            => |e| gbytes_per_s(read_rate(e)?);
        "data.read_gbytes_per_s_per_gpu": GbytesPerSecond, "  a GPU", "The same of one GPU.";
            "what training reads / accelerators at work" from ["data.read_gbytes_per_s", "cluster.accelerators"]
            => |e| gbytes_per_s(read_rate(e)? / f64::from(e.scenario.cluster.accelerators));
        "data.read_available_gbytes_per_s": GbytesPerSecond, "  the storage gives", "Read bandwidth of all its units.";
            "read bandwidth of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.read_bandwidth"]
            => |e| gbytes_per_s(e.scenario.training.as_ref().map(|_| storage_read(e))?);
        "data.loader_cores_per_gpu": PerGpu, "Cores that tokenise, a GPU", "Busy while training runs; none where tokens are stored.";
            "text of the tokens a second / rate of tokenising / accelerators" from ["training.tokens_per_s", "training.data.tokenise_rate", "training.data.stored"]
            => |e| number(plan(e)?.data.busy_cores(e.point?.step.tokens, e.point?.step.iteration()) / f64::from(e.scenario.cluster.accelerators));
        "data.prefetch_bytes_per_gpu": Bytes, "Read ahead, a GPU", "Memory of the hosts that steps read ahead take.";
            "steps ahead x what a step reads / accelerators" from ["training.data.prefetch", "data.read_gbytes_per_s", "training.iteration_s"]
            => |e| bytes(plan(e)?.data.read(e.point?.step.tokens) * f64::from(plan(e)?.data.prefetch) / f64::from(e.scenario.cluster.accelerators));
        "data.checkpoint_write_gbytes_per_s": GbytesPerSecond, "Checkpoints take", "The write bandwidth with which each is stored before the next.";
            "checkpoint / best interval" from ["goodput.checkpoint_bytes", "goodput.daly_interval_s", "training.checkpoint"]
            => |e| gbytes_per_s(checkpoint_rate(e)?);
        "data.write_available_gbytes_per_s": GbytesPerSecond, "  the storage takes", "Write bandwidth of all its units.";
            "write bandwidth of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.write_bandwidth"]
            => |e| gbytes_per_s(e.scenario.training.as_ref().map(|_| storage_write(e))?);
        "data.storage_needed_bytes": Bytes, "Capacity needed", "What loaders read, once, and two checkpoints: the last, and the one that is being written.";
            "what is stored of the data, or of the run's tokens where they are not given + 2 x checkpoint" from ["data.cleaned_bytes", "data.tokenised_bytes", "training.tokens", "goodput.checkpoint_bytes"]
            => |e| bytes(capacity_needed(e)?);
        "data.storage_bytes": Bytes, "  the storage has", "Usable capacity of all its units.";
            "capacity of a unit x units" from ["cluster.storage", "cluster.storage_units", "storage.capacity"]
            => |e| bytes(e.scenario.training.as_ref().map(|_| e.scenario.cluster.storage.capacity * f64::from(e.scenario.cluster.storage_units))?);
        "data.storage_units_needed_count": Count, "Units of storage needed", "For the capacity, the reading and the checkpoints.";
            "the most of capacity, reading and checkpoints over those of a unit, rounded up"
            from ["data.storage_needed_bytes", "data.read_gbytes_per_s", "data.checkpoint_write_gbytes_per_s", "cluster.storage"]
            => |e| storage_units(e);
        "data.storage_suffices": Flag, "Storage suffices", "Whether the units that are bought are that many.";
            "units needed <= units" from ["data.storage_units_needed_count", "cluster.storage_units"]
            => |e| Some(Value::Flag(storage_units(e)?.number()? <= f64::from(e.scenario.cluster.storage_units)));
    }
    Goodput {
        "goodput.ratio": Ratio, "Goodput", "Useful share of the wall time, at the run's main step; stages have their own.";
            "interval of work / expected wall time of an interval with its checkpoint and its failures (Daly's model)"
            from ["goodput.mtbf_s", "goodput.checkpoint_interval_s", "reliability.recovery"] => |e| number(e.point?.goodput.ratio);
        "goodput.lost_checkpoint_ratio": Ratio, "  Lost to checkpoints", "Share of the wall time that waits for checkpoints.";
            "stall of a checkpoint / wall time of an interval" from ["goodput.checkpoint_interval_s", "training.checkpoint", "goodput.checkpoint_stall_s"]
            => |e| number(e.point?.goodput.lost.checkpoint);
        "goodput.lost_rework_ratio": Ratio, "  Lost to work done again", "Share of the wall time that repeats work since the last stored checkpoint.";
            "expected work lost at a failure x failures / wall time" from ["goodput.mtbf_s", "goodput.checkpoint_interval_s", "goodput.checkpoint_pending_s"]
            => |e| number(e.point?.goodput.lost.rework);
        "goodput.lost_detection_ratio": Ratio, "  Lost until noticed", "Share of the wall time in which a failure is not yet noticed or understood.";
            "time of detection x failures / wall time" from ["goodput.mtbf_s", "reliability.recovery"]
            => |e| number(e.point?.goodput.lost.detection);
        "goodput.lost_restart_ratio": Ratio, "  Lost to restarts", "Share of the wall time that replaces the node, starts the job, reads the checkpoint, and runs the first steps slowly.";
            "(restart + reading the checkpoint + rewarming) x failures / wall time" from ["goodput.mtbf_s", "reliability.recovery", "goodput.checkpoint_read_s"]
            => |e| number(e.point?.goodput.lost.restart);
        "goodput.lost_spares_ratio": Ratio, "  Lost waiting for spares", "Share of the wall time in which no spare is left and a repair is awaited.";
            "mean wait for a spare x failures / wall time" from ["goodput.mtbf_s", "goodput.spare_hosts_count", "goodput.interruptions_of_hosts_per_day", "reliability.recovery"]
            => |e| number(e.point?.goodput.lost.spares);
        "goodput.lost_network_ratio": Ratio, "  Lost to stalls of the network", "Share of the wall time that waits for links that flap and, on RoCE, for pauses that spread, without being interrupted.";
            "sum over links and cards of time of a stall / time between them" from ["fabric.cables_count", "fabrics.transport", "network_reliability.link_flap", "network_reliability.pause_storm"]
            => |e| number(e.point?.goodput.lost.network);
        "goodput.mtbf_s": Seconds, "Mean time between interruptions", "Of the whole job: any component at work stops it.";
            "1 / sum over causes of components / mean time between their failures" from ["cluster.accelerators", "fabric.cables_count", "reliability.mtbf"]
            => |e| seconds(e.point?.goodput.mtbf);
        "goodput.interruptions_per_day": PerDay, "Interruptions", "Of the whole job, in a day.";
            "a day / mean time between interruptions" from ["goodput.mtbf_s"] => |e| number(e.point?.goodput.interruptions_per_day);
        "goodput.interruptions_accelerator_per_day": PerDay, "  Accelerators", "Interruptions by accelerators, their memory left out.";
            "accelerators at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
            => |e| number(e.failures?.interruptions.accelerator);
        "goodput.interruptions_memory_per_day": PerDay, "  Memory (HBM)", "Interruptions by the memory of accelerators.";
            "accelerators at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
            => |e| number(e.failures?.interruptions.memory);
        "goodput.interruptions_host_per_day": PerDay, "  Hosts", "Interruptions by processors, disks, power supplies and unplanned maintenance.";
            "hosts at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
            => |e| number(e.failures?.interruptions.host);
        "goodput.interruptions_nic_per_day": PerDay, "  Network cards", "Interruptions by network cards.";
            "cards at work / mean time between failures" from ["cluster.accelerators", "network_reliability.mtbf"]
            => |e| number(e.failures?.interruptions.nic);
        "goodput.interruptions_switch_per_day": PerDay, "  Switches", "Interruptions by switches of any tier.";
            "switches / mean time between failures" from ["fabric.leaf_switches_count", "fabric.spine_switches_count", "fabric.core_switches_count", "network_reliability.mtbf"]
            => |e| number(e.failures?.interruptions.switch);
        "goodput.interruptions_optic_per_day": PerDay, "  Optical modules", "Interruptions by optical modules.";
            "modules / mean time between failures" from ["fabric.optics_count", "network_reliability.mtbf"]
            => |e| number(e.failures?.interruptions.optic);
        "goodput.interruptions_cable_per_day": PerDay, "  Cables", "Interruptions by cables.";
            "cables / mean time between failures" from ["fabric.cables_count", "network_reliability.mtbf"]
            => |e| number(e.failures?.interruptions.cable);
        "goodput.interruptions_software_per_day": PerDay, "  Software", "Interruptions by bugs, dependencies and hangs without a known cause.";
            "hosts at work / mean time between failures" from ["cluster.accelerators", "reliability.mtbf"]
            => |e| number(e.failures?.interruptions.software);
        "goodput.interruptions_job_per_day": PerDay, "  Jobs of a shared cluster", "Interruptions that no component explains, in shared clusters only.";
            "hosts at work, up to those of the largest job measured / mean time between" from ["cluster.tenancy", "cluster.accelerators", "reliability.job_level"]
            => |e| number(e.failures?.interruptions.job);
        "goodput.interruptions_of_hosts_per_day": PerDay, "Interruptions that take a host out", "Of accelerators, their memory, hosts and cards: those that need a spare.";
            "accelerators + memory + hosts + cards" from ["goodput.interruptions_accelerator_per_day", "goodput.interruptions_memory_per_day",
                "goodput.interruptions_host_per_day", "goodput.interruptions_nic_per_day"]
            => |e| number(e.failures?.interruptions.of_hosts());
        "goodput.spare_hosts_count": Count, "Spare hosts", "Hosts that stand by: those of spare nodes, and trays that a rack at work leaves idle.";
            "nodes bought beyond those at work x hosts of each" from ["cluster.spares", "cluster.accelerators"]
            => |e| Some(Value::Count(e.failures?.spare_hosts));
        "goodput.enough_spare_hosts_count": Count, "  that would be enough", "The fewest with which an average failure waits less than a minute for one.";
            "least S with repair / a x P(Poisson(a) > S) within a minute, a being failures of hosts in the time of a repair"
            from ["goodput.interruptions_of_hosts_per_day", "reliability.recovery"] => |e| Some(Value::Count(e.failures?.enough_spare_hosts));
        "goodput.checkpoint_bytes": Bytes, "Checkpoint", "Size of a checkpoint of the whole job: weights and optimizer states.";
            "parameters x (bytes of a weight + of optimizer state)" from ["training.model", "training.precision", "training.optimizer"]
            => |e| bytes(e.failures?.hazards.checkpoint.size);
        "goodput.checkpoint_stall_s": Seconds, "  Training waits for it", "The copy to the hosts, and the storage where checkpoints block.";
            "copy to the hosts, and size / write bandwidth where blocking" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.write_bandwidth", "reliability.recovery"]
            => |e| seconds(e.failures?.hazards.checkpoint.stall);
        "goodput.checkpoint_pending_s": Seconds, "  Stored in the background in", "After which a failure falls back to it and not to the one before.";
            "size / write bandwidth of the storage; in memory, over the network cards of all hosts" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.write_bandwidth", "nics.speed"]
            => |e| seconds(e.failures?.hazards.checkpoint.pending);
        "goodput.checkpoint_read_s": Seconds, "  Read in", "What a restart takes to read it.";
            "size / read bandwidth of the storage; in memory, a host's part over its network cards" from ["training.checkpoint", "goodput.checkpoint_bytes", "storage.read_bandwidth", "nics.speed"]
            => |e| seconds(e.failures?.hazards.checkpoint.read);
        "goodput.checkpoint_interval_s": Seconds, "Checkpoint interval", "Useful work between two checkpoints.";
            "the best, found numerically, not below an iteration nor below the time in which the checkpoint before is stored; or as the scenario says"
            from ["goodput.mtbf_s", "goodput.checkpoint_stall_s", "goodput.checkpoint_pending_s", "training.iteration_s", "training.checkpoint_interval"]
            => |e| seconds(e.point?.goodput.checkpoint_interval);
        "goodput.daly_interval_s": Seconds, "  by Daly's formula", "To higher order, whatever the storage and the iteration allow.";
            "sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C" from ["goodput.checkpoint_stall_s", "goodput.mtbf_s"]
            => |e| seconds(daly_interval(e.failures?.hazards.checkpoint.stall, e.failures?.hazards.mtbf));
        "goodput.young_interval_s": Seconds, "  by Young's formula", "To first order.";
            "sqrt(2 C M)" from ["goodput.checkpoint_stall_s", "goodput.mtbf_s"]
            => |e| seconds(young_interval(e.failures?.hazards.checkpoint.stall, e.failures?.hazards.mtbf));
        "goodput.lost_checkpoint_usd": Usd, "Lost to checkpoints", "Of the cost of the run.";
            "cost of the run x share" from ["cost.usd_per_run", "goodput.lost_checkpoint_ratio"] => |e| lost(e, e.point?.goodput.lost.checkpoint);
        "goodput.lost_accelerator_usd": Usd, "Lost to accelerators", "What their failures cost: work done again, detection, restart, and their part of waiting for spares.";
            "cost of the run x (shares of failures x part of interruptions + share of spares x part of those of hosts)"
            from ["cost.usd_per_run", "goodput.lost_rework_ratio", "goodput.lost_detection_ratio", "goodput.lost_restart_ratio", "goodput.lost_spares_ratio", "goodput.interruptions_accelerator_per_day"]
            => |e| lost_to_host_part(e, e.failures?.interruptions.accelerator);
        "goodput.lost_memory_usd": Usd, "Lost to memory (HBM)", "The same of the memory of accelerators.";
            "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_memory_per_day"]
            => |e| lost_to_host_part(e, e.failures?.interruptions.memory);
        "goodput.lost_host_usd": Usd, "Lost to hosts", "The same of hosts.";
            "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_host_per_day"]
            => |e| lost_to_host_part(e, e.failures?.interruptions.host);
        "goodput.lost_nic_usd": Usd, "Lost to network cards", "The same of network cards.";
            "as for accelerators" from ["cost.usd_per_run", "goodput.interruptions_nic_per_day"]
            => |e| lost_to_host_part(e, e.failures?.interruptions.nic);
        "goodput.lost_network_usd": Usd, "Lost to the network", "Failures of switches, modules and cables, and stalls without a failure.";
            "cost of the run x (shares of failures x part of interruptions + share of stalls)"
            from ["cost.usd_per_run", "goodput.interruptions_switch_per_day", "goodput.interruptions_optic_per_day", "goodput.interruptions_cable_per_day", "goodput.lost_network_ratio"]
            => |e| lost(e, of_failures(e, e.failures?.interruptions.of_network())? + e.point?.goodput.lost.network);
        "goodput.lost_software_usd": Usd, "Lost to software", "Failures of software, and in shared clusters of jobs.";
            "cost of the run x shares of failures x part of interruptions"
            from ["cost.usd_per_run", "goodput.interruptions_software_per_day", "goodput.interruptions_job_per_day"]
            => |e| lost(e, of_failures(e, e.failures?.interruptions.software + e.failures?.interruptions.job)?);
    }
    Fabric {
        "fabric.tiers_count": Count, "Tiers of switches", "One: leaf; two: and spine; three: and core.";
            "as few as reach every node, unless the scenario says" from ["cluster.topology.tiers", "cluster.accelerators", "switches.ports"]
            => |e| Some(Value::Count(e.built.topology.tiers.into()));
        "fabric.pods_count": Count, "Pods", "Groups of nodes that reach each other without the core.";
            "nodes / nodes of a pod, rounded up" from ["cluster.topology.pod", "cluster.accelerators"]
            => |e| Some(Value::Count(e.built.topology.pods.into()));
        "fabric.leaf_oversubscription_ratio": Quotient, "Oversubscription, leaf to spine", "Bandwidth down over bandwidth up of a leaf switch, as built; none where nothing is above.";
            "links down / links up of a fully populated leaf switch" from ["cluster.topology.oversubscription", "switches.ports"]
            => |e| number(e.built.topology.leaf.oversubscription);
        "fabric.spine_oversubscription_ratio": Quotient, "Oversubscription, spine to core", "The same of a spine switch.";
            "links down / links up of a spine switch" from ["cluster.topology.oversubscription", "switches.ports"]
            => |e| number(e.built.topology.spine.oversubscription);
        "fabric.leaf_switches_count": Count, "Leaf switches", "Switches that nodes plug into.";
            "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
            => |e| Some(Value::Count(e.fabric().leaf_switches));
        "fabric.spine_switches_count": Count, "Spine switches", "Switches that join the leaves of a pod.";
            "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
            => |e| Some(Value::Count(e.fabric().spine_switches));
        "fabric.core_switches_count": Count, "Core switches", "Switches that join the pods.";
            "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
            => |e| Some(Value::Count(e.fabric().core_switches));
        "fabric.nics_count": Count, "Network cards", "Scale-out network cards of all nodes, spares among them.";
            "nodes x slots of a node" from ["cluster.accelerators", "cluster.spares", "nodes.nic_slots"]
            => |e| Some(Value::Count(e.fabric().nics));
        "fabric.optics_count": Count, "Optical modules", "Modules at both ends of every link, a module of two links counted once.";
            "links of each box / links of a module, rounded up, at every end" from ["fabrics.link", "optics.links"]
            => |e| Some(Value::Count(e.fabric().optics));
        "fabric.cables_count": Count, "Cables", "One a link, of nodes, fabric managers and switches.";
            "links of all tiers" from ["fabric.leaf_switches_count", "fabric.spine_switches_count", "fabric.core_switches_count"]
            => |e| Some(Value::Count(e.fabric().cables));
        "fabric.power_w": Watts, "Power in use", "Network cards, switches, modules and cables at their typical power.";
            "sum over parts of count x power of one" from ["nics.power", "switches.power_typical", "optics.power"]
            => |e| watts(e.built.fabric_power());
        "fabric.capex_usd": Usd, "Price of all parts", "Network cards, switches, modules, cables and fabric managers, spares among them.";
            "sum over parts of (count + spares) x price of one" from ["prices.price", "cluster.fabric_spares"] => |e| usd(e.built.fabric_capex());
        "fabric.capex_usd_per_gpu": Usd, "  a GPU at work", "The price of all parts, over the accelerators at work.";
            "price of all parts / accelerators at work" from ["fabric.capex_usd", "cluster.accelerators"]
            => |e| usd(e.built.fabric_capex() / f64::from(e.scenario.cluster.accelerators));
        "fabric.share_of_capex_ratio": Ratio, "  share of capex", "The price of all parts, over the capex of the whole cluster.";
            "price of all parts / capex" from ["fabric.capex_usd", "cost.capex_usd"]
            => |e| number(e.built.fabric_capex() / e.built.costs.capex);
        "fabric.side_networks_power_w": Watts, "Power beside it", "Storage and management networks: switches, modules and cables at their typical power.";
            "sum over parts of count x power of one" from ["cluster.networks", "switches.power_typical", "optics.power"]
            => |e| watts(e.built.side_power());
        "fabric.side_networks_capex_usd": Usd, "Price beside it", "Storage and management networks: switches, modules and cables, spares among them.";
            "sum over parts of (count + spares) x price of one" from ["cluster.networks", "prices.price", "cluster.fabric_spares"]
            => |e| usd(e.built.side_capex());
    }
    Facility {
        "facility.it_kw": Kilowatts, "IT power, provisioned", "All parts at their maximum: it sizes rent, racks and the grid connection.";
            "sum over parts of count x maximum power" from ["nodes.max_power", "switches.power_max", "nics.power", "storage.power"]
            => |e| kilowatts(e.built.facility.provisioned_it);
        "facility.total_kw": Kilowatts, "Facility power, provisioned", "With cooling and losses.";
            "IT power x PUE" from ["facility.it_kw", "sites.pue"] => |e| kilowatts(e.built.facility.provisioned_total);
        "facility.all_in_kw_per_gpu": Kilowatts, "  a GPU, all in", "Its part of the facility's provisioned power: of node, network, storage, cooling and losses.";
            "facility power, provisioned / GPUs bought" from ["facility.total_kw", "cluster.accelerators", "cluster.spares"]
            => |e| kilowatts(e.built.facility.provisioned_total * (1.0 / e.built.drivers.accelerators as f64));
        "facility.budget_nodes_count": Count, "Nodes that the power budget holds", "Whole nodes of this kind, each with its part of network and storage; headroom is kept free and is in no bill.";
            "power budget / (IT power of a node, all in, x PUE x headroom), rounded down" from ["cluster.power", "facility.it_kw", "sites.pue"]
            => |e| Some(Value::Count(e.built.capacity?.nodes));
        "facility.budget_gpus_count": Count, "  and GPUs", "Those of whole nodes.";
            "nodes that the budget holds x GPUs of a node" from ["facility.budget_nodes_count", "nodes.accelerators"]
            => |e| Some(Value::Count(e.built.capacity?.accelerators));
        "facility.average_it_kw": Kilowatts, "IT power, average", "Over a year: nodes in jobs for the share of hours used, idle for the rest.";
            "sum over parts of count x average power" from ["nodes.max_power", "power.idle", "power.busy", "finance.utilisation", "fabric.power_w"]
            => |e| kilowatts(e.built.facility.average_it);
        "facility.average_total_kw": Kilowatts, "Facility power, average", "With cooling and losses.";
            "average IT power x PUE" from ["facility.average_it_kw", "sites.pue"] => |e| kilowatts(e.built.facility.average_total);
        "facility.racks_count": Count, "Racks", "Of nodes in their own; switches, servers and storage share the rest.";
            "parts / as many as a rack's power and height allow, rounded up" from ["sites.rack", "nodes.rack_units", "nodes.max_power"]
            => |e| Some(Value::Count(e.built.racks));
        "facility.energy_kwh_per_year": KilowattHours, "Energy a year", "What the facility takes from the grid.";
            "average facility power x 8,760 h" from ["facility.average_total_kw"]
            => |e| e.built.facility.energy_per_year.in_unit("kWh").and_then(number);
        "facility.emissions_tco2e_per_year": Tonnes, "Emissions a year", "Of the energy, location-based.";
            "energy x carbon intensity of the grid" from ["facility.energy_kwh_per_year", "sites.carbon_intensity"]
            => |e| e.built.facility.emissions_per_year.in_unit("tCO2e").and_then(number);
        "facility.energy_kwh_per_gpu_hour": KilowattHours, "Energy of a GPU-hour", "What the facility draws for an hour of calendar time of one GPU bought.";
            "energy a year / (8,760 h x GPUs bought)" from ["facility.energy_kwh_per_year", "cluster.accelerators", "cluster.spares"]
            => |e| kwh(e.owned_hour());
        "facility.emissions_gco2e_per_gpu_hour": Grams, "Emissions of a GPU-hour", "The same in emissions, location-based.";
            "emissions a year / (8,760 h x GPUs bought)" from ["facility.emissions_tco2e_per_year", "cluster.accelerators", "cluster.spares"]
            => |e| gco2e(e.owned_hour());
        "facility.energy_kwh_per_useful_gpu_hour": KilowattHours, "Energy of a useful GPU-hour", "What the facility draws for an hour of one GPU's useful work.";
            "energy a year / (8,760 h x utilisation x goodput x GPUs at work)"
            from ["facility.energy_kwh_per_year", "finance.utilisation", "goodput.ratio", "cluster.accelerators"]
            => |e| kwh(e.useful_hour());
        "facility.emissions_gco2e_per_useful_gpu_hour": Grams, "Emissions of a useful GPU-hour", "The same in emissions, location-based.";
            "emissions a year / (8,760 h x utilisation x goodput x GPUs at work)"
            from ["facility.emissions_tco2e_per_year", "finance.utilisation", "goodput.ratio", "cluster.accelerators"]
            => |e| gco2e(e.useful_hour());
        "facility.energy_kwh_per_pflop_day": KilowattHours, "Energy of a PFLOP-day", "Of 10^15 model FLOPs a second for a day, causal attention.";
            "energy of a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
            from ["facility.energy_kwh_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
            => |e| kwh(e.pflop_day_footprint()?);
        "facility.emissions_gco2e_per_pflop_day": Grams, "Emissions of a PFLOP-day", "The same in emissions, location-based.";
            "emissions of a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
            from ["facility.emissions_gco2e_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
            => |e| gco2e(e.pflop_day_footprint()?);
        "facility.energy_kwh_per_mtok_input": KilowattHours, "Energy of a million tokens of prompts", "That are not cached: their part of the useful hours.";
            "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_input", "cost.usd_per_useful_gpu_hour"]
            => |e| kwh(e.token_footprint()?.input);
        "facility.emissions_gco2e_per_mtok_input": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_input", "cost.usd_per_useful_gpu_hour"]
            => |e| gco2e(e.token_footprint()?.input);
        "facility.energy_kwh_per_mtok_cached": KilowattHours, "Energy of a million cached tokens", "The same.";
            "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_cached", "cost.usd_per_useful_gpu_hour"]
            => |e| kwh(e.token_footprint()?.cached?);
        "facility.emissions_gco2e_per_mtok_cached": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_cached", "cost.usd_per_useful_gpu_hour"]
            => |e| gco2e(e.token_footprint()?.cached?);
        "facility.energy_kwh_per_mtok_output": KilowattHours, "Energy of a million tokens of answers", "The same, idle time too.";
            "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_output", "cost.usd_per_useful_gpu_hour"]
            => |e| kwh(e.token_footprint()?.output);
        "facility.emissions_gco2e_per_mtok_output": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_output", "cost.usd_per_useful_gpu_hour"]
            => |e| gco2e(e.token_footprint()?.output);
        "facility.energy_kwh_per_mtok_blended": KilowattHours, "Energy of a million tokens, all alike", "Prompts and answers.";
            "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_blended", "cost.usd_per_useful_gpu_hour"]
            => |e| kwh(e.token_footprint()?.blended);
        "facility.emissions_gco2e_per_mtok_blended": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
            from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_blended", "cost.usd_per_useful_gpu_hour"]
            => |e| gco2e(e.token_footprint()?.blended);
        "facility.energy_kwh_per_task": KilowattHours, "Energy of a task", "Of its tokens, runs that fail among them; not of its tools and machines.";
            "energy of the tokens of a task" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count", "facility.energy_kwh_per_useful_gpu_hour"]
            => |e| kwh(e.task_footprint()?);
        "facility.emissions_gco2e_per_task": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of the tokens of a task" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count", "facility.emissions_gco2e_per_useful_gpu_hour"]
            => |e| gco2e(e.task_footprint()?);
        "facility.energy_kwh_per_success": KilowattHours, "Energy of a success", "With the failures paid for it.";
            "energy of a task / share that succeeds" from ["facility.energy_kwh_per_task", "agents.success"]
            => |e| kwh(e.success_footprint()?);
        "facility.emissions_gco2e_per_success": Grams, "  emissions", "Of that energy, location-based.";
            "emissions of a task / share that succeeds" from ["facility.emissions_gco2e_per_task", "agents.success"]
            => |e| gco2e(e.success_footprint()?);
        "facility.energy_kwh_per_run": KilowattHours, "Energy of the run", "The whole cluster over the run, and the run's part of the hours that no run uses.";
            "energy a year x run with failures / (8,760 h x utilisation)"
            from ["facility.energy_kwh_per_year", "training.effective_days", "finance.utilisation"]
            => |e| (e.built.facility.energy_per_year * e.share_of_year()?).in_unit("kWh").and_then(number);
        "facility.emissions_tco2e_per_run": Tonnes, "Emissions of the run", "The same in emissions, location-based.";
            "emissions a year x run with failures / (8,760 h x utilisation)"
            from ["facility.emissions_tco2e_per_year", "training.effective_days", "finance.utilisation"]
            => |e| (e.built.facility.emissions_per_year * e.share_of_year()?).in_unit("tCO2e").and_then(number);
        "facility.embodied_tco2e": Tonnes, "Embodied in GPUs", "Emissions of making the GPUs that are bought, where their maker states them: not of servers, network and building.";
            "GPUs bought x emissions of making one" from ["cluster.accelerators", "cluster.spares", "accelerators.embodied_carbon"]
            => |e| e.embodied()?.in_unit("tCO2e").and_then(number);
        "facility.embodied_gco2e_per_useful_gpu_hour": Grams, "  of a useful GPU-hour", "The same over the useful hours of the GPUs' life.";
            "embodied / (useful hours a year x life of accelerators)"
            from ["facility.embodied_tco2e", "finance.accelerator_life", "finance.utilisation", "goodput.ratio"]
            => |e| e.embodied_of_useful_hour()?.in_unit("gCO2e").and_then(number);
    }
    Cost {
        "cost.capex_usd": Usd, "Capex", "Paid at the beginning, all lines.";
            "sum of the capex lines" from ["fabric.capex_usd", "prices.price", "prices.line"] => |e| usd(e.built.costs.capex);
        "cost.opex_per_year_usd": Usd, "Opex a year", "Paid in the first year, all lines.";
            "sum of the opex lines" from ["prices.line", "sites.electricity", "facility.energy_kwh_per_year", "facility.it_kw"]
            => |e| usd(e.built.costs.opex_per_year);
        "cost.annualised_per_year_usd": Usd, "Annualised", "The constant yearly payment that is worth as much as all lines.";
            "sum over lines of capex x capital recovery factor of its life, and level opex"
            from ["cost.capex_usd", "cost.opex_per_year_usd", "finance.cost_of_capital", "finance.accelerator_life", "finance.horizon"]
            => |e| usd(e.built.costs.annualised);
        "cost.memory_tiers_usd": Usd, "Memory tiers", "Bought to keep prefixes, beside what the nodes have: part of capex.";
            "bytes a GPU beyond the node's own x GPUs / bytes of a unit, rounded up x its price" from ["serving.cache.tiers", "memory_tiers.unit", "cluster.prices"]
            => |e| { e.serving?.caching?; usd(e.built.memory_tier_capex(&e.scenario.cluster)) };
        "cost.total_usd": Usd, "Paid over the horizon", "Capex, again whenever a life ends within the horizon, and every year's opex; not discounted, without interest and without resale.";
            "capex of each life begun within the horizon + opex of every year of it" from ["cost.capex_usd", "cost.opex_per_year_usd", "finance.horizon", "finance.accelerator_life"]
            => |e| usd(e.built.costs.total);
        "cost.usd_per_gpu_hour": UsdPerHour, "A GPU for an hour, owned", "Owning one GPU for an hour of calendar time, spares counted as owned.";
            "annualised / GPUs bought / 8,760 h" from ["cost.annualised_per_year_usd", "cluster.accelerators", "cluster.spares"]
            => |e| usd_per_hour(e.unit_costs.per_gpu_hour);
        "cost.usd_per_sold_gpu_hour": UsdPerHour, "  over hours sold", "The same over the share of hours sold.";
            "a GPU for an hour / utilisation" from ["cost.usd_per_gpu_hour", "finance.utilisation"]
            => |e| usd_per_hour(e.unit_costs.per_sold_gpu_hour);
        "cost.usd_per_useful_gpu_hour": UsdPerHour, "  over useful hours", "The same over utilisation, goodput and the share of GPUs that are no spares.";
            "a GPU for an hour / (utilisation x goodput x share at work)" from ["cost.usd_per_sold_gpu_hour", "goodput.ratio", "cluster.spares"]
            => |e| usd_per_hour(e.unit_costs.per_useful_gpu_hour);
        "cost.usd_per_pflop_day": Usd, "A PFLOP-day", "10^15 model FLOPs a second for a day, causal attention, with what failures and idle hours cost.";
            "a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
            from ["cost.usd_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
            => |e| usd(e.unit_costs.per_useful_gpu_hour.over(e.pflop_day()?));
        "cost.usd_per_run": Usd, "The run", "The whole cluster over the run's wall time, and the run's part of the hours that no run uses.";
            "annualised / 8,760 h x run with failures / utilisation"
            from ["cost.annualised_per_year_usd", "training.effective_days", "finance.utilisation"] => |e| usd(e.point?.run);
        "cost.usd_per_mtok_trained": Usd, "Million tokens trained on", "The run's cost over its tokens.";
            "cost of the run / tokens of the run"
            from ["cost.usd_per_run", "training.tokens"] => |e| usd(per_trained_mtok(e)?);
        "cost.usd_per_mtok_input": Usd, "Million tokens of prompts", "That are not cached: their part of prefill's share of the time.";
            "useful hour of a GPU x prefill's share of the time x share of the prompt's work / tokens an hour"
            from ["cost.usd_per_useful_gpu_hour", "serving.requests_per_s", "serving.input_tokens", "serving.prefill_stall_s"] => |e| usd(e.token_costs()?.input);
        "cost.usd_per_mtok_cached": Usd, "Million cached tokens of prompts", "Their part of prefill's share of the time: attention to them.";
            "useful hour of a GPU x prefill's share of the time x share of attention to cached tokens / tokens an hour"
            from ["cost.usd_per_useful_gpu_hour", "serving.requests_per_s", "serving.prefix_hit", "serving.prefill_stall_s"] => |e| usd(e.token_costs()?.cached?);
        "cost.usd_per_mtok_output": Usd, "Million tokens of answers", "Decode's share of the time, idle time too.";
            "useful hour of a GPU x decode's share of the time / tokens an hour"
            from ["cost.usd_per_useful_gpu_hour", "serving.requests_per_s", "serving.output_tokens", "serving.tpot_s"] => |e| usd(e.token_costs()?.output);
        "cost.usd_per_mtok_blended": Usd, "Million tokens, prompts and answers", "All tokens alike.";
            "useful hour of a GPU / tokens of prompts and answers an hour"
            from ["cost.usd_per_useful_gpu_hour", "serving.requests_per_s", "serving.input_tokens", "serving.output_tokens"] => |e| usd(e.token_costs()?.blended);
        "cost.usd_per_mtok_used": Usd, "  of it capacity used", "Of all tokens alike: what they would cost by use alone.";
            "million tokens x capacity used" from ["cost.usd_per_mtok_blended", "serving.capacity.used_ratio"] => |e| usd(e.cost_of_capacity()?.used);
        "cost.usd_per_mtok_off_peak": Usd, "  there for the peak", "The same: reserved for the peak of a day, and idle on its mean.";
            "million tokens x capacity there for the peak" from ["cost.usd_per_mtok_blended", "serving.capacity.off_peak_ratio"] => |e| usd(e.cost_of_capacity()?.off_peak);
        "cost.usd_per_mtok_headroom": Usd, "  left free at the peak", "The same: reserved so that latencies are what they are.";
            "million tokens x capacity left free" from ["cost.usd_per_mtok_blended", "serving.capacity.headroom_ratio"] => |e| usd(e.cost_of_capacity()?.headroom);
        "cost.usd_per_mtok_standby": Usd, "  to spare", "The same: replicas that stand by.";
            "million tokens x capacity to spare" from ["cost.usd_per_mtok_blended", "serving.capacity.standby_ratio"] => |e| usd(e.cost_of_capacity()?.standby);
        "cost.usd_per_mtok_output_weights": Usd, "  of it reading weights", "Of all that a million tokens of answers cost, prompts among it, by where the time goes.";
            "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.time_share.weights_ratio", "serving.output_tokens_per_s_per_gpu"]
            => |e| usd(e.cost_elements()?.weights);
        "cost.usd_per_mtok_output_kv": Usd, "  reading caches", "The same.";
            "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.time_share.kv_ratio", "serving.output_tokens_per_s_per_gpu"]
            => |e| usd(e.cost_elements()?.cache);
        "cost.usd_per_mtok_output_compute": Usd, "  arithmetic", "The same, prefill's among it.";
            "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.time_share.compute_ratio", "serving.output_tokens_per_s_per_gpu"]
            => |e| usd(e.cost_elements()?.compute);
        "cost.usd_per_mtok_output_network": Usd, "  messages", "The same.";
            "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.time_share.network_ratio", "serving.output_tokens_per_s_per_gpu"]
            => |e| usd(e.cost_elements()?.network);
        "cost.usd_per_mtok_output_waiting": Usd, "  waiting", "The same: for the host and between kernels, and without a request; a pool of prefill without a prompt.";
            "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.time_share.idle_ratio", "serving.output_tokens_per_s_per_gpu"]
            => |e| usd(e.cost_elements()?.waiting);
        "cost.usd_per_mtok_output_power": Usd, "  of all these, power", "Electricity, and the building or colocation that is paid by the kilowatt.";
            "the elements together x share of a year's cost that is paid by the kilowatt or kilowatt-hour" from ["cost.usd_per_mtok_output_weights", "cost.annualised_per_year_usd", "sites.electricity", "sites.colocation"]
            => |e| usd(e.cost_elements()?.power);
        "cost.energy_per_mtok_output_kwh": KilowattHours, "Energy of a million tokens of answers", "What the facility takes meanwhile; its price is in the costs above.";
            "average facility power / answers' tokens an hour" from ["facility.average_total_kw", "serving.requests_per_s", "serving.output_tokens"]
            => |e| e.cost_elements()?.energy.in_unit("kWh").and_then(number);
        "cost.price_usd_per_mtok_input": Usd, "Million tokens of prompts, at the margin", "The price that leaves the wanted share of itself.";
            "cost / (1 - margin)" from ["cost.usd_per_mtok_input", "finance.margin"] => |e| per_mtok(e.prices_at_margin()?.input);
        "cost.price_usd_per_mtok_cached": Usd, "Million cached tokens, at the margin", "The same.";
            "cost / (1 - margin)" from ["cost.usd_per_mtok_cached", "finance.margin"] => |e| per_mtok(e.prices_at_margin()?.cached);
        "cost.price_usd_per_mtok_output": Usd, "Million tokens of answers, at the margin", "The same.";
            "cost / (1 - margin)" from ["cost.usd_per_mtok_output", "finance.margin"] => |e| per_mtok(e.prices_at_margin()?.output);
        "cost.margin_on_cost_ratio": Ratio, "Margin at the prices elsewhere", "What selling all tokens at them leaves, over what serving them costs.";
            "tokens at the prices elsewhere / their cost here - 1" from ["finance.token_prices", "cost.usd_per_mtok_blended"] => |e| number(e.against_elsewhere()?.on_cost());
        "cost.break_even_utilisation_ratio": Ratio, "Utilisation that pays", "Share of the owned hours that must be in use for tokens to cost as much here as elsewhere; above the whole, buying them is cheaper.";
            "cost here / cost elsewhere x utilisation" from ["finance.token_prices", "finance.utilisation", "cost.usd_per_mtok_blended"] => |e| number(e.break_even_utilisation()?);
    }
}

/// A run's cost over the tokens of all its stages, for a million of them.
fn per_trained_mtok(e: &Evaluation) -> Option<Usd> {
    let tokens: Tokens =
        plan(e)?.stages_of(&e.scenario.training.as_ref()?.job).iter().map(|stage| stage.job.tokens).sum();
    Some(e.point?.run * (Tokens::new(1e6) / tokens))
}

/// The run around the step.
fn plan(e: &Evaluation) -> Option<&RunPlan> {
    e.scenario.training.as_ref().map(|training| &training.plan)
}

/// What loaders read in a second.
fn read_rate(e: &Evaluation) -> Option<Bandwidth> {
    let step = e.point?.step;
    Some(plan(e)?.data.read(step.tokens) / step.iteration())
}

fn storage_read(e: &Evaluation) -> Bandwidth {
    e.scenario.cluster.storage.read_bandwidth.value * f64::from(e.scenario.cluster.storage_units)
}

fn storage_write(e: &Evaluation) -> Bandwidth {
    e.scenario.cluster.storage.write_bandwidth.value * f64::from(e.scenario.cluster.storage_units)
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

fn storage_units(e: &Evaluation) -> Option<Value> {
    let unit = &e.scenario.cluster.storage;
    let shares = [
        capacity_needed(e)? / unit.capacity,
        read_rate(e)? / unit.read_bandwidth.value,
        checkpoint_rate(e)? / unit.write_bandwidth.value,
    ];
    count_up(shares.into_iter().fold(0.0, f64::max))
}

fn gbytes_per_s(rate: Bandwidth) -> Option<Value> {
    rate.in_unit("GB/s").and_then(number)
}

/// A share of the cost of the run.
fn lost(e: &Evaluation, share: f64) -> Option<Value> {
    usd(e.point?.run * share)
}

/// The share of the wall time that interruptions of so many a day cost, spares apart.
fn of_failures(e: &Evaluation, per_day: f64) -> Option<f64> {
    let lost = e.point?.goodput.lost;
    Some((lost.rework + lost.detection + lost.restart) * (per_day / e.failures?.interruptions.total()))
}

/// What interruptions of so many a day cost that take a host out.
fn lost_to_host_part(e: &Evaluation, per_day: f64) -> Option<Value> {
    let spares = e.point?.goodput.lost.spares * (per_day / e.failures?.interruptions.of_hosts());
    lost(e, of_failures(e, per_day)? + spares)
}

/// Hits of a tier beyond the accelerators' memory, where there is one.
fn tier(e: &Evaluation, index: usize) -> Option<Value> {
    let tiers = &e.scenario.serving.as_ref()?.cache.as_ref()?.tiers;
    number(*e.serving?.caching?.hits().tiers.get(..tiers.len())?.get(index)?)
}

/// The figure of that key.
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// The figures of a group.
pub(super) fn of_group(group: Group) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.group == group)
}

/// The wait for the hosts' memory, where something is kept there.
fn offload_wait(e: &Evaluation) -> Option<Value> {
    e.scenario.training.as_ref()?.host_memory.as_ref()?;
    seconds(e.point?.step.other.host)
}

#[allow(clippy::unnecessary_wraps, reason = "extractors give an option: not every scenario has every figure")]
const fn number(number: f64) -> Option<Value> {
    Some(Value::Number(number))
}

fn kwh(footprint: Footprint) -> Option<Value> {
    footprint.energy.in_unit("kWh").and_then(number)
}

fn gco2e(footprint: Footprint) -> Option<Value> {
    footprint.emissions.in_unit("gCO2e").and_then(number)
}

/// A price of a token as that of a million.
fn per_mtok(price: UsdPerToken) -> Option<Value> {
    usd(price * Tokens::new(1e6))
}

/// Whether all limits of latencies are kept, where there are any.
fn limits_kept(e: &Evaluation) -> Option<Value> {
    let limits = e.scenario.serving.as_ref()?.limits;
    limits
        .named()
        .iter()
        .any(|(_, limit)| limit.is_some())
        .then(|| Some(Value::Flag(e.serving?.missed(&limits).is_none())))?
}

fn tokens(tokens: Tokens) -> Option<Value> {
    number(tokens / Tokens::new(1.0))
}

const fn bytes(bytes: Bytes) -> Option<Value> {
    number(bytes.value())
}

const fn seconds(time: Seconds) -> Option<Value> {
    number(time.value())
}

fn days(time: Seconds) -> Option<Value> {
    number(time / Seconds::new(SECONDS_PER_DAY))
}

const fn watts(power: Watts) -> Option<Value> {
    number(power.value())
}

fn kilowatts(power: Watts) -> Option<Value> {
    power.in_unit("kW").and_then(number)
}

const fn usd(amount: Usd) -> Option<Value> {
    number(amount.value())
}

const fn usd_per_hour(price: UsdPerHour) -> Option<Value> {
    number(price.value())
}

/// A count rounded up to whole things.
fn count_up(count: f64) -> Option<Value> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of things is within 2^53")]
    (count.is_finite() && count >= 0.0).then(|| Value::Count(count.ceil() as u64))
}
