//! Pools: how many accelerators prefill gets, and handing caches over.

use super::domains::Domains;
use super::step::wires;
use super::{Infeasible, Pool};
use crate::inference::{HandOver, Replica, Request, Room, Separate};
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

    fn accelerators(&self) -> u64 {
        self.decode.accelerators + self.prefill.map_or(0, |own| own.accelerators)
    }

    /// Which of two kinds of nodes a pool does not fill, or fills with those to spare alone.
    fn unfilled(&self, (decode, prefill): (ServingLayout, ServingLayout), spares: u64) -> Option<Infeasible> {
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
    fn given(&self, pool: &PrefillPool) -> Result<Option<u64>, Infeasible> {
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

/// Prefill workers, decode replicas beside them, and the pools without those to spare: as many workers as are given, or as many
/// as make the slower pool as fast as can be, with at most so many requests in decode in an attention group. Where accelerators
/// may be left over, every number of workers above those to spare has its pools up to the most that has.
///
/// # Errors
/// Where the accelerators are not whole workers and whole replicas.
pub(super) fn balanced<'a>(
    serving: &Serving,
    pool: &PrefillPool,
    places: &Places,
    sides: &Sides<'a>,
    (request, most): (&Request, f64),
) -> Result<(u64, u64, Separate<'a>), Infeasible> {
    let (each, accelerators, spares) =
        (pool.layout.ranks(), places.decode.accelerators, u64::from(serving.spare_replicas));
    let part = Infeasible::PartPools { accelerators: places.accelerators() };
    let replicas = |workers: u64| places.beside(serving.layout, pool.layout, workers);
    let pools = |workers: u64| {
        let replicas = replicas(workers)?;
        (workers > spares && replicas > spares).then(|| sides.pools(workers - spares, replicas - spares))
    };
    let whole = |(workers, pools): (u64, Separate<'a>)| (workers, replicas(workers).unwrap_or(1), pools);
    if let Some(given) = places.given(pool)? {
        let found = pools(given).map(|pools| whole((given, pools)));
        return found.ok_or_else(|| places.unfilled((serving.layout, pool.layout), spares).unwrap_or(part));
    }
    let rates = |pools: &Separate<'a>| (pools.taken_in(request), pools.finished(request, most));
    let mut tried = 1..=accelerators / each;
    if serving.search {
        if spares >= *tried.end() {
            return Err(part);
        }
        // More workers take in more and leave less decode: the best are about where the two cross.
        let (mut few, mut many) = (spares, accelerators / each + 1);
        while many - few > 1 {
            let middle = few + (many - few) / 2;
            let enough = pools(middle).is_none_or(|pools| {
                let (taken_in, finished) = rates(&pools);
                taken_in >= finished
            });
            if enough { many = middle } else { few = middle }
        }
        tried = few.saturating_sub(1).max(1)..=many;
    }
    let mut best = None;
    for workers in tried {
        let Some(pools) = pools(workers) else { continue };
        let (taken_in, finished) = rates(&pools);
        let slower = taken_in.min(finished);
        if best.as_ref().is_none_or(|(_, _, fastest)| slower > *fastest) {
            best = Some((workers, pools, slower));
        }
    }
    best.map(|(workers, pools, _)| whole((workers, pools))).ok_or(part)
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
