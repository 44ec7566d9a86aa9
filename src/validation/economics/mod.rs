//! Published economics that state their inputs: cost lines, rent, depreciation, energy and its emissions, reckoned with the
//! model's own functions from what the row states, and held against the figure recomputed from the same inputs.
//!
//! A row without such a figure is excluded. The inputs are a text, as publications write them: "2,788K H800-h * $2". What of it
//! cannot be read is skipped, with the reason.

mod inputs;

use inputs::{Joint, Term, counted, figures, terms};

use super::outcome::{CaseResult, Outcome, Prediction};
use super::table::Row;
use crate::catalog::pricebook::Driver;
use crate::facility::{Load, provisioned};
use crate::finance::Depreciation;
use crate::provenance::Basis;
use crate::scenario::{Amortisation, ByBook, Finance};
use crate::tco::{CostBreakdown, CostLine, CostTotals};
use crate::units::{CarbonMass, Fraction, Quantity, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour, Watts, to_integer};

/// Columns that a table of economics must have.
pub(super) const COLUMNS: &[&str] = &["id", "case", "inputs", "published_output", "unit", "recomputed"];

const HOUR: Seconds = Seconds::new(3_600.0);
/// The whole numbers that may count accelerators in a text.
const MOST_ACCELERATORS: f64 = 1e8;

/// The cases of a row: one for each figure that it recomputes.
pub(super) fn cases(row: &Row) -> Vec<CaseResult> {
    let id = row.text("id").unwrap_or_default();
    let group = row.text("source").or(row.text("case")).unwrap_or_default();
    let result =
        |id: String, outcome| CaseResult { id, group: group.to_owned(), band: None, filled: Vec::new(), outcome };
    let all = |outcome| vec![result(id.to_owned(), outcome)];
    let measured = figures(row.text("recomputed").unwrap_or_default());
    if measured.is_empty() {
        return all(Outcome::Excluded("no figure is recomputed from stated inputs".to_owned()));
    }
    let Some(stated) = row.text("inputs") else {
        return all(Outcome::Skipped("no inputs are stated".to_owned()));
    };
    let unit = row.text("unit").unwrap_or_default();
    let Some(predicted) = reckoned(stated, unit, row) else {
        return all(Outcome::Skipped(format!("the inputs \"{stated}\" say nothing that gives {unit}")));
    };
    if predicted.len() != measured.len() {
        let message = format!("{} figures are recomputed, and the inputs give {}", measured.len(), predicted.len());
        return all(Outcome::Skipped(message));
    }
    let one = measured.len() == 1;
    let case = |(index, (measured, predicted)): (usize, (f64, f64))| {
        let prediction = Prediction { metric: unit.to_owned(), measured, predicted, convention: None, gpus: None };
        let id = if one { id.to_owned() } else { format!("{id}, figure {}", index + 1) };
        result(id, Outcome::Predicted(prediction))
    };
    measured.into_iter().zip(predicted).enumerate().map(case).collect()
}

/// The figures that the stated inputs give in a unit; none where they say nothing of that kind.
fn reckoned(stated: &str, unit: &str, row: &Row) -> Option<Vec<f64>> {
    if let Some(loads) = counted(stated).filter(|_| matches!(unit, "kW" | "MW")) {
        return Some(vec![power(&loads.into_iter().map(|(count, of)| (count, of * 1e3)).collect::<Vec<_>>(), unit)?]);
    }
    let terms = terms(stated)?;
    let rules: [Rule; 9] = [emissions, rent, electricity, hour, written_off, draw, shared, lines, per_accelerator];
    let said = Said { terms: &terms, unit, row };
    rules.iter().find_map(|rule| rule(&said))
}

/// What a kind of statement gives, where a row makes it.
type Rule = fn(&Said<'_>) -> Option<Vec<f64>>;

/// What a row says.
struct Said<'a> {
    terms: &'a [Term],
    unit: &'a str,
    row: &'a Row,
}

