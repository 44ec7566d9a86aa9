//! Which sources say how much of a constant.

use std::collections::BTreeMap;

/// Sources by what their figures say of a constant, most first: of each figure, its source and the derivative of its
/// residual by the constant. Nothing where no figure hangs on it.
pub(super) fn shares<'a>(figures: impl Iterator<Item = (&'a str, f64)>) -> Vec<(String, f64)> {
    let mut by_source: BTreeMap<&str, f64> = BTreeMap::new();
    for (source, derivative) in figures {
        *by_source.entry(source).or_default() += derivative * derivative;
    }
    let total: f64 = by_source.values().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let mut shares: Vec<(String, f64)> =
        by_source.into_iter().map(|(source, part)| (source.to_owned(), part / total)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}
