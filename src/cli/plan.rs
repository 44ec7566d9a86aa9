//! `clusterplan plan`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::report::{grid_csv, plan_grid, plan_json, plan_page};
use crate::search;

/// `clusterplan plan`
#[derive(Args, Debug)]
pub(super) struct Plan {
    /// A scenario file with requests at a rate, limits of latencies, and a [plan] table where more than the number of GPUs may vary
    scenario: PathBuf,
}

impl Plan {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let document = session.scenario(&self.scenario);
        let plan = document.and_then(|document| search::plan(&document, &catalog, &session.sink));
        let Some(plan) = plan else { return (Answer::Mistaken, session) };
        let data = match session.options.format {
            Format::Json => plan_json(&plan).into_bytes(),
            Format::Csv => grid_csv(&plan_grid(&plan), session.options.bom),
            Format::Table | Format::Md => session.page(&plan_page(&plan)),
        };
        let answer = if plan.answers.is_empty() {
            let machine = matches!(session.options.format, Format::Json | Format::Csv);
            Answer::No { data: machine.then_some(data), message: message(&plan_page(&plan)) }
        } else {
            Answer::Yes(data)
        };
        (answer, session)
    }
}
