//! The time value of money. Payments fall at the end of their year; years need not be whole.

use crate::units::{Fraction, Rate, Usd};

/// The equal yearly payment that pays back one dollar with interest over a number of years: `i / (1 - (1 + i)^-n)`, and
/// `1 / n` without interest. The capital-recovery factor of engineering economics; a spreadsheet's `-PMT(i, n, 1)`.
pub fn capital_recovery_factor(rate: Fraction, years: f64) -> f64 {
    1.0 / present_value_factor(rate, Fraction::ZERO, years)
}

/// The equal payment at the end of each period that pays back `borrowed` with interest: a spreadsheet's `-PMT(i, n, borrowed)`.
pub fn level_payment(rate: Rate, periods: f64, borrowed: Usd) -> Usd {
    borrowed / worth_of_payments(rate.get(), 0.0, periods)
}

/// What payments over a number of years are worth today, the first of them one dollar, each later one `1 + g` times the one
/// before: `(1 - ((1 + g) / (1 + i))^n) / (i - g)`, and `n / (1 + i)` where growth and interest are equal.
pub fn present_value_factor(rate: Fraction, growth: Fraction, years: f64) -> f64 {
    worth_of_payments(rate.get(), growth.get(), years)
}

/// `(1 - ((1 + g) / (1 + i))^n) / (i - g)`, where neither rate is -1.
fn worth_of_payments(rate: f64, growth: f64, years: f64) -> f64 {
    let spread = rate - growth;
    if spread.abs() < 1e-9 {
        return years / (1.0 + rate);
    }
    -(years * (growth.ln_1p() - rate.ln_1p())).exp_m1() / spread
}

/// The constant yearly payment over a number of years that is worth as much as growing ones, whose first is one dollar.
pub fn levelising_factor(rate: Fraction, growth: Fraction, years: f64) -> f64 {
    present_value_factor(rate, growth, years) * capital_recovery_factor(rate, years)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(rate: f64) -> Fraction {
        Fraction::new(rate).unwrap()
    }

    #[test]
    fn the_capital_recovery_factor_is_a_loan_s_payment() {
        // 1.11^5 = 1.685058; 0.11 / (1 - 1 / 1.685058) = 0.11 / 0.406549 = 0.270570.
        assert!((capital_recovery_factor(rate(0.11), 5.0) - 0.270_570_31).abs() < 1e-8);
    }

    #[test]
    fn without_interest_it_is_one_over_the_years() {
        assert!((capital_recovery_factor(Fraction::ZERO, 5.0) - 0.2).abs() < 1e-15);
        assert!((capital_recovery_factor(rate(1e-7), 5.0) - 0.2).abs() < 1e-7);
    }

    #[test]
    fn growing_payments_are_worth_their_sum() {
        // Three payments of 100, 103 and 106.09 at 10%: 90.9091 + 85.1240 + 79.7070 = 255.7401.
        assert!((present_value_factor(rate(0.10), rate(0.03), 3.0) - 2.557_401).abs() < 1e-6);
        // Without interest: 1 + 1.03 + 1.0609.
        assert!((present_value_factor(Fraction::ZERO, rate(0.03), 3.0) - 3.0909).abs() < 1e-12);
        // Growth as fast as interest: each is worth 1 / 1.03 today.
        assert!((present_value_factor(rate(0.03), rate(0.03), 3.0) - 3.0 / 1.03).abs() < 1e-12);
    }

    #[test]
    fn constant_payments_are_level_already() {
        assert!((levelising_factor(rate(0.11), Fraction::ZERO, 5.0) - 1.0).abs() < 1e-15);
    }
}
