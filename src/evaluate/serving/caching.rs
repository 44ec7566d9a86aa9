//! Prefixes that requests share: where they are kept, what is found and loaded, and what that makes of the replicas.

use super::between::by_cards;
use super::holding::Holding;
use super::{Bound, Reuse, ServingPoint, answered, tokens_up};
use crate::catalog::memory_tier::TierMedium;
use crate::evaluate::Infeasible;
use crate::inference::{CacheTier, Hits, MOST_TIERS, Popularity, PrefixCache, Request, Reused, Scratch, TierLinks};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Arrivals, Cluster, Limits, PrefixCaching, Routing, Serving};
use crate::units::{Bandwidth, Bytes, Fraction, Seconds};

/// Rounds in which what is loaded settles with what is served, at most, and how near that is brought.
pub(super) const ROUNDS: u32 = 24;
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
    /// Different prefixes, the exponent of their popularity, and groups that keep them; none of sessions, which go to where the
    /// fewest are.
    pub prefixes: Option<(f64, f64, f64)>,
    /// Standard deviation of what a group would have to do over the mean, where prefixes fall to them by a hash; none of sessions.
    pub by_hash: Option<f64>,
    /// Tokens of a prefix, or of a session that goes on.
    pub tokens: f64,
    /// Of sessions, the share of further steps that find what they left.
    pub session: Option<Fraction>,
}

/// Serving with hits that follow from what is kept of prefixes that requests share, of so many tokens each.
///
/// # Errors
/// As those of serving.
pub(super) fn settled(
    serving: &Serving,
    caching: &PrefixCaching,
    (count, exponent, tokens): (f64, f64, f64),
    cluster: &Cluster,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    let layout = serving.prefill.map_or(serving.layout, |pool| pool.layout);
    let mut groups = groups_of(layout, u64::from(cluster.nodes_of_prefill().accelerators) / layout.ranks());
    let recompute = recompute(serving, layout, bound, (serving.mean_lengths().0, 0.0, tokens));
    let (own, tiers) = room(serving, caching, layout, cluster, tokens);
    let links = TierLinks { tiers, recompute, scatter: 0.0 };
    let (mut settling, mut splits) = (Settling::default(), 0);
    let popularity = Popularity::zipf(count, exponent);
    let to_caches = caching.routing == Routing::Aware;
    let of = |groups: f64| {
        let uneven = if to_caches { popularity.busiest(groups) } else { 1.0 };
        (PrefixCache { popularity, groups, own, tiers }.hits(to_caches), uneven)
    };
    let (mut hits, mut uneven) = of(groups);
    loop {
        let reused = links.reuse(hits, settling.each);
        let hit = reused.share * tokens / serving.mean_lengths().0;
        let reuse = Reuse { hit, wait: reused.wait, busiest: uneven, at_most: f64::INFINITY };
        // As much of prompts is at hand as was found in this round.
        scratch.forget();
        let mut point = match answered(serving, cluster, &reuse, (bound, scratch)) {
            // How many workers there are is known once the pools are split, which they are not of more than they serve.
            Err(over @ Infeasible::Overload { .. }) if serving.prefill.is_some() && splits < ROUNDS => {
                let most = Serving { arrivals: Arrivals::Most, limits: Limits::default(), ..serving.clone() };
                let split = answered(&most, cluster, &reuse, (bound, scratch));
                let workers = split.ok().and_then(|point| point.pool).map(|pool| groups_of(layout, pool.workers));
                let Some(found) = workers.filter(|found| (found - groups).abs() > 0.5) else { return Err(over) };
                splits += 1;
                groups = found;
                (hits, uneven) = of(groups);
                continue;
            }
            answer => answer?,
        };
        let found = groups_of(layout, point.pool.map_or(point.replicas, |pool| pool.workers));
        let each = point.state.requests_per_second * point.replicas as f64 / found * uneven;
        // Without tiers nothing is loaded, however many come.
        let loaded = tiers.iter().any(|tier| tier.prefixes > 0.0);
        if (settling.settled(each) || !loaded) && (found - groups).abs() <= 0.5 || settling.rounds == ROUNDS {
            let cache = PrefixCache { popularity, groups, own, tiers };
            let [balanced, aware] = [false, true].map(|aware| cache.hits(aware).all());
            let by_hash = Some(popularity.scattered_by_hash(groups));
            let prefixes = Some((count, exponent, groups));
            point.caching = Some(CachePoint { reused, balanced, aware, prefixes, by_hash, tokens, session: None });
            return Ok(point);
        }
        if (found - groups).abs() > 0.5 {
            groups = found;
            (hits, uneven) = of(groups);
        }
    }
}

