//! The algorithms, each with the protocol it runs in.

use super::call::{Call, Parts};
use super::wires::Collective;
use super::{nvls, point_to_point, ring, tree};

/// How a collective may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ring in LL (low latency).
    RingLl,
    /// Ring in LL128.
    RingLl128,
    /// Ring in Simple (full rate).
    RingSimple,
    /// Double binary tree in LL.
    TreeLl,
    /// Double binary tree in LL128.
    TreeLl128,
    /// Double binary tree in Simple.
    TreeSimple,
    /// Reduction in the switches of one scale-up domain.
    Nvls,
    /// Reduction in the switches of each domain, a tree between domains.
    NvlsTree,
    /// All pairs at once, in LL.
    AllToAllLl,
    /// All pairs at once, in Simple.
    AllToAllSimple,
    /// One transfer to the next rank, in LL.
    PointToPointLl,
    /// One transfer to the next rank, in Simple.
    PointToPointSimple,
}

/// Every algorithm, in the order in which a tie is settled.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RingSimple,
    Algorithm::RingLl,
    Algorithm::RingLl128,
    Algorithm::TreeLl,
    Algorithm::TreeLl128,
    Algorithm::TreeSimple,
    Algorithm::Nvls,
    Algorithm::NvlsTree,
    Algorithm::AllToAllSimple,
    Algorithm::AllToAllLl,
    Algorithm::PointToPointSimple,
    Algorithm::PointToPointLl,
];

impl Algorithm {
    /// The name that reports show; NCCL's own words, algorithm before protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingLl => "ring-ll",
            Self::RingLl128 => "ring-ll128",
            Self::RingSimple => "ring-simple",
            Self::TreeLl => "tree-ll",
            Self::TreeLl128 => "tree-ll128",
            Self::TreeSimple => "tree-simple",
            Self::Nvls => "nvls",
            Self::NvlsTree => "nvlstree",
            Self::AllToAllLl => "alltoall-ll",
            Self::AllToAllSimple => "alltoall-simple",
            Self::PointToPointLl => "p2p-ll",
            Self::PointToPointSimple => "p2p-simple",
        }
    }

    /// The time of a call, or `None` where the algorithm cannot serve it.
    pub(super) fn line(self, call: &Call<'_>) -> Option<Parts> {
        let ring = !matches!(call.kind, Collective::AllToAll | Collective::SendRecv);
        match self {
            Self::RingLl => ring.then(|| ring::ll(call)),
            Self::RingLl128 => {
                if ring {
                    ring::ll128(call)
                } else {
                    None
                }
            }
            Self::RingSimple => ring.then(|| ring::simple(call)),
            Self::TreeLl => tree::ll(call),
            Self::TreeLl128 => tree::ll128(call),
            Self::TreeSimple => tree::simple(call),
            Self::Nvls => nvls::one_domain(call),
            Self::NvlsTree => nvls::tree(call),
            Self::AllToAllLl => point_to_point::all_to_all_ll(call),
            Self::AllToAllSimple => point_to_point::all_to_all(call),
            Self::PointToPointLl => point_to_point::send_recv_ll(call),
            Self::PointToPointSimple => point_to_point::send_recv(call),
        }
    }
}
