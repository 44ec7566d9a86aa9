//! The parts of a step that many layouts share, so that a search of layouts computes each once.

use super::communication::Copies;
use super::shard::Shard;
use super::step::{LayerTime, StepModel};
use super::stragglers::slowest_of;
use crate::collectives::Group;
use crate::parallelism::{Layout, RankGroup, RankParameters, Recompute, Schedule, Sharding};
use crate::units::{Flops, Seconds, Tokens};
use crate::workload::AttentionCount;

/// What one microbatch takes: the same for all layouts with the same degrees, microbatch, exchange among context ranks and
/// sequence parallelism for which [`Microbatch::serves`] says so.
#[derive(Clone, Copy, Debug)]
pub struct Microbatch {
    key: Key,
    /// A layer with an ordinary MLP and one with experts.
    pub(super) kinds: [LayerTime; 2],
    /// One layer, averaged over both.
    pub(super) layer: LayerTime,
    /// Logits and loss.
    pub(super) logits: Seconds,
    /// A message between stages.
    message: Seconds,
    /// How many standard deviations the slowest rank lies above the mean.
    pub(super) slowest: f64,
    /// Work of the step.
    pub(super) work: Work,
}

/// What of a layout, beside what all layouts of a row share, decides what a microbatch takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Key {
    recompute: Recompute,
    /// The share of layers that are computed again, as they lie on the fullest stage.
    again: f64,
    dual: bool,
}

impl Key {
    fn new(model: &StepModel, layout: &Layout) -> Self {
        let again = match layout.recompute {
            Recompute::Layers(_) => {
                layout.recompute.whole_share(f64::from(layout.most_layers(model.transformer.layers)))
            }
            _ => 0.0,
        };
        Self { recompute: layout.recompute, again, dual: layout.schedule == Schedule::DualPipe }
    }
}

/// Work of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) tokens: Tokens,
    pub(super) model_flops: Flops,
    pub(super) hardware_flops: Flops,
    pub(super) model_flops_full_attention: Flops,
}

impl Microbatch {
    /// Whether it is that of a layout, too, which differs in schedule, chunks of layers, sharding or recomputation alone.
    pub fn serves(&self, model: &StepModel, layout: &Layout) -> bool {
        self.key == Key::new(model, layout)
    }

    /// Messages between stages.
    pub(super) fn between_stages(&self, layout: &Layout) -> Seconds {
        self.message * (2.0 * f64::from(layout.virtual_stages))
    }
}

/// What ranks with the same weights exchange and update: the same for layouts that differ in recomputation alone.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// Parameters of a rank on the stage that holds the most.
    pub(super) parameters: RankParameters,
    /// The optimizer's pass.
    pub(super) optimizer: Seconds,
    /// Adding one microbatch's gradients to the sum.
    pub(super) accumulation: Seconds,
    /// Messages.
    pub(super) messages: ReplicaMessages,
}

/// Messages among ranks with the same weights, hidden or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReplicaMessages {
    /// Weights are gathered for the forward and again for the backward pass of each microbatch, and gradients reduced.
    EveryMicrobatch(Seconds),
    /// Gradients are reduced, and updated weights gathered.
    EveryStep { reduction: Seconds, gathering: Seconds },
}

impl StepModel {
    /// What one microbatch takes under a layout.
    pub fn microbatch(&self, layout: &Layout) -> Microbatch {
        let shard = Shard::new(&self.transformer, &self.job, layout);
        let layers = f64::from(self.transformer.layers);
        let kinds = self.layer_kinds(&shard, layout);
        let dense_share = f64::from(self.transformer.dense_layers()) / layers;
        let sequences = f64::from(self.job.global_batch);
        let length = self.job.sequence_length;
        let flops = |count| self.transformer.model_flops_per_token(length, count) * (sequences * f64::from(length));
        let causal = flops(AttentionCount::Causal);
        Microbatch {
            key: Key::new(self, layout),
            kinds,
            layer: kinds[0].times(dense_share).plus(&kinds[1].times(1.0 - dense_share)),
            logits: self.logits(&shard),
            message: self.pipeline_message(&shard, layout, &self.group(layout.groups().pipeline)),
            slowest: slowest_of(layout.accelerators() as f64),
            work: Work {
                tokens: Tokens::new(sequences * f64::from(length)),
                model_flops: causal,
                hardware_flops: causal + self.repeated_flops(layout) * (sequences * f64::from(length)),
                model_flops_full_attention: flops(AttentionCount::Full),
            },
        }
    }

    /// What ranks with the same weights exchange and update under a layout.
    pub fn replicas(&self, layout: &Layout) -> Replicas {
        let parameters = self.fullest_stage(layout);
        Replicas {
            parameters,
            optimizer: self.optimizer_step(layout, &parameters),
            accumulation: self.accumulation(layout, &parameters),
            messages: self.replica_messages(layout, &parameters),
        }
    }

    fn replica_messages(&self, layout: &Layout, local: &RankParameters) -> ReplicaMessages {
        let groups = layout.groups();
        let [dense, experts] = layout.sharding_ranks();
        let parts = [
            (local.dense(), Copies::new(groups.data, dense)),
            (local.experts, Copies::new(groups.expert_data, experts)),
        ];
        let (gradient, weight) = (self.job.gradients.size(), self.job.precision.gathered_size());
        let over_parts = |time: &dyn Fn(f64, &Copies) -> Seconds| -> Seconds {
            parts.iter().filter(|(count, _)| *count > 0.0).map(|(count, copies)| time(*count, copies)).sum()
        };
        // Under a pipeline, weights stay gathered and gradients whole over the step, as PyTorch does it.
        if layout.sharding.weights() && layout.pipeline == 1 {
            // Weights are gathered for the forward and again for the backward pass.
            return ReplicaMessages::EveryMicrobatch(over_parts(&|count, copies| {
                let slower = |ranks: RankGroup| {
                    let group = self.group(ranks);
                    let share = group.network_share * self.efficiency.fully_sharded_bandwidth;
                    Group { network_share: share, ..group }
                };
                self.reduce_split(gradient * count, copies, slower)
                    + self.gather_split(weight * (2.0 * count), copies, slower)
            }));
        }
        let group = |ranks: RankGroup| self.group(ranks);
        let reduction = over_parts(&|count, copies| match layout.sharding {
            Sharding::None => self.all_reduce_whole(gradient * count, copies, group),
            _ => self.reduce_split(gradient * count, copies, group),
        });
        let gathering = over_parts(&|count, copies| match layout.sharding {
            Sharding::None => Seconds::ZERO,
            _ => self.gather_split(weight * count, copies, group),
        });
        ReplicaMessages::EveryStep { reduction, gathering }
    }
}
