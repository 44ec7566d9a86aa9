//! What a published run is, without the constants that predict it.

use std::sync::Arc;

use super::benchmark::Benchmark;
use super::scatter::{INDEPENDENT, scatter};
use crate::calibration::{Deviation, MeasuredRun};
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::serving_coverage::ServingCoverage;
use crate::catalog::serving_efficiency::ServingEfficiency;
use crate::catalog::{Accelerator, Entry};
use crate::inference::{
    Coming, Features, HandOver, Hardware, Links, Load, MissingServing, ModelShape, Replica, Request, Room, Scratch,
    Separate, Speculation, Spread,
};
use crate::topology::Pairs;
use crate::units::{Bandwidth, Fraction, Seconds};
use crate::validation::LeaveOut;
use crate::validation::outcome::Fill;
use crate::workload::{Moments, Requests};

/// What a figure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time between tokens.
    Tpot,
    /// Time to the first token.
    Ttft,
    /// Answers' tokens a second.
    Throughput,
}

/// A published figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What it measures.
    pub quantity: Quantity,
    /// The column.
    pub column: &'static str,
    /// Its value.
    pub value: f64,
    /// The column's unit over seconds, or over tokens a second of the engine.
    pub scale: f64,
}

/// What a run's figures come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    tpot: Seconds,
    ttft: Seconds,
    tokens_per_second: f64,
}

impl Predicted {
    /// With the throughput that published tables derive: tokens asked for over the time to the last of them.
    fn of_latencies(ttft: Seconds, tpot: Seconds, concurrency: f64, output: f64) -> Self {
        let last = ttft + tpot * (output - 1.0);
        Self { tpot, ttft, tokens_per_second: concurrency * output / (last / Seconds::new(1.0)) }
    }

    /// In seconds, or tokens a second of the engine.
    pub fn of(&self, quantity: Quantity) -> f64 {
        let second = Seconds::new(1.0);
        match quantity {
            Quantity::Tpot => self.tpot / second,
            Quantity::Ttft => self.ttft / second,
            Quantity::Throughput => self.tokens_per_second,
        }
    }
}

/// How requests come to the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    /// So many open at once.
    Open(Load),
    /// All at once, so many of them or without end, at most so many open in each attention group.
    Endless { request: Request, most: f64, count: Option<f64>, benchmark: Option<Benchmark> },
    /// So many open for each decode worker of separate pools.
    Pools { load: Load, prefill: Spread, prefill_workers: f64, decode_workers: f64 },
}

/// One more layer of the model that drafts, and the shares of its tokens that are accepted.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) shape: ModelShape,
    pub(super) acceptance: Vec<Fraction>,
}

/// A published run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The model's catalog id.
    pub model: String,
    /// The accelerator.
    pub accelerator: Arc<Entry<Accelerator>>,
    /// Its links to others in one direction.
    pub(super) links: Bandwidth,
    /// The engine family.
    pub engine: String,
    /// The model's arithmetic.
    pub(super) shape: ModelShape,
    /// What drafts for it, where drafts are verified.
    pub(super) draft: Option<Draft>,
    /// How the engine, or a decode worker, is spread.
    pub(super) spread: Spread,
    /// Requests at once, at most.
    pub(super) room: Room,
    /// Kinds of the formats of its weights and its cache.
    pub(super) formats: [&'static str; 2],
    /// The engine's version, where it is known.
    pub(super) version: Option<EngineVersion>,
    /// Steps that a prompt waits at most for one in each other attention group.
    pub(super) balance: Option<f64>,
    /// Steps of decode from one look for new requests to the next.
    pub(super) polls: Option<f64>,
    /// What the benchmark is called whose throughput it is.
    pub(super) table: Option<String>,
    /// How requests come.
    pub(super) asked: Asked,
    /// Tokens of an answer as throughputs count them: those asked for, where answers are shorter.
    pub(super) counted_output: f64,
    /// The row's figures.
    pub measured: Vec<Measured>,
    /// What it leaves open.
    pub(super) filled: Vec<Fill>,
    /// Where it was published.
    pub(super) source: String,
    /// Whether its first tokens were measured cold.
    pub(super) cold: bool,
    /// Whether the table holds it out of fits.
    pub(super) held_out: bool,
}

