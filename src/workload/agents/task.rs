//! A task: runs that succeed, and runs that fail.

use std::ops::{Add, Mul};

use super::{Fan, Reuse, Run, RunTokens};
use crate::units::Fraction;
use crate::workload::Call;

/// A task that succeeds in a share of its runs. Runs that fail have means of their own: they tend to be longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// A run that succeeds.
    pub success: Run,
    /// A run that fails.
    pub failure: Run,
    /// Share of runs that succeed, more than zero.
    pub rate: Fraction,
    /// How often each way is gone.
    pub fan: Fan,
    /// What the cache keeps.
    pub reuse: Reuse,
}

impl Task {
    /// Calls and tokens of a run that succeeds, and of one that fails.
    pub fn tokens_by_outcome(&self) -> [RunTokens; 2] {
        [self.success, self.failure].map(|run| run.tokens(self.fan, self.reuse))
    }

    /// Calls and tokens of a task, on average over both.
    pub fn tokens(&self) -> RunTokens {
        let [success, failure] = self.tokens_by_outcome();
        success.mix(self.rate.get(), &failure, 1.0 - self.rate.get())
    }

    /// The calls of a task by what is computed of their prompts and what is cached; shares add up to one, and means are those of
    /// its tokens.
    pub fn calls(&self) -> Vec<Call> {
        let rate = self.rate.get();
        let mut calls = self.success.calls(self.fan, self.reuse, rate);
        calls.extend(self.failure.calls(self.fan, self.reuse, 1.0 - rate));
        calls.retain(|call| call.weight > 0.0);
        let all: f64 = calls.iter().map(|call| call.weight).sum();
        for call in &mut calls {
            call.weight /= all;
        }
        calls
    }

    /// The mean over both of anything that a run has.
    pub fn mean<Q: Add<Output = Q> + Mul<f64, Output = Q>>(&self, of: impl Fn(&Run) -> Q) -> Q {
        let share = self.rate.get();
        of(&self.success) * share + of(&self.failure) * (1.0 - share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::units::{Factor, Tokens};

    #[test]
    fn calls_have_the_tokens_of_the_task() {
        let success = Run {
            steps: 33.0,
            shared: Tokens::new(8_000.0),
            first: Tokens::new(4_000.0),
            added: Tokens::new(1_877.0),
            output: Tokens::new(365.0),
            reasoning: Tokens::ZERO,
        };
        let fans = [(1, 1, 1.0), (3, 2, 1.4)];
        for ((agents, branches, attempts), session) in fans.into_iter().flat_map(|fan| [(fan, 1.0), (fan, 0.9)]) {
            let task = Task {
                success,
                failure: Run { steps: 50.0, ..success },
                rate: Fraction::new(0.64).unwrap(),
                fan: Fan { agents, branches, attempts },
                reuse: Reuse {
                    session: Fraction::new(session).unwrap(),
                    shared: Fraction::new(0.8).unwrap(),
                    block: Factor::new(16.0).unwrap(),
                },
            };
            let (calls, tokens) = (task.calls(), task.tokens());
            let mean = |of: fn(&Call) -> f64| calls.iter().map(|call| call.weight * of(call)).sum::<f64>();
            let each = |all: Tokens| all.value() / tokens.calls;
            assert!((mean(|_| 1.0) - 1.0).abs() < 1e-9);
            let (new, cached) =
                (mean(|call| call.new) / each(tokens.fresh()), mean(|call| call.cached) / each(tokens.cached));
            assert!((new - 1.0).abs() < 1e-6 && (cached - 1.0).abs() < 1e-6, "{new} and {cached}");
        }
    }

    #[test]
    fn failures_weigh_by_their_share_and_their_own_length() {
        let task = fixture::task(0.75, 20.0);
        let tokens = task.tokens();
        // 0.75 x 10 + 0.25 x 20 calls; prompts of 10 x 1,000 + 500 x 45 = 32,500 and 20 x 1,000 + 500 x 190 = 115,000.
        assert!((tokens.calls - 12.5).abs() < 1e-12);
        assert!((tokens.input.value() - (0.75 * 32_500.0 + 0.25 * 115_000.0)).abs() < 1e-6);
        assert!((tokens.output.value() - 1_250.0).abs() < 1e-9);
        assert!((task.mean(|run| run.steps) - 12.5).abs() < 1e-12);
    }
}
