//! What cost lines are multiplied by.

use crate::catalog::pricebook::Driver;
use crate::units::{Bytes, Joules, Meters, Usd, Watts};

/// A cluster's counts, as cost lines see them; all that is bought, spares among it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drivers {
    /// Accelerators.
    pub accelerators: u64,
    /// Nodes.
    pub nodes: u64,
    /// Racks.
    pub racks: u64,
    /// Switches of the scale-out fabric.
    pub switches: u64,
    /// Scale-out network cards.
    pub nics: u64,
    /// Optical modules.
    pub optics: u64,
    /// Cables.
    pub cables: u64,
    /// Fibre pairs between sites, end to end.
    pub fibre: Meters,
    /// Usable storage.
    pub storage: Bytes,
    /// IT power that is provisioned.
    pub provisioned_it: Watts,
    /// Energy that the facility takes from the grid in a year.
    pub energy_per_year: Joules,
}

const KILOMETRE: Meters = Meters::new(1e3);
const TERABYTE: Bytes = Bytes::new(1e12);
const KILOWATT: Watts = Watts::new(1e3);
const KILOWATT_HOUR: Joules = Joules::new(3.6e6);

impl Drivers {
    /// How many of a driver; `parts` is what the parts cost.
    pub(super) fn quantity(&self, driver: Driver, parts: Usd) -> f64 {
        match driver {
            Driver::Accelerator => self.accelerators as f64,
            Driver::Node => self.nodes as f64,
            Driver::Rack => self.racks as f64,
            Driver::Switch => self.switches as f64,
            Driver::Nic => self.nics as f64,
            Driver::Optic => self.optics as f64,
            Driver::Cable => self.cables as f64,
            Driver::FibreKm => self.fibre / KILOMETRE,
            Driver::StorageTb => self.storage / TERABYTE,
            Driver::Kw => self.provisioned_it / KILOWATT,
            Driver::Kwh => self.energy_per_year / KILOWATT_HOUR,
            Driver::Year | Driver::Cluster => 1.0,
            Driver::CapexRatio => parts / Usd::new(1.0),
        }
    }
}
