//! Optical modules.

use super::quantity::{positive, same};
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Meters, Watts};

choices! {
    /// What light or current travels through.
    pub enum Medium {
        /// Multimode fibre.
        Multimode = "mmf",
        /// Single-mode fibre.
        SingleMode = "smf",
        /// Copper.
        Copper = "copper",
    }
}

/// An optical module.
#[derive(Clone, Debug, PartialEq)]
pub struct Optic {
    /// Who makes it.
    pub vendor: Option<String>,
    /// Connector to the cage, lower case, such as `osfp`.
    pub form: String,
    /// What the cage gives it, each direction.
    pub cage_speed: Bandwidth,
    /// Independent links that it carries, each on its own cable.
    pub links: u32,
    /// Speed of one link, each direction.
    pub link_speed: Bandwidth,
    /// Length of cable that it can drive.
    pub reach: Meters,
    /// The cable it takes.
    pub medium: Medium,
    /// Typical draw, with all links running.
    pub power: Watts,
}

impl Optic {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let optic = Self {
            vendor: reader.optional("vendor"),
            form: reader.get("form"),
            cage_speed: positive(reader, "cage_speed"),
            links: reader.get("links"),
            link_speed: positive(reader, "link_speed"),
            reach: positive(reader, "reach"),
            medium: reader.get("medium"),
            power: reader.get("power"),
        };
        let carried = optic.link_speed * f64::from(optic.links);
        if reader.sink().len() == before && carried > optic.cage_speed && !same(carried, optic.cage_speed) {
            let message =
                format!("{} links of {} are more than the cage's {}", optic.links, optic.link_speed, optic.cage_speed);
            reader.report(
                "link_speed",
                Code::Inconsistent,
                message,
                "`links` times `link_speed` is at most `cage_speed`",
            );
        }
        optic
    }
}
