//! An owned cluster: its project's years, the price that it must sell for, and how it fares as the market's price falls.

use std::sync::Arc;

use roots::{SimpleConvergency, find_root_brent};

use super::file::{DebtFile, DepreciationWord, OwnFile, PathFile, RepaymentWord, SellFile, TaxFile};
use crate::evaluate::Evaluation;
use crate::finance::present_value;
use crate::scenario::{Amortisation, Finance};
use crate::tco::{
    Contract, CostBreakdown, CostLine, CostTotals, Debt, Income, Outlay, ProForma, Project, Repayment, Spending, Year,
};
use crate::units::{Factor, Fraction, Rate, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour, to_integer};

/// What an hour is sold for, or saves.
#[derive(Clone, Debug, PartialEq)]
pub enum Earnings {
    /// It is sold.
    Sold,
    /// It is not rented at the price of the offer of that name.
    Saved {
        /// The offer.
        offer: Arc<str>,
        /// Its price of an accelerator's hour.
        price: UsdPerHour,
    },
    /// Nothing: there is no price to hold it against.
    None,
}

/// How an owned cluster fares on one path of the market's price.
#[derive(Clone, Debug, PartialEq)]
pub struct OnPath {
    /// The path's name.
    pub name: String,
    /// The project's years.
    pub years: ProForma,
}

/// What owning comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// What its hours earn.
    pub earnings: Earnings,
    /// What is sold, or not rented, and at which prices.
    pub income: Option<Income>,
    /// The project's years; none where they earn nothing.
    pub years: Option<ProForma>,
    /// The price of an hour, the same for all and always, at which the project earns its discount rate: its levelised cost.
    pub levelised: Option<UsdPerHour>,
    /// The one at which its owners earn what they want.
    pub floor: Option<UsdPerHour>,
    /// The mean price of an hour in the first year.
    pub price: Option<UsdPerHour>,
    /// The share of hours in use at which the project is worth nothing at its discount rate, its prices staying; none where
    /// no share is. Electricity stays that of the job's share.
    pub break_even_utilisation: Option<f64>,
    /// An accelerator's hour of calendar time by each way to spread purchases over their years.
    pub by_method: Vec<(Amortisation, UsdPerHour)>,
    /// Each path of the study.
    pub paths: Vec<OnPath>,
}

/// The highest price of an hour that is tried, in dollars.
const DEAREST: f64 = 1e6;

/// The whole years of a project's horizon, or none where they are not whole.
pub(super) fn horizon(evaluation: &Evaluation) -> Option<u32> {
    let years = evaluation.scenario.finance.horizon / Seconds::new(SECONDS_PER_YEAR);
    (years.fract() == 0.0 && (1.0..=100.0).contains(&years)).then_some(to_integer::<u32>(years))
}

/// What owning comes to over `years` whole years; `saved` is the offer that is not rented, and its price.
pub(super) fn owned(
    evaluation: &Evaluation,
    wanted: &OwnFile,
    saved: Option<(Arc<str>, UsdPerHour)>,
    paths: &[PathFile],
    years: u32,
) -> Owned {
    let ground = Ground::new(evaluation, wanted, years);
    let income = ground.expected(saved.as_ref().map(|(_, price)| *price));
    let earnings = match (&wanted.sell, saved) {
        (Some(_), _) => Earnings::Sold,
        (None, Some((offer, price))) => Earnings::Saved { offer, price },
        (None, None) => Earnings::None,
    };
    // Lenders agree on what they are shown, and are paid as agreed however the market goes.
    let expected = income.as_ref().map(|income| ground.project(income).pro_forma());
    let on_path = |path: &PathFile| {
        let income = match (&wanted.sell, &earnings) {
            (Some(sell), _) => ground.income(sell, &path.prices),
            (None, Earnings::Saved { price, .. }) => ground.along(*price, &path.prices),
            (None, _) => return None,
        };
        let years = ground.project(&income).pro_forma_owing(&expected.as_ref()?.years);
        Some(OnPath { name: path.name.clone(), years })
    };
    let paths = paths.iter().filter_map(on_path).collect();
    let target = wanted.target_return.map(Rate::from);
    Owned {
        earnings,
        years: expected,
        levelised: ground.price_for(ground.discount, Year::unlevered),
        floor: target.and_then(|target| ground.price_for(target, Year::owners)),
        price: income.as_ref().map(|income| income.price(0)),
        break_even_utilisation: income.as_ref().and_then(|income| ground.break_even_utilisation(income)),
        by_method: by_method(evaluation),
        paths,
        income,
    }
}

