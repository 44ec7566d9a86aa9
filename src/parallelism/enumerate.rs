//! All layouts that divide.

use super::{Layout, RankOrder, Recompute, Schedule, Sharding};
use crate::workload::{TrainingJob, Transformer};

/// What a search may choose from beside the degrees.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// Sharding of states.
    pub sharding: &'a [Sharding],
    /// Recomputation.
    pub recompute: &'a [Recompute],
    /// Most sequences of a microbatch.
    pub most_micro_batch: u32,
    /// Most chunks of layers on a stage.
    pub most_virtual_stages: u32,
    /// Widest tensor parallelism: usually the scale-up domain.
    pub most_tensor: u32,
    /// The order of axes on ranks.
    pub order: RankOrder,
}

/// Every layout of a job on so many accelerators that passes [`Layout::check`], in a fixed order.
///
/// Degrees are divisors: of the accelerators, and of heads, experts, sequence and batch as `check` asks.
pub fn layouts(model: &Transformer, job: &TrainingJob, accelerators: u32, choices: Choices<'_>) -> Vec<Layout> {
    let mut found = Vec::new();
    let experts = model.experts.map_or(1, |experts| experts.count);
    for tensor in divisors(accelerators).filter(|tensor| *tensor <= choices.most_tensor) {
        for context in divisors(accelerators / tensor) {
            for pipeline in divisors(accelerators / tensor / context).filter(|stages| *stages <= model.layers + 2) {
                for expert in divisors(experts) {
                    for micro_batch in divisors(job.global_batch).filter(|size| *size <= choices.most_micro_batch) {
                        let most_chunks = if pipeline > 1 { choices.most_virtual_stages } else { 1 };
                        for virtual_stages in 1..=most_chunks {
                            let base = Layout {
                                tensor,
                                context,
                                pipeline,
                                data: accelerators / tensor / context / pipeline,
                                expert,
                                virtual_stages,
                                micro_batch,
                                schedule: if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneF1b },
                                sharding: Sharding::None,
                                recompute: Recompute::None,
                                sequence_parallel: tensor > 1,
                                order: choices.order,
                            };
                            if base.check(model, job).is_err() {
                                continue;
                            }
                            for sharding in choices.sharding {
                                let variants = choices.recompute.iter().map(|recompute| Layout {
                                    sharding: *sharding,
                                    recompute: *recompute,
                                    ..base
                                });
                                found.extend(variants);
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

/// Divisors in ascending order.
fn divisors(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |divisor| number.is_multiple_of(*divisor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::shapes::{gpt, job};

    #[test]
    fn every_layout_divides_and_none_is_missing() {
        let (model, job) = (gpt(24, 2_304, 24), job(2_048, 64));
        let choices = Choices {
            sharding: &[Sharding::Optimizer],
            recompute: &[Recompute::None],
            most_micro_batch: 1,
            most_virtual_stages: 1,
            most_tensor: 8,
            order: RankOrder::TpCpEpDpPp,
        };
        let found = layouts(&model, &job, 8, choices);
        assert!(found.iter().all(|layout| layout.check(&model, &job).is_ok() && layout.accelerators() == 8));
        // 8 = tensor x context x pipeline x data with tensor, context and pipeline free: C(3+3, 3) = 20 ways to share out
        // three factors of two among four axes.
        assert_eq!(found.len(), 20);
    }
}
