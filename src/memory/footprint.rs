//! The footprint of a rank.

use super::Software;
use super::activations::LayerActivations;
use crate::catalog::model::Block;
use crate::parallelism::{Layout, RankParameters, Recompute, Schedule, Stage, StagePlan};
use crate::units::Bytes;
use crate::workload::{LayerKind, Layers, TrainingJob, Transformer};

/// Bytes of one accelerator, by component.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryFootprint {
    /// Weights in the number format of the forward pass.
    pub weights: Bytes,
    /// Gradients as they are accumulated.
    pub gradients: Bytes,
    /// Master weights and moments.
    pub optimizer: Bytes,
    /// What layers keep of the microbatches in flight, and the logits.
    pub activations: Bytes,
    /// Keys and values of a serving engine; none in training.
    pub kv_cache: Bytes,
    /// What is held for the layer at work, buffers of libraries, and what the allocator cannot use.
    pub workspace: Bytes,
    /// What the host keeps in its stead; no part of the total.
    pub offloaded: Bytes,
}

impl MemoryFootprint {
    /// The sum of all components that the accelerator holds.
    pub fn total(&self) -> Bytes {
        self.weights + self.gradients + self.optimizer + self.activations + self.kv_cache + self.workspace
    }

    /// Whether it fits into that much.
    pub fn fits(&self, usable: Bytes) -> bool {
        self.total() <= usable
    }
}

/// The footprint of a rank on the stage of that index, for a layout that `Layout::check` let pass.
pub fn footprint<'a>(
    model: impl Into<Layers<'a>>,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
    stage: u32,
) -> MemoryFootprint {
    Rank::new(model.into(), job, layout, software).footprint(stage)
}

/// The stage that takes most, and what it takes.
pub fn worst<'a>(
    model: impl Into<Layers<'a>>,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
) -> (u32, MemoryFootprint) {
    let rank = Rank::new(model.into(), job, layout, software);
    let last = layout.pipeline - 1;
    let mut most = (0, rank.footprint(0));
    let mut consider = |stage: u32| {
        let footprint = rank.footprint(stage);
        if footprint.total() > most.1.total() {
            most = (stage, footprint);
        }
    };
    if last > 0 && rank.uniform() && layout.stage_layers.is_none() {
        // Later stages keep fewer microbatches and no more layers than the second; only the last holds the loss.
        consider(1);
        consider(last);
    } else {
        (1..=last).for_each(consider);
    }
    most
}

/// The footprints of all stages, in order.
pub fn all_stages<'a>(
    model: impl Into<Layers<'a>>,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
) -> impl Iterator<Item = MemoryFootprint> {
    let rank = Rank::new(model.into(), job, layout, software);
    (0..layout.pipeline).map(move |stage| rank.footprint(stage))
}

/// What one microbatch of the first stage, which has most of them in flight, leaves with the host until its backward pass.
pub fn offloaded_activations<'a>(
    model: impl Into<Layers<'a>>,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
) -> Bytes {
    let rank = Rank::new(model.into(), job, layout, software);
    let plan = StagePlan::new(rank.model.layers, layout);
    let (_, moved) = rank.activations(plan, plan.stage(0, rank.model), 0);
    moved / layout.in_flight(0, layout.microbatches(job.global_batch))
}

struct Rank<'a> {
    /// What stands around the layers.
    model: &'a Transformer,
    job: &'a TrainingJob,
    layout: &'a Layout,
    software: &'a Software,
    layers: Kinds<'a>,
}

/// The layers of a rank, by kind.
enum Kinds<'a> {
    /// One with an ordinary MLP and one with experts, where the model has them.
    Two([Layer; 2]),
    /// One of each block, and the block of each layer.
    Many(Vec<Layer>, &'a [usize]),
}

/// A master weight.
const MASTER: Bytes = Bytes::new(4.0);

/// One layer on a rank.
#[derive(Clone, Copy, Default)]
struct Layer {
    held: RankParameters,
    /// Activations kept of one microbatch, under the layout's recomputation and without any.
    kept: Bytes,
    kept_plain: Bytes,
    recomputed: Bytes,
}

impl Layer {
    fn new(held: RankParameters, activations: LayerActivations) -> Self {
        Self {
            held,
            kept: activations.kept,
            kept_plain: activations.kept + activations.recomputed,
            recomputed: activations.recomputed,
        }
    }
}

impl Kinds<'_> {
    /// Visits a stage's layers, equal neighbours at once, from its first layer on.
    fn visit(&self, plan: StagePlan, index: u32, stage: Stage, mut see: impl FnMut(&Layer, u32)) {
        match self {
            // Those with ordinary MLPs come before those with experts.
            Self::Two([dense, moe]) => {
                for (layer, count) in [(dense, stage.dense_layers), (moe, stage.moe_layers)] {
                    if count > 0 {
                        see(layer, count);
                    }
                }
            }
            Self::Many(layers, order) => {
                for [from, to] in plan.ranges(index) {
                    let range = order.get(from as usize..to as usize).unwrap_or_default();
                    range.iter().filter_map(|kind| layers.get(*kind)).for_each(|layer| see(layer, 1));
                }
            }
        }
    }
}

