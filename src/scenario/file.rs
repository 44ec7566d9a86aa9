//! What the user typed: ids with their places, quantities with their units, nothing bound yet.

use super::keys::KEYS;
use crate::catalog::Reference;
use crate::catalog::training_efficiency::{AttentionKernel, Framework};
use crate::diagnostics::{Code, Diagnostic, Sink, Span, did_you_mean};
use crate::document::{Entry, FromNode, Node, Reader, Value, choices};
use crate::parallelism::{RankOrder, Recompute, Schedule, Sharding};
use crate::units::{Fraction, Quantity, SECONDS_PER_DAY, Seconds, Tokens};
use crate::workload::{CheckpointMode, GradientPrecision, Optimizer, Precision};

/// The most accelerators of a cluster, far above any announced.
const MOST_ACCELERATORS: u32 = 10_000_000;
/// The most planes that a port is split into.
const MOST_PLANES: u32 = 8;
/// The shortest and the longest time, in days, over which costs are added up or parts written off.
const LIVES: [f64; 2] = [1.0, 36_500.0];
/// The longest title, in characters.
const LONGEST_TITLE: usize = 200;
/// The least share of hours sold, a minute of a day, below which costs of an hour say nothing.
const LEAST_UTILISATION: f64 = 1.0 / 1_440.0;

choices! {
    /// The kind of network topology.
    pub enum TopologyKind {
        /// Fat tree whose leaves each serve one rail: NIC i of every node of a unit.
        RailFatTree = "rail-fat-tree",
        /// Fat tree whose leaves each take all cards of their nodes.
        TorFatTree = "tor-fat-tree",
        /// A network for each rail and nothing between them: other rails are reached through the scale-up domain.
        RailOnly = "rail-only",
        /// Fat tree whose ports are split into slower ones, each in a network of its own (two leaves a card: dual-ToR).
        MultiPlane = "multi-plane",
        /// Groups of leaves and spines, whose spines are joined directly, every group with every other.
        DragonflyPlus = "dragonfly-plus",
        /// No switches: cards are joined to those of the neighbours in two or three dimensions.
        Torus = "torus",
    }
}

/// A scenario as it stands in its file.
#[derive(Clone, Debug, Default)]
pub struct ScenarioFile {
    /// What is asked, in a line.
    pub title: String,
    /// What is built.
    pub cluster: ClusterFile,
    /// The software, where given.
    pub software: SoftwareFile,
    /// The training job.
    pub training: Option<TrainingFile>,
    /// Money.
    pub finance: FinanceFile,
    /// What `compare` varies.
    pub compare: Option<CompareFile>,
}

/// `[cluster]`
#[derive(Clone, Debug, Default)]
pub struct ClusterFile {
    /// Node id.
    pub node: Reference,
    /// Accelerators at work.
    pub accelerators: u32,
    /// Where that number was written.
    pub accelerators_at: Span,
    /// Share of accelerators bought on top.
    pub spares: Option<Fraction>,
    /// Fabric id.
    pub fabric: Reference,
    /// How the fabric is built.
    pub topology: TopologyFile,
    /// Site id.
    pub site: Reference,
    /// Price book id.
    pub prices: Reference,
    /// Checkpoint storage.
    pub storage: Option<Reference>,
    /// Units of that storage.
    pub storage_units: Option<u32>,
    /// Failure rates.
    pub reliability: Option<Reference>,
}

/// `cluster.topology`
#[derive(Clone, Debug, Default)]
pub struct TopologyFile {
    /// Its kind.
    pub kind: TopologyKind,
    /// Tiers of switches.
    pub tiers: TierCount,
    /// Accelerators in a pod; in a group, of a dragonfly.
    pub pod: Option<u32>,
    /// Planes that each port is split into.
    pub planes: Option<u32>,
    /// Downward over upward bandwidth at each tier boundary, lowest first.
    pub oversubscription: Vec<f64>,
    /// Place of the table, for reports.
    pub at: Span,
}

/// How many tiers of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TierCount {
    /// As few as reach every node.
    #[default]
    Auto,
    /// So many.
    Fixed(u32),
}

/// Where the software's keys stand; empty where they are left to defaults.
#[derive(Clone, Debug, Default)]
pub struct SoftwarePlaces {
    /// Of the date.
    pub date: Option<Span>,
    /// Of the framework.
    pub framework: Option<Span>,
    /// Of the attention kernel.
    pub attention_kernel: Option<Span>,
}

