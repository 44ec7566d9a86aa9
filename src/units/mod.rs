//! Physical and monetary quantities: one newtype over `f64` each, the laws that join them, and their text form.
//!
//! Inside the program a quantity is held in its base unit (bytes, seconds, FLOP, watts, US dollars). Bits, GiB, kW and
//! cents exist only in text: [`Quantity::parse`] reads `"400 Gbit/s"`, and `Display` writes with a fitting prefix.
//! Dividing like by like gives a plain `f64`, so ratios and roots are taken of dimensionless numbers.

mod count;
mod laws;
mod parse;
mod quantities;
mod scalar;

pub(crate) use count::{counted, grouped};
pub use parse::{Quantity, Unit, UnitError};
pub(crate) use parse::{brief, number, significant};
pub use quantities::{
    Bandwidth, Bytes, CarbonIntensity, CarbonMass, FlopRate, Flops, Joules, Meters, RequestRate, Seconds, TokenRate,
    Tokens, Usd, UsdPerHour, UsdPerJoule, UsdPerToken, UsdPerWattSecond, Watts,
};
pub use scalar::{Factor, Fraction, Ranged, Rate, to_integer};

/// Hours of a planning year (365 days), as the outside of the program lays down.
pub const HOURS_PER_YEAR: f64 = 8_760.0;
/// Hours of a planning month (a twelfth of a year).
pub const HOURS_PER_MONTH: f64 = 730.0;
/// Seconds of a planning year.
pub const SECONDS_PER_YEAR: f64 = HOURS_PER_YEAR * 3_600.0;
/// Seconds of a day.
pub const SECONDS_PER_DAY: f64 = 86_400.0;
