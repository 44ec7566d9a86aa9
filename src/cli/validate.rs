//! `clusterplan validate`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::options::Format;
use super::{Answer, Session};
use crate::calibration::{MeasuredStep, leave_out};
use crate::catalog::Catalog;
use crate::catalog::training_efficiency::TrainingEfficiency;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::load;
use crate::validation::{
    ALIASES, Aliases, Domain, LeaveOut, Run, TOLERANCES, Tolerances, Validation, training_runs, validation_csv,
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
    /// Fits the constants of training anew without each source or model of the table, and predicts that with them
    #[arg(long, value_name = "GROUP", value_parser = groups())]
    leave_out: Option<LeaveOut>,
    /// The set of constants that those fits begin from
    #[arg(long, value_name = "ID", default_value = "priors", requires = "leave_out")]
    prior: String,
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
        let mut parse = |name: &str, text: &str| {
            let file = session.sources.add(name, text);
            load::parse(&session.sources, file, &session.sink)
        };
        let aliases = parse("aliases.toml", ALIASES);
        let tolerances = parse("tolerances.toml", TOLERANCES);
        let aliases = Aliases::read(&aliases, &session.sink);
        let tolerances = Tolerances::read(&tolerances, &session.sink);
        self.cases.iter().for_each(|path| session.reads(path));
        let tables = self.tables(&session);
        // Sources of collectives are left out within the table; what is fitted to training runs is fitted before.
        let of_collectives = !tables.is_empty() && tables.iter().all(|(domain, _)| *domain == Domain::Collectives);
        let prior = catalog.collective_efficiency.get("before-logs");
        let prior = prior.filter(|_| of_collectives && self.leave_out == Some(LeaveOut::Source));
        let left_out = self
            .leave_out
            .filter(|_| prior.is_none())
            .and_then(|group| self.fits(group, &tables, &catalog, &aliases, &session.sink));
        let mut validations = Vec::new();
        for (domain, text) in &tables {
            let validation = match &left_out {
                Some((group, sets)) => Validation::leaving_out(text, &catalog, &aliases, *group, sets),
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
                Err(error) => session.sink.push(Diagnostic::new(Code::Syntax, format!("the table of cases: {error}"))),
            }
        }
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let data = match session.options.format {
            Format::Json => validation_json(&validations).into_bytes(),
            Format::Csv => validation_csv(&validations, session.options.bom),
            Format::Table | Format::Md => session.page(&validation_page(&validations)),
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
        tables: &[(Domain, String)],
        catalog: &Catalog,
        aliases: &Aliases,
        sink: &Sink,
    ) -> Option<(LeaveOut, BTreeMap<String, TrainingEfficiency>)> {
        let mistake = |code, message: String, hint: &str| {
            sink.push(Diagnostic::new(code, message).hint(hint));
            None
        };
        if tables.iter().any(|(domain, _)| *domain != Domain::Training) {
            let message =
                "only the constants of training, and of collectives without a source, are fitted to runs".to_owned();
            return mistake(
                Code::Inconsistent,
                message,
                "ask for --domain training, or for collectives with --leave-out source",
            );
        }
        let Some(prior) = catalog.training_efficiency.get(&self.prior) else {
            let message = format!("no set of training constants has the id \"{}\"", self.prior);
            let ids: Vec<&str> = catalog.training_efficiency.iter().map(|entry| entry.id.as_str()).collect();
            return mistake(Code::UnknownId, message, &format!("there is {}", ids.join(", ")));
        };
        let mut runs: Vec<Run> = Vec::new();
        for (_, text) in tables {
            // A table that cannot be read is reported where it is predicted.
            runs.extend(training_runs(text, catalog, aliases, prior).unwrap_or_default());
        }
        let runs: Vec<&Run> = runs.iter().collect();
        let name = |run: &Run| match group {
            LeaveOut::Source => run.source().to_owned(),
            LeaveOut::Model => run.model().to_owned(),
        };
        match leave_out(&runs, prior, name, Run::is_kept) {
            Ok(sets) => Some((group, sets)),
            Err(reason) => mistake(
                Code::Inconsistent,
                format!("the constants cannot be fitted: {reason}"),
                "see each row of the answer without --leave-out",
            ),
        }
    }

    /// The tables to hold the model against.
    fn tables(&self, session: &Session) -> Vec<(Domain, String)> {
        if self.cases.is_empty() {
            let wanted = Domain::ALL.iter().filter(|domain| self.domain.is_none_or(|wanted| wanted == **domain));
            return wanted.map(|domain| (*domain, domain.own_cases().to_owned())).collect();
        }
        self.cases.iter().filter_map(|path| self.table(path, session)).collect()
    }

    fn table(&self, path: &Path, session: &Session) -> Option<(Domain, String)> {
        let text = load::text(path, &session.sink)?;
        let domain = self.domain.or_else(|| Domain::of_table(&text));
        if domain.is_none() {
            let message = format!("{} has the columns of no domain", path.display());
            session.sink.push(
                Diagnostic::new(Code::MissingKey, message).hint("say which with --domain to see what is missing"),
            );
        }
        domain.map(|domain| (domain, text))
    }
}

/// The words of what can be left out.
fn groups() -> impl TypedValueParser<Value = LeaveOut> {
    let find = |word: String| LeaveOut::ALL.iter().copied().find(|group| group.word() == word);
    PossibleValuesParser::new(LeaveOut::ALL.iter().map(|group| group.word()))
        .map(move |word| find(word).unwrap_or_default())
}
