//! Cost lines: parts at their prices, the price book's lines, and what the site costs.

use super::amortisation::{level_share, yearly_share};
use super::{Drivers, years};
use crate::catalog::Entry;
use crate::catalog::fabric::Transport;
use crate::catalog::pricebook::{Amount, Category, Driver, Line, PriceBook};
use crate::catalog::site::{Building, Housing, Site};
use crate::finance::present_value_factor;
use crate::provenance::{Basis, weakest};
use crate::scenario::Finance;
use crate::units::{Fraction, Joules, Meters, Ranged, SECONDS_PER_YEAR, Seconds, Usd, UsdPerWattSecond, Watts};

/// Parts of one kind, bought.
#[derive(Clone, Debug, PartialEq)]
pub struct PartCost {
    /// Their name.
    pub name: String,
    /// What they count as.
    pub per: Driver,
    /// How many.
    pub count: u64,
    /// Price of one.
    pub unit_price: Usd,
    /// What stands behind the price.
    pub basis: Basis,
}

impl PartCost {
    /// What parts are called: what they are there for, and their id in the catalog, which [`CostLine::part`] reads again.
    pub fn called(what: &str, id: &str) -> String {
        format!("{what}: {id}")
    }
}

/// What the amount of a line rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rests {
    /// The price of a part.
    Price,
    /// A line of the price book, of the same name.
    Book,
    /// A field of the site.
    Site(&'static str),
    /// Whoever states it.
    Stated,
}

/// All that costs depend on.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The bill of materials at its prices.
    pub parts: &'a [PartCost],
    /// The cluster's counts.
    pub drivers: &'a Drivers,
    /// The other costs.
    pub book: &'a PriceBook,
    /// Where it stands.
    pub site: &'a Entry<Site>,
    /// What the fabric carries.
    pub transport: Transport,
    /// How it is financed.
    pub finance: &'a Finance,
}

/// The field of a site that says what its building costs.
const BUILDING_COST: &str = "building.cost_per_kw";

/// When a line is paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spending {
    /// Once, at the beginning, and written off over a life.
    Capex {
        /// The life.
        life: Seconds,
    },
    /// Every year, growing.
    Opex {
        /// Growth a year.
        escalation: Fraction,
    },
}

/// A named cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CostLine {
    /// Its name.
    pub name: String,
    /// When it is paid.
    pub spending: Spending,
    /// What it is multiplied by.
    pub per: Driver,
    /// How many of that.
    pub quantity: f64,
    /// Cost of one; for opex, in the first year.
    pub unit_amount: Usd,
    /// The product: once for capex, in the first year for opex.
    pub amount: Usd,
    /// The constant yearly payment that is worth as much.
    pub annualised: Usd,
    /// What its amount rests on.
    pub rests: Rests,
    /// What stands behind it.
    pub basis: Basis,
}

impl CostLine {
    /// So many of something at an amount each, bought once and written off over a life.
    pub fn once(name: &str, per: Driver, amount: (f64, Usd), life: Seconds, basis: Basis) -> Self {
        Self { name: name.to_owned(), ..Self::new(Spending::Capex { life }, per, amount, Rests::Stated, basis) }
    }

    /// So many of something at an amount each, paid every year and growing.
    pub fn yearly(name: &str, per: Driver, amount: (f64, Usd), escalation: Fraction, basis: Basis) -> Self {
        Self { name: name.to_owned(), ..Self::new(Spending::Opex { escalation }, per, amount, Rests::Stated, basis) }
    }

    /// Without a name.
    fn new(spending: Spending, per: Driver, (quantity, unit_amount): (f64, Usd), rests: Rests, basis: Basis) -> Self {
        let amount = unit_amount * quantity;
        Self { name: String::new(), spending, per, quantity, unit_amount, amount, annualised: Usd::ZERO, rests, basis }
    }

    /// The id of the part that it pays for, where it pays for one.
    pub fn part(&self) -> Option<&str> {
        let id = self.name.rsplit_once(": ")?.1;
        (self.rests == Rests::Price).then_some(id)
    }

