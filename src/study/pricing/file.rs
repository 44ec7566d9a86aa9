//! A pricing study as it stands in its file: the job, the ways to buy it, and how the market's price may go.

use crate::catalog::Reference;
use crate::catalog::pricebook::{Line, Price};
use crate::catalog::provider::Term;
use crate::diagnostics::{Code, Sink, Span};
use crate::document::{Date, Node, Reader, Value, choices};
use crate::finance::{Depreciation, MacrsClass};
use crate::tco::Tax;
use crate::units::{Bytes, Factor, Fraction, Rate, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// The most years that anything in a study lasts.
const MOST_YEARS: u32 = 50;
/// The most offers that can be read side by side.
const MOST_OFFERS: usize = 32;
/// Share of an income that earlier losses may cancel, unless said otherwise: 26 U.S.C. 172(a)(2).
const LOSS_LIMIT: f64 = 0.8;

choices! {
    /// How accelerators are come by.
    pub enum OfferKind {
        /// They are bought, housed and run.
        Own = "own",
        /// They are rented by the hour.
        Rent = "rent",
        /// They are another's, who is paid by the token.
        Api = "api",
    }
}

choices! {
    /// What a price of an hour is the price of.
    pub enum PricedBy {
        /// One accelerator.
        Accelerator = "accelerator",
        /// An instance with several.
        Instance = "instance",
    }
}

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
    /// The schedule of a thing that lasts so many years.
    pub(super) fn over(self, years: f64) -> Depreciation {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a life of a few years, rounded up")]
        let whole = years.ceil().max(1.0) as u32;
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

/// A study as it stands in its file.
#[derive(Clone, Debug, Default)]
pub struct StudyFile {
    /// What is asked, in a line.
    pub title: String,
    /// The scenario of the job, a path from the study's folder.
    pub job: Reference,
    /// The currency that amounts are shown in; dollars where none is named.
    pub currency: Option<Reference>,
    /// The ways to buy it.
    pub offers: Vec<OfferFile>,
    /// How the market's price may go.
    pub paths: Vec<PathFile>,
}

/// `[[offer]]`
#[derive(Clone, Debug, Default)]
pub struct OfferFile {
    /// Its name.
    pub name: String,
    /// Its place.
    pub at: Span,
    /// How accelerators are come by.
    pub kind: OfferKind,
    /// From the order to the first hour.
    pub wait: Option<Seconds>,
    /// Keys of the job's scenario that are otherwise with this offer.
    pub set: Vec<(String, Node)>,
    /// Prices of parts instead of the price book's.
    pub prices: Vec<Price>,
    /// Cost lines beside those of the price book, or instead of those of the same name.
    pub lines: Vec<Line>,
    /// Of an owned one.
    pub own: OwnFile,
    /// Of a rented one.
    pub rent: RentFile,
    /// Of one that is paid by the token.
    pub api: Option<ApiFile>,
}

/// What belongs to an offer that is paid by the token: prices of a million.
#[derive(Clone, Debug, Default)]
pub struct ApiFile {
    /// Of prompts.
    pub input: Usd,
    /// Of prompts that are in the cache; as others where it is not said.
    pub cached: Option<Usd>,
    /// Of answers.
    pub output: Usd,
    /// The day of the prices.
    pub date: Date,
    /// Where they were read.
    pub source: String,
}

impl ApiFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            input: r.get("input"),
            cached: r.optional("cached"),
            output: r.get("output"),
            date: r.get("date"),
            source: r.get("source"),
        }
    }
}

