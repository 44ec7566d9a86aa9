//! A rented cluster: its price, how long it is paid for, and what comes with it.

use std::sync::Arc;

use super::Work;
use super::file::{PricedBy, RentFile};
use crate::catalog::provider::{Offer, Provider, ProviderClass, Term};
use crate::catalog::{Catalog, Entry};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::evaluate::Evaluation;
use crate::provenance::{Basis, weakest};
use crate::scenario::Cluster;
use crate::units::{Bytes, Factor, Ranged, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// A price of an hour, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct HourPrice {
    /// The price of one accelerator's hour.
    pub price: UsdPerHour,
    /// Whose offer it is, in words.
    pub from: String,
    /// The day that it is of.
    pub date: String,
    /// How it was come by.
    pub basis: Basis,
    /// The lowest and the highest price that it may be: of those that providers of the catalog list of such an hour, with how
    /// many there are, or as the study writes it.
    pub range: Option<(Ranged<UsdPerHour>, Option<usize>)>,
    /// Of what all accelerators cost an hour, the share of those on prefill's own nodes, where there are any.
    pub prefill_share: Option<f64>,
}

/// A rented offer, found.
#[derive(Clone, Debug)]
pub(super) struct Rent {
    /// The price.
    pub hour: HourPrice,
    /// The provider, where it is one of the catalog.
    pub provider: Option<Arc<Entry<Provider>>>,
    /// The least time that is paid for.
    pub minimum: Seconds,
    /// From the order to the first hour, as is usual with the provider.
    pub usual_wait: Option<Seconds>,
    /// Of spot instances: interruptions of one instance a day.
    pub interruptions_per_day: Option<Ranged<Factor>>,
    wanted: RentFile,
}

impl HourPrice {
    /// The mean of accelerators of two kinds, the share of the second being so much.
    fn with(self, other: Self, share: f64, ids: [&str; 2]) -> Self {
        let mean = |one: UsdPerHour, two: UsdPerHour| one * (1.0 - share) + two * share;
        let [one, two] = [(&self, ids[0]), (&other, ids[1])]
            .map(|(hour, id)| format!("{id} at {} ({}, {})", hour.price, hour.from, hour.date));
        let price = mean(self.price, other.price);
        Self {
            price,
            prefill_share: Some(other.price / price * share),
            from: format!("the mean of {one} and {two}"),
            date: self.date.min(other.date),
            basis: weakest(self.basis, other.basis),
            range: self.range.zip(other.range).map(|((one, prices), (two, more))| {
                let range = Ranged {
                    value: mean(one.value, two.value),
                    low: mean(one.low, two.low),
                    high: mean(one.high, two.high),
                };
                (range, prices.zip(more).map(|(prices, more)| prices + more))
            }),
        }
    }
}

/// What renting comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rented {
    /// The price of an hour.
    pub hour: HourPrice,
    /// An accelerator's hour in use: dearer than that where more is paid for than is used.
    pub hour_in_use: UsdPerHour,
    /// The time that is paid for.
    pub paid: Seconds,
    /// The least time that would be.
    pub minimum: Seconds,
    /// Accelerators' hours.
    pub compute: Usd,
    /// Data that leaves.
    pub egress: Usd,
    /// Data that is kept.
    pub storage: Usd,
}

impl Rented {
    /// Whether only hours in use are paid for.
    pub fn by_the_hour(&self) -> bool {
        self.hour_in_use <= self.hour.price * (1.0 + 1e-9)
    }

    /// All of it.
    pub fn total(&self) -> Usd {
        self.compute + self.egress + self.storage
    }
}

const TERABYTE: Bytes = Bytes::new(1e12);
const MONTH: Seconds = Seconds::new(SECONDS_PER_YEAR / 12.0);

