//! Prompts that come to workers which do nothing but take them in.

use super::together::Together;
use crate::units::{RequestRate, Seconds};

/// Halvings of the prompts that a step takes in.
const HALVINGS: u32 = 30;
/// The share of a step's prompts over which it is seen how its time grows.
const SLOPE: f64 = 1e-3;
/// The most by which prompts of a step bring further ones: where each brings one, there is no end but that of the step.
const GROWS: f64 = 0.99;

/// Workers that take prompts in, each with as many as have come to it when a step begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takers {
    /// Steps by their prompts.
    pub(super) steps: Together,
    /// Workers, to which prompts go in turn.
    pub(super) workers: f64,
    /// Stages of each, with steps of their own.
    pub(super) stages: f64,
}

/// What a prompt meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Met {
    /// The step that takes it in.
    pub(super) step: Seconds,
    /// Wait for it.
    pub(super) wait: Seconds,
}

impl Takers {
    /// The most that they take in.
    pub(super) fn most(&self) -> RequestRate {
        RequestRate::of(self.steps.most() * self.workers * self.stages, self.steps.time(self.steps.most()))
    }

    /// A prompt among others that come at such a rate.
    ///
    /// A step takes in those that came during the one before, and where none did, one: `k = a + exp(-a)` with `a = rate S(k)`
    /// where they come at random. Longer steps take in more, and longer ones follow, so that `k` scatters as `a / (1 - g^2)` where
    /// `g = rate S'(k)`; prompts see the larger steps more often, and come during the longer ones. Who comes during a step waits for
    /// half of it, and for further ones where more come than it holds: exact for steps of one prompt (Pollaczek and Khinchine), and
    /// where steps are nearly full (bulk queues in heavy traffic), and between them by as many independent prompts as a step has. Prompts that go to workers in turn come to each the more evenly
    /// the more there are.
    pub(super) fn met(&self, rate: RequestRate) -> Met {
        let each = rate / (self.workers * self.stages);
        let most = self.steps.most();
        let come = |prompts: f64| each.over(self.steps.time(prompts));
        let (mut low, mut high) = (1.0, most);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let during = come(middle);
            if during + (-during).exp() > middle { low = middle } else { high = middle }
        }
        let (taken, during) = (high, come(high));
        let grows = ((come(taken * (1.0 + SLOPE)) - during) / (taken * SLOPE)).clamp(0.0, GROWS);
        let followed = grows / (1.0 - grows * grows);
        let met = (1.0 + (during * during + during * grows * followed) / taken).min(most);
        let busy = (during / taken).min(1.0);
        let filled = (rate / self.most()).powf(1.0 + (most - 1.0) * (1.0 - grows * grows));
        let longest = self.steps.time((taken + followed).min(most));
        let wait = longest * (busy / (2.0 * self.stages * self.workers * (1.0 - filled)));
        Met { step: self.steps.time(met), wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Replica, Request, Spread, fixture};

    /// Mean time until a prompt's step is done where prompts come at random to one worker, step by step (xorshift, Marsaglia 2003).
    fn simulated(takers: &Takers, rate: f64) -> f64 {
        let (mut state, count) = (0x2545_F491_4F6C_DD1D_u64, 200_000_usize);
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            -(((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).ln() / rate
        };
        let mut at = 0.0;
        let coming: Vec<f64> = std::iter::repeat_with(|| {
            at += draw();
            at
        })
        .take(count)
        .collect();
        let (mut next, mut now, mut total) = (0, 0.0_f64, 0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of prompts")]
        let most = takers.steps.most() as usize;
        while next < count {
            now = now.max(coming[next]);
            let taken = coming[next..].iter().take(most).take_while(|at| **at <= now).count();
            now += takers.steps.time(taken as f64).value();
            total += coming[next..next + taken].iter().map(|at| now - at).sum::<f64>();
            next += taken;
        }
        total / count as f64
    }

    fn takers(engine: &Replica<'_>, input: f64) -> Takers {
        let request = Request { input, cached: 0.0, output: 100.0, beyond: 0.0 };
        Takers { steps: Together::new(engine, &request, f64::INFINITY), workers: 1.0, stages: 1.0 }
    }

    #[test]
    fn prompts_meet_steps_as_one_by_one() {
        let (model, hardware) = (fixture::shape("deepseek-v3"), fixture::h100());
        let spread = Spread { tensor: 1, attention_data: 8, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let engine = Replica::new(&model, &hardware, spread);
        for input in [8_192.0, 2_048.0] {
            let takers = takers(&engine, input);
            for (share, within) in [(0.05, 0.01), (0.3, 0.01), (0.6, 0.02), (0.9, 0.26)] {
                let rate = takers.most() * share;
                let met = takers.met(rate);
                let (reckoned, found) = ((met.step + met.wait).value(), simulated(&takers, rate.value()));
                assert!((reckoned / found - 1.0).abs() < within, "{input} {share}: {reckoned}, {found} one by one");
            }
        }
    }

    #[test]
    fn steps_of_one_prompt_are_a_queue_with_one_server() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let takers = takers(&engine, 8_192.0);
        let step = engine.prefill(8_192.0, 0.0);
        // M/D/1 at 0.8: 0.8 / (2 x 0.2) of a step.
        let met = takers.met(RequestRate::of(0.8, step));
        assert_eq!(met.step, step);
        assert!((met.wait / step - 2.0).abs() < 1e-6, "{}", met.wait / step);
        // Four workers in turn have four times as many, and wait a quarter.
        let four = Takers { workers: 4.0, ..takers }.met(RequestRate::of(3.2, step));
        assert!((four.wait / step - 0.5).abs() < 1e-6, "{}", four.wait / step);
    }
}
