//! What measurements cover: deployments of a kind, and the factor within which nine of ten figures are met.

use super::setup::{Quantity, Setup};
use crate::catalog::serving_coverage::ServingCoverage;
use crate::catalog::serving_efficiency::ServingEfficiency;
use crate::units::Factor;

/// Figures of a kind fewer than these say nothing of nine in ten.
const LEAST: usize = 10;

/// The kinds of deployment among runs, each with its points and how far a set of constants misses them.
pub fn coverage<'a>(runs: impl IntoIterator<Item = &'a Setup>, set: &ServingEfficiency) -> Vec<ServingCoverage> {
    let mut cells: Vec<(ServingCoverage, [Vec<f64>; 3])> = Vec::new();
    for run in runs {
        let kind = run.kind();
        let errors = [Quantity::Tpot, Quantity::Ttft, Quantity::Throughput].map(|quantity| {
            // Throughputs of runs at a concurrency follow from their latencies.
            let told = match quantity {
                Quantity::Throughput => run.offline(),
                Quantity::Ttft => run.tells_first_tokens(),
                Quantity::Tpot => true,
            };
            if told { run.factors(quantity, set) } else { Vec::new() }
        });
        let kind_formats = (kind.weights.clone(), kind.caches.clone());
        let found = cells.iter().position(|(cell, _)| same(cell, &kind));
        let index = found.unwrap_or_else(|| {
            cells.push((kind, Default::default()));
            cells.len() - 1
        });
        let (cell, known) = &mut cells[index];
        cell.points += 1;
        for (known, own) in [(&mut cell.weights, kind_formats.0), (&mut cell.caches, kind_formats.1)] {
            known.extend(own.into_iter().filter(|format| !known.contains(format)).collect::<Vec<_>>());
            known.sort();
        }
        for (known, errors) in known.iter_mut().zip(errors) {
            known.extend(errors);
        }
    }
    let mut found: Vec<ServingCoverage> = cells
        .into_iter()
        .map(|(cell, [tpot, ttft, throughput])| {
            let [tpot, ttft, throughput] = [tpot, ttft, throughput].map(nine_in_ten);
            ServingCoverage { tpot, ttft, throughput, ..cell }
        })
        .filter(|cell| cell.tpot.is_some() || cell.ttft.is_some() || cell.throughput.is_some())
        .collect();
    found.sort_by(|one, other| {
        let key = |cell: &ServingCoverage| {
            (cell.generation.clone(), cell.engine.clone(), cell.architecture.word(), cell.pools)
        };
        key(one).cmp(&key(other))
    });
    found
}

fn same(one: &ServingCoverage, other: &ServingCoverage) -> bool {
    one.generation == other.generation
        && one.engine == other.engine
        && one.architecture == other.architecture
        && one.pools == other.pools
}

/// The factor that nine of ten stay within.
fn nine_in_ten(mut factors: Vec<f64>) -> Option<Factor> {
    if factors.len() < LEAST {
        return None;
    }
    factors.sort_by(f64::total_cmp);
    factors.get((factors.len() - 1) * 9 / 10).copied().and_then(Factor::new)
}
