//! Draws of many inputs at once: a Latin hypercube.

/// What SplitMix64 goes on by.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Shares at which an input stands in each of so many samples, between 0 and 1: one in each of as many equal parts, in an order
/// of its own (McKay, Beckman and Conover, Technometrics 21(2), 1979).
///
/// Some pairs of the far dimensions of Sobol's sequence lie along a few lines for a thousand points, and so would sixty inputs
/// that have nothing to do with each other; of these any two are as far apart as chance has them.
pub(super) fn hypercube(samples: u32, input: usize, seed: u32) -> Vec<f64> {
    let mut state = mixed((u64::from(seed) << 32) ^ input as u64);
    let mut next = || {
        state = state.wrapping_add(GOLDEN);
        mixed(state)
    };
    let mut parts: Vec<u32> = (0..samples).collect();
    // Fisher and Yates; what a remainder of 64 bits favours is nothing.
    for last in (1..parts.len()).rev() {
        let other = next() % (last as u64 + 1);
        parts.swap(last, usize::try_from(other).unwrap_or(last));
    }
    // Within a part, never at its ends.
    parts.into_iter().map(|part| (f64::from(part) + within(next())) / f64::from(samples)).collect()
}

/// A number between 0 and 1, neither of them.
fn within(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Bits that hang on all of the number's (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::to_integer;

    #[test]
    fn each_part_has_one_and_inputs_and_seeds_have_their_own() {
        for samples in [16, 100, 1_000] {
            let mut parts: Vec<u32> = hypercube(samples, 3, 1)
                .into_iter()
                .map(|share| to_integer((share * f64::from(samples)).floor()))
                .collect();
            parts.sort_unstable();
            assert!(parts.into_iter().eq(0..samples), "{samples}");
        }
        let [one, other, seed] = [(3, 1), (4, 1), (3, 2)].map(|(input, seed)| hypercube(16, input, seed));
        assert!(one != other && one != seed && other != seed);
        assert_eq!(one, hypercube(16, 3, 1));
    }

    #[test]
    fn two_inputs_have_nothing_to_do_with_each_other() {
        // 8 x 8 fields of any two: chi-squared of 49 degrees of freedom, above 107 once in three millions.
        let columns: Vec<Vec<f64>> = (0..64).map(|input| hypercube(1_024, input, 1)).collect();
        for one in 0..columns.len() {
            for other in 0..one {
                let mut fields = [0.0; 64];
                for (x, y) in columns[one].iter().zip(&columns[other]) {
                    fields[8 * to_integer::<usize>((8.0 * x).floor()) + to_integer::<usize>((8.0 * y).floor())] += 1.0;
                }
                let chi: f64 = fields.iter().map(|count: &f64| (count - 16.0).powi(2) / 16.0).sum();
                assert!(chi < 107.0, "{other}, {one}: {chi}");
            }
        }
    }
}
