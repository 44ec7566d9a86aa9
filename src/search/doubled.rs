//! What would let accelerators serve more: each of what they have doubled by itself, and the best way found anew.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::catalog::{Accelerator, Entry, Node};
use crate::scenario::{Cluster, Scenario};
use crate::units::RequestRate;

/// Of two that help, the lesser is told too where it helps at least so much of what the other does.
const NEAR: f64 = 0.5;
/// What serves by less than this share more is no help.
const HELPS: f64 = 0.01;
/// By how much each is more.
const FACTOR: f64 = 2.0;

/// Something that accelerators have so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Capacity of their memory.
    Memory,
    /// Bandwidth of it.
    Bandwidth,
    /// Arithmetic.
    Compute,
    /// Bandwidth of the links between them, within nodes and between.
    Network,
}

impl Resource {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::Bandwidth, Self::Compute, Self::Network];

    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Bandwidth => "memory bandwidth",
            Self::Compute => "compute",
            Self::Network => "network",
        }
    }
}

/// What accelerators would serve with twice as much of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubled {
    /// What.
    pub of: Resource,
    /// Requests that they would serve at most.
    pub most: RequestRate,
    /// The same over what they do serve.
    pub ratio: f64,
}

impl Display for Doubled {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} with twice the {}", self.most, self.of.word())
    }
}

/// A scenario whose accelerators have twice as much of something.
pub(super) fn doubled(scenario: &Scenario, of: Resource) -> Scenario {
    let mut scenario = scenario.clone();
    let Cluster { node, accelerator, prefill, fabric, .. } = &mut scenario.cluster;
    let own = prefill.iter_mut().map(|own| (&mut own.node, &mut own.accelerator));
    for (node, accelerator) in std::iter::once((node, accelerator)).chain(own) {
        match of {
            Resource::Network => faster_links(node),
            _ => Arc::make_mut(accelerator).part = with(accelerator, of),
        }
    }
    if of == Resource::Network {
        Arc::make_mut(&mut fabric.nic).part.speed = fabric.nic.speed * FACTOR;
    }
    if let Some(slice) = scenario.serving.as_mut().and_then(|serving| serving.features.slice.as_mut()) {
        slice.accelerator = Arc::new(with(&slice.accelerator, of));
    }
    scenario
}

fn faster_links(node: &mut Arc<Entry<Node>>) {
    let scale_up = &mut Arc::make_mut(node).part.scale_up;
    scale_up.bandwidth_per_direction = scale_up.bandwidth_per_direction * FACTOR;
    scale_up.peer_bandwidth = scale_up.peer_bandwidth.map(|to_one| to_one * FACTOR);
}

fn with(accelerator: &Accelerator, of: Resource) -> Accelerator {
    let mut more = accelerator.clone();
    match of {
        Resource::Memory => more.memory_capacity = more.memory_capacity * FACTOR,
        Resource::Bandwidth => more.memory_bandwidth = more.memory_bandwidth * FACTOR,
        Resource::Compute => more.peak_dense = more.peak_dense.scaled(FACTOR),
        Resource::Network => {}
    }
    more
}

/// The one that helps most, and the next where that is near; none where nothing does.
pub(super) fn that_help(mut all: Vec<Doubled>) -> Vec<Doubled> {
    all.retain(|doubled| doubled.ratio - 1.0 >= HELPS);
    all.sort_by(|one, other| other.ratio.total_cmp(&one.ratio));
    let least = all.first().map_or(0.0, |best| (best.ratio - 1.0) * NEAR);
    all.retain(|doubled| doubled.ratio - 1.0 >= least);
    all.truncate(2);
    all
}
