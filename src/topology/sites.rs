//! Several sites, each with a network of its own, joined by long-haul links between border routers.
//!
//! Every site has the same bandwidth towards the others together. Border routers plug into leaves, where they take the
//! places of nodes; on their other side they carry a long-haul module for each link. A hop between sites takes the time
//! that light needs in the fibre, and two routers.

use crate::units::{Bandwidth, Meters, to_integer};

/// Ports of a border router that are used on each side.
const SIDES: u64 = 2;
/// A site is never left with one router.
const LEAST_ROUTERS: u64 = 2;

/// Sites and what joins them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sites {
    /// How many.
    pub count: u32,
    /// Fibre from one to another.
    pub distance: Meters,
    /// Long-haul links of a site towards the others.
    pub links: u32,
    /// Bandwidth of a site's network cards over that of its long-haul links.
    pub oversubscription: f64,
}

impl Sites {
    /// Sites whose cards carry `inside` each and that have `between` towards the others, over links of a speed.
    pub fn new(count: u32, distance: Meters, inside: Bandwidth, between: Bandwidth, link: Bandwidth) -> Self {
        let links = to_integer::<u32>((between / link).ceil());
        Self { count, distance, links, oversubscription: inside / (link * f64::from(links)) }
    }

    /// Fibre pairs between the sites, added up end to end, where a pair carries so many links on wavelengths of its own.
    /// Two sites have one way between them; more lie on a ring of such ways, each with half the links of a site.
    pub fn fibre(&self, links_of_a_pair: u32) -> Meters {
        let (ways, links) = if self.count > 2 { (self.count, self.links.div_ceil(2)) } else { (1, self.links) };
        self.distance * f64::from(ways) * f64::from(links.div_ceil(links_of_a_pair.max(1)))
    }

    /// Border routers of a site, each of so many ports.
    pub fn routers(&self, radix: u32) -> u64 {
        (SIDES * u64::from(self.links)).div_ceil(u64::from(radix.max(1))).max(LEAST_ROUTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quantity;

    #[test]
    fn links_are_whole_and_routers_two_at_least() {
        let rate = |text| Bandwidth::parse(text).unwrap();
        let sites = |between| Sites::new(2, Meters::new(1e5), rate("409.6 Tbit/s"), rate(between), rate("400 Gbit/s"));
        let thin = sites("1 Tbit/s");
        // 2.5 links are three, which carry 1.2 of the 409.6 Tbit/s.
        assert_eq!((thin.links, thin.routers(36)), (3, 2));
        assert!((thin.oversubscription - 409.6 / 1.2).abs() < 1e-9);
        let thick = sites("51.2 Tbit/s");
        // 128 links on both sides are 256 ports, 36 a router.
        assert_eq!((thick.links, thick.routers(36)), (128, 8));
        // Two pairs of 64 wavelengths over 100 km; on a ring of three, one pair on each of three ways.
        assert_eq!(thick.fibre(64), Meters::new(2e5));
        assert_eq!(Sites { count: 3, ..thick }.fibre(64), Meters::new(3e5));
    }
}
