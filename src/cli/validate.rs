//! `clusterplan validate`

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::options::Format;
use super::{Answer, Session};
use crate::calibration::{MeasuredRun, leave_out};
use crate::catalog::{Catalog, Part, ServingEfficiency, Shelf, TrainingEfficiency};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::load;
use crate::validation::serving::{Setup, setups};
use crate::validation::{
    Aliases, Domain, LeaveOut, Run, TOLERANCES, Tolerances, Validation, left_out_page, training_runs, validation_csv,
    validation_json, validation_page,
};

/// `clusterplan validate`
#[derive(Args, Debug)]
pub(super) struct Validate {
    /// What is held against measurements [default: everything, or what the table of cases is about]
    #[arg(long, value_parser = domains())]
    domain: Option<Domain>,
    /// A table of measurements of your own, in the columns of the project's tables [default: those tables]
    #[arg(long, value_name = "FILE.csv")]
    cases: Vec<PathBuf>,
    /// Fits the constants of training, or of serving, anew without each source or model of the tables, and predicts that with
    /// them
    #[arg(long, value_name = "GROUP", value_parser = groups())]
    leave_out: Option<LeaveOut>,
    /// The set of constants that those fits begin from [default: priors, of serving serving-priors]
    #[arg(long, value_name = "ID", requires = "leave_out")]
    prior: Option<String>,
}

/// Why a table says nothing.
fn nothing_predicted(validations: &[Validation]) -> String {
    let summaries = || validations.iter().map(Validation::summary);
    let rows: usize = summaries().map(|summary| summary.rows).sum();
    if rows == 0 {
        return "The table has no rows: there is nothing to hold the model against.\n".to_owned();
    }
    let skipped: usize = summaries().map(|summary| summary.skipped).sum();
    let excluded: usize = summaries().map(|summary| summary.excluded).sum();
    format!(
        "None of the {rows} rows was predicted: {skipped} skipped, {excluded} excluded. Each row of the answer says why.\n"
    )
}

/// The words of the domains; clap lists them and knows the closest to a slip.
fn domains() -> impl TypedValueParser<Value = Domain> {
    let find = |word: String| Domain::ALL.iter().copied().find(|domain| domain.word() == word);
    PossibleValuesParser::new(Domain::ALL.iter().map(|domain| domain.word()))
        .map(move |word| find(word).unwrap_or_default())
}

