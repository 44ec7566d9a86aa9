//! Ways to serve with a model: all that an engine can take, together or in pools, and the best of them on given accelerators.

use super::rejected::Rejection;
use super::tried::on_any_number;
use crate::catalog::model::Model;
use crate::evaluate::{
    FoundWays, Infeasible, ReplicaPoint, ServingPoint, WorkerPoint, prefill_worker, replica_alone, served_point,
    serving_point,
};
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, Cluster, Limits, PrefillPool, Scenario, Serving};
use crate::units::Seconds;

/// The most ranks of a replica whose experts lie in several scale-up domains; models have no more experts.
const MOST_RANKS: u32 = 512;
/// Numbers of stages that are tried: powers of two, and once and a half as many.
const STAGES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// The most scale-up domains that tensor ranks are tried over: each layer waits for two messages between all of them.
const MOST_DOMAINS: u32 = 4;

/// A way to serve: how replicas are spread, and prefill's own pool where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Of replicas; of decode, where prefill has a pool.
    pub layout: ServingLayout,
    /// Prefill's pool.
    pub prefill: Option<PrefillPool>,
    /// Whether accelerators that make no whole replica or prefill worker stay idle.
    pub left_over: bool,
}

impl Deployment {
    /// That which a scenario has.
    pub fn given(serving: &Serving) -> Self {
        Self { layout: serving.layout, prefill: serving.prefill, left_over: serving.left_over }
    }

    /// Serving in this way.
    #[must_use]
    pub fn of(self, serving: &Serving) -> Serving {
        Serving { layout: self.layout, prefill: self.prefill, left_over: self.left_over, ..serving.clone() }
    }

    /// One that is tried.
    fn tried(layout: ServingLayout, prefill: Option<ServingLayout>) -> Self {
        Self { layout, prefill: prefill.map(|layout| PrefillPool { layout, accelerators: None }), left_over: true }
    }

    /// The same on any number of accelerators, whatever split of them it had.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self::tried(self.layout, self.prefill.map(|pool| pool.layout))
    }

    /// That which came to a point: with the split that it came to on nodes that both pools share, and accelerators idle only where
    /// some were.
    pub fn of_point(point: &ServingPoint, cluster: &Cluster) -> Self {
        let accelerators = u32::try_from(point.prefill_accelerators()).ok().filter(|_| cluster.prefill.is_none());
        let prefill = point.pool.map(|pool| PrefillPool { layout: pool.layout, accelerators });
        Self { layout: point.layout, prefill, left_over: point.left_over() > 0 }
    }
}

/// Layouts of a model on at most so many accelerators in scale-up domains of so many: tensor parallelism within a domain or over
/// a few whole ones, and for models with experts also attention in groups of their own with the experts spread over all ranks,
/// of several domains where they fill them; all of them in so many stages, each of which lies within a domain or over whole ones.
///
/// Degrees are powers of two; ranks of experts are besides those that fill a domain, or a half or a quarter of it, where that
/// is no power of two, as a rack of 72 is. Experts that do not split over their ranks get as few copies as make them.
pub fn serving_layouts(model: &Model, pipeline: u32, (domain, most): (u32, u32)) -> Vec<ServingLayout> {
    let most = most / pipeline;
    let experts = model.blocks.iter().filter_map(|block| block.moe()).map(|moe| moe.experts).min();
    let mut all = Vec::new();
    for tensor in powers_up_to(domain.saturating_mul(MOST_DOMAINS)) {
        let groups = powers_up_to(most.max(domain)).chain(filling(domain, most.max(domain), tensor));
        for attention_data in groups.filter(|&groups| groups == 1 || experts.is_some()) {
            let Some(ranks) = tensor.checked_mul(attention_data) else { continue };
            let expert = if attention_data > 1 { ranks } else { 1 };
            let redundant_experts = experts.map_or(0, |experts| experts.next_multiple_of(expert) - experts);
            let layout = ServingLayout { tensor, pipeline, expert, attention_data, redundant_experts };
            let (within, whole) = (ranks <= domain, ranks.is_multiple_of(domain));
            let placed = match pipeline {
                1 => within || (whole && ranks <= most),
                _ if ranks > most => false,
                _ => within || whole,
            };
            // Each rank holds another expert at least.
            if placed && experts.is_none_or(|experts| expert <= experts) && layout.check(model).is_ok() {
                all.push(layout);
            }
        }
    }
    all
}

