//! How far a set of constants is from published runs.

use super::setup::{Quantity, Setup};
use crate::catalog::serving_efficiency::ServingEfficiency;

/// No run counts for more than this, in the logarithm of predicted over measured: what is further off has another reason.
const MOST: f64 = 0.8;

/// Kinds of figures and what each counts: time between tokens most, offline throughput, and time to the first token, which
/// versions scatter, and least where pools are separate.
const WEIGHTS: [f64; 8] = [3.0, 3.0, 1.0, 1.0, 1.0, 0.3, 1.5, 1.0];

/// The kind of a figure; none where it is derived from others, or where the cache is full and little moves it far.
fn kind(setup: &Setup, quantity: Quantity) -> Option<usize> {
    let experts = usize::from(setup.has_experts());
    Some(match quantity {
        Quantity::Tpot if setup.disaggregated() => 2,
        Quantity::Tpot => experts,
        Quantity::Ttft if setup.disaggregated() => 5,
        Quantity::Ttft if setup.cache_binds() => return None,
        Quantity::Ttft => 3 + experts,
        Quantity::Throughput if setup.offline() => 6 + experts,
        Quantity::Throughput => return None,
    })
}

/// The weighted sum over kinds of the mean absolute logarithm of predicted over measured.
pub fn distance<'a>(setups: impl IntoIterator<Item = &'a Setup>, set: &ServingEfficiency) -> f64 {
    let (mut sums, mut counts) = ([0.0; WEIGHTS.len()], [0.0; WEIGHTS.len()]);
    for setup in setups {
        let Ok(predicted) = setup.predict(set) else { continue };
        for figure in &setup.measured {
            let Some(kind) = kind(setup, figure.quantity) else { continue };
            let ratio = predicted.of(figure.quantity) * figure.scale / figure.value;
            sums[kind] += ratio.ln().abs().min(MOST);
            counts[kind] += 1.0;
        }
    }
    let kinds = WEIGHTS.iter().zip(sums.iter().zip(counts)).filter(|(_, (_, count))| *count > 0.0);
    kinds.map(|(weight, (sum, count))| weight * sum / count).sum()
}
