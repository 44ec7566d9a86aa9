//! `[finance]`: how long the cluster is held, what capital costs, how much of it is used.

use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Fraction, SECONDS_PER_DAY, Seconds, UsdPerToken};

/// The shortest and the longest time, in days, over which costs are added up or parts written off.
const LIVES: [f64; 2] = [1.0, 36_500.0];
/// The least share of hours sold, a minute of a day, below which costs of an hour say nothing.
const LEAST_UTILISATION: f64 = 1.0 / 1_440.0;

choices! {
    /// How what is bought is spread over its years.
    pub enum Amortisation {
        /// By the equal yearly payment that pays it back with interest, and opex made level over the horizon.
        Annuity = "annuity",
        /// As Epoch AI does: accelerators, and what is written off with them, lose the share of their value each year by which
        /// newer ones are cheaper for the same work, without interest.
        Epoch = "epoch",
        /// As The Datacenter as a Computer does: a loan with equal monthly payments for each thing over its own life.
        MonthlyLoan = "monthly-loan",
    }
}

/// `[finance]`
#[derive(Clone, Debug, Default)]
pub struct FinanceFile {
    /// How long the cluster is held.
    pub horizon: Option<Seconds>,
    /// How long accelerators earn.
    pub accelerator_life: Option<Seconds>,
    /// Cost of capital a year.
    pub cost_of_capital: Option<Fraction>,
    /// How what is bought is spread over its years.
    pub method: Option<Amortisation>,
    /// From the purchase to the first hour, over which accelerators lose value already; by Epoch AI's method.
    pub hardware_age: Option<Seconds>,
    /// Growth a year of what is paid every year and has none of its own.
    pub inflation: Option<Fraction>,
    /// Share of hours sold or used.
    pub utilisation: Option<Fraction>,
    /// Share of the income that is to be left of tokens sold.
    pub margin: Option<Fraction>,
    /// What the same tokens cost elsewhere.
    pub token_prices: Option<TokenPricesFile>,
}

/// `finance.token_prices`: what tokens are sold for elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenPricesFile {
    /// Of prompts, computed.
    pub input: UsdPerToken,
    /// Of prompts, cached; as those computed where not given.
    pub cached: Option<UsdPerToken>,
    /// Of answers.
    pub output: UsdPerToken,
}

impl FinanceFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let [shortest, longest] = LIVES.map(|days| Seconds::new(days * SECONDS_PER_DAY));
        let read = Self {
            horizon: r
                .about("time over which costs are added up")
                .usually("5 years")
                .such_as("5 years")
                .optional_within("horizon", &(shortest..=longest)),
            accelerator_life: r
                .about("time over which accelerators are written off")
                .usually("as the price book has it, else 5 years")
                .such_as("5 years")
                .optional_within("accelerator_life", &(shortest..=longest)),
            cost_of_capital: r
                .about("cost of capital a year, of debt and equity together")
                .usually("as the price book has it, else 0.11")
                .optional("cost_of_capital"),
            method: r.about("how what is bought is spread over its years").usually("\"annuity\"").optional("method"),
            inflation: r
                .about("growth a year of what is paid every year and has none of its own")
                .usually("0")
                .optional("inflation"),
            hardware_age: r
                .about("time from the purchase to the first hour, by method \"epoch\"")
                .usually("none")
                .such_as("6 months")
                .optional_within("hardware_age", &(Seconds::ZERO..=longest)),
            utilisation: None,
            margin: r.about("share of the income that is to be left of tokens sold").optional("margin"),
            token_prices: r.about("what the same tokens cost elsewhere").optional_table("token_prices", |r| {
                TokenPricesFile {
                    input: r.about("of prompts").get("input"),
                    cached: r.about("of prompts that are in the cache").usually("as others").optional("cached"),
                    output: r.about("of answers").get("output"),
                }
            }),
        };
        if read.margin == Some(Fraction::ONE) {
            let message = "`finance.margin` is 1: no price leaves all of itself";
            r.report("margin", Code::OutOfRange, message, "such as 0.4");
        }
        if read.hardware_age.is_some() && read.method != Some(Amortisation::Epoch) {
            let message = "`finance.hardware_age` says nothing but with method = \"epoch\"";
            r.report("hardware_age", Code::Inconsistent, message, "remove it, or set finance.method = \"epoch\"");
        }
        r.about("share of the hours owned that are sold or at work")
            .usually("0.8")
            .bounded::<Fraction>("utilisation", &(LEAST_UTILISATION..=1.0));
        let before = r.sink().len();
        let read = Self { utilisation: r.optional("utilisation"), ..read };
        if r.sink().len() == before && read.utilisation.is_some_and(|share| share.get() < LEAST_UTILISATION) {
            let message = "`finance.utilisation` is less than a minute a day: no hour is ever sold";
            r.report("utilisation", Code::OutOfRange, message, "such as 0.8");
        }
        read
    }
}
