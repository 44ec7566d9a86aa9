//! Serving against published measurements: single points of latency, and offline throughput.
//!
//! A row becomes a [`Setup`], which knows nothing of constants; [`Setup::predict`] holds a set of constants against it. So a
//! fit evaluates the same rows as a validation does.

mod benchmark;
mod coverage;
mod named;
mod points;
mod scatter;
mod setup;
mod throughput;

use std::sync::Arc;

use super::aliases::Aliases;
use super::outcome::{CaseResult, Outcome, Prediction};
use super::table::{Holds, Row, TableError, Unusable};
use super::{Domain, excluded};
use crate::catalog::serving_efficiency::ServingEfficiency;
use crate::catalog::{Catalog, Entry};

pub use coverage::coverage;
pub use setup::{Measured, Quantity, Setup};

/// Columns that a table of points must have.
pub(super) const POINTS: &[&str] =
    &["id", "model_path", "system", "backend", "mode", "isl", "osl", "silicon_tpot_ms", "silicon_ttft_ms"];

/// Columns that a table of throughputs must have.
pub(super) const THROUGHPUTS: &[&str] =
    &["id", "model", "gpu", "parallelism", "weight_precision", "isl", "osl", "engine", "metric", "value", "unit"];

/// What a row of a table of throughputs is called by its metric, which other figures may stand beside.
pub(super) const THROUGHPUT: &str = "total output throughput";

/// What the numbers of a table of points may be: times from a microsecond to a day.
pub(super) const POINT_NUMBERS: &[(&str, Holds)] = &[
    ("isl", Holds::COUNT),
    ("osl", Holds::COUNT),
    ("concurrency", Holds::COUNT),
    ("n_gpus", Holds::COUNT),
    ("silicon_tpot_ms", Holds::any(1e-3, 86_400e3)),
    ("silicon_ttft_ms", Holds::any(1e-3, 86_400e3)),
    ("prompt_rounds", Holds::any(1.0, 1e6)),
    ("clean_engine_concurrency", Holds::COUNT),
    ("clean_length_factor", Holds::any(0.01, 1.0)),
    ("drafted_tokens", Holds::COUNT),
];

/// What the numbers of a table of throughputs may be: tokens or requests a second of up to a thousand million.
pub(super) const THROUGHPUT_NUMBERS: &[(&str, Holds)] = &[
    ("isl", Holds::COUNT),
    ("osl", Holds::COUNT),
    ("value", Holds::any(1e-6, 1e9)),
    ("most_requests", Holds::COUNT),
    ("prompts", Holds::COUNT),
];

/// What `clean_flags` says of a point whose first tokens alone were measured cold: later than with more requests open.
pub(super) const COLD: &str = "cold_ttft";

/// The set of constants that engines are bound with.
pub fn constants(catalog: &Catalog) -> Option<&Arc<Entry<ServingEfficiency>>> {
    catalog.serving_efficiency.get("published-points")
}

/// The runs of a table that no rule about the data leaves out and that the model takes, each with its id. Runs with drafts
/// and rows that the table holds out are for validation alone.
///
/// # Errors
/// Where the text is no CSV, or lacks a column that every table of the domain has.
pub fn setups(
    domain: Domain,
    text: &str,
    catalog: &Catalog,
    aliases: &Aliases,
) -> Result<Vec<(String, Setup)>, TableError> {
    let rows = domain.rows_to_fit(text, aliases)?;
    let read = |row: &Row| {
        if held_out(row) {
            return None;
        }
        let setup = setup(domain, row, catalog, aliases).ok().filter(|setup| !setup.drafts())?;
        Some((row.text("id").unwrap_or_default().to_owned(), setup))
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// Whether the table holds a row out of fits: the constants have not seen it.
fn held_out(row: &Row) -> bool {
    row.text("role") == Some("holdout")
}

/// The setup of a row.
fn setup(domain: Domain, row: &Row, catalog: &Catalog, aliases: &Aliases) -> Result<Setup, Unusable> {
    if domain.has(row) {
        row.usable(domain.numbers())?;
    }
    if domain == Domain::Throughput {
        throughput::setup(row, catalog, aliases)
    } else {
        points::setup(row, catalog, aliases)
    }
}

/// The constants for a run, and what the group is called that they were fitted without.
type Sets<'s, 'a> = dyn Fn(&Setup) -> (Option<&'a ServingEfficiency>, Option<String>) + 's;

/// The cases of a row: one for each figure that it has, by the constants of `sets` for it; what the group of each is
/// called, in front, where it is to be named.
pub(super) fn row_cases(
    domain: Domain,
    row: &Row,
    catalog: &Catalog,
    aliases: &Aliases,
    sets: &Sets<'_, '_>,
) -> Vec<CaseResult> {
    let id = row.text("id").unwrap_or_default().to_owned();
    let left_out = |outcome, group: &str| {
        vec![CaseResult { id: id.clone(), group: group.to_owned(), band: None, filled: vec![], outcome }]
    };
    if let Some(reason) = excluded(row, aliases) {
        return left_out(Outcome::Excluded(reason), "excluded");
    }
    let skipped = |reason: String| left_out(Outcome::Skipped(reason), "skipped");
    let setup = match setup(domain, row, catalog, aliases) {
        Ok(setup) => setup,
        Err(unusable) => return skipped(unusable.0),
    };
    let (Some(set), name) = sets(&setup) else { return skipped("there are no serving constants for it".to_owned()) };
    let predicted = match setup.predict(set) {
        Ok(predicted) => predicted,
        Err(missing) => return skipped(missing.to_string()),
    };
    let case = |figure: &Measured| CaseResult {
        id: id.clone(),
        group: [name.clone(), Some(setup.group(figure.quantity))].into_iter().flatten().collect::<Vec<_>>().join(", "),
        band: None,
        filled: setup.filled.clone(),
        outcome: Outcome::Predicted(Prediction {
            metric: figure.column.to_owned(),
            measured: figure.value,
            predicted: predicted.of(figure.quantity) * figure.scale,
            convention: None,
            gpus: None,
        }),
    };
    setup.measured.iter().map(case).collect()
}