impl<'a> Rank<'a> {
    fn new(layers: Layers<'a>, job: &'a TrainingJob, layout: &'a Layout, software: &'a Software) -> Self {
        let model = layers.frame();
        let layers = match layers {
            Layers::Alike(model) => {
                let layer = |kind, count: u32| {
                    if count == 0 {
                        return Layer::default();
                    }
                    Layer::new(layout.layer_shard(model, kind), layout.layer_activations(model, kind, job, software))
                };
                Kinds::Two([layer(LayerKind::Dense, model.dense_layers()), layer(LayerKind::Moe, model.moe_layers())])
            }
            Layers::Mixed(mixed) => {
                let layer = |block: &Block| {
                    let activations = layout.block_activations(model.hidden, block, job, software);
                    Layer::new(layout.block_shard(&mixed.model, block), activations)
                };
                Kinds::Many(mixed.model.blocks.iter().map(layer).collect(), &mixed.order)
            }
        };
        Self { model, job, layout, software, layers }
    }

    /// Whether all layers are of one kind.
    fn uniform(&self) -> bool {
        matches!(self.layers, Kinds::Two(_)) && (self.model.dense_layers() == 0 || self.model.moe_layers() == 0)
    }

    fn footprint(&self, index: u32) -> MemoryFootprint {
        let plan = StagePlan::new(self.model.layers, self.layout);
        let stage = plan.stage(index, self.model);
        let mut of_layers = RankParameters::default();
        self.layers.visit(plan, index, stage, |layer, count| of_layers = of_layers.plus(layer.held.times(count)));
        let held = self.layout.stage_around(self.model, stage, of_layers);
        let (sharding, offload) = (self.layout.sharding, self.job.offload);
        let (activations, moved) = self.activations(plan, stage, index);
        let buffers = self.buffers(plan, stage, index, held);
        let pooled = (activations + buffers) * self.software.fragmentation.get();
        let mut offloaded = moved;
        let mut keep = |bytes: Bytes, elsewhere: bool| {
            if elsewhere {
                offloaded += bytes;
            }
            if elsewhere { Bytes::ZERO } else { bytes }
        };
        let weight = if self.software.casts_weights { MASTER } else { self.job.precision.size() };
        let weights = keep(weight * self.share(held, sharding.weights()), offload.weights());
        // Where ranks keep their own part of the gradients alone, it is sent to the host as it is reduced.
        let follow = offload.optimizer() && sharding.gradients();
        let gradients = keep(self.job.gradients.size() * self.share(held, sharding.gradients()), follow);
        let optimizer = keep(self.optimizer(stage, held), offload.optimizer());
        MemoryFootprint {
            weights,
            gradients,
            optimizer,
            activations,
            kv_cache: Bytes::ZERO,
            workspace: buffers + pooled + self.software.context + self.communicators(),
            offloaded,
        }
    }

    /// Parameters of the rank that it keeps something of: all that it holds, or its part among those who hold the same.
    fn share(&self, held: RankParameters, sharded: bool) -> f64 {
        if !sharded {
            return held.total();
        }
        let [dense, experts] = self.layout.sharding_ranks();
        held.dense() / f64::from(dense) + held.experts / f64::from(experts)
    }

    /// States of layers and of tables.
    fn optimizer(&self, stage: Stage, held: RankParameters) -> Bytes {
        let (optimizer, model) = (self.job.optimizer, self.model);
        let twice = !(model.tied_embeddings && stage.embedding);
        let tables = f64::from(u32::from(stage.embedding) + u32::from(stage.head && twice));
        let split = tables * self.layout.table_shard(model);
        let of_tables = RankParameters { split, ..RankParameters::default() };
        let sharded = self.layout.sharding.optimizer();
        let tables = self.share(of_tables, sharded);
        // Where the weights are the master weights, these are counted with them.
        let counted = if self.software.casts_weights { MASTER } else { Bytes::ZERO };
        let [of_layer, of_table] = [optimizer.state_size(), optimizer.table_state_size()];
        of_layer.saturating_sub(counted) * (self.share(held, sharded) - tables)
            + of_table.saturating_sub(counted) * tables
    }