/// What belongs to an owned offer.
#[derive(Clone, Debug, Default)]
pub struct OwnFile {
    /// Debt against what is bought first.
    pub debt: Option<DebtFile>,
    /// Tax on income.
    pub tax: Option<(Tax, DepreciationWord)>,
    /// What accelerators bring when they are sold.
    pub residual: Residual,
    /// How many times more hours are used where jobs share accelerators, whole or in parts, than the job's share says.
    pub pooling: Option<Factor>,
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
    pub(super) fn at(&self, held: f64, life: f64) -> f64 {
        match self {
            Self::AtEnd(share) => 1.0 - (1.0 - share.get()) * (held / life).min(1.0),
            Self::ByYear(shares) => {
                let after = |year: f64| {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a year of a few")]
                    let index = year as usize;
                    let known = if index == 0 { None } else { shares.get(index - 1).or(shares.last()) };
                    known.map_or(1.0, |share| share.get())
                };
                let (low, part) = (held.floor(), held.fract());
                after(low) + (after(low + 1.0) - after(low)) * part
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Self {
        let (at_end, by_year) = (r.optional("residual"), r.optional::<Vec<Fraction>>("residual_by_year"));
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
    pub market: UsdPerHour,
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

/// What belongs to a rented offer.
#[derive(Clone, Debug, Default)]
pub struct RentFile {
    /// The provider, whose list price is taken where none is written.
    pub provider: Option<Reference>,
    /// The provider's name for what is rented, where several fit.
    pub instance: Option<Reference>,
    /// How long and how firmly.
    pub term: Term,
    /// A price of an hour.
    pub price: Option<UsdPerHour>,
    /// The day of that price.
    pub date: Option<Date>,
    /// What it is the price of.
    pub priced_by: PricedBy,
    /// Accelerators of the instance that it is the price of.
    pub accelerators: Option<u32>,
    /// The least time that is paid for, where the term does not say it.
    pub minimum: Option<Seconds>,
    /// Share of what is paid for and not used by the job that other work uses.
    pub reused: Fraction,
    /// Data that leaves for the internet.
    pub egress: Bytes,
    /// Data kept over the run.
    pub storage: Bytes,
    /// Of spot instances: interruptions of one instance a day.
    pub interruptions_per_day: Option<Factor>,
}

/// `[[path]]`: the market's price of each year over that of the first.
#[derive(Clone, Debug, Default)]
pub struct PathFile {
    /// Its name.
    pub name: String,
    /// Price of each year over the first's; the last holds on.
    pub prices: Vec<Factor>,
}

impl StudyFile {
    /// Reads a study; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(document, "", sink) else { return Self::default() };
        let study = Self {
            title: r.get("title"),
            job: r.get("job"),
            currency: r.optional("currency"),
            offers: r.tables("offer", OfferFile::read),
            paths: r.tables("path", |r| PathFile { name: r.get("name"), prices: r.get("prices") }),
        };
        if study.offers.is_empty() && r.place_of("offer").is_none() {
            r.report("offer", Code::MissingKey, "the study has no offer", "add an [[offer]] with name and kind");
        }
        if study.offers.len() > MOST_OFFERS {
            let message = format!("{} offers side by side; at most {MOST_OFFERS} can be read", study.offers.len());
            r.report("offer", Code::OutOfRange, message, "split the study");
        }
        for (index, offer) in study.offers.iter().enumerate() {
            if study.offers[..index].iter().any(|earlier| earlier.name == offer.name) && !offer.name.is_empty() {
                let message = format!("two offers are called \"{}\"", offer.name);
                sink.push(crate::diagnostics::Diagnostic::new(Code::Duplicate, message).at(&offer.at, "the second"));
            }
        }
        for path in &study.paths {
            if path.prices.is_empty() {
                r.report("path", Code::OutOfRange, format!("\"{}\" has no prices", path.name), "such as [1, 0.8, 0.6]");
            }
        }
        study
    }
}

impl OfferFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let (name, kind) = (r.get("name"), r.get("kind"));
        let set = settings(r);
        let (prices, lines) = (r.tables("price_of", Price::read), r.tables("line", Line::read));
        let own = kind == OfferKind::Own;
        if !(own || lines.is_empty() && prices.is_empty()) {
            let hint = "remove it, or set kind = \"own\"";
            let key = if lines.is_empty() { "price_of" } else { "line" };
            r.report(key, Code::Inconsistent, "whoever rents pays neither parts nor cost lines of the owner's", hint);
        }
        Self {
            name,
            at: r.at().clone(),
            kind,
            wait: r.optional("wait"),
            set,
            prices,
            lines,
            own: if own { OwnFile::read(r) } else { OwnFile::default() },
            rent: if kind == OfferKind::Rent { RentFile::read(r) } else { RentFile::default() },
            api: (kind == OfferKind::Api).then(|| ApiFile::read(r)),
        }
    }
}

/// The keys of the job that an offer sets.
fn settings(r: &mut Reader<'_>) -> Vec<(String, Node)> {
    let Some(node) = r.node("set") else { return Vec::new() };
    let Value::Table(table) = &node.value else {
        node.wrong_type(&r.path_of("set"), "a table of keys of the scenario and their values", r.sink());
        return Vec::new();
    };
    table.entries.iter().map(|entry| (entry.key.clone(), entry.node.clone())).collect()
}

impl OwnFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            debt: r.optional_table("debt", DebtFile::read),
            tax: r.optional_table("tax", |r| {
                let tax = Tax {
                    rate: r.get("rate"),
                    first_year: r.or("first_year", Fraction::ZERO),
                    loss_limit: r.or("loss_limit", Fraction::new(LOSS_LIMIT).unwrap_or(Fraction::ONE)),
                };
                (tax, r.get("depreciation"))
            }),
            residual: Residual::read(r),
            pooling: r.optional("pooling"),
            sell: r.optional_table("sell", SellFile::read),
            target_return: r.optional("target_return"),
        }
    }
}

