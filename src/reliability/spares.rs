//! Spare hosts: how long a job waits for one.

use statrs::distribution::{DiscreteCDF, Poisson};

use crate::units::{SECONDS_PER_DAY, Seconds};

/// The mean time that a failure of a host waits for a replacement, with so many `spares` and hosts that fail so often and
/// are repaired in `repair` on average.
///
/// Hosts fail at a constant rate and are repaired each by itself, so that the number in repair, `K`, is Poisson with mean
/// `a = rate x repair` (M/G/infinity). Where no spare is left (`K >= spares`), the job waits for the first of `K + 1`
/// repairs, `repair / (K + 1)` for exponential ones; the mean over `K` is `repair / a x P(K > spares)`. Failures while the
/// job waits are not counted, so it is an upper bound where the pool is far too small.
pub fn spare_wait(failures_per_day: f64, repair: Seconds, spares: u64) -> Seconds {
    let in_repair = failures_per_day * (repair / Seconds::new(SECONDS_PER_DAY));
    let Ok(distribution) = Poisson::new(in_repair) else { return Seconds::ZERO };
    repair / in_repair * distribution.sf(spares)
}

/// The fewest spares with which a failure waits no longer than `longest` on average.
pub fn spares_for(failures_per_day: f64, repair: Seconds, longest: Seconds) -> u64 {
    let enough = |spares: u64| spare_wait(failures_per_day, repair, spares) <= longest;
    let mut high = 1;
    // The wait falls faster than any power once the pool exceeds what is in repair.
    while !enough(high) && high < u64::from(u32::MAX) {
        high *= 2;
    }
    let mut low = 0;
    while low < high {
        let middle = u64::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Seconds = Seconds::new(SECONDS_PER_DAY);

    #[test]
    fn without_spares_a_failure_waits_for_a_repair() {
        // One failure a day, repaired in a day: P(K > 0) = 1 - 1/e = 0.63212, so 0.63212 days.
        let wait = spare_wait(1.0, DAY, 0);
        assert!((wait / DAY - 0.632_120_6).abs() < 1e-6);
        // P(K > 1) = 1 - 2/e = 0.264241; P(K > 4) = 0.0036598.
        assert!((spare_wait(1.0, DAY, 1) / DAY - 0.264_241).abs() < 1e-6);
        assert!((spare_wait(1.0, DAY, 4) / DAY - 0.003_659_8).abs() < 1e-6);
        // Failures that are rare wait for the whole of their repair.
        assert!((spare_wait(1e-6, DAY, 0) / DAY - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_fewest_spares_are_found() {
        let wait = |spares| spare_wait(6.0, 2.0 * DAY, spares);
        let longest = Seconds::new(60.0);
        let found = spares_for(6.0, 2.0 * DAY, longest);
        assert!(wait(found) <= longest && wait(found - 1) > longest, "{found}");
        assert_eq!(spares_for(0.0, DAY, longest), 0);
    }
}
