//! Pools: where prefill workers and decode replicas go, and handing caches over.

use super::domains::Domains;
use super::step::wires;
use super::{Infeasible, Pool};
use crate::inference::{HandOver, Replica, Room, Separate};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Cluster, Communication, NodeGroup, PrefillPool, Serving};

/// Where prefill workers and decode replicas go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// The accelerators that decode.
    pub(super) decode: Domains,
    /// Those that take prompts in, where they are of another kind; the same otherwise.
    pub(super) prefill: Option<Domains>,
}

impl Places {
    /// Decode replicas beside so many prefill workers; none where they do not fit, or accelerators that must not be are left
    /// over.
    pub(super) fn beside(&self, decode: ServingLayout, prefill: ServingLayout, workers: u64) -> Option<u64> {
        match &self.prefill {
            None => self.decode.beside(decode, prefill, workers),
            Some(own) => self.decode.filled(decode).filter(|_| workers <= own.whole(prefill)),
        }
    }

    pub(super) fn accelerators(&self) -> u64 {
        self.decode.accelerators + self.prefill.map_or(0, |own| own.accelerators)
    }

    /// Which of two kinds of nodes a pool does not fill, or fills with those to spare alone.
    pub(super) fn unfilled(
        &self,
        (decode, prefill): (ServingLayout, ServingLayout),
        spares: u64,
    ) -> Option<Infeasible> {
        let own = self.prefill?;
        let part = |pool: Pool, nodes: Domains, layout: ServingLayout| {
            let whole = nodes.filled(layout).unwrap_or(0);
            (whole <= spares).then(|| Infeasible::PartPool {
                pool,
                accelerators: nodes.accelerators,
                each: layout.ranks(),
                domain: nodes.domain,
                whole,
                spares,
            })
        };
        part(Pool::Prefill, own, prefill).or_else(|| part(Pool::Decode, self.decode, decode))
    }

    /// Workers where that is not left open: all that prefill's own nodes hold, or as many as are given.
    pub(super) fn given(&self, pool: &PrefillPool) -> Result<Option<u64>, Infeasible> {
        let part = Infeasible::PartPools { accelerators: self.accelerators() };
        let each = pool.layout.ranks();
        match (&self.prefill, pool.accelerators.map(u64::from)) {
            (Some(own), _) => Ok(Some(own.filled(pool.layout).unwrap_or(0))),
            (None, Some(given)) if given.is_multiple_of(each) => Ok(Some(given / each)),
            (None, Some(_)) => Err(part),
            (None, None) => Ok(None),
        }
    }
}

/// A worker and a replica, and what is between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    /// A prefill worker.
    pub(super) prefill: Replica<'a>,
    /// A decode replica.
    pub(super) decode: Replica<'a>,
    /// Room of one of the latter.
    pub(super) room: Room,
    /// Handing a request's cache over.
    pub(super) transfer: HandOver,
}

impl<'a> Sides<'a> {
    /// Pools of so many.
    pub(super) fn pools(&self, workers: u64, replicas: u64) -> Separate<'a> {
        let Self { prefill, decode, room, transfer } = *self;
        Separate { prefill, workers: workers as f64, decode, replicas: replicas as f64, room, transfer }
    }
}

/// Handing a request's cache to decode: what engines take for it, and its bytes over the links that the ranks of one
/// attention group have, at both ends; scale-up links where all of the cluster is one domain.
pub(super) fn transfer(serving: &Serving, cluster: &Cluster, pool: &PrefillPool, prompt: u64) -> HandOver {
    let formats = CacheFormats::of(&serving.model);
    let cache = sequence_bytes(&serving.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, prompt);
    let (from, to) = (cluster.nodes_of_prefill(), cluster.main_nodes());
    let in_one_domain = cluster.prefill.is_none() && cluster.accelerators <= to.node.scale_up.domain;
    let end = |nodes: NodeGroup<'_>, layout: ServingLayout| {
        let node = nodes.node;
        let ranks = f64::from(layout.tensor) * f64::from(layout.pipeline);
        if in_one_domain {
            return node.scale_up.bandwidth_per_direction * ranks;
        }
        let set = &cluster.collectives;
        let card = wires(set, node, nodes.accelerator, &cluster.fabric, Communication::USUAL).network;
        let cards = f64::from(node.nic_slots.count) / f64::from(node.accelerators);
        card.line_rate * (card.efficiency.payload.get() * cards * ranks)
    };
    HandOver {
        fixed: serving.efficiency.part.batching.transfer.value,
        sent: cache / end(from, pool.layout),
        received: cache / end(to, serving.layout),
    }
}
