//! Messages of one step, and what compute does not hide of them.

use super::shard::Shard;
use super::step::StepModel;
use crate::collectives::{self, Collective, Group};
use crate::parallelism::{ContextExchange, Layout, RankGroup};
use crate::units::{Bytes, Seconds};
use crate::workload::Experts;

/// Ranks that hold the same weights: in groups of neighbours that split states among them, each such group a copy (hybrid
/// sharding, arXiv 2304.11277, section 3.2.2); or all of them one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    /// All of them.
    all: RankGroup,
    /// Those that split states.
    shards: RankGroup,
    /// Those that hold the same shard.
    across: RankGroup,
}

impl Copies {
    /// Of a group, so many of which split states.
    pub(super) fn new(all: RankGroup, split: u32) -> Self {
        let split = split.clamp(1, all.size);
        let across = RankGroup { size: all.size / split, stride: all.stride * split };
        Self { all, shards: RankGroup { size: split, stride: all.stride }, across }
    }
}

/// Bytes of an activation element on the wire.
const ACTIVATION: f64 = 2.0;

impl StepModel {
    /// The group as the collectives see it, where the topology places it.
    pub(super) fn group(&self, ranks: RankGroup) -> Group {
        Group::placed(ranks.size, &self.reach.place(ranks))
    }

    fn collective(&self, kind: Collective, payload: Bytes, group: &Group) -> Seconds {
        collectives::best(kind, payload, group, &self.wires).time
    }

    /// Tensor-parallel communication of one layer: the time of one gather or scatter of the hidden state, and of a whole
    /// all-reduce where the sequence is not split.
    ///
    /// With sequence parallelism a layer gathers and scatters twice forward and twice backward, and gathers once more for
    /// the weight gradients (Korthikanti et al., arXiv 2205.05198, section 4.2.2); without, it all-reduces twice each way.
    /// `again` is the share of layers whose forward pass is repeated.
    pub(super) fn tensor_layer(
        &self,
        shard: &Shard,
        layout: &Layout,
        group: &Group,
        has_dense_mlp: bool,
        again: f64,
    ) -> Seconds {
        if layout.tensor == 1 {
            return Seconds::ZERO;
        }
        let hidden = Bytes::new(ACTIVATION * shard.hidden * shard.tokens);
        // A layer of experts keeps tensor parallelism in its attention only; a parallel block gathers and sums once.
        let halves = if has_dense_mlp && !self.transformer.detail.parallel { 1.0 } else { 0.5 };
        if layout.sequence_parallel {
            let gather = self.collective(Collective::AllGather, hidden, group);
            let scatter = self.collective(Collective::ReduceScatter, hidden, group);
            (gather * (5.0 + 2.0 * again) + scatter * (4.0 + 2.0 * again)) * halves
        } else {
            self.collective(Collective::AllReduce, hidden, group) * ((4.0 + 2.0 * again) * halves)
        }
    }

    /// Exposed context-parallel communication of one layer, whose attention takes so long forward.
    ///
    /// Gathered, keys and values travel forward and again backward, and their gradients are scattered (Llama 3, arXiv
    /// 2407.21783, section 3.3.2). In a ring each of the other ranks' blocks is sent on while attention works on the one
    /// before, 2.5 times as long backward, where gradients go round too (arXiv 2310.01889, section 3): what it takes longer
    /// shows. All-to-all exchanges queries, keys, values and outputs before and after attention, which waits for them
    /// (arXiv 2309.14509, section 3.2); heads that are fewer than ranks are copied.
    pub(super) fn context_layer(&self, shard: &Shard, layout: &Layout, group: &Group, attention: Seconds) -> Seconds {
        if layout.context == 1 {
            return Seconds::ZERO;
        }
        let ranks = f64::from(layout.context);
        match layout.context_exchange {
            ContextExchange::AllGather => {
                let whole = Bytes::new(ACTIVATION * 2.0 * shard.key * shard.tokens * ranks);
                let exchanged = self.collective(Collective::AllGather, whole, group) * 2.0
                    + self.collective(Collective::ReduceScatter, whole, group);
                exchanged * self.efficiency.context_exposed
            }
            ContextExchange::Ring => {
                let block = Bytes::new(ACTIVATION * (shard.key + shard.value) * shard.tokens);
                let pair = Self::neighbours(group);
                let forward = self.collective(Collective::SendRecv, block, &pair);
                let backward = self.collective(Collective::SendRecv, block * 2.0, &pair);
                let work = attention / ranks;
                (forward.saturating_sub(work) + backward.saturating_sub(work * 2.5)) * (ranks - 1.0)
            }
            ContextExchange::AllToAll => {
                let heads = shard.key / shard.head_dim;
                let copies = (ranks / heads).max(1.0);
                let inward = shard.query + (shard.key + shard.value) * copies;
                let bytes = |width: f64| Bytes::new(ACTIVATION * width * shard.tokens);
                let once = self.collective(Collective::AllToAll, bytes(inward), group)
                    + self.collective(Collective::AllToAll, bytes(shard.output), group);
                once * 2.0
            }
        }
    }

