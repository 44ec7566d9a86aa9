//! The algorithms, each with the protocol it runs in and the library that has it.

use super::call::{Call, Parts};
use super::{hierarchical, in_network, mpi, nvls, pat, point_to_point, ring, tree};

/// Who carries an algorithm out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// NCCL (or RCCL) by itself.
    Nccl,
    /// NCCL with reduction in the network's switches (CollNet, SHARP).
    Sharp,
    /// A CUDA-aware MPI.
    Mpi,
    /// A framework, from several collectives of NCCL.
    Composed,
}

impl Library {
    /// Every one, NCCL first.
    pub const ALL: &'static [Self] = &[Self::Nccl, Self::Sharp, Self::Mpi, Self::Composed];

    /// The word that reports show.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nccl => "nccl",
            Self::Sharp => "nccl+sharp",
            Self::Mpi => "mpi",
            Self::Composed => "composed",
        }
    }
}

/// Declares the algorithms in the order in which a tie is settled: variant, name (NCCL's own words, algorithm before
/// protocol), library, and the formula, which is `None` where the algorithm cannot serve a call.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal by $library:ident, $line:expr;)+) => {
        /// How a collective may be carried out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)+
        }

        /// Every algorithm, in the order in which a tie is settled.
        pub const ALGORITHMS: &[Algorithm] = &[$(Algorithm::$variant),+];

        impl Algorithm {
            /// The name that reports show.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Who carries it out.
            pub const fn library(self) -> Library {
                match self {
                    $(Self::$variant => Library::$library,)+
                }
            }

            /// The time of a call as if all ranks were at one site.
            #[inline]
            fn at_one_site(self, call: &Call<'_>) -> Option<Parts> {
                match self {
                    $(Self::$variant => $line(call),)+
                }
            }
        }
    };
}

/// Other names of families, in letters alone: what papers and NCCL's environment call them, and the beginning of ours.
const SYNONYMS: &[(&str, &str)] = &[
    ("doublebinarytree", "tree"),
    ("recursivehalvingdoubling", "mpihalvingdoubling"),
    ("halvingdoubling", "mpihalvingdoubling"),
    ("hypercube", "mpihalvingdoubling"),
    ("bruck", "mpibruck"),
    ("binomial", "mpibinomial"),
    ("pairwise", "mpipairwise"),
    ("rails", "hierarchical"),
    ("railwise", "hierarchical"),
];

impl Algorithm {
    /// Whether a word names it: its own name, its family (`ring`, `mpi`), its library (`sharp`), or what others call
    /// them, in any spelling (`NVLSTree`, `collnet_chain`).
    pub fn answers_to(self, word: &str) -> bool {
        let letters = |text: &str| text.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
        let wanted = letters(word);
        let wanted = SYNONYMS.iter().find(|(other, _)| *other == wanted).map_or(wanted, |(_, own)| (*own).to_owned());
        let name = self.name();
        // Whole words from the beginning: `nvls` is not `nvlstree`.
        let ends = name.match_indices('-').map(|(end, _)| end).chain([name.len()]);
        let mut begins = ends.map(|end| letters(&name[..end]));
        (self.library() == Library::Sharp && wanted == "sharp") || begins.any(|begin| begin == wanted)
    }
}

impl Algorithm {
    /// The time of a call, or `None` where the algorithm cannot serve it.
    #[inline]
    pub(super) fn line(self, call: &Call<'_>) -> Option<Parts> {
        let parts = self.at_one_site(call)?;
        Some(Parts { latency: parts.latency + call.between_sites(self.goes_around()), ..parts })
    }

    /// Whether data go around all domains, one after the other.
    const fn goes_around(self) -> bool {
        matches!(self, Self::RingSimple | Self::RingLl | Self::RingLl128 | Self::MpiRing | Self::Hierarchical)
    }
}

/// Those among which NCCL chooses, which come first.
pub(super) const OWN: &[Algorithm] = ALGORITHMS.split_at(own()).0;

const fn own() -> usize {
    let mut count = 0;
    while count < ALGORITHMS.len() && matches!(ALGORITHMS[count].library(), Library::Nccl | Library::Sharp) {
        count += 1;
    }
    count
}

