//! Sessions of agents that wait for tools and people: what of their caches is still there, or in tiers beyond, as they go on.

use std::sync::Arc;

use super::caching::{CachePoint, ROUNDS, Settling, groups_of, recompute, room};
use super::{Bound, Reuse, ServingPoint, answered};
use crate::agents::{Waiting, Waits};
use crate::evaluate::Infeasible;
use crate::inference::{CacheTier, Hits, MOST_TIERS, Scratch, TierLinks};
use crate::scenario::{Agents, Cluster, PrefixCaching, Routing, Serving};
use crate::units::{Fraction, RequestRate, Seconds, Tokens};
use crate::workload::{Requests, Reuse as Shares, Run, Task};

const ONE: Tokens = Tokens::new(1.0);

/// A step that goes on with a session, on average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Of all calls, the share that are such steps.
    of_calls: f64,
    /// Tokens of its prompt.
    prompt: f64,
    /// Tokens that all tasks begin with.
    pub(super) shared: f64,
    /// Tokens beyond those that it finds where its session is there.
    pub(super) resumed: f64,
    /// Tokens that a call adds to a cache.
    fresh: f64,
}

impl Step {
    /// Of tasks, with what their sessions find where all of them are kept.
    pub(super) fn new(task: &Task) -> Self {
        let all = Task { reuse: Shares { session: Fraction::ONE, ..task.reuse }, ..*task };
        let (tokens, fan) = (all.tokens(), task.fan);
        let ways = f64::from(fan.agents) * f64::from(fan.branches);
        let steps = task.mean(|run| run.steps - 1.0) * ways;
        let shared = task.success.shared / ONE * task.reuse.shared.get();
        Self {
            of_calls: steps / tokens.calls,
            prompt: tokens.input / ONE / tokens.calls,
            shared,
            resumed: (tokens.resumed / ONE / steps.max(f64::MIN_POSITIVE) - shared).max(0.0),
            fresh: (tokens.fresh() + tokens.output) / ONE / tokens.calls,
        }
    }
}

/// Serving agents whose sessions are kept where there is room, the last to wait in the nearest.
///
/// # Errors
/// As those of serving.
pub(super) fn settled(
    serving: &Serving,
    caching: &PrefixCaching,
    agents: &Agents,
    cluster: &Cluster,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    let layout = serving.prefill.map_or(serving.layout, |pool| pool.layout);
    let (task, step) = (&agents.task, Step::new(&agents.task));
    let (own, tiers) = room(serving, caching, layout, cluster, step.shared + step.resumed);
    let recompute = recompute(serving, layout, bound, (step.prompt, step.shared, step.resumed));
    let links = TierLinks { tiers, recompute, scatter: task.success.prompt_scatter().powi(2) };
    let aware = caching.routing == Routing::Aware;
    let mut groups = groups_of(layout, u64::from(cluster.nodes_of_prefill().accelerators) / layout.ranks());
    let (mut waits, mut settling) = (Waiting::default(), Settling::default());
    loop {
        let most = step.of_calls * task.reuse.session.get();
        let [balanced, sticky] = [false, true].map(|aware| hits(&waits, (own, &tiers, groups), aware, most));
        let reused = links.reuse(if aware { sticky } else { balanced }, settling.each);
        let session = Fraction::new((reused.share / step.of_calls.max(f64::MIN_POSITIVE)).min(1.0));
        let task = Task { reuse: Shares { session: session.unwrap_or(Fraction::ONE), ..task.reuse }, ..*task };
        let requests = Arc::new(Requests::of_calls(task.calls(), serving.output.mean));
        let with = Serving { requests, ..serving.clone() };
        // A task begins where the fewest sessions are, so that replicas that keep theirs have as many as each other.
        let reuse = Reuse { hit: task.tokens().hit(), wait: reused.wait, busiest: 1.0, at_most: f64::INFINITY };
        // Other parts of prompts are at hand than in the round before.
        scratch.forget();
        let mut point = answered(&with, cluster, &reuse, (bound, scratch))?;
        let tasks = point.request_rate() / task.tokens().calls;
        waits = waits_of(agents, &step, tasks);
        let found = groups_of(layout, point.pool.map_or(point.replicas, |pool| pool.workers));
        let each = point.state.requests_per_second * point.replicas as f64 / found;
        if settling.settled(each) && (found - groups).abs() <= 0.5 && settling.rounds > 2 || settling.rounds == ROUNDS {
            let (balanced, aware) = (balanced.all(), sticky.all());
            let mut reused = reused;
            // What a call adds is written to every tier as it comes.
            let part = step.fresh / (step.shared + step.resumed).max(1.0);
            for (written, tier) in reused.written.iter_mut().zip(&tiers) {
                *written = each * part * (tier.store / Seconds::new(1.0));
            }
            let tokens = step.resumed;
            point.caching =
                Some(CachePoint { reused, balanced, aware, prefixes: None, by_hash: None, tokens, session });
            return Ok(point);
        }
        groups = found;
    }
}

/// Waits of tasks of which so many begin: for tools and for people. As many sessions end.
pub(super) fn waits_of(agents: &Agents, step: &Step, tasks: RequestRate) -> Waiting {
    let fan = agents.task.fan;
    let ways = f64::from(fan.agents) * f64::from(fan.branches);
    let of = |each: f64, mean| Waits { begin: tasks * (ways * each), mean };
    let waits = [of(agents.task.mean(|run| run.steps), agents.tool_time), of(agents.approvals, agents.approval_time)];
    let grown = (agents.task.mean(Run::longest) / ONE - step.shared) / step.resumed.max(1.0);
    Waiting { waits, ended: tasks * ways, grown: grown.max(1.0) }
}

/// Where calls find what their session left, `most` of them where all is kept. Sent anywhere, a session comes by chance to the
/// group where it was; what all see has it whichever group that was.
fn hits(waits: &Waiting, (own, tiers, groups): (f64, &[CacheTier; MOST_TIERS], f64), aware: bool, most: f64) -> Hits {
    let there = if aware { 1.0 } else { groups.recip() };
    let mut kept = own * groups;
    let mut down_to = waits.resumed(kept);
    let mut hits = Hits { own: down_to * most * there, ..Hits::default() };
    for (index, tier) in tiers.iter().enumerate().filter(|(_, tier)| tier.prefixes > 0.0) {
        kept += if tier.shared { tier.prefixes } else { tier.prefixes * groups };
        let found = waits.resumed(kept);
        hits.tiers[index] = if tier.shared { found * most - hits.all() } else { (found - down_to) * most * there };
        down_to = found;
    }
    hits
}
