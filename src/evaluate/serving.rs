//! Serving on a cluster: replicas of one layout, what each holds at once, how fast it answers, and what a token costs.

mod caching;
mod engine;
mod holding;
mod joined;

use engine::Shapes;
use holding::{Holding, footprint};
use joined::joined;

use super::Infeasible;
use super::pools::{transfer, workers};
use crate::inference::{Latencies, Load, Replica, Request, Room, Scatter, Separate, Spread, SteadyState};
use crate::memory::MemoryFootprint;
use crate::memory::serving::ServingLayout;
use crate::scenario::{Arrivals, Cluster, Limits, Serving};
use crate::units::{Bytes, RequestRate, Seconds};

pub use caching::CachePoint;
pub use engine::EnginePoint;

/// Figures of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingPoint {
    /// How a replica is spread.
    pub layout: ServingLayout,
    /// Replicas on the accelerators at work; of decode, where prefill has a pool of its own.
    pub replicas: u64,
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
    /// How latencies scatter; none but where requests come at random.
    pub latencies: Option<Latencies>,
    /// Where the time of a replica goes.
    pub shares: TimeShares,
    /// Share of a prefill that is attention to cached tokens.
    pub cached_share: f64,
    /// What the engine does beside its plain loop.
    pub engine: EnginePoint,
    /// Share of the cache of a sequence in decode that is the empty end of its last blocks.
    pub block_waste: f64,
    /// Prefixes that are kept, where hits follow from that.
    pub caching: Option<CachePoint>,
}

/// A pool of prefill workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolPoint {
    /// How a worker is spread.
    pub layout: ServingLayout,
    /// Workers.
    pub workers: u64,
    /// Handing a request's cache over to decode.
    pub transfer: Seconds,
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

