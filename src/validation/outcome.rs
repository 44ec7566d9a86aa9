//! What became of a row, and the figures of many.

use crate::units::to_integer;
/// A field that the row left open, and by which rule it was filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The column, or the input that no column has.
    pub field: &'static str,
    /// What it was taken to be.
    pub value: String,
    /// The rule.
    pub rule: String,
}

/// A row's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// What was compared: the name of the column, or of the parameter.
    pub metric: String,
    /// The published figure, in the metric's unit.
    pub measured: f64,
    /// The model's.
    pub predicted: f64,
    /// What the metric counts, where published figures count differently.
    pub convention: Option<String>,
    /// GPUs of the run, where the row is a run.
    pub gpus: Option<u32>,
}

impl Prediction {
    /// Predicted over measured, less one. Equal figures, zeros among them, have no error.
    pub fn error(&self) -> f64 {
        if self.predicted.total_cmp(&self.measured).is_eq() { 0.0 } else { self.predicted / self.measured - 1.0 }
    }
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A rule about the data, stated up front, leaves it out.
    Excluded(String),
    /// The model cannot take it.
    Skipped(String),
    /// It was predicted.
    Predicted(Prediction),
}

/// One row of a table of cases.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// Its id.
    pub id: String,
    /// The group whose figures it counts in: its source.
    pub group: String,
    /// A band across groups that it counts in as well: of collectives, small or large payloads.
    pub band: Option<&'static str>,
    /// Fields that were filled, in the order of filling.
    pub filled: Vec<Fill>,
    /// What became of it.
    pub outcome: Outcome,
}

impl CaseResult {
    /// Its figures, if it was predicted.
    pub fn prediction(&self) -> Option<&Prediction> {
        match &self.outcome {
            Outcome::Predicted(prediction) => Some(prediction),
            Outcome::Excluded(_) | Outcome::Skipped(_) => None,
        }
    }

    /// Its error, if it was predicted.
    pub fn error(&self) -> Option<f64> {
        self.prediction().map(Prediction::error)
    }
}

/// Figures of a set of rows. Those of errors are absent where no row was predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Rows.
    pub rows: usize,
    /// Left out by a rule about the data.
    pub excluded: usize,
    /// Not taken by the model.
    pub skipped: usize,
    /// Predicted.
    pub predicted: usize,
    /// Predicted over those not excluded; absent where all are.
    pub coverage: Option<f64>,
    /// Mean absolute error.
    pub mape: Option<f64>,
    /// Median absolute error.
    pub median_abs_error: Option<f64>,
    /// The absolute error that nine rows of ten stay below, interpolated between rows.
    pub p90_abs_error: Option<f64>,
    /// Median signed error.
    pub bias: Option<f64>,
    /// Slope of the logarithm of predicted over measured against the binary logarithm of GPUs, by least squares; absent
    /// with fewer than two sizes.
    pub drift_per_doubling: Option<f64>,
}

impl Summary {
    /// The figures of so many rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let mut summary = Self::default();
        let (mut errors, mut sizes) = (Vec::new(), Vec::new());
        for row in rows {
            summary.rows += 1;
            match &row.outcome {
                Outcome::Excluded(_) => summary.excluded += 1,
                Outcome::Skipped(_) => summary.skipped += 1,
                Outcome::Predicted(prediction) => {
                    errors.push(prediction.error());
                    if let Some(gpus) = prediction.gpus {
                        sizes.push((f64::from(gpus).log2(), (prediction.predicted / prediction.measured).ln()));
                    }
                }
            }
        }
        summary.predicted = errors.len();
        let counted = summary.rows - summary.excluded;
        summary.coverage = (counted > 0).then(|| summary.predicted as f64 / counted as f64);
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        summary.mape = mean(&absolute);
        summary.median_abs_error = quantile(&absolute, 0.5);
        summary.p90_abs_error = quantile(&absolute, 0.9);
        summary.bias = quantile(&errors, 0.5);
        summary.drift_per_doubling = slope(&sizes);
        summary
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value that a share of the values stay below, linear between neighbours.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let below = to_integer::<usize>(place.floor());
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (sorted[above] - sorted[below]) * place.fract())
}

/// Least-squares slope; absent where all abscissae are the same.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let joint: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 1e-12).then(|| joint / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gpus: u32, measured: f64, predicted: f64) -> CaseResult {
        let prediction =
            Prediction { metric: "iter_s".into(), measured, predicted, convention: None, gpus: Some(gpus) };
        CaseResult {
            id: "a".into(),
            group: "s".into(),
            band: None,
            filled: vec![],
            outcome: Outcome::Predicted(prediction),
        }
    }

    fn close(found: Option<f64>, wanted: f64) {
        assert!((found.unwrap() - wanted).abs() < 1e-12, "{found:?} is not {wanted}");
    }

    #[test]
    fn figures_of_a_set_by_hand() {
        let left_out = |outcome| CaseResult { outcome, ..row(8, 1.0, 1.0) };
        let rows = [
            row(8, 1.0, 1.1),
            row(16, 1.0, 0.8),
            row(32, 1.0, 1.3),
            row(64, 1.0, 1.0),
            left_out(Outcome::Excluded(String::new())),
            left_out(Outcome::Skipped(String::new())),
        ];
        let summary = Summary::of(&rows);
        assert_eq!((summary.rows, summary.excluded, summary.skipped, summary.predicted), (6, 1, 1, 4));
        close(summary.coverage, 4.0 / 5.0);
        close(summary.mape, 0.15);
        // Absolute errors 0, 0.1, 0.2, 0.3: the median between the middle two, the 90th percentile at 2.7 of 3.
        close(summary.median_abs_error, 0.15);
        close(summary.p90_abs_error, 0.27);
        close(summary.bias, 0.05);
        // x = -1.5, -0.5, 0.5, 1.5 around the mean; spread 5.
        let joint = -1.5 * 1.1_f64.ln() - 0.5 * 0.8_f64.ln() + 0.5 * 1.3_f64.ln();
        close(summary.drift_per_doubling, joint / 5.0);
    }

    #[test]
    fn nothing_predicted_has_no_figures() {
        let summary = Summary::of(&[]);
        assert_eq!((summary.coverage, summary.mape, summary.bias), (None, None, None));
        assert_eq!(Summary::of(&[row(8, 1.0, 2.0), row(8, 1.0, 3.0)]).drift_per_doubling, None);
    }
}
