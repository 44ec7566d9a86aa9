//! A fat tree in numbers, as it is asked for, and what can be asked for.

use super::{ByTier, TopologyError};

/// The most nodes that are counted, far above any cluster announced.
const MOST_NODES: u32 = 10_000_000;
/// The most ports of a switch or NICs of a node that are counted; the largest modular chassis has 2,048 (CS9500).
const MOST_PORTS: u32 = 4_096;
/// The most planes that a port is split into.
const MOST_PLANES: u32 = 8;

/// How many tiers of switches to build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiers {
    /// As few as reach all nodes; one where all fit a single switch.
    #[default]
    Auto,
    /// One switch for all, or one for each rail with nothing between them but the nodes.
    One,
    /// Leaf and spine.
    Two,
    /// Leaf, spine and core.
    Three,
}

/// Bandwidth towards the nodes over bandwidth away from them; 1 is non-blocking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oversubscription {
    /// At the leaf switches (leaf to spine).
    pub leaf: f64,
    /// At the spine switches (spine to core); without meaning below three tiers.
    pub spine: f64,
}

impl Oversubscription {
    /// Full bandwidth everywhere.
    pub const NONE: Self = Self { leaf: 1.0, spine: 1.0 };
}

/// Servers that run the fabric manager and are plugged into the fabric itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// Number of servers.
    pub servers: u32,
    /// Fabric ports of each.
    pub ports_per_server: u32,
}

/// A fat tree in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FatTreeSpec {
    /// Nodes to connect, spares included.
    pub nodes: u32,
    /// NICs of a node in this fabric, one port each.
    pub nics_per_node: u32,
    /// Leaf switches that the NICs of a node are spread over: the NICs of a node (of a tray, for a rack-scale node) when
    /// rail-optimised, 1 for top-of-rack.
    pub rails: u32,
    /// Ports of a switch at the speed of a NIC.
    pub radix: ByTier<u32>,
    /// Planes that each port is split into; 1 leaves ports whole.
    pub planes: u32,
    /// Tiers of switches.
    pub tiers: Tiers,
    /// Nodes of a pod; `None` leaves that to the rules. More than one pod makes a third tier.
    pub pod_nodes: Option<u32>,
    /// Oversubscription, met or bettered.
    pub oversubscription: Oversubscription,
    /// Fabric managers.
    pub managers: Managers,
    /// Ports of leaves that lead to border routers, and by them to other sites.
    pub border_ports: u32,
    /// Ports of leaves that lead to servers of memory or drives for all nodes.
    pub server_ports: u32,
}

#[cfg(test)]
impl FatTreeSpec {
    /// Nodes of eight cards, a rail each, on switches of 64 ports.
    pub(super) fn eight_rails(nodes: u32) -> Self {
        Self {
            nodes,
            nics_per_node: 8,
            rails: 8,
            radix: ByTier { leaf: 64, spine: 64, core: 64 },
            planes: 1,
            tiers: Tiers::Auto,
            pod_nodes: None,
            oversubscription: Oversubscription::NONE,
            managers: Managers::default(),
            border_ports: 0,
            server_ports: 0,
        }
    }
}

impl FatTreeSpec {
    /// Ports that the fabric managers take.
    pub fn manager_ports(&self) -> u32 {
        self.managers.servers * self.managers.ports_per_server
    }

    /// Ports of leaves that lead to no node: those of fabric managers, of border routers and of servers.
    pub fn other_ports(&self) -> u32 {
        self.manager_ports() + self.border_ports + self.server_ports
    }

    /// Places of nodes that the fabric managers, border routers and servers take.
    pub fn manager_places(&self) -> u32 {
        self.other_ports().div_ceil(self.nics_per_node)
    }

    pub(super) fn places(&self) -> u32 {
        self.nodes + self.manager_places()
    }

    pub(super) fn radix_of_links(&self) -> ByTier<u32> {
        let ByTier { leaf, spine, core } = self.radix;
        ByTier { leaf: leaf * self.planes, spine: spine * self.planes, core: core * self.planes }
    }

    pub(super) fn check(&self) -> Result<(), TopologyError> {
        let pod_nodes = self.pod_nodes.unwrap_or(self.nodes);
        let counts = [
            ("nodes", self.nodes, MOST_NODES),
            ("nodes of a pod", pod_nodes, MOST_NODES),
            ("NICs a node", self.nics_per_node, MOST_PORTS),
            ("rails", self.rails, MOST_PORTS),
            ("ports of border routers, and one", self.border_ports.saturating_add(1), MOST_NODES),
            ("ports of servers, and one", self.server_ports.saturating_add(1), MOST_NODES),
            ("planes", self.planes, MOST_PLANES),
            ("ports of a leaf switch", self.radix.leaf, MOST_PORTS),
            ("ports of a spine switch", self.radix.spine, MOST_PORTS),
            ("ports of a core switch", self.radix.core, MOST_PORTS),
        ];
        if let Some((what, value, most)) = counts.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            return Err(TopologyError::Count { what, value, most });
        }
        let managers =
            [("fabric managers", self.managers.servers), ("ports of a manager", self.managers.ports_per_server)];
        if let Some((what, value)) = managers.into_iter().find(|(_, value)| *value > MOST_PORTS) {
            return Err(TopologyError::Count { what, value, most: MOST_PORTS });
        }
        let ratios = [self.oversubscription.leaf, self.oversubscription.spine];
        if let Some(value) = ratios.into_iter().find(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return Err(TopologyError::Oversubscription { value });
        }
        if !self.nics_per_node.is_multiple_of(self.rails) {
            return Err(TopologyError::Rails { nics: self.nics_per_node, rails: self.rails });
        }
        Ok(())
    }
}