fn powers_up_to(most: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1_u32), |degree| degree.checked_mul(2)).take_while(move |&degree| degree <= most)
}

/// Groups of so many tensor ranks that fill a quarter, a half, or one and more domains of at most so many ranks, where those
/// are no powers of two.
fn filling(domain: u32, most: u32, tensor: u32) -> impl Iterator<Item = u32> {
    let parts = [4, 2].into_iter().filter(move |part| domain.is_multiple_of(*part)).map(move |part| domain / part);
    let whole = powers_up_to(most / domain.max(1)).map(move |domains| domain * domains);
    let ranks = parts.chain(whole).filter(move |ranks| !domain.is_power_of_two() && ranks.is_multiple_of(tensor));
    ranks.map(move |ranks| ranks / tensor)
}

/// All ways that are worth trying where the layout is left to a search, on at most so many accelerators: replicas that prefill
/// and decode, but where prefill has nodes to itself; then pools. Of both only what no other beats, looked at on as few nodes
/// as hold it: what is tried does not depend on how many there are.
pub fn deployments(serving: &Serving, cluster: &Cluster, most: u32) -> Vec<Deployment> {
    ways(serving, (cluster, most), Some(&serving.limits))
}

/// The same; where limits are given, only those that may keep them.
fn ways(serving: &Serving, (cluster, most): (&Cluster, u32), limits: Option<&Limits>) -> Vec<Deployment> {
    let most = most.min(MOST_RANKS);
    let replicas = replicas(serving, cluster, most);
    let kept = |beats: fn(&ReplicaPoint, &ReplicaPoint) -> bool, within: fn(&ReplicaPoint, &Limits) -> bool| {
        match &replicas[..] {
            // None holds a request: the one of most ranks says why.
            [] => widest(serving, cluster, most).into_iter().collect(),
            some => unbeaten(&may_keep(serving, limits, some, within), beats),
        }
    };
    let together = cluster.prefill.is_none().then(|| kept(ReplicaPoint::beats, ReplicaPoint::serves_within));
    let together = together.into_iter().flatten().map(|layout| Deployment::tried(layout, None));
    let workers = if serving.features.slice.is_some() { Vec::new() } else { workers(serving, (cluster, most), limits) };
    let decode = || kept(ReplicaPoint::decodes_better, ReplicaPoint::decodes_within);
    let decode = if workers.is_empty() { Vec::new() } else { decode() };
    let pools = workers.into_iter();
    let pools = pools.flat_map(|worker| decode.iter().map(move |&layout| Deployment::tried(layout, Some(worker))));
    together.chain(pools).collect()
}

/// Layouts of one node kind and of any number of stages that is tried.
fn layouts(serving: &Serving, domain: u32, most: u32) -> impl Iterator<Item = ServingLayout> + '_ {
    let stages = STAGES.into_iter().filter(move |stages| *stages <= most);
    stages.flat_map(move |stages| serving_layouts(&serving.model, stages, (domain, most)))
}

/// The one of most ranks in one stage.
fn widest(serving: &Serving, cluster: &Cluster, most: u32) -> Option<ServingLayout> {
    let domain = cluster.main_nodes().node.scale_up.domain;
    serving_layouts(&serving.model, 1, (domain, most)).into_iter().max_by_key(ServingLayout::ranks)
}

/// Replicas that hold a request.
fn replicas(serving: &Serving, cluster: &Cluster, most: u32) -> Vec<(ServingLayout, ReplicaPoint)> {
    let nodes = cluster.main_nodes();
    let all = layouts(serving, nodes.node.scale_up.domain, most);
    let alone = |layout: ServingLayout| replica_alone(serving, &around_replica(cluster, layout)?, layout).ok();
    all.filter_map(|layout| Some((layout, alone(layout)?))).collect()
}