impl Said<'_> {
    fn dollars(&self) -> Option<&Term> {
        self.terms.iter().find(|term| term.dollars)
    }

    fn of(&self, word: &str) -> Option<&Term> {
        self.terms.iter().find(|term| term.is(word))
    }

    /// Dollars of a number; where the row's unit is millions, so are its numbers.
    fn money(&self, number: f64) -> Usd {
        Usd::new(number) * self.scale()
    }

    /// An amount in the row's unit.
    fn figure(&self, amount: Usd) -> f64 {
        // The base number, because the row's figure is one.
        amount.value() / self.scale()
    }

    fn scale(&self) -> f64 {
        if self.unit.ends_with(" M") { 1e6 } else { 1.0 }
    }

    /// Accelerator-hours, as "2,788K H800-h".
    fn accelerator_hours(&self) -> Option<Seconds> {
        Some(HOUR * self.terms.iter().find(|term| term.after.ends_with("-h"))?.number)
    }
}

/// Accelerator-hours at a price, or nodes of accelerators for hours at a price.
fn rent(said: &Said<'_>) -> Option<Vec<f64>> {
    let price = UsdPerHour::new(said.dollars()?.number);
    let hours = match said.accelerator_hours() {
        Some(hours) => hours,
        None => HOUR * (said.of("nodes")?.number * said.of("gpu")?.number * said.of("h")?.number),
    };
    Some(vec![said.figure(price.over(hours))])
}

/// A year's energy at a price.
fn electricity(said: &Said<'_>) -> Option<Vec<f64>> {
    let (energy, price) = (said.of("kwh")?, said.dollars()?);
    let amount = (energy.number, Usd::new(price.number));
    let line = CostLine::yearly("Electricity", Driver::Kwh, amount, Fraction::ZERO, Basis::Quote);
    Some(vec![said.figure(CostBreakdown::of(vec![line], &plain(1.0)).opex_per_year)])
}

/// What owning an accelerator costs an hour: its price over the years in which it is paid back, and running costs as a share
/// of that, without interest.
fn hour(said: &Said<'_>) -> Option<Vec<f64>> {
    let price = said.terms.iter().find(|term| term.begins("capex"))?;
    let years = said.terms.iter().find(|term| term.begins("yr"))?.number;
    let opex = said.terms.iter().find(|term| term.percent && term.before.contains("opex"))?;
    let finance = plain(years);
    let price = Usd::new(price.number);
    let lines = vec![
        CostLine::once("Accelerator", Driver::Accelerator, (1.0, price), finance.accelerator_life, Basis::Quote),
        CostLine::yearly(
            "Running it",
            Driver::CapexRatio,
            (opex.number / 100.0, price / years),
            Fraction::ZERO,
            Basis::Quote,
        ),
    ];
    let annualised = CostBreakdown::of(lines, &finance).annualised;
    let cluster = annualised.per(Seconds::new(SECONDS_PER_YEAR));
    let totals = CostTotals { cluster, accelerators: 1, at_work: 1, utilisation: Fraction::ONE };
    Some(vec![totals.unit_costs(1.0).per_gpu_hour.value()])
}

/// What straight-line depreciation writes off a year, over each of the lives stated.
fn written_off(said: &Said<'_>) -> Option<Vec<f64>> {
    let lives: Vec<&Term> = said.terms.iter().filter(|term| term.is("yr")).collect();
    let price = Usd::new(said.dollars()?.number);
    let first = |years: f64| Depreciation::StraightLine { years }.schedule(price, Usd::ZERO).first().copied();
    let amounts: Option<Vec<f64>> = lives.iter().map(|life| Some(first(life.number)?.value())).collect();
    amounts.filter(|amounts| !amounts.is_empty())
}

