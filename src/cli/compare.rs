//! `clusterplan compare`

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::catalog::{Catalog, Reference};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::load;
use crate::report::{comparison_csv, comparison_json, comparison_page, infeasible_page};
use crate::scenario::ScenarioFile;
use crate::study::{Axis, Case, Comparison, Question, compare};

/// `clusterplan compare`
#[derive(Args, Debug)]
pub(super) struct Compare {
    /// Scenario files; one is compared with variants of itself, as its [compare] table or --vary says
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
    /// A key and its values, such as cluster.fabric=quantum-2-ndr,roce-400g; given twice, every combination
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Vec<String>,
    /// The name of the variant that the others are held against [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
}

impl Compare {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let cases = self.cases(&mut session, &mut catalog);
        let (axes, baseline) = self.axes(&cases, &mut session, &mut catalog);
        let question = Question { cases: &cases, axes: &axes, baseline: baseline.as_ref() };
        let Some(comparison) = compare(&question, &catalog, &session.sink) else { return (Answer::Mistaken, session) };
        (answer(&comparison, &session), session)
    }

    fn cases(&self, session: &mut Session, catalog: &mut Catalog) -> Vec<Case> {
        let mut cases = Vec::new();
        for (index, path) in self.scenarios.iter().enumerate() {
            if self.scenarios[..index].contains(path) {
                let message = format!("{} is named twice", path.display());
                session.sink.push(Diagnostic::new(Code::Duplicate, message).hint("name each scenario once"));
                continue;
            }
            // Files of one name in several directories are told apart by their paths.
            let twins = self.scenarios.iter().filter(|other| name(other) == name(path)).count();
            let name = if twins > 1 { path.display().to_string() } else { name(path) };
            if let Some(document) = session.scenario(path, catalog) {
                cases.push(Case { name, document });
            }
        }
        cases
    }

    /// What is varied: what the command line says, or else the table of a single scenario.
    fn axes(&self, cases: &[Case], session: &mut Session, catalog: &mut Catalog) -> (Vec<Axis>, Option<Reference>) {
        let Session { sources, sink, .. } = session;
        let mut axes = Vec::new();
        let mut baseline = None;
        if let (true, [case]) = (self.vary.is_empty(), cases) {
            let file = ScenarioFile::read(&case.document, sink);
            if let Some(wanted) = file.compare {
                axes = wanted.vary.into_iter().map(|(key, values)| Axis { key, values }).collect();
                baseline = wanted.baseline;
            }
        }
        for argument in &self.vary {
            let Some(axis) = load::axis("--vary", argument, sources, sink) else { continue };
            if let Some(scenario) = self.scenarios.first() {
                load::models_of_key((&axis.key, &axis.values), scenario, catalog, sources, sink);
            }
            if axes.iter().any(|earlier| earlier.key == axis.key) {
                let at = axis.values.first().map(|value| value.at.clone()).unwrap_or_default();
                let hint = "name all its values in one --vary";
                sink.push(
                    Diagnostic::new(Code::Duplicate, format!("`{}` is varied twice", axis.key))
                        .at(&at, "again")
                        .hint(hint),
                );
            }
            axes.push(axis);
        }
        if let Some(name) = &self.baseline {
            let file = sources.add("--baseline", name);
            baseline = Some(Reference { id: name.clone(), at: Span { file, range: 0..name.len() } });
        }
        if cases.len() == 1 && axes.is_empty() && sink.is_empty() {
            let hint =
                "name another scenario, pass --vary cluster.fabric=quantum-2-ndr,roce-400g, or add a [compare] table";
            sink.push(Diagnostic::new(Code::MissingKey, "there is nothing to compare the scenario with").hint(hint));
        }
        (axes, baseline)
    }
}

/// What a scenario is called: its file's name.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.display().to_string())
}

/// "No" only where the baseline cannot be; another variant that cannot be is shown as such.
fn answer(comparison: &Comparison, session: &Session) -> Answer {
    let data = match session.format {
        Format::Json => comparison_json(comparison).into_bytes(),
        Format::Csv => comparison_csv(comparison, session.options.bom),
        Format::Table | Format::Md => session.page(&comparison_page(comparison)),
    };
    match &comparison.baseline().outcome {
        Ok(_) => Answer::Yes(data),
        Err(infeasible) => {
            let title = format!("{}: {}", comparison.title, comparison.baseline().name);
            Answer::No {
                data: Some(data),
                message: message(&infeasible_page(&title, infeasible, comparison.nearest.as_ref())),
            }
        }
    }
}
