//! Pools: where prefill workers and decode replicas go.

use super::domains::Domains;
use crate::evaluate::{Infeasible, Pool};
use crate::inference::{HandOver, Replica, Room, Separate};
use crate::memory::serving::ServingLayout;
use crate::scenario::PrefillPool;
use crate::units::Seconds;

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
    /// How long a prompt keeps an attention group of a worker.
    pub(super) served: Seconds,
}

impl<'a> Sides<'a> {
    /// Pools of so many.
    pub(super) fn pools(&self, workers: u64, replicas: u64) -> Separate<'a> {
        let Self { prefill, decode, room, transfer, served } = *self;
        Separate { prefill, workers: workers as f64, decode, replicas: replicas as f64, room, transfer, served }
    }
}
