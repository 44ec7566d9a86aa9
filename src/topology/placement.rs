//! Which tier a group of ranks reaches, and what share of its NIC bandwidth is left there.
//!
//! # Assumptions
//!
//! - Ranks are numbered through the nodes in order, nodes fill units and units fill pods in order, so a group of `size`
//!   ranks at a `stride` lies in an aligned block of `size * stride` ranks.
//! - All groups of a kind communicate at the same time, so a group has the NICs of its own ranks to itself and shares
//!   the links between switches with its neighbours.
//! - Traffic keeps to its rail: with a stride of at least the domain it does anyway, and below that NCCL first moves
//!   data inside the scale-up domain to the rank whose NIC is on the destination's rail (PXN). Ranks on one rail in one
//!   unit meet in a leaf, in one pod in a spine; only then does traffic go to the core.
//! - Rings are built unit by unit, so a ring enters and leaves a unit once however many members it has there. A pipeline
//!   chain of point-to-point transfers loads the network like a ring.
//!
//! - Between two groups of a dragonfly there is only a part of their links. A ring, which crosses from one group to one
//!   other, sends the rest by way of a third group, so that its data passes two links between groups; all-to-alls use
//!   all links as they are.
//!
//! # Load and slowdown
//!
//! The load `rho` of a tier's uplinks is the traffic offered to them over what they can carry. A load above one slows
//! everything down by `rho`, and unevenness costs more (see `balance`).
//!
//! # Order of ranks
//!
//! Packed, as above, is what a scheduler that knows the network gives. Scattered is the other end: nodes of a job lie
//! anywhere, so that a ring leaves its unit at almost every step.

use crate::parallelism::RankGroup;
use crate::scenario::TopologyKind;

use super::balance::{Balance, Slowdown};
use super::{Tier, Topology, Torus};

/// The scale-up side of a node, as placement needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUp {
    /// Accelerators of a node.
    pub accelerators_per_node: u32,
    /// Accelerators of a scale-up domain; a node that is not full (64 of 72 at work) counts those at work.
    pub domain: u32,
}

/// Where a group lies and what the network leaves it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupPlacement {
    /// Members in one scale-up domain.
    pub ranks_per_domain: u32,
    /// Domains that the group spans.
    pub domains: u32,
    /// NICs of a domain that serve this group while its neighbours use theirs.
    pub nics_per_domain: f64,
    /// The highest tier that any group of this shape has to cross; [`Tier::Node`] inside the scale-up domain.
    pub tier: Tier,
    /// Share of NIC bandwidth, 0 to 1, that a ring or a chain over the domains keeps beyond the leaf.
    pub ring_share: f64,
    /// Share of NIC bandwidth, 0 to 1, that an all-to-all keeps.
    pub all_to_all_share: f64,
    /// Share of what an all-to-all sends out of the domain that has to be relayed inside it first, to a rank whose card is
    /// on the rail of its destination, because nothing joins the rails outside.
    pub relayed: f64,
    /// Switches that a hop between neighbouring domains passes beyond its leaf, on the mean of all hops.
    pub more_switches: f64,
}

/// What placement needs of a topology: small, to be copied into hot loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    tiers: u32,
    domain: u32,
    nics_per_accelerator: f64,
    /// Accelerators of a unit, a pod and the job.
    unit: u32,
    pod: u32,
    total: u32,
    leaf_oversubscription: f64,
    spine_oversubscription: f64,
    leaf_slowdown: Slowdown,
    spine_slowdown: Slowdown,
    scattered: bool,
    relayed: f64,
    /// What a torus leaves of an all-to-all; 1 elsewhere.
    torus_share: f64,
    /// Groups of a dragonfly that a ring between two of them may borrow links of; 1 elsewhere.
    detours: f64,
}

impl Topology {
    /// The reach of ranks on nodes of a kind, over a fabric that spreads its flows so.
    pub fn reach(&self, scale_up: ScaleUp, balance: Balance) -> Reach {
        let per_node = scale_up.accelerators_per_node;
        Reach {
            tiers: self.tiers,
            domain: scale_up.domain,
            nics_per_accelerator: f64::from(self.spec.nics_per_node) / f64::from(per_node),
            unit: self.unit_nodes * per_node,
            pod: self.pod_nodes * per_node,
            total: self.spec.nodes * per_node,
            leaf_oversubscription: self.leaf.oversubscription,
            spine_oversubscription: self.spine.oversubscription,
            leaf_slowdown: Slowdown::new(balance, self.leaf.most_uplinks()),
            spine_slowdown: Slowdown::new(balance, self.spine.most_uplinks()),
            scattered: false,
            relayed: if self.rails_apart() { 1.0 - 1.0 / f64::from(self.spec.rails) } else { 0.0 },
            torus_share: self.torus.map_or(1.0, Torus::all_to_all_share),
            detours: if self.kind == TopologyKind::DragonflyPlus {
                f64::from((self.pods - 1).clamp(1, 2))
            } else {
                1.0
            },
        }
    }

    /// Whether nothing outside the nodes joins the rails.
    fn rails_apart(&self) -> bool {
        self.kind == TopologyKind::RailOnly || (self.tiers == 1 && self.unit_leaves > 1)
    }

