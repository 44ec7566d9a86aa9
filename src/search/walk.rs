//! Every layout of a space with its answer, for whoever wants them all and not the best.

use super::layouts::Variants;
use super::shared::Shared;
use crate::evaluate::{Evaluation, Infeasible, Staged};
use crate::parallelism::{Layout, Space};
use crate::scenario::{LayoutSearch, Overlap};

impl Variants {
    /// The rows of a space: degrees with a microbatch, sequence parallelism and an exchange among context ranks.
    pub fn rows(&self, space: &Space) -> Vec<Layout> {
        let Some(first) = self.first() else { return Vec::new() };
        let (transformer, job) = (&first.step.transformer, &first.step.job);
        let degrees = space.degrees(transformer, first.accelerators);
        degrees.into_iter().flat_map(|degrees| space.batches(degrees, job)).collect()
    }

    /// How many layouts of a row divide.
    pub fn count(&self, wanted: &LayoutSearch, row: Layout) -> u64 {
        let Some(first) = self.first() else { return 0 };
        let (transformer, job) = (&first.step.transformer, &first.step.job);
        let overlaps = |sharding| self.under(sharding).len();
        let shardings: usize = wanted.space.shardings(&row).into_iter().map(overlaps).sum();
        let policies = (shardings * wanted.space.recomputes().len()) as u64;
        let passes = wanted.space.passes(row, transformer);
        passes.iter().filter(|layout| layout.check(transformer, job).is_ok()).count() as u64 * policies
    }

    /// Takes every layout of a row that divides, with its answer, in a fixed order.
    pub fn walk(
        &self,
        staged: &mut Staged,
        wanted: &LayoutSearch,
        row: Layout,
        mut take: impl FnMut(Layout, Overlap, Result<&Evaluation, Infeasible>),
    ) {
        let Some(first) = self.first() else { return };
        let (transformer, job, space) = (&first.step.transformer, &first.step.job, &wanted.space);
        let (shardings, recomputes) = (space.shardings(&row), space.recomputes());
        let mut shared = Shared::of_row(self);
        for passes in space.passes(row, transformer) {
            if passes.check(transformer, job).is_err() {
                continue;
            }
            for &sharding in &shardings {
                shared.next_sharding();
                for &recompute in &recomputes {
                    let layout = Layout { sharding, recompute, ..passes };
                    // What is overlapped doesn't matter for memory.
                    let fit = first.fit(layout);
                    for variant in self.under(sharding) {
                        let (overlap, prepared) = self.variant(*variant);
                        let answer = match &fit {
                            Ok(fit) => shared.timed(*variant, *fit).and_then(|point| staged.at(prepared, point)),
                            Err(infeasible) => Err(infeasible.clone()),
                        };
                        take(layout, overlap, answer);
                    }
                }
            }
        }
    }
}
