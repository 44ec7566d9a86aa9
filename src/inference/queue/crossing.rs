//! Where what is sought crosses zero.

/// Steps in which it is sought, at most, and how near it is found.
const STEPS: u32 = 60;
const NEAR: f64 = 1e-15;
/// The smallest batch that is told from none.
pub(in crate::inference) const LEAST: f64 = 1e-6;

/// Where a growing function is zero between two ends, that of the upper being above zero: the secant through two points that
/// lie to each side (Illinois).
pub(in crate::inference) fn crossing(off: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    let (mut low, mut high, mut below, mut above) = (low, high, off(low), off(high));
    if below >= 0.0 {
        return low;
    }
    let mut side = 0;
    for _ in 0..STEPS {
        let between = low + (high - low) * (below / (below - above));
        if high - low <= high * NEAR || between <= low || between >= high {
            break;
        }
        let found = off(between);
        if found < 0.0 {
            (low, below) = (between, found);
            if side < 0 {
                above /= 2.0;
            }
            side = -1;
        } else {
            (high, above) = (between, found);
            if side > 0 {
                below /= 2.0;
            }
            side = 1;
        }
    }
    high
}