/// Prefill workers that no other beats.
fn workers(serving: &Serving, (cluster, most): (&Cluster, u32), limits: Option<&Limits>) -> Vec<ServingLayout> {
    let all = all_workers(serving, cluster, most);
    unbeaten(&may_keep(serving, limits, &all, WorkerPoint::serves_within), WorkerPoint::beats)
}

/// Prefill workers that hold a prompt.
fn all_workers(serving: &Serving, cluster: &Cluster, most: u32) -> Vec<(ServingLayout, WorkerPoint)> {
    let all = layouts(serving, cluster.nodes_of_prefill().node.scale_up.domain, most);
    all.filter_map(|layout| Some((layout, worker_alone(serving, cluster, layout)?))).collect()
}

/// Those that may keep the limits; all where none may, which then say why, or where hits of prefixes are not known yet.
fn may_keep<P: Copy>(
    serving: &Serving,
    limits: Option<&Limits>,
    all: &[(ServingLayout, P)],
    within: impl Fn(&P, &Limits) -> bool,
) -> Vec<(ServingLayout, P)> {
    let limits = limits.filter(|_| serving.cache.is_none());
    let may = all.iter().filter(|(_, point)| limits.is_some_and(|limits| within(point, limits)));
    let may: Vec<_> = may.copied().collect();
    if may.is_empty() { all.to_vec() } else { may }
}

/// Layouts whose points no other's beats; of equals the first.
fn unbeaten<P>(all: &[(ServingLayout, P)], beats: impl Fn(&P, &P) -> bool) -> Vec<ServingLayout> {
    let beaten = |place: usize, point: &P| {
        let mut others = all.iter().enumerate().filter(|(other, _)| *other != place);
        others.any(|(other, (_, by))| beats(by, point) && !(beats(point, by) && place < other))
    };
    let kept = all.iter().enumerate().filter(|(place, (_, point))| !beaten(*place, point));
    kept.map(|(_, (layout, _))| *layout).collect()
}

/// A prefill worker of a layout on as few nodes as hold it; none where it cannot be.
pub(super) fn worker_alone(serving: &Serving, cluster: &Cluster, layout: ServingLayout) -> Option<WorkerPoint> {
    prefill_worker(serving, &around_worker(cluster, layout)?, layout).ok()
}

/// Why a search finds no way to serve where prefill has nodes to itself: what keeps the widest worker from working.
pub(super) fn no_worker(serving: &Serving, cluster: &Cluster) -> Option<Infeasible> {
    let node = cluster.own_nodes_of_prefill()?.node;
    let domain = node.scale_up.domain;
    let widest = layouts(serving, domain, MOST_RANKS).max_by_key(ServingLayout::ranks)?;
    let why = prefill_worker(serving, &around_worker(cluster, widest)?, widest).err()?;
    Some(Infeasible::NoWorker { node: node.id.clone(), most: widest.ranks(), widest: Box::new(why) })
}

/// A limit that no number of accelerators keeps, because with every layout a request by itself misses it, or with that which is
/// given; and what it takes at least.
pub(super) fn out_of_reach(serving: &Serving, cluster: &Cluster) -> Option<Rejection> {
    let replicas = if serving.search {
        replicas(serving, cluster, MOST_RANKS)
    } else {
        let alone = around_replica(cluster, serving.layout);
        let alone = alone.and_then(|around| replica_alone(serving, &around, serving.layout).ok());
        alone.map(|point| (serving.layout, point)).into_iter().collect()
    };
    let workers = match serving.prefill {
        _ if serving.search && serving.features.slice.is_none() => all_workers(serving, cluster, MOST_RANKS),
        Some(PrefillPool { layout, .. }) => {
            worker_alone(serving, cluster, layout).map(|point| (layout, point)).into_iter().collect()
        }
        None => Vec::new(),
    };
    let tokens = replicas.iter().map(|(layout, point)| (point.token_alone(), *layout));
    let together = cluster.prefill.is_none() && (serving.search || serving.prefill.is_none());
    let prompts = replicas.iter().filter(|_| together).map(|(layout, point)| (point.prompt_alone(), *layout));
    let prompts = prompts.chain(workers.iter().map(|(layout, worker)| (worker.alone, *layout)));
    // Where hits of prefixes follow from what is kept, prompts may be nearly all at hand.
    let prompts = prompts.filter(|_| serving.cache.is_none());
    let of_tokens = beyond_limits(serving, "tpot", "a token", tokens);
    of_tokens.or_else(|| beyond_limits(serving, "ttft", "the prompt", prompts))
}

