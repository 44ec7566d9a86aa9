//! What tenants take that are planned for together, were each planned for by itself.

use rayon::prelude::*;

use super::plan::{cheapest, ways};
use super::rejected::{Rejected, Rejection};
use super::serving::{Deployment, around_replica};
use super::tried::Size;
use crate::catalog::GpuSlice;
use crate::evaluate::{BuiltCluster, most_of_one_replica};
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, Limits, Minimise, Scenario, Serving, Slice};
use crate::units::{RequestRate, Usd, to_integer};
use crate::workload::{TenantClass, replicas};

/// The best cluster of one tenant's own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnCluster {
    /// Its nodes, with those of prefill's own where there are any.
    pub nodes: String,
    /// Its fabric.
    pub fabric: String,
    /// Accelerators of it.
    pub size: Size,
    /// How it serves.
    pub deployment: Deployment,
    /// What it costs over the horizon.
    pub cost: Usd,
    /// What is minimised, as a number to order by.
    merit: f64,
}

/// Tenants of a class, each by itself.
#[derive(Clone, Debug)]
pub struct Alone {
    /// What they ask for.
    pub class: TenantClass,
    /// What their latencies must stay below.
    pub limits: Limits,
    /// The cluster of one of them, or why there is none.
    pub own: Result<OwnCluster, String>,
}

/// Tenants that are planned for together, and what they would take apart.
#[derive(Clone, Debug)]
pub struct Apart {
    /// Each class on clusters of its own.
    pub alone: Vec<Alone>,
    /// All on the nodes that are best together, each with replicas of its own; none where one cannot be served so, or where
    /// prefill has nodes to itself.
    pub beside: Option<Beside>,
}

/// Tenants on common nodes, with replicas of their own: parts of accelerators, where those take fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// What one tenant of each class has.
    pub own: Vec<OwnReplicas>,
    /// Accelerators, in whole nodes.
    pub accelerators: u64,
    /// What they cost over the horizon.
    pub cost: Usd,
}

/// Replicas of one tenant's own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnReplicas {
    /// How one is spread.
    pub layout: ServingLayout,
    /// The part of an accelerator that it is on, where that is not a whole one, by the vendor's name.
    pub slice: Option<String>,
    /// How many, those to spare among them.
    pub replicas: f64,
    /// Accelerators that they take.
    pub accelerators: f64,
}

impl Apart {
    /// What all of them cost over the horizon; none where one cannot be by itself.
    pub fn cost(&self) -> Option<Usd> {
        let of = |alone: &Alone| Some(alone.own.as_ref().ok()?.cost * f64::from(alone.class.count));
        self.alone.iter().map(of).sum()
    }

    /// Accelerators of all of them.
    pub fn accelerators(&self) -> Option<u64> {
        let of = |Alone { class, own, .. }: &Alone| {
            let Size { main, prefill } = own.as_ref().ok()?.size;
            Some((main + prefill) * u64::from(class.count))
        };
        self.alone.iter().map(of).sum()
    }
}

/// Each class of tenants on the best of the choices for one of them, and on nodes of what is best together; none where requests are
/// not theirs.
pub(super) fn apart(
    variants: &[Result<Scenario, String>],
    best: Option<&Scenario>,
    (minimise, counts): (Minimise, &[u64]),
) -> Option<Apart> {
    let scenarios: Vec<&Scenario> = variants.iter().flatten().collect();
    let serving = scenarios.first()?.serving.as_ref().filter(|serving| serving.terms.tenants)?;
    let classes = serving.features.tenants.as_ref()?.classes();
    let mut limits: Vec<Limits> = Vec::new();
    for of_class in &serving.tenant_limits {
        if !limits.contains(of_class) {
            limits.push(*of_class);
        }
    }
    // What is worth trying hangs on limits and not on how many requests come.
    let tried: Vec<(&Scenario, Limits)> =
        limits.iter().flat_map(|limits| scenarios.iter().map(|scenario| (*scenario, *limits))).collect();
    let tried: Vec<_> = tried
        .into_par_iter()
        .filter_map(|(scenario, limits)| {
            let within = Serving { limits, ..scenario.serving.clone()? };
            Some((scenario, limits, ways(&within, &scenario.cluster)))
        })
        .collect();
    let of = |(class, limits): (&TenantClass, &Limits)| {
        let theirs = tried.iter().filter(|(_, within, _)| within == limits);
        let found = theirs.map(|(scenario, _, ways)| {
            let ways = ways.as_ref().map_err(|why| Rejected::from(why.clone()))?;
            own_cluster(scenario, (class, *limits), ways, (minimise, counts))
        });
        let (mut best, mut rejected): (Option<OwnCluster>, _) = (None, Rejected::default());
        for found in found {
            match found {
                Ok(own) if best.as_ref().is_none_or(|best| own.merit < best.merit) => best = Some(own),
                Ok(_) => {}
                Err(why) => rejected.join(why),
            }
        }
        let own = best.ok_or_else(|| rejected.nearest().map_or_else(String::new, Rejection::line));
        Alone { class: *class, limits: *limits, own }
    };
    let all: Vec<_> = classes.iter().zip(&serving.tenant_limits).collect();
    let alone = all.into_par_iter().map(of).collect();
    let beside = best.and_then(|best| {
        let of = |limits: &Limits| {
            let found = tried.iter().find(|(scenario, within, _)| std::ptr::eq(*scenario, best) && within == limits);
            let ways = found.and_then(|(.., ways)| ways.as_ref().ok())?;
            Some((*limits, replicas_within(best, *limits, ways)))
        };
        beside(best, &limits.par_iter().filter_map(of).collect::<Vec<_>>())
    });
    Some(Apart { alone, beside })
}

