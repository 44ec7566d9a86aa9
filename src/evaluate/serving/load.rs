//! What is asked of replicas, and the steady state that comes of it.

use roots::{SimpleConvergency, find_root_brent};

use super::Infeasible;
use super::batch::{BatchBound, FULL, Largest, WHOLE};
use super::split::Served;
use crate::inference::{Coming, Load, Replica, Request, Room, Scratch, Separate, SteadyState};
use crate::scenario::{Arrivals, Serving};
use crate::units::{RequestRate, Seconds};

/// Replicas that prefill and decode, each its part of what is asked; figures are of the one to which most requests come, so many
/// times the mean. The most requests a second that one serves, the share of its time that is prefill's then, what bounds its batch, and
/// what it comes to.
pub(super) fn together(
    replica: &Replica<'_>,
    serving: &Serving,
    request: &Request,
    largest: Largest,
    (replicas, busiest): (u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<((RequestRate, f64), BatchBound, Served), Infeasible> {
    let filled = replica.filled(request, largest.room, coming, scratch);
    // Of the memory's batch, whatever is asked: what limits or a queue leave of it is no other split of the cost.
    let prefilling = filled.prefilling;
    // A benchmark's requests of one length, all there at the start, go on in step. In a queue that does not empty places come free one
    // by one, so that a step takes in no more than have just ended however many wait.
    let in_step = serving.terms.prompts.is_some() && serving.input.cv <= 0.0 && serving.output.cv <= 0.0;
    let endless = |requests: f64, scratch: &mut Scratch| {
        let of_one_length = || replica.offline(request, Room { requests });
        let state = if in_step { of_one_length() } else { replica.scattered(request, requests, &filled) };
        (state, replica.endless_latencies(&state, coming, scratch))
    };
    // No replica has more prompts at once than come to it.
    let each = serving.terms.prompts.map_or(f64::INFINITY, |all| (f64::from(all) / replicas as f64).ceil());
    let largest = match serving.arrivals {
        Arrivals::Most => largest.at_most(each, BatchBound::Open),
        Arrivals::Concurrency(_) | Arrivals::Rate(_) => largest,
    };
    let within = largest.within(serving, WHOLE, |requests| endless(requests, scratch))?;
    let filled = if within == largest { filled } else { replica.filled(request, within.room, coming, scratch) };
    let per_replica = replicas as f64;
    // Where requests come by themselves, prompts wait instead; those that all are there from the start go through in waves.
    let within = match serving.arrivals {
        Arrivals::Rate(_) => within,
        Arrivals::Most if serving.terms.prompts.is_some() => within,
        Arrivals::Most | Arrivals::Concurrency(_) => within.at_most(filled.beside_chunks, BatchBound::Prefill),
    };
    let served = match serving.arrivals {
        Arrivals::Most => {
            let (state, latencies) = endless(within.room.requests, scratch);
            if let Some(all) = serving.terms.prompts {
                let whole = replica.taken(request, within.room, each);
                let last = whole.saturating_sub(replica.taken(request, within.room, within.room.requests));
                let waits = if request.decodes() {
                    // For the prompts of its wave but its own.
                    (last, state.stall * (request.output * (1.0 - state.batch.max(1.0).recip())))
                } else {
                    (whole.saturating_sub(state.prefill), Seconds::ZERO)
                };
                // Behind the host, which takes requests in, and all prompts of its wave, its own among them.
                let host = replica.taken_in();
                let answer = if request.decodes() { host + state.tpot * request.output } else { latencies.whole.p50 };
                let latencies = latencies.of_one_length(answer).in_waves(waits);
                let whole = (whole + host).max(latencies.whole.p99);
                let served = RequestRate::of(f64::from(all) / per_replica, whole);
                (state.in_waves(served, waits), latencies)
            } else {
                let bound = filled.beside_chunks < within.room.requests;
                let most = if bound { filled.most } else { state.rate() };
                (state.of_no_more_than(most, request), latencies)
            }
        }
        Arrivals::Concurrency(open) => {
            let waves = waves(serving, open);
            let mut with = |concurrency: f64| {
                let load = Load { request: *request, concurrency, waves, fixed_length: in_step };
                replica.closed_loop_of(&load, (&filled, within.room), coming, scratch)
            };
            over_uneven(f64::from(open) / per_replica, (per_replica, busiest), &mut with)
        }
        Arrivals::Rate(all) => {
            let count = u32::try_from(replicas).unwrap_or(u32::MAX);
            replica.open_loop(request, all * (busiest / per_replica), count, coming, &filled, scratch).map_err(
                |over| Infeasible::Overload {
                    asked: all,
                    most: over.most * (per_replica / busiest),
                    replicas,
                    short: largest.short(&over),
                },
            )?
        }
    };
    let without_end = matches!(serving.arrivals, Arrivals::Most) && serving.terms.prompts.is_none();
    // However many wait, those that come by themselves are no more than leave each adapter its turn.
    let most = if without_end { served.0.rate().min(filled.turns) } else { filled.most_at_a_rate() };
    let full = || served.0.rate() >= filled.most * FULL;
    let bound = match within.of_replicas(serving.arrivals, replicas) {
        bound @ BatchBound::Rate => bound,
        bound if request.decodes() => bound,
        _ if matches!(serving.arrivals, Arrivals::Concurrency(_)) && !full() => BatchBound::Open,
        _ => BatchBound::Prefill,
    };
    Ok(((most, prefilling), bound, served))
}

/// Pools of prefill and decode.
pub(super) fn apart(
    pools: &Separate<'_>,
    serving: &Serving,
    request: &Request,
    (largest, replicas, busiest): (Largest, u64, f64),
    (coming, scratch): (&Coming<'_>, &mut Scratch),
) -> Result<Served, Infeasible> {
    Ok(match serving.arrivals {
        Arrivals::Most => {
            let state = pools.most(request);
            (state, pools.endless_latencies(request, &state, coming, scratch))
        }
        Arrivals::Concurrency(open) => {
            let mut with =
                |each: f64| pools.closed_of(request, (each * pools.workers, waves(serving, open)), coming, scratch);
            over_uneven(f64::from(open) / pools.workers, (pools.workers, busiest), &mut with)
        }
        Arrivals::Rate(asked) => pools.at_rate(request, asked * busiest, coming, scratch).map_err(|over| {
            let short = largest.short(&over);
            Infeasible::Overload { asked, most: over.most / busiest, replicas, short }
        })?,
    })
}

/// With so many open at each of so many servers on average, to one of which `busiest` times the mean of requests come: rates and quantiles
/// are of that one, latencies the mean over requests, and sequences in decode that over servers. `served` is what one comes to
/// with so many open.
fn over_uneven(each: f64, (count, busiest): (f64, f64), served: &mut impl FnMut(f64) -> Served) -> Served {
    let open = open_at_the_busiest(each, (count, busiest), |open| served(open).0.requests_per_second);
    let (of_busiest, latencies) = served(open);
    let left = (each * count - open) / (count - 1.0);
    if busiest <= 1.0 || count <= 1.0 {
        return (of_busiest, latencies);
    }
    let share = (busiest / count).min(1.0);
    if left <= 0.0 || share >= 1.0 {
        return (SteadyState { batch: of_busiest.batch / count, ..of_busiest }, latencies);
    }
    let (of_others, _) = served(left);
    let batch = (of_busiest.batch + of_others.batch * (count - 1.0)) / count;
    (SteadyState { batch, ..of_busiest.mixed_with(&of_others, 1.0 - share) }, latencies)
}

/// Requests open at the one of so many servers to which `busiest` times the mean of requests come, where so many are open at each on
/// average and others share the rest alike. `served` is how many end a second in one with so many open.
///
/// As many are open there as makes it end that many times what others end with what is left (visits of a closed network of queues).
fn open_at_the_busiest(each: f64, (count, busiest): (f64, f64), mut served: impl FnMut(f64) -> f64) -> f64 {
    let of_others = (count - busiest) / (count - 1.0);
    if busiest <= 1.0 || count <= 1.0 || of_others <= 0.0 {
        return each * busiest.min(count);
    }
    let all = each * count;
    let mut precision = SimpleConvergency { eps: each * 1e-9, max_iter: 200 };
    let off = |open: f64| served(open) * of_others - served((all - open) / (count - 1.0)) * busiest;
    // With the mean open it ends as many as others do, and with all of them others end none: there is a root between, and where nothing
    // is served at all those open are as those that come.
    find_root_brent(each, all * (1.0 - 1e-6), off, &mut precision).unwrap_or(each * busiest)
}

/// Rounds in which a benchmark sends its prompts: it begins with as many at once as it keeps open.
fn waves(serving: &Serving, open: u32) -> f64 {
    serving.terms.prompts.map_or(f64::INFINITY, |all| f64::from(all) / f64::from(open))
}
