//! A project's years: what it earns, spends, borrows, pays back and is taxed, and what is left for its owners.
//!
//! Year 0 is now: what is bought first is paid then, and what debt brings comes then. All else falls at the end of its year.
//! Everything is nominal. The lay-out is that of project finance (as in NREL's System Advisor Model, single owner): earnings
//! before interest, tax, depreciation and amortisation, less tax, less debt service, is what owners receive.

mod income;
mod tax;

pub use income::{Contract, Income};
pub use tax::Tax;

use crate::finance::{self, Depreciation, Instalment, NoReturn, payback, present_value, rate_of_return};
use crate::units::{Factor, Fraction, Rate, Usd};

/// A purchase that is written off.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlay {
    /// The year at whose end it is paid; 0 is now.
    pub year: u32,
    /// What it costs.
    pub amount: Usd,
    /// What it brings when it is sold.
    pub resale: Usd,
    /// The year at whose end it is sold; at the end of the last year where that comes before.
    pub sold: u32,
    /// Whether it is a delivery, which debt may pay for, and no replacement of what has worn out.
    pub delivery: bool,
    /// How tax law writes it off, if it is taxed.
    pub written_off: Depreciation,
}

/// How debt is paid back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repayment {
    /// By equal payments.
    Level,
    /// By a share of each year's cash, which covers it so many times; the amount borrowed follows from it, and is no more
    /// than the debt's share.
    Sculpted {
        /// The debt-service cover ratio.
        cover: Factor,
    },
}

/// The rate of return of whoever pays first. Who receives first, as customers' and lenders' money may exceed what is bought,
/// has a price of money and no return.
fn return_of(flow: &[Usd]) -> Result<Rate, NoReturn> {
    match flow.iter().find(|amount| **amount != Usd::ZERO) {
        Some(first) if *first > Usd::ZERO => Err(NoReturn::ReceivesFirst),
        _ => rate_of_return(flow),
    }
}

/// Debt against deliveries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Debt {
    /// Share of what is delivered that is borrowed.
    pub share: Fraction,
    /// Interest a year.
    pub rate: Rate,
    /// Years over which it is paid back.
    pub tenor: u32,
    /// Share of the amount that is paid for it at once.
    pub fee: Fraction,
    /// How it is paid back.
    pub repayment: Repayment,
}

/// A project.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// Its years.
    pub years: u32,
    /// What is bought.
    pub outlays: Vec<Outlay>,
    /// What running it costs, each year.
    pub running: Vec<Usd>,
    /// What it earns, each year.
    pub revenue: Vec<Usd>,
    /// Received of customers on account of later revenue, and worked off, from year 0 on.
    pub prepayments: Vec<Usd>,
    /// Debt, if any.
    pub debt: Option<Debt>,
    /// Tax, if any.
    pub tax: Option<Tax>,
    /// What owners and lenders together want a year: the rate that present values are taken at.
    pub discount: Rate,
}

/// One year of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Year {
    /// Earned.
    pub revenue: Usd,
    /// Received on account of later years (positive), or earned before and worked off (negative).
    pub prepayment: Usd,
    /// Running costs.
    pub running: Usd,
    /// Bought.
    pub bought: Usd,
    /// Sold at the end.
    pub resale: Usd,
    /// Written off for tax.
    pub written_off: Usd,
    /// Tax as if there were no debt.
    pub tax_without_debt: Usd,
    /// Tax, interest being deducted.
    pub tax: Usd,
    /// Borrowed, less fees.
    pub borrowed: Usd,
    /// Interest.
    pub interest: Usd,
    /// Paid back.
    pub principal: Usd,
}

impl Year {
    /// Earnings before interest, tax, depreciation and amortisation.
    pub fn ebitda(&self) -> Usd {
        self.revenue - self.running
    }

    /// Cash there for debt service: earnings less tax, with what customers pay ahead.
    pub fn available(&self) -> Usd {
        self.ebitda() + self.prepayment - self.tax_without_debt
    }

