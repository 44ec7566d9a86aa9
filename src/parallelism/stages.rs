//! Which layers a pipeline stage holds, and how many microbatches it keeps activations of.

use super::{Layout, Schedule, StageLayers};
use crate::workload::Transformer;

/// Layers spread over the chunks of a pipeline: as a layout says, or as evenly as they go.
///
/// Layers that divide are split evenly. Where they don't, the embedding and the loss count as a layer each: 126 layers
/// make 128 slots, eight on each of 16 stages, and the first and the last stage hold seven layers, as Llama 3 does
/// (arXiv 2407.21783, section 3.3.2). Slots left over go to the chunks after the first, one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePlan {
    layers: u32,
    pipeline: u32,
    virtual_stages: u32,
    given: Option<StageLayers>,
    mirrored: bool,
}

/// What a pipeline stage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Layers with an ordinary MLP.
    pub dense_layers: u32,
    /// Layers with experts.
    pub moe_layers: u32,
    /// Whether the embedding is here.
    pub embedding: bool,
    /// Whether the last norm, the output projection and the loss are here.
    pub head: bool,
}

impl Stage {
    /// Layers of either kind.
    pub const fn layers(&self) -> u32 {
        self.dense_layers + self.moe_layers
    }
}

impl StagePlan {
    /// The plan of a model's layers over a layout's stages.
    pub const fn new(layers: u32, layout: &Layout) -> Self {
        let mirrored = matches!(layout.schedule, Schedule::DualPipe) && layout.pipeline > 1;
        let Layout { pipeline, virtual_stages, stage_layers: given, .. } = *layout;
        Self { layers, pipeline, virtual_stages, given, mirrored }
    }

    /// Chunks in all.
    pub const fn chunks(&self) -> u32 {
        self.pipeline * self.virtual_stages
    }

    /// Layers in the chunks before that one; for the number of chunks, all layers.
    fn layers_before(&self, chunk: u32) -> u32 {
        let chunks = self.chunks();
        if chunk >= chunks {
            return self.layers;
        }
        if let Some(given) = &self.given {
            return given.before(chunk);
        }
        if self.layers.is_multiple_of(chunks) {
            return chunk * (self.layers / chunks);
        }
        let slots = self.layers + 2;
        let (each, left_over) = (slots / chunks, slots % chunks);
        // The first slot is the embedding's.
        (chunk * each + chunk.saturating_sub(1).min(left_over)).saturating_sub(1)
    }

    /// Whether a split is given that is not the one that layers have anyway.
    pub fn is_special(&self) -> bool {
        let usual = Self { given: None, ..*self };
        self.given.is_some() && (1..self.chunks()).any(|chunk| self.layers_before(chunk) != usual.layers_before(chunk))
    }

    /// First layer, and the one after the last, of each chunk of a stage; of interleaved chunks, every `pipeline`-th.
    fn of_stage(self, stage: u32) -> impl Iterator<Item = [u32; 2]> {
        (stage..self.chunks())
            .step_by(self.pipeline as usize)
            .map(move |chunk| [self.layers_before(chunk), self.layers_before(chunk + 1)])
    }

    /// Ranges of layers on the stage of that index, the first of each and the one after the last; under DualPipe, also those
    /// of its mirror image.
    pub fn ranges(&self, stage: u32) -> impl Iterator<Item = [u32; 2]> {
        let other = self.mirrored.then(|| self.of_stage(self.pipeline - 1 - stage));
        self.of_stage(stage).chain(other.into_iter().flatten())
    }

    /// Layers on the stage of that index.
    fn layers_on(&self, stage: u32) -> u32 {
        let chunks = self.chunks();
        if self.given.is_none() {
            if self.layers.is_multiple_of(chunks) {
                return self.layers / self.pipeline;
            }
            let slots = self.layers + 2;
            let (each, left_over) = (slots / chunks, slots % chunks);
            if each > 0 {
                // Of the chunks after the first, those up to `left_over` hold a slot more; one slot is the embedding's, on
                // the first stage, and one the loss's, on the last.
                let more = if left_over >= stage { (left_over - stage) / self.pipeline + 1 } else { 0 };
                let taken = if stage == 0 { 2 } else { 0 } + u32::from(stage + 1 == self.pipeline);
                return self.virtual_stages * each + more - taken;
            }
        }
        self.of_stage(stage).map(|[from, to]| to - from).sum()
    }

