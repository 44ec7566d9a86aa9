//! Where renting turns into owning.

use std::sync::Arc;

use super::{Answer, Bought, OtherPrice, PricedOffer};
use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds, Usd};

/// Where the order of an owned and a rented offer turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferTurn {
    /// Owning costs less from this share of the hours in use on; at none it always does, above one never.
    Utilisation(f64),
    /// Hours that are not in use are paid for either way, so that no share of them turns the order: whether owning costs less.
    Whatever(bool),
    /// What has been paid for owning, from the beginning on, against what renting comes to; at the job's utilisation, not discounted.
    Time {
        /// After this it is less; none where accelerators do not live as long.
        after: Option<Seconds>,
        /// How long they live.
        life: Seconds,
    },
}

/// Where the order of two offers turns.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferBreakEven {
    /// The names of the owned and the rented one.
    pub between: (Arc<str>, Arc<str>),
    /// Where.
    pub turn: OfferTurn,
}

/// Of each owned and each rented offer that can be.
pub(super) fn all(offers: &[PricedOffer]) -> Vec<OfferBreakEven> {
    let answered = || offers.iter().filter_map(|offer| Some((&offer.name, offer.outcome.as_ref().ok()?)));
    let owned = answered().filter(|(_, answer)| matches!(answer.bought, Bought::Own(_)));
    let mut found = Vec::new();
    for (own_name, own) in owned {
        for (rent_name, rent) in answered() {
            let Some(price) = OtherPrice::of(rent) else { continue };
            let between = (own_name.clone(), rent_name.clone());
            // For the same work: an hour here may do more or less of it than an hour there.
            let price = price.here(own.work);
            let turn = match &rent.bought {
                // A year of serving is held either way.
                Bought::Rent(rented) if !rented.by_the_hour() && rent.evaluation.point.is_none() => {
                    let used = own.evaluation.scenario.finance.utilisation;
                    OfferTurn::Whatever(utilisation(own, price) < used.get())
                }
                _ => OfferTurn::Utilisation(utilisation(own, price)),
            };
            found.push(OfferBreakEven { between: between.clone(), turn });
            let life = own.evaluation.scenario.finance.accelerator_life;
            let after = time(own, price).filter(|after| *after <= life);
            found.push(OfferBreakEven { between, turn: OfferTurn::Time { after, life } });
        }
    }
    found
}

/// The share of hours in use at which an owned accelerator at work costs as much an hour of use as a rented one.
fn utilisation(own: &Answer, price: crate::units::UsdPerHour) -> f64 {
    let (bought, at_work) = counts(own);
    // What owning saves may be worth more than it costs: then it costs less with no hour in use.
    (own.evaluation.unit_costs.per_gpu_hour * (bought / at_work) / price).max(0.0)
}

/// When owning has cost less altogether, if nothing wears out before.
fn time(own: &Answer, price: crate::units::UsdPerHour) -> Option<Seconds> {
    let costs = &own.evaluation.built.costs;
    let (_, at_work) = counts(own);
    let used: Fraction = own.evaluation.scenario.finance.utilisation;
    let year = Seconds::new(SECONDS_PER_YEAR);
    let rent_per_year: Usd = (price * at_work * used.get()).over(year);
    let saved = rent_per_year - costs.opex_per_year;
    (saved > Usd::ZERO).then(|| year * (costs.capex / saved))
}

fn counts(own: &Answer) -> (f64, f64) {
    let at_work = f64::from(own.evaluation.scenario.cluster.accelerators);
    (own.evaluation.built.drivers.accelerators as f64, at_work)
}
