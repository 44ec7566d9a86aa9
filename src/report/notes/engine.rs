//! What an engine does by itself: rules, defaults and shares of it.

use crate::evaluate::{BatchBound, Evaluation};
use crate::scenario::SharedBy;

/// Answers that have no time between tokens, and limits of it that nothing can miss.
pub(super) fn answered_by_prefill(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    if point.request.decodes() {
        return None;
    }
    let limits = serving.limits.named().into_iter().filter(|(key, limit)| key.starts_with("tpot") && limit.is_some());
    let keys: Vec<String> = limits.map(|(key, _)| format!("`{}.{key}`", serving.table_of_limit(key))).collect();
    let bounded = if keys.is_empty() {
        String::new()
    } else {
        format!(
            " So {} can be missed by nothing; `serving.limits.ttft` and `e2e_p95` bound such answers.",
            keys.join(", ")
        )
    };
    Some(format!(
        "Answers are of one token, which the prefill makes: nothing is ever in decode, there is no time between tokens, and all that is paid is for prompts.{bounded}"
    ))
}

/// A vocabulary that is padded for its tables to split.
pub(super) fn padding(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    point.layout.padding(&serving.model).map(|padding| format!("{padding}, and counted."))
}

/// What others on the same accelerator do to a replica.
pub(super) fn shared(evaluation: &Evaluation) -> Option<String> {
    let slice = evaluation.scenario.serving.as_ref()?.features.slice.as_ref()?;
    let all = slice.instances;
    let apart = match slice.shared? {
        SharedBy::Mps => {
            "by MPS multiprocessors are limited by percentage and memory by size, bandwidth and caches are contended for, and a fault of one ends all"
        }
        SharedBy::Time => {
            "a time slice is of all of it and switching costs, memory is divided and not protected, and each has a context of its own"
        }
    };
    (all > 1).then(|| {
        format!("Times are those of a replica while all {all} on its GPU are at work: {apart}. Where the others are idle, it is up to {all} times as fast. Profiles of MIG are apart in both.")
    })
}

/// An engine's own default that bounds what runs at once.
pub(super) fn by_default(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    (point.batch_bound == BatchBound::Sequences && serving.features.max_num_seqs.is_none()).then(|| {
        format!(
            "{} runs {} requests at once by default, in each attention group; `serving.max_num_seqs` sets another number.",
            serving.engine, point.at_once
        )
    })
}
