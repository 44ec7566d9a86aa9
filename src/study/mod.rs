//! Questions beside one evaluation of one scenario: variants side by side and where their order turns, one collective,
//! one network and its parts.

mod break_even;
mod break_even_map;
mod collective;
mod collective_range;
mod compare;
mod fabric;
mod plan;
pub mod pricing;
mod scaling;

pub use break_even::{BreakEven, Level, Turn, Variable, break_even};
pub use break_even_map::{BreakEvenMap, Hinge, MapRow, PRICE_RATIOS};
pub use collective::{Call, CallAnswer, CallLine, Placed, Staged, call, calls_together};
pub use collective_range::{Extrapolation, RangeInputs, TimeRange, Times, time_ranges};
pub use compare::{Axis, Case, Comparison, Question, Variant, compare};
pub use fabric::{FabricLine, FabricQuote, QuoteInputs, quote};
pub use plan::{BindingLimit, Limit, TrainingChoice, TrainingPlan, training_plan};
pub use scaling::{Curve, Gain, Growth, Scaling, ScalingPoint, SerialPart, scaling};
