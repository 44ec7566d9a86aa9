//! Prefixes that requests share: where they are kept, what is found and loaded, and what that makes of the replicas.

use super::holding::Holding;
use super::{BoundServing, Reuse, ServingPoint, answered, tokens_up};
use crate::catalog::memory_tier::TierMedium;
use crate::evaluate::Infeasible;
use crate::inference::{CacheTier, Hits, MOST_TIERS, Popularity, PrefixCache, Replica, Reused, Scratch, Spread};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Cluster, PrefixCaching, Routing, Serving};
use crate::units::{Bytes, Seconds};

/// Rounds in which what is loaded settles with what is served, at most, and how near that is brought.
const ROUNDS: u32 = 24;
const NEAR: f64 = 1e-6;

/// Figures of prefixes that are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachePoint {
    /// What is found, loaded and computed again.
    pub reused: Reused,
    /// Share of requests that would find their prefix with requests sent anywhere.
    pub balanced: f64,
    /// The same with requests sent to where their prefix is.
    pub aware: f64,
    /// What the busiest group would then have to do over the mean.
    pub busiest: f64,
    /// Tokens of a prefix.
    pub tokens: f64,
}

/// Serving with hits that follow from what is kept.
///
/// # Errors
/// As those of serving.
pub(super) fn settled(
    serving: &Serving,
    caching: &PrefixCaching,
    cluster: &Cluster,
    (bound, scratch): (&BoundServing, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    let layout = serving.prefill.map_or(serving.layout, |pool| pool.layout);
    let mut groups = groups_of(layout, u64::from(cluster.accelerators) / layout.ranks());
    let popularity = Popularity::zipf(caching.prefixes, caching.popularity);
    let recompute = recompute(serving, caching, layout, bound);
    // Requests of a group: of the busiest, where they are sent to their cache.
    let mut each = 0.0;
    let mut round = 0;
    loop {
        let cache = PrefixCache { popularity, groups, recompute, ..kept(serving, caching, layout, cluster) };
        let [balanced, aware] = [false, true].map(|aware| cache.hits(aware));
        let busiest = popularity.busiest(groups);
        let (hits, uneven) = if caching.routing == Routing::Aware { (aware, busiest) } else { (balanced, 1.0) };
        let reused = cache.reuse(hits, each);
        let reuse =
            Reuse { hit: reused.share * caching.tokens / serving.input.mean, wait: reused.wait, busiest: uneven };
        // As much of prompts is at hand as was found in this round.
        scratch.forget();
        let mut point = answered(serving, cluster, &reuse, (bound, scratch))?;
        let found = groups_of(layout, point.pool.map_or(point.replicas, |pool| pool.workers));
        let served = point.state.requests_per_second * point.replicas as f64 / found * uneven;
        round += 1;
        let settled = (served - each).abs() <= NEAR * served && (found - groups).abs() <= 0.5;
        if settled || round == ROUNDS {
            let (balanced, aware) = (balanced.all(), aware.all());
            point.caching = Some(CachePoint { reused, balanced, aware, busiest, tokens: caching.tokens });
            return Ok(point);
        }
        // Half of the way, so that what is loaded and what is served do not swing against each other.
        each = if round == 1 { served } else { f64::midpoint(each, served) };
        groups = found;
    }
}

/// Groups that attend for requests of their own.
fn groups_of(layout: ServingLayout, engines: u64) -> f64 {
    (engines.max(1) * u64::from(layout.attention_data)) as f64
}

/// What computing a prefix takes of a request's prefill.
fn recompute(serving: &Serving, caching: &PrefixCaching, layout: ServingLayout, bound: &BoundServing) -> Seconds {
    let (shapes, hardware) = (&bound.shapes, bound.prefill.unwrap_or(bound.decode));
    let engine = Replica::new(&shapes.model, &hardware, Spread::from(layout)).with(shapes.features(
        serving,
        layout,
        serving.prefill.is_none(),
    ));
    let input = serving.input.mean;
    engine.prefill(input, 0.0).saturating_sub(engine.prefill(input - caching.tokens, caching.tokens))
}

/// Prefixes that each group keeps, and what loading one takes. A tier keeps one copy, of which each of a group's ranks
/// loads its part over links of its own; what every rank needs whole goes on between them.
fn kept(serving: &Serving, caching: &PrefixCaching, layout: ServingLayout, cluster: &Cluster) -> PrefixCache {
    let tokens = tokens_up(caching.tokens);
    let formats = CacheFormats::of(&serving.model);
    let once = sequence_bytes(&serving.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, tokens);
    let ranks = f64::from(layout.tensor) * f64::from(layout.pipeline);
    let prefixes = |held: Bytes, each: Bytes| if each > Bytes::ZERO { held / each } else { 0.0 };
    let holding = Holding::new(serving, cluster);
    let found = holding.fits(&layout, tokens);
    let mut tiers = [CacheTier::default(); MOST_TIERS];
    for (tier, bound) in tiers.iter_mut().zip(&caching.tiers) {
        let shared = bound.entry.medium == TierMedium::Remote;
        let of = if shared { f64::from(cluster.accelerators) } else { ranks };
        let transfer = once / (bound.entry.read_bandwidth.value * ranks);
        let load = bound.entry.latency.value + transfer;
        let store = once / (bound.entry.write_bandwidth.value * ranks);
        *tier = CacheTier { prefixes: prefixes(bound.capacity * of, once), shared, load, transfer, store };
    }
    PrefixCache {
        popularity: Popularity::zipf(1.0, 0.0),
        groups: 1.0,
        own: prefixes(found.pool * caching.own_share.get(), found.request),
        tiers,
        recompute: Seconds::ZERO,
    }
}

impl CachePoint {
    /// Where requests find their prefix.
    pub fn hits(&self) -> Hits {
        self.reused.hits
    }
}
