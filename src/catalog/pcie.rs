//! PCI Express links, as makers write them.

use std::fmt;

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Schema};
use crate::units::Bandwidth;

/// A link: `Gen5 x16`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcie {
    /// Generation, 3 to 7.
    pub generation: u32,
    /// Lanes: of one link 16 at most, of a processor all that it has.
    pub lanes: u32,
}

impl Pcie {
    /// What the link carries each direction: transfers a second times the share that the line code leaves, before
    /// packet headers (PCI Express Base Specification: 128b/130b to generation 5, 242 of 256 bytes of a flit after).
    pub fn bandwidth_per_direction(self) -> Bandwidth {
        // Generation 3 moves 8 Gbit/s a lane, and each generation twice the one before.
        let lane = 1e9 * 2.0_f64.powi(self.generation.saturating_sub(3).try_into().unwrap_or(0));
        let code = if self.generation < 6 { 128.0 / 130.0 } else { 242.0 / 256.0 };
        Bandwidth::new(lane * code * f64::from(self.lanes))
    }

    fn parse(text: &str) -> Option<Self> {
        let (generation, lanes) = text.trim().strip_prefix("Gen")?.split_once(" x")?;
        let link = Self { generation: generation.parse().ok()?, lanes: lanes.parse().ok()? };
        ((3..=7).contains(&link.generation) && (1..=256).contains(&link.lanes)).then_some(link)
    }
}

impl fmt::Display for Pcie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gen{} x{}", self.generation, self.lanes)
    }
}

impl FromNode for Pcie {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let text = String::from_node(node, path, sink);
        Self::parse(&text).unwrap_or_else(|| {
            if !text.is_empty() {
                let message = format!("`{path}` is no PCI Express link");
                let hint = "write generation and lanes, such as \"Gen5 x16\"";
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "not understood").hint(hint));
            }
            Self::default()
        })
    }

    fn schema() -> Schema {
        Schema::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quantity;

    #[test]
    fn links_carry_what_is_published() {
        // stas00/ml-engineering, network/README.md: 31, 63 and 121 GB/s a direction for sixteen lanes.
        let rate = |text: &str| Pcie::parse(text).unwrap().bandwidth_per_direction().in_unit("GB/s").unwrap();
        for (text, published) in [("Gen4 x16", 31.5), ("Gen5 x16", 63.0), ("Gen6 x16", 121.0)] {
            assert!((rate(text) - published).abs() < 0.02, "{text}: {}", rate(text));
        }
        assert_eq!(Pcie::parse("Gen5 x16").unwrap().to_string(), "Gen5 x16");
        for wrong in ["Gen5", "Gen9 x16", "PCIe 5.0 x16", "Gen5 x0"] {
            assert_eq!(Pcie::parse(wrong), None);
        }
    }
}
