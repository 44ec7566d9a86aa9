//! Times that requests take without a wait, known for some of them in order.

use statrs::distribution::{ContinuousCDF, Normal};

use super::deviating::Deviating;
use crate::units::Seconds;

/// Times in ascending order, each with the standard deviations from the middle of a normal distribution of which as much is
/// below; between them their logarithms lie on straight lines.
#[derive(Clone, Debug, Default)]
pub(in crate::inference) struct OwnTimes(Vec<(Seconds, f64)>);

impl OwnTimes {
    /// Those of requests that stand in order.
    pub(in crate::inference) fn fill(&mut self, times: impl Iterator<Item = (Seconds, f64)>) {
        self.0.clear();
        let mut most = Seconds::ZERO;
        self.0.extend(times.map(|(time, deviations)| {
            most = most.max(time);
            (most, deviations)
        }));
    }

    /// Those of requests in any order, with their shares.
    pub(in crate::inference) fn sort(&mut self, times: impl Iterator<Item = (Seconds, f64)>) {
        self.0.clear();
        self.0.extend(times);
        self.0.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal));
        let (normal, mut before) = (Normal::standard(), 0.0);
        for (_, share) in &mut self.0 {
            let middle = before + *share / 2.0;
            before += *share;
            *share = normal.inverse_cdf(middle.clamp(f64::EPSILON, 1.0 - f64::EPSILON));
        }
    }
}

impl Deviating for OwnTimes {
    fn certain(&self) -> bool {
        self.0.len() == 1
    }

    fn at(&self, deviations: f64) -> Seconds {
        let above = self.0.partition_point(|point| point.1 <= deviations);
        match (above.checked_sub(1).and_then(|below| self.0.get(below)), self.0.get(above)) {
            (Some(&(low, from)), Some(&(high, to))) if high > low && deviations > from => {
                low * (high / low).powf((deviations - from) / (to - from))
            }
            (Some(&(time, _)), _) | (None, Some(&(time, _))) => time,
            (None, None) => Seconds::ZERO,
        }
    }

    fn deviations(&self, time: Seconds) -> f64 {
        let above = self.0.partition_point(|point| point.0 <= time);
        match (above.checked_sub(1).and_then(|below| self.0.get(below)), self.0.get(above)) {
            (Some(&(low, from)), Some(&(high, to))) => from + (to - from) * ((time / low).ln() / (high / low).ln()),
            (None, _) => f64::NEG_INFINITY,
            (_, None) => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_between_times_are_straight_and_there_is_nothing_beyond() {
        let mut times = OwnTimes::default();
        times.fill([(1.0, -1.0), (4.0, 1.0), (3.0, 2.0)].map(|(time, z)| (Seconds::new(time), z)).into_iter());
        assert!((times.at(0.0).value() - 2.0).abs() < 1e-12 && (times.deviations(Seconds::new(2.0))).abs() < 1e-12);
        assert_eq!((times.at(-3.0).value(), times.at(1.5).value(), times.at(3.0).value()), (1.0, 4.0, 4.0));
        assert!(times.deviations(Seconds::new(0.9)) < -1e9 && times.deviations(Seconds::new(4.0)) > 1e9);
    }

    #[test]
    fn times_in_any_order_stand_for_what_is_around_them() {
        let mut times = OwnTimes::default();
        times.sort([(9.0, 0.5), (1.0, 0.5)].map(|(time, share)| (Seconds::new(time), share)).into_iter());
        // Halves: their middles are the quarters, so that half is below the middle of their logarithms.
        assert!((times.at(0.0).value() - 3.0).abs() < 1e-12);
        assert!((times.deviations(Seconds::new(1.0)) + 0.674_49).abs() < 1e-4);
    }
}
