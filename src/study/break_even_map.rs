//! Which of two fabrics wins, over what is uncertain of the other: how well it balances its load, and what it costs.

use super::break_even::{run_cost, with_fabric_price, with_spine_efficiency};
use crate::evaluate::{Evaluation, evaluate};
use crate::units::{Fraction, Seconds, Usd};

/// Efficiencies that are tried: from badly balanced to perfect.
const EFFICIENCIES: [f64; 8] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Prices of the other fabric that are tried, over the baseline's.
pub const PRICE_RATIOS: [f64; 7] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0];

/// One line of the map: an efficiency, and what follows from it at every price.
#[derive(Clone, Debug, PartialEq)]
pub struct MapRow {
    /// Share of the payload rate that traffic through the other fabric's spines keeps at full load.
    pub efficiency: Fraction,
    /// Its training step.
    pub step: Seconds,
    /// What a run costs on it, at each of [`PRICE_RATIOS`].
    pub run: [Usd; PRICE_RATIOS.len()],
    /// Price of its fabric over the baseline's at which both cost the same: the crossing line. Below it the other wins.
    /// `None` where even a free fabric would not be cheap enough, or no price matters.
    pub crossing: Option<f64>,
}

/// The map of a baseline and another variant.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakEvenMap {
    /// Indices of the baseline and the other variant.
    pub between: (usize, usize),
    /// What a run costs on the baseline.
    pub baseline_run: Usd,
    /// The other's fabric over the baseline's, at present prices.
    pub present_ratio: f64,
    /// Lines by efficiency, ascending.
    pub rows: Vec<MapRow>,
}

/// What the answer hinges on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinge {
    /// The other wins everywhere on the map.
    Other,
    /// The baseline wins everywhere on the map.
    Baseline,
    /// A run's cost moves more over the efficiencies than over the prices.
    Efficiency,
    /// It moves more over the prices.
    Price,
}

impl BreakEvenMap {
    /// Draws the map; `None` where the fabrics are the same, one of them costs nothing, or nothing is trained.
    pub fn new(baseline: (usize, &Evaluation), other: (usize, &Evaluation)) -> Option<Self> {
        let fabric = |evaluation: &Evaluation| evaluation.scenario.cluster.fabric.entry.id.clone();
        let (reference, present) = (baseline.1.built.fabric_capex(), other.1.built.fabric_capex());
        if fabric(baseline.1) == fabric(other.1) || reference <= Usd::ZERO || present <= Usd::ZERO {
            return None;
        }
        let baseline_run = baseline.1.point?.run;
        let row = |efficiency: f64| {
            let efficiency = Fraction::new(efficiency)?;
            let at = evaluate(with_spine_efficiency(&other.1.scenario, efficiency)).ok()?;
            let free = run_cost(with_fabric_price(&at, 0.0))?;
            let point = at.point?;
            let paid = point.run;
            // Linear in the fabric's price: nothing else of a run depends on it.
            let a_ratio = (paid - free) * (reference / present);
            let crossing = (baseline_run - free) / a_ratio;
            Some(MapRow {
                efficiency,
                step: point.step.iteration(),
                run: PRICE_RATIOS.map(|ratio| free + a_ratio * ratio),
                crossing: (crossing.is_finite() && crossing > 0.0).then_some(crossing),
            })
        };
        let rows: Vec<MapRow> = EFFICIENCIES.into_iter().filter_map(row).collect();
        let between = (baseline.0, other.0);
        (!rows.is_empty()).then_some(Self { between, baseline_run, present_ratio: present / reference, rows })
    }

    /// What the answer hinges on.
    pub fn hinge(&self) -> Hinge {
        let wins = |run: &Usd| *run < self.baseline_run;
        let mut all = self.rows.iter().flat_map(|row| row.run.iter());
        if all.clone().all(wins) {
            return Hinge::Other;
        }
        if !all.any(wins) {
            return Hinge::Baseline;
        }
        let (Some(worst), Some(best)) = (self.rows.first(), self.rows.last()) else { return Hinge::Baseline };
        // Over the efficiencies at the price nearest to the present one, over the prices at the best balance.
        let near = |a: &f64, b: &f64| (a - self.present_ratio).abs().total_cmp(&(b - self.present_ratio).abs());
        let column = PRICE_RATIOS.iter().enumerate().min_by(|a, b| near(a.1, b.1)).map_or(0, |(index, _)| index);
        let by_efficiency = worst.run[column] - best.run[column];
        let by_price = best.run[PRICE_RATIOS.len() - 1] - best.run[0];
        if by_efficiency > by_price { Hinge::Efficiency } else { Hinge::Price }
    }
}
