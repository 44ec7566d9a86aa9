//! Messages of one step, and what compute does not hide of them.

use super::shard::Shard;
use super::step::StepModel;
use crate::collectives::{self, Collective, Group};
use crate::parallelism::{Layout, RankGroup};
use crate::units::{Bytes, Seconds};
use crate::workload::Experts;

/// Bytes of an activation element on the wire.
const ACTIVATION: f64 = 2.0;

impl StepModel {
    /// The group as the collectives see it, where the topology places it.
    pub(super) fn group(&self, ranks: RankGroup) -> Group {
        let placed = self.reach.place(ranks);
        Group {
            ranks: ranks.size,
            ranks_per_domain: placed.ranks_per_domain,
            nics_per_domain: placed.nics_per_domain,
            network_share: placed.ring_share,
            all_to_all_share: placed.all_to_all_share,
            relayed: placed.relayed,
            more_switches: placed.more_switches,
            sites: placed.sites,
            distance: placed.distance,
        }
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
        // A layer of experts keeps tensor parallelism in its attention only.
        let halves = if has_dense_mlp { 1.0 } else { 0.5 };
        if layout.sequence_parallel {
            let gather = self.collective(Collective::AllGather, hidden, group);
            let scatter = self.collective(Collective::ReduceScatter, hidden, group);
            (gather * (5.0 + 2.0 * again) + scatter * (4.0 + 2.0 * again)) * halves
        } else {
            self.collective(Collective::AllReduce, hidden, group) * ((4.0 + 2.0 * again) * halves)
        }
    }

    /// Context-parallel communication of one layer: keys and values gathered forward and backward, their gradients
    /// scattered (Llama 3, arXiv 2407.21783, section 3.3.2).
    pub(super) fn context_layer(&self, shard: &Shard, layout: &Layout, group: &Group) -> Seconds {
        if layout.context == 1 {
            return Seconds::ZERO;
        }
        let whole = Bytes::new(ACTIVATION * 2.0 * shard.key * shard.tokens * f64::from(layout.context));
        self.collective(Collective::AllGather, whole, group) * 2.0
            + self.collective(Collective::ReduceScatter, whole, group)
    }

    /// Expert-parallel communication of one layer: dispatch and combine, forward and backward.
    pub(super) fn expert_layer_messages(&self, shard: &Shard, experts: &Experts, group: &Group) -> Seconds {
        if group.ranks == 1 {
            return Seconds::ZERO;
        }
        let sent = Bytes::new(ACTIVATION * shard.share_tokens * shard.hidden * f64::from(experts.per_token));
        self.collective(Collective::AllToAll, sent, group) * 4.0
    }

    /// Messages between stages for one microbatch: activations forward and gradients backward, once for each chunk.
    pub(super) fn pipeline_messages(&self, shard: &Shard, layout: &Layout, group: &Group) -> Seconds {
        if layout.pipeline == 1 {
            return Seconds::ZERO;
        }
        let within_domain = group.domains() == 1;
        let pair = Group {
            ranks: 2,
            ranks_per_domain: if within_domain { 2 } else { 1 },
            nics_per_domain: group.nics_per_domain / f64::from(group.ranks_per_domain),
            ..*group
        };
        let message = Bytes::new(ACTIVATION * shard.hidden * shard.share_tokens);
        self.collective(Collective::SendRecv, message, &pair) * (2.0 * f64::from(layout.virtual_stages))
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
