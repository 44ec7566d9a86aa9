//! The way between accelerators of one node.

use crate::document::choices;

choices! {
    /// The way between accelerators of one node, in the order in which NCCL prefers them.
    pub enum IntraNode {
        /// Links made for it: NVLink, Infinity Fabric and their like.
        ScaleUp = "scale-up",
        /// Straight to the other's memory over PCIe.
        PciePeer = "pcie",
        /// Through the memory of the host, where peers cannot reach each other.
        HostMemory = "host-memory",
        /// Out through one network card and in through another, where the host's memory cannot be shared either.
        NicLoopback = "nic",
    }
}

impl IntraNode {
    /// The way that the links of a node are, by the name of their kind.
    pub fn of(kind: &str) -> Self {
        if kind.starts_with("pcie") {
            Self::PciePeer
        } else if kind == "host-memory" {
            Self::HostMemory
        } else {
            Self::ScaleUp
        }
    }

    /// The kind of link whose constants hold for the way where it is not the node's own; none where no link is taken.
    pub const fn kind(self) -> Option<&'static str> {
        match self {
            Self::PciePeer => Some("pcie-p2p"),
            Self::HostMemory => Some("host-memory"),
            Self::ScaleUp | Self::NicLoopback => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_links_are_ways() {
        let ways = ["nvlink4", "pcie5", "pcie-p2p", "host-memory"].map(IntraNode::of);
        assert_eq!(ways, [IntraNode::ScaleUp, IntraNode::PciePeer, IntraNode::PciePeer, IntraNode::HostMemory]);
        assert!(IntraNode::ALL.is_sorted_by_key(|way| *way as u8));
    }
}
