//! Which switches and links join the nodes, what must be bought for that, and how far a group of ranks has to reach.
//!
//! [`Topology::build`] counts a network of any kind from a [`FatTreeSpec`] that carries numbers only: fat trees of one, two
//! or three tiers, rail-optimised or top-of-rack, whole or in planes; rails alone; dragonfly+; a torus. Catalog ids enter
//! with [`Topology::bill`], and [`Topology::reach`] boils the result down to the few numbers that place a parallel group.

mod balance;
mod bill;
mod dragonfly;
mod fat_tree;
mod lengths;
mod placement;
mod plan;
mod rail_only;
mod side;
mod sites;
mod spec;
mod torus;
mod wiring;

pub use balance::{Balance, Collisions};
pub use bill::{BillOfMaterials, Carrier, LinkParts, Part, PartKind, PartNames};
pub use lengths::{CLASSES, LengthClass, RackLayout};
pub use placement::{GroupPlacement, Pairs, Reach, ScaleUp};
pub use side::{SideSpec, SideTree};
pub use sites::Sites;
pub use spec::{FatTreeSpec, Managers, Oversubscription, Tiers};
pub use torus::{Torus, accelerator_sides};

use crate::scenario::TopologyKind;

/// A level of the network, from the node upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The node itself; of a group of ranks: it stays inside its scale-up domain.
    Node,
    /// The switches that nodes plug into.
    Leaf,
    /// The switches that join the leaves of a pod.
    Spine,
    /// The switches that join the spines of all pods.
    Core,
    /// The routers and long-haul links that join sites.
    Site,
}

impl Tier {
    /// The word that reports use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Leaf => "leaf",
            Self::Spine => "spine",
            Self::Core => "core",
            Self::Site => "site",
        }
    }

    /// Switches on the way between two ranks whose path turns around at this tier: 0, 1, 3, 5, or 7 with border routers.
    pub const fn switches_crossed(self) -> u32 {
        match self {
            Self::Node => 0,
            Self::Leaf => 1,
            Self::Spine => 3,
            Self::Core => 5,
            Self::Site => 7,
        }
    }
}

/// One thing for each tier of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByTier<T> {
    /// That of the leaf switches.
    pub leaf: T,
    /// That of the spine switches.
    pub spine: T,
    /// That of the core switches.
    pub core: T,
}

/// Switches of one tier that carry the same number of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchLoad {
    /// How many switches carry this load.
    pub switches: u64,
    /// Links of each towards the nodes.
    pub down: u32,
    /// Links of each away from the nodes.
    pub up: u32,
}

/// All switches of one tier, over all planes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// Ports of a switch at the speed of a link.
    pub radix: u32,
    /// The switches by the links that they carry.
    pub loads: Vec<SwitchLoad>,
    /// Bandwidth down over bandwidth up of a fully populated switch; 0 where nothing leads up.
    pub oversubscription: f64,
}

impl Layer {
    /// Number of switches.
    pub fn switches(&self) -> u64 {
        self.loads.iter().map(|load| load.switches).sum()
    }

    /// Links towards the nodes.
    pub fn down_links(&self) -> u64 {
        self.loads.iter().map(|load| load.switches * u64::from(load.down)).sum()
    }

    /// Links away from the nodes.
    pub fn up_links(&self) -> u64 {
        self.loads.iter().map(|load| load.switches * u64::from(load.up)).sum()
    }

    /// Links away from the nodes of the switch that has the most.
    pub fn most_uplinks(&self) -> u32 {
        self.loads.iter().map(|load| load.up).max().unwrap_or(0)
    }

    /// Ports that nothing is plugged into.
    pub fn free_ports(&self) -> u64 {
        self.switches() * u64::from(self.radix) - self.down_links() - self.up_links()
    }
}

/// A counted network; of several sites, that of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Its kind.
    pub kind: TopologyKind,
    /// What was asked for.
    pub spec: FatTreeSpec,
    /// Tiers that traffic may have to cross: 1, 2 or 3; none in a torus. Of a dragonfly, the third is the links between
    /// groups, which has no switches of its own.
    pub tiers: u32,
    /// Places for nodes in a unit, the nodes that share their leaf switches (a scalable unit when rail-optimised).
    pub unit_nodes: u32,
    /// Leaf switches of a unit in one plane; one a rail unless the rails of a small cluster share leaves.
    pub unit_leaves: u32,
    /// Units, the last of a pod perhaps partly filled.
    pub units: u32,
    /// Places for nodes in all units.
    pub places: u32,
    /// Places for nodes in a pod, the nodes that reach each other on their rail without the core.
    pub pod_nodes: u32,
    /// Pods, the last perhaps partly filled; 1 unless there are three tiers.
    pub pods: u32,
    /// Groups of spines in a pod and plane. Each leaf of a group reaches each spine of that group; several groups
    /// share the rails between them.
    pub spine_groups: u32,
    /// Leaf switches.
    pub leaf: Layer,
    /// Spine switches; none with one tier.
    pub spine: Layer,
    /// Core switches; none below three tiers.
    pub core: Layer,
    /// The torus, where it is one.
    pub torus: Option<Torus>,
    /// Sites that each have such a network, and what joins them.
    pub sites: Option<Sites>,
}

