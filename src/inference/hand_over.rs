//! Handing caches over from prefill workers to decode replicas, by links that both pools have so many of.

use super::Links;
use super::queue::coming::Coming;
use super::queue::waiting::{Wait, mean_wait};
use crate::topology::Pairs;
use crate::units::{RequestRate, Seconds};

/// Handing a request's cache over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOver {
    /// What engines take for it, beside its bytes.
    pub fixed: Seconds,
    /// Its bytes over the links of the ranks of one attention group of a prefill worker, were no others on the way.
    pub sent: Seconds,
    /// The same of a decode replica.
    pub received: Seconds,
    /// What the network between makes of that.
    pub pairs: Pairs,
    /// Attention groups of the pool that sends, and of the one that receives, behind links between switches that they share.
    pub sharing: [f64; 2],
    /// The links.
    pub links: Links,
}

impl HandOver {
    /// One by itself: its bytes at the rate of the slower end.
    pub fn alone(&self) -> Seconds {
        self.fixed + self.carried()
    }

    /// Its bytes alone.
    fn carried(&self) -> Seconds {
        self.sent.max(self.received) * self.pairs.lone
    }

    /// Time that one keeps the cards of the group that sends it.
    pub(super) fn keeps_sender(&self) -> Seconds {
        self.sent * self.pairs.lone
    }

    /// The same of the group that receives it.
    pub(super) fn keeps_receiver(&self) -> Seconds {
        self.received * self.pairs.lone
    }

    /// The most caches that so many groups send, by their cards and by the links between switches. A pool that fills no block of
    /// accelerators which share links has those of one for itself.
    pub(super) fn sends(&self, groups: f64) -> RequestRate {
        self.carries(self.sent, groups, self.sharing[0])
    }

    /// The same of groups that receive.
    pub(super) fn receives(&self, groups: f64) -> RequestRate {
        self.carries(self.received, groups, self.sharing[1])
    }

    fn carries(&self, alone: Seconds, groups: f64, sharing: f64) -> RequestRate {
        let Pairs { lone, all, .. } = self.pairs;
        RequestRate::of(groups, alone * lone).min(RequestRate::of(groups.max(sharing), alone * all))
    }

    /// What caches lose to others on their way, with so many groups that send and so many that receive, where messages of engines
    /// have these links for shares of the time and take half of them meanwhile.
    ///
    /// They come at random to each end's cards, which carry them one at a time: M/G/1, M/D/1 where prompts are of one length.
    /// On the links between switches, whose capacity is what the fabric leaves where all send (of hashed flows that of the
    /// fullest link), all that are on their way have even shares, none more than its own cards carry: [`Wait::shared`], of the
    /// links that a block of the senders leaves by, and of those by which one of the receivers is reached. Those of a block and
    /// its own are added, as if a cache passed one after the other (the store-and-forward bound of balanced fairness, Bonald
    /// and Proutière 2004).
    pub(super) fn wait(&self, rate: RequestRate, (sender, receiver): (End, End), scatter: f64) -> Wait {
        let end = |alone: Seconds, end: End, sharing: f64| {
            let slowed = 1.0 / (1.0 - end.messaging / 2.0);
            let kept = alone * (self.pairs.lone * slowed);
            let busy = rate.over(kept) / end.groups;
            let cards = Wait::exponential(busy, mean_wait(kept, busy, [1.0, scatter]));
            if self.pairs.all <= self.pairs.lone {
                return cards;
            }
            let shared = alone * (self.pairs.all * slowed);
            let load = rate.over(shared) / end.groups.max(sharing);
            let carried = self.carried() * slowed;
            cards.and(Wait::shared(carried, sharing * (carried / shared), load))
        };
        let [senders, receivers] = self.sharing;
        end(self.sent, sender, senders).and(end(self.received, receiver, receivers))
    }
}

/// An end of the links between pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct End {
    /// Attention groups, each with links of its own.
    pub(super) groups: f64,
    /// Share of the time for which messages of their engines have the links.
    pub(super) messaging: f64,
}

