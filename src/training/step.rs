//! A step, assembled.

use super::estimate::{ExposedCommunication, OtherTime, TrainingEstimate};
use super::idle::{Passes, idle};
use super::layer::Pass;
use super::parts::{Microbatch, ReplicaMessages, Replicas};
use super::shard::Shard;
use crate::catalog::memory_allowance::SelectiveRecompute;
use crate::collectives::{Group, Wires};
use crate::compute::Silicon;
use crate::memory;
use crate::parallelism::{Layout, Module, Modules, RankParameters, Recompute, Schedule, Sharding, StagePlan};
use crate::scenario::{Overlap, StepEfficiency};
use crate::topology::Reach;
use crate::units::{Bytes, FlopRate, Flops, Seconds};
use crate::workload::{AttentionCount, LayerKind, TrainingJob, Transformer};

/// Everything that a step's time depends on but the layout; `Copy`, bound once.
#[derive(Clone, Copy, Debug)]
pub struct StepModel {
    /// The model.
    pub transformer: Transformer,
    /// The job.
    pub job: TrainingJob,
    /// The accelerator as software finds it.
    pub silicon: Silicon,
    /// What the software reaches.
    pub efficiency: StepEfficiency,
    /// What it overlaps.
    pub overlap: Overlap,
    /// What its selective recomputation repeats.
    pub selective: SelectiveRecompute,
    /// The wires.
    pub wires: Wires,
    /// Where groups of ranks lie.
    pub reach: Reach,
    /// Dense peak of the linear layers' data type.
    pub peak: FlopRate,
    /// Memory of an accelerator.
    pub memory: Bytes,
    /// What its software keeps of it.
    pub allowances: memory::Software,
}

/// Shares of the memory over which pressure on the allocator sets in: widths of logistic steps of the states' share and of
/// the peak's.
const STATES_WIDTH: f64 = 0.03;
const PEAK_WIDTH: f64 = 0.005;

/// One layer, averaged over kinds of layer, for one microbatch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LayerTime {
    compute: Seconds,
    /// Of the compute, the backward pass, and in it the gradients of weights.
    backward: Seconds,
    weights: Seconds,
    exposed: ExposedCommunication,
    /// Exchange of experts through the network cards, hidden or not: other messages through them wait for it.
    cards: Seconds,
    launch: Seconds,
}

impl LayerTime {
    fn total(&self) -> Seconds {
        self.compute + self.exposed.total() + self.launch
    }

    /// This much of it.
    pub(super) fn times(self, count: f64) -> Self {
        let exposed = ExposedCommunication {
            tensor: self.exposed.tensor * count,
            context: self.exposed.context * count,
            expert: self.exposed.expert * count,
            pipeline: self.exposed.pipeline * count,
            data: self.exposed.data * count,
        };
        Self {
            compute: self.compute * count,
            backward: self.backward * count,
            weights: self.weights * count,
            exposed,
            cards: self.cards * count,
            launch: self.launch * count,
        }
    }

    pub(super) fn plus(self, other: &Self) -> Self {
        let (a, b) = (self.exposed, other.exposed);
        let exposed = ExposedCommunication {
            tensor: a.tensor + b.tensor,
            context: a.context + b.context,
            expert: a.expert + b.expert,
            pipeline: a.pipeline + b.pipeline,
            data: a.data + b.data,
        };
        Self {
            compute: self.compute + other.compute,
            backward: self.backward + other.backward,
            weights: self.weights + other.weights,
            exposed,
            cards: self.cards + other.cards,
            launch: self.launch + other.launch,
        }
    }
}

impl StepModel {
    /// The step's time under a layout that has passed `Layout::check`.
    pub fn estimate(&self, layout: &Layout) -> TrainingEstimate {
        self.assembled(layout, &self.microbatch(layout), &self.replicas(layout))
    }

