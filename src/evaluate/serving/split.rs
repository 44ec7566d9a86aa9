//! How many accelerators prefill gets: as many as make the slower pool as fast as can be, or where limits are missed by that, as
//! near to it as they are kept.

use super::figures::worst;
use super::pools::{Places, Sides};
use crate::evaluate::Infeasible;
use crate::inference::{Latencies, Request, Separate, Short, SteadyState};
use crate::scenario::{PrefillPool, Serving};

/// What pools come to with what is asked.
pub(super) type Served = (SteadyState, Latencies);
/// The same, or why they do not serve it.
pub(super) type Outcome = Result<Served, Infeasible>;

/// Accelerators that are split into prefill workers and decode replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split<'a, 'b> {
    /// What is served.
    pub(super) serving: &'b Serving,
    /// Prefill's pool.
    pub(super) pool: &'b PrefillPool,
    /// Where both go.
    pub(super) places: &'b Places,
    /// A worker and a replica.
    pub(super) sides: &'b Sides<'a>,
}

/// Where to go on from a number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Judged {
    /// Limits are kept.
    Kept,
    /// Prefill takes in less than comes.
    TooFew,
    /// Decode finishes less than comes.
    TooMany,
    /// A limit is missed: the worst latency over its limit.
    Missed(f64),
}