/// `[software]`
#[derive(Clone, Debug, Default)]
pub struct SoftwareFile {
    /// `"2024-04"`, as a decimal year.
    pub date: Option<SoftwareDate>,
    /// Framework class.
    pub framework: Option<Framework>,
    /// Attention kernel.
    pub attention_kernel: Option<AttentionKernel>,
    /// Places of the three, for reports.
    pub places: SoftwarePlaces,
    /// Overlap flags: tensor, data, expert.
    pub overlap: [Option<bool>; 3],
}

/// `[training]`
#[derive(Clone, Debug, Default)]
pub struct TrainingFile {
    /// Model id.
    pub model: Reference,
    /// Data type of weights and matrix multiplications.
    pub precision: Precision,
    /// Data type that gradients are accumulated and reduced in.
    pub gradients: Option<GradientPrecision>,
    /// The optimizer.
    pub optimizer: Option<Optimizer>,
    /// Tokens of a sequence.
    pub sequence_length: u32,
    /// Sequences or tokens of a step.
    pub global_batch: GlobalBatch,
    /// Place of it.
    pub global_batch_at: Span,
    /// Tokens of the run.
    pub tokens: Tokens,
    /// Where they were written.
    pub tokens_at: Span,
    /// How checkpoints are written.
    pub checkpoint: Option<CheckpointMode>,
    /// The layout.
    pub layout: LayoutFile,
}

/// A batch in sequences, or in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GlobalBatch {
    /// So many sequences.
    Sequences(u32),
    /// So many tokens.
    Tokens(Tokens),
}

/// `training.layout`
#[derive(Clone, Debug, Default)]
pub struct LayoutFile {
    /// Degrees: tensor, pipeline, virtual stages, context, expert, micro batch.
    pub tensor: u32,
    /// Pipeline stages.
    pub pipeline: u32,
    /// Model chunks a stage.
    pub virtual_stages: Option<u32>,
    /// Context-parallel ranks.
    pub context: Option<u32>,
    /// Expert-parallel ranks.
    pub expert: Option<u32>,
    /// Sequences of a microbatch.
    pub micro_batch: u32,
    /// Pipeline schedule.
    pub schedule: Option<Schedule>,
    /// What data parallelism shards.
    pub sharding: Option<Sharding>,
    /// What the backward pass computes again.
    pub recompute: Option<Recompute>,
    /// Whether norms and residuals are split along the sequence.
    pub sequence_parallel: Option<bool>,
    /// Order of the axes in global ranks.
    pub order: Option<RankOrder>,
    /// Place of the table.
    pub at: Span,
}

/// `[finance]`
#[derive(Clone, Debug, Default)]
pub struct FinanceFile {
    /// How long the cluster is held.
    pub horizon: Option<Seconds>,
    /// How long accelerators earn.
    pub accelerator_life: Option<Seconds>,
    /// Cost of capital a year.
    pub cost_of_capital: Option<Fraction>,
    /// Share of hours sold or used.
    pub utilisation: Option<Fraction>,
}

/// `[compare]`
#[derive(Clone, Debug, Default)]
pub struct CompareFile {
    /// Keys and the values that each takes.
    pub vary: Vec<(String, Vec<Node>)>,
    /// The value that the others are held against.
    pub baseline: Option<Reference>,
}

impl ScenarioFile {
    /// Reads a scenario; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        let Some(reader) = Reader::new(document, "", sink) else { return Self::default() };
        let reader = &mut reader.knowing(KEYS);
        let file = Self {
            title: title(reader),
            cluster: reader.table("cluster", ClusterFile::read),
            software: reader.optional_table("software", SoftwareFile::read).unwrap_or_default(),
            training: reader.optional_table("training", TrainingFile::read),
            finance: reader.optional_table("finance", FinanceFile::read).unwrap_or_default(),
            compare: reader.optional_table("compare", CompareFile::read),
        };
        if file.training.is_none() && document.at_path("training").is_none() {
            sink.push(
                Diagnostic::new(Code::MissingKey, "the scenario asks for nothing: `training` is missing")
                    .at(&document.at, "in this file")
                    .hint("add a [training] table with model, precision, sequence_length, global_batch, tokens and layout"),
            );
        }
        file
    }
}

