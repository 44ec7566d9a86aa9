//! What to buy for a topology: NICs, switches, optical modules, cables and fabric managers, counted by catalog id.

use super::{ByTier, SwitchLoad, Tier, Topology, Torus};
use crate::scenario::TopologyKind;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// A network interface card of a node.
    Nic,
    /// A switch, without modules.
    Switch,
    /// An optical module.
    Optic,
    /// A cable, of fibre or of copper.
    Cable,
    /// A server that runs the fabric manager.
    ManagerServer,
}

/// So many of one thing to buy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Catalog id.
    pub id: String,
    /// Where it is: a module sits at the tier of its end, a cable belongs to the tier of its lower end.
    pub tier: Tier,
    /// How many.
    pub count: u64,
}

/// Everything to buy for a network, without spares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BillOfMaterials {
    /// One entry for each kind, id and tier, by kind and tier.
    pub parts: Vec<Part>,
}

impl BillOfMaterials {
    /// Parts of a kind over all ids and tiers.
    pub fn total(&self, kind: PartKind) -> u64 {
        self.parts.iter().filter(|part| part.kind == kind).map(|part| part.count).sum()
    }

    /// Parts of a kind at a tier over all ids.
    pub fn count(&self, kind: PartKind, tier: Tier) -> u64 {
        self.parts.iter().filter(|part| part.kind == kind && part.tier == tier).map(|part| part.count).sum()
    }

    fn add(&mut self, kind: PartKind, id: &str, tier: Tier, count: u64) {
        if count == 0 {
            return;
        }
        match self.parts.iter_mut().find(|part| part.kind == kind && part.id == id && part.tier == tier) {
            Some(part) => part.count += count,
            None => self.parts.push(Part { kind, id: id.to_owned(), tier, count }),
        }
    }

    /// Modules in the cages of `count` equal boxes, each with the given links on each kind of module. A module is not
    /// shared between boxes, so what one box needs is rounded up.
    fn add_optics(&mut self, tier: Tier, count: u64, ends: &[(Option<&Carrier>, u32)]) {
        for (index, (optic, links)) in ends.iter().enumerate() {
            let Some(optic) = optic else { continue };
            let same = |other: &&(Option<&Carrier>, u32)| other.0.is_some_and(|other| other.id == optic.id);
            if ends[..index].iter().any(|end| same(&end)) {
                continue;
            }
            let more: u32 = ends[index + 1..].iter().filter(same).map(|end| end.1).sum();
            self.add(PartKind::Optic, &optic.id, tier, count * optic.for_links(links + more));
        }
    }
}

/// A part that carries one or more links: an optical module or a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Catalog id.
    pub id: String,
    /// Links that one carries, at the speed that they have in the topology (after splitting into planes). A twin-port
    /// 800G module carries two of 400G. At least 1; 0 is taken as 1.
    pub links: u32,
}

impl Carrier {
    fn for_links(&self, links: u32) -> u64 {
        u64::from(links.div_ceil(self.links.max(1)))
    }
}

/// What a link is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkParts {
    /// The cable.
    pub cable: Carrier,
    /// The module at the end away from the nodes; `None` where the cable brings its ends (copper, active optical).
    pub upper: Option<Carrier>,
    /// The module at the end towards the nodes.
    pub lower: Option<Carrier>,
}

/// The catalog ids behind the counts of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartNames {
    /// The NIC, with one port in this fabric.
    pub nic: String,
    /// The switches.
    pub switch: ByTier<String>,
    /// Links from nodes, fabric managers and servers to leaf switches.
    pub node_link: LinkParts,
    /// Links between switches.
    pub switch_link: LinkParts,
    /// The server that runs the fabric manager.
    pub manager: String,
}

impl Topology {
    /// Counts the parts of this topology.
    pub fn bill(&self, names: &PartNames) -> BillOfMaterials {
        let mut bill = BillOfMaterials::default();
        let spec = &self.spec;
        let nodes = u64::from(spec.nodes);
        // The ports of accelerators are no cards.
        let cards = if self.torus.is_some_and(|torus| torus.of_accelerators) { 0 } else { spec.nics_per_node };
        bill.add(PartKind::Nic, &names.nic, Tier::Node, nodes * u64::from(cards));
        bill.add(PartKind::Switch, &names.switch.leaf, Tier::Leaf, self.leaf.switches());
        bill.add(PartKind::Switch, &names.switch.spine, Tier::Spine, self.spine.switches());
        bill.add(PartKind::Switch, &names.switch.core, Tier::Core, self.core.switches());

        let (node_link, switch_link) = (&names.node_link, &names.switch_link);
        let node_end = node_link.lower.as_ref();
        let ports = self.torus.map_or(spec.nics_per_node * spec.planes, Torus::ports_in_use);
        // The light of a module goes through a switch of mirrors as it is.
        let circuits = self.torus.is_some_and(|torus| torus.circuits);
        bill.add_optics(Tier::Node, nodes, &[(node_end, ports)]);
        let managers = spec.managers;
        bill.add_optics(Tier::Node, managers.servers.into(), &[(node_end, managers.ports_per_server * spec.planes)]);
        bill.add_optics(Tier::Node, 1, &[(node_end, spec.server_ports * spec.planes)]);
        for (tier, loads, down) in [
            (Tier::Leaf, &self.leaf.loads, node_link.upper.as_ref().filter(|_| !circuits)),
            (Tier::Spine, &self.spine.loads, switch_link.upper.as_ref()),
            (Tier::Core, &self.core.loads, switch_link.upper.as_ref()),
        ] {
            for load in loads {
                bill.add_optics(tier, load.switches, &[(down, load.down), (switch_link.lower.as_ref(), load.up)]);
            }
        }

        // Cables are counted where they can be split: at the leaf towards nodes, at the lower switch towards switches.
        let cables = |cable: &Carrier, loads: &[SwitchLoad], links: fn(&SwitchLoad) -> u32| {
            loads.iter().map(|load| load.switches * cable.for_links(links(load))).sum()
        };
        let (to_node, to_switch) = (&node_link.cable, &switch_link.cable);
        let direct = if self.torus.is_some() && !circuits { self.cables(Tier::Node) } else { 0 };
        let from_leaves: u64 = cables(to_node, &self.leaf.loads, |load| load.down);
        bill.add(PartKind::Cable, &to_node.id, Tier::Node, from_leaves + direct);
        bill.add(PartKind::Cable, &to_switch.id, Tier::Leaf, cables(to_switch, &self.leaf.loads, |load| load.up));
        // A link between groups of a dragonfly is an uplink of both its ends.
        let ends = if self.kind == TopologyKind::DragonflyPlus { 2 } else { 1 };
        let above: u64 = cables(to_switch, &self.spine.loads, |load| load.up);
        bill.add(PartKind::Cable, &to_switch.id, Tier::Spine, above / ends);
        bill.add(PartKind::ManagerServer, &names.manager, Tier::Node, managers.servers.into());
        bill
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FatTreeSpec, Managers};
    use super::*;

