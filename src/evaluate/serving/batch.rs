//! How many requests a replica takes at once where that is left to it, and what keeps it from more.

use super::figures::missed;
use super::split::Served;
use crate::evaluate::Infeasible;
use crate::inference::{Overload, Request, Room, Separate, Short, SteadyState};
use crate::scenario::{Arrivals, Serving};

/// Whole requests, and a part of one where a batch is the mean of many.
pub(super) const WHOLE: f64 = 1.0;
pub(super) const MEAN: f64 = 1.0 / 1_048_576.0;
/// Share of the most that is served at which it is told as such.
pub(super) const FULL: f64 = 1.0 - 1e-9;
/// Places that let less than this share more be served are of no use.
const OF_USE: f64 = 0.05;

/// What keeps the sequences in decode from being more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchBound {
    /// Room for their caches.
    Memory,
    /// The most that an engine takes at once in an attention group.
    Sequences,
    /// Places for different adapters in memory.
    Adapters,
    /// Room for sessions of agents that wait, whose prompts would else be computed again.
    Sessions,
    /// A limit of a latency, by its key.
    Limit(&'static str),
    /// What prefill's pool takes in, or steps have time for in chunks.
    Prefill,
    /// What the links between pools carry.
    Transfer,
    /// Requests that are open.
    Open,
    /// Requests that come.
    Rate,
}

/// The most requests at once, and what keeps them from being more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Largest {
    pub(super) room: Room,
    pub(super) bound: BatchBound,
    /// Requests that there is memory for.
    memory: f64,
}

impl Largest {
    /// In a replica whose memory has so much room, in so many attention groups, each of which takes so many at once.
    pub(super) fn new(memory: Room, groups: u32, at_once: u32) -> Self {
        let taken = f64::from(at_once) * f64::from(groups);
        let bound = if memory.requests > taken { BatchBound::Sequences } else { BatchBound::Memory };
        Self { room: Room { requests: memory.requests.min(taken).max(1.0) }, bound, memory: memory.requests }
    }

    /// The same where so many are taken at most, for another reason.
    pub(super) fn at_most(self, requests: f64, bound: BatchBound) -> Self {
        if requests >= self.room.requests {
            return self;
        }
        Self { room: Room { requests: requests.max(1.0) }, bound, ..self }
    }

    /// What runs out as more requests come: places, where an engine could be told to have more and would serve more with them.
    pub(super) fn short(self, over: &Overload) -> Short {
        let of_room = matches!(over.short, Short::Cache | Short::Prefill | Short::Steps) && over.by_places >= OF_USE;
        match self.bound {
            BatchBound::Adapters if of_room => Short::Adapters,
            BatchBound::Sequences if of_room && self.memory >= self.room.requests * (1.0 + OF_USE) => Short::Sequences,
            _ => over.short,
        }
    }

    /// The same with which limits are kept where replicas choose how many they take at once, to within a part of a request:
    /// latencies at a batch grow with it, so that it is halved in on.
    ///
    /// # Errors
    /// When a request by itself misses a limit.
    pub(super) fn within(
        self,
        serving: &Serving,
        part: f64,
        mut served: impl FnMut(f64) -> Served,
    ) -> Result<Self, Infeasible> {
        if !matches!(serving.arrivals, Arrivals::Most) {
            return Ok(self);
        }
        let mut missed = |batch: f64| {
            let (state, latencies) = served(batch);
            missed(&state, &latencies, &serving.limits)
        };
        let Some((mut bound, ..)) = missed(self.room.requests) else { return Ok(self) };
        if let Some((key, limit, got)) = missed(1.0) {
            return Err(Infeasible::Limit { table: serving.table_of_limit(key), key, limit, got });
        }
        let (mut kept, mut beyond) = (1.0, (self.room.requests / part).ceil() * part);
        while beyond - kept > part {
            let middle = (f64::midpoint(kept, beyond) / part).floor() * part;
            match missed(middle) {
                None => kept = middle,
                Some((key, ..)) => (beyond, bound) = (middle, key),
            }
        }
        Ok(Self { room: Room { requests: kept }, bound: BatchBound::Limit(bound), ..self })
    }

    /// What keeps the batch of each of so many replicas from being more.
    pub(super) fn of_replicas(self, arrivals: Arrivals, replicas: u64) -> BatchBound {
        match arrivals {
            Arrivals::Most => self.bound,
            Arrivals::Concurrency(open) if f64::from(open) > self.room.requests * replicas as f64 => self.bound,
            Arrivals::Concurrency(_) => BatchBound::Open,
            Arrivals::Rate(_) => BatchBound::Rate,
        }
    }

    /// The same of decode in pools that have come to a state.
    pub(super) fn in_pools(
        self,
        arrivals: Arrivals,
        pools: &Separate<'_>,
        request: &Request,
        state: &SteadyState,
    ) -> BatchBound {
        let full = || state.requests_per_second >= pools.most(request).requests_per_second * FULL;
        match arrivals {
            Arrivals::Rate(_) => BatchBound::Rate,
            Arrivals::Concurrency(_) if !full() => BatchBound::Open,
            Arrivals::Most | Arrivals::Concurrency(_) => match pools.short(request) {
                Short::Cache | Short::Sequences | Short::Adapters | Short::Sessions | Short::Steps => self.bound,
                Short::Prefill => BatchBound::Prefill,
                Short::Transfer => BatchBound::Transfer,
            },
        }
    }
}