/// The project's years alone, as [`owned`] has them.
pub(super) fn expected_years(
    evaluation: &Evaluation,
    wanted: &OwnFile,
    saved: Option<UsdPerHour>,
    years: u32,
) -> Option<ProForma> {
    let ground = Ground::new(evaluation, wanted, years);
    Some(ground.project(&ground.expected(saved)?).pro_forma())
}

/// An accelerator's hour, all else being the same.
fn by_method(evaluation: &Evaluation) -> Vec<(Amortisation, UsdPerHour)> {
    let (scenario, built) = (&evaluation.scenario, &evaluation.built);
    let at_work = u64::from(scenario.cluster.accelerators);
    let hour = |method: Amortisation| {
        let finance = Finance { method, ..scenario.finance };
        let costs = CostBreakdown::of(built.costs.lines.clone(), &finance);
        (method, CostTotals::new(&costs, &built.drivers, at_work, &finance).unit_costs(1.0).per_gpu_hour)
    };
    Amortisation::ALL.iter().copied().map(hour).collect()
}

/// What does not depend on what hours are sold for.
struct Ground<'a> {
    wanted: &'a OwnFile,
    years: u32,
    /// Share of the accelerators' hours that can earn, in each year: without those of burn-in.
    earning: Vec<f64>,
    accelerators: f64,
    utilisation: Fraction,
    discount: Rate,
    outlays: Vec<Outlay>,
    running: Vec<Usd>,
}

impl<'a> Ground<'a> {
    fn new(evaluation: &Evaluation, wanted: &'a OwnFile, years: u32) -> Self {
        let finance = &evaluation.scenario.finance;
        let sold = wanted.sell.as_ref().map_or(&[Fraction::ONE][..], |sell| &sell.delivered);
        let delivered: Vec<f64> =
            (0..years as usize).map(|year| sold.get(year).or(sold.last()).map_or(1.0, |share| share.get())).collect();
        let burn_in = wanted.burn_in / Seconds::new(SECONDS_PER_YEAR);
        let before = std::iter::once(0.0).chain(delivered.iter().copied());
        let earning = delivered.iter().zip(before).map(|(now, before)| now - (now - before) * burn_in).collect();
        let lines = &evaluation.built.costs.lines;
        let running = |year: u32| -> Usd {
            let of = |line: &CostLine| match line.spending {
                Spending::Opex { escalation } => line.amount * (1.0 + escalation.get()).powf(f64::from(year)),
                Spending::Capex { .. } => Usd::ZERO,
            };
            lines.iter().map(of).sum::<Usd>() * delivered[year as usize]
        };
        Self {
            outlays: lines.iter().flat_map(|line| outlays(line, evaluation, wanted, &delivered)).collect(),
            running: (0..years).map(running).collect(),
            accelerators: f64::from(evaluation.scenario.cluster.accelerators),
            utilisation: finance.utilisation,
            discount: Rate::from(finance.cost_of_capital),
            wanted,
            years,
            earning,
        }
    }

    /// What is sold, or not rented at a price, while the market stays; none where hours earn nothing.
    fn expected(&self, saved: Option<UsdPerHour>) -> Option<Income> {
        let flat = &[Factor::ONE][..];
        match (&self.wanted.sell, saved) {
            (Some(sell), _) => Some(self.income(sell, flat)),
            (None, saved) => Some(self.along(saved?, flat)),
        }
    }

    /// What is sold, the market's price going along a path.
    fn income(&self, sell: &SellFile, path: &[Factor]) -> Income {
        let years = |time: Seconds| to_integer::<u32>(time / Seconds::new(SECONDS_PER_YEAR));
        let contract = |one: &super::file::ContractFile| Contract {
            share: one.share,
            price: one.price,
            years: years(one.term),
            prepaid: one.prepaid,
        };
        Income { contracts: sell.contracts.iter().map(contract).collect(), ..self.along(sell.market.value, path) }
    }

    /// All hours at one price, always.
    fn flat(&self, price: UsdPerHour) -> Income {
        self.along(price, &[Factor::ONE])
    }