impl Rent {
    /// Finds what an offer names; mistakes go to the sink.
    pub(super) fn bind(
        wanted: &RentFile,
        cluster: &Cluster,
        at: &Span,
        catalog: &Catalog,
        sink: &Sink,
    ) -> Option<Self> {
        let provider = match &wanted.provider {
            Some(id) => Some(catalog.providers.find(id, &id.at, sink)?),
            None => None,
        };
        let hour_of = |accelerator: &str, wanted: &RentFile| match (&provider, wanted.price) {
            (Some(provider), None) => {
                let hour = listed(provider, wanted, accelerator, at, sink)?;
                Some(HourPrice { range: others(catalog, accelerator, wanted.term, hour.price), ..hour })
            }
            (_, Some(price)) => {
                if wanted.priced_by.is_none() {
                    of_an_instance(price.value, accelerator, at, catalog, sink);
                }
                Some(written(price, wanted))
            }
            (None, None) => None,
        };
        let hour = hour_of(&cluster.accelerator.id, wanted)?;
        let hour = match cluster.own_nodes_of_prefill() {
            None => {
                if wanted.prefill_price.is_some() {
                    let hint = "leave it out, or give the job nodes of prefill's own: cluster.prefill";
                    let message = "`prefill_price` is of prefill's own nodes, and the job has none";
                    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "this offer").hint(hint));
                }
                hour
            }
            Some(own) => {
                if wanted.price.is_some() && wanted.prefill_price.is_none() {
                    let message =
                        format!("no price of an hour of `{}`, on which prompts are taken in", own.accelerator.id);
                    let hint = "add prefill_price = \"$1.20/h\"";
                    sink.push(Diagnostic::new(Code::MissingKey, message).at(at, "this offer").hint(hint));
                    return None;
                }
                // An instance is named of the cluster's own kind.
                let of_prefill = RentFile { price: wanted.prefill_price, instance: None, ..wanted.clone() };
                let beside = hour_of(&own.accelerator.id, &of_prefill)?;
                let share = f64::from(own.accelerators) / f64::from(cluster.accelerators);
                hour.with(beside, share, [&cluster.accelerator.id, &own.accelerator.id])
            }
        };
        let term = match wanted.term {
            Term::OneYear => Seconds::new(SECONDS_PER_YEAR),
            Term::ThreeYears => Seconds::new(3.0 * SECONDS_PER_YEAR),
            Term::OnDemand | Term::Spot | Term::Block | Term::Owned => Seconds::ZERO,
        };
        let usual_wait = provider.as_ref().and_then(|provider| provider.provisioning).map(|time| time.value);
        let charged = |what: &str, bytes: Bytes, has_price: bool| {
            if bytes > Bytes::ZERO && !has_price {
                let message = format!("what {what} costs is not known of this offer");
                let hint = "leave it out, or put the provider's price into an overlay of its catalog file";
                sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "this offer").hint(hint));
            }
        };
        let of_provider = provider.as_deref();
        charged("egress", wanted.egress, of_provider.is_some_and(|provider| provider.egress_per_tb.is_some()));
        charged("storage", wanted.storage, of_provider.is_some_and(|provider| provider.storage_per_tb_month.is_some()));
        Some(Self {
            hour,
            minimum: wanted.minimum.unwrap_or(Seconds::ZERO).max(term),
            usual_wait,
            provider,
            interruptions_per_day: wanted.interruptions_per_day,
            wanted: wanted.clone(),
        })
    }

    /// The same at another price of an hour.
    pub(super) fn at(&self, price: UsdPerHour) -> Self {
        Self { hour: HourPrice { price, ..self.hour.clone() }, ..self.clone() }
    }

    /// What a job costs on it: hours in use at their price, and what of the least time is not used, but for the part that
    /// other work uses.
    pub(super) fn rented(&self, evaluation: &Evaluation, work: &Work) -> Rented {
        let unused = self.minimum.saturating_sub(work.in_use);
        let paid = work.in_use + unused * (1.0 - self.wanted.reused.get());
        let accelerators = f64::from(evaluation.scenario.cluster.accelerators);
        let charged = |of: fn(&Provider) -> Option<crate::units::Ranged<Usd>>| {
            self.provider.as_deref().and_then(|provider| of(provider)).map_or(Usd::ZERO, |range| range.value)
        };
        Rented {
            hour: self.hour.clone(),
            hour_in_use: self.hour.price * (paid / work.in_use),
            paid,
            minimum: self.minimum,
            compute: (self.hour.price * accelerators).over(paid),
            egress: charged(|provider| provider.egress_per_tb) * (self.wanted.egress / TERABYTE),
            storage: charged(|provider| provider.storage_per_tb_month)
                * (self.wanted.storage / TERABYTE)
                * (work.wall / MONTH),
        }
    }
}

