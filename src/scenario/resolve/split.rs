//! `training.layout.stage_layers`: the layers of each pipeline stage, where they are given.

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::parallelism::{LayoutError, Schedule, StageLayers};
use crate::scenario::file::LayoutFile;

/// The split that a layout gives, or `None` where it gives none.
pub(super) fn stage_layers(wanted: &LayoutFile) -> Option<StageLayers> {
    let listed = wanted.stage_layers.as_deref()?;
    let counts: Option<Vec<u8>> = listed.iter().map(|layers| u8::try_from(*layers).ok()).collect();
    StageLayers::new(&counts?)
}

/// A split has an entry for each chunk, and all layers of the model.
pub(super) fn check(wanted: &LayoutFile, layers: u32, sink: &Sink) {
    let Some(listed) = wanted.stage_layers.as_deref() else { return };
    let refuse = |code, message: String, hint: String| {
        sink.push(Diagnostic::new(code, message).at(&wanted.stage_layers_at, "this split").hint(hint));
    };
    if wanted.search.is_some() {
        let message = "`stage_layers` beside a search, whose layouts split layers as evenly as they go";
        let hint = "give training.layout its degrees, or leave stage_layers out";
        return refuse(Code::Inconsistent, message.to_owned(), hint.to_owned());
    }
    if wanted.schedule == Some(Schedule::DualPipe) {
        let message = LayoutError::BothEndsSplit.to_string();
        return refuse(Code::Unsupported, message, "leave stage_layers out, or use another schedule".to_owned());
    }
    let [pipeline, chunks] = [wanted.pipeline, wanted.virtual_stages].map(|degree| u64::from(degree.unwrap_or(1)));
    let (of, wanted_entries) = if chunks > 1 {
        (format!("{pipeline} stages of {chunks} chunks"), pipeline * chunks)
    } else {
        (format!("pipeline {pipeline}"), pipeline)
    };
    if listed.len() as u64 != wanted_entries {
        let message = format!("`stage_layers` has {} entries for {of}", listed.len());
        let hint = format!("{wanted_entries} entries in the model's order, one for each chunk of layers");
        return refuse(Code::Inconsistent, message, hint);
    }
    if listed.len() > StageLayers::MOST_CHUNKS {
        let message = format!("`stage_layers` has {} entries", listed.len());
        return refuse(Code::OutOfRange, message, format!("at most {} are taken", StageLayers::MOST_CHUNKS));
    }
    let sum: u64 = listed.iter().map(|layers| u64::from(*layers)).sum();
    if sum != u64::from(layers) {
        let message = format!("`stage_layers` adds up to {sum} layers, and the model has {layers}");
        return refuse(Code::Inconsistent, message, format!("the entries of all stages add up to {layers}"));
    }
    let most = listed.iter().copied().max().unwrap_or(0);
    if u8::try_from(most).is_err() {
        let message = format!("`stage_layers` has {most} layers on one stage");
        refuse(Code::OutOfRange, message, format!("at most {} are taken", u8::MAX));
    }
}
