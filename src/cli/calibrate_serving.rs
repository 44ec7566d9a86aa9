//! `clusterplan calibrate serving`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::{Answer, Session};
use crate::calibration::{ServingFit, fit_serving};
use crate::catalog::ServingEfficiency;
use crate::catalog::serving_coverage::ServingCoverage;
use crate::diagnostics::{Code, Diagnostic};
use crate::document::{Node, Table, Value};
use crate::load;
use crate::report::Grid;
use crate::units::{Factor, significant};
use crate::validation::serving::{Quantity, Setup, constants, coverage, distance, setups};
use crate::validation::{ALIASES, Aliases, Domain};

/// `clusterplan calibrate serving`
#[derive(Args, Debug)]
pub(super) struct Serving {
    /// Tables of serving points and of offline throughputs, in the columns of the project's own [default: those tables]
    #[arg(value_name = "FILE.csv")]
    files: Vec<PathBuf>,
    /// Passes over all constants at most; none to hold the constants as they are against the tables
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    passes: u32,
    /// Writes the fitted set as a file for DIR/efficiency/serving of a catalog, beside which its runs and date are to be named
    #[arg(long, conflicts_with = "leave_out_models")]
    toml: bool,
    /// Fits without each model in turn, and says how far that model's time between tokens is then missed
    #[arg(long)]
    leave_out_models: bool,
}

impl Serving {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let file = session.sources.add("aliases.toml", ALIASES);
        let aliases = Aliases::read(&load::parse(&session.sources, file, &session.sink), &session.sink);
        let mut runs: Vec<Setup> = Vec::new();
        for (domain, text) in self.tables(&mut session) {
            match setups(domain, &text, &catalog, &aliases) {
                Ok(found) => runs.extend(found.into_iter().map(|(_, setup)| setup)),
                Err(error) => session.sink.push(Diagnostic::new(Code::Syntax, format!("the table: {error}"))),
            }
        }
        let Some(start) = constants(&catalog).filter(|_| session.sink.is_empty()) else {
            return (Answer::Mistaken, session);
        };
        if self.toml {
            session.writes_toml();
        }
        if runs.is_empty() {
            let message = "Nothing is fitted: no row of the tables is a run that the model takes.\n".to_owned();
            return (Answer::No { data: None, message }, session);
        }
        if self.toml {
            let fit = fit_serving(start, self.passes, |set| distance(&runs, set));
            let covered = coverage(&runs, &fit.set);
            return (Answer::Yes(toml(&start.document, &fit, &covered, runs.len()).into_bytes()), session);
        }
        let (title, grid) = if self.leave_out_models {
            ("Models left out of the fit of serving", self.left_out(&runs, start))
        } else {
            ("Constants of serving, fitted", self.fitted(&runs, start))
        };
        let data = session.grid(title, grid);
        (Answer::Yes(data), session)
    }

    /// The tables, each with its domain.
    fn tables(&self, session: &mut Session) -> Vec<(Domain, String)> {
        if self.files.is_empty() {
            return [Domain::Serving, Domain::Throughput]
                .map(|domain| (domain, domain.own_cases().to_owned()))
                .to_vec();
        }
        let mut tables = Vec::new();
        for path in &self.files {
            session.reads(path);
            let Some(text) = load::text(path, &session.sink) else { continue };
            let of_serving = |domain: &Domain| [Domain::Serving, Domain::Throughput].contains(domain);
            if let Some(domain) = Domain::of_table(&text).filter(of_serving) {
                tables.push((domain, text));
                continue;
            }
            let message = format!("{} is no table of serving", path.display());
            let hint = "its columns are those of `validate --domain serving` or `--domain throughput`";
            session.sink.push(Diagnostic::new(Code::MissingKey, message).hint(hint));
        }
        tables
    }

    fn fitted(&self, runs: &[Setup], start: &ServingEfficiency) -> Grid {
        let fit = fit_serving(start, self.passes, |set| distance(runs, set));
        let mut grid = Grid::new(&["Constant", "Catalog", "Fitted"], 1);
        let row =
            |name: &str, before: f64, after: f64| vec![name.to_owned(), significant(before, 4), significant(after, 4)];
        // Times in microseconds, so that none is written as zero.
        for constant in &fit.constants {
            let (name, unit) =
                if constant.is_time { (format!("{}, us", constant.name), 1e6) } else { (constant.name.clone(), 1.0) };
            grid.rows.push(row(&name, constant.before * unit, constant.after * unit));
        }
        grid.rows.push(row("distance", fit.distance.0, fit.distance.1));
        grid
    }

    fn left_out(&self, runs: &[Setup], start: &ServingEfficiency) -> Grid {
        let mut grid = Grid::new(&["Model left out", "Runs", "Median error", "90th percentile"], 1);
        let models: BTreeSet<&str> = runs.iter().map(|run| run.model.as_str()).collect();
        for model in models {
            let (own, others): (Vec<&Setup>, Vec<&Setup>) = runs.iter().partition(|run| run.model == model);
            let fit = fit_serving(start, self.passes, |set| distance(others.iter().copied(), set));
            let mut errors: Vec<f64> = own.iter().flat_map(|run| run.errors(Quantity::Tpot, &fit.set)).collect();
            errors.sort_by(f64::total_cmp);
            let at = |share: usize| errors.get((errors.len().saturating_sub(1)) * share / 100);
            let Some((median, most)) = at(50).zip(at(90)) else { continue };
            let percent = |error: f64| format!("{}%", significant(error * 100.0, 3));
            grid.rows.push(vec![model.to_owned(), errors.len().to_string(), percent(*median), percent(*most)]);
        }
        grid
    }
}

