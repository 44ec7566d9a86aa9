//! What is asked: a collective, the ranks that take part, and the wires between them.

use crate::catalog::collective_efficiency::{
    CollectiveEfficiency, LibraryEfficiency, MpiEfficiency, NetworkEfficiency, NvlsEfficiency, PatEfficiency,
    ScaleUpEfficiency, ScaleUpKind, SharpEfficiency,
};
use crate::document::choices;
use crate::topology::{GroupPlacement, accelerator_sides};
use crate::units::{Bandwidth, Meters, Seconds};

choices! {
    /// A collective operation. Its payload is what the size column of nccl-tests shows.
    pub enum Collective {
        /// Every rank ends with the sum; the payload is the buffer of one rank.
        AllReduce = "all_reduce",
        /// Every rank ends with all parts; the payload is the gathered whole.
        AllGather = "all_gather",
        /// Every rank ends with its part of the sum; the payload is the whole input of one rank.
        ReduceScatter = "reduce_scatter",
        /// Every rank ends with the root's data; the payload is that data.
        Broadcast = "broadcast",
        /// The root ends with the sum; the payload is the buffer of one rank.
        Reduce = "reduce",
        /// The root ends with all parts; the payload is the gathered whole.
        Gather = "gather",
        /// Every rank ends with its part of the root's data; the payload is that data.
        Scatter = "scatter",
        /// Every rank sends a part to every rank; the payload is all that one rank sends, its own part included.
        AllToAll = "alltoall",
        /// Every rank sends to the next; the payload is what one rank sends.
        SendRecv = "sendrecv",
    }
}

impl Collective {
    /// Bus bandwidth over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md, summary; `SendRecvGetBw`).
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks.max(1));
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather | Self::ReduceScatter | Self::Gather | Self::Scatter | Self::AllToAll => (n - 1.0) / n,
            Self::Broadcast | Self::Reduce | Self::SendRecv => 1.0,
        }
    }
}

/// Which ranks take part, and what they may use of the wires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// Ranks, one a GPU.
    pub ranks: u32,
    /// Ranks in one scale-up domain; the last domain may hold fewer.
    pub ranks_per_domain: u32,
    /// Ranks in the domain that holds the fewest.
    pub fewest_per_domain: u32,
    /// NICs that the group may drive in one domain: of a data-parallel group with one rank a node, that rank's own.
    pub nics_per_domain: f64,
    /// What the topology leaves of the NICs' payload for traffic between neighbours (rings, trees); 1 within a leaf.
    pub network_share: f64,
    /// What the topology leaves of it for traffic between all pairs.
    pub all_to_all_share: f64,
    /// Share of what an all-to-all sends out of a domain that is relayed inside it first (see `topology`).
    pub relayed: f64,
    /// Switches that a hop between neighbouring domains passes beyond its leaf, on the mean.
    pub more_switches: f64,
    /// Sites that the ranks are spread over.
    pub sites: u32,
    /// Fibre from one site to another.
    pub distance: Meters,
}

impl Group {
    /// Ranks that fill domains from the first, on one site, with all that their cards carry.
    pub fn filling(ranks: u32, ranks_per_domain: u32, nics_per_domain: f64) -> Self {
        Self {
            ranks,
            ranks_per_domain,
            fewest_per_domain: Self::of_last_domain(ranks, ranks_per_domain),
            nics_per_domain,
            network_share: 1.0,
            all_to_all_share: 1.0,
            relayed: 0.0,
            more_switches: 0.0,
            sites: 1,
            distance: Meters::ZERO,
        }
    }

    /// Ranks where a topology places them, as many in each domain as in the others.
    pub const fn placed(ranks: u32, placed: &GroupPlacement) -> Self {
        Self {
            ranks,
            ranks_per_domain: placed.ranks_per_domain,
            fewest_per_domain: placed.ranks_per_domain,
            nics_per_domain: placed.nics_per_domain,
            network_share: placed.ring_share,
            all_to_all_share: placed.all_to_all_share,
            relayed: placed.relayed,
            more_switches: placed.more_switches,
            sites: placed.sites,
            distance: placed.distance,
        }
    }

    /// The same beside others that send through the same cards at the same time, `groups` of them with this one.
    #[must_use]
    pub fn among(self, groups: u32) -> Self {
        Self { nics_per_domain: self.nics_per_domain / f64::from(groups.max(1)), ..self }
    }

    /// The same where ranks of one node reach each other through network cards alone, as if each were a node of its own.
    #[must_use]
    pub fn through_cards_only(self) -> Self {
        let nics_per_domain = self.nics_per_domain / f64::from(self.ranks_per_domain.max(1));
        Self { ranks_per_domain: 1, fewest_per_domain: 1, nics_per_domain, relayed: 0.0, ..self }
    }

    /// Ranks of the last domain where they fill domains from the first.
    pub fn of_last_domain(ranks: u32, ranks_per_domain: u32) -> u32 {
        match ranks % ranks_per_domain.max(1) {
            0 => ranks_per_domain.min(ranks),
            rest => rest,
        }
    }

    /// NICs that the ranks of the domain with the fewest drive: as many for each as elsewhere, a whole one at least where
    /// ranks share them.
    pub fn fewest_nics(&self) -> f64 {
        let each = self.nics_per_domain / f64::from(self.ranks_per_domain.max(1));
        (each * f64::from(self.fewest_per_domain)).max(self.nics_per_domain.min(1.0)).min(self.nics_per_domain)
    }

