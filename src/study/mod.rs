//! Questions beside one evaluation of one scenario: variants side by side and where their order turns, one collective,
//! one network and its parts.

mod break_even;
mod break_even_map;
mod collective;
mod compare;
mod fabric;

pub use break_even::{BreakEven, Level, Turn, Variable, break_even};
pub use break_even_map::{BreakEvenMap, Hinge, MapRow, PRICE_RATIOS};
pub use collective::{Call, CallAnswer, Placed, call};
pub use compare::{Axis, Case, Comparison, Question, Variant, compare};
pub use fabric::{FabricQuote, quote};
