//! Where groups of a training layout lie, worked out by hand.

use super::super::{FatTreeSpec, Oversubscription};
use super::*;
use crate::units::Fraction;

const DGX: ScaleUp = ScaleUp { accelerators_per_node: 8, domain: 8 };

fn tree(nodes: u32, pod_nodes: Option<u32>, oversubscription: Oversubscription) -> Topology {
    Topology::fat_tree(&FatTreeSpec { pod_nodes, oversubscription, ..FatTreeSpec::eight_rails(nodes) }).unwrap()
}

/// Nothing lost to uneven load.
const EVEN: Balance = Balance::ByLoad(Fraction::ONE);

fn efficiency(share: f64) -> Balance {
    Balance::ByLoad(Fraction::new(share).unwrap())
}

fn group(size: u32, stride: u32) -> RankGroup {
    RankGroup { size, stride }
}

#[track_caller]
fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-12, "{left} is not {right}");
}

#[test]
fn tiers_of_a_training_layout() {
    // 1,024 nodes of 8 in four pods of 256 nodes (eight units of 32), TP8 PP16 DP64.
    let topology = tree(1_024, Some(256), Oversubscription { leaf: 1.0, spine: 7.0 });
    assert_eq!((topology.tiers, topology.pods, topology.unit_nodes), (3, 4, 32));
    let reach = topology.reach(DGX, EVEN);
    let tensor = reach.place(group(8, 1));
    assert_eq!((tensor.ranks_per_domain, tensor.domains, tensor.tier), (8, 1, Tier::Node));
    // 16 stages on 16 nodes: inside a unit of 256 accelerators.
    let pipeline = reach.place(group(16, 8));
    assert_eq!((pipeline.ranks_per_domain, pipeline.domains, pipeline.tier), (1, 16, Tier::Leaf));
    close(pipeline.nics_per_domain, 1.0);
    close(pipeline.ring_share, 1.0);
    // Over everything: 16 members in each pod, so 7:1 leaves rings whole. Of an all-to-all 48 of 63 leave a pod, over
    // spines with 32 links down and ceil(32 / 7) = 5 up.
    let data = reach.place(group(64, 128));
    assert_eq!((data.domains, data.tier), (64, Tier::Core));
    close(data.ring_share, 1.0);
    close(data.all_to_all_share, 1.0 / (32.0 / 5.0 * 48.0 / 63.0));
}

#[test]
fn ring_pays_oversubscription_over_members_in_the_unit() {
    // A stride of a unit (256) leaves one member a unit: everything crosses.
    let topology = tree(160, None, Oversubscription { leaf: 3.0, spine: 1.0 });
    assert_eq!((topology.tiers, topology.unit_nodes), (2, 48));
    let reach = topology.reach(DGX, EVEN);
    close(reach.place(group(3, 384)).ring_share, 1.0 / 3.0);
    // Two members a unit: each unit is entered by half as many rings as it has NICs.
    close(reach.place(group(6, 192)).ring_share, 2.0 / 3.0);
    // Spans that don't align with units can straddle both borders.
    let straddling = reach.place(group(2, 320));
    close(straddling.ring_share, 1.0 / 3.0);
}

#[test]
fn whole_cluster_as_one_group() {
    // Eight parallel rings cross each unit of 32 nodes once.
    let placed = tree(64, None, Oversubscription::NONE).place(group(512, 1), DGX, efficiency(0.5));
    assert_eq!((placed.ranks_per_domain, placed.domains, placed.tier), (8, 64, Tier::Spine));
    close(placed.nics_per_domain, 8.0);
    // rho = 8 / 256; slowdown 1 + rho * (1 / 0.5 - 1).
    close(placed.ring_share, 1.0 / (1.0 + 8.0 / 256.0));
    // 256 of the 504 ranks outside the domain are outside the unit.
    close(placed.all_to_all_share, 1.0 / (1.0 + 256.0 / 504.0));
}

#[test]
fn efficiency_counts_where_everything_crosses() {
    let placed = tree(64, None, Oversubscription::NONE).place(group(2, 256), DGX, efficiency(0.6));
    close(placed.ring_share, 0.6);
    close(placed.all_to_all_share, 0.6);
}

