//! The weakest basis behind each group of figures.

use crate::provenance::{Basis, weakest};
use crate::scenario::Scenario;

use super::BuiltCluster;

/// The weakest basis of each group's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bases {
    /// Memory.
    pub memory: Basis,
    /// Step time.
    pub training: Basis,
    /// Failures and recovery.
    pub goodput: Basis,
    /// Counts and prices of the fabric.
    pub fabric: Basis,
    /// Power.
    pub facility: Basis,
    /// Money.
    pub cost: Basis,
}

impl Bases {
    pub(super) fn new(scenario: &Scenario, built: &BuiltCluster) -> Self {
        let (cluster, training) = (&scenario.cluster, &scenario.training);
        let all = |bases: &[Basis]| bases.iter().copied().fold(Basis::Datasheet, weakest);
        let fabric_parts = built.parts.iter().map(|part| part.basis).fold(cluster.fabric.entry.basis(), weakest);
        Self {
            memory: all(&[training.model.basis(), cluster.accelerator.basis(), training.memory.basis()]),
            training: all(&[
                training.model.basis(),
                cluster.accelerator.basis(),
                training.efficiency_source.basis(),
                cluster.collectives.basis(),
                cluster.fabric.entry.basis(),
            ]),
            goodput: all(&[cluster.reliability.basis(), cluster.storage.basis()]),
            fabric: fabric_parts,
            facility: all(&[cluster.node.basis(), cluster.site.basis(), cluster.power.basis()]),
            cost: built.costs.basis,
        }
    }
}