/// Power of accelerators, of what stands around each, and a share on top; how many there are stands in the case.
fn draw(said: &Said<'_>) -> Option<Vec<f64>> {
    let watts: Vec<f64> = said.terms.iter().filter(|term| term.is("w")).map(|term| term.number).collect();
    if watts.is_empty() || !matches!(said.unit, "MW" | "kW") {
        return None;
    }
    let on_top: f64 = said.terms.iter().filter(|term| term.percent).map(|term| term.number / 100.0).sum();
    let count = terms(said.row.text("case")?.split(" cluster").next()?)?.first()?.number;
    let loads: Vec<(f64, f64)> = watts.into_iter().map(|each| (count, each * (1.0 + on_top))).collect();
    Some(vec![power(&loads, said.unit)?])
}

/// A share of a whole, in per cent.
fn shared(said: &Said<'_>) -> Option<Vec<f64>> {
    match said.terms {
        [part, whole] if whole.joint == Joint::Over && said.unit.starts_with("percent") => {
            Some(vec![Fraction::new(part.number / whole.number)?.get() * 100.0])
        }
        _ => None,
    }
}

/// Lines of what is bought once. In a list their names come first, and a number before the same name says how many they
/// are; in a sum their names come after.
fn lines(said: &Said<'_>) -> Option<Vec<f64>> {
    let life = plain(1.0).accelerator_life;
    let summed = said.terms.iter().skip(1).all(|term| term.joint == Joint::Plus);
    let listed = said.terms.iter().all(|term| term.joint == Joint::Listed);
    if said.terms.len() < 2 || !(summed || listed) {
        return None;
    }
    let count = |name: &str| said.terms.iter().find(|term| term.before.is_empty() && term.after == name);
    let line = |term: &Term| {
        let name = if summed { &term.after } else { &term.before };
        let quantity = if summed { 1.0 } else { count(name).map_or(1.0, |count| count.number) };
        let bought = (quantity, said.money(term.number) / quantity);
        CostLine::once(name, Driver::Cluster, bought, life, Basis::Quote)
    };
    let bought: Vec<CostLine> = said.terms.iter().filter(|term| summed || !term.before.is_empty()).map(line).collect();
    let whole = bought.len() > 1 && said.unit.starts_with("usd");
    whole.then(|| vec![said.figure(CostBreakdown::of(bought, &plain(1.0)).capex)])
}

/// What is bought for each of so many.
fn per_accelerator(said: &Said<'_>) -> Option<Vec<f64>> {
    match said.terms {
        [all, count] if count.joint == Joint::Over && said.unit == "usd/GPU" => {
            Some(vec![(Usd::new(all.number) / count.number).value()])
        }
        _ => None,
    }
}

/// The intensity of the grid that a published mass of emissions implies for accelerator-hours at a power.
fn emissions(said: &Said<'_>) -> Option<Vec<f64>> {
    let energy = Watts::new(said.of("w")?.number) * said.accelerator_hours()?;
    let tonnes = figures(said.row.text("published_output")?).first().copied()?;
    let mass = CarbonMass::parse(&format!("{tonnes} tCO2e")).ok()?;
    said.unit.starts_with("tCO2e").then_some(())?;
    Some(vec![(mass / energy).in_unit("kgCO2e/kWh")?])
}

/// Provisioned power of counted loads, in watts each.
fn power(loads: &[(f64, f64)], unit: &str) -> Option<f64> {
    let load = |(count, watts): &(f64, f64)| {
        let whole = count.fract() == 0.0 && (1.0..=MOST_ACCELERATORS).contains(count);
        whole.then(|| Load::constant(to_integer::<u64>(*count), Watts::new(*watts)))
    };
    provisioned(&loads.iter().map(load).collect::<Option<Vec<_>>>()?).in_unit(unit)
}

/// Money without interest over so many years, all hours used.
fn plain(years: f64) -> Finance {
    let life = Seconds::new(years * SECONDS_PER_YEAR);
    Finance {
        horizon: life,
        accelerator_life: life,
        cost_of_capital: Fraction::ZERO,
        method: Amortisation::Annuity,
        by_book: ByBook::default(),
        hardware_age: Seconds::ZERO,
        inflation: Fraction::ZERO,
        utilisation: Fraction::ONE,
    }
}
