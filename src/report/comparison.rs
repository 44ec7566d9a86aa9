//! Variants side by side as a page.

use super::basis::basis;
use super::break_even_map::break_even_map;
use super::cost_lines::gathered;
use super::evaluation::{headlines, is_nothing, kind_word, labelled, setting_grid};
use super::figure::{Group, Metric, Value, change, grouped, percent};
use super::infeasible::{advice, footprint_value};
use super::metrics::{metric, of_group};
use super::notes::notes;
use super::page::{Block, Grid, Page, Section};
use super::settings::settings;
use super::work_words::work_in_words;
use crate::evaluate::{Evaluation, Infeasible};
use crate::study::{BreakEven, Comparison, Level, Turn, Variable, Variant};
use crate::topology::{PartKind, Tier};
use crate::units::{Usd, significant};

/// Stands where a variant has no such figure.
const NONE: &str = "–";

/// A comparison as a page.
pub fn comparison_page(comparison: &Comparison) -> Page {
    let mut sections = vec![in_short(comparison)];
    if !comparison.break_even.is_empty() {
        sections.push(break_even(comparison));
    }
    sections.extend(comparison.maps.iter().map(|map| break_even_map(map, comparison)));
    for &group in Group::ALL {
        let grid = figures(labelled(group), comparison);
        if grid.rows.is_empty() {
            continue;
        }
        let mut blocks = vec![Block::Grid(grid)];
        match group {
            Group::Fabric => blocks.push(Block::Grid(parts(comparison))),
            Group::Cost => blocks.push(Block::Grid(lines(comparison))),
            _ => {}
        }
        sections.push(Section { heading: group.title().to_owned(), blocks });
    }
    sections.extend(settings_of_baseline(comparison));
    let evaluated: Vec<(&str, &Evaluation)> = evaluated(comparison).collect();
    if !evaluated.is_empty() {
        sections.push(basis(&evaluated));
        sections.push(Section::new("Notes", Block::List(notes(&evaluated))));
    }
    Page { title: comparison.title.clone(), sections }
}

/// The variants that can be, with their names.
fn evaluated(comparison: &Comparison) -> impl Iterator<Item = (&str, &Evaluation)> {
    comparison.variants.iter().filter_map(|variant| Some((variant.name.as_str(), &**variant.outcome.as_ref().ok()?)))
}

fn in_short(comparison: &Comparison) -> Section {
    let mut blocks = Vec::new();
    let baseline = comparison.baseline();
    if let Ok(evaluation) = &baseline.outcome {
        blocks.extend(work_in_words(evaluation).into_iter().map(Block::Text));
    }
    blocks.extend(found(comparison).map(Block::List));
    blocks.push(Block::Grid(figures(headlines(), comparison)));
    blocks
        .extend(serve_alike(comparison).then(|| Block::Text("All serve alike: they differ in cost alone.".to_owned())));
    let reasons: Vec<String> = comparison.variants.iter().filter_map(reason).collect();
    if !reasons.is_empty() {
        blocks.push(Block::List(reasons));
    }
    blocks.push(Block::Text(format!("Changes in brackets are against {}.", baseline.name)));
    Section { heading: "In short".to_owned(), blocks }
}

/// The layout of each variant, where any was searched.
fn found(comparison: &Comparison) -> Option<Vec<String>> {
    evaluated(comparison).any(|(_, evaluation)| evaluation.found.is_some()).then(|| {
        let layout = |(name, evaluation): (&str, &Evaluation)| Some(format!("{name}: {}.", evaluation.point?.layout));
        evaluated(comparison).filter_map(layout).collect()
    })
}

/// Why a variant cannot be.
fn reason(variant: &Variant) -> Option<String> {
    let infeasible = variant.outcome.as_ref().err()?;
    Some(format!("{} cannot be: {infeasible}. {}", variant.name, advice(infeasible)))
}

