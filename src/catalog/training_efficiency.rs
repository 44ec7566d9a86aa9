//! What training software reaches on the hardware: the constants of the step-time form.

use std::collections::BTreeMap;

use super::constant_set::{ConstantSet, FreeConstant};
use crate::document::{FromNode, Node, Reader, choices};
use crate::diagnostics::{Code, Sink};
use crate::units::{Factor, Ranged, Seconds};

choices! {
    /// The class of training framework: what it fuses and what it can overlap.
    pub enum Framework {
        /// Megatron-LM before Megatron-Core.
        MegatronLm = "megatron-lm",
        /// Megatron-Core, NeMo, Megatron-Bridge.
        MegatronCore = "megatron-core",
        /// Megatron with DeepSpeed's pipeline and ZeRO.
        MegatronDeepspeed = "megatron-deepspeed",
        /// PyTorch's own tensor, pipeline and fully sharded parallelism.
        PytorchNative = "pytorch-native",
        /// PyTorch fully sharded data parallelism alone.
        PytorchFsdp = "pytorch-fsdp",
        /// JAX with XLA.
        Jax = "jax",
    }
}

choices! {
    /// The attention kernel.
    pub enum AttentionKernel {
        /// Batched matrix multiplications with a softmax between, scores in memory.
        Unfused = "unfused",
        /// FlashAttention 1 and 2.
        Fa2 = "fa2",
        /// FlashAttention 3.
        Fa3 = "fa3",
        /// cuDNN's fused attention.
        Cudnn = "cudnn",
        /// FlashAttention 4.
        Fa4 = "fa4",
        /// Splash attention of JAX, on TPUs.
        Splash = "splash",
    }
}

/// Constants of one accelerator generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationEfficiency {
    /// Sustained matrix-multiplication rate over the dense peak, by the word of a precision; of the 16-bit ones bf16's,
    /// because they run alike.
    pub gemm: BTreeMap<String, Ranged<Factor>>,
    /// Forward attention rate over the dense bf16 peak at long sequences, by kernel word.
    pub attention: BTreeMap<String, Ranged<Factor>>,
    /// Rate of unfused attention's batched matrix multiplications over the dense peak.
    pub unfused_attention: Ranged<Factor>,
    /// Whether a multiplication runs in waves of tiles over many multiprocessors, each wave with a beginning and an end;
    /// the few arrays of a TPU are kept filled from one tile to the next.
    pub waves: bool,
}

/// Constants of a software era.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Era {
    /// Its first day, as a decimal year.
    pub from: f64,
    /// Bytes moved by element-wise kernels over the minimum.
    pub elementwise: Ranged<Factor>,
    /// Whether tensor-parallel communication is overlapped by default.
    pub tensor_overlap: bool,
    /// Whether data-parallel communication is overlapped by default.
    pub data_overlap: bool,
    /// Reached share of the network in fully sharded gathers.
    pub fully_sharded_bandwidth: Ranged<Factor>,
    /// Multiple of a microbatch's time that hides fully sharded communication.
    pub fully_sharded_window: Ranged<Factor>,
    /// Bytes moved by routing, permuting and gating over the minimum.
    pub moe_bytes: Ranged<Factor>,
    /// Fixed time of a mixture-of-experts layer, each way.
    pub moe_layer: Ranged<Seconds>,
    /// Host time to launch a layer's kernels, by the word of the host platform.
    pub launch: BTreeMap<String, HostLaunch>,
}

/// What a framework class can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameworkTraits {
    /// Element-wise kernels are not fused.
    pub eager: bool,
    /// Tensor-parallel communication can be hidden.
    pub tensor_overlap: bool,
    /// The caching allocator retries when fully sharded states nearly fill the device.
    pub allocator_pressure: bool,
}

/// Host time to launch one layer's kernels for one microbatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostLaunch {
    /// A dense layer.
    pub dense: Ranged<Seconds>,
    /// A mixture-of-experts layer.
    pub moe: Ranged<Seconds>,
}

