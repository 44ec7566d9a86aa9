//! Network cards of the scale-out network.

use super::Pcie;
use super::quantity::positive;
use crate::diagnostics::Code;
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
    /// Host interface; none for a cloud's own cards, which nobody describes.
    pub pcie: Option<Pcie>,
    /// Typical draw without what is plugged into its ports.
    pub power: Watts,
}

impl Nic {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let nic = Self {
            vendor: reader.get("vendor"),
            class: reader.get("class"),
            speed: positive(reader, "speed"),
            ports: reader.get("ports"),
            pcie: reader.optional("pcie"),
            power: reader.get("power"),
        };
        if reader.sink().len() == before {
            nic.check(reader);
        }
        nic
    }

    fn check(&self, reader: &Reader<'_>) {
        let Some(bus) = self.pcie else { return };
        let fed = self.speed * f64::from(self.ports);
        if fed > bus.bandwidth_per_direction() {
            let message =
                format!("{bus} carries {} each direction, less than the ports' {fed}", bus.bandwidth_per_direction());
            reader.report("pcie", Code::Inconsistent, message, "the bus feeds all ports at once");
        }
    }
}
