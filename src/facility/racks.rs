//! How many racks a cluster fills.

use crate::catalog::site::RackLimits;
use crate::units::{Watts, to_integer};

/// Parts of one kind that are mounted in racks of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Racked<'a> {
    /// What they are.
    pub name: &'a str,
    /// How many.
    pub count: u64,
    /// Provisioned power of one.
    pub power: Watts,
    /// Height of one in rack units.
    pub units: u32,
}

/// A part that no rack of the site can take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "one {name} needs {power} and {units} rack units, and a rack of the site has {} and {}",
    limits.power,
    limits.units
)]
pub struct TooDense {
    /// The part.
    pub name: String,
    /// Its power.
    pub power: Watts,
    /// Its height.
    pub units: u32,
    /// What a rack may hold.
    pub limits: RackLimits,
}

/// Racks for all parts, each kind in its own: as many a rack as its power and its height allow.
///
/// # Errors
/// When one part alone is more than a rack may hold.
pub fn racks(parts: &[Racked<'_>], limits: RackLimits) -> Result<u64, TooDense> {
    parts.iter().map(|part| each(part, limits).map(|each| part.count.div_ceil(each))).sum()
}

/// Racks for parts of several kinds that stand beside each other: each takes its share of a rack.
///
/// # Errors
/// When one part alone is more than a rack may hold.
pub fn shared_racks(parts: &[Racked<'_>], limits: RackLimits) -> Result<u64, TooDense> {
    let shares: f64 = parts
        .iter()
        .map(|part| each(part, limits).map(|each| part.count as f64 / each as f64))
        .sum::<Result<_, _>>()?;
    // Shares such as a third add up to a whole but for rounding.
    Ok(to_integer((shares - 1e-9).ceil()))
}

/// How many of a kind a rack takes.
fn each(part: &Racked<'_>, limits: RackLimits) -> Result<u64, TooDense> {
    let by_height = u64::from(limits.units.checked_div(part.units).unwrap_or(u32::MAX));
    let by_power =
        if part.power > Watts::ZERO { to_integer::<u64>((limits.power / part.power).floor()) } else { u64::MAX };
    match by_height.min(by_power) {
        0 => Err(TooDense { name: part.name.to_owned(), power: part.power, units: part.units, limits }),
        each => Ok(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RackLimits = RackLimits { power: Watts::new(44_000.0), units: 48 };

    fn nodes(count: u64) -> Racked<'static> {
        Racked { name: "dgx-h100", count, power: Watts::new(10_200.0), units: 8 }
    }

    #[test]
    fn power_allows_four_dgx_h100_where_height_would_allow_six() {
        // 44 / 10.2 = 4.3; 48 / 8 = 6. 127 nodes: 32 racks.
        assert_eq!(racks(&[nodes(127)], LIMITS), Ok(32));
    }

    #[test]
    fn each_kind_has_racks_of_its_own() {
        // 48 switches of 1.72 kW: 44 / 1.72 = 25 a rack, 2 racks.
        let switches = Racked { name: "qm9700", count: 48, power: Watts::new(1_720.0), units: 1 };
        assert_eq!(racks(&[nodes(128), switches], LIMITS), Ok(34));
        assert_eq!(racks(&[nodes(0)], LIMITS), Ok(0));
    }

    #[test]
    fn kinds_that_share_racks_take_their_parts_of_them() {
        let switches = |count| Racked { name: "qm9700", count, power: Watts::new(1_720.0), units: 1 };
        let servers = |count| Racked { name: "server", count, power: Watts::new(450.0), units: 1 };
        // 25 switches or 48 servers fill a rack.
        assert_eq!(shared_racks(&[switches(12), servers(2)], LIMITS), Ok(1));
        assert_eq!(shared_racks(&[switches(25), servers(2)], LIMITS), Ok(2));
        assert_eq!(shared_racks(&[switches(0)], LIMITS), Ok(0));
    }

    #[test]
    fn what_no_rack_can_take_is_said_with_its_numbers() {
        let old_room = RackLimits { power: Watts::new(8_000.0), units: 42 };
        let error = racks(&[nodes(1)], old_room).unwrap_err();
        assert_eq!(
            error.to_string(),
            "one dgx-h100 needs 10.2 kW and 8 rack units, and a rack of the site has 8 kW and 42"
        );
    }
}