    /// What the project brings or takes, whoever finances it.
    pub fn unlevered(&self) -> Usd {
        self.available() - self.bought + self.resale
    }

    /// What owners receive or pay.
    pub fn owners(&self) -> Usd {
        self.ebitda() + self.prepayment - self.tax - self.bought + self.resale + self.borrowed
            - self.interest
            - self.principal
    }

    /// Whether less cash is there than is owed; a rounding error of it is none.
    fn is_short(&self) -> bool {
        let service = self.interest + self.principal;
        self.available() < service * (1.0 - 1e-9) - self.running * 1e-9
    }

    /// Tax that interest saves in the year; less than nothing where it puts off what losses would have saved.
    pub fn tax_shield(&self) -> Usd {
        self.tax_without_debt - self.tax
    }

    /// Cash there over debt service, where there is any.
    pub fn cover(&self) -> Option<f64> {
        let service = self.interest + self.principal;
        (service > Usd::ZERO).then(|| self.available() / service)
    }
}

/// A project's years and what they come to.
#[derive(Clone, Debug, PartialEq)]
pub struct ProForma {
    /// Year 0 and those of the project.
    pub years: Vec<Year>,
    /// Present value of what the project brings, at its discount rate.
    pub net_present_value: Usd,
    /// The rate of return of the project, without debt.
    pub unlevered_return: Result<Rate, NoReturn>,
    /// That of its owners.
    pub levered_return: Result<Rate, NoReturn>,
    /// Years until the project has paid for itself, not discounted.
    pub payback: Option<f64>,
    /// The least cover of debt service, where there is debt.
    pub least_cover: Option<f64>,
    /// The first year whose cash does not cover its debt service; where nothing is owed, whose earnings do not cover what
    /// running it and tax take.
    pub short_in: Option<usize>,
}

impl Debt {
    /// Borrows against deliveries, each when it is paid, and pays back.
    fn borrow(&self, outlays: &[Outlay], years: &mut [Year]) {
        let last = years.len() - 1;
        let delivered = |year: usize| -> Usd {
            outlays
                .iter()
                .filter(|outlay| outlay.delivery && outlay.year as usize == year)
                .map(|outlay| outlay.amount)
                .sum()
        };
        match self.repayment {
            Repayment::Level => {
                for drawn in 0..last {
                    let borrowed = delivered(drawn) * self.share.get();
                    if borrowed > Usd::ZERO {
                        let instalments = finance::level_debt(borrowed, self.rate, self.tenor);
                        self.serve(borrowed, &instalments, &mut years[drawn..]);
                    }
                }
            }
            Repayment::Sculpted { cover } => {
                for drawn in 0..last {
                    let most = delivered(drawn) * self.share.get();
                    if most > Usd::ZERO {
                        self.sculpt(most, cover, &mut years[drawn..]);
                    }
                }
            }
        }
    }

    /// Draws no more than `most` in the first of the years, served by what the cash of those after it leaves beside the
    /// service of what was drawn before.
    fn sculpt(&self, most: Usd, cover: Factor, years: &mut [Year]) {
        let serviced = years.len().min(self.tenor as usize + 1);
        let free = |year: &Year| year.available() - (year.interest + year.principal) * cover.get();
        let cash: Vec<Usd> = years[1..serviced].iter().map(free).collect();
        let sculpted = finance::sculpted_debt(&cash, self.rate, cover);
        // Where all of it is not needed, each year serves its part of the smaller amount.
        let part = if sculpted.borrowed > most { most / sculpted.borrowed } else { 1.0 };
        let scaled = |one: &Instalment| Instalment {
            interest: one.interest * part,
            principal: one.principal * part,
            owed: one.owed * part,
        };
        let instalments: Vec<Instalment> = sculpted.instalments.iter().map(scaled).collect();
        self.serve(sculpted.borrowed * part, &instalments, years);
    }

