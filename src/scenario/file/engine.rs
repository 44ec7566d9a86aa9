//! What an engine of `[serving]` does beside its plain loop, as it stands in its file.

use super::expert_load::{ExpertImbalance, expert_imbalance};
use super::tenants::TenantsFile;
use crate::catalog::Reference;
use crate::diagnostics::{Code, Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema, Value, choices};
use crate::units::{Bytes, Factor, Fraction};

/// Tokens of a chunk: at least a block of usual size, and no more than any context.
const CHUNK: std::ops::RangeInclusive<u32> = 16..=100_000_000;
/// Requests of an attention group at once.
const SEQUENCES: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Tokens of a block.
const BLOCK: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Tokens drafted at once.
const DRAFTED: std::ops::RangeInclusive<u32> = 1..=64;

/// Keys of `[serving]` that change how the engine works.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct EngineFile {
    /// Drafting and verifying.
    pub(in crate::scenario) speculation: Option<SpeculationFile>,
    /// Prompts' tokens of a step, at most.
    pub(in crate::scenario) chunk_tokens: Option<u32>,
    /// Requests that an engine takes at once in an attention group, at most.
    pub(in crate::scenario) max_num_seqs: Option<u32>,
    /// Two halves of a decode batch that hide each other's exchange.
    pub(in crate::scenario) two_batch_overlap: Option<bool>,
    /// Which steps of decode are replayed as graphs.
    pub(in crate::scenario) cuda_graphs: Option<GraphsFile>,
    /// Steps that attention groups wait for each other's prompts at most.
    pub(in crate::scenario) attention_data_balance: Option<u32>,
    /// Steps of decode from one look for new requests to the next.
    pub(in crate::scenario) poll_steps: Option<u32>,
    /// Tokens of a block of the cache.
    pub(in crate::scenario) block_tokens: Option<u32>,
    /// Whether the probabilities of prompts' own tokens are asked for.
    pub(in crate::scenario) prompt_logprobs: Option<bool>,
    /// Adapters of fine-tuned models.
    pub(in crate::scenario) adapters: Option<AdaptersFile>,
    /// The part of an accelerator that each replica has.
    pub(in crate::scenario) slice: Option<SliceFile>,
    /// Tenants that share the replicas.
    pub(in crate::scenario) tenants: Option<TenantsFile>,
    /// Tokens of the busiest of ranks that hold experts whole, over their mean.
    pub(in crate::scenario) expert_imbalance: Option<ExpertImbalance>,
    /// Place of the key of the overlap.
    pub(in crate::scenario) overlap_at: Span,
    /// Place of that of graphs.
    pub(in crate::scenario) graphs_at: Span,
    /// Place of that of the balance of attention groups.
    pub(in crate::scenario) balance_at: Span,
    /// Place of the steps between looks for new requests.
    pub(in crate::scenario) polls_at: Span,
    /// Place of that of the imbalance.
    pub(in crate::scenario) imbalance_at: Span,
}

/// Steps that attention groups wait for each other's prompts, or that pass until an engine looks for new requests.
const WAITED: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// `serving.cuda_graphs`: whether steps of decode are replayed as graphs, or of which batches there are such.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum GraphsFile {
    /// Of as many as each step has, or of none.
    Replayed(bool),
    /// Of so many sequences of an attention group, in order.
    Sizes(Vec<u32>),
}

impl Default for GraphsFile {
    fn default() -> Self {
        Self::Replayed(true)
    }
}

impl GraphsFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let sizes: Vec<u32> = r
            .about("sequences of an attention group that graphs are of, each more than the one before")
            .get("batch_sizes");
        let report = |message: &str, hint: &str| r.report("batch_sizes", Code::OutOfRange, message, hint);
        if r.sink().len() > before {
            return Self::default();
        }
        if sizes.is_empty() {
            report("graphs of no batch", "such as [1, 2, 4, 8, 16], or cuda_graphs = false for none at all");
        } else if let Some((before, after)) =
            sizes.iter().zip(sizes.iter().skip(1)).find(|(before, after)| before >= after)
        {
            let message = format!("a graph of {after} sequences comes after one of {before}");
            report(&message, "each size is larger than the one before, such as [1, 2, 4, 8, 16]");
        } else if let Some(largest) = sizes.last().filter(|largest| !SEQUENCES.contains(*largest)) {
            report(&format!("a graph of {largest} sequences"), "batches have at most 1,000,000 sequences");
        }
        Self::Sizes(sizes)
    }
}

