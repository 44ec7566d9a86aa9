//! What the stages of an engine hand on to each other.

use super::shape::ACTIVATION;
use crate::collectives::{Collective, Group, Wires, best};
use crate::inference::Replica;
use crate::units::{Bytes, Seconds};

/// Hand-overs from one stage of an engine to the next, all ranks of a stage at the same time to those in their places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOvers {
    /// How many stay within a scale-up domain.
    pub within: f64,
    /// How many go to another.
    pub across: f64,
    /// Two ranks in one domain.
    pub near: Group,
    /// Two ranks in two.
    pub far: Group,
    /// What joins them.
    pub wires: Wires,
}

impl HandOvers {
    /// All of them, one after another, of so many bytes each.
    fn time(&self, bytes: Bytes) -> Seconds {
        let each = |count: f64, pair: &Group| {
            if count > 0.0 { best(Collective::SendRecv, bytes, pair, &self.wires).time * count } else { Seconds::ZERO }
        };
        each(self.within, &self.near) + each(self.across, &self.far)
    }
}

impl Replica<'_> {
    /// The activations of a rank's tokens on their way through all stages: `tokens x hidden` numbers of 16 bits a message.
    ///
    /// A token waits for every hand-over, as it passes one stage after another. What the last stage sends back to the first, a
    /// number for each sequence, is left out.
    pub(in crate::inference) fn handed_over(&self, tokens: f64) -> Seconds {
        let bytes = Bytes::new(tokens * self.shape.hidden * ACTIVATION);
        self.hardware.stages.map_or(Seconds::ZERO, |stages| stages.time(bytes))
    }
}
