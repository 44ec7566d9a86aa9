//! Debt that is paid back by level payments, or by what each period has for it.

use super::annuity::level_payment;
use super::present_value::present_value;
use crate::units::{Factor, Rate, Usd};

/// What is paid at the end of a period, and what is owed after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instalment {
    /// Interest on what was owed.
    pub interest: Usd,
    /// What was paid back.
    pub principal: Usd,
    /// What is owed after it.
    pub owed: Usd,
}

impl Instalment {
    /// Interest and principal.
    pub fn service(&self) -> Usd {
        self.interest + self.principal
    }
}

/// Debt whose service follows the cash that is there for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sculpted {
    /// What can be borrowed.
    pub borrowed: Usd,
    /// How it is paid back.
    pub instalments: Vec<Instalment>,
}

/// Debt of `borrowed` over a number of periods, paid back by equal payments at their ends: a spreadsheet's `PMT`, `IPMT`, `PPMT`.
pub fn level_debt(borrowed: Usd, rate: Rate, periods: u32) -> Vec<Instalment> {
    let payment = level_payment(rate, f64::from(periods), borrowed);
    repay(borrowed, rate, std::iter::repeat_n(payment, periods as usize))
}

/// The most that can be borrowed, and its service, where each period's cash covers its service `cover` times (the
/// debt-service cover ratio): the present value, at the debt's rate, of `cash / cover`. Project finance calls it sculpting.
/// A period without cash pays nothing, and interest adds to what is owed.
pub fn sculpted_debt(cash: &[Usd], rate: Rate, cover: Factor) -> Sculpted {
    let service: Vec<Usd> = cash.iter().map(|cash| cash.max(Usd::ZERO) / cover.get()).collect();
    // The first service falls a period from now.
    let borrowed = present_value(rate, &service) / (1.0 + rate.get());
    Sculpted { borrowed, instalments: repay(borrowed, rate, service.into_iter()) }
}

fn repay(borrowed: Usd, rate: Rate, service: impl Iterator<Item = Usd>) -> Vec<Instalment> {
    let mut owed = borrowed;
    service
        .map(|paid| {
            let interest = owed * rate.get();
            let principal = paid - interest;
            owed = owed - principal;
            Instalment { interest, principal, owed }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_payments_end_the_debt() {
        let paid = level_debt(Usd::new(1e6), Rate::new(0.11).unwrap(), 5);
        assert!(paid.iter().all(|one| (one.service().value() - 270_570.31).abs() < 0.01));
        assert!(paid[4].owed.value().abs() < 1e-6);
        // The first year's interest: 11% of all.
        assert!((paid[0].interest.value() - 110_000.0).abs() < 1e-9);
    }

    #[test]
    fn sculpted_service_is_the_cash_over_its_cover() {
        let cash = [Usd::new(130.0), Usd::new(260.0), Usd::new(65.0)];
        let debt = sculpted_debt(&cash, Rate::new(0.1).unwrap(), Factor::new(1.3).unwrap());
        // 100 / 1.1 + 200 / 1.21 + 50 / 1.331 = 90.909 + 165.289 + 37.566.
        assert!((debt.borrowed.value() - 293.764).abs() < 1e-3);
        let service: Vec<f64> = debt.instalments.iter().map(|one| one.service().value()).collect();
        assert!(service.iter().zip([100.0, 200.0, 50.0]).all(|(paid, expected)| (paid - expected).abs() < 1e-9));
        assert!(debt.instalments[2].owed.value().abs() < 1e-9);
    }
}
