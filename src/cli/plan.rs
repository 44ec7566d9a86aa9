//! `clusterplan plan`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::Node;
use crate::report::{plan_csv, plan_json, plan_page, training_plan_csv, training_plan_json, training_plan_page};
use crate::scenario::ScenarioFile;
use crate::search;
use crate::study::training_plan;

/// `clusterplan plan`
#[derive(Args, Debug)]
pub(super) struct Plan {
    /// A scenario file that trains, with a [plan] table; or one with requests at a rate, limits of latencies, and a [plan] table where more than the number of GPUs may vary
    scenario: PathBuf,
}

impl Plan {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let document = session.scenario(&self.scenario, &mut catalog);
        let file = document.as_ref().map(|document| ScenarioFile::read(document, &Sink::default()));
        if let (Some(document), Some(file)) = (&document, file)
            && file.training.is_some()
            && document.at_path("serving").is_none()
        {
            return (training(document, &file, &catalog, &session), session);
        }
        let plan = document.and_then(|document| search::plan(&document, &catalog, &session.sink));
        let Some(plan) = plan else { return (Answer::Mistaken, session) };
        let data = match session.format {
            Format::Json => plan_json(&plan).into_bytes(),
            Format::Csv => plan_csv(&plan, session.options.bom),
            Format::Table | Format::Md => session.page(&plan_page(&plan)),
        };
        let answer = if plan.answers.is_empty() {
            let machine = matches!(session.format, Format::Json | Format::Csv);
            Answer::No { data: machine.then_some(data), message: message(&plan_page(&plan)) }
        } else {
            Answer::Yes(data)
        };
        (answer, session)
    }
}

/// A plan of training.
fn training(document: &Node, file: &ScenarioFile, catalog: &Catalog, session: &Session) -> Answer {
    ScenarioFile::read(document, &session.sink);
    let Some(wanted) = file.plan.as_ref().filter(|_| session.sink.is_empty()) else {
        if session.sink.is_empty() {
            let hint = "add [plan] with limits = { deadline = \"60 days\" } and vary = { \"cluster.accelerators\" = \"auto\" }";
            let message = "a plan for training needs a [plan] table";
            session
                .sink
                .push(Diagnostic::new(Code::MissingKey, message).at(&document.at, "in this scenario").hint(hint));
        }
        return Answer::Mistaken;
    };
    let Some(plan) = training_plan(document, wanted, catalog, &session.sink) else { return Answer::Mistaken };
    let data = match session.format {
        Format::Json => training_plan_json(&plan).into_bytes(),
        Format::Csv => training_plan_csv(&plan, session.options.bom),
        Format::Table | Format::Md => session.page(&training_plan_page(&plan)),
    };
    if plan.choices.is_empty() {
        let machine = matches!(session.format, Format::Json | Format::Csv);
        return Answer::No { data: machine.then_some(data), message: message(&training_plan_page(&plan)) };
    }
    Answer::Yes(data)
}