/// The shortest limit of a kind that the least of some times is beyond.
fn beyond_limits(
    serving: &Serving,
    kind: &str,
    what: &str,
    times: impl Iterator<Item = (Seconds, ServingLayout)>,
) -> Option<Rejection> {
    let limits = serving.limits.named().into_iter().filter(|(key, _)| key.starts_with(kind));
    let limits = limits.filter_map(|(key, limit)| Some((key, limit?)));
    let (key, limit) = limits.reduce(|least, other| if other.1 < least.1 { other } else { least })?;
    let (least, layout) = times.reduce(|least, other| if other.0 < least.0 { other } else { least })?;
    let over = least.saturating_sub(limit);
    let figures =
        format!("{what} of a request by itself takes {least} at least ({layout}), {over} over the limit of {limit}");
    (over > Seconds::ZERO).then(|| on_any_number(serving.table_of_limit(key), key, figures, least / limit))
}

/// The cluster with as few of the nodes that take prompts in as hold a worker of a layout.
fn around_worker(cluster: &Cluster, layout: ServingLayout) -> Option<Cluster> {
    let each = cluster.nodes_of_prefill().node.accelerators;
    let accelerators = u32::try_from(layout.ranks()).ok()?.checked_next_multiple_of(each)?;
    let others = cluster.prefill.as_ref().map_or(0, |_| cluster.main_nodes().accelerators);
    Some(cluster.with_accelerators(others.checked_add(accelerators)?, accelerators))
}

/// The cluster with as few of its main nodes as hold a replica of a layout.
pub(super) fn around_replica(cluster: &Cluster, layout: ServingLayout) -> Option<Cluster> {
    let each = cluster.main_nodes().node.accelerators;
    let accelerators = u32::try_from(layout.ranks()).ok()?.checked_next_multiple_of(each)?;
    let prefill = cluster.own_nodes_of_prefill().map_or(0, |own| own.accelerators);
    Some(cluster.with_accelerators(accelerators.checked_add(prefill)?, prefill))
}

/// So many of the best ways are told.
const MOST_WAYS: usize = 6;

/// The scenario with the best way to serve on its accelerators where that is left to a search, and what the search came to.
///
/// # Errors
/// As [`best_deployment`].
pub(super) fn settle_serving(scenario: Scenario) -> Result<(Scenario, Option<FoundWays>), Infeasible> {
    let Some(serving) = scenario.serving.as_ref().filter(|serving| serving.search) else { return Ok((scenario, None)) };
    let found = best_ways(serving, &scenario.cluster, MOST_WAYS)?;
    let best = found.best.first().map(|point| Deployment::of_point(point, &scenario.cluster));
    let serving = best.unwrap_or_else(|| Deployment::given(serving)).of(serving);
    Ok((Scenario { serving: Some(serving), ..scenario }, Some(found)))
}

/// The best way to serve on a cluster's accelerators: of those that keep the limits the one that answers soonest where requests come
/// at a rate, and the one that serves most else; where none does, the one that comes nearest to keeping them.
///
/// # Errors
/// That of the way that comes nearest, where none works.
pub fn best_deployment(serving: &Serving, cluster: &Cluster) -> Result<Deployment, Infeasible> {
    let best = best_ways(serving, cluster, 1)?.best;
    Ok(best.first().map_or_else(|| Deployment::given(serving), |point| Deployment::of_point(point, cluster)))
}

