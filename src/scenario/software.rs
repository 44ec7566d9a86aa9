//! The software of a job, and what it reaches on the chosen hardware: constants bound once.

use crate::catalog::Accelerator;
use crate::catalog::memory_allowance::Loss;
use crate::catalog::node::Host;
use crate::catalog::training_efficiency::{AttentionKernel, Framework, TrainingEfficiency};
use crate::parallelism::RankOrder;
use crate::units::{Factor, Ranged, Seconds};
use crate::workload::Precision;

/// Which communication compute may hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Tensor-parallel all-gathers and reduce-scatters.
    pub tensor: bool,
    /// Gradient reduction and weight gathering.
    pub data: bool,
    /// Expert all-to-all.
    pub expert: bool,
}

/// How the communication library uses the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communication {
    /// Whether the network's switches reduce (SHARP), where they can.
    pub sharp: bool,
    /// Whether the library takes parallel aggregated trees for one accelerator a node (PAT).
    pub pat: bool,
    /// Whether network cards reach the accelerators' memory (GPUDirect RDMA), or data is staged through the hosts'.
    pub gpudirect: bool,
}

impl Communication {
    /// What is usual: no reduction in the network, no trees of one accelerator a node, cards that reach the accelerators.
    pub const USUAL: Self = Self { sharp: false, pat: false, gpudirect: true };
}

/// The software of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Software {
    /// When it was current, as a decimal year.
    pub date: f64,
    /// The class of framework.
    pub framework: Framework,
    /// The attention kernel.
    pub attention_kernel: AttentionKernel,
    /// How the loss is computed.
    pub loss: Loss,
    /// What is overlapped.
    pub overlap: Overlap,
    /// How the network is used.
    pub communication: Communication,
}

impl Software {
    /// The date of software where none is given, a decimal year.
    pub const USUAL_DATE: f64 = 2026.5;

    /// The attention kernel that was usual on a generation at a date: FlashAttention came into training frameworks in
    /// 2023, and on Hopper and Blackwell cuDNN's kernel is Megatron-Core's default; TPUs have one of their own.
    pub fn usual_kernel(generation: &str, date: f64) -> AttentionKernel {
        let cudnn = ["hopper", "blackwell", "blackwell-ultra"].contains(&generation);
        if generation.starts_with("tpu") {
            AttentionKernel::Splash
        } else if date < 2023.0 {
            AttentionKernel::Unfused
        } else if cudnn && date >= 2023.8 {
            AttentionKernel::Cudnn
        } else {
            AttentionKernel::Fa2
        }
    }

    /// Whether a framework's loss is compiled with its model: torchtitan's since April 2025 (pull request 1033).
    pub const fn compiles_loss(framework: Framework, date: f64) -> bool {
        matches!(framework, Framework::PytorchNative) && date >= 2025.25
    }

    /// The order in which a framework lays its axes on ranks.
    pub const fn usual_order(framework: Framework) -> RankOrder {
        match framework {
            Framework::PytorchNative => RankOrder::TpCpPpDp,
            _ => RankOrder::TpCpEpDpPp,
        }
    }
}

/// Why no constants fit the software on the hardware.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MissingEfficiency {
    /// The generation was never measured.
    #[error("no measured efficiency for accelerators of generation \"{0}\"")]
    Generation(String),
    /// The precision was never measured on the generation.
    #[error("no measured {precision} efficiency for generation \"{generation}\"")]
    Precision {
        /// The precision.
        precision: Precision,
        /// The generation.
        generation: String,
    },
    /// The board's power cap was never measured.
    #[error("no measured efficiency for board \"{0}\"")]
    Board(String),
    /// The kernel was never measured on the generation.
    #[error(
        "no measured efficiency of attention kernel \"{kernel}\" for generation \"{generation}\"; measured are {measured}"
    )]
    Kernel {
        /// The kernel.
        kernel: AttentionKernel,
        /// The generation.
        generation: String,
        /// The kernels that have a figure.
        measured: String,
    },
    /// The host platform was never measured.
    #[error("no measured launch times for host \"{0}\" and software of that date")]
    Host(Host),
    /// The framework class was never measured.
    #[error("no measured efficiency for framework \"{0}\"")]
    Framework(Framework),
    /// The date lies before the first era.
    #[error("no measured efficiency for software of {0:.0}")]
    Date(f64),
}

