//! Networks that are no plain fat tree, and how kinds differ: only where they should.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod setup;

use clusterplan::parallelism::RankGroup;
use clusterplan::scenario::TopologyKind;
use clusterplan::topology::{
    Balance, ByTier, Carrier, FatTreeSpec, LinkParts, Managers, Oversubscription, PartKind, PartNames, ScaleUp, Sites,
    Tier, Tiers, Topology, TopologyError,
};
use clusterplan::units::{Bandwidth, Fraction, Meters, Quantity};
use setup::eight_rails;

const DGX: ScaleUp = ScaleUp { accelerators_per_node: 8, domain: 8 };
const EVEN: Balance = Balance::ByLoad(Fraction::ONE);

fn build(kind: TopologyKind, spec: &FatTreeSpec) -> Topology {
    let topology = Topology::build(kind, spec).unwrap();
    assert_eq!(topology.kind, kind);
    topology
}

fn switches(topology: &Topology) -> u64 {
    topology.leaf.switches() + topology.spine.switches() + topology.core.switches()
}

fn names() -> PartNames {
    let switch = "switch".to_owned();
    let carrier = |id: &str, links| Carrier { id: id.to_owned(), links };
    let link = |cable: &str| LinkParts {
        cable: carrier(cable, 1),
        upper: Some(carrier("twin", 2)),
        lower: Some(carrier("single", 1)),
    };
    PartNames {
        nic: "nic".to_owned(),
        switch: ByTier { leaf: switch.clone(), spine: switch.clone(), core: switch },
        node_link: link("short"),
        switch_link: link("long"),
        manager: "manager".to_owned(),
    }
}

#[test]
fn one_tier_is_a_switch_or_a_leaf_for_each_rail() {
    let one = |nodes| FatTreeSpec { tiers: Tiers::One, ..eight_rails(nodes, 64) };
    // 8 nodes of 8 cards fill one switch; 64 nodes fill eight, one a rail; the 65th finds no port.
    let single = build(TopologyKind::RailFatTree, &one(8));
    assert_eq!((single.tiers, switches(&single), single.cables(Tier::Leaf)), (1, 1, 0));
    let rails = build(TopologyKind::RailFatTree, &one(64));
    assert_eq!((rails.tiers, switches(&rails), rails.cables(Tier::Leaf)), (1, 8, 0));
    assert_eq!(rails.leaf.free_ports(), 0);
    let too_many = Topology::build(TopologyKind::RailFatTree, &one(65)).unwrap_err();
    assert_eq!(too_many, TopologyError::TooManyNodes { nodes: 65, places: 65, tiers: 1, reach: 64 });
    assert!(too_many.to_string().starts_with("one tier reaches 64 nodes, not 65"));
    // Nothing joins the rails, so seven eighths of an all-to-all between two nodes are relayed inside them.
    let placed = rails.place(RankGroup { size: 512, stride: 1 }, DGX, EVEN);
    assert!((placed.relayed - 7.0 / 8.0).abs() < 1e-12);
    assert_eq!(placed.tier, Tier::Leaf);
    // Racks: all eight cards of a node on one leaf, so that eight nodes fill it.
    assert!(Topology::build(TopologyKind::TorFatTree, &one(8)).is_ok());
    assert!(Topology::build(TopologyKind::TorFatTree, &one(9)).is_err());
    let two_pods = FatTreeSpec { pod_nodes: Some(4), ..one(8) };
    assert_eq!(
        Topology::build(TopologyKind::RailFatTree, &two_pods).unwrap_err(),
        TopologyError::PodsNeedCore { pods: 2 }
    );
}

#[test]
fn an_oversubscription_leaves_every_switch_an_uplink() {
    let over = |leaf, spine| Oversubscription { leaf, spine };
    let at = |oversubscription, pod_nodes| {
        Topology::fat_tree(&FatTreeSpec { oversubscription, pod_nodes, ..eight_rails(1_024, 64) })
    };
    // A leaf of 64 ports: 63 down and one up is the most.
    let built = at(over(63.0, 1.0), None).unwrap();
    assert!((built.leaf.oversubscription - 63.0).abs() < 1e-12);
    assert_eq!(
        at(over(1e9, 1.0), None).unwrap_err(),
        TopologyError::FewerThanOneUplink { tier: Tier::Leaf, asked: 1e9, most: 63.0 }
    );
    let error = at(over(1.0, 1e9), Some(128)).unwrap_err();
    assert!(matches!(error, TopologyError::FewerThanOneUplink { tier: Tier::Spine, .. }), "{error}");
    let dragonfly = FatTreeSpec { oversubscription: over(1.0, 1e9), pod_nodes: Some(128), ..eight_rails(1_024, 64) };
    assert!(matches!(
        Topology::build(TopologyKind::DragonflyPlus, &dragonfly),
        Err(TopologyError::FewerThanOneUplink { tier: Tier::Spine, .. })
    ));
}

