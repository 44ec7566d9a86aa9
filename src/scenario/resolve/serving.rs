//! Binding of `[serving]`.

use std::sync::Arc;

use super::asked::Requests as Asked;
use super::cache::{self, PrefixCaching};
use super::engine::{self, EngineFeatures, Layouts};
use super::{Agents, Cluster, Defaults, Share};
use crate::catalog::Reference;
use crate::catalog::engine_memory::EngineMemory;
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::model::{Format, Formats, Model, Module};
use crate::catalog::{Catalog, Entry, MemoryAllowance, ServingEfficiency};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::parallelism::ServingLayout;
use crate::scenario::file::{
    AdapterRouting, ArrivalTerms, Arrivals, Balancing, Lengths, Limits, Routing, ServingEngine, ServingFile,
    ServingLayoutFile,
};
use crate::units::Fraction;
use crate::workload::{LengthShapes, Moments, Requests, Tenants, attend_to_all, requantise};

/// What is served, on which engine, and how a replica is spread.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The model's catalog entry.
    pub entry: Arc<Entry<Model>>,
    /// The model in the formats that it is served in.
    pub model: Model,
    /// The format of most of its weights.
    pub weights: Format,
    /// The engine.
    pub engine: ServingEngine,
    /// Its version, where it is given.
    pub engine_version: Option<EngineVersion>,
    /// What the engine keeps in memory, and how it sizes the cache.
    pub engine_memory: EngineMemory,
    /// Where that comes from.
    pub memory: Arc<Entry<MemoryAllowance>>,
    /// Tokens of a prompt.
    pub input: Lengths,
    /// Tokens of an answer.
    pub output: Lengths,
    /// Tokens of prompt and answer that the engine takes at most, where that is known: the model's own, or what is given.
    pub context: Option<u32>,
    /// How long requests are that it takes, and when they came where that was recorded.
    pub requests: Arc<Requests>,
    /// The file in which they were recorded.
    pub trace: Option<String>,
    /// How requests come: where at a rate, at that of the peak.
    pub arrivals: Arrivals,
    /// What else is said of how they come.
    pub terms: ArrivalTerms,
    /// Which replica they go to.
    pub balancing: Balancing,
    /// That peak over the mean of a day. What is served, how soon, and how many replicas that takes is of the peak; what tokens
    /// cost is of the mean.
    pub peak_to_mean: f64,
    /// Replicas beyond those that serve the peak, so that as many may be down.
    pub spare_replicas: u32,
    /// Share of a prompt's tokens whose keys and values are at hand.
    pub prefix_hit: Fraction,
    /// What latencies must stay below.
    pub limits: Limits,
    /// The same of each class of tenants by itself; those above keep all of them, as replicas do that all share.
    pub tenant_limits: Vec<Limits>,
    /// Those of `serving.limits`: any other is of a class of tenants.
    pub shared_limits: Limits,
    /// How a replica is spread; one rank where that is left to a search.
    pub layout: ServingLayout,
    /// Whether it is left to a search.
    pub search: bool,
    /// Whether accelerators that make no whole replica or prefill worker stay idle.
    pub left_over: bool,
    /// Prefill's own pool, where it has one; the layout above is then that of decode.
    pub prefill: Option<PrefillPool>,
    /// Prefixes of requests and where they are kept, where hits follow from that.
    pub cache: Option<PrefixCaching>,
    /// Agents whose sessions wait in what running requests leave of the memory: all, where nothing says where else.
    pub sessions: Option<Agents>,
    /// What the engine does beside its plain loop.
    pub features: EngineFeatures,
    /// The constants that engines are bound with.
    pub efficiency: Arc<Entry<ServingEfficiency>>,
}

/// A pool of prefill workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillPool {
    /// How a worker is spread.
    pub layout: ServingLayout,
    /// Accelerators of the pool; as many as balance it with decode's where none are given.
    pub accelerators: Option<u32>,
}

impl Serving {
    /// The table that a limit is in: that of all requests, or those of tenants where a class has a shorter one.
    pub fn table_of_limit(&self, key: &str) -> &'static str {
        let of =
            |limits: &Limits| limits.named().into_iter().find(|(name, _)| *name == key).and_then(|(_, limit)| limit);
        if of(&self.limits) == of(&self.shared_limits) { "serving.limits" } else { "serving.tenants.limits" }
    }

    /// How requests come as it is asked: where at a rate, at the mean of a day.
    pub fn asked(&self) -> Arrivals {
        match self.arrivals {
            Arrivals::Rate(peak) => Arrivals::Rate(peak / self.peak_to_mean),
            other => other,
        }
    }
}

