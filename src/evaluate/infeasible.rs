//! Why a scenario cannot be: a result with numbers, not an error.

use super::NoLayout;
use crate::facility::{Capacity, TooDense};
use crate::inference::{MissingServing, Short};
use crate::memory::MemoryFootprint;
use crate::parallelism::LayoutError;
use crate::scenario::GroupShare;
use crate::topology::{Tier, TopologyError};
use crate::units::{Bytes, RequestRate, Seconds, Watts, counted};

/// A typed reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Infeasible {
    /// The layout cannot be spread.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// Requests are longer than what the engine takes.
    #[error("prompt and answer are {tokens} tokens, and the engine takes {most}")]
    Context {
        /// Tokens of prompt and answer.
        tokens: u64,
        /// The most that it takes.
        most: u64,
    },
    /// A stage needs more than an accelerator has.
    #[error("stage {stage} needs {} a GPU, {} of them usable: short by {}", footprint.total(), usable, footprint.total() - *usable)]
    Memory {
        /// The worst pipeline stage.
        stage: u32,
        /// What it needs.
        footprint: MemoryFootprint,
        /// What is usable.
        usable: Bytes,
    },
    /// None of the layouts that were searched works.
    #[error("{0}")]
    NoLayout(Box<NoLayout>),
    /// Accelerators are no whole number of replicas.
    #[error("{accelerators} accelerators are no whole number of replicas of {each}")]
    PartReplica {
        /// Accelerators at work.
        accelerators: u64,
        /// Accelerators of a replica.
        each: u64,
    },
    /// Replicas that would lie in two scale-up domains each.
    #[error("{} replicas of {each} do not each lie in a domain of {domain}: {whole} do", accelerators / each)]
    Straddling {
        /// Accelerators at work.
        accelerators: u64,
        /// Accelerators of a replica.
        each: u64,
        /// Accelerators of a domain that are at work.
        domain: u64,
        /// Replicas that do.
        whole: u64,
    },
    /// Pools of prefill and decode that do not fill the accelerators.
    #[error("{accelerators} accelerators are not both whole prefill workers and whole decode replicas")]
    PartPools {
        /// Accelerators at work.
        accelerators: u64,
    },
    /// Nodes of one kind that a pool has to itself, and does not fill.
    #[error("{accelerators} accelerators of {} {}", pool.nodes(), pool.unfilled(*each, *domain, *whole, *spares))]
    PartPool {
        /// Whose they are.
        pool: Pool,
        /// Accelerators of its nodes.
        accelerators: u64,
        /// Accelerators of a worker or replica.
        each: u64,
        /// Accelerators of a scale-up domain that are at work.
        domain: u64,
        /// Whole ones that they hold.
        whole: u64,
        /// Of those, how many are to stand by.
        spares: u64,
    },
    /// Nodes of prefill's own on which no worker works.
    #[error("no prefill worker works on `{node}`, of up to {most} accelerators: {widest}")]
    NoWorker {
        /// The node.
        node: String,
        /// Accelerators of the one of most ranks that a search tries.
        most: u64,
        /// Why that one does not.
        widest: Box<Self>,
    },
    /// A replica of several ranks on slices of accelerators.
    #[error("slices of accelerators do not reach each other's memory, and a replica has {ranks} ranks")]
    SlicedRanks {
        /// Its ranks.
        ranks: u64,
    },
    /// Pools whose requests are to be sent to their adapters.
    #[error("requests are sent to the replica that keeps their adapter, which pools of prefill and decode do not do")]
    RoutedPools,
    /// Pools whose answers are of one token.
    #[error("answers are of one token, which the prefill makes: a pool of decode has nothing to do")]
    NothingToDecode,
    /// What drafts cannot be spread as the model is.
    #[error("the draft runs on the ranks of the model: {0}")]
    Draft(String),
    /// More requests come than the replicas serve.
    #[error("{} come, and {} {} at most: {}", asked.told_as_more(), serve(*replicas), most.told_as_most(), runs_out(*short))]
    Overload {
        /// What comes.
        asked: RequestRate,
        /// What is served with caches full.
        most: RequestRate,
        /// The replicas.
        replicas: u64,
        /// What runs out.
        short: Short,
    },
    /// A request by itself misses a limit of a latency.
    #[error(
        "{table}.{key} is {limit}, and a replica with one request at once comes to {got}, {} more", *got - *limit
    )]
    Limit {
        /// The table that the limit is in.
        table: &'static str,
        /// The limit's key.
        key: &'static str,
        /// The limit.
        limit: Seconds,
        /// What it comes to.
        got: Seconds,
    },
    /// Spare replicas leave none to serve.
    #[error("{accelerators} accelerators leave no replica of {each} beside {spares} to spare")]
    NoReplicaLeft {
        /// Accelerators at work.
        accelerators: u64,
        /// Accelerators of a replica.
        each: u64,
        /// Replicas that stand by.
        spares: u64,
    },
    /// Constants of serving are missing.
    #[error("{0}")]
    Serving(#[from] MissingServing),
    /// A replica holds no request of the asked length.
    #[error(
        "a request of {tokens} tokens takes {request} of the cache, and {pool} are left for it of {usable} a GPU beside {} of weights and {} of activations",
        footprint.weights, footprint.activations
    )]
    NoRequestFits {
        /// Tokens of the request.
        tokens: u64,
        /// What it takes of the cache, on one rank.
        request: Bytes,
        /// What the engine leaves for the cache.
        pool: Bytes,
        /// The engine's memory.
        footprint: MemoryFootprint,
        /// What is usable.
        usable: Bytes,
    },
    /// Weights and a cache that was sized without regard to activations leave them too little.
    #[error("beside weights and cache a forward pass lacks {lacking} of {usable} a GPU")]
    NoForwardPass {
        /// What it lacks.
        lacking: Bytes,
        /// What is usable.
        usable: Bytes,
    },
    /// The same of prefill's pool, and a prompt.
    #[error("of prefill's pool: {0}")]
    Prefill(Box<Self>),
    /// Nodes would be part filled.
    #[error(
        "{accelerators} accelerators{} do not fill nodes of {per_node}; {}",
        whose(*share), whole_nodes(*accelerators, *per_node, *share)
    )]
    PartNode {
        /// Accelerators asked for.
        accelerators: u32,
        /// Accelerators of a node.
        per_node: u32,
        /// What part of the cluster's they are.
        share: GroupShare,
    },
    /// A pod that is no number of whole nodes.
    #[error("a pod of {pod} accelerators is no number of whole nodes of {per_node}")]
    PartPod {
        /// Accelerators of a pod.
        pod: u32,
        /// Accelerators of a node.
        per_node: u32,
    },
    /// An oversubscription of switches above which nothing is built.
    #[error(
        "an oversubscription of {asked} at the {} switches, above which nothing is built: {} joins {nodes} nodes",
        tier.word(),
        if *tiers == 1 { "one tier".to_owned() } else { format!("a network of {tiers} tiers") }
    )]
    NothingAbove {
        /// The tier of the switches.
        tier: Tier,
        /// What was asked for.
        asked: f64,
        /// Tiers of switches that are built.
        tiers: u32,
        /// Nodes to join.
        nodes: u32,
    },
    /// Sites that nodes cannot be shared out over evenly.
    #[error("{nodes} nodes, spares among them, do not divide over {sites} sites")]
    PartSite {
        /// Nodes to join.
        nodes: u32,
        /// Sites.
        sites: u32,
    },
    /// The fabric cannot be built.
    #[error("{0}")]
    Topology(#[from] TopologyError),
    /// A network beside the fabric whose switches leave no port for an uplink.
    #[error("network `{id}`: a switch of {radix} ports cannot take devices and their uplinks")]
    SideNetwork {
        /// Its catalog id.
        id: String,
        /// Ports of its switch.
        radix: u32,
    },
    /// More nodes than the facility may feed.
    #[error(
        "{nodes} nodes need {needs} with cooling and headroom, and the budget of {} holds {} of them, {} accelerators",
        capacity.budget, capacity.nodes, capacity.accelerators
    )]
    PowerBudget {
        /// Nodes bought.
        nodes: u64,
        /// Power of the facility that they need, headroom among it.
        needs: Watts,
        /// What the budget holds.
        capacity: Capacity,
    },
    /// Failures come so often that hardly anything is ever done.
    #[error(
        "the run never ends: interrupted every {mtbf} on average, work of {interval} between checkpoints is of use for {:.3}% of the time",
        ratio * 100.0
    )]
    Endless {
        /// Useful share of wall time.
        ratio: f64,
        /// Mean time between interruptions.
        mtbf: Seconds,
        /// Useful work between two checkpoints.
        interval: Seconds,
    },
    /// Something whose memory is known and whose time is not.
    #[error("the step time of {0} is not modelled; its memory is: ask `clusterplan memory`")]
    Untimed(&'static str),
    /// The host does not hold what is offloaded.
    #[error("stage {stage} offloads {offloaded} a GPU, and the host has {capacity} for each: short by {}", *offloaded - *capacity)]
    HostMemory {
        /// The pipeline stage that needs most of the accelerator.
        stage: u32,
        /// What it leaves with the host.
        offloaded: Bytes,
        /// One accelerator's share of the host's memory.
        capacity: Bytes,
    },
    /// Checkpoints that are asked for faster than they are stored.
    #[error("a checkpoint every {interval} of work is not stored in time: it takes {storing} to store")]
    CheckpointTooSoon {
        /// Useful work between two checkpoints.
        interval: Seconds,
        /// How long one is not yet stored.
        storing: Seconds,
    },
    /// A stage of the run that cannot be.
    #[error("stage \"{name}\": {reason}")]
    Stage {
        /// What it is called.
        name: String,
        /// Why.
        reason: Box<Infeasible>,
    },
    /// Inputs whose figures are no numbers.
    #[error("{what} is {value}, which is no number that anything could be built by")]
    NotFinite {
        /// The figure.
        what: &'static str,
        /// What it came to.
        value: f64,
    },
    /// A part does not fit a rack of the site.
    #[error("{0}")]
    Racks(#[from] TooDense),
}

impl Infeasible {
    /// What kind of reason it is, without its numbers.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoLayout(_) => "no layout works",
            Self::Memory { .. } => "a stage does not fit in memory",
            Self::HostMemory { .. } => "the host does not hold what is offloaded",
            Self::Layout(_) | Self::Draft(_) | Self::SlicedRanks { .. } => "the layout cannot be spread",
            Self::PartNode { .. } | Self::PartPod { .. } | Self::PartSite { .. } => "nodes would be part filled",
            Self::Topology(_) | Self::NothingAbove { .. } | Self::SideNetwork { .. } => "the network cannot be built",
            Self::Endless { .. } => "failures leave no progress",
            Self::CheckpointTooSoon { .. } => "checkpoints are not stored in time",
            Self::NoRequestFits { .. } | Self::NoForwardPass { .. } | Self::Prefill(_) => {
                "a replica does not hold a request"
            }
            Self::Context { .. } => "requests are longer than what the engine takes",
            Self::Overload { .. } => "more requests come than are served",
            Self::Limit { .. } => "a request by itself misses a limit",
            Self::PartReplica { .. }
            | Self::PartPools { .. }
            | Self::PartPool { .. }
            | Self::NoReplicaLeft { .. }
            | Self::NoWorker { .. } => "the accelerators make no whole replicas",
            Self::Straddling { .. } => "replicas would lie in two scale-up domains",
            Self::RoutedPools => "pools of prefill and decode do not send requests to their adapters",
            Self::NothingToDecode => {
                "answers are of one token, which the prefill makes: a pool of decode has nothing to do"
            }
            Self::PowerBudget { .. } => "more power is needed than there is",
            Self::Racks(_) => "a part does not fit a rack",
            Self::Serving(_) => "constants of serving are missing",
            Self::Untimed(_) => "its time is not modelled",
            Self::NotFinite { .. } => "a figure is no number that anything could be built by",
            Self::Stage { reason, .. } => reason.kind(),
        }
    }
}

