//! `clusterplan calibrate serving`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Answer, Session};
use crate::calibration::{SetFit, SetTitle, fit_set};
use crate::catalog::serving_coverage::ServingCoverage;
use crate::catalog::{ConstantSet, FreeConstant, ServingEfficiency};
use crate::diagnostics::{Code, Diagnostic};
use crate::document::Value;
use crate::load;
use crate::report::Grid;
use crate::units::significant;
use crate::validation::Domain;
use crate::validation::serving::{Setup, coverage, setups};

/// `clusterplan calibrate serving`
#[derive(Args, Debug)]
pub(super) struct Serving {
    /// Tables of serving points and of offline throughputs, in the columns of the project's own [default: those tables]
    #[arg(value_name = "FILE.csv")]
    files: Vec<PathBuf>,
    /// The set of constants to begin from: its ranges say how far runs may move each
    #[arg(long, value_name = "ID", default_value = "serving-priors")]
    prior: String,
    /// Writes the fitted set as a file for DIR/efficiency/serving of a catalog
    #[arg(long)]
    pub(super) toml: bool,
}

impl Serving {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let documents = session.catalog_documents();
        let catalog = load::bind(&documents, &session.sink);
        let aliases = load::aliases(&mut session.sources, &session.sink);
        let mut runs: Vec<Setup> = Vec::new();
        for (domain, text, name) in self.tables(&mut session) {
            match setups(domain, &text, &catalog, &aliases) {
                Ok(found) => runs.extend(found.into_iter().map(|(_, setup)| setup)),
                Err(error) => session.sink.push(error.diagnostic(&name)),
            }
        }
        let key = ("efficiency/serving".to_owned(), self.prior.clone());
        let (Some(prior), Some(document)) = (catalog.serving_efficiency.get(&self.prior), documents.get(&key)) else {
            let ids: Vec<&str> = catalog.serving_efficiency.iter().map(|entry| entry.id.as_str()).collect();
            let message = format!("no set of serving constants has the id \"{}\"", self.prior);
            session.sink.push(Diagnostic::new(Code::UnknownId, message).hint(format!("there is {}", ids.join(", "))));
            return (Answer::Mistaken, session);
        };
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        if self.toml {
            session.writes_toml();
        }
        let runs: Vec<&Setup> = runs.iter().collect();
        let fit = match fit_set(&runs, prior) {
            Ok(fit) => fit,
            Err(reason) => {
                let message = format!("The constants cannot be fitted to {} runs: {reason}\n", runs.len());
                return (Answer::No { data: None, message }, session);
            }
        };
        if !self.toml {
            let grid = constants(&fit, prior);
            let data = session.grid("Constants of serving, fitted", grid);
            return (Answer::Yes(data), session);
        }
        let (text, mut document) = session.text_of(document);
        // What the set that is begun from covers is not what this one does.
        if let Value::Table(table) = &mut document.value {
            table.entries.retain(|entry| entry.key != "coverage");
        }
        let mut file = fit.to_toml(SetTitle::SERVING, &self.prior, &text, &document);
        file.push_str(&covered(&coverage(runs.iter().copied(), &fit.set)));
        (Answer::Yes(file.into_bytes()), session)
    }

    /// The tables, each with its domain.
    fn tables(&self, session: &mut Session) -> Vec<(Domain, String, String)> {
        if self.files.is_empty() {
            return Domain::OF_SERVING
                .map(|domain| (domain, domain.own_cases().to_owned(), "the own table".to_owned()))
                .to_vec();
        }
        let mut tables = Vec::new();
        for path in &self.files {
            session.reads(path);
            let Some(text) = load::text(path, &session.sink) else { continue };
            let of_serving = |domain: &Domain| Domain::OF_SERVING.contains(domain);
            if let Some(domain) = Domain::of_table(&text).filter(of_serving) {
                tables.push((domain, text, path.display().to_string()));
                continue;
            }
            let message = format!("{} is no table of serving", path.display());
            let hint = "its columns are those of `validate --domain serving` or `--domain throughput`";
            session.sink.push(Diagnostic::new(Code::MissingKey, message).hint(hint));
        }
        tables
    }
}

/// What the runs cover, as tables of the set's file with their source.
fn covered(cells: &[ServingCoverage]) -> String {
    let mut text = String::from(
        "\n[[source]]\nfields = [\"coverage\"]\nbasis = \"derived\"\ntitle = \"The runs of the fit, held against this set: \
         the factor within which nine of ten figures lie, for each generation, engine and kind of model of which ten and more \
         were measured\"\naccessed = 2026-11-29\n",
    );
    for cell in cells {
        let _ = write!(
            text,
            "\n[[coverage]]\ngeneration = {:?}\nengine = {:?}\narchitecture = {:?}\n",
            cell.generation,
            cell.engine,
            cell.architecture.word()
        );
        if cell.pools {
            text.push_str("pools = true\n");
        }
        let _ = writeln!(text, "weights = {:?}\ncaches = {:?}", cell.weights, cell.caches);
        let _ = writeln!(text, "points = {}", cell.points);
        for (key, factor) in [("tpot", cell.tpot), ("ttft", cell.ttft), ("throughput", cell.throughput)] {
            if let Some(factor) = factor {
                let _ = writeln!(text, "{key} = {:.4}", factor.get());
            }
        }
    }
    text
}

/// Each constant before and after, and what is left of its uncertainty.
fn constants(fit: &SetFit<ServingEfficiency>, prior: &ServingEfficiency) -> Grid {
    let mut grid = Grid::new(&["Constant", "Prior", "Fitted", "Low", "High", "Uncertainty left"], 1);
    let mut before = prior.clone();
    let before = before.constants_mut();
    for constant in &fit.constants {
        let Some((_, free)) = before.iter().find(|(name, _)| *name == constant.name) else { continue };
        // Times in microseconds, so that none is written as zero.
        let (name, unit) = match free {
            FreeConstant::Time(_) => (format!("{}, us", constant.name), 1e6),
            FreeConstant::Factor(_) | FreeConstant::Share(_) => (constant.name.clone(), 1.0),
        };
        let [value, low, high] = constant.range;
        let numbers = [free.range()[0], value, low, high].map(|number| significant(number * unit, 4));
        let left = format!("{:.0}%", constant.narrowed * 100.0);
        grid.rows.push([name].into_iter().chain(numbers).chain([left]).collect());
    }
    let errors = format!("{:.1}%, nine of ten below {:.1}%", fit.errors.median * 100.0, fit.errors.p90 * 100.0);
    let cells = [format!("median error of {} runs", fit.runs), String::new(), errors];
    grid.rows.push(cells.into_iter().chain([const { String::new() }; 3]).collect());
    grid
}
