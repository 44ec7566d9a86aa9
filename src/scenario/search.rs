//! A layout that is left to a search: what of it is settled, and what is wanted.

use super::software::{Overlap, StepEfficiency};
use super::{Cluster, MissingEfficiency, Software, Training};
use crate::parallelism::{Objective, Sharding, Space};

/// What a search of layouts may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutSearch {
    /// What is wanted of it.
    pub objective: Objective,
    /// The keys of the layout, those that are given and those that are open.
    pub space: Space,
    /// Overlap of tensor, data and expert communication that is given.
    pub overlap: [Option<bool>; 3],
}

impl LayoutSearch {
    /// Whether the search settles that key of the scenario.
    pub fn settles(&self, key: &str) -> bool {
        let space = &self.space;
        match key {
            "training.layout.tensor" => space.tensor.is_none(),
            "training.layout.context" => space.context.is_none(),
            "training.layout.context_exchange" => space.context_exchange.is_none(),
            "training.layout.pipeline" => space.pipeline.is_none(),
            "training.layout.expert" => space.expert.is_none(),
            "training.layout.virtual_stages" => space.virtual_stages.is_none(),
            "training.layout.micro_batch" => space.micro_batch.is_none(),
            "training.layout.schedule" => space.schedule.is_none(),
            "training.layout.sharding" => space.sharding.is_none(),
            "training.layout.recompute" => space.recompute.is_none(),
            "training.layout.sequence_parallel" => space.sequence_parallel.is_none(),
            "software.overlap.tensor" => self.overlap[0].is_none(),
            "software.overlap.data" => self.overlap[1].is_none(),
            _ => false,
        }
    }

    /// The overlaps to choose from where weights are fully sharded or not: what is given, or else whether to use what the
    /// software has.
    pub fn overlaps(&self, training: &Training, sharding: Sharding) -> Vec<Overlap> {
        let Software { framework, date, .. } = training.software;
        let usual = training.efficiency_source.usual_overlap(framework, date, sharding.weights());
        let choices = |given: Option<bool>, usual: bool| match (given, usual) {
            (Some(given), _) => vec![given],
            (None, true) => vec![true, false],
            (None, false) => vec![false],
        };
        let [tensor, data, expert] = self.overlap;
        let (tensor, data, expert) = (choices(tensor, usual.0), choices(data, usual.1), expert.unwrap_or(false));
        tensor.iter().flat_map(|&tensor| data.iter().map(move |&data| Overlap { tensor, data, expert })).collect()
    }
}

impl Training {
    /// The same job with other overlap.
    ///
    /// # Errors
    /// Where constants are missing, which they are not for a job that was bound once.
    pub fn with_overlap(&self, overlap: Overlap, cluster: &Cluster) -> Result<Self, MissingEfficiency> {
        let software = Software { overlap, ..self.software };
        let efficiency = StepEfficiency::bind(
            &self.efficiency_source,
            &cluster.accelerator,
            cluster.node.host,
            self.job.precision,
            &software,
        )?;
        Ok(Self { software, efficiency, ..self.clone() })
    }
}
