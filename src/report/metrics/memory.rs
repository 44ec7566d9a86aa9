//! Memory of a GPU.

use super::measure::count_up;

figures! {
    Memory:
    "memory.weights_bytes": Bytes, "Weights", "Weights in the number format of the forward pass.";
        "parameters of the rank x bytes of the precision, over the data-parallel ranks where weights are sharded"
        from ["training.model", "training.precision", "training.layout"] => |e| e.memory()?.weights;
    "memory.gradients_bytes": Bytes, "Gradients", "Gradients as they are accumulated.";
        "parameters of the rank x bytes of a gradient, over the data-parallel ranks where gradients are sharded"
        from ["training.model", "training.gradients", "training.layout"] => |e| e.memory()?.gradients;
    "memory.optimizer_bytes": Bytes, "Optimizer states", "Master weights and moments.";
        "parameters of the rank x bytes of optimizer state, over the data-parallel ranks where states are sharded"
        from ["training.model", "training.optimizer", "training.layout"] => |e| e.memory()?.optimizer;
    "memory.activations_bytes": Bytes, "Activations", "What layers keep of the microbatches in flight, and the logits.";
        "activations that a layer keeps x layers of the stage x microbatches in flight, and the loss on the last stage"
        from ["training.model", "training.sequence_length", "training.layout", "software.attention_kernel"]
        => |e| e.memory()?.activations;
    "memory.kv_cache_bytes": Bytes, "Key-value cache", "The pool of keys and values of a serving engine; none in training.";
        "none in training; the share of the memory that the engine takes, less weights, activations and buffers"
        from ["training", "serving.engine", "efficiency/memory.engines"] => |e| e.memory()?.kv_cache;
    "memory.workspace_bytes": Bytes, "Workspace", "Buffers of the layer at work and of libraries, the process's context, and what the allocator cannot use.";
        "buffers of the layer at work + context + communicators + fragmentation of activations and buffers"
        from ["training.layout", "efficiency/memory.context", "efficiency/memory.communicator", "efficiency/memory.fragmentation"]
        => |e| e.memory()?.workspace;
    "memory.total_bytes": Bytes, "Total", "All of the above.";
        "weights + gradients + optimizer + activations + key-value cache + workspace"
        from ["memory.weights_bytes", "memory.gradients_bytes", "memory.optimizer_bytes", "memory.activations_bytes",
            "memory.kv_cache_bytes", "memory.workspace_bytes"]
        => |e| e.memory()?.total();
    "memory.usable_bytes": Bytes, "Usable", "What a process can have of an accelerator's memory.";
        "capacity that the driver reports - what the driver keeps"
        from ["accelerators.memory_capacity", "efficiency/memory.driver_reserve"] => |e| e.usable_memory;
    "memory.fits": Flag, "Fits", "Whether the total is within the usable memory.";
        "total <= usable" from ["memory.total_bytes", "memory.usable_bytes"]
        => |e| e.memory()?.fits(e.usable_memory);
    "memory.prefill_weights_bytes": Bytes, "Weights of a GPU of prefill", "Where prefill has a pool of its own, in which a GPU may hold another part of the model: the rows above are of decode.";
        "parameters of the rank x bytes of a weight" from ["serving.model", "serving.weights", "serving.layout.prefill"]
        => |e| e.serving?.pool?.memory.weights;
    "memory.prefill_activations_bytes": Bytes, "  activations", "Those of a forward pass of a prefill worker.";
        "activations of the tokens of a forward pass" from ["serving.model", "serving.layout.prefill", "efficiency/memory.engines"]
        => |e| e.serving?.pool?.memory.activations;
    "memory.prefill_kv_cache_bytes": Bytes, "  cache", "The pool of keys and values of a prefill worker.";
        "the share of the memory that the engine takes, less weights, activations and buffers" from ["serving.engine", "efficiency/memory.engines"]
        => |e| e.serving?.pool?.memory.kv_cache;
    "memory.prefill_workspace_bytes": Bytes, "  workspace", "What a prefill worker takes outside its allocator.";
        "buffers + context + communicators" from ["serving.layout.prefill", "efficiency/memory.engines"]
        => |e| e.serving?.pool?.memory.workspace;
    "memory.prefill_total_bytes": Bytes, "  total", "All that a GPU of prefill holds.";
        "weights + activations + cache + workspace"
        from ["memory.prefill_weights_bytes", "memory.prefill_activations_bytes", "memory.prefill_kv_cache_bytes", "memory.prefill_workspace_bytes"]
        => |e| e.serving?.pool?.memory.total();
    "memory.model_states_bytes": Bytes, "States of the whole model", "Weights, gradients and optimizer states of the whole model, unsharded.";
        "parameters x (bytes of a weight + of a gradient + of optimizer state)"
        from ["training.model", "training.precision", "training.gradients", "training.optimizer"]
        => |e| e.model_states()?;
    "memory.accelerators_to_hold_states_count": Count, "Accelerators to hold the states", "The fewest accelerators whose usable memory holds the states and nothing else.";
        "states of the whole model / usable memory, rounded up" from ["memory.model_states_bytes", "memory.usable_bytes"]
        => |e| count_up(e.model_states()? / e.usable_memory)?;
}