    fn carrier(id: &str, links: u32) -> Carrier {
        Carrier { id: id.to_owned(), links }
    }

    fn names() -> PartNames {
        let switch = "qm9700".to_owned();
        PartNames {
            nic: "connectx-7".to_owned(),
            switch: ByTier { leaf: switch.clone(), spine: switch.clone(), core: switch },
            node_link: LinkParts {
                cable: carrier("mpo-12", 1),
                upper: Some(carrier("twin-sr8", 2)),
                lower: Some(carrier("sr4", 1)),
            },
            switch_link: LinkParts {
                cable: carrier("mpo-12-smf", 1),
                upper: Some(carrier("twin-dr8", 2)),
                lower: Some(carrier("twin-dr8", 2)),
            },
            manager: "ufm".to_owned(),
        }
    }

    fn h100(nodes: u32) -> Topology {
        let managers = Managers { servers: 2, ports_per_server: 2 };
        Topology::fat_tree(&FatTreeSpec { managers, ..FatTreeSpec::eight_rails(nodes) }).unwrap()
    }

    #[test]
    fn one_unit_of_dgx_h100() {
        let bill = h100(31).bill(&names());
        assert_eq!(bill.count(PartKind::Nic, Tier::Node), 31 * 8);
        assert_eq!(bill.count(PartKind::Switch, Tier::Leaf), 8);
        assert_eq!(bill.count(PartKind::Switch, Tier::Spine), 4);
        assert_eq!(bill.count(PartKind::Cable, Tier::Node), 252);
        assert_eq!(bill.count(PartKind::Cable, Tier::Leaf), 256);
        assert_eq!(bill.count(PartKind::ManagerServer, Tier::Node), 2);
        // A module a NIC and a manager port.
        assert_eq!(bill.count(PartKind::Optic, Tier::Node), 252);
        // Four leaves have 32 links down, four 31: 16 twin modules either way; 32 links up are 16 more.
        assert_eq!(bill.count(PartKind::Optic, Tier::Leaf), 8 * 16 + 8 * 16);
        // 64 links on each spine are 32 modules.
        assert_eq!(bill.count(PartKind::Optic, Tier::Spine), 4 * 32);
        assert_eq!(bill.total(PartKind::Optic), 252 + 256 + 128);
    }

    #[test]
    fn modules_round_up_in_each_box() {
        let mut names = names();
        names.node_link.lower = Some(carrier("twin-flat", 2));
        names.node_link.upper = Some(carrier("octal", 8));
        let bill = h100(31).bill(&names);
        // Eight ports of a node are four twin modules; each manager's two ports are one.
        assert_eq!(bill.count(PartKind::Optic, Tier::Node), 31 * 4 + 2);
        // ceil(31 / 8) = ceil(32 / 8) = 4 towards the nodes, 16 twin modules up.
        assert_eq!(bill.count(PartKind::Optic, Tier::Leaf), 8 * (4 + 16));
    }

    #[test]
    fn links_on_the_same_module_share_it() {
        let mut names = names();
        names.node_link.upper = Some(carrier("twin-dr8", 2));
        let bill = h100(31).bill(&names);
        // 31 + 32 = 63 links are 32 modules as well as 32 + 32 = 64.
        assert_eq!(bill.count(PartKind::Optic, Tier::Leaf), 8 * 32);
    }

    #[test]
    fn copper_needs_no_modules() {
        let mut names = names();
        names.node_link = LinkParts { cable: carrier("splitter", 2), upper: None, lower: None };
        let bill = h100(31).bill(&names);
        assert_eq!(bill.count(PartKind::Optic, Tier::Node), 0);
        assert_eq!(bill.count(PartKind::Optic, Tier::Leaf), 8 * 16);
        // A splitter serves one leaf: 16 for 32 links and 16 for 31.
        assert_eq!(bill.count(PartKind::Cable, Tier::Node), 8 * 16);
    }

    #[test]
    fn three_tiers_have_cables_and_modules_at_each() {
        let topology = h100(511);
        let bill = topology.bill(&names());
        assert_eq!(bill.count(PartKind::Cable, Tier::Spine), topology.spine.up_links());
        assert_eq!(bill.count(PartKind::Switch, Tier::Core), topology.core.switches());
        assert_eq!(bill.count(PartKind::Optic, Tier::Core) * 2, topology.core.down_links());
        assert!(bill.parts.iter().all(|part| part.count > 0));
    }
}
