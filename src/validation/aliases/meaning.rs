//! What published names stand for.

use crate::catalog::model::{Format, Norm, Number};
use crate::catalog::training_efficiency::Framework;
use crate::parallelism::Recompute;
use crate::topology::Managers;
use crate::units::{Bandwidth, Fraction};
use crate::workload::AttentionCount;

/// The cache as the scripts of a campaign set it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::validation) struct ScriptedCache {
    /// Its numbers.
    pub(in crate::validation) number: Number,
    /// The part of the memory that is used, where it is not the engine's own.
    pub(in crate::validation) fraction: Option<Fraction>,
}

/// A framework of its makers' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validation) struct NamedFramework {
    /// The class that it is of.
    pub(in crate::validation) class: Framework,
    /// Whether its makers say that it hides tensor- and data-parallel communication.
    pub(in crate::validation) overlaps: bool,
}

/// Catalog ids that stand for a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::validation) struct Hardware {
    /// The node.
    pub(in crate::validation) node: String,
    /// The fabric where a row states none.
    pub(in crate::validation) fabric: String,
}

/// A model that published runs serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::validation) struct Served {
    /// Its id in the catalog.
    pub(in crate::validation) model: String,
    /// What 8 bits of it are published in, where that is not what its own entry says and not a scale for a whole tensor or row.
    pub(in crate::validation) eight: Option<Format>,
}

/// The links of a GPU that runs of collectives name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::validation) struct Links {
    /// Their kind among the collective constants.
    pub(in crate::validation) kind: String,
    /// What one GPU sends over them.
    pub(in crate::validation) line_rate: Bandwidth,
    /// What of it can go to one other: all, or a link of a mesh.
    pub(in crate::validation) peer_rate: Bandwidth,
    /// Whether their switches reduce.
    pub(in crate::validation) in_network_reduction: bool,
    /// Where the text leaves the GPU open: why it is taken to be this one.
    pub(in crate::validation) because: Option<String>,
}

/// What the layers of a family are like.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::validation) enum Shape {
    /// As this model of the catalog has them: its sizes don't say how they differ from the usual ones.
    Catalog(String),
    /// Of the usual kind.
    Usual(Family),
}

/// What the layers of a family of models are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::validation) struct Family {
    /// Whether MLPs and experts are gated.
    pub(in crate::validation) gated: bool,
    /// The normalisation.
    pub(in crate::validation) norm: Norm,
    /// Whether projections have biases.
    pub(in crate::validation) biases: bool,
    /// Whether the output projection is the embedding again.
    pub(in crate::validation) tied_embeddings: bool,
    /// Whether positions are learned, one for each place of the sequence.
    pub(in crate::validation) learned_positions: bool,
    /// Whether attention and MLP stand side by side.
    pub(in crate::validation) parallel: bool,
    /// Channels of a head, where they are not hidden over heads.
    pub(in crate::validation) head_dim: Option<u32>,
    /// The usual vocabulary.
    pub(in crate::validation) vocab: Option<u32>,
}

/// What a text says of recomputation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validation) enum StatedRecompute {
    /// That it says nothing.
    Unstated,
    /// What is computed again.
    Is(Recompute),
}

/// How a published FLOP rate counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::validation) struct Convention {
    pub(super) kind: Vec<String>,
    pub(super) source: Vec<String>,
    /// Whether recomputed operations count.
    pub(in crate::validation) recomputed: bool,
    /// How attention's scores count.
    pub(in crate::validation) attention: AttentionCount,
}

/// What a published network is built of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::validation) struct Design {
    /// Ports of a switch at the speed of a NIC; without it the name says.
    pub(in crate::validation) radix: Option<u32>,
    /// Planes that ports are split into.
    pub(in crate::validation) planes: u32,
    /// Fabric managers plugged in.
    pub(in crate::validation) managers: Managers,
    /// Nodes, where the design was published without a size.
    pub(in crate::validation) nodes: Option<u32>,
    /// What stands beside the fabric, where figures of that were published.
    pub(in crate::validation) beside: Option<Beside>,
}

/// What stands beside a published fabric, by catalog id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::validation) struct Beside {
    /// The node.
    pub(in crate::validation) node: String,
    /// Nodes in a rack.
    pub(in crate::validation) nodes_per_rack: u32,
    /// The switch of the fabric.
    pub(in crate::validation) switch: String,
    /// The storage.
    pub(in crate::validation) storage: String,
    /// The networks.
    pub(in crate::validation) networks: Vec<String>,
}

/// A part of the catalog, by kind and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::validation) enum PartAlias {
    /// A switch.
    Switch(String),
    /// A node.
    Node(String),
}
