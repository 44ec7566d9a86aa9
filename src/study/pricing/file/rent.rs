//! What belongs to an offer that is rented, or paid by the token.

use crate::catalog::Reference;
use crate::catalog::provider::Term;
use crate::diagnostics::Code;
use crate::document::{Date, Reader, choices};
use crate::units::{Bytes, Factor, Fraction, Ranged, Seconds, Usd, UsdPerHour};

choices! {
    /// What a price of an hour is the price of.
    pub enum PricedBy {
        /// One accelerator.
        Accelerator = "accelerator",
        /// An instance with several.
        Instance = "instance",
    }
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
    pub price: Option<Ranged<UsdPerHour>>,
    /// The same of an accelerator on prefill's own nodes.
    pub prefill_price: Option<Ranged<UsdPerHour>>,
    /// The day of that price.
    pub date: Option<Date>,
    /// What it is the price of; of one accelerator where it is not said.
    pub priced_by: Option<PricedBy>,
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
    pub interruptions_per_day: Option<Ranged<Factor>>,
}

impl RentFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let rent = Self {
            provider: r
                .about("id of the provider whose list price is taken; this or `price` must be there")
                .optional("provider"),
            instance: r
                .about("the provider's name for what is rented")
                .usually("the one that fits")
                .optional("instance"),
            term: r.about("how long and how firmly").usually("\"on-demand\"").or("term", Term::OnDemand),
            price: r.about("price of an hour, where it is not a provider's").optional("price"),
            prefill_price: r.about("the same of an accelerator on prefill's own nodes").optional("prefill_price"),
            date: r.about("day of that price").optional("date"),
            priced_by: r.about("what it is the price of").usually("\"accelerator\"").optional("per"),
            accelerators: r.about("accelerators of the instance that it is the price of").optional("accelerators"),
            minimum: r
                .about("least time that is paid for")
                .usually("that of the term")
                .such_as("1 year")
                .optional("minimum"),
            reused: r
                .about("share of what is paid for and not used by the job that other work uses")
                .usually("0")
                .or("reused", Fraction::ZERO),
            egress: r
                .about("data that leaves for the internet")
                .usually("none")
                .such_as("10 TB")
                .or("egress", Bytes::ZERO),
            storage: r.about("data kept over the run").usually("none").such_as("500 TB").or("storage", Bytes::ZERO),
            interruptions_per_day: r
                .about("of spot instances, interruptions of one instance a day")
                .optional("interruptions_per_day"),
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
        for (key, price) in [("price", rent.price), ("prefill_price", rent.prefill_price)] {
            if price.is_some_and(|price| price.low == UsdPerHour::ZERO) && r.sink().is_empty() {
                let hint = format!("such as {key} = \"$2.40/h\"");
                r.report(key, Code::OutOfRange, "an hour at no price is not rented", &hint);
            }
        }
        if rent.prefill_price.is_some() && rent.price.is_none() {
            let hint = "remove it: a provider's list prices are found for both kinds; or write `price` too";
            r.report("prefill_price", Code::Inconsistent, "`prefill_price` is given without `price`", hint);
        }
        match (rent.price.is_some(), rent.priced_by.unwrap_or(PricedBy::Accelerator), rent.accelerators) {
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

/// What belongs to an offer that is paid by the token: prices of a million.
#[derive(Clone, Debug, Default)]
pub struct ApiFile {
    /// Of prompts.
    pub input: Ranged<Usd>,
    /// Of prompts that are in the cache; as others where it is not said.
    pub cached: Option<Ranged<Usd>>,
    /// Of answers.
    pub output: Ranged<Usd>,
    /// The day of the prices.
    pub date: Date,
    /// Where they were read.
    pub source: String,
}

impl ApiFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let api = Self {
            input: r.about("price of a million tokens of prompts").such_as("$0.23").get("input"),
            cached: r
                .about("price of a million tokens of prompts that are in the cache")
                .usually("as others")
                .such_as("$0.10")
                .optional("cached"),
            output: r.about("price of a million tokens of answers").such_as("$0.80").get("output"),
            date: r.about("day of the prices").get("date"),
            source: r.about("where they were read").get("source"),
        };
        if r.sink().len() == before && api.input.value + api.output.value == Usd::ZERO {
            r.report("output", Code::OutOfRange, "tokens at no price are not bought", "such as output = \"$0.80\"");
        }
        api
    }
}
