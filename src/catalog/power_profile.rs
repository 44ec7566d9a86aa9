//! Power profiles: what a node really draws, as shares of the maximum that its maker states.

use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::{Fraction, Ranged};

/// What nodes of a class draw, as shares of their stated maximum power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerProfile {
    /// Powered, with no job.
    pub idle: Ranged<Fraction>,
    /// In a job, mean over its running time.
    pub busy: Ranged<Fraction>,
}

impl PowerProfile {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let profile = Self { idle: reader.get("idle"), busy: reader.get("busy") };
        if reader.sink().len() == before && profile.idle.value > profile.busy.value {
            let message = "idle nodes would draw more than busy ones";
            reader.report("idle", Code::Inconsistent, message, "both are shares of the maximum power");
        }
        profile
    }
}
