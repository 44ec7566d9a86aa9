//! What a value of an axis touches, so that the rest is not computed again.

use super::super::axes::{Axes, Target};
use crate::parallelism::Sharding;
use crate::scenario::Scenario;

/// The keys of requests that come, and of tables of them.
pub(super) const LOAD: [&str; 4] =
    ["serving.arrivals", "serving.input_tokens", "serving.output_tokens", "serving.prefix_hit"];

/// What a value of an axis touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sweep) enum Touches {
    /// The catalog, and all that is bound from it.
    Catalog,
    /// What is built or run.
    Work,
    /// Prices and sites of the catalog: what is built stays.
    Prices,
    /// Money only.
    Money,
    /// What requests come, and nothing that serves them.
    Load,
    /// A degree or a policy of the layout that nothing else is bound by.
    Layout,
}

/// The keys of a layout that decide nothing but the layout; sharding decides what is overlapped, too.
const OWN: [&str; 9] = [
    "training.layout.tensor",
    "training.layout.pipeline",
    "training.layout.virtual_stages",
    "training.layout.context",
    "training.layout.expert",
    "training.layout.micro_batch",
    "training.layout.schedule",
    "training.layout.recompute",
    "training.layout.sequence_parallel",
];

/// Keys of what serves that say nothing of the requests that may come.
const SERVES: [&str; 5] = ["serving.layout", "serving.model", "serving.engine", "serving.weights", "serving.kv_cache"];

/// Whether a key is one of these, or within a table of them.
pub(super) fn is_of(key: &str, tables: &[&str]) -> bool {
    tables.iter().any(|table| key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// What of a scenario is by itself, so that keys of it touch nothing else.
#[derive(Clone, Copy, Debug)]
pub(in crate::sweep) struct Apart {
    /// The layout of training: it is given and shards over no groups, whose size follows from the cluster.
    layout: bool,
    /// The requests: they are no agents', and no key is an axis that says which of them may come.
    load: bool,
}

impl Apart {
    /// Of a scenario and the axes over it.
    pub(in crate::sweep) fn new(scenario: &Scenario, axes: &Axes) -> Self {
        let keys = || axes.columns.iter().map(|column| column.key.as_str());
        let alone = scenario.training.as_ref().is_some_and(|training| {
            training.search.is_none() && training.layout.sharding != Sharding::Hybrid && training.plan.stages.is_empty()
        });
        let shared = |key: &str| key.starts_with("training.layout.shard") || key == "training.layout";
        let served = scenario.serving.is_some() && scenario.training.is_none() && scenario.agents.is_none();
        let other = |key: &str| {
            key.starts_with("agents") || (key.starts_with("serving") && !is_of(key, &LOAD) && !is_of(key, &SERVES))
        };
        Self { layout: alone && !keys().any(shared), load: served && !keys().any(other) }
    }

    /// The same where the requests are not.
    pub(in crate::sweep) const fn without_load(self) -> Self {
        Self { load: false, ..self }
    }
}

impl Touches {
    /// Of a key.
    pub(in crate::sweep) fn of(key: &str, target: &Target, apart: Apart) -> Self {
        match target {
            Target::Catalog(field) if ["prices", "sites"].contains(&field.folder) => Self::Prices,
            Target::Catalog(_) => Self::Catalog,
            Target::Scenario if key.starts_with("finance.") => Self::Money,
            Target::Scenario if apart.load && is_of(key, &LOAD) => Self::Load,
            Target::Scenario if apart.layout && OWN.contains(&key) => Self::Layout,
            Target::Scenario => Self::Work,
        }
    }
}
