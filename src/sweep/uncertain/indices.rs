//! Sobol's first-order indices from samples that are there already.

/// Classes of an input's values that means are taken over.
const CLASSES: usize = 16;

/// The share of the variance of `y` that `x` explains by itself, from pairs of them: the variance of the means of `y` over
/// classes of `x`, less what chance alone gives, over the whole variance (correlation ratio; Plischke, Borgonovo and Smith,
/// European Journal of Operational Research 226, 2013, section 2, with the usual correction for its bias).
pub(super) fn first_order(mut pairs: Vec<(f64, f64)>) -> f64 {
    let count = pairs.len();
    if count < 2 * CLASSES {
        return f64::NAN;
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = pairs.iter().map(|(_, y)| y).sum::<f64>() / count as f64;
    let total: f64 = pairs.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    let mut between = 0.0;
    for class in 0..CLASSES {
        let members = &pairs[count * class / CLASSES..count * (class + 1) / CLASSES];
        let own = members.iter().map(|(_, y)| y).sum::<f64>() / members.len() as f64;
        between += members.len() as f64 * (own - mean).powi(2);
    }
    let within = (total - between) / (count - CLASSES) as f64;
    ((between - (CLASSES - 1) as f64 * within) / total).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::first_order;
    use crate::sweep::uncertain::spread::draw;

    #[test]
    fn a_sum_hangs_on_its_terms_by_their_variances() {
        // y = 3 a + b + 0 c of uniform numbers: 9 and 1 of 10 parts of the variance, and none.
        let draws: Vec<[f64; 3]> = (0..4_096).map(|sample| [0, 1, 2].map(|place| draw(sample, place, 7))).collect();
        let share = |input: usize| first_order(draws.iter().map(|x| (x[input], 3.0 * x[0] + x[1])).collect());
        for (input, expected) in [(0, 0.9), (1, 0.1), (2, 0.0)] {
            assert!((share(input) - expected).abs() < 0.01, "{input}: {}", share(input));
        }
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert!(first_order(vec![(0.0, 1.0); 8]).is_nan());
    }
}