impl FromNode for GraphsFile {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_table().is_some() {
            return Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self::read(&mut r));
        }
        if let Value::Boolean(replayed) = node.value {
            return Self::Replayed(replayed);
        }
        node.wrong_type(path, "true, false, or { batch_sizes = [1, 2, 4, 8, 16] }", sink);
        Self::default()
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(Schema::Boolean), Box::new(Reader::describe(Self::read)))
    }
}

choices! {
    /// Projections that an adapter changes.
    pub enum AdapterTargets {
        /// Those of attention.
        Attention = "attention",
        /// Those of attention and of MLPs.
        All = "all",
    }
}

choices! {
    /// How processes share an accelerator.
    pub enum SharedBy {
        /// At once, each on a part of the multiprocessors (NVIDIA's multi-process service).
        Mps = "mps",
        /// In turns, each on all of it for a part of the time.
        Time = "time-slicing",
    }
}

/// Processes on an accelerator at most: clients of MPS (Volta and later; NVIDIA's Multi-Process Service, section 2.1).
const MOST_SHARERS: f64 = 48.0;

/// `serving.slice`: a part of an accelerator, by the name of its profile or by its share.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum SliceFile {
    /// A part with multiprocessors and memory of its own (multi-instance GPU).
    Profile(Reference),
    /// A share.
    Shared(SharedFile),
}

impl Default for SliceFile {
    fn default() -> Self {
        Self::Shared(SharedFile::default())
    }
}

/// A share of an accelerator.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct SharedFile {
    /// Of its multiprocessors, or of its time.
    pub(in crate::scenario) share: Fraction,
    /// Which of both.
    pub(in crate::scenario) by: SharedBy,
    /// Memory of each, where it is not the same share.
    pub(in crate::scenario) memory: Option<Bytes>,
    /// Place of the table.
    pub(in crate::scenario) at: Span,
}

impl SharedFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let read = Self {
            share: r.about("share of an accelerator that a replica has").get("share"),
            by: r.about("how replicas share it").get("by"),
            memory: r.about("memory of each replica").usually("the same share").optional("memory"),
            at: r.at().clone(),
        };
        if r.sink().len() == before && read.sharers().is_none() {
            let message =
                format!("`{}` is {}, and an accelerator takes 48 processes", r.path_of("share"), read.share.get());
            r.report("share", Code::OutOfRange, message, "such as 0.5 for two replicas on each; 1 is all of it");
        }
        if r.sink().len() == before && read.memory == Some(Bytes::ZERO) {
            r.report("memory", Code::OutOfRange, "a replica with no memory", "leave it out for the same share");
        }
        read
    }
}

impl SharedFile {
    /// How many have that share of an accelerator at once; none where it is too small for any number.
    pub(in crate::scenario) fn sharers(&self) -> Option<u32> {
        // As many as 1/3 and 0.3333 are meant to be, but for rounding.
        let sharers = (1.0 / self.share.get() + 1e-3).floor();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 48")]
        (sharers <= MOST_SHARERS).then_some(sharers as u32)
    }
}

impl FromNode for SliceFile {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_str().is_some() {
            return Self::Profile(Reference::from_node(node, path, sink));
        }
        if node.as_table().is_none() {
            node.wrong_type(path, "the name of a profile such as \"3g.40gb\", or { share = 0.5, by = \"mps\" }", sink);
            return Self::default();
        }
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self::Shared(SharedFile::read(&mut r)))
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(Reference::schema()), Box::new(Reader::describe(SharedFile::read)))
    }
}

choices! {
    /// Where a router sends requests of an adapter.
    pub enum AdapterRouting {
        /// Anywhere, as the load is least: every replica keeps what is popular.
        Balanced = "balanced",
        /// To the replica that keeps their adapter: each has a part of them.
        Aware = "adapter-aware",
    }
}

/// Adapters, and their ranks.
const ADAPTERS: std::ops::RangeInclusive<u32> = 1..=10_000_000;
const RANKS: std::ops::RangeInclusive<u32> = 1..=4_096;

/// `serving.adapters`: models fine-tuned by low-rank adapters (LoRA), served beside each other.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct AdaptersFile {
    /// How many there are.
    pub(in crate::scenario) count: u32,
    /// Rank of each.
    pub(in crate::scenario) rank: u32,
    /// How many are in the accelerators' memory at once.
    pub(in crate::scenario) resident: Option<u32>,
    /// What they change.
    pub(in crate::scenario) targets: Option<AdapterTargets>,
    /// Exponent of Zipf's law of how often each is asked for.
    pub(in crate::scenario) popularity: Option<Factor>,
    /// Memory tier that the others wait in.
    pub(in crate::scenario) from: Option<Reference>,
    /// Where requests go.
    pub(in crate::scenario) routing: Option<AdapterRouting>,
    /// Place of the table.
    pub(in crate::scenario) at: Span,
}

