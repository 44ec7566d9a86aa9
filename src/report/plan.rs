//! What planning came to.

use serde_json::{Map, Value as Json, json};

use super::evaluation_object;
use super::figure::{grouped, percent};
use super::metrics::metric;
use super::page::{Block, Grid, Page, Section};
use super::settings::settings;
use super::work_words::degrees;
use crate::evaluate::Evaluation;
use crate::inference::Short;
use crate::scenario::{Cluster, TopologyChoice};
use crate::search::{Binding, Plan, PlanAnswer};

/// The figures of an answer's row, with their heads.
const COLUMNS: [(&str, &str); 10] = [
    ("Replicas", "serving.replicas_count"),
    ("Open in each", "serving.open_per_replica_count"),
    ("Open in all", "serving.open_count"),
    ("TTFT, P95", "serving.ttft_p95_s"),
    ("TPOT, P95", "serving.tpot_p95_s"),
    ("Fabric", "fabric.capex_usd"),
    ("Power", "facility.total_kw"),
    ("Cost over the horizon", "cost.total_usd"),
    ("Mtok of prompts", "cost.usd_per_mtok_input"),
    ("Mtok of answers", "cost.usd_per_mtok_output"),
];

/// What keeps an answer from being smaller, in words.
fn in_words(binding: &Binding) -> String {
    match binding {
        Binding::Limit(key) => format!("serving.limits.{key}"),
        Binding::Throughput(Short::Cache) => "requests served: memory for their caches".to_owned(),
        Binding::Throughput(Short::Adapters) => "requests served: places for different adapters".to_owned(),
        Binding::Throughput(Short::Sessions) => "requests served: memory for sessions that wait".to_owned(),
        Binding::Throughput(Short::Prefill) => "requests served: time for their prompts".to_owned(),
        Binding::Throughput(Short::Transfer) => {
            "requests served: the links that caches go over from prefill to decode".to_owned()
        }
        Binding::Node => "whole nodes and replicas: nothing smaller is bought".to_owned(),
        Binding::Replica => "the layout: fewer GPUs hold no whole replica, or none beside those to spare".to_owned(),
        Binding::Pools => "the layout: fewer GPUs do not hold both pools, with those to spare".to_owned(),
        Binding::Fewest => "the numbers of GPUs to choose from: none is smaller".to_owned(),
        Binding::Of(pool, of) => format!("{pool}: {}", in_words(of)),
        Binding::Time(what, share) => format!("{what}, {} of a replica's time", percent(*share)),
    }
}

/// What people look for first, and the rest: all of it side by side is wider than a screen.
const FIGURES: [&str; 6] =
    ["GPUs", "Replicas", "Open in all", "Cost over the horizon", "Mtok of prompts", "Mtok of answers"];
const MORE: [&str; 5] = ["TTFT, P95", "TPOT, P95", "Open in each", "Fabric", "Power"];

/// Some columns of a table, those of words before those of figures, with the places of rows before them.
fn part(whole: &Grid, [words, figures]: &[&[&str]; 2]) -> Grid {
    let of = |heads: &[&str]| -> Vec<usize> {
        heads.iter().filter_map(|head| whole.header.iter().position(|known| known == head)).collect()
    };
    let (words, figures) = (of(words), of(figures));
    let numeric_from = 1 + words.len();
    let columns = [words, figures].concat();
    let pick = |first: String, row: &[String]| -> Vec<String> {
        std::iter::once(first).chain(columns.iter().map(|&column| row[column].clone())).collect()
    };
    Grid {
        header: pick("#".to_owned(), &whole.header),
        rows: (1..).zip(&whole.rows).map(|(place, row)| pick(place.to_string(), row)).collect(),
        numeric_from,
    }
}

/// A plan as a page.
pub fn plan_page(plan: &Plan) -> Page {
    let mut sections = Vec::new();
    if let Some(best) = plan.answers.first() {
        let cluster = &best.evaluation.scenario.cluster;
        let (node, mut fabric) = (nodes(cluster), cluster.fabric.entry.id.clone());
        if plan.topologies {
            fabric = format!("{fabric} ({})", topology(cluster));
        }
        let count = counts(cluster);
        let layout = best.evaluation.serving.map_or_else(String::new, |point| layout(&best.evaluation, point.replicas));
        let bound: Vec<String> = best.binding.iter().map(in_words).collect();
        let whole = plan_grid(plan);
        let blocks = vec![
            Block::Text(format!("The least {}: {count} GPUs, {node} on {fabric}, {layout}.", plan.minimise)),
            Block::Text(format!("What binds: {}.", bound.join("; "))),
            Block::Grid(part(&whole, &[&["Node", "On", "Topology"], &FIGURES[..]])),
            Block::Grid(part(&whole, &[&["Layout", "What binds"], &MORE[..]])),
        ];
        sections.push(Section { heading: "Plan".to_owned(), blocks });
    }
    if !plan.rejected.is_empty() {
        let mut grid = Grid::new(&["Why not", "Ways"], 1);
        grid.rows = plan.rejected.iter().map(|(why, count)| vec![why.clone(), grouped(*count)]).collect();
        sections.push(Section::new("Rejected", Block::Grid(grid)));
    }
    Page { title: plan.title.clone(), sections }
}

