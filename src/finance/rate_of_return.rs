//! The rate at which a flow is worth nothing now: found where there is one, refused where there is none or several.

use roots::{SimpleConvergency, find_root_brent};
use thiserror::Error;

use super::present_value::Dated;
use crate::units::{Rate, Seconds, Usd};

/// The lowest and the highest rate that is looked at, as the logarithm of what one dollar becomes over a period: all but a
/// thousandth is lost, and ten thousand times as much is made.
const SEARCHED: (f64, f64) = (-6.907_755, 9.210_340);
/// Steps of that search, where there may be several. Two rates closer than a step apart are taken for none.
const STEPS: u32 = 20_000;

/// Why a flow has no rate of return.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum NoReturn {
    /// All amounts have one sign, or are nothing.
    #[error("the amounts never change sign, so that no rate makes them worth nothing")]
    NoChangeOfSign,
    /// They change sign, and are worth something at every rate.
    #[error("no rate between -99.9% and 999,900% makes the amounts worth nothing")]
    NoRate,
    /// What comes first is received, so that a rate would be what the money costs.
    #[error(
        "what comes first is received and paid for later: a rate would be the price of that money, and no return on it"
    )]
    ReceivesFirst,
    /// The amounts change sign more than once, and several rates make them worth nothing.
    #[error("not unique: the amounts are worth nothing at each of {}", percents(.0))]
    Several(Vec<Rate>),
}

fn percents(rates: &[Rate]) -> String {
    rates.iter().map(|rate| format!("{:.2}%", rate.get() * 100.0)).collect::<Vec<_>>().join(", ")
}

/// The rate of a period at which a flow is worth nothing now; its first amount falls now. A spreadsheet's `IRR`.
///
/// # Errors
///
/// Where there is no such rate, or more than one that could be meant.
pub fn rate_of_return(flow: &[Usd]) -> Result<Rate, NoReturn> {
    solve(flow.iter().enumerate().map(|(period, amount)| (period as f64, *amount)).collect())
}

/// The same of dated amounts, for a rate of `period`: a spreadsheet's `XIRR`, whose period is a year of 365 days.
///
/// # Errors
///
/// Where there is no such rate, or more than one that could be meant.
pub fn dated_rate_of_return(period: Seconds, flow: &[Dated]) -> Result<Rate, NoReturn> {
    solve(flow.iter().map(|dated| (dated.after / period, dated.amount)).collect())
}

/// Roots of the sum of `a exp(-x t)` over x, the logarithm of one and the rate. By Descartes' rule of signs, which holds for
/// exponential sums too, there are no more of them than changes of sign in the order of time.
fn solve(mut flow: Vec<(f64, Usd)>) -> Result<Rate, NoReturn> {
    flow.retain(|(_, amount)| *amount != Usd::ZERO);
    flow.sort_by(|a, b| a.0.total_cmp(&b.0));
    let changes = flow.windows(2).filter(|pair| (pair[0].1 < Usd::ZERO) != (pair[1].1 < Usd::ZERO)).count();
    if changes == 0 {
        return Err(NoReturn::NoChangeOfSign);
    }
    // Of an amount that the flow itself is measured in, so that the tolerance is no amount of money.
    let scale = flow.iter().map(|(_, amount)| amount.max(-*amount)).fold(Usd::ZERO, Usd::max);
    let worth = |x: f64| flow.iter().map(|(time, amount)| (*amount / scale) * (-x * time).exp()).sum::<f64>();
    // What changes its sign once has one root at most, which needs no search.
    let steps = if changes == 1 { 1 } else { STEPS };
    let at = |step: u32| SEARCHED.0 + (SEARCHED.1 - SEARCHED.0) * f64::from(step) / f64::from(steps);
    let mut found = Vec::new();
    let mut before = worth(at(0));
    for step in 1..=steps {
        let here = worth(at(step));
        if (before < 0.0) != (here < 0.0) {
            let mut exact = SimpleConvergency { eps: 1e-15, max_iter: 200 };
            // Without convergence to the last digit the best bracket's end still is one of its last.
            found.extend(find_root_brent(at(step - 1), at(step), worth, &mut exact).ok());
        }
        before = here;
    }
    let rates: Vec<Rate> = found.into_iter().filter_map(|x| Rate::new(x.exp_m1())).collect();
    match rates[..] {
        [] => Err(NoReturn::NoRate),
        [rate] => Ok(rate),
        _ => positive(&flow, &rates).ok_or(NoReturn::Several(rates)),
    }
}

