//! What serving engines reach on the hardware: the constants of the engine model's form.

use std::collections::BTreeMap;

use super::constant_set::{ConstantSet, FreeConstant, push_constants};
use super::engine_version::EngineVersion;
use super::serving_coverage::ServingCoverage;
use crate::document::{FromNode, Node, Reader};
use crate::diagnostics::Sink;
use crate::units::{Factor, Fraction, Ranged, Seconds};

/// Constants of accelerator generations that share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingGeneration {
    /// The generations, as accelerators name them.
    pub ids: Vec<String>,
    /// Share of the memory bandwidth at which weights are read.
    pub weights: Ranged<Fraction>,
    /// Share of that rate at which NVFP4 weights outside experts are read.
    pub fp4_weights: Ranged<Fraction>,
    /// Share of the memory bandwidth at which keys and values of grouped attention are read.
    pub keys_values: Ranged<Fraction>,
    /// Sustained rate of matrix multiplications in prefill over the dense peak.
    pub gemm: Ranged<Fraction>,
    /// The same of experts, in prefill and in decode.
    pub experts: Ranged<Fraction>,
    /// Rate of attention in prefill over the dense bf16 peak.
    pub attention: Ranged<Fraction>,
    /// Share of one direction of the scale-up links that engines' all-reduce and all-to-all reach.
    pub scale_up: Ranged<Fraction>,
    /// Time of one operator unit beside its arithmetic and traffic: a layer's attention of grouped heads.
    pub unit: Ranged<Seconds>,
    /// Engines whose kernels of decode that know of attention in chunks read keys and values for each query head, rather than once for
    /// all heads that share them.
    pub chunks_by_head: Vec<String>,
    /// Engines whose ranks gather the tokens of all for the experts in every version: their kernels that send each token to its experts'
    /// ranks alone do not run here.
    pub gathers: Vec<String>,
}

/// Constants of an engine family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineRates {
    /// Overhead of a step and its units, over TensorRT-LLM's.
    pub overhead: Ranged<Factor>,
    /// Time of prefill, over TensorRT-LLM's.
    pub prefill: Ranged<Factor>,
    /// Time of a layer in prefill, in units of grouped attention, beside its arithmetic and traffic: kernels are launched one
    /// by one unless an engine captures graphs of prefills too.
    pub prefill_layer: Ranged<Seconds>,
    /// Host time from a request's arrival to its first token, beside the steps themselves.
    pub first_token: Ranged<Seconds>,
    /// Host time of a step for each sequence in it: scheduling it and taking its token, ahead of the device where no stage waits for
    /// it.
    pub host: Ranged<Seconds>,
    /// The first version whose ranks send each token to the ranks of its experts, where those of earlier ones gather all tokens and
    /// scatter what comes back.
    pub gathered_before: Option<EngineVersion>,
}

impl EngineRates {
    /// Whether ranks gather all tokens for the experts, in a version that is known to.
    pub fn gathers(&self, version: Option<EngineVersion>) -> bool {
        version.zip(self.gathered_before).is_some_and(|(version, first)| version < first)
    }
}

/// Kernels, the same on every generation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingKernels {
    /// Rate of matrix multiplications in decode over the dense peak.
    pub decode_gemm: Ranged<Fraction>,
    /// Share of the memory bandwidth at which latent attention reads its cache.
    pub latent_cache: Ranged<Fraction>,
    /// Rate of attention to latents in decode over the dense peak of 16 bits.
    pub latent_attention: Ranged<Fraction>,
    /// Share of that rate at which 4-bit floating-point weights are read where the matrix units do not take them.
    pub fp4_unpacked: Ranged<Fraction>,
    /// The same of 4-bit integers.
    pub int4_unpacked: Ranged<Fraction>,
    /// Rate of experts in decode over the dense peak.
    pub decode_experts: Ranged<Fraction>,
    /// Share of the memory bandwidth at which prefill reads weights.
    pub prefill_weights: Ranged<Fraction>,
    /// Rate of experts in prefill whose scales of blocks the matrix units take, over the rate of others.
    pub block_scaled: Ranged<Factor>,
    /// Tokens that route as if independent, over those that do: routing is skewed, and fewer experts are touched.
    pub routing: Ranged<Factor>,
}

