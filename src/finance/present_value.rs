//! What flows of money are worth now, and when they have paid for themselves.

use crate::units::{Rate, Seconds, Usd};

/// An amount at a time after now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dated {
    /// How long after now.
    pub after: Seconds,
    /// The amount.
    pub amount: Usd,
}

/// What a flow is worth now, whose first amount falls now and each later one a period after the one before:
/// `sum of a_t / (1 + r)^t`. A spreadsheet's `NPV` discounts the first amount too: it is this over `1 + r`.
pub fn present_value(rate: Rate, flow: &[Usd]) -> Usd {
    // From the last to the first, so that each amount is discounted once a period (Horner's scheme).
    flow.iter().rev().fold(Usd::ZERO, |later, amount| *amount + later / (1.0 + rate.get()))
}

/// What dated amounts are worth now, at a rate of `period`, such as a year of 365 days: a spreadsheet's `XNPV`.
pub fn dated_present_value(rate: Rate, period: Seconds, flow: &[Dated]) -> Usd {
    flow.iter().map(|dated| dated.amount * (-(dated.after / period) * rate.get().ln_1p()).exp()).sum()
}

/// Periods until a flow, not discounted, has paid for itself for good: the last time that its running sum turns from below
/// zero, the amount of a period being spread over it. Zero where it never lies below, `None` where it ends below.
pub fn payback(flow: &[Usd]) -> Option<f64> {
    let (mut sum, mut paid) = (Usd::ZERO, Some(0.0));
    for (period, amount) in flow.iter().enumerate() {
        sum += *amount;
        if sum < Usd::ZERO {
            paid = None;
        } else if paid.is_none() {
            // The amount of period t comes in between t - 1 and t.
            paid = Some(period as f64 - sum / *amount);
        }
    }
    paid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(amounts: &[f64]) -> Vec<Usd> {
        amounts.iter().copied().map(Usd::new).collect()
    }

    #[test]
    fn amounts_are_discounted_by_their_periods() {
        // -100 + 60 / 1.1 + 60 / 1.21 = -100 + 54.5455 + 49.5868 = 4.1322.
        let worth = present_value(Rate::new(0.1).unwrap(), &flow(&[-100.0, 60.0, 60.0]));
        assert!((worth.value() - 4.132_231).abs() < 1e-6);
        assert_eq!(present_value(Rate::ZERO, &flow(&[-100.0, 60.0, 60.0])), Usd::new(20.0));
    }

    #[test]
    fn half_a_period_is_the_root_of_one() {
        let year = Seconds::new(365.0 * 86_400.0);
        let half = [Dated { after: year * 0.5, amount: Usd::new(121.0) }];
        // 121 / 1.21^0.5 = 110.
        assert!((dated_present_value(Rate::new(0.21).unwrap(), year, &half).value() - 110.0).abs() < 1e-9);
    }

    #[test]
    fn payback_is_the_last_turn_to_the_good() {
        assert_eq!(payback(&flow(&[-100.0, 40.0, 40.0, 40.0])), Some(2.5));
        // Paid back at 1, then a second outlay.
        assert_eq!(payback(&flow(&[-100.0, 100.0, -50.0, 100.0])), Some(2.5));
        assert_eq!(payback(&flow(&[-100.0, 99.0])), None);
        assert_eq!(payback(&flow(&[10.0, 1.0])), Some(0.0));
    }
}