/// Constants of the step-time form for one software on one accelerator, at their typical values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepEfficiency {
    /// Sustained over peak rate in the linear layers' precision.
    pub gemm: f64,
    /// The same of bf16, for logits.
    pub gemm_bf16: f64,
    /// Forward attention over the bf16 peak.
    pub attention: f64,
    /// Time of a wave of tiles beyond its arithmetic.
    pub tile_epilogue: Seconds,
    /// Reached share of memory bandwidth.
    pub memory: f64,
    /// Sequence length of half the attention rate.
    pub attention_half_length: f64,
    /// Backward attention beyond 2.5 times forward.
    pub attention_backward: f64,
    /// Score traffic over its count.
    pub softmax: f64,
    /// Slowdown of misaligned heads.
    pub misaligned_head: f64,
    /// Element-wise bytes over the minimum.
    pub elementwise: f64,
    /// Cast bytes over four an element; zero where nothing is cast.
    pub cast: f64,
    /// Accumulation over 8 bytes a parameter.
    pub accumulate: f64,
    /// Bytes of an optimizer step per updated parameter.
    pub optimizer_bytes: f64,
    /// Routing and permuting bytes over the minimum.
    pub moe_bytes: f64,
    /// Fixed time of a mixture-of-experts layer, each way.
    pub moe_layer: Seconds,
    /// Host floor of a dense layer.
    pub host_dense: Seconds,
    /// Host floor of a mixture-of-experts layer.
    pub host_moe: Seconds,
    /// Exposed share of tensor-parallel communication.
    pub tensor_exposed: f64,
    /// Exposed share of context-parallel communication.
    pub context_exposed: f64,
    /// Exposed share of stage-to-stage messages.
    pub pipeline_exposed: f64,
    /// Exposed share of expert all-to-all within a scale-up domain.
    pub expert_scale_up_exposed: f64,
    /// Exposed share of expert all-to-all across the network.
    pub expert_network_exposed: f64,
    /// Exposed share of expert all-to-all that is scheduled beside other microbatches' compute.
    pub expert_overlapped: f64,
    /// Exposed share of data-parallel communication when nothing overlaps it.
    pub data_exposed: f64,
    /// Multiple of the microbatches' time that hides data-parallel communication.
    pub data_window: f64,
    /// Part of it that nothing hides.
    pub data_tail: f64,
    /// Bytes moved through memory per byte communicated beside compute.
    pub contention: f64,
    /// Reached share of the network in fully sharded gathers.
    pub fully_sharded_bandwidth: f64,
    /// Multiple of a microbatch's time that hides fully sharded communication.
    pub fully_sharded_window: f64,
    /// Fixed time of a step.
    pub step: Seconds,
    /// Spread of the ranks' times of a step, relative.
    pub jitter: f64,
    /// Growth under allocator pressure; zero where the framework has none.
    pub allocator: f64,
    /// Share of memory at half the pressure.
    pub allocator_threshold: f64,
    /// Share of memory that the peak takes at half the pressure.
    pub allocator_peak: f64,
}

