//! What belongs to an owned offer: debt, tax, what accelerators bring when they are sold, and what hours are sold for.

use super::whole_years;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::finance::{Depreciation, MacrsClass};
use crate::tco::Tax;
use crate::units::{Factor, Fraction, Ranged, Rate, SECONDS_PER_YEAR, Seconds, UsdPerHour, to_integer};

/// Share of an income that earlier losses may cancel, unless said otherwise: 26 U.S.C. 172(a)(2).
const LOSS_LIMIT: f64 = 0.8;

/// The most that cash may cover debt service, far beyond what lenders ask for.
const MOST_COVER: f64 = 100.0;

choices! {
    /// How debt is paid back.
    pub enum RepaymentWord {
        /// Equal payments.
        Level = "level",
        /// As each year's cash allows.
        Sculpted = "sculpted",
    }
}

choices! {
    /// How tax law writes parts off.
    pub enum DepreciationWord {
        /// Five years of MACRS, which computers belong to.
        Macrs5 = "macrs-5",
        /// Three years of MACRS.
        Macrs3 = "macrs-3",
        /// Seven years of MACRS.
        Macrs7 = "macrs-7",
        /// Ten years of MACRS.
        Macrs10 = "macrs-10",
        /// Fifteen years of MACRS.
        Macrs15 = "macrs-15",
        /// 39 years of MACRS, for buildings.
        Macrs39 = "macrs-39",
        /// Equal amounts over the life.
        StraightLine = "straight-line",
        /// Double-declining balance over the life, turning to equal amounts.
        DoubleDeclining = "double-declining",
    }
}

impl DepreciationWord {
    /// Whether it is a class of the United States' tax law.
    fn is_macrs(self) -> bool {
        !matches!(self, Self::StraightLine | Self::DoubleDeclining)
    }

    /// The schedule of a thing that lasts so many years.
    pub(in super::super) fn over(self, years: f64) -> Depreciation {
        let whole = to_integer::<u32>(years.ceil().max(1.0));
        match self {
            Self::Macrs3 => Depreciation::Macrs(MacrsClass::Three),
            Self::Macrs5 => Depreciation::Macrs(MacrsClass::Five),
            Self::Macrs7 => Depreciation::Macrs(MacrsClass::Seven),
            Self::Macrs10 => Depreciation::Macrs(MacrsClass::Ten),
            Self::Macrs15 => Depreciation::Macrs(MacrsClass::Fifteen),
            Self::Macrs39 => Depreciation::Macrs(MacrsClass::ThirtyNine),
            Self::StraightLine => Depreciation::StraightLine { years },
            Self::DoubleDeclining => Depreciation::DecliningBalance {
                years: whole,
                factor: Factor::new(2.0).unwrap_or(Factor::ONE),
                then_straight: true,
            },
        }
    }
}

/// What belongs to an owned offer.
#[derive(Clone, Debug, Default)]
pub struct OwnFile {
    /// Debt against what is bought first.
    pub debt: Option<DebtFile>,
    /// Tax on income.
    pub tax: Option<TaxFile>,
    /// What accelerators bring when they are sold.
    pub residual: Residual,
    /// How many times more hours are used where jobs share accelerators, whole or in parts, than the job's share says.
    pub pooling: Option<Factor>,
    /// From a delivery to the first hour that earns: set-up and burn-in, paid for all the same.
    pub burn_in: Seconds,
    /// What the hours are sold for.
    pub sell: Option<SellFile>,
    /// The return that owners want.
    pub target_return: Option<Fraction>,
}

/// What a thing brings when it is sold, of its price.
#[derive(Clone, Debug, PartialEq)]
pub enum Residual {
    /// So much at the end of its life, and before along a straight line.
    AtEnd(Fraction),
    /// So much after each year, along straight lines in between; the last holds on.
    ByYear(Vec<Fraction>),
}

impl Default for Residual {
    fn default() -> Self {
        Self::AtEnd(Fraction::ZERO)
    }
}

