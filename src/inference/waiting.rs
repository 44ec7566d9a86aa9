//! Waits that some requests meet.

use super::scattered::Scattered;
use crate::units::Seconds;

/// A wait that is none for some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    /// Share that waits.
    pub(super) share: f64,
    /// How long, on average over those that do.
    pub(super) mean: Seconds,
    /// Its variance over the squared mean, over those too.
    pub(super) variance: f64,
    /// Its third central moment over the cubed mean, over those too.
    pub(super) third: f64,
}

impl Wait {
    /// None.
    pub(super) const NONE: Self = Self { share: 0.0, mean: Seconds::ZERO, variance: 0.0, third: 0.0 };

    /// Exponential for the share that waits, with a mean over all: as that of a queue which is busy for that share of the time
    /// (exact for M/M/k, the heavy-traffic form of G/G/k; Kleinrock, Queueing Systems II, 1976).
    pub(super) fn exponential(share: f64, over_all: Seconds) -> Self {
        if share > 0.0 && over_all > Seconds::ZERO {
            Self { share, mean: over_all / share, variance: 1.0, third: 2.0 }
        } else {
            Self::NONE
        }
    }

    /// On average over all, those too that do not wait.
    pub(super) fn over_all(&self) -> Seconds {
        self.mean * self.share
    }

    /// Of those that wait.
    pub(super) fn scattered(&self) -> Scattered {
        Scattered { mean: self.mean, variance: self.variance, third: self.third }
    }

    /// Mean square and mean cube over those of the mean, of those that wait.
    fn powers(&self) -> (f64, f64) {
        (1.0 + self.variance, 1.0 + 3.0 * self.variance + self.third)
    }

    /// Over all, those too that do not wait.
    pub(super) fn with_none(&self) -> Scattered {
        if self.share <= 0.0 {
            return Scattered { mean: Seconds::ZERO, variance: 0.0, third: 0.0 };
        }
        let (square, cube) = self.powers();
        let (square, cube) = (square / self.share, cube / (self.share * self.share));
        Scattered { mean: self.over_all(), variance: square - 1.0, third: cube - 3.0 * square + 2.0 }
    }

    /// This and another, each by itself.
    pub(super) fn and(self, other: Self) -> Self {
        if other.share <= 0.0 {
            return self;
        }
        if self.share <= 0.0 {
            return other;
        }
        let share = self.share + other.share - self.share * other.share;
        let both = self.with_none().and(other.with_none());
        let (mean, square) = (both.mean / share, (1.0 + both.variance) * share);
        let cube = (1.0 + 3.0 * both.variance + both.third) * share * share;
        Self { share, mean, variance: square - 1.0, third: cube - 3.0 * square + 2.0 }
    }
}

/// The mean wait of a queue with one server that is busy for a share of the time: Pollaczek and Khinchine's where requests come
/// at random, Kingman's where they do not.
pub(super) fn mean_wait(served: Seconds, busy: f64, squared_cvs: [f64; 2]) -> Seconds {
    let [coming, serving] = squared_cvs;
    served * (busy * (coming + serving) / (2.0 * (1.0 - busy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_waits_are_one() {
        // Half wait 2 s, exponentially, and a quarter 4 s: five of eight wait, 2 s on average over all.
        let (one, other) = (Wait::exponential(0.5, Seconds::new(1.0)), Wait::exponential(0.25, Seconds::new(1.0)));
        let both = one.and(other);
        assert!((both.share - 0.625).abs() < 1e-12 && (both.over_all().value() - 2.0).abs() < 1e-12, "{both:?}");
        // Mean squares of 4 and 8, and twice the product of the means: 14 over all.
        let square = both.share * (1.0 + both.variance) * both.mean.value().powi(2);
        assert!((square - 14.0).abs() < 1e-9, "{square}");
        // Mean cubes of 24 and 96, three times the mean square of each with the mean of the other: 156 over all.
        let cube = both.share * (1.0 + 3.0 * both.variance + both.third) * both.mean.value().powi(3);
        assert!((cube - 156.0).abs() < 1e-9, "{cube}");
        assert_eq!(Wait::NONE.and(one), one);
        assert_eq!(one.and(Wait::NONE), one);
    }
}