/// Kernel constants common to generations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelEfficiency {
    /// Fixed time of a wave of tiles.
    pub tile_epilogue: Ranged<Seconds>,
    /// Reached share of the memory bandwidth.
    pub memory: Ranged<Factor>,
    /// Bytes moved by unfused element-wise kernels over the minimum.
    pub elementwise_eager: Ranged<Factor>,
    /// Backward attention's time beyond 2.5 times the forward's.
    pub attention_backward: Ranged<Factor>,
    /// Sequence length of half the long-sequence attention rate.
    pub attention_half_length: Ranged<Factor>,
    /// Score traffic of unfused attention over its count.
    pub softmax: Ranged<Factor>,
    /// Slowdown of attention when the head size is no multiple of 8.
    pub misaligned_head: Ranged<Factor>,
    /// Cast bytes per element over four, by the word of a precision.
    pub cast: BTreeMap<String, Ranged<Factor>>,
    /// Gradient accumulation over 8 bytes a parameter.
    pub accumulate: Ranged<Factor>,
    /// Bytes an optimizer step moves per updated parameter.
    pub optimizer_bytes: Ranged<Factor>,
}

/// How much communication compute does not hide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposure {
    /// Tensor-parallel communication, not overlapped.
    pub tensor: Ranged<Factor>,
    /// The same, overlapped.
    pub tensor_overlapped: Ranged<Factor>,
    /// Context-parallel communication.
    pub context: Ranged<Factor>,
    /// Stage-to-stage messages.
    pub pipeline: Ranged<Factor>,
    /// Expert all-to-all inside a scale-up domain.
    pub expert_scale_up: Ranged<Factor>,
    /// Expert all-to-all across the network.
    pub expert_network: Ranged<Factor>,
    /// Expert all-to-all beside other microbatches' compute.
    pub expert_overlapped: Ranged<Factor>,
    /// Data-parallel communication, not overlapped.
    pub data: Ranged<Factor>,
    /// The multiple of the microbatches' time that can hide data-parallel communication.
    pub data_window: Ranged<Factor>,
    /// The part of data-parallel communication that nothing hides.
    pub data_tail: Ranged<Factor>,
    /// Bytes moved through memory per byte communicated beside compute.
    pub contention: Ranged<Factor>,
}

/// What grows with the size of the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleEffects {
    /// Fixed time of a step.
    pub step: Ranged<Seconds>,
    /// Standard deviation of the ranks' times of a step over the mean.
    pub jitter: Ranged<Factor>,
    /// Growth under allocator pressure.
    pub allocator: Ranged<Factor>,
    /// Share of memory taken by fully sharded states at which the pressure is half.
    pub allocator_threshold: Factor,
    /// Share of memory taken by the estimated peak at which the pressure is half.
    pub allocator_peak: Factor,
}

/// One set of constants, fitted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingEfficiency {
    /// Accelerator generations, by id.
    pub generations: BTreeMap<String, GenerationEfficiency>,
    /// Sustained rate of a board relative to its generation.
    pub boards: BTreeMap<String, Ranged<Factor>>,
    /// Software eras, by name.
    pub eras: BTreeMap<String, Era>,
    /// Framework classes, by word.
    pub frameworks: BTreeMap<String, FrameworkTraits>,
    /// Kernel constants.
    pub kernel: KernelEfficiency,
    /// Exposed communication.
    pub exposure: Exposure,
    /// Effects of scale.
    pub scale: ScaleEffects,
}

