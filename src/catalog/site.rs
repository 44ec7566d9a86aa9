//! Sites: where a cluster stands, what its power costs, and whether the room is rented or built.

use super::quantity::{positive, positive_range};
use super::node::Cooling;
use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::{CarbonIntensity, Factor, Ranged, Seconds, Usd, UsdPerJoule, UsdPerWattSecond, Watts};

/// The largest PUE that is taken; the worst machine rooms have 3.
const MOST_PUE: f64 = 10.0;

/// What one rack may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RackLimits {
    /// Power that is fed and cooled.
    pub power: Watts,
    /// Height in rack units.
    pub units: u32,
}

/// A building of one's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Building {
    /// Cost of building for one kilowatt of provisioned IT power.
    pub cost_per_kw: Ranged<Usd>,
    /// Time over which it is written off.
    pub life: Ranged<Seconds>,
    /// Running it without electricity: upkeep, security, staff of the building; by provisioned IT power.
    pub operations: Ranged<UsdPerWattSecond>,
}

/// How the room is paid for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Housing {
    /// Rented by provisioned IT power.
    Colocation {
        /// The rent.
        rent: Ranged<UsdPerWattSecond>,
        /// Whether the rent includes the electricity.
        includes_power: bool,
    },
    /// Built.
    Own(Building),
}

/// A site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Facility power over IT power (power usage effectiveness), a yearly mean; one or more.
    pub pue: Ranged<Factor>,
    /// Price of electricity.
    pub electricity: Ranged<UsdPerJoule>,
    /// Emissions of the grid's electricity, location-based.
    pub carbon_intensity: CarbonIntensity,
    /// How the racks are cooled.
    pub cooling: Cooling,
    /// What a rack may hold.
    pub rack: RackLimits,
    /// How the room is paid for.
    pub housing: Housing,
}

impl Site {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let pue: Ranged<Factor> = reader.get("pue");
        if reader.sink().len() == before && pue.low < Factor::ONE {
            reader.report("pue", Code::OutOfRange, "`pue` is below 1", "facility power includes the IT power");
        }
        if pue.high.get() > MOST_PUE {
            let message = format!("`pue` is above {MOST_PUE}");
            reader.report("pue", Code::OutOfRange, message, "facility power over IT power, such as 1.25");
        }
        Self {
            pue,
            electricity: reader.get("electricity"),
            carbon_intensity: reader.get("carbon_intensity"),
            cooling: reader.get("cooling"),
            rack: reader
                .table("rack", |reader| RackLimits { power: positive(reader, "power"), units: reader.get("units") }),
            housing: read_housing(reader),
        }
    }
}

impl Site {
    /// Changes what `to` has otherwise than `from`.
    pub fn change(&mut self, from: &Self, to: &Self) {
        fn set<T: Copy + PartialEq>(own: &mut T, from: &T, to: &T) {
            if from != to {
                *own = *to;
            }
        }
        set(&mut self.pue, &from.pue, &to.pue);
        set(&mut self.electricity, &from.electricity, &to.electricity);
        set(&mut self.carbon_intensity, &from.carbon_intensity, &to.carbon_intensity);
        set(&mut self.cooling, &from.cooling, &to.cooling);
        set(&mut self.rack.power, &from.rack.power, &to.rack.power);
        set(&mut self.rack.units, &from.rack.units, &to.rack.units);
        match (&mut self.housing, &from.housing, &to.housing) {
            (Housing::Own(own), Housing::Own(from), Housing::Own(to)) => {
                set(&mut own.cost_per_kw, &from.cost_per_kw, &to.cost_per_kw);
                set(&mut own.life, &from.life, &to.life);
                set(&mut own.operations, &from.operations, &to.operations);
            }
            (
                Housing::Colocation { rent, includes_power },
                Housing::Colocation { rent: from, includes_power: from_power },
                Housing::Colocation { rent: to, includes_power: to_power },
            ) => {
                set(rent, from, to);
                set(includes_power, from_power, to_power);
            }
            (own, from, to) => set(own, from, to),
        }
    }
}

fn read_housing(reader: &mut Reader<'_>) -> Housing {
    let rent = reader.optional("colocation");
    let includes_power = reader.optional("colocation_includes_power");
    let building = reader.optional_table("building", |reader| Building {
        cost_per_kw: reader.get("cost_per_kw"),
        life: positive_range(reader, "life"),
        operations: reader.get("operations"),
    });
    match (rent, building) {
        (Some(rent), None) => Housing::Colocation { rent, includes_power: includes_power.unwrap_or(false) },
        (None, Some(building)) => {
            if includes_power.is_some() {
                let message = "`colocation_includes_power` has no rent to be included in";
                reader.report("colocation_includes_power", Code::Inconsistent, message, "remove it");
            }
            Housing::Own(building)
        }
        (rent, building) => {
            let message = "a site has either `colocation` or a `building`";
            let hint = if rent.is_some() { "both are here: remove one" } else { "neither is here: add one" };
            reader.report("colocation", Code::Inconsistent, message, hint);
            Housing::Own(building.unwrap_or_default())
        }
    }
}
