//! Inputs that move together: a Gaussian copula over their shares.

use std::f64::consts::PI;

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, Normal};

use super::Input;
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean};
use crate::scenario::CorrelationFile;

/// Shares that were drawn apart, made to hang together: each is taken as one of a normal number, and the normal numbers are
/// mixed by the triangular root of their correlations, which leaves each share as evenly spread as it was.
///
/// Of normal numbers with a correlation of `r`, ranks have one of `6/pi asin(r/2)` (Pearson 1907; Kruskal, Journal of the
/// American Statistical Association 53, 1958), so that ranks correlate as asked, whatever the spreads.
#[derive(Clone, Debug)]
pub(super) struct Copula {
    /// Places of the inputs that hang together, and the root of their correlations.
    places: Vec<usize>,
    root: DMatrix<f64>,
}

impl Copula {
    /// Of correlations between these inputs; mistakes go to the sink.
    pub(super) fn new(wanted: &[CorrelationFile], inputs: &[Input], sink: &Sink) -> Option<Self> {
        let before = sink.len();
        let mut places: Vec<usize> = Vec::new();
        let mut pairs: Vec<([usize; 2], f64)> = Vec::new();
        for CorrelationFile { between, rank, at } in wanted {
            let place = |key: &String| {
                let found = inputs.iter().position(|input| input.key == *key);
                if found.is_none() {
                    let near = did_you_mean(key, inputs.iter().map(|input| input.key.as_str()));
                    let hint = near.map_or_else(
                        || "correlate inputs of [uncertainty], or values of the catalog with a range".to_owned(),
                        |near| format!("did you mean \"{near}\"?"),
                    );
                    let message = format!("`{key}` is no input that spreads");
                    sink.push(Diagnostic::new(Code::UnknownKey, message).at(at, "correlated here").hint(hint));
                }
                found
            };
            let [Some(one), Some(other)] = between.each_ref().map(place) else { continue };
            let mut of = |input: usize| {
                places.iter().position(|known| *known == input).unwrap_or_else(|| {
                    places.push(input);
                    places.len() - 1
                })
            };
            let pair = [of(one), of(other)];
            let known = pairs.iter().any(|(known, _)| *known == pair || *known == [pair[1], pair[0]]);
            if known || one == other {
                let message =
                    if known { "two inputs are correlated twice" } else { "an input is correlated with itself" };
                let hint = "name each pair of two different inputs once";
                sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "here").hint(hint));
            }
            pairs.push((pair, 2.0 * (PI / 6.0 * rank).sin()));
        }
        let mut correlations = DMatrix::identity(places.len(), places.len());
        for ([one, other], correlation) in pairs {
            correlations[(one, other)] = correlation;
            correlations[(other, one)] = correlation;
        }
        let root = correlations.cholesky();
        if root.is_none() && sink.len() == before {
            let message = "these correlations contradict each other: no inputs hang together so";
            let hint = "bring them nearer to 0, or state those of the other pairs too: inputs that go with a third go with each other";
            let at = wanted.first().map(|first| first.at.clone()).unwrap_or_default();
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&at, "beginning here").hint(hint));
        }
        (sink.len() == before).then_some(Self { places, root: root?.unpack() })
    }

    /// The inputs that hang together, by their places.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().copied()
    }

    /// Makes shares of all inputs, in their order, hang together.
    pub(super) fn join(&self, shares: &mut [f64]) {
        let normal = Normal::standard();
        let apart = self.places.iter().map(|place| normal.inverse_cdf(shares[*place]));
        let joined = &self.root * DVector::from_iterator(self.places.len(), apart);
        for (place, number) in self.places.iter().zip(joined.iter()) {
            shares[*place] = normal.cdf(*number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Span;
    use crate::scenario::Spread;
    use crate::sweep::uncertain::spread::draw;

    fn inputs() -> Vec<Input> {
        let input = |key: &str| Input {
            key: key.to_owned(),
            spread: Spread::Uniform { low: 0.0, high: 1.0 },
            around: [String::new(), String::new()],
        };
        ["a", "b", "c", "d"].map(input).to_vec()
    }

    fn pair(one: &str, other: &str, rank: f64) -> CorrelationFile {
        CorrelationFile { between: [one.to_owned(), other.to_owned()], rank, at: Span::default() }
    }

    /// Correlation of two columns of shares, which of evenly spread shares is that of their ranks.
    fn correlation(draws: &[[f64; 4]], one: usize, other: usize) -> f64 {
        let mean = |place: usize| draws.iter().map(|draw| draw[place]).sum::<f64>() / draws.len() as f64;
        let means = [mean(one), mean(other)];
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            draws.iter().map(|draw| of(draw[one] - means[0], draw[other] - means[1])).sum()
        };
        sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
    }

    #[test]
    fn ranks_correlate_as_asked_and_shares_stay_even() {
        let sink = Sink::default();
        let copula = Copula::new(&[pair("a", "c", 0.7), pair("c", "d", -0.4)], &inputs(), &sink).unwrap();
        let draws: Vec<[f64; 4]> = (0..4_096)
            .map(|sample| {
                let mut shares = [0, 1, 2, 3].map(|place| draw(sample, place, 5));
                copula.join(&mut shares);
                shares
            })
            .collect();
        for (one, other, expected) in [(0, 2, 0.7), (2, 3, -0.4), (0, 1, 0.0), (0, 3, 0.0), (1, 2, 0.0)] {
            let found = correlation(&draws, one, other);
            assert!((found - expected).abs() < 0.01, "{one} {other}: {found}");
        }
        for place in 0..4 {
            for tenth in 1..10_u8 {
                let below = draws.iter().filter(|draw| draw[place] < f64::from(tenth) / 10.0).count() as f64 / 4_096.0;
                assert!((below - f64::from(tenth) / 10.0).abs() < 0.005, "{place} {tenth}: {below}");
            }
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        for wanted in [
            vec![pair("a", "b", 0.9), pair("b", "c", 0.9), pair("a", "c", -0.9)],
            vec![pair("a", "z", 0.5)],
            vec![pair("a", "a", 0.5)],
            vec![pair("a", "b", 0.5), pair("b", "a", 0.4)],
        ] {
            let sink = Sink::default();
            assert!(Copula::new(&wanted, &inputs(), &sink).is_none());
            assert_eq!(sink.len(), 1, "{wanted:?}");
        }
    }
}
