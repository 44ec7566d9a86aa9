//! `[serving]` as it stands in its file.

use super::arrivals::{Arrivals, ArrivalsFile};
use super::cache::CacheFile;
use super::engine::EngineFile;
use super::limits::Limits;
use super::tenants::{TenantFile, TenantsFile};
use super::trace::TraceFile;
use crate::catalog::Reference;
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::model::Format;
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::document::{Entry, FromNode, Node, Reader, Schema, Value, choices};
use crate::units::{Factor, Fraction};

/// The most tokens of a request, more than any context.
const MOST_TOKENS: f64 = 100e6;
/// Tokens of prompt and answer together.
const CONTEXT: std::ops::RangeInclusive<u32> = 2..=200_000_000;
/// The most ranks of one axis of a replica.
const MOST_RANKS: u32 = 100_000;
/// The most that a peak is over the mean of a day: all requests of a day within a minute and a half.
const MOST_PEAK: f64 = 1_000.0;
/// The most replicas that stand by.
const MOST_SPARES: u32 = 100_000;

choices! {
    /// The family of serving engine.
    pub enum ServingEngine {
        /// vLLM.
        Vllm = "vllm",
        /// SGLang.
        Sglang = "sglang",
        /// TensorRT-LLM.
        Trtllm = "trtllm",
    }
}

choices! {
    /// Which replica a router sends a request to.
    pub enum Balancing {
        /// Any, by chance.
        Random = "random",
        /// One after the other.
        RoundRobin = "round-robin",
        /// The one with the fewest prompts waiting, and of those the one with the fewest in decode.
        LeastLoaded = "least-loaded",
    }
}

/// `[serving]`
#[derive(Clone, Debug, Default)]
pub(crate) struct ServingFile {
    /// Model id.
    pub model: Reference,
    /// The engine.
    pub engine: ServingEngine,
    /// Its version.
    pub engine_version: Option<EngineVersion>,
    /// Share of memory that it is given, where that is not its default.
    pub memory_fraction: Option<Fraction>,
    /// Number format of the projections, where it is not the checkpoint's.
    pub weights: Option<Format>,
    /// Number format of keys and values.
    pub kv_cache: Option<Format>,
    /// Tokens of a prompt, where they are not those of agents.
    pub input_tokens: Option<Lengths>,
    /// Tokens of an answer.
    pub output_tokens: Option<Lengths>,
    /// Tokens of prompt and answer that the engine takes at most, where that is not what the model says.
    pub max_model_len: Option<u32>,
    /// Place of the lengths of prompts.
    pub lengths_at: Span,
    /// Place of the lengths of answers.
    pub answers_at: Span,
    /// Requests that were recorded, in place of both.
    pub trace: Option<TraceFile>,
    /// How requests come.
    pub arrivals: Option<ArrivalsFile>,
    /// Which replica they go to.
    pub balancing: Option<Balancing>,
    /// The most requests in a time over the mean of a day.
    pub peak_to_mean: Option<f64>,
    /// Its place.
    pub peak_at: Span,
    /// Replicas beyond those that serve the peak.
    pub spare_replicas: Option<UpTo<MOST_SPARES>>,
    /// Share of a prompt's tokens whose keys and values are at hand.
    pub prefix_hit: Option<Fraction>,
    /// What latencies must stay below.
    pub limits: Option<Limits>,
    /// Prefixes of requests, and where they are kept.
    pub(in crate::scenario) cache: Option<CacheFile>,
    /// How a replica is spread.
    pub layout: ServingLayoutFile,
    /// What the engine does beside its plain loop.
    pub(in crate::scenario) features: EngineFile,
    /// Place of the table.
    pub at: Span,
}

/// A count that may be none, such as `serving.spare_replicas`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub(crate) struct UpTo<const MOST: u32>(pub u32);

impl<const MOST: u32> FromNode for UpTo<MOST> {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let count = if let Value::Integer(count) = node.value { u32::try_from(count).ok() } else { None };
        let Some(count) = count.filter(|count| *count <= MOST) else {
            node.wrong_type(path, &format!("a whole number from 0 to {MOST}"), sink);
            return Self::default();
        };
        Self(count)
    }

    fn schema() -> Schema {
        Schema::Integer { low: 0, high: MOST.into() }
    }
}

impl<const MOST: u32> std::fmt::Display for UpTo<MOST> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A distribution of lengths: one number, or a mean and how they scatter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lengths {
    /// The mean, in tokens.
    pub mean: f64,
    /// Standard deviation over the mean; the distribution is lognormal.
    pub cv: f64,
}

impl Lengths {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            mean: r.about("their mean, in tokens").within("mean", &(1.0..=MOST_TOKENS)),
            cv: r.about("standard deviation over the mean; they are lognormal").get::<Factor>("cv").get(),
        }
    }
}

impl FromNode for Lengths {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_table().is_none() {
            return Self { mean: f64::from(u32::from_node(node, path, sink)), cv: 0.0 };
        }
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self::read(&mut r))
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(u32::schema()), Box::new(Reader::describe(Self::read)))
    }
}