    /// Whether it is paid by power or energy.
    pub fn is_of_power(&self) -> bool {
        matches!(self.per, Driver::Kw | Driver::Kwh)
    }

    /// What it comes to over a horizon: again whenever a life ends within it, and every year's opex; not discounted.
    pub fn paid_over(&self, horizon: Seconds) -> Usd {
        let times = match self.spending {
            Spending::Capex { life } => purchases(horizon, life),
            Spending::Opex { escalation } => present_value_factor(Fraction::ZERO, escalation, years(horizon)),
        };
        self.amount * times
    }

    /// Whether it pays for the building.
    pub fn is_building(&self) -> bool {
        self.rests == Rests::Site(BUILDING_COST)
    }

    /// Fills in the yearly payment, by the method of the scenario.
    fn annualise(mut self, finance: &Finance) -> Self {
        let factor = match self.spending {
            Spending::Capex { life } => yearly_share(finance, life),
            Spending::Opex { escalation } => level_share(finance, escalation),
        };
        self.annualised = self.amount * factor;
        self
    }
}

/// A cluster's costs. Its totals are the sums of its lines in their order, so that they add up to the last digit.
#[derive(Clone, Debug, PartialEq)]
pub struct CostBreakdown {
    /// The lines: parts, other capex, opex.
    pub lines: Vec<CostLine>,
    /// Paid at the beginning.
    pub capex: Usd,
    /// Paid in the first year.
    pub opex_per_year: Usd,
    /// The constant yearly payment that is worth as much as all lines, each over its own life.
    pub annualised: Usd,
    /// Paid over the horizon: capex and every year's opex, not discounted, without interest and without resale.
    pub total: Usd,
    /// The weakest of the lines' bases.
    pub basis: Basis,
}

/// The costs of a cluster.
pub fn breakdown(inputs: &Inputs<'_>) -> CostBreakdown {
    let mut lines = Vec::new();
    each_line(inputs, |name, line| lines.push(CostLine { name: name.to_owned(), ..line }));
    // Capex first; the order within is kept.
    lines.sort_by_key(|line| matches!(line.spending, Spending::Opex { .. }));
    CostBreakdown::of(lines, inputs.finance)
}

/// Hands on every line, its name beside it, without a yearly payment.
fn each_line(inputs: &Inputs<'_>, mut take: impl FnMut(&str, CostLine)) {
    let life = inputs.finance.accelerator_life;
    let mut parts = Usd::ZERO;
    for part in inputs.parts {
        let amount = (part.count as f64, part.unit_price);
        let line = CostLine::new(Spending::Capex { life }, part.per, amount, Rests::Price, part.basis);
        parts += line.amount;
        take(&part.name, line);
    }
    // A cluster of one site has no fibre between sites.
    let is_paid = |line: &&Line| {
        line.applies_to(inputs.transport) && (line.per != Driver::FibreKm || inputs.drivers.fibre > Meters::ZERO)
    };
    for line in inputs.book.lines.iter().filter(is_paid) {
        take(&line.name, priced(line, parts, inputs));
    }
    each_site_line(inputs, take);
}

impl CostBreakdown {
    /// The same lines at other amounts: those of inputs that have the same parts, and lines of the same names. Nothing is
    /// allocated.
    pub fn repeat(&mut self, inputs: &Inputs<'_>) {
        let mut capex = 0;
        let mut opex = self.lines.iter().filter(|line| matches!(line.spending, Spending::Capex { .. })).count();
        let lines = &mut self.lines;
        each_line(inputs, |_, line| {
            let place = if matches!(line.spending, Spending::Capex { .. }) { &mut capex } else { &mut opex };
            if let Some(own) = lines.get_mut(*place) {
                *own = CostLine { name: std::mem::take(&mut own.name), ..line }.annualise(inputs.finance);
            }
            *place += 1;
        });
        *self = total(std::mem::take(&mut self.lines), inputs.finance);
    }

