//! Serving on a cluster: replicas of one layout, what each holds at once, how fast it answers, and what a token costs.

mod alone;
mod bands;
mod batch;
mod between;
mod bound;
mod caching;
mod domains;
mod engine;
mod figures;
mod holding;
mod joined;
mod load;
mod pools;
mod resident;
mod sessions;
mod shares;
mod split;
mod worker;

use batch::{Largest, MEAN};
use bound::Bound;
pub(super) use bound::BoundServing;
use domains::Domains;
use engine::mean_request;
pub use holding::HeldByRank;
use holding::{Holding, footprint, holds};
use load::{apart, together};
use pools::{Places, Sides};
use split::Split;

use super::Infeasible;
use crate::inference::{Coming, Latencies, Request, Scratch, Separate, SteadyState};
use crate::memory::MemoryFootprint;
use crate::memory::serving::{Fits, Paging, ServingLayout};
use crate::scenario::{AdapterRouting, Arrivals, Cluster, Kept, NodeGroup, Serving};
use crate::units::{Bytes, RequestRate, Seconds, to_integer};

pub use alone::{ReplicaPoint, replica_alone};
pub use bands::Bands;
pub use batch::BatchBound;
pub use caching::CachePoint;
pub use engine::{AdapterPoint, EnginePoint, TenantsPoint};
pub use figures::MissedLimit;
pub use resident::ResidentPoint;
pub use shares::{CapacityShares, TimeShares};
pub use worker::{WorkerPoint, prefill_worker};

/// Figures of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingPoint {
    /// How a replica is spread.
    pub layout: ServingLayout,
    /// Replicas that serve; of decode, where prefill has a pool of its own.
    pub replicas: u64,
    /// Replicas beside them that stand by, and as many prefill workers.
    pub spares: u64,
    /// Accelerators at work, those of spares and those that make no whole replica among them.
    pub accelerators: u64,
    /// The most that all replicas would serve, spares too: with limits kept where they choose how many they take at once, else
    /// whatever latencies that takes.
    pub most: RequestRate,
    /// Share of a replica's time that is prefill's where it serves as many as it can; of none where prefill has a pool of its own.
    pub prefilling: f64,
    /// What is served at the peak over the mean of a day.
    pub peak_to_mean: f64,
    /// Prefill's own pool.
    pub pool: Option<PoolPoint>,
    /// Memory of an accelerator, the cache's whole pool in it.
    pub memory: MemoryFootprint,
    /// What a process can have of it.
    pub usable: Bytes,
    /// Requests of the asked length that fit at once, in all replicas.
    pub max_concurrency: u64,
    /// A request, on average.
    pub request: Request,
    /// The steady state of one replica.
    pub state: SteadyState,
    /// Requests that are kept open for each replica, where so many are asked for.
    pub open: Option<f64>,
    /// What keeps the sequences in decode from being more.
    pub batch_bound: BatchBound,
    /// Requests that each attention group takes at once.
    pub at_once: u32,
    /// How latencies scatter.
    pub latencies: Latencies,
    /// Where the time of a replica goes.
    pub shares: TimeShares,
    /// Share of a prefill that is attention to cached tokens.
    pub cached_share: f64,
    /// What the engine does beside its plain loop.
    pub engine: EnginePoint,
    /// Share of the cache of a sequence in decode that is the empty end of its last blocks.
    pub block_waste: f64,
    /// Logits of all tokens of a forward pass, where they are asked for: a part of activations.
    pub prompt_logits: Option<Bytes>,
    /// Parts that each accelerator is cut into.
    pub slices: u32,
    /// Adapters, where there are any.
    pub adapters: Option<AdapterPoint>,
    /// Prefixes that are kept, where hits follow from that.
    pub caching: Option<CachePoint>,
    /// Sessions of agents that wait in what running requests leave of the memory, where that is where they wait.
    pub resident: Option<ResidentPoint>,
    /// How far figures may be off, where the constants' catalog says so.
    pub bands: Option<Bands>,
}