impl StepEfficiency {
    /// Binds the constants of one software on one accelerator.
    ///
    /// # Errors
    /// Where the set has no figure for the generation, board, data type, kernel, host, framework or date.
    pub fn bind(
        set: &TrainingEfficiency,
        accelerator: &Accelerator,
        host: Host,
        precision: Precision,
        software: &Software,
    ) -> Result<Self, MissingEfficiency> {
        let name = || accelerator.generation.clone();
        let generation =
            set.generation(&accelerator.generation).ok_or_else(|| MissingEfficiency::Generation(name()))?;
        let board = set
            .boards
            .get(&accelerator.board)
            .map(typical)
            .ok_or_else(|| MissingEfficiency::Board(accelerator.board.clone()))?;
        let gemm = |precision: Precision| {
            let missing = || MissingEfficiency::Precision { precision, generation: name() };
            let alike = if precision == Precision::Fp16 { Precision::Bf16 } else { precision };
            generation.gemm.get(alike.word()).map(|rate| typical(rate) * board).ok_or_else(missing)
        };
        let kernel = software.attention_kernel;
        let attention = if kernel == AttentionKernel::Unfused {
            typical(&generation.unfused_attention)
        } else {
            let measured =
                || generation.attention.keys().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            let missing = || MissingEfficiency::Kernel { kernel, generation: name(), measured: measured() };
            typical(generation.attention.get(kernel.word()).ok_or_else(missing)?)
        };
        let framework = software.framework;
        let traits = set.frameworks.get(framework.word()).ok_or(MissingEfficiency::Framework(framework))?;
        let era = set.era(software.date).ok_or(MissingEfficiency::Date(software.date))?;
        let launch = era.launch.get(host.word()).ok_or(MissingEfficiency::Host(host))?;
        let (kernels, exposure, scale) = (&set.kernel, &set.exposure, &set.scale);
        let cast = match precision {
            // The precision that activations are kept in needs no cast.
            Precision::Bf16 | Precision::Fp16 => 0.0,
            Precision::Fp8 | Precision::Mxfp8 | Precision::Nvfp4 => {
                let missing = || MissingEfficiency::Precision { precision, generation: name() };
                kernels.cast.get(precision.word()).map(typical).ok_or_else(missing)?
            }
        };
        let elementwise = if traits.eager { &kernels.elementwise_eager } else { &era.elementwise };
        let tensor = if software.overlap.tensor { &exposure.tensor_overlapped } else { &exposure.tensor };
        Ok(Self {
            gemm: gemm(precision)?,
            gemm_bf16: gemm(Precision::Bf16)?,
            attention,
            tile_epilogue: if generation.waves { kernels.tile_epilogue.value } else { Seconds::ZERO },
            memory: typical(&kernels.memory),
            attention_half_length: typical(&kernels.attention_half_length),
            attention_backward: typical(&kernels.attention_backward),
            softmax: typical(&kernels.softmax),
            misaligned_head: typical(&kernels.misaligned_head),
            elementwise: typical(elementwise),
            cast,
            accumulate: typical(&kernels.accumulate),
            optimizer_bytes: typical(&kernels.optimizer_bytes),
            moe_bytes: typical(&era.moe_bytes),
            moe_layer: era.moe_layer.value,
            host_dense: launch.dense.value,
            host_moe: launch.moe.value,
            tensor_exposed: typical(tensor),
            context_exposed: typical(&exposure.context),
            pipeline_exposed: typical(&exposure.pipeline),
            expert_scale_up_exposed: typical(&exposure.expert_scale_up),
            expert_network_exposed: typical(&exposure.expert_network),
            expert_overlapped: typical(&exposure.expert_overlapped),
            data_exposed: typical(&exposure.data),
            data_window: typical(&exposure.data_window),
            data_tail: typical(&exposure.data_tail),
            contention: typical(&exposure.contention),
            fully_sharded_bandwidth: typical(&era.fully_sharded_bandwidth),
            fully_sharded_window: typical(&era.fully_sharded_window),
            step: scale.step.value,
            jitter: typical(&scale.jitter),
            allocator: if traits.allocator_pressure { typical(&scale.allocator) } else { 0.0 },
            allocator_threshold: scale.allocator_threshold.get(),
            allocator_peak: scale.allocator_peak.get(),
        })
    }
}

fn typical(range: &Ranged<Factor>) -> f64 {
    range.value.get()
}
