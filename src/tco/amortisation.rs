//! Ways to spread a purchase over its years.

use super::years;
use crate::finance::{capital_recovery_factor, level_payment};
use crate::scenario::{Amortisation, Finance};
use crate::units::{Fraction, Rate, Seconds, Usd};

/// By how many powers of ten what an accelerator of a price does grows in a year: Epoch AI, "The rising costs of training frontier
/// AI models" (arXiv 2405.21015), with its analysis code.
const PERFORMANCE_A_DOLLAR: f64 = 0.14;
const MONTHS: f64 = 12.0;

/// The yearly payment of a dollar that is bought once and lasts `life`.
pub(super) fn yearly_share(finance: &Finance, life: Seconds) -> f64 {
    let (rate, lasts) = (finance.cost_of_capital, years(life));
    match finance.method {
        Amortisation::Annuity => capital_recovery_factor(rate, lasts),
        // The share of its value that it loses in a moment, over a year: 0.14 ln 10 = 32.2%; of what is left of its price when
        // its first hour comes.
        Amortisation::Epoch if life == finance.accelerator_life => {
            let left = 10.0_f64.powf(-PERFORMANCE_A_DOLLAR * years(finance.hardware_age));
            PERFORMANCE_A_DOLLAR * std::f64::consts::LN_10 * left
        }
        Amortisation::Epoch => 1.0 / lasts,
        Amortisation::MonthlyLoan => {
            let monthly = Rate::new(rate.get() / MONTHS).unwrap_or_default();
            MONTHS * (level_payment(monthly, lasts * MONTHS, Usd::new(1.0)) / Usd::new(1.0))
        }
    }
}