/// What replicas do, with how many there are.
fn serve(replicas: u64) -> String {
    format!("{} serve{}", counted(replicas, "replica"), if replicas == 1 { "s" } else { "" })
}

/// What keeps replicas from serving more, in words.
const fn runs_out(short: Short) -> &'static str {
    match short {
        Short::Cache => "caches are full",
        Short::Sequences => {
            "as many requests run as engines take at once (`max_num_seqs`), and others wait for a place"
        }
        Short::Adapters => {
            "as many different adapters run as engines keep in memory (`max_loras`, serving.adapters.resident), and others wait for a place"
        }
        Short::Prefill => "no more time is left for prompts",
        Short::Steps => "no more time is left for tokens of answers",
        Short::Sessions => {
            "sessions that wait do not all find room beside what runs, and others compute their prompts again"
        }
        Short::Transfer => "the links between prefill and decode carry no more caches",
    }
}

/// A pool that has nodes of its own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Prefill workers.
    Prefill,
    /// Decode replicas.
    Decode,
}

impl Pool {
    const fn nodes(self) -> &'static str {
        match self {
            Self::Prefill => "cluster.prefill",
            Self::Decode => "decode, those beside cluster.prefill,",
        }
    }

    /// What they do not hold, in words.
    fn unfilled(self, each: u64, domain: u64, whole: u64, spares: u64) -> String {
        let parts = match self {
            Self::Prefill => "prefill workers",
            Self::Decode => "decode replicas",
        };
        let within = if each <= domain { format!(", each within a domain of {domain}") } else { String::new() };
        if whole > 0 && whole <= spares {
            return format!("hold no more {parts} of {each}{within} than the {spares} to spare");
        }
        format!("are no whole number of {parts} of {each}{within}")
    }
}

/// Which of a cluster's accelerators are meant.
fn whose(share: GroupShare) -> String {
    match share {
        GroupShare::All => String::new(),
        GroupShare::Beside(others) => format!(" beside the {others} of cluster.prefill"),
        GroupShare::Prefill => " of cluster.prefill".to_owned(),
    }
}

/// The counts around that fill nodes, as the key has them that says so.
fn whole_nodes(accelerators: u32, per_node: u32, share: GroupShare) -> String {
    let below = u64::from(accelerators / per_node) * u64::from(per_node);
    let above = below + u64::from(per_node);
    let (key, others) = match share {
        GroupShare::Beside(others) => ("cluster.accelerators of ", u64::from(others)),
        GroupShare::All | GroupShare::Prefill => ("", 0),
    };
    let (less, more) = (below + others, above + others);
    if below == 0 { format!("{key}{more} would") } else { format!("{key}{less} or {more} would") }
}
