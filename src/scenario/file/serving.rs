//! `[serving]` as it stands in its file.

use crate::catalog::Reference;
use crate::catalog::model::Format;
use crate::diagnostics::{Sink, Span};
use crate::document::{FromNode, Node, Reader, choices};
use crate::units::Factor;

/// The most tokens of a request, more than any context.
const MOST_TOKENS: f64 = 100e6;
/// The most ranks of one axis of a replica.
const MOST_RANKS: u32 = 100_000;

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

/// `[serving]`
#[derive(Clone, Debug, Default)]
pub(crate) struct ServingFile {
    /// Model id.
    pub model: Reference,
    /// The engine.
    pub engine: ServingEngine,
    /// Number format of the projections, where it is not the checkpoint's.
    pub weights: Option<Format>,
    /// Number format of keys and values.
    pub kv_cache: Option<Format>,
    /// Tokens of a prompt.
    pub input_tokens: Lengths,
    /// Tokens of an answer.
    pub output_tokens: Lengths,
    /// How a replica is spread.
    pub layout: ServingLayoutFile,
}

/// A distribution of lengths: one number, or a mean and how they scatter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lengths {
    /// The mean, in tokens.
    pub mean: f64,
    /// Standard deviation over the mean; the distribution is lognormal.
    pub cv: f64,
}

impl FromNode for Lengths {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if node.as_table().is_none() {
            return Self { mean: f64::from(u32::from_node(node, path, sink)), cv: 0.0 };
        }
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self {
            mean: r.within("mean", &(1.0..=MOST_TOKENS)),
            cv: r.get::<Factor>("cv").get(),
        })
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
    /// Place of the table.
    pub at: Span,
}

impl ServingFile {
    pub(in crate::scenario) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            model: r.get("model"),
            engine: r.get("engine"),
            weights: r.optional("weights"),
            kv_cache: r.optional("kv_cache"),
            input_tokens: r.get("input_tokens"),
            output_tokens: r.get("output_tokens"),
            layout: r.table("layout", ServingLayoutFile::read),
        }
    }
}

impl ServingLayoutFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let ranks = 1..=MOST_RANKS;
        Self {
            tensor: r.within("tensor", &ranks),
            pipeline: r.optional_within("pipeline", &ranks),
            expert: r.optional_within("expert", &ranks),
            attention_data: r.optional_within("attention_data", &ranks),
            at: r.at().clone(),
        }
    }
}
