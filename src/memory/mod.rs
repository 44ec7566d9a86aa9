//! Memory of one accelerator in training: the bytes that must fit, by component and by pipeline stage.
//!
//! Weights, gradients and optimizer states follow from what a rank holds of the parameters (ZeRO, arXiv 1910.02054,
//! section 3). Activations follow Korthikanti et al. (arXiv 2205.05198, section 4), extended to grouped-query attention,
//! gated MLPs, fused attention and experts. What software adds is a stated allowance of the catalog.

mod activations;
mod footprint;
mod mixed;
pub mod serving;
mod software;
mod training_fit;

pub use activations::LayerActivations;
pub use footprint::{MemoryFootprint, all_stages, footprint, offloaded_activations, worst};
pub use software::Software;
pub use training_fit::TrainingFit;