    /// Adds up lines, in their order, and spreads each over its years.
    pub fn of(lines: Vec<CostLine>, finance: &Finance) -> Self {
        total(lines.into_iter().map(|line| line.annualise(finance)).collect(), finance)
    }
}

fn total(lines: Vec<CostLine>, finance: &Finance) -> CostBreakdown {
    let (mut capex, mut bought, mut opex_per_year, mut running) = (Usd::ZERO, Usd::ZERO, Usd::ZERO, Usd::ZERO);
    for line in &lines {
        let paid = line.paid_over(finance.horizon);
        match line.spending {
            Spending::Capex { .. } => {
                capex += line.amount;
                bought += paid;
            }
            Spending::Opex { .. } => {
                opex_per_year += line.amount;
                running += paid;
            }
        }
    }
    CostBreakdown {
        capex,
        opex_per_year,
        annualised: lines.iter().map(|line| line.annualised).sum(),
        total: bought + running,
        basis: lines.iter().map(|line| line.basis).fold(Basis::Datasheet, weakest),
        lines,
    }
}

/// How often a thing of a life is bought over a horizon: again whenever it has ended before.
fn purchases(horizon: Seconds, life: Seconds) -> f64 {
    // A horizon of whole lives buys no further one for a rounding error.
    (horizon / life - 1e-9).ceil().max(1.0)
}

fn priced(line: &Line, parts: Usd, inputs: &Inputs<'_>) -> CostLine {
    let spending = match line.category {
        Category::Capex => Spending::Capex { life: line.life.unwrap_or(inputs.finance.accelerator_life) },
        // What says nothing of its own growth grows as all else does.
        Category::Opex | Category::Saving if line.escalation == Fraction::ZERO => {
            Spending::Opex { escalation: inputs.finance.inflation }
        }
        Category::Opex | Category::Saving => Spending::Opex { escalation: line.escalation },
    };
    let paid = match line.amount {
        Amount::Money(amount) => amount.value,
        Amount::ShareOfParts(share) => Usd::new(share.value.get()),
    };
    let unit_amount = if line.category == Category::Saving { -paid } else { paid };
    let amount = (inputs.drivers.quantity(line.per, parts), unit_amount);
    CostLine::new(spending, line.per, amount, Rests::Book, line.evidence.basis)
}

/// What the site adds: rent or building, and electricity.
fn each_site_line(inputs: &Inputs<'_>, mut take: impl FnMut(&str, CostLine)) {
    let level = Spending::Opex { escalation: inputs.finance.inflation };
    let mut add = |name: &str, spending, per, unit_amount: Usd, field: &'static str| {
        let amount = (inputs.drivers.quantity(per, Usd::ZERO), unit_amount);
        let basis = inputs.site.source_of(field).map_or(Basis::Assumed, |source| source.basis);
        take(name, CostLine::new(spending, per, amount, Rests::Site(field), basis));
    };
    match inputs.site.housing {
        Housing::Colocation { rent, .. } => {
            add("Colocation", level, Driver::Kw, of_a_kilowatt_year(rent), "colocation");
        }
        Housing::Own(Building { cost_per_kw, life, operations }) => {
            let capex = Spending::Capex { life: life.value };
            add("Building", capex, Driver::Kw, cost_per_kw.value, BUILDING_COST);
            let upkeep = of_a_kilowatt_year(operations);
            add("Building operations", level, Driver::Kw, upkeep, "building.operations");
        }
    }
    if !matches!(inputs.site.housing, Housing::Colocation { includes_power: true, .. }) {
        let tariff = inputs.site.electricity.value * Joules::new(3.6e6);
        add("Electricity", level, Driver::Kwh, tariff, "electricity");
    }
}

/// What a kilowatt costs over a year.
fn of_a_kilowatt_year(price: Ranged<UsdPerWattSecond>) -> Usd {
    price.value.for_power(Watts::new(1e3), Seconds::new(SECONDS_PER_YEAR))
}

#[cfg(test)]
mod tests;
