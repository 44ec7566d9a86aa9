//! Where renting turns into owning.

use std::sync::Arc;

use super::{Answer, Bought, OtherPrice, PricedOffer};
use crate::units::{Fraction, RequestRate, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// Where the order of an owned and a rented offer turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferTurn {
    /// Owning costs less from this share of the hours in use on; at none it always does, above one never.
    Utilisation(f64),
    /// Hours that are not in use are paid for either way, so that no share of them turns the order: whether owning costs less.
    Whatever(bool),
    /// Owning costs less a token from so many requests a second on, in the job's hours; more of them than are served, never.
    Load {
        /// At the peak of a day, as the most is.
        from: RequestRate,
        /// The most that the owned offer serves.
        most: RequestRate,
    },
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
            if let Some(turn) = load(own, rent, price) {
                found.push(OfferBreakEven { between: between.clone(), turn });
            }
            let life = own.evaluation.scenario.finance.accelerator_life;
            let after = time(own, price).filter(|after| *after <= life);
            found.push(OfferBreakEven { between, turn: OfferTurn::Time { after, life } });
        }
    }
    found
}

/// The share of hours in use at which an owned accelerator at work costs as much an hour of use as a rented one.
fn utilisation(own: &Answer, price: UsdPerHour) -> f64 {
    let (bought, at_work) = counts(own);
    // What owning saves may be worth more than it costs: then it costs less with no hour in use.
    (own.evaluation.unit_costs.per_gpu_hour * (bought / at_work) / price).max(0.0)
}

/// The load at which owned accelerators cost as much a token as an API, whose bill grows with the load and theirs does not.
fn load(own: &Answer, rent: &Answer, price: UsdPerHour) -> Option<OfferTurn> {
    let evaluation = &own.evaluation;
    let Bought::Api(_) = rent.bought else { return None };
    let times = utilisation(own, price) / evaluation.scenario.finance.utilisation.get();
    let from = evaluation.serving?.request_rate() * times;
    (times > 0.0).then_some(OfferTurn::Load { from, most: evaluation.most_served()? })
}

/// When owning has cost less altogether, if nothing wears out before.
fn time(own: &Answer, price: UsdPerHour) -> Option<Seconds> {
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
