//! Binds what a step's time depends on but the layout: hardware, wires and what software reaches on them. Nothing here
//! knows of sites or prices, so that a run can be timed which nobody buys (as validation does).

use crate::catalog::accelerator::DataType;
use crate::catalog::training_efficiency::AttentionKernel;
use crate::catalog::{Accelerator, CollectiveEfficiency, Node};
use crate::collectives::{Network, ScaleUp, TorusLinks, Wires, transport};
use crate::compute::{AttentionRate, Silicon};
use crate::memory;
use crate::scenario::{BoundFabric, Communication, Software, StepEfficiency};
use crate::topology::{self, Balance, Reach, Topology};
use crate::training::StepModel;
use crate::units::{FlopRate, Fraction, Seconds};
use crate::workload::{Precision, TrainingJob, Transformer};

/// What a step model is bound from. Whoever fills it has checked that the constants exist: the accelerator's peak for the
/// job's precision, and collective constants for the node's links and the fabric's class.
#[derive(Clone, Copy, Debug)]
pub struct StepInputs<'a> {
    /// The model.
    pub transformer: Transformer,
    /// The job.
    pub job: TrainingJob,
    /// The node.
    pub node: &'a Node,
    /// Accelerators at work in each node.
    pub at_work: u32,
    /// Accelerators at work in all.
    pub accelerators: u32,
    /// Its accelerator.
    pub accelerator: &'a Accelerator,
    /// The fabric.
    pub fabric: &'a BoundFabric,
    /// What collectives reach.
    pub collectives: &'a CollectiveEfficiency,
    /// How the fabric is built.
    pub topology: &'a Topology,
    /// The software.
    pub software: &'a Software,
    /// What it reaches.
    pub efficiency: StepEfficiency,
    /// What it keeps of the memory; its selective recomputation repeats as it says.
    pub allowances: memory::Software,
}

impl StepInputs<'_> {
    /// The step model of these parts.
    pub fn bind(&self) -> StepModel {
        StepModel {
            transformer: self.transformer,
            job: self.job,
            silicon: silicon(self.accelerator, self.job.precision, self.software.attention_kernel, &self.efficiency),
            efficiency: self.efficiency,
            overlap: self.software.overlap,
            selective: self.allowances.selective_recompute,
            wires: wires(self.collectives, self.node, self.accelerator, self.fabric, self.software.communication),
            reach: reach(self.topology, self.node, self.at_work, self.fabric).of_job(self.accelerators),
            peak: peak(self.accelerator, self.job.precision.matrix_type()),
            memory: self.accelerator.memory_capacity,
            allowances: self.allowances,
        }
    }
}

/// The same step with other constants, for fits of them.
#[must_use]
pub fn with_efficiency(
    step: StepModel,
    accelerator: &Accelerator,
    software: &Software,
    efficiency: StepEfficiency,
) -> StepModel {
    let silicon = silicon(accelerator, step.job.precision, software.attention_kernel, &efficiency);
    StepModel { silicon, efficiency, ..step }
}

/// Dense peak of a data type.
fn peak(accelerator: &Accelerator, data_type: DataType) -> FlopRate {
    accelerator.peak_dense.get(data_type).unwrap_or(FlopRate::ZERO)
}

fn silicon(
    accelerator: &Accelerator,
    precision: Precision,
    kernel: AttentionKernel,
    efficiency: &StepEfficiency,
) -> Silicon {
    let bf16 = peak(accelerator, DataType::Bf16);
    Silicon {
        sms: f64::from(accelerator.sm_count),
        gemm_rate: peak(accelerator, precision.matrix_type()) * efficiency.gemm,
        logits_rate: bf16 * efficiency.gemm_bf16,
        tile_epilogue: efficiency.tile_epilogue,
        memory_bandwidth: accelerator.memory_bandwidth * efficiency.memory,
        attention: AttentionRate {
            forward: bf16 * efficiency.attention,
            half_length: efficiency.attention_half_length,
            backward: efficiency.attention_backward,
            fused: kernel != AttentionKernel::Unfused,
            softmax: efficiency.softmax,
            misaligned_head: efficiency.misaligned_head,
        },
    }
}

