//! Dollars an hour and dollars a run.

use super::{CostBreakdown, Drivers};
use crate::scenario::Finance;
use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// What unit costs need of a cluster's costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostTotals {
    /// The whole cluster, an hour of calendar time.
    pub cluster: UsdPerHour,
    /// Accelerators bought, spares among them.
    pub accelerators: u64,
    /// Accelerators at work.
    pub at_work: u64,
    /// Share of the owned hours that are sold or at work.
    pub utilisation: Fraction,
}

/// Unit costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCosts {
    /// Owning one accelerator for an hour of calendar time, spares counted as owned.
    pub per_gpu_hour: UsdPerHour,
    /// The same over the share of hours sold.
    pub per_sold_gpu_hour: UsdPerHour,
    /// The same over utilisation, goodput and the share of accelerators that are no spares: an hour of useful work.
    pub per_useful_gpu_hour: UsdPerHour,
}

impl CostTotals {
    /// Spreads a year's payment over its hours. `at_work` of the accelerators bought do the work; the others are spares.
    pub fn new(costs: &CostBreakdown, drivers: &Drivers, at_work: u64, finance: &Finance) -> Self {
        Self {
            cluster: costs.annualised.per(Seconds::new(SECONDS_PER_YEAR)),
            accelerators: drivers.accelerators,
            at_work,
            utilisation: finance.utilisation,
        }
    }

    /// Unit costs at a goodput (useful time over wall time, more than zero).
    pub fn unit_costs(&self, goodput: f64) -> UnitCosts {
        let per_gpu_hour = self.cluster * (1.0 / self.accelerators as f64);
        let per_sold_gpu_hour = per_gpu_hour / self.utilisation.get();
        let useful = goodput * (self.at_work as f64 / self.accelerators as f64);
        UnitCosts { per_gpu_hour, per_sold_gpu_hour, per_useful_gpu_hour: per_sold_gpu_hour / useful }
    }

    /// The cost of a run that takes `wall` with failures: the whole cluster's over that time, and the run's part of the
    /// hours that no run uses. Of a run at one goodput those are its useful accelerator-hours at their unit cost.
    pub fn run(&self, wall: Seconds) -> Usd {
        self.cluster.over(wall) / self.utilisation.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals() -> CostTotals {
        // 1,030 accelerators for $15M a year, 1,000 of them at work, four fifths of the hours used.
        CostTotals {
            cluster: Usd::new(15e6).per(Seconds::new(SECONDS_PER_YEAR)),
            accelerators: 1_030,
            at_work: 1_000,
            utilisation: Fraction::new(0.8).unwrap(),
        }
    }

    #[test]
    fn an_hour_costs_more_the_less_of_it_is_used() {
        let costs = totals().unit_costs(0.9);
        // 15e6 / (1,030 x 8,760) = 1.66246; / 0.8 = 2.07807; / (0.9 x 1,000 / 1,030) = 2.37824.
        assert!((costs.per_gpu_hour.value() - 1.662_46).abs() < 1e-5);
        assert!((costs.per_sold_gpu_hour.value() - 2.078_07).abs() < 1e-5);
        assert!((costs.per_useful_gpu_hour.value() - 2.378_24).abs() < 1e-5);
    }

    #[test]
    fn a_run_costs_its_useful_hours() {
        // 54 days of 1,000 accelerators are 1,296,000 hours; x 2.37824 = $3,082,192.
        let duration = Seconds::new(54.0 * 86_400.0);
        let run = totals().run(duration / 0.9);
        assert!((run.value() - 3_082_192.0).abs() < 10.0);
        let hours = 54.0 * 24.0 * 1_000.0;
        assert!((run.value() - totals().unit_costs(0.9).per_useful_gpu_hour.value() * hours).abs() < 1e-6);
    }
}
