//! Handing caches over from prefill workers to decode replicas, by links that both pools have so many of.

use super::Links;
use super::coming::Coming;
use super::waiting::{Wait, mean_wait};
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
    /// The links.
    pub links: Links,
}

impl HandOver {
    /// One by itself: its bytes at the rate of the slower end.
    pub fn alone(&self) -> Seconds {
        self.fixed + self.sent.max(self.received) * self.pairs.lone
    }

    /// Time that one keeps the links of the group that sends it, where all send: the share of the network that is left to each
    /// is what many caches have on the mean.
    pub(super) fn keeps_sender(&self) -> Seconds {
        self.sent * self.pairs.all
    }

    /// The same of the group that receives it.
    pub(super) fn keeps_receiver(&self) -> Seconds {
        self.received * self.pairs.all
    }

    /// Wait for those before it on the links of so many groups that send and so many that receive, where messages of engines have
    /// these links for shares of the time. Caches come at random to each end's links, which carry them one at a time, each with
    /// half of the link while there are messages: the mean wait of M/G/1 at each, M/D/1's where prompts are of one length.
    pub(super) fn wait(&self, rate: RequestRate, (sender, receiver): (End, End), scatter: f64) -> Wait {
        let end = |alone: Seconds, end: End| {
            let carried = alone / (1.0 - end.messaging / 2.0);
            let busy = rate.over(carried) / end.groups;
            Wait::exponential(busy, mean_wait(carried, busy, [1.0, scatter]))
        };
        end(self.keeps_sender(), sender).and(end(self.keeps_receiver(), receiver))
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

    #[test]
    fn caches_wait_for_each_other_on_the_links_of_both_ends() {
        let second = Seconds::new;
        let (sent, received) = (second(0.02), second(0.01));
        let hand_over = HandOver { fixed: second(0.1), sent, received, pairs: Pairs::NEAR, links: Links::Cards };
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
        // A network that leaves half where all send and all of it to one is as links of half the rate, but for the first.
        let half = HandOver { pairs: Pairs { all: 2.0, ..Pairs::NEAR }, ..hand_over };
        assert_eq!(half.alone(), hand_over.alone());
        assert!((wait(&half, 40.0, 0.0, 0.0) - 0.12).abs() < 1e-12);
    }
}
