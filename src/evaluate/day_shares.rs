//! Where the time of those that serve goes on the mean of a day whose load has a peak.

use super::serving::{BoundServing, serving_point_of};
use super::{Evaluation, Infeasible, ServingPoint, TimeShares};
use crate::inference::Scratch;
use crate::scenario::{Arrivals, Cluster, PrefillPool, Serving};
use crate::workload::loads_of_a_day;

/// Shares of time on the mean of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DayShares {
    /// Of a replica's time.
    pub time: TimeShares,
    /// Prefill's share of the time of all accelerators.
    pub prefill: f64,
}

impl DayShares {
    /// On the mean over the loads of a day, of which `point` is the peak: the same replicas serve what comes at the time, at the
    /// batch of that load.
    ///
    /// # Errors
    /// As [`super::serving_point`].
    pub(super) fn of(serving: &Serving, cluster: &Cluster, point: &ServingPoint) -> Result<Self, Infeasible> {
        let at_peak = Self { time: point.shares, prefill: point.prefill_share() };
        let peak = match serving.arrivals {
            Arrivals::Rate(peak) if point.peak_to_mean > 1.0 => peak,
            _ => return Ok(at_peak),
        };
        // Pools stay as they were split for the peak.
        let accelerators = u32::try_from(point.prefill_accelerators()).ok().filter(|_| cluster.prefill.is_none());
        let prefill =
            serving.prefill.map(|pool| PrefillPool { accelerators: accelerators.or(pool.accelerators), ..pool });
        let mut serving = Serving { prefill, ..serving.clone() };
        let (mut bound, mut scratch) = (BoundServing::new(&serving, cluster)?, Scratch::default());
        let mut day = Self { time: TimeShares::IDLE, prefill: 0.0 };
        for (load, time) in loads_of_a_day(point.peak_to_mean) {
            serving.arrivals = Arrivals::Rate(peak * load);
            let then = serving_point_of(&serving, cluster, &mut bound, &mut scratch)?;
            day.time = day.time.filled(then.shares, time);
            day.prefill += then.prefill_share() * time;
        }
        // A pool is prefill's at all hours.
        Ok(if point.pool.is_some() { Self { prefill: at_peak.prefill, ..day } } else { day })
    }
}

impl Evaluation {
    /// Where time goes on the mean of a day, where anything is served.
    pub(super) fn day_shares(&self) -> Option<DayShares> {
        let (serving, point) = (self.scenario.serving.as_ref()?, self.serving.as_ref()?);
        self.day.or_else(|| DayShares::of(serving, &self.scenario.cluster, point).ok())
    }
}