/// A layout that a model can take.
fn layout(wanted: &ServingLayoutFile, model: &Model, sink: &Sink) -> Option<ServingLayout> {
    // One that could not be read, which has been told.
    if wanted.tensor == 0 {
        return None;
    }
    let layout = ServingLayout {
        tensor: wanted.tensor,
        pipeline: wanted.pipeline.unwrap_or(1),
        expert: wanted.expert.unwrap_or(1),
        attention_data: wanted.attention_data.unwrap_or(1),
        redundant_experts: wanted.redundant_experts.map_or(0, |copies| copies.0),
    };
    if let Err(reason) = layout.check(model) {
        let hint = "change the degrees of the layout";
        sink.push(Diagnostic::new(Code::Inconsistent, reason).at(&wanted.at, "this layout").hint(hint));
        return None;
    }
    Some(layout)
}

/// Pools are of answers that are decoded.
fn pools_decode(wanted: &ServingFile, asked: &Asked, pools: bool, sink: &Sink) {
    if pools && asked.output.mean <= 1.0 {
        let message = "answers are of one token, which the prefill makes: a pool of decode has nothing to do";
        let hint = "give one layout, `serving.layout = { tensor = 4 }`, or a larger `serving.output_tokens`";
        let reported = Diagnostic::new(Code::Inconsistent, message).at(&wanted.answers_at, "one token");
        sink.push(reported.at(&wanted.layout.at, "two pools").hint(hint));
    }
}

pub(super) fn bind(
    wanted: &ServingFile,
    asked: &Asked,
    cluster: Option<&Cluster>,
    node: &Reference,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Serving> {
    let entry = catalog.models.find(&wanted.model, &wanted.model.at, sink);
    let memory = catalog.memory_allowances.find("cuda", &wanted.model.at, sink)?;
    let efficiency = catalog.serving_efficiency.find("published-points", &wanted.model.at, sink)?;
    let Some(engine_memory) = memory.engines.get(wanted.engine.word()) else {
        let message = format!("no memory rules of engine \"{}\"", wanted.engine);
        let hint = "choose another engine, or add it to an overlay of catalogs/efficiency/memory";
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(&wanted.model.at, "needed for this").hint(hint));
        return None;
    };
    let mut engine_memory = engine_memory.of_version(wanted.engine_version);
    engine_memory.fraction = wanted.memory_fraction.or(engine_memory.fraction);
    if let Some(cluster) = cluster.filter(|cluster| efficiency.generation(&cluster.accelerator.generation).is_none()) {
        let generation = &cluster.accelerator.generation;
        let message = format!("no serving constants for accelerators of generation \"{generation}\"");
        let hint = "add a [[generation]] to an overlay of catalogs/efficiency/serving and pass it with --catalog";
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(&node.at, "this node").hint(hint));
    }
    let entry = entry?;
    let mut model = entry.part.clone();
    if !engine_memory.attends_in_chunks {
        attend_to_all(&mut model);
    }
    if let Some(format) = wanted.weights {
        requantise(&mut model, format);
    }
    let weights = defaults.or("serving.weights", wanted.weights, linear_format(&model.formats));
    let usual = model.formats.kv_cache.unwrap_or(model.formats.base);
    model.formats.kv_cache = Some(defaults.or("serving.kv_cache", wanted.kv_cache, usual));
    let layout = layout(&wanted.layout, &model, sink)?;
    let prefill = match &wanted.layout.prefill {
        Some(wanted) => Some(self::layout(wanted, &model, sink)?),
        None => None,
    };
    let prefill = prefill.map(|layout| PrefillPool { layout, accelerators: wanted.layout.prefill_accelerators });
    let given: Vec<ServingLayout> = [layout].into_iter().chain(prefill.map(|pool| pool.layout)).collect();
    let layouts = Layouts { given: &given, search: wanted.layout.search, at: &wanted.layout.at };
    let features = engine::bind(
        &wanted.features,
        (&entry.name, &model),
        &layouts,
        &mut engine_memory,
        (cluster, catalog, &efficiency.part),
        defaults,
        sink,
    )?;
    let caching = match &wanted.cache {
        Some(wanted) => Some(cache::bind(wanted, asked, cluster, catalog, defaults, sink)?),
        None => None,
    };
    adapters_or_prefixes(wanted, prefill.is_some(), sink);
    balanced(wanted, caching.as_ref(), asked, sink);
    pools_decode(wanted, asked, prefill.is_some(), sink);
    let shared_limits = wanted.limits.unwrap_or_default();
    let tenant_limits = engine::tenant_limits(&wanted.features, shared_limits);
    let limits = tenant_limits.iter().copied().reduce(Limits::and).unwrap_or(shared_limits);
    let requests = match &asked.taken {
        Some(taken) if taken.inputs.is_empty() || taken.inputs.len() != taken.outputs.len() => return None,
        Some(taken) => taken.requests(),
        None if !asked.calls.is_empty() => Requests::of_calls(asked.calls.clone(), asked.output.mean),
        None => lognormal(asked.input, asked.output, asked.context),
    };
    let (arrivals, peak_to_mean) = coming(wanted, asked, features.tenants.as_ref(), defaults, sink);
    as_benchmarks_come(wanted, (arrivals, asked), prefill.is_some(), sink);
    Some(Serving {
        entry,
        model,
        weights,
        engine: wanted.engine,
        engine_version: wanted.engine_version,
        engine_memory,
        memory,
        input: asked.input,
        output: asked.output,
        context: asked.context,
        requests: Arc::new(requests),
        trace: wanted.trace.as_ref().map(|trace| trace.name.clone()),
        arrivals,
        terms: asked.terms,
        balancing: wanted.balancing.unwrap_or_default(),
        peak_to_mean,
        spare_replicas: defaults.or("serving.spare_replicas", wanted.spare_replicas.map(|spares| spares.0), 0),
        prefix_hit: match &caching {
            Some(_) => Fraction::ZERO,
            None => defaults.or("serving.prefix_hit", asked.hit.map(Share), Share(Fraction::ZERO)).0,
        },
        limits,
        tenant_limits,
        shared_limits,
        layout,
        search: wanted.layout.search,
        left_over: wanted.layout.left_over.unwrap_or(wanted.layout.search),
        prefill,
        sessions: asked.agents.filter(|_| caching.is_none()),
        cache: caching,
        features,
        efficiency,
    })
}