/// A pool of prefill workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolPoint {
    /// How a worker is spread.
    pub layout: ServingLayout,
    /// Workers.
    pub workers: u64,
    /// Memory of an accelerator of one, the cache's whole pool in it.
    pub memory: MemoryFootprint,
    /// Handing a request's cache over to decode.
    pub transfer: Seconds,
    /// What engines take of that beside its bytes.
    pub transfer_fixed: Seconds,
    /// The most caches that the links between the pools carry.
    pub handed_over: RequestRate,
    /// The most that it takes in.
    pub most: RequestRate,
    /// The most that decode finishes.
    pub finished: RequestRate,
}

impl PoolPoint {
    fn new(
        layout: ServingLayout,
        (workers, memory): (u64, MemoryFootprint),
        pools: &Separate<'_>,
        request: &Request,
    ) -> Self {
        Self {
            layout,
            workers,
            memory,
            transfer: pools.transfer.alone(),
            transfer_fixed: pools.transfer.fixed,
            handed_over: pools.handed_over(request),
            most: pools.prefilled(),
            finished: pools.decoded(request),
        }
    }
}

/// Serving on a cluster's accelerators at work.
///
/// # Errors
/// When the accelerators are no whole number of replicas, a replica holds no request of the asked length, or more requests
/// come than are served.
pub fn serving_point(serving: &Serving, cluster: &Cluster) -> Result<ServingPoint, Infeasible> {
    serving_point_of(serving, cluster, &mut BoundServing::new(serving, cluster)?, &mut Scratch::default())
}

/// The same, where it matters little how many are served of more than are: where agents' sessions lose their caches, that takes
/// a search of its own, and what is told is no less.
///
/// # Errors
/// As [`serving_point`].
pub fn served_point(serving: &Serving, cluster: &Cluster) -> Result<ServingPoint, Infeasible> {
    served_point_of(serving, cluster, &mut BoundServing::new(serving, cluster)?, &mut Scratch::default())
}

/// As [`serving_point`], with what it depends on but the requests, and with what an answer for the same requests at another rate
/// left behind.
///
/// # Errors
/// As [`serving_point`].
pub(super) fn serving_point_of(
    serving: &Serving,
    cluster: &Cluster,
    bound: &mut BoundServing,
    scratch: &mut Scratch,
) -> Result<ServingPoint, Infeasible> {
    let served = served_point_of(serving, cluster, bound, scratch);
    match (served, &serving.sessions) {
        (Err(Infeasible::Overload { asked, replicas, short, .. }), Some(agents)) => {
            let most = resident::most(serving, agents, cluster, asked, (bound.on_all(), scratch));
            Err(Infeasible::Overload { asked, most, replicas, short })
        }
        (served, _) => served,
    }
}

/// As [`served_point`], with the same. Nodes that pools do not fill are not joined to the others: they idle, and more
/// accelerators never serve less by them.
///
/// # Errors
/// As [`serving_point`].
pub(super) fn served_point_of(
    serving: &Serving,
    cluster: &Cluster,
    bound: &mut BoundServing,
    scratch: &mut Scratch,
) -> Result<ServingPoint, Infeasible> {
    let mut point = settled(serving, cluster, (bound.on_all(), scratch))?;
    while let Some((bound, filled)) = bound.on_filled(serving, cluster, &point) {
        // What is remembered of prompts is of engines on the other network.
        scratch.forget();
        let on_filled = settled(serving, filled, (bound, scratch));
        scratch.forget();
        let Ok(on_filled) = on_filled else { break };
        point = on_filled;
    }
    Ok(ServingPoint { accelerators: cluster.accelerators.into(), ..point })
}

