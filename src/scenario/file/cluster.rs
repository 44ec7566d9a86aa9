//! `[cluster]`: what is built, where, and at which prices.

use super::serving::UpTo;
use crate::catalog::Reference;
use crate::diagnostics::{Code, Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema, Value, choices};
use crate::units::{Bandwidth, Factor, Fraction, Meters, Watts};

/// The most accelerators of a cluster, far above any announced.
pub(super) const MOST_ACCELERATORS: u32 = 10_000_000;
/// The most planes that a port is split into.
const MOST_PLANES: u32 = 8;

/// The most sites that share a cluster.
const MOST_SITES: u32 = 64;
/// The longest fibre between two of them: half around the earth.
const FARTHEST: Meters = Meters::new(20e6);
/// The least and the most bandwidth between them, in bytes a second: a megabit, and that of millions of network cards.
const LEAST_BETWEEN: Bandwidth = Bandwidth::new(125e3);
const MOST_BETWEEN: Bandwidth = Bandwidth::new(125e15);
/// The least and the most power of a facility: a watt, and more than the world's power stations.
const BUDGETS: [Watts; 2] = [Watts::new(1.0), Watts::new(1e13)];
/// The most headroom: nine tenths of the power kept free.
const MOST_HEADROOM: f64 = 10.0;

choices! {
    /// Who has the cluster.
    pub enum Tenancy {
        /// One job, tuned and watched.
        Dedicated = "dedicated",
        /// Many people's jobs, which also end for reasons that are no component's.
        Shared = "shared",
    }
}

choices! {
    /// The kind of network topology.
    pub enum TopologyKind {
        /// Fat tree whose leaves each serve one rail: NIC i of every node of a unit.
        RailFatTree = "rail-fat-tree",
        /// Fat tree whose leaves each take all cards of their nodes.
        TorFatTree = "tor-fat-tree",
        /// A network for each rail and nothing between them: other rails are reached through the scale-up domain.
        RailOnly = "rail-only",
        /// Fat tree whose ports are split into slower ones, each in a network of its own (two leaves a card: dual-ToR).
        MultiPlane = "multi-plane",
        /// Groups of leaves and spines, whose spines are joined directly, every group with every other.
        DragonflyPlus = "dragonfly-plus",
        /// No switches: cards are joined to those of the neighbours in two or three dimensions.
        Torus = "torus",
    }
}

/// `[cluster]`
#[derive(Clone, Debug, Default)]
pub struct ClusterFile {
    /// Node id.
    pub node: Reference,
    /// Accelerators at work.
    pub accelerators: u32,
    /// Where that number was written.
    pub accelerators_at: Span,
    /// Nodes of another kind among them.
    pub prefill: Option<PrefillFile>,
    /// Share of accelerators bought on top.
    pub spares: Option<Fraction>,
    /// Fabric id.
    pub fabric: Reference,
    /// How the fabric is built.
    pub topology: TopologyFile,
    /// Site id.
    pub site: Reference,
    /// Price book id.
    pub prices: Reference,
    /// Checkpoint storage.
    pub storage: Option<Reference>,
    /// Units of that storage; 0 where there is none.
    pub storage_units: Option<u32>,
    /// Where that number was written.
    pub storage_units_at: Span,
    /// Networks beside the fabric.
    pub networks: NetworksFile,
    /// Share of switches, modules and cables bought on top.
    pub fabric_spares: Option<Fraction>,
    /// Power that the facility may be connected with.
    pub power: Option<PowerBudget>,
    /// Failure rates.
    pub reliability: Option<Reference>,
    /// Failure rates of the network.
    pub network_reliability: Option<Reference>,
    /// Who has the cluster.
    pub tenancy: Option<Tenancy>,
}

/// `cluster.prefill`: nodes that prefill of serving has to itself.
#[derive(Clone, Debug, Default)]
pub struct PrefillFile {
    /// Node id.
    pub node: Reference,
    /// Of the accelerators at work, those on such nodes.
    pub accelerators: u32,
    /// Where that number was written.
    pub accelerators_at: Span,
    /// Place of the table.
    pub at: Span,
}