impl Residual {
    /// The share that a thing brings that is sold after so many years of its life.
    pub(in super::super) fn at(&self, held: f64, life: f64) -> f64 {
        match self {
            Self::AtEnd(share) => 1.0 - (1.0 - share.get()) * (held / life).min(1.0),
            Self::ByYear(shares) => {
                let after = |year: f64| {
                    let index = to_integer::<usize>(year);
                    let known = if index == 0 { None } else { shares.get(index - 1).or(shares.last()) };
                    known.map_or(1.0, |share| share.get())
                };
                let (low, part) = (held.floor(), held.fract());
                after(low) + (after(low + 1.0) - after(low)) * part
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Self {
        let (at_end, by_year) = (
            r.about("share of its price that a thing brings at the end of its life").usually("0").optional("residual"),
            r.about("share of its price that it brings after each year; the last holds on")
                .usually("`residual`")
                .optional::<Vec<Fraction>>("residual_by_year"),
        );
        match (at_end, by_year) {
            (Some(_), Some(_)) => {
                let hint = "remove one: a share at the end of the life, or a list of shares after each year";
                r.report("residual", Code::Inconsistent, "both `residual` and `residual_by_year` are given", hint);
                Self::default()
            }
            (Some(share), None) => Self::AtEnd(share),
            (None, Some(shares)) => {
                if shares.is_empty() || shares.windows(2).any(|pair| pair[1] > pair[0]) {
                    let hint = "the share of the price after each year, such as [0.7, 0.5, 0.35, 0.2, 0.1]";
                    r.report(
                        "residual_by_year",
                        Code::OutOfRange,
                        "a residual value rises with age, or is missing",
                        hint,
                    );
                }
                Self::ByYear(shares)
            }
            (None, None) => Self::default(),
        }
    }
}

/// `offer.tax`
#[derive(Clone, Copy, Debug, Default)]
pub struct TaxFile {
    /// What is taxed.
    pub tax: Tax,
    /// How equipment is written off.
    pub equipment: DepreciationWord,
    /// How a building is: by tax law over 39 years where equipment is by its classes.
    pub building: DepreciationWord,
}

impl TaxFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let equipment: DepreciationWord = r.about("how tax law writes equipment off").get("depreciation");
        let usual = if equipment.is_macrs() { DepreciationWord::Macrs39 } else { equipment };
        Self {
            tax: Tax {
                rate: r.about("share of the income that is taxed away").get("rate"),
                first_year: r
                    .about("share of the price written off at once in the first year")
                    .usually("0")
                    .or("first_year", Fraction::ZERO),
                loss_limit: r
                    .about("share of an income that earlier losses may cancel")
                    .usually("0.8")
                    .or("loss_limit", Fraction::new(LOSS_LIMIT).unwrap_or(Fraction::ONE)),
            },
            equipment,
            building: r
                .about("how it writes a building off")
                .usually("\"macrs-39\" with classes of MACRS, else as equipment")
                .or("building", usual),
        }
    }
}

/// `offer.debt`
#[derive(Clone, Copy, Debug, Default)]
pub struct DebtFile {
    /// Share of the purchases.
    pub share: Fraction,
    /// Interest a year.
    pub rate: Fraction,
    /// Years.
    pub tenor: Seconds,
    /// Share of the amount, paid at once.
    pub fee: Fraction,
    /// How it is paid back.
    pub repayment: RepaymentWord,
    /// Of sculpted debt: how many times each year's cash covers its service.
    pub cover: Option<Factor>,
}

/// `offer.sell`
#[derive(Clone, Debug, Default)]
pub struct SellFile {
    /// The market's price of an accelerator's hour in the first year.
    pub market: Ranged<UsdPerHour>,
    /// Share of the accelerators delivered by the beginning of each year; the last holds on.
    pub delivered: Vec<Fraction>,
    /// Contracts; the rest is sold at the market's price.
    pub contracts: Vec<ContractFile>,
}

/// `offer.sell.contract`
#[derive(Clone, Copy, Debug, Default)]
pub struct ContractFile {
    /// Share of the hours.
    pub share: Fraction,
    /// Price of an accelerator's hour.
    pub price: UsdPerHour,
    /// Its term.
    pub term: Seconds,
    /// Share of its revenue that is paid when it is signed.
    pub prepaid: Fraction,
}

impl OwnFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            debt: r.about("money borrowed for the purchases").usually("none").optional_table("debt", DebtFile::read),
            tax: r.about("tax on the income").usually("none").optional_table("tax", TaxFile::read),
            residual: Residual::read(r),
            pooling: r
                .about("how many times more hours are used where jobs share accelerators")
                .usually("1")
                .optional("pooling"),
            burn_in: r
                .about("time from a delivery to the first hour that earns")
                .usually("none")
                .such_as("5 weeks")
                .optional_within("burn_in", &(Seconds::ZERO..=Seconds::new(SECONDS_PER_YEAR)))
                .unwrap_or(Seconds::ZERO),
            sell: r
                .about("what hours that the job does not use are sold for")
                .usually("nothing is sold")
                .optional_table("sell", SellFile::read),
            target_return: r.about("return a year that owners want").optional("target_return"),
        }
    }
}

