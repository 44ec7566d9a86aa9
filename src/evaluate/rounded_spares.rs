//! What spares cost that are many more than asked for, because nodes are bought whole.

use super::{BuiltCluster, Evaluation};
use crate::scenario::Cluster;
use crate::tco::{CostTotals, UnitCosts};
use crate::units::Fraction;

/// So many times as many spares as asked for are told.
const MANY: f64 = 1.5;

/// Spare nodes beside those at work, and what hours cost without them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundedSpares {
    /// Nodes at work.
    pub at_work: u32,
    /// Nodes to spare.
    pub spare: u32,
    /// Hours without the spares, all else as it is.
    pub without: UnitCosts,
}

impl Evaluation {
    /// Where whole nodes make spares many more than the share that is asked for.
    pub fn rounded_spares(&self) -> Option<RoundedSpares> {
        let (scenario, asked) = (&self.scenario, self.scenario.cluster.spares);
        let [at_work, spare] = [|kind: &super::NodesBought| kind.at_work, |kind: &super::NodesBought| kind.spare]
            .map(|of| self.built.kinds.iter().map(of).sum::<u32>());
        if f64::from(spare) <= f64::from(at_work) * asked.get() * MANY {
            return None;
        }
        let cluster = Cluster { spares: Fraction::ZERO, ..scenario.cluster.clone() };
        let built = BuiltCluster::new(&cluster, &scenario.finance).ok()?;
        let goodput = self.point.map_or(1.0, |point| point.goodput.ratio);
        let totals = CostTotals::new(&built.costs, &built.drivers, cluster.accelerators.into(), &scenario.finance);
        Some(RoundedSpares { at_work, spare, without: totals.unit_costs(goodput) })
    }
}