/// The file of a set with its constants replaced by the fitted ones, and what the runs cover.
fn toml(document: &Node, fit: &ServingFit, covered: &[ServingCoverage], runs: usize) -> String {
    let mut document = document.clone();
    for constant in &fit.constants {
        let value = if constant.is_time {
            // Microseconds with ten digits: what is read back is what was fitted.
            Value::String(format!("{} us", significant(constant.after * 1e6, 10)))
        } else {
            Value::Float(constant.after)
        };
        if let Some(node) = place(&mut document, &constant.name) {
            node.value = value;
        }
    }
    if let Value::Table(table) = &mut document.value {
        // A key of one word always finds its place.
        let _ = table.set("coverage", list(covered));
    }
    let (before, after) = fit.distance;
    format!(
        "# Fitted to {runs} runs; mean distance {} (before {}). Sources are those of the set it began from: name your own.\n{}",
        significant(after, 4),
        significant(before, 4),
        document.to_toml()
    )
}

/// What runs cover, as a list of tables.
fn list(covered: &[ServingCoverage]) -> Node {
    let leaf = |value| Node { value, ..Node::default() };
    let cell = |cell: &ServingCoverage| {
        let factor = |factor: Option<Factor>| Some(Value::Float((factor?.get() * 1e4).round() / 1e4));
        let fields = [
            ("generation", Some(Value::String(cell.generation.clone()))),
            ("engine", Some(Value::String(cell.engine.clone()))),
            ("architecture", Some(Value::String(cell.architecture.word().to_owned()))),
            ("pools", cell.pools.then_some(Value::Boolean(true))),
            ("points", Some(Value::Integer(cell.points.into()))),
            ("tpot", factor(cell.tpot)),
            ("ttft", factor(cell.ttft)),
            ("throughput", factor(cell.throughput)),
        ];
        let mut table = Table::default();
        for (key, value) in fields.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            let _ = table.set(key, leaf(value));
        }
        leaf(Value::Table(table))
    };
    leaf(Value::Array(covered.iter().map(cell).collect()))
}

/// The value of a constant in a set's file: `generation.<first id>.<field>`, or a plain path.
fn place<'a>(document: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    let mut node = document;
    for key in name.split('.') {
        node = match &mut node.value {
            Value::Table(table) => table.get_mut(key)?,
            Value::Array(items) => items.iter_mut().find(|item| {
                let first = item.as_table().and_then(|table| table.get("ids"));
                matches!(first.map(|ids| &ids.value), Some(Value::Array(ids)) if ids.first().and_then(Node::as_str) == Some(key))
            })?,
            _ => return None,
        };
    }
    Some(node)
}
