//! Agents' tasks.

use crate::units::{SECONDS_PER_DAY, Seconds};

figures! {
    Agents:
    "agents.calls_per_task_count": Count, "Calls of a task", "Of all agents, branches and attempts, runs that fail among them.";
        "steps x agents x branches x attempts, by the share of runs that succeed and that fail"
        from ["agents.steps", "agents.agents", "agents.branches", "agents.retries", "agents.success"] => |e| e.agents?.tokens.calls;
    "agents.input_tokens_per_task_count": Count, "Prompts' tokens of a task", "Cached tokens among them; a prompt grows from step to step.";
        "steps x first prompt + growth x steps x (steps - 1) / 2, of all ways and attempts"
        from ["agents.steps", "agents.shared_tokens", "agents.prompt_tokens", "agents.added_tokens", "agents.output_tokens"] => |e| e.agents?.tokens.input;
    "agents.cached_tokens_per_task_count": Count, "  cached", "Prompts' tokens that the prefix cache has.";
        "last prompts and answers of kept sessions + shared tokens + prompts of repeated attempts"
        from ["agents.session_hit", "agents.shared_hit", "agents.cache_block", "serving.cache", "agents.input_tokens_per_task_count"] => |e| e.agents?.tokens.cached;
    "agents.output_tokens_per_task_count": Count, "Answers' tokens of a task", "Reasoning among them.";
        "calls x tokens of an answer" from ["agents.calls_per_task_count", "agents.output_tokens"] => |e| e.agents?.tokens.output;
    "agents.prefix_hit_ratio": Ratio, "Prompts' tokens cached", "Share of all prompts' tokens.";
        "cached / prompts' tokens" from ["agents.cached_tokens_per_task_count", "agents.input_tokens_per_task_count"] => |e| e.agents?.tokens.hit();
    "agents.input_to_output_ratio": Quotient, "Prompts' tokens for one of answers", "In all calls.";
        "prompts' tokens / answers' tokens" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count"]
        => |e| e.agents?.tokens.input / e.agents?.tokens.output;
    "agents.succeeding.calls_per_task_count": Count, "Calls of a run that succeeds", "Without runs that fail.";
        "steps x agents x branches x attempts" from ["agents.steps", "agents.retries"] => |e| e.agents?.by_outcome[0].calls;
    "agents.failing.calls_per_task_count": Count, "Calls of a run that fails", "Failures have means of their own.";
        "steps x agents x branches x attempts" from ["agents.failed.steps", "agents.retries"] => |e| e.agents?.by_outcome[1].calls;
    "agents.tasks_per_day": PerDay, "Tasks, in hours of use", "That begin in a day of hours that are used, of all users: 24 of them.";
        "users / time between two tasks; or requests served / calls of a task"
        from ["agents.users", "agents.task_every", "serving.requests_per_s", "agents.calls_per_task_count"] => |e| e.agents?.tasks.over(Seconds::new(SECONDS_PER_DAY));
    "agents.calendar_tasks_per_day": PerDay, "  by the calendar", "That begin over all hours, used or not: what a year costs, over a year of these, is what a task costs without tools and machines.";
        "tasks in hours of use x utilisation" from ["agents.tasks_per_day", "finance.utilisation"]
        => |e| e.agents?.tasks.over(Seconds::new(SECONDS_PER_DAY)) * e.scenario.finance.utilisation.get();
    "agents.task_s": Seconds, "A task", "From its first call to its last answer, on average.";
        "steps x attempts x (first token + answer) + steps x tools + approvals"
        from ["agents.steps", "serving.ttft_s", "serving.tpot_s", "agents.tool_time", "agents.approval_time"] => |e| e.agents?.load.task;
    "agents.waiting_s": Seconds, "  waiting", "For tools and people.";
        "steps x tools + approvals" from ["agents.tool_time", "agents.approvals", "agents.approval_time"] => |e| e.agents?.load.waiting;
    "agents.sessions_count": Count, "Sessions", "Agents and branches of all tasks under way.";
        "tasks that begin x their time x agents x branches" from ["agents.tasks_per_day", "agents.task_s"] => |e| e.agents?.load.sessions;
    "agents.idle_sessions_count": Count, "  waiting", "For tools and people.";
        "tasks that begin x their wait x agents x branches" from ["agents.tasks_per_day", "agents.waiting_s"] => |e| e.agents?.load.idle_sessions;
    "agents.sessions_fit_count": Count, "  that find room", "In the memory that running requests leave, of prefill's pool where there is one.";
        "(cache - requests that run x their cache) / cache of a session, over groups"
        from ["memory.kv_cache_bytes", "serving.open_count", "agents.input_tokens_per_task_count", "serving.replicas_count"]
        => |e| { e.agents?; e.serving?.resident?.fit };
    "agents.session_found_ratio": Ratio, "Further steps that find their session", "Those whose waits began last find it, where there is not room for all.";
        "as given x waits shorter than the time in which as many begin as find room"
        from ["agents.session_hit", "agents.sessions_fit_count", "agents.idle_sessions_count", "agents.tool_time", "agents.approval_time", "serving.cache"]
        => |e| { e.agents?; let point = e.serving?; point.resident.map(|held| held.session).or(point.caching.and_then(|caching| caching.session))?.get() };
    "agents.kv_held_tokens_count": Count, "Tokens held in caches", "Of sessions in a call and of those that wait and are kept.";
        "sessions x their mean prompt and answer" from ["agents.sessions_count", "agents.session_hit"] => |e| e.agents?.load.held;
    "agents.kv_idle_bytes": Bytes, "Caches of sessions that wait", "One copy of each: what other memory would hold for them.";
        "sessions that wait x share kept x cache of a session" from ["agents.idle_sessions_count", "agents.session_hit", "serving.kv_cache"]
        => |e| e.agents?.waiting_caches;
    "agents.kv_held_ratio": Ratio, "Sessions' caches over what memory holds", "Above the whole, sessions that wait have to leave the GPUs or lose their caches.";
        "(sessions in a call + kept sessions that wait) / requests at once, at most"
        from ["agents.sessions_count", "agents.idle_sessions_count", "serving.max_concurrency_count"] => |e| e.agents?.of_room;
    "agents.kv_fetch_gbytes_per_s": GbytesPerSecond, "Caches fetched", "From storage, where sessions wait there.";
        "tasks x cached tokens of own sessions x bytes of a token" from ["agents.tasks_per_day", "agents.cached_tokens_per_task_count", "serving.kv_cache"]
        => |e| e.agents?.fetched;
    "agents.kv_store_gbytes_per_s": GbytesPerSecond, "Caches stored", "To storage, where sessions wait there.";
        "tasks x (computed prompts' + answers' tokens) x bytes of a token" from ["agents.tasks_per_day", "agents.output_tokens_per_task_count", "serving.kv_cache"]
        => |e| e.agents?.stored;
    "agents.gpu_load_ratio": Ratio, "Load of the GPUs", "Calls over the most that the replicas serve.";
        "requests a second / the most" from ["serving.requests_per_s", "serving.most_requests_per_s"] => |e| e.gpu_load()?;
    "agents.cost_input_per_task_usd": Usd, "Prompts of a task", "Computed tokens.";
        "computed tokens x their cost" from ["agents.input_tokens_per_task_count", "cost.usd_per_mtok_input"] => |e| e.agents?.cost.input;
    "agents.cost_cached_per_task_usd": Usd, "Cached tokens of a task", "At their own cost.";
        "cached tokens x their cost" from ["agents.cached_tokens_per_task_count", "cost.usd_per_mtok_cached"] => |e| e.agents?.cost.cached;
    "agents.cost_output_per_task_usd": Usd, "Answers of a task", "Reasoning among them.";
        "answers' tokens x their cost" from ["agents.output_tokens_per_task_count", "cost.usd_per_mtok_output"] => |e| e.agents?.cost.output;
    "agents.cost_tools_per_task_usd": Usd, "Tools of a task", "Of all its calls.";
        "calls x tools of a call" from ["agents.calls_per_task_count", "agents.tool_cost"] => |e| e.agents?.cost.tools;
    "agents.cost_sandbox_per_task_usd": Usd, "Machines of a task", "One for each branch, as long as the task.";
        "time of a task x agents x branches x price of a machine" from ["agents.task_s", "agents.sandbox"] => |e| e.agents?.cost.sandbox;
    "agents.cost_per_task_usd": Usd, "A task", "All of it, runs that fail among them.";
        "prompts + cached + answers + tools + machines"
        from ["agents.cost_input_per_task_usd", "agents.cost_cached_per_task_usd", "agents.cost_output_per_task_usd", "agents.cost_tools_per_task_usd", "agents.cost_sandbox_per_task_usd"]
        => |e| e.agents?.cost.total();
    "agents.cost_per_success_usd": Usd, "A success", "With the failures paid for it.";
        "a task / share that succeeds" from ["agents.cost_per_task_usd", "agents.success"] => |e| e.agents?.per_success;
}
