//! Which engines on which accelerators with which models the constants of serving were held against, and how far they were
//! missed.

use super::model::Format;
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
    /// Formats of the weights that were measured, by their numbers; any where none is said.
    pub weights: Vec<String>,
    /// The same of caches.
    pub caches: Vec<String>,
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
    /// Whether weights and caches in such formats were measured.
    pub fn has_formats(&self, weights: Format, cache: Format) -> bool {
        let among =
            |known: &[String], format: Format| known.is_empty() || known.iter().any(|word| word == format.kind());
        among(&self.weights, weights) && among(&self.caches, cache)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            generation: reader.get("generation"),
            engine: reader.get("engine"),
            architecture: reader.get("architecture"),
            pools: reader.or("pools", false),
            weights: reader.or("weights", Vec::new()),
            caches: reader.or("caches", Vec::new()),
            points: reader.get("points"),
            tpot: reader.optional("tpot"),
            ttft: reader.optional("ttft"),
            throughput: reader.optional("throughput"),
        }
    }
}