impl Validate {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let aliases = load::aliases(&mut session.sources, &session.sink);
        let file = session.sources.add("tolerances.toml", TOLERANCES);
        let tolerances = Tolerances::read(&load::parse(&session.sources, file, &session.sink), &session.sink);
        self.cases.iter().for_each(|path| session.reads(path));
        let tables = self.tables(&session);
        // Sources of collectives are left out within the table; what is fitted to training runs is fitted before.
        let of_collectives = !tables.is_empty() && tables.iter().all(|(domain, ..)| *domain == Domain::Collectives);
        let prior = catalog.collective_efficiency.get("before-logs");
        let prior = prior.filter(|_| of_collectives && self.leave_out == Some(LeaveOut::Source));
        let left_out = self
            .leave_out
            .filter(|_| prior.is_none())
            .and_then(|group| self.fits(group, &tables, &catalog, &aliases, &session.sink));
        let mut validations = Vec::new();
        for (domain, text, name) in &tables {
            let validation = match &left_out {
                Some(LeftOut::Training(group, sets)) => Validation::leaving_out(text, &catalog, &aliases, *group, sets),
                Some(LeftOut::Serving(group, sets)) => {
                    Validation::serving_leaving_out(*domain, text, &catalog, &aliases, *group, sets)
                }
                None => match prior {
                    Some(prior) => Validation::collectives_leaving_out(text, &catalog, &aliases, prior),
                    None => Validation::new(*domain, text, &catalog, &aliases),
                },
            };
            match validation {
                Ok(validation) => {
                    // Tables of one domain are one table.
                    match validations.iter_mut().find(|found: &&mut Validation| found.domain == *domain) {
                        Some(found) => found.rows.extend(validation.rows),
                        None => validations.push(validation),
                    }
                }
                Err(error) => session.sink.push(error.diagnostic(name)),
            }
        }
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let data = match session.format {
            Format::Json => validation_json(&validations).into_bytes(),
            Format::Csv => validation_csv(&validations, session.options.bom),
            Format::Table | Format::Md => session.page(&match self.leave_out {
                Some(group) => left_out_page(&validations, group),
                None => validation_page(&validations),
            }),
        };
        // Nothing is stated of tables that a user brings, nor of constants that were fitted for them.
        let own = self.cases.is_empty() && self.leave_out.is_none();
        let stated = if own { validations.as_slice() } else { &[] };
        let breaches: Vec<String> = stated.iter().flat_map(|validation| tolerances.breaches(validation)).collect();
        let predicted: usize = validations.iter().map(|validation| validation.summary().predicted).sum();
        let answer = if predicted == 0 {
            Answer::No { data: Some(data), message: nothing_predicted(&validations) }
        } else if breaches.is_empty() {
            Answer::Yes(data)
        } else {
            Answer::No {
                data: Some(data),
                message: format!("outside the stated tolerance:\n{}\n", breaches.join("\n")),
            }
        };
        (answer, session)
    }

    /// The constants fitted to all tables without each group; none where there are mistakes.
    fn fits(
        &self,
        group: LeaveOut,
        tables: &[(Domain, String, String)],
        catalog: &Catalog,
        aliases: &Aliases,
        sink: &Sink,
    ) -> Option<LeftOut> {
        let all = |domains: &[Domain]| tables.iter().all(|(domain, ..)| domains.contains(domain));
        if all(&[Domain::Training]) {
            let prior = self.prior(&catalog.training_efficiency, "priors", sink)?;
            let mut runs: Vec<Run> = Vec::new();
            for (_, text, _) in tables {
                // A table that cannot be read is reported where it is predicted.
                runs.extend(training_runs(text, catalog, aliases, prior).unwrap_or_default());
            }
            let name = |run: &Run| match group {
                LeaveOut::Source => run.source().to_owned(),
                LeaveOut::Model => run.model().to_owned(),
            };
            let groups = runs.iter().filter(|run| !run.is_kept()).map(name).collect();
            let sets = without_each(&runs, prior, &groups, name, Run::is_kept, sink)?;
            return Some(LeftOut::Training(group, sets));
        }
        if all(&Domain::OF_SERVING) {
            let prior = self.prior(&catalog.serving_efficiency, "serving-priors", sink)?;
            let mut runs: Vec<Setup> = Vec::new();
            let mut groups = BTreeSet::new();
            let name = |run: &Setup| run.left_out_by(group).to_owned();
            for domain in Domain::OF_SERVING {
                // Latencies and throughputs say different things of the same constants: the project's own stand in for
                // what is not brought.
                let read = |text: &str| {
                    setups(domain, text, catalog, aliases).unwrap_or_default().into_iter().map(|run| run.1)
                };
                let mut asked = tables.iter().filter(|(of, ..)| *of == domain).peekable();
                if asked.peek().is_none() {
                    runs.extend(read(domain.own_cases()));
                }
                for (_, text, _) in asked {
                    let found: Vec<Setup> = read(text).collect();
                    groups.extend(found.iter().map(name));
                    runs.extend(found);
                }
            }
            let sets = without_each(&runs, prior, &groups, name, |_| false, sink)?;
            return Some(LeftOut::Serving(group, sets));
        }
        let message =
            "only the constants of training, of serving, and of collectives without a source, are fitted to runs"
                .to_owned();
        let hint = "ask for --domain training, serving or throughput, or for collectives with --leave-out source";
        sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        None
    }

    /// The set that fits begin from.
    fn prior<'a, P: Part>(&self, sets: &'a Shelf<P>, usual: &str, sink: &Sink) -> Option<&'a P> {
        let id = self.prior.as_deref().unwrap_or(usual);
        let found = sets.get(id);
        if found.is_none() {
            let message = format!("no {} has the id \"{id}\"", P::WHAT);
            let ids: Vec<&str> = sets.iter().map(|entry| entry.id.as_str()).collect();
            sink.push(Diagnostic::new(Code::UnknownId, message).hint(format!("there is {}", ids.join(", "))));
        }
        found.map(|entry| &entry.part)
    }

    /// The tables to hold the model against.
    fn tables(&self, session: &Session) -> Vec<(Domain, String, String)> {
        if self.cases.is_empty() {
            let wanted = Domain::ALL.iter().filter(|domain| self.domain.is_none_or(|wanted| wanted == **domain));
            return wanted.map(|domain| (*domain, domain.own_cases().to_owned(), "the own table".to_owned())).collect();
        }
        self.cases.iter().filter_map(|path| self.table(path, session)).collect()
    }

    fn table(&self, path: &Path, session: &Session) -> Option<(Domain, String, String)> {
        let text = load::text(path, &session.sink)?;
        let domain = self.domain.or_else(|| Domain::of_table(&text));
        if domain.is_none() {
            let message = format!("{} has the columns of no domain", path.display());
            session.sink.push(
                Diagnostic::new(Code::MissingKey, message).hint("say which with --domain to see what is missing"),
            );
        }
        domain.map(|domain| (domain, text, path.display().to_string()))
    }
}

/// The constants without each group of runs.
enum LeftOut {
    /// Of training.
    Training(LeaveOut, BTreeMap<String, TrainingEfficiency>),
    /// Of serving.
    Serving(LeaveOut, BTreeMap<String, ServingEfficiency>),
}

/// The constants fitted without each group of runs; none where that cannot be.
fn without_each<R: MeasuredRun>(
    runs: &[R],
    prior: &R::Set,
    groups: &BTreeSet<String>,
    group: impl Fn(&R) -> String,
    kept: impl Fn(&R) -> bool,
    sink: &Sink,
) -> Option<BTreeMap<String, R::Set>> {
    let runs: Vec<&R> = runs.iter().collect();
    leave_out(&runs, prior, groups, group, kept)
        .map_err(|reason| {
            let message = format!("the constants cannot be fitted: {reason}");
            let hint = "see each row of the answer without --leave-out";
            sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        })
        .ok()
}

/// The words of what can be left out.
fn groups() -> impl TypedValueParser<Value = LeaveOut> {
    let find = |word: String| LeaveOut::ALL.iter().copied().find(|group| group.word() == word);
    PossibleValuesParser::new(LeaveOut::ALL.iter().map(|group| group.word()))
        .map(move |word| find(word).unwrap_or_default())
}