#[test]
fn rails_and_racks_differ_in_reach_alone() {
    let (rail, tor) = (eight_rails(256, 64), eight_rails(256, 64));
    let (rail, tor) = (build(TopologyKind::RailFatTree, &rail), build(TopologyKind::TorFatTree, &tor));
    // The same boxes and cables: 64 leaves with 32 links down and up, 32 spines.
    for topology in [&rail, &tor] {
        assert_eq!((topology.leaf.switches(), topology.spine.switches(), topology.cables(Tier::Leaf)), (64, 32, 2_048));
    }
    assert_eq!(rail.bill(&names()), tor.bill(&names()));
    // A data-parallel group of 16 nodes on one rail stays below the spines only where leaves are rails; one of 4 nodes
    // in either; one over everything in neither.
    let tier = |topology: &Topology, size| topology.place(RankGroup { size, stride: 8 }, DGX, EVEN).tier;
    assert_eq!((tier(&rail, 16), tier(&tor, 16)), (Tier::Leaf, Tier::Spine));
    assert_eq!((tier(&rail, 4), tier(&tor, 4)), (Tier::Leaf, Tier::Leaf));
    assert_eq!((tier(&rail, 256), tier(&tor, 256)), (Tier::Spine, Tier::Spine));
    let inside = RankGroup { size: 8, stride: 1 };
    assert_eq!(rail.place(inside, DGX, EVEN), tor.place(inside, DGX, EVEN));
}

#[test]
fn rails_alone_need_no_spines() {
    // 64 nodes: one switch a rail instead of 16 leaves and 8 spines.
    let rails = build(TopologyKind::RailOnly, &eight_rails(64, 64));
    assert_eq!((rails.tiers, rails.leaf.switches(), rails.spine.switches()), (1, 8, 0));
    assert_eq!(rails.leaf.down_links(), 64 * 8);
    let optimised = build(TopologyKind::RailFatTree, &eight_rails(64, 64));
    assert_eq!(switches(&optimised), 24);
    let bill = rails.bill(&names());
    assert_eq!(bill.count(PartKind::Nic, Tier::Node), 512);
    assert_eq!((bill.count(PartKind::Cable, Tier::Node), bill.count(PartKind::Cable, Tier::Leaf)), (512, 0));
    // Seven eighths of an all-to-all have to change rails, which only the scale-up links do.
    let everyone = RankGroup { size: 512, stride: 1 };
    assert!((rails.place(everyone, DGX, EVEN).relayed - 7.0 / 8.0).abs() < 1e-12);
    assert!(optimised.place(everyone, DGX, EVEN).relayed.abs() < 1e-12);
    // More nodes than ports: each rail is a tree of its own.
    let many = build(TopologyKind::RailOnly, &eight_rails(256, 64));
    assert_eq!((many.tiers, many.leaf.switches(), many.spine.switches()), (2, 64, 32));
    // Each rail is a subnet with managers of its own.
    let managers = Managers { servers: 2, ports_per_server: 2 };
    let managed = build(TopologyKind::RailOnly, &FatTreeSpec { managers, ..eight_rails(62, 64) });
    assert_eq!((managed.leaf.switches(), managed.leaf.down_links(), managed.spec.managers.servers), (8, 8 * 64, 16));
}

#[test]
fn dual_tor_of_alibaba_hpn() {
    // Qian et al., Alibaba HPN, SIGCOMM 2024, section 5: a segment joins 1,024 GPUs on the first tier, because each of
    // 8 cards of 2 x 200G a node has a leaf of its own in each of two planes.
    let spec = FatTreeSpec { planes: 2, ..eight_rails(128, 128) };
    let topology = build(TopologyKind::MultiPlane, &FatTreeSpec { tiers: Tiers::Two, ..spec });
    assert_eq!((topology.unit_nodes * 8, topology.leaf.switches()), (1_024, 16));
    assert_eq!(topology.cables(Tier::Node), 1_024);
}

#[test]
fn groups_of_a_dragonfly_are_joined_pair_by_pair() {
    // 64 ports: leaves of 32, groups of 32 leaves (four units of 32 nodes) and 32 spines, each with 32 links outwards.
    let spec = eight_rails(1_024, 64);
    let dragonfly = build(TopologyKind::DragonflyPlus, &spec);
    assert_eq!((dragonfly.pods, dragonfly.pod_nodes), (8, 128));
    assert_eq!((dragonfly.leaf.switches(), dragonfly.spine.switches(), dragonfly.core.switches()), (256, 256, 0));
    // 32 x 32 links over seven other groups: 146 to each, 1,022 of 1,024 used.
    assert_eq!(dragonfly.spine.up_links(), 8 * 7 * 146);
    assert_eq!(dragonfly.cables(Tier::Spine), 8 * 7 / 2 * 146);
    let bill = dragonfly.bill(&names());
    assert_eq!(bill.count(PartKind::Cable, Tier::Spine), dragonfly.cables(Tier::Spine));
    for load in &dragonfly.spine.loads {
        assert!(load.down + load.up <= 64);
    }
    // A fat tree of that size needs 128 cores on top, and long links twice.
    let tree = build(TopologyKind::RailFatTree, &spec);
    assert!(switches(&dragonfly) < switches(&tree) && dragonfly.cables(Tier::Spine) < tree.cables(Tier::Spine));
    // All-to-alls use the links as they are; a ring between two groups needs a detour, which costs only at load.
    let everyone = dragonfly.place(RankGroup { size: 8_192, stride: 1 }, DGX, EVEN);
    assert_eq!(everyone.tier, Tier::Core);
    assert!(everyone.all_to_all_share > 0.99 && everyone.ring_share > 0.99);
    let sparse = dragonfly.place(RankGroup { size: 8, stride: 1_024 }, DGX, EVEN);
    assert!((sparse.ring_share - 0.5).abs() < 0.01, "{}", sparse.ring_share);
    // One group is a fat tree.
    assert_eq!(build(TopologyKind::DragonflyPlus, &FatTreeSpec { nodes: 100, ..spec }).pods, 1);
    let error =
        Topology::build(TopologyKind::DragonflyPlus, &FatTreeSpec { pod_nodes: Some(32), nodes: 20_000, ..spec });
    assert!(matches!(error.unwrap_err(), TopologyError::TooManyNodes { tiers: 3, .. }));
}

