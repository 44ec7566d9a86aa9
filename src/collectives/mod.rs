//! Time on the wires: what a collective of a group of ranks takes, in closed form and without allocation.
//!
//! Every algorithm of NCCL, of NCCL with reduction in the network, of MPI, and of frameworks that build theirs from NCCL's
//! is a line `latency + size / rate`, bent by what fills its pipeline; the time of a collective is the fastest line among
//! those that NCCL would consider. Sizes and bus bandwidths follow the convention of nccl-tests
//! (doc/PERFORMANCE.md). What is NCCL's own comes from version 2.30.7 (src/graph/tuning.cc, src/transport/nvls.cc); the
//! constants of the lines are catalog entries, fitted to public logs.
//!
//! Symbols, as the formulas use them: `n` ranks, `g` ranks in one scale-up domain, `N` domains, `S` the payload.
//! Valid from 2 to about a thousand ranks; beyond three racks of 72 GPUs NVLS trees are measured slower than given here.

mod algorithm;
mod call;
mod choice;
mod contention;
#[cfg(test)]
mod fixture;
mod hierarchical;
mod in_network;
mod mpi;
mod nvls;
mod pat;
mod path;
mod point_to_point;
mod ring;
mod selection;
mod staging;
pub mod transport;
mod tree;
mod wires;

pub use algorithm::{ALGORITHMS, Algorithm, Library};
pub use choice::{Choice, Limit, Rule, choose, host_floor};
pub use contention::beside;
pub use path::IntraNode;
pub use selection::{CollectiveTime, algorithm_bandwidth, best, best_of, bus_bandwidth, estimate};
pub use wires::{Collective, Group, Network, ScaleUp, TorusLinks, Wires};
