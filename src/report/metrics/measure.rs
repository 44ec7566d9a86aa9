//! Measures as values of figures, in the units that keys name.

use super::super::figure::Value;
use crate::units::{Quantity, Tokens, to_integer};

/// In the base unit.
pub(super) fn base<Q: Quantity>(measure: Q) -> Value {
    Value::Number(measure.base())
}

/// In the unit of that word; `None` where the quantity has no such word.
pub(super) fn scaled<Q: Quantity>(measure: Q, word: &str) -> Option<Value> {
    measure.in_unit(word).map(Value::Number)
}

/// A count rounded up to whole things; `None` where it is negative or not finite.
pub(super) fn count_up(count: f64) -> Option<u64> {
    (count.is_finite() && count >= 0.0).then(|| to_integer::<u64>(count.ceil()))
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

/// A mean of counts, which need not be whole.
impl From<f64> for Value {
    fn from(count: f64) -> Self {
        Self::Number(count)
    }
}

impl From<Tokens> for Value {
    fn from(tokens: Tokens) -> Self {
        base(tokens)
    }
}
