//! The model held against measurements: published ones, or a planner's own runs in the same columns.
//!
//! A row is *excluded* by a rule about the data, *skipped* where the model cannot take it, with the reason, or predicted.
//! The error of a row is predicted over measured, less one, of what was compared: a time that is too long and a rate that
//! is too high are both positive.

mod aliases;
mod collectives;
mod economics;
mod known_model;
mod kv;
mod memory;
mod outcome;
mod reliability;
mod render;
pub mod serving;
mod table;
mod tolerance;
mod topology;
mod training;

use std::collections::BTreeMap;

use crate::catalog::serving_efficiency::ServingEfficiency;
use crate::catalog::training_efficiency::TrainingEfficiency;
use crate::catalog::{Catalog, CollectiveEfficiency};
use crate::document::choices;

pub use aliases::Aliases;
pub use collectives::CollectiveRun;
pub use outcome::{CaseResult, Fill, Outcome, Prediction, Summary};
pub use render::{held_out_page, left_out_page, validation_csv, validation_json, validation_page};
pub use table::TableError;
use table::{Holds, Row};
pub use tolerance::Tolerances;
pub use training::Run;

choices! {
    /// What is held against measurements.
    pub enum Domain {
        /// Time of training steps.
        Training = "training",
        /// Switches and cables of networks.
        Topology = "topology",
        /// Time of collective operations.
        Collectives = "collectives",
        /// Caches, parameters and weights of models.
        Kv = "kv",
        /// Memory of training by component.
        Memory = "memory",
        /// Failures and the useful time that they leave.
        Reliability = "reliability",
        /// Costs, rents, energy and emissions from stated inputs.
        Economics = "economics",
        /// Latencies of serving.
        Serving = "serving",
        /// Offline throughput of serving.
        Throughput = "throughput",
    }
}

choices! {
    /// What the constants are fitted without, one after another.
    pub enum LeaveOut {
        /// Each source.
        Source = "source",
        /// Each model.
        Model = "model",
    }
}

/// The training runs of a table that can be predicted with the constants of a set.
///
/// # Errors
/// Where the text is no CSV, or lacks a column that every table of the domain has.
pub fn training_runs(
    text: &str,
    catalog: &Catalog,
    aliases: &Aliases,
    set: &TrainingEfficiency,
) -> Result<Vec<Run>, TableError> {
    let table = Domain::Training.rows_to_fit(text, aliases)?;
    Ok(training::runs(&table, catalog, aliases, set))
}

/// The sizes of collectives of a table that can be predicted, and that it does not hold out of fits.
///
/// # Errors
/// Where the text is no CSV, or lacks a column that every table of the domain has.
pub fn collective_runs(text: &str, catalog: &Catalog, aliases: &Aliases) -> Result<Vec<CollectiveRun>, TableError> {
    let usable = Domain::Collectives.rows_to_fit(text, aliases)?;
    Ok(usable
        .iter()
        .filter(|row| !collectives::held_out(row))
        .filter_map(|row| CollectiveRun::of(row, catalog, aliases))
        .collect())
}

/// The project's alias table, TOML.
pub const ALIASES: &str = include_str!("../../tests/validation/aliases.toml");

/// The tolerances of the project's own tables, TOML.
pub const TOLERANCES: &str = include_str!("../../tests/validation/tolerances.toml");

impl Domain {
    /// Those whose rows the constants of serving are fitted to.
    pub const OF_SERVING: [Self; 2] = [Self::Serving, Self::Throughput];

    /// The domain whose tables have the columns of this one.
    pub fn of_table(text: &str) -> Option<Self> {
        // Tables of memory have the columns of runs too.
        let all = std::iter::once(Self::Memory).chain(Self::ALL.iter().copied());
        all.into_iter().find(|domain| domain.rows(text).is_ok())
    }

    /// The rows of a table of the domain.
    fn rows(self, text: &str) -> Result<Vec<Row>, TableError> {
        match self {
            Self::Reliability | Self::Economics => table::rows_with_short_ends(text, self.columns()),
            _ => table::rows(text, self.columns()),
        }
    }

    /// The rows of a table that no rule about the data leaves out, each with numbers that a fit may take in.
    fn rows_to_fit(self, text: &str, aliases: &Aliases) -> Result<Vec<Row>, TableError> {
        let rows = self.rows(text)?.into_iter().filter(|row| self.has(row) && excluded(row, aliases).is_none());
        rows.map(|row| row.check(self.numbers()).map(|()| row)).collect()
    }

