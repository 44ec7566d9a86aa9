//! What planning came to.

use serde_json::{Map, Value as Json, json};

use super::cliffs::{manager_ports, rounded_spares, unused_fabric, unused_storage};
use super::csv::answers_csv;
use super::evaluation_object;
use super::figure::{counted, grouped, percent};
use super::given_back::given_back;
use super::metrics::metric;
use super::notes::uncalibrated;
use super::page::{Block, Grid, Page, Section};
use super::planned_tenants::{apart_json, tenant_blocks};
use super::sweep_words::layout_toml;
use super::work_words::{each_of, tokens_in_words};
use crate::evaluate::{Bands, Evaluation};
use crate::scenario::{Cluster, TopologyChoice};
use crate::search::{Binding, Deployment, Plan, PlanAnswer, PlanSize, Sizing};
use crate::units::significant;

/// The figures of an answer's row, with their heads.
const COLUMNS: [(&str, &str); 11] = [
    ("Replicas", "serving.replicas_count"),
    ("Open in each", "serving.open_per_replica_count"),
    ("Open in all", "serving.open_count"),
    ("TTFT, P95", "serving.ttft_p95_s"),
    ("TPOT, P95", "serving.tpot_p95_s"),
    ("Fabric", "fabric.capex_usd"),
    ("Power", "facility.total_kw"),
    ("Cost over the horizon", "cost.total_usd"),
    ("$/Mtok", "cost.usd_per_mtok_blended"),
    ("$/Mtok of prompts", "cost.usd_per_mtok_input"),
    ("$/Mtok of answers", "cost.usd_per_mtok_output"),
];

/// What keeps an answer from being smaller, in a word or two.
fn subject(binding: &Binding) -> String {
    match binding {
        Binding::Refused(_, why) => why.subject(),
        Binding::Spares(..) => "replicas to spare".to_owned(),
        Binding::Whole { .. } => "racks that are bought whole".to_owned(),
        Binding::Node => "whole nodes and replicas: nothing smaller is bought".to_owned(),
        Binding::Fewest => "the numbers of GPUs to choose from: none is smaller".to_owned(),
        Binding::Of(pool, of) => format!("{pool}: {}", subject(of)),
        Binding::Time(what, _) => (*what).to_owned(),
    }
}

/// The same with figures.
fn in_words(binding: &Binding) -> String {
    let fewer = |count: u64| format!("{}, the next fewer that are bought,", counted(count, "GPU"));
    let figures = match binding {
        Binding::Refused(count, why) => format!("{} {why}", fewer(*count)),
        Binding::Spares(count, why) => {
            format!("{} do without; with them they {why} ({})", fewer(*count), why.subject())
        }
        Binding::Whole { enough, bought } => {
            format!("{} of their {} would do", grouped(*enough), counted(*bought, "GPU"))
        }
        Binding::Of(pool, of) => return format!("{pool}: {}", in_words(of)),
        Binding::Time(what, share) => return format!("{what}, {} of the time", percent(*share)),
        Binding::Node | Binding::Fewest => return subject(binding),
    };
    format!("{}: {figures}", subject(binding))
}

/// What the band of an answer makes of it, in a sentence.
fn sized(sizing: &Sizing) -> String {
    let of = |size: &Result<PlanSize, String>| match size {
        Ok(size) => format!("{} would do", counted(size.main + size.prefill, "GPU")),
        Err(why) => format!("no number of GPUs would do ({why})"),
    };
    let Bands { tpot, ttft, uncalibrated, .. } = sizing.bands;
    let [tpot, ttft] = [tpot, ttft].map(|factor| significant(factor, 3));
    let of_times =
        format!("a factor of {tpot} of estimates of the time between tokens, and of {ttft} of that to the first");
    let within = if uncalibrated {
        format!("By the nearest kinds that were measured, and as much again, nine of ten would be within {of_times}.")
    } else {
        format!("Nine of ten measurements are within {of_times}.")
    };
    format!(
        "{within} Planned for again, with limits as many times longer, {} if all were that much faster, and with limits as many \
         times shorter, {} if all were that much slower.",
        of(&sizing.faster),
        of(&sizing.slower)
    )
}

/// What people look for first, and the rest: all of it side by side is wider than a screen.
const FIGURES: [&str; 7] =
    ["GPUs", "Replicas", "Open in all", "Cost over the horizon", "$/Mtok", "$/Mtok of prompts", "$/Mtok of answers"];
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
        let mut blocks = vec![
            Block::Text(format!("The least {}: {count} GPUs, {node} on {fabric}, {layout}.", plan.minimise)),
            Block::Text(format!("What binds: {}.", bound.join("; "))),
            Block::Text(best.sizing.as_ref().map_or_else(String::new, sized)),
        ];
        blocks.extend(uncalibrated(&best.evaluation).map(Block::Text));
        blocks.extend(tokens_in_words(&best.evaluation).map(Block::Text));
        blocks.extend(rounded_spares(&best.evaluation).map(Block::Text));
        blocks.extend(unused_storage(&best.evaluation).map(Block::Text));
        blocks.extend(unused_fabric(&best.evaluation).map(Block::Text));
        blocks.extend(manager_ports(&best.evaluation).map(Block::Text));
        blocks.push(Block::Text(money_in_words(&best.evaluation)));
        blocks.extend([
            Block::Grid(part(&whole, &[&["Node", "On", "Topology"], &FIGURES[..]])),
            Block::Grid(part(&whole, &[&["Layout", "What binds"], &MORE[..]])),
        ]);
        sections.push(Section { heading: "Plan".to_owned(), blocks });
        let tenants = tenant_blocks(plan, &best.evaluation);
        if !tenants.is_empty() {
            sections.push(Section { heading: "Tenants".to_owned(), blocks: tenants });
        }
    }
    if !plan.rejected.is_empty() {
        let mut grid = Grid::new(&["Why not", "Ways"], 1);
        grid.rows = plan.rejected.iter().map(|rejected| vec![rejected.line(), grouped(rejected.count)]).collect();
        sections.push(Section::new("Rejected", Block::Grid(grid)));
    }
    Page { title: plan.title.clone(), sections }
}