impl TrainingEfficiency {
    /// Reads the file of one set.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let read = Self {
            generations: reader.get("generation"),
            boards: reader.get("board"),
            eras: reader.get("era"),
            frameworks: reader.get("framework"),
            kernel: reader.table("kernel", |r| KernelEfficiency {
                tile_epilogue: r.get("tile_epilogue"),
                memory: r.get("memory"),
                elementwise_eager: r.get("elementwise_eager"),
                attention_backward: r.get("attention_backward"),
                attention_half_length: r.get("attention_half_length"),
                softmax: r.get("softmax"),
                misaligned_head: r.get("misaligned_head"),
                cast: r.get("cast"),
                accumulate: r.get("accumulate"),
                optimizer_bytes: r.get("optimizer_bytes"),
            }),
            exposure: reader.table("exposure", |r| Exposure {
                tensor: r.get("tensor"),
                tensor_overlapped: r.get("tensor_overlapped"),
                context: r.get("context"),
                pipeline: r.get("pipeline"),
                expert_scale_up: r.get("expert_scale_up"),
                expert_network: r.get("expert_network"),
                expert_overlapped: r.get("expert_overlapped"),
                data: r.get("data"),
                data_window: r.get("data_window"),
                data_tail: r.get("data_tail"),
                contention: r.get("contention"),
            }),
            scale: reader.table("scale", |r| ScaleEffects {
                step: r.get("step"),
                jitter: r.get("jitter"),
                allocator: r.get("allocator"),
                allocator_threshold: r.get("allocator_threshold"),
                allocator_peak: r.get("allocator_peak"),
            }),
        };
        let mut from: Vec<f64> = read.eras.values().map(|era| era.from).collect();
        from.sort_by(f64::total_cmp);
        if from.windows(2).any(|pair| pair[0].total_cmp(&pair[1]).is_eq()) {
            reader.report("era", Code::Inconsistent, "two eras begin on one day", "give each a day of its own");
        }
        read
    }

    /// The constants of a generation.
    pub fn generation(&self, id: &str) -> Option<&GenerationEfficiency> {
        self.generations.get(id)
    }

    /// The era of a date (decimal year), or `None` before the first.
    pub fn era(&self, date: f64) -> Option<&Era> {
        self.eras.values().filter(|era| era.from <= date).max_by(|a, b| a.from.total_cmp(&b.from))
    }

    /// Whether a framework of a date overlaps tensor-parallel and data-parallel communication unless told otherwise.
    /// Fully sharded weights are prefetched in every era.
    pub fn usual_overlap(&self, framework: Framework, date: f64, fully_sharded: bool) -> (bool, bool) {
        let can = self.frameworks.get(framework.word()).is_some_and(|traits| traits.tensor_overlap);
        self.era(date).map_or((false, fully_sharded), |era| (era.tensor_overlap && can, era.data_overlap || fully_sharded))
    }
}

impl ConstantSet for TrainingEfficiency {
    fn constants_mut(&mut self) -> Vec<(String, FreeConstant<'_>)> {
        let mut all = Vec::new();
        for (id, generation) in &mut self.generations {
            let at = |key: &str| format!("generation.{id}.{key}");
            for (word, rate) in &mut generation.gemm {
                all.push((at(&format!("gemm.{word}")), FreeConstant::Factor(rate)));
            }
            for (word, rate) in &mut generation.attention {
                all.push((at(&format!("attention.{word}")), FreeConstant::Factor(rate)));
            }
            all.push((at("unfused_attention"), FreeConstant::Factor(&mut generation.unfused_attention)));
        }
        all.extend(self.boards.iter_mut().map(|(id, rate)| (format!("board.{id}"), FreeConstant::Factor(rate))));
        for (name, era) in &mut self.eras {
            era.constants(&format!("era.{name}"), &mut all);
        }
        self.kernel.constants(&mut all);
        self.exposure.constants(&mut all);
        let scale = &mut self.scale;
        all.push(("scale.step".to_owned(), FreeConstant::Time(&mut scale.step)));
        all.push(("scale.jitter".to_owned(), FreeConstant::Factor(&mut scale.jitter)));
        all.push(("scale.allocator".to_owned(), FreeConstant::Factor(&mut scale.allocator)));
        all
    }
}

type Constants<'a> = Vec<(String, FreeConstant<'a>)>;

