//! An accelerator as an engine finds it: rates bound once.

use super::exchange::{Across, Reduction};
use super::shape::Class;
use super::stages::HandOvers;
use super::uneven::scatter;
use crate::catalog::Accelerator;
use crate::catalog::accelerator::DataType;
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::serving_efficiency::{
    EngineRates, ServingBatching, ServingEfficiency, ServingKernels, ServingMessages, ServingOverhead,
};
use crate::units::{Bandwidth, FlopRate, Ranged, Seconds};

/// A constant that serving needs and the catalog lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingServing {
    /// Of a generation.
    #[error("no serving constants for accelerators of generation \"{0}\"")]
    Generation(String),
    /// Of an engine.
    #[error("no serving constants for engine \"{0}\"")]
    Engine(String),
    /// The accelerator has no bf16 peak.
    #[error("{0} has no bf16 peak")]
    Peak(String),
}

/// Rates of one format class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct ClassRates {
    /// Peak that it is multiplied at.
    pub(in crate::inference) peak: FlopRate,
    /// Share of the weights' read rate outside experts.
    pub(in crate::inference) read: f64,
    /// The same of experts.
    pub(in crate::inference) expert_read: f64,
    /// Rate of experts in prefill over that of formats whose scales of blocks the matrix units leave to the kernel.
    pub(in crate::inference) expert_rate: f64,
    /// Bytes of a number of an activation that it is multiplied with.
    pub(in crate::inference) activation: f64,
}

/// An accelerator as an engine of a family finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware {
    pub(in crate::inference) wide: ClassRates,
    pub(in crate::inference) eight: ClassRates,
    pub(in crate::inference) nvfp4: ClassRates,
    pub(in crate::inference) mxfp4: ClassRates,
    pub(in crate::inference) int4: ClassRates,
    /// Memory bandwidth by the data sheet.
    pub(in crate::inference) memory: Bandwidth,
    /// Share of it at which weights are read.
    pub(in crate::inference) weights: f64,
    /// The same of keys and values of heads.
    pub(in crate::inference) keys_values: f64,
    /// Share of the peak in prefill.
    pub(in crate::inference) gemm: f64,
    /// The same of experts.
    pub(in crate::inference) experts: f64,
    /// Rate of attention in prefill.
    pub(in crate::inference) attention: FlopRate,
    /// Whether decode's kernels that know of chunks read keys and values for each query head.
    pub(in crate::inference) chunks_by_head: bool,
    /// Whether the engine's ranks gather all tokens for the experts in every version.
    pub(in crate::inference) gathers: bool,
    /// Rate of attention to latents in decode.
    pub(in crate::inference) latent: FlopRate,
    /// Reached bandwidth of the scale-up links, one direction.
    pub(in crate::inference) links: Bandwidth,
    /// The same that the exchange of many tokens with experts reaches.
    pub(in crate::inference) exchange: Bandwidth,
    /// Time of a unit.
    pub(in crate::inference) unit: Seconds,
    /// Fixed time of a step.
    pub(in crate::inference) step: Seconds,
    /// Time of prefill over the form's.
    pub(in crate::inference) prefill: f64,
    /// Time of a layer in prefill beside its arithmetic and traffic.
    pub(in crate::inference) prefill_layer: Seconds,
    /// Host time to a first token.
    pub(in crate::inference) first_token: Seconds,
    /// The network between domains, where the engine spans several.
    pub(in crate::inference) across: Option<Across>,
    /// All-reduces of its tensor ranks, where those span several.
    pub(in crate::inference) reduction: Option<Reduction>,
    /// Standard deviation of experts' loads over their mean.
    pub(in crate::inference) uneven: f64,
    /// Tokens of the busiest rank beyond the mean of ranks, over it, where experts and copies are placed by load.
    pub(in crate::inference) placed: f64,
    /// Host time of a step for each sequence in it.
    pub(in crate::inference) host: Seconds,
    /// The engine's constants.
    pub(in crate::inference) rates: EngineRates,
    /// Host time to launch the kernels of a layer, or of its experts, one by one.
    pub(in crate::inference) launch: Seconds,
    /// What joins its stages, where it has several.
    pub(in crate::inference) stages: Option<HandOvers>,
    pub(in crate::inference) kernels: ServingKernels,
    pub(in crate::inference) overhead: ServingOverhead,
    pub(in crate::inference) messages: ServingMessages,
    pub(in crate::inference) batching: ServingBatching,
}