/// What costs are reckoned with.
fn money_in_words(evaluation: &Evaluation) -> String {
    let (cluster, finance) = (&evaluation.scenario.cluster, &evaluation.scenario.finance);
    format!(
        "The horizon is {}, not discounted. Prices are those of {}; accelerators last {}, and capital costs {} a year.",
        finance.horizon,
        cluster.prices.id,
        finance.accelerator_life,
        percent(finance.cost_of_capital.get())
    )
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
    let Some((point, serving)) = evaluation.serving.as_ref().zip(evaluation.scenario.serving.as_ref()) else {
        return String::new();
    };
    let layout = &point.layout;
    let spare = if point.spares > 0 { format!(" and {} to spare", grouped(point.spares)) } else { String::new() };
    let each = each_of(serving, layout.ranks());
    let mut ways = format!("{}{spare} of {each}: {layout}", counted(replicas, "replica"));
    if let Some(pool) = point.pool {
        let (workers, ranks) = (counted(pool.workers - point.spares, "prefill worker"), pool.layout.ranks());
        ways = format!("{ways}; {workers}{spare} of {ranks}: {}", pool.layout);
    }
    if point.left_over() > 0 {
        ways = format!("{ways}; {} left over", counted(point.left_over(), "GPU"));
    }
    ways
}

/// A network's shape in words: its kind, and by how much its tiers are oversubscribed where they are.
fn topology(cluster: &Cluster) -> String {
    let TopologyChoice { kind, leaf_oversubscription: leaf, spine_oversubscription: spine, .. } = &cluster.topology;
    let thinned = *leaf > 1.0 || *spine > 1.0;
    if thinned { format!("{kind}, oversubscribed [1, {leaf}, {spine}]") } else { kind.to_string() }
}

/// The answers for a spreadsheet, the best first: what was chosen, what binds, and all figures.
pub fn plan_csv(plan: &Plan, bom: bool) -> Vec<u8> {
    let chosen = |answer: &PlanAnswer| -> Vec<(String, String)> {
        let scenario = &answer.evaluation.scenario;
        let cluster = &scenario.cluster;
        let own = cluster.own_nodes_of_prefill();
        let bound: Vec<String> = answer.binding.iter().map(subject).collect();
        [
            ("cluster.node", cluster.node.id.clone()),
            ("cluster.accelerators", cluster.accelerators.to_string()),
            ("cluster.prefill.node", own.map(|own| own.node.id.clone()).unwrap_or_default()),
            ("cluster.prefill.accelerators", own.map(|own| own.accelerators.to_string()).unwrap_or_default()),
            ("cluster.fabric", cluster.fabric.entry.id.clone()),
            ("cluster.topology", topology(cluster)),
            ("layout", scenario.serving.as_ref().map(|of| layout_toml(&Deployment::given(of))).unwrap_or_default()),
            ("binding", bound.join("; ")),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    };
    answers_csv(&plan.answers.iter().map(|answer| (chosen(answer), &*answer.evaluation)).collect::<Vec<_>>(), bom)
}

/// The answers as a table, the best first.
fn plan_grid(plan: &Plan) -> Grid {
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
        row.push(answer.binding.first().map_or_else(String::new, subject));
        grid.rows.push(row);
    }
    grid
}

/// Accelerators at the ends of a band.
fn band(sizing: &Sizing) -> Json {
    let of = |size: &Result<PlanSize, String>| size.as_ref().ok().map(|size| size.main + size.prefill);
    json!({
        "factor_ratio": sizing.bands.throughput,
        "ttft_factor_ratio": sizing.bands.ttft,
        "uncalibrated": sizing.bands.uncalibrated,
        "low_accelerators_count": of(&sizing.faster),
        "high_accelerators_count": of(&sizing.slower),
    })
}

/// A plan for programs.
pub fn plan_json(plan: &Plan) -> String {
    let answer = |answer: &PlanAnswer| {
        let scenario: Map<String, Json> =
            given_back(&answer.evaluation).into_iter().map(|(key, value)| (key, value.into())).collect();
        let binding: Vec<String> = answer.binding.iter().map(in_words).collect();
        json!({
            "scenario": scenario,
            "binding": binding,
            "evaluation": evaluation_object(&answer.evaluation),
        })
    };
    let mut answers = plan.answers.iter().map(answer);
    let best = answers.next().unwrap_or(Json::Null);
    let runners_up: Vec<Json> = answers.collect();
    let rejected: Vec<Json> =
        plan.rejected.iter().map(|why| json!({ "reason": why.line(), "count": why.count })).collect();
    let mut whole = json!({
        "title": plan.title,
        "minimise": plan.minimise.word(),
        "binding": best["binding"],
        "band": plan.answers.first().and_then(|best| best.sizing.as_ref()).map(band),
        "best": best,
        "runners_up": runners_up,
        "rejected": rejected,
    });
    if let Some((apart, best)) = plan.apart.as_ref().zip(plan.answers.first()) {
        whole["apart"] = apart_json(apart, &best.evaluation);
    }
    format!("{whole:#}\n")
}
