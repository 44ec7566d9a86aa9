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
//! - Sites are the highest boundary. What goes from one to another shares the long-haul links, which spread flows as the
//!   spines do, and takes the time of light in the fibre.
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

mod pairs;

pub use pairs::Pairs;

use crate::parallelism::RankGroup;
use crate::scenario::TopologyKind;

use super::balance::{Balance, Slowdown};
use super::{Tier, Topology, Torus};
use crate::units::{Meters, to_integer};

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
    /// Sites that the group is spread over.
    pub sites: u32,
    /// Fibre from one site to another, where it is spread over several.
    pub distance: Meters,
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
    /// Accelerators of a site.
    site: u32,
    site_oversubscription: f64,
    site_slowdown: Slowdown,
    site_distance: Meters,
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
            total: self.spec.nodes * per_node * self.site_count(),
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
            site: self.spec.nodes * per_node,
            site_oversubscription: self.sites.map_or(0.0, |sites| sites.oversubscription),
            site_slowdown: Slowdown::new(balance, self.sites.map_or(0, |sites| sites.links)),
            site_distance: self.sites.map_or(Meters::ZERO, |sites| sites.distance),
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
            sites: 1,
            distance: Meters::ZERO,
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
            (0, Tier::Site, self.site, self.site_oversubscription, &self.site_slowdown),
        ] {
            if self.tiers < tiers {
                continue;
            }
            if self.holds(block, span) && !(self.scattered && self.total > block) {
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
            if tier == Tier::Site {
                placement.sites = self.sites_of(group, span, ranks_per_domain);
                placement.distance = self.site_distance;
            }
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

    /// Sites that a group which one cannot hold is spread over.
    fn sites_of(&self, group: RankGroup, span: u64, ranks_per_domain: u32) -> u32 {
        let all = self.total.div_ceil(self.site.max(1));
        if self.scattered {
            return all;
        }
        let shares = f64::from(group.size) / self.members(self.site, group, span, ranks_per_domain);
        to_integer(shares.ceil().clamp(2.0, f64::from(all.max(2))))
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
mod tests;
