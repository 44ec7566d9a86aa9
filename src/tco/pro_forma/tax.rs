//! Tax on income.

use crate::finance::Depreciation;
use crate::units::{Fraction, Usd};

/// Tax on income, with losses carried forward.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tax {
    /// Its rate, all levels of government together.
    pub rate: Fraction,
    /// Share of a purchase that is written off in its first year, before the rest is by its schedule.
    pub first_year: Fraction,
    /// Share of a year's income that earlier losses may cancel: 0.8 in the United States (26 U.S.C. 172(a)(2)).
    pub loss_limit: Fraction,
}

impl Tax {
    /// What each year writes off; for tax nothing is left.
    pub(super) fn schedule(&self, cost: Usd, way: Depreciation) -> Vec<Usd> {
        let at_once = cost * self.first_year.get();
        let mut schedule = way.schedule(cost - at_once, Usd::ZERO);
        match schedule.first_mut() {
            Some(first) => *first += at_once,
            None => schedule.push(at_once),
        }
        schedule
    }

    /// Tax of a year's income; a loss adds to those carried forward, and these cancel a part of an income.
    pub(super) fn due(&self, income: Usd, losses: &mut Usd) -> Usd {
        if income < Usd::ZERO {
            *losses = *losses - income;
            return Usd::ZERO;
        }
        let cancelled = losses.min(income * self.loss_limit.get());
        *losses = *losses - cancelled;
        (income - cancelled) * self.rate.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_cancel_four_fifths_of_an_income() {
        let share = |share| Fraction::new(share).unwrap();
        let tax = Tax { rate: share(0.28), first_year: Fraction::ZERO, loss_limit: share(0.8) };
        let mut losses = Usd::ZERO;
        assert_eq!(tax.due(Usd::new(-100.0), &mut losses), Usd::ZERO);
        // 50, of which 40 are cancelled: 10 x 28%. 60 of the losses remain.
        assert!((tax.due(Usd::new(50.0), &mut losses).value() - 2.8).abs() < 1e-12);
        assert!((losses.value() - 60.0).abs() < 1e-12);
        // 200, of which 60 are cancelled.
        assert!((tax.due(Usd::new(200.0), &mut losses).value() - 39.2).abs() < 1e-12);
    }
}
