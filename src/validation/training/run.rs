//! A row bound to all but the constants, so that fits need not read it again.

use std::sync::Arc;

use super::metric::{Counting, Metric};
use crate::calibration::{Deviation, MeasuredRun};
use crate::catalog::node::Host;
use crate::catalog::training_efficiency::TrainingEfficiency;
use crate::catalog::{Accelerator, Entry};
use crate::evaluate::with_efficiency;
use crate::parallelism::Layout;
use crate::scenario::{MissingEfficiency, Software, StepEfficiency};
use crate::training::StepModel;
use crate::validation::outcome::Prediction;

/// How far times of steps scatter for reasons that the form does not have, as a logarithm.
const SCATTER: f64 = 0.06;

/// A published run, bound to hardware, model and layout.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) source: String,
    pub(super) model: String,
    pub(super) holdout: bool,
    pub(super) kept: bool,
    pub(super) metric: Metric,
    pub(super) counting: Option<Counting>,
    pub(super) accelerator: Arc<Entry<Accelerator>>,
    pub(super) host: Host,
    pub(super) gpus: u32,
    pub(super) software: Software,
    pub(super) step: StepModel,
    pub(super) layout: Layout,
}

impl Run {
    /// What was trained, as published.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether fits leave it out, to be judged by it.
    pub const fn is_holdout(&self) -> bool {
        self.holdout
    }

    /// Whether it is the same measurement: the same job of the same source on the same accelerators, with the same result.
    pub fn is_again(&self, other: &Self) -> bool {
        self.source == other.source
            && self.model == other.model
            && self.accelerator.id == other.accelerator.id
            && (self.gpus, self.layout, self.step.job) == (other.gpus, other.layout, other.step.job)
            && self.metric.measured.to_bits() == other.metric.measured.to_bits()
    }

    /// Whether its source stays in every fit, because it alone identifies some constants.
    pub const fn is_kept(&self) -> bool {
        self.kept
    }

    pub(super) fn efficiency(&self, set: &TrainingEfficiency) -> Result<StepEfficiency, MissingEfficiency> {
        StepEfficiency::bind(set, &self.accelerator, self.host, self.step.job.precision, &self.software)
    }

    /// The run with these constants.
    pub fn predict(&self, efficiency: StepEfficiency) -> Prediction {
        Prediction {
            metric: self.metric.name.to_owned(),
            measured: self.metric.measured,
            predicted: self.figure(&efficiency),
            convention: self.counting.map(|counting| counting.to_string()),
            gpus: Some(self.gpus),
        }
    }

    fn figure(&self, efficiency: &StepEfficiency) -> f64 {
        let step = with_efficiency(self.step, &self.accelerator, &self.software, *efficiency);
        let estimate = step.estimate(&self.layout);
        let (model, job) = (&self.step.transformer, &self.step.job);
        self.metric.predicted(&estimate, &self.layout, model, job, self.counting)
    }
}

impl MeasuredRun for Run {
    type Set = TrainingEfficiency;
    type Bound = StepEfficiency;

    fn source(&self) -> &str {
        &self.source
    }

    fn bind(&self, set: &TrainingEfficiency) -> Option<StepEfficiency> {
        self.efficiency(set).ok()
    }

    fn deviations(&self, efficiency: &StepEfficiency) -> Vec<Deviation> {
        vec![Deviation { error: (self.figure(efficiency) / self.metric.measured).ln(), scatter: SCATTER, weight: 1.0 }]
    }
}