    /// Places one group; a loop over layouts keeps the [`Reach`] instead.
    pub fn place(&self, group: RankGroup, scale_up: ScaleUp, balance: Balance) -> GroupPlacement {
        self.reach(scale_up, balance).place(group)
    }
}

impl Reach {
    /// The reach of a job on so many of the accelerators: what stands by takes no part.
    #[must_use]
    pub fn of_job(mut self, accelerators: u32) -> Self {
        self.total = self.total.min(accelerators);
        self
    }

    /// The same with the nodes of every group lying anywhere.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self { scattered: true, ..self }
    }

    /// Places one group.
    #[inline]
    pub fn place(&self, group: RankGroup) -> GroupPlacement {
        let RankGroup { size, stride } = group;
        let span = u64::from(size) * u64::from(stride);
        let ranks_per_domain = self.ranks_per_domain(group, span);
        let domains = size.div_ceil(ranks_per_domain);
        let nics_per_domain = f64::from(ranks_per_domain) * self.nics_per_accelerator;
        let mut placement = GroupPlacement {
            ranks_per_domain,
            domains,
            nics_per_domain,
            tier: Tier::Node,
            ring_share: 1.0,
            all_to_all_share: 1.0,
            relayed: 0.0,
            more_switches: 0.0,
        };
        if domains <= 1 {
            return placement;
        }
        placement.relayed = self.relayed;
        placement.tier = Tier::Leaf;
        let (mut ring, mut all_to_all) = (1.0_f64, 1.0_f64);
        for (tiers, tier, block, oversubscription, slowdown) in [
            (2, Tier::Spine, self.unit, self.leaf_oversubscription, &self.leaf_slowdown),
            (3, Tier::Core, self.pod, self.spine_oversubscription, &self.spine_slowdown),
        ] {
            if self.tiers < tiers || (self.holds(block, span) && !(self.scattered && self.total > block)) {
                break;
            }
            placement.tier = tier;
            let (entering, leaving) = if self.scattered {
                // Of the other domains of the cluster, those outside the block.
                let outside = f64::from(self.total - block) / f64::from(self.total - self.domain);
                (outside, outside)
            } else {
                let members = self.members(block, group, span, ranks_per_domain);
                let leaving = (f64::from(size) - members) / f64::from(size - ranks_per_domain);
                (f64::from(ranks_per_domain) / members, leaving)
            };
            // Up and down again: two switches more than within the tier below.
            placement.more_switches += 2.0 * entering;
            let detours = if tier == Tier::Core { self.detours } else { 1.0 };
            ring = ring.max(slowdown.at(oversubscription * entering * detours));
            all_to_all = all_to_all.max(slowdown.at(oversubscription * leaving));
        }
        placement.ring_share = 1.0 / ring;
        placement.all_to_all_share = self.torus_share / all_to_all;
        placement
    }

    /// Whether every group of a span lies inside one block of accelerators.
    fn holds(&self, block: u32, span: u64) -> bool {
        self.total <= block || u64::from(block).is_multiple_of(span)
    }

    /// Members of a group in one domain. Where spans and domains don't divide, the fewest that any group has in one.
    fn ranks_per_domain(&self, group: RankGroup, span: u64) -> u32 {
        let domain = self.domain;
        if u64::from(domain).is_multiple_of(span) {
            return group.size;
        }
        let chunk = if span.is_multiple_of(u64::from(domain)) { domain } else { common_divisor(span, domain) };
        (chunk / group.stride.max(1)).max(1)
    }

    /// Members of a group in one block. A block of accelerators is entered by `stride` groups for each aligned span that
    /// crosses its border: one where spans are whole blocks or there is only one, at most two otherwise.
    fn members(&self, block: u32, group: RankGroup, span: u64, ranks_per_domain: u32) -> f64 {
        let one_span = span >= u64::from(self.total) || span.is_multiple_of(u64::from(block));
        let groups = f64::from(group.stride) * if one_span { 1.0 } else { 2.0 };
        (f64::from(block) / groups).clamp(f64::from(ranks_per_domain), f64::from(group.size))
    }
}

/// Greatest common divisor of a span and a domain.
fn common_divisor(span: u64, domain: u32) -> u32 {
    let (mut large, mut small) = (domain, u32::try_from(span % u64::from(domain)).unwrap_or(0));
    while small != 0 {
        (large, small) = (small, large % small);
    }
    large
}

#[cfg(test)]
mod tests {
    use super::super::{ByTier, FatTreeSpec, Managers, Oversubscription, Tiers};
    use super::*;
    use crate::units::Fraction;

    const DGX: ScaleUp = ScaleUp { accelerators_per_node: 8, domain: 8 };

    fn tree(nodes: u32, pod_nodes: Option<u32>, oversubscription: Oversubscription) -> Topology {
        Topology::fat_tree(&FatTreeSpec {
            nodes,
            nics_per_node: 8,
            rails: 8,
            radix: ByTier { leaf: 64, spine: 64, core: 64 },
            planes: 1,
            tiers: Tiers::Auto,
            pod_nodes,
            oversubscription,
            managers: Managers::default(),
        })
        .unwrap()
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
        let placed =
            tree(64, None, Oversubscription { leaf: 2.0, spine: 1.0 }).place(group(4, 8), DGX, efficiency(0.5));
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
}
