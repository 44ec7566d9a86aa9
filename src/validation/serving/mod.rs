//! Serving against published measurements: single points of latency, and offline throughput.
//!
//! A row becomes a [`Setup`], which knows nothing of constants; [`Setup::predict`] holds a set of constants against it. So a
//! fit evaluates the same rows as a validation does.

mod coverage;
mod distance;
mod points;
mod setup;
mod throughput;

use std::sync::Arc;

use super::aliases::Aliases;
use super::outcome::{CaseResult, Outcome, Prediction};
use super::table::{self, Row, TableError};
use super::{Domain, excluded};
use crate::catalog::serving_efficiency::ServingEfficiency;
use crate::catalog::{Catalog, Entry};

pub use coverage::coverage;
pub use distance::distance;
pub use setup::{Measured, Quantity, Setup};

/// Columns that a table of points must have.
pub(super) const POINTS: &[&str] =
    &["id", "model_path", "system", "backend", "mode", "isl", "osl", "silicon_tpot_ms", "silicon_ttft_ms"];

/// Columns that a table of throughputs must have.
pub(super) const THROUGHPUTS: &[&str] =
    &["id", "model", "gpu", "parallelism", "weight_precision", "isl", "osl", "engine", "metric", "value", "unit"];

/// The set of constants that engines are bound with.
pub fn constants(catalog: &Catalog) -> Option<&Arc<Entry<ServingEfficiency>>> {
    catalog.serving_efficiency.get("published-points")
}

/// The runs of a table that no rule about the data leaves out and that the model takes, each with its id.
///
/// # Errors
/// Where the text is no CSV, or lacks a column that every table of the domain has.
pub fn setups(
    domain: Domain,
    text: &str,
    catalog: &Catalog,
    aliases: &Aliases,
) -> Result<Vec<(String, Setup)>, TableError> {
    let rows = table::rows(text, domain.columns())?;
    let read = |row: &Row| {
        let setup =
            if domain == Domain::Throughput { throughput(row, catalog, aliases) } else { point(row, catalog, aliases) };
        Some((row.text("id").unwrap_or_default().to_owned(), setup.ok()?))
    };
    Ok(rows.iter().filter(|row| excluded(row, aliases).is_none()).filter_map(read).collect())
}

/// The setup of a row of serving points.
///
/// # Errors
/// In words, where the model cannot take the row.
pub(super) fn point(row: &Row, catalog: &Catalog, aliases: &Aliases) -> Result<Setup, String> {
    points::setup(row, catalog, aliases).map_err(|unusable| unusable.0)
}

/// The setup of a row of throughputs.
///
/// # Errors
/// In words, where the model cannot take the row.
pub(super) fn throughput(row: &Row, catalog: &Catalog, aliases: &Aliases) -> Result<Setup, String> {
    throughput::setup(row, catalog, aliases).map_err(|unusable| unusable.0)
}

/// The cases of a row: one for each figure that it has.
pub(super) fn cases(row: &Row, setup: Result<Setup, String>, set: Option<&ServingEfficiency>) -> Vec<CaseResult> {
    let id = row.text("id").unwrap_or_default().to_owned();
    let left_out =
        |outcome, group: String| vec![CaseResult { id: id.clone(), group, band: None, filled: vec![], outcome }];
    let setup = match setup {
        Ok(setup) => setup,
        Err(reason) => return left_out(Outcome::Skipped(reason), "skipped".to_owned()),
    };
    let Some(set) = set else {
        return left_out(Outcome::Skipped("the catalog has no serving constants".to_owned()), "skipped".to_owned());
    };
    let predicted = match setup.predict(set) {
        Ok(predicted) => predicted,
        Err(reason) => return left_out(Outcome::Skipped(reason), "skipped".to_owned()),
    };
    let case = |figure: &Measured, predicted: f64| CaseResult {
        id: id.clone(),
        group: setup.group(figure.quantity),
        band: None,
        filled: setup.filled.clone(),
        outcome: Outcome::Predicted(Prediction {
            metric: figure.column.to_owned(),
            measured: figure.value,
            predicted,
            convention: None,
            gpus: None,
        }),
    };
    setup.measured.iter().map(|figure| case(figure, predicted.of(figure.quantity) * figure.scale)).collect()
}
