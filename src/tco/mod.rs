//! What owning a cluster costs: named lines that add up exactly, spread over their lives, and unit costs.
//!
//! `breakdown` is made once for a cluster; `CostTotals` holds what unit costs need of it and is evaluated for each layout
//! without looking anything up.

mod annuity;
mod breakdown;
mod drivers;
mod unit_costs;

pub use annuity::{capital_recovery_factor, levelising_factor, present_value_factor};
pub use breakdown::{CostBreakdown, CostLine, Inputs, PartCost, Spending, breakdown};
pub use drivers::Drivers;
pub use unit_costs::{CostTotals, UnitCosts};

use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds};

/// How the cluster is financed and used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finance {
    /// The time that costs are added up over.
    pub horizon: Seconds,
    /// The time over which accelerators, and all parts bought with them, are written off.
    pub accelerator_life: Seconds,
    /// What capital costs a year, of debt and equity together.
    pub cost_of_capital: Fraction,
    /// Share of the owned hours that are sold, or at work on a job; more than zero.
    pub utilisation: Fraction,
}

/// A time in planning years.
fn years(time: Seconds) -> f64 {
    time / Seconds::new(SECONDS_PER_YEAR)
}