/// The level payment of a dollar of opex in the first year that grows; only the annuity makes it level.
pub(super) fn level_share(finance: &Finance, escalation: Fraction) -> f64 {
    match finance.method {
        Amortisation::Annuity => {
            crate::finance::levelising_factor(finance.cost_of_capital, escalation, years(finance.horizon))
        }
        Amortisation::Epoch | Amortisation::MonthlyLoan => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::pricebook::Driver;
    use crate::provenance::Basis;
    use crate::scenario::ByBook;
    use crate::tco::{CostBreakdown, CostLine};
    use crate::units::SECONDS_PER_YEAR;

    fn lasting(count: f64) -> Seconds {
        Seconds::new(count * SECONDS_PER_YEAR)
    }

    fn finance(method: Amortisation, rate: f64) -> Finance {
        Finance {
            horizon: lasting(4.0),
            accelerator_life: lasting(4.0),
            cost_of_capital: Fraction::new(rate).unwrap(),
            method,
            by_book: ByBook::default(),
            hardware_age: Seconds::ZERO,
            inflation: Fraction::ZERO,
            utilisation: Fraction::ONE,
        }
    }

    #[test]
    fn the_datacenter_as_a_computer_by_watt_and_month() {
        // Its cost model with the constants of public code that restates it: 8% interest, a building of $10 a watt over 12 years and
        // $0.04 a watt and month to run, $0.067 a kWh at full power in months of 30 days, repairs of 5% of the server's straight
        // amortisation; for a server of eight H100 at $270,000 and 10.2 kW over four years, at a PUE of 1.25.
        let (watts, price, tariff) = (10_200.0, 270_000.0, 0.067);
        let kwh = watts / 1e3 * 24.0 * 30.0 * 12.0;
        let level = Fraction::ZERO;
        let yearly = |name, per, amount| CostLine::yearly(name, per, amount, level, Basis::Secondary);
        let once = |name, per, amount, life| CostLine::once(name, per, amount, lasting(life), Basis::Secondary);
        let lines = vec![
            once("Server", Driver::Node, (1.0, Usd::new(price)), 4.0),
            once("Building", Driver::Kw, (watts, Usd::new(10.0)), 12.0),
            yearly("Running the building", Driver::Kw, (watts, Usd::new(0.04 * 12.0))),
            yearly("Repairs", Driver::CapexRatio, (0.05, Usd::new(price / 4.0))),
            yearly("Electricity", Driver::Kwh, (kwh, Usd::new(tariff))),
            yearly("Cooling", Driver::Kwh, (kwh * 0.25, Usd::new(tariff))),
        ];
        let costs = CostBreakdown::of(lines, &finance(Amortisation::MonthlyLoan, 0.08));
        let per_watt_month = |amount: Usd| amount.value() / watts / 12.0;
        // Server 270,000 x 0.024413 = 6,591.5 a month: 0.6462; building 0.010825 x 10: 0.1082; 0.0400; repairs 281.25: 0.0276;
        // power 0.0482; cooling 0.0121. Together 0.8823 a watt and month.
        assert!((per_watt_month(costs.lines[0].annualised) - 0.6462).abs() < 1e-4);
        assert!((per_watt_month(costs.annualised) - 0.8823).abs() < 1e-4);
        // Of eight GPUs in months of 720 hours: $1.56.
        assert!((costs.annualised.value() / (8.0 * 12.0 * 720.0) - 1.5624).abs() < 1e-3);
    }

    #[test]
    fn epoch_by_its_own_factors_and_decay_before_training() {
        // A chip of $25,000; its server as a factor of 1.64 on it, the network as 19% of all three: x 0.19 / 0.81. Bought half a
        // year before: x 10^-0.07 = 0.851138. Over 1,000 chips for 1,000 hours of 8,760 a year (Epoch's year has 8,766):
        // 25e6 x 1.64 / 0.81 = 50,617,284; x 0.851138 = 43,082,297; x 0.322362 = 13,888,100 a year; / 8.76 = $1,585,400.
        let chips = (1_000.0, Usd::new(25_000.0));
        let spent = 25e6;
        let lines = vec![
            CostLine::once("Chips", Driver::Accelerator, chips, lasting(4.0), Basis::Secondary),
            CostLine::once("Servers", Driver::CapexRatio, (spent, Usd::new(0.64)), lasting(4.0), Basis::Secondary),
            CostLine::once(
                "Network",
                Driver::CapexRatio,
                (spent * 1.64, Usd::new(0.19 / 0.81)),
                lasting(4.0),
                Basis::Secondary,
            ),
        ];
        let aged = Finance { hardware_age: lasting(0.5), ..finance(Amortisation::Epoch, 0.11) };
        let costs = CostBreakdown::of(lines, &aged);
        assert!((costs.capex.value() / 50_617_284.0 - 1.0).abs() < 1e-8);
        let run = costs.annualised.value() * (1_000.0 / 8_760.0);
        assert!((run / 1_585_400.0 - 1.0).abs() < 1e-4, "{run}");
    }

    #[test]
    fn epoch_writes_off_by_progress() {
        // 30.84 million hours of H100 at $44,800 with server and network (price x 1.64 / 0.81 of about $22,100): 44,800 x
        // 0.322362 / 8,760 = $1.648594 an hour.
        let price = Usd::new(44_800.0);
        let line = CostLine::once("H100", Driver::Accelerator, (1.0, price), lasting(4.0), Basis::Secondary);
        let costs = CostBreakdown::of(vec![line], &finance(Amortisation::Epoch, 0.11));
        let hour = costs.annualised.per(lasting(1.0));
        assert!((hour.value() - 1.648_60).abs() < 1e-4, "{hour}");
        // Nothing is gained by a longer life, nor lost by dearer capital; a building of 12 years goes by a twelfth a year.
        let same = yearly_share(
            &Finance { cost_of_capital: Fraction::ZERO, ..finance(Amortisation::Epoch, 0.0) },
            lasting(4.0),
        );
        assert!((same - 0.322_361_9).abs() < 1e-6);
        assert!((yearly_share(&finance(Amortisation::Epoch, 0.11), lasting(12.0)) - 1.0 / 12.0).abs() < 1e-12);
    }
}