    /// All hours at the market's price, which goes along a path.
    fn along(&self, first: UsdPerHour, path: &[Factor]) -> Income {
        let price = |year: usize| first * path.get(year).or(path.last()).map_or(1.0, |ratio| ratio.get());
        Income {
            accelerators: self.earning.iter().map(|share| share * self.accelerators).collect(),
            utilisation: self.utilisation,
            market: (0..self.years as usize).map(price).collect(),
            contracts: Vec::new(),
        }
    }

    /// The share of hours in use at which a project with this income is worth nothing.
    fn break_even_utilisation(&self, income: &Income) -> Option<f64> {
        let worth = |share: f64| {
            let utilisation = Fraction::new(share).unwrap_or_default();
            // The base number, because a root is looked for.
            self.project(&Income { utilisation, ..income.clone() }).pro_forma().net_present_value.value()
        };
        if worth(0.0) >= 0.0 || worth(1.0) < 0.0 {
            return None;
        }
        let mut exact = SimpleConvergency { eps: 1e-12, max_iter: 200 };
        find_root_brent(0.0, 1.0, worth, &mut exact).ok()
    }

    fn project(&self, income: &Income) -> Project {
        Project {
            years: self.years,
            outlays: self.outlays.clone(),
            running: self.running.clone(),
            revenue: income.revenue(),
            prepayments: income.prepayments(),
            debt: self.wanted.debt.as_ref().map(debt),
            tax: self.wanted.tax.map(|taxed| taxed.tax),
            discount: self.discount,
        }
    }

    /// The flat price at which a flow of the project is worth nothing at a rate; none where no price does that.
    fn price_for(&self, rate: Rate, flow: fn(&Year) -> Usd) -> Option<UsdPerHour> {
        let worth = |price: f64| {
            let years = self.project(&self.flat(UsdPerHour::new(price))).pro_forma().years;
            let flow: Vec<Usd> = years.iter().map(flow).collect();
            // The base number, because a root is looked for.
            present_value(rate, &flow).value()
        };
        if worth(0.0) >= 0.0 || worth(DEAREST) <= 0.0 {
            return None;
        }
        let mut exact = SimpleConvergency { eps: 1e-12, max_iter: 200 };
        find_root_brent(0.0, DEAREST, worth, &mut exact).ok().map(UsdPerHour::new)
    }
}

fn debt(file: &DebtFile) -> Debt {
    let tenor = to_integer::<u32>(file.tenor / Seconds::new(SECONDS_PER_YEAR));
    let repayment = match file.repayment {
        RepaymentWord::Level => Repayment::Level,
        RepaymentWord::Sculpted => Repayment::Sculpted { cover: file.cover.unwrap_or(Factor::ONE) },
    };
    Debt { share: file.share, rate: file.yearly(), tenor, fee: file.fee, repayment }
}

/// The purchases of a line: as deliveries come, and again whenever what was bought has come to its end before the horizon.
/// What leaves is sold: accelerators, and what is written off with them, by the curve of residual values; of all else, the
/// part of its life that is left. A life that ends within a year is replaced at that year's beginning.
fn outlays(line: &CostLine, evaluation: &Evaluation, wanted: &OwnFile, delivered: &[f64]) -> Vec<Outlay> {
    let Spending::Capex { life } = line.spending else { return Vec::new() };
    let years = life / Seconds::new(SECONDS_PER_YEAR);
    let end = delivered.len() as f64;
    let with_accelerators = life == evaluation.scenario.finance.accelerator_life;
    let by = |taxed: TaxFile| if line.is_building() { taxed.building } else { taxed.equipment };
    let written_off = wanted.tax.map_or(DepreciationWord::StraightLine, by).over(years);
    let mut outlays = Vec::new();
    let mut before = 0.0;
    for (year, share) in delivered.iter().enumerate() {
        let amount = line.amount * (share - before);
        before = *share;
        if amount <= Usd::ZERO {
            continue;
        }
        let first = year as f64;
        let mut bought = first;
        // A life that ends with the horizon is not begun again for a rounding error.
        while bought < end - 1e-9 {
            let held = years.min(end - bought);
            let worth = if with_accelerators { wanted.residual.at(held, years) } else { (1.0 - held / years).max(0.0) };
            let (year, sold) = (to_integer::<u32>(bought), to_integer::<u32>((bought + held - 1e-9).ceil()));
            let delivery = bought.total_cmp(&first).is_eq();
            outlays.push(Outlay { year, amount, resale: amount * worth, sold, delivery, written_off });
            bought += years;
        }
    }
    outlays
}
