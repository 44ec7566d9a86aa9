//! Every layout that a job could have: what each key may be where it is left open.

use super::{ContextExchange, Layout, RankOrder, Recompute, Schedule, Sharding};
use crate::document::choices;
use crate::workload::{TrainingJob, Transformer};

choices! {
    /// Which of the layouts that work is wanted.
    pub enum Objective {
        /// The one with the shortest iteration.
        Fastest = "fastest",
        /// The one whose run costs least.
        Cheapest = "cheapest",
    }
}

/// The layouts to choose from. A key that has a value keeps it; one that has none is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Ranks that split every matrix.
    pub tensor: Option<u32>,
    /// Ranks that split the sequence.
    pub context: Option<u32>,
    /// How they attend to what is on the others.
    pub context_exchange: Option<ContextExchange>,
    /// Stages that split the layers.
    pub pipeline: Option<u32>,
    /// Ranks that split a layer's experts.
    pub expert: Option<u32>,
    /// Chunks of layers on a stage.
    pub virtual_stages: Option<u32>,
    /// Sequences of a forward pass.
    pub micro_batch: Option<u32>,
    /// The order of passes.
    pub schedule: Option<Schedule>,
    /// What data-parallel ranks split.
    pub sharding: Option<Sharding>,
    /// Ranks among which they split it; 0 for all.
    pub shard_ranks: u32,
    /// What is computed again.
    pub recompute: Option<Recompute>,
    /// Whether tensor ranks also split what lies between the matrices along the sequence.
    pub sequence_parallel: Option<bool>,
    /// The order of axes on ranks, which the framework settles.
    pub order: RankOrder,
}

/// The value that is fixed, or else all candidates.
fn or_all<T: Copy>(fixed: Option<T>, all: impl Iterator<Item = T>) -> Vec<T> {
    fixed.map_or_else(|| all.collect(), |only| vec![only])
}

impl Space {
    /// All layouts there are, in that order of ranks.
    pub const fn all(order: RankOrder) -> Self {
        Self {
            tensor: None,
            context: None,
            context_exchange: None,
            pipeline: None,
            expert: None,
            virtual_stages: None,
            micro_batch: None,
            schedule: None,
            sharding: None,
            shard_ranks: 0,
            recompute: None,
            sequence_parallel: None,
            order,
        }
    }

    /// That layout alone: every key is given.
    pub const fn of(layout: &Layout) -> Self {
        Self {
            tensor: Some(layout.tensor),
            context: Some(layout.context),
            context_exchange: Some(layout.context_exchange),
            pipeline: Some(layout.pipeline),
            expert: Some(layout.expert),
            virtual_stages: Some(layout.virtual_stages),
            micro_batch: Some(layout.micro_batch),
            schedule: Some(layout.schedule),
            sharding: Some(layout.sharding),
            shard_ranks: layout.shard_ranks,
            recompute: Some(layout.recompute),
            sequence_parallel: Some(layout.sequence_parallel),
            order: layout.order,
        }
    }

    /// Whether every key is open.
    pub fn is_all(&self) -> bool {
        *self == Self { shard_ranks: self.shard_ranks, ..Self::all(self.order) }
    }

    /// Every way to share so many accelerators out among tensor, context, pipeline and data ranks, with every number of
    /// expert ranks that divides the experts; the other keys are at their first value.
    pub fn degrees(&self, model: &Transformer, accelerators: u32) -> Vec<Layout> {
        let experts = or_all(self.expert, divisors(model.experts.map_or(1, |experts| experts.count)));
        let mut found = Vec::new();
        let splits = |fixed: Option<u32>, ranks: u32| {
            or_all(fixed, divisors(ranks))
                .into_iter()
                .filter(move |degree| *degree > 0 && ranks.is_multiple_of(*degree))
        };
        for tensor in splits(self.tensor, accelerators) {
            for context in splits(self.context, accelerators / tensor) {
                for pipeline in splits(self.pipeline, accelerators / tensor / context) {
                    let data = accelerators / tensor / context / pipeline;
                    found.extend(experts.iter().map(|&expert| Layout {
                        tensor,
                        context,
                        context_exchange: ContextExchange::AllGather,
                        pipeline,
                        data,
                        expert,
                        virtual_stages: 1,
                        stage_layers: None,
                        micro_batch: 1,
                        schedule: Schedule::OneF1b,
                        sharding: Sharding::None,
                        shard_ranks: self.shard_ranks,
                        recompute: Recompute::None,
                        sequence_parallel: false,
                        order: self.order,
                    }));
                }
            }
        }
        found
    }

    /// The layouts of those degrees with every microbatch that divides the batch, with and without sequence parallelism,
    /// and every exchange among context ranks.
    pub fn batches(&self, degrees: Layout, job: &TrainingJob) -> Vec<Layout> {
        let sizes = or_all(self.micro_batch, divisors(job.global_batch));
        // On a single tensor rank there is nothing to split along the sequence.
        let split = or_all(self.sequence_parallel, [true, false].into_iter().filter(|on| degrees.tensor > 1 || !on));
        // A single context rank has all keys.
        let exchanges = ContextExchange::ALL.iter().copied();
        let exchanges = exchanges.filter(|exchange| degrees.context > 1 || *exchange == ContextExchange::AllGather);
        let mut found = Vec::new();
        for context_exchange in or_all(self.context_exchange, exchanges) {
            for &sequence_parallel in &split {
                let with = |&micro_batch: &u32| Layout { context_exchange, micro_batch, sequence_parallel, ..degrees };
                found.extend(sizes.iter().map(with));
            }
        }
        found
    }