/// Heads of the columns: what is in the first, then the variants.
fn heads(first: &str, comparison: &Comparison) -> Grid {
    let names = comparison.variants.iter().map(|variant| variant.name.as_str());
    Grid::new(&[first].into_iter().chain(names).collect::<Vec<_>>(), 1)
}

/// Figures of all variants with their changes; figures that are nothing everywhere are left out.
fn figures(metrics: impl Iterator<Item = (&'static str, &'static Metric)>, comparison: &Comparison) -> Grid {
    let mut grid = heads("Figure", comparison);
    for (label, metric) in metrics {
        let values: Vec<Option<Value>> = comparison.variants.iter().map(|variant| value(metric, variant)).collect();
        if values.iter().flatten().all(|value| is_nothing(*value)) {
            continue;
        }
        let baseline = values[comparison.baseline];
        let cell = |(index, value): (usize, &Option<Value>)| {
            let Some(value) = *value else { return NONE.to_owned() };
            let delta = baseline.filter(|_| index != comparison.baseline).and_then(|baseline| value.delta(baseline));
            match delta.and_then(change) {
                Some(change) => format!("{} ({change})", metric.text(value)),
                None => metric.text(value),
            }
        };
        grid.rows.push([label.to_owned()].into_iter().chain(values.iter().enumerate().map(cell)).collect());
    }
    grid
}

/// Whether something is served, and by every variant in the same way.
fn serve_alike(comparison: &Comparison) -> bool {
    let all = |metric: &Metric| comparison.variants.iter().map(|variant| value(metric, variant)).collect::<Vec<_>>();
    let mut served = false;
    let alike = of_group(Group::Serving).all(|metric| {
        let values = all(metric);
        served |= values.iter().any(Option::is_some);
        values.iter().all(|value| *value == values[0])
    });
    let cost = metric("cost.capex_usd").map(all).unwrap_or_default();
    alike && served && cost.iter().any(|value| *value != cost[0])
}

/// A variant's figure; of one that does not fit, at least its memory.
fn value(metric: &Metric, variant: &Variant) -> Option<Value> {
    match &variant.outcome {
        Ok(evaluation) => metric.value(evaluation),
        Err(Infeasible::Memory { footprint, usable, .. }) => footprint_value(metric.key, footprint, *usable),
        Err(_) => None,
    }
}

fn break_even(comparison: &Comparison) -> Section {
    let mut grid = Grid::new(&["What is moved, all else as it is", "Now", "Order turns at", "Change"], 4);
    for found in &comparison.break_even {
        grid.rows.push(break_even_row(found, comparison));
    }
    let baseline = &comparison.baseline().name;
    let sentence = format!("Where a run costs as much as on {baseline}:");
    let mut blocks = vec![Block::Text(sentence), Block::Grid(grid)];
    let hashed: Vec<String> = comparison.break_even.iter().filter_map(|found| hashed_note(found, comparison)).collect();
    if !hashed.is_empty() {
        blocks.push(Block::List(hashed));
    }
    Section { heading: "Break-even".to_owned(), blocks }
}

/// What stands behind the present efficiency of a fabric that spreads its flows by a hash.
fn hashed_note(found: &BreakEven, comparison: &Comparison) -> Option<String> {
    let collisions = found.collisions?;
    Some(format!(
        "{} spreads flows by a hash, {} of a card over {} uplinks of a leaf: at full load the fullest is expected to hold {}, \
         which leaves {}; under the loads of this job that costs as much as a constant {}.",
        comparison.variants[found.between.1].name,
        significant(collisions.flows_per_nic, 3),
        collisions.links,
        significant(collisions.fullest, 3),
        percent(collisions.share()),
        written(found.present)
    ))
}