/// The kinds of nodes, those of prefill last where it has its own.
fn nodes(cluster: &Cluster) -> String {
    let own = cluster.own_nodes_of_prefill().map(|own| format!(", prefill {}", own.node.id));
    format!("{}{}", cluster.node.id, own.unwrap_or_default())
}

/// The accelerators of each kind.
fn counts(cluster: &Cluster) -> String {
    let own = cluster.own_nodes_of_prefill().map(|own| format!(" + {}", grouped(own.accelerators.into())));
    format!("{}{}", grouped(cluster.main_nodes().accelerators.into()), own.unwrap_or_default())
}

fn layout(evaluation: &Evaluation, replicas: u64) -> String {
    let Some(point) = &evaluation.serving else { return String::new() };
    let layout = &point.layout;
    let spare = if point.spares > 0 { format!(" and {} to spare", grouped(point.spares)) } else { String::new() };
    let mut ways = format!("{} replicas{spare} of {} GPUs: {}", grouped(replicas), layout.ranks(), degrees(layout));
    if let Some(pool) = point.pool {
        let (workers, ranks) = (grouped(pool.workers - point.spares), pool.layout.ranks());
        ways = format!("{ways}; {workers} prefill workers{spare} of {ranks}: {}", degrees(&pool.layout));
    }
    if point.left_over() > 0 {
        ways = format!("{ways}; {} GPUs left over", grouped(point.left_over()));
    }
    ways
}

/// A network's shape in words: its kind, and by how much its tiers are oversubscribed where they are.
fn topology(cluster: &Cluster) -> String {
    let TopologyChoice { kind, leaf_oversubscription: leaf, spine_oversubscription: spine, .. } = &cluster.topology;
    let thinned = *leaf > 1.0 || *spine > 1.0;
    if thinned { format!("{kind}, oversubscribed [1, {leaf}, {spine}]") } else { kind.to_string() }
}

/// The answers as a table, the best first.
pub fn plan_grid(plan: &Plan) -> Grid {
    let heads: Vec<&str> = ["Node", "On"]
        .into_iter()
        .chain(plan.topologies.then_some("Topology"))
        .chain(["Layout", "GPUs"])
        .chain(COLUMNS.iter().map(|column| column.0))
        .chain(["What binds"])
        .collect();
    let mut grid = Grid::new(&heads, 3 + usize::from(plan.topologies));
    for answer in &plan.answers {
        let evaluation = &answer.evaluation;
        let cluster = &evaluation.scenario.cluster;
        let figure = |key: &str| {
            let metric = metric(key)?;
            Some(metric.text(metric.value(evaluation)?))
        };
        let ways = evaluation.serving.map_or_else(String::new, |point| layout(evaluation, point.replicas));
        let mut row = vec![nodes(cluster), cluster.fabric.entry.id.clone()];
        row.extend(plan.topologies.then(|| topology(cluster)));
        row.push(ways.split_once(": ").map_or_else(String::new, |(_, ways)| ways.to_owned()));
        row.push(counts(cluster));
        row.extend(COLUMNS.iter().map(|(_, key)| figure(key).unwrap_or_default()));
        row.push(answer.binding.first().map_or_else(String::new, in_words));
        grid.rows.push(row);
    }
    grid
}

/// A plan for programs.
pub fn plan_json(plan: &Plan) -> String {
    let answer = |answer: &PlanAnswer| {
        let scenario: Map<String, Json> = settings(&answer.evaluation)
            .into_iter()
            .map(|setting| (setting.key.to_owned(), setting.value.into()))
            .collect();
        let binding: Vec<String> = answer.binding.iter().map(in_words).collect();
        json!({ "scenario": scenario, "binding": binding, "evaluation": evaluation_object(&answer.evaluation) })
    };
    let mut answers = plan.answers.iter().map(answer);
    let best = answers.next().unwrap_or(Json::Null);
    let runners_up: Vec<Json> = answers.collect();
    let rejected: Vec<Json> =
        plan.rejected.iter().map(|(reason, count)| json!({ "reason": reason, "count": count })).collect();
    let whole = json!({
        "title": plan.title,
        "minimise": plan.minimise.word(),
        "binding": best["binding"],
        "best": best,
        "runners_up": runners_up,
        "rejected": rejected,
    });
    format!("{whole:#}\n")
}