/// Serving with what is found of prompts.
fn settled(
    serving: &Serving,
    cluster: &Cluster,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    if let Some(caching) = &serving.cache {
        return match &caching.kept {
            Kept::Prefixes { count, tokens, popularity } => {
                let kept = (*count, *popularity, *tokens);
                caching::settled(serving, caching, kept, cluster, (bound, scratch))
            }
            Kept::Sessions(agents) => sessions::settled(serving, caching, agents, cluster, (bound, scratch)),
        };
    }
    if let Some(agents) = &serving.sessions {
        return resident::settled(serving, agents, cluster, (bound, scratch));
    }
    let hit = serving.prefix_hit.get();
    let reuse = Reuse { hit, wait: Seconds::ZERO, busiest: 1.0, at_most: f64::INFINITY };
    answered(serving, cluster, &reuse, (bound, scratch))
}

/// What requests find of their prompts, and how evenly they come to replicas.
#[derive(Clone, Copy, Debug)]
struct Reuse {
    /// Share of a prompt's tokens whose keys and values are at hand.
    hit: f64,
    /// Wait until they are.
    wait: Seconds,
    /// Requests of the busiest replica over the mean.
    busiest: f64,
    /// Requests of a replica at once, at most: the rest of its memory is others'.
    at_most: f64,
}