    /// Scale-up domains that the group spreads over.
    pub fn domains(&self) -> u32 {
        self.ranks.div_ceil(self.ranks_per_domain.max(1))
    }
}

/// The scale-up links of a domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleUp {
    /// Line rate of one GPU's links in one direction.
    pub line_rate: Bandwidth,
    /// What of it can go to one other rank: a link of a mesh, or all where switches join them.
    pub peer_rate: Bandwidth,
    /// What collectives reach on them.
    pub efficiency: ScaleUpEfficiency,
    /// Whether the library runs LL128 over them.
    pub ll128: bool,
    /// What reduction in the switches reaches, where the node has it.
    pub nvls: Option<NvlsEfficiency>,
    /// The torus that its links form, where they join neighbours alone.
    pub torus: Option<TorusLinks>,
}

/// Links between neighbours along the dimensions of a torus, by which all of a domain are reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TorusLinks {
    /// Ranks along each dimension of the blocks that it is made of; 1 beyond the last.
    pub block: [u32; 3],
    /// Ranks along a dimension from which its ends are joined.
    pub closes_at: u32,
}

impl TorusLinks {
    /// Ranks along each dimension of so many, longest first, as the network builds it.
    pub fn sides(self, ranks: u32) -> [u32; 3] {
        accelerator_sides(self.block, ranks)
    }

    /// Links of a rank, two along each dimension.
    pub(super) fn links(self) -> f64 {
        2.0 * f64::from(self.dimensions())
    }

    fn dimensions(self) -> u32 {
        self.block.iter().map(|side| u32::from(*side > 1)).sum::<u32>().max(1)
    }

    /// Steps of a ring along each dimension in turn, for which all of them are in use at the same time (bucket algorithm).
    pub(super) fn steps(self, ranks: u32) -> f64 {
        self.sides(ranks).iter().map(|side| f64::from(side.saturating_sub(1))).sum()
    }

    /// Share of the links' rate that data going around get: along a line they turn back at its ends, and the dimension
    /// that is one holds up the others.
    pub(super) fn ring_share(self, ranks: u32) -> f64 {
        let sides = self.sides(ranks).into_iter().zip(1..=self.dimensions());
        if sides.into_iter().all(|(side, _)| side >= self.closes_at) { 1.0 } else { 0.5 }
    }

    /// Share of the links' rate that an all-to-all gets. Half the ranks send half their data across the middle of a side
    /// `k`, which a ring of it crosses twice and a line once: `8 / k` of the `2 d` links of a rank at most, along a line
    /// half of that. The dimension that leaves least decides.
    pub(super) fn all_to_all_share(self, ranks: u32) -> f64 {
        let across = |side: u32| {
            let passes = if side >= self.closes_at { 8.0 } else { 4.0 };
            passes / f64::from(side.max(1)) / self.links()
        };
        self.sides(ranks).into_iter().filter(|side| *side > 1).map(across).fold(1.0, f64::min)
    }
}

impl ScaleUp {
    /// Line rate at which a rank reaches so many others of its domain together: a mesh has a link to each, and those to
    /// ranks that take no part carry nothing.
    pub fn rate_to(&self, others: f64) -> Bandwidth {
        self.line_rate.min(self.peer_rate * others.max(1.0))
    }

    /// Links with the typical constants of their kind; NVLS only where the node's switches reduce.
    pub fn typical(line_rate: Bandwidth, kind: &ScaleUpKind, in_network_reduction: bool) -> Self {
        let nvls = kind.nvls.filter(|_| in_network_reduction).map(|nvls| nvls.value);
        Self { line_rate, peer_rate: line_rate, efficiency: kind.links.value, ll128: kind.ll128, nvls, torus: None }
    }
}

/// The NICs and what lies between them; the default is no network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// Line rate of one NIC in one direction.
    pub line_rate: Bandwidth,
    /// What collectives reach on them, within a leaf.
    pub efficiency: NetworkEfficiency,
    /// Delay of one switch more.
    pub switch_latency: Seconds,
}

/// The wires of a cluster, bound once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wires {
    /// Within a scale-up domain.
    pub scale_up: ScaleUp,
    /// Between domains.
    pub network: Network,
    /// The library that moves the data.
    pub library: LibraryEfficiency,
    /// Parallel aggregated trees, where the library has them (NCCL from 2.23).
    pub pat: Option<PatEfficiency>,
    /// Reduction in the network's switches, where the fabric has it and the job has it switched on.
    pub sharp: Option<SharpEfficiency>,
    /// MPI over the same wires.
    pub mpi: MpiEfficiency,
}

impl Wires {
    /// The same on a transport that paces senders after the fact instead of granting them credits.
    #[must_use]
    pub fn paced(mut self) -> Self {
        self.library.incast = self.library.paced_incast;
        self
    }

    /// Wires with the typical constants of a set; neither parallel aggregated trees nor reduction in the network.
    pub fn typical(set: &CollectiveEfficiency, scale_up: ScaleUp, network: Network) -> Self {
        let (library, mpi) = (set.library.value, set.mpi.value);
        Self { scale_up, network, library, pat: None, sharp: None, mpi }
    }
}
