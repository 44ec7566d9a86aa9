//! Which engines on which accelerators with which models the constants of serving were held against, and how far they were
//! missed.

use crate::document::{Reader, choices};
use crate::units::Factor;

choices! {
    /// Models by what an engine runs differently.
    pub enum Architecture {
        /// Grouped attention and MLPs.
        Dense = "dense",
        /// Grouped attention and experts.
        Experts = "experts",
        /// Attention to a latent or compressed cache.
        Latent = "latent",
        /// Recurrent layers among others.
        Hybrid = "hybrid",
    }
}

/// A kind of deployment that was measured: its figures lie within a factor of what is predicted in nine cases of ten.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingCoverage {
    /// Generation of the accelerator.
    pub generation: String,
    /// The engine family.
    pub engine: String,
    /// The kind of model.
    pub architecture: Architecture,
    /// Whether prefill and decode had pools of their own.
    pub pools: bool,
    /// Measured points.
    pub points: u32,
    /// The factor of times between tokens, where any were measured.
    pub tpot: Option<Factor>,
    /// Of times to the first token.
    pub ttft: Option<Factor>,
    /// Of throughput where requests queue without end.
    pub throughput: Option<Factor>,
}

impl ServingCoverage {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            generation: reader.get("generation"),
            engine: reader.get("engine"),
            architecture: reader.get("architecture"),
            pools: reader.or("pools", false),
            points: reader.get("points"),
            tpot: reader.optional("tpot"),
            ttft: reader.optional("ttft"),
            throughput: reader.optional("throughput"),
        }
    }
}
