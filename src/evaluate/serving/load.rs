//! What is asked of replicas, and the steady state that comes of it.

use super::Infeasible;
use crate::inference::{Coming, Latencies, Load, Replica, Request, Room, Scratch, Separate, SteadyState};
use crate::scenario::{Arrivals, Serving};

/// Replicas that prefill and decode, each its part of what is asked; figures are of the one to which most requests come, so many
/// times the mean.
pub(super) fn together(
    replica: &Replica<'_>,
    serving: &Serving,
    request: &Request,
    room: Room,
    (replicas, busiest): (u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<(SteadyState, Option<Latencies>), Infeasible> {
    let per_replica = replicas as f64;
    Ok(match serving.arrivals {
        Arrivals::Most => (replica.offline(request, room), None),
        Arrivals::Concurrency(open) => {
            let concurrency = f64::from(open) / per_replica;
            let waves = waves(serving, open);
            let fixed_length = serving.terms.prompts.is_some() && serving.input.cv <= 0.0 && serving.output.cv <= 0.0;
            let load = Load { request: *request, concurrency, waves, fixed_length };
            (replica.closed_loop(&load, room), None)
        }
        Arrivals::Rate(all) => {
            let count = u32::try_from(replicas).unwrap_or(u32::MAX);
            let (state, latencies) = replica
                .open_loop(request, all * (busiest / per_replica), count, coming, room, scratch)
                .map_err(|over| Infeasible::Overload {
                    asked: all,
                    most: over.most * (per_replica / busiest),
                    replicas,
                    short: over.short,
                })?;
            (state, Some(latencies))
        }
    })
}

/// Pools of prefill and decode.
pub(super) fn apart(
    pools: &Separate<'_>,
    serving: &Serving,
    request: &Request,
    (replicas, busiest): (u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<(SteadyState, Option<Latencies>), Infeasible> {
    Ok(match serving.arrivals {
        Arrivals::Most => (pools.most(request), None),
        Arrivals::Concurrency(open) => (pools.closed(request, f64::from(open), waves(serving, open), coming), None),
        Arrivals::Rate(asked) => {
            let (state, latencies) = pools.at_rate(request, asked * busiest, coming, scratch).map_err(|over| {
                Infeasible::Overload { asked, most: over.most / busiest, replicas, short: over.short }
            })?;
            (state, Some(latencies))
        }
    })
}

/// Rounds in which a benchmark sends its prompts: it begins with as many at once as it keeps open.
fn waves(serving: &Serving, open: u32) -> f64 {
    serving.terms.prompts.map_or(f64::INFINITY, |all| f64::from(all) / f64::from(open))
}
