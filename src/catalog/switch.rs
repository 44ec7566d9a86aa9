//! Switches of the scale-out network.

use super::quantity::{positive, same, some_positive};
use super::node::Cooling;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Seconds, Watts};

choices! {
    /// What a switch forwards.
    pub enum Protocol {
        /// InfiniBand.
        Infiniband = "infiniband",
        /// Ethernet.
        Ethernet = "ethernet",
        /// Nothing: light of one fibre goes into another, by mirrors.
        OpticalCircuit = "optical-circuit",
    }
}

/// One way to split a switch's cages into ports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SwitchPorts {
    /// Ports of the whole switch.
    pub count: u32,
    /// Speed of one, each direction.
    pub speed: Bandwidth,
}

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Who makes it.
    pub vendor: Option<String>,
    /// The switching chip.
    pub chip: Option<String>,
    /// What it forwards.
    pub protocol: Protocol,
    /// The ways to use it, each for all of its cages.
    pub ports: Vec<SwitchPorts>,
    /// Cages on the front: modules that fit.
    pub cages: u32,
    /// Ports beside the cages, such as the RJ45 ports of a management switch.
    pub access_ports: Option<SwitchPorts>,
    /// Whether it carries its own management; InfiniBand switches without it are managed by the fabric's manager.
    pub managed: bool,
    /// From the first bit in to the first bit out, port to port, in an idle switch.
    pub latency: Seconds,
    /// Typical draw with passive copper in its cages: optics add theirs.
    pub power_typical: Watts,
    /// What it may draw at most, with the hungriest modules in all cages included.
    pub power_max: Watts,
    /// Height in the rack.
    pub rack_units: u32,
    /// Packet memory.
    pub buffer: Option<Bytes>,
    /// How it sheds its heat; air where the file does not say.
    pub cooling: Cooling,
}

impl Switch {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let ports = reader
            .tables("ports", |reader| SwitchPorts { count: reader.get("count"), speed: positive(reader, "speed") });
        let switch = Self {
            vendor: reader.optional("vendor"),
            chip: reader.optional("chip"),
            protocol: reader.get("protocol"),
            ports,
            cages: reader.get("cages"),
            access_ports: reader.optional_table("access_ports", |reader| SwitchPorts {
                count: reader.get("count"),
                speed: positive(reader, "speed"),
            }),
            managed: reader.get("managed"),
            latency: reader.get("latency"),
            power_typical: positive(reader, "power_typical"),
            power_max: positive(reader, "power_max"),
            rack_units: reader.get("rack_units"),
            buffer: some_positive(reader, "buffer"),
            cooling: reader.or("cooling", Cooling::Air),
        };
        if reader.sink().len() == before {
            switch.check_fields(reader);
        }
        switch
    }

    /// Ports when all run at this speed, or `None` where it has no such mode; those beside the cages count where they
    /// have that speed.
    pub fn ports_at(&self, speed: Bandwidth) -> Option<u32> {
        self.ports.iter().chain(&self.access_ports).find(|ports| same(ports.speed, speed)).map(|ports| ports.count)
    }

    fn check_fields(&self, reader: &Reader<'_>) {
        if self.ports.is_empty() {
            reader.report(
                "ports",
                Code::MissingKey,
                "`ports` names no way to use the switch",
                "such as [{ count = 64, speed = \"400 Gbit/s\" }]",
            );
        }
        for ports in &self.ports {
            if !ports.count.is_multiple_of(self.cages) {
                let message = format!("{} ports do not spread evenly over {} cages", ports.count, self.cages);
                reader.report(
                    "ports",
                    Code::Inconsistent,
                    message,
                    "each way to use the switch counts the ports of all cages",
                );
            }
            if self.ports.iter().filter(|other| same(other.speed, ports.speed)).count() > 1 {
                reader.report(
                    "ports",
                    Code::Duplicate,
                    format!("two entries for ports of {}", ports.speed),
                    "one entry a speed",
                );
                break;
            }
        }
        if self.power_max < self.power_typical {
            let message = format!("`power_max` is {}, below the typical {}", self.power_max, self.power_typical);
            reader.report(
                "power_max",
                Code::Inconsistent,
                message,
                "the typical figure is without optics, the maximum with them",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quantity;

    #[test]
    fn ports_are_found_by_speed_however_it_is_written() {
        let speed = |text| Bandwidth::parse(text).unwrap();
        let switch = Switch {
            access_ports: Some(SwitchPorts { count: 48, speed: speed("1 Gbit/s") }),
            vendor: None,
            chip: None,
            buffer: None,
            cooling: Cooling::Air,
            protocol: Protocol::Ethernet,
            ports: vec![
                SwitchPorts { count: 64, speed: speed("800 Gbit/s") },
                SwitchPorts { count: 128, speed: speed("400 Gbit/s") },
            ],
            cages: 64,
            managed: true,
            latency: Seconds::ZERO,
            power_typical: Watts::ZERO,
            power_max: Watts::ZERO,
            rack_units: 2,
        };
        assert_eq!(switch.ports_at(speed("0.4 Tbit/s")), Some(128));
        assert_eq!(switch.ports_at(speed("50 GB/s")), Some(128));
        assert_eq!(switch.ports_at(speed("200 Gbit/s")), None);
        assert_eq!(switch.ports_at(speed("1000 Mbit/s")), Some(48));
    }
}