/// The title, which is one line.
fn title(r: &mut Reader<'_>) -> String {
    let title: String = r.get("title");
    if title.chars().any(char::is_control) {
        let message = "`title` has a line break or another control character";
        r.report("title", Code::OutOfRange, message, "write it in one line");
    }
    let length = title.chars().count();
    if length > LONGEST_TITLE {
        let message = format!("`title` has {length} characters; at most {LONGEST_TITLE} are taken");
        r.report("title", Code::OutOfRange, message, "ask one question, in a line");
    }
    title
}

impl ClusterFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            node: r.get("node"),
            accelerators: r.within("accelerators", &(1..=MOST_ACCELERATORS)),
            accelerators_at: r.place("accelerators"),
            spares: r.optional("spares"),
            fabric: r.get("fabric"),
            topology: r
                .optional_table("topology", TopologyFile::read)
                .unwrap_or_else(|| TopologyFile { at: r.at().clone(), ..TopologyFile::default() }),
            site: r.get("site"),
            prices: r.get("prices"),
            storage: r.optional("storage"),
            storage_units: r.optional_within("storage_units", &(1..=MOST_ACCELERATORS)),
            reliability: r.optional("reliability"),
        }
    }
}

impl TopologyFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let oversubscription: Vec<f64> = r.or("oversubscription", Vec::new());
        if let Some(low) = oversubscription.iter().find(|ratio| **ratio < 1.0) {
            let message = format!("an oversubscription of {low} gives a tier more bandwidth up than down");
            r.report("oversubscription", Code::OutOfRange, message, "1 is full bisection; 7 is a seventh of it");
        }
        if oversubscription.len() > 3 {
            r.report(
                "oversubscription",
                Code::OutOfRange,
                "there are at most three tier boundaries",
                "one figure a tier, lowest first: [1, 1, 7]",
            );
        }
        Self {
            kind: r.or("kind", TopologyKind::RailFatTree),
            tiers: r.or("tiers", TierCount::Auto),
            pod: r.optional_within("pod", &(1..=MOST_ACCELERATORS)),
            planes: r.optional_within("planes", &(1..=MOST_PLANES)),
            oversubscription,
            at: r.at().clone(),
        }
    }
}

impl FromNode for TierCount {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        match &node.value {
            Value::String(word) if word == "auto" => Self::Auto,
            Value::Integer(count @ 1..=3) => Self::Fixed(u32::try_from(*count).unwrap_or(1)),
            _ => {
                node.wrong_type(path, "\"auto\", 1, 2 or 3", sink);
                Self::Auto
            }
        }
    }
}

impl SoftwareFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let overlap = r.optional_table("overlap", |r| [r.optional("tensor"), r.optional("data"), r.optional("expert")]);
        Self {
            date: r.optional("date"),
            framework: r.optional("framework"),
            attention_kernel: r.optional("attention_kernel"),
            places: SoftwarePlaces {
                date: r.place_of("date"),
                framework: r.place_of("framework"),
                attention_kernel: r.place_of("attention_kernel"),
            },
            overlap: overlap.unwrap_or_default(),
        }
    }
}

impl TrainingFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            model: r.get("model"),
            precision: r.get("precision"),
            gradients: r.optional("gradients"),
            optimizer: r.optional("optimizer"),
            sequence_length: r.get("sequence_length"),
            global_batch: r.get("global_batch"),
            global_batch_at: r.place("global_batch"),
            tokens: positive_tokens(r),
            tokens_at: r.place("tokens"),
            checkpoint: r.optional("checkpoint"),
            layout: r.table("layout", LayoutFile::read),
        }
    }
}

/// The token budget, which must not be zero.
fn positive_tokens(r: &mut Reader<'_>) -> Tokens {
    let before = r.sink().len();
    let tokens: Tokens = r.get("tokens");
    if r.sink().len() == before && tokens <= Tokens::ZERO {
        r.report("tokens", Code::OutOfRange, "`training.tokens` is zero", "such as \"15.6 Ttoken\"");
    }
    tokens
}

impl Default for GlobalBatch {
    fn default() -> Self {
        Self::Sequences(1)
    }
}

impl FromNode for GlobalBatch {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_str().is_some() {
            Self::Tokens(Tokens::from_node(node, path, sink))
        } else {
            Self::Sequences(u32::from_node(node, path, sink))
        }
    }
}

impl LayoutFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            tensor: r.get("tensor"),
            pipeline: r.get("pipeline"),
            virtual_stages: r.optional("virtual_stages"),
            context: r.optional("context"),
            expert: r.optional("expert"),
            micro_batch: r.get("micro_batch"),
            schedule: r.optional("schedule"),
            sharding: r.optional("sharding"),
            recompute: r.optional("recompute"),
            sequence_parallel: r.optional("sequence_parallel"),
            order: r.optional("order"),
            at: r.at().clone(),
        }
    }
}

