//! What owning a cluster costs: named lines that add up exactly, spread over their lives, and unit costs.
//!
//! `breakdown` is made once for a cluster; `CostTotals` holds what unit costs need of it and is evaluated for each layout
//! without looking anything up.

mod amortisation;
mod breakdown;
mod drivers;
mod pro_forma;
mod tasks;
mod tokens;
mod unit_costs;

pub use breakdown::{CostBreakdown, CostLine, Inputs, PartCost, Rests, Spending, breakdown};
pub use drivers::Drivers;
pub use pro_forma::{Contract, Debt, Income, Outlay, ProForma, Project, Repayment, Tax, Year};
pub use tasks::{TaskCost, TaskExtras};
pub use tokens::{TokenPrices, TokenSales};
pub use unit_costs::{CostTotals, UnitCosts};

use crate::units::{SECONDS_PER_YEAR, Seconds};

/// A time in planning years.
fn years(time: Seconds) -> f64 {
    time / Seconds::new(SECONDS_PER_YEAR)
}
