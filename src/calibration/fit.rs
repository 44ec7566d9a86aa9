//! Constants that meet measurements best, held near what is known of them: penalised least squares by
//! Levenberg and Marquardt's method.

use crate::units::to_integer;
use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DMatrix, DVector, Dyn};

/// Spread of a run that is repeated, as a logarithm: what a residual is measured by. nccl-tests logs that hold each size
/// twice (out of place and in place) agree within 1 to 5%.
const REPEATABILITY: f64 = 0.05;
/// Step of the numerical derivative, in deviations of the prior.
const STEP: f64 = 1e-3;
/// Deviations at which a constant is tried on its own. Where the slower of two rates counts, the faster has no slope, and
/// a method of slopes alone would never find that it should be the slower.
const TRIALS: [f64; 8] = [-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0];
/// Most constants that are moved so before slopes are followed again.
const TRIED: usize = 3;
/// Most rounds of trials and slopes.
const ROUNDS: usize = 4;
/// Furthest that shares go towards all or nothing, where the logarithm of the odds ends.
const SHARE_END: f64 = 0.999;

/// What is known of a constant before anything is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Typical value; positive.
    pub value: f64,
    /// Low end, taken as one deviation below.
    pub low: f64,
    /// High end, taken as one deviation above.
    pub high: f64,
    /// Whether it is a share, which stays between 0 and 1.
    pub share: bool,
}

impl Prior {
    /// Whether there is a range in which the constant can be moved.
    pub fn is_open(&self) -> bool {
        self.value > 0.0 && self.low < self.high && self.deviation() > 0.0
    }

    /// The same around another value: as far from it, in deviations, as before.
    #[must_use]
    pub fn around(self, value: f64) -> Self {
        let moved = Self { value, ..self };
        let at = |deviations: f64| {
            let linked = moved.linked(value) + deviations * self.deviation();
            if self.share { 1.0 / (1.0 + (-linked).exp()) } else { linked.exp() }
        };
        Self { value, low: at(-1.0), high: at(1.0), share: self.share }
    }

    /// The value so many deviations away from the typical one.
    pub fn at(&self, deviations: f64) -> f64 {
        let moved = self.linked(self.value) + deviations * self.deviation();
        if self.share { 1.0 / (1.0 + (-moved).exp()) } else { moved.exp() }
    }

    /// Half of the range, where a value is unbounded on both sides.
    fn deviation(&self) -> f64 {
        let below = if self.low > 0.0 { self.linked(self.value) - self.linked(self.low) } else { 0.0 };
        let above = self.linked(self.high) - self.linked(self.value);
        if below > 0.0 && above > 0.0 { f64::midpoint(below, above) } else { below.max(above) }
    }

    /// Logarithm, of the odds where it is a share.
    fn linked(&self, value: f64) -> f64 {
        if self.share {
            let share = value.clamp(1.0 - SHARE_END, SHARE_END);
            (share / (1.0 - share)).ln()
        } else {
            value.ln()
        }
    }
}

/// Why nothing was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// The model gives no time for a measurement.
    #[error("the model gives no finite time for a measurement")]
    NotFinite,
    /// There is nothing to move or nothing to meet.
    #[error("there are no measurements that any constant could be fitted to")]
    Nothing,
}

/// A fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Deviations of each constant from its prior's value.
    pub moved: Vec<f64>,
    /// What uncertainty is left of each, in deviations of its prior: 1 where the measurements say nothing.
    pub left: Vec<f64>,
    /// What each measurement says of each constant: derivatives of residuals, a list of measurements for each constant.
    pub influence: Vec<Vec<f64>>,
}

/// Fits constants to measurements.
///
/// `errors` gives ln(model / measured) of every measurement for constants so many deviations from their priors. Large
/// errors count less than by their square (pseudo-Huber), so that a single disturbed run does not decide.
///
/// # Errors
/// Where the model fails at the priors, or nothing can be fitted.
pub fn fit(constants: usize, errors: impl Fn(&[f64]) -> Option<Vec<f64>>) -> Result<Fit, FitError> {
    minimise(&vec![0.0; constants], errors, ROUNDS)
}