impl FinanceFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let [shortest, longest] = LIVES.map(|days| Seconds::new(days * SECONDS_PER_DAY));
        let read = Self {
            horizon: r.optional_within("horizon", &(shortest..=longest)),
            accelerator_life: r.optional_within("accelerator_life", &(shortest..=longest)),
            cost_of_capital: r.optional("cost_of_capital"),
            utilisation: None,
        };
        let before = r.sink().len();
        let read = Self { utilisation: r.optional("utilisation"), ..read };
        if r.sink().len() == before && read.utilisation.is_some_and(|share| share.get() < LEAST_UTILISATION) {
            let message = "`finance.utilisation` is less than a minute a day: no hour is ever sold";
            r.report("utilisation", Code::OutOfRange, message, "such as 0.8");
        }
        read
    }
}

impl CompareFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let Some(node) = r.node("vary") else { return Self { vary: Vec::new(), baseline: r.optional("baseline") } };
        let mut vary = Vec::new();
        match &node.value {
            Value::Table(table) => {
                for entry in &table.entries {
                    check_varied(entry, r.sink());
                    match &entry.node.value {
                        Value::Array(values) if !values.is_empty() => vary.push((entry.key.clone(), values.clone())),
                        _ => {
                            let path = format!("compare.vary.{}", entry.key);
                            entry.node.wrong_type(&path, "a list of values", r.sink());
                        }
                    }
                }
            }
            _ => node.wrong_type("compare.vary", "a table of keys, each with its values", r.sink()),
        }
        Self { vary, baseline: r.optional("baseline") }
    }
}

/// Reports a varied key that a scenario does not have.
fn check_varied(entry: &Entry, sink: &Sink) {
    let varies = |key: &str| key != "compare" && !key.starts_with("compare.");
    if KEYS.contains(&entry.key.as_str()) && varies(&entry.key) {
        return;
    }
    let hint = did_you_mean(&entry.key, KEYS.iter().copied().filter(|key| varies(key))).map_or_else(
        || "name a key by its dotted path, such as \"cluster.fabric\"".to_owned(),
        |key| format!("did you mean \"{key}\"?"),
    );
    let message = format!("unknown key `{}` in `compare.vary`", entry.key);
    sink.push(Diagnostic::new(Code::UnknownKey, message).at(&entry.at, "no scenario has it").hint(hint));
}

/// A month, `"2024-04"`, as a decimal year.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct SoftwareDate(pub f64);

impl Default for SoftwareDate {
    /// Stands in for a month whose mistake has been reported, and must not bring on another: one that was measured.
    fn default() -> Self {
        Self(2025.0)
    }
}

impl FromNode for SoftwareDate {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let parsed = node.as_str().and_then(|text| {
            let (year, month) = text.split_once('-').filter(|(year, month)| year.len() == 4 && month.len() == 2)?;
            // Digits alone: a sign would parse too.
            (year.bytes().chain(month.bytes()).all(|byte| byte.is_ascii_digit())).then_some(())?;
            let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
            ((2000..2100).contains(&year) && (1..=12).contains(&month))
                .then(|| f64::from(year) + f64::from(month - 1) / 12.0)
        });
        parsed.map_or_else(
            || {
                node.wrong_type(path, "a month such as \"2024-04\"", sink);
                Self::default()
            },
            Self,
        )
    }
}

/// Sequences of a batch, or a report where tokens do not make up whole sequences.
pub(super) fn sequences(batch: GlobalBatch, at: &Span, sequence_length: u32, sink: &Sink) -> u32 {
    match batch {
        GlobalBatch::Sequences(count) => count,
        GlobalBatch::Tokens(tokens) => {
            // The base number, because a count of sequences is wanted.
            let count = tokens.base() / f64::from(sequence_length);
            if count.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&count) {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked to be a whole number in range"
                )]
                return count as u32;
            }
            let message = format!("{tokens} are no whole number of sequences of {sequence_length}");
            let hint = format!(
                "{} sequences would be {}",
                count.floor().max(1.0),
                Tokens::new(count.floor().max(1.0) * f64::from(sequence_length))
            );
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "does not divide").hint(hint));
            1
        }
    }
}
