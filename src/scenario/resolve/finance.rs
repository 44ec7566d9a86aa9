//! Money: how long the cluster is held, what capital costs, how much of it is used.

use super::{Defaults, Share, default_share};
use crate::scenario::file::{Amortisation, FinanceFile};
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
    /// How what is bought is spread over its years.
    pub method: Amortisation,
    /// From the purchase to the first hour; of Epoch AI's method alone.
    pub hardware_age: Seconds,
    /// Growth a year of rent, electricity and lines that have none of their own.
    pub inflation: Fraction,
    /// Share of the owned hours that are sold, or at work on a job; more than zero.
    pub utilisation: Fraction,
}

pub(super) fn bind(wanted: &FinanceFile, defaults: &mut Defaults) -> Finance {
    let years = |count: f64| Seconds::new(count * SECONDS_PER_YEAR);
    let share = |given: Option<Fraction>, default: f64, key: &'static str, defaults: &mut Defaults| {
        defaults.or(key, given.map(Share), Share(default_share(default))).0
    };
    Finance {
        horizon: defaults.or("finance.horizon", wanted.horizon, years(5.0)),
        accelerator_life: defaults.or("finance.accelerator_life", wanted.accelerator_life, years(5.0)),
        cost_of_capital: share(wanted.cost_of_capital, 0.11, "finance.cost_of_capital", defaults),
        method: wanted.method.unwrap_or(Amortisation::Annuity),
        hardware_age: wanted.hardware_age.unwrap_or(Seconds::ZERO),
        inflation: wanted.inflation.unwrap_or(Fraction::ZERO),
        utilisation: share(wanted.utilisation, 0.8, "finance.utilisation", defaults),
    }
}
