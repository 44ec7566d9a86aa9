//! Numbers as JSON.

use crate::units::to_integer;
use serde_json::{Number, Value as Json};

/// A number, or null where there is none.
pub(super) fn finite(number: f64) -> Json {
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

/// A number, without a point where it is whole.
pub(super) fn whole_or_finite(number: f64) -> Json {
    if number.fract() == 0.0 && (0.0..9e15).contains(&number) {
        Json::from(to_integer::<u64>(number))
    } else {
        finite(number)
    }
}
