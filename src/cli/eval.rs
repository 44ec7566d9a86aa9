//! `clusterplan eval`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::evaluate::Infeasible;
use crate::report::{
    evaluation_csv, evaluation_json, evaluation_page, infeasible_csv, infeasible_json, infeasible_page,
};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search::{self, Nearest};

/// `clusterplan eval`
#[derive(Args, Debug)]
pub(super) struct Eval {
    /// A scenario file
    scenario: PathBuf,
}

impl Eval {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let document = session.scenario(&self.scenario, &mut catalog);
        let file = document.map(|document| ScenarioFile::read(&document, &session.sink));
        let scenario = file.and_then(|file| Scenario::resolve(&file, &catalog, &session.sink));
        let Some(scenario) = scenario else { return (Answer::Mistaken, session) };
        let answer = match search::evaluate(scenario.clone()) {
            Err(infeasible) => {
                let nearest = search::nearest(&scenario, &infeasible);
                no(&scenario.title, &infeasible, nearest.as_ref(), &session)
            }
            Ok(evaluation) => Answer::Yes(match session.format {
                Format::Json => evaluation_json(&evaluation).into_bytes(),
                Format::Csv => evaluation_csv(&evaluation, session.options.bom),
                Format::Table | Format::Md => session.page(&evaluation_page(&evaluation)),
            }),
        };
        (answer, session)
    }
}

/// An answer that is "no"; programs that asked for JSON or CSV get it too.
pub(super) fn no(title: &str, infeasible: &Infeasible, nearest: Option<&Nearest>, session: &Session) -> Answer {
    let data = match session.format {
        Format::Json => Some(infeasible_json(title, infeasible, nearest).into_bytes()),
        Format::Csv => Some(infeasible_csv(title, infeasible, nearest, session.options.bom)),
        Format::Table | Format::Md => None,
    };
    Answer::No { data, message: message(&infeasible_page(title, infeasible, nearest)) }
}