/// Time that neither arithmetic nor traffic explains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingOverhead {
    /// Of a step.
    pub step: Ranged<Seconds>,
    /// Of a sequence in a step.
    pub sequence: Ranged<Seconds>,
    /// Units of a layer of latent attention.
    pub latent: Ranged<Factor>,
    /// Of latent attention with an indexer.
    pub indexed: Ranged<Factor>,
    /// Of a recurrent layer.
    pub recurrent: Ranged<Factor>,
    /// Of experts.
    pub experts: Ranged<Factor>,
    /// What quantising activations to 8 bits for it adds to a unit, with scales that are known before.
    pub quantised: Ranged<Factor>,
    /// The same with scales of blocks, which are the activations' own.
    pub quantised_blocks: Ranged<Factor>,
    /// The same to NVFP4.
    pub quantised_fp4: Ranged<Factor>,
    /// Time of an expert that a step touches, in one layer, beside reading it.
    pub expert: Ranged<Seconds>,
}

/// Processes that share an accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingSharing {
    /// Time that switching between those that take turns takes, over the time that they compute.
    pub switching: Factor,
    /// How much longer those that compute at once may take beside each other than with the same share of multiprocessors alone.
    pub interference: Factor,
}

/// Exchanges of tokens with experts over network cards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingNetwork {
    /// Latency of experts' dispatch, or of their combine.
    pub exchange: Seconds,
    /// Time in which kernels send and receive one token of a rank in both; nothing is computed meanwhile.
    pub kernel: Seconds,
}

/// Messages inside a scale-up domain, by the engines' own kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingMessages {
    /// Latency of an all-reduce.
    pub all_reduce: Ranged<Seconds>,
    /// Latency of an all-to-all.
    pub all_to_all: Ranged<Seconds>,
    /// Latency of gathering the tokens of ranks, or of scattering what comes back.
    pub gather: Ranged<Seconds>,
    /// Share of one direction of the links that an exchange of many tokens with experts reaches.
    pub exchange: Ranged<Fraction>,
}

/// Sharing of steps between prefill and decode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingBatching {
    /// Share of a prefill's time that the sequences in decode wait for it.
    pub stall: Ranged<Factor>,
    /// What a burst of prompts of one length waits in the queue of prefills, over prompts of scattered length.
    pub fixed_length: Ranged<Factor>,
    /// Handing a request's cache from a prefill worker to a decode worker.
    pub transfer: Ranged<Seconds>,
}

/// Tokens of the busiest of ranks that hold experts whole, over their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpertImbalance {
    /// Where experts and copies are placed by load.
    pub placed: Ranged<Factor>,
    /// Where they lie as they come.
    pub unplaced: Ranged<Factor>,
}

/// One set of constants, fitted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingEfficiency {
    /// Of accelerator generations, by a name for those that share them.
    pub generations: BTreeMap<String, ServingGeneration>,
    /// By engine family.
    pub engines: BTreeMap<String, EngineRates>,
    /// Kernels.
    pub kernels: ServingKernels,
    /// Overheads.
    pub overhead: ServingOverhead,
    /// Messages.
    pub messages: ServingMessages,
    /// Exchanges over network cards.
    pub network: ServingNetwork,
    /// Time of a kernel of low-rank adapters, one for each factor of a projection.
    pub adapter_kernel: Seconds,
    /// The host's time to launch the kernels of a layer, or of its experts, one by one, without graphs.
    pub eager_unit: Seconds,
    /// Processes on one accelerator.
    pub sharing: ServingSharing,
    /// Batching.
    pub batching: ServingBatching,
    /// How unevenly experts are asked for.
    pub imbalance: ExpertImbalance,
    /// What the constants were held against, and how far that was missed.
    pub coverage: Vec<ServingCoverage>,
}