impl Era {
    fn constants<'a>(&'a mut self, at: &str, all: &mut Constants<'a>) {
        let at = |key: &str| format!("{at}.{key}");
        all.push((at("elementwise"), FreeConstant::Factor(&mut self.elementwise)));
        all.push((at("fully_sharded_bandwidth"), FreeConstant::Factor(&mut self.fully_sharded_bandwidth)));
        all.push((at("fully_sharded_window"), FreeConstant::Factor(&mut self.fully_sharded_window)));
        all.push((at("moe_bytes"), FreeConstant::Factor(&mut self.moe_bytes)));
        all.push((at("moe_layer"), FreeConstant::Time(&mut self.moe_layer)));
        for (host, launch) in &mut self.launch {
            all.push((at(&format!("launch.{host}.dense")), FreeConstant::Time(&mut launch.dense)));
            all.push((at(&format!("launch.{host}.moe")), FreeConstant::Time(&mut launch.moe)));
        }
    }
}

impl KernelEfficiency {
    fn constants<'a>(&'a mut self, all: &mut Constants<'a>) {
        let at = |key: &str| format!("kernel.{key}");
        all.push((at("tile_epilogue"), FreeConstant::Time(&mut self.tile_epilogue)));
        for (key, constant) in [
            ("memory", &mut self.memory),
            ("elementwise_eager", &mut self.elementwise_eager),
            ("attention_backward", &mut self.attention_backward),
            ("attention_half_length", &mut self.attention_half_length),
            ("softmax", &mut self.softmax),
            ("misaligned_head", &mut self.misaligned_head),
            ("accumulate", &mut self.accumulate),
            ("optimizer_bytes", &mut self.optimizer_bytes),
        ] {
            all.push((at(key), FreeConstant::Factor(constant)));
        }
        for (word, bytes) in &mut self.cast {
            all.push((at(&format!("cast.{word}")), FreeConstant::Factor(bytes)));
        }
    }
}

impl Exposure {
    fn constants<'a>(&'a mut self, all: &mut Constants<'a>) {
        for (key, constant) in [
            ("tensor", &mut self.tensor),
            ("tensor_overlapped", &mut self.tensor_overlapped),
            ("context", &mut self.context),
            ("pipeline", &mut self.pipeline),
            ("expert_scale_up", &mut self.expert_scale_up),
            ("expert_network", &mut self.expert_network),
            ("expert_overlapped", &mut self.expert_overlapped),
            ("data", &mut self.data),
            ("data_window", &mut self.data_window),
            ("data_tail", &mut self.data_tail),
            ("contention", &mut self.contention),
        ] {
            all.push((format!("exposure.{key}"), FreeConstant::Factor(constant)));
        }
    }
}

impl FromNode for GenerationEfficiency {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(node, path, sink) else { return Self::default() };
        Self {
            gemm: r.get("gemm"),
            attention: r.get("attention"),
            unfused_attention: r.get("unfused_attention"),
            waves: r.or("waves", true),
        }
    }
}

impl FromNode for Era {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(node, path, sink) else { return Self::default() };
        Self {
            from: r.get("from"),
            elementwise: r.get("elementwise"),
            tensor_overlap: r.get("tensor_overlap"),
            data_overlap: r.get("data_overlap"),
            fully_sharded_bandwidth: r.get("fully_sharded_bandwidth"),
            fully_sharded_window: r.get("fully_sharded_window"),
            moe_bytes: r.get("moe_bytes"),
            moe_layer: r.get("moe_layer"),
            launch: r.get("launch"),
        }
    }
}

impl FromNode for FrameworkTraits {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(node, path, sink) else { return Self::default() };
        Self { eager: r.get("eager"), tensor_overlap: r.get("tensor_overlap"), allocator_pressure: r.get("allocator_pressure") }
    }
}

impl FromNode for HostLaunch {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(node, path, sink) else { return Self::default() };
        Self { dense: r.get("dense"), moe: r.get("moe") }
    }
}