#[test]
fn a_thousand_scattered_nodes_with_plain_ecmp_lose() {
    // 1,024 nodes, packed: each rail's ring enters a unit once, and a lone flow meets nobody. Scattered, 992 of 1,023
    // other nodes are outside the unit, and two flows a card collide on 32 uplinks.
    let hashed = |flows_per_nic| Balance::Hashed { flows_per_nic };
    let reach = tree(1_024, None, Oversubscription::NONE).reach(DGX, hashed(2.0));
    close(reach.place(group(8_192, 1)).ring_share, 1.0);
    let scattered = reach.scattered().place(group(8_192, 1)).ring_share;
    assert!((0.3..0.45).contains(&scattered), "{scattered}");
    let queue_pairs = tree(1_024, None, Oversubscription::NONE).reach(DGX, hashed(8.0)).scattered();
    assert!(queue_pairs.place(group(8_192, 1)).ring_share > 1.3 * scattered);
    let adaptive = tree(1_024, None, Oversubscription::NONE).reach(DGX, efficiency(0.95)).scattered();
    assert!(adaptive.place(group(8_192, 1)).ring_share > 0.94);
}

#[test]
fn same_unit_never_sees_the_spine() {
    let placed = tree(64, None, Oversubscription { leaf: 2.0, spine: 1.0 }).place(group(4, 8), DGX, efficiency(0.5));
    assert_eq!(placed.tier, Tier::Leaf);
    close(placed.all_to_all_share, 1.0);
}

#[test]
fn single_switch_is_leaf_only() {
    let topology = tree(8, None, Oversubscription::NONE);
    assert_eq!(topology.tiers, 1);
    assert_eq!(topology.place(group(64, 1), DGX, efficiency(0.5)).tier, Tier::Leaf);
}

#[test]
fn domains_that_spans_do_not_divide() {
    let reach = tree(64, None, Oversubscription::NONE).reach(DGX, EVEN);
    // Groups of six on domains of eight: the second has two ranks in one domain and four in the next.
    let placed = reach.place(group(6, 1));
    assert_eq!((placed.ranks_per_domain, placed.domains), (2, 3));
    let placed = reach.place(group(12, 1));
    assert_eq!((placed.ranks_per_domain, placed.domains), (4, 3));
    let placed = reach.place(group(1, 1));
    assert_eq!((placed.domains, placed.tier), (1, Tier::Node));
}

#[test]
fn four_accelerators_behind_one_nic() {
    let mut spec = tree(64, None, Oversubscription::NONE).spec;
    (spec.nics_per_node, spec.rails) = (2, 2);
    let placed = Topology::fat_tree(&spec).unwrap().place(group(16, 4), DGX, EVEN);
    assert_eq!(placed.ranks_per_domain, 2);
    close(placed.nics_per_domain, 0.5);
}

#[test]
fn more_oversubscription_and_less_efficiency_never_help() {
    for (size, stride) in [(4, 64), (2, 256), (64, 8), (128, 8), (16, 32), (512, 1), (24, 8)] {
        let mut last = [f64::INFINITY; 2];
        for over in [1.0, 2.0, 3.0, 4.0] {
            for share in [1.0, 0.9, 0.6] {
                // The same unit throughout, so that only the figures under test change.
                let mut topology = tree(128, None, Oversubscription::NONE);
                topology.leaf.oversubscription = over;
                let placed = topology.place(group(size, stride), DGX, efficiency(share));
                for value in [placed.ring_share, placed.all_to_all_share] {
                    assert!(value > 0.0 && value <= 1.0);
                }
                if share >= 1.0 {
                    assert!(placed.ring_share <= last[0] && placed.all_to_all_share <= last[1]);
                    last = [placed.ring_share, placed.all_to_all_share];
                }
                assert!(placed.ring_share <= last[0] && placed.all_to_all_share <= last[1]);
            }
        }
    }
}

#[test]
fn pairs_share_what_leaves_their_unit() {
    // 160 nodes of 8 in units of 48: of 1,272 accelerators beyond a node, 896 lie in another unit; 3:1 leaves a third of that.
    let topology = tree(160, None, Oversubscription { leaf: 3.0, spine: 1.0 });
    let block = f64::from(topology.unit_nodes * 8);
    let reach = topology.reach(DGX, EVEN);
    let leaving = (1_280.0 - block) / 1_272.0;
    let pairs = reach.pairs(8);
    close(pairs.all, 3.0 * leaving);
    close(pairs.sharing, block);
    // One node alone loads the uplinks of its unit by 8 of 384 times that: nothing holds it up.
    close(pairs.lone, 1.0);
    close(reach.pairs(384).lone, pairs.all);
    // By load, the excess is in proportion to what is sent.
    let uneven = topology.reach(DGX, efficiency(0.8));
    close(uneven.pairs(8).lone, 1.0 + 3.0 * leaving * 8.0 / block * 0.25);
    close(uneven.pairs(8).all, 3.0 * leaving * 1.25);
    // In one unit no spine is passed.
    assert_eq!(
        tree(16, None, Oversubscription { leaf: 1.0, spine: 1.0 }).reach(DGX, efficiency(0.8)).pairs(8),
        Pairs::NEAR
    );
}