impl DebtFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let repayment = r.about("how debt is paid back").usually("\"level\"").or("repayment", RepaymentWord::Level);
        let debt = Self {
            share: r.about("share of the purchases that is borrowed").get("share"),
            rate: r.about("interest a year").get("rate"),
            tenor: whole_years(r.about("years over which it is paid back, whole ones"), "tenor"),
            fee: r.about("share of the amount that is paid at once").usually("0").or("fee", Fraction::ZERO),
            repayment,
            cover: r.about("of sculpted debt, how many times each year's cash covers its service").optional("cover"),
        };
        match (repayment, debt.cover) {
            (RepaymentWord::Sculpted, None) => {
                let hint = "how many times each year's cash covers its debt service, such as 1.3";
                r.report("repayment", Code::MissingKey, "sculpted debt needs `cover`", hint);
            }
            (RepaymentWord::Level, Some(_)) => {
                let hint = "remove it, or set repayment = \"sculpted\"";
                r.report("cover", Code::Inconsistent, "level payments follow no cover", hint);
            }
            (RepaymentWord::Sculpted, Some(cover)) if cover.get() < 1.0 => {
                let message = format!("a cover of {} has each year pay more than it has", cover.get());
                r.report("cover", Code::OutOfRange, message, "1 or more, such as 1.3");
            }
            (RepaymentWord::Sculpted, Some(cover)) if cover.get() > MOST_COVER => {
                let message = format!("a cover of {} leaves next to nothing to borrow", cover.get());
                r.report("cover", Code::OutOfRange, message, format!("at most {MOST_COVER}; such as 1.3"));
            }
            _ => {}
        }
        debt
    }

    /// The rate as one of a period.
    pub(in super::super) fn yearly(&self) -> Rate {
        Rate::from(self.rate)
    }
}

impl SellFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let sell = Self {
            market: r.about("price of an accelerator's hour on the market in the first year").get("market"),
            delivered: r
                .about("share of the accelerators that is there at the beginning of each year; the last holds on")
                .usually("[1]")
                .or("delivered", vec![Fraction::ONE]),
            contracts: r
                .about("contracts for a part of the hours; the rest goes to the market")
                .usually("none")
                .tables("contract", |r| ContractFile {
                    share: r.about("share of the hours").get("share"),
                    price: r.about("price of an accelerator's hour").get("price"),
                    term: whole_years(r.about("years that the contract lasts, whole ones"), "term"),
                    prepaid: r
                        .about("share of its revenue that is paid when it is signed")
                        .usually("0")
                        .or("prepaid", Fraction::ZERO),
                }),
        };
        let contracted: f64 = sell.contracts.iter().map(|contract| contract.share.get()).sum();
        if contracted > 1.0 + 1e-12 {
            let message = format!("contracts over {:.0}% of the hours", contracted * 100.0);
            r.report("contract", Code::OutOfRange, message, "their shares add up to 1 or less");
        }
        if sell.delivered.windows(2).any(|pair| pair[1] < pair[0]) || sell.delivered.is_empty() {
            let hint = "the share there at the beginning of each year, such as [0.5, 1]";
            r.report("delivered", Code::OutOfRange, "`delivered` falls: it adds up what was delivered", hint);
        }
        sell
    }
}
