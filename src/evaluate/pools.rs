//! Pools: how many accelerators prefill gets, and handing caches over.

use super::Infeasible;
use super::step::wires;
use crate::inference::{Request, Separate};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Cluster, Communication, PrefillPool, Serving};
use crate::units::Seconds;

/// Prefill workers: as many as are given, or as many as make the slower pool as fast as can be. `pools` are those with so
/// many, where whole decode replicas are left; `most` requests at most are in decode in an attention group. Where
/// accelerators may be left over, every number of workers above the `spares` has its pools up to the most that has.
///
/// # Errors
/// Where the accelerators are not whole workers and whole replicas.
pub(super) fn workers<'a>(
    pool: &PrefillPool,
    accelerators: u64,
    request: &Request,
    (most, spares): (f64, Option<u64>),
    pools: impl Fn(u64) -> Option<Separate<'a>>,
) -> Result<(u64, Separate<'a>), Infeasible> {
    let each = pool.layout.ranks();
    let part = Infeasible::PartPools { accelerators };
    if let Some(given) = pool.accelerators.map(u64::from) {
        let whole = given.is_multiple_of(each).then(|| pools(given / each)).flatten();
        return whole.map(|pools| (given / each, pools)).ok_or(part);
    }
    let rates = |pools: &Separate<'a>| (pools.taken_in(request), pools.finished(request, most));
    let mut tried = 1..=accelerators / each;
    if let Some(spares) = spares {
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
    best.map(|(workers, pools, _)| (workers, pools)).ok_or(part)
}

/// Handing a request's cache to decode: what engines take for it, and its bytes over the links that the ranks of one
/// attention group of a prefill worker have, scale-up links where all of the cluster is one domain.
pub(super) fn transfer(serving: &Serving, cluster: &Cluster, pool: &PrefillPool, prompt: u64) -> Seconds {
    let (node, fabric) = (&cluster.node, &cluster.fabric);
    let formats = CacheFormats::of(&serving.model);
    let cache = sequence_bytes(&serving.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, prompt);
    let rate = if cluster.accelerators <= node.scale_up.domain {
        node.scale_up.bandwidth_per_direction
    } else {
        let card = wires(&cluster.collectives, node, &cluster.accelerator, fabric, Communication::USUAL).network;
        let cards = f64::from(node.nic_slots.count) / f64::from(node.accelerators);
        card.line_rate * (card.efficiency.payload.get() * cards)
    };
    let ranks = f64::from(pool.layout.tensor) * f64::from(pool.layout.pipeline);
    serving.efficiency.part.batching.transfer.value + cache / (rate * ranks)
}
