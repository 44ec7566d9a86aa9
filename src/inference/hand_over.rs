//! Handing caches over from prefill workers to decode replicas, by links that both pools have so many of.

use super::latency::{Coming, Wait, mean_wait};
use crate::units::{RequestRate, Seconds};

/// Handing a request's cache over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOver {
    /// What engines take for it, beside its bytes.
    pub fixed: Seconds,
    /// Its bytes over the links of the ranks of one attention group of a prefill worker.
    pub sent: Seconds,
    /// The same of a decode replica.
    pub received: Seconds,
}

impl HandOver {
    /// One by itself: its bytes at the rate of the slower end.
    pub fn alone(&self) -> Seconds {
        self.fixed + self.sent.max(self.received)
    }

    /// Wait for those before it on the links of so many groups that send and so many that receive. Caches come at random to
    /// each end's links, which carry them one at a time: the mean wait of M/G/1 at each, M/D/1's where prompts are of one length.
    pub(super) fn wait(&self, rate: RequestRate, (senders, receivers): (f64, f64), scatter: f64) -> Wait {
        let end = |carried: Seconds, groups: f64| {
            let busy = rate.over(carried) / groups;
            Wait { busy, mean: mean_wait(carried, busy, [1.0, scatter]) }
        };
        end(self.sent, senders).and(end(self.received, receivers))
    }
}

/// Squared coefficient of variation of the caches of prompts, which grow by the token.
pub(super) fn scatter(coming: &Coming<'_>) -> f64 {
    let tokens = || coming.prompts().map(|(new, cached, weight)| (new + cached, weight));
    let mean: f64 = tokens().map(|(tokens, weight)| tokens * weight).sum();
    tokens().map(|(tokens, weight)| weight * (tokens / mean - 1.0).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_wait_for_each_other_on_the_links_of_both_ends() {
        let second = Seconds::new;
        let hand_over = HandOver { fixed: second(0.1), sent: second(0.02), received: second(0.01) };
        assert!((hand_over.alone().value() - 0.12).abs() < 1e-12);
        // 80 a second over two groups that send are 0.8 of each: an M/D/1 queue waits for 0.02 x 0.8 / 0.4 s. One that
        // receives is as busy with half of the time of each: half the wait.
        let wait = hand_over.wait(RequestRate::new(80.0), (2.0, 1.0), 0.0);
        assert!((wait.mean.value() - 0.06).abs() < 1e-12, "{wait:?}");
        // Links that have next to nothing to do: next to no wait.
        assert!(hand_over.wait(RequestRate::new(0.8), (2.0, 1.0), 0.0).mean.value() < 2e-4);
        // Lengths that scatter as an exponential does: twice the wait.
        let scattered = hand_over.wait(RequestRate::new(80.0), (2.0, 1.0), 1.0);
        assert!((scattered.mean.value() - 0.12).abs() < 1e-12, "{scattered:?}");
    }
}
