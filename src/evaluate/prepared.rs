//! What does not depend on the layout, bound once; and one layout's evaluation.

use super::{BuiltCluster, Infeasible};
use crate::collectives::{Network, ScaleUp, Wires};
use crate::compute::{AttentionRate, Silicon};
use crate::catalog::training_efficiency::AttentionKernel;
use crate::memory::{self, MemoryFootprint};
use crate::parallelism::Layout;
use crate::reliability::{ADAM_STATE_PER_PARAMETER, Checkpoint, Components, Goodput, Interruptions, Recovery, goodput};
use crate::scenario::{Cluster, Scenario, Training};
use crate::tco::{CostTotals, UnitCosts};
use crate::topology;
use crate::training::{StepModel, TrainingEstimate};
use crate::units::{Bytes, FlopRate, Seconds, Usd};
use crate::workload::Precision;
use crate::catalog::accelerator::DataType;

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

impl Prepared {
    /// Binds a scenario whose cluster is built.
    pub fn new(scenario: &Scenario, built: &BuiltCluster) -> Self {
        let (cluster, training) = (&scenario.cluster, &scenario.training);
        let allowances = memory::Software::new(&training.memory, training.framework_memory, training.software.attention_kernel);
        let parameters = training.transformer.parameters().total() as f64;
        let units = f64::from(cluster.storage_units);
        let components = Components {
            accelerators: u64::from(cluster.accelerators),
            nics: u64::from(cluster.accelerators / cluster.node.accelerators) * u64::from(cluster.node.nic_slots.count),
            links: built.drivers.cables,
            hosts: u64::from(cluster.accelerators / cluster.node.accelerators),
        };
        Self {
            step: step_model(cluster, training, built),
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
    /// When the layout cannot be, or its worst stage does not fit.
    pub fn point(&self, layout: &Layout) -> Result<Point, Infeasible> {
        let layout = layout.over(self.accelerators)?;
        let (transformer, job) = (&self.step.transformer, &self.step.job);
        layout.check(transformer, job)?;
        let (worst_stage, memory) = memory::worst(transformer, job, &layout, &self.allowances);
        if !memory.fits(self.usable_memory) {
            return Err(Infeasible::Memory { stage: worst_stage, footprint: memory, usable: self.usable_memory });
        }
        let step = self.step.estimate(&layout);
        let iteration = step.iteration();
        let goodput = goodput(self.mtbf, &self.checkpoint, self.recovery, iteration);
        let duration = iteration * job.steps();
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

/// Binds what a step's time depends on but the layout.
pub(super) fn step_model(cluster: &Cluster, training: &Training, built: &BuiltCluster) -> StepModel {
    let scale_up = topology::ScaleUp { accelerators_per_node: cluster.node.accelerators, domain: cluster.node.scale_up.domain };
    StepModel {
        transformer: training.transformer,
        job: training.job,
        silicon: silicon(cluster, training),
        efficiency: training.efficiency,
        overlap: training.software.overlap,
        wires: wires(cluster),
        reach: built.topology.reach(scale_up, cluster.fabric.entry.spine_efficiency.value),
        peak: peak(cluster, data_type(training.job.precision)),
        memory: cluster.accelerator.memory_capacity,
    }
}

const fn data_type(precision: Precision) -> DataType {
    match precision {
        Precision::Bf16 => DataType::Bf16,
        Precision::Fp16 => DataType::Fp16,
    }
}

/// Dense peak of a data type; resolving the scenario has checked that there is one.
fn peak(cluster: &Cluster, data_type: DataType) -> FlopRate {
    cluster.accelerator.peak_dense.get(data_type).unwrap_or(FlopRate::ZERO)
}

fn silicon(cluster: &Cluster, training: &Training) -> Silicon {
    let efficiency = &training.efficiency;
    let bf16 = peak(cluster, DataType::Bf16);
    Silicon {
        sms: f64::from(cluster.accelerator.sm_count),
        gemm_rate: peak(cluster, data_type(training.job.precision)) * efficiency.gemm,
        logits_rate: bf16 * efficiency.gemm_bf16,
        tile_epilogue: efficiency.tile_epilogue,
        memory_bandwidth: cluster.accelerator.memory_bandwidth * efficiency.memory,
        attention: AttentionRate {
            forward: bf16 * efficiency.attention,
            half_length: efficiency.attention_half_length,
            backward: efficiency.attention_backward,
            fused: training.software.attention_kernel != AttentionKernel::Unfused,
            softmax: efficiency.softmax,
            misaligned_head: efficiency.misaligned_head,
        },
    }
}

/// The wires; resolving the scenario has checked that the constants exist.
fn wires(cluster: &Cluster) -> Wires {
    let (set, node, fabric) = (&cluster.collectives, &cluster.node, &cluster.fabric);
    let scale_up = set.scale_up.get(&node.scale_up.kind).copied().unwrap_or_default();
    let network = set.network.get(&fabric.entry.class).copied().unwrap_or_default();
    Wires {
        scale_up: ScaleUp::typical(node.scale_up.bandwidth_per_direction, &scale_up, node.scale_up.in_network_reduction),
        network: Network { line_rate: fabric.nic.speed * f64::from(fabric.nic.ports), efficiency: network.value },
        library: set.library.value,
    }
}