/// The one rate of zero or more, where there is one by Norstrøm's criterion: the running sum, from the first amount on and
/// not ending at nothing, changes sign once. Rates below zero, as a small closing cost brings them, then mean nothing.
/// C. J. Norstrøm, "A sufficient condition for a unique nonnegative internal rate of return", Journal of Financial and Quantitative
/// Analysis 7 (1972), 1835.
fn positive(flow: &[(f64, Usd)], rates: &[Rate]) -> Option<Rate> {
    let mut sum = Usd::ZERO;
    let sums: Vec<Usd> = flow
        .iter()
        .map(|(_, amount)| {
            sum += *amount;
            sum
        })
        .filter(|sum| *sum != Usd::ZERO)
        .collect();
    let changes = sums.windows(2).filter(|pair| (pair[0] < Usd::ZERO) != (pair[1] < Usd::ZERO)).count();
    let mut positive = rates.iter().filter(|rate| **rate >= Rate::ZERO);
    (changes == 1 && sum != Usd::ZERO)
        .then_some(positive.next().filter(|_| positive.next().is_none()))
        .flatten()
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(amounts: &[f64]) -> Result<Rate, NoReturn> {
        rate_of_return(&amounts.iter().copied().map(Usd::new).collect::<Vec<_>>())
    }

    #[test]
    fn a_loan_returns_its_interest() {
        // 100 lent, 11 a year, 111 at the end.
        let rate = of(&[-100.0, 11.0, 11.0, 111.0]).unwrap();
        assert!((rate.get() - 0.11).abs() < 1e-12);
        // Half is lost over two periods: 1 - 0.5^0.5 a period.
        assert!((of(&[-100.0, 0.0, 50.0]).unwrap().get() + 0.292_893_218_813).abs() < 1e-11);
    }

    #[test]
    fn several_rates_are_told() {
        // (v - 1 / 1.1)(v - 1 / 1.2) x 132 = 132 v^2 - 230 v + 100, v the discount of a period.
        let Err(NoReturn::Several(rates)) = of(&[100.0, -230.0, 132.0]) else { panic!("one rate") };
        assert!((rates[0].get() - 0.1).abs() < 1e-9 && (rates[1].get() - 0.2).abs() < 1e-9);
        let told = of(&[100.0, -230.0, 132.0]).unwrap_err().to_string();
        assert_eq!(told, "not unique: the amounts are worth nothing at each of 10.00%, 20.00%");
    }

    #[test]
    fn a_closing_cost_does_not_hide_the_rate() {
        // A second root lies at -96.8%.
        let rate = of(&[-100.0, 20.0, 30.0, 30.0, 30.0, 30.0, -1.0]).unwrap();
        assert!((rate.get() - 0.115_027_847).abs() < 1e-8);
    }

    #[test]
    fn without_a_rate_it_says_so() {
        assert_eq!(of(&[-100.0, -1.0]), Err(NoReturn::NoChangeOfSign));
        assert_eq!(of(&[]), Err(NoReturn::NoChangeOfSign));
        // 100 v^2 - 100 v + 100 has no real root.
        assert_eq!(of(&[100.0, -100.0, 100.0]), Err(NoReturn::NoRate));
    }

    #[test]
    fn the_currency_s_size_does_not_matter() {
        let rates = [1e-3, 1.0, 1e12].map(|k| of(&[-100.0 * k, 60.0 * k, 60.0 * k]).unwrap().get());
        assert!((rates[0] - rates[1]).abs() < 1e-12 && (rates[2] - rates[1]).abs() < 1e-12);
    }
}
