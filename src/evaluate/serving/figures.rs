//! What follows from a point: rates, limits that are missed, accelerators and their shares.

use super::ServingPoint;
use crate::inference::{Latencies, SteadyState};
use crate::scenario::{Limits, Serving};
use crate::units::{RequestRate, Seconds, TokenRate};

/// A limit of a latency that is not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissedLimit {
    /// The table that it is in.
    pub table: &'static str,
    /// Its key there.
    pub key: &'static str,
    /// The limit.
    pub limit: Seconds,
    /// What the latency comes to.
    pub got: Seconds,
}

impl std::fmt::Display for MissedLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { table, key, limit, got } = self;
        write!(f, "{table}.{key} of {limit} is missed: it comes to {got}")
    }
}

impl ServingPoint {
    /// Requests that end in a second, in all replicas; at the peak of a day.
    pub fn request_rate(&self) -> RequestRate {
        RequestRate::new(self.state.requests_per_second * self.replicas as f64)
    }

    /// The same on the mean of a day.
    pub fn mean_rate(&self) -> RequestRate {
        self.request_rate() / self.peak_to_mean
    }

    /// Requests open at once in one replica, from their coming to their last token, on average: those that are kept open, or by
    /// Little's law.
    pub fn open_per_replica(&self) -> f64 {
        self.open.unwrap_or_else(|| {
            let whole = self.state.ttft + self.state.tpot * self.request.output;
            RequestRate::new(self.state.requests_per_second).over(whole)
        })
    }

    /// The same where answers have tokens beyond the first; none where nothing is ever in decode.
    pub fn that_decodes(self) -> Option<Self> {
        self.request.decodes().then_some(self)
    }

    /// The limit that is missed by most, over it: its key, the limit, and what it comes to.
    pub fn missed(&self, limits: &Limits) -> Option<(&'static str, Seconds, Seconds)> {
        missed(&self.state, &self.latencies, limits)
    }

    /// All limits that are not kept.
    pub fn all_missed(&self, serving: &Serving) -> impl Iterator<Item = MissedLimit> {
        let beyond = held(&self.state, &self.latencies, &serving.limits).filter(|(_, limit, got)| got > limit);
        beyond.map(|(key, limit, got)| MissedLimit { table: serving.table_of_limit(key), key, limit, got })
    }

    /// The worst latency over its limit; none at all without limits.
    pub fn over_limits(&self, limits: &Limits) -> f64 {
        worst(&self.state, &self.latencies, limits)
    }

    /// Answers' tokens of one accelerator in a second.
    pub fn output_rate(&self) -> TokenRate {
        TokenRate::new(self.state.requests_per_second * self.request.output / self.accelerators_per_replica())
    }

    /// Accelerators of prefill's own pool.
    pub fn prefill_accelerators(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.workers * pool.layout.ranks())
    }

    /// Accelerators for each replica that serves, its part of prefill's pool, of spares and of what is left over among them.
    pub fn accelerators_per_replica(&self) -> f64 {
        self.accelerators as f64 / self.replicas as f64
    }

    /// Accelerators that make no whole replica or prefill worker.
    pub fn left_over(&self) -> u64 {
        let slices = u64::from(self.slices);
        let taken = self.layout.ranks() * (self.replicas + self.spares) + self.prefill_accelerators();
        (self.accelerators * slices - taken) / slices
    }

    /// Share of the accelerators that serve.
    pub fn serving_share(&self) -> f64 {
        let workers = self.pool.map_or(0, |pool| (pool.workers - self.spares) * pool.layout.ranks());
        (self.layout.ranks() * self.replicas + workers) as f64 / (self.accelerators as f64 * f64::from(self.slices))
    }

    /// Share of what a request takes that is its prompt's, with everything as full as it can be: of a replica's time, or of pools
    /// the time of their accelerators for a request where each serves its own most, one of prefill's costing so many times one of
    /// decode's.
    ///
    /// By this a cost is split that is paid whatever is served (practical capacity; Kaplan and Anderson, Time-driven activity-based
    /// costing, Harvard Business Review, November 2004): what stands idle is nobody's, and so both kinds' in proportion. A pool
    /// that is larger than it need be, because nodes are whole or a peak is to come, does not make its own tokens dearer than those
    /// of the other.
    pub fn share_of_prompts(&self, dearer: f64) -> f64 {
        if !self.request.decodes() {
            return 1.0;
        }
        let Some(pool) = self.pool else { return self.prefilling };
        let of = |engines: u64, ranks: u64, most: RequestRate| (engines * ranks) as f64 / most.value();
        let prompt = of(pool.workers - self.spares, pool.layout.ranks(), pool.most) * dearer;
        prompt / (prompt + of(self.replicas, self.layout.ranks(), pool.finished))
    }
}

/// Limits by key, with what each comes to.
fn held(
    state: &SteadyState,
    latencies: &Latencies,
    limits: &Limits,
) -> impl Iterator<Item = (&'static str, Seconds, Seconds)> {
    let of = move |key: &str| match key {
        "ttft" => state.ttft,
        "tpot" => state.tpot,
        "ttft_p95" => latencies.first_token.p95,
        "ttft_p99" => latencies.first_token.p99,
        "tpot_p95" => latencies.token.p95,
        "tpot_p99" => latencies.token.p99,
        _ => latencies.whole.p95,
    };
    limits.named().into_iter().filter_map(move |(key, limit)| Some((key, limit?, of(key))))
}

/// The limit that is missed by most, over it, of equals the first: its key, the limit, and what it comes to.
pub(super) fn missed(
    state: &SteadyState,
    latencies: &Latencies,
    limits: &Limits,
) -> Option<(&'static str, Seconds, Seconds)> {
    let beyond = held(state, latencies, limits).filter(|(_, limit, got)| got > limit);
    beyond.reduce(|worst, other| if other.2 / other.1 > worst.2 / worst.1 { other } else { worst })
}

/// The worst latency over its limit; none at all without limits.
pub(super) fn worst(state: &SteadyState, latencies: &Latencies, limits: &Limits) -> f64 {
    held(state, latencies, limits).map(|(_, limit, got)| got / limit).fold(0.0, f64::max)
}
