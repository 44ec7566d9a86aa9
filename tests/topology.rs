//! Laws that hold for every network. Published counts are held in `validation.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod setup;

use clusterplan::topology::{ByTier, FatTreeSpec, Managers, Oversubscription, Tiers, Topology, TopologyError};
use proptest::prelude::*;
use setup::eight_rails;

#[test]
fn full_fat_trees_have_no_free_port_and_take_no_more() {
    for radix in [64_u32, 128, 144] {
        for (tiers, endpoints) in [(2, radix.pow(2) / 2), (3, radix.pow(3) / 4)] {
            let nodes = endpoints / 8;
            let full = Topology::fat_tree(&eight_rails(nodes, radix)).unwrap();
            assert_eq!(full.tiers, tiers);
            assert_eq!(full.leaf.free_ports() + full.spine.free_ports() + full.core.free_ports(), 0);
            let one_more = Topology::fat_tree(&eight_rails(nodes + 1, radix));
            match tiers {
                2 => assert_eq!(one_more.unwrap().tiers, 3),
                _ => assert_eq!(
                    one_more.unwrap_err(),
                    TopologyError::TooManyNodes { nodes: nodes + 1, places: nodes + 1, tiers: 3, reach: nodes.into() }
                ),
            }
        }
    }
}

#[test]
fn llama_3_pods() {
    // 24,576 GPUs in pods of 3,072, 1:7 between them (arXiv 2407.21783, section 3.3.1); 128 x 400G boxes.
    let topology = Topology::fat_tree(&FatTreeSpec {
        pod_nodes: Some(384),
        oversubscription: Oversubscription { leaf: 1.0, spine: 7.0 },
        ..eight_rails(3_072, 128)
    })
    .unwrap();
    assert_eq!((topology.tiers, topology.pods, topology.pod_nodes), (3, 8, 384));
    // 48 leaves a pod; 64 uplinks on 32 spines in pairs; 96 down and 14 up on a spine; 8 x 32 x 14 links fill 28 cores.
    assert_eq!(topology.leaf.switches(), 8 * 48);
    assert_eq!(topology.spine.switches(), 8 * 32);
    assert_eq!(topology.spine.up_links(), 8 * 32 * 14);
    assert_eq!(topology.core.switches(), 28);
    assert!((topology.leaf.oversubscription - 1.0).abs() < 1e-12);
    assert!((topology.spine.oversubscription - 96.0 / 14.0).abs() < 1e-12);
}

#[test]
fn what_cannot_be_built_says_why() {
    let error = |spec: FatTreeSpec| Topology::fat_tree(&spec).unwrap_err();
    // 56 leaves of a rail at 7:1 on 64 ports: 56 units of 32 nodes.
    let tapered = Oversubscription { leaf: 1.0, spine: 7.0 };
    assert_eq!(
        error(FatTreeSpec { pod_nodes: Some(1_800), oversubscription: tapered, ..eight_rails(4_000, 64) }),
        TopologyError::PodTooLarge { pod_nodes: 1_800, reach: 56 * 32 }
    );
    assert_eq!(
        error(FatTreeSpec { pod_nodes: Some(100), tiers: Tiers::Two, ..eight_rails(250, 64) }),
        TopologyError::PodsNeedCore { pods: 3 }
    );
    assert_eq!(
        error(FatTreeSpec { tiers: Tiers::Two, ..eight_rails(257, 64) }),
        TopologyError::TooManyNodes { nodes: 257, places: 257, tiers: 2, reach: 256 }
    );
    // Pods of 32 nodes are one spine block each, and a core has a port for 64 of them.
    assert_eq!(
        error(FatTreeSpec { pod_nodes: Some(32), ..eight_rails(2_100, 64) }),
        TopologyError::TooManyNodes { nodes: 2_100, places: 2_100, tiers: 3, reach: 64 * 32 }
    );
    assert_eq!(error(FatTreeSpec { rails: 3, ..eight_rails(8, 64) }), TopologyError::Rails { nics: 8, rails: 3 });
    assert_eq!(
        error(FatTreeSpec { rails: 1, ..eight_rails(8, 8) }),
        TopologyError::LeafTooSmall { radix: 8, links: 8 }
    );
    assert!(matches!(error(eight_rails(0, 64)), TopologyError::Count { what: "nodes", value: 0, .. }));
    let nonsense = Oversubscription { leaf: 0.0, spine: 1.0 };
    assert!(matches!(
        error(FatTreeSpec { oversubscription: nonsense, ..eight_rails(64, 64) }),
        TopologyError::Oversubscription { .. }
    ));
}

#[test]
fn small_clusters_share_leaves() {
    // 64 links fill one switch; fabric managers make it overflow.
    let alone = Topology::fat_tree(&eight_rails(8, 64)).unwrap();
    assert_eq!((alone.tiers, alone.leaf.switches(), alone.spine.switches(), alone.leaf.free_ports()), (1, 1, 0, 0));
    let managers = Managers { servers: 2, ports_per_server: 2 };
    let managed = Topology::fat_tree(&FatTreeSpec { managers, ..eight_rails(8, 64) }).unwrap();
    // Nine places x two rails fit a leaf, so four leaves; 32 uplinks each, 128 in all, are two spines.
    assert_eq!((managed.tiers, managed.unit_leaves, managed.leaf.switches(), managed.spine.switches()), (2, 4, 4, 2));
    assert_eq!(managed.leaf.down_links(), 8 * 8 + 4);
    assert_eq!(managed.free_places(), 16 - 9);
    // QM8790, 40 ports: a unit has 20 nodes.
    let hdr = Topology::fat_tree(&eight_rails(20, 40)).unwrap();
    assert_eq!((hdr.unit_nodes, hdr.leaf.switches(), hdr.spine.switches()), (20, 8, 4));
    // SN5600 as 128 x 400G: a unit has 64.
    let spectrum = Topology::fat_tree(&eight_rails(128, 128)).unwrap();
    assert_eq!((spectrum.unit_nodes, spectrum.leaf.switches(), spectrum.spine.switches()), (64, 16, 8));
}