    /// What the stage of that index holds; under DualPipe, also what its mirror image does.
    pub fn stage(&self, stage: u32, model: &Transformer) -> Stage {
        let own = self.one_way(stage, model);
        if !self.mirrored {
            return own;
        }
        let other = self.one_way(self.pipeline - 1 - stage, model);
        Stage {
            dense_layers: own.dense_layers + other.dense_layers,
            moe_layers: own.moe_layers + other.moe_layers,
            embedding: own.embedding || other.embedding,
            head: own.head || other.head,
        }
    }

    fn one_way(&self, stage: u32, model: &Transformer) -> Stage {
        let layers = self.layers_on(stage);
        let dense_layers = match (model.dense_layers(), model.moe_layers()) {
            (_, 0) => layers,
            (0, _) => 0,
            _ => self.of_stage(stage).map(|[from, to]| model.dense_before(to) - model.dense_before(from)).sum(),
        };
        let (embedding, head) = (stage == 0, stage + 1 == self.pipeline);
        Stage { dense_layers, moe_layers: layers - dense_layers, embedding, head }
    }
}

impl Layout {
    /// Most layers of a stage. Where the split is not given, left-over slots go to the second chunk first, so that no later
    /// stage holds more than the second.
    pub fn most_layers(&self, layers: u32) -> u32 {
        let plan = StagePlan::new(layers, self);
        if self.stage_layers.is_some() {
            return (0..self.pipeline).map(|stage| plan.layers_on(stage)).max().unwrap_or(layers);
        }
        plan.layers_on(0).max(plan.layers_on(1.min(self.pipeline - 1)))
    }

    /// Layers on the last stage.
    pub fn last_stage_layers(&self, layers: u32) -> u32 {
        StagePlan::new(layers, self).layers_on(self.pipeline - 1)
    }

