//! What packets cost: the share of a link's line rate that is payload, from the headers of each transport.
//!
//! Header sizes are those of the standards: InfiniBand Architecture Specification, volume 1 (LRH 8, BTH 12, RETH 16,
//! ICRC 4, VCRC 2 bytes), its annex A17 (RoCEv2 replaces LRH and VCRC by Ethernet, IP and UDP), IEEE 802.3 (preamble
//! and delimiter 8, header 14, check sequence 4, gap 12), 802.1Q (tag 4), RFC 791 (IPv4 20), RFC 768 (UDP 8), RFC 7348
//! (VXLAN: outer Ethernet 14, IPv4 20, UDP 8, VXLAN 8).

use crate::catalog::fabric::{Encapsulation, Transport, USUAL_MTU};
use crate::units::Fraction;

/// Ethernet's preamble with delimiter, header, check sequence and gap.
const ETHERNET: f64 = 8.0 + 14.0 + 4.0 + 12.0;
const IPV4_UDP: f64 = 20.0 + 8.0;
const BASE_TRANSPORT_AND_CHECK: f64 = 12.0 + 4.0;
const INFINIBAND_LINK: f64 = 8.0 + 2.0;
/// RDMA header, in the first packet of a message.
const RDMA: f64 = 16.0;
/// Bytes of a message: the chunk that NCCL posts at a time in Simple (512 KiB).
const MESSAGE: f64 = 524_288.0;

/// Share of the line rate that is payload in packets of `mtu` payload bytes.
pub fn payload_share(transport: Transport, mtu: u32, encapsulation: Encapsulation) -> Fraction {
    let payload = f64::from(mtu.max(1));
    let link = match transport {
        Transport::Infiniband => INFINIBAND_LINK,
        _ => ETHERNET + IPV4_UDP + encapsulation_bytes(encapsulation),
    };
    let overhead = link + BASE_TRANSPORT_AND_CHECK + RDMA * (payload / MESSAGE).min(1.0);
    Fraction::new(payload / (payload + overhead)).unwrap_or(Fraction::ONE)
}

/// What a choice of packet size and overlay leaves of the usual payload, at which a class of network was measured.
pub fn against_usual(transport: Transport, mtu: u32, encapsulation: Encapsulation) -> f64 {
    let usual = payload_share(transport, USUAL_MTU, Encapsulation::None);
    payload_share(transport, mtu, encapsulation).get() / usual.get()
}

fn encapsulation_bytes(encapsulation: Encapsulation) -> f64 {
    match encapsulation {
        Encapsulation::None => 0.0,
        Encapsulation::Vlan => 4.0,
        Encapsulation::Vxlan => 14.0 + 20.0 + 8.0 + 8.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(transport: Transport, mtu: u32, encapsulation: Encapsulation) -> f64 {
        payload_share(transport, mtu, encapsulation).get()
    }

    #[test]
    fn headers_by_hand() {
        // 128 packets a message, so an eighth of a byte of RETH in each.
        let roce = share(Transport::RoceV2, 4_096, Encapsulation::None);
        assert!((roce - 4_096.0 / (4_096.0 + 38.0 + 28.0 + 16.0 + 0.125)).abs() < 1e-12);
        let infiniband = share(Transport::Infiniband, 4_096, Encapsulation::None);
        assert!((infiniband - 4_096.0 / (4_096.0 + 26.0 + 0.125)).abs() < 1e-12);
        // 98.0 against 99.4%: what RoCE pays for Ethernet, IP and UDP.
        assert!((roce - 0.980).abs() < 5e-4 && (infiniband - 0.994).abs() < 5e-4);
    }

    #[test]
    fn small_packets_and_overlays_cost() {
        let roce = |mtu, encapsulation| share(Transport::RoceV2, mtu, encapsulation);
        assert!((roce(1_024, Encapsulation::None) - 1_024.0 / (1_024.0 + 82.03125)).abs() < 1e-12);
        let plain = roce(4_096, Encapsulation::None);
        assert!(roce(4_096, Encapsulation::Vlan) < plain);
        assert!(roce(4_096, Encapsulation::Vxlan) < roce(4_096, Encapsulation::Vlan));
        assert!((against_usual(Transport::RoceV2, 4_096, Encapsulation::None) - 1.0).abs() < 1e-15);
        // An overlay at 4,096 takes 1.2%, at 1,024 with its headers 9.5%.
        assert!((against_usual(Transport::RoceV2, 4_096, Encapsulation::Vxlan) - 0.9882).abs() < 1e-3);
        assert!((against_usual(Transport::RoceV2, 1_024, Encapsulation::Vxlan) - 0.9032).abs() < 1e-3);
    }
}