/// The same by slopes alone, from constants so many deviations from their priors.
///
/// # Errors
/// As above.
pub fn fit_from(start: &[f64], errors: impl Fn(&[f64]) -> Option<Vec<f64>>) -> Result<Fit, FitError> {
    minimise(start, errors, 0)
}

fn minimise(start: &[f64], errors: impl Fn(&[f64]) -> Option<Vec<f64>>, rounds: usize) -> Result<Fit, FitError> {
    let constants = start.len();
    let first = errors(start).ok_or(FitError::NotFinite)?;
    if constants == 0 || first.is_empty() {
        return Err(FitError::Nothing);
    }
    if first.iter().any(|error| !error.is_finite()) {
        return Err(FitError::NotFinite);
    }
    let mut problem = Problem { errors, at: DVector::from_column_slice(start) };
    let slopes =
        |problem| LevenbergMarquardt::new().with_patience(20).with_ftol(1e-6).with_xtol(1e-5).minimize(problem).0;
    if rounds == 0 {
        problem = slopes(problem);
    }
    for round in 0..rounds {
        let moved = (0..TRIED).take_while(|_| problem.try_each()).count();
        if moved == 0 && round > 0 {
            break;
        }
        problem = slopes(problem);
    }
    let jacobian = problem.jacobian();
    let influence = jacobian.as_ref().map_or_else(
        || vec![vec![0.0; first.len()]; constants],
        |jacobian| jacobian.column_iter().map(|column| column.iter().take(first.len()).copied().collect()).collect(),
    );
    let left = jacobian.and_then(|jacobian| (jacobian.transpose() * jacobian).try_inverse()).map_or_else(
        || vec![1.0; constants],
        |covariance| covariance.diagonal().iter().map(|variance| variance.max(0.0).sqrt()).collect(),
    );
    Ok(Fit { moved: problem.at.iter().copied().collect(), left, influence })
}

/// The residuals: of the measurements, then of the priors.
struct Problem<F> {
    errors: F,
    at: DVector<f64>,
}

impl<F: Fn(&[f64]) -> Option<Vec<f64>>> Problem<F> {
    fn cost(&self, at: &DVector<f64>) -> f64 {
        self.residuals_at(at).map_or(f64::INFINITY, |residuals| residuals.norm_squared())
    }

    /// Moves the one constant that helps most on its own; says whether there was one.
    fn try_each(&mut self) -> bool {
        let mut best = (self.cost(&self.at), None);
        for index in 0..self.at.len() {
            for trial in TRIALS {
                let mut at = self.at.clone();
                at[index] = trial;
                let cost = self.cost(&at);
                if cost < best.0 {
                    best = (cost, Some(at));
                }
            }
        }
        let moved = best.1.is_some();
        if let Some(at) = best.1 {
            self.at = at;
        }
        moved
    }

    fn residuals_at(&self, at: &DVector<f64>) -> Option<DVector<f64>> {
        let errors = (self.errors)(at.as_slice())?;
        let measured = errors.iter().map(|error| softened(error / REPEATABILITY));
        let all: Vec<f64> = measured.chain(at.iter().copied()).collect();
        all.iter().all(|residual| residual.is_finite()).then(|| DVector::from_vec(all))
    }
}

/// Grows like the residual where that is small, like its root where it is large.
fn softened(residual: f64) -> f64 {
    residual.signum() * (2.0 * (residual.hypot(1.0) - 1.0)).sqrt()
}

impl<F: Fn(&[f64]) -> Option<Vec<f64>>> LeastSquaresProblem<f64, Dyn, Dyn> for Problem<F> {
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;
    type ParameterStorage = Owned<f64, Dyn>;

    fn set_params(&mut self, at: &DVector<f64>) {
        self.at.copy_from(at);
    }

    fn params(&self) -> DVector<f64> {
        self.at.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        self.residuals_at(&self.at)
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let mut columns = Vec::with_capacity(self.at.len());
        for index in 0..self.at.len() {
            let (mut below, mut above) = (self.at.clone(), self.at.clone());
            below[index] -= STEP;
            above[index] += STEP;
            columns.push((self.residuals_at(&above)? - self.residuals_at(&below)?) / (2.0 * STEP));
        }
        Some(DMatrix::from_columns(&columns))
    }
}

/// How far a model is from measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Measurements.
    pub count: usize,
    /// Median of the absolute errors, model over measured less one.
    pub median: f64,
    /// What nine of ten stay below.
    pub p90: f64,
}