impl Hardware {
    /// Binds the constants of an accelerator's generation and an engine, with what its links to others of the scale-up
    /// domain carry in one direction.
    ///
    /// # Errors
    /// When the constants of either are missing.
    pub fn bind(
        set: &ServingEfficiency,
        accelerator: &Accelerator,
        links: Bandwidth,
        engine: &str,
    ) -> Result<Self, MissingServing> {
        let generation = set
            .generation(&accelerator.generation)
            .ok_or_else(|| MissingServing::Generation(accelerator.generation.clone()))?;
        let rates = set.engines.get(engine).ok_or_else(|| MissingServing::Engine(engine.to_owned()))?;
        let peak = |data_type| accelerator.peak_dense.get(data_type);
        let bf16 = peak(DataType::Bf16).ok_or_else(|| MissingServing::Peak(accelerator.generation.clone()))?;
        let kernels = set.kernels;
        let class = |peak, read, expert_read| ClassRates { peak, read, expert_read, expert_rate: 1.0, activation: 2.0 };
        let scaled = kernels.block_scaled.value.get();
        // Without matrix units for a format, its weights are unpacked to 16 bits as they are read.
        let eight = peak(DataType::Fp8).or_else(|| peak(DataType::Int8)).unwrap_or(bf16);
        let unpacked = kernels.fp4_unpacked.value.get();
        let (wide, nvfp4, mxfp4) = match peak(DataType::Fp4) {
            Some(fp4) => {
                // Units that scale blocks of 4 bits leave the scales of 8 bits' to the kernel; 16 bits have none.
                let native = |rates, activation| ClassRates { expert_rate: scaled, activation, ..rates };
                let nvfp4 = class(fp4, generation.fp4_weights.value.get(), 1.0);
                (native(class(bf16, 1.0, 1.0), 2.0), native(nvfp4, 0.5), native(class(eight, 1.0, 1.0), 1.0))
            }
            None => (class(bf16, 1.0, 1.0), class(bf16, unpacked, unpacked), class(bf16, unpacked, unpacked)),
        };
        let integers = kernels.int4_unpacked.value.get();
        Ok(Self {
            wide,
            eight: ClassRates { activation: 1.0, ..class(eight, 1.0, 1.0) },
            nvfp4,
            mxfp4,
            int4: class(bf16, integers, integers),
            memory: accelerator.memory_bandwidth,
            weights: generation.weights.value.get(),
            keys_values: generation.keys_values.value.get(),
            gemm: generation.gemm.value.get(),
            experts: generation.experts.value.get(),
            attention: bf16 * generation.attention.value.get(),
            chunks_by_head: generation.chunks_by_head.iter().any(|family| family == engine),
            gathers: generation.gathers.iter().any(|family| family == engine),
            latent: bf16 * kernels.latent_attention.value.get(),
            links: links * generation.scale_up.value.get(),
            exchange: links * set.messages.exchange.value.get(),
            unit: generation.unit.value * rates.overhead.value.get(),
            step: set.overhead.step.value * rates.overhead.value.get(),
            prefill: rates.prefill.value.get(),
            prefill_layer: rates.prefill_layer.value,
            first_token: rates.first_token.value,
            uneven: scatter(set.imbalance.unplaced.value.get()),
            placed: set.imbalance.placed.value.get() - 1.0,
            host: rates.host.value,
            rates: *rates,
            launch: set.eager_unit,
            across: None,
            reduction: None,
            stages: None,
            kernels,
            overhead: set.overhead,
            messages: set.messages,
            batching: set.batching,
        })
    }

    /// The same whose turn it is so seldom that what has a time of its own takes so many times as long; its rates are those of such
    /// turns already. The host goes on between them.
    #[must_use]
    pub fn stretched(self, turns: f64) -> Self {
        let expert = self.overhead.expert;
        let expert = Ranged { value: expert.value * turns, ..expert };
        let overhead = ServingOverhead { expert, ..self.overhead };
        Self { unit: self.unit * turns, prefill_layer: self.prefill_layer * turns, overhead, ..self }
    }

    /// The host's time to launch the kernels of a layer, or of its experts, one by one.
    pub fn launch_unit(&self) -> Seconds {
        self.launch
    }

    /// Whether the engine's ranks gather all tokens for the experts: on accelerators that its other kernels do not run on, or in a version
    /// that is known to.
    pub fn gathers(&self, version: Option<EngineVersion>) -> bool {
        self.gathers || self.rates.gathers(version)
    }

    /// What engines take to hand a cache over, beside its bytes.
    pub fn hand_over(&self) -> Seconds {
        self.batching.transfer.value
    }

    /// The same for an engine whose ranks lie in several scale-up domains.
    #[must_use]
    pub fn across(self, across: Across) -> Self {
        Self { across: Some(across), ..self }
    }

    /// The same for an engine whose tensor ranks do.
    #[must_use]
    pub fn reducing(self, reduction: Reduction) -> Self {
        Self { reduction: Some(reduction), ..self }
    }

    /// The same for an engine of several stages.
    #[must_use]
    pub fn staged(self, stages: HandOvers) -> Self {
        Self { stages: Some(stages), ..self }
    }

    /// The same where requests wait so long before they are begun.
    #[must_use]
    pub fn after(self, wait: Seconds) -> Self {
        Self { first_token: self.first_token + wait, ..self }
    }

    pub(in crate::inference) const fn class(&self, class: Class) -> ClassRates {
        match class {
            Class::Wide => self.wide,
            Class::Eight | Class::EightBlocks => self.eight,
            Class::Nvfp4 => self.nvfp4,
            Class::Mxfp4 => self.mxfp4,
            Class::Int4 => self.int4,
        }
    }
}
