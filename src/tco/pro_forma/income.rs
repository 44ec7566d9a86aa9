//! What accelerators earn: contracts at their prices, the rest at the market's, year by year.

use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// A part of the hours, sold at a price for a term, and again at the market's price when it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contract {
    /// Share of the hours that can be sold.
    pub share: Fraction,
    /// Price of an accelerator's hour over the term.
    pub price: UsdPerHour,
    /// Years of the term; it is renewed at the market's price, as many per cent above or below it as at first.
    pub years: u32,
    /// Share of the term's revenue that is paid when it is signed.
    pub prepaid: Fraction,
}

/// What accelerators earn.
#[derive(Clone, Debug, PartialEq)]
pub struct Income {
    /// Accelerators that can be sold in each year.
    pub accelerators: Vec<f64>,
    /// Share of their hours that are sold, contracts and all.
    pub utilisation: Fraction,
    /// Price of an hour on the market in each year.
    pub market: Vec<UsdPerHour>,
    /// Contracts; what they leave is sold at the market's price.
    pub contracts: Vec<Contract>,
}

impl Income {
    /// Hours sold in each year.
    pub fn hours(&self) -> impl Iterator<Item = f64> + '_ {
        let hours = Seconds::new(SECONDS_PER_YEAR) / Seconds::new(3_600.0);
        self.accelerators.iter().map(move |count| count * hours * self.utilisation.get())
    }

    /// The mean price of an hour sold in a year, the first being 0.
    pub fn price(&self, year: usize) -> UsdPerHour {
        let contracted: f64 = self.contracts.iter().map(|contract| contract.share.get()).sum();
        let of_contracts: UsdPerHour =
            self.contracts.iter().map(|contract| self.contract_price(contract, year) * contract.share.get()).sum();
        of_contracts + self.market(year) * (1.0 - contracted).max(0.0)
    }

    /// Earned in each year.
    pub fn revenue(&self) -> Vec<Usd> {
        self.hours().enumerate().map(|(year, hours)| over_hours(self.price(year), hours)).collect()
    }

    /// What customers pay ahead when their first contracts are signed, in year 0, and what of it each later year works off:
    /// the last years of the term first, as contracts credit it.
    pub fn prepayments(&self) -> Vec<Usd> {
        let hours: Vec<f64> = self.hours().collect();
        let mut flow = vec![Usd::ZERO; hours.len() + 1];
        for contract in &self.contracts {
            let share = contract.share.get();
            let earned: Vec<Usd> = hours
                .iter()
                .take(contract.years as usize)
                .map(|hours| over_hours(contract.price, hours * share))
                .collect();
            let mut owed = earned.iter().copied().sum::<Usd>() * contract.prepaid.get();
            flow[0] += owed;
            for (year, earned) in earned.iter().enumerate().rev() {
                let worked_off = owed.min(*earned);
                flow[year + 1] += -worked_off;
                owed = owed - worked_off;
            }
        }
        flow
    }

    fn market(&self, year: usize) -> UsdPerHour {
        self.market.get(year).or(self.market.last()).copied().unwrap_or(UsdPerHour::ZERO)
    }

    fn contract_price(&self, contract: &Contract, year: usize) -> UsdPerHour {
        let term = contract.years.max(1) as usize;
        let signed = year / term * term;
        let first = self.market(0);
        if signed == 0 || first <= UsdPerHour::ZERO {
            return contract.price;
        }
        self.market(signed) * (contract.price / first)
    }
}

fn over_hours(price: UsdPerHour, hours: f64) -> Usd {
    price.over(Seconds::new(hours * 3_600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_hold_their_price_until_they_are_renewed() {
        let share = |share| Fraction::new(share).unwrap();
        let income = Income {
            accelerators: vec![100.0; 4],
            utilisation: share(0.8),
            market: [4.0, 3.0, 2.0, 1.0].map(UsdPerHour::new).to_vec(),
            contracts: vec![Contract {
                share: share(0.5),
                price: UsdPerHour::new(2.0),
                years: 2,
                prepaid: share(0.25),
            }],
        };
        // Half at 2, half at the market's 4; then 2 and 3; renewed at half of the market's 2: 1 and 2; 1 and 1.
        let prices: Vec<f64> = (0..4).map(|year| income.price(year).value()).collect();
        assert_eq!(prices, [3.0, 2.5, 1.5, 1.0]);
        // 100 x 8,760 h x 0.8 = 700,800 hours a year.
        assert!((income.revenue()[1].value() - 1_752_000.0).abs() < 1e-6);
        // A quarter of two years of half the hours at $2: 0.25 x 700,800 x $2.
        // It is worked off in the second year, the last of the term.
        let flow: Vec<f64> = income.prepayments().iter().map(|amount| amount.value().round()).collect();
        assert_eq!(flow, [350_400.0, 0.0, -350_400.0, 0.0, 0.0]);
    }
}