    /// Whether a row is of the domain: tables of throughputs have other figures beside them, whose numbers mean other things.
    fn has(self, row: &Row) -> bool {
        self != Self::Throughput || row.text("metric") == Some(serving::THROUGHPUT)
    }

    /// What columns of numbers hold.
    const fn numbers(self) -> &'static [(&'static str, Holds)] {
        match self {
            Self::Training => training::NUMBERS,
            Self::Collectives => collectives::NUMBERS,
            Self::Serving => serving::POINT_NUMBERS,
            Self::Throughput => serving::THROUGHPUT_NUMBERS,
            Self::Kv => kv::NUMBERS,
            Self::Topology | Self::Memory | Self::Economics | Self::Reliability => &[],
        }
    }

    /// Columns that a table of the domain must have.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Training => training::COLUMNS,
            Self::Topology => topology::COLUMNS,
            Self::Collectives => collectives::COLUMNS,
            Self::Kv => kv::COLUMNS,
            Self::Memory => memory::COLUMNS,
            Self::Economics => economics::COLUMNS,
            Self::Reliability => reliability::COLUMNS,
            Self::Serving => serving::POINTS,
            Self::Throughput => serving::THROUGHPUTS,
        }
    }

    /// The project's own table of the domain, CSV.
    pub const fn own_cases(self) -> &'static str {
        match self {
            Self::Training => include_str!("../../tests/validation/training.csv"),
            Self::Topology => include_str!("../../tests/validation/topology.csv"),
            Self::Collectives => include_str!("../../tests/validation/collectives.csv"),
            Self::Kv => include_str!("../../tests/validation/kv.csv"),
            Self::Memory => include_str!("../../tests/validation/memory.csv"),
            Self::Economics => include_str!("../../tests/validation/economics.csv"),
            Self::Reliability => include_str!("../../tests/validation/reliability.csv"),
            Self::Serving => include_str!("../../tests/validation/serving.csv"),
            Self::Throughput => include_str!("../../tests/validation/throughput.csv"),
        }
    }
}

/// The model against a table of cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The domain.
    pub domain: Domain,
    /// Every row, in the order of the table.
    pub rows: Vec<CaseResult>,
}

impl Validation {
    /// Holds the model against a table of cases.
    ///
    /// # Errors
    /// Where the text is no CSV, or lacks a column that every table of the domain has.
    pub fn new(domain: Domain, text: &str, catalog: &Catalog, aliases: &Aliases) -> Result<Self, TableError> {
        let set = catalog.training_efficiency.get("published-runs").map(|entry| &entry.part);
        Self::with_sets(domain, text, catalog, aliases, &|_| set)
    }

    /// Holds runs of serving against the constants that were fitted without their source or model, by its name.
    ///
    /// # Errors
    /// As [`Validation::new`].
    pub fn serving_leaving_out(
        domain: Domain,
        text: &str,
        catalog: &Catalog,
        aliases: &Aliases,
        group: LeaveOut,
        sets: &BTreeMap<String, ServingEfficiency>,
    ) -> Result<Self, TableError> {
        let table = domain.rows(text)?;
        // The group of a figure then begins with what was left out.
        let set = |setup: &serving::Setup| {
            let name = setup.left_out_by(group);
            (sets.get(name), Some(name.to_owned()))
        };
        let rows = table.iter().flat_map(|row| serving::row_cases(domain, row, catalog, aliases, &set)).collect();
        Ok(Self { domain, rows })
    }

    /// Holds training runs against the constants that were fitted without their group, where there are such; rows of
    /// groups that every fit keeps are left out.
    ///
    /// # Errors
    /// As [`Validation::new`].
    pub fn leaving_out(
        text: &str,
        catalog: &Catalog,
        aliases: &Aliases,
        group: LeaveOut,
        sets: &BTreeMap<String, TrainingEfficiency>,
    ) -> Result<Self, TableError> {
        let set = |row: &Row| row.text(group.word()).and_then(|name| sets.get(name));
        let mut validation = Self::with_sets(Domain::Training, text, catalog, aliases, &set)?;
        for (result, row) in validation.rows.iter_mut().zip(table::rows(text, Domain::Training.columns())?) {
            if row.text("source").is_some_and(|source| aliases.always_fitted(source)) {
                let reason = "its source stays in every fit: it alone identifies some constants".to_owned();
                result.outcome = Outcome::Excluded(reason);
            }
        }
        Ok(validation)
    }