/// The version that follows the engine's name in a text, such as "vllm 0.18.0" or "TensorRT-LLM v0.17".
pub(super) fn version_after(name: &str, text: &str) -> Option<EngineVersion> {
    let (_, after) = text.split_once(name)?;
    EngineVersion::parse(after.split_whitespace().next()?.trim_end_matches([',', ';']))
}

impl Setup {
    /// What the form says with a set of constants.
    ///
    /// # Errors
    /// Where the set lacks a constant.
    pub fn predict(&self, set: &ServingEfficiency) -> Result<Predicted, MissingServing> {
        Ok(self.figures(&self.hardware(set)?))
    }

    fn hardware(&self, set: &ServingEfficiency) -> Result<Hardware, MissingServing> {
        Hardware::bind(set, &self.accelerator, self.links, &self.engine)
    }

    fn figures(&self, hardware: &Hardware) -> Predicted {
        let draft = self.draft.as_ref();
        let speculation = draft.map(|draft| Speculation { draft: &draft.shape, acceptance: &draft.acceptance });
        let features = Features {
            speculation,
            longest: Some(self.longest()),
            gathers: hardware.gathers(self.version),
            balance: self.balance,
            polls: self.polls,
            ..Features::default()
        };
        let replica = |spread| Replica::new(&self.shape, hardware, spread).with(features).as_they_lie();
        let engine = replica(self.spread);
        match self.asked {
            Asked::Open(load) => {
                let prefill = engine.prefill(load.request.input, load.request.cached);
                let state = engine.closed_loop(&load, prefill, self.room);
                Predicted::of_latencies(state.ttft, state.tpot, load.concurrency, self.counted_output)
            }
            Asked::Endless { request, most, count, benchmark } => {
                let groups = f64::from(self.spread.attention_data * self.spread.pipeline);
                let open = self.room.requests.min(most * groups).max(1.0);
                let room = Room { requests: open };
                let built = hardware.built();
                let engine = match benchmark {
                    Some(benchmark) if !benchmark.replays() => Replica { hardware: &built, ..engine },
                    Some(_) | None => engine,
                };
                let engine = engine.with(benchmark.map_or(engine.features, |benchmark| {
                    let graphs = benchmark.graphs(&request, hardware.launch_unit());
                    Features {
                        chunks: Some(benchmark.chunks(open / groups)),
                        graphs: benchmark.replays().then_some(graphs),
                        ..engine.features
                    }
                }));
                let state = engine.offline(&request, room);
                let requests_per_second = match count {
                    Some(count) => count / (engine.taken(&request, room, count) / Seconds::new(1.0)),
                    None => state.requests_per_second,
                };
                let tokens_per_second = requests_per_second * request.output;
                Predicted { tpot: state.tpot, ttft: state.ttft, tokens_per_second }
            }
            Asked::Pools { load, prefill, prefill_workers, decode_workers } => {
                let transfer = HandOver {
                    fixed: hardware.hand_over(),
                    sent: Seconds::ZERO,
                    received: Seconds::ZERO,
                    pairs: Pairs::NEAR,
                    sharing: [1.0; 2],
                    links: Links::Cards,
                };
                let pools = Separate {
                    prefill: replica(prefill),
                    workers: prefill_workers,
                    decode: engine,
                    replicas: decode_workers,
                    room: self.room,
                    transfer,
                    served: Seconds::ZERO,
                };
                let pools = Separate { served: pools.served_alike(&load.request), ..pools };
                let requests = Requests::lognormal(
                    Moments { mean: load.request.input, cv: 0.0 },
                    Moments { mean: load.request.output, cv: 0.0 },
                );
                let coming = Coming {
                    requests: &requests,
                    hit: 0.0,
                    cached: 0.0,
                    cv: 1.0,
                    replay: false,
                    balancing: crate::scenario::Balancing::Random,
                };
                let open = load.concurrency * decode_workers;
                let state = pools.closed(&load.request, (open, load.waves), &coming, &mut Scratch::default());
                Predicted::of_latencies(state.ttft, state.tpot, load.concurrency, self.counted_output)
            }
        }
    }

    /// Tokens that the engine is set for: benchmarks set those of their requests.
    fn longest(&self) -> f64 {
        match self.asked {
            Asked::Open(Load { request, .. })
            | Asked::Endless { request, .. }
            | Asked::Pools { load: Load { request, .. }, .. } => request.tokens(),
        }
    }

