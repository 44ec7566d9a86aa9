//! Data processing units beside an owned node's processors: what they cost, and the host cores that they free.

use crate::catalog::pricebook::{Amount, Category, Driver, Evidence, Line};
use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::{Factor, Fraction, Ranged, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// The most of them in a node.
const MOST: u32 = 64;
/// The most host cores that one may free where nobody says how many its node has.
const MOST_CORES: f64 = 10_000.0;
/// The line of the price book that says what is spent on them.
pub(in super::super) const DPUS: &str = "DPUs";
/// The line that says what the cores are worth.
pub(in super::super) const FREED: &str = "Host cores that DPUs free";

/// `offer.dpus`: of each node.
#[derive(Clone, Debug, Default)]
pub struct DpusFile {
    /// How many.
    pub per_node: u32,
    /// Price of one.
    pub price: Ranged<Usd>,
    /// Host cores that one frees for jobs.
    pub cores_freed: Ranged<Factor>,
    /// What a host core is worth.
    pub core_hour: Ranged<UsdPerHour>,
    /// What stands behind the figures.
    pub evidence: Evidence,
}

impl DpusFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let read = Self {
            per_node: r.about("how many a node has").within("per_node", &(1..=MOST)),
            price: r.about("price of one").such_as("$2,800").get("price"),
            cores_freed: r.about("host cores that one frees for jobs").get("cores_freed"),
            core_hour: r.about("what an hour of a host core is worth").such_as("$0.02/h").get("core_hour"),
            evidence: Evidence::read(r),
        };
        if r.sink().len() == before && read.cores_freed.high.get() > MOST_CORES {
            let message = format!("a card frees {} host cores", read.cores_freed.high.get());
            r.report("cores_freed", Code::OutOfRange, message, format!("at most {MOST_CORES}, more than a host has"));
        }
        read
    }

    /// The lines: bought once for each node, and cores at their price for all hours of a year. A card draws about what the
    /// cores would that it frees, so that power stays as it is.
    pub(in super::super) fn lines(&self) -> [Line; 2] {
        let count = f64::from(self.per_node);
        let spent =
            Ranged { value: self.price.value * count, low: self.price.low * count, high: self.price.high * count };
        let year = Seconds::new(SECONDS_PER_YEAR);
        let worth = |cores: Factor, hour: UsdPerHour| (hour * (cores.get() * count)).over(year);
        let freed = Ranged {
            value: worth(self.cores_freed.value, self.core_hour.value),
            low: worth(self.cores_freed.low, self.core_hour.low),
            high: worth(self.cores_freed.high, self.core_hour.high),
        };
        let line = |name: &str, category, amount| Line {
            name: name.to_owned(),
            category,
            per: Driver::Node,
            amount: Amount::Money(amount),
            life: None,
            escalation: Fraction::ZERO,
            transports: Vec::new(),
            evidence: self.evidence.clone(),
        };
        [line(DPUS, Category::Capex, spent), line(FREED, Category::Saving, freed)]
    }
}
