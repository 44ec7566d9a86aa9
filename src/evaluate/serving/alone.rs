//! A replica by itself, so that those which others beat need not be tried.

use super::batch::{BatchBound, Largest};
use super::engine::{Shapes, mean_request};
use super::holding::Holding;
use super::joined::{Networks, joined};
use super::{features_fit, fitting};
use crate::evaluate::Infeasible;
use crate::memory::serving::ServingLayout;
use crate::scenario::{Cluster, Limits, Serving};
use crate::units::{RequestRate, Seconds};

/// Batches that a replica is looked at with.
const BATCHES: usize = 8;

/// A replica with requests of mean lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplicaPoint {
    /// Its ranks.
    pub ranks: u64,
    /// Share of a scale-up domain that such replicas fill.
    filled: f64,
    /// A prompt alone.
    prompt: Seconds,
    /// The most prompts that steps full of them take in, over its ranks.
    prompts: RequestRate,
    /// Requests that end, over its ranks, and the time between tokens with batches from one sequence to all that there is
    /// room for.
    pace: [(RequestRate, Seconds); BATCHES],
    /// Requests that there is room for, over its ranks, where more room brings more hits.
    room: f64,
}

impl ReplicaPoint {
    /// Whether decode is never better on the other: as many requests end on as many accelerators at no slower a pace, whatever
    /// the rate, and this one goes where the other does.
    pub fn decodes_better(&self, other: &Self) -> bool {
        // What domains are not filled with does not decode.
        let share = (self.filled / other.filled).min(1.0);
        self.ranks <= other.ranks
            && self.room * share >= other.room
            && other.pace.iter().all(|(rate, pace)| self.pace_at(*rate / share).is_some_and(|own| own <= *pace))
    }

    /// The time between tokens of a sequence by itself.
    pub fn token_alone(&self) -> Seconds {
        let [(_, alone), ..] = self.pace;
        alone
    }

    /// A prompt by itself.
    pub fn prompt_alone(&self) -> Seconds {
        self.prompt
    }

    /// Whether decode may keep limits, as it does not where a sequence by itself is too slow.
    pub fn decodes_within(&self, limits: &Limits) -> bool {
        limits.between_tokens().is_none_or(|limit| self.token_alone() <= limit)
    }

    /// The same of replicas that prefill and decode.
    pub fn serves_within(&self, limits: &Limits) -> bool {
        limits.of_first_token().is_none_or(|limit| self.prompt <= limit) && self.decodes_within(limits)
    }

    /// Whether replicas that prefill and decode are never better than these: prompts take no longer either, alone and packed.
    pub fn beats(&self, other: &Self) -> bool {
        let share = (self.filled / other.filled).min(1.0);
        self.prompt <= other.prompt && self.prompts * share >= other.prompts && self.decodes_better(other)
    }

    /// The time between tokens at which requests end at a rate, over ranks; none where they do at no pace. Between two batches
    /// the line that joins them: what it says is no sooner, as longer steps of larger batches end less and less more.
    fn pace_at(&self, rate: RequestRate) -> Option<Seconds> {
        let [(slowest, first), ..] = self.pace;
        if rate <= slowest {
            return Some(first);
        }
        self.pace.windows(2).find(|two| two[0].0 < rate && rate <= two[1].0).map(|two| {
            let [(few, sooner), (many, later)] = [two[0], two[1]];
            let part = rate.saturating_sub(few) / many.saturating_sub(few);
            sooner + later.saturating_sub(sooner) * part
        })
    }
}

