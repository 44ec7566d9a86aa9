//! Providers: who rents accelerators out, at which prices and terms.

use super::Reference;
use super::pricebook::Evidence;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Ranged, Seconds, Usd, UsdPerHour};

choices! {
    /// What kind of seller a provider is.
    pub enum ProviderClass {
        /// A general cloud with its own regions worldwide.
        Hyperscaler = "hyperscaler",
        /// A cloud of accelerators.
        Neocloud = "neocloud",
        /// A place where others offer theirs.
        Marketplace = "marketplace",
        /// No seller: what a survey found to be usual.
        Index = "index",
    }
}

choices! {
    /// How long and how firmly one rents.
    pub enum Term {
        /// By the hour, kept until given back.
        OnDemand = "on-demand",
        /// By the hour, taken back at will.
        Spot = "spot",
        /// A block of days or weeks, paid in advance.
        Block = "block",
        /// Committed for a year.
        OneYear = "1 year",
        /// Committed for three years.
        ThreeYears = "3 years",
        /// Not rented: what an hour costs its owner, by a published model.
        Owned = "owned",
    }
}

/// One offer.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The provider's name for what is rented.
    pub instance: String,
    /// The accelerator in it.
    pub accelerator: Reference,
    /// Accelerators in it.
    pub accelerators: u32,
    /// The node of this catalog that it is.
    pub node: Option<Reference>,
    /// The term.
    pub term: Term,
    /// Price of one accelerator for an hour.
    pub price_per_accelerator_hour: UsdPerHour,
    /// Where it holds, in the provider's words.
    pub region: Option<String>,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl Offer {
    /// Price of the instance for an hour.
    pub fn price_per_instance_hour(&self) -> UsdPerHour {
        self.price_per_accelerator_hour * f64::from(self.accelerators)
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let accelerators = reader.get("accelerators");
        let instance_hour: Option<UsdPerHour> = reader.optional("price_per_instance_hour");
        let accelerator_hour: Option<UsdPerHour> = reader.optional("price_per_accelerator_hour");
        let price_per_accelerator_hour = match (instance_hour, accelerator_hour) {
            (Some(whole), None) => whole / f64::from(accelerators),
            (None, Some(one)) => one,
            (whole, _) => {
                let message = "an offer has `price_per_instance_hour` or `price_per_accelerator_hour`";
                let hint = if whole.is_some() { "both are here: remove one" } else { "neither is here: add one" };
                reader.report("price_per_instance_hour", Code::Inconsistent, message, hint);
                UsdPerHour::ZERO
            }
        };
        Self {
            instance: reader.get("instance"),
            accelerator: reader.get("accelerator"),
            accelerators,
            node: reader.optional("node"),
            term: reader.get("term"),
            price_per_accelerator_hour,
            region: reader.optional("region"),
            evidence: Evidence::read(reader),
        }
    }
}

/// A provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// What kind of seller it is.
    pub class: ProviderClass,
    /// What it charges for a terabyte that leaves it for the internet.
    pub egress_per_tb: Option<Ranged<Usd>>,
    /// What it charges for a terabyte of fast storage and month.
    pub storage_per_tb_month: Option<Ranged<Usd>>,
    /// From the order to the first hour, for a cluster and not a single node.
    pub provisioning: Option<Ranged<Seconds>>,
    /// Its offers.
    pub offers: Vec<Offer>,
}

impl Provider {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            class: reader.get("class"),
            egress_per_tb: reader.optional("egress_per_tb"),
            storage_per_tb_month: reader.optional("storage_per_tb_month"),
            provisioning: reader.optional("provisioning"),
            offers: reader.tables("offer", Offer::read),
        }
    }

    /// The offers of an accelerator at a term, dearest last.
    pub fn offers_of(&self, accelerator: &str, term: Term) -> Vec<&Offer> {
        let fits = |offer: &&Offer| &*offer.accelerator == accelerator && offer.term == term;
        let mut offers: Vec<&Offer> = self.offers.iter().filter(fits).collect();
        // Base numbers, because only their order matters.
        let price = |offer: &Offer| offer.price_per_accelerator_hour.value();
        offers.sort_by(|a, b| price(a).total_cmp(&price(b)));
        offers
    }
}