impl AdaptersFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            count: r.about("adapters that there are").within("count", &ADAPTERS),
            rank: r.about("rank of each").within("rank", &RANKS),
            resident: r
                .about("adapters in the accelerators' memory at once")
                .usually("all")
                .optional_within("resident", &ADAPTERS),
            targets: r.about("projections that they change").usually("\"attention\"").optional("targets"),
            popularity: r
                .about("exponent of Zipf's law of how often each is asked for: 0 is all alike")
                .usually("0")
                .optional("popularity"),
            from: r
                .about("id of the memory tier that the others wait in")
                .usually("that of the hosts")
                .optional("from"),
            routing: r.about("where a router sends requests of an adapter").usually("\"balanced\"").optional("routing"),
            at: r.at().clone(),
        }
    }
}

/// `serving.speculation`
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct SpeculationFile {
    /// The model that drafts, or "mtp".
    pub(in crate::scenario) draft: Reference,
    /// Tokens drafted for each sequence in a step.
    pub(in crate::scenario) tokens: u32,
    /// Share of them that the model would have chosen too.
    pub(in crate::scenario) acceptance: Acceptance,
    /// Place of the table.
    pub(in crate::scenario) at: Span,
}

/// Shares of drafted tokens that are accepted.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum Acceptance {
    /// Of all.
    Alike(Fraction),
    /// Of those at each place.
    ByPlace(Vec<Fraction>),
}

impl Default for Acceptance {
    fn default() -> Self {
        Self::Alike(Fraction::ZERO)
    }
}

impl FromNode for Acceptance {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        match node.value {
            Value::Array(_) => Self::ByPlace(Vec::from_node(node, path, sink)),
            _ => Self::Alike(Fraction::from_node(node, path, sink)),
        }
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(Fraction::schema()), Box::new(Vec::<Fraction>::schema()))
    }
}

impl EngineFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            speculation: r.about("tokens that are drafted and then verified in one step").usually("none").optional_table("speculation", |r| SpeculationFile {
                draft: r.about("id of the model that drafts; \"mtp\" for the checkpoint's own layer, \"eagle\" for a head that was trained apart").get("draft"),
                tokens: r.about("tokens drafted for each sequence in a step").within("tokens", &DRAFTED),
                acceptance: r.about("share of them that the model would have chosen too: of all, or of each in turn where those before were accepted").get("acceptance"),
                at: r.at().clone(),
            }),
            chunk_tokens: r.about("tokens of prompts in a step at most").usually("a prompt whole").optional_within("chunk_tokens", &CHUNK),
            max_num_seqs: r.about("requests that an attention group takes at once at most").usually("the engine's own").optional_within("max_num_seqs", &SEQUENCES),
            two_batch_overlap: r.about("whether two halves of a decode batch hide each other's exchange with experts").usually("false").optional("two_batch_overlap"),
            cuda_graphs: r.about("whether steps of decode are replayed as graphs, or of which batches there are such").usually("true").optional("cuda_graphs"),
            block_tokens: r.about("tokens of a block of the cache").usually("the engine's own").optional_within("block_tokens", &BLOCK),
            prompt_logprobs: r.about("whether the probabilities of prompts' own tokens are asked for").usually("false").optional("prompt_logprobs"),
            adapters: r.about("models fine-tuned by low-rank adapters (LoRA) that are served beside each other").usually("none").optional_table("adapters", AdaptersFile::read),
            slice: r.about("part of an accelerator that each replica has, by the name of its profile or by its share").usually("all of it").optional("slice"),
            tenants: r.about("classes of tenants that share the replicas").usually("none").optional("tenants"),
            overlap_at: r.place("two_batch_overlap"),
            graphs_at: r.place("cuda_graphs"),
            expert_imbalance: expert_imbalance(r),
            attention_data_balance: r.about("how attention groups wait for each other's prompts").usually("they do not").optional_table("attention_data_balance", |r| r.about("steps that they wait at most").within("wait_steps", &WAITED)),
            balance_at: r.place("attention_data_balance"),
            poll_steps: r.about("steps of decode from one look for new requests to the next").usually("before each step").optional_within("poll_steps", &WAITED),
            polls_at: r.place("poll_steps"),
            imbalance_at: r.place("expert_imbalance"),
        }
    }
}
