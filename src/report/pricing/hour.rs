//! What an owned hour consists of: a row a cost line, a column an owned offer.

use super::super::cost_lines::gathered;
use super::super::page::{Block, Grid, Section};
use super::{NONE, answered, owned};
use crate::evaluate::Evaluation;
use crate::study::pricing::PricingStudy;
use crate::units::{SECONDS_PER_YEAR, Seconds, Usd};

/// Of every owned offer; none where nothing is owned.
pub(super) fn section(study: &PricingStudy) -> Option<Section> {
    let owned = || answered(study).filter(|(_, answer)| owned(answer).is_some());
    let columns: Vec<Vec<(String, Usd)>> =
        owned().map(|(_, answer)| gathered(&answer.evaluation, |line| line.annualised)).collect();
    let hours: Vec<Seconds> = owned().map(|(_, answer)| bought(&answer.evaluation)).collect();
    if columns.is_empty() {
        return None;
    }
    let heads: Vec<&str> = std::iter::once("Line").chain(owned().map(|(offer, _)| &*offer.name)).collect();
    let mut grid = Grid::new(&heads, 1);
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in columns.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let amounts: Vec<Usd> = columns.iter().map(|lines| amount(lines, name)).collect();
        if amounts.iter().any(|amount| *amount != Usd::ZERO) {
            grid.rows.push(row(name, &amounts, &hours));
        }
    }
    let total: Vec<Usd> = owned().map(|(_, answer)| answer.evaluation.built.costs.annualised).collect();
    grid.rows.push(row("An accelerator's hour", &total, &hours));
    let text = "Each line over its own life or with its own growth, by level payments or the study's method, over the hours \
                of all accelerators bought. `--format csv --rows lines` has every line with its driver, quantity, life, date \
                and source.";
    Some(Section {
        heading: "What an owned hour consists of".to_owned(),
        blocks: vec![Block::Text(text.to_owned()), Block::Grid(grid)],
    })
}

fn amount(lines: &[(String, Usd)], name: &str) -> Usd {
    lines.iter().filter(|(own, _)| own == name).map(|(_, amount)| *amount).sum()
}

/// Hours of a year of all that are bought.
fn bought(evaluation: &Evaluation) -> Seconds {
    Seconds::new(SECONDS_PER_YEAR) * evaluation.built.drivers.accelerators as f64
}

fn row(name: &str, amounts: &[Usd], hours: &[Seconds]) -> Vec<String> {
    let cell = |(amount, hours): (&Usd, &Seconds)| {
        if *amount == Usd::ZERO { NONE.to_owned() } else { amount.per(*hours).to_string() }
    };
    std::iter::once(name.to_owned()).chain(amounts.iter().zip(hours).map(cell)).collect()
}