/// A kind of replica, and the most requests that one serves.
struct Kind {
    layout: ServingLayout,
    slice: Option<(String, u32)>,
    most: RequestRate,
}

/// The kinds of replicas that keep limits: of the layouts that are worth trying, and on parts that a vendor cuts.
fn replicas_within(scenario: &Scenario, limits: Limits, ways: &[Deployment]) -> Vec<Kind> {
    let Some(serving) = &scenario.serving else { return Vec::new() };
    let within = Serving { limits, left_over: true, prefill: None, ..serving.clone() };
    let of = |layout: ServingLayout, slice: Option<&GpuSlice>| {
        let mut own = Serving { layout, ..within.clone() };
        let whole = &scenario.cluster.accelerator;
        own.features.slice = slice.map(|slice| Slice::cut(slice, whole)).or_else(|| own.features.slice.clone());
        let slice = own.features.slice.as_ref().map(|slice| (slice.asked.clone(), slice.instances));
        let most = most_of_one_replica(&own, &around_replica(&scenario.cluster, layout)?)?;
        Some(Kind { layout, slice, most })
    };
    let whole = ways.iter().filter(|way| way.prefill.is_none()).filter_map(|way| of(way.layout, None));
    let one = ServingLayout { tensor: 1, pipeline: 1, expert: 1, attention_data: 1, redundant_experts: 0 };
    let cut =
        if serving.search && serving.features.slice.is_none() { &scenario.cluster.accelerator.slices[..] } else { &[] };
    whole.chain(cut.iter().filter_map(|slice| of(one, Some(slice)))).collect()
}

/// Tenants on common nodes, each with the replicas that take least.
fn beside(scenario: &Scenario, kinds: &[(Limits, Vec<Kind>)]) -> Option<Beside> {
    let serving = scenario.serving.as_ref()?;
    let spares = f64::from(serving.spare_replicas);
    let classes = serving.features.tenants.as_ref()?.classes();
    let of = |(class, limits): (&TenantClass, &Limits)| {
        let (_, kinds) = kinds.iter().find(|(known, _)| known == limits)?;
        let own = kinds.iter().map(|kind| {
            let replicas = replicas(class.peak, kind.most).max(1.0) + spares;
            let each = kind.layout.ranks() as f64 / f64::from(kind.slice.as_ref().map_or(1, |(_, parts)| *parts));
            let slice = kind.slice.as_ref().map(|(name, _)| name.clone());
            OwnReplicas { layout: kind.layout, slice, replicas, accelerators: replicas * each }
        });
        own.min_by(|one, other| one.accelerators.total_cmp(&other.accelerators))
    };
    let own: Vec<OwnReplicas> = classes.iter().zip(&serving.tenant_limits).map(of).collect::<Option<_>>()?;
    let taken: f64 = own.iter().zip(classes).map(|(own, class)| own.accelerators * f64::from(class.count)).sum();
    let node = scenario.cluster.main_nodes().node.accelerators;
    let accelerators = to_integer::<u64>(taken.ceil()).next_multiple_of(node.into());
    let built = scenario.with_accelerators(u32::try_from(accelerators).ok()?, 0);
    let built = BuiltCluster::new(&built.cluster, &built.finance).ok()?;
    Some(Beside { own, accelerators, cost: built.costs.total })
}

/// The best cluster for one tenant on a choice of nodes and fabric.
fn own_cluster(
    shared: &Scenario,
    (class, limits): (&TenantClass, Limits),
    ways: &[Deployment],
    (minimise, counts): (Minimise, &[u64]),
) -> Result<OwnCluster, Rejected> {
    let scenario = alone(shared, class, limits);
    let Some(serving) = &scenario.serving else { return Err(Rejected::default()) };
    let best = cheapest(ways, &scenario, serving, (minimise, counts))?;
    let (size, deployment) = (best.size, best.deployment());
    let found = best.scenario().ok_or_else(|| Rejection::new("too many accelerators"))?;
    let built = BuiltCluster::new(&found.cluster, &found.finance);
    let built = built.map_err(|why| Rejection::new(why.to_string()))?;
    let own = found.cluster.own_nodes_of_prefill().map(|own| format!(", prefill {}", own.node.id));
    Ok(OwnCluster {
        nodes: format!("{}{}", found.cluster.node.id, own.unwrap_or_default()),
        fabric: found.cluster.fabric.entry.id.clone(),
        size,
        deployment,
        cost: built.costs.total,
        merit: super::plan::merit(&found.cluster, &built, minimise),
    })
}

/// A scenario in which one tenant is all that is served.
fn alone(shared: &Scenario, class: &TenantClass, limits: Limits) -> Scenario {
    let mut scenario = shared.clone();
    if let Some(serving) = &mut scenario.serving {
        serving.arrivals = Arrivals::Rate(class.peak);
        serving.peak_to_mean = class.peak / class.mean;
        (serving.limits, serving.tenant_limits) = (limits, Vec::new());
        (serving.terms.tenants, serving.features.tenants) = (false, None);
    }
    scenario
}