impl<'a> Split<'a, '_> {
    fn spares(&self) -> u64 {
        self.serving.spare_replicas.into()
    }

    /// One more than the most workers that may be.
    fn end(&self) -> u64 {
        self.places.decode.accelerators / self.pool.layout.ranks() + 1
    }

    fn replicas(&self, workers: u64) -> Option<u64> {
        self.places.beside(self.serving.layout, self.pool.layout, workers)
    }

    /// The pools with so many workers, without those to spare; none where that leaves none of either, or accelerators over that
    /// must not be.
    fn pools(&self, workers: u64) -> Option<Separate<'a>> {
        let (spares, replicas) = (self.spares(), self.replicas(workers)?);
        (workers > spares && replicas > spares).then(|| self.sides.pools(workers - spares, replicas - spares))
    }

    /// Prefill workers and all decode replicas beside them, and what the pools come to: as many workers as are given, or as many
    /// as make the slower pool as fast as can be; where that misses a limit and another number keeps them all, the number next to
    /// it that does.
    ///
    /// # Errors
    /// Where the accelerators are not whole workers and whole replicas, or more requests come than any number serves.
    pub(super) fn chosen(
        &self,
        request: &Request,
        mut serve: impl FnMut(&Separate<'a>, u64) -> Outcome,
    ) -> Result<(u64, u64, Separate<'a>, Served), Infeasible> {
        let given = self.places.given(self.pool)?;
        let workers = given.map_or_else(|| self.balanced(request), Ok)?;
        let part = || {
            let of_kinds = self.places.unfilled((self.serving.layout, self.pool.layout), self.spares());
            of_kinds.unwrap_or(Infeasible::PartPools { accelerators: self.places.accelerators() })
        };
        let (replicas, pools) = self.replicas(workers).zip(self.pools(workers)).ok_or_else(part)?;
        let mut outcome = serve(&pools, replicas);
        let found = (workers, replicas, pools);
        if given.is_none() && self.judge(request, &pools, &outcome) != Judged::Kept {
            let mut at = |workers: u64| {
                let (replicas, pools) = self.replicas(workers).zip(self.pools(workers))?;
                Some(self.judge(request, &pools, &serve(&pools, replicas)))
            };
            let kept = self.kept(&mut at).map(|kept| self.nearest(kept, workers, at));
            if let Some((workers, (replicas, pools))) =
                kept.and_then(|kept| Some((kept, self.replicas(kept).zip(self.pools(kept))?)))
            {
                outcome = serve(&pools, replicas);
                return Ok((workers, replicas, pools, outcome?));
            }
        }
        let (workers, replicas, pools) = found;
        Ok((workers, replicas, pools, outcome?))
    }

    fn judge(&self, request: &Request, pools: &Separate<'a>, outcome: &Outcome) -> Judged {
        match outcome {
            Ok((state, latencies)) => {
                let worst = worst(state, latencies, &self.serving.limits);
                if worst > 1.0 { Judged::Missed(worst) } else { Judged::Kept }
            }
            Err(Infeasible::Overload { short: Short::Prefill, .. }) => Judged::TooFew,
            // Each pool has its own end of the links.
            Err(Infeasible::Overload { short: Short::Transfer, .. })
                if pools.taken_in(request) < pools.finished(request) =>
            {
                Judged::TooFew
            }
            Err(_) => Judged::TooMany,
        }
    }

    /// The number of workers that makes the slower pool the fastest. Where accelerators may be left over, every number of workers
    /// above those to spare has its pools up to the most that has.
    fn balanced(&self, request: &Request) -> Result<u64, Infeasible> {
        let part = Infeasible::PartPools { accelerators: self.places.accelerators() };
        let finished = |pools: &Separate<'a>| pools.finished(request).min(pools.turns(request));
        let rates = |pools: &Separate<'a>| (pools.taken_in(request), finished(pools));
        let mut tried = 1..=self.end() - 1;
        if self.serving.left_over {
            // More workers take in more and leave less decode: the best are about where the two cross.
            let (mut few, mut many) = (self.spares(), self.end());
            if few >= many - 1 {
                return Err(part);
            }
            while many - few > 1 {
                let middle = few + (many - few) / 2;
                let enough = self.pools(middle).is_none_or(|pools| {
                    let (taken_in, finished) = rates(&pools);
                    taken_in >= finished
                });
                if enough { many = middle } else { few = middle }
            }
            tried = few.saturating_sub(1).max(1)..=many;
        }
        let mut best = None;
        for workers in tried {
            let Some(pools) = self.pools(workers) else { continue };
            let (taken_in, finished) = rates(&pools);
            let slower = taken_in.min(finished);
            if best.as_ref().is_none_or(|(_, fastest)| slower > *fastest) {
                best = Some((workers, slower));
            }
        }
        best.map(|(workers, _)| workers).ok_or(part)
    }

    /// The first number of workers from one on and below an end that has its pools, and how that is judged. Where accelerators
    /// may be left over there are pools up to a number, and none beyond.
    fn next(&self, from: u64, end: u64, at: &mut impl FnMut(u64) -> Option<Judged>) -> Option<(u64, Judged)> {
        let end = if self.serving.left_over { end.min(from + 1) } else { end };
        (from..end).find_map(|workers| Some((workers, at(workers)?)))
    }

    /// A number of workers with which all limits are kept. With more of them prompts wait less and tokens take longer, so the
    /// worst of all latencies over their limits falls, then rises.
    fn kept(&self, at: &mut impl FnMut(u64) -> Option<Judged>) -> Option<u64> {
        let (mut few, mut many) = (self.spares(), self.end());
        while many.saturating_sub(few) > 1 {
            let middle = few + (many - few) / 2;
            let Some((workers, judged)) = self.next(middle, many, at) else {
                many = middle;
                continue;
            };
            let more = match judged {
                Judged::Kept => return Some(workers),
                Judged::TooFew => true,
                Judged::TooMany => false,
                Judged::Missed(worst) => match self.next(workers + 1, many, at) {
                    Some((next, Judged::Kept)) => return Some(next),
                    Some((_, Judged::Missed(next))) => next < worst,
                    Some((_, Judged::TooFew)) => true,
                    Some((_, Judged::TooMany)) | None => false,
                },
            };
            if more { few = workers } else { many = middle }
        }
        None
    }

    /// Of the numbers that keep the limits, of which one is known, that next to one which does not: there most is served.
    fn nearest(&self, kept: u64, missed: u64, mut at: impl FnMut(u64) -> Option<Judged>) -> u64 {
        let mut best = kept;
        let (mut low, mut high) = (kept.min(missed), kept.max(missed));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.next(middle, high, &mut at) {
                Some((workers, Judged::Kept)) => {
                    best = workers;
                    if kept < missed { low = workers } else { high = middle }
                }
                Some((workers, _)) if kept > missed => low = workers,
                _ => high = middle,
            }
        }
        best
    }
}
