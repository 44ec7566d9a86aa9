//! Which ranks talk to which: groups as arithmetic of global ranks.

use super::{Layout, RankOrder};

/// Ranks `r, r + stride, r + 2 * stride, ...` in global order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankGroup {
    /// Ranks of the group.
    pub size: u32,
    /// From one rank to the next.
    pub stride: u32,
}

/// The groups that a layout makes. Each rank is in one group of each kind; all groups of a kind have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Split every matrix.
    pub tensor: RankGroup,
    /// Split the sequence.
    pub context: RankGroup,
    /// Send activations from stage to stage.
    pub pipeline: RankGroup,
    /// Hold the same dense weights, over data and context axes: reduce gradients.
    pub data: RankGroup,
    /// Hold the experts of a layer between them.
    pub expert: RankGroup,
    /// Hold the same experts: reduce their gradients.
    pub expert_data: RankGroup,
}

impl Groups {
    /// All of them.
    pub const fn all(&self) -> [RankGroup; 6] {
        [self.tensor, self.context, self.pipeline, self.data, self.expert, self.expert_data]
    }
}

impl Layout {
    /// Which ranks talk to which, in the order of axes that the layout has.
    ///
    /// Groups over two axes that the order keeps apart (data with context, or experts over replicas, where pipeline lies
    /// between) are given with their mean distance: as many ranks, spread evenly over the same span.
    pub const fn groups(&self) -> Groups {
        let Self { tensor, context, pipeline, data, expert, .. } = *self;
        let inner = tensor * context;
        // Stages between neighbouring replicas, and replicas between neighbouring stages.
        let (stages_between, replicas_between) = match self.order {
            _ if data == 1 => (1, 1),
            RankOrder::TpCpEpDpPp => (1, data),
            RankOrder::TpCpPpDp => (pipeline, 1),
        };
        let replicas = RankGroup { size: context * data, stride: tensor * stages_between };
        let (expert, expert_data) = if expert == 1 {
            // Experts that are not spread are split and copied as MLPs are.
            (RankGroup { size: 1, stride: 1 }, replicas)
        } else {
            let spread = if expert > inner { stages_between } else { 1 };
            let copies = RankGroup { size: inner * data / expert, stride: expert * stages_between };
            (RankGroup { size: expert, stride: spread }, copies)
        };
        Groups {
            tensor: RankGroup { size: tensor, stride: 1 },
            context: RankGroup { size: context, stride: tensor },
            pipeline: RankGroup { size: pipeline, stride: inner * replicas_between },
            data: replicas,
            expert,
            expert_data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::SINGLE;
    use super::*;

    const fn group(size: u32, stride: u32) -> RankGroup {
        RankGroup { size, stride }
    }

    #[test]
    fn megatron_order_puts_data_before_pipeline() {
        let groups = Layout { tensor: 8, context: 2, pipeline: 4, data: 16, ..SINGLE }.groups();
        assert_eq!((groups.tensor, groups.context), (group(8, 1), group(2, 8)));
        // Context and data follow each other: one run of 32.
        assert_eq!((groups.data, groups.pipeline), (group(32, 8), group(4, 256)));
    }

    #[test]
    fn llama_order_puts_pipeline_before_data() {
        let layout = Layout { tensor: 8, pipeline: 16, data: 128, order: RankOrder::TpCpPpDp, ..SINGLE };
        assert_eq!((layout.groups().pipeline, layout.groups().data), (group(16, 8), group(128, 128)));
        // Ranks 0, 8, 64, 72, 128, ...: two in every 64, so 32 apart on average.
        let long = Layout { context: 2, pipeline: 4, data: 16, ..layout }.groups();
        assert_eq!((long.data, long.pipeline), (group(32, 32), group(4, 16)));
        assert_eq!(Layout { context: 16, data: 1, ..layout }.groups().data, group(16, 8));
    }

    #[test]
    fn experts_spread_over_neighbouring_ranks() {
        let layout = Layout { tensor: 2, pipeline: 4, data: 8, expert: 8, ..SINGLE };
        assert_eq!((layout.groups().expert, layout.groups().expert_data), (group(8, 1), group(2, 8)));
        let split = Layout { expert: 1, ..layout }.groups();
        assert_eq!((split.expert, split.expert_data), (group(1, 1), split.data));
        let few = Layout { expert: 2, ..layout }.groups();
        assert_eq!((few.expert, few.expert_data), (group(2, 1), group(8, 2)));
        // Ranks 0, 1, 8, 9, ...: two in every eight.
        let llama = Layout { order: RankOrder::TpCpPpDp, ..layout }.groups();
        assert_eq!((llama.expert, llama.expert_data), (group(8, 4), group(2, 32)));
    }

    #[test]
    fn groups_have_as_many_ranks_as_the_degrees_and_stay_inside_the_cluster() {
        for order in RankOrder::ALL {
            for expert in [1, 2, 4, 8, 16, 32, 64] {
                let layout = Layout { tensor: 4, context: 2, pipeline: 4, data: 8, expert, order: *order, ..SINGLE };
                let groups = layout.groups();
                assert_eq!(groups.data.size, layout.data_ranks());
                assert_eq!(groups.expert.size, expert);
                assert_eq!(groups.expert_data.size, layout.expert_data_ranks());
                for group in groups.all() {
                    assert!(u64::from((group.size - 1) * group.stride) < layout.accelerators());
                }
            }
        }
    }
}
