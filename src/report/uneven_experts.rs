//! What an answer says of experts that are asked for more than others.

use crate::evaluate::{Evaluation, serving_point};
use crate::scenario::{EngineFeatures, ExpertImbalance, Serving};
use crate::units::{Factor, RequestRate, Seconds};

/// How unevenly experts on ranks are taken to be asked for, by published counts, and what comes of it where they are not.
pub(super) fn uneven_experts(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let layouts = [Some(point.layout), point.pool.map(|pool| pool.layout)].into_iter().flatten();
    let ranks = layouts.map(|layout| layout.expert).max().filter(|ranks| *ranks > 1)?;
    if serving.features.expert_imbalance != ExpertImbalance::ByPlacement {
        return None;
    }
    let served = |pace: Seconds, rate: RequestRate| format!("{pace} between tokens and {rate}");
    let with = |factor: Factor| {
        let features = EngineFeatures { expert_imbalance: ExpertImbalance::Times(factor), ..serving.features.clone() };
        let uneven = Serving { features, ..serving.clone() };
        match serving_point(&uneven, &evaluation.scenario.cluster) {
            Ok(point) => served(point.state.tpot, point.request_rate()),
            Err(why) => format!("a no ({why})"),
        }
    };
    let imbalance = serving.efficiency.imbalance;
    let [placed, unplaced] = [imbalance.placed.value, imbalance.unplaced.value];
    let now = served(point.state.tpot, point.request_rate());
    let others: Vec<String> = [placed, Factor::ONE]
        .map(|factor| (with(factor), factor.get()))
        .into_iter()
        .filter(|(found, _)| *found != now)
        .map(|(found, factor)| format!("{found} with {factor}"))
        .collect();
    let otherwise =
        if others.is_empty() { String::new() } else { format!(": here {now} would be {}", others.join(", and ")) };
    Some(format!(
        "Experts on {ranks} ranks are taken to be asked for as unevenly as published counts have it. Of 32 ranks of DeepSeek-R1 the busiest had {} times the tokens of the mean where they lay as they come, {} times where experts and copies were placed by load (TensorRT-LLM), as they are taken to be where there are redundant_experts. serving.expert_imbalance says otherwise{otherwise}.",
        unplaced.get(),
        placed.get(),
    ))
}
