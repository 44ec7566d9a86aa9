//! `clusterplan calibrate collectives`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic};
use crate::load;
use crate::validation::{ALIASES, Aliases, Domain, Validation, held_out_page, validation_csv, validation_json};

/// `clusterplan calibrate collectives`
#[derive(Args, Debug)]
pub(super) struct HeldOutCollectives {
    /// Runs of your own, in the columns of the project's table [default: that table]
    #[arg(value_name = "FILE.csv")]
    cases: Option<PathBuf>,
}

impl HeldOutCollectives {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let file = session.sources.add("aliases.toml", ALIASES);
        let aliases = Aliases::read(&load::parse(&session.sources, file, &session.sink), &session.sink);
        let text = match &self.cases {
            Some(path) => {
                session.reads(path);
                load::text(path, &session.sink)
            }
            None => Some(Domain::Collectives.own_cases().to_owned()),
        };
        let Some(text) = text.filter(|_| session.sink.is_empty()) else { return (Answer::Mistaken, session) };
        let both = Validation::new(Domain::Collectives, &text, &catalog, &aliases)
            .and_then(|within| Ok((within, Validation::collectives_leaving_out(&text, &catalog, &aliases)?)));
        let (within, without) = match both {
            Ok(both) => both,
            Err(error) => {
                session.sink.push(Diagnostic::new(Code::Syntax, format!("the table of cases: {error}")));
                return (Answer::Mistaken, session);
            }
        };
        let data = match session.options.format {
            Format::Json => validation_json(std::slice::from_ref(&without)).into_bytes(),
            Format::Csv => validation_csv(std::slice::from_ref(&without), session.options.bom),
            Format::Table | Format::Md => session.page(&held_out_page(&within, &without)),
        };
        let answer = if without.summary().predicted > 0 {
            Answer::Yes(data)
        } else {
            let message = "No source can be left out: each is the only one of its links or its network.\n".to_owned();
            Answer::No { data: Some(data), message }
        };
        (answer, session)
    }
}
