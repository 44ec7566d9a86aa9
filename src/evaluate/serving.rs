//! Serving on a cluster: replicas of one layout, what each holds at once, how fast it answers, and what a token costs.

use super::Infeasible;
use crate::catalog::memory_allowance::PoolRule;
use crate::inference::{Hardware, Load, ModelShape, Replica, Request, Room, Spread, SteadyState};
use crate::memory::MemoryFootprint;
use crate::memory::serving::{CacheFormats, Engine, ServingLayout, fits};
use crate::scenario::{Arrivals, Cluster, Serving};
use crate::units::{Bytes, RequestRate, Seconds};

/// Figures of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingPoint {
    /// How a replica is spread.
    pub layout: ServingLayout,
    /// Replicas on the accelerators at work.
    pub replicas: u64,
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
    /// Where the time of a replica goes.
    pub shares: TimeShares,
    /// Share of a prefill that is attention to cached tokens.
    pub cached_share: f64,
}

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
    /// Of a steady state: the step's parts and the wait for prefills are shares of the time between tokens; at a rate that
    /// leaves the engine empty now and then, that part of the time is idle.
    fn of(state: &SteadyState, random: bool) -> Self {
        // Sequences in decode at random times are Poisson: none with this probability.
        let empty = if random { (-state.batch).exp() } else { 0.0 };
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
}

impl ServingPoint {
    /// Requests that end in a second, in all replicas.
    pub fn request_rate(&self) -> RequestRate {
        RequestRate::new(self.state.requests_per_second * self.replicas as f64)
    }

    /// Answers' tokens of one accelerator in a second.
    pub fn output_tokens_per_second(&self) -> f64 {
        self.state.requests_per_second * self.request.output / self.layout.ranks() as f64
    }

    /// Share of the engine's time that is prefill's; the rest is decode's.
    pub fn prefill_share(&self) -> f64 {
        self.state.stall / self.state.tpot
    }
}

/// Requests in an attention group at most, where nothing else limits them: the usual setting for throughput.
const MOST: f64 = 2_048.0;

/// Serving on a cluster's accelerators at work.
///
/// # Errors
/// When the accelerators are no whole number of replicas, a replica holds no request of the asked length, or more requests
/// come than are served.
pub fn serving_point(serving: &Serving, cluster: &Cluster) -> Result<ServingPoint, Infeasible> {
    let layout = serving.layout;
    let (accelerators, each) = (u64::from(cluster.accelerators), layout.ranks());
    if !accelerators.is_multiple_of(each) {
        return Err(Infeasible::PartReplica { accelerators, each });
    }
    let replicas = accelerators / each;
    let engine = Engine::new(&serving.engine_memory);
    let usable = cluster.accelerator.memory_capacity.saturating_sub(serving.memory.driver_reserve.value);
    let formats = CacheFormats::of(&serving.model);
    let (input, output) = (serving.input.mean, serving.output.mean);
    let held = |tokens: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be at most 2e8")]
        let tokens = tokens.ceil() as u64;
        (tokens, fits(&serving.model, &layout, &engine, &formats, usable, (tokens, 0)))
    };
    let (tokens, found) = held(input + output);
    let memory = MemoryFootprint {
        weights: found.weights,
        activations: found.activations,
        kv_cache: found.pool,
        workspace: found.outside,
        ..MemoryFootprint::default()
    };
    if found.requests == 0 {
        let (request, pool) = (found.request, found.pool);
        return Err(Infeasible::NoRequestFits { tokens, request, pool, footprint: memory, usable });
    }
    // Engines that take blocks as sequences grow admit by what a sequence holds on average.
    let room = if engine.rule == PoolRule::OfFree { found.requests } else { held(input + output / 2.0).1.requests };
    let room = Room { requests: room as f64 };
    let hit = serving.prefix_hit.get();
    let request = Request { input: input * (1.0 - hit), cached: input * hit, output };
    let shape = ModelShape::new(&serving.model);
    let links = cluster.node.scale_up.bandwidth_per_direction;
    let hardware = Hardware::bind(&serving.efficiency, &cluster.accelerator, links, serving.engine.word())?;
    let replica = Replica { shape: &shape, hardware: &hardware, spread: Spread::from(layout) };
    let per_replica = replicas as f64;
    let state = match serving.arrivals {
        Arrivals::Most => replica.offline(&request, MOST, room),
        Arrivals::Concurrency(open) => {
            let concurrency = f64::from(open) / per_replica;
            replica.closed_loop(&Load { request, concurrency, waves: f64::INFINITY, fixed_length: false }, room)
        }
        Arrivals::Rate(rate) => replica
            .open_loop(&request, rate * per_replica.recip(), serving.input.cv, room)
            .map_err(|over| Infeasible::Overload { asked: rate, most: over.most * per_replica, replicas })?,
    };
    let shares = TimeShares::of(&state, matches!(serving.arrivals, Arrivals::Rate(_)));
    let max_concurrency = found.requests * replicas;
    let cached_share = 1.0 - replica.prefill(request.input, 0.0) / replica.prefill(request.input, request.cached);
    Ok(ServingPoint { layout, replicas, memory, usable, max_concurrency, request, state, shares, cached_share })
}