impl ServingEfficiency {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            generations: reader.get("generation"),
            engines: reader.get("engine"),
            kernels: reader.table("kernel", |r| ServingKernels {
                decode_gemm: r.get("decode_gemm"),
                latent_cache: r.get("latent_cache"),
                latent_attention: r.get("latent_attention"),
                fp4_unpacked: r.get("fp4_unpacked"),
                int4_unpacked: r.get("int4_unpacked"),
                decode_experts: r.get("decode_experts"),
                prefill_weights: r.get("prefill_weights"),
                block_scaled: r.get("block_scaled"),
                routing: r.get("routing"),
            }),
            overhead: reader.table("overhead", |r| ServingOverhead {
                step: r.get("step"),
                sequence: r.get("sequence"),
                latent: r.get("latent"),
                indexed: r.get("indexed"),
                recurrent: r.get("recurrent"),
                experts: r.get("experts"),
                quantised: r.get("quantised"),
                quantised_blocks: r.get("quantised_blocks"),
                quantised_fp4: r.get("quantised_fp4"),
                expert: r.get("expert"),
            }),
            messages: reader.table("messages", |r| ServingMessages {
                all_reduce: r.get("all_reduce"),
                all_to_all: r.get("all_to_all"),
                gather: r.get("gather"),
                exchange: r.get("exchange"),
            }),
            network: reader
                .table("network", |r| ServingNetwork { exchange: r.get("exchange"), kernel: r.get("kernel") }),
            adapter_kernel: reader.table("adapters", |r| r.get("kernel")),
            eager_unit: reader.table("eager", |r| r.get("unit")),
            sharing: reader.table("sharing", |r| ServingSharing {
                switching: r.get("switching"),
                interference: r.get("interference"),
            }),
            batching: reader.table("batching", |r| ServingBatching {
                stall: r.get("stall"),
                fixed_length: r.get("fixed_length"),
                transfer: r.get("transfer"),
            }),
            imbalance: reader.table("imbalance", |r| ExpertImbalance {
                placed: r.get("placed"),
                unplaced: r.get("unplaced"),
            }),
            coverage: reader.tables("coverage", ServingCoverage::read),
        }
    }

    /// The constants of a generation.
    pub fn generation(&self, id: &str) -> Option<&ServingGeneration> {
        self.generations.values().find(|generation| generation.ids.iter().any(|known| known == id))
    }
}

impl ConstantSet for ServingEfficiency {
    fn constants_mut(&mut self) -> Vec<(String, FreeConstant<'_>)> {
        let mut all = Vec::new();
        for (id, generation) in &mut self.generations {
            let path = format!("generation.{id}");
            push_constants!(all, path, generation, Share: weights, fp4_weights, keys_values, gemm, experts, attention, scale_up);
            push_constants!(all, path, generation, Time: unit);
        }
        for (id, engine) in &mut self.engines {
            let path = format!("engine.{id}");
            push_constants!(all, path, engine, Factor: overhead, prefill);
            push_constants!(all, path, engine, Time: prefill_layer, first_token, host);
        }
        let kernels = &mut self.kernels;
        push_constants!(all, "kernel", kernels, Share: decode_gemm, decode_experts, latent_cache, latent_attention);
        push_constants!(all, "kernel", kernels, Share: fp4_unpacked, int4_unpacked, prefill_weights);
        push_constants!(all, "kernel", kernels, Factor: block_scaled, routing);
        let overhead = &mut self.overhead;
        push_constants!(all, "overhead", overhead, Time: step, sequence, expert);
        push_constants!(all, "overhead", overhead, Factor: latent, indexed, recurrent, experts);
        push_constants!(all, "overhead", overhead, Factor: quantised, quantised_blocks, quantised_fp4);
        push_constants!(all, "messages", self.messages, Time: all_reduce, all_to_all, gather);
        push_constants!(all, "messages", self.messages, Share: exchange);
        push_constants!(all, "batching", self.batching, Factor: stall, fixed_length);
        push_constants!(all, "batching", self.batching, Time: transfer);
        all
    }
}

impl FromNode for ServingGeneration {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self {
            ids: r.get("ids"),
            weights: r.get("weights"),
            fp4_weights: r.get("fp4_weights"),
            keys_values: r.get("keys_values"),
            gemm: r.get("gemm"),
            experts: r.get("experts"),
            attention: r.get("attention"),
            scale_up: r.get("scale_up"),
            unit: r.get("unit"),
            chunks_by_head: r.optional("chunks_by_head").unwrap_or_default(),
            gathers: r.optional("gathers").unwrap_or_default(),
        })
    }
}

impl FromNode for EngineRates {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut r| Self {
            overhead: r.get("overhead"),
            prefill: r.get("prefill"),
            prefill_layer: r.get("prefill_layer"),
            first_token: r.get("first_token"),
            host: r.get("host"),
            gathered_before: r.optional("gathered_before"),
        })
    }
}
