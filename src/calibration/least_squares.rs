//! Robust least squares with priors for many constants of which each case uses a few, by Levenberg and Marquardt's method.
//!
//! Constants are fitted as `prior * exp(spread * x)`: positive by themselves, `x` counted in standard deviations of what
//! is known beforehand, and `x` itself is the prior's residual. Of shares the odds move so. An error `e = ln(predicted / measured)`
//! counts as `sqrt(2 (sqrt(1 + (e/d)^2) - 1))` beyond its scatter `d` (pseudo-Huber), so that one wrong row pulls with a constant
//! force however wrong it is.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DMatrix, DVector, Dyn};

use super::fit::FitError;

/// Step of `x` in differences: large against steps in the model (tiles, waves), small against its curvature.
const STEP: f64 = 0.02;

/// Errors of cases as a function of the constants.
pub(super) trait CaseErrors {
    /// What the errors of the cases count, at these constants, each in standard deviations from its prior.
    fn at(&mut self, constants: &[f64]) -> Vec<f64>;

    /// The same where one constant differs from those of the last [`CaseErrors::at`].
    fn moved(&self, constants: &[f64]) -> Vec<f64>;
}

/// Constants where the sum is least.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Minimum {
    /// In standard deviations from the priors.
    pub(super) constants: Vec<f64>,
    /// Their standard errors, in the same unit: one where the cases say nothing of a constant.
    pub(super) errors: Vec<f64>,
    /// What each case says of each constant: derivatives of the cases' residuals, a list of cases for each constant.
    pub(super) influence: Vec<Vec<f64>>,
}

struct Problem<'a, E> {
    errors: &'a mut E,
    constants: DVector<f64>,
    residuals: DVector<f64>,
    cases: usize,
}

/// How an error over its scatter counts: up to about one by its square, larger ones by their size.
pub(super) fn robust(scaled: f64) -> f64 {
    (2.0 * ((1.0 + scaled * scaled).sqrt() - 1.0)).sqrt().copysign(scaled)
}

impl<E: CaseErrors> Problem<'_, E> {
    fn evaluate(&mut self) {
        let cases = self.errors.at(self.constants.as_slice());
        self.cases = cases.len();
        let all = cases.into_iter().chain(self.constants.iter().copied());
        self.residuals = DVector::from_vec(all.collect());
    }

    /// Derivatives of the cases' residuals, a column for each constant.
    fn influence(&self) -> DMatrix<f64> {
        let (cases, constants) = (self.cases, self.constants.len());
        let mut all = DMatrix::zeros(cases, constants);
        for index in 0..constants {
            let mut at = self.constants.clone();
            at[index] += STEP;
            let moved = self.errors.moved(at.as_slice());
            for (case, residual) in moved.into_iter().enumerate() {
                all[(case, index)] = (residual - self.residuals[case]) / STEP;
            }
        }
        all
    }
}

impl<E: CaseErrors> LeastSquaresProblem<f64, Dyn, Dyn> for Problem<'_, E> {
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;
    type ParameterStorage = Owned<f64, Dyn>;

    fn set_params(&mut self, constants: &DVector<f64>) {
        self.constants.copy_from(constants);
        self.evaluate();
    }

    fn params(&self) -> DVector<f64> {
        self.constants.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        self.residuals.iter().all(|residual| residual.is_finite()).then(|| self.residuals.clone())
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let (cases, constants) = (self.cases, self.constants.len());
        let mut all = DMatrix::zeros(cases + constants, constants);
        all.view_mut((0, 0), (cases, constants)).copy_from(&self.influence());
        for index in 0..constants {
            all[(cases + index, index)] = 1.0;
        }
        Some(all)
    }
}

/// Fits constants, from a start in standard deviations from their priors.
///
/// # Errors
/// Where there are no constants or cases, or a prediction is no number at the start.
pub(super) fn minimise(errors: &mut impl CaseErrors, start: Vec<f64>) -> Result<Minimum, FitError> {
    if start.is_empty() {
        return Err(FitError::Nothing);
    }
    let mut problem = Problem { errors, constants: DVector::from_vec(start), residuals: DVector::zeros(0), cases: 0 };
    problem.evaluate();
    if problem.cases == 0 {
        return Err(FitError::Nothing);
    }
    if problem.residuals().is_none() {
        return Err(FitError::NotFinite);
    }
    let search = LevenbergMarquardt::new().with_patience(20).with_ftol(1e-7).with_xtol(1e-7);
    let (mut problem, _) = search.minimize(problem);
    // What was tried last need not be what was best.
    problem.evaluate();
    let influence = problem.influence();
    let constants = problem.constants.len();
    let information = influence.transpose() * &influence + DMatrix::identity(constants, constants);
    let errors = information.try_inverse().map_or_else(
        || vec![1.0; constants],
        |covariance| covariance.diagonal().iter().map(|variance| variance.max(0.0).sqrt()).collect(),
    );
    Ok(Minimum {
        constants: problem.constants.iter().copied().collect(),
        errors,
        influence: influence.column_iter().map(|column| column.iter().copied().collect()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of one constant with a prior of one and a standard deviation of a half, by the logarithm of what was measured;
    /// a second constant is used by none.
    struct Line(Vec<f64>);

    impl CaseErrors for Line {
        fn at(&mut self, constants: &[f64]) -> Vec<f64> {
            self.moved(constants)
        }

        fn moved(&self, constants: &[f64]) -> Vec<f64> {
            self.0.iter().map(|measured| robust((0.5 * constants[0] - measured) / 0.06)).collect()
        }
    }

    #[test]
    fn a_wrong_row_pulls_with_a_constant_force() {
        let fitted = |rows: &[f64]| 0.5 * minimise(&mut Line(rows.to_vec()), vec![0.0, 0.0]).unwrap().constants[0];
        let clean = fitted(&[0.03, 0.05, 0.04, 0.04, 0.035]);
        assert!((clean - 0.039).abs() < 0.002, "{clean}");
        let wrong = fitted(&[0.03, 0.05, 0.04, 0.04, 0.035, 1.0]);
        let worse = fitted(&[0.03, 0.05, 0.04, 0.04, 0.035, 5.0]);
        assert!(wrong - clean < 0.02 && (worse - wrong).abs() < 1e-3, "{clean} {wrong} {worse}");
    }

    #[test]
    fn what_no_case_speaks_of_stays_at_its_prior() {
        let minimum = minimise(&mut Line(vec![0.02]), vec![0.7, 0.7]).unwrap();
        assert!(minimum.constants[1].abs() < 1e-9 && (minimum.errors[1] - 1.0).abs() < 1e-9);
        // One case of 6% on a prior of 50%: 0.06 / sqrt(0.06^2 + 0.5^2).
        assert!((minimum.errors[0] - 0.06 / 0.06_f64.hypot(0.5)).abs() < 0.01, "{}", minimum.errors[0]);
    }

    #[test]
    fn nothing_is_fitted_to_nothing() {
        assert_eq!(minimise(&mut Line(vec![]), vec![0.0]), Err(FitError::Nothing));
        assert_eq!(minimise(&mut Line(vec![0.1]), vec![]), Err(FitError::Nothing));
        assert_eq!(minimise(&mut Line(vec![f64::NAN]), vec![0.0]), Err(FitError::NotFinite));
    }
}
