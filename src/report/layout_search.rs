//! What a search of layouts came to: the best, the runners-up, the front of time against memory, and why the rest fail.

use serde_json::{Value as Json, json};

use super::figure::{counted, grouped, percent};
use super::number::finite;
use super::page::{Block, Grid, Section};
use super::settings::of_layout;
use crate::evaluate::{Candidate, Evaluation, Found, Tally};
use crate::parallelism::{Layout, Objective};
use crate::search::Nearest;

/// The section of an evaluation whose layout was searched.
pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let found = evaluation.found.as_ref()?;
    let wanted = match found.objective {
        Objective::Fastest => "The fastest",
        Objective::Cheapest => "The cheapest",
    };
    let counts = format!(
        "{wanted} of {}, {} of which work, and the best of the other ways to share the accelerators out among the axes (tensor, pipeline, context, expert and data parallel; VP: virtual stages, MB: microbatch):",
        counted(found.tally.considered(), "layout"),
        grouped(found.tally.feasible)
    );
    let front = "No layout is both faster and smaller than one of these:".to_owned();
    let mut blocks = vec![
        Block::Text(counts),
        Block::Grid(candidates(&found.best)),
        Block::Text(front),
        Block::Grid(candidates(&found.front)),
    ];
    if !found.tally.reasons().is_empty() {
        blocks.push(Block::Text("The others do not work:".to_owned()));
        blocks.push(Block::Grid(reasons(&found.tally)));
    }
    Some(Section { heading: "Layout search".to_owned(), blocks })
}

/// The columns of degrees, by the letters that everybody knows them by; those that are one everywhere are left out.
type Degree = (&'static str, fn(&Layout) -> u32);
const DEGREES: [Degree; 7] = [
    ("TP", |layout| layout.tensor),
    ("PP", |layout| layout.pipeline),
    ("VP", |layout| layout.virtual_stages),
    ("CP", |layout| layout.context),
    ("EP", |layout| layout.expert),
    ("DP", |layout| layout.data),
    ("MB", |layout| layout.micro_batch),
];

fn candidates(candidates: &[Candidate]) -> Grid {
    let used = DEGREES.iter().filter(|(_, degree)| candidates.iter().any(|own| degree(&own.point.layout) > 1));
    let used: Vec<&Degree> = used.collect();
    let heads: Vec<&str> = used.iter().map(|(name, _)| *name).collect();
    let policies = ["Schedule", "Sharding", "Recompute", "Overlap"];
    let figures = ["Iteration", "MFU, causal", "Memory", "Cost of the run"];
    let mut grid = Grid::new(&[&heads[..], &policies, &figures].concat(), heads.len() + policies.len());
    for Candidate { point, overlap } in candidates {
        let layout = &point.layout;
        let words = [(overlap.tensor, "tensor"), (overlap.data, "data"), (overlap.expert, "expert")];
        let hidden: Vec<&str> = words.into_iter().filter_map(|(on, name)| on.then_some(name)).collect();
        let split = if layout.tensor > 1 && !layout.sequence_parallel { ", not along the sequence" } else { "" };
        let context =
            if layout.context > 1 { format!(", context by {}", layout.context_exchange) } else { String::new() };
        let mut row: Vec<String> = used.iter().map(|(_, degree)| degree(layout).to_string()).collect();
        row.extend([
            layout.schedule.to_string(),
            format!("{}{split}{context}", layout.sharding),
            layout.recompute.to_string(),
            if hidden.is_empty() { "none".to_owned() } else { hidden.join(", ") },
            point.step.iteration().to_string(),
            percent(point.step.mfu()),
            point.memory.total().to_string(),
            point.run.to_string(),
        ]);
        grid.rows.push(row);
    }
    grid
}

/// Reasons and counts, the most frequent first.
pub(super) fn reasons(tally: &Tally) -> Grid {
    let mut grid = Grid::new(&["Reason", "Layouts"], 1);
    for (reason, count) in tally.reasons() {
        grid.rows.push(vec![reason.to_string(), grouped(count)]);
    }
    grid
}

/// The same for programs.
pub(super) fn object(found: &Found) -> Json {
    json!({
        "objective": found.objective.word(),
        "considered_count": found.tally.considered(),
        "feasible_count": found.tally.feasible,
        "best": found.best.iter().map(candidate_object).collect::<Vec<Json>>(),
        "front": found.front.iter().map(candidate_object).collect::<Vec<Json>>(),
        "rejected": reasons_object(&found.tally),
    })
}

fn candidate_object(candidate: &Candidate) -> Json {
    let Candidate { point, overlap } = candidate;
    json!({
        "layout": layout_object(&point.layout),
        "overlap": { "tensor": overlap.tensor, "data": overlap.data, "expert": overlap.expert },
        "iteration_s": finite(point.step.iteration().value()),
        "mfu_ratio": finite(point.step.mfu()),
        "memory_bytes": finite(point.memory.total().value()),
        "usd_per_run": finite(point.run.value()),
    })
}

fn layout_object(layout: &Layout) -> Json {
    let prefix = "training.layout.";
    of_layout(layout)
        .into_iter()
        .map(|(key, value)| (key.trim_start_matches(prefix).to_owned(), Json::from(value)))
        .collect()
}

/// Reasons and counts for programs.
pub(super) fn reasons_object(tally: &Tally) -> Json {
    tally.reasons().into_iter().map(|(reason, count)| json!({ "reason": reason.word(), "count": count })).collect()
}

/// The nearest layout that works, in a sentence.
pub(super) fn nearest_text(nearest: &Nearest) -> String {
    let point = &nearest.point;
    format!(
        "The nearest layout that works: {}. It takes {} of {} a GPU and {} an iteration, MFU {} (causal attention).",
        point.layout,
        point.memory.total(),
        nearest.usable,
        point.step.iteration(),
        percent(point.step.mfu())
    )
}

/// The same for programs.
pub(super) fn nearest_object(nearest: &Nearest) -> Json {
    let point = &nearest.point;
    json!({
        "layout": layout_object(&point.layout),
        "iteration_s": finite(point.step.iteration().value()),
        "mfu_ratio": finite(point.step.mfu()),
        "memory_bytes": finite(point.memory.total().value()),
    })
}
