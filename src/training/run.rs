//! What the steps of a stage take, by what the stage does.

use super::{OtherTime, TrainingEstimate};
use crate::scenario::{Stage, StageKind};
use crate::units::Seconds;

/// What the time of a step goes to beside the step itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageStep {
    /// The training step, the wait for its data included.
    pub step: Seconds,
    /// Writing what is rewarded, between steps.
    pub rollout: Seconds,
}

/// A step of a stage, from a step that trains all parameters.
///
/// Adapters (LoRA): a forward pass, and of the backward pass only the gradients of activations, which for matrix
/// multiplications is half of it; so two thirds of the compute and of the bubble. Weights are frozen, so that nothing is
/// accumulated, reduced or gathered for them and the optimizer's step is that of the adapters, which are below 1% (Hu et
/// al., arXiv 2106.09685); messages of tensor, context, expert and pipeline parallelism stay. Full fine-tuning is
/// pre-training on other data. Reinforcement learning trains for the rest of the time that rollouts leave.
pub fn stage_step(stage: &Stage, full: &TrainingEstimate) -> StageStep {
    let step = match stage.kind {
        StageKind::Lora => adapters(full).iteration(),
        StageKind::PreTraining | StageKind::Sft | StageKind::Rl => full.iteration(),
    };
    let share = stage.rollout_share.get();
    StageStep { step, rollout: step * (share / (1.0 - share)) }
}

/// A step that trains adapters beside frozen weights.
fn adapters(full: &TrainingEstimate) -> TrainingEstimate {
    let kept = 2.0 / 3.0;
    let mut step = *full;
    step.compute = full.compute * kept;
    step.bubble = full.bubble * kept;
    step.optimizer = Seconds::ZERO;
    step.exposed.data = Seconds::ZERO;
    // Stragglers grow with what there is to wait for.
    let other = OtherTime { accumulation: Seconds::ZERO, stragglers: Seconds::ZERO, data: Seconds::ZERO, ..full.other };
    let before = |step: &TrainingEstimate, other: &OtherTime| {
        step.compute
            + step.exposed.total()
            + step.bubble
            + step.optimizer
            + other.launch
            + other.accumulation
            + other.step
    };
    let stragglers = full.other.stragglers * (before(&step, &other) / before(full, &full.other));
    step.other = OtherTime { stragglers, data: full.other.data, ..other };
    step
}
