//! One evaluation as a page.

use super::basis::basis;
use super::cost_lines::{lines, sources};
use super::figure::{Group, Metric, Value, counted, dollars, grouped, percent};
use super::layout_search;
use super::memory_tiers;
use super::metrics::{metric, of_group};
use super::notes::{missed, notes};
use super::page::{Block, Grid, Page, Section};
use super::settings::{Origin, Setting, settings};
use super::stages::stage_grid;
use super::tenants::{billed, tenant_grid};
use super::ways_search;
use super::work_words::work_in_words;
use crate::evaluate::{Evaluation, PartLine};
use crate::topology::PartKind;

/// The figures that answer the question, in order, with labels that stand alone; the groups have the rest.
pub const HEADLINES: &[(&str, &str)] = &[
    ("Memory of a GPU", "memory.total_bytes"),
    ("Memory of a GPU of prefill", "memory.prefill_total_bytes"),
    ("Fits", "memory.fits"),
    ("Iteration", "training.iteration_s"),
    ("Communication in it", "training.exposed_communication_s"),
    ("MFU, causal attention", "training.mfu_ratio"),
    ("Tokens a second", "training.tokens_per_s"),
    ("Run without failures", "training.duration_days"),
    ("Replicas", "serving.replicas_count"),
    ("Time to first token", "serving.ttft_s"),
    ("Time between tokens", "serving.tpot_s"),
    ("Requests a second", "serving.requests_per_s"),
    ("Answers' tokens a second a GPU", "serving.output_tokens_per_s_per_gpu"),
    ("Limits kept", "serving.limits_kept"),
    ("Requests at once, at most", "serving.max_concurrency_count"),
    ("Goodput", "goodput.ratio"),
    ("Run with failures", "training.effective_days"),
    ("Price of the fabric", "fabric.capex_usd"),
    ("IT power, provisioned", "facility.it_kw"),
    ("Facility power, provisioned", "facility.total_kw"),
    ("Capex", "cost.capex_usd"),
    ("Opex a year", "cost.opex_per_year_usd"),
    ("A GPU for an hour, owned", "cost.usd_per_gpu_hour"),
    ("Cost of the run", "cost.usd_per_run"),
    ("Million tokens, prompts and answers", "cost.usd_per_mtok_blended"),
    ("Million tokens of prompts", "cost.usd_per_mtok_input"),
    ("Million cached tokens of prompts", "cost.usd_per_mtok_cached"),
    ("Million tokens of answers", "cost.usd_per_mtok_output"),
];

/// The headlines with their figures.
pub(super) fn headlines() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    HEADLINES.iter().filter_map(|(label, key)| Some((*label, metric(key)?)))
}

/// The figures of a group with their own labels.
pub(super) fn labelled(group: Group) -> impl Iterator<Item = (&'static str, &'static Metric)> {
    of_group(group).map(|metric| (metric.label, metric))
}

