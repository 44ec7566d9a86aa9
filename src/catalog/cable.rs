//! Cables: bare fibre, and cables with ends of their own.

use super::quantity::{positive, some_positive};
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
        /// Copper with amplifiers in its plugs.
        Acc = "acc",
        /// Copper with retimers in its plugs.
        Aec = "aec",
        /// Fibre with fixed optical plugs for the cages.
        Aoc = "aoc",
    }
}

impl CableKind {
    /// Whether such a cable is copper; else it is glass.
    pub const fn is_copper(self) -> bool {
        matches!(self, Self::Dac | Self::Acc | Self::Aec)
    }
}

/// A cable.
#[derive(Clone, Debug, PartialEq)]
pub struct Cable {
    /// Who makes it.
    pub vendor: Option<String>,
    /// Independent links that it carries; one where the file does not say.
    pub links: u32,
    /// What it has at its ends.
    pub kind: CableKind,
    /// What it is made of.
    pub medium: Medium,
    /// Speed of one link, where the ends set it; fibre takes that of its optics.
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
        let kind: CableKind = reader.get("kind");
        let medium = reader.get("medium");
        let reach = positive(reader, "reach");
        let link_speed: Option<Bandwidth> = some_positive(reader, "link_speed");
        let power_per_end: Option<Watts> = reader.optional("power_per_end");
        if kind == CableKind::Fibre {
            for (key, given) in [("link_speed", link_speed.is_some()), ("power_per_end", power_per_end.is_some())] {
                if given {
                    let message = format!("bare fibre has no `{key}`: its optics set it");
                    reader.report(key, Code::Inconsistent, message, "remove it");
                }
            }
        } else if link_speed.is_none() || power_per_end.is_none() {
            let message =
                format!("a cable of kind {kind} has ends of its own, with a `link_speed` and a `power_per_end`");
            reader.report("kind", Code::MissingKey, message, "add them");
        }
        if reader.sink().len() == before && kind.is_copper() != (medium == Medium::Copper) {
            let message = format!("a cable of kind {kind} is not made of {medium}");
            reader.report(
                "medium",
                Code::Inconsistent,
                message,
                "dac, acc and aec are copper; fibre and aoc are mmf or smf",
            );
        }
        let (vendor, links) = (reader.optional("vendor"), reader.or("links", 1));
        Self { vendor, links, kind, medium, link_speed, reach, power_per_end: power_per_end.unwrap_or_default() }
    }
}