/// Requests of a group a second, as they settle with what is loaded: of the busiest, where they are sent to their cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settling {
    pub(super) each: f64,
    pub(super) rounds: u32,
}

impl Settling {
    /// Whether as many are served as were asked for; else goes half of the way, so that what is loaded and what is served do
    /// not swing against each other.
    pub(super) fn settled(&mut self, served: f64) -> bool {
        self.rounds += 1;
        let settled = (served - self.each).abs() <= NEAR * served;
        self.each = if self.rounds == 1 { served } else { f64::midpoint(self.each, served) };
        settled
    }
}

/// Groups that attend for requests of their own.
pub(super) fn groups_of(layout: ServingLayout, engines: u64) -> f64 {
    (engines.max(1) * u64::from(layout.attention_data)) as f64
}

/// What computing so many tokens of a prompt takes that follow on others which are there, and are there themselves else.
pub(super) fn recompute(
    serving: &Serving,
    layout: ServingLayout,
    bound: Bound<'_>,
    (prompt, there, again): (f64, f64, f64),
) -> Seconds {
    let (shapes, hardware) = (bound.shapes, bound.prefill);
    let output = serving.mean_lengths().1;
    let request = Request { input: prompt - there, cached: there, output, beyond: 0.0, spread: 0.0 };
    let sharing = serving.prefill.is_none().then_some(&request);
    let engine = shapes.engine(serving, hardware, layout, sharing, 1.0);
    let behind = |cached: f64| engine.prefill(prompt - cached, cached);
    behind(there).saturating_sub(behind(there + again))
}

/// How many caches of so many tokens each group keeps, and tiers with what loading one takes. A tier keeps one copy, of which
/// each of a group's ranks loads its part over links of its own; what every rank needs whole goes on between them.
pub(super) fn room(
    serving: &Serving,
    caching: &PrefixCaching,
    layout: ServingLayout,
    cluster: &Cluster,
    tokens: f64,
) -> (f64, [CacheTier; MOST_TIERS]) {
    let tokens = tokens_up(tokens);
    let formats = CacheFormats::of(&serving.model);
    let once = sequence_bytes(&serving.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, tokens);
    let ranks = f64::from(layout.tensor) * f64::from(layout.pipeline);
    let prefixes = |held: Bytes, each: Bytes| if each > Bytes::ZERO { held / each } else { 0.0 };
    let holding = Holding::new(serving, cluster.nodes_of_prefill());
    let found = holding.fits(&layout, tokens);
    let mut tiers = [CacheTier::default(); MOST_TIERS];
    for (tier, bound) in tiers.iter_mut().zip(&caching.tiers) {
        let shared = bound.entry.medium == TierMedium::Remote;
        let of = if shared { f64::from(cluster.nodes_of_prefill().accelerators) } else { ranks };
        // Other nodes are reached by cards of one's own.
        let reached =
            |rate: Bandwidth| if shared { rate.min(by_cards(cluster, cluster.nodes_of_prefill())) } else { rate };
        let [read, write] = [bound.entry.read_bandwidth, bound.entry.write_bandwidth].map(|rate| reached(rate.value));
        let transfer = once / (read * ranks);
        let load = bound.entry.latency.value + transfer;
        let store = once / (write * ranks);
        *tier = CacheTier { prefixes: prefixes(bound.capacity * of, once), shared, load, transfer, store };
    }
    (prefixes(found.pool * caching.own_share.get(), found.request), tiers)
}

impl CachePoint {
    /// Where requests find their prefix.
    pub fn hits(&self) -> Hits {
        self.reused.hits
    }

    /// What the busiest group would have to do over the mean with requests sent to where their prefix is.
    pub fn busiest(&self) -> f64 {
        self.prefixes.map_or(1.0, |(count, exponent, groups)| Popularity::zipf(count, exponent).busiest(groups))
    }
}