    /// The same from parts that other layouts share: those of [`StepModel::microbatch`] and [`StepModel::replicas`].
    pub fn assembled(&self, layout: &Layout, microbatch: &Microbatch, replicas: &Replicas) -> TrainingEstimate {
        let Microbatch { kinds, layer, logits, .. } = microbatch;
        let logits = *logits;
        let microbatches = f64::from(layout.microbatches(self.job.global_batch));
        let layers = f64::from(self.transformer.layers);
        let special = StagePlan::new(self.transformer.layers, layout).is_special();
        let (stage, slow_logits) = if special {
            self.slowest_given_stage(layout, kinds, logits)
        } else {
            self.slowest_stage(layout, layer, logits)
        };
        let stage_time = stage.total() + slow_logits;

        let mut exposed = stage.times(microbatches).exposed;
        exposed.pipeline = microbatch.between_stages(layout) * (self.efficiency.pipeline_exposed * microbatches);
        // The loss's gradients come at once: of the backward pass, those of the layers alone can be put off.
        let mut passes = Passes {
            whole: layer.total() * layers + logits,
            backward: layer.backward * layers,
            weights: layer.weights * layers,
        };
        if special {
            // The slowest stage waits for the others' passes, not for an even part of all.
            let slow = Passes { whole: stage_time, backward: stage.backward, weights: stage.weights };
            passes = passes.around(&slow, layout.pipeline);
        }
        let bubble = idle(layout, &passes);
        let window = if layout.virtual_stages > 1 { stage_time + bubble } else { stage_time };
        // What experts exchange in that time has the network cards to itself: two streams share one line rate.
        let [window, beside] = [window, stage_time].map(|time| time.saturating_sub(stage.cards));
        exposed.data = self.data_parallel(layout, replicas, window, beside, microbatches);

        let compute = (stage.compute + slow_logits) * microbatches;
        let optimizer = replicas.optimizer;
        let accumulation = replicas.accumulation * microbatches;
        let launch = stage.launch * microbatches;
        let before_scale =
            compute + exposed.total() + bubble + optimizer + accumulation + launch + self.efficiency.step;
        let stragglers = before_scale * (self.scale_effect(layout, microbatch.slowest) - 1.0);
        let work = &microbatch.work;
        TrainingEstimate {
            compute,
            exposed,
            bubble,
            optimizer,
            other: OtherTime { launch, accumulation, step: self.efficiency.step, stragglers, ..OtherTime::default() },
            model_flops: work.model_flops,
            hardware_flops: work.hardware_flops,
            model_flops_full_attention: work.model_flops_full_attention,
            tokens: work.tokens,
            accelerators: layout.accelerators() as f64,
            peak: self.peak,
        }
    }

    /// The share of a layer's compute that is its backward pass.
    pub(super) fn backward_share(&self, layout: &Layout) -> f64 {
        let [dense, moe] = self.layer_kinds(&Shard::new(&self.transformer, &self.job, layout), layout);
        let layers = [self.transformer.dense_layers(), self.transformer.moe_layers()].map(f64::from);
        let all = dense.times(layers[0]).plus(&moe.times(layers[1]));
        all.backward / all.compute
    }

    /// A layer with an ordinary MLP and one with experts, where the model has them: compute, exposed messages, and the wait
    /// for the host where kernels outrun it.
    pub(super) fn layer_kinds(&self, shard: &Shard, layout: &Layout) -> [LayerTime; 2] {
        let groups = layout.groups();
        let (tensor, context) = (self.group(groups.tensor), self.group(groups.context));
        let mut kinds = [LayerTime::default(); 2];
        if self.transformer.dense_layers() > 0 {
            let pass = self.dense_layer(shard);
            kinds[0] = self.layer(shard, layout, pass, &tensor, &context, None);
        }
        if let Some(experts) = &self.transformer.experts {
            let group = self.group(groups.expert);
            let pass = self.expert_layer(shard, experts, layout);
            let messages = self.expert_layer_messages(shard, experts, &group);
            let share = if group.domains() > 1 {
                self.efficiency.expert_network_exposed
            } else {
                self.efficiency.expert_scale_up_exposed
            };
            let cards = if group.domains() > 1 { messages } else { Seconds::ZERO };
            let time = self.layer(shard, layout, pass, &tensor, &context, Some((messages, share)));
            kinds[1] = LayerTime { cards, ..time };
        }
        kinds
    }

