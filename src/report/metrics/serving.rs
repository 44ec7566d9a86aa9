//! Serving: latencies, caches, capacity, and where time goes.

use crate::evaluate::{BatchBound, Evaluation};
use crate::report::settings::limit_key;

figures! {
    Serving:
    "serving.replicas_count": Count, "Replicas", "Engines, each with the whole model.";
        "accelerators at work / accelerators of the layout" from ["cluster.accelerators", "serving.layout"]
        => |e| e.serving?.replicas;
    "serving.max_concurrency_count": Count, "Requests at once, at most", "Requests of the asked length whose cache fits at once, in all replicas.";
        "cache of a GPU / cache of a request at its full length, whole requests x attention groups x replicas"
        from ["memory.kv_cache_bytes", "serving.input_tokens", "serving.output_tokens", "serving.kv_cache", "serving.replicas_count"]
        => |e| e.serving?.max_concurrency;
    "serving.ttft_s": Seconds, "Time to first token", "Mean over requests; without the wait where more requests come than are served.";
        "host before the first token + steps of decode in it + prefill + wait before it + handing the cache over, and what other caches add + wait for loads + wait for adapters"
        from ["serving.ttft_host_s", "serving.ttft_steps_s", "serving.prefill_s", "serving.queue_s", "serving.kv_transfer_s", "serving.kv_transfer_wait_s", "serving.cache_load_s", "serving.adapter_wait_s"]
        => |e| e.serving?.state.ttft;
    "serving.ttft_host_s": Seconds, "  of it the host's", "What the engine's host takes of a request before its first token, whatever its prompt: its interface, tokens and scheduling.";
        "constant of the engine" from ["serving.engine", "efficiency/serving.engine"] => |e| e.serving?.engine.taken_in;
    "serving.ttft_steps_s": Seconds, "  of it steps of decode", "The step in which the first token comes, those that pieces of its prompt share, and until an engine that gathers prompts takes it in.";
        "decode step x steps that a prompt joins" from ["serving.decode_step_s", "serving.chunk_tokens", "serving.batch_count"] => |e| e.serving?.state.joined;
    "serving.ttft_low_s": Seconds, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
        "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.ttft_s", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?; point.state.ttft / point.bands?.ttft };
    "serving.ttft_high_s": Seconds, "  High end", "The other end.";
        "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.ttft_s", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?; point.state.ttft * point.bands?.ttft };
    "serving.tpot_s": Seconds, "Time between tokens", "Mean over requests.";
        "decode step + wait for prefills of other requests"
        from ["serving.decode_step_s", "serving.prefill_stall_s"] => |e| e.serving?.that_decodes()?.state.tpot;
    "serving.decode_step_s": Seconds, "  Decode step", "One token of every sequence in decode.";
        "weights read and multiplied + cache read + messages + units; without graphs at least launches of all layers"
        from ["serving.model", "serving.layout", "serving.cuda_graphs", "accelerators.memory_bandwidth", "nodes.scale_up", "efficiency/serving.generation"]
        => |e| e.serving?.that_decodes()?.state.step.total();
    "serving.prefill_stall_s": Seconds, "  Wait for prefills", "What prefills of other requests hold a token up.";
        "prefill x requests that begin in a time between tokens x share of a prefill that is waited for"
        from ["serving.prefill_s", "serving.arrivals", "efficiency/serving.batching"] => |e| e.serving?.that_decodes()?.state.stall;
    "serving.tpot_low_s": Seconds, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
        "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.tpot_s", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?.that_decodes()?; point.state.tpot / point.bands?.tpot };
    "serving.tpot_high_s": Seconds, "  High end", "The other end.";
        "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.tpot_s", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?.that_decodes()?; point.state.tpot * point.bands?.tpot };
    "serving.ttft_p50_s": Seconds, "Time to first token, P50", "Half of all requests stay below it.";
        "quantile of prefills of scattered prompts, behind a wait that some meet" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| e.serving?.latencies.first_token.p50;
    "serving.ttft_p95_s": Seconds, "Time to first token, P95", "95% of requests stay below it.";
        "quantile of prefills of scattered prompts, behind a wait that some meet" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| e.serving?.latencies.first_token.p95;
    "serving.ttft_p99_s": Seconds, "Time to first token, P99", "99% of requests stay below it.";
        "quantile of prefills of scattered prompts, behind a wait that some meet" from ["serving.ttft_s", "serving.queue_s", "serving.input_tokens"] => |e| e.serving?.latencies.first_token.p99;
    "serving.tpot_p50_s": Seconds, "Time between tokens, P50", "Half of all tokens stay below it.";
        "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| e.serving?.that_decodes()?.latencies.token.p50;
    "serving.tpot_p95_s": Seconds, "Time between tokens, P95", "95% of tokens stay below it.";
        "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| e.serving?.that_decodes()?.latencies.token.p95;
    "serving.tpot_p99_s": Seconds, "Time between tokens, P99", "99% of tokens stay below it.";
        "time between tokens with the quantile of sequences in decode" from ["serving.tpot_s", "serving.batch_count"] => |e| e.serving?.that_decodes()?.latencies.token.p99;
    "serving.e2e_p50_s": Seconds, "Whole request, P50", "Half of all requests stay below it.";
        "quantile of first tokens and answers of scattered lengths and pace, waits among them" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| e.serving?.latencies.whole.p50;
    "serving.e2e_p95_s": Seconds, "Whole request, P95", "95% of requests stay below it.";
        "quantile of first tokens and answers of scattered lengths and pace, waits among them" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| e.serving?.latencies.whole.p95;
    "serving.e2e_p99_s": Seconds, "Whole request, P99", "99% of requests stay below it.";
        "quantile of first tokens and answers of scattered lengths and pace, waits among them" from ["serving.ttft_s", "serving.tpot_s", "serving.output_tokens"] => |e| e.serving?.latencies.whole.p99;
    "serving.prefill_workers_count": Count, "Prefill workers", "Where prefill has a pool of its own; those to spare among them.";
        "all that fill cluster.prefill; else as given, or as many as make the slower pool as fast as can be" from ["serving.layout.prefill", "cluster.accelerators"]
        => |e| e.serving?.pool?.workers;
    "serving.prefill_accelerators_count": Count, "Accelerators of prefill's pool", "The others decode.";
        "prefill workers x accelerators of one" from ["serving.prefill_workers_count", "serving.layout.prefill"]
        => |e| { let point = e.serving?; point.pool?; point.prefill_accelerators() };
    "serving.prefill_most_requests_per_s": PerSecond, "Requests that prefill takes in, at most", "All of its workers but those to spare.";
        "workers x attention groups of one / prefill of a request among others" from ["serving.prefill_workers_count", "serving.prefill_s"]
        => |e| e.serving?.pool?.most;
    "serving.decode_most_requests_per_s": PerSecond, "Requests that decode finishes, at most", "All of its replicas but those to spare, with as many at once as fit.";
        "replicas x sequences in decode / (time between tokens x tokens of an answer)" from ["serving.replicas_count", "serving.max_concurrency_count", "serving.output_tokens"]
        => |e| e.serving?.pool?.finished;
    "serving.kv_transfer_s": Seconds, "Handing a cache over", "From a prefill worker to decode, without waiting for others.";
        "fixed part of engines + bytes of the cache / rate of the links of an attention group, the slower of both pools, over what the network leaves one group" from ["serving.layout.prefill", "serving.input_tokens", "cluster.accelerators", "cluster.topology", "nodes.nic_slots", "fabrics.link_speed", "efficiency/serving.batching"]
        => |e| e.serving?.pool?.transfer;
    "serving.kv_transfer_wait_s": Seconds, "  What other caches add", "Of the time to the first token: wait for the cards of both ends, and sharing the links between switches with caches on their way at the same time.";
        "wait of M/G/1 for the cards + processor sharing on what the network leaves all, at both pools" from ["serving.kv_transfer_s", "serving.kv_links_busy_ratio", "cluster.topology", "fabrics.spine_efficiency"]
        => |e| { let point = e.serving?; point.pool?; point.state.links };
    "serving.kv_transfer_most_requests_per_s": PerSecond, "Caches handed over, at most", "What the links between prefill and decode carry beside the messages of engines at work, at the end of the pool with less.";
        "attention groups of a pool / bytes of the cache over the links of one x what the network leaves all x what messages leave, the smaller of both pools" from ["serving.prefill_workers_count", "serving.replicas_count", "serving.input_tokens", "cluster.topology", "nodes.nic_slots", "fabrics.link_speed", "fabrics.spine_efficiency"]
        => |e| e.serving?.pool?.handed_over;
    "serving.kv_links_busy_ratio": Ratio, "Links between pools in use", "Caches handed over of those that they carry, at the end where it is more.";
        "requests a second / caches handed over at most" from ["serving.requests_per_s", "serving.kv_transfer_most_requests_per_s"]
        => |e| { let point = e.serving?; point.request_rate() / point.pool?.handed_over };
    "serving.limits_kept": Flag, "Limits kept", "Whether every limit of a latency is.";
        "each latency that has a limit <= that" from ["serving.limits", "serving.ttft_s", "serving.ttft_p95_s", "serving.ttft_p99_s", "serving.tpot_s", "serving.tpot_p95_s", "serving.tpot_p99_s", "serving.e2e_p95_s"]
        => |e| limits_kept(e)?;
    "serving.prefill_s": Seconds, "Prefill of a request", "The prompt's tokens that are not cached, alone.";
        "matrix multiplications + attention + messages + time of layers" from ["serving.model", "serving.input_tokens", "serving.prefix_hit", "accelerators.peak_dense"]
        => |e| e.serving?.state.prefill;
    "serving.step_s": Seconds, "Step that verifies drafts", "Of the draft's passes and the model's one over all drafted tokens.";
        "passes of the draft + a step of drafted tokens and one more a sequence" from ["serving.speculation", "serving.model", "serving.layout", "efficiency/serving.generation"]
        => |e| { let point = e.serving?; point.engine.tokens_per_step?; point.state.cycle };
    "serving.tokens_per_step_count": Count, "Tokens of a sequence a step", "Drafted tokens that are accepted, and the model's own.";
        "1 + a1 + a1 a2 + ..., by the shares accepted at each place" from ["serving.speculation.tokens", "serving.speculation.acceptance"]
        => |e| e.serving?.engine.tokens_per_step?;
    "serving.prefill_chunks_count": Count, "Chunks of a prompt", "Steps that take the prompt's tokens in.";
        "tokens that are not cached / tokens of a chunk, rounded up" from ["serving.chunk_tokens", "serving.input_tokens", "serving.prefix_hit"]
        => |e| e.serving?.engine.chunks?;
    "serving.longest_gap_s": Seconds, "Longest wait between two tokens", "A step that is shared with the last whole chunk of another's prompt.";
        "step + arithmetic and attention of a chunk behind the rest of its prompt" from ["serving.chunk_tokens", "serving.input_tokens", "serving.decode_step_s"]
        => |e| e.serving?.engine.longest_gap?;
    "serving.prompt_logits_bytes": Bytes, "Logits of prompts' own tokens", "Of every token of a forward pass in single precision, a part of activations.";
        "tokens of a forward pass x entries of the vocabulary x 4 bytes" from ["serving.prompt_logprobs", "serving.chunk_tokens", "serving.model", "efficiency/memory.engines"]
        => |e| e.serving?.prompt_logits?;
    "serving.adapter_bytes": Bytes, "An adapter", "Both factors of every projection that it changes, in 16 bits.";
        "rank x (inputs + outputs) x 2 bytes, over projections and layers" from ["serving.adapters.rank", "serving.adapters.targets", "serving.model"]
        => |e| e.serving?.adapters?.each;
    "serving.adapters_held_bytes": Bytes, "Adapters on a GPU", "Those in its memory: a part of weights.";
        "factors that ranks hold whole + split ones over the ranks, x adapters in memory" from ["serving.adapter_bytes", "serving.adapters.resident", "serving.layout"]
        => |e| e.serving?.adapters?.held;
    "serving.adapter_loads_ratio": Ratio, "Requests that load an adapter", "Whose adapter is not in the memory of the GPUs.";
        "1 - found by a cache of as many last used adapters" from ["serving.adapters.count", "serving.adapters.resident", "serving.adapters.popularity"]
        => |e| e.serving?.adapters?.missed;
    "serving.adapter_wait_s": Seconds, "Wait for adapters", "The mean over all requests, in the time to the first token.";
        "share that loads x (latency + bytes of one on a GPU / bandwidth of its link)" from ["serving.adapter_loads_ratio", "serving.adapters_held_bytes", "serving.adapters.resident", "memory_tiers.read_bandwidth"]
        => |e| e.serving?.adapters?.wait;
    "serving.adapter_hits.balanced_ratio": Ratio, "Adapters in memory with requests sent anywhere", "Share of requests that find theirs there where every replica keeps what is popular.";
        "found by a cache of as many last used adapters as one replica keeps" from ["serving.adapters.count", "serving.adapters.resident", "serving.adapters.popularity"]
        => |e| e.serving?.adapters?.found[0];
    "serving.adapter_hits.adapter_aware_ratio": Ratio, "Adapters in memory with requests sent to them", "Share of requests that find theirs there where each adapter has one replica.";
        "found by a cache of as many last used adapters as all replicas keep together" from ["serving.adapters.count", "serving.adapters.resident", "serving.adapters.popularity", "serving.replicas_count"]
        => |e| e.serving?.adapters?.found[1];
    "serving.adapter_busiest_replica_ratio": Ratio, "Busiest replica then", "Requests of the busiest over the mean where requests are sent to their adapter.";
        "the most that a replica has where each goes to the one with the least, most popular ones first and those beyond a fair part to several, over the mean" from ["serving.adapters.popularity", "serving.adapters.count", "serving.replicas_count"]
        => |e| e.serving?.adapters?.busiest;
    "serving.slices_per_gpu_count": Count, "Parts of a GPU", "Each with a replica of its own, where GPUs are cut.";
        "instances of the slice" from ["serving.slice", "accelerators.slice"]
        => |e| { let point = e.serving?; e.scenario.serving.as_ref()?.features.slice.as_ref()?; point.slices };
    "serving.tenants_apart_count": Count, "GPUs with tenants apart", "Where each tenant has replicas of its own for its busiest time.";
        "tenants x requests of one at its busiest / most that a replica serves, in whole replicas" from ["serving.tenants.peak", "serving.tenants.count", "serving.slice"]
        => |e| e.tenants()?.apart;
    "serving.tenants_reallocated_count": Count, "GPUs with parts given by the hour", "Where each tenant has replicas of its own, as many as it needs at the time.";
        "most, over a day's hours, of tenants x requests of one at the time / most that a replica serves, in whole replicas of each" from ["serving.tenants.mean", "serving.tenants.peak", "serving.tenants.busiest_hour", "serving.slice"]
        => |e| e.tenants()?.reallocated?;
    "serving.tenants_pooled_count": Count, "GPUs with tenants pooled", "Where all share replicas: at their busiest hour together, or where hours are not known, as if busiest times were independent.";
        "most, over a day's hours, of all requests; or tenants x mean + sqrt(tenants) x (peak - mean), / most that a replica serves, in whole replicas" from ["serving.tenants.mean", "serving.tenants.peak", "serving.tenants.count", "serving.tenants.busiest_hour", "serving.slice"]
        => |e| e.tenants()?.pooled;
    "serving.tenants_apart_usd_per_hour": UsdPerHour, "All tenants apart", "What their GPUs cost for an hour of calendar time, with their part of the spares.";
        "GPUs x a GPU for an hour, owned x GPUs bought / at work" from ["serving.tenants_apart_count", "cost.usd_per_gpu_hour", "cluster.spares"]
        => |e| e.cost_of_tenants(e.tenants()?.apart);
    "serving.tenants_reallocated_usd_per_hour": UsdPerHour, "  with parts given by the hour", "What GPUs cost for an hour of calendar time where parts are given by the hour, with their part of the spares.";
        "GPUs x a GPU for an hour, owned x GPUs bought / at work" from ["serving.tenants_reallocated_count", "cost.usd_per_gpu_hour", "cluster.spares"]
        => |e| e.cost_of_tenants(e.tenants()?.reallocated?);
    "serving.tenants_pooled_usd_per_hour": UsdPerHour, "  pooled", "What the GPUs of pooled tenants cost for an hour of calendar time, with their part of the spares.";
        "GPUs x a GPU for an hour, owned x GPUs bought / at work" from ["serving.tenants_pooled_count", "cost.usd_per_gpu_hour", "cluster.spares"]
        => |e| e.cost_of_tenants(e.tenants()?.pooled);
    "serving.tenants_reallocation_saves_ratio": Ratio, "Saved by giving parts by the hour", "Share of what tenants apart cost.";
        "1 - reallocated / apart" from ["serving.tenants_reallocated_usd_per_hour", "serving.tenants_apart_usd_per_hour"]
        => |e| { let all = e.tenants()?; 1.0 - all.reallocated? / all.apart };
    "serving.tenants_pooling_saves_ratio": Ratio, "Saved by pooling", "Share of what tenants apart cost that pooling saves.";
        "1 - pooled / apart" from ["serving.tenants_pooled_usd_per_hour", "serving.tenants_apart_usd_per_hour"]
        => |e| { let all = e.tenants()?; 1.0 - all.pooled / all.apart };
    "serving.block_waste_ratio": Ratio, "Cache in part-filled blocks", "Share of a sequence's cache that is the empty end of its last blocks.";
        "half a block / (tokens held on average + half a block)" from ["serving.block_tokens", "serving.input_tokens", "serving.output_tokens", "efficiency/memory.engines"]
        => |e| e.serving?.block_waste;
    "serving.prefix_found_ratio": Ratio, "Found of kept prefixes or sessions", "Share of prompts' tokens whose keys and values are at hand or loaded, by what is kept. What all agents begin with is no part of it, and cached as well.";
        "requests that find their prefix x tokens of it / tokens of a prompt" from ["serving.cache.popularity", "serving.cache.prefix_tokens", "agents.session_hit", "agents.added_tokens", "serving.input_tokens"]
        => |e| { let point = e.serving?; point.caching?.reused.share * point.caching?.tokens / (point.request.input + point.request.cached) };
    "serving.hits.own_ratio": Ratio, "  Hits in the GPU's memory", "Share of requests whose prefix the accelerators' own memory has.";
        "Che's approximation of a cache of last used prefixes" from ["serving.cache.own_share", "serving.cache.prefixes", "serving.cache.popularity", "memory.kv_cache_bytes"]
        => |e| e.serving?.caching?.hits().own;
    "serving.hits.tier_1_ratio": Ratio, "  Hits in the first tier", "Share whose prefix the first tier beyond has.";
        "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
        => |e| tier(e, 0)?;
    "serving.hits.tier_2_ratio": Ratio, "  Hits in the second tier", "Share whose prefix the second tier beyond has.";
        "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
        => |e| tier(e, 1)?;
    "serving.hits.tier_3_ratio": Ratio, "  Hits in the third tier", "Share whose prefix the third tier beyond has.";
        "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
        => |e| tier(e, 2)?;
    "serving.hits.tier_4_ratio": Ratio, "  Hits in the fourth tier", "Share whose prefix the fourth tier beyond has.";
        "found by a cache of all sizes down to it - found before it" from ["serving.cache.tiers", "serving.cache.popularity"]
        => |e| tier(e, 3)?;
    "serving.hits.recomputed_ratio": Ratio, "  Found and computed again", "Share whose prefix is in a tier and is computed all the same: sooner, or the links are full.";
        "hits of tiers whose load takes longer than computing, and loads beyond what links carry" from ["serving.cache.tiers", "memory_tiers.read_bandwidth", "serving.prefill_s"]
        => |e| e.serving?.caching?.reused.recomputed;
    "serving.hits.balanced_ratio": Ratio, "Hits with requests sent anywhere", "Share that find their prefix where every replica keeps what is popular.";
        "found by one replica's memory and tiers" from ["serving.cache.tiers", "serving.cache.popularity"]
        => |e| e.serving?.caching?.balanced;
    "serving.hits.cache_aware_ratio": Ratio, "Hits with requests sent to their cache", "Share that find their prefix where each is kept by one replica.";
        "found by all replicas' memory and tiers together" from ["serving.cache.tiers", "serving.cache.popularity", "serving.replicas_count"]
        => |e| e.serving?.caching?.aware;
    "serving.busiest_replica_ratio": Ratio, "Busiest replica then", "Requests of the busiest over the mean where requests are sent to their cache.";
        "the most that a replica has where each goes to the one with the least, most popular ones first and those beyond a fair part to several, over the mean" from ["serving.cache.popularity", "serving.cache.prefixes", "serving.replicas_count"]
        => |e| e.serving?.caching?.busiest();
    "serving.cache_load_s": Seconds, "Wait for loads", "The mean over all requests, in the time to the first token.";
        "hits of a tier x (latency + bytes of a prefix / bandwidth of the group's links + wait for loads before it), over tiers" from ["memory_tiers.read_bandwidth", "memory_tiers.latency", "serving.cache.prefix_tokens", "serving.cache_links_busy_ratio"]
        => |e| e.serving?.caching?.reused.wait;
    "serving.cache_links_busy_ratio": Ratio, "Busiest links of a tier", "Share of the time in which they carry loads: of the tier where it is most.";
        "requests a second of a group x hits that are loaded x time of a transfer" from ["serving.requests_per_s", "memory_tiers.read_bandwidth"]
        => |e| e.serving?.caching?.reused.busy.into_iter().fold(0.0, f64::max);
    "serving.cache_writes_busy_ratio": Ratio, "Busiest tier in writes", "What falls out of the memory before a tier over what it takes: of the tier where it is most.";
        "requests a second of a group x share not found before the tier x time of a write" from ["serving.requests_per_s", "memory_tiers.write_bandwidth"]
        => |e| e.serving?.caching?.reused.written.into_iter().fold(0.0, f64::max);
    "serving.queue_s": Seconds, "Wait before the first token", "For prefills before it, and for room in the cache.";
        "mean wait of the queue" from ["serving.arrivals", "serving.prefill_s"] => |e| e.serving?.state.queue;
    "serving.batch_count": Count, "Sequences in decode", "Of one replica, on average.";
        "requests that are neither in prefill nor waiting, within the room of the cache"
        from ["serving.arrivals", "serving.output_tokens", "memory.kv_cache_bytes"] => |e| e.serving?.state.batch;
    "serving.batch_bound": Word, "What bounds them", "Room for caches (memory), what engines take at once (max_num_seqs: as given, or by the engine's default), room for sessions of agents that wait (sessions), a limit by its key, prompts that are taken in (prefill: by a pool of their own, or in chunks), the links between pools (kv_transfer), requests that are open (concurrency) or come (rate).";
        "the first of these that more sequences in decode would be beyond"
        from ["serving.arrivals", "serving.limits", "memory.kv_cache_bytes", "serving.layout", "serving.max_num_seqs"] => |e| bound_word(e.serving?.batch_bound);
    "serving.open_per_replica_count": Count, "Requests open in a replica", "From their coming to their last token, on average.";
        "requests a second of a replica x (first token + answer)"
        from ["serving.requests_per_s", "serving.replicas_count", "serving.ttft_s", "serving.tpot_s"] => |e| e.serving?.open_per_replica();
    "serving.open_count": Count, "Requests open in all", "From their coming to their last token, on average.";
        "requests open in a replica x replicas" from ["serving.open_per_replica_count", "serving.replicas_count"]
        => |e| e.serving?.open_per_replica() * e.serving?.replicas as f64;
    "serving.requests_per_s": PerSecond, "Requests a second", "That end, in all replicas.";
        "sequences in decode x replicas / tokens of an answer / time between tokens (Little's law)"
        from ["serving.batch_count", "serving.replicas_count", "serving.output_tokens", "serving.tpot_s"] => |e| e.serving?.request_rate();
    "serving.mean_requests_per_s": PerSecond, "Requests a second, mean of a day", "The others are of its peak.";
        "requests a second / peak to mean" from ["serving.requests_per_s", "serving.peak_to_mean"] => |e| e.serving?.mean_rate();
    "serving.refused_ratio": Ratio, "Refused as too long", "Share of requests whose prompt and answer are longer than the engine takes. Rates, lengths and latencies are of the others.";
        "share of lengths, or of a trace's rows, with prompt + answer beyond the most tokens"
        from ["serving.max_model_len", "serving.input_tokens", "serving.output_tokens", "serving.trace"]
        => |e| { let serving = e.scenario.serving.as_ref()?; serving.requests.cut.map(|cut| cut.refused)? };
    "serving.most_requests_per_s": MostPerSecond, "Requests a second, at most", "Of those that come by themselves, by all replicas, those to spare too, with limits kept; without limits, whatever latencies that takes.";
        "sequences that caches hold, or limits let in, x replicas / tokens of an answer / time between tokens then; at a rate, that up to which limits are kept"
        from ["memory.kv_cache_bytes", "serving.limits", "serving.replicas_count", "serving.output_tokens"] => |e| e.most_served()?;
    "serving.spare_replicas_count": Count, "Replicas to spare", "That stand by for others that are down; as many prefill workers where those have a pool.";
        "as given" from ["serving.spare_replicas"] => |e| e.serving?.spares;
    "serving.left_over_accelerators_count": Count, "GPUs left over", "That make no whole replica or prefill worker; they are paid for.";
        "accelerators - those of replicas and workers, to spare too" from ["cluster.accelerators", "serving.layout", "serving.replicas_count", "serving.spare_replicas_count"]
        => |e| e.serving?.left_over();
    "serving.capacity.used_ratio": Ratio, "Capacity used", "On the mean of a day, of the most that all replicas would serve; none where more is served than that, with limits missed.";
        "requests a second, mean / at most" from ["serving.mean_requests_per_s", "serving.most_requests_per_s"] => |e| e.capacity()?.used;
    "serving.capacity.off_peak_ratio": Ratio, "  there for the peak", "Used at the peak of a day, and not on its mean.";
        "(requests a second - mean) / at most" from ["serving.requests_per_s", "serving.mean_requests_per_s", "serving.most_requests_per_s"] => |e| e.capacity()?.off_peak;
    "serving.capacity.headroom_ratio": Ratio, "  left free at the peak", "So that latencies are what they are.";
        "replicas that serve / all - requests a second / at most" from ["serving.replicas_count", "serving.spare_replicas_count", "serving.requests_per_s", "serving.most_requests_per_s"]
        => |e| e.capacity()?.headroom;
    "serving.capacity.standby_ratio": Ratio, "  to spare", "That of replicas which stand by.";
        "replicas to spare / all" from ["serving.spare_replicas_count", "serving.replicas_count"] => |e| e.capacity()?.standby;
    "serving.output_tokens_per_s_per_gpu": TokensPerSecond, "Answers' tokens a second a GPU", "Of one GPU.";
        "requests a second x tokens of an answer / GPUs" from ["serving.requests_per_s", "serving.output_tokens", "cluster.accelerators"]
        => |e| e.serving?.output_rate();
    "serving.output_low_tokens_per_s_per_gpu": TokensPerSecond, "  Low end", "Nine of ten measured points of the kind are above the low end and below the high one.";
        "figure / the factor within which nine of ten measured points of the kind lie" from ["serving.output_tokens_per_s_per_gpu", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?; point.output_rate() / point.bands?.throughput };
    "serving.output_high_tokens_per_s_per_gpu": TokensPerSecond, "  High end", "The other end.";
        "figure x the factor within which nine of ten measured points of the kind lie" from ["serving.output_tokens_per_s_per_gpu", "efficiency/serving.coverage"]
        => |e| { let point = e.serving?; point.output_rate() * point.bands?.throughput };
    "serving.uncalibrated": Flag, "No measurement covers this", "Whether no published point is of this accelerator generation, engine and kind of model with weights and cache in such formats, so that the ends are twice as far off as those of the nearest kinds.";
        "the constants' catalog does not list the kind" from ["efficiency/serving.coverage", "serving.engine", "serving.model", "accelerators.generation"]
        => |e| e.serving?.bands?.uncalibrated;
    "serving.time_share.weights_ratio": Ratio, "Time in weights", "Share of a replica's time that reads weights in decode; in pools, of replicas that decode.";
        "time to read weights / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| e.serving?.shares.weights;
    "serving.time_share.kv_ratio": Ratio, "Time in the cache", "Share of a replica's time that reads keys, values and states in decode; in pools, of replicas that decode.";
        "time to read the cache / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| e.serving?.shares.cache;
    "serving.time_share.compute_ratio": Ratio, "Time in arithmetic", "Share of a replica's time that multiplies: prefill, and what decode takes beyond reading; in pools, of replicas that decode, without prefill's own.";
        "(prefill stall + arithmetic beyond reading) / time between tokens" from ["serving.prefill_stall_s", "serving.decode_step_s", "serving.tpot_s"]
        => |e| e.serving?.shares.compute;
    "serving.time_share.network_ratio": Ratio, "Time in messages", "Share of a replica's time that waits for messages between ranks in decode; in pools, of replicas that decode.";
        "time of messages / time between tokens" from ["serving.decode_step_s", "serving.tpot_s"] => |e| e.serving?.shares.network;
    "serving.time_share.idle_ratio": Ratio, "Time idle", "Share of a replica's time that waits for the host and between kernels, and without a request; in pools, of replicas that decode.";
        "(time of units and of the step + time without a request) / time between tokens" from ["serving.decode_step_s", "serving.arrivals"]
        => |e| e.serving?.shares.idle;
}

/// What bounds a batch, as a word or the key of a limit.
fn bound_word(bound: BatchBound) -> &'static str {
    match bound {
        BatchBound::Memory => "memory",
        BatchBound::Sequences => "max_num_seqs",
        BatchBound::Adapters => "max_loras",
        BatchBound::Sessions => "sessions",
        BatchBound::Limit(key) => limit_key(key).unwrap_or(key),
        BatchBound::Prefill => "prefill",
        BatchBound::Transfer => "kv_transfer",
        BatchBound::Open => "concurrency",
        BatchBound::Rate => "rate",
    }
}

/// Whether all limits of latencies are kept, where there are any.
fn limits_kept(e: &Evaluation) -> Option<bool> {
    let limits = e.serving.and(e.scenario.serving.as_ref())?.limits;
    limits.named().iter().any(|(_, limit)| limit.is_some()).then(|| e.missed_limits().next().is_none())
}

/// Hits of a tier beyond the accelerators' memory, where there is one.
fn tier(e: &Evaluation, index: usize) -> Option<f64> {
    let tiers = &e.scenario.serving.as_ref()?.cache.as_ref()?.tiers;
    e.serving?.caching?.hits().tiers.get(..tiers.len())?.get(index).copied()
}
