//! Times told by where they stand in a normal distribution.

use crate::units::Seconds;

/// Times that standard deviations from the middle of a normal distribution tell, and that tell them.
pub(in crate::inference) trait Deviating {
    /// The time below which as much is as of a normal distribution below so many standard deviations from its middle.
    fn at(&self, deviations: f64) -> Seconds;

    /// The standard deviations from the middle of a normal distribution of which as much is below as is here below a time.
    fn deviations(&self, time: Seconds) -> f64;

    /// Whether all are one.
    fn certain(&self) -> bool;
}
