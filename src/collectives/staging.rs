//! Data staged through the memory of the hosts, where network cards cannot reach the accelerators' (no GPUDirect RDMA).
//!
//! Directly, a card reads from the accelerator over one PCIe hop. Staged, the sender copies to the host's memory and the
//! card reads from there, and the receiver does the same the other way: two more crossings of PCIe on each side.

use super::wires::Network;
use crate::catalog::collective_efficiency::StagingEfficiency;
use crate::catalog::node::NicPath;
use crate::units::{Bandwidth, Fraction};

/// Crossings that staging adds to a hop, both sides together.
const MORE_CROSSINGS: f64 = 4.0;

/// What PCIe leaves each direction of a card's staged traffic.
///
/// Under one PCIe switch, accelerator and card share its way to the host, which carries what is sent down to the card
/// beside what is received for the accelerator: half is left to each. Where both have ports of their own at the host, each
/// carries its traffic once. Ports on the accelerator itself have no bus before them.
fn staged_bus(bus: Bandwidth, path: NicPath) -> Option<Bandwidth> {
    match path {
        NicPath::PcieSwitch => Some(bus * 0.5),
        NicPath::HostSocket | NicPath::AcrossSockets => Some(bus),
        NicPath::OnAccelerator => None,
    }
}

impl Network {
    /// The same with data staged over a bus of that rate each direction, where so many cards of a host do so at the same
    /// time and share its memory.
    #[must_use]
    pub fn staged(mut self, staging: &StagingEfficiency, bus: Bandwidth, path: NicPath, cards: f64) -> Self {
        let Some(bus) = staged_bus(bus, path) else { return self };
        let direct = self.line_rate * self.efficiency.payload.get();
        let staged = direct.min(bus * staging.rate.get()).min(staging.host / cards.max(1.0));
        self.efficiency.payload = Fraction::new(staged / self.line_rate).unwrap_or(self.efficiency.payload);
        let more = staging.crossing * MORE_CROSSINGS;
        self.efficiency.ll_hop += more;
        self.efficiency.simple_hop += more;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{us, wires};
    use super::*;

    #[test]
    fn staging_halves_a_shared_bus_and_crosses_it_four_times_more() {
        let staging =
            StagingEfficiency { rate: Fraction::new(0.32).unwrap(), host: Bandwidth::new(24e9), crossing: us(1.0) };
        let (network, bus) = (wires().network, Bandwidth::new(63e9));
        let staged = network.staged(&staging, bus, NicPath::PcieSwitch, 1.0);
        // 63 / 2 x 0.32 = 10.08 GB/s, of 50.
        assert!((staged.efficiency.payload.get() - 10.08 / 50.0).abs() < 1e-12);
        assert_eq!(staged.efficiency.ll_hop, us(10.0) + us(4.0));
        let own_ports = network.staged(&staging, bus, NicPath::HostSocket, 1.0);
        assert!((own_ports.efficiency.payload.get() - 20.16 / 50.0).abs() < 1e-12);
        assert_eq!(network.staged(&staging, bus, NicPath::OnAccelerator, 1.0), network);
        // Eight cards at once share 24 GB/s of the host: 3 of 50 for each.
        let all = network.staged(&staging, bus, NicPath::PcieSwitch, 8.0);
        assert!((all.efficiency.payload.get() - 3.0 / 50.0).abs() < 1e-12);
        // A bus and a memory that are fast enough leave the card what it had.
        let staging = StagingEfficiency { host: Bandwidth::new(1e12), ..staging };
        let wide = network.staged(&staging, Bandwidth::new(1e12), NicPath::HostSocket, 1.0);
        assert_eq!(wide.efficiency.payload, network.efficiency.payload);
    }
}