/// The wires between accelerators of a kind of node on a fabric, with typical constants. Where these lack the node's
/// links or the fabric's class, nothing is reached; whoever binds has checked that, and that the bus is known where data
/// is staged.
pub fn wires(
    set: &CollectiveEfficiency,
    node: &Node,
    accelerator: &Accelerator,
    fabric: &BoundFabric,
    communication: Communication,
) -> Wires {
    // All cards of a host (a tray, of a rack) at the same time.
    let trays = node.accelerators / node.accelerators_per_tray;
    let cards = f64::from(node.nic_slots.count) / f64::from(trays.max(1));
    wires_of_cards(set, node, accelerator, fabric, communication, cards)
}

/// The same where only so many cards of a host are in use at the same time.
pub fn wires_of_cards(
    set: &CollectiveEfficiency,
    node: &Node,
    accelerator: &Accelerator,
    fabric: &BoundFabric,
    communication: Communication,
    cards: f64,
) -> Wires {
    let scale_up = set.scale_up.get(&node.scale_up.kind).copied().unwrap_or_default();
    let network = set.network.get(&fabric.entry.class).copied().unwrap_or_default();
    let links = node.scale_up.bandwidth_per_direction;
    let torus = node.torus.map(|block| TorusLinks { block: block.sides, closes_at: block.closes_at });
    let peer_rate = node.scale_up.peer_bandwidth.unwrap_or(links);
    let typical = ScaleUp::typical(links, &scale_up, node.scale_up.in_network_reduction);
    let scale_up = ScaleUp { peer_rate, torus, ..typical };
    let line_rate = fabric.nic.speed * f64::from(fabric.nic.ports);
    // Constants were measured with the usual packets; other headers leave another share of the line rate.
    let headers = transport::against_usual(fabric.entry.transport, fabric.entry.mtu, fabric.entry.encapsulation);
    let mut efficiency = network.value;
    efficiency.payload = Fraction::new(efficiency.payload.get() * headers).unwrap_or(efficiency.payload);
    let switch_latency = fabric.switches.iter().map(|switch| switch.latency).fold(Seconds::ZERO, Seconds::max);
    let mut network = Network { line_rate, efficiency, switch_latency };
    if let Some(bus) = node.host_bus(accelerator).filter(|_| !communication.gpudirect) {
        network = network.staged(&set.staging.value, bus, node.nic_slots.path, cards);
    }
    let reduces = communication.sharp && fabric.entry.in_network_reduction;
    let wires = Wires {
        pat: communication.pat.then_some(set.pat.value),
        sharp: reduces.then_some(set.sharp.value),
        ..Wires::typical(set, scale_up, network)
    };
    if fabric.entry.transport.grants_credits() { wires } else { wires.paced() }
}

/// Accelerators that reach each other by their own links: those at work in a scale-up domain of the node, or all where
/// the links go on from node to node.
pub fn domain(topology: &Topology, node: &Node, at_work: u32) -> u32 {
    if topology.torus.is_some_and(|torus| torus.of_accelerators) {
        at_work.saturating_mul(topology.spec.nodes)
    } else {
        node.scale_up.domain.min(at_work)
    }
}

/// How far ranks on a kind of node, so many at work in each, have to reach over a topology of it on that fabric.
pub fn reach(topology: &Topology, node: &Node, at_work: u32, fabric: &BoundFabric) -> Reach {
    let domain = domain(topology, node, at_work);
    // Nodes of a torus of accelerators are whole nodes, otherwise trays.
    let whole = topology.torus.is_some_and(|torus| torus.of_accelerators);
    // Hosts beside others of fewer cards are joined to the leaves in parts.
    let parts = (node.cards_of_host() / topology.spec.nics_per_node.max(1)).max(1);
    let accelerators_per_node = if whole { node.accelerators } else { node.accelerators_per_tray / parts };
    let scale_up = topology::ScaleUp { accelerators_per_node, domain };
    topology.reach(scale_up, Balance::of(&fabric.entry))
}