impl Errors {
    /// Of logarithms of model over measured; nothing of none.
    pub fn of(logarithms: &[f64]) -> Self {
        let mut absolute: Vec<f64> = logarithms.iter().map(|error| error.exp_m1().abs()).collect();
        absolute.sort_by(f64::total_cmp);
        Self { count: absolute.len(), median: quantile(&absolute, 0.5), p90: quantile(&absolute, 0.9) }
    }
}

/// A quantile of sorted figures, linear between them.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = to_integer::<usize>(place.floor());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { value: 10.0, low: 5.0, high: 20.0, share: false };

    #[test]
    fn what_measurements_determine_moves_to_them() {
        // A time of 10 that was measured as 14, forty times: the prior of a factor of 2 hardly holds it back.
        let fitted = fit(1, |at| Some(vec![(PRIOR.at(at[0]) / 14.0).ln(); 40])).unwrap();
        assert!((PRIOR.at(fitted.moved[0]) / 14.0 - 1.0).abs() < 0.01, "{fitted:?}");
        // 40 measurements of 5% on a prior of ln 2: 0.05 / sqrt 40 / ln 2.
        assert!((fitted.left[0] - 0.05 / 40.0_f64.sqrt() / std::f64::consts::LN_2).abs() < 1e-3, "{fitted:?}");
    }

    #[test]
    fn what_they_say_nothing_about_stays() {
        let fitted = fit(2, |at| Some(vec![(PRIOR.at(at[0]) / 12.0).ln(); 4])).unwrap();
        assert!(fitted.moved[1].abs() < 1e-6 && (fitted.left[1] - 1.0).abs() < 1e-6, "{fitted:?}");
    }

    #[test]
    fn the_rate_that_did_not_count_is_found() {
        // The slower of two rates of 10 and 12 counts, and was 6 of the second: the first has a slope, the second none.
        let second = Prior { value: 12.0, low: 8.0, high: 18.0, share: false };
        let first = Prior { low: 9.5, high: 10.5, ..PRIOR };
        let fitted = fit(2, |at| Some(vec![(first.at(at[0]).min(second.at(at[1])) / 6.0).ln(); 20])).unwrap();
        assert!((second.at(fitted.moved[1]) / 6.0 - 1.0).abs() < 0.02, "{fitted:?}");
        assert!((first.at(fitted.moved[0]) / 10.0 - 1.0).abs() < 0.02, "{fitted:?}");
    }

    #[test]
    fn one_disturbed_run_does_not_decide() {
        let measured = [12.0, 12.1, 11.9, 12.0, 12.05, 60.0];
        let fitted = fit(1, |at| Some(measured.map(|time| (PRIOR.at(at[0]) / time).ln()).to_vec())).unwrap();
        assert!((PRIOR.at(fitted.moved[0]) / 12.0 - 1.0).abs() < 0.03, "{}", PRIOR.at(fitted.moved[0]));
    }

    #[test]
    fn shares_stay_shares() {
        let share = Prior { value: 0.97, low: 0.94, high: 1.0, share: true };
        assert!(share.is_open());
        assert!((share.at(0.0) - 0.97).abs() < 1e-12 && share.at(9.0) < 1.0 && share.at(-9.0) > 0.0);
        assert!(!Prior { value: 0.0, low: 0.0, high: 1.0, share: true }.is_open());
        assert!(!Prior { value: 1.0, low: 1.0, high: 1.0, share: false }.is_open());
    }

    #[test]
    fn nothing_is_fitted_to_nothing() {
        assert_eq!(fit(1, |_| Some(Vec::new())), Err(FitError::Nothing));
        assert_eq!(fit(0, |_| Some(vec![0.1])), Err(FitError::Nothing));
        assert_eq!(fit(1, |_| Some(vec![f64::NAN])), Err(FitError::NotFinite));
    }

    #[test]
    fn quantiles_by_hand() {
        let errors = Errors::of(&[0.0, 1.1_f64.ln(), 0.8_f64.ln()]);
        assert!((errors.median - 0.1).abs() < 1e-12 && (errors.p90 - 0.18).abs() < 1e-12, "{errors:?}");
        assert_eq!(Errors::of(&[]), Errors::default());
    }
}
