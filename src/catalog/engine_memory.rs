//! What a serving engine keeps in accelerator memory, and how it sizes its cache.

use super::engine_version::EngineVersion;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, choices};
use crate::units::{Bytes, Fraction, Ranged};

choices! {
    /// Of what a serving engine takes its fraction for the cache.
    pub enum PoolRule {
        /// Of all memory, less what else it holds: vLLM's `gpu_memory_utilization`.
        OfTotal = "of-total",
        /// Of what is free once weights and activations are placed: TensorRT-LLM's `free_gpu_memory_fraction`.
        OfFree = "of-free",
        /// Of what is free before weights are loaded, for weights and cache; activations have the rest: SGLang's
        /// `mem_fraction_static`.
        Static = "static",
    }
}

choices! {
    /// How the pages of layers that keep different tokens share a pool.
    pub enum Paging {
        /// Each kind of layer has pages of its own and gives them back when its window has passed: the least.
        PerLayer = "per-layer",
        /// Every layer keeps every token: engines whose cache manager knows one kind of layer.
        AllTokens = "all-tokens",
        /// Every layer keeps every token in pages of one size, that of the layer which needs most: the most.
        UnifiedPages = "unified-pages",
    }
}

/// What a serving engine keeps, and how it sizes the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineMemory {
    /// How the cache's pool is sized.
    pub rule: PoolRule,
    /// The fraction; by the headroom where there is none.
    pub fraction: Option<Fraction>,
    /// What is left beside weights and cache where no fraction is given.
    pub headroom: Option<Headroom>,
    /// What versions do otherwise.
    pub otherwise: Vec<OtherVersions>,
    /// How layers that keep different tokens share the cache.
    pub paging: Paging,
    /// Whether layers that attend within chunks do so here; they attend to all tokens, and keep them, where the engine does not know
    /// of chunks.
    pub attends_in_chunks: bool,
    /// Tokens of a block of the cache.
    pub block: u32,
    /// Tokens of a forward pass at most, by default.
    pub batched_tokens: u32,
    /// Requests at most, by default.
    pub requests: u32,
    /// Requests that run at once by default, where they are more than those that memory is set aside for.
    pub running: Option<u32>,
    /// What the defaults are on accelerators of more memory.
    pub large: Option<LargeMemory>,
    /// Memory of a logit at the peak of sampling, where the engine runs that before it sizes the cache; nothing where it
    /// does not.
    pub sampled: Bytes,
    /// Memory outside the allocator of a rank alone: the context, workspaces of libraries, graphs.
    pub outside: Ranged<Bytes>,
    /// Memory outside the allocator that a rank has besides where ranks share a layer: the communicator's buffers.
    pub communicator: Ranged<Bytes>,
    /// Whether ranks that attend for requests of their own have a communicator in common too, as they do not where each is an
    /// engine of its own.
    pub one_group: bool,
    /// Workspace of all-reduces on a rank for each rank that splits matrices with it.
    pub exchange: Bytes,
    /// Whether experts have room for the tokens of all ranks that attend for requests of their own, which gather them, rather
    /// than for what is sent to them.
    pub gathers: bool,
    /// Whether a request whose adapter has no place in memory holds up those behind it; others are taken in past it where it does not.
    pub adapters_in_turn: bool,
}

/// What an engine leaves beside weights and cache by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Headroom {
    /// Always.
    pub always: Bytes,
    /// For each token of a forward pass.
    pub token: Bytes,
    /// For each request of the largest graph.
    pub request: Bytes,
    /// For each rank of a replica.
    pub rank: Bytes,
    /// On accelerators of more than that much memory, at least this.
    pub least: Option<LeastHeadroom>,
}

/// The least that is left on accelerators of more than that much memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LeastHeadroom {
    /// The memory.
    pub above: Bytes,
    /// What is left.
    pub value: Bytes,
}

impl Headroom {
    /// What is left of so much memory by a rank of a replica of so many, for forward passes of so many tokens and graphs of so
    /// many requests.
    pub fn of(&self, memory: Bytes, ranks: u32, tokens: u32, requests: u32) -> Bytes {
        let summed = self.always
            + self.token * f64::from(tokens)
            + self.request * f64::from(requests)
            + self.rank * f64::from(ranks);
        self.least.filter(|least| memory > least.above).map_or(summed, |least| summed.max(least.value))
    }
}

/// Defaults on accelerators of at least that much memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LargeMemory {
    /// The memory.
    pub from: Bytes,
    /// A word in the names of devices that keep the others all the same.
    pub but: Option<String>,
    /// Tokens of a forward pass at most.
    pub batched_tokens: u32,
    /// Requests at most.
    pub requests: u32,
}

/// What an engine does otherwise in versions before one, or from one on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherVersions {
    /// Before which.
    pub before: Option<EngineVersion>,
    /// From which on.
    pub from: Option<EngineVersion>,
    /// The fraction.
    pub fraction: Option<Fraction>,
    /// Memory of a logit at the peak of sampling.
    pub sampled: Option<Bytes>,
    /// Memory outside the allocator of a rank alone.
    pub outside: Option<Ranged<Bytes>>,
    /// The communicator's buffers.
    pub communicator: Option<Ranged<Bytes>>,
    /// Workspace of all-reduces for each rank.
    pub exchange: Option<Bytes>,
    /// Whether experts have room for the tokens of all ranks.
    pub gathers: Option<bool>,
    /// Whether requests for adapters are taken in turn.
    pub adapters_in_turn: Option<bool>,
    /// How layers share the cache.
    pub paging: Option<Paging>,
    /// Whether layers that attend within chunks do so here.
    pub attends_in_chunks: Option<bool>,
}

