//! Caches that do not hold, or do not bring in time, what is found in them.

use crate::evaluate::Evaluation;
use crate::report::figure::percent;
use crate::scenario::Routing;
use crate::units::significant;

/// Links of tiers that have no time for all that is found there, or for all that falls to them.
pub(super) fn overrun(evaluation: &Evaluation) -> Vec<String> {
    let caching = |evaluation: &Evaluation| {
        let tiers = &evaluation.scenario.serving.as_ref()?.cache.as_ref()?.tiers;
        Some((tiers.clone(), evaluation.serving?.caching?.reused))
    };
    let Some((tiers, reused)) = caching(evaluation) else { return Vec::new() };
    let mut notes = Vec::new();
    if reused.crowded > 0.0 {
        notes.push(format!(
            "The links of a tier are overrun: {} of requests find their prefix in it and have it computed again, which is sooner than the wait for loads before theirs.",
            percent(reused.crowded)
        ));
    }
    notes.extend(tiers.iter().zip(reused.written).filter(|(_, written)| *written > 1.0).map(|(tier, written)| {
        let times = significant(written, 3);
        format!("{times} times as much falls to {} as it takes in: it keeps a part of that, and hits take longer to build up than computed.", tier.entry.id)
    }));
    notes
}

/// How evenly prefixes are taken to be spread over replicas: as routers do that weigh a worker's load against what it has
/// (SGLang's `cache_aware`, NVIDIA Dynamo's KV router, Ray Serve's prefix-aware router), whose worst is not known.
pub(super) fn spread_evenly(evaluation: &Evaluation) -> Option<String> {
    let cache = evaluation.scenario.serving.as_ref()?.cache.as_ref()?;
    let found = evaluation.serving?.caching?;
    let by_hash = found.by_hash.filter(|by_hash| cache.routing == Routing::Aware && *by_hash > 0.0)?;
    Some(format!(
        "A new prefix is taken to go to the replica with the least to do, the popular ones first, which is as even as it gets: the busiest has {} of the mean. By a hash of prefixes alone replicas would differ from the mean by {} (one standard deviation).",
        percent(found.busiest()),
        percent(by_hash)
    ))
}

/// Agents' sessions that memory does not hold, though the scenario says that they find their caches.
pub(super) fn crowded_out(evaluation: &Evaluation) -> Option<String> {
    let (agents, point) = (evaluation.scenario.agents.as_ref()?, evaluation.agents.as_ref()?);
    let (held, said) = (evaluation.serving?.resident?, agents.task.reuse.session);
    // Of so few that lose theirs nothing is said.
    (held.session.get() < said.get() * 0.999).then(|| {
        format!(
            "{} sessions wait, and the memory that running requests leave has room for {}, of which those that have ended take a part: {} of further steps find theirs, where `agents.session_hit` says {}, and the rest is computed again. Tiers beyond are `serving.cache.tiers`.",
            significant(point.load.idle_sessions, 4),
            significant(held.fit, 4),
            percent(held.session.get()),
            percent(said.get())
        )
    })
}