/// The same and so many of those that come after it, in order; none where nothing is tried.
fn best_ways(serving: &Serving, cluster: &Cluster, most: usize) -> Result<FoundWays, Infeasible> {
    let mut tried: Vec<Deployment> = Vec::new();
    let (mut feasible, mut kept) = (0, 0);
    let mut best: Vec<((bool, f64), ServingPoint)> = Vec::with_capacity(most + 1);
    let mut nearest: Option<Infeasible> = None;
    // Where none keeps the limits, one that a request by itself is too slow for may come nearest.
    for limits in [Some(&serving.limits), None] {
        let ways = ways(serving, (cluster, cluster.accelerators), limits);
        let new: Vec<_> = ways.into_iter().filter(|way| !tried.contains(way)).collect();
        for deployment in &new {
            match served_point(&deployment.of(serving), cluster) {
                Ok(point) => {
                    let keeps = point.missed(&serving.limits).is_none();
                    (feasible, kept) = (feasible + 1, kept + u64::from(keeps));
                    let merit = if keeps { merit(serving, &point) } else { -point.over_limits(&serving.limits) };
                    // What is no number comes last.
                    let rank = (keeps, merit.max(f64::NEG_INFINITY));
                    // Of equals the first stays first.
                    let place = best.partition_point(|(other, _)| *other >= rank);
                    if place < most {
                        best.insert(place, (rank, point));
                        best.truncate(most);
                    }
                }
                Err(infeasible) => nearest = Some(nearer(nearest, infeasible)),
            }
        }
        tried.extend(new);
        if kept > 0 || serving.limits == Limits::default() {
            break;
        }
    }
    let best: Vec<ServingPoint> = best.into_iter().map(|(_, point)| point).collect();
    let found = FoundWays { considered: tried.len() as u64, feasible, kept, best };
    match nearest {
        _ if feasible > 0 => Ok(found),
        Some(roughly) if serving.sessions.is_some() => Err(nearest_of(&tried, serving, cluster).unwrap_or(roughly)),
        Some(infeasible) => Err(infeasible),
        None => no_worker(serving, cluster).map_or(Ok(found), Err),
    }
}

/// Why the way that comes nearest does not serve agents: how many each serves is looked for where they are more than another's.
fn nearest_of(ways: &[Deployment], serving: &Serving, cluster: &Cluster) -> Option<Infeasible> {
    let mut nearest: Option<Infeasible> = None;
    for way in ways {
        let mut way = way.of(serving);
        if let Some(Infeasible::Overload { most, .. }) = nearest {
            way.arrivals = Arrivals::Rate(most);
            if served_point(&way, cluster).is_err() {
                continue;
            }
            way.arrivals = serving.arrivals;
        }
        if let Err(why) = serving_point(&way, cluster) {
            nearest = Some(nearer(nearest, why));
        }
    }
    nearest
}

/// What makes one way better than another on the same accelerators: base numbers, because they only order.
fn merit(serving: &Serving, point: &ServingPoint) -> f64 {
    match serving.arrivals {
        // Of so many a second, the fewest are open at once where each is answered soonest.
        Arrivals::Rate(_) => -point.open_per_replica() * point.replicas as f64,
        Arrivals::Most | Arrivals::Concurrency(_) => point.request_rate().value(),
    }
}

/// The reason that comes nearer to working: requests that are too many, before those that do not fit.
fn nearer(earlier: Option<Infeasible>, later: Infeasible) -> Infeasible {
    match (earlier, later) {
        (
            Some(Infeasible::Overload { most, asked, replicas, short }),
            Infeasible::Overload { most: other, replicas: others, short: why, .. },
        ) => {
            if other > most {
                Infeasible::Overload { asked, most: other, replicas: others, short: why }
            } else {
                Infeasible::Overload { asked, most, replicas, short }
            }
        }
        (
            Some(Infeasible::Limit { limit, got, .. }),
            later @ Infeasible::Limit { limit: other_limit, got: other, .. },
        ) if got / limit > other / other_limit => later,
        (Some(earlier @ (Infeasible::Overload { .. } | Infeasible::Limit { .. })), _)
        | (
            Some(earlier),
            Infeasible::PartReplica { .. } | Infeasible::PartPools { .. } | Infeasible::PartPool { .. },
        ) => earlier,
        (_, later) => later,
    }
}