    /// One layer; `expert` is its all-to-all time and the share exposed, and marks a layer of experts.
    fn layer(
        &self,
        shard: &Shard,
        layout: &Layout,
        pass: Pass,
        tensor: &Group,
        context: &Group,
        expert: Option<(Seconds, f64)>,
    ) -> LayerTime {
        let again = match layout.recompute {
            Recompute::None => Seconds::ZERO,
            Recompute::Selective => self.selective(&pass),
            Recompute::Full | Recompute::Layers(_) => pass.forward() * self.whole_share(layout),
            Recompute::Modules(modules) => self.modules(&pass, modules, expert.is_some()),
        };
        let compute = pass.forward() + pass.backward + again;
        let messages = self.tensor_layer(shard, layout, tensor, expert.is_none(), self.whole_share(layout));
        let exposed_expert = expert.map_or(Seconds::ZERO, |(time, share)| {
            // Where dispatch and combine are scheduled beside other microbatches' compute, what exceeds it shows, and a
            // little of the rest; that is what DualPipe runs two passes side by side for.
            if self.overlap.expert || layout.schedule == Schedule::DualPipe {
                let hidden = time.min(compute);
                (time - hidden) + hidden * self.efficiency.expert_overlapped
            } else {
                time * share
            }
        });
        let exposed = ExposedCommunication {
            tensor: messages * self.efficiency.tensor_exposed,
            context: self.context_layer(shard, layout, context, pass.attention),
            expert: exposed_expert,
            ..ExposedCommunication::default()
        };
        let device = compute + exposed.total();
        let host = if expert.is_some() { self.efficiency.host_moe } else { self.efficiency.host_dense };
        LayerTime {
            compute,
            backward: pass.backward + again,
            // As many operations as the matrix multiplications of the forward pass.
            weights: pass.linear,
            exposed,
            cards: Seconds::ZERO,
            launch: device * ((1.0 + (host / device).powi(4)).sqrt().sqrt() - 1.0),
        }
    }

    /// The share of layers that are computed again from their input.
    fn whole_share(&self, layout: &Layout) -> f64 {
        layout.recompute.whole_share(f64::from(layout.most_layers(self.transformer.layers)))
    }

    /// What recomputation of chosen modules repeats of a forward pass: the kernel of attention, and of the matrix
    /// multiplications the modules' share by their operations.
    fn modules(&self, pass: &Pass, modules: Modules, experts: bool) -> Seconds {
        let kind = if experts { LayerKind::Moe } else { LayerKind::Dense };
        let layer = self.transformer.layer_flops(kind, self.job.sequence_length, AttentionCount::Causal);
        let repeated = modules.flops(&self.transformer, &layer);
        let (attention, core) = if modules.has(Module::CoreAttention) {
            (layer.attention, pass.attention)
        } else {
            (Flops::ZERO, Seconds::ZERO)
        };
        core + pass.linear * ((repeated - attention) / (layer.total() - layer.attention))
    }

    /// What selective recomputation repeats of a forward pass: attention's core, which keeps no scores to drop where the
    /// kernel is fused; in PyTorch every second matrix multiplication and the element-wise kernels.
    fn selective(&self, pass: &Pass) -> Seconds {
        match self.selective {
            SelectiveRecompute::AttentionCore if self.silicon.attention.fused => Seconds::ZERO,
            SelectiveRecompute::AttentionCore => pass.attention,
            SelectiveRecompute::AlternateMatmuls => pass.linear * 0.5 + pass.streaming,
        }
    }

