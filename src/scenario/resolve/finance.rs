//! Money: how long the cluster is held, what capital costs, how much of it is used.

use super::{Defaults, Share, default_share};
use crate::catalog::PriceBook;
use crate::scenario::file::{Amortisation, FinanceFile};
use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds};

/// Where neither the scenario nor its price book says anything: years that accelerators earn, and what capital costs.
const USUAL_LIFE: Seconds = Seconds::new(5.0 * SECONDS_PER_YEAR);
const USUAL_COST_OF_CAPITAL: f64 = 0.11;

/// How the cluster is financed and used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finance {
    /// The time that costs are added up over.
    pub horizon: Seconds,
    /// The time over which accelerators, and all parts bought with them, are written off.
    pub accelerator_life: Seconds,
    /// What capital costs a year, of debt and equity together.
    pub cost_of_capital: Fraction,
    /// What of these the price book says.
    pub by_book: ByBook,
    /// How what is bought is spread over its years.
    pub method: Amortisation,
    /// From the purchase to the first hour; of Epoch AI's method alone.
    pub hardware_age: Seconds,
    /// Growth a year of rent, electricity and lines that have none of their own.
    pub inflation: Fraction,
    /// Share of the owned hours that are sold, or at work on a job; more than zero.
    pub utilisation: Fraction,
}

/// What is left to the price book, because the scenario does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByBook {
    /// The life of accelerators.
    pub accelerator_life: bool,
    /// The cost of capital.
    pub cost_of_capital: bool,
}

impl Finance {
    /// With what is left to the price book as this one has it, or as is usual.
    #[must_use]
    pub fn at(self, book: &PriceBook) -> Self {
        let life = || book.accelerator_life().unwrap_or(USUAL_LIFE);
        let capital = || book.cost_of_capital().unwrap_or_else(|| default_share(USUAL_COST_OF_CAPITAL));
        Self {
            accelerator_life: if self.by_book.accelerator_life { life() } else { self.accelerator_life },
            cost_of_capital: if self.by_book.cost_of_capital { capital() } else { self.cost_of_capital },
            ..self
        }
    }
}

/// Binds `[finance]`, at a price book where it is known; what is left open is remembered.
pub(super) fn bind(wanted: &FinanceFile, book: Option<&PriceBook>, defaults: &mut Defaults) -> Finance {
    let share = |given: Option<Fraction>, default: f64, key: &'static str, defaults: &mut Defaults| {
        defaults.or(key, given.map(Share), Share(default_share(default))).0
    };
    let mut open = Finance {
        horizon: defaults.or("finance.horizon", wanted.horizon, Seconds::new(5.0 * SECONDS_PER_YEAR)),
        accelerator_life: wanted.accelerator_life.unwrap_or(USUAL_LIFE),
        cost_of_capital: wanted.cost_of_capital.unwrap_or_else(|| default_share(USUAL_COST_OF_CAPITAL)),
        by_book: ByBook {
            accelerator_life: wanted.accelerator_life.is_none(),
            cost_of_capital: wanted.cost_of_capital.is_none(),
        },
        method: wanted.method.unwrap_or(Amortisation::Annuity),
        hardware_age: wanted.hardware_age.unwrap_or(Seconds::ZERO),
        inflation: wanted.inflation.unwrap_or(Fraction::ZERO),
        utilisation: Fraction::ONE,
    };
    if let Some(book) = book {
        open = open.at(book);
    }
    defaults.or("finance.accelerator_life", wanted.accelerator_life, open.accelerator_life);
    share(wanted.cost_of_capital, open.cost_of_capital.get(), "finance.cost_of_capital", defaults);
    open.utilisation = share(wanted.utilisation, 0.8, "finance.utilisation", defaults);
    open
}
