//! The most that is served with the limits of latencies kept.

use super::serving::{BoundServing, served_point_of};
use super::{CapacityShares, Evaluation, Infeasible, ServingPoint, TenantsPoint, serving_point};
use crate::inference::Scratch;
use crate::scenario::{Arrivals, Cluster, Limits, PrefixCaching, Serving};
use crate::units::RequestRate;

/// Halvings in which a rate is found, at most, and how near that is.
const HALVINGS: u32 = 60;
const NEAR: f64 = 1e-7;
/// The same where each rate takes many rounds.
const NEAR_BY_LOAD: f64 = 1e-5;
/// The same where each rate takes a pass over so many requests of a trace.
const NEAR_REPLAYED: f64 = 1e-4;
const LONG_TRACE: usize = 20_000;
/// Of a rate, a part that any replica serves.
const CALM: f64 = 1e-6;

/// The most that replicas serve with limits kept, those to spare too: without limits, what they serve at any latency. Where they
/// choose how many they take at once, that is as many as keep the limits; at a rate, it is the rate up to which they are kept.
/// Where what is found of prompts hangs on how many come, as much is looked for as is found with the most.
pub(super) fn most_within(serving: &Serving, cluster: &Cluster, point: &ServingPoint) -> RequestRate {
    let by_load = serving.sessions.is_some() || serving.cache.as_ref().is_some_and(PrefixCaching::by_load);
    if serving.limits == Limits::default() && !by_load {
        // As many as are served would wait for ever; what is told is served.
        return if matches!(serving.arrivals, Arrivals::Rate(_)) { point.most * (1.0 - NEAR) } else { point.most };
    }
    let of_all = (point.replicas + point.spares) as f64 / point.replicas as f64;
    let (mut other, mut bound, mut scratch) = (serving.clone(), None, Scratch::default());
    let mut with = |arrivals: Arrivals| {
        other.arrivals = arrivals;
        let bound = match &mut bound {
            Some(bound) => bound,
            unbound => unbound.insert(BoundServing::new(&other, cluster)?),
        };
        served_point_of(&other, cluster, bound, &mut scratch)
    };
    match serving.arrivals {
        Arrivals::Most => point.most,
        Arrivals::Concurrency(_) => with(Arrivals::Most).map_or(RequestRate::ZERO, |point| point.most),
        Arrivals::Rate(asked) => {
            let mut kept = |rate: RequestRate| keeps(&with(Arrivals::Rate(rate)), &serving.limits);
            // As more come, no more is found.
            let top = point.most / of_all;
            let replayed = serving.terms.replay && serving.requests.recorded.len() > LONG_TRACE;
            let near = if replayed { NEAR_REPLAYED } else { NEAR };
            let near = if by_load { near.max(NEAR_BY_LOAD) } else { near };
            let below = top * (1.0 - near);
            let most = if kept(below) {
                below
            } else if point.missed(&serving.limits).is_none() {
                highest((asked, top), near, kept)
            } else {
                highest((RequestRate::ZERO, asked), near, kept)
            };
            most * of_all
        }
    }
}

/// The most that one replica serves with limits kept, whatever rate is asked for; none where it serves nothing.
pub fn most_of_one_replica(serving: &Serving, cluster: &Cluster) -> Option<RequestRate> {
    let Arrivals::Rate(asked) = serving.arrivals else { return None };
    let calm = Serving { arrivals: Arrivals::Rate(asked * CALM), spare_replicas: 0, ..serving.clone() };
    let point = serving_point(&calm, cluster).ok()?;
    let most = most_within(&calm, cluster, &point) / point.replicas as f64;
    (most > RequestRate::ZERO).then_some(most)
}

fn keeps(found: &Result<ServingPoint, Infeasible>, limits: &Limits) -> bool {
    found.as_ref().is_ok_and(|point| point.missed(limits).is_none())
}

/// The highest rate of two, at the lower of which limits are kept and at the upper not, up to which they are.
fn highest(between: (RequestRate, RequestRate), near: f64, mut kept: impl FnMut(RequestRate) -> bool) -> RequestRate {
    let (mut low, mut high) = between;
    for _ in 0..HALVINGS {
        if high.saturating_sub(low) <= high * near {
            break;
        }
        let middle = (low + high) / 2.0;
        if kept(middle) { low = middle } else { high = middle }
    }
    low
}

impl Evaluation {
    /// The most that is served, by all replicas, with the limits of latencies kept.
    pub fn most_served(&self) -> Option<RequestRate> {
        let (serving, point) = (self.scenario.serving.as_ref()?, self.serving.as_ref()?);
        Some(self.most.unwrap_or_else(|| most_within(serving, &self.scenario.cluster, point)))
    }

    /// Where what could be served goes; none where more is served than limits allow.
    pub fn capacity(&self) -> Option<CapacityShares> {
        let (most, point) = (self.most_served()?, self.serving?);
        let of_replicas = point.replicas as f64 / (point.replicas + point.spares) as f64;
        let asked = point.request_rate() / most;
        // A rate at which limits just bind is found to within some ten-thousandths.
        if asked > of_replicas * (1.0 + 1e-3) {
            return None;
        }
        let peak = asked.min(of_replicas);
        let used = peak / point.peak_to_mean;
        Some(CapacityShares { used, off_peak: peak - used, headroom: of_replicas - peak, standby: 1.0 - of_replicas })
    }

    /// Calls of agents over the most that the replicas serve.
    pub fn gpu_load(&self) -> Option<f64> {
        self.agents?;
        let point = self.serving?;
        let of_all = point.replicas as f64 / (point.replicas + point.spares) as f64;
        Some(point.request_rate() / (self.most_served()? * of_all))
    }

    /// What tenants take, where there are any; nothing where a class has a limit that is kept at no rate.
    pub fn tenants(&self) -> Option<TenantsPoint> {
        let (point, each) = (self.serving?, self.most_of_a_replica()?);
        let tenants = self.scenario.serving.as_ref()?.features.tenants.as_ref()?;
        let replicas = (point.replicas + point.spares) as f64;
        let own = self.most_of_tenants()?;
        let kept = own.iter().all(|most| *most > RequestRate::ZERO);
        kept.then(|| TenantsPoint::new(tenants, (each, &own), replicas / point.accelerators as f64))
    }

    /// The most that a replica serves with all limits kept.
    pub(super) fn most_of_a_replica(&self) -> Option<RequestRate> {
        let point = self.serving.as_ref()?;
        Some(self.most_served()? / (point.replicas + point.spares) as f64)
    }

    /// The same of each class of tenants, with its own limits kept.
    pub(super) fn most_of_tenants(&self) -> Option<Vec<RequestRate>> {
        if self.most_of_tenants.is_some() {
            return self.most_of_tenants.clone();
        }
        let (serving, together) = (self.scenario.serving.as_ref()?, self.most_of_a_replica()?);
        let cluster = &self.scenario.cluster;
        let mut known: Vec<(Limits, RequestRate)> = vec![(serving.limits, together)];
        let of = |limits: &Limits| {
            if let Some((_, most)) = known.iter().find(|(others, _)| others == limits) {
                return *most;
            }
            let own = Serving { limits: *limits, ..serving.clone() };
            let most = serving_point(&own, cluster).map_or(RequestRate::ZERO, |point| {
                most_within(&own, cluster, &point) / (point.replicas + point.spares) as f64
            });
            known.push((*limits, most));
            most
        };
        Some(serving.tenant_limits.iter().map(of).collect())
    }
}