    /// Draws an amount in the first of the years and serves it in those after it. What is owed when the project ends is paid
    /// back from what it is sold for.
    fn serve(&self, borrowed: Usd, instalments: &[Instalment], years: &mut [Year]) {
        let [drawn, after @ ..] = years else { return };
        drawn.borrowed += borrowed * (1.0 - self.fee.get());
        let served = after.len().saturating_sub(1);
        for (year, instalment) in after.iter_mut().zip(instalments) {
            year.interest += instalment.interest;
            year.principal += instalment.principal;
        }
        let outlives = instalments.len() > after.len();
        if let (Some(last), Some(still)) = (after.last_mut(), instalments[..].get(served).filter(|_| outlives)) {
            last.principal += still.owed;
        }
    }
}

impl Project {
    /// Adds up its years.
    pub fn pro_forma(&self) -> ProForma {
        self.financed(|years| {
            if let Some(debt) = self.debt {
                debt.borrow(&self.outlays, years);
            }
        })
    }

    /// The same where the debt was agreed on another outlook: it is drawn and served as in those years, whatever these bring.
    pub fn pro_forma_owing(&self, agreed: &[Year]) -> ProForma {
        self.financed(|years| {
            for (year, agreed) in years.iter_mut().zip(agreed) {
                year.borrowed = agreed.borrowed;
                year.interest = agreed.interest;
                year.principal = agreed.principal;
            }
        })
    }

    fn financed(&self, borrow: impl FnOnce(&mut [Year])) -> ProForma {
        let mut years = self.operations();
        self.tax_years(&mut years, |year, due| year.tax_without_debt = due);
        borrow(&mut years);
        self.tax_years(&mut years, |year, due| year.tax = due);
        let unlevered: Vec<Usd> = years.iter().map(Year::unlevered).collect();
        let owners: Vec<Usd> = years.iter().map(Year::owners).collect();
        ProForma {
            net_present_value: present_value(self.discount, &unlevered),
            unlevered_return: return_of(&unlevered),
            levered_return: return_of(&owners),
            payback: payback(&unlevered),
            least_cover: years.iter().filter_map(Year::cover).reduce(f64::min),
            short_in: years.iter().position(Year::is_short),
            years,
        }
    }

    /// Purchases, earnings and running costs.
    fn operations(&self) -> Vec<Year> {
        let mut years = vec![Year::default(); self.years as usize + 1];
        for (year, one) in years.iter_mut().enumerate().skip(1) {
            one.revenue = self.revenue.get(year - 1).copied().unwrap_or_default();
            one.running = self.running.get(year - 1).copied().unwrap_or_default();
        }
        for outlay in &self.outlays {
            let Some(last) = years.len().checked_sub(1) else { continue };
            years[(outlay.year as usize).min(last)].bought += outlay.amount;
            years[(outlay.sold as usize).min(last)].resale += outlay.resale;
        }
        for (year, amount) in years.iter_mut().zip(&self.prepayments) {
            year.prepayment = *amount;
        }
        years
    }

    /// Tax of each year, interest as it stands being deducted.
    fn tax_years(&self, years: &mut [Year], set: impl Fn(&mut Year, Usd)) {
        let Some(tax) = &self.tax else { return };
        let last = years.len() - 1;
        let mut written_off = vec![Usd::ZERO; years.len()];
        for outlay in &self.outlays {
            for (year, amount) in tax.schedule(outlay.amount, outlay.written_off).into_iter().enumerate() {
                // In service from the year after it is paid; what is left when it is sold goes with the sale.
                let gone = (outlay.sold as usize).min(last);
                written_off[(outlay.year as usize + 1 + year).min(gone)] += amount;
            }
        }
        let mut losses = Usd::ZERO;
        for (year, written_off) in years.iter_mut().zip(written_off) {
            year.written_off = written_off;
            let income = year.ebitda() + year.resale - written_off - year.interest;
            set(year, tax.due(income, &mut losses));
        }
    }
}

#[cfg(test)]
mod tests;