impl PrefillFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            node: r.about("id of the kind of node that prefill has to itself").get("node"),
            accelerators: r
                .about("of the accelerators at work, those on such nodes")
                .within("accelerators", &(1..=MOST_ACCELERATORS)),
            accelerators_at: r.place("accelerators"),
            at: r.at().clone(),
        }
    }
}

/// `cluster.power`: what the facility may be connected with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PowerBudget {
    /// Power of the facility, cooling and losses among it.
    pub budget: Watts,
    /// What is kept free: provisioned power times this stays within the budget; 1 or more. It is in no bill.
    pub headroom: Factor,
}

impl PowerBudget {
    fn read(r: &mut Reader<'_>) -> Self {
        let [least, most] = BUDGETS;
        r.about("what is kept free of the budget: provisioned power times this stays within it")
            .usually("1")
            .bounded::<Factor>("headroom", &(1.0..=MOST_HEADROOM));
        let before = r.sink().len();
        let headroom = r.or("headroom", Factor::ONE);
        if r.sink().len() == before && !(1.0..=MOST_HEADROOM).contains(&headroom.get()) {
            let message = format!("a headroom of {} is not within 1 and {MOST_HEADROOM}", headroom.get());
            r.report(
                "headroom",
                Code::OutOfRange,
                message,
                "provisioned power times this stays within the budget: 1.1",
            );
        }
        Self {
            budget: r
                .about("power that the facility may be connected with, cooling and losses among it")
                .such_as("20 MW")
                .within("budget", &(least..=most)),
            headroom,
        }
    }
}

/// `cluster.networks`: ids, or "none".
#[derive(Clone, Debug, Default)]
pub struct NetworksFile {
    /// To shared storage.
    pub storage: Option<Reference>,
    /// For management.
    pub in_band: Option<Reference>,
    /// To the boards that watch over servers.
    pub out_of_band: Option<Reference>,
}

/// `cluster.topology`
#[derive(Clone, Debug, Default)]
pub struct TopologyFile {
    /// Its kind.
    pub kind: TopologyKind,
    /// Tiers of switches.
    pub tiers: TierCount,
    /// Accelerators in a pod; in a group, of a dragonfly.
    pub pod: Option<u32>,
    /// Planes that each port is split into.
    pub planes: Option<u32>,
    /// Downward over upward bandwidth at each tier boundary, lowest first.
    pub oversubscription: Vec<f64>,
    /// Sites that share the cluster.
    pub sites: Option<SitesFile>,
    /// Place of the table, for reports.
    pub at: Span,
}

/// `cluster.topology.sites`
#[derive(Clone, Debug, Default)]
pub struct SitesFile {
    /// How many.
    pub count: u32,
    /// Fibre from one to another.
    pub distance: Meters,
    /// What a site has towards the others, each direction.
    pub bandwidth: Bandwidth,
    /// Long-haul link id.
    pub link: Option<Reference>,
    /// Place of the table, for reports.
    pub at: Span,
}

impl SitesFile {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            count: r.about("sites that share the cluster").within("count", &(2..=MOST_SITES)),
            distance: r
                .about("fibre from one site to another")
                .such_as("80 km")
                .within("distance", &(Meters::new(1.0)..=FARTHEST)),
            bandwidth: r
                .about("bandwidth of a site towards the others, each direction")
                .such_as("50 Tbit/s")
                .within("bandwidth", &(LEAST_BETWEEN..=MOST_BETWEEN)),
            link: r.about("id of the long-haul link").usually("\"400g-zr\"").optional("link"),
            at: r.at().clone(),
        }
    }
}

/// How many tiers of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TierCount {
    /// As few as reach every node.
    #[default]
    Auto,
    /// So many.
    Fixed(u32),
}