/// `serving.layout`
#[derive(Clone, Debug, Default)]
pub(crate) struct ServingLayoutFile {
    /// Ranks that split every matrix.
    pub tensor: u32,
    /// Stages that split the layers.
    pub pipeline: Option<u32>,
    /// Ranks that split a layer's experts.
    pub expert: Option<u32>,
    /// Groups of tensor ranks that attend for requests of their own.
    pub attention_data: Option<u32>,
    /// Copies of routed experts in each layer beside one of each.
    pub redundant_experts: Option<UpTo<MOST_RANKS>>,
    /// Whether all of it is left to a search.
    pub search: bool,
    /// That of prefill workers, where prefill has a pool of its own and this is that of decode.
    pub prefill: Option<Box<Self>>,
    /// Accelerators of that pool.
    pub prefill_accelerators: Option<u32>,
    /// Whether accelerators that make no whole replica or prefill worker stay idle.
    pub left_over: Option<bool>,
    /// Place of the table.
    pub at: Span,
}

/// The key of a layout that asks for a search of what is left out, as that of training does; of serving there is none.
fn searched_in_part(layout: &Node) -> Option<&Entry> {
    layout.as_table()?.entries.iter().find(|entry| did_you_mean(&entry.key, ["search"]).is_some())
}

/// The layout: a table, or the word "auto", which leaves it to a search.
fn layout(r: &mut Reader<'_>) -> ServingLayoutFile {
    let shape = || {
        let one = Reader::describe(ServingLayoutFile::read_one);
        let pools = Reader::describe(ServingLayoutFile::read_pools);
        Schema::word_or("auto", Schema::Either(Box::new(one), Box::new(pools)))
    };
    if r.about("how replicas are spread: a table of degrees, tables of prefill and decode, or \"auto\"")
        .describes("layout", shape, true)
    {
        return ServingLayoutFile::default();
    }
    let node = r.node("layout");
    if let Some(entry) = node.and_then(searched_in_part) {
        let message = format!("unknown key `{}` in `{}`", entry.key, r.path_of("layout"));
        let hint = "give all degrees, or leave the whole layout to a search: layout = \"auto\"";
        r.sink().push(Diagnostic::new(Code::UnknownKey, message).at(&entry.at, "not known here").hint(hint));
        return ServingLayoutFile { search: true, tensor: 1, at: entry.at.clone(), ..ServingLayoutFile::default() };
    }
    let pools =
        |node: &&Node| ["decode", "prefill", "prefill_accelerators"].iter().any(|key| node.at_path(key).is_some());
    if node.as_ref().is_some_and(pools) {
        return r.table("layout", ServingLayoutFile::read_pools);
    }
    let Some(node) = node.filter(|node| node.as_str().is_some()) else {
        return r.table("layout", ServingLayoutFile::read_one);
    };
    if node.as_str() != Some("auto") {
        node.wrong_type(&r.path_of("layout"), "\"auto\" or a table", r.sink());
    }
    ServingLayoutFile { search: true, tensor: 1, at: node.at.clone(), ..ServingLayoutFile::default() }
}

impl ServingFile {
    pub(in crate::scenario) fn read(r: &mut Reader<'_>) -> Self {
        let mut read = Self {
            model: r.about("id of the model, or the path of a config.json beside the scenario").get("model"),
            engine: r.about("family of serving engine").get("engine"),
            engine_version: r
                .about("its version")
                .usually("the newest that is known")
                .such_as("0.19")
                .optional("engine_version"),
            memory_fraction: memory_fraction(r),
            weights: r.about("number format of the projections").usually("the checkpoint's").optional("weights"),
            kv_cache: r.about("number format of keys and values").usually("the checkpoint's").optional("kv_cache"),
            input_tokens: r
                .about("tokens of a prompt: a number, or a mean and how they scatter")
                .optional("input_tokens"),
            output_tokens: r
                .about("tokens of an answer: a number, or a mean and how they scatter")
                .optional("output_tokens"),
            max_model_len: max_model_len(r),
            lengths_at: r.place("input_tokens"),
            answers_at: r.place("output_tokens"),
            trace: r
                .about(
                    "CSV file of requests that were recorded: input_tokens, output_tokens and, where known, arrival_s",
                )
                .optional("trace"),
            arrivals: r.about("how requests come").usually("\"max\"").optional("arrivals"),
            balancing: r.about("which replica a router sends a request to").usually("\"random\"").optional("routing"),
            peak_to_mean: r
                .about("the most requests in a time over the mean of a day")
                .usually("1")
                .optional_within("peak_to_mean", &(1.0..=MOST_PEAK)),
            peak_at: r.place("peak_to_mean"),
            spare_replicas: r
                .about("replicas beyond those that serve the peak")
                .usually("0")
                .optional("spare_replicas"),
            prefix_hit: r
                .about("share of a prompt's tokens whose keys and values are at hand")
                .usually("0")
                .optional("prefix_hit"),
            limits: r
                .about("what latencies must stay below")
                .usually("no limits")
                .optional_table("limits", Limits::read),
            cache: r
                .about("prefixes of requests and where they are kept")
                .usually("none")
                .optional_table("cache", CacheFile::read),
            layout: layout(r),
            features: EngineFile::read(r),
            at: r.at().clone(),
        };
        read.of_tenants(r);
        read.limits_of_tenants(r);
        read
    }