#[test]
fn top_of_rack_leaves_take_whole_nodes() {
    let tor = Topology::fat_tree(&FatTreeSpec { rails: 1, ..eight_rails(64, 64) }).unwrap();
    assert_eq!((tor.unit_nodes, tor.unit_leaves, tor.units), (4, 1, 16));
    assert_eq!((tor.leaf.switches(), tor.spine.switches()), (16, 8));
}

#[test]
fn partly_filled_pods_show_what_is_left() {
    // Pods of 100 nodes take four units of 32, the fourth with four nodes; 250 nodes fill two and a half.
    let topology = Topology::fat_tree(&FatTreeSpec { pod_nodes: Some(100), ..eight_rails(250, 64) }).unwrap();
    assert_eq!((topology.tiers, topology.pods, topology.units, topology.places), (3, 3, 4 + 4 + 2, 264));
    assert_eq!(topology.free_places(), 14);
    let full_leaf_ports = u64::from(topology.units) * 8 * 32;
    assert_eq!(topology.leaf.free_ports(), full_leaf_ports - 250 * 8);
}

fn any_spec() -> impl Strategy<Value = FatTreeSpec> {
    let shape = (1_u32..3_000, prop::sample::select(vec![32_u32, 40, 64, 128, 144]), 1_u32..=2);
    let nics = prop::sample::select(vec![(8_u32, 8_u32), (8, 1), (8, 4), (4, 4), (1, 1), (72, 4)]);
    let over =
        (prop::sample::select(vec![0.5, 1.0, 1.5, 2.0, 3.0, 4.0]), prop::sample::select(vec![1.0, 2.0, 2.8, 7.0]));
    let tiers = prop::sample::select(vec![Tiers::Auto, Tiers::Two, Tiers::Three]);
    (shape, nics, over, tiers, prop::option::of(1_u32..600), (0_u32..3, 1_u32..3)).prop_map(
        |((nodes, radix, planes), (nics_per_node, rails), (leaf, spine), tiers, pod_nodes, managers)| FatTreeSpec {
            nodes,
            nics_per_node,
            rails,
            radix: ByTier { leaf: radix, spine: radix, core: radix },
            planes,
            tiers,
            pod_nodes,
            oversubscription: Oversubscription { leaf, spine },
            managers: Managers { servers: managers.0, ports_per_server: managers.1 },
            border_ports: 0,
            server_ports: managers.0 * 12,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_port_is_accounted_for(spec in any_spec()) {
        let Ok(topology) = Topology::fat_tree(&spec) else { return Ok(()) };
        let ports = u64::from(spec.nodes) * u64::from(spec.nics_per_node) + u64::from(spec.other_ports());
        prop_assert_eq!(topology.leaf.down_links(), ports * u64::from(spec.planes));
        prop_assert_eq!(topology.leaf.up_links(), topology.spine.down_links());
        prop_assert_eq!(topology.spine.up_links(), topology.core.down_links());
        for layer in [&topology.leaf, &topology.spine, &topology.core] {
            for load in &layer.loads {
                prop_assert!(load.down + load.up <= layer.radix, "{load:?} of {}", layer.radix);
                prop_assert!(load.switches.is_multiple_of(spec.planes.into()));
            }
            let ports = layer.switches() * u64::from(layer.radix);
            prop_assert_eq!(ports, layer.down_links() + layer.up_links() + layer.free_ports());
        }
        prop_assert!(topology.places >= spec.nodes + spec.manager_places());
        prop_assert!(topology.units * topology.unit_nodes >= topology.places);
    }

    #[test]
    fn bandwidth_is_at_least_what_was_asked_for(spec in any_spec()) {
        let Ok(topology) = Topology::fat_tree(&spec) else { return Ok(()) };
        prop_assert!(topology.leaf.oversubscription <= spec.oversubscription.leaf * (1.0 + 1e-6));
        prop_assert!(topology.spine.oversubscription <= spec.oversubscription.spine * (1.0 + 1e-6));
        for load in &topology.leaf.loads {
            prop_assert!(topology.tiers == 1
                || f64::from(load.down) <= f64::from(load.up) * spec.oversubscription.leaf * (1.0 + 1e-6));
        }
    }

    #[test]
    fn more_nodes_never_take_fewer_leaves(spec in any_spec(), more in 1_u32..200) {
        let larger = FatTreeSpec { nodes: spec.nodes + more, ..spec };
        let (Ok(small), Ok(large)) = (Topology::fat_tree(&spec), Topology::fat_tree(&larger)) else { return Ok(()) };
        prop_assert!(small.leaf.switches() <= large.leaf.switches());
        prop_assert!(small.tiers <= large.tiers);
    }
}
