//! `clusterplan price`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic};
use crate::report::{grid_csv, infeasible_page, pricing_grid, pricing_json, pricing_page};
use crate::study::pricing::{StudyFile, price};

/// `clusterplan price`
#[derive(Args, Debug)]
pub(super) struct Price {
    /// The study: a job and the ways to buy it
    study: PathBuf,
}

impl Price {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let Some(document) = session.document(&self.study) else { return (Answer::Mistaken, session) };
        let study = StudyFile::read(&document, &session.sink);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        // A job's path begins at the folder of the study that names it.
        let path =
            self.study.parent().map_or_else(|| PathBuf::from(&study.job.id), |folder| folder.join(&study.job.id));
        if !path.is_file() {
            let message = format!("there is no scenario {}", path.display());
            let hint = "paths begin at the study's folder";
            session.sink.push(Diagnostic::new(Code::Unreadable, message).at(&study.job.at, "the job").hint(hint));
            return (Answer::Mistaken, session);
        }
        let Some(job) = session.scenario(&path) else { return (Answer::Mistaken, session) };
        let Some(priced) = price(&study, &job, &catalog, &session.sink) else { return (Answer::Mistaken, session) };
        let data = match session.options.format {
            Format::Json => pricing_json(&priced).into_bytes(),
            Format::Csv => grid_csv(&pricing_grid(&priced), session.options.bom),
            Format::Table | Format::Md => session.page(&pricing_page(&priced)),
        };
        // "No" only where no offer can be.
        let reason = priced.offers.iter().map(|offer| offer.outcome.as_ref().err()).collect::<Option<Vec<_>>>();
        let answer = match reason.as_deref() {
            Some([first, ..]) => {
                Answer::No { data: Some(data), message: message(&infeasible_page(&priced.title, first, None)) }
            }
            _ => Answer::Yes(data),
        };
        (answer, session)
    }
}
