//! Times that scatter, known by three moments, and the distributions that have them.

use statrs::distribution::{ContinuousCDF, Normal};

use super::deviating::Deviating;
use crate::units::Seconds;

/// Skewness below which a distribution is taken as symmetric.
const LEAST_SKEWED: f64 = 1e-3;

/// A time that scatters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Scattered {
    pub(in crate::inference) mean: Seconds,
    /// Variance over the squared mean.
    pub(in crate::inference) variance: f64,
    /// Third central moment over the cubed mean.
    pub(in crate::inference) third: f64,
}

impl Scattered {
    /// Of times with their shares, which add up to one.
    pub(in crate::inference) fn of(times: impl Iterator<Item = (Seconds, f64)> + Clone) -> Self {
        let mean: Seconds = times.clone().map(|(time, share)| time * share).sum();
        let (mut variance, mut third) = (0.0, 0.0);
        if mean > Seconds::ZERO {
            for (time, share) in times {
                let off = time / mean - 1.0;
                variance += share * off * off;
                third += share * off * off * off;
            }
        }
        Self { mean, variance, third }
    }

    /// This and another, neither of which knows of the other.
    pub(in crate::inference) fn and(self, other: Self) -> Self {
        let mean = self.mean + other.mean;
        if mean <= Seconds::ZERO {
            return self;
        }
        let (own, others) = (self.mean / mean, other.mean / mean);
        Self {
            mean,
            variance: self.variance * own.powi(2) + other.variance * others.powi(2),
            third: self.third * own.powi(3) + other.third * others.powi(3),
        }
    }

    /// One that has an end to each side, even between them, where it is not skewed.
    pub(in crate::inference) fn bounded(self) -> Shape {
        const NEARLY_EVEN: f64 = 0.5;
        if self.variance <= 0.0 || self.skewness() > NEARLY_EVEN {
            return self.gamma();
        }
        Shape { mean: self.mean, form: Form::Even { half: (3.0 * self.variance).sqrt() } }
    }

    fn skewness(&self) -> f64 {
        (self.third / (self.variance * self.variance.sqrt())).max(LEAST_SKEWED)
    }

    /// The gamma distribution, moved, that has these moments, by the cube root of Wilson and Hilferty (1931): within 2% from
    /// the median on up to a skewness of 2, that of an exponential.
    pub(in crate::inference) fn gamma(self) -> Shape {
        if self.variance <= 0.0 {
            return Shape { mean: self.mean, form: Form::Certain };
        }
        let (skewness, deviation) = (self.skewness(), self.variance.sqrt());
        let half = skewness / 2.0;
        let beyond = deviation / half;
        Shape { mean: self.mean, form: Form::Gamma { from: 1.0 - beyond, beyond, third: half / 3.0 } }
    }

    /// The lognormal distribution, moved, that has these moments.
    pub(in crate::inference) fn lognormal(self) -> Shape {
        if self.variance <= 0.0 {
            return Shape { mean: self.mean, form: Form::Certain };
        }
        // With w = exp(sigma^2), the skewness is (w + 2) sqrt(w - 1).
        let half = self.skewness().powi(2) / 2.0;
        let root = (1.0 + half + (half * (half + 2.0)).sqrt()).cbrt();
        // w - 1 = root + 1 / root - 2, of a root near 1.
        let beyond = (root - 1.0) * (root - 1.0) / root;
        let scale = (self.variance / (beyond * (1.0 + beyond))).sqrt();
        let sigma = beyond.ln_1p().sqrt();
        Shape { mean: self.mean, form: Form::Lognormal { from: 1.0 - scale * (1.0 + beyond).sqrt(), scale, sigma } }
    }
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Shape {
    mean: Seconds,
    form: Form,
}

/// What the times of a distribution over their mean are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// All one.
    Certain,
    /// Any from `1 - half` to `1 + half`.
    Even { half: f64 },
    /// `from + beyond (1 - third^2 + third z)^3`.
    Gamma { from: f64, beyond: f64, third: f64 },
    /// `from + scale exp(sigma z)`.
    Lognormal { from: f64, scale: f64, sigma: f64 },
}

impl Deviating for Shape {
    fn certain(&self) -> bool {
        self.form == Form::Certain
    }

