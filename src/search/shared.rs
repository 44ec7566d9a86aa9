//! Parts of steps that the layouts of a row share, each computed once.

use super::layouts::Variants;
use crate::evaluate::{Fit, Infeasible, Point};
use crate::training::{Microbatch, Replicas};

/// The parts at hand, by choice of overlap.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    variants: &'a Variants,
    parts: Vec<Parts>,
}

#[derive(Clone, Debug, Default)]
struct Parts {
    /// By recomputation, and for DualPipe apart: a few, searched in order.
    microbatches: Vec<Microbatch>,
    replicas: Option<Replicas>,
}

impl<'a> Shared<'a> {
    /// None yet, of a row of layouts: with the same degrees, microbatch, exchange and sequence parallelism.
    pub(super) fn of_row(variants: &'a Variants) -> Self {
        Self { variants, parts: vec![Parts::default(); variants.count_of_choices()] }
    }

    /// The layouts that follow share their schedule, chunks of layers and sharding.
    pub(super) fn next_sharding(&mut self) {
        for parts in &mut self.parts {
            parts.replicas = None;
        }
    }

    /// All figures of a layout that fits, under a choice of overlap.
    pub(super) fn timed(&mut self, variant: usize, fit: Fit) -> Result<Point, Infeasible> {
        let (_, prepared) = self.variants.variant(variant);
        let step = &prepared.step;
        let Parts { microbatches, replicas } = &mut self.parts[variant];
        let known = microbatches.iter().position(|known| known.serves(step, &fit.layout));
        let known = known.unwrap_or_else(|| {
            microbatches.push(step.microbatch(&fit.layout));
            microbatches.len() - 1
        });
        let replicas = replicas.get_or_insert_with(|| step.replicas(&fit.layout));
        prepared.timed_from(fit, &microbatches[known], replicas)
    }
}
