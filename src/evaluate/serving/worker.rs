//! A prefill worker by itself, so that those which others beat need not be tried in pools.

use super::between::Between;
use super::engine::Shapes;
use super::holding::{Holding, holds};
use super::joined::{Networks, joined};
use super::{features_fit, tokens_up};
use crate::evaluate::Infeasible;
use crate::inference::{Request, Room, Separate};
use crate::memory::serving::{Fits, ServingLayout};
use crate::scenario::{Cluster, Limits, PrefillPool, Serving};
use crate::units::{RequestRate, Seconds};

/// A prefill worker with prompts of mean length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerPoint {
    /// Its ranks.
    pub ranks: u64,
    /// A prompt alone, and handing its cache over to a decode replica with as many links.
    pub alone: Seconds,
    /// The most that it takes in, over its ranks.
    pub of_rank: RequestRate,
}

impl WorkerPoint {
    /// Whether it may keep limits, as it does not where a prompt alone takes too long.
    pub fn serves_within(&self, limits: &Limits) -> bool {
        limits.of_first_token().is_none_or(|limit| self.alone <= limit)
    }

    /// Whether pools are never better with the other: this one is sooner with a prompt, takes in more on as many accelerators,
    /// and goes where the other does.
    pub fn beats(&self, other: &Self) -> bool {
        self.ranks <= other.ranks && self.alone <= other.alone && self.of_rank >= other.of_rank
    }
}

/// A prefill worker of a layout. Where hits of prefixes follow from what is kept, prompts are taken as computed anew.
///
/// # Errors
/// When it does not hold a prompt, constants are missing, or the ranks' network cannot be built.
pub fn prefill_worker(serving: &Serving, cluster: &Cluster, layout: ServingLayout) -> Result<WorkerPoint, Infeasible> {
    fits(serving, cluster, layout)?;
    let shapes = Shapes::new(serving);
    let hardware = joined(layout, serving, cluster.nodes_of_prefill(), &mut Networks::of(cluster))?;
    let prefill = shapes.worker(serving, &hardware, layout);
    let ((input, output), hit) = (serving.mean_lengths(), serving.prefix_hit.get());
    let request = Request { input: input * (1.0 - hit), cached: input * hit, output, beyond: 0.0, spread: 0.0 };
    let alone = Serving { layout, ..serving.clone() };
    // The network is the same for all.
    let transfer = Between::near(&alone, cluster, &PrefillPool { layout, accelerators: None }).hand_over(&alone, input);
    let room = Room { requests: 1.0 };
    let served = Seconds::ZERO;
    let pools = Separate { prefill, workers: 1.0, decode: prefill, replicas: 1.0, room, transfer, served };
    let pools = Separate { served: pools.served_alike(&request), ..pools };
    Ok(WorkerPoint {
        ranks: layout.ranks(),
        alone: prefill.prefill(request.input, request.cached) + transfer.alone(),
        of_rank: pools.taken_in(&request) / layout.ranks() as f64,
    })
}

/// What a rank of a prefill worker holds with prompts of mean length, with what drafts beside it.
///
/// # Errors
/// When it does not hold one.
pub(super) fn fits(serving: &Serving, cluster: &Cluster, layout: ServingLayout) -> Result<Fits, Infeasible> {
    let (holding, prompt) = (Holding::new(serving, cluster.nodes_of_prefill()), tokens_up(serving.mean_lengths().0));
    let held = features_fit(serving, layout).and_then(|()| {
        let found = holding.fits(&layout, prompt);
        holds(&found, prompt, holding.usable).map(|()| found)
    });
    held.map_err(|reason| Infeasible::Prefill(Box::new(reason)))
}
