//! Links inside nodes and racks: what one accelerator sends to others without a network card.

use super::quantity::{check_halves, positive};
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::Bandwidth;

choices! {
    /// How the accelerators of a domain are joined.
    pub enum Shape {
        /// Through switches: any two reach each other at full rate.
        Switched = "switched",
        /// Each with a link to each other one, so that a pair has only its share of the rate.
        Mesh = "mesh",
        /// Each with its neighbours along two or three axes.
        Torus = "torus",
        /// Pairs or fours under a bridge.
        Bridge = "bridge",
    }
}

/// A generation of scale-up link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleUpLink {
    /// How a domain is joined.
    pub shape: Shape,
    /// What one accelerator sends over all its links; as much again it receives at the same time.
    pub bandwidth_per_direction: Bandwidth,
    /// What its maker advertises, both directions added up; none where the maker states one direction.
    pub advertised: Option<Bandwidth>,
    /// Links of one accelerator.
    pub links: u32,
    /// What one accelerator sends to one other.
    pub peer_bandwidth: Bandwidth,
    /// Accelerators in the largest domain that is sold.
    pub largest_domain: u32,
    /// Whether its switches add up what passes through them.
    pub in_network_reduction: bool,
}

impl ScaleUpLink {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let link = Self {
            shape: reader.get("shape"),
            bandwidth_per_direction: positive(reader, "bandwidth_per_direction"),
            advertised: reader.optional("advertised"),
            links: reader.get("links"),
            peer_bandwidth: positive(reader, "peer_bandwidth"),
            largest_domain: reader.get("largest_domain"),
            in_network_reduction: reader.get("in_network_reduction"),
        };
        if reader.sink().len() == before {
            link.check(reader);
        }
        link
    }

    fn check(&self, reader: &Reader<'_>) {
        check_halves(reader, self.bandwidth_per_direction, self.advertised);
        if self.peer_bandwidth > self.bandwidth_per_direction {
            let message = format!(
                "`peer_bandwidth` is {}, more than the {} that an accelerator sends to all",
                self.peer_bandwidth, self.bandwidth_per_direction
            );
            reader.report("peer_bandwidth", Code::Inconsistent, message, "a peer gets a share of the links, or all");
        }
        if self.in_network_reduction && self.shape != Shape::Switched {
            let message = "only switches can add up what passes through them";
            reader.report("in_network_reduction", Code::Inconsistent, message, "set it to false");
        }
    }
}