/// A replica of a layout on a cluster. Where hits of prefixes follow from what is kept, prompts are taken as computed anew.
///
/// # Errors
/// When it does not hold a request, constants are missing, or the ranks' network cannot be built.
pub fn replica_alone(serving: &Serving, cluster: &Cluster, layout: ServingLayout) -> Result<ReplicaPoint, Infeasible> {
    let serving = Serving { layout, ..serving.clone() };
    features_fit(&serving, layout)?;
    let nodes = cluster.main_nodes();
    let holding = Holding::new(&serving, nodes);
    let found = fitting(&serving, &holding)?;
    let shapes = Shapes::new(&serving);
    let hardware = joined(layout, &serving, nodes, &mut Networks::of(cluster))?;
    // No matter how many others share adapters out with it.
    let engines = f64::from(u32::MAX);
    let request = mean_request(&serving, serving.prefix_hit.get());
    let replica = shapes.engine(&serving, &hardware, layout, Some(&request), engines);
    let room = holding.room(&layout, &request, &found);
    let places = shapes.held_up_by_adapters(&serving, &layout, engines);
    let ranks = layout.ranks() as f64;
    let most = Largest::new(room, layout.attention_data, holding.at_once())
        .at_most(places, BatchBound::Adapters)
        .room
        .requests;
    let packed = replica.packed_prefill(request.input, request.cached) * ranks;
    let prompts = RequestRate::of(f64::from(layout.pipeline), packed);
    let pace = std::array::from_fn(|index| {
        if !request.decodes() {
            return (prompts, Seconds::ZERO);
        }
        let batch = most.powf(index as f64 / (BATCHES - 1) as f64);
        let pace = replica.token_step(batch, request.contexts()).0.total();
        (RequestRate::of(batch, pace * request.output) / ranks, pace)
    });
    let domain = u64::from(nodes.node.scale_up.domain.max(1));
    let stage = layout.ranks() / u64::from(layout.pipeline);
    let filled = if stage > domain { 1.0 } else { (domain / stage * stage) as f64 / domain as f64 };
    Ok(ReplicaPoint {
        ranks: layout.ranks(),
        filled,
        prompt: replica.prefill(request.input, request.cached),
        prompts,
        pace,
        room: if serving.cache.is_some() || serving.sessions.is_some() { room.requests / ranks } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ranks: u64, pace: f64, fastest: f64) -> ReplicaPoint {
        let of = |part: f64| (RequestRate::new(fastest * part), Seconds::new(pace * (1.0 + part)));
        ReplicaPoint {
            ranks,
            filled: 1.0,
            prompt: Seconds::new(0.1),
            prompts: RequestRate::new(1.0),
            pace: std::array::from_fn(|index| of((index + 1) as f64 / BATCHES as f64)),
            room: 0.0,
        }
    }

    #[test]
    fn a_replica_beats_those_that_are_no_better_at_any_rate() {
        let (fast, slow) = (point(4, 0.01, 2.0), point(8, 0.012, 2.0));
        assert!(fast.beats(&slow) && !slow.beats(&fast));
        // More ranks are not taken for fewer: they may not fit.
        assert!(!point(16, 0.01, 2.0).beats(&slow));
        // One that ends more at its most is kept, and one with sooner prompts.
        assert!(!fast.beats(&point(8, 0.012, 2.1)));
        let sooner = ReplicaPoint { prompt: Seconds::new(0.09), ..slow };
        assert!(!fast.beats(&sooner) && fast.decodes_better(&sooner));
        // 64 of 72 are filled: an eighth more has to end on those.
        let part = ReplicaPoint { filled: 64.0 / 72.0, ..point(4, 0.01, 2.0) };
        assert!(
            !part.decodes_better(&slow)
                && ReplicaPoint { pace: point(4, 0.01, 2.3).pace, ..part }.decodes_better(&slow)
        );
    }

    #[test]
    fn between_batches_the_pace_goes_straight() {
        let one = point(1, 0.01, 8.0);
        let at = |rate: f64| one.pace_at(RequestRate::new(rate)).map(Seconds::value);
        // Ends of 1, 2, ... 8 a second at 11.25 ms and 1.25 ms more each.
        assert!((at(0.5).unwrap() - 0.011_25).abs() < 1e-12 && (at(2.5).unwrap() - 0.013_125).abs() < 1e-12);
        assert_eq!(at(8.1), None);
    }
}