/// Refuses what benchmarks ask for where requests come otherwise, or go through pools.
fn as_benchmarks_come(wanted: &ServingFile, (arrivals, asked): (Arrivals, &Asked), pools: bool, sink: &Sink) {
    // A search tries pools too.
    let pools = pools || wanted.layout.search;
    balanced_groups(wanted, arrivals, pools, sink);
    polled(wanted, arrivals, pools, sink);
    all_at_once(wanted, (arrivals, asked), pools, sink);
}

/// How requests come at the peak of a day, and that over its mean.
fn coming(
    wanted: &ServingFile,
    asked: &Asked,
    tenants: Option<&Tenants>,
    defaults: &mut Defaults,
    sink: &Sink,
) -> (Arrivals, f64) {
    let mut arrivals = defaults.or("serving.arrivals", asked.arrivals, Arrivals::Most);
    let of_tenants = asked.terms.tenants;
    let peak_to_mean = match tenants.filter(|_| of_tenants) {
        Some(tenants) => tenants.pooled() / tenants.mean(),
        None => defaults.or("serving.peak_to_mean", wanted.peak_to_mean, 1.0),
    };
    if of_tenants && wanted.peak_to_mean.is_some() {
        let message = "`serving.peak_to_mean` follows from `serving.tenants`";
        let hint = "leave it out, or give `serving.arrivals = { rate = \"40 request/s\" }`";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.peak_at, "given here too").hint(hint));
    }
    match &mut arrivals {
        Arrivals::Rate(rate) => *rate = *rate * peak_to_mean,
        Arrivals::Most | Arrivals::Concurrency(_) if peak_to_mean > 1.0 => {
            let message = "`serving.peak_to_mean` is of requests that come at a rate";
            let hint = "give `serving.arrivals = { rate = \"40 request/s\" }`, the mean of a day, or leave it out";
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.peak_at, "of a day").hint(hint));
        }
        Arrivals::Most | Arrivals::Concurrency(_) => {}
    }
    (arrivals, peak_to_mean)
}

/// Refuses a wait of attention groups for each other's prompts where nothing is known of it.
fn balanced_groups(wanted: &ServingFile, arrivals: Arrivals, pools: bool, sink: &Sink) {
    let features = &wanted.features;
    if features.attention_data_balance.is_none() || !pools && !matches!(arrivals, Arrivals::Rate(_)) {
        return;
    }
    let message =
        "how long attention groups wait for each other's prompts is known of a number of requests that is open";
    let hint = "give `serving.arrivals = { concurrency = 64 }` and one layout for prefill and decode, or leave it out";
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(&features.balance_at, "asked for here").hint(hint));
}