fn break_even_row(found: &BreakEven, comparison: &Comparison) -> Vec<String> {
    let other = &comparison.variants[found.between.1].name;
    let what = match found.variable {
        Variable::FabricCapex => format!("price of the fabric of {other}"),
        Variable::SpineEfficiency => format!("spine efficiency of {other}"),
        Variable::StepTime => format!("iteration of {other}"),
    };
    let (turns, by) = match found.turn {
        Turn::At(level) => (written(level), change(number(level) / number(found.present) - 1.0).unwrap_or_default()),
        Turn::Never { .. } => (never(found, comparison), String::new()),
    };
    vec![what, written(found.present), turns, by]
}

/// Why there is no break-even.
pub(super) fn never(found: &BreakEven, comparison: &Comparison) -> String {
    let Turn::Never { winner, from, to } = found.turn else { return String::new() };
    let winner = &comparison.variants[winner].name;
    match found.variable {
        Variable::FabricCapex => format!("no crossing: {winner} costs less even against a free fabric"),
        _ => format!("no crossing: {winner} costs less from {} to {}", written(from), written(to)),
    }
}

fn written(level: Level) -> String {
    match level {
        Level::Price(price) => price.to_string(),
        Level::Efficiency(share) => percent(share.get()),
        Level::Time(time) => time.to_string(),
    }
}

/// The number of a level in its base unit.
pub(super) fn number(level: Level) -> f64 {
    match level {
        Level::Price(price) => price.value(),
        Level::Efficiency(share) => share.get(),
        Level::Time(time) => time.value(),
    }
}

/// The bills of materials, by kind and tier.
fn parts(comparison: &Comparison) -> Grid {
    let mut grid = heads("Part", comparison);
    let mut places: Vec<(PartKind, Tier)> = evaluated(comparison)
        .flat_map(|(_, evaluation)| evaluation.built.parts.iter().map(|part| (part.kind, part.tier)))
        .collect();
    places.sort_unstable();
    places.dedup();
    for (kind, tier) in places {
        let cell = |variant: &Variant| {
            let Ok(evaluation) = &variant.outcome else { return NONE.to_owned() };
            let here = evaluation.built.parts.iter().filter(|part| part.kind == kind && part.tier == tier);
            let each = here.map(|part| format!("{} x {}, {}", grouped(part.count), part.id, part.price()));
            let all: Vec<String> = each.collect();
            if all.is_empty() { NONE.to_owned() } else { all.join("\n") }
        };
        let label = format!("{}, {}", kind_word(kind), tier.word());
        grid.rows.push([label].into_iter().chain(comparison.variants.iter().map(cell)).collect());
    }
    grid
}

/// Cost lines; the parts of the fabric, which have a table of their own, in one.
fn lines(comparison: &Comparison) -> Grid {
    let mut grid = heads("Cost line", comparison);
    let columns: Vec<Vec<(String, Usd)>> = comparison
        .variants
        .iter()
        .map(|variant| variant.outcome.as_ref().map(|e| gathered(e, |line| line.amount)).unwrap_or_default())
        .collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in columns.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Lines paid once come first, also those that the first variant does not have.
    names.sort_by_key(|name| name.ends_with(", a year"));
    for name in names {
        let amounts = columns.iter().map(|column| {
            let found = column.iter().find(|(own, _)| own == name);
            found.map_or_else(|| NONE.to_owned(), |(_, amount)| amount.to_string())
        });
        grid.rows.push([name.clone()].into_iter().chain(amounts).collect());
    }
    grid
}

/// The settings of the baseline, or of the first variant that can be; varied keys are in the heads of the columns.
fn settings_of_baseline(comparison: &Comparison) -> Option<Section> {
    let baseline = comparison.baseline();
    let shown =
        if baseline.outcome.is_ok() { Some(baseline) } else { comparison.variants.iter().find(|v| v.outcome.is_ok()) }?;
    let evaluation = shown.outcome.as_ref().ok()?;
    let settings = settings(evaluation);
    Some(Section::new(format!("Settings of {}", shown.name), Block::Grid(setting_grid(&settings))))
}