/// A time of whole years.
fn whole_years(r: &mut Reader<'_>, key: &'static str) -> Seconds {
    let before = r.sink().len();
    let time: Seconds = r.get(key);
    let years = time / Seconds::new(SECONDS_PER_YEAR);
    if r.sink().len() == before && (years.fract() != 0.0 || !(1.0..=f64::from(MOST_YEARS)).contains(&years)) {
        let message = format!("`{}` is {time}: it has to be 1 to {MOST_YEARS} whole years", r.path_of(key));
        r.report(key, Code::OutOfRange, message, "such as \"5 years\"");
    }
    time
}

impl DebtFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let repayment = r.or("repayment", RepaymentWord::Level);
        let debt = Self {
            share: r.get("share"),
            rate: r.get("rate"),
            tenor: whole_years(r, "tenor"),
            fee: r.or("fee", Fraction::ZERO),
            repayment,
            cover: r.optional("cover"),
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
            _ => {}
        }
        debt
    }

    /// The rate as one of a period.
    pub(super) fn yearly(&self) -> Rate {
        Rate::from(self.rate)
    }
}

impl SellFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let sell = Self {
            market: r.get("market"),
            delivered: r.or("delivered", vec![Fraction::ONE]),
            contracts: r.tables("contract", |r| ContractFile {
                share: r.get("share"),
                price: r.get("price"),
                term: whole_years(r, "term"),
                prepaid: r.or("prepaid", Fraction::ZERO),
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

impl RentFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let rent = Self {
            provider: r.optional("provider"),
            instance: r.optional("instance"),
            term: r.or("term", Term::OnDemand),
            price: r.optional("price"),
            date: r.optional("date"),
            priced_by: r.or("per", PricedBy::Accelerator),
            accelerators: r.optional("accelerators"),
            minimum: r.optional("minimum"),
            reused: r.or("reused", Fraction::ZERO),
            egress: r.or("egress", Bytes::ZERO),
            storage: r.or("storage", Bytes::ZERO),
            interruptions_per_day: r.optional("interruptions_per_day"),
        };
        match (&rent.provider, rent.price) {
            (None, None) => {
                let hint = "name a provider of the catalog, or write price = \"$2.40/h\"";
                r.report("provider", Code::MissingKey, "a rented offer needs `provider` or `price`", hint);
            }
            (Some(_), Some(_)) => {
                let hint = "remove one of them";
                r.report("price", Code::Inconsistent, "both a provider's list price and a price are given", hint);
            }
            _ => {}
        }
        if rent.price.is_some() != rent.date.is_some() {
            let (message, hint) = if rent.price.is_some() {
                ("a price without a date says little", "add the day that it is of, such as date = 2026-11-29")
            } else {
                ("`date` is given without `price`", "remove it: a provider's prices have their own")
            };
            r.report("price", Code::MissingKey, message, hint);
        }
        match (rent.price.is_some(), rent.priced_by, rent.accelerators) {
            (true, PricedBy::Instance, None) => {
                let hint = "a price of an instance needs the number in it, such as accelerators = 8";
                r.report("per", Code::MissingKey, "`accelerators` of the instance is missing", hint);
            }
            (_, PricedBy::Accelerator, Some(_)) => {
                let hint = "remove it, or say per = \"instance\"";
                let message = "`accelerators` is given, and the price is of one accelerator";
                r.report("accelerators", Code::Inconsistent, message, hint);
            }
            (false, PricedBy::Instance, _) => {
                let hint = "a provider's offers say themselves what they are the price of";
                r.report("per", Code::Inconsistent, "`per` is given without `price`", hint);
            }
            _ => {}
        }
        if rent.term == Term::Spot && rent.interruptions_per_day.is_none() {
            let hint = "how often a day one instance is taken back, such as interruptions_per_day = 0.05";
            r.report("term", Code::MissingKey, "spot instances need `interruptions_per_day`", hint);
        }
        if rent.term != Term::Spot && rent.interruptions_per_day.is_some() {
            let message = "only spot instances are taken back";
            r.report("interruptions_per_day", Code::Inconsistent, message, "remove it, or set term = \"spot\"");
        }
        rent
    }
}
