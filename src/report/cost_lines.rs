//! Cost lines, each with what it multiplies, how long it lasts or how it grows, and what stands behind it.

use serde_json::{Value as Json, json};

use super::figure::{dollars, grouped};
use super::number::finite;
use super::page::Grid;
use crate::evaluate::{Evaluation, LineEvidence, PartLine};
use crate::tco::{CostLine, Spending};
use crate::units::{SECONDS_PER_YEAR, Seconds, Usd, significant, to_integer};

/// Lines for people.
pub(super) fn lines(evaluation: &Evaluation) -> Grid {
    let head = ["Line", "Paid", "Over", "Basis", "Of", "Per", "Quantity", "Of one", "Amount", "Annualised"];
    let mut grid = Grid::new(&head, 6);
    for line in &evaluation.built.costs.lines {
        grid.rows.push(vec![
            line.name.clone(),
            paid(line).to_owned(),
            over(line),
            line.basis.to_string(),
            evaluation.evidence_of(line).map_or_else(String::new, |evidence| evidence.date.to_owned()),
            line.per.to_string(),
            quantity(line.quantity),
            dollars(line.unit_amount),
            line.amount.to_string(),
            line.annualised.to_string(),
        ]);
    }
    grid
}

/// How many of its driver a line has.
pub(super) fn quantity(quantity: f64) -> String {
    if quantity >= 1e3 { grouped(to_integer(quantity.round())) } else { significant(quantity, 4) }
}

/// When a line is paid.
const fn paid(line: &CostLine) -> &'static str {
    match line.spending {
        Spending::Capex { .. } => "once",
        Spending::Opex { .. } => "a year",
    }
}

/// The life of what is bought, or the growth of what recurs.
pub(super) fn over(line: &CostLine) -> String {
    match line.spending {
        Spending::Capex { life } => life.to_string(),
        Spending::Opex { escalation } if escalation.get() > 0.0 => {
            format!("+{}% a year", significant(escalation.get() * 100.0, 3))
        }
        Spending::Opex { .. } => String::new(),
    }
}

/// What lines come to, parts of the fabric in one and those of networks beside it in another, by name and when they are paid.
pub(super) fn gathered(evaluation: &Evaluation, amount: fn(&CostLine) -> Usd) -> Vec<(String, Usd)> {
    let fabric = |name: &str| {
        let named = |part: &PartLine| name.ends_with(&format!(", {}: {}", part.tier.word(), part.id));
        !name.contains(" network, ") && evaluation.built.parts.iter().any(named)
    };
    // "Storage network, leaf: sn4600" and the like, all of a network in one.
    let beside = |name: &str| {
        let network = |title: &str| name.strip_prefix(title).is_some_and(|rest| rest.starts_with(" network, "));
        evaluation.built.side.iter().any(|bill| network(bill.title())).then_some("Networks beside the fabric")
    };
    let mut found: Vec<(String, Usd)> = Vec::new();
    for line in &evaluation.built.costs.lines {
        let name = if fabric(&line.name) { "Parts of the fabric" } else { beside(&line.name).unwrap_or(&line.name) };
        let name = format!("{name}, {}", paid(line));
        match found.iter_mut().find(|(own, _)| *own == name) {
            Some((_, known)) => *known += amount(line),
            None => found.push((name, amount(line))),
        }
    }
    found
}

/// The documents behind the lines of evaluations, each once, with the lines that rest on it.
pub(super) fn sources<'a>(evaluations: impl Iterator<Item = &'a Evaluation>) -> Vec<String> {
    let mut found: Vec<(LineEvidence<'a>, String, Vec<&'a str>)> = Vec::new();
    for evaluation in evaluations {
        for line in &evaluation.built.costs.lines {
            let Some(evidence) = evaluation.evidence_of(line) else { continue };
            let basis = line.basis.to_string();
            match found.iter_mut().find(|(known, as_known, _)| *known == evidence && *as_known == basis) {
                Some((_, _, lines)) if lines.contains(&line.name.as_str()) => {}
                Some((_, _, lines)) => lines.push(&line.name),
                None => found.push((evidence, basis, vec![&line.name])),
            }
        }
    }
    let sentence = |(evidence, basis, lines): &(LineEvidence<'_>, String, Vec<&str>)| {
        format!("{} ({basis}, {}): {}.", lines.join("; "), evidence.date, evidence.source)
    };
    found.iter().map(sentence).collect()
}

/// A line for programs.
pub(super) fn line_object(evaluation: &Evaluation, line: &CostLine) -> Json {
    let mut object = json!({
        "name": line.name,
        "category": category(line),
        "per": line.per.word(),
        "quantity": finite(line.quantity),
        "unit_amount_usd": finite(line.unit_amount.value()),
        "annualised_per_year_usd": finite(line.annualised.value()),
        "basis": line.basis.word(),
    });
    match line.spending {
        Spending::Capex { life } => {
            object["capex_usd"] = finite(line.amount.value());
            object["life_years"] = finite(life / Seconds::new(SECONDS_PER_YEAR));
        }
        Spending::Opex { escalation } => {
            object["opex_per_year_usd"] = finite(line.amount.value());
            object["growth_per_year_ratio"] = finite(escalation.get());
        }
    }
    if let Some(evidence) = evaluation.evidence_of(line) {
        object["date"] = evidence.date.into();
        object["source"] = evidence.source.into();
        object["url"] = evidence.url.into();
    }
    object
}

/// Heads of a line's cells in a spreadsheet, names and words first, and how many these are.
pub(super) const CELLS: (&[&str], usize) = (
    &[
        "line",
        "category",
        "per",
        "basis",
        "date",
        "source",
        "url",
        "quantity",
        "unit_amount_usd",
        "amount_usd",
        "annualised_per_year_usd",
        "life_years",
        "growth_per_year_ratio",
    ],
    7,
);

/// The cells of a line under these heads.
pub(super) fn cells(evaluation: &Evaluation, line: &CostLine) -> Vec<String> {
    let (life, growth) = match line.spending {
        Spending::Capex { life } => ((life / Seconds::new(SECONDS_PER_YEAR)).to_string(), String::new()),
        Spending::Opex { escalation } => (String::new(), escalation.get().to_string()),
    };
    let evidence = evaluation.evidence_of(line);
    let of = |text: fn(LineEvidence<'_>) -> &str| evidence.map_or_else(String::new, |known| text(known).to_owned());
    vec![
        line.name.clone(),
        category(line).to_owned(),
        line.per.word().to_owned(),
        line.basis.word().to_owned(),
        of(|evidence| evidence.date),
        of(|evidence| evidence.source),
        of(|evidence| evidence.url.unwrap_or_default()),
        line.quantity.to_string(),
        line.unit_amount.value().to_string(),
        line.amount.value().to_string(),
        line.annualised.value().to_string(),
        life,
        growth,
    ]
}

const fn category(line: &CostLine) -> &'static str {
    match line.spending {
        Spending::Capex { .. } => "capex",
        Spending::Opex { .. } => "opex",
    }
}