    fn at(&self, deviations: f64) -> Seconds {
        let over_mean = match self.form {
            Form::Certain => 1.0,
            Form::Even { half } => 1.0 + half * (2.0 * Normal::standard().cdf(deviations) - 1.0),
            Form::Gamma { from, beyond, third } => {
                from + beyond * (1.0 - third * third + third * deviations).max(0.0).powi(3)
            }
            Form::Lognormal { from, scale, sigma } => from + scale * (sigma * deviations).exp(),
        };
        self.mean * over_mean.max(0.0)
    }

    fn deviations(&self, time: Seconds) -> f64 {
        let over_mean = time / self.mean;
        match self.form {
            Form::Certain => {
                if over_mean < 1.0 {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Form::Even { half } => {
                let below = f64::midpoint((over_mean - 1.0) / half, 1.0);
                if below <= 0.0 {
                    f64::NEG_INFINITY
                } else if below >= 1.0 {
                    f64::INFINITY
                } else {
                    Normal::standard().inverse_cdf(below)
                }
            }
            Form::Gamma { from, beyond, third } => {
                let root = ((over_mean - from) / beyond).max(0.0).cbrt();
                if root > 0.0 { (root - 1.0 + third * third) / third } else { f64::NEG_INFINITY }
            }
            Form::Lognormal { from, scale, sigma } => {
                let beyond = (over_mean - from) / scale;
                if beyond > 0.0 { beyond.ln() / sigma } else { f64::NEG_INFINITY }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_95_99: [f64; 3] = [0.0, 1.644_854, 2.326_348];

    fn of(variance: f64, third: f64) -> Scattered {
        Scattered { mean: Seconds::new(10.0), variance, third }
    }

    #[test]
    fn moments_are_those_of_points_and_add_up() {
        let second = Seconds::new;
        let two = Scattered::of([(second(1.0), 0.75), (second(5.0), 0.25)].into_iter());
        // A mean of 2; squares off it of 0.75 + 9 / 4 = 3, cubes of -0.75 + 27 / 4 = 6.
        assert_eq!(two, Scattered { mean: second(2.0), variance: 0.75, third: 0.75 });
        let sum = two.and(Scattered { mean: second(6.0), variance: 0.5, third: 2.0 });
        // 3 + 18 over 8^2, 6 + 432 over 8^3.
        assert!((sum.variance - 21.0 / 64.0).abs() < 1e-12 && (sum.third - 438.0 / 512.0).abs() < 1e-12, "{sum:?}");
    }

    #[test]
    fn a_lognormal_is_itself() {
        // A coefficient of variation of 1: sigma^2 = ln 2, the median 10 / sqrt 2; the third raw moment is 8, the central 4.
        let shape = of(1.0, 4.0).lognormal();
        for (deviations, wanted) in HALF_95_99.into_iter().zip([7.071_07, 27.812, 49.06]) {
            assert!((shape.at(deviations).value() / wanted - 1.0).abs() < 1e-3, "{shape:?}");
            assert!((shape.deviations(shape.at(deviations)) - deviations).abs() < 1e-9);
        }
    }

    #[test]
    fn an_exponential_is_nearly_a_gamma_and_what_is_symmetric_normal() {
        for (deviations, share) in HALF_95_99.into_iter().zip([0.5, 0.95, 0.99]) {
            let wanted = -10.0 * (1.0_f64 - share).ln();
            let shape = of(1.0, 2.0).gamma();
            assert!((shape.at(deviations).value() / wanted - 1.0).abs() < 0.015, "{shape:?} {wanted}");
            assert!((shape.deviations(shape.at(deviations)) - deviations).abs() < 1e-9);
            for shape in [of(0.01, 0.0).gamma(), of(0.01, 0.0).lognormal()] {
                assert!((shape.at(deviations).value() / (10.0 + deviations) - 1.0).abs() < 1e-3, "{shape:?}");
                assert!((shape.deviations(shape.at(deviations)) - deviations).abs() < 1e-6, "{shape:?}");
            }
        }
    }

    #[test]
    fn what_does_not_scatter_is_one_time() {
        for shape in [of(0.0, 0.0).gamma(), of(0.0, 0.0).lognormal()] {
            assert_eq!(shape.at(2.0), Seconds::new(10.0));
            assert!(shape.deviations(Seconds::new(9.9)) < -1e9 && shape.deviations(Seconds::new(10.0)) > 1e9);
        }
    }
}
