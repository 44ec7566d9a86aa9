//! What is asked of replicas, and the steady state that comes of it.

use super::Infeasible;
use super::batch::{BatchBound, Largest, WHOLE};
use crate::evaluate::split::Served;
use crate::inference::{Coming, Load, Replica, Request, Room, Scratch, Separate};
use crate::scenario::{Arrivals, Serving};
use crate::units::{RequestRate, Seconds};

/// Replicas that prefill and decode, each its part of what is asked; figures are of the one to which most requests come, so many
/// times the mean. The most requests a second that one serves, what bounds its batch, and what it comes to.
pub(super) fn together(
    replica: &Replica<'_>,
    serving: &Serving,
    request: &Request,
    largest: Largest,
    (replicas, busiest): (u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<(f64, BatchBound, Served), Infeasible> {
    let packed = replica.packed(coming, scratch);
    let largest = largest.within(serving, WHOLE, |requests| replica.endless(request, packed, Room { requests }))?;
    let room = largest.room;
    let full = replica.endless(request, packed, room);
    let per_replica = replicas as f64;
    let served = match serving.arrivals {
        Arrivals::Most => (full, None),
        Arrivals::Concurrency(open) => {
            let concurrency = f64::from(open) / per_replica;
            let waves = waves(serving, open);
            let fixed_length = serving.terms.prompts.is_some() && serving.input.cv <= 0.0 && serving.output.cv <= 0.0;
            let load = Load { request: *request, concurrency, waves, fixed_length };
            (replica.closed_loop(&load, room), None)
        }
        Arrivals::Rate(all) => {
            let count = u32::try_from(replicas).unwrap_or(u32::MAX);
            let most = RequestRate::of(full.requests_per_second, Seconds::new(1.0));
            let (state, latencies) = replica
                .open_loop(request, all * (busiest / per_replica), count, coming, (room, most), scratch)
                .map_err(|over| Infeasible::Overload {
                    asked: all,
                    most: over.most * (per_replica / busiest),
                    replicas,
                    short: over.short,
                })?;
            (state, Some(latencies))
        }
    };
    Ok((full.requests_per_second, largest.of_replicas(serving.arrivals, replicas), served))
}

/// Pools of prefill and decode.
pub(super) fn apart(
    pools: &Separate<'_>,
    serving: &Serving,
    request: &Request,
    (replicas, busiest): (u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<Served, Infeasible> {
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