    /// Layers of the microbatches in flight; on the first stage the mask of the embedding's dropout, on the last the input
    /// of the last norm, its output, and the logits (Korthikanti et al., section 4.3). Also, what of the layers' the host
    /// keeps.
    fn activations(&self, plan: StagePlan, stage: Stage, index: u32) -> (Bytes, Bytes) {
        let Self { model, job, layout, software, .. } = self;
        let microbatches = layout.microbatches(job.global_batch);
        let in_flight = layout.in_flight(index, microbatches);
        // Recomputation of some layers covers the first of a stage.
        let mut left = if let Recompute::Layers(covered) = layout.recompute { covered } else { u32::MAX };
        let mut largest = Bytes::ZERO;
        let mut all = Bytes::ZERO;
        self.layers.visit(plan, index, stage, |layer, count| {
            let covered = left.min(count);
            left -= covered;
            let of = |kept: Bytes, count: u32| if count > 0 { kept } else { Bytes::ZERO };
            largest = largest.max(of(layer.kept, covered)).max(of(layer.kept_plain, count - covered));
            all += layer.kept * f64::from(covered) + layer.kept_plain * f64::from(count - covered);
        });
        let all = all * in_flight;
        // Of what goes to the host, the layer at work stays, and the one that is fetched or sent meanwhile.
        let mut kept = if job.offload.activations() { all.min(2.0 * largest) } else { all };
        let moved = all.saturating_sub(kept);
        let tokens = layout.tokens_per_microbatch(job);
        let stream = tokens * f64::from(model.hidden) / f64::from(layout.sequence_shards());
        if stage.embedding && !software.fused_attention {
            kept += Bytes::new(stream * in_flight);
        }
        if stage.head {
            let logits = self.logits();
            let waiting = if layout.schedule == Schedule::Gpipe { in_flight } else { 1.0 };
            // One microbatch is at its peak; those that wait for their backward pass keep fp32 logits, or what fewer bytes a
            // loss stores of them.
            let waits = software.logit.min(Bytes::new(4.0));
            kept += (job.precision.size() * (2.0 * stream) + waits * logits) * waiting;
            kept += software.logit.saturating_sub(waits) * logits + self.gathered_input();
        }
        (kept, moved)
    }

    /// With sequence parallelism, the input that tensor ranks gather for the matrices at work, and its gradient.
    fn gathered_input(&self) -> Bytes {
        let Self { model, job, layout, .. } = self;
        if !layout.sequence_parallel || layout.tensor == 1 {
            return Bytes::ZERO;
        }
        job.precision.size() * (2.0 * layout.tokens_per_microbatch(job) * f64::from(model.hidden))
    }

    /// Logits of one microbatch on a rank.
    fn logits(&self) -> f64 {
        self.layout.tokens_per_microbatch(self.job) * f64::from(self.model.vocab) / f64::from(self.layout.tensor)
    }

    /// What the layer at work holds for a while: the gradient of its weights before it joins the others, what it computes
    /// again, and the gathered weights of fully sharded ones; on the last stage also the output projection's gradient.
    fn buffers(&self, plan: StagePlan, stage: Stage, index: u32, held: RankParameters) -> Bytes {
        let Self { model, job, layout, software, .. } = self;
        let number = job.precision.size();
        let sharded = layout.sharding.weights();
        // Between microbatches of a pipeline, gathered weights stay and gradients add up unsharded: gathering again for
        // each would cost more than the bubble (torchtitan keeps them so, reshard_after_forward being off).
        let stays = sharded && layout.pipeline > 1;
        // The loss's buffers are gone when the last layer's backward pass begins.
        let freed = if stage.head { software.logit * self.logits() + self.gathered_input() } else { Bytes::ZERO };
        let at_work = |layer: &Layer| {
            let parameters = layer.held.total();
            // Its own and the next one's, fetched ahead.
            let gathered = if sharded && !stays { 2.0 * parameters } else { 0.0 };
            number * (parameters + gathered) + (layer.recomputed + self.gathered_input()).saturating_sub(freed)
        };
        let mut layer = Bytes::ZERO;
        self.layers.visit(plan, index, stage, |each, _| layer = layer.max(at_work(each)));
        let table = |here: bool| if here { layout.table_shard(model) } else { 0.0 };
        let tables = number * (table(stage.head) + table(sharded && !stays && (stage.head || stage.embedding)));
        let staying = if stays { (number + job.gradients.size()) * held.total() } else { Bytes::ZERO };
        layer + tables + staying
    }

    fn communicators(&self) -> Bytes {
        let groups = self.layout.groups();
        let used = |sizes: &[u32]| sizes.iter().filter(|size| **size > 1).count();
        let axes = used(&[groups.tensor.size, groups.context.size, groups.pipeline.size, groups.data.size]);
        // Experts that are not spread are reduced with the rest.
        let experts = if groups.expert.size > 1 { used(&[groups.expert.size, groups.expert_data.size]) } else { 0 };
        self.software.communicator * (axes + experts) as f64
    }
}

#[cfg(test)]
pub(super) mod tests;
