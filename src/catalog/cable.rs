//! Cables: bare fibre, and cables with ends of their own.

use super::check::positive;
use super::optic::Medium;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Meters, Watts};

choices! {
    /// What a cable has at its ends.
    pub enum CableKind {
        /// Connectors for optical modules.
        Fibre = "fibre",
        /// Copper with plugs for the cages.
        Dac = "dac",
        /// Fibre with fixed optical plugs for the cages.
        Aoc = "aoc",
    }
}

/// A cable; one carries one link.
#[derive(Clone, Debug, PartialEq)]
pub struct Cable {
    /// What it has at its ends.
    pub kind: CableKind,
    /// What it is made of.
    pub medium: Medium,
    /// Speed, where the ends set it; fibre takes that of its optics.
    pub link_speed: Option<Bandwidth>,
    /// The longest that is made.
    pub reach: Meters,
    /// Draw of each end; none for fibre.
    pub power_per_end: Watts,
}

impl Cable {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let kind = reader.get("kind");
        let medium = reader.get("medium");
        let reach = positive(reader, "reach");
        let (link_speed, power_per_end) = if kind == CableKind::Fibre {
            (None, Watts::ZERO)
        } else {
            (Some(positive(reader, "link_speed")), reader.get("power_per_end"))
        };
        if reader.sink().len() == before && (kind == CableKind::Dac) != (medium == Medium::Copper) {
            let message = format!("a cable of kind {kind} is not made of {medium}");
            reader.report("medium", Code::Inconsistent, message, "dac is copper; fibre and aoc are mmf or smf");
        }
        Self { kind, medium, link_speed, reach, power_per_end }
    }
}
