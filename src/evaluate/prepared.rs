//! What does not depend on the layout, bound once; and one layout's evaluation.

use super::step::StepInputs;
use super::{BuiltCluster, Failures, Infeasible, Run};
use crate::catalog::memory_tier::TierMedium;
use crate::memory::{self, MemoryFootprint};
use crate::parallelism::Layout;
use crate::reliability::{Goodput, Hazards};
use crate::scenario::{Cluster, Finance, Scenario, StageKind, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::training::{HostMemory, Microbatch, Offloaded, Replicas, StepModel, TrainingEstimate, adapters};
use crate::units::{Bandwidth, Bytes, Seconds, Usd};
use crate::workload::{DataPipeline, TrainingJob};

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
    /// The best interval between checkpoints, were an iteration no time.
    best_interval: Seconds,
    /// The memory that keeps what is offloaded, and what of it is one accelerator's.
    host: Option<(HostMemory, Bytes)>,
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
    /// Time of the run with failures: of all its stages, each at its own goodput.
    pub effective: Seconds,
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

/// The memory that keeps what is offloaded, and what of it is one accelerator's.
fn host_memory(training: &Training, cluster: &Cluster) -> Option<(HostMemory, Bytes)> {
    let tier = training.host_memory.as_ref()?;
    let host = HostMemory {
        read: tier.read_bandwidth.value,
        write: tier.write_bandwidth.value,
        update: tier.update_bandwidth.map_or(Bandwidth::ZERO, |rate| rate.value),
    };
    let of_node = cluster.node.host_memory.filter(|_| tier.medium == TierMedium::Dram);
    let capacity = of_node.map_or(tier.capacity.value, |memory| memory / f64::from(cluster.node.accelerators));
    Some((host, capacity))
}

impl Prepared {
    /// Binds the training job of a scenario whose cluster is built.
    pub fn new(scenario: &Scenario, training: &Training, built: &BuiltCluster) -> Self {
        let cluster = &scenario.cluster;
        let allowances =
            memory::Software::new(&training.memory, training.framework_memory, training.software.attention_kernel);
        let failures = Failures::new(cluster, training, built);
        Self {
            step: StepInputs {
                transformer: training.transformer,
                job: training.job,
                node: &cluster.node,
                at_work: built.main_nodes().each,
                accelerators: cluster.accelerators,
                accelerator: &cluster.accelerator,
                fabric: &cluster.fabric,
                collectives: &cluster.collectives,
                topology: &built.topology,
                software: &training.software,
                efficiency: training.efficiency,
                allowances,
            }
            .bind(),
            accelerators: cluster.accelerators,
            usable_memory: allowances.usable(cluster.accelerator.memory_capacity),
            allowances,
            failures,
            best_interval: failures.hazards.best_interval(),
            checkpoint_interval: training.checkpoint_interval,
            host: host_memory(training, cluster),
            data: training.plan.data,
            storage_read: cluster.storage.read_bandwidth.value * f64::from(cluster.storage_units),
            costs: CostTotals::new(&built.costs, &built.drivers, u64::from(cluster.accelerators), &scenario.finance),
        }
    }

    /// The same job on a cluster that is used and financed otherwise.
    pub fn refinance(&mut self, built: &BuiltCluster, finance: &Finance) {
        self.costs = CostTotals::new(&built.costs, &built.drivers, u64::from(self.accelerators), finance);
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
        self.fits(worst_stage, &memory)?;
        Ok(Fit { layout, worst_stage, memory })
    }

    /// Whether what a stage needs fits, on the accelerator and of it what is offloaded in the host's memory.
    pub(super) fn fits(&self, stage: u32, footprint: &MemoryFootprint) -> Result<(), Infeasible> {
        if !footprint.fits(self.usable_memory) {
            return Err(Infeasible::Memory { stage, footprint: *footprint, usable: self.usable_memory });
        }
        match self.host {
            Some((_, capacity)) if footprint.offloaded > capacity => {
                Err(Infeasible::HostMemory { stage, offloaded: footprint.offloaded, capacity })
            }
            _ => Ok(()),
        }
    }

    /// All figures of a layout that fits.
    ///
    /// # Errors
    /// When failures leave the run no progress, or the time of something asked for is not known.
    pub fn timed(&self, fit: Fit) -> Result<Point, Infeasible> {
        self.timed_from(fit, &self.step.microbatch(&fit.layout), &self.step.replicas(&fit.layout))
    }

    /// The same from parts of the step that other layouts share.
    ///
    /// # Errors
    /// As [`Prepared::timed`].
    pub fn timed_from(&self, fit: Fit, microbatch: &Microbatch, replicas: &Replicas) -> Result<Point, Infeasible> {
        let Fit { layout, worst_stage, memory } = fit;
        let step = self.waiting(
            &self.step,
            self.step.assembled(&layout, microbatch, replicas),
            &layout,
            StageKind::PreTraining,
        );
        let iteration = step.iteration();
        let goodput = self.goodput(&self.failures.hazards, self.best_interval, iteration)?;
        let duration = iteration * self.step.job.steps();
        let effective = duration / goodput.ratio;
        Ok(Point {
            layout,
            worst_stage,
            memory,
            step,
            goodput,
            duration,
            effective,
            unit_costs: self.costs.unit_costs(goodput.ratio),
            run: self.costs.run(effective),
        })
    }

    /// The goodput of steps of a length, whose best interval between checkpoints is known.
    fn goodput(&self, hazards: &Hazards, best: Seconds, step: Seconds) -> Result<Goodput, Infeasible> {
        let goodput = match self.checkpoint_interval {
            Some(interval) if interval < hazards.checkpoint.pending => {
                return Err(Infeasible::CheckpointTooSoon { interval, storing: hazards.checkpoint.pending });
            }
            // Nothing is kept within a step.
            Some(interval) => hazards.goodput_at(interval.max(step)),
            None => hazards.goodput_at(best.max(step)),
        };
        if goodput.ratio < LEAST_GOODPUT || goodput.ratio.is_nan() {
            let (ratio, interval) = (goodput.ratio, goodput.checkpoint_interval);
            return Err(Infeasible::Endless { ratio, mtbf: hazards.mtbf, interval });
        }
        Ok(goodput)
    }

    /// The goodput of a stage whose steps, their rollouts included, take that long.
    ///
    /// All stages run on the same accelerators, so failures, recoveries and the share of time for which the network stalls
    /// are the same in each; waits for data are in the step. What differs is what a checkpoint holds (adapters leave the
    /// frozen model out, so it is stored and read sooner) and that nothing is kept within a step: where a step is longer
    /// than the interval between checkpoints, more is lost at a failure, and fewer checkpoints are waited for.
    pub(super) fn stage_goodput(&self, kind: StageKind, step: Seconds) -> Result<Goodput, Infeasible> {
        if kind == StageKind::Lora {
            let hazards = &self.failures.of_adapters;
            return self.goodput(hazards, hazards.best_interval(), step);
        }
        self.goodput(&self.failures.hazards, self.best_interval, step)
    }

    /// Dollars an hour at a goodput.
    pub(super) fn unit_costs(&self, goodput: f64) -> UnitCosts {
        self.costs.unit_costs(goodput)
    }

    /// A step of that kind with its waits for the hosts' memory and for data. Full fine-tuning, and training on what is
    /// rewarded, are pre-training on other data.
    pub(super) fn estimate(&self, job: &TrainingJob, layout: &Layout, kind: StageKind) -> TrainingEstimate {
        let model = StepModel { job: *job, ..self.step };
        self.waiting(&model, model.estimate(layout), layout, kind)
    }

    /// The step that a model gives, with its waits.
    fn waiting(&self, model: &StepModel, step: TrainingEstimate, layout: &Layout, kind: StageKind) -> TrainingEstimate {
        let trained = kind != StageKind::Lora;
        let mut step = step;
        if let Some((host, _)) = &self.host {
            let activations = memory::offloaded_activations(&model.transformer, &model.job, layout, &self.allowances);
            step = model.with_host(step, layout, host, &Offloaded { activations, trained });
        }
        self.fed(if trained { step } else { adapters(&step) })
    }

    /// A step with its wait for data.
    fn fed(&self, mut step: TrainingEstimate) -> TrainingEstimate {
        let supply = self.data.supply(step.tokens, self.storage_read, self.accelerators);
        step.other.data = self.data.wait(supply, step.iteration());
        step
    }

    /// The point with the time and cost of a run that is more than steps of one kind.
    pub(super) fn of_run(&self, point: &Point, run: &Run) -> Point {
        let mut point = *point;
        self.set_run(&mut point, run.duration, run.effective);
        point
    }

    /// Sets the time of a point's run, without failures and with them, and its cost.
    pub(super) fn set_run(&self, point: &mut Point, duration: Seconds, effective: Seconds) {
        (point.duration, point.effective, point.run) = (duration, effective, self.costs.run(effective));
    }
}
