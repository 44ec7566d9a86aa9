//! Questions that take several evaluations of one scenario: variants side by side, and where their order turns.

mod break_even;
mod compare;

pub use break_even::{BreakEven, Level, Turn, Variable, break_even};
pub use compare::{Axis, Case, Comparison, Question, Variant, compare};