/// A price that the study writes.
fn written(price: Ranged<UsdPerHour>, wanted: &RentFile) -> HourPrice {
    let (count, of) = match (wanted.priced_by, wanted.accelerators) {
        (Some(PricedBy::Instance), Some(count)) => (f64::from(count), format!("an instance of {count}")),
        _ => (1.0, "one accelerator".to_owned()),
    };
    let each = Ranged { value: price.value / count, low: price.low / count, high: price.high / count };
    let date = wanted.date.clone().unwrap_or_default().0;
    HourPrice {
        price: each.value,
        from: format!("written in the study, as the price of {of}"),
        date,
        basis: Basis::Quote,
        range: (each.low < each.high).then_some((each, None)),
        prefill_share: None,
    }
}

/// So many times the highest price that anybody lists of an accelerator's hour, a price is rather that of an instance.
const BEYOND_LISTS: f64 = 2.5;

/// Reports a price that is said to be of nothing and is far beyond all that are listed of one accelerator.
fn of_an_instance(price: UsdPerHour, accelerator: &str, at: &Span, catalog: &Catalog, sink: &Sink) {
    let offers = catalog.providers.iter().flat_map(|provider| &provider.offers);
    let listed = offers.filter(|offer| &*offer.accelerator == accelerator);
    let Some(highest) = listed.map(|offer| offer.price_per_accelerator_hour).reduce(UsdPerHour::max) else { return };
    if price > highest * BEYOND_LISTS {
        let message =
            format!("{price} is said to be the price of nothing, and nobody lists `{accelerator}` above {highest}");
        let hint = "of an instance: per = \"instance\" and accelerators = 8; of one accelerator: per = \"accelerator\"";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "this offer").hint(hint));
    }
}

/// The range of prices that sellers list of an accelerator's hour at a term.
fn others(
    catalog: &Catalog,
    accelerator: &str,
    term: Term,
    value: UsdPerHour,
) -> Option<(Ranged<UsdPerHour>, Option<usize>)> {
    let sellers = catalog.providers.iter().filter(|provider| provider.class != ProviderClass::Index);
    let prices: Vec<UsdPerHour> = sellers
        .flat_map(|provider| provider.offers_of(accelerator, term))
        .map(|offer| offer.price_per_accelerator_hour)
        .collect();
    let low = prices.iter().copied().reduce(UsdPerHour::min)?;
    let high = prices.iter().copied().reduce(UsdPerHour::max)?;
    Some((Ranged { value, low, high }, Some(prices.len())))
}

/// A provider's list price: of several the newest, and of one day the lowest.
fn listed(
    provider: &Entry<Provider>,
    wanted: &RentFile,
    accelerator: &str,
    at: &Span,
    sink: &Sink,
) -> Option<HourPrice> {
    let named = |offer: &&Offer| wanted.instance.as_ref().is_none_or(|instance| instance.id == offer.instance);
    let all = provider.offers_of(accelerator, wanted.term);
    let fitting: Vec<&Offer> = all.into_iter().filter(named).collect();
    // An old price that was lower says nothing of today's.
    let newest = fitting.iter().map(|offer| &offer.evidence.date).max();
    let Some(best) = fitting.iter().find(|offer| Some(&offer.evidence.date) == newest) else {
        let known: Vec<String> = provider
            .offers
            .iter()
            .filter(|offer| &*offer.accelerator == accelerator)
            .map(|offer| format!("{} {}", offer.instance, offer.term))
            .collect();
        let hint = if known.is_empty() {
            let place = "see `clusterplan catalog list provider --format json`";
            format!("it has no price of that accelerator at all: {place}, or write price = \"$2.40/h\"")
        } else {
            format!("it has {}; or write price = \"$2.40/h\"", known.join(", "))
        };
        let message = format!("`{}` has no offer of `{accelerator}` for \"{}\"", provider.id, wanted.term);
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "this offer").hint(hint));
        return None;
    };
    let region = best.region.as_ref().map_or_else(String::new, |region| format!(", {region}"));
    let newest = if fitting.len() > 1 { format!("the newest of {} prices: ", fitting.len()) } else { String::new() };
    Some(HourPrice {
        price: best.price_per_accelerator_hour,
        from: format!("{}: {newest}{}{region}", provider.name, best.instance),
        date: best.evidence.date.clone(),
        basis: best.evidence.basis,
        range: None,
        prefill_share: None,
    })
}