    /// Two ranks of a group that follow each other; where the group leaves its domain, some of them lie in two.
    fn neighbours(group: &Group) -> Group {
        let within_domain = group.domains() == 1;
        Group {
            ranks: 2,
            ranks_per_domain: if within_domain { 2 } else { 1 },
            fewest_per_domain: if within_domain { 2 } else { 1 },
            nics_per_domain: group.nics_per_domain / f64::from(group.ranks_per_domain),
            ..*group
        }
    }

    /// Expert-parallel communication of one layer: dispatch and combine, forward and backward, paced by the fullest rank.
    ///
    /// A token goes to each domain once, however many of its experts are there, and is copied within (DeepEP; DeepSeek-V3,
    /// arXiv 2412.19437, section 3.2.2). Both parts run at the same time.
    pub(super) fn expert_layer_messages(&self, shard: &Shard, experts: &Experts, group: &Group) -> Seconds {
        if group.ranks == 1 {
            return Seconds::ZERO;
        }
        let token = Bytes::new(ACTIVATION * shard.share_tokens * shard.hidden) * self.job.expert_imbalance.get();
        let visits = f64::from(experts.per_token);
        let domains = f64::from(group.domains());
        if domains <= 1.0 {
            return self.collective(Collective::AllToAll, token * visits, group) * 4.0;
        }
        let across = self.collective(Collective::AllToAll, token * visited(domains, visits), group);
        let within = Group { ranks: group.ranks_per_domain, ..*group };
        across.max(self.collective(Collective::AllToAll, token * visits, &within)) * 4.0
    }

    /// The message between stages for one microbatch: activations forward, and as much of gradients backward, once for each
    /// chunk.
    pub(super) fn pipeline_message(&self, shard: &Shard, layout: &Layout, group: &Group) -> Seconds {
        if layout.pipeline == 1 {
            return Seconds::ZERO;
        }
        let pair = Self::neighbours(group);
        let message = Bytes::new(ACTIVATION * shard.hidden * shard.share_tokens);
        self.collective(Collective::SendRecv, message, &pair)
    }

    /// Reduction of so many bytes of gradients to shards within a shard group, and then of each shard across the copies: in
    /// buckets, so that one is reduced within while the one before it goes across.
    pub(super) fn reduce_split(
        &self,
        gradients: Bytes,
        copies: &Copies,
        place: impl Fn(RankGroup) -> Group,
    ) -> Seconds {
        let within = if copies.shards.size > 1 { self.reduce(gradients, &place(copies.shards)) } else { Seconds::ZERO };
        let shard = gradients / f64::from(copies.shards.size);
        let across = if copies.across.size > 1 { self.all_reduce(shard, &place(copies.across)) } else { Seconds::ZERO };
        within.max(across)
    }

    /// Gathering of so many bytes of weights within a shard group: no copy needs those of another.
    pub(super) fn gather_split(&self, weights: Bytes, copies: &Copies, place: impl Fn(RankGroup) -> Group) -> Seconds {
        if copies.shards.size > 1 { self.gather(weights, &place(copies.shards)) } else { Seconds::ZERO }
    }

    /// All-reduction of so many bytes of gradients over all that hold the same.
    pub(super) fn all_reduce_whole(
        &self,
        gradients: Bytes,
        copies: &Copies,
        place: impl Fn(RankGroup) -> Group,
    ) -> Seconds {
        if copies.all.size > 1 { self.all_reduce(gradients, &place(copies.all)) } else { Seconds::ZERO }
    }

    /// Reduction of so many bytes of gradients to shards over a data-parallel group.
    pub(super) fn reduce(&self, gradients: Bytes, group: &Group) -> Seconds {
        self.collective(Collective::ReduceScatter, gradients, group)
    }

    /// Gathering of so many bytes of weights from shards over a data-parallel group.
    pub(super) fn gather(&self, weights: Bytes, group: &Group) -> Seconds {
        self.collective(Collective::AllGather, weights, group)
    }

    /// All-reduction of so many bytes of gradients, where every rank keeps all states.
    pub(super) fn all_reduce(&self, gradients: Bytes, group: &Group) -> Seconds {
        self.collective(Collective::AllReduce, gradients, group)
    }
}

/// Domains, of so many, that a token's experts are in on average where these are spread evenly.
fn visited(domains: f64, experts: f64) -> f64 {
    domains * (1.0 - (1.0 - 1.0 / domains).powf(experts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_each_domain_once() {
        // Eight experts over four domains: each is missed with 0.75^8 = 0.1001, so 3.6 are visited; over many, all eight
        // differ; of one, the one.
        assert!((visited(4.0, 8.0) - 3.5995).abs() < 1e-4);
        assert!((visited(1e6, 8.0) - 8.0).abs() < 1e-4);
        assert!((visited(1.0, 8.0) - 1.0).abs() < 1e-12);
    }
}
