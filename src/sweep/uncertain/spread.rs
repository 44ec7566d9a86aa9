//! Draws, and where a share of a spread lies.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::scenario::Spread;
use crate::units::to_integer;

/// The share of cases above the ninetieth hundredth.
const P90: f64 = 0.9;
/// The share of cases beyond the furthest draw, at either end.
pub(super) const FURTHEST: f64 = 1e-6;
/// Dimensions of the sequence; further ones are taken from another of its scramblings.
const DIMENSIONS: u32 = sobol_burley::NUM_DIMENSIONS;

/// The share at which an input stands in a sample, between 0 and 1: Sobol's sequence, scrambled by the seed.
pub(in crate::sweep) fn draw(sample: u32, place: usize, seed: u32) -> f64 {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    let share = sobol_burley::sample(sample, place % DIMENSIONS, seed.wrapping_add(place / DIMENSIONS));
    // Neither end, where a spread without ends would have no value.
    f64::from(share).clamp(FURTHEST, 1.0 - FURTHEST)
}

/// Where so large a share of all cases lies below.
pub(in crate::sweep) fn quantile(spread: &Spread, share: f64) -> f64 {
    match spread {
        Spread::Uniform { low, high } => low + (high - low) * share,
        Spread::Triangular { low, mode, high } => {
            let (width, below) = (high - low, mode - low);
            if share * width < below {
                low + (share * width * below).sqrt()
            } else {
                high - ((1.0 - share) * width * (high - mode)).sqrt()
            }
        }
        Spread::DoubleTriangular { low, median, high } => {
            if share < 0.5 {
                low + (median - low) * (2.0 * share).sqrt()
            } else {
                high - (high - median) * (2.0 * (1.0 - share)).sqrt()
            }
        }
        Spread::LogNormal { median, p90 } => {
            let normal = Normal::standard();
            let deviation = (p90 / median).ln() / normal.inverse_cdf(P90);
            median * (deviation * normal.inverse_cdf(share)).exp()
        }
        Spread::Empirical(values) => {
            let place = to_integer::<usize>(share * values.len() as f64);
            values[place.min(values.len() - 1)]
        }
    }
}

/// P10, P50 and P90 of what is there, between neighbours in proportion; none of nothing.
pub(super) fn quantiles(values: &[Option<f64>]) -> Option<[f64; 3]> {
    let mut sorted: Vec<f64> = values.iter().copied().flatten().collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([0.1, 0.5, 0.9].map(|share| {
        let place = share * last as f64;
        let below = to_integer::<usize>(place.floor());
        let above = (below + 1).min(last);
        sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_lie_where_their_distribution_says() {
        let triangular = Spread::Triangular { low: 0.0, mode: 2.0, high: 10.0 };
        // Below the mode lie 2 of 10: at 0.05, sqrt(0.05 x 10 x 2) = 1. At 0.5, 10 - sqrt(0.5 x 10 x 8) = 3.67544.
        assert!((quantile(&triangular, 0.05) - 1.0).abs() < 1e-12);
        assert!((quantile(&triangular, 0.2) - 2.0).abs() < 1e-12);
        assert!((quantile(&triangular, 0.5) - 3.675_44).abs() < 1e-5);
        // Half of all lie on either side of the median, nearer to it than to the ends: 0 + 2 sqrt(0.25) at an eighth.
        let double = Spread::DoubleTriangular { low: 0.0, median: 2.0, high: 10.0 };
        for (share, expected) in [(0.0, 0.0), (0.125, 1.0), (0.5, 2.0), (0.875, 6.0), (1.0, 10.0)] {
            assert!((quantile(&double, share) - expected).abs() < 1e-12, "{share}");
        }
        // As often there as above.
        let from = Spread::DoubleTriangular { low: 0.0, median: 0.0, high: 10.0 };
        assert!(quantile(&from, 0.49).abs() < 1e-12 && quantile(&from, 0.51) > 0.0);
        let lognormal = Spread::LogNormal { median: 2.0, p90: 6.0 };
        assert!((quantile(&lognormal, 0.5) - 2.0).abs() < 1e-9);
        assert!((quantile(&lognormal, 0.9) - 6.0).abs() < 1e-6);
        assert!((quantile(&lognormal, 0.1) - 2.0 / 3.0).abs() < 1e-6);
        assert!((quantile(&Spread::Uniform { low: 1.0, high: 3.0 }, 0.25) - 1.5).abs() < 1e-12);
        let empirical = Spread::Empirical(vec![5.0, 7.0]);
        for (share, expected) in [(0.0, 5.0), (0.49, 5.0), (0.51, 7.0), (1.0, 7.0)] {
            assert!((quantile(&empirical, share) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn draws_fill_their_range_evenly_and_hang_on_the_seed() {
        let draws: Vec<f64> = (0..1_024).map(|sample| draw(sample, 3, 1)).collect();
        for tenth in 0..10_u8 {
            let (low, high) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let within = draws.iter().filter(|draw| (low..high).contains(*draw)).count();
            assert!((100..=105).contains(&within), "{tenth}: {within}");
        }
        assert!((draw(5, 3, 1) - draw(5, 3, 2)).abs() > 1e-9);
        assert!((draw(5, 3, 1) - draw(5, 4, 1)).abs() > 1e-9);
        // Beyond the sequence's own dimensions.
        assert!((0.0..1.0).contains(&draw(5, 700, 1)));
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values: Vec<Option<f64>> = [4.0, 0.0, 2.0, 1.0, 3.0].map(Some).into_iter().chain([None]).collect();
        let [low, middle, high] = quantiles(&values).unwrap();
        assert!((low - 0.4).abs() < 1e-12 && (middle - 2.0).abs() < 1e-12 && (high - 3.6).abs() < 1e-12);
        assert_eq!(quantiles(&[None]), None);
    }
}
