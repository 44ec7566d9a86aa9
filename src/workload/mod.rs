//! What is asked of the cluster: a model's arithmetic, and the training job over it.

mod training;
mod transformer;

#[cfg(test)]
pub(crate) mod shapes;

pub use training::{CheckpointMode, GradientPrecision, Optimizer, Precision, TrainingJob};
pub use transformer::{AttentionCount, Experts, LayerFlops, LayerKind, LayerParameters, Parameters, Transformer};