    fn with_sets(
        domain: Domain,
        text: &str,
        catalog: &Catalog,
        aliases: &Aliases,
        sets: &training::Sets<'_>,
    ) -> Result<Self, TableError> {
        let table = domain.rows(text)?;
        let cell = |row: &Row, column| row.text(column).unwrap_or_default().to_owned();
        let result = |row: &Row| {
            let training = || training::case(row, catalog, aliases, sets);
            let topology = || {
                let design: Vec<&Row> = table.iter().filter(|other| other.text("name") == row.text("name")).collect();
                topology::case(row, &design, catalog, aliases)
            };
            let memory = || memory::case(row, catalog, aliases);
            let failures = || reliability::case(row, &table, catalog, aliases);
            let collectives = || collectives::case(row, catalog, aliases);
            let ((id, group, band), predict): (_, &dyn Fn() -> (Vec<Fill>, Outcome)) = match domain {
                Domain::Memory => ((cell(row, "id"), cell(row, "source"), None), &memory),
                Domain::Reliability => ((cell(row, "id"), cell(row, "case"), None), &failures),
                Domain::Training => ((cell(row, "id"), cell(row, "source"), training::role(row)), &training),
                Domain::Topology => {
                    let id = format!("{}, {}", cell(row, "name"), cell(row, "parameter"));
                    ((id, cell(row, "name"), None), &topology)
                }
                Domain::Collectives => (collectives::name(row), &collectives),
                // Each figure of a row is a case.
                Domain::Kv => return kv::cases(row, catalog),
                Domain::Economics => return economics::cases(row),
                Domain::Serving | Domain::Throughput => {
                    let set = serving::constants(catalog).map(|set| &set.part);
                    return serving::row_cases(domain, row, catalog, aliases, &|_| (set, None));
                }
            };
            let excluded = excluded(row, aliases);
            let (filled, outcome) = excluded.map_or_else(predict, |reason| (Vec::new(), Outcome::Excluded(reason)));
            vec![CaseResult { id, group, band, filled, outcome }]
        };
        let rows = table.iter().flat_map(result).collect();
        Ok(Self { domain, rows })
    }

    /// The same of a table of collectives, each row by constants that were fitted without its source from priors.
    ///
    /// # Errors
    /// As above.
    pub fn collectives_leaving_out(
        text: &str,
        catalog: &Catalog,
        aliases: &Aliases,
        prior: &CollectiveEfficiency,
    ) -> Result<Self, TableError> {
        Domain::Collectives.rows_to_fit(text, aliases)?;
        let table = table::rows(text, Domain::Collectives.columns())?;
        let rows = collectives::cases_leaving_out(&table, catalog, aliases, prior, |row| excluded(row, aliases));
        Ok(Self { domain: Domain::Collectives, rows })
    }

    /// Figures of all rows.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.rows)
    }

    /// Figures by group, in the order of the table, and then by band where the domain has any.
    pub fn groups(&self) -> Vec<(&str, Summary)> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.group.as_str()) {
                names.push(&row.group);
            }
        }
        let of = |name: &str| Summary::of(self.rows.iter().filter(|row| row.group == name));
        let mut bands: Vec<&str> = self.rows.iter().filter_map(|row| row.band).collect();
        bands.sort_unstable();
        bands.dedup();
        let in_band = |band: &str| Summary::of(self.rows.iter().filter(|row| row.band == Some(band)));
        let groups = names.into_iter().map(|name| (name, of(name)));
        groups.chain(bands.iter().map(|band| (*band, in_band(band)))).collect()
    }
}

/// Why a rule about the data leaves a row out, if one does. Of a point that was measured cold the first token alone is off.
fn excluded(row: &Row, aliases: &Aliases) -> Option<String> {
    if let Some(flags) = row.text("clean_flags").filter(|flags| *flags != "ok" && *flags != serving::COLD) {
        return Some(format!("clean_flags: {flags}"));
    }
    let holds = |column: &String| row.text(column).map(str::to_owned);
    let rule =
        |exclusion: &&aliases::Exclusion| exclusion.columns.iter().filter_map(holds).any(|text| exclusion.holds(&text));
    aliases.exclusions().iter().find(rule).map(|exclusion| exclusion.reason.clone())
}