    /// What a fit without it is called by: its source, or its model.
    pub fn left_out_by(&self, group: LeaveOut) -> &str {
        match group {
            LeaveOut::Source => &self.source,
            LeaveOut::Model => &self.model,
        }
    }

    /// Whether the model has experts.
    pub fn has_experts(&self) -> bool {
        self.shape.has_experts()
    }

    /// Whether drafted tokens are verified: no fit takes it in.
    pub fn drafts(&self) -> bool {
        self.draft.is_some()
    }

    /// Whether the table holds it out of fits: it judges them.
    pub fn held_out(&self) -> bool {
        self.held_out
    }

    /// Whether prefill and decode have pools of their own.
    pub fn disaggregated(&self) -> bool {
        matches!(self.asked, Asked::Pools { .. })
    }

    /// Whether requests come without end.
    pub fn offline(&self) -> bool {
        matches!(self.asked, Asked::Endless { .. })
    }

    /// Predicted figures of a quantity over the row's, or the row's over them, whichever is more than one; nothing where a
    /// constant is missing.
    pub(super) fn factors(&self, quantity: Quantity, set: &ServingEfficiency) -> Vec<f64> {
        let Ok(predicted) = self.predict(set) else { return Vec::new() };
        let own = self.measured.iter().filter(|figure| figure.quantity == quantity);
        own.map(|figure| (predicted.of(quantity) * figure.scale / figure.value).ln().abs().exp()).collect()
    }

    /// The kind of deployment, without its figures.
    pub(super) fn kind(&self) -> ServingCoverage {
        ServingCoverage {
            generation: self.accelerator.generation.clone(),
            engine: self.engine.clone(),
            architecture: self.shape.architecture(),
            pools: self.disaggregated(),
            weights: vec![self.formats[0].to_owned()],
            caches: vec![self.formats[1].to_owned()],
            ..ServingCoverage::default()
        }
    }

    /// Whether more requests are open than the cache has room for.
    fn cache_binds(&self) -> bool {
        matches!(self.asked, Asked::Open(load) if load.concurrency > self.room.requests)
    }

    /// Whether its first tokens say how an engine answers them: those that were measured cold do not, and those that wait for
    /// room in a full cache are moved far by little.
    pub(super) fn tells_first_tokens(&self) -> bool {
        !self.cold && !self.cache_binds()
    }

    /// The group of a figure.
    pub fn group(&self, quantity: Quantity) -> String {
        let kind = match (&self.draft, self.has_experts()) {
            (Some(_), _) => "with drafts",
            (None, true) => "experts",
            (None, false) => "dense",
        };
        let judged = if self.held_out { ", held out of the fit" } else { "" };
        let mode = match self.asked {
            Asked::Open(_) => "aggregated",
            Asked::Endless { .. } => {
                let table = self.table.as_deref().unwrap_or(&self.engine);
                return format!("offline throughput, {kind}, {table}{judged}");
            }
            Asked::Pools { .. } => "disaggregated",
        };
        let what = match quantity {
            Quantity::Tpot => "time between tokens",
            Quantity::Ttft if self.cold => "time to first token measured cold",
            Quantity::Ttft if self.cache_binds() => "time to first token where the cache is full",
            Quantity::Ttft => "time to first token",
            Quantity::Throughput => "throughput",
        };
        if self.disaggregated() { format!("{what}, {mode}{judged}") } else { format!("{what}, {mode}, {kind}{judged}") }
    }
}

impl MeasuredRun for Setup {
    type Set = ServingEfficiency;
    type Bound = Hardware;

    fn source(&self) -> &str {
        &self.source
    }

    fn bind(&self, set: &ServingEfficiency) -> Option<Hardware> {
        self.hardware(set).ok()
    }

    fn deviations(&self, hardware: &Hardware) -> Vec<Deviation> {
        let predicted = self.figures(hardware);
        let deviation = |figure: &Measured| {
            let error = (predicted.of(figure.quantity) * figure.scale / figure.value).ln();
            Some(Deviation { error, scatter: scatter(self, figure.quantity)?, weight: INDEPENDENT })
        };
        self.measured.iter().filter_map(deviation).collect()
    }
}