    /// The layouts of those degrees with every schedule; interleaved, with as many chunks of layers as there are layers.
    ///
    /// A pipeline of one stage has no schedule: it is 1F1B, of one chunk.
    pub fn passes(&self, batch: Layout, model: &Transformer) -> Vec<Layout> {
        let most = model.layers.saturating_add(2) / batch.pipeline;
        let schedules = or_all(
            self.schedule,
            Schedule::ALL.iter().copied().filter(|schedule| batch.pipeline > 1 || *schedule == Schedule::OneF1b),
        );
        let of = |schedule: Schedule| {
            let chunks = if schedule == Schedule::Interleaved { 2..=most } else { 1..=1 };
            // A number of chunks that is given goes with the schedules that have so many.
            let given = self.virtual_stages.filter(|given| self.schedule.is_some() || chunks.contains(given));
            let none = self.virtual_stages.is_some() && given.is_none();
            let chunks = if none { Vec::new() } else { or_all(given, chunks) };
            chunks.into_iter().map(move |virtual_stages| Layout { virtual_stages, schedule, ..batch })
        };
        schedules.into_iter().flat_map(of).collect()
    }

    /// What may be sharded. Where nobody holds a copy, there is nothing to shard.
    pub fn shardings(&self, degrees: &Layout) -> Vec<Sharding> {
        let copies = degrees.data_ranks() > 1 || degrees.expert_data_ranks() > 1;
        or_all(
            self.sharding,
            Sharding::UNGROUPED.iter().copied().filter(|sharding| copies || *sharding == Sharding::None),
        )
    }

    /// What may be computed again.
    pub fn recomputes(&self) -> Vec<Recompute> {
        or_all(self.recompute, Recompute::WORDS.iter().copied())
    }

    /// Every layout that passes [`Layout::check`], in a fixed order.
    pub fn layouts(&self, model: &Transformer, job: &TrainingJob, accelerators: u32) -> impl Iterator<Item = Layout> {
        let batches = self.degrees(model, accelerators).into_iter().flat_map(move |degrees| self.batches(degrees, job));
        let passes = batches.flat_map(move |batch| self.passes(batch, model));
        passes.filter(move |layout| layout.check(model, job).is_ok()).flat_map(move |layout| {
            let recomputes = self.recomputes();
            self.shardings(&layout).into_iter().flat_map(move |sharding| {
                recomputes.clone().into_iter().map(move |recompute| Layout { sharding, recompute, ..layout })
            })
        })
    }
}

/// Divisors in ascending order.
fn divisors(number: u32) -> impl Iterator<Item = u32> {
    let root = number.isqrt();
    let low = move || (1..=root).filter(move |divisor| number.is_multiple_of(*divisor));
    let high =
        (1..=root).rev().filter(move |divisor| number.is_multiple_of(*divisor)).map(move |divisor| number / divisor);
    low().chain(high.filter(move |divisor| *divisor > root))
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::SINGLE;
    use super::*;
    use crate::workload::shapes::{gpt, job, mixtral_8x7b};

    const ORDER: RankOrder = RankOrder::TpCpEpDpPp;

    #[test]
    fn divisors_ascend() {
        assert_eq!(divisors(36).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 9, 12, 18, 36]);
        assert_eq!(divisors(1).collect::<Vec<_>>(), [1]);
        assert_eq!(divisors(12).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 12]);
    }

    #[test]
    fn every_layout_divides_and_none_is_missing() {
        let (model, job) = (gpt(24, 2_304, 24), job(2_048, 64));
        let space = Space {
            micro_batch: Some(1),
            virtual_stages: Some(1),
            schedule: Some(Schedule::OneF1b),
            sharding: Some(Sharding::Optimizer),
            recompute: Some(Recompute::None),
            sequence_parallel: Some(false),
            context_exchange: Some(ContextExchange::AllGather),
            ..Space::all(ORDER)
        };
        let found: Vec<Layout> = space.layouts(&model, &job, 8).collect();
        assert!(found.iter().all(|layout| layout.check(&model, &job).is_ok() && layout.accelerators() == 8));
        // 8 = tensor x context x pipeline x data with tensor, context and pipeline free: C(3+3, 3) = 20 ways to share out
        // three factors of two among four axes.
        assert_eq!(found.len(), 20);
    }

    #[test]
    fn a_key_that_is_given_stays() {
        let (model, job) = (mixtral_8x7b(), job(4_096, 64));
        let space = Space { tensor: Some(2), expert: Some(4), virtual_stages: Some(4), ..Space::all(ORDER) };
        let found: Vec<Layout> = space.layouts(&model, &job, 32).collect();
        assert!(!found.is_empty());
        assert!(found.iter().all(|layout| (layout.tensor, layout.expert, layout.virtual_stages) == (2, 4, 4)));
        assert!(found.iter().all(|layout| layout.schedule == Schedule::Interleaved));
        // A degree that no number of replicas fills up gives none.
        assert_eq!(Space { tensor: Some(3), ..space }.degrees(&model, 32), []);
        assert_eq!(Space { tensor: Some(0), ..space }.degrees(&model, 32), []);
    }

    #[test]
    fn choices_that_change_nothing_are_one() {
        let (model, job) = (gpt(24, 2_304, 24), job(2_048, 64));
        let space = Space::all(ORDER);
        assert_eq!(space.passes(SINGLE, &model).len(), 1);
        assert_eq!(space.shardings(&SINGLE), [Sharding::None]);
        // The divisors of 64 sequences, without sequence parallelism on a single rank.
        assert_eq!(space.batches(SINGLE, &job).len(), 7);
        // 24 layers on four stages: up to six chunks each (26 slots), five of them interleaved, and four other schedules.
        assert_eq!(space.passes(Layout { pipeline: 4, ..SINGLE }, &model).len(), 9);
    }
}