/// An evaluation as a page.
pub fn evaluation_page(evaluation: &Evaluation) -> Page {
    let mut sections = vec![Section {
        heading: "In short".to_owned(),
        blocks: work_in_words(evaluation)
            .into_iter()
            .chain(missed(evaluation))
            .map(Block::Text)
            .chain([Block::Grid(figures(headlines(), evaluation))])
            .collect(),
    }];
    sections.extend(layout_search::section(evaluation));
    sections.extend(ways_search::section(evaluation));
    for &group in Group::ALL {
        let grid = figures(labelled(group), evaluation);
        if grid.rows.is_empty() {
            continue;
        }
        let mut blocks = vec![Block::Grid(grid)];
        match group {
            Group::Training => blocks.extend(evaluation.run.as_ref().and_then(stage_grid).map(Block::Grid)),
            Group::Serving => {
                blocks.extend(tenant_grid(evaluation).map(Block::Grid));
                blocks.extend(billed(evaluation).map(Block::Text));
                blocks.extend(whose_time(evaluation).map(Block::Text));
            }
            Group::Fabric => {
                blocks.push(Block::Grid(parts(&evaluation.built.parts)));
                for network in evaluation.built.side.iter().filter(|network| !network.parts.is_empty()) {
                    let beside = format!(
                        "{} network, {}: {}, {}, {}, {}.",
                        network.title(),
                        network.id,
                        counted(network.ports, "port"),
                        counted(network.tree.switches(), "switch"),
                        network.price(),
                        network.draw()
                    );
                    blocks.push(Block::Text(beside));
                }
            }
            Group::Cost => {
                blocks.push(Block::Grid(lines(evaluation)));
                blocks.extend(memory_tiers::grid(evaluation).map(Block::Grid));
                blocks.push(Block::Text("What stands behind the lines:".to_owned()));
                blocks.push(Block::List(sources(std::iter::once(evaluation))));
            }
            _ => {}
        }
        let pools = group == Group::Memory && evaluation.serving.is_some_and(|point| point.pool.is_some());
        let whose = if pools { "; of decode, then of prefill" } else { "" };
        sections.push(Section { heading: format!("{}{whose}", group.title()), blocks });
    }
    let settings = settings(evaluation);
    sections.push(Section::new("Settings", Block::Grid(setting_grid(&settings))));
    sections.push(basis(&[("Weakest", evaluation)]));
    let mut notes = notes(&[("", evaluation)]);
    // That is told in short.
    notes.retain(|note| Some(note) != missed(evaluation).as_ref());
    sections.push(Section::new("Notes", Block::List(notes)));
    Page { title: evaluation.scenario.title.clone(), sections }
}

/// Of which pool the shares of time are, where there are two.
fn whose_time(evaluation: &Evaluation) -> Option<String> {
    let point = evaluation.serving?;
    let busy = point.request_rate() / point.pool?.most;
    Some(format!(
        "Shares of time are of replicas that decode; prefill's workers take prompts in for {} of theirs.",
        percent(busy.min(1.0))
    ))
}

/// Figures and their values; parts that are nothing are left out.
fn figures(metrics: impl Iterator<Item = (&'static str, &'static Metric)>, evaluation: &Evaluation) -> Grid {
    let mut grid = Grid::new(&["Figure", "Value"], 1);
    for (label, metric) in metrics {
        if let Some(value) = metric.value(evaluation).filter(|value| !is_nothing(*value)) {
            grid.rows.push(vec![label.to_owned(), metric.text(value)]);
        }
    }
    grid
}

/// Whether a value says that there is none of a thing.
pub(super) fn is_nothing(value: Value) -> bool {
    value.number() == Some(0.0)
}

fn parts(parts: &[PartLine]) -> Grid {
    let mut grid = Grid::new(&["Part", "Tier", "Id", "Basis", "Count", "Spares", "Price", "All", "Power"], 4);
    for part in parts {
        grid.rows.push(vec![
            kind_word(part.kind).to_owned(),
            part.tier.word().to_owned(),
            part.id.clone(),
            part.basis.to_string(),
            grouped(part.count),
            grouped(part.spares),
            dollars(part.unit_price),
            part.price().to_string(),
            part.draw().to_string(),
        ]);
    }
    grid
}

/// What people call a kind of part.
pub(super) const fn kind_word(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Nic => "network card",
        PartKind::Switch => "switch",
        PartKind::Optic => "optical module",
        PartKind::Cable => "cable",
        PartKind::ManagerServer => "fabric manager",
    }
}

/// Keys and values, the defaults marked.
pub(super) fn setting_grid(settings: &[Setting]) -> Grid {
    let mut grid = Grid::new(&["Key", "Value", ""], 3);
    for setting in settings {
        let origin = match setting.origin {
            Origin::Given => "",
            Origin::Default => "by default",
            Origin::Book => "by the price book",
            Origin::Found => "found",
            Origin::Agents => "of the agents",
            Origin::Tenants => "of the tenants",
        };
        grid.rows.push(vec![setting.key.to_owned(), setting.value.clone(), origin.to_owned()]);
    }
    grid
}
