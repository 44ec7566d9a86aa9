//! A step that trains adapters beside frozen weights.

use super::TrainingEstimate;
use crate::units::Seconds;

/// Of a forward and a backward pass, what is left where weights have no gradients: of three equal parts, two.
const KEPT: f64 = 2.0 / 3.0;

/// A step that trains adapters (LoRA), from one that trains all parameters.
///
/// A forward pass, and of the backward pass only the gradients of activations, which for matrix multiplications is half of
/// it; so two thirds of the compute, of its FLOPs, and of the bubble. Weights are frozen, so that nothing is accumulated,
/// reduced or gathered for them and the optimizer's step is that of the adapters, which are below 1% (Hu et al., arXiv
/// 2106.09685); messages of tensor, context, expert and pipeline parallelism stay.
pub fn adapters(full: &TrainingEstimate) -> TrainingEstimate {
    let mut step = *full;
    step.compute = full.compute * KEPT;
    step.bubble = full.bubble * KEPT;
    step.model_flops = full.model_flops * KEPT;
    step.model_flops_full_attention = full.model_flops_full_attention * KEPT;
    // What is computed again is computed again.
    step.hardware_flops = full.hardware_flops - full.model_flops * (1.0 - KEPT);
    step.optimizer = Seconds::ZERO;
    step.exposed.data = Seconds::ZERO;
    step.other.accumulation = Seconds::ZERO;
    // Stragglers grow with what there is to wait for.
    step.other.stragglers = full.other.stragglers * (step.before_stragglers() / full.before_stragglers());
    step
}
