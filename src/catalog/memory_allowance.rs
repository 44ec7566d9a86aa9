//! What training software keeps in accelerator memory beside the model's own tensors.

use std::collections::BTreeMap;

use super::engine_memory::EngineMemory;
use super::training_efficiency::Framework;
use crate::diagnostics::Sink;
use crate::document::{FromNode, Node, Reader, choices};
use crate::units::{Bytes, Fraction, Ranged};

choices! {
    /// What a framework drops under selective recomputation.
    pub enum SelectiveRecompute {
        /// The scores of attention and what follows from them (Megatron).
        AttentionCore = "attention-core",
        /// All but the output of attention and of every second matrix multiplication (PyTorch's per-operation policy).
        AlternateMatmuls = "alternate-matmuls",
    }
}

choices! {
    /// How the loss is computed from the logits.
    pub enum Loss {
        /// As the framework does by default.
        Plain = "plain",
        /// By a compiler that fuses its element-wise steps: the logits and their gradient in 16 bits are all that is stored.
        Compiled = "compiled",
        /// Fused with the output projection, some tokens at a time: the logits are never whole (Liger Kernel, arXiv
        /// 2410.10989, section 3.2).
        Fused = "fused",
    }
}

/// Allowances of one software stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryAllowance {
    /// Memory that the driver keeps of what it reports.
    pub driver_reserve: Ranged<Bytes>,
    /// The context of the process: kernels, stacks, library workspaces.
    pub context: Ranged<Bytes>,
    /// Buffers of one communicator.
    pub communicator: Ranged<Bytes>,
    /// What the allocator holds beyond the peak of live activations and buffers, over that peak.
    pub fragmentation: Ranged<Fraction>,
    /// What differs by framework, by its word.
    pub frameworks: BTreeMap<String, FrameworkMemory>,
    /// Memory of one logit where the loss is not the framework's own, by the loss's word.
    pub losses: BTreeMap<String, Bytes>,
    /// Serving engines, by name.
    pub engines: BTreeMap<String, EngineMemory>,
}

/// What a framework keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameworkMemory {
    /// Memory of one logit at the loss's peak, over all its copies.
    pub logit: Bytes,
    /// What selective recomputation drops.
    pub selective_recompute: SelectiveRecompute,
    /// Whether matrix multiplications in low precision keep their inputs as they were cast, not whole.
    pub cast_inputs: bool,
    /// Whether weights are kept in single precision alone, as the optimizer updates them, and cast as they are multiplied.
    pub casts_weights: bool,
}

impl FromNode for FrameworkMemory {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| Self {
            logit: reader.get("logit"),
            selective_recompute: reader.get("selective_recompute"),
            cast_inputs: reader.or("cast_inputs", false),
            casts_weights: reader.or("casts_weights", false),
        })
    }
}

impl MemoryAllowance {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            driver_reserve: reader.get("driver_reserve"),
            context: reader.get("context"),
            communicator: reader.get("communicator"),
            fragmentation: reader.get("fragmentation"),
            frameworks: reader.get("frameworks"),
            losses: reader.optional("losses").unwrap_or_default(),
            engines: reader.get("engines"),
        }
    }

    /// What a framework keeps; `None` where the file doesn't have it.
    pub fn framework(&self, framework: Framework) -> Option<FrameworkMemory> {
        self.frameworks.get(framework.word()).copied()
    }

    /// What a framework keeps with a loss; `None` where the file doesn't have one of them.
    pub fn with_loss(&self, framework: Framework, loss: Loss) -> Option<FrameworkMemory> {
        let kept = self.framework(framework)?;
        let logit = if loss == Loss::Plain { kept.logit } else { self.losses.get(loss.word()).copied()? };
        Some(FrameworkMemory { logit, ..kept })
    }
}