impl OtherVersions {
    fn has(&self, version: EngineVersion) -> bool {
        self.before.is_some_and(|before| version < before) || self.from.is_some_and(|from| version >= from)
    }
}

impl EngineMemory {
    /// Those of a version; of those in between, where it is not known.
    #[must_use]
    pub fn of_version(&self, version: Option<EngineVersion>) -> Self {
        let mut found = Self { otherwise: Vec::new(), ..self.clone() };
        for other in self.otherwise.iter().filter(|other| version.is_some_and(|version| other.has(version))) {
            found.fraction = other.fraction.or(found.fraction);
            found.sampled = other.sampled.unwrap_or(found.sampled);
            found.outside = other.outside.unwrap_or(found.outside);
            found.communicator = other.communicator.unwrap_or(found.communicator);
            found.exchange = other.exchange.unwrap_or(found.exchange);
            found.gathers = other.gathers.unwrap_or(found.gathers);
            found.adapters_in_turn = other.adapters_in_turn.unwrap_or(found.adapters_in_turn);
            found.paging = other.paging.unwrap_or(found.paging);
            found.attends_in_chunks = other.attends_in_chunks.unwrap_or(found.attends_in_chunks);
        }
        found
    }

    /// Tokens of a forward pass and requests at most on an accelerator of that name that reports that much memory.
    pub fn on(&self, device: &str, memory: Bytes) -> (u32, u32) {
        let kept = |large: &&LargeMemory| large.but.as_ref().is_some_and(|word| device.contains(word));
        let large = self.large.as_ref().filter(|large| memory >= large.from && !kept(large));
        large.map_or((self.batched_tokens, self.requests), |large| (large.batched_tokens, large.requests))
    }

    /// The same with that many requests at most, on every accelerator.
    #[must_use]
    pub fn with_requests(self, requests: u32) -> Self {
        let large = self.large.map(|large| LargeMemory { requests, ..large });
        Self { requests, running: None, large, ..self }
    }

    /// The same with that many tokens of a forward pass, on every accelerator.
    #[must_use]
    pub fn with_batched_tokens(self, tokens: u32) -> Self {
        let large = self.large.map(|large| LargeMemory { batched_tokens: tokens, ..large });
        Self { batched_tokens: tokens, large, ..self }
    }
}

impl FromNode for EngineMemory {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| {
            let found = Self {
                rule: reader.get("rule"),
                fraction: reader.optional("fraction"),
                headroom: reader.optional("headroom"),
                otherwise: reader.optional("otherwise").unwrap_or_default(),
                paging: reader.or("paging", Paging::PerLayer),
                attends_in_chunks: reader.or("attends_in_chunks", true),
                block: reader.get("block"),
                batched_tokens: reader.get("batched_tokens"),
                requests: reader.get("requests"),
                running: reader.optional("running"),
                large: reader.optional("large"),
                sampled: reader.or("sampled", Bytes::ZERO),
                outside: reader.get("outside"),
                communicator: reader.optional("communicator").unwrap_or_default(),
                one_group: reader.or("one_group", false),
                exchange: reader.or("exchange", Bytes::ZERO),
                gathers: reader.or("gathers", false),
                adapters_in_turn: reader.or("adapters_in_turn", false),
            };
            if found.fraction.is_none() && found.headroom.is_none() {
                let message = format!("`{path}` has neither a fraction nor a headroom");
                let hint = "give the share of memory as fraction, or what is left beside weights and cache as headroom";
                sink.push(Diagnostic::new(Code::MissingKey, message).at(&node.at, "in this table").hint(hint));
            }
            found
        })
    }
}

impl FromNode for Headroom {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| Self {
            always: reader.get("always"),
            token: reader.get("token"),
            request: reader.get("request"),
            rank: reader.get("rank"),
            least: reader.optional("least"),
        })
    }
}

impl FromNode for LeastHeadroom {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink)
            .map_or_else(Self::default, |mut reader| Self { above: reader.get("above"), value: reader.get("value") })
    }
}

impl FromNode for LargeMemory {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| Self {
            from: reader.get("from"),
            but: reader.optional("but"),
            batched_tokens: reader.get("batched_tokens"),
            requests: reader.get("requests"),
        })
    }
}

impl FromNode for OtherVersions {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| {
            let found = Self {
                before: reader.optional("before"),
                from: reader.optional("from"),
                fraction: reader.optional("fraction"),
                sampled: reader.optional("sampled"),
                outside: reader.optional("outside"),
                communicator: reader.optional("communicator"),
                exchange: reader.optional("exchange"),
                gathers: reader.optional("gathers"),
                adapters_in_turn: reader.optional("adapters_in_turn"),
                paging: reader.optional("paging"),
                attends_in_chunks: reader.optional("attends_in_chunks"),
            };
            if found.before.is_some() == found.from.is_some() {
                let message = format!("`{path}` does not say which versions it is about");
                let hint = "give one of before and from";
                sink.push(Diagnostic::new(Code::MissingKey, message).at(&node.at, "in this table").hint(hint));
            }
            found
        })
    }
}
