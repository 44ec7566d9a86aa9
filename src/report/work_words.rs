//! What is asked of a cluster, in sentences.

use super::figure::{counted, grouped, percent};
use super::settings::limit_key;
use crate::evaluate::{BatchBound, Evaluation, ServingPoint};
use crate::parallelism::Layout;
use crate::scenario::{PrefillNodes, Serving, Training};
use crate::units::significant;

/// What is asked, in a line each: the training job's layout, and serving's.
pub(super) fn work_in_words(evaluation: &Evaluation) -> Vec<String> {
    let scenario = &evaluation.scenario;
    let trained =
        scenario.training.as_ref().zip(evaluation.point).map(|(job, point)| training_in_words(job, &point.layout));
    let served = scenario
        .serving
        .as_ref()
        .zip(evaluation.serving)
        .map(|(serving, point)| serving_in_words(serving, &point, scenario.cluster.prefill.as_ref()));
    let batch = evaluation.serving.and_then(|point| batch_in_words(&point));
    trained.into_iter().chain(served).chain(batch).chain(tokens_in_words(evaluation)).collect()
}

/// What a million tokens cost as they come, and then by kind.
pub(super) fn tokens_in_words(evaluation: &Evaluation) -> Option<String> {
    let (costs, request) = (evaluation.token_costs()?, evaluation.serving?.request);
    let (prompt, answers) = (request.input + request.cached, costs.output);
    let mix = significant(prompt / request.output, 3);
    let mix = if request.cached > 0.0 {
        format!("{mix}:1 of prompts to answers, {} of prompts cached", percent(request.cached / prompt))
    } else {
        format!("{mix}:1 of prompts to answers")
    };
    let cached = costs.cached.map_or_else(String::new, |cached| format!(", {cached} of cached ones"));
    let fresh = if request.input > 0.0 { format!("{} of prompts{cached}, ", costs.input) } else { String::new() };
    let used = percent(evaluation.scenario.finance.utilisation.get());
    Some(format!("{} a million tokens ({mix}; {used} of hours in use): {fresh}{answers} of answers.", costs.blended))
}

/// How many sequences are in decode at once and what keeps them from being more, where that is neither those that come nor those
/// that are open.
fn batch_in_words(point: &ServingPoint) -> Option<String> {
    let bound = match point.batch_bound {
        BatchBound::Memory => "memory holds".to_owned(),
        BatchBound::Sequences => "an engine takes at once".to_owned(),
        BatchBound::Adapters => "bring no more different adapters than memory keeps (max_loras)".to_owned(),
        BatchBound::Sessions => "leave most of use to sessions that wait".to_owned(),
        BatchBound::Limit(key) => format!("{} lets", limit_key(key)?),
        BatchBound::Prefill => "prompts are taken in for".to_owned(),
        BatchBound::Transfer => "the links between the pools hand over".to_owned(),
        BatchBound::Open | BatchBound::Rate => return None,
    };
    Some(format!("As many are in decode at once as {bound}: {} in each replica.", significant(point.state.batch, 4)))
}

/// What a replica stands on: so many GPUs, or slices of them.
pub(super) fn each_of(serving: &Serving, ranks: u64) -> String {
    match &serving.features.slice {
        Some(slice) if slice.shared.is_some() => slice.name.clone(),
        Some(slice) => format!("one {}", slice.name),
        None if ranks == 1 => "one GPU".to_owned(),
        None => format!("{ranks} GPUs"),
    }
}

fn serving_in_words(serving: &Serving, point: &ServingPoint, own: Option<&PrefillNodes>) -> String {
    let layout = &point.layout;
    let spare = if point.spares > 0 { format!(" and {} to spare", grouped(point.spares)) } else { String::new() };
    let workers = point.pool.map_or_else(String::new, |pool| {
        let (workers, ranks) = (counted(pool.workers - point.spares, "prefill worker"), pool.layout.ranks());
        let on = own.map_or_else(String::new, |own| format!(" {}", own.accelerator.name));
        format!(", {workers}{spare} of {ranks}{on} ({})", pool.layout)
    });
    format!(
        "{} on {}: {}{spare} of {} each ({}){workers}, {} at once at most, {} a replica.",
        serving.entry.name,
        serving.engine,
        counted(point.replicas, "replica"),
        each_of(serving, layout.ranks()),
        layout,
        counted(point.max_concurrency, "request"),
        grouped(point.max_concurrency / point.replicas),
    )
}

fn training_in_words(training: &Training, layout: &Layout) -> String {
    let microbatches = layout.microbatches(training.job.global_batch);
    let mut degrees = vec![format!("tensor {}", layout.tensor), format!("pipeline {}", layout.pipeline)];
    if layout.virtual_stages > 1 {
        degrees.push(format!("virtual stages {}", layout.virtual_stages));
    }
    if layout.context > 1 {
        degrees.push(format!("context {} by {}", layout.context, layout.context_exchange));
    }
    if layout.expert > 1 {
        degrees.push(format!("expert {}", layout.expert));
    }
    degrees.push(format!("data {}", layout.data));
    format!(
        "{} ({} parameters) on {}: {}; {} of {}; schedule {}, sharding {}, recompute {}.",
        training.model.name,
        in_billions(training.transformer.parameters().total()),
        counted(layout.accelerators(), "GPU"),
        degrees.join(", "),
        counted(microbatches.into(), "microbatch"),
        layout.micro_batch,
        layout.schedule,
        layout.sharding,
        layout.recompute,
    )
}

fn in_billions(count: u64) -> String {
    format!("{} billion", significant(count as f64 / 1e9, 4))
}
