//! Agents' tasks on the replicas that serve them: sessions, caches, storage, load, and what a task costs.

use super::{Evaluation, ServingPoint, TokenCosts};
use crate::agents::{Load, Pace, load};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Agents, Serving};
use crate::tco::{TaskCost, TaskExtras, TokenPrices};
use crate::units::{Bandwidth, Bytes, RequestRate, Seconds, Tokens, Usd, to_integer};
use crate::workload::{Reuse, RunTokens, Task};

const SECOND: Seconds = Seconds::new(1.0);

/// Figures of agents' tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentsPoint {
    /// Calls and tokens of a task, runs that fail among them.
    pub tokens: RunTokens,
    /// The same of a run that succeeds and of one that fails.
    pub by_outcome: [RunTokens; 2],
    /// Tasks that begin.
    pub tasks: RequestRate,
    /// Sessions and what they hold.
    pub load: Load,
    /// Caches of sessions that wait for tools and people, one copy of each.
    pub waiting_caches: Bytes,
    /// Sessions whose caches are held over those that memory holds.
    pub of_room: f64,
    /// What comes back from storage where sessions wait there.
    pub fetched: Bandwidth,
    /// What goes to storage there.
    pub stored: Bandwidth,
    /// What a task costs.
    pub cost: TaskCost,
    /// What a success costs.
    pub per_success: Usd,
}

impl AgentsPoint {
    /// Of tasks on replicas that serve them, at those costs of tokens.
    pub(super) fn new(agents: &Agents, serving: &Serving, point: &ServingPoint, costs: &TokenCosts) -> Self {
        let task = &kept(agents, point);
        let tokens = task.tokens();
        let tasks = point.mean_rate() / tokens.calls;
        let at_peak = point.request_rate() / tokens.calls;
        let pace = pace(agents, point);
        let mut load = load(at_peak, task, &pace);
        let session = cache_of(serving);
        // Of tokens of each task; caches grow in proportion, but for windows and states.
        let passed = |all: Tokens| {
            let sessions = all / Tokens::new(serving.input.mean + serving.output.mean);
            session * (sessions * at_peak.over(SECOND)) / SECOND
        };
        let mut held = load.idle_sessions * task.reuse.session.get();
        if let Some(resident) = point.resident.filter(|resident| resident.fit < held) {
            // Those whose waits are short find their session more often than they wait.
            let idle = load.held_idle * (resident.fit / held);
            (load.held, load.held_idle, held) = (load.held - load.held_idle + idle, idle, resident.fit);
        }
        // Without tiers, sessions that wait are in the accelerators' memory or nowhere; what is fetched is as if they waited in
        // storage.
        let reused = point.caching.map(|caching| caching.reused);
        let own = reused.map_or(1.0, |reused| share(reused.hits.own, reused.share));
        let beyond = reused.map_or(1.0, |_| 1.0 - own);
        let cost = task_cost(agents, point, &costs.prices());
        Self {
            tokens,
            by_outcome: task.tokens_by_outcome(),
            tasks,
            load,
            waiting_caches: session * held,
            of_room: (load.sessions - load.idle_sessions + held * own) / point.max_concurrency as f64,
            fetched: passed(tokens.resumed) * beyond,
            stored: passed(tokens.fresh() + tokens.output),
            cost,
            per_success: cost.per_success(task.rate.get()),
        }
    }
}

/// The task with the share of further steps that find their session: as the agents say, or as the serving's cache keeps them.
fn kept(agents: &Agents, point: &ServingPoint) -> Task {
    let of_tiers = point.caching.and_then(|caching| caching.session);
    let session = of_tiers.or(point.resident.map(|held| held.session)).unwrap_or(agents.task.reuse.session);
    Task { reuse: Reuse { session, ..agents.task.reuse }, ..agents.task }
}

/// A part of a whole; none of none.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// How fast a task goes on.
fn pace(agents: &Agents, point: &ServingPoint) -> Pace {
    Pace {
        first_token: point.state.ttft,
        answer: Tokens::new(1.0) / point.state.tpot,
        tool: agents.tool_time,
        approvals: agents.approvals,
        approval: agents.approval_time,
    }
}

fn task_cost(agents: &Agents, point: &ServingPoint, prices: &TokenPrices) -> TaskCost {
    let extras = TaskExtras { tool: agents.tool_cost, sandbox: agents.sandbox };
    TaskCost::of_task(prices, &extras, &kept(agents, point), &pace(agents, point))
}

impl Evaluation {
    /// What a task and a success of the agents cost at other prices of tokens.
    pub fn task_at(&self, prices: &TokenPrices) -> Option<(TaskCost, Usd)> {
        let agents = self.scenario.agents.as_ref()?;
        let cost = task_cost(agents, self.serving.as_ref()?, prices);
        Some((cost, cost.per_success(agents.task.rate.get())))
    }
}

/// One copy of the cache of a session of mean length.
fn cache_of(serving: &Serving) -> Bytes {
    let tokens = to_integer::<u64>((serving.input.mean + serving.output.mean).ceil());
    sequence_bytes(&serving.model, &CacheFormats::of(&serving.model), Pages::BOUND, &ServingLayout::SINGLE, tokens)
}
