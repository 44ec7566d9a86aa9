//! `clusterplan validate`

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::options::Format;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic};
use crate::load;
use crate::validation::{
    ALIASES, Aliases, Domain, TOLERANCES, Tolerances, Validation, validation_csv, validation_json, validation_page,
};

/// `clusterplan validate`
#[derive(Args, Debug)]
pub(super) struct Validate {
    /// What is held against measurements [default: everything, or what the table of cases is about]
    #[arg(long, value_parser = domains())]
    domain: Option<Domain>,
    /// A table of measurements of your own, in the columns of the project's tables [default: those tables]
    #[arg(long, value_name = "FILE.csv")]
    cases: Option<PathBuf>,
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
        if let Some(path) = &self.cases {
            session.reads(path);
        }
        let tables = self.tables(&session);
        let mut validations = Vec::new();
        for (domain, text) in &tables {
            match Validation::new(*domain, text, &catalog, &aliases) {
                Ok(validation) => validations.push(validation),
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
        // Nothing is stated of tables that a user brings.
        let stated = if self.cases.is_none() { validations.as_slice() } else { &[] };
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

    /// The tables to hold the model against.
    fn tables(&self, session: &Session) -> Vec<(Domain, String)> {
        let Some(path) = &self.cases else {
            let wanted = Domain::ALL.iter().filter(|domain| self.domain.is_none_or(|wanted| wanted == **domain));
            return wanted.map(|domain| (*domain, domain.own_cases().to_owned())).collect();
        };
        let Some(text) = load::text(path, &session.sink) else { return Vec::new() };
        let domain = self.domain.or_else(|| Domain::of_table(&text));
        if domain.is_none() {
            let message = format!("{} has the columns of no domain", path.display());
            session.sink.push(
                Diagnostic::new(Code::MissingKey, message).hint("say which with --domain to see what is missing"),
            );
        }
        domain.map(|domain| (domain, text)).into_iter().collect()
    }
}
