//! What serving engines reach on the hardware: the constants of the engine model's form.

use std::collections::BTreeMap;

use super::serving_coverage::ServingCoverage;
use crate::document::{FromNode, Node, Reader};
use crate::diagnostics::Sink;
use crate::units::{Factor, Seconds};

/// Constants of accelerator generations that share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingGeneration {
    /// The generations, as accelerators name them.
    pub ids: Vec<String>,
    /// Share of the memory bandwidth at which weights are read.
    pub weights: Factor,
    /// The same of keys and values of grouped attention.
    pub keys_values: Factor,
    /// Sustained rate of matrix multiplications in prefill over the dense peak.
    pub gemm: Factor,
    /// The same of experts, in prefill and in decode.
    pub experts: Factor,
    /// Rate of attention in prefill over the dense bf16 peak.
    pub attention: Factor,
    /// Share of one direction of the scale-up links that engines' all-reduce and all-to-all reach.
    pub scale_up: Factor,
    /// Time of one operator unit beside its arithmetic and traffic: a layer's attention of grouped heads.
    pub unit: Seconds,
}

/// Constants of an engine family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineRates {
    /// Overhead of a step and its units, over TensorRT-LLM's.
    pub overhead: Factor,
    /// Time of prefill, over TensorRT-LLM's.
    pub prefill: Factor,
    /// Host time from a request's arrival to its first token, beside the steps themselves.
    pub first_token: Seconds,
}

/// Kernels, the same on every generation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingKernels {
    /// Rate of matrix multiplications in decode over the dense peak.
    pub decode_gemm: Factor,
    /// Share of the memory bandwidth at which latent attention reads its cache.
    pub latent_cache: Factor,
    /// Slowdown factor of reading NVFP4 weights outside experts: share of the rate of other formats.
    pub fp4_weights: Factor,
    /// Share of that rate at which 4-bit floating-point weights are read where the matrix units do not take them.
    pub fp4_unpacked: Factor,
    /// The same of 4-bit integers.
    pub int4_unpacked: Factor,
    /// Rate of experts in decode over the dense peak.
    pub decode_experts: Factor,
    /// Share of the memory bandwidth at which prefill reads weights.
    pub prefill_weights: Factor,
    /// Tokens that route as if independent, over those that do: routing is skewed, and fewer experts are touched.
    pub routing: Factor,
}

/// Time that neither arithmetic nor traffic explains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingOverhead {
    /// Of a step.
    pub step: Seconds,
    /// Of a sequence in a step.
    pub sequence: Seconds,
    /// Of a layer in prefill.
    pub prefill_layer: Seconds,
    /// Units of a layer of latent attention.
    pub latent: Factor,
    /// Of latent attention with an indexer.
    pub indexed: Factor,
    /// Of a recurrent layer.
    pub recurrent: Factor,
    /// Of experts.
    pub experts: Factor,
    /// What quantising activations for it adds to a unit.
    pub quantised: Factor,
    /// Time of an expert that a step touches, in one layer, beside reading it.
    pub expert: Seconds,
}

/// Messages inside a scale-up domain, by the engines' own kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingMessages {
    /// Latency of an all-reduce.
    pub all_reduce: Seconds,
    /// Latency of an all-to-all.
    pub all_to_all: Seconds,
}

/// Sharing of steps between prefill and decode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingBatching {
    /// Share of a prefill's time that the sequences in decode wait for it.
    pub stall: Factor,
    /// What a burst of prompts of one length waits in the queue of prefills, over prompts of scattered length.
    pub fixed_length: Factor,
    /// Handing a request's cache from a prefill worker to a decode worker.
    pub transfer: Seconds,
}

/// One set of constants, fitted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingEfficiency {
    /// By accelerator generation.
    pub generations: Vec<ServingGeneration>,
    /// By engine family.
    pub engines: BTreeMap<String, EngineRates>,
    /// Kernels.
    pub kernels: ServingKernels,
    /// Overheads.
    pub overhead: ServingOverhead,
    /// Messages.
    pub messages: ServingMessages,
    /// Latency of experts' dispatch, or of their combine, over network cards.
    pub exchange: Seconds,
    /// Time of a kernel of low-rank adapters, one for each factor of a projection.
    pub adapter_kernel: Seconds,
    /// Batching.
    pub batching: ServingBatching,
    /// What the constants were held against, and how far that was missed.
    pub coverage: Vec<ServingCoverage>,
}

impl ServingEfficiency {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            generations: reader.tables("generation", |r| ServingGeneration {
                ids: r.get("ids"),
                weights: r.get("weights"),
                keys_values: r.get("keys_values"),
                gemm: r.get("gemm"),
                experts: r.get("experts"),
                attention: r.get("attention"),
                scale_up: r.get("scale_up"),
                unit: r.get("unit"),
            }),
            engines: reader.get("engine"),
            kernels: reader.table("kernel", |r| ServingKernels {
                decode_gemm: r.get("decode_gemm"),
                latent_cache: r.get("latent_cache"),
                fp4_weights: r.get("fp4_weights"),
                fp4_unpacked: r.get("fp4_unpacked"),
                int4_unpacked: r.get("int4_unpacked"),
                decode_experts: r.get("decode_experts"),
                prefill_weights: r.get("prefill_weights"),
                routing: r.get("routing"),
            }),
            overhead: reader.table("overhead", |r| ServingOverhead {
                step: r.get("step"),
                sequence: r.get("sequence"),
                prefill_layer: r.get("prefill_layer"),
                latent: r.get("latent"),
                indexed: r.get("indexed"),
                recurrent: r.get("recurrent"),
                experts: r.get("experts"),
                quantised: r.get("quantised"),
                expert: r.get("expert"),
            }),
            messages: reader.table("messages", |r| ServingMessages {
                all_reduce: r.get("all_reduce"),
                all_to_all: r.get("all_to_all"),
            }),
            exchange: reader.table("network", |r| r.get("exchange")),
            adapter_kernel: reader.table("adapters", |r| r.get("kernel")),
            batching: reader.table("batching", |r| ServingBatching {
                stall: r.get("stall"),
                fixed_length: r.get("fixed_length"),
                transfer: r.get("transfer"),
            }),
            coverage: reader.tables("coverage", ServingCoverage::read),
        }
    }

    /// The constants of a generation.
    pub fn generation(&self, id: &str) -> Option<&ServingGeneration> {
        self.generations.iter().find(|generation| generation.ids.iter().any(|known| known == id))
    }
}

impl FromNode for EngineRates {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self {
            overhead: r.get("overhead"),
            prefill: r.get("prefill"),
            first_token: r.get("first_token"),
        })
    }
}
