//! What does not depend on the layout, bound once; and one layout's evaluation.

use super::step::StepInputs;
use super::{BuiltCluster, Failures, Infeasible};
use crate::memory::{self, MemoryFootprint};
use crate::parallelism::Layout;
use crate::reliability::Goodput;
use crate::scenario::{Scenario, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::training::{StepModel, TrainingEstimate};
use crate::units::{Bandwidth, Bytes, Seconds, Usd};
use crate::workload::{DataPipeline, Offload, TrainingJob};

/// The useful share of wall time below which a run is taken as never ending.
const LEAST_GOODPUT: f64 = 0.01;

/// Everything that evaluating a layout needs; `Copy`.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// The step-time model.
    pub step: StepModel,
    /// Accelerators at work.
    pub accelerators: u32,
    /// Memory that a job may use.
    pub usable_memory: Bytes,
    pub(super) allowances: memory::Software,
    /// What interrupts the job, and what that costs it.
    pub failures: Failures,
    checkpoint_interval: Option<Seconds>,
    data: DataPipeline,
    storage_read: Bandwidth,
    costs: CostTotals,
}

/// One layout's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The layout, its data-parallel degree filled in.
    pub layout: Layout,
    /// The pipeline stage that needs the most memory.
    pub worst_stage: u32,
    /// What that stage needs.
    pub memory: MemoryFootprint,
    /// The step.
    pub step: TrainingEstimate,
    /// The useful share of wall time.
    pub goodput: Goodput,
    /// Time of the run without failures.
    pub duration: Seconds,
    /// Dollars an hour.
    pub unit_costs: UnitCosts,
    /// Dollars of the run.
    pub run: Usd,
}

/// A layout that fits in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The layout, its data-parallel degree filled in.
    pub layout: Layout,
    /// The pipeline stage that needs the most memory.
    pub worst_stage: u32,
    /// What that stage needs.
    pub memory: MemoryFootprint,
}

/// What a step's time is not known of.
pub(super) fn untimed(job: &TrainingJob) -> Option<&'static str> {
    (job.offload != Offload::None).then_some("offloading")
}

impl Prepared {
    /// Binds the training job of a scenario whose cluster is built.
    pub fn new(scenario: &Scenario, training: &Training, built: &BuiltCluster) -> Self {
        let cluster = &scenario.cluster;
        let allowances =
            memory::Software::new(&training.memory, training.framework_memory, training.software.attention_kernel);
        Self {
            step: StepInputs {
                transformer: training.transformer,
                job: training.job,
                node: &cluster.node,
                at_work: built.each,
                accelerators: cluster.accelerators,
                accelerator: &cluster.accelerator,
                fabric: &cluster.fabric,
                collectives: &cluster.collectives,
                topology: &built.topology,
                software: &training.software,
                efficiency: training.efficiency,
                selective: training.framework_memory.selective_recompute,
            }
            .bind(),
            accelerators: cluster.accelerators,
            usable_memory: allowances.usable(cluster.accelerator.memory_capacity),
            allowances,
            failures: Failures::new(cluster, training, built),
            checkpoint_interval: training.checkpoint_interval,
            data: training.plan.data,
            storage_read: cluster.storage.read_bandwidth.value * f64::from(cluster.storage_units),
            costs: CostTotals::new(&built.costs, &built.drivers, u64::from(cluster.accelerators), &scenario.finance),
        }
    }

    /// Evaluates one layout; its data-parallel degree follows from the accelerators at work.
    ///
    /// # Errors
    /// When the layout cannot be, its worst stage does not fit, or failures leave the run no progress.
    pub fn point(&self, layout: &Layout) -> Result<Point, Infeasible> {
        let layout = layout.over(self.accelerators)?;
        layout.check(&self.step.transformer, &self.step.job)?;
        self.timed(self.fit(layout)?)
    }

    /// Whether a layout that `Layout::check` let pass fits in memory. What is overlapped doesn't matter for it.
    ///
    /// # Errors
    /// When its worst stage does not fit.
    pub fn fit(&self, layout: Layout) -> Result<Fit, Infeasible> {
        let (worst_stage, memory) = memory::worst(&self.step.transformer, &self.step.job, &layout, &self.allowances);
        if memory.fits(self.usable_memory) {
            Ok(Fit { layout, worst_stage, memory })
        } else {
            Err(Infeasible::Memory { stage: worst_stage, footprint: memory, usable: self.usable_memory })
        }
    }

    /// All figures of a layout that fits.
    ///
    /// # Errors
    /// When failures leave the run no progress, or the time of something asked for is not known.
    pub fn timed(&self, fit: Fit) -> Result<Point, Infeasible> {
        let Fit { layout, worst_stage, memory } = fit;
        untimed(&self.step.job).map_or(Ok(()), |what| Err(Infeasible::Untimed(what)))?;
        let step = self.fed(self.step.estimate(&layout));
        let iteration = step.iteration();
        let hazards = &self.failures.hazards;
        let goodput = match self.checkpoint_interval {
            Some(interval) if interval < hazards.checkpoint.pending => {
                return Err(Infeasible::CheckpointTooSoon { interval, storing: hazards.checkpoint.pending });
            }
            // Nothing is kept within a step.
            Some(interval) => hazards.goodput_at(interval.max(iteration)),
            None => hazards.goodput(iteration),
        };
        if goodput.ratio < LEAST_GOODPUT || goodput.ratio.is_nan() {
            let (ratio, interval) = (goodput.ratio, goodput.checkpoint_interval);
            return Err(Infeasible::Endless { ratio, mtbf: hazards.mtbf, interval });
        }
        let duration = iteration * self.step.job.steps();
        Ok(Point {
            layout,
            worst_stage,
            memory,
            step,
            goodput,
            duration,
            unit_costs: self.costs.unit_costs(goodput.ratio),
            run: self.costs.run(duration, goodput.ratio),
        })
    }

    /// Dollars an hour at a goodput.
    pub(super) fn unit_costs(&self, goodput: f64) -> UnitCosts {
        self.costs.unit_costs(goodput)
    }

    /// A step with its wait for data.
    pub(super) fn fed(&self, mut step: TrainingEstimate) -> TrainingEstimate {
        let supply = self.data.supply(step.tokens, self.storage_read, self.accelerators);
        step.other.data = self.data.wait(supply, step.iteration());
        step
    }

    /// The point with the time and cost of a run that is more than steps of one kind.
    pub(super) fn of_run(&self, point: &Point, duration: Seconds) -> Point {
        Point { duration, run: self.costs.run(duration, point.goodput.ratio), ..*point }
    }
}