    /// FLOPs of one token that the backward pass carries out again, causal attention.
    pub(super) fn repeated_flops(&self, layout: &Layout) -> Flops {
        let (model, length) = (&self.transformer, self.job.sequence_length);
        let stage = layout.most_layers(model.layers);
        match (layout.recompute, self.selective) {
            (Recompute::Selective, SelectiveRecompute::AttentionCore) if self.silicon.attention.fused => Flops::ZERO,
            (Recompute::Selective, SelectiveRecompute::AlternateMatmuls) => {
                let attention = Recompute::Selective.flops_per_token(model, length, AttentionCount::Causal, stage);
                (model.layers_flops(length, AttentionCount::Causal) - attention) * 0.5
            }
            (recompute, _) => recompute.flops_per_token(model, length, AttentionCount::Causal, stage),
        }
    }

    /// The slowest stage of an even split, in layers of average kind, and the logits' time if it has them.
    fn slowest_stage(&self, layout: &Layout, layer: &LayerTime, logits: Seconds) -> (LayerTime, Seconds) {
        let most = f64::from(layout.most_layers(self.transformer.layers));
        let last = f64::from(layout.last_stage_layers(self.transformer.layers));
        let time = layer.total();
        let (layers, logits) = if time * last + logits >= time * most { (last, logits) } else { (most, Seconds::ZERO) };
        (layer.times(layers), logits)
    }

    /// The slowest stage of a split that is given, by the kinds of its layers: such splits often weigh dense layers against
    /// those with experts.
    fn slowest_given_stage(&self, layout: &Layout, kinds: &[LayerTime; 2], logits: Seconds) -> (LayerTime, Seconds) {
        let plan = StagePlan::new(self.transformer.layers, layout);
        let of = |index: u32| {
            let stage = plan.stage(index, &self.transformer);
            let [dense, moe] = [stage.dense_layers, stage.moe_layers].map(f64::from);
            (kinds[0].times(dense).plus(&kinds[1].times(moe)), if stage.head { logits } else { Seconds::ZERO })
        };
        let time = |(stage, logits): &(LayerTime, Seconds)| stage.total() + *logits;
        (1..layout.pipeline).map(of).fold(of(0), |most, other| if time(&other) > time(&most) { other } else { most })
    }

    /// Parameters of a rank on the stage that holds the most: the first, with the embedding, or one of the others, which
    /// are alike where the split is not given.
    pub(super) fn fullest_stage(&self, layout: &Layout) -> RankParameters {
        let plan = StagePlan::new(self.transformer.layers, layout);
        let last = layout.pipeline - 1;
        let shard = |stage: u32| layout.stage_shard(&self.transformer, plan.stage(stage, &self.transformer));
        let fuller =
            |most: RankParameters, other: RankParameters| if other.total() > most.total() { other } else { most };
        if layout.stage_layers.is_some() {
            return (1..=last).map(shard).fold(shard(0), fuller);
        }
        [1.min(last), last].into_iter().map(shard).fold(shard(0), fuller)
    }

    /// Exposed data-parallel time of a step.
    ///
    /// Gradients are whole only in the last microbatch, so that its backward pass alone (and the drain of an interleaved
    /// pipeline) can hide their reduction; fully sharded weights travel with every microbatch.
    fn data_parallel(
        &self,
        layout: &Layout,
        replicas: &Replicas,
        window: Seconds,
        stage: Seconds,
        microbatches: f64,
    ) -> Seconds {
        let (gradient, weight) = (self.job.gradients.size(), self.job.precision.gathered_size());
        let efficiency = &self.efficiency;
        let held = replicas.parameters.total();
        let (reduction, gathering) = match replicas.messages {
            ReplicaMessages::EveryMicrobatch(once) => {
                let exposed = if self.overlap.data {
                    once.saturating_sub(stage * efficiency.fully_sharded_window)
                } else {
                    once * efficiency.data_exposed
                };
                let bytes = (gradient + weight * 2.0) * held;
                return (exposed + self.contention(bytes, once, stage)) * microbatches;
            }
            ReplicaMessages::EveryStep { reduction, gathering } => (reduction, gathering),
        };
        // Sharded gradients are reduced after every microbatch, beside the next one's passes; only the last waits with
        // the weights' gathering.
        let earlier = if layout.sharding == Sharding::OptimizerGradients { microbatches - 1.0 } else { 0.0 };
        let last = reduction + gathering;
        if !self.overlap.data {
            return (last + reduction * earlier) * efficiency.data_exposed;
        }
        let beside = reduction.saturating_sub(stage * efficiency.data_window)
            + self.contention(gradient * held, reduction, stage);
        let hidden = last.min(window * efficiency.data_window);
        (last - hidden) + hidden * efficiency.data_tail + beside * earlier
    }

