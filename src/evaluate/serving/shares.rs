//! Where an engine's time and what it could serve go.

use crate::inference::{Request, SteadyState};
use crate::scenario::Arrivals;
use crate::units::Seconds;

/// Shares of an engine's time; they add up to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeShares {
    /// Reading weights in decode.
    pub weights: f64,
    /// Reading keys, values and states in decode.
    pub cache: f64,
    /// Multiplying: prefill, and what decode takes beyond reading.
    pub compute: f64,
    /// Messages between ranks in decode.
    pub network: f64,
    /// Waiting: for the host and between kernels, and without a request.
    pub idle: f64,
}

impl TimeShares {
    /// Without a request.
    pub(in crate::evaluate) const IDLE: Self = Self { weights: 0.0, cache: 0.0, compute: 0.0, network: 0.0, idle: 1.0 };

    /// Of a steady state: the step's parts and the wait for prefills are shares of the time between tokens; at a rate that
    /// leaves the engine empty now and then, that part of the time is idle. Prompts that are all of their requests multiply for as
    /// much of the time as engines are busy.
    pub(super) fn of(request: &Request, state: &SteadyState, (arrivals, busy): (Arrivals, f64)) -> Self {
        if !request.decodes() {
            let busy = busy.min(1.0);
            return Self { compute: busy, idle: 1.0 - busy, ..Self::IDLE };
        }
        // Sequences in decode at random times are Poisson: none with this probability.
        let empty = if matches!(arrivals, Arrivals::Rate(_)) { (-state.batch).exp() } else { 0.0 };
        let share = |time: Seconds| time / state.tpot * (1.0 - empty);
        let step = &state.step;
        Self {
            weights: share(step.weights),
            cache: share(step.cache),
            compute: share(step.arithmetic + state.stall),
            network: share(step.network),
            idle: share(step.overhead) + empty,
        }
    }

    /// With such a share of this idle time spent in another way.
    pub(in crate::evaluate) fn filled(self, other: Self, share: f64) -> Self {
        Self {
            weights: self.weights + other.weights * share,
            cache: self.cache + other.cache * share,
            compute: self.compute + other.compute * share,
            network: self.network + other.network * share,
            idle: self.idle - (1.0 - other.idle) * share,
        }
    }

    /// The mean over replicas of which the busiest has so much more to do.
    pub(super) fn beside_idle(self, busiest: f64) -> Self {
        let share = |time: f64| time / busiest;
        Self {
            weights: share(self.weights),
            cache: share(self.cache),
            compute: share(self.compute),
            network: share(self.network),
            idle: share(self.idle) + 1.0 - busiest.recip(),
        }
    }
}

/// Shares of what the replicas could serve; they add up to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityShares {
    /// Served on the mean of a day.
    pub used: f64,
    /// Served at the peak and not on the mean.
    pub off_peak: f64,
    /// Not served at the peak, so that latencies are what they are.
    pub headroom: f64,
    /// That of replicas that stand by.
    pub standby: f64,
}
