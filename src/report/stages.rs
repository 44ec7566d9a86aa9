//! The stages of a run, one after the other.

use serde_json::{Value as Json, json};

use super::figure::{Unit, Value, grouped};
use super::page::Grid;
use crate::evaluate::{Run, StageTime};
use crate::units::{Quantity, SECONDS_PER_DAY, Seconds};

/// The stages as a table; none where there is only one.
pub(super) fn stage_grid(run: &Run) -> Option<Grid> {
    if run.stages.len() < 2 {
        return None;
    }
    let heads = [
        "Stage",
        "Kind",
        "Layout",
        "Tokens",
        "Sequence",
        "Batch",
        "Steps",
        "Step",
        "MFU, causal",
        "Rollouts",
        "All",
        "Goodput",
        "With failures",
    ];
    let mut grid = Grid::new(&heads, 3);
    for stage in &run.stages {
        grid.rows.push(vec![
            stage.name.clone(),
            stage.kind.to_string(),
            layout(stage),
            stage.tokens.to_string(),
            grouped(stage.sequence_length.into()),
            grouped(stage.global_batch.into()),
            Unit::Count.text(Value::Number(stage.steps)),
            stage.step.iteration().to_string(),
            Unit::Ratio.text(Value::Number(stage.step.mfu())),
            Unit::Days.text(Value::Number(days(stage.rollout))),
            Unit::Days.text(Value::Number(days(stage.training + stage.rollout + stage.evaluation))),
            Unit::Ratio.text(Value::Number(stage.goodput.ratio)),
            Unit::Days.text(Value::Number(days(stage.effective))),
        ]);
    }
    Some(grid)
}

/// The degrees that are more than one.
fn layout(stage: &StageTime) -> String {
    let of = &stage.layout;
    let degrees = [
        ("tensor", of.tensor),
        ("context", of.context),
        ("pipeline", of.pipeline),
        ("expert", of.expert),
        ("data", of.data),
    ];
    let more: Vec<String> =
        degrees.iter().filter(|(_, ranks)| *ranks > 1).map(|(word, ranks)| format!("{word} {ranks}")).collect();
    more.join(", ")
}

fn days(time: Seconds) -> f64 {
    time / Seconds::new(SECONDS_PER_DAY)
}

/// The stages for programs.
pub(super) fn stage_objects(run: &Run) -> Json {
    let object = |stage: &StageTime| {
        json!({
            "name": stage.name,
            "kind": stage.kind.word(),
            "tokens_count": stage.tokens.base(),
            "sequence_length_count": stage.sequence_length,
            "global_batch_count": stage.global_batch,
            "steps_count": stage.steps,
            "iteration_s": stage.step.iteration().value(),
            "mfu_ratio": stage.step.mfu(),
            "training_days": days(stage.training),
            "rollout_days": days(stage.rollout),
            "ramp_days": days(stage.ramp),
            "data_wait_days": days(stage.data_wait),
            "evaluation_days": days(stage.evaluation),
            "goodput_ratio": stage.goodput.ratio,
            "effective_days": days(stage.effective),
        })
    };
    run.stages.iter().map(object).collect()
}