impl TimeShares {
    /// The mean over replicas of which the busiest has so much more to do.
    fn beside_idle(self, busiest: f64) -> Self {
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

impl ServingPoint {
    /// Requests that end in a second, in all replicas.
    pub fn request_rate(&self) -> RequestRate {
        RequestRate::new(self.state.requests_per_second * self.replicas as f64)
    }

    /// Requests open at once in one replica, from their coming to their last token, on average (Little's law).
    pub fn open_per_replica(&self) -> f64 {
        let whole = self.state.ttft + self.state.tpot * self.request.output;
        RequestRate::new(self.state.requests_per_second).over(whole)
    }

    /// The first limit that is not kept: its key, the limit, and what it comes to.
    pub fn missed(&self, limits: &Limits) -> Option<(&'static str, Seconds, Seconds)> {
        let of = |key: &str| {
            let spread = self.latencies.as_ref();
            match key {
                "ttft" => Some(self.state.ttft),
                "tpot" => Some(self.state.tpot),
                "ttft_p95" => spread.map(|of| of.first_token.p95),
                "ttft_p99" => spread.map(|of| of.first_token.p99),
                "tpot_p95" => spread.map(|of| of.token.p95),
                "tpot_p99" => spread.map(|of| of.token.p99),
                _ => spread.map(|of| of.whole.p95),
            }
        };
        limits
            .named()
            .into_iter()
            .find_map(|(key, limit)| Some((key, limit?, of(key)?)).filter(|(_, limit, got)| got > limit))
    }

    /// Answers' tokens of one accelerator in a second.
    pub fn output_tokens_per_second(&self) -> f64 {
        self.state.requests_per_second * self.request.output / self.accelerators_per_replica()
    }

    /// Accelerators of prefill's own pool.
    pub fn prefill_accelerators(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.workers * pool.layout.ranks())
    }

    /// Accelerators for each replica, its part of prefill's pool among them.
    pub fn accelerators_per_replica(&self) -> f64 {
        self.layout.ranks() as f64 + self.prefill_accelerators() as f64 / self.replicas as f64
    }

    /// Share of the accelerators' time that is prefill's; the rest is decode's.
    pub fn prefill_share(&self) -> f64 {
        if self.pool.is_some() {
            return self.prefill_accelerators() as f64 / (self.accelerators_per_replica() * self.replicas as f64);
        }
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
    if let Some(caching) = &serving.cache {
        return caching::settled(serving, caching, cluster);
    }
    let hit = serving.prefix_hit.get();
    answered(serving, cluster, &Reuse { hit, wait: Seconds::ZERO, busiest: 1.0 })
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
}

/// Serving with so much of the prompts at hand. Latencies are those of the busiest replica.
fn answered(serving: &Serving, cluster: &Cluster, reuse: &Reuse) -> Result<ServingPoint, Infeasible> {
    let layout = serving.layout;
    let (accelerators, each) = (u64::from(cluster.accelerators), layout.ranks());
    if serving.prefill.is_none() && !accelerators.is_multiple_of(each) {
        return Err(Infeasible::PartReplica { accelerators, each });
    }
    draft_fits(serving, layout)?;
    let holding = Holding::new(serving, cluster);
    let usable = holding.usable;
    let (input, output) = (serving.input.mean, serving.output.mean);
    let tokens = tokens_up(input + output);
    let found = holding.fits(&layout, tokens);
    let memory = footprint(&found);
    if found.requests == 0 {
        let (request, pool) = (found.request, found.pool);
        return Err(Infeasible::NoRequestFits { tokens, request, pool, footprint: memory, usable });
    }
    let room = holding.room(&layout, (input, output), &found);
    let hit = reuse.hit;
    let request = Request { input: input * (1.0 - hit), cached: input * hit, output };
    let shapes = Shapes::new(serving);
    let joined = |layout| Ok::<_, Infeasible>(joined(layout, serving, cluster)?.after(reuse.wait));
    let joined_decode = joined(layout)?;
    let replica = Replica::new(&shapes.model, &joined_decode, Spread::from(layout))
        .with(shapes.features(serving, serving.prefill.is_none()));
    let cached_share = 1.0 - replica.prefill(request.input, 0.0) / replica.prefill(request.input, request.cached);
    let scatter = Scatter { input: serving.input.cv, output: serving.output.cv };
    let (mut pool, mut joined_prefill, mut takes_in) = (None, None, replica);
    let (replicas, mut state, latencies) = if let Some(wanted) = &serving.prefill {
        let prompt = tokens_up(input);
        draft_fits(serving, wanted.layout)?;
        let own = holding.fits(&wanted.layout, prompt);
        if own.requests == 0 {
            let (tokens, request, pool, footprint) = (prompt, own.request, own.pool, footprint(&own));
            return Err(Infeasible::NoRequestFits { tokens, request, pool, footprint, usable });
        }
        let worker =
            Replica::new(&shapes.model, joined_prefill.insert(joined(wanted.layout)?), Spread::from(wanted.layout))
                .with(shapes.features(serving, false));
        takes_in = worker;
        let transfer = transfer(serving, cluster, wanted, prompt);
        let replicas = |workers: u64| {
            let left = accelerators.checked_sub(workers * wanted.layout.ranks())?;
            (left >= each && left.is_multiple_of(each)).then_some(left / each)
        };
        let pools = |workers: u64| {
            let (prefill, decode, replicas) = (worker, replica, replicas(workers)? as f64);
            Some(Separate { prefill, workers: workers as f64, decode, replicas, room, transfer })
        };
        let (workers, pools) = workers(wanted, accelerators, &request, MOST, pools)?;
        let replicas = replicas(workers).unwrap_or(1);
        pool = Some(PoolPoint { layout: wanted.layout, workers, transfer });
        let (state, latencies) = match serving.arrivals {
            Arrivals::Most => (pools.most(&request, MOST), None),
            Arrivals::Concurrency(open) => (pools.closed(&request, f64::from(open)), None),
            Arrivals::Rate(asked) => {
                let (state, latencies) = pools
                    .at_rate(&request, asked * reuse.busiest, scatter)
                    .map_err(|over| Infeasible::Overload { asked, most: over.most / reuse.busiest, replicas })?;
                (state, Some(latencies))
            }
        };
        (replicas, state, latencies)
    } else {
        let replicas = accelerators / each;
        let (state, latencies) = together(&replica, serving, &request, room, (replicas, scatter, reuse.busiest))?;
        (replicas, state, latencies)
    };
    state.requests_per_second /= reuse.busiest;
    let shares = TimeShares::of(&state, matches!(serving.arrivals, Arrivals::Rate(_))).beside_idle(reuse.busiest);
    let engine = EnginePoint::new(&replica, &takes_in, &request, &state);
    let block_waste = holding.block_waste(&layout, request.context());
    let max_concurrency = found.requests * replicas;
    Ok(ServingPoint {
        layout,
        replicas,
        pool,
        memory,
        usable,
        max_concurrency,
        request,
        state,
        latencies,
        shares,
        cached_share,
        engine,
        block_waste,
        caching: None,
    })
}

/// Whether what drafts takes a layout, as layouts that are searched may not be.
fn draft_fits(serving: &Serving, layout: ServingLayout) -> Result<(), Infeasible> {
    let draft = serving.features.speculation.as_ref();
    draft.map_or(Ok(()), |draft| layout.check(&draft.model).map_err(Infeasible::Draft))
}

/// Replicas that prefill and decode, each its part of what is asked.
fn together(
    replica: &Replica<'_>,
    serving: &Serving,
    request: &Request,
    room: Room,
    (replicas, scatter, busiest): (u64, Scatter, f64),
) -> Result<(SteadyState, Option<Latencies>), Infeasible> {
    let per_replica = replicas as f64;
    Ok(match serving.arrivals {
        Arrivals::Most => (replica.offline(request, MOST, room), None),
        Arrivals::Concurrency(open) => {
            let concurrency = f64::from(open) / per_replica;
            let load = Load { request: *request, concurrency, waves: f64::INFINITY, fixed_length: false };
            (replica.closed_loop(&load, room), None)
        }
        Arrivals::Rate(all) => {
            let rate = all * (busiest / per_replica);
            let state = replica.open_loop(request, rate, serving.input.cv, room).map_err(|over| {
                Infeasible::Overload { asked: all, most: over.most * (per_replica / busiest), replicas }
            })?;
            (state, Some(replica.latencies(request, &state, rate, scatter, room)))
        }
    })
}

/// Tokens as a count, a part of one as one more.
fn tokens_up(tokens: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be at most 2e8")]
    let count = tokens.ceil() as u64;
    count
}
