//! An engine at work: a model on so many accelerators.

use super::{Across, Features, Hardware, ModelShape};
use crate::parallelism::ServingLayout;
use crate::units::{Bytes, Seconds};

/// A layout as the form takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Ranks that split every matrix.
    pub tensor: u32,
    /// Groups of tensor ranks that attend for requests of their own.
    pub attention_data: u32,
    /// Stages that split the layers.
    pub pipeline: u32,
    /// Whether experts lie whole on ranks.
    pub expert_parallel: bool,
    /// Copies of a layer's experts beside one of each.
    pub redundant_experts: u32,
}

impl From<ServingLayout> for Spread {
    fn from(layout: ServingLayout) -> Self {
        Self {
            tensor: layout.tensor,
            attention_data: layout.attention_data,
            pipeline: layout.pipeline,
            expert_parallel: layout.expert > 1,
            redundant_experts: layout.redundant_experts,
        }
    }
}

impl Spread {
    /// Accelerators of a stage.
    pub fn stage(&self) -> f64 {
        f64::from(self.tensor) * f64::from(self.attention_data)
    }

    /// Places for experts of a layer that has so many.
    pub(super) fn slots(&self, experts: f64) -> f64 {
        experts + f64::from(self.redundant_experts)
    }

    /// Accelerators of the engine.
    pub fn accelerators(&self) -> f64 {
        self.stage() * f64::from(self.pipeline)
    }
}

/// Room for the caches of requests in one engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Requests at once, at most.
    pub requests: f64,
}

/// A model on the accelerators of one engine.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    /// The model.
    pub shape: &'a ModelShape,
    /// An accelerator.
    pub hardware: &'a Hardware,
    /// How the one is spread over the others.
    pub spread: Spread,
    /// What its engine does beside the plain loop.
    pub features: Features<'a>,
}

impl<'a> Replica<'a> {
    /// An engine that does nothing beside its plain loop.
    pub fn new(shape: &'a ModelShape, hardware: &'a Hardware, spread: Spread) -> Self {
        Self { shape, hardware, spread, features: Features::default() }
    }
}

impl Replica<'_> {
    pub(super) fn tensor(&self) -> f64 {
        f64::from(self.spread.tensor)
    }

    /// Whether ranks attend for requests of their own and exchange tokens for the experts.
    pub(super) fn exchanges(&self) -> bool {
        self.spread.attention_data > 1
    }

    /// The network between domains where so many ranks do not lie in one.
    pub(super) fn beyond(&self, ranks: f64) -> Option<Across> {
        self.hardware.across.filter(|across| ranks > across.domain)
    }

    /// Time of a message of that size over the engine's scale-up links.
    pub(super) fn wire(&self, bytes: Bytes) -> Seconds {
        bytes / self.hardware.links
    }
}
