//! What does not depend on the layout, bound once; and one layout's evaluation.

use super::step::StepInputs;
use super::{BuiltCluster, Infeasible};
use crate::memory::{self, MemoryFootprint};
use crate::parallelism::Layout;
use crate::reliability::{ADAM_STATE_PER_PARAMETER, Checkpoint, Components, Goodput, Interruptions, Recovery, goodput};
use crate::scenario::{Scenario, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::training::{StepModel, TrainingEstimate};
use crate::units::{Bytes, Factor, Seconds, Usd};
use crate::workload::{Offload, TrainingJob};

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
    allowances: memory::Software,
    mtbf: Seconds,
    checkpoint: Checkpoint,
    recovery: Recovery,
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
fn untimed(layout: &Layout, job: &TrainingJob) -> Option<&'static str> {
    let without = [
        (layout.shard_ranks > 0, "sharding in groups"),
        (job.offload != Offload::None, "offloading"),
        (job.expert_imbalance != Factor::ONE, "unevenly loaded experts"),
    ];
    without.into_iter().find_map(|(asked, what)| asked.then_some(what))
}

impl Prepared {
    /// Binds the training job of a scenario whose cluster is built.
    pub fn new(scenario: &Scenario, training: &Training, built: &BuiltCluster) -> Self {
        let cluster = &scenario.cluster;
        let allowances =
            memory::Software::new(&training.memory, training.framework_memory, training.software.attention_kernel);
        let parameters = training.transformer.parameters().total() as f64;
        let units = f64::from(cluster.storage_units);
        let trays = cluster.node.accelerators / cluster.node.accelerators_per_tray;
        let nics_per_tray = u64::from(cluster.node.nic_slots.count / trays);
        let components = Components {
            accelerators: u64::from(cluster.accelerators),
            nics: u64::from(cluster.accelerators / cluster.node.accelerators_per_tray) * nics_per_tray,
            links: built.drivers.cables,
            hosts: u64::from(cluster.accelerators / cluster.node.accelerators_per_tray),
        };
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
            mtbf: Interruptions::new(&cluster.reliability.mtbf, &components).mtbf(),
            checkpoint: Checkpoint::new(
                ADAM_STATE_PER_PARAMETER * parameters,
                cluster.storage.write_bandwidth.value * units,
                cluster.storage.read_bandwidth.value * units,
                training.checkpoint,
                cluster.reliability.recovery.snapshot.value,
            ),
            recovery: Recovery::from(&cluster.reliability.recovery),
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
        untimed(&layout, &self.step.job).map_or(Ok(()), |what| Err(Infeasible::Untimed(what)))?;
        let step = self.step.estimate(&layout);
        let iteration = step.iteration();
        let goodput = goodput(self.mtbf, &self.checkpoint, self.recovery, iteration);
        if goodput.ratio < LEAST_GOODPUT || goodput.ratio.is_nan() {
            let (ratio, interval) = (goodput.ratio, goodput.checkpoint_interval);
            return Err(Infeasible::Endless { ratio, mtbf: self.mtbf, interval });
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
}
