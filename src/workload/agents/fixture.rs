//! A task for tests: ten steps, prompts of 1,000 tokens and 500 more each step, 100 of them the answer's.

use super::{Fan, Reuse, Run, Task};
use crate::units::{Factor, Fraction, Tokens};

/// A run that succeeds.
pub(crate) const RUN: Run = Run {
    steps: 10.0,
    shared: Tokens::ZERO,
    first: Tokens::new(1_000.0),
    added: Tokens::new(400.0),
    output: Tokens::new(100.0),
    reasoning: Tokens::ZERO,
};

/// A task of which such a share succeeds, the others after so many steps; all that was asked before is cached.
pub(crate) fn task(rate: f64, failed_steps: f64) -> Task {
    Task {
        success: RUN,
        failure: Run { steps: failed_steps, ..RUN },
        rate: Fraction::new(rate).unwrap(),
        fan: Fan { agents: 1, branches: 1, attempts: 1.0 },
        reuse: Reuse { session: Fraction::ONE, shared: Fraction::ONE, block: Factor::ONE },
    }
}