/// Serving with so much of the prompts at hand. Latencies are those of the busiest replica; with a number open their means are over all
/// requests.
fn answered(
    serving: &Serving,
    cluster: &Cluster,
    reuse: &Reuse,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    let (layout, each) = (serving.layout, serving.layout.ranks());
    let slices = slices(serving, layout)?;
    let site = site(serving, cluster, slices)?;
    let (accelerators, spares) = (site.accelerators, u64::from(serving.spare_replicas));
    features_fit(serving, layout)?;
    let holding = Holding::new(serving, cluster.main_nodes());
    let (usable, shapes) = (holding.usable, bound.shapes);
    let found = fitting(serving, &holding)?;
    let memory = footprint(&found);
    let (request, hit) = (mean_request(serving, reuse.hit), reuse.hit);
    let room = holding.room(&layout, &request, &found);
    let engines = if serving.prefill.is_none() { site.whole(layout).saturating_sub(spares) } else { 1 };
    let adapters = shapes.swaps(serving, &layout, engines as f64);
    // Requests that go to where their adapter is do not go by what of their prompt is where.
    let (wait, busiest, places) = adapters.map_or((reuse.wait, reuse.busiest, f64::INFINITY), |adapters| {
        (reuse.wait + adapters.wait, reuse.busiest * adapters.uneven, adapters.sequences)
    });
    let joined_decode = bound.decode.after(wait);
    let sharing = serving.prefill.is_none().then_some(&request);
    let replica = shapes.engine(serving, &joined_decode, layout, sharing, engines as f64);
    let cached_share = 1.0 - replica.prefill(request.input, 0.0) / replica.prefill(request.input, request.cached);
    let coming = coming(serving, &request, hit);
    let too_few = Infeasible::NoReplicaLeft { accelerators, each, spares };
    let largest = Largest::new(room, layout.attention_data, holding.at_once())
        .at_most(places, BatchBound::Adapters)
        .at_most(reuse.at_most, BatchBound::Sessions);
    let (mut pool, mut joined_prefill, mut takes_in) = (None, None, replica);
    let (replicas, (most, prefilling), batch_bound, mut state, latencies) =
        if let Some((wanted, between)) = serving.prefill.as_ref().zip(bound.between) {
            let held = footprint(&worker::fits(serving, cluster, wanted.layout)?);
            let hardware = joined_prefill.insert(bound.prefill.after(wait));
            takes_in = shapes.worker(serving, hardware, wanted.layout);
            let transfer = between.hand_over(serving, serving.mean_lengths().0);
            let theirs = cluster.own_nodes_of_prefill();
            let theirs = theirs.map(|nodes| Domains::new(nodes, serving.left_over, slices)).transpose()?;
            let places = Places { decode: site, prefill: theirs };
            let served = Seconds::ZERO;
            let mut sides = Sides { prefill: takes_in, decode: replica, room: largest.room, transfer, served };
            sides.served = sides.pools(1, 1).served_on_average(&request, &coming, scratch);
            let largest = largest.within(serving, MEAN, |batch| {
                let pools = sides.pools(1, 1);
                let state = pools.at_batch(&request, batch);
                (state, pools.endless_latencies(&request, &state, &coming, scratch))
            })?;
            sides.room = largest.room;
            let split = Split { serving, pool: wanted, places: &places, sides: &sides };
            let (workers, all, pools, (state, latencies)) = split.chosen(&request, |pools, all| {
                apart(pools, serving, &request, (largest, all - spares, busiest), (&coming, &mut *scratch))
            })?;
            pool = Some(PoolPoint::new(wanted.layout, (workers, held), &pools, &request));
            let replicas = all - spares;
            let most = sides.pools(workers, all).most_at_a_rate(&request).over(Seconds::new(1.0));
            (replicas, (most, 0.0), largest.in_pools(serving.arrivals, &pools, &request, &state), state, latencies)
        } else {
            let all = site.whole(layout);
            if !serving.left_over && all * each != accelerators {
                return Err(Infeasible::Straddling { accelerators, each, domain: site.domain, whole: all });
            }
            let replicas = all.checked_sub(spares).filter(|replicas| *replicas > 0).ok_or(too_few)?;
            let ((most, prefilling), bound, (state, latencies)) =
                together(&replica, serving, &request, largest, (replicas, busiest), (&coming, scratch))?;
            (replicas, (most.over(Seconds::new(1.0)) * all as f64, prefilling), bound, state, latencies)
        };
    let busy = state.requests_per_second * (replicas + spares) as f64 / most;
    let beside = idle_beside(serving.arrivals, busiest, pool.map_or(replicas, |pool| pool.workers));
    let shares = TimeShares::of(&request, &state, (serving.arrivals, busy)).beside_idle(beside);
    state.requests_per_second /= busiest;
    let engine = EnginePoint::new((&replica, wait), &takes_in, &request, &state);
    let block_waste = holding.block_waste(&layout, request.context());
    let max_concurrency = found.requests * replicas;
    Ok(ServingPoint {
        layout,
        replicas,
        spares,
        accelerators: cluster.accelerators.into(),
        most: RequestRate::new(most / busiest),
        prefilling,
        peak_to_mean: serving.peak_to_mean,
        pool,
        memory,
        usable,
        max_concurrency,
        request,
        state,
        open: kept_open(serving, &state, &latencies, replicas),
        batch_bound,
        at_once: holding.at_once(),
        latencies,
        shares,
        cached_share,
        engine,
        block_waste,
        prompt_logits: holding.prompt_logits(),
        slices,
        adapters: adapters.map(|found| found.with(shapes.different(serving, state.batch, engines as f64))),
        caching: None,
        resident: None,
        bands: bound.bands[usize::from(!matches!(serving.arrivals, Arrivals::Most))],
    })
}

/// Requests of the busiest of so many servers over the mean, as far as the others idle meanwhile: with a number open they are at work
/// too, with fewer of them.
fn idle_beside(arrivals: Arrivals, busiest: f64, servers: u64) -> f64 {
    if matches!(arrivals, Arrivals::Concurrency(_)) && busiest < servers as f64 { 1.0 } else { busiest }
}

/// Requests open for each replica, where that does not follow from the mean latencies of a request: where so many are kept open, or
/// all are there from the start and wait in first tokens for prompts that tokens of others wait for too.
fn kept_open(serving: &Serving, state: &SteadyState, latencies: &Latencies, replicas: u64) -> Option<f64> {
    let prompts = serving.terms.prompts.is_some();
    match serving.arrivals {
        Arrivals::Concurrency(open) if !prompts => Some(f64::from(open) / replicas as f64),
        Arrivals::Most if prompts => {
            // Evenly about it, for all are of one length.
            Some(RequestRate::new(state.requests_per_second).over(latencies.whole.p50))
        }
        _ => None,
    }
}