#[test]
fn a_torus_has_cables_only() {
    // 64 nodes of 8 cards: 8 x 8, two cards to each of four neighbours.
    let torus = build(TopologyKind::Torus, &eight_rails(64, 64));
    assert_eq!(torus.torus.unwrap().sides, [8, 8, 1]);
    assert_eq!((switches(&torus), torus.cables(Tier::Node)), (0, 64 * 8 / 2));
    let bill = torus.bill(&names());
    assert_eq!(bill.count(PartKind::Optic, Tier::Node), 512);
    assert_eq!(bill.count(PartKind::Cable, Tier::Node), 256);
    let placed = torus.place(RankGroup { size: 512, stride: 1 }, DGX, EVEN);
    // Rings run at full rate; of an all-to-all 8 / 8 of four ports' worth is left.
    assert!((placed.ring_share - 1.0).abs() < 1e-12 && (placed.all_to_all_share - 0.25).abs() < 1e-12);
    let odd = Topology::build(TopologyKind::Torus, &FatTreeSpec { nics_per_node: 1, rails: 1, ..eight_rails(64, 64) });
    assert_eq!(odd.unwrap_err(), TopologyError::Directions { nics: 1 });
}

#[test]
fn sites_are_the_highest_boundary() {
    let one = build(TopologyKind::RailFatTree, &eight_rails(512, 64));
    let inside = Bandwidth::parse("400 Gbit/s").unwrap() * (512.0 * 8.0);
    let joined = |between: &str| {
        let between = Bandwidth::parse(between).unwrap();
        let link = Bandwidth::parse("400 Gbit/s").unwrap();
        one.clone().at_sites(Sites::new(2, Meters::new(80e3), inside, between, link))
    };
    let everyone = RankGroup { size: 8_192, stride: 1 };
    let (thick, thin) =
        (joined("1638.4 Tbit/s").place(everyone, DGX, EVEN), joined("0.4 Tbit/s").place(everyone, DGX, EVEN));
    assert_eq!((thick.tier, thick.sites, thick.distance), (Tier::Site, 2, Meters::new(80e3)));
    // Over as many links as the site has cards nothing is lost; a ring's eight cards that leave share one link.
    assert!((thick.ring_share - 1.0).abs() < 1e-12);
    assert!((thin.ring_share - 1.0 / 8.0).abs() < 1e-12, "{}", thin.ring_share);
    assert!(thin.all_to_all_share < 0.001);
    // Pairs half the cluster apart all cross: 4,096 cards on one link.
    let pairs = joined("0.4 Tbit/s").place(RankGroup { size: 2, stride: 4_096 }, DGX, EVEN);
    assert!((pairs.ring_share - 1.0 / 4_096.0).abs() < 1e-12);
    // What stays at a site sees nothing of the other.
    let half = RankGroup { size: 4_096, stride: 1 };
    assert_eq!(joined("0.4 Tbit/s").place(half, DGX, EVEN), one.place(half, DGX, EVEN));
    // Rails alone and a single switch have sites, too.
    for kind in [TopologyKind::RailOnly, TopologyKind::TorFatTree, TopologyKind::DragonflyPlus] {
        let small = build(kind, &eight_rails(8, 64)).at_sites(thin_sites());
        assert_eq!(small.place(RankGroup { size: 128, stride: 1 }, DGX, EVEN).tier, Tier::Site, "{kind}");
    }
}

fn thin_sites() -> Sites {
    let rate = |text| Bandwidth::parse(text).unwrap();
    Sites::new(2, Meters::new(1e3), rate("25.6 Tbit/s"), rate("800 Gbit/s"), rate("400 Gbit/s"))
}

#[test]
fn border_routers_take_places_as_managers_do() {
    let border = FatTreeSpec { border_ports: 20, ..eight_rails(125, 64) };
    let topology = build(TopologyKind::RailFatTree, &border);
    // 125 nodes and 20 ports, which are the places of three nodes, fill four units.
    assert_eq!((topology.units, topology.free_places()), (4, 0));
    assert_eq!(topology.leaf.down_links(), 125 * 8 + 20);
}