    /// Microbatches whose activations a stage holds at its fullest, of so many in a step. A fraction under interleaving,
    /// where chunks of a stage hold different numbers.
    ///
    /// 1F1B holds as many as there are stages from this one on. Interleaved, rank `r` of `p` with `v` chunks runs
    /// `2(p - r - 1) + (v - 1)p` chunk passes ahead, and one more: on the first stage `p (1 + (p - 1)/(p v))`
    /// microbatches (Korthikanti et al., arXiv 2205.05198, section 4.2.3). Zero bubble puts weight gradients off, so that
    /// every stage may hold as many as the first of 1F1B. DualPipe holds `p + 1` for half as many layers as are counted.
    pub fn in_flight(&self, stage: u32, microbatches: u32) -> f64 {
        if self.pipeline == 1 {
            return 1.0;
        }
        let behind = self.pipeline - stage - 1;
        match self.schedule {
            Schedule::Gpipe => f64::from(microbatches),
            Schedule::OneF1b => f64::from(microbatches.min(behind + 1)),
            Schedule::Interleaved => {
                // Floating point, because microbatches times chunks may be more than 32 bits hold.
                let [behind, chunks, stages] = [behind, self.virtual_stages, self.pipeline].map(f64::from);
                let chunk_passes = 2.0 * behind + (chunks - 1.0) * stages + 1.0;
                chunk_passes.min(f64::from(microbatches) * chunks) / chunks
            }
            Schedule::ZeroBubble => f64::from(microbatches.min(self.pipeline)),
            Schedule::DualPipe => f64::from(microbatches.min(self.pipeline + 1)) / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::SINGLE;
    use super::*;
    use crate::workload::Experts;
    use crate::workload::shapes::{gpt, llama_405b};

    fn split(layers: u32, pipeline: u32, virtual_stages: u32) -> Vec<u32> {
        let plan = StagePlan::new(layers, &Layout { pipeline, virtual_stages, ..SINGLE });
        let model = Transformer { layers, ..llama_405b() };
        (0..pipeline).map(|stage| plan.stage(stage, &model).layers()).collect()
    }

    #[test]
    fn layers_that_divide_are_split_evenly() {
        assert_eq!(split(96, 8, 3), [12; 8]);
        assert_eq!(split(80, 1, 1), [80]);
    }

    #[test]
    fn embedding_and_loss_count_as_slots() {
        let llama = split(126, 16, 1);
        assert_eq!((llama[0], llama[15]), (7, 7));
        assert!(llama[1..15].iter().all(|layers| *layers == 8));
        assert_eq!(split(126, 16, 4), llama);
        assert_eq!(split(30, 4, 1), [7, 8, 8, 7]);
        // 15 slots on four stages: three are left over.
        assert_eq!(split(13, 4, 1), [2, 4, 4, 3]);
    }

    #[test]
    fn the_fullest_stage_is_one_of_the_first_two() {
        for layers in 1..60 {
            for (pipeline, virtual_stages) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (8, 1), (7, 2)] {
                if pipeline * virtual_stages > layers + 2 {
                    continue;
                }
                let stages = split(layers, pipeline, virtual_stages);
                assert_eq!(stages.iter().sum::<u32>(), layers);
                let layout = Layout { pipeline, virtual_stages, ..SINGLE };
                let plan = StagePlan::new(layers, &layout);
                let listed = |stage| plan.ranges(stage).map(|[from, to]| to - from).sum::<u32>();
                assert_eq!((0..pipeline).map(listed).collect::<Vec<_>>(), stages, "{layers} on {layout:?}");
                assert_eq!(layout.last_stage_layers(layers), stages[stages.len() - 1]);
                let most = stages.into_iter().max().unwrap();
                assert_eq!(layout.most_layers(layers), most, "{layers} on {pipeline} x {virtual_stages}");
            }
        }
    }

    #[test]
    fn a_given_split_is_kept() {
        let of = |counts: &[u8], virtual_stages| {
            let stage_layers = StageLayers::new(counts);
            let layout = Layout { pipeline: 4, virtual_stages, stage_layers, ..SINGLE };
            let plan = StagePlan::new(8, &layout);
            let model = Transformer { layers: 8, ..llama_405b() };
            let stages: Vec<u32> = (0..4).map(|stage| plan.stage(stage, &model).layers()).collect();
            (stages, plan.ranges(3).collect::<Vec<_>>(), layout.most_layers(8), layout.last_stage_layers(8))
        };
        assert_eq!(of(&[1, 2, 2, 3], 1), (vec![1, 2, 2, 3], vec![[5, 8]], 3, 3));
        // Chunks in the model's order: stage 3 has the fourth and the eighth.
        assert_eq!(of(&[0, 1, 1, 1, 1, 1, 1, 2], 2), (vec![1, 2, 2, 3], vec![[2, 3], [6, 8]], 3, 3));
        let special = |stage_layers| StagePlan::new(8, &Layout { pipeline: 4, stage_layers, ..SINGLE }).is_special();
        let lists = [None, StageLayers::new(&[2; 4]), StageLayers::new(&[2, 2, 3, 1])];
        assert_eq!(lists.map(special), [false, false, true]);
        assert_eq!(StageLayers::new(&[1; 129]), None);
        assert_eq!(StageLayers::new(&[]), None);
    }

    #[test]
    fn leading_dense_layers_are_on_the_first_stages() {
        let experts = Experts { count: 8, per_token: 2, ffn: 64, shared: 0, leading_dense_layers: 3 };
        let model = Transformer { experts: Some(experts), ..gpt(8, 512, 8) };
        let plan = StagePlan::new(8, &Layout { pipeline: 4, ..SINGLE });
        let kinds: Vec<_> =
            (0..4).map(|stage| plan.stage(stage, &model)).map(|s| (s.dense_layers, s.moe_layers)).collect();
        assert_eq!(kinds, [(2, 0), (1, 1), (0, 2), (0, 2)]);
    }

    #[test]
    fn activations_in_flight_follow_the_schedule() {
        let layout = Layout { pipeline: 8, ..SINGLE };
        let interleaved = Layout { schedule: Schedule::Interleaved, virtual_stages: 3, ..layout };
        let cases = [
            (layout, 0, 64, 8.0),
            (layout, 1, 64, 7.0),
            (layout, 7, 64, 1.0),
            (layout, 0, 4, 4.0),
            (Layout { schedule: Schedule::Gpipe, ..layout }, 7, 64, 64.0),
            // p (1 + (p - 1)/(p v)) for three chunks.
            (interleaved, 0, 64, 8.0 * (1.0 + 7.0 / 24.0)),
            (interleaved, 0, 8, 8.0),
            (SINGLE, 0, 64, 1.0),
            // 2^31 microbatches of three chunks are more than 32 bits hold; the pipeline holds no more for that.
            (interleaved, 0, 1 << 31, 8.0 * (1.0 + 7.0 / 24.0)),
        ];
        for (layout, stage, microbatches, held) in cases {
            assert!((layout.in_flight(stage, microbatches) - held).abs() < 1e-12, "{layout:?}");
        }
    }
}
