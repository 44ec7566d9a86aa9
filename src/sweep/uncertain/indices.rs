//! Sobol's first-order indices from samples that are there already.

/// Classes of an input's values that means are taken over.
const CLASSES: usize = 16;
/// Rounds in which effects are told apart.
const ROUNDS: usize = 4;
/// An effect is told from chance where it is more than what chance gives by so many of its deviations.
const DEVIATIONS: f64 = 3.0;

/// The shares of the variance of `y` that inputs explain, each by itself, from samples of them all: the variances of the means of
/// `y` over classes of an input, less what chance alone gives (correlation ratio; Plischke, Borgonovo and Smith, European Journal
/// of Operational Research 226, 2013, section 2), over those of all inputs and what none of them explains by itself.
///
/// Of few samples inputs seem to hang together, so that what one explains is seen at others too. Their means are therefore taken
/// of what the others leave, in turns (backfitting; Hastie and Tibshirani, Generalized Additive Models, 1990, section 4.4). Not a
/// number is the share of what is not told from chance; the others add up to no more than 1.
pub(super) fn shares(inputs: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let count = y.len();
    let mut variances = vec![0.0; inputs.len()];
    if count < 2 * CLASSES {
        return vec![f64::NAN; inputs.len()];
    }
    let classes: Vec<Vec<usize>> = inputs.iter().map(|input| classes(input)).collect();
    let mean = y.iter().sum::<f64>() / count as f64;
    let mut left: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let mut effects = vec![[0.0; CLASSES]; inputs.len()];
    for _ in 0..ROUNDS {
        for input in 0..inputs.len() {
            for (left, class) in left.iter_mut().zip(&classes[input]) {
                *left += effects[input][*class];
            }
            let others = (0..inputs.len()).filter(|&other| other != input && variances[other] > 0.0).count();
            // Each mean that was taken leaves one freedom less.
            let free = count.saturating_sub(1 + (CLASSES - 1) * (others + 1));
            let found = effect(&left, &classes[input], free);
            (effects[input], variances[input]) = found.unwrap_or(([0.0; CLASSES], 0.0));
            for (left, class) in left.iter_mut().zip(&classes[input]) {
                *left -= effects[input][*class];
            }
        }
    }
    let rest = left.iter().map(|left| left * left).sum::<f64>() / count as f64;
    let all = variances.iter().sum::<f64>() + rest;
    variances.into_iter().map(|variance| if variance > 0.0 { variance / all } else { f64::NAN }).collect()
}

/// The class of each value: as many are in each.
fn classes(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut classes = vec![0; values.len()];
    for (rank, place) in order.into_iter().enumerate() {
        classes[place] = rank * CLASSES / values.len();
    }
    classes
}

/// Means over classes and their variance without what chance adds; none where that is no more than chance gives. What is not
/// explained has so many degrees of freedom.
fn effect(of: &[f64], classes: &[usize], free: usize) -> Option<([f64; CLASSES], f64)> {
    let (mut means, mut members) = ([0.0; CLASSES], [0.0; CLASSES]);
    for (value, class) in of.iter().zip(classes) {
        means[*class] += value;
        members[*class] += 1.0;
    }
    let mut between = 0.0;
    for (mean, members) in means.iter_mut().zip(members) {
        *mean /= members;
        between += members * *mean * *mean;
    }
    let all: f64 = of.iter().map(|value| value * value).sum();
    let within = (all - between).max(0.0) / free.max(1) as f64;
    let degrees = (CLASSES - 1) as f64;
    let explained = between - degrees * within;
    (free > 0 && explained > DEVIATIONS * (2.0 * degrees).sqrt() * within).then(|| (means, explained / of.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::shares;
    use crate::sweep::uncertain::hypercube::hypercube;

    fn weighted(samples: u32, weights: &[f64], seed: u32) -> Vec<f64> {
        let inputs: Vec<Vec<f64>> = (0..weights.len()).map(|input| hypercube(samples, input, seed)).collect();
        let sum = |at: usize| weights.iter().zip(&inputs).map(|(weight, input)| weight * input[at]).sum();
        shares(&inputs, &(0..samples as usize).map(sum).collect::<Vec<f64>>())
    }

    #[test]
    fn a_sum_hangs_on_its_terms_by_their_variances() {
        // y = 3 a + b + 0 c of uniform numbers: 9 and 1 of 10 parts of the variance, and none.
        let shares = weighted(4_096, &[3.0, 1.0, 0.0], 7);
        for (input, expected) in [(0, 0.9), (1, 0.1)] {
            assert!((shares[input] - expected).abs() < 0.01, "{input}: {}", shares[input]);
        }
        assert!(shares[2].is_nan(), "{}", shares[2]);
    }

    #[test]
    fn shares_of_many_inputs_add_up_to_no_more_than_all() {
        // As bills have it: four terms that count, and fifty that hardly do, of 1,024 samples. Weights of 10, 5, 3, 2 and fifty of
        // 0.1 have parts of 100, 25, 9, 4 and fifty times 0.01 in 138.5.
        let mut weights = vec![0.1; 54];
        for (place, weight) in [(0, 10.0), (11, 5.0), (30, 3.0), (53, 2.0)] {
            weights[place] = weight;
        }
        for seed in 1..=8 {
            let shares = weighted(1_024, &weights, seed);
            for (place, (share, weight)) in shares.iter().zip(&weights).enumerate() {
                let expected = weight * weight / 138.5;
                let right = if share.is_nan() { expected < 0.001 } else { (share - expected).abs() < 0.015 };
                assert!(right, "seed {seed}, {place}: {share}, {expected}");
            }
            let told: f64 = shares.iter().filter(|share| !share.is_nan()).sum();
            assert!((0.98..=1.0).contains(&told), "seed {seed}: {told}");
        }
    }

    #[test]
    fn what_inputs_do_together_is_nobodys() {
        // y = a b about their middles: neither moves its mean.
        let [a, b] = [0, 1].map(|input| hypercube(4_096, input, 3));
        let product: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a - 0.5) * (b - 0.5)).collect();
        assert!(shares(&[a, b], &product).into_iter().all(f64::is_nan));
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert!(shares(&[vec![0.0; 8]], &[1.0; 8])[0].is_nan());
    }
}
