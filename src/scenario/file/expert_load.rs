//! `expert_imbalance`: how unevenly ranks that hold experts whole are asked for.

use super::training;
use crate::document::{Reader, Schema};
use crate::units::Factor;

/// The word for what published counts have.
const BY_PLACEMENT: &str = "by-placement";

/// Tokens of the busiest of ranks that hold experts whole, over their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ExpertImbalance {
    /// So many times.
    Times(Factor),
    /// As published counts have it of so many ranks: of experts that lie as they come, or of copies that are placed by load.
    #[default]
    ByPlacement,
}

impl ExpertImbalance {
    /// Tokens beyond the mean over it, where they are given.
    pub fn excess(self) -> f64 {
        match self {
            Self::Times(factor) => factor.get() - 1.0,
            Self::ByPlacement => 0.0,
        }
    }
}

impl std::fmt::Display for ExpertImbalance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Times(factor) => write!(f, "{}", factor.get()),
            Self::ByPlacement => f.pad(BY_PLACEMENT),
        }
    }
}

/// The key of serving: a number as training's, or the word.
pub(super) fn expert_imbalance(r: &mut Reader<'_>) -> Option<ExpertImbalance> {
    const KEY: &str = "expert_imbalance";
    let schema = || {
        let (low, high) = (training::IMBALANCES.start(), training::IMBALANCES.end());
        let number = Schema::Number { low: Some(*low), high: Some(*high) };
        Schema::Either(Box::new(number), Box::new(Schema::Words(vec![BY_PLACEMENT])))
    };
    let says = "tokens of the busiest of ranks that hold experts whole, over their mean";
    if r.about(says).usually("\"by-placement\" where ranks hold experts whole").describes(KEY, schema, false) {
        return None;
    }
    match r.node(KEY) {
        Some(node) if node.as_str() == Some(BY_PLACEMENT) => Some(ExpertImbalance::ByPlacement),
        Some(node) if node.as_str().is_some() => {
            node.wrong_type(&r.path_of(KEY), "a number of at least 1, or \"by-placement\"", r.sink());
            None
        }
        _ => {
            // What is no number stands as none given.
            let before = r.sink().len();
            let given = training::expert_imbalance(r);
            given.filter(|_| r.sink().len() == before).map(ExpertImbalance::Times)
        }
    }
}
