//! Who wins over the efficiency and the price of another fabric.

use serde_json::{Value as Json, json};

use super::figure::percent;
use super::page::{Block, Grid, Section};
use crate::study::{BreakEvenMap, Comparison, Hinge, PRICE_RATIOS};
use crate::units::significant;

/// The map for people: the winner in each cell.
pub(super) fn break_even_map(map: &BreakEvenMap, comparison: &Comparison) -> Section {
    let name = |index: usize| comparison.variants[index].name.as_str();
    let (baseline, other) = (name(map.between.0), name(map.between.1));
    let prices = PRICE_RATIOS.map(|ratio| format!("x{ratio}"));
    let mut header = vec!["Efficiency", "Iteration", "Same at"];
    header.extend(prices.iter().map(String::as_str));
    let mut grid = Grid::new(&header, 1);
    for row in &map.rows {
        let crossing = row.crossing.map_or_else(|| "none".to_owned(), |ratio| format!("x{}", significant(ratio, 3)));
        let mut cells = vec![percent(row.efficiency.get()), row.step.to_string(), crossing];
        cells.extend(row.run.iter().map(|run| if *run < map.baseline_run { "wins" } else { "" }.to_owned()));
        grid.rows.push(cells);
    }
    let sentence = format!(
        "Where a run on {other} costs less than on {baseline}: by the share of payload that its spines keep at full load, and \
         by the price of its fabric over that of {baseline}, x{} now. Both cost the same at the price in the third column.",
        significant(map.present_ratio, 3)
    );
    let hinge = match map.hinge() {
        Hinge::Other => format!("{other} is cheaper everywhere on this map."),
        Hinge::Baseline => format!("{baseline} is cheaper everywhere on this map."),
        Hinge::Efficiency => "The answer hinges on how well the load is balanced, more than on prices.".to_owned(),
        Hinge::Price => "The answer hinges on prices, more than on how well the load is balanced.".to_owned(),
    };
    let blocks = vec![Block::Text(sentence), Block::Grid(grid), Block::Text(hinge)];
    Section { heading: format!("Break-even map: {baseline} and {other}"), blocks }
}

/// The map for programs.
pub(super) fn map_object(map: &BreakEvenMap, comparison: &Comparison) -> Json {
    let name = |index: usize| comparison.variants[index].name.as_str();
    let hinge = match map.hinge() {
        Hinge::Other => "none: the other wins",
        Hinge::Baseline => "none: the baseline wins",
        Hinge::Efficiency => "efficiency",
        Hinge::Price => "price",
    };
    let rows: Vec<Json> = map
        .rows
        .iter()
        .map(|row| {
            json!({
                "spine_efficiency_ratio": row.efficiency.get(),
                "iteration_s": row.step.value(),
                "run_usd": row.run.map(crate::units::Usd::value),
                "crossing_price_ratio": row.crossing,
            })
        })
        .collect();
    json!({
        "between": [name(map.between.0), name(map.between.1)],
        "price_ratios": PRICE_RATIOS,
        "present_price_ratio": map.present_ratio,
        "baseline_run_usd": map.baseline_run.value(),
        "hinge": hinge,
        "rows": rows,
    })
}