/// Refuses looks for new requests every so many steps where no engine looks so, or nothing is known of it.
fn polled(wanted: &ServingFile, arrivals: Arrivals, pools: bool, sink: &Sink) {
    let features = &wanted.features;
    if features.poll_steps.is_none() {
        return;
    }
    let (message, hint) = if wanted.engine != ServingEngine::Sglang {
        ("only SGLang looks for new requests every so many steps", "give serving.engine = \"sglang\", or leave it out")
    } else if pools || matches!(arrivals, Arrivals::Rate(_)) {
        let hint =
            "give `serving.arrivals = { concurrency = 64 }` and one layout for prefill and decode, or leave it out";
        ("how long requests wait until the engine looks for them is known of a number that is open", hint)
    } else {
        return;
    };
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(&features.polls_at, "asked for here").hint(hint));
}

/// Refuses prompts that are all there from the start where they do not go through in waves.
fn all_at_once(wanted: &ServingFile, (arrivals, asked): (Arrivals, &Asked), pools: bool, sink: &Sink) {
    if !matches!(arrivals, Arrivals::Most) || asked.terms.prompts.is_none() {
        return;
    }
    let scatter = asked.input.cv > 0.0 || asked.output.cv > 0.0 || asked.taken.is_some() || !asked.calls.is_empty();
    if pools || scatter {
        let message =
            "prompts that are all there from the start go through in waves where all are of one length, in one pool";
        let hint = "give `serving.arrivals = \"max\"`, or input_tokens and output_tokens as numbers and one layout";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
    }
}

/// Refuses a way to send requests where another is taken, or none makes a difference.
fn balanced(wanted: &ServingFile, caching: Option<&PrefixCaching>, asked: &Asked, sink: &Sink) {
    let Some(balancing) = wanted.balancing else { return };
    let adapters = wanted.features.adapters.as_ref().and_then(|adapters| adapters.routing);
    let elsewhere =
        caching.is_some_and(|caching| caching.routing == Routing::Aware) || adapters == Some(AdapterRouting::Aware);
    let (message, hint) = if !matches!(asked.arrivals, Some(Arrivals::Rate(_))) {
        let hint = "give `serving.arrivals = { rate = \"40 request/s\" }`, or leave it out";
        ("`serving.routing` is of requests that come at a rate: of others replicas have as many each", hint)
    } else if elsewhere {
        (
            "requests go to the replica of their prefix or adapter",
            "use routing = \"balanced\" there, or leave `serving.routing` out",
        )
    } else if asked.terms.replay && balancing != Balancing::RoundRobin {
        ("requests of a trace go to replicas in turn", "use \"round-robin\", or leave `serving.routing` out")
    } else {
        return;
    };
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
}

/// Whether requests are sent to their adapter where they cannot be, or are sent elsewhere.
fn adapters_or_prefixes(wanted: &ServingFile, pools: bool, sink: &Sink) {
    let adapters = wanted.features.adapters.as_ref();
    let Some(adapters) = adapters.filter(|adapters| adapters.routing == Some(AdapterRouting::Aware)) else { return };
    let of_cache = wanted.cache.as_ref().and_then(|cache| cache.routing) == Some(Routing::Aware);
    let (message, hint) = if of_cache {
        ("a request goes to the replica of its adapter or to that of its prefix", "leave one of both routings out")
    } else if pools {
        let hint = "use one layout for prefill and decode, or routing = \"balanced\"";
        ("requests are not sent to their adapters in pools of prefill and decode", hint)
    } else {
        return;
    };
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(&adapters.at, "in this table").hint(hint));
}

/// Prompts and answers that scatter each for itself.
fn lognormal(input: Lengths, output: Lengths, context: Option<u32>) -> Requests {
    Requests::lognormal_within(moments(input), moments(output), context.map(f64::from))
}

fn moments(lengths: Lengths) -> Moments {
    Moments { mean: lengths.mean, cv: lengths.cv }
}

impl Serving {
    /// Tokens of a prompt and of its answer, on average over requests that the engine takes.
    pub fn mean_lengths(&self) -> (f64, f64) {
        self.requests.cut.map_or((self.input.mean, self.output.mean), |cut| (cut.input, cut.output))
    }

    /// Sets how long prompts and answers are, where no trace says so. Nothing is allocated where nobody else has the requests.
    pub fn set_lengths(&mut self, input: Lengths, output: Lengths, shapes: &mut LengthShapes) {
        if (self.input, self.output) != (input, output) {
            (self.input, self.output) = (input, output);
            let context = self.context.map(f64::from);
            Arc::make_mut(&mut self.requests).set_lognormal(moments(input), moments(output), context, shapes);
        }
    }
}

/// The format of what a model has most of: its experts, else its MLPs.
fn linear_format(formats: &Formats) -> Format {
    let of = |module: Module| formats.modules.iter().find(|(known, _)| *known == module).map(|(_, of)| of.format);
    of(Module::Experts).or_else(|| of(Module::Mlp)).unwrap_or(formats.base)
}