algorithms! {
    /// Ring in Simple (full rate).
    RingSimple = "ring-simple" by Nccl, ring::simple;
    /// Ring in LL (low latency).
    RingLl = "ring-ll" by Nccl, ring::ll;
    /// Ring in LL128.
    RingLl128 = "ring-ll128" by Nccl, ring::ll128;
    /// Double binary tree in LL.
    TreeLl = "tree-ll" by Nccl, tree::ll;
    /// Double binary tree in LL128.
    TreeLl128 = "tree-ll128" by Nccl, tree::ll128;
    /// Double binary tree in Simple.
    TreeSimple = "tree-simple" by Nccl, tree::simple;
    /// Reduction in the switches of one scale-up domain.
    Nvls = "nvls" by Nccl, nvls::one_domain;
    /// Reduction in the switches of each domain, a tree between domains.
    NvlsTree = "nvlstree" by Nccl, nvls::tree;
    /// Parallel aggregated trees.
    Pat = "pat" by Nccl, pat::line;
    /// All pairs at once, in Simple.
    AllToAllSimple = "alltoall-simple" by Nccl, point_to_point::all_to_all;
    /// All pairs at once, in LL.
    AllToAllLl = "alltoall-ll" by Nccl, point_to_point::all_to_all_ll;
    /// Transfers to a neighbour, or between a root and all others, in Simple.
    PointToPointSimple = "p2p-simple" by Nccl, point_to_point::single;
    /// The same in LL.
    PointToPointLl = "p2p-ll" by Nccl, point_to_point::single_ll;
    /// Exchange within the domain, reduction in the network.
    CollNetDirect = "collnet-direct" by Sharp, in_network::direct;
    /// Chain within the domain, reduction in the network.
    CollNetChain = "collnet-chain" by Sharp, in_network::chain;
    /// Reduction in the domain's switches and then in the network's.
    NvlsSharp = "nvls-sharp" by Sharp, in_network::nvls;
    /// Within the domain, along the rails, within the domain again.
    Hierarchical = "hierarchical" by Composed, hierarchical::line;
    /// One ring of messages.
    MpiRing = "mpi-ring" by Mpi, mpi::ring;
    /// Recursive halving and doubling over the hypercube of ranks.
    MpiHalvingDoubling = "mpi-halving-doubling" by Mpi, mpi::halving_doubling;
    /// Bruck's logarithmic exchange.
    MpiBruck = "mpi-bruck" by Mpi, mpi::bruck;
    /// Binomial tree from or to a root.
    MpiBinomial = "mpi-binomial" by Mpi, mpi::binomial;
    /// Scatter by a binomial tree, gather by a ring.
    MpiScatterAllgather = "mpi-scatter-allgather" by Mpi, mpi::scatter_allgather;
    /// One partner after the other.
    MpiPairwise = "mpi-pairwise" by Mpi, mpi::pairwise;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_others_write_them() {
        let named = |word: &str| -> Vec<&str> {
            ALGORITHMS.iter().filter(|algorithm| algorithm.answers_to(word)).map(|algorithm| algorithm.name()).collect()
        };
        assert_eq!(named("Ring"), ["ring-simple", "ring-ll", "ring-ll128"]);
        assert_eq!(named("double binary tree"), ["tree-ll", "tree-ll128", "tree-simple"]);
        assert_eq!(named("NVLSTree"), ["nvlstree"]);
        assert_eq!(named("CollNetChain"), ["collnet-chain"]);
        assert_eq!(named("collnet"), ["collnet-direct", "collnet-chain"]);
        assert_eq!(named("nvls"), ["nvls", "nvls-sharp"]);
        assert_eq!(named("sharp"), ["collnet-direct", "collnet-chain", "nvls-sharp"]);
        assert_eq!(named("recursive halving-doubling"), ["mpi-halving-doubling"]);
        assert_eq!(named("Bruck"), ["mpi-bruck"]);
        assert!(named("rin").is_empty() && named("").is_empty());
    }

    #[test]
    fn nccl_s_own_come_first() {
        let own = |algorithm: &&Algorithm| matches!(algorithm.library(), Library::Nccl | Library::Sharp);
        assert_eq!(ALGORITHMS.iter().filter(own).count(), OWN.len());
    }
}
