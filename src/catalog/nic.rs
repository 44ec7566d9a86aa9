//! Network cards of the scale-out network.

use super::check::positive;
use crate::document::Reader;
use crate::units::{Bandwidth, Watts};

/// A network card.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// Who makes it.
    pub vendor: String,
    /// Family, lower case, such as `cx7`.
    pub class: String,
    /// Speed of one port, each direction.
    pub speed: Bandwidth,
    /// Ports.
    pub ports: u32,
    /// Host interface, as its maker writes it.
    pub pcie: String,
    /// Typical draw without what is plugged into its ports.
    pub power: Watts,
}

impl Nic {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            vendor: reader.get("vendor"),
            class: reader.get("class"),
            speed: positive(reader, "speed"),
            ports: reader.get("ports"),
            pcie: reader.get("pcie"),
            power: reader.get("power"),
        }
    }
}
