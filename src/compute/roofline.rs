//! Operations that both compute and move bytes.

use crate::units::Seconds;

/// Time of a kernel whose arithmetic alone takes one time and whose traffic alone another: the root of the sum of their
/// squares. It is the longer one where they differ much, and 1.4 times either where they are alike, because neither hides
/// wholly behind the other.
pub fn roofline(arithmetic: Seconds, traffic: Seconds) -> Seconds {
    let (long, short) = (arithmetic.max(traffic), arithmetic.min(traffic));
    if short <= Seconds::ZERO {
        return long;
    }
    long * (1.0 + (short / long).powi(2)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_time_rules() {
        let time = |a, b| roofline(Seconds::new(a), Seconds::new(b)) / Seconds::new(1.0);
        assert!((time(3.0, 4.0) - 5.0).abs() < 1e-12);
        assert!((time(0.0, 4.0) - 4.0).abs() < 1e-12);
        assert!((time(100.0, 1.0) - 100.005).abs() < 1e-3);
    }
}
