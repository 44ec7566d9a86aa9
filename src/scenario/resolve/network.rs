//! The fabric, its parts and its shape, and the links between sites, found in the catalog.

use std::sync::Arc;

use crate::catalog::fabric::Link;
use crate::catalog::{Cable, Catalog, Component, Entry, Fabric, LongHaul, Nic, Optic, Reference, Switch};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{TierCount, TopologyKind};
use crate::units::{Bandwidth, Meters};

/// The id under which a price book has the servers that run a fabric's manager.
pub const MANAGER_PART: &str = "fabric-manager-server";

/// The parts of one link kind.
#[derive(Clone, Debug)]
pub struct LinkParts {
    /// Module at the upper end, where the link has modules.
    pub upper: Option<Arc<Entry<Optic>>>,
    /// Module at the lower end.
    pub lower: Option<Arc<Entry<Optic>>>,
    /// The cable.
    pub cable: Arc<Entry<Cable>>,
}

/// A fabric with all its parts bound.
#[derive(Clone, Debug)]
pub struct BoundFabric {
    /// The fabric.
    pub entry: Arc<Entry<Fabric>>,
    /// Its network card.
    pub nic: Arc<Entry<Nic>>,
    /// Its leaf, spine and core switches.
    pub switches: [Arc<Entry<Switch>>; 3],
    /// Ports of each at the fabric's link speed.
    pub radix: [u32; 3],
    /// Links from nodes to leaves.
    pub node_link: LinkParts,
    /// Links between switches.
    pub switch_link: LinkParts,
    /// The server that runs its manager, where it has one.
    pub manager: Option<Arc<Entry<Component>>>,
}

impl LinkParts {
    /// Finds a link's parts; those that are missing are reported.
    pub(super) fn bind(link: &Link, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let end = |id: &Reference| catalog.optics.find(id, &id.at, sink);
        let (upper, lower) = link.optics.as_ref().map_or((None, None), |ends| (end(&ends.upper), end(&ends.lower)));
        Some(Self { upper, lower, cable: catalog.cables.find(&link.cable, &link.cable.at, sink)? })
    }
}

impl BoundFabric {
    /// Finds a fabric's parts; those that are missing are reported.
    pub fn bind(entry: Arc<Entry<Fabric>>, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let nic = catalog.nics.find(&entry.nic, &entry.nic.at, sink);
        let tiers = [&entry.switch.leaf, &entry.switch.spine, &entry.switch.core];
        let switches = tiers.map(|id| catalog.switches.find(id, &id.at, sink));
        let link = |link| LinkParts::bind(link, catalog, sink);
        let (node_link, switch_link) = (link(&entry.node_link), link(&entry.switch_link));
        let [Some(leaf), Some(spine), Some(core)] = switches else { return None };
        let radix = |switch: &Entry<Switch>| switch.ports_at(entry.link_speed).unwrap_or(0);
        let radix = [radix(&leaf), radix(&spine), radix(&core)];
        Some(Self {
            nic: nic?,
            switches: [leaf, spine, core],
            radix,
            node_link: node_link?,
            switch_link: switch_link?,
            manager: match entry.managers {
                Some(_) => Some(catalog.components.find(MANAGER_PART, &entry.at, sink)?),
                None => None,
            },
            entry,
        })
    }
}

/// How the fabric is to be built.
#[derive(Clone, Debug)]
pub struct TopologyChoice {
    /// Its kind.
    pub kind: TopologyKind,
    /// Tiers.
    pub tiers: TierCount,
    /// Accelerators of a pod.
    pub pod: Option<u32>,
    /// Planes that each port is split into.
    pub planes: u32,
    /// Leaf to spine.
    pub leaf_oversubscription: f64,
    /// Spine to core.
    pub spine_oversubscription: f64,
    /// Sites that share the cluster, each with such a network.
    pub sites: Option<SiteChoice>,
}

/// Sites and the links between them.
#[derive(Clone, Debug)]
pub struct SiteChoice {
    /// How many sites, the same at each.
    pub count: u32,
    /// Fibre from one to another.
    pub distance: Meters,
    /// What a site has towards the others, each direction.
    pub bandwidth: Bandwidth,
    /// The links.
    pub link: BoundLongHaul,
}

/// A long-haul link with all its parts bound.
#[derive(Clone, Debug)]
pub struct BoundLongHaul {
    /// The link.
    pub entry: Arc<Entry<LongHaul>>,
    /// Its module.
    pub optic: Arc<Entry<Optic>>,
    /// The border router.
    pub switch: Arc<Entry<Switch>>,
    /// Ports of the router at the link's speed.
    pub radix: u32,
    /// From the module out of the building.
    pub cable: Arc<Entry<Cable>>,
}

/// The usual link between sites.
pub const USUAL_LONG_HAUL: &str = "400g-zr";

impl SiteChoice {
    /// Finds the link's parts; what is missing, or does not reach, is reported at its place.
    pub fn bind(
        (count, distance, bandwidth): (u32, Meters, Bandwidth),
        link: &Reference,
        at: &Span,
        catalog: &Catalog,
        sink: &Sink,
    ) -> Option<Self> {
        let entry = catalog.long_haul.find(link, &link.at, sink)?;
        let optic = catalog.optics.find(&entry.optic, &entry.optic.at, sink)?;
        let switch = catalog.switches.find(&entry.switch, &entry.switch.at, sink)?;
        let cable = catalog.cables.find(&entry.cable, &entry.cable.at, sink)?;
        if distance > optic.reach {
            let message =
                format!("sites {distance} apart are farther than the {} that `{}` reaches", optic.reach, optic.id);
            let hint = "choose a link that reaches farther; `clusterplan catalog list long_haul` shows them";
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(at, "here").hint(hint));
        }
        let radix = switch.ports_at(entry.link_speed).unwrap_or(0);
        let link = BoundLongHaul { entry, optic, switch, radix, cable };
        Some(Self { count, distance, bandwidth, link })
    }
}
