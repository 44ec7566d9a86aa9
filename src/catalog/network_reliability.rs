//! Reliability of scale-out networks: how often their parts fail, and what holds a job up without ending it.

use super::quantity::positive_range;
use super::fabric::Transport;
use crate::document::Reader;
use crate::units::{Ranged, Seconds};

/// Mean time between the failures of one part that interrupt a synchronous job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkMtbf {
    /// A network card.
    pub nic: Ranged<Seconds>,
    /// A switch of any tier.
    pub switch: Ranged<Seconds>,
    /// An optical module.
    pub optic: Ranged<Seconds>,
    /// A cable, of copper or fibre.
    pub cable: Ranged<Seconds>,
}

/// Events that a job waits out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    /// Mean time between them, of one part.
    pub between: Ranged<Seconds>,
    /// What each takes.
    pub time: Ranged<Seconds>,
}

/// The reliability of networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkReliability {
    /// Mean times between failures.
    pub mtbf: NetworkMtbf,
    /// A link that goes down and comes back before the transport gives up; by cable.
    pub link_flap: Stall,
    /// A card or host that keeps sending pause frames until a watchdog ends it, and with it everything behind; by card,
    /// on transports that pause.
    pub pause_storm: Stall,
}

impl NetworkReliability {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let stall = |reader: &mut Reader<'_>| Stall {
            between: positive_range(reader, "between"),
            time: positive_range(reader, "time"),
        };
        Self {
            mtbf: reader.table("mtbf", |reader| NetworkMtbf {
                nic: positive_range(reader, "nic"),
                switch: positive_range(reader, "switch"),
                optic: positive_range(reader, "optic"),
                cable: positive_range(reader, "cable"),
            }),
            link_flap: reader.table("link_flap", stall),
            pause_storm: reader.table("pause_storm", stall),
        }
    }
}

impl Transport {
    /// Whether it keeps packets from being dropped by priority flow control, whose pauses spread.
    pub const fn pauses(self) -> bool {
        matches!(self, Self::RoceV2)
    }
}
