//! Where the time of those that serve goes on the mean of a day whose load has a peak.

use super::serving::{BoundServing, serving_point_of};
use super::{Evaluation, Infeasible, ServingPoint, TimeShares};
use crate::inference::Scratch;
use crate::scenario::{Arrivals, Cluster, PrefillPool, Serving};
use crate::workload::loads_of_a_day;

/// Shares of a replica's time on the mean of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DayShares {
    /// The shares.
    pub time: TimeShares,
}

impl DayShares {
    /// On the mean over the loads of a day, of which `point` is the peak: the same replicas serve what comes at the time, at the
    /// batch of that load.
    ///
    /// # Errors
    /// As [`super::serving_point`].
    pub(super) fn of(serving: &Serving, cluster: &Cluster, point: &ServingPoint) -> Result<Self, Infeasible> {
        let at_peak = Self { time: point.shares };
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
        let mut day = Self { time: TimeShares::IDLE };
        for (load, time) in loads_of_a_day(point.peak_to_mean) {
            serving.arrivals = Arrivals::Rate(peak * load);
            let then = serving_point_of(&serving, cluster, &mut bound, &mut scratch)?;
            day.time = day.time.filled(then.shares, time);
        }
        Ok(day)
    }
}

impl Evaluation {
    /// Where time goes on the mean of a day, where anything is served.
    pub(super) fn day_shares(&self) -> Option<DayShares> {
        let (serving, point) = (self.scenario.serving.as_ref()?, self.serving.as_ref()?);
        self.day.or_else(|| DayShares::of(serving, &self.scenario.cluster, point).ok())
    }
}