/// The accelerators that serve, of which replicas that prefill too leave none where none is to be left.
fn site(serving: &Serving, cluster: &Cluster, slices: u32) -> Result<Domains, Infeasible> {
    let site = Domains::new(cluster.main_nodes(), serving.left_over, slices)?;
    let (accelerators, each) = (site.accelerators, serving.layout.ranks());
    if serving.prefill.is_none() && !serving.left_over && !accelerators.is_multiple_of(each) {
        return Err(Infeasible::PartReplica { accelerators, each });
    }
    Ok(site)
}

/// What a rank of a replica holds of requests of the asked length, whose layers share pages as the engine's do, or otherwise; of
/// a prefill worker of a layout, of their prompts.
pub fn held_by_a_rank(
    serving: &Serving,
    nodes: NodeGroup<'_>,
    prefill: Option<ServingLayout>,
    paging: Option<Paging>,
) -> HeldByRank {
    let (input, output) = serving.mean_lengths();
    let holding = Holding::new(serving, nodes);
    match prefill {
        Some(layout) => holding.of_a_rank(&layout, tokens_up(input), paging),
        None => holding.of_a_rank(&serving.layout, tokens_up(input + output), paging),
    }
}

/// What fits of requests of the asked length; the longest of a trace has to fit too.
fn fitting(serving: &Serving, holding: &Holding<'_>) -> Result<Fits, Infeasible> {
    let (input, output) = serving.mean_lengths();
    let tokens = tokens_up(input + output);
    if let Some(most) = serving.context.map(u64::from).filter(|most| tokens > *most) {
        return Err(Infeasible::Context { tokens, most });
    }
    let found = holding.fits(&serving.layout, tokens);
    holds(&found, tokens, holding.usable)?;
    if let Some(longest) = serving.requests.longest.map(tokens_up) {
        holds(&holding.fits(&serving.layout, longest), longest, holding.usable)?;
    }
    Ok(found)
}

/// How requests come, so much of whose prompts is at hand.
fn coming<'a>(serving: &'a Serving, request: &Request, hit: f64) -> Coming<'a> {
    let terms = &serving.terms;
    let (cv, replay, balancing) = (terms.cv, terms.replay, serving.balancing);
    Coming { requests: &serving.requests, hit, cached: request.cached, cv, replay, balancing }
}

/// Parts that each accelerator is cut into.
fn slices(serving: &Serving, layout: ServingLayout) -> Result<u32, Infeasible> {
    match &serving.features.slice {
        Some(_) if layout.ranks() > 1 => Err(Infeasible::SlicedRanks { ranks: layout.ranks() }),
        Some(slice) => Ok(slice.instances),
        None => Ok(1),
    }
}

/// Whether what drafts takes a layout, and what sends requests to their adapters, as layouts that are searched may not be.
fn features_fit(serving: &Serving, layout: ServingLayout) -> Result<(), Infeasible> {
    let adapters = serving.features.adapters.as_ref();
    if serving.prefill.is_some() && adapters.is_some_and(|set| set.routing == AdapterRouting::Aware) {
        return Err(Infeasible::RoutedPools);
    }
    if serving.prefill.is_some() && serving.mean_lengths().1 <= 1.0 {
        return Err(Infeasible::NothingToDecode);
    }
    let draft = serving.features.speculation.as_ref();
    draft.map_or(Ok(()), |draft| layout.of(&draft.model).check(&draft.model).map_err(Infeasible::Draft))
}

/// Tokens as a count, a part of one as one more.
fn tokens_up(tokens: f64) -> u64 {
    to_integer(tokens.ceil())
}
