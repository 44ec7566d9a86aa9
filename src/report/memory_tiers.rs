//! Memory tiers that keep what is served: what they hold, the parts that are bought for them, and what a gigabyte costs.

use serde_json::{Value as Json, json};

use super::figure::{dollars, grouped};
use super::number::finite;
use super::page::Grid;
use crate::evaluate::{Evaluation, TierBought};

/// The tiers of an evaluation, nearest first; none where nothing is kept in any.
fn tiers(evaluation: &Evaluation) -> Vec<TierBought<'_>> {
    evaluation.built.tiers(&evaluation.scenario.cluster).collect()
}

/// Tiers for people.
pub(super) fn grid(evaluation: &Evaluation) -> Option<Grid> {
    let head = ["Memory tier", "Part", "A GPU", "Of it in nodes", "Parts", "Of one", "A GB", "All"];
    let mut grid = Grid::new(&head, 2);
    for TierBought { tier, parts } in tiers(evaluation) {
        let own = tier.capacity.saturating_sub(tier.bought);
        let mut row =
            vec![tier.entry.id.clone(), "the nodes' own".to_owned(), tier.capacity.to_string(), own.to_string()];
        match parts {
            Some(parts) => {
                parts.unit.id.clone_into(&mut row[1]);
                let all = parts.price * parts.count as f64;
                row.push(grouped(parts.count));
                row.extend([dollars(parts.price), parts.per_gigabyte.to_string(), all.to_string()]);
            }
            None => row.extend([0; 4].map(|_| "–".to_owned())),
        }
        grid.rows.push(row);
    }
    (!grid.rows.is_empty()).then_some(grid)
}

/// Tiers for programs.
pub(super) fn objects(evaluation: &Evaluation) -> Option<Json> {
    let object = |TierBought { tier, parts }: TierBought<'_>| {
        json!({
            "id": tier.entry.id,
            "capacity_bytes": finite(tier.capacity.value()),
            "own_bytes": finite(tier.capacity.saturating_sub(tier.bought).value()),
            "part": parts.map(|parts| parts.unit.id.as_str()),
            "parts_count": parts.map_or(0, |parts| parts.count),
            "unit_price_usd": parts.and_then(|parts| finite(parts.price.value()).as_f64()),
            "usd_per_gb": parts.and_then(|parts| finite(parts.per_gigabyte.value()).as_f64()),
        })
    };
    let all: Vec<Json> = tiers(evaluation).into_iter().map(object).collect();
    (!all.is_empty()).then(|| all.into())
}