    /// What compute loses to communication that runs beside it: the bytes it moves through memory meanwhile.
    fn contention(&self, bytes: Bytes, communication: Seconds, compute: Seconds) -> Seconds {
        if communication <= Seconds::ZERO {
            return Seconds::ZERO;
        }
        let beside = (compute * self.efficiency.data_window / communication).min(1.0);
        self.silicon.stream(bytes * (self.efficiency.contention * beside))
    }

    /// The optimizer's pass over the states of this rank, and over the 16-bit weights and the gradients.
    pub(super) fn optimizer_step(&self, layout: &Layout, local: &RankParameters) -> Seconds {
        let updated = updated(layout, local);
        let whole = !layout.sharding.weights() || layout.pipeline > 1;
        let held = if whole { local.total() } else { updated };
        self.silicon.stream(
            Bytes::new(self.efficiency.optimizer_bytes * self.job.optimizer.traffic_over_adam() * updated)
                + self.job.gradients.size() * (2.0 * held),
        )
    }

    /// Adding one microbatch's gradients to the sum: a read and a write in the format that they are kept in.
    pub(super) fn accumulation(&self, layout: &Layout, local: &RankParameters) -> Seconds {
        let passes = if layout.sharding.weights() && layout.pipeline == 1 { 0.5 } else { 1.0 };
        self.silicon.stream(self.job.gradients.size() * (2.0 * self.efficiency.accumulate * passes * local.total()))
    }

    /// How much longer a step takes for its size: stragglers, and allocator retries where sharded states fill memory.
    /// `slowest` is how many standard deviations the slowest rank lies above the mean.
    fn scale_effect(&self, layout: &Layout, slowest: f64) -> f64 {
        let stragglers = 1.0 + self.efficiency.jitter * slowest;
        if self.efficiency.allocator == 0.0 || layout.tensor > 1 || layout.pipeline > 1 {
            return stragglers;
        }
        // Sixteen bytes of states a parameter, spread over all ranks that split them, leave little to the rest; and the
        // rest fills it: otherwise the allocator finds room without giving memory back and asking for it anew.
        let [ranks, _] = layout.sharding_ranks();
        let states = Bytes::new(16.0 * self.transformer.parameters().total() as f64 / f64::from(ranks));
        let (_, peak) = memory::worst(&self.transformer, &self.job, layout, &self.allowances);
        let beyond = |share: f64, threshold: f64, width: f64| 1.0 / (1.0 + (-(share - threshold) / width).exp());
        let pressure = beyond(states / self.memory, self.efficiency.allocator_threshold, STATES_WIDTH)
            * beyond(peak.total() / self.memory, self.efficiency.allocator_peak, PEAK_WIDTH);
        stragglers * (1.0 + self.efficiency.allocator * pressure)
    }
}

/// Parameters that a rank updates, of those that it holds.
pub(super) fn updated(layout: &Layout, held: &RankParameters) -> f64 {
    let [dense, experts] =
        if layout.sharding == Sharding::None { [1.0, 1.0] } else { layout.sharding_ranks().map(f64::from) };
    held.dense() / dense + held.experts / experts
}
