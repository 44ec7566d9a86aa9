//! Links between sites: a module that fills a fibre pair's wavelength over many kilometres, and the router that carries it.

use super::Reference;
use super::quantity::positive;
use crate::document::Reader;
use crate::units::Bandwidth;

/// More wavelengths than any fibre carries.
const MOST_WAVELENGTHS: u32 = 1_000;

/// A kind of link between sites.
#[derive(Clone, Debug, PartialEq)]
pub struct LongHaul {
    /// The module at both ends; its reach is how far sites may lie apart.
    pub optic: Reference,
    /// The border router.
    pub switch: Reference,
    /// Speed of a link, each direction.
    pub link_speed: Bandwidth,
    /// From the module to the fibre that leaves the building.
    pub cable: Reference,
    /// Links that a fibre pair carries, each on a wavelength of its own.
    pub links_of_a_pair: u32,
}

impl LongHaul {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            optic: reader.get("optic"),
            switch: reader.get("switch"),
            link_speed: positive(reader, "link_speed"),
            cable: reader.get("cable"),
            links_of_a_pair: reader.within("links_of_a_pair", &(1..=MOST_WAVELENGTHS)),
        }
    }
}