impl Topology {
    /// Counts the network of a kind.
    ///
    /// # Errors
    /// [`TopologyError`] where the numbers can't be met.
    pub fn build(kind: TopologyKind, spec: &FatTreeSpec) -> Result<Self, TopologyError> {
        let built = match kind {
            TopologyKind::RailFatTree | TopologyKind::MultiPlane => Self::fat_tree(spec),
            TopologyKind::TorFatTree => Self::fat_tree(&FatTreeSpec { rails: 1, ..*spec }),
            TopologyKind::RailOnly => Self::rail_only(spec),
            TopologyKind::DragonflyPlus => Self::dragonfly_plus(spec),
            TopologyKind::Torus => Self::torus(spec),
        }?;
        Ok(Self { kind, ..built })
    }

    /// The same network at several sites, joined.
    #[must_use]
    pub fn at_sites(self, sites: Sites) -> Self {
        Self { sites: Some(sites), ..self }
    }

    /// How many sites have such a network.
    pub fn site_count(&self) -> u32 {
        self.sites.map_or(1, |sites| sites.count)
    }

    /// Places for nodes that are taken neither by a node nor by fabric managers, border routers or servers.
    pub fn free_places(&self) -> u32 {
        self.places - self.spec.nodes - self.spec.manager_places()
    }

    /// Cables by the tier of their lower end, where one cable carries all planes of a port; those of the fabric managers
    /// count as `Node`.
    pub fn cables(&self, lower_end: Tier) -> u64 {
        let links = match lower_end {
            Tier::Node => self.torus.map_or(self.leaf.down_links(), |torus| torus.links(self.spec.nodes)),
            Tier::Leaf => self.leaf.up_links(),
            // Both ends of a link between groups are at spines.
            Tier::Spine if self.kind == TopologyKind::DragonflyPlus => self.spine.up_links() / 2,
            Tier::Spine => self.spine.up_links(),
            Tier::Core | Tier::Site => 0,
        };
        links / u64::from(self.spec.planes)
    }
}

/// Why a network can't be built as asked.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// A count of nothing, or of more than can be meant.
    #[error("{what}: {value} is not from 1 to {most}")]
    Count {
        /// Which count.
        what: &'static str,
        /// What was asked for.
        value: u32,
        /// The most that is taken.
        most: u32,
    },
    /// An oversubscription that is not a positive number.
    #[error("oversubscription must be a positive number, not {value}")]
    Oversubscription {
        /// What was asked for.
        value: f64,
    },
    /// The NICs of a node can't be shared out evenly over the rails.
    #[error("{nics} NICs a node do not divide over {rails} rails")]
    Rails {
        /// NICs of a node.
        nics: u32,
        /// Rails asked for.
        rails: u32,
    },
    /// Not even one node fits a leaf switch at this oversubscription.
    #[error("a leaf switch of {radix} ports cannot take the {links} links that a node has there, with their uplinks")]
    LeafTooSmall {
        /// Ports of the leaf switch.
        radix: u32,
        /// Links of one node to one leaf.
        links: u32,
    },
    /// More nodes than the tiers reach.
    #[error(
        "{} {reach} nodes, not {places} ({nodes} nodes, the rest places that fabric managers, border routers and servers of memory take)",
        if *tiers == 1 { "one tier reaches".to_owned() } else { format!("{tiers} tiers reach") }
    )]
    TooManyNodes {
        /// Nodes asked for.
        nodes: u32,
        /// Places needed, with those that no node takes.
        places: u32,
        /// Tiers of switches.
        tiers: u32,
        /// The most places that so many tiers offer.
        reach: u64,
    },
    /// More blocks of accelerators than switches of light have ports for.
    #[error(
        "switches of light with {radix} ports join {most} blocks of accelerators, not {blocks}: both faces of each block \
         lead into every one of them"
    )]
    TooManyBlocks {
        /// Blocks asked for.
        blocks: u32,
        /// Ports of a switch.
        radix: u32,
        /// The most blocks.
        most: u32,
    },
    /// A pod of more nodes than a leaf and a spine tier can join.
    #[error("a pod of {pod_nodes} nodes is more than its leaf and spine switches can join ({reach} nodes)")]
    PodTooLarge {
        /// Nodes of a pod asked for.
        pod_nodes: u32,
        /// The most that a pod can have.
        reach: u64,
    },
    /// An oversubscription that leaves a switch less than one uplink.
    #[error(
        "an oversubscription of {asked} at the {} switches: one uplink for the {most} links down of a switch is the most there can be",
        tier.word()
    )]
    FewerThanOneUplink {
        /// The tier of the switches.
        tier: Tier,
        /// What was asked for.
        asked: f64,
        /// The largest that can be built.
        most: f64,
    },
    /// The NICs of a node can't be shared out over the directions of a torus.
    #[error("{nics} NICs a node do not divide over the two directions of one, two or three dimensions")]
    Directions {
        /// NICs of a node.
        nics: u32,
    },
    /// Several pods, but no core to join them.
    #[error("{pods} pods need a third tier to join them")]
    PodsNeedCore {
        /// Pods that the nodes make.
        pods: u32,
    },
}