impl ClusterFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            node: r.about("id of the kind of node").get("node"),
            accelerators: r
                .about("accelerators at work; spares come on top")
                .within("accelerators", &(1..=MOST_ACCELERATORS)),
            accelerators_at: r.place("accelerators"),
            prefill: r
                .about("nodes of another kind that prefill of serving has to itself")
                .optional_table("prefill", PrefillFile::read),
            spares: r
                .about("share of accelerators bought on top, up to whole nodes")
                .usually("0.03")
                .optional("spares"),
            fabric: r.about("id of the network between nodes").get("fabric"),
            topology: r
                .about("how the fabric is built")
                .optional_table("topology", TopologyFile::read)
                .unwrap_or_else(|| TopologyFile { at: r.at().clone(), ..TopologyFile::default() }),
            site: r.about("id of the place: its power, cooling, rent and tariff").get("site"),
            prices: r.about("id of the price book").get("prices"),
            storage: r.about("id of the storage of checkpoints").usually("\"parallel-flash\"").optional("storage"),
            storage_units: r
                .about("units of that storage; 0, where nothing trains, for none: weights come from hosts' drives or an object store")
                .usually("as many as the accelerators need")
                .optional_within("storage_units", &(UpTo(0)..=UpTo::<MOST_ACCELERATORS>(MOST_ACCELERATORS)))
                .map(|units| units.0),
            storage_units_at: r.place("storage_units"),
            networks: r
                .about("networks beside the fabric")
                .optional_table("networks", |r| NetworksFile {
                    storage: r
                        .about("id of the network to storage, or \"none\"")
                        .usually("that of the node's ports")
                        .optional("storage"),
                    in_band: r
                        .about("id of the network for management, or \"none\"")
                        .usually("\"in-band-100g\"")
                        .optional("in_band"),
                    out_of_band: r
                        .about("id of the network of the boards that watch over servers, or \"none\"")
                        .usually("\"out-of-band-1g\"")
                        .optional("out_of_band"),
                })
                .unwrap_or_default(),
            fabric_spares: r
                .about("share of switches, modules and cables bought on top")
                .usually("0.02")
                .optional("fabric_spares"),
            power: r.about("what the facility may be connected with").optional_table("power", PowerBudget::read),
            reliability: r
                .about("id of the failure rates of accelerators, for runs of training")
                .usually("those of their generation")
                .optional("reliability"),
            network_reliability: r
                .about("id of the failure rates of the network, for runs of training")
                .usually("\"usual\"")
                .optional("network_reliability"),
            tenancy: r
                .about("who has the cluster: runs of training on a shared one end for other reasons too")
                .usually("\"dedicated\"")
                .optional("tenancy"),
        }
    }
}

impl TopologyFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let oversubscription: Vec<f64> = r
            .about("downward over upward bandwidth at each boundary of tiers, lowest first")
            .usually("1 at each")
            .or("oversubscription", Vec::new());
        if let Some(low) = oversubscription.iter().find(|ratio| **ratio < 1.0) {
            let message = format!("an oversubscription of {low} gives a tier more bandwidth up than down");
            r.report("oversubscription", Code::OutOfRange, message, "1 is full bisection; 7 is a seventh of it");
        }
        if oversubscription.len() > 3 {
            r.report(
                "oversubscription",
                Code::OutOfRange,
                "there are at most three tier boundaries",
                "one figure a tier, lowest first: [1, 1, 7]",
            );
        }
        Self {
            kind: r.about("kind of topology").usually("\"rail-fat-tree\"").or("kind", TopologyKind::RailFatTree),
            tiers: r.about("tiers of switches").usually("\"auto\"").or("tiers", TierCount::Auto),
            pod: r
                .about("accelerators of a pod; of a group, in a dragonfly")
                .usually("as many as the switches reach")
                .optional_within("pod", &(1..=MOST_ACCELERATORS)),
            planes: r
                .about("planes that each port is split into")
                .usually("2 of \"multi-plane\", else 1")
                .optional_within("planes", &(1..=MOST_PLANES)),
            oversubscription,
            sites: r.about("sites that share the cluster").usually("one site").optional_table("sites", SitesFile::read),
            at: r.at().clone(),
        }
    }
}

impl FromNode for TierCount {
    fn schema() -> Schema {
        Schema::word_or("auto", Schema::Integer { low: 1, high: 3 })
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        match &node.value {
            Value::String(word) if word == "auto" => Self::Auto,
            Value::Integer(count @ 1..=3) => Self::Fixed(u32::try_from(*count).unwrap_or(1)),
            _ => {
                node.wrong_type(path, "\"auto\", 1, 2 or 3", sink);
                Self::Auto
            }
        }
    }
}
