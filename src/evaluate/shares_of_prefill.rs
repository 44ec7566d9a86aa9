//! What of a cluster is there for the nodes that prefill has to itself.

use super::{BuiltCluster, NodesBought};
use crate::catalog::pricebook::Driver;
use crate::facility::Load;
use crate::tco::{CostLine, PartCost};
use crate::units::{Usd, Watts};

/// Shares of prefill's own nodes: their own part, and of what all share that by their power, price or number, whichever it is
/// paid by. Where all nodes are of one kind, that of their number at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharesOfPrefill {
    /// Of what a year costs.
    pub cost: f64,
    /// Of energy.
    pub energy: f64,
}

impl BuiltCluster {
    /// The shares of prefill's own nodes; none where it has none.
    pub fn shares_of_prefill(&self) -> SharesOfPrefill {
        let kinds = self.kinds.len();
        if kinds < 2 {
            return SharesOfPrefill { cost: 0.0, energy: 0.0 };
        }
        let nodes = |count: fn(&NodesBought) -> f64| second_of(|kind| self.kinds.get(kind).map_or(0.0, count));
        if self.of_one_kind {
            // Nodes to spare, which are whole, stand in for either.
            let at_work = nodes(|bought| f64::from(bought.at_work));
            let paid: Usd = self
                .costs
                .lines
                .iter()
                .enumerate()
                .map(|(place, line)| line.annualised * if self.is_of_tiers(place) { 1.0 } else { at_work })
                .sum();
            return SharesOfPrefill { cost: paid / self.costs.annualised, energy: at_work };
        }
        let drawn = |power: fn(&Load) -> Watts| {
            let of_kind = |kind| self.loads.iter().take(2 * kinds).skip(kind).step_by(kinds.max(1));
            second_of(|kind| of_kind(kind).map(|load| power(load) * load.count as f64).sum::<Watts>() / Watts::new(1.0))
        };
        let (provisioned, energy) = (drawn(|load| load.maximum), drawn(|load| load.average));
        let accelerators = nodes(|bought| bought.accelerators() as f64);
        let number = nodes(|bought| f64::from(bought.all()));
        let price = |part: &PartCost| part.unit_price * part.count as f64 / Usd::new(1.0);
        let price = second_of(|kind| self.bought.get(kind).map_or(0.0, price));
        let share = |place: usize, line: &CostLine| match line.per {
            // The nodes' own lines are the first, by kind.
            _ if place < kinds => f64::from(u8::from(place > 0)),
            _ if self.is_of_tiers(place) => 1.0,
            Driver::Kw | Driver::Rack => provisioned,
            Driver::Kwh => energy,
            Driver::Node => number,
            Driver::CapexRatio => price,
            _ => accelerators,
        };
        let lines = self.costs.lines.iter().enumerate();
        let paid: Usd = lines.map(|(place, line)| line.annualised * share(place, line)).sum();
        SharesOfPrefill { cost: paid / self.costs.annualised, energy }
    }

    /// Whether the line at a place is of memory tiers, which are bought for what takes prompts in: they stand behind the nodes and
    /// storage.
    fn is_of_tiers(&self, place: usize) -> bool {
        let kinds = self.kinds.len();
        (kinds + 1..=kinds + self.tiers).contains(&place)
    }
}

/// The part of the second kind in what both have.
fn second_of(of_kind: impl Fn(usize) -> f64) -> f64 {
    let (first, second) = (of_kind(0), of_kind(1));
    if second > 0.0 { second / (first + second) } else { 0.0 }
}
