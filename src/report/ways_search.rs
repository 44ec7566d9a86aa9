//! What a search of ways to serve came to: the best, and those after it.

use serde_json::{Value as Json, json};

use super::figure::{counted, grouped};
use super::number::finite;
use super::page::{Block, Grid, Section};
use super::sweep_words::{layout_toml, way_text};
use crate::evaluate::{Evaluation, MissedLimit, ServingPoint};
use crate::scenario::{Arrivals, Limits};
use crate::search::Deployment;
use crate::units::significant;

/// The section of an evaluation whose way to serve was searched.
pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let (found, serving) = (evaluation.ways.as_ref()?, evaluation.scenario.serving.as_ref()?);
    let by = match serving.arrivals {
        Arrivals::Rate(_) => "the fewest requests open at once first, as whole answers come soonest",
        Arrivals::Most | Arrivals::Concurrency(_) => "the most requests served first",
    };
    let limits = if serving.limits == Limits::default() {
        String::new()
    } else {
        format!(
            " {} keep all limits and come before those that do not, of which the nearest to them is first.",
            grouped(found.kept)
        )
    };
    let counts = format!(
        "The best of {} to serve, {} of which serve what is asked, {by}.{limits}",
        counted(found.considered, "way"),
        grouped(found.feasible)
    );
    Some(Section {
        heading: "Layout search".to_owned(),
        blocks: vec![Block::Text(counts), Block::Grid(grid(evaluation, &found.best))],
    })
}

fn grid(evaluation: &Evaluation, best: &[ServingPoint]) -> Grid {
    let serving = evaluation.scenario.serving.as_ref();
    let limited = serving.is_some_and(|serving| serving.limits != Limits::default());
    let heads = ["Way", "Replicas", "TTFT", "P95", "TPOT", "P95", "Open in all", "Requests"];
    let heads: Vec<&str> = heads.into_iter().chain(limited.then_some("Limits")).collect();
    let mut grid = Grid::new(&heads, 1);
    for point in best {
        let mut row = vec![
            way_text(&Deployment::of_point(point, &evaluation.scenario.cluster)),
            grouped(point.replicas),
            point.state.ttft.to_string(),
            point.latencies.first_token.p95.to_string(),
            point.state.tpot.to_string(),
            point.latencies.token.p95.to_string(),
            significant(point.open_per_replica() * point.replicas as f64, 4),
            point.request_rate().to_string(),
        ];
        let missed: Vec<&str> =
            serving.iter().flat_map(|serving| point.all_missed(serving)).map(|MissedLimit { key, .. }| key).collect();
        let told = if missed.is_empty() { "kept".to_owned() } else { format!("{} missed", missed.join(", ")) };
        row.extend(limited.then_some(told));
        grid.rows.push(row);
    }
    grid
}

/// The same for programs.
pub(super) fn object(evaluation: &Evaluation) -> Option<Json> {
    let found = evaluation.ways.as_ref()?;
    let serving = evaluation.scenario.serving.as_ref()?;
    let one = |point: &ServingPoint| {
        json!({
            "layout": layout_toml(&Deployment::of_point(point, &evaluation.scenario.cluster)),
            "replicas_count": point.replicas,
            "ttft_s": finite(point.state.ttft.value()),
            "ttft_p95_s": finite(point.latencies.first_token.p95.value()),
            "tpot_s": finite(point.state.tpot.value()),
            "tpot_p95_s": finite(point.latencies.token.p95.value()),
            "open_count": finite(point.open_per_replica() * point.replicas as f64),
            "requests_per_s": finite(point.request_rate().value()),
            "limits_missed": point.all_missed(serving).map(|missed| missed.key).collect::<Vec<_>>(),
        })
    };
    Some(json!({
        "considered_count": found.considered,
        "feasible_count": found.feasible,
        "limits_kept_count": found.kept,
        "best": found.best.iter().map(one).collect::<Vec<Json>>(),
    }))
}
