//! What training software keeps in accelerator memory beside the model's own tensors.

use std::collections::BTreeMap;

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
}

/// What a framework keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameworkMemory {
    /// Memory of one logit at the loss's peak, over all its copies.
    pub logit: Bytes,
    /// What selective recomputation drops.
    pub selective_recompute: SelectiveRecompute,
}

impl FromNode for FrameworkMemory {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| Self {
            logit: reader.get("logit"),
            selective_recompute: reader.get("selective_recompute"),
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
        }
    }

    /// What a framework keeps; `None` where the file doesn't have it.
    pub fn framework(&self, framework: Framework) -> Option<FrameworkMemory> {
        self.frameworks.get(framework.word()).copied()
    }
}
