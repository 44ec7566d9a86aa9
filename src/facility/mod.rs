//! Power, energy, racks and emissions of a cluster at a site.
//!
//! Two powers are kept apart by name. *Provisioned* power is the sum of what every part may draw: it sizes rent, building,
//! racks and grid connection. *Average* power is what parts draw over a year at their load: it makes energy and emissions.

mod capacity;
mod racks;

pub use capacity::Capacity;
pub use racks::{Racked, TooDense, racks, shared_racks};

use crate::catalog::{PowerProfile, Site};
use crate::units::{CarbonMass, Fraction, Joules, SECONDS_PER_YEAR, Seconds, Watts};

/// Parts of one kind that draw power; power supplies' losses are in the figures of their makers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How many.
    pub count: u64,
    /// What one may draw.
    pub maximum: Watts,
    /// What one draws on average over a year.
    pub average: Watts,
}

impl Load {
    /// Parts that draw the same whatever they do: switches, optics, network cards, storage.
    pub const fn constant(count: u64, power: Watts) -> Self {
        Self { count, maximum: power, average: power }
    }

    /// Nodes that are in jobs for a share of the year and idle for the rest.
    pub fn nodes(count: u64, maximum: Watts, profile: &PowerProfile, in_jobs: Fraction) -> Self {
        let (idle, busy) = (profile.idle.value.get(), profile.busy.value.get());
        Self { count, maximum, average: maximum * (idle + (busy - idle) * in_jobs.get()) }
    }
}

/// What a cluster draws at a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facility {
    /// IT power that is provisioned: all parts at their maximum.
    pub provisioned_it: Watts,
    /// Facility power that is provisioned: with cooling and losses.
    pub provisioned_total: Watts,
    /// IT power on average over a year.
    pub average_it: Watts,
    /// Facility power on average over a year.
    pub average_total: Watts,
    /// Energy that the facility takes from the grid in a year.
    pub energy_per_year: Joules,
    /// Emissions of that energy, location-based.
    pub emissions_per_year: CarbonMass,
}

impl Facility {
    /// Adds up the loads and applies the site's power usage effectiveness, the same at every load.
    pub fn new(loads: &[Load], site: &Site) -> Self {
        let provisioned_it = provisioned(loads);
        let average_it = loads.iter().map(|load| load.average * load.count as f64).sum::<Watts>();
        let pue = site.pue.value.get();
        let average_total = average_it * pue;
        let energy_per_year = average_total * Seconds::new(SECONDS_PER_YEAR);
        Self {
            provisioned_it,
            provisioned_total: provisioned_it * pue,
            average_it,
            average_total,
            energy_per_year,
            emissions_per_year: site.carbon_intensity * energy_per_year,
        }
    }
}

/// IT power that loads may draw at once.
pub fn provisioned(loads: &[Load]) -> Watts {
    loads.iter().map(|load| load.maximum * load.count as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::node::Cooling;
    use crate::catalog::site::{Building, Housing, RackLimits};
    use crate::units::{CarbonIntensity, Factor, Quantity, Ranged};

    fn site(pue: f64) -> Site {
        Site {
            pue: Ranged::exact(Factor::new(pue).unwrap()),
            electricity: Ranged::default(),
            carbon_intensity: CarbonIntensity::parse("400 gCO2e/kWh").unwrap(),
            cooling: Cooling::Air,
            rack: RackLimits { power: Watts::new(44e3), units: 48 },
            housing: Housing::Own(Building::default()),
        }
    }

    fn profile() -> PowerProfile {
        let share = |share| Ranged::exact(Fraction::new(share).unwrap());
        PowerProfile { idle: share(0.2), busy: share(0.76) }
    }

    #[test]
    fn a_hundred_thousand_h100_take_1_59_twh_a_year() {
        // SemiAnalysis, 100,000 H100 clusters (June 2024), restated: 700 W a GPU and 575 W around it, 10% more IT:
        // 1,275 x 1.1 = 1.4025 kW, 140.25 MW. The published 1.59 TWh is 181.5 MW over 8,760 h: a PUE of 1.294.
        let facility = Facility::new(&[Load::constant(100_000, Watts::new(1_402.5))], &site(1.294));
        assert!((facility.provisioned_it.value() / 1e6 - 140.25).abs() < 1e-9);
        let twh = facility.energy_per_year.in_unit("TWh").unwrap();
        assert!((twh - 1.59).abs() < 0.001, "{twh}");
        // 1.59e9 kWh x 0.4 kg = 636,000 t.
        assert!((facility.emissions_per_year.in_unit("tCO2e").unwrap() - 635_900.0).abs() < 1e3);
    }

    #[test]
    fn nodes_draw_between_idle_and_busy() {
        // 10.2 kW x (0.2 + 0.56 x 0.8) = 6.61 kW at four fifths of the year in jobs; 10.2 kW stay provisioned.
        let load = Load::nodes(1, Watts::new(10_200.0), &profile(), Fraction::new(0.8).unwrap());
        assert!((load.average.value() - 6_609.6).abs() < 1e-6);
        assert_eq!(load.maximum, Watts::new(10_200.0));
        let idle = Load::nodes(1, Watts::new(10_200.0), &profile(), Fraction::ZERO);
        assert!((idle.average.value() - 2_040.0).abs() < 1e-6);
    }

    #[test]
    fn cooling_comes_on_top_of_both_powers() {
        let loads = [Load { count: 10, maximum: Watts::new(1_000.0), average: Watts::new(600.0) }];
        let facility = Facility::new(&loads, &site(1.25));
        assert_eq!(facility.provisioned_total, Watts::new(12_500.0));
        assert_eq!(facility.average_total, Watts::new(7_500.0));
    }
}