/// Squared coefficient of variation of the caches of prompts, which grow by the token.
pub(super) fn scatter(coming: &Coming<'_>) -> f64 {
    let tokens = || coming.prompts().map(|prompt| (prompt.new + prompt.cached, prompt.weight));
    let mean: f64 = tokens().map(|(tokens, weight)| tokens * weight).sum();
    tokens().map(|(tokens, weight)| weight * (tokens / mean - 1.0).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::simulation::Draws;
    use crate::units::to_integer;

    #[test]
    fn caches_wait_for_each_other_on_the_links_of_both_ends() {
        let second = Seconds::new;
        let (sent, received) = (second(0.02), second(0.01));
        let hand_over =
            HandOver { fixed: second(0.1), sent, received, pairs: Pairs::NEAR, sharing: [1.0; 2], links: Links::Cards };
        assert!((hand_over.alone().value() - 0.12).abs() < 1e-12);
        let ends = |messaging: f64| {
            let [sender, receiver] = [2.0, 1.0].map(|groups| End { groups, messaging });
            (sender, receiver)
        };
        let wait = |hand_over: &HandOver, rate: f64, messaging: f64, scatter: f64| {
            hand_over.wait(RequestRate::new(rate), ends(messaging), scatter).over_all().value()
        };
        // 80 a second over two groups that send are 0.8 of each: an M/D/1 queue waits for 0.02 x 0.8 / 0.4 s. One that
        // receives is as busy with half of the time of each: half the wait.
        assert!((wait(&hand_over, 80.0, 0.0, 0.0) - 0.06).abs() < 1e-12);
        // Links that have next to nothing to do: next to no wait.
        assert!(wait(&hand_over, 0.8, 0.0, 0.0) < 2e-4);
        // Lengths that scatter as an exponential does: twice the wait.
        assert!((wait(&hand_over, 80.0, 0.0, 1.0) - 0.12).abs() < 1e-12);
        // Messages for a third of the time leave five sixths of the links: caches take 6/5 as long, and 80 a second are 0.96.
        assert!((wait(&hand_over, 80.0, 1.0 / 3.0, 0.0) - (0.024 + 0.012) * 0.96 / 0.08).abs() < 1e-9);
    }

    #[test]
    fn a_pool_smaller_than_a_block_has_its_links_for_itself() {
        let second = Seconds::new;
        let pairs = Pairs { lone: 1.0, all: 4.0, sharing: 64.0 };
        let (sent, received) = (second(1.0), second(0.5));
        let hand_over =
            HandOver { fixed: Seconds::ZERO, sent, received, pairs, sharing: [16.0, 8.0], links: Links::Cards };
        // A quarter of 32 groups of two blocks, and of one block whose groups are not all there; no more than cards carry.
        let sends = [32.0, 16.0, 8.0, 2.0].map(|groups| hand_over.sends(groups).over(second(1.0)));
        assert!(sends.iter().zip([8.0, 4.0, 4.0, 2.0]).all(|(sent, due)| (sent - due).abs() < 1e-12), "{sends:?}");
        assert!((hand_over.receives(8.0).over(second(1.0)) - 4.0).abs() < 1e-12);
    }

    /// Mean of what caches lose that come at random to groups in blocks whose links they share: by max-min fair rates, event by
    /// event.
    fn simulated(groups: usize, block: usize, at_once: f64, rate: f64, count: usize) -> f64 {
        struct Flow {
            came: f64,
            left: f64,
            /// Links: of the sender, its block, the receiver's block, and the receiver.
            passes: [usize; 4],
        }
        let blocks = groups / block;
        let mut capacity = vec![1.0; 2 * groups];
        capacity.resize(2 * (groups + blocks), at_once);
        let mut draws = Draws::new();
        let mut any = |below: usize| {
            let drawn = to_integer::<usize>(draws.even() * below as f64);
            (drawn, draws.exponential(rate.recip()))
        };
        let (mut now, mut next, mut flows, mut lost, mut done): (f64, f64, Vec<Flow>, f64, usize) =
            (0.0, 0.0, Vec::new(), 0.0, 0);
        while done < count {
            // Water filling: all rise until a link is full, whose flows keep that.
            let mut rates = vec![None; flows.len()];
            let mut free = capacity.clone();
            let mut open = vec![0_u32; capacity.len()];
            flows.iter().flat_map(|flow| flow.passes).for_each(|link| open[link] += 1);
            while let Some((link, share)) = (0..free.len())
                .filter(|link| open[*link] > 0)
                .map(|link| (link, free[link] / f64::from(open[link])))
                .min_by(|one, other| one.1.total_cmp(&other.1))
            {
                for (flow, rate) in flows.iter().zip(&mut rates) {
                    if rate.is_none() && flow.passes.contains(&link) {
                        *rate = Some(share);
                        for passed in flow.passes {
                            free[passed] -= share;
                            open[passed] -= 1;
                        }
                    }
                }
            }
            let rates: Vec<f64> = rates.into_iter().map(Option::unwrap).collect();
            let ends = flows.iter().zip(&rates).map(|(flow, rate)| now + flow.left / rate).fold(f64::MAX, f64::min);
            let then = ends.min(next);
            flows.iter_mut().zip(&rates).for_each(|(flow, rate)| flow.left -= rate * (then - now));
            now = then;
            if ends <= next {
                flows.retain(|flow| {
                    let goes_on = flow.left > 1e-9;
                    if !goes_on {
                        (lost, done) = (lost + now - flow.came - 1.0, done + 1);
                    }
                    goes_on
                });
            } else {
                let ((from, gap), (to, _)) = (any(groups), any(groups));
                let passes = [from, 2 * groups + from / block, 2 * groups + blocks + to / block, groups + to];
                flows.push(Flow { came: now, left: 1.0, passes });
                next = now + gap;
            }
        }
        lost / count as f64
    }

    #[test]
    fn caches_share_the_links_between_switches_as_one_by_one() {
        let second = Seconds::new;
        let (groups, block) = (64.0, 16.0);
        for all in [4.0, 11.0] {
            let pairs = Pairs { lone: 1.0, all, sharing: 64.0 };
            let hand_over = HandOver {
                fixed: Seconds::ZERO,
                sent: second(1.0),
                received: second(1.0),
                pairs,
                sharing: [block; 2],
                links: Links::Cards,
            };
            let end = End { groups, messaging: 0.0 };
            for (load, within) in [(0.15, 0.04), (0.5, 0.1), (0.8, 0.1)] {
                let rate = hand_over.sends(groups) * load;
                let reckoned = hand_over.wait(rate, (end, end), 0.0).over_all().value();
                let found = simulated(64, 16, block / all, rate.value(), 6_000);
                assert!(
                    (reckoned - found).abs() < within * (1.0 + found),
                    "{all} {load}: {reckoned}, {found} one by one"
                );
            }
        }
    }
}