    /// Refuses a limit of all tenants where every class has its own in its place.
    fn limits_of_tenants(&self, r: &Reader<'_>) {
        let (Some(general), Some(tenants)) = (self.limits, &self.features.tenants) else { return };
        let own = |place: usize| {
            let has = |class: &TenantFile| class.limits.is_some_and(|limits| limits.named()[place].1.is_some());
            !tenants.0.is_empty() && tenants.0.iter().all(has)
        };
        for (place, (key, _)) in general.named().into_iter().enumerate().filter(|(_, (_, limit))| limit.is_some()) {
            if own(place) {
                let message =
                    format!("`serving.limits.{key}` holds for nobody: every class of `serving.tenants` has its own");
                let hint = "leave it out here, or in the classes that it is to hold for";
                r.report(&format!("limits.{key}"), Code::Inconsistent, message, hint);
            }
        }
    }

    /// What comes on average where requests are those of tenants.
    fn of_tenants(&mut self, r: &Reader<'_>) {
        let Some(arrivals) = self.arrivals.as_mut().filter(|arrivals| arrivals.terms.tenants) else { return };
        let mean = self.features.tenants.as_ref().map(TenantsFile::mean);
        if mean.is_none() {
            let message = "requests are those of tenants, and there are no `serving.tenants`";
            let hint = "add tenants = { count = 10, mean = \"1 request/s\", peak = \"3 request/s\" }";
            r.report("arrivals", Code::MissingKey, message, hint);
        }
        arrivals.kind = Some(Arrivals::Rate(mean.unwrap_or_default()));
    }
}

/// Tokens of a request at most. Where they are written wrongly, none is said to be longer.
fn max_model_len(r: &mut Reader<'_>) -> Option<u32> {
    let before = r.sink().len();
    let tokens = r
        .about("tokens of prompt and answer together that the engine takes at most")
        .usually("the model's own")
        .optional_within("max_model_len", &CONTEXT);
    tokens.map(|tokens| if r.sink().len() == before { tokens } else { *CONTEXT.end() })
}

/// A share of memory, more than none.
fn memory_fraction(r: &mut Reader<'_>) -> Option<Fraction> {
    let before = r.sink().len();
    let fraction: Option<Fraction> =
        r.about("share of memory that the engine is given").usually("the engine's own").optional("memory_fraction");
    if r.sink().len() == before && fraction == Some(Fraction::ZERO) {
        r.report(
            "memory_fraction",
            Code::OutOfRange,
            "an engine with no memory",
            "such as 0.9; leave it out for the default",
        );
    }
    fraction
}

impl ServingLayoutFile {
    /// Pools of prefill and decode.
    fn read_pools(r: &mut Reader<'_>) -> Self {
        Self {
            prefill: Some(Box::new(r.about("how a worker of prefill is spread").table("prefill", Self::read))),
            prefill_accelerators: r
                .about("accelerators of the pool of prefill")
                .usually("as many as balance it with decode's")
                .optional_within("prefill_accelerators", &(1..=MOST_RANKS * 100)),
            left_over: r
                .about("whether accelerators that make no whole replica or worker stay idle")
                .usually("false of a layout that is given")
                .optional("left_over"),
            ..r.about("how a replica of decode is spread").table("decode", Self::read)
        }
    }

    /// Replicas that prefill and decode.
    fn read_one(r: &mut Reader<'_>) -> Self {
        Self {
            left_over: r
                .about("whether accelerators that make no whole replica stay idle")
                .usually("false of a layout that is given")
                .optional("left_over"),
            ..Self::read(r)
        }
    }

    fn read(r: &mut Reader<'_>) -> Self {
        let ranks = 1..=MOST_RANKS;
        Self {
            tensor: r.about("ranks that split every matrix").within("tensor", &ranks),
            pipeline: r.about("stages that split the layers").usually("1").optional_within("pipeline", &ranks),
            expert: r.about("ranks that hold a layer's experts whole").usually("1").optional_within("expert", &ranks),
            attention_data: r
                .about("groups of tensor ranks that attend for requests of their own")
                .usually("1")
                .optional_within("attention_data", &ranks),
            redundant_experts: r
                .about("copies of routed experts in each layer beside one of each")
                .usually("0")
                .optional("redundant_experts"),
            search: false,
            prefill: None,
            prefill_accelerators: None,
            left_over: None,
            at: r.at().clone(),
        }
    }
}
